"""The frontier's total order.

URLs are ordered by priority, highest first, ties by canonical URL. The priority is the score, or, for refreshed pages,
the score times the probability of a change. To sort more rows than a worker can hold, the order is cut into ranges at
rows that are sampled by the hash of their URL, so the cuts depend on the set of rows only, not on their partitioning. A
range is sorted on one worker; its first rank is the number of rows in the ranges before it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.schemas.tables import FRONTIER, conform
from semrank.transforms.columnar.arrays import Bools, Float64s, Int64s, bools, column_array, int64s, mix_bits, sum_rows
from semrank.transforms.frontier.budgets import DISCOVER, REFRESH, Limits, pool_quotas, pools, priority, rank_order

RANGE_BYTES = 32 << 20
"""Bytes of rows in a range, which is a file of the frontier."""

ROW_BYTES, MATCH_BYTES, REASON_BYTES = 100, 32, 80
"""Bytes of a row without its texts, of one of its matches and of one of its reasons, about."""

SAMPLE_ROWS = 4096
"""Size of the sample that cuts the order; the largest of 64 ranges is then within a third of the mean."""

SAMPLE_SCHEMA = pa.schema(
    [pa.field("draw", pa.int64()), pa.field("priority", pa.float64()), pa.field("url", pa.string())]
)
SIZE_SCHEMA = pa.schema([pa.field("rows", pa.int64()), pa.field("bytes", pa.int64())])
CUT_SCHEMA = pa.schema([pa.field("priority", pa.float64()), pa.field("url", pa.string())])
_COUNTED = ("rows", "discover", "refresh")
COUNT_SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("range", *_COUNTED)])
OFFSET_SCHEMA = pa.schema(
    [
        pa.field(name, pa.int64())
        for name in ("range", *(f"{name}_before" for name in _COUNTED), "discover_in_all", "refresh_in_all")
    ]
)

MAX_URLS = "max-urls"
"""Why a URL after the last one that a round may select is held back."""


def frontier_size(rows: pa.Table) -> pa.Table:
    """Rows and bytes of a part, a table of `SIZE_SCHEMA`.

    The bytes are counted from the rows' content, so that their sum does not depend on the partitioning.
    """
    texts = sum(int(pc.sum(pc.binary_length(rows[name])).as_py() or 0) for name in ("url", "host"))
    lists = sum(
        size * int(pc.sum(pc.list_value_length(rows[name])).as_py() or 0)
        for name, size in (("matches", MATCH_BYTES), ("reasons", REASON_BYTES))
    )
    return pa.table([[rows.num_rows], [texts + ROW_BYTES * rows.num_rows + lists]], schema=SIZE_SCHEMA)


def order_sample(rows: pa.Table) -> pa.Table:
    """The rows with the `SAMPLE_ROWS` lowest hashes, a table of `SAMPLE_SCHEMA`; also merges samples of parts."""
    if "draw" in rows.column_names:
        sample = rows
    else:
        draw = (mix_bits(int64s(rows["url_id"]).view(np.uint64)) >> np.uint64(1)).astype(np.int64)
        sample = pa.table([pa.array(draw), priority(rows), rows["url"]], schema=SAMPLE_SCHEMA)
    if sample.num_rows > SAMPLE_ROWS:
        lowest = np.argpartition(int64s(sample["draw"]), SAMPLE_ROWS)[:SAMPLE_ROWS]
        sample = sample.take(pa.array(lowest))
    return sample


def range_cuts(sample: pa.Table | None, sizes: pa.Table | None) -> pa.Table:
    """The cuts of the order, a table of `CUT_SCHEMA` in rank order; no rows if one range suffices.

    Args:
        sample: samples of all parts, or None if there are no rows.
        sizes: rows and bytes of all parts.
    """
    if sample is None or sizes is None:
        return CUT_SCHEMA.empty_table()
    ranges = -(-int(pc.sum(sizes["bytes"]).as_py()) // RANGE_BYTES)
    sample = order_sample(sample)
    order = rank_order(sample["priority"].to_numpy(), sample["url"])
    places = np.arange(1, ranges) * len(order) // ranges
    places = np.unique(places[places > 0])
    return sample.select(["priority", "url"]).take(pa.array(order[places])).cast(CUT_SCHEMA)


def range_numbers(value: Float64s, url: pa.Array | pa.ChunkedArray, cuts: pa.Table | None) -> Int64s:
    """The range of each row: the number of cuts at or before it in rank order, int64[n]."""
    if cuts is None:
        return np.zeros(len(value), dtype=np.int64)
    descending = -cuts["priority"].to_numpy()
    low = np.searchsorted(descending, -value, side="left")
    high = np.searchsorted(descending, -value, side="right")
    cut_urls = np.array(cuts["url"].to_pylist(), dtype=object)
    numbers = low.astype(np.int64)
    tied = np.flatnonzero(low < high)
    if len(tied):
        urls = np.array(column_array(url).take(pa.array(tied)).to_pylist(), dtype=object)
        first_cuts = low[tied]
        for first in np.unique(first_cuts).tolist():
            same = first_cuts == first
            last = int(high[tied[same][0]])
            numbers[tied[same]] = first + np.searchsorted(cut_urls[first:last], urls[same], side="right")
    return numbers


def with_ranges(rows: pa.Table, cuts: pa.Table | None) -> pa.Table:
    """Rows of `RANKED_SCHEMA` with their range in a column `range`; exchange them by it."""
    return rows.append_column("range", pa.array(range_numbers(priority(rows), rows["url"], cuts)))


def count_ranges(rows: pa.Table) -> pa.Table:
    """Number of rows of each range, and of selectable rows of each pool, a table of `COUNT_SCHEMA`."""
    ranges = int64s(rows["range"])
    eligible = bools(pc.is_null(rows["held_back"]))
    pool = pools(rows)
    selectable = ((eligible & (pool == kind)).astype(np.int64) for kind in (DISCOVER, REFRESH))
    return pa.table(sum_rows([ranges], np.ones_like(ranges), *selectable), schema=COUNT_SCHEMA)


def range_offsets(counts: pa.Table | None) -> pa.Table:
    """Counts of the ranges before each range, and the totals, a table of `OFFSET_SCHEMA`."""
    if counts is None:
        return OFFSET_SCHEMA.empty_table()
    numbers, *totals = sum_rows([int64s(counts["range"])], *(int64s(counts[name]) for name in _COUNTED))
    before = [np.cumsum(total) - total for total in totals]
    everything = [np.full(len(numbers), total.sum()) for total in totals[1:]]
    return pa.table([numbers, *before, *everything], schema=OFFSET_SCHEMA)


def ranked_rows(partition: int, rows: pa.Table, offsets: pa.Table | None, *, limits: Limits) -> pa.Table:
    """A range's rows in rank order with rank and selection, a table of `FRONTIER`.

    Args:
        partition: number of the range.
        rows: all rows of the range, with the `held_back` of the caps.
        offsets: result of `range_offsets`.
        limits: only `max_urls` is still to be applied.
    """
    if offsets is None:
        raise ValueError(f"range {partition} has {rows.num_rows} rows but no offsets")
    at = offsets.slice(int(np.searchsorted(int64s(offsets["range"]), partition)), 1).to_pylist()[0]
    rows = rows.take(pa.array(rank_order(priority(rows), rows["url"])))
    ranks = at["rows_before"] + 1 + np.arange(rows.num_rows, dtype=np.int64)
    held = column_array(rows["held_back"])
    if limits.max_urls is not None:
        held = pc.if_else(
            pc.and_(pc.is_null(held), pa.array(_surplus(rows, at, limits, limits.max_urls))), MAX_URLS, held
        )
    rows = rows.drop_columns(["held_back"]).append_column("held_back", held)
    ranked = rows.append_column("rank", pa.array(ranks)).append_column("selected", pc.is_null(held))
    return conform(ranked, FRONTIER)


def _surplus(rows: pa.Table, at: dict[str, int], limits: Limits, most: int) -> Bools:
    """Whether each selectable row is after the last one that the round may select."""
    eligible = bools(pc.is_null(rows["held_back"]))
    if limits.refresh_share is None:
        return at["discover_before"] + at["refresh_before"] + np.cumsum(eligible) > most
    quotas = pool_quotas([at["discover_in_all"], at["refresh_in_all"]], most, limits.refresh_share)
    surplus = np.zeros(rows.num_rows, dtype=np.bool_)
    pool = pools(rows)
    for number, name in ((DISCOVER, "discover"), (REFRESH, "refresh")):
        of_pool = pool == number
        surplus |= of_pool & (at[f"{name}_before"] + np.cumsum(eligible & of_pool) > quotas[number])
    return surplus
