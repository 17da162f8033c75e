"""From the rows of a click log that names user, query, time and page itself to the table of clicks.

| reason | kind | meaning |
|---|---|---|
| no-click | ignored | a query after which nothing was clicked |
| no-query | ignored | a click without words (or `-`, which stands for words taken out of a published set) |
| user-missing, time-invalid | rejected | no user, no point in time |
| url-... | rejected | the page has no usable address |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.schemas.tables import CLICKS
from semrank.transforms.columnar.arrays import column_array
from semrank.transforms.logs.rejections import Balance, Quote, Rejections, truths
from semrank.transforms.logs.searches import MAX_QUERY_CHARS
from semrank.transforms.streams.parameters import ParameterRules
from semrank.transforms.streams.spans import Fields, Lines, separate
from semrank.transforms.streams.texts import Memo, escaped
from semrank.transforms.streams.urls import canonicalize

_HAS_SCHEME = r"^[\x00-\x20]*(?:[A-Za-z][A-Za-z0-9+.-]*://|(?i:https?):[/\\])"
_BEGINS_WITH_HOST = (
    r"^(?:[^/?#\\@:]*\.[^/?#\\@:]*(?::[0-9]*)?(?:[/?#\\]|$)"  # with a dot, perhaps with a port
    r"|[^/?#\\@:]+:[0-9]+[/\\]|\[[0-9A-Fa-f:.]+\])"  # a word with a port and a path, or an IPv6 address
)
_POSITION = r"^-?[0-9]{1,9}(?:\.0{1,9})?$"  # data frames write whole numbers with a fraction

POSITION_BELOW_ONE, POSITION_UNREADABLE = "position-below-one", "position-unreadable"
"""Counters of positions that are left empty: none that a result can have, and no number at all."""


@dataclass(frozen=True)
class Rows:
    """Rows of a click log as they stand; all columns have length n.

    Attributes:
        user_id: string, hashed where need be; null or empty where there is none.
        query: string.
        times: timestamp[us, UTC], null where there is none that can be read.
        url: binary; empty or `-` where nothing was clicked.
        quote: text of record i for a reject row, without what could identify the user.
        position: binary or int32, null or no number where it is unknown; None if not recorded.
        session_id: string, None if not recorded.
        user_group: string, None if not recorded.
        keywords: list<string> to be used instead of the query's words, None for the query's words.
    """

    user_id: pa.StringArray
    query: pa.StringArray
    times: pa.TimestampArray
    url: pa.BinaryArray
    quote: Quote
    position: pa.Array | None = None
    session_id: pa.StringArray | None = None
    user_group: pa.StringArray | None = None
    keywords: pa.ListArray | None = None


class ClickReader:
    """Judges rows and makes clicks of them; remembers the URLs it has parsed."""

    def __init__(self, rules: ParameterRules) -> None:
        self._urls = Memo(partial(canonical_rows, rules=rules))

    def add(self, rows: Rows, balance: Balance) -> None:
        """Judge rows, count their rejections and add the clicks among them."""
        rejections = Rejections(len(rows.url))
        rejections.ignore("no-click", truths(pc.is_in(rows.url.fill_null(b""), pa.array([b"", b"-"], pa.binary()))))
        query = tidy(rows.query)
        rejections.ignore("no-query", truths(pc.is_in(query.fill_null(""), pa.array(["", "-"]))))
        rejections.reject("user-missing", truths(pc.equal(rows.user_id.fill_null(""), "")))
        rejections.reject("time-invalid", truths(rows.times.is_null()))
        pages = self._urls.rows(with_scheme(rows.url.fill_null(b"")))
        rejections.reject_each(column_array(pages["reason"]))
        alive = pa.array(np.flatnonzero(rejections.alive))
        if len(alive):
            columns = {
                "user_id": rows.user_id,
                "user_group": _named(rows.user_group),
                "session_id": _named(rows.session_id),
                "query": query,
                "keywords": rows.keywords,
                "clicked_at": rows.times,
                "position": rows.position,
                "url": column_array(pages["url"]),
            }
            clicks = {name: column.take(alive) for name, column in columns.items() if column is not None}
            if "position" in clicks:
                clicks["position"] = positions(clicks["position"], balance)
            for field in CLICKS.schema:
                clicks.setdefault(field.name, pa.nulls(len(alive), field.type))
            balance.add_clicks(pa.table(clicks).select(CLICKS.schema.names))
        balance.settle(rejections, rows.quote)


def _named(names: pa.StringArray | None) -> pa.StringArray | None:
    """Names of groups or sessions, null where a field is blank or a dash: such rows are no group."""
    if names is None:
        return None
    return pc.if_else(pc.is_in(pc.utf8_trim_whitespace(names), pa.array(["", "-"])), None, names)


def tidy(query: pa.StringArray) -> pa.StringArray:
    """Queries with runs of white space made one space, none at the ends, at most `MAX_QUERY_CHARS` characters."""
    spaced = pc.replace_substring_regex(query, r"[\s\x00\pZ]+", " ")
    return pc.utf8_rtrim(pc.utf8_slice_codeunits(pc.utf8_trim(spaced, " "), 0, MAX_QUERY_CHARS), " ")


def positions(values: pa.Array, balance: Balance) -> pa.Int32Array:
    """Ranks of results, from 1; null where a value is no rank, which is counted unless it is empty or a dash."""
    if not pa.types.is_integer(values.type):
        texts = pc.ascii_trim_whitespace(values.cast(pa.string(), safe=False))
        texts = pc.if_else(pc.is_in(texts, pa.array(["", "-"])), None, texts)
        number = pc.match_substring_regex(texts, _POSITION)
        balance.count(POSITION_UNREADABLE, int(pc.sum(pc.invert(number)).as_py() or 0))
        values = pc.replace_substring_regex(pc.if_else(number, texts, None), r"\.0+$", "").cast(pa.int64())
    below = pc.less(values, 1)
    balance.count(POSITION_BELOW_ONE, int(pc.sum(below).as_py() or 0))
    return pc.if_else(below, None, values).cast(pa.int32())


def with_scheme(urls: pa.BinaryArray) -> pa.BinaryArray:
    """The URLs, those that begin with the host (as logs of search engines shorten them) taken as http.

    A single word, such as `NULL` or the name of a column, is no host, nor is what other schemes stand before
    (`tel:123`, `mailto:jane@example.org`) or an account (`jane@example.org`).
    """
    bare = pc.and_(
        pc.invert(pc.match_substring_regex(urls, _HAS_SCHEME)), pc.match_substring_regex(urls, _BEGINS_WITH_HOST)
    )
    if not pc.any(bare).as_py():
        return urls
    web = pc.binary_join_element_wise(pa.scalar(b"http:", pa.binary()), urls, pa.scalar(b"//", pa.binary()))
    return pc.if_else(bare, web, urls)


def canonical_rows(values: pa.BinaryArray, rules: ParameterRules) -> pa.Table:
    """Columns `url` and `reason` of addresses as logged, one of them null; see `streams.urls`."""
    found = canonicalize(pa.array([escaped(value) for value in values.to_pylist()], pa.string()), rules)
    return pa.table({"url": found.urls, "reason": found.reasons})


def fields_of(
    lines: Lines, separator: int, count: int, balance: Balance, quote: Callable[[bytes], str]
) -> Fields | None:
    """The fields of lines that have exactly `count`; the others are rejected. None where no line has."""
    separated = separate(lines, separator, quoted=False)
    fits = separated.counts == count
    for line in lines.take(~fits).texts():
        balance.reject_line(quote(line))
    chosen = np.flatnonzero(fits)
    return separated.fields(chosen, count) if len(chosen) else None
