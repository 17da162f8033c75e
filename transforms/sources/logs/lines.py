"""From a binary stream to blocks of whole lines: decompression, byte ranges, damaged tails, lines without end."""

from __future__ import annotations

import bz2
import io
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

import zstandard

BLOCK_BYTES = 8 << 20
"""Bytes of text that are worked on at once: fixed costs (some 5 ms) do not show, and a worker holds a block ten times
over."""

MAX_LINE_BYTES = 1 << 20
"""Bytes a line may have. Servers cut requests at 8-64 KiB; what is longer is no log."""

_READ_BYTES = 1 << 18
_COMPRESSED_BYTES = 512  # fed at once to a decompressor: zstd, which nothing else bounds, gives 16 MiB at worst
_INFLATED_BYTES = 1 << 20  # given at once by bzip2, whose blocks of some 40 bytes may hold 45 MB


class _Bzip2:
    """bzip2 whose output comes in bounded pieces; otherwise as its decompressor in the standard library."""

    def __init__(self) -> None:
        self._inner = bz2.BZ2Decompressor()

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def pieces(self, data: bytes) -> Iterator[bytes]:
        yield self._inner.decompress(data, _INFLATED_BYTES)
        while not (self._inner.eof or self._inner.needs_input):
            yield self._inner.decompress(b"", _INFLATED_BYTES)


class _Single:
    """A decompressor that gives all at once, whose input bounds its output."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    @property
    def eof(self) -> bool:
        return bool(self._inner.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._inner.unused_data)

    def pieces(self, data: bytes) -> Iterator[bytes]:
        yield self._inner.decompress(data)


_DECOMPRESSORS: tuple[tuple[re.Pattern[bytes], Callable[[], _Bzip2 | _Single]], ...] = (
    (re.compile(rb"\x1f\x8b\x08"), lambda: _Single(zlib.decompressobj(wbits=31))),
    (re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"), _Bzip2),
    (re.compile(rb"\x28\xb5\x2f\xfd"), lambda: _Single(zstandard.ZstdDecompressor().decompressobj())),
)
"""How gzip (RFC 1952), bzip2 (with its first block's mark: text may begin with BZh) and Zstandard (RFC 8878) begin."""

MARK = b"\xef\xbb\xbf"
"""U+FEFF in UTF-8, no part of a file's first line."""

MAGIC_BYTES = 10
"""Bytes that tell whether a file is compressed."""


class Block(NamedTuple):
    """A run of lines.

    Attributes:
        data: the lines, each with its end except perhaps the last.
        damaged: pieces that are no lines, as (reason, bytes): each counts as one rejected record.
        unterminated: the last line has no end, since the stream stops there.
    """

    data: bytes
    damaged: tuple[tuple[str, bytes], ...]
    unterminated: bool


class DamagedStreamError(Exception):
    """A compressed stream breaks off or holds what its format does not allow; what came before was handed on."""


def is_compressed(head: bytes) -> bool:
    """Whether a file that begins with these bytes (`MAGIC_BYTES` are enough) is gzip, bzip2 or Zstandard."""
    return any(magic.match(head) for magic, _ in _DECOMPRESSORS)


def blocks(stream: BinaryIO, *, block_bytes: int = BLOCK_BYTES) -> Iterator[Block]:
    """Whole lines of a stream, decompressed where its first bytes say that it is compressed.

    Args:
        stream: text, gzip (members may follow each other), bzip2 or Zstandard.
        block_bytes: size of a block before its last line.

    Yields:
        Blocks of at least one line or damaged piece. A stream that breaks off gives what was read before, the lines
        cut in the middle as a damaged piece "record-truncated"; lines over `MAX_LINE_BYTES` give "record-too-long"
        with their head.
    """
    parts: list[bytes] = []
    size = 0
    skipping = False  # inside a line over the limit
    damaged: list[tuple[str, bytes]] = []
    chunks = _without_mark(decompressed(stream))
    while True:
        try:
            chunk = next(chunks, None)
        except DamagedStreamError as damage:
            rest = b"".join(parts)
            cut = rest.rfind(b"\n") + 1
            tail = rest[cut:] or str(damage).encode()
            yield Block(rest[:cut], (*damaged, ("record-truncated", tail)), unterminated=False)
            return
        if chunk is None:
            break
        if skipping:
            end = chunk.find(b"\n") + 1
            if not end:
                continue
            chunk, skipping = chunk[end:], False
        parts.append(chunk)
        size += len(chunk)
        if size < block_bytes:
            continue
        data = b"".join(parts)
        cut = data.rfind(b"\n") + 1
        rest = data[cut:]
        if len(rest) > MAX_LINE_BYTES:
            damaged.append(("record-too-long", rest[:MAX_LINE_BYTES]))
            rest, skipping = b"", True
        parts, size = [rest], len(rest)
        if cut or damaged:
            yield Block(data[:cut], tuple(damaged), unterminated=False)
            damaged = []
    data = b"".join(parts)
    if data or damaged:
        yield Block(data, tuple(damaged), unterminated=bool(data) and not data.endswith(b"\n"))


def _without_mark(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The chunks without the byte order mark that some editors put before UTF-8."""
    head = b""
    while len(head) < len(MARK) and (chunk := next(chunks, b"")):
        head += chunk
    yield head.removeprefix(MARK)
    yield from chunks


def decompressed(stream: BinaryIO) -> Iterator[bytes]:
    """The content of a stream in pieces, decompressed where its first bytes say that it is compressed.

    Raises:
        DamagedStreamError: the rest can't be had.
    """
    head = b""
    while len(head) < MAGIC_BYTES and (more := _read(stream, _READ_BYTES)):
        head += more
    make = next((make for magic, make in _DECOMPRESSORS if magic.match(head)), None)
    if make is None:
        while head:
            yield head
            head = _read(stream, _READ_BYTES)
        return
    decompressor = None
    while head:
        for start in range(0, len(head), _COMPRESSED_BYTES):
            piece = head[start : start + _COMPRESSED_BYTES]
            while piece:
                if decompressor is None:
                    if not piece.strip(b"\0"):  # padding after the last member, as tapes and some tools leave it
                        break
                    decompressor = make()
                try:
                    yield from filter(None, decompressor.pieces(piece))
                except (OSError, EOFError, ValueError, zlib.error, zstandard.ZstdError) as cause:
                    raise DamagedStreamError(f"compressed data is damaged: {cause}") from cause
                piece = b""
                if decompressor.eof:
                    piece, decompressor = decompressor.unused_data, None
        head = _read(stream, _READ_BYTES)
    if decompressor is not None:
        raise DamagedStreamError("compressed data ends before its end mark")


def _read(stream: BinaryIO, size: int) -> bytes:
    try:
        return stream.read(size)
    except (OSError, EOFError) as cause:
        raise DamagedStreamError(f"the stream can't be read further: {cause}") from cause


class _Section(io.RawIOBase):
    """Bytes [begin, end) of a seekable stream."""

    def __init__(self, stream: BinaryIO, begin: int, end: int) -> None:
        self._stream = stream
        self._left = max(0, end - begin)
        stream.seek(begin)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._stream.read(min(len(buffer), self._left))
        buffer[: len(piece)] = piece
        self._left -= len(piece)
        return len(piece)


def line_range(stream: BinaryIO, start: int, stop: int, *, record_start: bytes | None = None) -> BinaryIO:
    """The records of a seekable, uncompressed stream that start in bytes [start, stop).

    The ranges of a partition of the file give each record exactly once.

    Args:
        stream: seekable; it is moved.
        start: first byte of the range.
        stop: byte after the range.
        record_start: regular expression that the first line of a record matches, for records of several lines;
            None where each line is a record. Lines before the file's first record go to the range of byte 0.

    Returns:
        A stream of whole lines.
    """
    pattern = re.compile(record_start) if record_start is not None else None
    begin = _record_at(stream, start, pattern)
    end = max(begin, _record_at(stream, stop, pattern))
    return io.BufferedReader(_Section(stream, begin, end), _READ_BYTES)


def _record_at(stream: BinaryIO, position: int, pattern: re.Pattern[bytes] | None) -> int:
    """Where the first record at or after a position starts; the end of the stream if there is none."""
    if position <= 0:
        return 0
    stream.seek(position - 1)
    here = position - 1
    line = stream.readline(MAX_LINE_BYTES)  # up to the end of the line that byte position - 1 is in
    while line and not line.endswith(b"\n"):
        here += len(line)
        line = stream.readline(MAX_LINE_BYTES)
    here += len(line)
    if pattern is None:
        return here
    begins_line = True
    while line := stream.readline(MAX_LINE_BYTES):
        if begins_line and pattern.match(line):
            return here
        here += len(line)
        begins_line = line.endswith(b"\n")
    return here
