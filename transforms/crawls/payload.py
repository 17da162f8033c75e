"""HTTP messages in archives: status, the relevant headers, and the decoded body.

Headers in archives often name an encoding that the crawler has already undone, so encodings are checked against the
bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from semrank.transforms.crawls import media
from semrank.transforms.streams import inflate
from semrank.transforms.streams.inflate import Inflated
from semrank.transforms.streams.texts import text_or_escapes

HEADERS = frozenset(
    {
        *("content-type", "content-encoding", "transfer-encoding", "location", "refresh", "x-robots-tag"),
        "x-content-type-options",
    }
)
"""Headers that are kept, in lower case."""

MAX_HEADER_BYTES = 1 << 16
"""Maximum bytes of the headers: servers themselves refuse more than 8-64 KiB."""

MAX_ENCODINGS = 4
"""Maximum number of content encodings that are undone: servers apply one, and each may cost as much as a record."""

_LISTS = frozenset({"content-type", "content-encoding", "transfer-encoding"})
"""Headers whose repetitions form one list (RFC 9110, 5.3)."""

_LINES = frozenset({"x-robots-tag"})
"""Headers whose repetitions are kept apart, one a line, since their first part applies to the rest of the line."""

_HEADER_END = re.compile(rb"\r?\n\r?\n")
_BARE_HEADER_END = re.compile(rb"\r\r")
_STATUS_LINE = re.compile(rb"(?:HTTP/[0-9.]++|ICY)[ \t]++([1-9][0-9]{2})(?:[ \t\r\n]|\Z)", re.IGNORECASE)
_TUNNEL = re.compile(rb"HTTP/[0-9.]++[ \t]++200[ \t]++connection established", re.IGNORECASE)
_LINE_END = re.compile(rb"\r{0,2}\n|\r")
_FOLD = re.compile(rb"\r?\n[ \t]++")  # a header that continues in the next line (RFC 9112, 5.2)
_CHUNK_HEAD = re.compile(rb"[ \t]*+([0-9a-fA-F]{1,16}+)[ \t]*+(?:;[^\r\n]*+)?\r?\n")
_INTERIM = range(100, 200)
_SWITCHED = 101  # what follows is not HTTP


@dataclass(frozen=True)
class HttpMessage:
    """A response.

    Attributes:
        status: the status code.
        headers: values of the headers in `HEADERS` by lower-case name, as `combined_headers` returns them.
        body: the body as stored.
    """

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def content_type(self) -> str | None:
        """The media type in lower case, without parameters; None if there is no valid one."""
        return media.media_type(self.headers.get("content-type"))

    @property
    def charset(self) -> str | None:
        """The label of the character encoding in the Content-Type header; None if there is none."""
        found = media.content_type(self.headers.get("content-type"))
        return None if found is None else found.charset

    @property
    def nosniff(self) -> bool:
        """Whether the server forbids content sniffing."""
        return self.headers.get("x-content-type-options", "").strip().lower() == "nosniff"


@dataclass(frozen=True)
class Body:
    """A body with its encodings undone.

    Attributes:
        content: the bytes.
        problem: why `content` is incomplete (body-truncated, body-too-large, body-undecodable), or None.
    """

    content: bytes
    problem: str | None


def parse_http(block: bytes) -> HttpMessage | None:
    """Parses a stored response; returns None if the bytes are not an HTTP response.

    Interim responses (1xx) (RFC 9110, 15.2) and a proxy's response about its tunnel are skipped.
    """
    at = 0
    while True:
        status = _STATUS_LINE.match(block, at)
        if status is None:
            return None
        limit = at + MAX_HEADER_BYTES
        line_end = _LINE_END.search(block, at, limit)
        bare = line_end is not None and line_end[0] == b"\r"  # line ends of some servers of the nineties
        end = (_BARE_HEADER_END if bare else _HEADER_END).search(block, at, limit)
        if end is None and len(block) > limit:
            return None
        head_end, body = (len(block), len(block)) if end is None else end.span()
        code = int(status[1])
        is_interim = (code in _INTERIM and code != _SWITCHED) or _TUNNEL.match(block, at) is not None
        if not is_interim or _STATUS_LINE.match(block, body) is None:
            return HttpMessage(code, _headers(block[at:head_end], b"\r" if bare else b"\n"), block[body:])
        at = body


def _headers(head: bytes, line_end: bytes) -> dict[str, str]:
    values: dict[str, list[str]] = {}
    for line in _FOLD.sub(b" ", head).split(line_end)[1:]:
        name, colon, value = line.partition(b":")
        if colon:
            key = name.strip().lower().decode("latin-1")
            if key in HEADERS:
                text = text_or_escapes if key == "location" else header_text
                values.setdefault(key, []).append(text(value.strip()))
    return combined_headers(values)


def combined_headers(values: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """One value for each header from all its values in order; names are in lower case.

    Lists are joined by commas (RFC 9110, 5.3), X-Robots-Tag by line ends, as `robots.Robots.header` expects; of other
    headers the first non-empty value counts.
    """
    combined: dict[str, str] = {}
    for name, several in values.items():
        if name in _LISTS:
            combined[name] = ", ".join(filter(None, several))
        elif name in _LINES:
            combined[name] = "\n".join(several)
        else:
            combined[name] = next(filter(None, several), "")
    return combined


def headers_of_json(headers: Mapping[str, Any]) -> dict[str, str]:
    """Headers of a JSON object by lower-case name, as from `combined_headers`; repeated ones are lists in it."""
    values: dict[str, list[str]] = {}
    for name, value in headers.items():
        several = value if isinstance(value, list) else [value]
        values.setdefault(name.lower(), []).extend(one for one in several if isinstance(one, str))
    return combined_headers({name: several for name, several in values.items() if several})


def header_text(value: bytes) -> str:
    """A header's characters: UTF-8 if valid, else Latin-1, the former encoding of HTTP."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def decode_body(message: HttpMessage, max_bytes: int) -> Body:
    """Undoes the transfer and content encodings of a body.

    Args:
        message: the response.
        max_bytes: length at which the decoded body is cut, as protection against decompression bombs.
    """
    transfers = _names(message.headers.get("transfer-encoding"))
    encodings = [*_names(message.headers.get("content-encoding")), *(name for name in transfers if name != "chunked")]
    if len(encodings) > MAX_ENCODINGS:
        return Body(b"", "body-undecodable")
    content, problem = message.body, None
    is_text = message.content_type == media.PLAIN_TEXT
    if "chunked" in transfers:
        content, whole = _join_chunks(content, is_text=is_text)
        problem = None if whole else "body-truncated"
    elif message.content_type in media.HTML_TYPES and _CHUNK_HEAD.match(content):  # although no header says so
        joined, whole = _join_chunks(content, is_text=is_text)
        content = joined if whole else content
    stored = content
    for encoding in reversed(encodings):
        decoded = _decompress(content, encoding, max_bytes)
        content, problem = decoded.content, decoded.problem or problem
    if message.content_type in media.PAGE_TYPES:  # compressed although no header says so, perhaps once more
        for _ in range(MAX_ENCODINGS - len(encodings)):
            make = inflate.inflater_for(content[: inflate.MAGIC_BYTES])
            if make is None:
                break
            decoded = _body(inflate.inflate_all(make, content, max_bytes))
            content, problem = decoded.content, decoded.problem or problem
    if encodings and content is stored and _is_compressed(content, message):
        return Body(b"", "body-undecodable")
    if len(content) > max_bytes:
        return Body(content[:max_bytes], "body-too-large")
    return Body(content, problem)


def _is_compressed(content: bytes, message: HttpMessage) -> bool:
    """Whether the content of a page with a declared encoding is binary data."""
    if message.content_type not in media.PAGE_TYPES or (message.charset or "").lower().startswith("utf-16"):
        return False
    return media.is_binary(content) and not media.looks_like_html(content)


def _names(header: str | None) -> list[str]:
    names = [name.strip().lower() for name in (header or "").split(",", MAX_ENCODINGS + 2)]
    return [name for name in names if name not in ("", "identity")]


def _join_chunks(content: bytes, *, is_text: bool) -> tuple[bytes, bool]:
    """The chunks' bytes, and whether the last chunk is there; other content is returned as it is."""
    chunks: list[bytes] = []
    position = 0
    while True:
        head = _CHUNK_HEAD.match(content, position)
        if head is None:
            return (b"".join(chunks), False) if chunks else (content, True)
        size = int(head[1], 16)
        if size == 0:
            return b"".join(chunks), True
        position = head.end() + size
        line_end = 2 if content.startswith(b"\r\n", position) else int(content.startswith(b"\n", position))
        cut = position >= len(content)
        if not chunks and (is_text if cut else not line_end):  # a text that begins with a number, already joined
            return content, True
        chunks.append(content[head.end() : position])
        if cut:
            return b"".join(chunks), False
        position += line_end


def _decompress(content: bytes, encoding: str, max_bytes: int) -> Body:
    """The content with one encoding undone, or as it is if the crawler has undone it already."""
    make = inflate.inflater_for(content[: inflate.MAGIC_BYTES])
    if make is None and content.startswith(_GZIP_HEAD) and encoding in ("gzip", "x-gzip"):
        make = inflate.gzip_inflater
    if make is not None:
        if encoding in _COMPRESSED:
            return _body(inflate.inflate_all(make, content, max_bytes))
    elif not content or _is_text(content):
        return Body(content, None)
    elif encoding in _DEFLATED:
        # deflate means zlib, but some servers send the bare stream, or call either gzip; text was decoded already.
        zlib_head = len(content) > 1 and content[0] & 0x0F == 8 and int.from_bytes(content[:2], "big") % 31 == 0
        inflater = inflate.zlib_inflater if zlib_head else inflate.deflate_inflater
        found = inflate.inflate_all(inflater, content, max_bytes)
        return _body(found) if found.content or found.whole else Body(content, None)
    elif encoding == "br":
        found = inflate.unbrotli(content, max_bytes)
        return Body(content, None) if not found.whole and media.is_text(content) else _body(found)
    return Body(content, None)


_GZIP_HEAD = inflate.GZIP_MAGIC[:2]
_DEFLATED = frozenset({"deflate", "gzip", "x-gzip"})
_COMPRESSED = frozenset({*_DEFLATED, "zstd", "br", "bzip2", "x-bzip2", "compress", "x-compress"})


def _is_text(content: bytes) -> bool:
    """Whether the content looks uncompressed: its beginning is UTF-8 without control characters."""
    head = content[: media.SNIFFED_BYTES]
    if not media.is_text(head):
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as cause:
        return cause.reason == "unexpected end of data"
    return True


def _body(found: Inflated) -> Body:
    if found.cut:
        return Body(found.content, "body-too-large")
    if found.whole:
        return Body(found.content, None)
    return Body(found.content, "body-truncated" if found.content else "body-undecodable")
