"""The probability that a page has changed since it was fetched.

Changes are a Poisson process. A page that was captured n + 1 times, on average every I days, and differed from the
capture before in X of the n later captures, changes

    rate = -ln((n - X + 0.5) / (n + 0.5)) / I

times a day: the estimator of Cho and Garcia-Molina, "Estimating frequency of change" (2003), section 5. The halves
remove most of the bias of -ln((n - X) / n), and keep the rate finite if all captures differ. A page with one capture
has the rate of all pages together, or `PRIOR_RATE` if no page has two. After t days a page has changed with probability
1 - exp(-rate * t).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.columnar.arrays import (
    Float64s,
    Int64s,
    bools,
    column_array,
    group_starts,
    group_sums,
    int64s,
    is_new_row,
    members,
    positions,
)
from semrank.transforms.columnar.idfilter import IdFilter
from semrank.transforms.columnar.ids import text_ids

COLUMNS = ("url", "fetched_at", "content_digest")
"""Columns of the pages and history tables that are read."""

PRIOR_RATE = 1 / 30
"""Changes a day if nothing is known: once a month, like most pages in studies of the web."""

DAY = 86_400_000_000
"""Microseconds of a day."""

CAPTURE_SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("url_id", "time", "digest")])
CHANGE_SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("url_id", "intervals", "changes", "span")])
"""Of a URL's captures: number of consecutive pairs, number of those that differ, microseconds from first to last."""
POOLED_SCHEMA = pa.schema([pa.field("rate", pa.float64())])
NOW_SCHEMA = pa.schema([pa.field("time", pa.int64())])


def captures(table: pa.Table, wanted: IdFilter) -> pa.Table:
    """Captures of the wanted URLs that have a time and a digest, a table of `CAPTURE_SCHEMA`."""
    known = table.filter(pc.and_(pc.is_valid(table["fetched_at"]), pc.is_valid(table["content_digest"])))
    ids = text_ids(known["url"])
    kept = np.flatnonzero(wanted.may_contain(ids))
    rows = known.take(pa.array(kept))
    times = int64s(rows["fetched_at"].cast(pa.int64()))
    return pa.table([ids[kept], times, text_ids(rows["content_digest"])], schema=CAPTURE_SCHEMA)


def newest_capture(table: pa.Table) -> pa.Table:
    """The newest time of a table, at most one row of `NOW_SCHEMA`."""
    newest = pc.max(table["fetched_at"].cast(pa.int64())).as_py()
    return pa.table([[] if newest is None else [newest]], schema=NOW_SCHEMA)


def moment(newest: pa.Table | None, *, as_of: int | None) -> pa.Table:
    """The given moment, or the time of the newest capture; one row of `NOW_SCHEMA`, none if no capture has a time."""
    if as_of is not None:
        return pa.table([[as_of]], schema=NOW_SCHEMA)
    if newest is None:
        return NOW_SCHEMA.empty_table()
    return pa.table([[pc.max(newest["time"]).as_py()]], schema=NOW_SCHEMA)


def change_counts(rows: pa.Table, urls: Int64s) -> pa.Table:
    """Changes of URLs, a table of `CHANGE_SCHEMA` ascending by URL.

    Args:
        rows: all captures of the URLs that occur in it, a table of `CAPTURE_SCHEMA`. Of several at the same time the
            one with the lowest digest id counts.
        urls: sorted ids of the wanted URLs; the filter passes a few others.
    """
    rows = rows.filter(pa.array(members(urls, int64s(rows["url_id"]))))
    url, time, digest = (int64s(rows[name]) for name in CAPTURE_SCHEMA.names)
    order = np.lexsort((digest, time, url))
    url, time, digest = url[order], time[order], digest[order]
    first = is_new_row(url, time)
    url, time, digest = url[first], time[first], digest[first]
    starts = group_starts(url)
    stops = np.append(starts, len(url))[1:]
    differs = np.zeros(len(url), dtype=np.int64)
    differs[1:] = (url[1:] == url[:-1]) & (digest[1:] != digest[:-1])
    changes = group_sums(differs, starts)
    return pa.table([url[starts], stops - starts - 1, changes, time[stops - 1] - time[starts]], schema=CHANGE_SCHEMA)


def change_rate(intervals: Int64s, changes: Int64s, span: Int64s) -> Float64s:
    """Changes a day, NaN for less than two captures, float64[n]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = -np.log((intervals - changes + 0.5) / (intervals + 0.5)) / (span / DAY / intervals)
    return np.where(intervals > 0, rate, np.nan)


def pooled_counts(counts: pa.Table | None) -> pa.Table:
    """The rate of all pages together, one row of `POOLED_SCHEMA`."""
    rate = PRIOR_RATE
    if counts is not None and counts.num_rows:
        intervals, changes, span = (sum(counts[name].to_pylist()) for name in CHANGE_SCHEMA.names[1:])
        if intervals:
            rate = float(change_rate(np.array([intervals]), np.array([changes]), np.array([span]))[0])
    return pa.table([[rate]], schema=POOLED_SCHEMA)


def with_change_probability(
    rows: pa.Table, counts: pa.Table | None, pooled: pa.Table | None, now: pa.Table | None
) -> pa.Table:
    """Rows with `change_probability`: null if the page was not fetched, 1 if the time of the fetch is unknown.

    Args:
        rows: rows of a partition, a table of `RANKED_SCHEMA`.
        counts: results of `change_counts` of the same partition.
        pooled: result of `pooled_counts`.
        now: result of `moment`.
    """
    rate = np.full(rows.num_rows, PRIOR_RATE if pooled is None else pooled["rate"][0].as_py())
    if counts is not None and counts.num_rows:
        counts = counts.sort_by("url_id").combine_chunks()
        place = positions(int64s(counts["url_id"]), int64s(rows["url_id"]))
        own = change_rate(*(int64s(counts[name]) for name in CHANGE_SCHEMA.names[1:]))[np.maximum(place, 0)]
        rate = np.where((place >= 0) & np.isfinite(own), own, rate)
    fetched = column_array(rows["last_fetched_at"])
    known = bools(pc.is_valid(fetched))
    times = int64s(pc.fill_null(fetched.cast(pa.int64()), 0))
    present = int64s(now["time"])[0] if now is not None and now.num_rows else 0
    days = np.maximum(present - times, 0) / DAY
    # A difference: the negative of nothing would be -0.0.
    changed = np.where(known, 0.0 - np.expm1(-rate * days), 1.0)
    never = ~bools(rows["fetched"])
    column = pa.array(changed, mask=never)
    return rows.set_column(rows.schema.get_field_index("change_probability"), "change_probability", column)
