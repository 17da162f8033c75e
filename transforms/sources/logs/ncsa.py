r"""The Common Log Format of the NCSA server and what Apache and nginx made of it.

    [host[:port]] client ident account [time] "request" status bytes ["referrer" "user agent" [more ...]]

One reader for the formats `common`, `combined` and `vhost-combined`, since files mix layouts: each line is read by
what it has. Well-formed lines are split by array arithmetic; the few with escapes, quotes in the wrong place or
spaces in a name go through one regular expression.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transforms.sources.logs.access import AccessReader, Requests, quote_line, split_requests
from transforms.sources.logs.fates import Tally
from transforms.sources.logs.spans import QUOTE, SPACE, Fields, Lines, Separated, separate, slices, value_spans
from transforms.sources.logs.times import apache_times

_OPENING, _CLOSING, _DASH, _ZERO, _NINE = ord("["), ord("]"), ord("-"), ord("0"), ord("9")

_COMMON_FIELDS = 8  # client, ident, account, [time, zone], "request", status, bytes
_COMBINED_FIELDS = 10  # and "referrer", "user agent"

_REST = (
    r"(?P<ident>[^ ]+) (?P<account>.*?) \[(?P<time>[^ ]* [^ ]*)\] "
    r'"(?P<request>.*?)" (?P<status>[0-9-][^ "]*) [0-9-][^ "]*'
    r'(?P<tail> "(?P<referrer>(?:[^"\\]|\\.)*)" "(?P<agent>(?:[^"\\]|\\.)*)"(?: .*)?'
    r'| "(?P<loose_referrer>.*?)" "(?P<loose_agent>.*)"(?: [^"]*)?)?\s*$'
)
_NAME = r"[^ -][^ ]*|-[^ ]+"  # whatever is not a lone dash
_ADDRESS = r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*"
_PLAIN = rf"(?s)^(?P<client>[^ ]+) {_REST}"
_HOSTED = rf"(?s)^(?P<host>[^ ]+) (?P<client>{_NAME}) {_REST}"
_SURELY_HOSTED = rf"(?s)^(?P<host>[^ ]+) (?P<client>{_ADDRESS}) {_REST}"

_ESCAPE = re.compile(rb"\\(x[0-9A-Fa-f]{2}|.)", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"b": b"\b", b"v": b"\v", b"f": b"\f"}


@dataclass(frozen=True)
class NcsaReader:
    """Reads lines of this family.

    Attributes:
        with_host: whether the layout of the log puts the host's name first; lines in other layouts are read all the
            same.
    """

    with_host: bool

    def __call__(self, lines: Lines, reader: AccessReader, tally: Tally) -> None:
        """Split lines, hand their requests on, count the lines in no known layout."""
        separated = separate(lines, SPACE, quoted=True)
        left = np.ones(len(lines), dtype=np.bool_)
        for offset in (1, 0) if self.with_host else (0,):
            for size in (_COMBINED_FIELDS, _COMMON_FIELDS):
                chosen, fields = _well_formed(separated, left, offset, size)
                if len(chosen):
                    left[chosen] = False
                    reader.add(_split(fields, offset, size), tally)
        odd = lines.take(left)
        if len(odd):
            self._read_odd(odd, reader, tally)

    def _read_odd(self, lines: Lines, reader: AccessReader, tally: Tally) -> None:
        patterns = (_HOSTED, _PLAIN) if self.with_host else (_SURELY_HOSTED, _PLAIN)
        values = lines.values()
        for pattern in patterns:
            found = pc.extract_regex(values, pattern)
            fits = found.is_valid()
            for requests in _matched(found.filter(fits), values.filter(fits)):
                reader.add(requests, tally)
            values = values.filter(pc.invert(fits))
        for line in values.to_pylist():
            tally.reject_line(quote_line(line))


def _well_formed(
    separated: Separated, left: npt.NDArray[np.bool_], offset: int, size: int
) -> tuple[npt.NDArray[np.int64], Fields]:
    """Which of the lines that are left have exactly this layout, so that no field can be another, and their fields."""
    quotes = 6 if size == _COMBINED_FIELDS else 2
    count = separated.counts
    enough = count >= offset + size if size == _COMBINED_FIELDS else count == offset + size
    chosen = np.flatnonzero(left & enough & (separated.quotes == quotes) & ~separated.escaped)
    fields = separated.fields(chosen, offset + size)
    if not len(chosen):
        return chosen, fields
    content = fields.lines.content
    fits = fields.is_wrapped(offset + 5, QUOTE, QUOTE)
    fits &= content[fields.starts(offset + 3)] == _OPENING
    fits &= content[fields.ends(offset + 4) - 1] == _CLOSING
    for number in (offset + 6, offset + 7):
        first = content[np.minimum(fields.starts(number), len(content) - 1)]
        fits &= (first == _DASH) | ((first >= _ZERO) & (first <= _NINE))
    for name in range(offset + 2):
        fits &= fields.ends(name) > fields.starts(name)
    if offset:
        fits &= (content[fields.starts(1)] != _DASH) | (fields.ends(1) - fields.starts(1) > 1)
    if size == _COMBINED_FIELDS:
        fits &= fields.is_wrapped(offset + 8, QUOTE, QUOTE) & fields.is_wrapped(offset + 9, QUOTE, QUOTE)
    return chosen[fits], fields.take(fits)


def _split(fields: Fields, offset: int, size: int) -> Requests:
    data, one = fields.lines.data, np.int32(1)
    time = slices(data, fields.starts(offset + 3) + one, fields.ends(offset + 4) - one)
    method, target = split_requests(data, fields.starts(offset + 5) + one, fields.ends(offset + 5) - one)
    return Requests(
        client=fields.column(offset),
        account=None if fields.are_all(offset + 2, _DASH) else fields.column(offset + 2),
        times=apache_times(time),
        method=method,
        target=target,
        host=fields.column(0) if offset else None,
        secure=None,
        status=fields.column(offset + 6),
        referrer=fields.inside(offset + 8) if size == _COMBINED_FIELDS else None,
        agent=fields.inside(offset + 9) if size == _COMBINED_FIELDS else None,
        quote=lambda record: quote_line(fields.lines.text(record)),
    )


def _matched(found: pa.StructArray, lines: pa.BinaryArray) -> tuple[Requests, ...]:
    """Requests of lines that a regular expression has taken apart: those with the browser's fields, those without."""
    has_tail = pc.greater(pc.binary_length(pc.struct_field(found, "tail")), 0)
    parts = ((has_tail, True), (pc.invert(has_tail), False))
    return tuple(_loose(found.filter(mask), lines.filter(mask), tail) for mask, tail in parts if pc.any(mask).as_py())


def _loose(found: pa.StructArray, lines: pa.BinaryArray, has_tail: bool) -> Requests:
    def group(name: str) -> pa.BinaryArray:
        return _unescaped(pc.struct_field(found, name))

    method, target = split_requests(*value_spans(group("request")))
    return Requests(
        client=group("client"),
        account=group("account"),
        times=apache_times(group("time")),
        method=method,
        target=target,
        host=group("host") if found.type.get_field_index("host") >= 0 else None,
        secure=None,
        status=group("status"),
        referrer=_either(group("referrer"), group("loose_referrer")) if has_tail else None,
        agent=_either(group("agent"), group("loose_agent")) if has_tail else None,
        quote=lambda record: quote_line(lines[record].as_py()),
    )


def _either(first: pa.BinaryArray, second: pa.BinaryArray) -> pa.BinaryArray:
    """Of two alternatives of an expression the one that took part; the other is empty."""
    return pc.binary_join_element_wise(first, second, pa.scalar(b"", pa.binary()))


def _unescaped(values: pa.BinaryArray) -> pa.BinaryArray:
    """The values with the escapes undone that servers put in for quotes, backslashes and control characters."""
    escapes = pc.match_substring(values, b"\\")
    if not pc.any(escapes).as_py():
        return values
    plain = [_ESCAPE.sub(_unescape, value) for value in values.filter(escapes).to_pylist()]
    return pc.replace_with_mask(values, escapes, pa.array(plain, pa.binary()))


def _unescape(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code[1:], 16)]) if len(code) > 1 else _ESCAPED.get(code, code)
