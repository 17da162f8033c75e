"""Merges the rows of all sources into a snapshot: one row per page, links and clicks at the pages' current addresses.

The newest record of a canonical URL is its page. Links of older records are left out, unless the newest one has no
content; the digests of older content are kept as history. Links that do not come from a capture of a page, such as
those of a table, always count. Redirects and refreshes are aliases: a link or click to the old address counts for the
new one. The rows and their order depend on the input rows only, not on files, partitions or their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.schemas.tables import ALIASES, CLICKS, HISTORY, LINKS, PAGES, REJECTS
from semrank.transforms.columnar.arrays import (
    MAIN,
    Bools,
    Int64s,
    bools,
    column_array,
    distinct_rows,
    group_starts,
    int64s,
    pointers,
    positions,
    sort_rows,
)
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.crawls import borrowed
from semrank.transforms.crawls.borrowed import OLDEST, known_times
from semrank.transforms.crawls.pages import META_REFRESH, REDIRECT, page_states

MAX_HOPS = 20
"""Maximum number of aliases that are followed from an address, as in browsers (Fetch standard, HTTP-redirect fetch)."""

MOVE_SCHEMA = pa.schema(
    [pa.field("url_id", pa.int64()), pa.field("url", pa.string()), pa.field("target_url", pa.string())]
)
"""An address with its id, and its final target."""

BALANCE_SCHEMA = pa.schema(
    [
        pa.field("path", pa.string()),
        pa.field("format", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("name", pa.string()),
        pa.field("count", pa.int64()),
    ]
)
"""Counts of the records of a file; kind is `records`, `used`, `rejected`, `ignored`, `rows` or `counters`.

Rows without a file count rows of a table: how many are `outdated`, how many addresses `moved`, and how many pages
`borrowed` their content.
"""

BALANCE = "balance"
"""Tag of outputs that are tables of `BALANCE_SCHEMA`."""

LENT, REQUESTS = "lent", "requests"
"""Tags of outputs that are tables of `borrowed.LENT_SCHEMA` and `borrowed.REQUEST_SCHEMA`."""

_CONTENT = ("title", "text", "keywords", "language")
_FIRST_ERROR = 400


def with_id(table: pa.Table, column: str = "url", name: str = "url_id") -> pa.Table:
    """A table with the ids of a column's strings in a further column."""
    return table.append_column(name, pa.array(text_ids(table[column])))


class Newest(NamedTuple):
    """The rows of several URLs merged to one per URL.

    Attributes:
        pages: the merged page of each URL, sorted by URL (`PAGES`).
        history: the content digests of other captures, sorted by URL, time and digest (`HISTORY`).
        newest: the newest capture of each page alone (`PAGES`).
        shown: the capture that has the page's content (`PAGES`), usually the newest.
    """

    pages: pa.Table
    history: pa.Table
    newest: pa.Table
    shown: pa.Table


def newest_pages(pages: pa.Table) -> Newest:
    """The newest row of each URL, and the content digests of the others.

    Rows are compared by time, an unknown time being the oldest; then by digest, title, text and status, so that the
    choice does not depend on the order of rows. Rows of the same fetch complete each other. If the newest row has no
    text, as in indexes and crawlers' lists, then title, text, keywords and language are those of the newest row that
    has them, unless the page is gone. An empty text counts as text: the page has none or asks not to be indexed.

    Args:
        pages: all rows of the URLs that occur in it (`PAGES`).
    """
    ordered = _ordered(pages)
    starts = group_starts(_runs(column_array(ordered["url"])))
    newest = np.zeros(ordered.num_rows, dtype=np.bool_)
    newest[starts] = True
    url = np.cumsum(newest) - 1
    same_fetch = _same_times(ordered["fetched_at"], starts[url])
    earlier = ordered.filter(pa.array(~newest & ~same_fetch)).select(HISTORY.schema.names)
    own = _filled(ordered, starts, np.where(same_fetch, url, -1))
    alive = bools(pc.fill_null(pc.less(ordered["status"], _FIRST_ERROR), True))
    silent = bools(pc.is_null(own["text"])) & alive[starts]
    filling = np.where(alive & silent[url], url, -1)
    merged = own
    for name in _CONTENT:
        filled = _filled(ordered.select([name]), starts, filling)[name]
        position = merged.schema.get_field_index(name)
        merged = merged.set_column(position, merged.schema.field(position), pc.coalesce(own[name], filled))
    has_content = bools(borrowed.has_content(ordered))
    shown = ordered.take(pa.array(_first_rows(np.where(has_content, filling, -1), starts)))
    return Newest(_without_empty(merged), _sorted_history(earlier), own, shown)


def _ordered(pages: pa.Table) -> pa.Table:
    """Rows by URL, those of a URL in the order of preference."""
    keys = pages.append_column("_time", known_times(pages["fetched_at"]))
    for name in ("text", "title"):
        keys = keys.append_column(f"_has_{name}", pages[name].is_valid().cast(pa.int8()))
    for name in ("content_digest", "title", "text", "language"):
        keys = keys.set_column(keys.schema.get_field_index(name), name, pc.fill_null(keys[name], ""))
    keys = keys.set_column(keys.schema.get_field_index("status"), "status", pc.fill_null(keys["status"], 0))
    preferred = ("_time", "content_digest", "title", "text", "status", "_has_text", "_has_title", "language")
    order = pc.sort_indices(keys, sort_keys=[("url", "ascending"), *((name, "descending") for name in preferred)])
    return pages.take(order).combine_chunks()


def _same_times(times: pa.ChunkedArray, first: Int64s) -> Bools:
    """Whether each row's time is known and equals that of the row at `first`."""
    known = known_times(times).to_numpy()
    return np.asarray((known == known[first]) & (known != OLDEST), dtype=np.bool_)


def _filled(ordered: pa.Table, starts: Int64s, fetch: Int64s) -> pa.Table:
    """The rows at `starts`, their nulls filled from further rows of the same fetch.

    Text and metadata of a page are separate records in crawl archives, each with some of its columns.

    Args:
        ordered: rows in the order of preference.
        starts: the row of each page.
        fetch: page whose fetch each row is about, or -1.
    """
    columns: list[pa.ChunkedArray] = []
    for column in ordered.columns:
        array = column_array(column)
        valid = bools(pc.is_valid(array))
        columns.append(pa.chunked_array([array.take(pa.array(_first_rows(np.where(valid, fetch, -1), starts)))]))
    return pa.table(columns, schema=ordered.schema)


def _first_rows(page: Int64s, starts: Int64s) -> Int64s:
    """The first row of each page, the one at `starts` for pages without any.

    Args:
        page: the page of each row, or -1.
        starts: a row of each page.
    """
    rows = np.flatnonzero(page >= 0)
    pages, first = np.unique(page[rows], return_index=True)
    place = starts.copy()
    place[pages] = rows[first]
    return place


def _without_empty(pages: pa.Table) -> pa.Table:
    """Pages with null in place of a title or text that is empty."""
    for name in ("title", "text"):
        position = pages.schema.get_field_index(name)
        column = pc.if_else(pc.equal(pages[name], ""), None, pages[name])
        pages = pages.set_column(position, pages.schema.field(position), column)
    return pages


def _runs(values: pa.Array) -> Int64s:
    """Numbers of the runs of equal values in a sorted array."""
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    return pointers(bools(pc.not_equal(values.slice(1), values.slice(0, len(values) - 1))))


def found_again(pages: pa.Table, history: pa.Table) -> pa.Table:
    """Captures whose content the newest visit of their URL found again after a later capture had found another or none.

    Args:
        pages: all rows of the URLs that occur in it (`PAGES`).
        history: visits with the digest of the content (`HISTORY`).

    Returns:
        Rows of `PAGES` with the time of that visit.
    """
    visits = history.filter(pc.and_(history["content_digest"].is_valid(), history["fetched_at"].is_valid()))
    has_content, is_alive = borrowed.has_content(pages), borrowed.is_alive(pages)
    captures = pages.filter(pc.and_(has_content, is_alive))
    newest = pages.filter(pc.or_(has_content, pc.invert(is_alive))).group_by("url").aggregate([("fetched_at", "max")])
    last = visits.group_by("url").aggregate([("fetched_at", "max")]).rename_columns(["url", "visited_at"])
    last = last.join(newest, "url", join_type="inner")
    last = last.filter(pc.greater(known_times(last["visited_at"]), known_times(last["fetched_at_max"])))
    visits = visits.rename_columns({"fetched_at": "visited_at"}).join(last, ["url", "visited_at"], join_type="inner")
    rows = captures.select(["url", "content_digest"]).append_column("row", pa.array(np.arange(captures.num_rows)))
    rows = rows.append_column("captured_at", captures["fetched_at"]).join(
        visits, ["url", "content_digest"], join_type="inner"
    )
    current = rows.filter(pc.equal(rows["captured_at"], rows["fetched_at_max"]))["url"]
    rows = rows.filter(pc.invert(pc.is_in(rows["url"], value_set=column_array(current))))
    position = PAGES.schema.get_field_index("fetched_at")
    again = captures.take(rows["row"]).cast(PAGES.schema)
    return again.set_column(position, PAGES.schema.field(position), rows["visited_at"])


def _sorted_history(rows: pa.Table) -> pa.Table:
    return sort_rows(distinct_rows(rows.cast(HISTORY.schema)), "url", "fetched_at", "content_digest")


def page_partition(
    pages: pa.Table | None,
    aliases: pa.Table | None,
    history: pa.Table | None,
    captured: pa.Table | None,
    requests: pa.Table | None = None,
    wanted: pa.Table | None = None,
) -> Iterator[tuple[str, pa.Table]]:
    """The pages, aliases and history of one partition of URLs, and the links of its pages' newest captures.

    Args:
        pages: rows of `PAGES`; None if there are no rows, like all inputs.
        aliases: rows of `ALIASES`.
        history: rows of `HISTORY`.
        captured: links with their captures (`LINKS` and `CAPTURES`).
        requests: keyed requests of these pages for the content of other URLs.
        wanted: the content that pages of all partitions request (`borrowed.WANTED_SCHEMA`).

    Yields:
        (table name, table), all but the links sorted by URL. Aliases that are older than the page at their address are
        left out, and so are links of older captures, which a table `balance` counts. `requests` are the unanswered
        ones, and `lent` is the content of these pages that others request.
    """
    found = Newest(PAGES.empty(), HISTORY.empty(), PAGES.empty(), PAGES.empty())
    past = [] if history is None else [history.select(HISTORY.schema.names).cast(HISTORY.schema)]
    if pages is not None:
        rows = pages.select(PAGES.schema.names).cast(PAGES.schema)
        again = [] if history is None else [found_again(rows, history.select(HISTORY.schema.names))]
        found = newest_pages(pa.concat_tables([rows, *again]))
        past.append(found.history)
        captures = [rows, found.newest.cast(PAGES.schema)]
        yield LENT, borrowed.lent_content(pa.concat_tables(captures), wanted)
    yield PAGES.name, found.pages
    yield REQUESTS, borrowed.open_requests(requests, found.newest, found.shown, history)
    if captured is not None:
        links = current_links(captured, found.newest, found.shown)
        yield LINKS.name, links
        yield BALANCE, _event("outdated", LINKS.name, captured.num_rows - links.num_rows)
    if past:
        yield HISTORY.name, _sorted_history(pa.concat_tables(past))
    if aliases is not None:
        yield ALIASES.name, _current_aliases(aliases.select(ALIASES.schema.names).cast(ALIASES.schema), found.pages)


def current_links(captured: pa.Table, newest: pa.Table, shown: pa.Table) -> pa.Table:
    """The links (`LINKS`) of the captures that match their pages.

    A capture matches if it has the time or the content digest of the page's newest capture: a newer record of the same
    content, even one without links, keeps the older one's links. Captures whose time is unknown match a page without a
    time that is equal otherwise. If no link is from the newest capture, those of the capture with the page's content
    count.

    Args:
        captured: links with their captures (`LINKS` and `CAPTURES`).
        newest: the newest capture of each URL (`PAGES`); links of other URLs are kept.
        shown: the captures with the content, in the same order (`PAGES`).
    """
    rows = _places(captured["source_url"], newest["url"])
    known = rows >= 0
    own = _are_of(captured, newest, rows)
    has_own = np.zeros(newest.num_rows, dtype=np.bool_)
    has_own[rows[own]] = True
    by_content = np.zeros(len(rows), dtype=np.bool_)
    by_content[known] = ~has_own[rows[known]]
    kept = ~known | own | (by_content & _are_of(captured, shown, rows))
    return captured.filter(pa.array(kept)).select(LINKS.schema.names).cast(LINKS.schema)


def _places(urls: pa.ChunkedArray, among: pa.ChunkedArray) -> Int64s:
    """The position of each URL among distinct ones, int64[n]; -1 if it is not among them."""
    found = pc.index_in(column_array(urls), value_set=column_array(among))
    return int64s(pc.fill_null(found, -1))


def _are_of(captured: pa.Table, captures: pa.Table, rows: Int64s) -> Bools:
    """Whether each link is from the capture at its row of `captures`; False if the row is -1."""
    chosen = pa.array(np.maximum(rows, 0), mask=rows < 0)
    own = {name: column_array(captures[name]).take(chosen) for name in ("fetched_at", "content_digest")}
    dated = np.asarray(column_array(captures["fetched_at"]).is_valid())
    states = np.zeros(captures.num_rows, dtype=np.int64)
    states[~dated] = page_states(captures.filter(pa.array(~dated)))
    pairs = (
        (captured["captured_at"], own["fetched_at"]),
        (captured["captured_digest"], own["content_digest"]),
        (captured["captured_state"], pa.array(states, mask=dated).take(chosen)),
    )
    of = np.zeros(len(rows), dtype=np.bool_)
    for visit, capture in pairs:
        of |= bools(pc.fill_null(pc.equal(column_array(visit), capture), False))
    return of


def _current_aliases(aliases: pa.Table, pages: pa.Table) -> pa.Table:
    aliases = sort_rows(distinct_rows(aliases), "url", "kind", "found_at", "target_url")
    place = _places(aliases["url"], pages["url"])
    fetched = pages.select(["fetched_at", "status"]).take(pa.array(place, mask=place < 0))
    newer = pc.greater(known_times(fetched["fetched_at"]), known_times(aliases["found_at"]))
    alive = pc.less(pc.fill_null(fetched["status"], 200), _FIRST_ERROR)
    outdated = pc.and_(pa.array(place >= 0), pc.and_(newer, alive))
    return aliases.filter(pc.invert(outdated))


def moves(aliases: pa.Table | None) -> pa.Table:
    """The final targets of addresses, a table of `MOVE_SCHEMA`.

    The newest alias of an address counts, ties are broken by the smallest target. A chain is followed for at most
    `MAX_HOPS` steps; addresses of a cycle stay as they are.

    Args:
        aliases: all aliases (`ALIASES`), or None.
    """
    if aliases is None:
        return MOVE_SCHEMA.empty_table()
    followed = aliases.filter(pc.is_in(aliases["kind"], value_set=pa.array([REDIRECT, META_REFRESH])))
    keys = followed.append_column("_time", known_times(followed["found_at"]))
    order = pc.sort_indices(
        keys, sort_keys=[("url", "ascending"), ("_time", "descending"), ("target_url", "ascending")]
    )
    ordered = followed.take(order).combine_chunks()
    first = ordered.take(pa.array(group_starts(_runs(column_array(ordered["url"])))))
    following_of = _places(first["target_url"], first["url"])
    last = np.arange(first.num_rows, dtype=np.int64)
    ended = np.zeros(first.num_rows, dtype=np.bool_)
    for _ in range(MAX_HOPS):
        following = following_of[last]
        ended = following < 0
        last = np.where(ended, last, following)
        if ended.all():
            break
    source = first["url"].filter(pa.array(ended))
    return pa.table([text_ids(source), source, first["target_url"].take(pa.array(last[ended]))], schema=MOVE_SCHEMA)


@dataclass(frozen=True, eq=False)
class Moves:
    """`moves` for look-up: addresses in the order of their ids, and their targets."""

    ids: Int64s
    urls: pa.Array
    targets: pa.Array

    @classmethod
    def of(cls, moves: pa.Table | None) -> Moves:
        """From the broadcast table."""
        ordered = (MOVE_SCHEMA.empty_table() if moves is None else moves).sort_by("url_id")
        return cls(int64s(ordered["url_id"]), column_array(ordered["url"]), column_array(ordered["target_url"]))

    def apply(self, table: pa.Table, column: str) -> tuple[pa.Table, int]:
        """A table with the addresses of a column replaced by their targets, and the number of replaced ones."""
        if not len(self.ids) or not table.num_rows:
            return table, 0
        encoded = column_array(table[column]).dictionary_encode()
        place = self._places(encoded.dictionary.cast(pa.string()))
        moved = place >= 0
        if not moved.any():
            return table, 0
        chosen = pc.if_else(
            pa.array(moved), self.targets.take(pa.array(np.maximum(place, 0))), encoded.dictionary.cast(pa.string())
        )
        index = int64s(encoded.indices)
        position = table.schema.get_field_index(column)
        return table.set_column(position, table.schema.field(position), chosen.take(encoded.indices)), int(
            moved[index].sum()
        )

    def _places(self, urls: pa.Array) -> Int64s:
        """Positions of URLs among those that moved, -1 for others; by id, and by string if ids collide."""
        place = positions(self.ids, text_ids(urls))
        same = pc.equal(self.urls.take(pa.array(place, mask=place < 0)), urls)
        if pc.all(same).as_py() is False:
            return _places(urls, self.urls)
        return place


def moved_links(links: pa.Table, prepared: Moves) -> Iterator[tuple[str, pa.Table]]:
    """Links with moved targets and the id of their source; links that now lead to their own page are kept."""
    table, count = prepared.apply(links, "target_url")
    yield MAIN, with_id(table, "source_url", "source_id")
    yield BALANCE, _event("moved", LINKS.name, count)


def moved_clicks(clicks: pa.Table, prepared: Moves) -> Iterator[tuple[str, pa.Table]]:
    """Clicks with moved addresses and the id of their user."""
    table, count = prepared.apply(clicks, "url")
    yield MAIN, with_id(table, "user_id", "user")
    yield BALANCE, _event("moved", CLICKS.name, count)


def chosen_content(content: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The content that pages of a partition borrow, and the number of these pages."""
    best = borrowed.best_content(content)
    yield MAIN, best
    yield BALANCE, _event("borrowed", PAGES.name, best.num_rows)


def _event(kind: str, name: str, count: int) -> pa.Table:
    return pa.table([[""], [""], [kind], [name], [count]], schema=BALANCE_SCHEMA)


def link_rows(rows: pa.Table) -> pa.Table:
    """The distinct links of one partition of sources, sorted."""
    return sort_rows(distinct_rows(rows.select(LINKS.schema.names))).cast(LINKS.schema)


def click_rows(rows: pa.Table) -> pa.Table:
    """The clicks of one partition of users, sorted; equal ones are kept."""
    flat = rows.select(CLICKS.schema.names)
    words = pc.binary_join(pc.cast(flat["keywords"].combine_chunks(), pa.list_(pa.string())), "\x1f")
    keyed = flat.append_column("_words", words)
    names = ("user_id", "clicked_at", "session_id", "query", "position", "url", "user_group", "_words")
    order = pc.sort_indices(keyed, sort_keys=[(name, "ascending") for name in names])
    return flat.take(order).combine_chunks().cast(CLICKS.schema)


def reject_rows(rows: pa.Table) -> pa.Table:
    """The rejects of one partition, sorted."""
    return sort_rows(rows.select(REJECTS.schema.names)).cast(REJECTS.schema)


def summed_balance(balance: pa.Table | None) -> pa.Table:
    """Sums of counts by file, kind and name, sorted; a table of `BALANCE_SCHEMA`."""
    if balance is None:
        return BALANCE_SCHEMA.empty_table()
    names = [name for name in BALANCE_SCHEMA.names if name != "count"]
    summed = balance.group_by(names).aggregate([("count", "sum")]).rename_columns([*names, "count"])
    return sort_rows(summed.select(BALANCE_SCHEMA.names).cast(BALANCE_SCHEMA), *names)
