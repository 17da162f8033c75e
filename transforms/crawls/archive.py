"""Reads records of WARC (0.17 to 1.1) and ARC files, compressed or not, and damaged ones.

A file is a sequence of frames: gzip members or zstd frames, or, uncompressed, the file as a whole. Frames contain
records. After damage, reading resumes at the start of the next record, and the bytes between are returned as one record
with a reason. The Web ARChive format is ISO 28500; ARC is described in the Internet Archive's "ARC File Format"
(version 1 and 2 header lines).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from semrank.transforms.streams.batch import DEFAULT_MAX_RECORD_BYTES
from semrank.transforms.streams.inflate import (
    DAMAGE,
    GZIP_MAGIC,
    ZSTD_MAGIC,
    ZSTD_SKIPPABLE,
    Inflater,
    gzip_inflater,
    inflate_all,
    zstd_inflater,
)
from semrank.transforms.streams.lines import MARK
from semrank.transforms.streams.texts import text_or_escapes

RECORD_TYPES = frozenset(
    {"warcinfo", "response", "resource", "request", "metadata", "revisit", "conversion", "continuation"}
)
"""The types of ISO 28500, 5.5: readers skip records of any other."""

ARC_TYPE = "arc-content-type"
"""Header of ARC records with the content type of their header line."""

MAX_HEADER_BYTES = 1 << 16
"""Maximum bytes of a record's own header."""

READ_BYTES = 1 << 16
"""Bytes that are read at once; the rest of them is copied at the end of each frame, so more are slower."""

_SKIPPABLE_HEAD_BYTES = 8  # magic and size of a skippable frame
_MAX_DICTIONARY_BYTES = 8 << 20  # zstd's own tools train dictionaries of 110 KB
_PROBE_BYTES = 512  # decompressed bytes that show whether a frame begins with a record
_WARC_LINE = re.compile(rb"WARC/[0-9]+\.[0-9]+[ \t]*\r?\n")
_WARC_START = re.compile(rb"WARC/[0-9]+\.[0-9]+[ \t]*\r?\n[!-9;-~]+[ \t]*:")
_ARC_SCHEME = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*:")
_ARC_DATE = re.compile(rb" ([0-9]{8,20})(?= )")
_ARC_ADDRESS = re.compile(rb"[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:.]{1,45}|-")
_ARC_REST = re.compile(rb"(?:(?P<type>[^\r\n]*) )?(?P<length>-?[0-9]{1,18})")
_ARC_SECOND = re.compile(rb"(?P<type>.*) (?:[0-9]{3}|-) [^\s]+ [^\s]+ [^\s]+ [^\s]+")
"""Type and what ARC's version 2 puts between type and length: status, checksum, location, offset, file."""

_NAME = re.compile(rb"[!-9;-~]+[ \t]*:")
_BLANK = (b"\n", b"\r\n")
_NEXT = b"\r\n\r\nWARC/"  # between records of a WARC file; those that are frames of their own end with its first half
_BETWEEN = b"\r\n" + MARK  # bytes between records, and before the first
_MAX_ADDRESS_BYTES = 255  # a host's name
_MOST_BLANK_LINES = 8  # between records; ARC has one, WARC two
_MOST_PIECES = 1_024  # of a record's content in the check of its length: pieces are 64 KiB, or frames
_LENGTH_DIGITS = 18  # of a Content-Length: longer ones are not real, and the number stays an int64


@dataclass(frozen=True)
class Record:
    """A record of an archive, or bytes that are not a record.

    Attributes:
        position: start of the frame (compressed) or of the record itself (uncompressed) in the file.
        headers: the record's own header by lower-case name; ARC headers have their WARC names.
        block: the bytes after the header.
        problem: why the record is unusable (record-truncated, record-too-large, record-header-invalid,
            record-misplaced, frame-damaged, ...), or None.
    """

    position: int
    headers: dict[str, str]
    block: bytes
    problem: str | None = None

    @property
    def kind(self) -> str:
        """The WARC-Type in lower case, empty if there is none."""
        return self.headers.get("warc-type", "").lower()

    @property
    def why_ignored(self) -> str:
        """The reason under which a record that a reader does not use is counted: its type, if it is a known one."""
        return self.kind if self.kind in RECORD_TYPES else "record-type-unknown" if self.kind else "record-type-missing"

    def describe(self) -> str:
        """The record in one line, for reject rows."""
        parts = [f"offset {self.position}", self.kind, self.headers.get("warc-target-uri", "")]
        return " ".join(part for part in parts if part)


@dataclass(frozen=True)
class _Chunk:
    """Decompressed bytes, or a gap.

    Attributes:
        data: the bytes; empty for a gap.
        start: position of the first byte (uncompressed), of the frame that determines its range (compressed), or of the
            damaged frame (gap).
        step: 1 if each byte has its own position, 0 if all have the frame's.
        gap: why bytes are missing, or None.
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

    Consecutive ranges give every record once. Compressed records belong to the range in which their frame begins, or
    the last frame before it that begins with a record; so a file of one frame belongs to the range of byte 0. Bytes
    that are not a record belong to the range of the record before. If a range begins inside a payload with archive
    records (an uncompressed archive inside an archive), these are read as records of the file.

    Args:
        stream: seekable binary stream.
        start: first byte of the range.
        end: first byte after the range, None for the end of the file.
        max_record_bytes: maximum bytes of a block; longer ones have the problem record-too-large.

    Raises:
        OSError: the stream itself fails; damaged content never raises.
    """
    codec = _codec(stream)
    file_bytes = stream.seek(0, os.SEEK_END)
    chunks = _plain_chunks(stream, max(0, start - 1)) if codec is None else _frame_chunks(stream, start, codec)
    feed = _Feed(chunks, file_bytes)
    if start and codec is None:
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
    if _WARC_LINE.fullmatch(line):
        headers, is_arc = _warc_headers(feed), False
    elif (arc := _arc_headers(line)) is not None:
        headers, is_arc = arc, True
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
    # A length above the limit may be correct in WARC files, which contain whole films.
    impossible = size > max_record_bytes and (is_arc or feed.is_impossible(size, max_record_bytes))
    if impossible or (size <= max_record_bytes and not feed.is_whole(size)):
        inner = feed.bytes_to_record(min(size, max_record_bytes))
        if inner:
            return Record(position, headers, feed.take(inner))
    if impossible and not is_arc:
        feed.skip_to_record()
        return Record(position, headers, b"", _cut(feed) or "record-truncated")
    block = feed.take(min(size, max_record_bytes))
    taken = len(block)
    if size > max_record_bytes:
        taken += feed.skip(size - taken)
    if taken < size:
        return Record(position, headers, block, _cut(feed) or "record-truncated")
    return Record(position, headers, block, "record-too-large" if size > max_record_bytes else None)


def _cut(feed: _Feed) -> str | None:
    """Why a record is incomplete, or None; the gap after it belongs to the record."""
    if not feed.ended:
        return None
    gap = feed.resume()
    return gap.gap if gap is not None else "record-truncated"


def _warc_headers(feed: _Feed) -> dict[str, str]:
    """Headers up to the empty line; without a usable content-length if there is none."""
    headers: dict[str, str] = {}
    last = ""
    size = 0
    while (line := feed.line()) not in _BLANK:
        size += len(line)
        if not line.endswith(b"\n") or size > MAX_HEADER_BYTES:
            feed.skip_line_end(line)
            return {**headers, "content-length": ""}
        text = text_or_escapes(line).rstrip("\r\n")
        if text.startswith((" ", "\t")) and last:
            headers[last] += " " + text.strip()
            continue
        name, colon, value = text.partition(":")
        if colon:
            last = name.strip().lower()
            headers.setdefault(last, value.strip())
    return with_bare_uris(headers)


def with_bare_uris(headers: dict[str, str]) -> dict[str, str]:
    """A record's headers by lower-case name, URIs without the angle brackets of WARC 1.0's grammar."""
    for name in ("warc-target-uri", "warc-refers-to-target-uri"):
        uri = headers.get(name, "")
        if uri.startswith("<") and uri.endswith(">"):
            headers[name] = uri[1:-1]
    return headers


def _arc_headers(line: bytes) -> dict[str, str] | None:
    """The headers of an ARC record by their WARC names; None if the line is not an ARC header."""
    if not line.endswith(b"\n") or not _ARC_SCHEME.match(line):
        return None
    text = line.rstrip()
    address, date = _arc_middle(text)
    rest = None if date is None else _ARC_REST.fullmatch(text, date.end() + 1)
    if date is None or rest is None:
        return None
    second = _ARC_SECOND.fullmatch(rest["type"] or b"")
    content_type = ((second or rest)["type"] or b"").decode("latin-1")
    url = text_or_escapes(text[:address])
    if url.startswith("filedesc:"):
        kind = "warcinfo"
    elif url.lower().startswith(("http:", "https:")):
        kind = "response"
    else:
        kind = "resource"
    return {
        "warc-type": kind,
        "warc-target-uri": url,
        "warc-date": date[1].decode(),
        "content-type": "application/http; msgtype=response" if kind == "response" else content_type,
        ARC_TYPE: content_type,
        "content-length": rest["length"].decode(),
    }


def _arc_middle(text: bytes) -> tuple[int, re.Match[bytes] | None]:
    """The end of the URL in an ARC header, and the date after the address.

    URLs and types may contain blanks: the last date after an address, or after any word, counts.
    """
    found: list[tuple[int, re.Match[bytes]]] = []
    for date in _ARC_DATE.finditer(text):
        address = text.rfind(b" ", 0, date.start())
        if 0 < date.start() - address - 1 <= _MAX_ADDRESS_BYTES and address > 0:
            found.append((address, date))
    for address, date in reversed(found):
        if _ARC_ADDRESS.fullmatch(text, address + 1, date.start()):
            return address, date
    return found[-1] if found else (0, None)


class _Feed:
    """Reads lines and blocks from chunks, up to the next gap."""

    def __init__(self, chunks: Iterator[_Chunk], file_bytes: int) -> None:
        self._chunks = chunks
        self._file_bytes = file_bytes
        self._chunk = _Chunk(b"", 0)
        self._at = 0
        self._put_back: list[tuple[_Chunk, int]] = []
        self._fetched: list[_Chunk] | None = None  # between `_mark` and `_rewind`
        self._gap: _Chunk | None = None

    def _fill(self) -> bool:
        """Whether there is a byte at `_at`; moves to the next chunk if necessary."""
        while self._at >= len(self._chunk.data):
            if self._put_back:
                self._chunk, self._at = self._put_back.pop()
                continue
            if self._gap is not None:
                return False
            chunk = next(self._chunks, _END)
            if chunk.data:
                self._chunk, self._at = chunk, 0
                if self._fetched is not None:
                    self._fetched.append(chunk)
            else:
                self._gap = chunk
        return True

    @property
    def ended(self) -> bool:
        """Whether nothing can be read before `resume`."""
        return not self._fill()

    @property
    def position(self) -> int:
        """Position of the next byte, as in `_Chunk.start`; there must be one."""
        self._fill()
        return self._chunk.start + self._at * self._chunk.step

    @property
    def frame(self) -> int | None:
        """Start of the next byte's frame, or of the last one before it that begins with a record; None if plain."""
        self._fill()
        return None if self._chunk.step else self._chunk.start

    def resume(self) -> _Chunk | None:
        """Continues after a gap and returns it; None at the end of the file."""
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
        """Skips the rest of a line."""
        self.skip_line_end(self.line())

    def skip_line_end(self, line: bytes) -> None:
        """Skips the rest of a line that `line` has cut."""
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
        """Skips `size` bytes; returns how many there were before a gap or a frame that begins with a record."""
        skipped = 0
        start = self.frame
        while skipped < size and self.frame == start and self._fill():
            step = min(size - skipped, len(self._chunk.data) - self._at)
            self._at += step
            skipped += step
        return skipped

    def skip_blank_lines(self) -> None:
        """Skips the empty lines between records, and a byte order mark."""
        while self._fill() and self._chunk.data[self._at] in _BETWEEN:
            self._at += 1

    def at_record(self) -> bool:
        """Whether a record begins at this start of a line."""
        if self.ended:
            return False
        position, step = self.position, self._chunk.step
        line = self.line()
        found = _arc_headers(line) is not None
        if not found and _WARC_LINE.fullmatch(line) and not self.ended:
            second_position, second_step = self.position, self._chunk.step
            second = self.line()
            found = _NAME.match(second) is not None
            self.put_back(second, second_position, second_step)
        self.put_back(line, position, step)
        return found

    def at_boundary(self) -> bool:
        """Whether only empty lines precede the next record or the end; skips nothing."""
        blank: list[tuple[bytes, int, int]] = []
        while not self.ended and len(blank) < _MOST_BLANK_LINES:
            position, step = self.position, self._chunk.step
            line = self.line()
            if line not in _BLANK:
                self.put_back(line, position, step)
                break
            blank.append((line, position, step))
        found = self.ended or self.at_record()
        for line, position, step in reversed(blank):
            self.put_back(line, position, step)
        return found

    def is_whole(self, size: int) -> bool:
        """Whether the next record or the end follows after `size` bytes, within a limit of pieces; skips nothing."""
        if self._fill() and self._chunk.data[self._at + size : self._at + size + len(_NEXT)] in (_NEXT, _NEXT[:4]):
            return True
        mark = self._mark()
        pieces = 0
        while size and pieces < _MOST_PIECES and self._fill():
            step = min(size, len(self._chunk.data) - self._at)
            self._at += step
            size -= step
            pieces += 1
        found = not size and self.at_boundary()
        self._rewind(mark)
        return found

    def is_impossible(self, size: int, limit: int) -> bool:
        """Whether `size` bytes lead beyond a plain file or, within `limit` bytes, to a frame that begins with a record.

        Skips nothing.
        """
        start = self.frame
        if start is None:
            return self.position + size > self._file_bytes
        mark = self._mark()
        skipped = self.skip(limit)
        found = skipped < limit and not self.ended
        self._rewind(mark)
        return found

    def bytes_to_record(self, limit: int) -> int:
        """Bytes before the next line that begins a record, 0 if there is none in `limit` bytes; skips nothing."""
        mark = self._mark()
        passed, found = 0, False
        while passed < limit and not found and (line := self.line()):
            passed += len(line)
            found = passed < limit and line.endswith(b"\n") and self.at_record()
        self._rewind(mark)
        return passed if found else 0

    def _mark(self) -> tuple[_Chunk, int, list[tuple[_Chunk, int]]]:
        """The current position, for `_rewind`."""
        self._fetched = []
        return self._chunk, self._at, self._put_back.copy()

    def _rewind(self, mark: tuple[_Chunk, int, list[tuple[_Chunk, int]]]) -> None:
        """Returns to a position without copying."""
        self._chunk, self._at, put_back = mark
        self._put_back = [(chunk, 0) for chunk in reversed(self._fetched or ())] + put_back
        self._fetched = None

    def put_back(self, data: bytes, position: int, step: int) -> None:
        """Pushes back bytes that were read from a position on."""
        self._put_back.append((self._chunk, self._at))
        self._chunk, self._at = _Chunk(data, position, step), 0

    def skip_to_record(self) -> bool:
        """Skips lines, and gaps without lines before them, until a record begins; returns False if none does.

        A gap ends the search if lines were skipped before: the loss is reported separately.
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
    """Whether bytes begin with a WARC or ARC record, apart from empty lines."""
    data = data.lstrip(_BETWEEN)
    return _WARC_START.match(data) is not None or _arc_headers(data[: data.find(b"\n") + 1]) is not None


def may_be_archive(head: bytes) -> bool:
    """Whether a file that begins with these bytes (some thousand) may contain records, even damaged ones."""
    if head.startswith(ZSTD_MAGIC) or ZSTD_SKIPPABLE.match(head):
        return True
    if head.startswith(GZIP_MAGIC):
        try:
            head = gzip_inflater().inflate(head)[0]
        except DAMAGE:
            return True
    begin = head.lstrip(b" \t" + _BETWEEN)
    return not head or b"WARC/" in head or begin.startswith(b"filedesc:") or begins_record(head)


def _plain_chunks(stream: BinaryIO, start: int) -> Iterator[_Chunk]:
    stream.seek(start)
    while data := stream.read(READ_BYTES):
        yield _Chunk(data, start, 1)
        start += len(data)


@dataclass(frozen=True)
class _Codec:
    """The compression of a file.

    Attributes:
        magic: first bytes of each frame.
        dictionary: the dictionary at the start of a zstd file, or None.
    """

    magic: bytes
    dictionary: bytes | None = None

    def inflater(self) -> Inflater:
        return gzip_inflater() if self.magic == GZIP_MAGIC else zstd_inflater(self.dictionary)


def _codec(stream: BinaryIO) -> _Codec | None:
    """The compression of a file by its first bytes; None if it is not compressed."""
    stream.seek(0)
    head = stream.read(_SKIPPABLE_HEAD_BYTES)
    if head.startswith(GZIP_MAGIC):
        return _Codec(GZIP_MAGIC)
    if head.startswith(ZSTD_MAGIC):
        return _Codec(ZSTD_MAGIC)
    if not ZSTD_SKIPPABLE.match(head):
        return None
    # The draft specification of WARC with zstd puts the dictionary into a skippable frame, itself perhaps compressed.
    content = stream.read(min(int.from_bytes(head[4:], "little"), _MAX_DICTIONARY_BYTES))
    if content.startswith(ZSTD_MAGIC):
        found = inflate_all(zstd_inflater, content, _MAX_DICTIONARY_BYTES)
        content = found.content if found.whole and not found.cut else b""
    return _Codec(ZSTD_MAGIC, content or None)


def _frame_chunks(stream: BinaryIO, start: int, codec: _Codec) -> Iterator[_Chunk]:
    """Decompresses frames one after another; damaged ones are gaps before the next intact one."""
    frame = _find_frame(stream, start, codec) if start else 0
    sync = 0 if frame is None else frame
    while frame is not None:
        following, problem = frame, None
        stream.seek(frame)
        frames = _Frames(stream, frame, codec)
        while frames.next():
            following = frames.start
            try:
                data = frames.head()
                if begins_record(data[:_PROBE_BYTES]):
                    sync = frames.start
                while data:
                    yield _Chunk(data, sync)
                    data = frames.more()
            except EOFError:
                problem = "frame-truncated"
                break
            except DAMAGE:
                problem = "frame-damaged"
                break
        else:
            if frames.finished:
                return
            following, problem = frames.start, "frame-damaged"
        yield _Chunk(b"", following, gap=problem)
        frame = _find_frame(stream, following + 1, codec)


class _Frames:
    """Consecutive frames, with only zeros and skippable zstd frames between them."""

    def __init__(self, stream: BinaryIO, start: int, codec: _Codec) -> None:
        self._stream = stream
        self._codec = codec
        self._raw = b""
        self._read_to = start
        self.start = start
        self.finished = False

    def next(self) -> bool:
        """Moves to the next frame; returns False at the end of the file (`finished`) or if no frame begins."""
        while True:
            if len(self._raw) < _SKIPPABLE_HEAD_BYTES or not self._raw.strip(b"\0"):
                more = self._read()
                if more:
                    self._raw = self._raw.lstrip(b"\0") + more
                    continue
            self.start = self._read_to - len(self._raw)
            if not ZSTD_SKIPPABLE.match(self._raw) or self._codec.magic != ZSTD_MAGIC:
                break
            self._skip(_SKIPPABLE_HEAD_BYTES + int.from_bytes(self._raw[4:_SKIPPABLE_HEAD_BYTES], "little"))
        self.finished = not self._raw.strip(b"\0")
        if not self._raw.startswith(self._codec.magic):
            return False
        self._inflater = self._codec.inflater()
        return True

    def _read(self) -> bytes:
        more = self._stream.read(READ_BYTES)
        self._read_to += len(more)
        return more

    def _skip(self, size: int) -> None:
        while size > len(self._raw) and (more := self._read()):
            size -= len(self._raw)
            self._raw = more
        self._raw = self._raw[size:]

    def head(self) -> bytes:
        """The frame's first bytes, enough to see whether a record begins there."""
        head = self.more()
        while len(head) < _PROBE_BYTES and (more := self.more()):
            head += more
        return head

    def more(self) -> bytes:
        """Further bytes of the frame; none at its end.

        Raises:
            DAMAGE: the frame is damaged.
            EOFError: the file ends inside the frame.
        """
        while not self._inflater.eof:
            if not self._raw:
                self._raw = self._read()
                if not self._raw:
                    raise EOFError
            data, self._raw = self._inflater.inflate(self._raw)
            if data:
                return data
        return b""


def _find_frame(stream: BinaryIO, start: int, codec: _Codec) -> int | None:
    """Start of the first frame at or after `start` that begins with a record; None if there is none."""
    stream.seek(start)
    raw = b""
    while more := stream.read(READ_BYTES):
        raw += more
        at = raw.find(codec.magic)
        while at >= 0:
            if _begins_frame(stream, raw[at : at + READ_BYTES], codec):
                return start + at
            at = raw.find(codec.magic, at + 1)
        kept = len(codec.magic) - 1
        start += max(0, len(raw) - kept)
        raw = raw[-kept:]
    return None


def _begins_frame(stream: BinaryIO, raw: bytes, codec: _Codec) -> bool:
    """Whether a frame that begins with `raw`, the last bytes read, is readable and begins with a record."""
    inflater = codec.inflater()
    head = b""
    behind = stream.tell()
    try:
        while len(head) < _PROBE_BYTES and not inflater.eof and raw:
            data, raw = inflater.inflate(raw)
            head += data
            if not raw and not inflater.eof and len(head) < _PROBE_BYTES:
                raw = stream.read(READ_BYTES)
    except DAMAGE:
        return False
    finally:
        stream.seek(behind)
    return begins_record(head[:_PROBE_BYTES])
