"""The session log of Yandex's personalised search challenge (2014): rows M, Q, T and C.

    M: session · M · day · user: a session begins
    Q: session · time · Q · result page · query · words · page,domain · page,domain ... (T: the same, a test query)
    C: session · time · C · result page · page: a click

All are numbers: pages become `https://DOMAIN.yandex.invalid/PAGE` (RFC 6761 reserves `.invalid`), words, which commas
part, stay numbers and are given as keywords, the rank is the place in the query's results. The set does not say how
long a unit of time is nor when day 0 was: a unit counts as a second, day 0 is 1970-01-01, and `session_id` keeps
sessions of a day apart. M, Q and T rows are used when a click refers to them, else ignored ("no-click").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.columnar.arrays import Bools, Int64s, entry_rows, list_parts
from semrank.transforms.logs.clicks import ClickReader, Rows
from semrank.transforms.logs.options import LogOptions
from semrank.transforms.logs.rejections import LAYOUT_UNKNOWN, Balance, truths
from semrank.transforms.logs.users import subject_ids
from semrank.transforms.logs.visits import LogBatch
from semrank.transforms.streams.lines import RECORD_TOO_LARGE, RECORD_TRUNCATED, blocks
from semrank.transforms.streams.spans import TAB, Fields, find_lines, separate, slices
from semrank.transforms.streams.texts import decode
from semrank.transforms.streams.times import MICROSECONDS, timestamps

FORMAT = "yandex"
RECORD_START = rb"[0-9]+\tM\t"
"""First line of a session: sessions are not torn apart by byte ranges."""

MAX_SESSION_BYTES = 8 << 20
"""Bytes of a session; a longer run of lines without an M row is cut, and clicks behind the cut are rejected."""


_M_FIELDS, _Q_FIELDS, _C_FIELDS = 4, 6, 5
_BEGIN = re.compile(rb"[0-9]{1,18}\t(?:M\t[0-9]{1,18}|[0-9]{1,18}\t[QTC])(?=\t)")
_SECONDS_A_DAY = 86_400
_NUMBER = r"^[0-9]{1,18}$"
_MAX_SECONDS = 9_000_000_000  # the year 2255, before 64-bit nanoseconds end


def read(stream: BinaryIO, *, source: str, options: LogOptions) -> Iterator[LogBatch]:  # noqa: ARG001
    """Clicks of the log; see `formats.Read`. With a key, the set's own user numbers are hashed."""
    reader = ClickReader(options.rules)
    carried = b""
    for block in blocks(stream):
        data = carried + block.data
        cut = len(data) if block.unterminated else _last_session(data)
        if len(data) - cut > MAX_SESSION_BYTES:
            cut = len(data)
        carried = data[cut:]
        balance = Balance(FORMAT)
        for reason, piece in block.damaged:
            balance.reject(reason, _quote(piece))
        _Sessions(data[:cut], block.unterminated, balance).read(reader, options.salt)
        yield balance.batch()
    if carried:
        balance = Balance(FORMAT)
        _Sessions(carried, False, balance).read(reader, options.salt)
        yield balance.batch()


def _last_session(data: bytes) -> int:
    """Where the last session begins; 0 if none does."""
    end = len(data)
    while (mark := data.rfind(b"\tM\t", 0, end)) >= 0:
        start = data.rfind(b"\n", 0, mark) + 1
        if data[start:mark].isdigit():
            return start
        end = mark
    return 0


class _Sessions:
    """The rows of some whole sessions."""

    def __init__(self, data: bytes, unterminated: bool, balance: Balance) -> None:
        lines = find_lines(data)
        long = lines.too_long
        for line in lines.take(long).texts():
            balance.reject(RECORD_TOO_LARGE, _quote(line))
        self._lines = lines.take(~long)
        self._unterminated = unterminated
        self._balance = balance
        self._separated = separate(self._lines, TAB, quoted=False)

    def read(self, reader: ClickReader, salt: bytes) -> None:
        """Hand the clicks to the reader and give each row its outcome."""
        starts, start_places = self._rows(_M_FIELDS, exact=True, kind=1, kinds=b"M", numbers=(0, 2))
        queries, query_places = self._rows(_Q_FIELDS, exact=False, kind=2, kinds=b"QT", numbers=(0, 1, 3))
        clicks, click_places = self._rows(_C_FIELDS, exact=True, kind=2, kinds=b"C", numbers=(0, 1, 3, 4))
        known = np.concatenate([start_places, query_places, click_places])
        self._reject_others(known)

        session = _numbers(starts, 0)
        query_session = self._owners(start_places, session, query_places, _numbers(queries, 0))
        click_session = self._owners(start_places, session, click_places, _numbers(clicks, 0))
        query_of = _last_match(query_session, _numbers(queries, 3), click_session, _numbers(clicks, 3))
        rank, domain = _ranks(_results(queries), query_of, _numbers(clicks, 4))
        lost, unasked = click_session < 0, (click_session >= 0) & (query_of < 0)
        unlisted = (query_of >= 0) & (rank == 0)
        for reason, mask in (("session-unknown", lost), ("query-unknown", unasked), ("result-unknown", unlisted)):
            self._reject(reason, click_places[mask])
        self._reject("session-unknown", query_places[query_session < 0])

        good = np.flatnonzero(rank > 0)
        self._count(start_places, click_session[good], np.zeros(len(start_places), dtype=np.bool_))
        self._count(query_places, query_of[good], query_session < 0)
        if len(good):
            owner = click_session[good]
            user = decode(starts.column(3)).take(pa.array(owner))
            second = _numbers(starts, 2)[owner] * _SECONDS_A_DAY + _numbers(clicks, 1)[good]
            terms = decode(queries.column(5)).take(pa.array(query_of[good]))
            page = decode(clicks.column(4)).take(pa.array(good))
            host = pa.array(domain[good]).cast(pa.string())
            url = pc.binary_join_element_wise("https://", host, ".yandex.invalid/", page, "")
            reader.add(
                Rows(
                    user_id=subject_ids(FORMAT, user, salt),
                    query=pc.replace_substring(terms, ",", " "),
                    times=timestamps(second * MICROSECONDS, second < _MAX_SECONDS),
                    url=url.cast(pa.binary()),
                    position=pa.array(rank[good]),
                    session_id=pc.binary_join_element_wise(FORMAT, pa.array(session[owner]).cast(pa.string()), "-"),
                    keywords=pc.split_pattern(terms, ","),
                    quote=lambda record: _quote(self._lines.text(int(click_places[good[record]]))),
                ),
                self._balance,
            )

    def _rows(
        self, count: int, *, exact: bool, kind: int, kinds: bytes, numbers: tuple[int, ...]
    ) -> tuple[Fields, Int64s]:
        """Rows of a kind, and which lines they are."""
        counts = self._separated.counts
        places = np.flatnonzero(counts == count if exact else counts >= count)
        fields = self._separated.fields(places, count)
        fits = np.isin(self._lines.content[fields.starts(kind)], np.frombuffer(kinds, dtype=np.uint8))
        fits &= fields.ends(kind) - fields.starts(kind) == 1
        for number in numbers:
            fits &= truths(pc.match_substring_regex(fields.column(number), _NUMBER))
        places = places[fits]
        return self._separated.fields(places, count), places

    def _reject_others(self, known: Int64s) -> None:
        other = np.setdiff1d(np.arange(len(self._lines)), known)
        last = len(self._lines) - 1
        for place in other.tolist():
            torn = self._unterminated and place == last
            self._balance.reject(RECORD_TRUNCATED if torn else LAYOUT_UNKNOWN, _quote(self._lines.text(place)))

    def _reject(self, reason: str, places: Int64s) -> None:
        for place in places.tolist():
            self._balance.reject(reason, _quote(self._lines.text(place)))

    def _count(self, places: Int64s, referred: Int64s, rejected: Bools) -> None:
        """Count rows that clicks refer to as used, the others as ignored, but for those rejected already."""
        needed = np.zeros(len(places), dtype=np.bool_)
        needed[referred] = True
        self._balance.use(int(needed.sum()))
        self._balance.ignore("no-click", int((~needed & ~rejected).sum()))

    @staticmethod
    def _owners(start_places: Int64s, session: Int64s, places: Int64s, claimed: Int64s) -> Int64s:
        """Number of the M row before each row, -1 where there is none of that session."""
        owner = np.searchsorted(start_places, places) - 1
        if not len(start_places):
            return owner
        return np.where((owner >= 0) & (session[owner] == claimed), owner, -1)


def _numbers(fields: Fields, column: int) -> Int64s:
    return np.asarray(fields.column(column).cast(pa.string()).cast(pa.int64()).to_numpy(zero_copy_only=False))


def _results(queries: Fields) -> pa.BinaryArray:
    """What follows the words of a query: page,domain pairs separated by tabs."""
    return slices(queries.lines.data, queries.ends(_Q_FIELDS - 1) + np.int32(1), queries.lines.ends)


def _last_match(owner: Int64s, key: Int64s, wanted_owner: Int64s, wanted_key: Int64s) -> Int64s:
    """The last row with each wanted owner and key, -1 where there is none; an owner -1 matches nothing."""
    codes, wanted = _common_codes((owner, key), (wanted_owner, wanted_key))
    last = np.full(len(codes) + len(wanted), -1, dtype=np.int64)
    last[codes] = np.arange(len(codes))
    found = last[wanted]
    return np.where(wanted_owner >= 0, found, -1)


def _common_codes(rows: tuple[Int64s, Int64s], wanted: tuple[Int64s, Int64s]) -> tuple[Int64s, Int64s]:
    """Small numbers for pairs, equal for equal pairs of both."""
    owners, keys = (np.unique(np.concatenate([rows[part], wanted[part]]), return_inverse=True)[1] for part in range(2))
    codes = np.unique(owners * (len(keys) + 1) + keys, return_inverse=True)[1]
    return codes[: len(rows[0])], codes[len(rows[0]) :]


def _ranks(results: pa.BinaryArray, query_of: Int64s, page: Int64s) -> tuple[Int64s, Int64s]:
    """Rank (from 1; 0 where it is not listed) and domain of pages among the results of their queries."""
    count, listed = len(page), np.flatnonzero(query_of >= 0)
    rank, domain = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    asked, query = np.unique(query_of[listed], return_inverse=True)
    if not len(asked):
        return rank, domain
    lists = pc.split_pattern(decode(results.take(pa.array(asked))), "\t")
    pointers, flat = list_parts(lists)
    pair = pc.extract_regex(flat, r"^(?P<page>[0-9]{1,18}),(?P<domain>[0-9]{1,18})$")
    valid = truths(pair.is_valid())
    owner = entry_rows(pointers)
    place = np.arange(len(flat)) - pointers[:-1][owner]
    pages, domains = (
        pc.fill_null(pc.struct_field(pair, name), "0").cast(pa.int64()).to_numpy(zero_copy_only=False)
        for name in ("page", "domain")
    )
    # From the last place to the first, so that the first of two equal results stays.
    order = np.flatnonzero(valid)[::-1]
    found = _last_match(owner[order], pages[order], query.reshape(-1), page[listed])
    hit = found >= 0
    entry = order[np.maximum(found, 0)] if len(order) else np.zeros(len(found), dtype=np.int64)
    rank[listed[hit]] = place[entry[hit]] + 1
    domain[listed[hit]] = domains[entry[hit]]
    return rank, domain


def _quote(line: bytes) -> str:
    """The `record` of a reject row: the session, kind and time or day, none of which identifies the user."""
    begin = _BEGIN.match(line)
    return f"{begin[0].decode() if begin else ''} ({len(line)} bytes)".strip()
