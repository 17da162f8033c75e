"""HTTP messages as crawlers keep them: status, the few headers that matter here, and the body as it was meant.

Archives are full of messages whose headers promise an encoding that the crawler had already undone, so a promise is
checked against the bytes before it is believed.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from io import BytesIO

from fastwarc.stream_io import BrotliReader, ZstdReader

HEADERS = frozenset({"content-type", "content-encoding", "transfer-encoding", "location", "x-robots-tag", "refresh"})
"""Headers that are kept, in lower case."""

MAX_HEADER_BYTES = 1 << 16
"""Bytes in which the empty line after the headers must come: servers themselves refuse 8-64 KiB."""

MAX_ENCODINGS = 4
"""Content encodings of a body that are undone: servers apply one, and each may cost as much as a whole record."""

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"})
"""Content types that are read as HTML."""

_HEADER_END = re.compile(rb"\r?\n\r?\n")
_STATUS_LINE = re.compile(rb"(?:HTTP/[0-9.]+|ICY)[ \t]+([0-9]{3})(?:[ \t\r\n]|$)", re.IGNORECASE)
_CHUNK_HEAD = re.compile(rb"[ \t]*([0-9a-fA-F]{1,16})[ \t]*(?:;[^\r\n]*)?\r?\n")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([^\"'\s;,]+)", re.IGNORECASE)
_LOOKS_LIKE_HTML = re.compile(
    rb"\s*(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body|title|meta|script|div|p|a|table)\b"
)


@dataclass(frozen=True)
class HttpMessage:
    """A response.

    Attributes:
        status: the status code.
        headers: values of the headers in `HEADERS` that are there, by lower-case name; of repeated ones the first.
        body: the body as stored.
    """

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def content_type(self) -> str | None:
        """The media type in lower case, without parameters; None where there is none."""
        return media_type(self.headers.get("content-type"))

    @property
    def charset(self) -> str | None:
        """The label of the character encoding in the Content-Type header; None where there is none."""
        found = _CHARSET.search(self.headers.get("content-type", ""))
        return found[1] if found else None


@dataclass(frozen=True)
class Body:
    """A body with its encodings undone.

    Attributes:
        content: the bytes.
        problem: why `content` is not all of it (body-truncated, body-too-large, body-undecodable); None if it is.
    """

    content: bytes
    problem: str | None


def parse_http(block: bytes) -> HttpMessage | None:
    """Parse a stored response; None where the bytes are no HTTP response."""
    status = _STATUS_LINE.match(block)
    if status is None:
        return None
    end = _HEADER_END.search(block, 0, MAX_HEADER_BYTES)
    if end is None:
        if len(block) > MAX_HEADER_BYTES:
            return None
        head, body = block, b""
    else:
        head, body = block[: end.start()], block[end.end() :]
    headers: dict[str, str] = {}
    for line in head.split(b"\n")[1:]:
        name, colon, value = line.partition(b":")
        if colon:
            key = name.strip().lower().decode("latin-1")
            if key in HEADERS:
                headers.setdefault(key, header_text(value.strip()))
    return HttpMessage(int(status[1]), headers, body)


def header_text(value: bytes) -> str:
    """A header's characters: UTF-8 where it is valid, else Latin-1, which HTTP used to be in."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def media_type(content_type: str | None) -> str | None:
    """The media type of a Content-Type header in lower case, without parameters."""
    return content_type.partition(";")[0].strip().lower() or None if content_type else None


def looks_like_html(body: bytes) -> bool:
    """Whether a body without a content type begins as HTML does."""
    return _LOOKS_LIKE_HTML.match(body[:2048].lower()) is not None


def decode_body(message: HttpMessage, max_bytes: int) -> Body:
    """Undo the transfer and content encodings of a body.

    Args:
        message: the response.
        max_bytes: length at which the decoded body is cut, so that a small bomb can't fill the memory.
    """
    content, problem = message.body, None
    if "chunked" in message.headers.get("transfer-encoding", "").lower() and _CHUNK_HEAD.match(content):
        content, whole = _join_chunks(content)
        problem = None if whole else "body-truncated"
    encodings = message.headers.get("content-encoding", "").lower().split(",")
    if len(encodings) > MAX_ENCODINGS:
        return Body(b"", "body-undecodable")
    for encoding in reversed(encodings):
        decoded = _decompress(content, encoding.strip(), max_bytes)
        content, problem = decoded.content, decoded.problem or problem
    if len(content) > max_bytes:
        return Body(content[:max_bytes], "body-too-large")
    return Body(content, problem)


def _join_chunks(content: bytes) -> tuple[bytes, bool]:
    """The chunks' bytes, and whether the last chunk was there."""
    chunks: list[bytes] = []
    position = 0
    while True:
        head = _CHUNK_HEAD.match(content, position)
        if head is None:
            chunks.append(content[position:] if not chunks else b"")
            return b"".join(chunks), False
        size = int(head[1], 16)
        if size == 0:
            return b"".join(chunks), True
        chunks.append(content[head.end() : head.end() + size])
        position = head.end() + size
        if position >= len(content):
            return b"".join(chunks), False
        position += 2 if content.startswith(b"\r\n", position) else content.startswith(b"\n", position)


def _decompress(content: bytes, encoding: str, max_bytes: int) -> Body:
    if encoding in ("gzip", "x-gzip") and content.startswith(b"\x1f\x8b"):
        return _inflate(content, 16 + zlib.MAX_WBITS, max_bytes)
    if encoding == "deflate" and content:
        # The name means zlib, but some servers send the bare stream; a text that is neither had been decoded before.
        zlib_head = len(content) > 1 and content[0] & 0x0F == 8 and int.from_bytes(content[:2], "big") % 31 == 0
        body = _inflate(content, zlib.MAX_WBITS if zlib_head else -zlib.MAX_WBITS, max_bytes)
        return Body(content, None) if body.problem == "body-undecodable" else body
    if encoding == "zstd" and content.startswith(b"\x28\xb5\x2f\xfd"):
        return _read_all(ZstdReader(BytesIO(content)), max_bytes)
    if encoding == "br" and content and not content.lstrip().startswith(b"<"):
        return _read_all(BrotliReader(BytesIO(content)), max_bytes)
    return Body(content, None)


def _inflate(content: bytes, window_bits: int, max_bytes: int) -> Body:
    inflater = zlib.decompressobj(window_bits)
    parts: list[bytes] = []
    size = 0
    try:
        while content and not inflater.eof and size <= max_bytes:
            part = inflater.decompress(content, max_bytes + 1 - size)
            parts.append(part)
            size += len(part)
            content = inflater.unconsumed_tail
    except zlib.error:
        return Body(b"".join(parts), "body-truncated" if size else "body-undecodable")
    if size > max_bytes:
        return Body(b"".join(parts)[:max_bytes], "body-too-large")
    return Body(b"".join(parts), None if inflater.eof else "body-truncated")


def _read_all(reader: ZstdReader | BrotliReader, max_bytes: int) -> Body:
    parts: list[bytes] = []
    size = 0
    try:
        while size <= max_bytes and (part := reader.read(min(1 << 16, max_bytes + 1 - size))):
            parts.append(part)
            size += len(part)
    except (OSError, ValueError):
        return Body(b"".join(parts), "body-truncated" if size else "body-undecodable")
    if size > max_bytes:
        return Body(b"".join(parts)[:max_bytes], "body-too-large")
    return Body(b"".join(parts), None)
