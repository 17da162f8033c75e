"""The frontier's total order and budgets.

URLs are ordered by score, highest first, ties by canonical URL. To sort more rows than a worker holds, the order is cut
into ranges at rows that are drawn by the hash of their URL, so the cuts depend on the set of rows alone, not on how
they were partitioned. A range is sorted on one worker; its first rank is the number of rows in the ranges before it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.tables import FRONTIER, RANKED_SCHEMA, conform
from transforms.columnar.arrays import Int64s, column_array, group_starts, int64s
from transforms.columnar.ids import mix_bits, text_ids

RANGE_BYTES = 32 << 20
"""Bytes of rows in a range, which is a file of the frontier."""

ROW_BYTES, MATCH_BYTES, REASON_BYTES = 100, 32, 80
"""Bytes of a row without its texts, of one of its matches and of one of its reasons, about."""

SAMPLE_ROWS = 4096
"""Rows drawn to cut the order; with so many the largest of 64 ranges is within a third of the mean."""

SAMPLE_SCHEMA = pa.schema([pa.field("draw", pa.int64()), pa.field("score", pa.float64()), pa.field("url", pa.string())])
SIZE_SCHEMA = pa.schema([pa.field("rows", pa.int64()), pa.field("bytes", pa.int64())])
CUT_SCHEMA = pa.schema([pa.field("score", pa.float64()), pa.field("url", pa.string())])
COUNT_SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("range", "rows", "eligible")])
OFFSET_SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("range", "rows_before", "eligible_before")])
BUDGET_SCHEMA = pa.schema(
    [
        pa.field("host_id", pa.int64()),
        pa.field("url_id", pa.int64()),
        pa.field("score", pa.float64()),
        pa.field("url", pa.string()),
    ]
)


def rank_order(score: npt.NDArray[np.float64], url: pa.Array | pa.ChunkedArray) -> Int64s:
    """Row numbers in rank order: highest score first, ties by URL ascending; int64[n]."""
    keys = pa.table({"score": score, "url": url})
    return int64s(pc.sort_indices(keys, sort_keys=[("score", "descending"), ("url", "ascending")]).cast(pa.int64()))


def frontier_size(rows: pa.Table) -> pa.Table:
    """Rows and bytes of a part, a table of `SIZE_SCHEMA`.

    The bytes are counted from the rows' content, so that those of all parts add up to the same however rows are parted.
    """
    texts = sum(int(pc.sum(pc.binary_length(rows[name])).as_py() or 0) for name in ("url", "host"))
    lists = sum(
        size * int(pc.sum(pc.list_value_length(rows[name])).as_py() or 0)
        for name, size in (("matches", MATCH_BYTES), ("reasons", REASON_BYTES))
    )
    return pa.table([[rows.num_rows], [texts + ROW_BYTES * rows.num_rows + lists]], schema=SIZE_SCHEMA)


def order_sample(rows: pa.Table) -> pa.Table:
    """The rows with the `SAMPLE_ROWS` lowest draws, a table of `SAMPLE_SCHEMA`; samples of parts merge by this too."""
    if "draw" in rows.column_names:
        sample = rows
    else:
        draw = (mix_bits(int64s(rows["url_id"]).view(np.uint64)) >> np.uint64(1)).astype(np.int64)
        sample = pa.table([pa.array(draw), rows["score"], rows["url"]], schema=SAMPLE_SCHEMA)
    if sample.num_rows > SAMPLE_ROWS:
        lowest = np.argpartition(int64s(sample["draw"]), SAMPLE_ROWS)[:SAMPLE_ROWS]
        sample = sample.take(pa.array(lowest))
    return sample


def range_cuts(sample: pa.Table | None, sizes: pa.Table | None) -> pa.Table:
    """Where to cut the order, a table of `CUT_SCHEMA` in rank order; no rows where one range does.

    Args:
        sample: samples of all parts, or None where there are no rows.
        sizes: rows and bytes of all parts.
    """
    if sample is None or sizes is None:
        return CUT_SCHEMA.empty_table()
    ranges = -(-int(pc.sum(sizes["bytes"]).as_py()) // RANGE_BYTES)
    sample = order_sample(sample)
    order = rank_order(sample["score"].to_numpy(), sample["url"])
    places = np.arange(1, ranges) * len(order) // ranges
    places = np.unique(places[places > 0])
    return sample.select(["score", "url"]).take(pa.array(order[places])).cast(CUT_SCHEMA)


def range_numbers(score: npt.NDArray[np.float64], url: pa.Array | pa.ChunkedArray, cuts: pa.Table | None) -> Int64s:
    """The range of each row: how many cuts stand at or before it in rank order; int64[n]."""
    if cuts is None:
        return np.zeros(len(score), dtype=np.int64)
    descending = -cuts["score"].to_numpy()
    low = np.searchsorted(descending, -score, side="left")
    high = np.searchsorted(descending, -score, side="right")
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
    return rows.append_column("range", pa.array(range_numbers(rows["score"].to_numpy(), rows["url"], cuts)))


def eligible_rows(rows: pa.Table, threshold: float) -> npt.NDArray[np.bool_]:
    """Whether each row may be selected: its score is above the threshold and its host's budget has room."""
    above = rows["score"].to_numpy() > threshold
    if "within_budget" in rows.column_names:
        above = above & np.asarray(column_array(rows["within_budget"]).to_numpy(zero_copy_only=False), dtype=np.bool_)
    return np.asarray(above, dtype=np.bool_)


def count_ranges(rows: pa.Table, threshold: float) -> pa.Table:
    """Rows and eligible rows of each range, a table of `COUNT_SCHEMA`."""
    ranges = int64s(rows["range"])
    numbers, inverse = np.unique(ranges, return_inverse=True)
    eligible = np.bincount(inverse, weights=eligible_rows(rows, threshold), minlength=len(numbers))
    counts = np.bincount(inverse, minlength=len(numbers))
    return pa.table([numbers, counts.astype(np.int64), eligible.astype(np.int64)], schema=COUNT_SCHEMA)


def range_offsets(counts: pa.Table | None) -> pa.Table:
    """What stands before each range, a table of `OFFSET_SCHEMA`."""
    if counts is None:
        return OFFSET_SCHEMA.empty_table()
    numbers, inverse = np.unique(int64s(counts["range"]), return_inverse=True)
    totals = [np.zeros(len(numbers), dtype=np.int64) for _ in range(2)]
    for total, name in zip(totals, ("rows", "eligible"), strict=True):
        np.add.at(total, inverse, int64s(counts[name]))
    before = [np.cumsum(total) - total for total in totals]
    return pa.table([numbers, *before], schema=OFFSET_SCHEMA)


def ranked_rows(
    partition: int, rows: pa.Table, offsets: pa.Table | None, *, threshold: float, max_urls: int | None
) -> pa.Table:
    """A range's rows in rank order with rank and selection, a table of `FRONTIER`.

    Args:
        partition: number of the range.
        rows: all rows of the range.
        offsets: result of `range_offsets`.
        threshold: gamma; only a score above it is selected.
        max_urls: most URLs that a round selects, best first, or None.
    """
    if offsets is None:
        raise ValueError(f"range {partition} has {rows.num_rows} rows but no offsets")
    place = int(np.searchsorted(int64s(offsets["range"]), partition))
    rows = rows.take(pa.array(rank_order(rows["score"].to_numpy(), rows["url"])))
    ranks = offsets["rows_before"][place].as_py() + 1 + np.arange(rows.num_rows, dtype=np.int64)
    selected = eligible_rows(rows, threshold)
    if max_urls is not None:
        selected &= offsets["eligible_before"][place].as_py() + np.cumsum(selected) <= max_urls
    ranked = rows.append_column("rank", pa.array(ranks)).append_column("selected", pa.array(selected))
    return conform(ranked, FRONTIER)


def host_budget_rows(rows: pa.Table, threshold: float, max_per_host: int) -> pa.Table:
    """A part's best `max_per_host` rows of each host, a table of `BUDGET_SCHEMA`; exchange it by `host_id`.

    No other row of the part can be among the best of its host, so a host with many URLs sends few.
    """
    above = rows.filter(pa.array(eligible_rows(rows, threshold)))
    budget = pa.table([text_ids(above["host"]), above["url_id"], above["score"], above["url"]], schema=BUDGET_SCHEMA)
    return best_of_hosts(budget, max_per_host)


def best_of_hosts(rows: pa.Table, max_per_host: int) -> pa.Table:
    """The best `max_per_host` rows of each host, of a table of `BUDGET_SCHEMA`."""
    rows = rows.take(pa.array(rank_order(rows["score"].to_numpy(), rows["url"])))
    host = int64s(rows["host_id"])
    order = np.argsort(host, kind="stable")
    starts = group_starts(host[order])
    lengths = np.diff(np.append(starts, len(order)))
    place = np.arange(len(order)) - np.repeat(starts, lengths)
    return rows.take(pa.array(order[place < max_per_host]))


def mark_budget(rows: pa.Table | None, allowed: pa.Table | None) -> pa.Table:
    """Rows of `RANKED_SCHEMA` with a column `within_budget`; rows and allowed URLs of one partition by `url_id`."""
    if rows is None:
        return RANKED_SCHEMA.append(pa.field("within_budget", pa.bool_())).empty_table()
    inside = np.zeros(rows.num_rows, dtype=np.bool_)
    if allowed is not None:
        inside = np.isin(int64s(rows["url_id"]), int64s(allowed["url_id"]))
    return rows.append_column("within_budget", pa.array(inside))
