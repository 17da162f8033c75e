"""Reads blocks of whole lines from a binary stream: decompression, UTF-16, line ends, byte ranges, damaged tails."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, BinaryIO, NamedTuple

from semrank.transforms.streams.inflate import DAMAGE, MAGIC_BYTES, PIECE_BYTES, Inflater, inflated, inflater_for

BLOCK_BYTES = 8 << 20
"""Bytes of text that are processed at once: fixed costs (some 5 ms) are negligible, and a worker needs about ten times
this memory."""

MAX_LINE_BYTES = 1 << 20
"""Maximum bytes of a line. Servers cut requests at 8-64 KiB; longer lines are not from a log."""

_READ_BYTES = 1 << 18

RECORD_TRUNCATED, RECORD_TOO_LARGE = "record-truncated", "record-too-large"
"""Why a piece of a stream is not a line: the stream ends within it, or it exceeds the limit."""

MARK = b"\xef\xbb\xbf"
"""U+FEFF in UTF-8, no part of a file's first line."""

_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class Block(NamedTuple):
    """A run of lines.

    Attributes:
        data: the lines, each with its end except perhaps the last.
        damaged: pieces that are not lines, as (reason, bytes); each counts as one rejected record.
        unterminated: whether the last line has no line end, since the stream ends there.
    """

    data: bytes
    damaged: tuple[tuple[str, bytes], ...]
    unterminated: bool


class DamagedStreamError(Exception):
    """A compressed stream is truncated or invalid; the content before was returned."""


def is_compressed(head: bytes) -> bool:
    """Whether a file that begins with these bytes (`MAGIC_BYTES` are enough) is gzip, bzip2 or Zstandard.

    UTF-16 counts as well: its bytes are not those of its lines either, so no range of it can be read on its own.
    """
    return inflater_for(head) is not None or head[:2] in _UTF_16


def blocks(
    stream: BinaryIO, *, block_bytes: int = BLOCK_BYTES, max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[Block]:
    """Whole lines of a stream, decompressed if its first bytes are those of a compressed format.

    Args:
        stream: text, gzip (members may follow each other), bzip2 or Zstandard.
        block_bytes: size of a block before its last line.
        max_line_bytes: maximum bytes of a line.

    Yields:
        Blocks of at least one line or damaged piece. For a truncated stream this is everything before the truncation,
        with the incomplete line as a damaged piece `RECORD_TRUNCATED`. A line over `max_line_bytes` that fills a block
        yields `RECORD_TOO_LARGE` with its head; shorter ones are lines of the block.
    """
    parts: list[bytes] = []
    size = 0
    skipping = False  # inside a line over the limit
    damaged: list[tuple[str, bytes]] = []
    chunks = _plain_text(in_utf_8(stream))
    while True:
        try:
            chunk = next(chunks, None)
        except DamagedStreamError as damage:
            rest = b"".join(parts)
            cut = rest.rfind(b"\n") + 1
            tail = rest[cut:] or str(damage).encode()
            yield Block(rest[:cut], (*damaged, (RECORD_TRUNCATED, tail)), unterminated=False)
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
        if size < block_bytes or (b"\n" not in chunk and size <= max_line_bytes):
            continue
        data = b"".join(parts)
        cut = data.rfind(b"\n") + 1
        rest = data[cut:]
        if len(rest) > max_line_bytes:
            damaged.append((RECORD_TOO_LARGE, rest[:max_line_bytes]))
            rest, skipping = b"", True
        parts, size = [rest], len(rest)
        if cut or damaged:
            yield Block(data[:cut], tuple(damaged), unterminated=False)
            damaged = []
    data = b"".join(parts)
    if data or damaged:
        yield Block(data, tuple(damaged), unterminated=bool(data) and not data.endswith(b"\n"))


def _plain_text(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The chunks without a byte order mark before UTF-8, and with LF as line end.

    If the first chunks have no LF, lines end in CR alone, as some spreadsheets and old systems write them.
    """
    head = b""
    damage: DamagedStreamError | None = None
    try:
        while b"\n" not in head and len(head) < _READ_BYTES and (chunk := next(chunks, b"")):
            head += chunk
    except DamagedStreamError as cause:
        damage = cause
    returns = b"\n" not in head and b"\r" in head
    for chunk in chain((head.removeprefix(MARK),), chunks):
        yield chunk.replace(b"\r", b"\n") if returns else chunk
    if damage is not None:
        raise damage


def in_utf_8(stream: BinaryIO) -> Iterator[bytes]:
    """The content of a stream as `decompressed` returns it; UTF-16 with a byte order mark becomes UTF-8.

    Raises:
        DamagedStreamError: the rest can't be read.
    """
    pieces = decompressed(stream)
    head = b""
    while len(head) < len(codecs.BOM_UTF16) and (piece := next(pieces, b"")):
        head += piece
    encoding = _UTF_16.get(head[: len(codecs.BOM_UTF16)])
    pieces = chain((head,), pieces)
    yield from filter(None, pieces if encoding is None else _recoded(pieces, encoding))


def _recoded(pieces: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for piece in chain(pieces, (b"",)):
        yield decoder.decode(piece, final=not piece).encode()


def decompressed(stream: BinaryIO) -> Iterator[bytes]:
    """The content of a stream in pieces, decompressed if its first bytes are those of a compressed format.

    Raises:
        DamagedStreamError: the rest can't be read.
    """
    head = b""
    while len(head) < MAGIC_BYTES and (more := _read(stream, _READ_BYTES)):
        head += more
    make = inflater_for(head)
    if make is None:
        while head:
            yield head
            head = _read(stream, _READ_BYTES)
        return
    inflater: Inflater | None = None
    while head:
        for start in range(0, len(head), PIECE_BYTES):
            raw = head[start : start + PIECE_BYTES]
            while raw:
                if inflater is None:
                    if not raw.strip(b"\0"):  # padding after the last member, as some tools write it
                        break
                    inflater = make()
                try:
                    for data, rest in inflated(inflater, raw):
                        raw = rest
                        if data:
                            yield data
                except DAMAGE as cause:
                    raise DamagedStreamError(f"compressed data is damaged: {cause}") from cause
                if inflater.eof:
                    inflater = None
        head = _read(stream, _READ_BYTES)
    if inflater is not None:
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
        stream: seekable; its position changes.
        start: first byte of the range.
        stop: byte after the range.
        record_start: regular expression that the first line of a record matches, for records of several lines;
            None if each line is a record. Lines before the file's first record belong to the range of byte 0.

    Returns:
        A stream of whole lines.
    """
    pattern = re.compile(record_start) if record_start is not None else None
    begin = _record_at(stream, start, pattern)
    end = max(begin, _record_at(stream, stop, pattern))
    return io.BufferedReader(_Section(stream, begin, end), _READ_BYTES)


def _record_at(stream: BinaryIO, position: int, pattern: re.Pattern[bytes] | None) -> int:
    """Start of the first record at or after a position; the end of the stream if there is none."""
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
