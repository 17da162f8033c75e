"""Measures by hand and against loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.transforms.replay.measures import (
    DRAWS,
    crawl_curve,
    f_measure,
    harvest_area,
    interval,
    padded_hits,
    resamples,
    threshold_sweep,
)


def bools(text: str) -> np.ndarray:
    return np.array([letter == "x" for letter in text], dtype=np.bool_)


def test_a_curve_by_hand() -> None:
    curve = crawl_curve(bools("x.xx"), 6)
    assert curve.pages.tolist() == [1, 2, 3, 4]
    assert curve.relevant.tolist() == [1, 1, 2, 3]
    assert curve.harvest.tolist() == curve.precision.tolist() == [1, 1 / 2, 2 / 3, 3 / 4]
    assert curve.recall.tolist() == [1 / 6, 1 / 6, 2 / 6, 3 / 6]
    np.testing.assert_allclose(curve.f_measure, [2 / 7, 2 / 8, 4 / 9, 6 / 10])


def test_nothing_found_and_nothing_to_find() -> None:
    assert crawl_curve(bools(".."), 3).f_measure.tolist() == [0, 0]
    assert crawl_curve(bools(".."), 0).recall.tolist() == [0, 0]
    assert len(crawl_curve(bools(""), 3).pages) == 0


@given(hits=st.lists(st.booleans(), max_size=30), more=st.integers(0, 10))
def test_curves_equal_sets(hits: list[bool], more: int) -> None:
    """P13 Eq. 7 and 8 with sets, page by page."""
    relevant = {page for page, hit in enumerate(hits) if hit} | {f"unfound {number}" for number in range(more)}
    curve = crawl_curve(np.array(hits, dtype=np.bool_), len(relevant))
    for row, pages in enumerate(range(1, len(hits) + 1)):
        crawled = set(range(pages))
        both = len(crawled & relevant)
        precision, recall = both / len(crawled), both / len(relevant) if relevant else 0.0
        assert curve.relevant[row] == both
        assert curve.precision[row] == pytest.approx(precision)
        assert curve.recall[row] == pytest.approx(recall)
        expected = 2 * precision * recall / (precision + recall) if both else 0.0
        assert curve.f_measure[row] == pytest.approx(expected)


def test_area_is_the_mean_harvest_rate() -> None:
    assert harvest_area(bools("x.xx"), 4) == pytest.approx((1 + 1 / 2 + 2 / 3 + 3 / 4) / 4)
    # A crawl that ends early goes on without finding anything.
    assert harvest_area(bools("x"), 4) == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
    assert harvest_area(bools("xxxx"), 4) == 1


def test_padding() -> None:
    assert padded_hits(bools("x"), 3).tolist() == [True, False, False]
    assert padded_hits(bools("x.x"), 2).tolist() == [True, False]


@given(
    urls=st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.3, 0.75, 1.0]), st.booleans()), max_size=20),
    more=st.integers(0, 4),
)
def test_sweep_equals_counting(urls: list[tuple[float, bool]], more: int) -> None:
    total = sum(relevant for _, relevant in urls) + more
    thresholds = np.array([0.0, 0.25, 0.5, 1.0])
    scores, labels = np.array([score for score, _ in urls]), np.array([label for _, label in urls], dtype=np.bool_)
    sweep = threshold_sweep(scores, labels, total, thresholds)
    for row, gamma in enumerate(thresholds.tolist()):
        selected = [label for score, label in urls if score > gamma]
        assert sweep.selected[row] == len(selected)
        assert sweep.relevant[row] == sum(selected)
        if not selected:
            assert math.isnan(sweep.precision[row])
            assert sweep.f_measure[row] == 0
            continue
        precision, recall = sum(selected) / len(selected), sum(selected) / total if total else 0.0
        assert sweep.precision[row] == pytest.approx(precision)
        assert sweep.recall[row] == pytest.approx(recall)
        assert sweep.f_measure[row] == pytest.approx(
            2 * precision * recall / (precision + recall) if precision + recall else 0.0
        )


def test_f_measure_by_hand() -> None:
    np.testing.assert_allclose(f_measure(np.array([1.0, 0.5, 0.0]), np.array([0.25, 0.5, 0.0])), [0.4, 0.5, 0.0])


def test_intervals_equal_resampling_by_hand() -> None:
    values = np.array([0.1, 0.4, 0.2, 0.9, 0.3])
    draws = resamples(5, 7)
    assert draws.shape == (DRAWS, 5)
    assert set(np.unique(draws)) == set(range(5))
    means = sorted(sum(values[place] for place in draw) / 5 for draw in draws.tolist())
    mean, low, high = interval(values, draws)
    assert mean == pytest.approx(sum(values) / 5)
    assert low is not None
    assert high is not None
    # Between the two resamples nearest to the 2.5th and the 97.5th percentile.
    assert means[math.floor(0.025 * (DRAWS - 1))] <= low <= means[math.ceil(0.025 * (DRAWS - 1))]
    assert means[math.floor(0.975 * (DRAWS - 1))] <= high <= means[math.ceil(0.975 * (DRAWS - 1))]


def test_the_interval_is_about_two_standard_errors() -> None:
    values = np.random.default_rng(3).normal(size=200)
    _, low, high = interval(values, resamples(200, 0))
    assert low is not None
    assert high is not None
    assert high - low == pytest.approx(2 * 1.96 * values.std() / math.sqrt(200), rel=0.08)


def test_one_topic_has_no_interval() -> None:
    assert interval(np.array([0.5]), resamples(1, 0)) == (0.5, None, None)
