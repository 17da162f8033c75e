"""How good a replayed crawl was (P13 Eq. 7 and 8), and how sure one can be of a mean over topics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semrank.transforms.columnar.arrays import Bools, Float64s, Int64s

DRAWS = 2_000
"""Resamples behind an interval: its ends then move by some hundredths of its width from one seed number to another."""

CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False)
class Curve:
    """Measures after each page of a crawl; R are the relevant pages, D the pages crawled, seeds in neither.

    Attributes:
        pages: |D|, int64[k] from 1.
        relevant: |R and D|, int64[k].
        harvest: relevant / pages, float64[k].
        precision: |R and D| / |D| (Eq. 7), float64[k]; the same as the harvest rate where relevance is yes or no.
        recall: |R and D| / |R| (Eq. 7), 0 where R is empty, float64[k].
        f_measure: 2 precision recall / (precision + recall) (Eq. 8), 0 where both are 0, float64[k].
    """

    pages: Int64s
    relevant: Int64s
    harvest: Float64s
    precision: Float64s
    recall: Float64s
    f_measure: Float64s


def crawl_curve(hits: Bools, relevant_count: int) -> Curve:
    """The measures after each page.

    Args:
        hits: whether each crawled page is relevant, in the order of the crawl, bool[k].
        relevant_count: |R|, the relevant pages that are no seeds.
    """
    pages = np.arange(1, len(hits) + 1, dtype=np.int64)
    relevant = np.cumsum(hits, dtype=np.int64)
    harvest = relevant / pages
    recall = relevant / max(1, relevant_count)
    return Curve(pages, relevant, harvest, harvest, recall, f_measure(harvest, recall))


def f_measure(precision: Float64s, recall: Float64s) -> Float64s:
    """2 P R / (P + R) (P13 Eq. 8), 0 where both are 0."""
    total = precision + recall
    return np.where(total > 0, 2 * precision * recall / np.where(total > 0, total, 1.0), 0.0)


def padded_hits(hits: Bools, budget: int) -> Bools:
    """The hits of a crawl that ran out of candidates, as if pages without relevance had followed, bool[budget].

    Without them a crawl that ends in a dead end after one relevant page would have a harvest rate of 1.
    """
    return np.concatenate([hits, np.zeros(max(0, budget - len(hits)), dtype=np.bool_)])[:budget]


def harvest_area(hits: Bools, budget: int) -> float:
    """Area under the harvest curve up to the budget, as a share of the largest there can be: the mean harvest rate."""
    return float((np.cumsum(padded_hits(hits, budget)) / np.arange(1, budget + 1)).mean())


@dataclass(frozen=True, eq=False)
class Sweep:
    """What each threshold selects.

    Attributes:
        selected: number of URLs with a score above it, int64[t].
        relevant: number of relevant ones among them, int64[t].
        precision: their share, NaN where nothing is selected, float64[t].
        recall: the share of all relevant pages, float64[t].
        f_measure: as in Eq. 8, 0 where nothing is selected, float64[t].
    """

    selected: Int64s
    relevant: Int64s
    precision: Float64s
    recall: Float64s
    f_measure: Float64s


def threshold_sweep(scores: Float64s, relevant: Bools, relevant_count: int, thresholds: Float64s) -> Sweep:
    """Precision, recall and F of the URLs that a threshold selects (gamma in P13 4, from 0.1 to 1).

    Args:
        scores: scores of the URLs that were ranked, float64[n].
        relevant: whether each is relevant, bool[n].
        relevant_count: the number of all relevant pages that are no seeds.
        thresholds: a URL is selected where its score is above.
    """
    selected = _above(np.sort(scores), thresholds)
    found = _above(np.sort(scores[relevant]), thresholds)
    precision = np.where(selected > 0, found / np.maximum(selected, 1), np.nan)
    recall = found / max(1, relevant_count)
    return Sweep(selected, found, precision, recall, f_measure(np.nan_to_num(precision), recall))


def _above(ordered: Float64s, thresholds: Float64s) -> Int64s:
    return (len(ordered) - np.searchsorted(ordered, thresholds, side="right")).astype(np.int64)


def resamples(topics: int, random_seed: int) -> Int64s:
    """Topics drawn with replacement, int64[DRAWS, topics]; the same for all rankers, so that differences are paired."""
    return np.random.default_rng(random_seed).integers(0, topics, (DRAWS, topics))


def interval(values: Float64s, draws: Int64s) -> tuple[float, float | None, float | None]:
    """Mean of a value over topics with its bootstrap interval (percentiles, `CONFIDENCE`): (mean, low, high).

    One topic is no sample of others, so there is no interval then.

    Args:
        values: one value a topic, the mean over its seed sets, float64[topics].
        draws: result of `resamples`.
    """
    if len(values) < 2:
        return float(values.mean()), None, None
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(values[draws].mean(axis=1), [tail, 1 - tail])
    return float(values.mean()), float(low), float(high)
