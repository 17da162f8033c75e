"""Records of WARC (0.17 to 1.1) and ARC files, however compressed and however damaged.

A file is a row of frames: a gzip member or a zstd frame each, or, uncompressed, the file as one. Records follow each
other inside frames. Where that is broken, reading goes on at the next place where a record begins, and what lies
between comes out as one record with a reason. The Web ARChive format is ISO 28500; ARC is described in the Internet
Archive's "ARC File Format" (version 1 and 2 header lines).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from fastwarc.stream_io import ZstdReader

DEFAULT_MAX_RECORD_BYTES = 20 << 20
"""Bytes of a record's block that are taken: pages are far smaller, and what is larger is video or an archive."""

MAX_HEADER_BYTES = 1 << 16
"""Bytes a record's own header may have."""

CHUNK_BYTES = 1 << 18
"""Bytes read from the file at once."""

_GZIP_MAGIC = b"\x1f\x8b\x08"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")  # how a zstd file with its own dictionary begins
_PROBE_BYTES = 512  # decompressed bytes that show whether a gzip member begins with a record
_WARC_LINE = re.compile(rb"WARC/[0-9]+\.[0-9]+[ \t]*\r?\n")
_WARC_START = re.compile(rb"WARC/[0-9]+\.[0-9]+[ \t]*\r?\n[!-9;-~]+[ \t]*:")
_ARC_LINE = re.compile(
    rb"(?P<url>[A-Za-z][A-Za-z0-9+.-]*:[^\r\n]*?) (?P<address>[^\s]+) (?P<date>[0-9]{8,14}) (?P<type>[^\s]*)"
    rb"(?: (?P<status>[0-9]{3}|-) [^\s]+ [^\s]+ [^\s]+ [^\s]+)? (?P<length>[0-9]+)[ \t]*\r?\n"
)
_NAME = re.compile(rb"[!-9;-~]+[ \t]*:")
_BLANK = (b"\n", b"\r\n")
_LENGTH_DIGITS = 18  # of a Content-Length: nothing real is longer, and the number stays an int64


@dataclass(frozen=True)
class Record:
    """One record of an archive, or a stretch of it that is none.

    Attributes:
        position: where in the file the frame (compressed) or the record itself (uncompressed) begins.
        headers: the record's own header by lower-case name; of an ARC record under the names that WARC gives them.
        block: what follows the header.
        problem: why the record can't be used (record-truncated, record-too-large, record-header-invalid,
            record-misplaced, frame-damaged, ...); None if it can.
    """

    position: int
    headers: dict[str, str]
    block: bytes
    problem: str | None = None

    @property
    def kind(self) -> str:
        """The WARC-Type in lower case, empty where there is none."""
        return self.headers.get("warc-type", "").lower()

    def describe(self) -> str:
        """The record in one line, for reject rows."""
        parts = [f"offset {self.position}", self.kind, self.headers.get("warc-target-uri", "")]
        if self.problem == "record-misplaced":
            parts.append(repr(self.block[:80])[2:-1])
        return " ".join(part for part in parts if part)


@dataclass(frozen=True)
class _Chunk:
    """Decompressed bytes, or the place where some are missing.

    Attributes:
        data: the bytes; empty for a gap.
        start: position of the first byte (uncompressed), of the frame that decides which range it belongs to
            (compressed), or of the frame that broke (gap).
        step: 1 where each byte has a position of its own, 0 where all share the frame's.
        gap: why bytes are missing here; None where there are none missing.
    """

    data: bytes
    start: int
    step: int = 0
    gap: str | None = None


def read_records(
    stream: BinaryIO,
    *,
    start: int = 0,
    end: int | None = None,
    max_record_bytes: int = DEFAULT_MAX_RECORD_BYTES,
) -> Iterator[Record]:
    """The records that begin in bytes [start, end) of a file.

    Ranges that follow each other give every record once. Compressed records belong to the range in which their frame
    begins, or the last one before it that begins with a record; so a file that is one frame belongs to the range of
    byte 0, and so does a zstd file. What is no record belongs to the range of the record before it. If a range begins
    inside a payload that itself holds archive records (an uncompressed archive inside an archive), they are taken for
    records of the file.

    Args:
        stream: seekable binary stream.
        start: first byte of the range.
        end: first byte after the range, None for the end of the file.
        max_record_bytes: longest block that is taken; longer ones give the problem record-too-large.

    Raises:
        OSError: the stream itself fails; damaged content never raises.
    """
    stream.seek(0)
    head = stream.read(len(_ZSTD_MAGIC))
    if head.startswith(_GZIP_MAGIC):
        feed = _Feed(_gzip_chunks(stream, start))
    elif head.startswith(_ZSTD_MAGIC) or _ZSTD_SKIPPABLE.match(head):
        if start:
            return
        feed = _Feed(_zstd_chunks(stream))
    else:
        feed = _Feed(_plain_chunks(stream, max(0, start - 1)))
        if start:
            feed.skip_line()
    if start and not feed.skip_to_record():
        return
    while True:
        feed.skip_blank_lines()
        if feed.ended:
            gap = feed.resume()
            if gap is None:
                return
            yield Record(gap.start, {}, b"", gap.gap)
        elif end is not None and feed.position >= end and feed.at_record():
            return
        else:
            yield _read_record(feed, max_record_bytes)


def _read_record(feed: _Feed, max_record_bytes: int) -> Record:
    position = feed.position
    line = feed.line()
    arc = _ARC_LINE.fullmatch(line)
    if arc is not None:
        headers = _arc_headers(arc)
    elif _WARC_LINE.fullmatch(line):
        headers = _warc_headers(feed)
    else:
        feed.skip_line_end(line)
        feed.skip_to_record()
        return Record(position, {}, line[:_PROBE_BYTES], "record-misplaced")
    length = headers.get("content-length", "")
    if not (length.isascii() and length.isdigit() and len(length) <= _LENGTH_DIGITS):
        cut = _cut(feed)
        feed.skip_to_record()
        return Record(position, headers, b"", cut or "record-header-invalid")
    size = int(length)
    block = feed.take(min(size, max_record_bytes))
    taken = len(block)
    if size > max_record_bytes:
        taken += feed.skip(size - taken)
    if taken < size:
        return Record(position, headers, block, _cut(feed))
    return Record(position, headers, block, "record-too-large" if size > max_record_bytes else None)


def _cut(feed: _Feed) -> str | None:
    """Why a record broke off, if it did: the gap after it is a part of its own fate."""
    if not feed.ended:
        return None
    gap = feed.resume()
    return gap.gap if gap is not None else "record-truncated"


def _warc_headers(feed: _Feed) -> dict[str, str]:
    """Headers up to the empty line; without a usable content-length where they don't end as they should."""
    headers: dict[str, str] = {}
    last = ""
    size = 0
    while (line := feed.line()) not in _BLANK:
        size += len(line)
        if not line.endswith(b"\n") or size > MAX_HEADER_BYTES:
            feed.skip_line_end(line)
            return {**headers, "content-length": ""}
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if text[0] in " \t" and last:
            headers[last] += " " + text.strip()
            continue
        name, colon, value = text.partition(":")
        if colon:
            last = name.strip().lower()
            headers.setdefault(last, value.strip())
    uri = headers.get("warc-target-uri")
    if uri is not None and uri.startswith("<") and uri.endswith(">"):  # as the grammar of WARC 1.0 has it
        headers["warc-target-uri"] = uri[1:-1]
    return headers


def _arc_headers(line: re.Match[bytes]) -> dict[str, str]:
    url = line["url"].decode("utf-8", "replace")
    if url.startswith("filedesc:"):
        kind = "warcinfo"
    elif url.lower().startswith(("http:", "https:")):
        kind = "response"
    else:
        kind = "resource"
    return {
        "warc-type": kind,
        "warc-target-uri": url,
        "warc-date": line["date"].decode(),
        "content-type": "application/http; msgtype=response" if kind == "response" else line["type"].decode("latin-1"),
        "content-length": line["length"].decode(),
    }


class _Feed:
    """Lines and blocks out of chunks, up to the next gap."""

    def __init__(self, chunks: Iterator[_Chunk]) -> None:
        self._chunks = chunks
        self._chunk = _Chunk(b"", 0)
        self._at = 0
        self._put_back: list[tuple[_Chunk, int]] = []
        self._gap: _Chunk | None = None

    def _fill(self) -> bool:
        """Whether there is a byte at `_at`, after moving on to the next chunk if need be."""
        while self._at >= len(self._chunk.data):
            if self._put_back:
                self._chunk, self._at = self._put_back.pop()
                continue
            if self._gap is not None:
                return False
            chunk = next(self._chunks, _END)
            if chunk.data:
                self._chunk, self._at = chunk, 0
            else:
                self._gap = chunk
        return True

    @property
    def ended(self) -> bool:
        """Whether nothing can be read before `resume`."""
        return not self._fill()

    @property
    def position(self) -> int:
        """Position of the next byte, as `_Chunk.start` says; there must be one."""
        self._fill()
        return self._chunk.start + self._at * self._chunk.step

    def resume(self) -> _Chunk | None:
        """Go on after a gap and give it; None at the end of the file."""
        gap = self._gap
        if gap is None or gap.gap is None:
            return None
        self._gap = None
        return gap

    def line(self) -> bytes:
        """The next line with its end, cut at `MAX_HEADER_BYTES`; shorter before a gap."""
        parts: list[bytes] = []
        size = 0
        while size < MAX_HEADER_BYTES and self._fill():
            data, limit = self._chunk.data, self._at + MAX_HEADER_BYTES - size
            stop = data.find(b"\n", self._at, limit) + 1
            piece = data[self._at : stop or limit]
            self._at += len(piece)
            size += len(piece)
            parts.append(piece)
            if stop:
                break
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def skip_line(self) -> None:
        """Pass over the rest of a line."""
        self.skip_line_end(self.line())

    def skip_line_end(self, line: bytes) -> None:
        """Pass over what `line` left of its line, if it was cut."""
        while line and not line.endswith(b"\n"):
            line = self.line()

    def take(self, size: int) -> bytes:
        """The next `size` bytes; fewer before a gap."""
        parts: list[bytes] = []
        while size and self._fill():
            piece = self._chunk.data[self._at : self._at + size]
            self._at += len(piece)
            size -= len(piece)
            parts.append(piece)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def skip(self, size: int) -> int:
        """Pass over `size` bytes; gives how many there were."""
        skipped = 0
        while skipped < size and self._fill():
            step = min(size - skipped, len(self._chunk.data) - self._at)
            self._at += step
            skipped += step
        return skipped

    def skip_blank_lines(self) -> None:
        """Pass over the empty lines between records."""
        while self._fill() and self._chunk.data[self._at] in b"\r\n":
            self._at += 1

    def at_record(self) -> bool:
        """Whether a record begins here, given that a line does."""
        if self.ended:
            return False
        position, step = self.position, self._chunk.step
        line = self.line()
        found = _ARC_LINE.fullmatch(line) is not None
        if not found and _WARC_LINE.fullmatch(line) and not self.ended:
            second_position, second_step = self.position, self._chunk.step
            second = self.line()
            found = _NAME.match(second) is not None
            self._unread(second, second_position, second_step)
        self._unread(line, position, step)
        return found

    def _unread(self, line: bytes, position: int, step: int) -> None:
        self._put_back.append((self._chunk, self._at))
        self._chunk, self._at = _Chunk(line, position, step), 0

    def skip_to_record(self) -> bool:
        """Pass over lines, and gaps if nothing is left before them, until a record begins; False if none does.

        A gap ends the search if something was passed over: what is lost there is a fate of its own.
        """
        passed = False
        while not self.at_record():
            if not self.ended:
                self.skip_line()
                passed = True
            elif passed or self.resume() is None:
                return False
        return True


_END = _Chunk(b"", 0)


def begins_record(data: bytes) -> bool:
    """Whether bytes begin with a WARC or ARC record, empty lines before it aside."""
    data = data.lstrip(b"\r\n")
    return _WARC_START.match(data) is not None or _ARC_LINE.match(data) is not None


def may_be_archive(head: bytes) -> bool:
    """Whether a file that begins with these bytes (some thousand) can hold records; damaged ones may."""
    if head.startswith(_ZSTD_MAGIC) or _ZSTD_SKIPPABLE.match(head):
        return True
    if head.startswith(_GZIP_MAGIC):
        try:
            head = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(head, len(head))
        except zlib.error:
            return True
    return not head or b"WARC/" in head or begins_record(head)


def _plain_chunks(stream: BinaryIO, start: int) -> Iterator[_Chunk]:
    stream.seek(start)
    while data := stream.read(CHUNK_BYTES):
        yield _Chunk(data, start, 1)
        start += len(data)


def _zstd_chunks(stream: BinaryIO) -> Iterator[_Chunk]:
    stream.seek(0)
    reader = ZstdReader(stream)
    try:
        while data := reader.read(CHUNK_BYTES):
            yield _Chunk(data, 0)
    except (OSError, ValueError):
        yield _Chunk(b"", 0, gap="frame-damaged")


def _gzip_chunks(stream: BinaryIO, start: int) -> Iterator[_Chunk]:
    """Members decompressed one after another; broken ones are gaps after which the next whole one follows."""
    member = _find_member(stream, start) if start else 0
    sync = 0 if member is None else member
    while member is not None:
        following, problem = member, None
        stream.seek(member)
        members = _Members(stream, member)
        while members.next():
            following = members.start
            try:
                first = members.head()
                if begins_record(first[:_PROBE_BYTES]):
                    sync = members.start
                data = first
                while data:
                    yield _Chunk(data, sync)
                    data = members.more()
            except (zlib.error, EOFError) as cause:
                problem = "frame-truncated" if isinstance(cause, EOFError) else "frame-damaged"
                break
        else:
            if members.finished:
                return
            following, problem = members.start, "frame-damaged"
        yield _Chunk(b"", following, gap=problem)
        member = _find_member(stream, following + 1)


class _Members:
    """Gzip members that follow each other without anything between them."""

    def __init__(self, stream: BinaryIO, start: int) -> None:
        self._stream = stream
        self._raw = b""
        self._read_to = start
        self.start = start
        self.finished = False

    def next(self) -> bool:
        """Move to the next member; False at the end of the file (`finished`) or where no member begins."""
        while len(self._raw) < len(_GZIP_MAGIC) or not self._raw.strip(b"\0"):
            more = self._read()
            if not more:
                self.finished = not self._raw.strip(b"\0")
                break
            self._raw = self._raw.lstrip(b"\0") + more
        self.start = self._read_to - len(self._raw)
        if not self._raw.startswith(_GZIP_MAGIC):
            return False
        self._inflater = zlib.decompressobj(16 + zlib.MAX_WBITS)
        return True

    def _read(self) -> bytes:
        more = self._stream.read(CHUNK_BYTES)
        self._read_to += len(more)
        return more

    def head(self) -> bytes:
        """The member's first bytes, enough to see whether a record begins there."""
        head = self.more()
        while len(head) < _PROBE_BYTES and (more := self.more()):
            head += more
        return head

    def more(self) -> bytes:
        """Further bytes of the member; none at its end.

        Raises:
            zlib.error: the member is damaged.
            EOFError: the file ends inside the member.
        """
        while not self._inflater.eof:
            if not self._raw:
                self._raw = self._read()
                if not self._raw:
                    raise EOFError
            data = self._inflater.decompress(self._raw, CHUNK_BYTES)
            self._raw = self._inflater.unused_data if self._inflater.eof else self._inflater.unconsumed_tail
            if data:
                return data
        return b""


def _find_member(stream: BinaryIO, start: int) -> int | None:
    """Where the first gzip member at or after `start` begins that begins with a record; None if none does."""
    stream.seek(start)
    raw = b""
    while more := stream.read(CHUNK_BYTES):
        raw += more
        at = raw.find(_GZIP_MAGIC)
        while at >= 0:
            if _begins_member(stream, raw, at):
                return start + at
            at = raw.find(_GZIP_MAGIC, at + 1)
        kept = len(_GZIP_MAGIC) - 1
        start += max(0, len(raw) - kept)
        raw = raw[-kept:]
    return None


def _begins_member(stream: BinaryIO, raw: bytes, at: int) -> bool:
    """Whether the member at `raw[at:]`, which ends where the stream stands, can be read and begins with a record."""
    inflater = zlib.decompressobj(16 + zlib.MAX_WBITS)
    head = b""
    compressed = raw[at : at + CHUNK_BYTES]
    behind = stream.tell()
    try:
        while len(head) < _PROBE_BYTES and not inflater.eof and compressed:
            head += inflater.decompress(compressed, _PROBE_BYTES)
            compressed = inflater.unconsumed_tail
            if not compressed and not inflater.eof and len(head) < _PROBE_BYTES:
                compressed = stream.read(CHUNK_BYTES)
    except zlib.error:
        return False
    finally:
        stream.seek(behind)
    return begins_record(head[:_PROBE_BYTES])
