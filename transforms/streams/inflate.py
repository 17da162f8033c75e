"""The decompressor of all readers: gzip, zlib, deflate, bzip2, Zstandard and Brotli, in bounded pieces.

Whatever the compressed data, one call returns at most little more than `INFLATED_BYTES` (16 MiB for Zstandard, where 4
bytes may stand for a block of 128 KiB).
"""

from __future__ import annotations

import bz2
import re
import zlib
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import NamedTuple, Protocol

import zstandard
from fastwarc.stream_io import BrotliReader

INFLATED_BYTES = 1 << 18
"""Bytes that one call returns, however much its input expands to."""

PIECE_BYTES = 1 << 16
"""Bytes of input of a call; the unused rest is copied at each call."""

MAGIC_BYTES = 10
"""Bytes that identify the compression of content."""

GZIP_MAGIC = b"\x1f\x8b\x08"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ZSTD_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
"""First bytes of a frame without content (RFC 8878, 3.1.2), with which files of pzstd and dictionaries begin."""

DAMAGE = (zlib.error, zstandard.ZstdError, OSError, EOFError, ValueError)
"""Exceptions of the decompressors for damaged content."""

_ZSTD_PIECE_BYTES = 512  # input of a call to zstd, the only limit of its output: 4 bytes may expand to 128 KiB


class Inflater(Protocol):
    """Decompresses one member or frame."""

    @property
    def eof(self) -> bool:
        """Whether it has ended."""

    def inflate(self, raw: bytes) -> tuple[bytes, bytes]:
        """Some decompressed bytes, and the rest of `raw`; more bytes may follow although no input is left.

        Raises:
            DAMAGE: the content is damaged.
        """


class _Zlib:
    def __init__(self, window_bits: int) -> None:
        self._inner = zlib.decompressobj(window_bits)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    def inflate(self, raw: bytes) -> tuple[bytes, bytes]:
        data = self._inner.decompress(raw, INFLATED_BYTES)
        return data, self._inner.unused_data if self._inner.eof else self._inner.unconsumed_tail


class _Zstd:
    def __init__(self, dictionary: bytes | None = None) -> None:
        known = None if dictionary is None else zstandard.ZstdCompressionDict(dictionary)
        self._inner = zstandard.ZstdDecompressor(dict_data=known).decompressobj()

    @property
    def eof(self) -> bool:
        return self._inner.eof

    def inflate(self, raw: bytes) -> tuple[bytes, bytes]:
        data = self._inner.decompress(raw[:_ZSTD_PIECE_BYTES])
        rest = raw[_ZSTD_PIECE_BYTES:]
        return data, self._inner.unused_data + rest if self._inner.eof else rest


class _Bzip2:
    def __init__(self) -> None:
        self._inner = bz2.BZ2Decompressor()

    @property
    def eof(self) -> bool:
        return self._inner.eof

    def inflate(self, raw: bytes) -> tuple[bytes, bytes]:
        data = self._inner.decompress(raw, INFLATED_BYTES)
        return data, self._inner.unused_data if self._inner.eof else b""


def gzip_inflater() -> Inflater:
    """Decompresses a gzip member (RFC 1952)."""
    return _Zlib(16 + zlib.MAX_WBITS)


def zlib_inflater() -> Inflater:
    """Decompresses a zlib stream (RFC 1950)."""
    return _Zlib(zlib.MAX_WBITS)


def deflate_inflater() -> Inflater:
    """Decompresses a bare deflate stream (RFC 1951)."""
    return _Zlib(-zlib.MAX_WBITS)


def zstd_inflater(dictionary: bytes | None = None) -> Inflater:
    """Decompresses a Zstandard frame (RFC 8878), with or without a dictionary."""
    return _Zstd(dictionary)


MEMBERS: tuple[tuple[re.Pattern[bytes], Callable[[], Inflater]], ...] = (
    (re.compile(re.escape(GZIP_MAGIC)), gzip_inflater),
    (re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"), _Bzip2),
    (re.compile(re.escape(ZSTD_MAGIC)), zstd_inflater),
    (ZSTD_SKIPPABLE, zstd_inflater),
)
"""First bytes of gzip, bzip2 (with the mark of its first block: text may begin with BZh) and Zstandard."""


def inflater_for(head: bytes) -> Callable[[], Inflater] | None:
    """The decompressor of content that begins with these bytes (`MAGIC_BYTES` suffice), None if it is plain."""
    return next((make for magic, make in MEMBERS if magic.match(head)), None)


def inflated(inflater: Inflater, raw: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The decompressed pieces of `raw`, each with the rest of `raw`; ends at the end of the member."""
    data = b""
    while not inflater.eof and (raw or data):
        data, raw = inflater.inflate(raw)
        yield data, raw


class Inflated(NamedTuple):
    """Content decompressed as far as possible.

    Attributes:
        content: the bytes, at most as many as requested.
        whole: whether the last member is complete.
        cut: whether there was more than requested.
    """

    content: bytes
    whole: bool
    cut: bool


def inflate_all(make: Callable[[], Inflater], content: bytes, max_bytes: int) -> Inflated:
    """Decompresses a sequence of members; trailing data that is not a member is ignored."""
    parts: list[bytes] = []
    size, position, inflater = 0, 0, make()
    try:
        while position < len(content) and size <= max_bytes:
            raw = content[position : position + PIECE_BYTES]
            position += len(raw)
            for data, rest in inflated(inflater, raw):
                parts.append(data)
                size += len(data)
                if size > max_bytes:
                    break
                raw = rest
            if inflater.eof:
                position -= len(raw)
                if inflater_for(content[position : position + MAGIC_BYTES]) is None:
                    break
                inflater = make()
        whole = inflater.eof
    except DAMAGE:
        whole = False
    return Inflated(b"".join(parts)[:max_bytes], whole, size > max_bytes)


def unbrotli(content: bytes, max_bytes: int) -> Inflated:
    """Decompresses Brotli (RFC 7932), which has no magic bytes: other content fails sooner or later."""
    reader = BrotliReader(BytesIO(content))
    parts: list[bytes] = []
    size = 0
    whole = True
    try:
        while size <= max_bytes and (part := reader.read(min(INFLATED_BYTES, max_bytes + 1 - size))):
            parts.append(part)
            size += len(part)
    except DAMAGE:
        whole = False
    return Inflated(b"".join(parts)[:max_bytes], whole, size > max_bytes)
