"""A click log in columns of the user's own: tab-separated or comma-separated lines, perhaps with a header line.

`--log-columns user=uid,query=words,time=when,url=page` names columns of the header line, `user=0,query=3,...` counts
them from 0 in a file without one. A line with a tab is separated by tabs, any other by commas, where double quotes
hold a field with commas together (doubled inside it). Quotes around a whole field are none of it in either case, as
spreadsheets write them; a line break inside a field is not understood. A line with more
fields than the header is rejected, since a separator inside one would cut it short. Times are ISO 8601, Apache's, 14
digits or seconds (milliseconds) since 1970.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.columnar.arrays import Bools, Int64s
from semrank.transforms.logs.clicks import ClickReader, Rows
from semrank.transforms.logs.options import LogOptions
from semrank.transforms.logs.records import read_blocks
from semrank.transforms.logs.rejections import Balance
from semrank.transforms.logs.users import hashed_ids
from semrank.transforms.logs.visits import LogBatch
from semrank.transforms.streams.quotes import quote_click
from semrank.transforms.streams.spans import TAB, Fields, Lines, separate
from semrank.transforms.streams.texts import decode, western
from semrank.transforms.streams.times import written_times

FORMAT = "table"

_COMMA = ord(",")


def read(stream: BinaryIO, *, source: str, options: LogOptions) -> Iterator[LogBatch]:  # noqa: ARG001
    """Clicks of the table, read from the header line on if columns are named; see `formats.Read`."""
    return read_blocks(stream, FORMAT, _Reader(options).read_lines, _quote)


def has_header(options: LogOptions) -> bool:
    """Whether columns are named, so that the file's first line has to contain their names."""
    return not all(column.isdigit() for column in options.columns.values())


class _Reader:
    def __init__(self, options: LogOptions) -> None:
        self._salt = options.salt
        self._wanted = dict(options.columns)
        self._awaits_header = has_header(options)
        self._places = {} if self._awaits_header else {name: int(at) for name, at in self._wanted.items()}
        self._missing: list[str] = []
        self._width: int | None = None
        self._clicks = ClickReader(options.rules)

    def read_lines(self, lines: Lines, balance: Balance) -> None:
        if self._awaits_header:
            self._read_header(lines.text(0))
            balance.ignore("header", 1)
            lines = lines.take(np.arange(1, len(lines)))
        if self._missing:
            for line in lines.texts():
                balance.reject("columns-unknown", _quote(line))
            return
        if len(lines):
            self._read_rows(lines, balance)

    def _read_header(self, line: bytes) -> None:
        try:
            names = next(csv.reader([western(line)], delimiter="\t" if b"\t" in line else ","), [])
        except csv.Error:  # a carriage return within the line, say: no column has such a name
            names = []
        self._width = len(names)
        columns = {name.strip(): place for place, name in reversed(list(enumerate(names)))}
        self._places = {name: columns[column] for name, column in self._wanted.items() if column in columns}
        self._missing = [column for column in self._wanted.values() if column not in columns]
        self._awaits_header = False

    def _read_rows(self, lines: Lines, balance: Balance) -> None:
        count = max(self._places.values()) + 1
        by_tab = separate(lines, TAB, quoted=False)
        by_comma = separate(lines, _COMMA, quoted=True)
        tabbed = by_tab.counts > 1
        counts = np.where(tabbed, by_tab.counts, by_comma.counts)
        known = (counts >= count) & ~self._has_surplus(lines, counts, tabbed)
        for line in lines.take(~known).texts():
            balance.reject_line(_quote(line))
        for separated, mask in ((by_tab, tabbed), (by_comma, ~tabbed)):
            chosen = np.flatnonzero(known & mask)
            if len(chosen):
                self._clicks.add(self._rows(separated.fields(chosen, count)), balance)

    def _has_surplus(self, lines: Lines, counts: Int64s, tabbed: Bools) -> Bools:
        """Which lines have more fields than the header, other than empty ones: a separator in one cuts it short."""
        surplus = np.zeros(len(lines), dtype=np.bool_)
        for line in np.flatnonzero(counts > self._width).tolist() if self._width is not None else ():
            separator = b"\t" if tabbed[line] else b","
            surplus[line] = not lines.text(line).endswith(separator * int(counts[line] - self._width))
        return surplus

    def _rows(self, fields: Fields) -> Rows:
        def column(name: str) -> pa.BinaryArray:
            values = fields.column(self._places[name])
            return _unwrapped(values)

        def text(name: str) -> pa.StringArray:
            return decode(column(name))

        def known(name: str) -> bool:
            return name in self._places

        query, time, url = text("query"), column("time"), column("url")

        def quote(record: int) -> str:
            return quote_click(time[record].as_py(), url[record].as_py(), len(fields.lines.text(record)))

        return Rows(
            user_id=self._users(column("user")),
            query=query,
            times=written_times(time),
            url=url,
            position=column("position") if known("position") else None,
            session_id=text("session") if known("session") else None,
            user_group=text("group") if known("group") else None,
            quote=quote,
        )

    def _users(self, values: pa.BinaryArray) -> pa.StringArray:
        """Hashed users; null where the field is empty."""
        encoded = values.dictionary_encode()
        known = encoded.dictionary.to_pylist()
        ids = hashed_ids((FORMAT.encode() + b"\0" + user for user in known), self._salt)
        return pa.array([name if user else None for name, user in zip(ids, known, strict=True)], pa.string()).take(
            encoded.indices
        )


def _unwrapped(values: pa.BinaryArray) -> pa.BinaryArray:
    """The values without the quotes around them, doubled quotes inside made single; others stay as they are."""
    wrapped = pc.match_substring_regex(values, r'^"(?:[^"]|"")*"$')
    inner = pc.replace_substring(pc.replace_substring_regex(values, r'(?s)^"(.*)"$', r"\1"), '""', '"')
    return pc.if_else(wrapped, inner, values)


def _quote(line: bytes) -> str:
    """The `record` of a reject row for a line that could not be split: which part identifies the user is unknown."""
    return f"a line of {len(line)} bytes with {line.count(b',')} commas and {line.count(bytes([TAB]))} tabs"
