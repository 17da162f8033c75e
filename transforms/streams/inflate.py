"""The one decompressor of all readers: gzip, zlib, deflate, bzip2, Zstandard and Brotli, in bounded pieces.

Whatever the compressed bytes promise, one call gives at most `INFLATED_BYTES` and a little (16 MiB of Zstandard, whose
frames declare blocks of up to 128 KiB, of which 4 bytes may be one).
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
"""Bytes that one call gives, however much its input would give."""

PIECE_BYTES = 1 << 16
"""Bytes that are fed at once: what is left of them is copied at each call."""

MAGIC_BYTES = 10
"""Bytes that tell whether and how content is compressed."""

GZIP_MAGIC = b"\x1f\x8b\x08"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

DAMAGE = (zlib.error, zstandard.ZstdError, OSError, EOFError, ValueError)
"""What decompressors raise for damaged content."""

_ZSTD_PIECE_BYTES = 512  # fed to zstd at once, whose output per call nothing else bounds: 4 bytes may give 128 KiB


class Inflater(Protocol):
    """Decompresses one member or frame."""

    @property
    def eof(self) -> bool:
        """Whether it has ended."""

    def inflate(self, raw: bytes) -> tuple[bytes, bytes]:
        """Some decompressed bytes, and what is left of `raw`; bytes may come although nothing is left.

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
    """Decompresses a Zstandard frame (RFC 8878), made with a dictionary or without."""
    return _Zstd(dictionary)


MEMBERS: tuple[tuple[re.Pattern[bytes], Callable[[], Inflater]], ...] = (
    (re.compile(re.escape(GZIP_MAGIC)), gzip_inflater),
    (re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"), _Bzip2),
    (re.compile(re.escape(ZSTD_MAGIC)), zstd_inflater),
)
"""How gzip, bzip2 (with its first block's mark: text may begin with BZh) and Zstandard begin."""


def inflater_for(head: bytes) -> Callable[[], Inflater] | None:
    """What decompresses content that begins with these bytes (`MAGIC_BYTES` are enough); None if nothing has to."""
    return next((make for magic, make in MEMBERS if magic.match(head)), None)


def inflated(inflater: Inflater, raw: bytes) -> Iterator[tuple[bytes, bytes]]:
    """All that `raw` gives, piece by piece, each with what is left of `raw`; ends where the member does."""
    data = b""
    while not inflater.eof and (raw or data):
        data, raw = inflater.inflate(raw)
        yield data, raw


class Inflated(NamedTuple):
    """Content decompressed as far as it could be.

    Attributes:
        content: the bytes, no more than were asked for.
        whole: whether the last member ended as it should.
        cut: whether there was more than was asked for.
    """

    content: bytes
    whole: bool
    cut: bool


def inflate_all(make: Callable[[], Inflater], content: bytes, max_bytes: int) -> Inflated:
    """Decompress content whose members follow each other; what follows the last one and is no member is left aside."""
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
    """Decompress Brotli (RFC 7932), which nothing marks: other content fails sooner or later."""
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
