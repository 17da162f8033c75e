"""Change rates against the estimator evaluated page by page and against simulated pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.schemas.tables import RANKED_SCHEMA, TIMESTAMP
from semrank.transforms.columnar.arrays import int64s
from semrank.transforms.columnar.idfilter import IdFilter
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.frontier import recrawl

EVERYTHING = IdFilter(64, np.full(8, 255, dtype=np.uint8))
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
URLS = ("https://a.example/", "https://b.example/", "https://c.example/")


def table_of(rows: Sequence[tuple[str, int | None, str | None]]) -> pa.Table:
    """Captures: URL, hours since the begin, digest."""
    times = [None if hours is None else BEGIN + timedelta(hours=hours) for _, hours, _ in rows]
    urls, digests = (pa.array([row[column] for row in rows], pa.string()) for column in (0, 2))
    return pa.table([urls, pa.array(times, TIMESTAMP), digests], names=list(recrawl.COLUMNS))


def rate_of(rows: list[tuple[int, str]]) -> tuple[int, int, float]:
    """Intervals, changes and days of one page's captures at different hours."""
    rows = sorted(rows)
    changes = sum(first[1] != second[1] for first, second in pairwise(rows))
    return len(rows) - 1, changes, (rows[-1][0] - rows[0][0]) / 24


@given(
    st.lists(
        st.tuples(st.sampled_from(URLS), st.integers(0, 40), st.sampled_from("xyz")),
        unique_by=lambda row: row[:2],
        max_size=15,
    ),
    st.integers(0, 100),
    st.integers(1, 3),
)
def test_probabilities_are_the_estimators(rows: list[tuple[str, int, str]], later: int, parts: int) -> None:
    counted = [recrawl.captures(table_of(list(rows[number::parts])), EVERYTHING) for number in range(parts)]
    ids = text_ids(pa.array(URLS))
    counts = recrawl.change_counts(pa.concat_tables(counted), np.sort(ids))
    pooled = recrawl.pooled_counts(counts if counts.num_rows else None)
    now = recrawl.moment(None, as_of=round((BEGIN + timedelta(hours=40 + later)).timestamp() * 1e6))
    ranked = frontier({url: max((hour for u, hour, _ in rows if u == url), default=None) for url in URLS})
    found = recrawl.with_change_probability(ranked, counts, pooled, now)["change_probability"].to_pylist()

    facts = {url: rate_of([row[1:] for row in rows if row[0] == url]) for url in URLS if url in {r[0] for r in rows}}
    totals = [sum(fact[index] for fact in facts.values()) for index in range(3)]
    for url, probability in zip(URLS, found, strict=True):
        if url not in facts:
            assert probability is None
            continue
        intervals, changes, days = facts[url] if facts[url][0] else totals
        rate = 1 / 30
        if intervals:
            rate = -math.log((intervals - changes + 0.5) / (intervals + 0.5)) / (days / intervals)
        age = (40 + later - max(hour for u, hour, _ in rows if u == url)) / 24
        assert probability == pytest.approx(1 - math.exp(-rate * age), abs=1e-12)


def frontier(hours: dict[str, int | None]) -> pa.Table:
    rest: dict[str, Any] = {
        "host": "", "score": 0.5, "extension": 0.0, "intension": 0.0, "base_links": 0, "base_clicks": 0,
        "matches": [], "reasons": [],
    }  # fmt: skip
    ids = text_ids(pa.array(list(hours))).tolist()
    return pa.Table.from_pylist(
        [
            {
                **rest,
                "url_id": number,
                "url": url,
                "fetched": hour is not None,
                "last_fetched_at": None if hour is None else BEGIN + timedelta(hours=hour),
            }
            for number, (url, hour) in zip(ids, hours.items(), strict=True)
        ],
        schema=RANKED_SCHEMA,
    )


@pytest.mark.parametrize("rate", [0.05, 0.2, 1.0])
def test_estimates_of_simulated_pages_are_nearly_unbiased(rate: float) -> None:
    """Pages that change by a Poisson process and are looked at once a day, 30 times."""
    draw = np.random.default_rng(3)
    pages, days = 4000, 30
    changed = draw.poisson(rate, (pages, days)) > 0
    intervals = np.full(pages, days, dtype=np.int64)
    span = np.full(pages, days * recrawl.DAY, dtype=np.int64)
    estimates = recrawl.change_rate(intervals, changed.sum(axis=1).astype(np.int64), span)
    assert estimates.mean() == pytest.approx(rate, rel=0.03)
    naive = changed.sum(axis=1).mean() / days
    assert abs(estimates.mean() - rate) < abs(naive - rate)


def test_refreshing_by_estimated_change_finds_more_changes_than_in_turn() -> None:
    """Half of the pages never change; a budget of a tenth a day goes where a change is likely."""
    draw = np.random.default_rng(5)
    pages, budget, warm, days = 400, 40, 20, 60
    rates = np.where(np.arange(pages) % 2, 0.0, draw.gamma(1.0, 0.3, pages))
    versions = np.cumsum(draw.poisson(rates[:, None], (pages, warm + days)), axis=1)
    ids = np.arange(pages)

    def simulate(by_estimate: bool) -> int:
        seen = [(page, day, int(versions[page, day])) for day in range(0, warm, 5) for page in range(pages)]
        last = {page: (15, int(versions[page, 15])) for page in range(pages)}
        found = 0
        for day in range(warm, warm + days):
            rows = np.array(seen)
            table = pa.table([rows[:, 0], rows[:, 1] * recrawl.DAY, rows[:, 2]], schema=recrawl.CAPTURE_SCHEMA)
            counts = recrawl.change_counts(table, ids)
            rate = recrawl.change_rate(*(int64s(counts[name]) for name in recrawl.CHANGE_SCHEMA.names[1:]))
            age = day - np.array([last[page][0] for page in range(pages)])
            value = -np.expm1(-rate * age) if by_estimate else age
            for page in np.lexsort((ids, -value))[:budget].tolist():
                version = int(versions[page, day])
                found += version != last[page][1]
                last[page] = (day, version)
                seen.append((page, day, version))
        return found

    assert simulate(True) > 1.3 * simulate(False)


def test_a_page_that_never_changes_sinks_and_an_unknown_time_counts_as_changed() -> None:
    rows = [(URLS[0], hour, "x") for hour in range(0, 240, 24)] + [
        (URLS[1], hour, str(hour)) for hour in range(0, 240, 24)
    ]
    counts = recrawl.change_counts(recrawl.captures(table_of(rows), EVERYTHING), np.sort(text_ids(pa.array(URLS))))
    now = recrawl.moment(recrawl.newest_capture(table_of([(URLS[2], 264, "x")])), as_of=None)
    ranked = frontier({URLS[0]: 216, URLS[1]: 216, URLS[2]: 216})
    ranked = ranked.set_column(
        ranked.schema.get_field_index("last_fetched_at"), "last_fetched_at",
        pa.array([*ranked["last_fetched_at"].to_pylist()[:2], None], TIMESTAMP),
    )  # fmt: skip
    steady, restless, unknown = recrawl.with_change_probability(ranked, counts, None, now)[
        "change_probability"
    ].to_pylist()
    assert steady == pytest.approx(-math.expm1(2 * math.log(9.5 / 9.5)), abs=1e-12)
    assert restless > 0.99
    assert unknown == 1.0


def test_captures_without_time_or_digest_say_nothing() -> None:
    rows = table_of([(URLS[0], None, "x"), (URLS[0], 3, None), (URLS[0], 4, "y")])
    assert recrawl.captures(rows, EVERYTHING).num_rows == 1
    assert recrawl.moment(None, as_of=None).num_rows == 0
