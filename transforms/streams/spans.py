"""Fields of lines found by array arithmetic: where lines and separators are, and Arrow arrays of what lies between.

Nothing is copied until a column is asked for: a column is a binary-view array over the block (16 bytes a value), which
Arrow then turns into a binary array at the speed of memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.columnar.arrays import Bools, Int32s, Int64s, ragged
from semrank.transforms.streams.lines import MAX_LINE_BYTES

Bytes = npt.NDArray[np.uint8]

NEWLINE, RETURN, TAB, SPACE, QUOTE, BACKSLASH = 0x0A, 0x0D, 0x09, 0x20, 0x22, 0x5C

_INLINE_BYTES = 12
"""Bytes that a binary view holds itself of a short value (Arrow columnar format, "Variable-size Binary View Layout");
of a longer one it holds four."""

_INLINE_MASKS: Int32s = np.where(
    np.arange(_INLINE_BYTES)[None, :] < np.arange(_INLINE_BYTES + 1)[:, None], np.uint8(0xFF), np.uint8(0)
).view(np.int32)
"""What is left of the bytes of a value of each length, int32[13, 3]."""


def slices(data: bytes | pa.Buffer, starts: Int32s, ends: Int32s) -> pa.BinaryArray:
    """The bytes [starts[i], ends[i]) of `data` as a binary array; an end before its start yields an empty value."""
    buffer = data if isinstance(data, pa.Buffer) else pa.py_buffer(data)
    count = len(starts)
    lengths = np.maximum(ends - starts, 0).astype(np.int32)
    if not count or not buffer.size:
        return pa.array([b""] * count, pa.binary())
    content = np.frombuffer(buffer, dtype=np.uint8)
    view = np.zeros((count, 4), dtype=np.int32)
    view[:, 0] = lengths
    long = np.flatnonzero(lengths > _INLINE_BYTES)
    if len(long):
        begin = starts if len(long) == count else starts[long]
        view[long, 1] = numbers_at(content, begin, np.dtype(np.int32))
        view[long, 3] = begin  # in data buffer number 0
    if len(long) < count:
        short = np.flatnonzero(lengths <= _INLINE_BYTES)
        head = window(content, starts[short], _INLINE_BYTES).view(np.int32)
        view[short, 1:] = head & _INLINE_MASKS[lengths[short]]
    views = pa.Array.from_buffers(pa.binary_view(), count, [None, pa.py_buffer(view), buffer])
    return pc.cast(views, pa.binary())


def numbers_at(data: Bytes, starts: Int32s, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The bytes from each start as one number in the machine's byte order; the number has to end within `data`.

    Overlapping numbers, one at every byte, are gathered as values, several times as fast as rows of bytes.
    """
    shape = (max(0, len(data) - dtype.itemsize + 1),)
    numbers: npt.NDArray[Any] = np.ndarray(shape, dtype=dtype, buffer=data, strides=(1,))[starts]
    return numbers


def window(data: Bytes, starts: Int32s, width: int) -> Bytes:
    """`width` bytes from each start (from 0 where it is negative), uint8[n, width]; behind the end stand zeros."""
    if not len(starts):
        return np.zeros((0, width), dtype=np.uint8)
    missing = max(0, int(starts.max())) + width - len(data)
    if missing > 0:
        data = np.concatenate([data, np.zeros(missing, dtype=np.uint8)])
    # Values of so many bytes at every byte, so that each is copied whole and not byte by byte.
    values = np.ndarray((len(data) - width + 1,), dtype=np.dtype((np.void, width)), buffer=data, strides=(1,))
    return values[np.maximum(starts, 0)].view(np.uint8).reshape(len(starts), width)


def value_spans(values: pa.BinaryArray) -> tuple[pa.Buffer, Int32s, Int32s]:
    """Data buffer, starts and ends of a binary array's values; null values are empty."""
    if values.null_count:
        values = pc.fill_null(values, b"")
    _, offsets, data = values.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[values.offset : values.offset + len(values) + 1]
    return data if data is not None else pa.py_buffer(b""), bounds[:-1], bounds[1:]


@dataclass(frozen=True)
class Spans:
    """A column of which nothing is copied before some of its values are taken.

    Attributes:
        data: the block.
        starts: first byte of each value, int32[n].
        ends: byte after each value, int32[n].
    """

    data: bytes
    starts: Int32s
    ends: Int32s

    def take(self, rows: pa.Array) -> pa.BinaryArray:
        """Some of the values."""
        chosen = rows.to_numpy(zero_copy_only=False)
        return slices(self.data, self.starts[chosen], self.ends[chosen])

    def are_all(self, byte: int) -> bool:
        """Whether all values are this one byte."""
        content = np.frombuffer(self.data, dtype=np.uint8)
        return bool((self.ends - self.starts == 1).all()) and bool((content[self.starts] == byte).all())


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

    def take(self, chosen: Bools | Int64s) -> Lines:
        """Some of the lines."""
        return Lines(self.data, self.starts[chosen], self.ends[chosen])

    def holding(self, byte: int) -> Bools:
        """Which lines have this byte, which best is a rare one."""
        held = np.zeros(len(self), dtype=np.bool_)
        places = np.flatnonzero(self.content == byte)
        if not len(self) or not len(places):
            return held
        line = np.searchsorted(self.starts, places, side="right") - 1
        inside = (line >= 0) & (places < self.ends[line])
        held[line[inside]] = True
        return held

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
    """

    lines: Lines
    places: Int32s
    first: Int64s

    @property
    def counts(self) -> Int64s:
        """Number of fields of each line, int64[n]."""
        return np.diff(self.first) + 1

    def fields(self, chosen: Int64s, count: int) -> Fields:
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
    if not quoted:
        return _separated(lines, np.flatnonzero(content == separator).astype(np.int32))
    is_quote = content == QUOTE
    events = np.flatnonzero(is_quote | (content == separator)).astype(np.int32)
    quote = is_quote[events]
    # Sums of bytes wrap at 256, which leaves their last bit, the parity, as it is.
    parity = np.cumsum(quote, dtype=np.uint8) & 1
    begin = np.searchsorted(events, lines.starts)
    at_start = np.concatenate([np.zeros(1, dtype=np.uint8), parity])[begin]
    if at_start.any():  # then lines after one with an odd quote would start inside quotes
        owner, within = ragged(begin, np.searchsorted(events, lines.ends) - begin)
        parity[within] ^= at_start[owner]
    return _separated(lines, events[~quote & (parity == 0)])


def _separated(lines: Lines, places: Int32s) -> Separated:
    begin = np.searchsorted(places, lines.starts)
    end = np.searchsorted(places, lines.ends)
    kept = end - begin
    first = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(kept)])
    if len(places) != first[-1]:  # separators between lines, on blank lines
        places = places[ragged(begin, kept)[1]]
    return Separated(lines, places, first)
