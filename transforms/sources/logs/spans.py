"""Fields of lines found by array arithmetic: where lines and separators are, and Arrow arrays of what lies between.

Nothing is copied until a column is asked for: a column is a binary-view array over the block (16 bytes a value), which
Arrow then turns into a binary array at the speed of memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from numpy.lib.stride_tricks import sliding_window_view

from transforms.columnar.arrays import ragged
from transforms.sources.logs.lines import MAX_LINE_BYTES

Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

NEWLINE, RETURN, TAB, SPACE, QUOTE, BACKSLASH = 0x0A, 0x0D, 0x09, 0x20, 0x22, 0x5C

_INLINE_BYTES, _PREFIX_BYTES = 12, 4
"""Bytes that a binary view holds itself of a short value, and of a long one (Arrow columnar format, "Variable-size
Binary View Layout")."""


def slices(data: bytes | pa.Buffer, starts: Int32s, ends: Int32s) -> pa.BinaryArray:
    """The bytes [starts[i], ends[i]) of `data` as a binary array; an end before its start gives an empty value."""
    buffer = data if isinstance(data, pa.Buffer) else pa.py_buffer(data)
    count = len(starts)
    lengths = np.maximum(ends - starts, 0).astype(np.int32)
    if not count or not buffer.size:
        return pa.array([b""] * count, pa.binary())
    content = np.frombuffer(buffer, dtype=np.uint8)
    view = np.zeros((count, 4), dtype=np.int32)
    view[:, 0] = lengths
    long = lengths > _INLINE_BYTES
    short = np.flatnonzero(~long)
    if len(short):
        head = window(content, starts[short], _INLINE_BYTES)
        head[np.arange(_INLINE_BYTES)[None, :] >= lengths[short][:, None]] = 0
        view[short, 1:] = head.view(np.int32)
    if len(short) < count:
        # A number at every byte: overlapping, so that a prefix is one value, not a row of bytes.
        numbers = np.ndarray((len(content) - _PREFIX_BYTES + 1,), dtype=np.int32, buffer=content, strides=(1,))
        view[long, 1] = numbers[starts[long]]
        view[long, 3] = starts[long]  # in data buffer number 0
    views = pa.Array.from_buffers(pa.binary_view(), count, [None, pa.py_buffer(view), buffer])
    return pc.cast(views, pa.binary())


def window(data: Bytes, starts: Int32s, width: int) -> Bytes:
    """`width` bytes from each start (from 0 where it is negative), uint8[n, width]; behind the end stand zeros."""
    if not len(starts):
        return np.zeros((0, width), dtype=np.uint8)
    missing = max(0, int(starts.max())) + width - len(data)
    if missing > 0:
        data = np.concatenate([data, np.zeros(missing, dtype=np.uint8)])
    # Rows of a view that overlaps itself are copied whole, which an array of all positions would do byte by byte.
    return sliding_window_view(data, width)[np.maximum(starts, 0)]


def value_spans(values: pa.BinaryArray) -> tuple[pa.Buffer, Int32s, Int32s]:
    """Data buffer, starts and ends of a binary array's values; null values are empty."""
    if values.null_count:
        values = pc.fill_null(values, b"")
    _, offsets, data = values.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[values.offset : values.offset + len(values) + 1]
    return data if data is not None else pa.py_buffer(b""), bounds[:-1], bounds[1:]


@dataclass(frozen=True)
class Lines:
    """The lines of a block that are not blank.

    Attributes:
        data: the block.
        starts: first byte of each line, int32[n].
        ends: byte after each line, its line end left out, int32[n].
    """

    data: bytes
    starts: Int32s
    ends: Int32s

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def content(self) -> Bytes:
        """The block as uint8."""
        return np.frombuffer(self.data, dtype=np.uint8)

    def take(self, chosen: Bools | npt.NDArray[np.int64]) -> Lines:
        """Some of the lines."""
        return Lines(self.data, self.starts[chosen], self.ends[chosen])

    def values(self) -> pa.BinaryArray:
        """The lines themselves."""
        return slices(self.data, self.starts, self.ends)

    def texts(self) -> list[bytes]:
        """The lines themselves as a list."""
        return [self.data[start:end] for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True)]

    def text(self, line: int) -> bytes:
        """One line."""
        return self.data[self.starts[line] : self.ends[line]]

    @property
    def too_long(self) -> Bools:
        """Which lines are over `MAX_LINE_BYTES`."""
        return np.asarray((self.ends - self.starts) > MAX_LINE_BYTES)


def find_lines(data: bytes) -> Lines:
    """Lines of a block; blank ones are no records. Line ends are LF or CR LF."""
    content = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(content == NEWLINE).astype(np.int32)
    if len(content) and content[-1] != NEWLINE:
        ends = np.append(ends, np.int32(len(content)))
    starts = np.concatenate([np.zeros(1, dtype=np.int32), ends[:-1] + 1]).astype(np.int32)[: len(ends)]
    if len(ends):
        ends = ends - ((ends > starts) & (content[np.maximum(ends - 1, 0)] == RETURN))
    filled = ends > starts
    if filled.all():
        return Lines(data, starts, ends.astype(np.int32))
    return Lines(data, starts[filled], ends[filled].astype(np.int32))


@dataclass(frozen=True)
class Separated:
    """Lines with the places where their separators are.

    Attributes:
        lines: the lines.
        places: separators of all lines one after another, int32.
        first: where each line's separators begin in `places`, int64[n + 1].
        quotes: number of double quotes in each line, int32[n]; zeros where quotes mean nothing.
        escaped: whether a line has a backslash, so that a quote may be no quote, bool[n]; false where quotes mean
            nothing.
    """

    lines: Lines
    places: Int32s
    first: npt.NDArray[np.int64]
    quotes: Int32s
    escaped: Bools

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """Number of fields of each line, int64[n]."""
        return np.diff(self.first) + 1

    def fields(self, chosen: npt.NDArray[np.int64], count: int) -> Fields:
        """The first `count` fields of chosen lines, each of which has at least as many."""
        lines = self.lines.take(chosen)
        inner = self.places[self.first[chosen][:, None] + np.arange(count - 1)]
        last = self.first[chosen] + count - 1
        more = last < self.first[chosen + 1]
        end = lines.ends.copy()
        end[more] = self.places[last[more]]
        bounds = np.concatenate([lines.starts[:, None] - 1, inner, end[:, None]], axis=1).astype(np.int32)
        return Fields(lines, bounds)


@dataclass(frozen=True)
class Fields:
    """An equal number of fields of each of some lines.

    Attributes:
        lines: the lines.
        bounds: separator before each field and after the last, int32[n, fields + 1].
    """

    lines: Lines
    bounds: Int32s

    def __len__(self) -> int:
        return len(self.lines)

    def take(self, chosen: Bools) -> Fields:
        """The fields of some of the lines."""
        return self if chosen.all() else Fields(self.lines.take(chosen), self.bounds[chosen])

    def are_all(self, field: int, byte: int) -> bool:
        """Whether a field is this one byte in all lines."""
        starts, ends = self.starts(field), self.ends(field)
        return bool((ends - starts == 1).all() and (self.lines.content[starts] == byte).all())

    def starts(self, field: int) -> Int32s:
        """First byte of a field."""
        return self.bounds[:, field] + np.int32(1)

    def ends(self, field: int) -> Int32s:
        """Byte after a field."""
        return self.bounds[:, field + 1]

    def column(self, field: int) -> pa.BinaryArray:
        """A field of all lines."""
        return slices(self.lines.data, self.starts(field), self.ends(field))

    def inside(self, field: int) -> pa.BinaryArray:
        """A field without its first and last byte: quotes or brackets."""
        return slices(self.lines.data, self.starts(field) + np.int32(1), self.ends(field) - np.int32(1))

    def is_wrapped(self, field: int, opening: int, closing: int) -> Bools:
        """Whether a field begins and ends with these bytes."""
        content = self.lines.content
        starts, ends = self.starts(field), self.ends(field)
        limit = max(0, len(content) - 1)
        opens = content[np.clip(starts, 0, limit)] == opening
        closes = content[np.clip(ends - 1, 0, limit)] == closing
        wrapped: Bools = (ends - starts >= 2) & opens & closes
        return wrapped


def separate(lines: Lines, separator: int, *, quoted: bool) -> Separated:
    """Find the separators of lines.

    Args:
        lines: lines of a block.
        separator: byte between fields; two in a row stand around an empty field.
        quoted: whether a separator between double quotes is none. A quote stays open to the end of its line at most.
    """
    content = lines.content
    count = len(lines)
    if not quoted:
        places = np.flatnonzero(content == separator).astype(np.int32)
        none = np.zeros(count, dtype=np.int32)
        return _separated(lines, places, none, none.astype(np.bool_))
    is_quote = content == QUOTE
    events = np.flatnonzero(is_quote | (content == separator)).astype(np.int32)
    quote = is_quote[events]
    # Sums of bytes wrap at 256, which leaves their last bit, the parity, as it is.
    parity = np.cumsum(quote, dtype=np.uint8) & 1
    quote_places = events[quote]
    quotes = (np.searchsorted(quote_places, lines.ends) - np.searchsorted(quote_places, lines.starts)).astype(np.int32)
    if (quotes & 1).any():  # then lines after an odd one would start inside quotes
        begin, end = np.searchsorted(events, lines.starts), np.searchsorted(events, lines.ends)
        at_start = np.concatenate([np.zeros(1, dtype=np.uint8), parity])[begin]
        owner, within = ragged(begin, end - begin)
        parity[within] ^= at_start[owner]
    places = events[~quote & (parity == 0)]
    slashes = np.flatnonzero(content == BACKSLASH)
    escaped = np.searchsorted(slashes, lines.ends) > np.searchsorted(slashes, lines.starts)
    return _separated(lines, places, quotes, escaped)


def _separated(lines: Lines, places: Int32s, quotes: Int32s, escaped: Bools) -> Separated:
    begin = np.searchsorted(places, lines.starts)
    end = np.searchsorted(places, lines.ends)
    kept = end - begin
    first = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(kept)])
    if len(places) != first[-1]:  # separators between lines, on blank lines
        places = places[ragged(begin, kept)[1]]
    return Separated(lines, places, first, quotes, escaped)
