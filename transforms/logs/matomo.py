"""Visits exported from Matomo (`Live.getLastVisitsDetails` as JSON): an array of visits, or one visit a line.

A visit is a record. Its query is the keyword of the search engine, and after each search on the site the words of that
search; each page, download and outgoing link after a query is a click. Matomo has already formed the sessions and
removed robots. A visit without a query is ignored ("no-query"); a visit without any usable page is rejected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from semrank.schemas.tables import CLICKS
from semrank.transforms.columnar.arrays import Int64s
from semrank.transforms.logs.clicks import POSITION_BELOW_ONE, POSITION_UNREADABLE
from semrank.transforms.logs.options import LogOptions
from semrank.transforms.logs.rejections import Balance
from semrank.transforms.logs.searches import query_text
from semrank.transforms.logs.users import hashed_ids
from semrank.transforms.logs.visits import LogBatch
from semrank.transforms.streams.batch import MAX_BATCH_RECORDS
from semrank.transforms.streams.json_lines import JSON_INVALID, parse_json, whole_number
from semrank.transforms.streams.lines import RECORD_TOO_LARGE, RECORD_TRUNCATED, DamagedStreamError, in_utf_8
from semrank.transforms.streams.times import MICROSECONDS
from semrank.transforms.streams.urls import CanonicalUrl, canonical_url

FORMAT = "matomo"

MAX_VISIT_BYTES = 16 << 20
"""Maximum bytes of a visit: enough for thousands of actions; Matomo ends a visit after some hours."""

MAX_SECONDS = 9_000_000_000
"""Largest time stamp in seconds since 1970: the year 2255."""

_QUOTE, _OPENING, _CLOSING, _BACKSLASH = b'"{}\\'
_VISIT_NUMBER = re.compile(rb'"idVisit"\s*:\s*"?([0-9]{1,18})(?![0-9])')
_RANK = re.compile(r"-?[0-9]{1,9}(?:\.0{1,9})?")
_BETWEEN = b" \t\r\n,[]\xef\xbb\xbf"
_CLICKED = frozenset({"action", "download", "outlink"})
_NO_KEYWORD = frozenset({"Keyword not defined", "Suchbegriff nicht definiert"})
"""Matomo's placeholders for queries that the search engine does not pass on, in English and German."""

_VISITOR = ("userId", "visitorId", "visitIp")
_COLUMNS = ("user_id", "session_id", "query", "clicked_at", "position", "url")
_LOOKED_AT_BYTES = 4_000
_URL_ENTRIES = 1 << 16  # addresses whose canonical form is cached: some ten MiB

Canonical = Callable[[str], CanonicalUrl]
"""A cached `canonical_url`."""


def read(stream: BinaryIO, *, source: str, options: LogOptions) -> Iterator[LogBatch]:  # noqa: ARG001
    """Clicks of the visits of an export, read from its beginning; see `formats.Read`."""
    splitter = _Splitter()
    balance = Balance(FORMAT)
    canonical = lru_cache(maxsize=_URL_ENTRIES)(partial(canonical_url, rules=options.rules))
    pieces = in_utf_8(stream)
    while True:
        try:
            piece = next(pieces, None)
        except DamagedStreamError as damage:
            balance.reject(RECORD_TRUNCATED, _quote(splitter.rest() or str(damage).encode()))
            break
        if piece is None:
            rest = splitter.rest()
            if rest:
                balance.reject(RECORD_TRUNCATED, _quote(rest))
            break
        rows: list[tuple[Any, ...]] = []
        for reason, text in splitter.split(piece):
            if reason is None:
                rows += _read_visit(text, options.salt, canonical, balance)
            else:
                balance.reject(reason, _quote(text))
        if rows:
            balance.add_clicks(_table(rows))
        if balance.clicks >= MAX_BATCH_RECORDS or balance.records >= MAX_BATCH_RECORDS:
            yield balance.batch()
            balance = Balance(FORMAT)
    yield balance.batch()


class _Splitter:
    """Cuts a stream of JSON objects, with or without an array around them, into its outermost objects.

    Quotes and braces without a backslash before them are found by array arithmetic. If a quote or closing brace is
    between objects, which does not occur in complete exports, characters are examined one by one.
    """

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._unscanned = b""  # the end of what is held
        self._depth = 0
        self._in_string = False

    def split(self, piece: bytes) -> Iterator[tuple[str | None, bytes]]:
        """Whole objects as (None, text), and other text as (reason, text)."""
        scanned = self._held_bytes - len(self._unscanned)
        bounds = self._bounds(self._unscanned + piece)
        self._held.append(piece)
        self._held_bytes += len(piece)
        if bounds:
            yield from self._cut([scanned + place for place in bounds])
        if self._held_bytes > MAX_VISIT_BYTES:
            yield RECORD_TOO_LARGE, self.rest()

    def _cut(self, bounds: list[int]) -> Iterator[tuple[str | None, bytes]]:
        """Cuts what is held at the braces of outermost objects; what follows the last one stays."""
        text = b"".join(self._held)
        begin = 0  # of the open object, or of the text between objects
        for place in bounds:
            if text[place] == _OPENING:
                yield from _between(text[begin:place])
                begin = place
            else:
                yield None, text[begin : place + 1]
                begin = place + 1
        self._held = [text[begin:]]
        self._held_bytes = len(text) - begin

    def _bounds(self, text: bytes) -> list[int]:
        """Positions of the first and last braces of outermost objects in the text that was not scanned yet."""
        places, scanned = _signs(text)
        self._unscanned = text[scanned:]
        signs = np.frombuffer(text, dtype=np.uint8)[places]
        is_quote = signs == _QUOTE
        quotes = np.cumsum(is_quote) + self._in_string
        braces = np.flatnonzero(~is_quote & (quotes & 1 == 0))
        steps = np.where(signs[braces] == _OPENING, 1, -1)
        depths = np.cumsum(steps) + self._depth
        before = np.zeros(len(places), dtype=np.int64)  # depth before each sign
        before[braces] = steps
        before = np.cumsum(before) - before + self._depth
        if (depths < 0).any() or (before[is_quote] == 0).any():
            return self._bounds_one_by_one(signs.tolist(), places.tolist())
        if len(depths):
            self._depth = int(depths[-1])
        if len(quotes):
            self._in_string = bool(quotes[-1] & 1)
        outermost = np.where(steps > 0, depths == 1, depths == 0)
        bounds: list[int] = places[braces[outermost]].tolist()
        return bounds

    def _bounds_one_by_one(self, signs: list[int], places: list[int]) -> list[int]:
        bounds = []
        for sign, place in zip(signs, places, strict=True):
            if self._in_string:
                self._in_string = sign != _QUOTE
            elif sign == _QUOTE:
                self._in_string = self._depth > 0
            elif sign == _OPENING:
                if not self._depth:
                    bounds.append(place)
                self._depth += 1
            elif self._depth:
                self._depth -= 1
                if not self._depth:
                    bounds.append(place)
        return bounds

    def rest(self) -> bytes:
        """The rest at the end, without the end of an array."""
        rest = b"".join(self._held)
        self._held, self._held_bytes, self._unscanned, self._depth, self._in_string = [], 0, b"", 0, False
        return rest.strip(_BETWEEN)


def _signs(text: bytes) -> tuple[Int64s, int]:
    """Positions of unescaped quotes and braces, and the end of the scanned text.

    A backslash escapes the next character, even another backslash; one at the very end is left for the next call.
    """
    content = np.frombuffer(text, dtype=np.uint8)
    found = np.flatnonzero((content == _QUOTE) | (content == _OPENING) | (content == _CLOSING))
    slashes = np.flatnonzero(content == _BACKSLASH)
    stop = len(content)
    if len(slashes):
        first = np.concatenate([[True], np.diff(slashes) != 1])
        run = np.flatnonzero(first)[np.cumsum(first) - 1]
        escaping = slashes[(np.arange(len(slashes)) - run) % 2 == 0]
        if escaping[-1] == stop - 1:
            stop -= 1
        place = np.searchsorted(escaping, found - 1)
        found = found[escaping[np.minimum(place, len(escaping) - 1)] != found - 1]
    return found, stop


def _between(text: bytes) -> Iterator[tuple[str, bytes]]:
    if text.strip(_BETWEEN):
        yield JSON_INVALID, text


def _read_visit(text: bytes, salt: bytes, canonical: Canonical, balance: Balance) -> list[tuple[Any, ...]]:
    """Reads a visit; returns its clicks, rows of `_COLUMNS`."""
    try:
        visit = parse_json(text.decode("utf-8", "replace").encode())
    except ValueError:
        balance.reject(JSON_INVALID, _quote(text))
        return []
    actions = visit.get("actionDetails") if isinstance(visit, dict) else None
    if not isinstance(actions, list):
        balance.reject("visit-invalid", _quote(text))
        return []
    visitor = next((visit[name] for name in _VISITOR if isinstance(visit.get(name), str) and visit[name]), None)
    if visitor is None:
        balance.reject("user-missing", _quote(text))
        return []
    user = hashed_ids([f"{FORMAT}\0{visitor}".encode("utf-8", "replace")], salt)[0]
    known = [action for action in actions if isinstance(action, dict)]
    rows, reasons = _clicks(visit, known, user, canonical, balance)
    if rows:
        balance.use(1)
        balance.count("actions-unreadable", len(reasons) + len(actions) - len(known))
    elif reasons:
        balance.reject(reasons[0], _quote(text))
    else:
        balance.ignore("no-query", 1)
    return rows


def _clicks(
    visit: Mapping[str, Any], actions: Sequence[Mapping[str, Any]], user: str, canonical: Canonical, balance: Balance
) -> tuple[list[tuple[Any, ...]], list[str]]:
    """Rows of `_COLUMNS`, and the reasons why other actions after a query are not clicks."""
    words = _words(visit.get("referrerKeyword")) if visit.get("referrerType") == "search" else None
    words = None if words in _NO_KEYWORD else words
    position = _rank(visit.get("referrerKeywordPosition"), balance) if words else None
    number = visit.get("idVisit")
    session = f"{user}-{number}" if isinstance(number, int | str) and number != "" else None
    rows: list[tuple[Any, ...]] = []
    reasons: list[str] = []
    for action in actions:
        kind = action.get("type")
        if kind == "search":
            words, position = _words(action.get("siteSearchKeyword")), None
        elif words is not None and isinstance(kind, str) and kind in _CLICKED:
            url, reason = canonical(str(action.get("url") or ""))
            moment = _moment(action.get("timestamp", visit.get("serverTimestamp")))
            if url is not None and moment is not None:
                rows.append((user, session, words, moment, position, url))
                position = None
            else:
                reasons.append(reason or "time-invalid")
    return rows, reasons


def _words(value: Any) -> str | None:
    return query_text(value.encode("utf-8", "replace"), "") if isinstance(value, str) else None


def _moment(value: Any) -> int | None:
    """Microseconds since 1970 of a time stamp in seconds, a number or its digits."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= len(str(MAX_SECONDS)):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= MAX_SECONDS:
        return None
    return round(value * MICROSECONDS)


def _rank(value: Any, balance: Balance) -> int | None:
    """The rank of a result, from 1; None where there is none, which is counted unless it is missing."""
    if value is None or value == "":
        return None
    if isinstance(value, str) and _RANK.fullmatch(value):
        value = float(value)
    number = whole_number(value)
    if number is None or number >= 1 << 31:
        balance.count(POSITION_UNREADABLE)
        return None
    balance.count(POSITION_BELOW_ONE, int(number < 1))
    return number if number >= 1 else None


def _table(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True)
    fields = [CLICKS.schema.field(name) for name in _COLUMNS]
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)], _COLUMNS)


def _quote(text: bytes) -> str:
    """The quote of a visit in a reject row: its number. Any other member may identify the visitor."""
    number = _VISIT_NUMBER.search(text[:_LOOKED_AT_BYTES])
    return f"{f'idVisit {number[1].decode()} ' if number else ''}({len(text)} bytes)"
