"""The type of a resource: its Content-Type if valid, else the type that its first bytes show.

Content types are parsed and combined as in the WHATWG standards "MIME Sniffing" (4.4) and "Fetch" (2.2.2: "extract a
MIME type"), and bytes are sniffed by section 7 of the former, for all crawl formats.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

HTML = "text/html"
PLAIN_TEXT = "text/plain"
PDF = "application/pdf"
XHTML_TYPES = frozenset({"application/xhtml+xml", "application/vnd.wap.xhtml+xml"})
"""Content types that are read as HTML in XML syntax."""

HTML_TYPES = frozenset({HTML}) | XHTML_TYPES
"""Content types that are read as HTML."""

PAGE_TYPES = HTML_TYPES | {PLAIN_TEXT}
"""Content types of pages."""

SNIFFED_BYTES = 1_445
"""Bytes of a resource that are sniffed, as in the standard."""

MAX_HEADER_CHARS = 4_096
"""Characters of a Content-Type header that are read."""

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]++")
_PARAMETER = re.compile(
    r';[\t\n\r ]*+(?P<name>[^;=]*+)(?:=(?:"(?P<quoted>(?:[^"\\]++|\\.?)*+)(?:"[^;]*+|\Z)|(?P<bare>[^;]*+)))?'
)
_XML_TYPE = re.compile(r"(?:application|text)/(?:[^/]++(?<=\+xml)|xml)")
_UNKNOWN = frozenset({"unknown/unknown", "application/unknown", "*/*"})
_BLANK = "\t\n\r "
_TAGS = "!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p"
_HTML_START = re.compile(rf"[\t\n\f\r ]*+<(?:(?:{_TAGS})[ >]|!--)".encode(), re.IGNORECASE)
_PIECES = (
    "a|abbr|article|aside|b|blockquote|body|br|center|code|dd|details|div|dl|dt|em|figure|font|footer|form|h[1-6]|head|"
    "header|hr|html|i|iframe|img|li|link|main|meta|nav|ol|p|pre|script|section|small|span|strong|style|sup|table|tbody|"
    "td|th|title|tr|tt|u|ul|video"
)
_MARKUP_START = re.compile(rf"\s*+(?:\ufeff\s*+)?+<(?:!doctype\s|!--|\?xml\s|(?:{_PIECES})[\s/>])", re.IGNORECASE)
_XML_START = re.compile(rb"[\t\n\f\r ]*+<\?xml")
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_MARKS = (b"\xfe\xff", b"\xff\xfe", b"\xef\xbb\xbf")
_FEED_SKIPPED = re.compile(
    rb"(?:\xef\xbb\xbf)?+(?:[\t\n\r ]++|<!--(?:[^-]++|-(?!->))*+-->|<\?(?:[^?]++|\?(?!>))*+\?>|<![^->][^>]*+>)*+"
)
_FEED_START = re.compile(rb"<(?:rss|feed|rdf:RDF)(?![\w:.-])")
_OTHER_STARTS = (
    *((b"GIF8", "image/gif"), (b"\x89PNG", "image/png"), (b"\xff\xd8\xff", "image/jpeg")),
    *(
        (b"\x1f\x8b\x08", "application/gzip"),
        (b"PK\x03\x04", "application/zip"),
        (b"Rar \x1a\x07", "application/x-rar"),
    ),
    *((b"%!PS-Adobe-", "application/postscript"), (b"wOFF", "font/woff"), (b"wOF2", "font/woff2")),
)


class MediaType(NamedTuple):
    """A content type.

    Attributes:
        essence: type and subtype in lower case.
        charset: label of the character encoding, None if there is none.
    """

    essence: str
    charset: str | None


@lru_cache(maxsize=1_024)
def content_type(header: str | None) -> MediaType | None:
    """The content type of a header, which may have several values; None if none is valid.

    The last valid one counts, with the character encoding of the previous ones if they have the same type.
    """
    found: MediaType | None = None
    for value in _values((header or "")[:MAX_HEADER_CHARS]):
        parsed = _parse(value)
        if parsed is None or parsed.essence == "*/*":
            continue
        if found is not None and parsed.charset is None and parsed.essence == found.essence:
            parsed = MediaType(parsed.essence, found.charset)
        found = parsed
    return found


def _values(header: str) -> list[str]:
    """The values of a header, separated by commas outside of quotes."""
    values, begin, quoted, escaped = [], 0, False, False
    if '"' not in header:
        return header.split(",")
    for place, character in enumerate(header):
        if escaped:
            escaped = False
        elif quoted and character == "\\":
            escaped = True
        elif character == '"':
            quoted = not quoted
        elif character == "," and not quoted:
            values.append(header[begin:place])
            begin = place + 1
    return [*values, header[begin:]]


def _parse(value: str) -> MediaType | None:
    essence, mark, parameters = value.strip(_BLANK).partition(";")
    kind, slash, subtype = essence.rstrip(_BLANK).partition("/")
    if not slash or _TOKEN.fullmatch(kind) is None or _TOKEN.fullmatch(subtype) is None:
        return None
    for found in _PARAMETER.finditer(mark + parameters):
        if found["name"].lower() == "charset":
            label = found["bare"].rstrip(_BLANK) if found["quoted"] is None and found["bare"] else found["quoted"]
            if label:
                return MediaType(essence.rstrip(_BLANK).lower(), label)
    return MediaType(essence.rstrip(_BLANK).lower(), None)


def media_type(header: str | None) -> str | None:
    """The type in a Content-Type header, in lower case and without parameters; None if none is valid."""
    found = content_type(header)
    return None if found is None else found.essence


def is_sniffed(essence: str | None) -> bool:
    """Whether a type from `media_type` is to be ignored, so that the bytes decide."""
    return essence is None or essence in _UNKNOWN


def may_be_page(essence: str | None) -> bool:
    """Whether a resource with a type from `media_type` is a page or may be one."""
    return is_sniffed(essence) or essence in PAGE_TYPES


def is_xml(essence: str) -> bool:
    """Whether a type is an XML type, including XHTML."""
    return _XML_TYPE.fullmatch(essence) is not None


def computed_type(essence: str | None, body: bytes, *, nosniff: bool = False) -> str:
    """The type of a resource.

    Args:
        essence: its declared type, or None.
        body: its bytes, content encodings undone.
        nosniff: whether HTML must not be detected from the bytes (X-Content-Type-Options).
    """
    head = body[:SNIFFED_BYTES]
    if is_sniffed(essence):
        return _sniffed(head, scriptable=not nosniff)
    assert essence is not None
    if essence == HTML and not nosniff and _FEED_START.match(head, _FEED_SKIPPED.match(head).end()):  # type: ignore[union-attr]
        return "application/xml"
    if is_xml(essence) and essence not in XHTML_TYPES and _is_xhtml(head):
        return "application/xhtml+xml"
    if essence == PLAIN_TEXT and not nosniff and is_binary(head):
        return "application/octet-stream"
    return essence


def is_binary(body: bytes) -> bool:
    """Whether declared plain text is binary: servers declare unknown files as plain text (7.2)."""
    return not body.startswith(_MARKS) and not is_text(body)


def _sniffed(head: bytes, *, scriptable: bool) -> str:
    if scriptable and looks_like_html(head):
        return HTML
    if scriptable and _XML_START.match(head):
        return "application/xhtml+xml" if _is_xhtml(head) else "text/xml"
    if head.startswith(b"%PDF-"):
        return PDF
    if head.startswith(_MARKS):
        return PLAIN_TEXT
    known = next((essence for start, essence in _OTHER_STARTS if head.startswith(start)), None)
    return known or (PLAIN_TEXT if is_text(head) else "application/octet-stream")


def looks_like_html(body: bytes) -> bool:
    """Whether bytes begin like HTML by the standard."""
    return _HTML_START.match(body[:SNIFFED_BYTES]) is not None


def _is_xhtml(head: bytes) -> bool:
    """Whether an XML document has an XHTML root element."""
    skipped = _FEED_SKIPPED.match(head)
    root = head[skipped.end() :] if skipped else head
    return re.match(rb"<(?:[\w.-]+:)?html[\s>]", root) is not None and b"http://www.w3.org/1999/xhtml" in root


def is_text(body: bytes) -> bool:
    """Whether the beginning of a body has no bytes that only occur in binary data."""
    return _BINARY.search(body[:SNIFFED_BYTES]) is None


def looks_like_markup(text: str) -> bool:
    """Whether a text without a declared type is HTML, or a fragment of it."""
    return _MARKUP_START.match(text[:SNIFFED_BYTES]) is not None
