"""The frontier's order, cut into ranges on several workers, against one plain sort."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.schemas.tables import FRONTIER, RANKED_SCHEMA
from semrank.transforms.columnar.arrays import int64s, split_by_value
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.frontier import budgets, order
from semrank.transforms.frontier.budgets import Limits

SCORES = (0.0, 0.25, 0.45, np.nextafter(0.45, 1), 0.7, 1.0)
THRESHOLD = 0.45


@st.composite
def scored(draw: st.DrawFn) -> list[dict[str, Any]]:
    """URLs of few hosts with few scores, so that there are ties; some addresses are not ASCII."""
    names = draw(st.lists(st.text("abé~\U0001f600", min_size=1, max_size=3), unique=True, max_size=25))
    rows = []
    for name in names:
        host = draw(st.sampled_from(["a.example", "b.example"]))
        rows.append({"url": f"https://{host}/{name}", "host": host, "score": draw(st.sampled_from(SCORES))})
    return rows


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    rest: dict[str, Any] = {
        "extension": 0.0,
        "intension": 0.0,
        "base_links": 0,
        "base_clicks": 0,
        "fetched": False,
        "status": None,
        "change_probability": None,
        "matches": [],
        "reasons": [],
    }
    urls = pa.array([row["url"] for row in rows], pa.string())
    ids = text_ids(urls).tolist() if rows else []
    return pa.Table.from_pylist(
        [{**rest, **row, "url_id": number} for row, number in zip(rows, ids, strict=True)], schema=RANKED_SCHEMA
    )


def plainly_sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (-row["score"], row["url"].encode()))


def plainly_selected(rows: list[dict[str, Any]], max_urls: int | None, max_per_host: int | None) -> list[str]:
    taken: list[str] = []
    hosts: Counter[str] = Counter()
    for row in plainly_sorted(rows):
        if row["score"] <= THRESHOLD or (max_per_host is not None and hosts[row["host"]] == max_per_host):
            continue
        hosts[row["host"]] += 1
        if max_urls is None or len(taken) < max_urls:
            taken.append(row["url"])
    return taken


@dataclass(frozen=True)
class Sizes:
    """Constants so small that few rows need several ranges, and how many parts the rows come in."""

    sample_rows: int
    range_bytes: int
    parts: int


SIZES = st.builds(Sizes, st.integers(1, 8), st.sampled_from([1, 200, 1 << 25]), st.integers(1, 4))


def hold(part: pa.Table, parts: list[pa.Table], max_per_host: int | None) -> pa.Table:
    """A part with what holds its rows back."""
    stages = {}
    if max_per_host is not None:
        best = [
            budgets.best_of_groups(rows, int64s(rows["host_id"]), max_per_host)
            for rows in (budgets.picks(part, Limits(THRESHOLD), domains=False) for part in parts)
        ]
        left = pa.concat_tables(best)
        stages[budgets.PER_HOST] = budgets.best_of_groups(left, int64s(left["host_id"]), max_per_host)
    return budgets.mark_held(part, Limits(THRESHOLD), stages)


def ordered(rows: list[dict[str, Any]], sizes: Sizes, max_urls: int | None, max_per_host: int | None) -> list[pa.Table]:
    """The files of the frontier, as the steps make them."""
    parts = [table_of(rows[number :: sizes.parts]) for number in range(sizes.parts)]
    parts = [part for part in parts if part.num_rows]
    if not parts:
        return []
    with (
        mock.patch.object(order, "SAMPLE_ROWS", sizes.sample_rows),
        mock.patch.object(order, "RANGE_BYTES", sizes.range_bytes),
    ):
        parts = [hold(part, parts, max_per_host) for part in parts]
        sample = pa.concat_tables([order.order_sample(part) for part in parts])
        measured = pa.concat_tables([order.frontier_size(part) for part in parts])
        cuts = order.range_cuts(sample, measured)
    ranged = [order.with_ranges(part, cuts) for part in parts]
    offsets = order.range_offsets(pa.concat_tables([order.count_ranges(part) for part in ranged]))
    everything = pa.concat_tables(ranged)
    return [
        order.ranked_rows(number, part, offsets, limits=Limits(THRESHOLD, max_urls))
        for number, part in split_by_value(everything, int64s(everything["range"]))
    ]


BUDGET = st.none() | st.integers(1, 6)


@given(scored(), SIZES, BUDGET, BUDGET)
def test_ranges_joined_are_one_sorted_frontier(
    rows: list[dict[str, Any]], sizes: Sizes, max_urls: int | None, max_per_host: int | None
) -> None:
    files = ordered(rows, sizes, max_urls, max_per_host)
    assert all(part.schema == FRONTIER.schema for part in files)
    found = [row for part in files for row in part.to_pylist()]
    assert [(row["score"], row["url"]) for row in found] == [(row["score"], row["url"]) for row in plainly_sorted(rows)]
    assert [row["rank"] for row in found] == list(range(1, len(rows) + 1))
    assert [row["url"] for row in found if row["selected"]] == plainly_selected(rows, max_urls, max_per_host)


@given(scored(), st.integers(1, 8), st.sampled_from([1, 200]))
def test_files_do_not_depend_on_parts(rows: list[dict[str, Any]], sample_rows: int, range_bytes: int) -> None:
    one, many = (
        ordered(turned, Sizes(sample_rows, range_bytes, parts), 3, 2) for turned, parts in ((rows, 1), (rows[::-1], 3))
    )
    assert [part.to_pylist() for part in one] == [part.to_pylist() for part in many]


def test_a_large_frontier_is_cut_into_about_equal_ranges() -> None:
    rows = [{"url": f"https://a.example/{number}", "host": "a.example", "score": 0.5} for number in range(2000)]
    table = table_of(rows)
    size = order.frontier_size(table)["bytes"][0].as_py()
    files = ordered(rows, Sizes(sample_rows=512, range_bytes=size // 8, parts=4), None, None)
    assert 8 <= len(files) <= 9
    assert max(part.num_rows for part in files) < 2 * 2000 / 8


def test_samples_of_samples_are_samples_of_all() -> None:
    table = table_of([{"url": f"https://a.example/{number}", "host": "", "score": 0.5} for number in range(100)])
    with mock.patch.object(order, "SAMPLE_ROWS", 10):
        parts = [order.order_sample(table.slice(start, 25)) for start in range(0, 100, 25)]
        twice = order.order_sample(pa.concat_tables(parts))
        once = order.order_sample(table)
    assert sorted(twice["url"].to_pylist()) == sorted(once["url"].to_pylist())
    assert once.num_rows == 10


def test_nothing_to_rank() -> None:
    assert order.range_cuts(None, None).num_rows == 0
    assert order.range_offsets(None).num_rows == 0
    assert order.order_sample(table_of([])).num_rows == 0


def test_a_range_without_offsets_is_an_error() -> None:
    table = table_of([{"url": "https://a.example/", "host": "a.example", "score": 0.5}])
    with pytest.raises(ValueError, match="range 3 has 1 rows but no offsets"):
        order.ranked_rows(3, table, None, limits=Limits(0.4))
