"""The calibrated threshold against a search over all of them, and the scores that it is calibrated on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.transforms.ranking import focused
from semrank.transforms.ranking.calibration import BIN_SCHEMA, SCORE_BINS, calibrated_threshold, score_bins
from tests.support.small_crawls import facts_with_clicks, random_crawl, scores_of

PAGES = st.lists(st.tuples(st.integers(0, SCORE_BINS * 8 - 1).map(lambda step: step / (SCORE_BINS * 8)), st.booleans()))


def searched(pages: list[tuple[float, bool]], precision: float) -> float | None:
    """The lowest lower end of a page's bin from which on enough pages are relevant, 1 if there is none."""
    for step in range(SCORE_BINS):
        above = [relevant for score, relevant in pages if score >= step / SCORE_BINS]
        occupied = any(step <= score * SCORE_BINS < step + 1 for score, _ in pages)
        if occupied and sum(above) >= precision * len(above):
            return step / SCORE_BINS
    return 1.0 if pages else None


@given(PAGES, st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), st.integers(1, 4))
def test_the_threshold_is_the_lowest_with_the_precision(
    pages: list[tuple[float, bool]], precision: float, parts: int
) -> None:
    tables = [BIN_SCHEMA.empty_table()]
    for part in (pages[number::parts] for number in range(parts)):
        relevant = np.array([page[1] for page in part], dtype=np.bool_)
        tables.append(score_bins(np.array([page[0] for page in part], dtype=np.float64), relevant))
    threshold, share = calibrated_threshold(pa.concat_tables(tables), precision)
    assert threshold == searched(pages, precision)
    shares = {}
    for step in {int(score * SCORE_BINS) for score, _ in pages}:
        above = [relevant for score, relevant in pages if score >= step / SCORE_BINS]
        shares[step / SCORE_BINS] = sum(above) / len(above)
    assert share == (max(shares.values(), default=None) if threshold in (None, 1.0) else shares[threshold])


@pytest.mark.parametrize("number", range(3))
def test_harvested_pages_have_the_scores_of_urls_to_rank(number: int) -> None:
    """The harvest as URLs to rank whose content is unknown, with all that was learned from it as harvest."""
    crawl = random_crawl(number, urls=80)
    facts = facts_with_clicks(crawl)
    part, model = focused.learned(facts)
    bins = focused.harvest_scores(part, model)

    known = part.known
    trained = np.flatnonzero(part.trained)
    unknown = model.number("plain") > 0
    asked = replace(
        known,
        current=np.isin(np.arange(len(known.url)), trained),
        described=np.where(part.trained, not unknown, known.described),
    )
    # What a page's own words say is of no account before it is fetched, but decides whether it is relevant.
    again = focused.Part(asked, model["idf"])
    scores = scores_of(focused.score_part(again, model, facts.words))
    content = focused.score_part(
        focused.Part(replace(asked, described=np.where(part.trained, True, known.described)), model["idf"]),
        model,
        facts.words,
    )
    terms = {
        url: sum(reason["value"] for reason in reasons if reason["term"] == "content")
        for url, reasons in zip(content["url_id"].to_pylist(), content["reasons"].to_pylist(), strict=True)
    }
    seeds = [url for url in known.url[known.seed].tolist() if url in terms]
    expected: dict[int, list[int]] = {}
    for url, score in scores.items():
        counts = expected.setdefault(int(score * SCORE_BINS), [0, 0])
        counts[0] += 1
        counts[1] += terms[url] > np.mean([terms[seed] for seed in seeds]) / 2
    assert {row["bin"]: [row["pages"], row["relevant"]] for row in bins.to_pylist()} == expected
    assert bool(expected) == (model.number("others") > 0)
