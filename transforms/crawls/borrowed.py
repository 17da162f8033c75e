"""Content that is stored at another URL: revisits whose payload is in an earlier record of another URL.

Such a visit is a row of `PAGES` without content and a row of `BORROWED`, which refers to the content by its digest, or
by the URL and time of the record that has it (WARC 1.1, 5.6 to 5.8 and 6.7). Three steps resolve the reference.
`wanted_content`, the content that is requested, is broadcast. Each partition of URLs then returns the content that it
has (`lent_content`) and the pages that still need some (`open_requests`). Both are exchanged by the requested content
and joined (`borrowed_content`), and `with_borrowed` adds the content to the pages. Without such visits nothing is
exchanged. Results depend on the rows only, not on partitions or their order.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.schemas.tables import PAGES
from semrank.transforms.columnar.arrays import (
    column_array,
    group_starts,
    int64s,
    is_new_row,
    places_in_groups,
    positions,
    sort_rows,
)
from semrank.transforms.columnar.ids import text_ids

CONTENT = ("title", "text", "language")
"""Columns of `PAGES` that are borrowed; links are not, since relative references depend on the URL."""

WANTED_SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("key", "request", "first", "last")])
"""A requested content: its key, the key of its requests, and the smallest and largest id of the requesting URLs."""

_PAGE_CONTENT = [PAGES.schema.field(name) for name in CONTENT]
_KEYS = [pa.field("request", pa.int64()), pa.field("place", pa.int64())]
_ASKING = [pa.field("url", pa.string()), pa.field("rank", pa.int64())]
REQUEST_SCHEMA = pa.schema([*_ASKING, *_KEYS])
"""The requests of a page, the best first: rank 0, then 1, ..."""

LENT_SCHEMA = pa.schema([pa.field("request", pa.int64()), pa.field("key", pa.int64()), *_PAGE_CONTENT])
BORROWED_CONTENT_SCHEMA = pa.schema([*_ASKING, pa.field("url_id", pa.int64()), *_PAGE_CONTENT])

REQUESTS_AT_ONCE = 1024
"""Requests that are answered together: very many URLs may request the same content."""

_VISIT = ["url", "fetched_at", "content_digest"]
_FIRST_ERROR = 400
OLDEST = -(1 << 62)
"""The time of captures without one."""


def _places(urls: pa.ChunkedArray, times: pa.ChunkedArray) -> pa.Array:
    """Keys of captures by URL and time, int64[n]; null if either is unknown."""
    return _keys(pc.binary_join_element_wise(urls, times.cast(pa.int64()).cast(pa.string()), "\x1f"))


def _keys(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    array = column_array(texts)
    return pa.array(text_ids(pc.fill_null(array, "")), mask=np.asarray(array.is_null()))


def keyed_requests(borrowed: pa.Table) -> pa.Table:
    """Rows of `BORROWED` with the id of their URL and the keys of the requested content.

    `place` is the key by URL and time, null if these are unknown; `request` is the key by digest, else `place`.
    """
    place = _places(borrowed["original_url"], borrowed["original_at"])
    request = pc.coalesce(_keys(borrowed["content_digest"]), place)
    keyed = borrowed.append_column("url_id", pa.array(text_ids(borrowed["url"])))
    return keyed.append_column("request", request).append_column("place", place)


def wanted_rows(requests: pa.Table) -> pa.Table:
    """The content that keyed requests refer to, a table of `WANTED_SCHEMA`."""
    parts = [
        pa.table([requests[key], requests["request"], requests["url_id"], requests["url_id"]], schema=WANTED_SCHEMA)
        for key in ("request", "place")
    ]
    rows = pa.concat_tables(parts)
    return wanted_content(rows.filter(rows["key"].is_valid()))


def wanted_content(wanted: pa.Table | None) -> pa.Table:
    """All requested content, each once; a table of `WANTED_SCHEMA`."""
    if wanted is None:
        return WANTED_SCHEMA.empty_table()
    merged = wanted.group_by(["key", "request"]).aggregate([("first", "min"), ("last", "max")])
    return sort_rows(merged.rename_columns(WANTED_SCHEMA.names).cast(WANTED_SCHEMA))


def lent_content(captures: pa.Table, wanted: pa.Table | None) -> pa.Table:
    """The requested content of captures, a table of `LENT_SCHEMA`.

    Args:
        captures: captures of a partition's URLs (`PAGES`).
        wanted: all requested content (`WANTED_SCHEMA`). Content that is requested by its own URL only, as in most logs
            of recrawls, is not lent: its page has it anyway.
    """
    if wanted is None or not wanted.num_rows:
        return LENT_SCHEMA.empty_table()
    filled = captures.filter(pc.and_(has_content(captures), is_alive(captures)))
    owner = text_ids(filled["url"])
    numbers = pa.array(np.arange(filled.num_rows))
    keys = (_keys(filled["content_digest"]), _places(filled["url"], filled["fetched_at"]))
    offered = pa.concat_tables([pa.table({"row": numbers, "key": key}) for key in keys])
    offered = offered.filter(pc.is_in(offered["key"], value_set=column_array(wanted["key"])))
    found = offered.filter(offered["key"].is_valid()).join(wanted, "key", join_type="inner")
    row = int64s(found["row"])
    only_own = (int64s(found["first"]) == owner[row]) & (int64s(found["last"]) == owner[row])
    found = found.filter(pa.array(~only_own))
    content = filled.select(CONTENT).take(found["row"])
    lent = pa.table([found["request"], found["key"], *content.columns], schema=LENT_SCHEMA)
    return _best(lent, "request", "key")


def has_content(pages: pa.Table) -> pa.ChunkedArray:
    """Whether rows of `PAGES` have content, bool[n]."""
    return pc.or_(pages["text"].is_valid(), pages["title"].is_valid())


def is_alive(pages: pa.Table) -> pa.ChunkedArray:
    """Whether rows of `PAGES` are of existing pages, bool[n]."""
    return pc.fill_null(pc.less(pages["status"], _FIRST_ERROR), True)


def _best(lent: pa.Table, *keys: str) -> pa.Table:
    """One row for each key: one with a text if there is one, of these the last in order."""
    ordered = pa.table({name: lent[name] for name in keys})
    for name in ("text", "title", "language"):
        ordered = ordered.append_column(f"has_{name}", lent[name].is_valid().cast(pa.int8()))
        ordered = ordered.append_column(name, pc.fill_null(lent[name], ""))
    contents = [name for name in ordered.column_names if name not in keys]
    directions = [(name, "ascending") for name in keys] + [(name, "descending") for name in contents]
    lent = lent.take(pc.sort_indices(ordered, sort_keys=directions)).combine_chunks()
    return lent.filter(pa.array(is_new_row(*(int64s(lent[name]) for name in keys))))


def open_requests(
    requests: pa.Table | None, newest: pa.Table, shown: pa.Table, history: pa.Table | None = None
) -> pa.Table:
    """The requests of pages that need content of another URL (`REQUEST_SCHEMA`), sorted by URL and rank.

    A page requests the content of its visits of this kind, the newest first, unless the capture with its content, or
    another visit that found the same content, is newer. A page that is gone needs none.

    Args:
        requests: keyed requests of a partition's URLs.
        newest: the newest capture of each URL (`PAGES`).
        shown: the capture with each page's content, in the same order (`PAGES`).
        history: visits that found what an earlier one had found at the same URL (`HISTORY`).
    """
    if requests is None:
        return REQUEST_SCHEMA.empty_table()
    urls = column_array(newest["url"])
    place = pc.index_in(requests["url"], value_set=urls)
    pages, captures = newest.take(place), shown.take(place)
    visits = pa.concat_tables([part.select(_VISIT) for part in (requests, history) if part is not None])
    page = pc.index_in(visits["url"], value_set=urls)
    is_same = pc.fill_null(pc.equal(visits["content_digest"], shown["content_digest"].take(page)), False)
    confirmed = known_times(shown["fetched_at"]).to_numpy().copy()
    np.maximum.at(confirmed, page.filter(is_same).to_numpy(), known_times(visits["fetched_at"]).filter(is_same))
    is_newer = pc.greater(known_times(requests["fetched_at"]), pa.array(confirmed).take(place))
    found_other = pc.and_(is_newer, pc.invert(is_same.slice(0, requests.num_rows)))
    needed = requests.filter(pc.and_(is_alive(pages), pc.or_(pc.invert(has_content(captures)), found_other)))
    keys = pa.table(
        {
            "url": needed["url"],
            "time": known_times(needed["fetched_at"]),
            "has_place": needed["place"].is_valid().cast(pa.int8()),
            "request": needed["request"],
            "place": pc.fill_null(needed["place"], 0),
        }
    )
    keys = keys.group_by(["url", "has_place", "request", "place"]).aggregate([("time", "max")])
    names = ["time_max", "has_place", "request", "place"]
    keys = keys.sort_by([("url", "ascending"), *((name, "descending") for name in names)])
    starts = group_starts(int64s(column_array(keys["url"]).dictionary_encode().indices))
    rank = places_in_groups(starts, keys.num_rows)
    place = pc.if_else(pc.equal(keys["has_place"], 1), keys["place"], None)
    return pa.table([keys["url"], rank, keys["request"], place], schema=REQUEST_SCHEMA).combine_chunks()


def known_times(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times in microseconds since 1970, int64[n]; unknown ones are older than all others."""
    return pc.fill_null(times.cast(pa.int64()), OLDEST)


def borrowed_content(requests: pa.Table | None, lent: pa.Table | None) -> Iterator[pa.Table]:
    """The content for requests (`BORROWED_CONTENT_SCHEMA`): by their digest, else by URL and time.

    Args:
        requests: open requests (`REQUEST_SCHEMA`) of a partition of requests.
        lent: content of the same requests (`LENT_SCHEMA`).
    """
    if requests is None or lent is None:
        return
    content = _best(lent, "key")
    known = int64s(content["key"])
    requests = sort_rows(requests, "url", "rank")
    row = positions(known, int64s(requests["request"]))
    at_place = positions(known, int64s(pc.fill_null(requests["place"], 0)))
    row = np.where((row < 0) & np.asarray(column_array(requests["place"]).is_valid()), at_place, row)
    requests, row = requests.filter(pa.array(row >= 0)), row[row >= 0]
    for start in range(0, len(row), REQUESTS_AT_ONCE):
        asking = requests.slice(start, REQUESTS_AT_ONCE)
        lent_rows = content.select(CONTENT).take(pa.array(row[start : start + REQUESTS_AT_ONCE]))
        keys = [asking["url"], asking["rank"], pa.array(text_ids(asking["url"]))]
        yield pa.table([*keys, *lent_rows.columns], schema=BORROWED_CONTENT_SCHEMA)


def best_content(content: pa.Table) -> pa.Table:
    """The content with the smallest rank for each page of a partition (`BORROWED_CONTENT_SCHEMA`)."""
    ordered = content.sort_by([("url", "ascending"), ("rank", "ascending")]).combine_chunks()
    number = int64s(column_array(ordered["url"]).dictionary_encode().indices)
    return ordered.take(pa.array(group_starts(number)))


def with_borrowed(pages: pa.Table, borrowed: pa.Table | None) -> pa.Table:
    """Pages with the content that they borrow; it replaces content of older captures of the page.

    Args:
        pages: pages of a partition (`PAGES`).
        borrowed: content for some of them (`BORROWED_CONTENT_SCHEMA`), or None.
    """
    if borrowed is None:
        return pages
    content = borrowed.take(pc.index_in(pages["url"], value_set=column_array(borrowed["url"])))
    is_whole = content["text"].is_valid()
    for name in CONTENT:
        position = pages.schema.get_field_index(name)
        column = pc.if_else(is_whole, content[name], pc.coalesce(content[name], pages[name]))
        if name != "language":
            column = pc.if_else(pc.equal(column, ""), None, column)
        pages = pages.set_column(position, pages.schema.field(position), column)
    return pages
