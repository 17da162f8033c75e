"""Titles of documents other than HTML: PDF, and feeds and other XML.

Their text is not read, but a title describes the document and shows that it was fetched. Unreadable documents have no
title; nothing is raised.
"""

from __future__ import annotations

import codecs
import html
import re

from semrank.transforms.crawls.charsets import decode_html
from semrank.transforms.crawls.html import MAX_TITLE_CHARS, text_of_markup
from semrank.transforms.crawls.links import squeeze
from semrank.transforms.crawls.media import PDF, is_xml

_HEAD_BYTES = 1 << 16  # in which the title of an XML document stands, if it is the document's
_XML_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)"
    r"|<(?P<end>/?)(?P<prefix>[\w.-]{1,99}:)?(?P<name>[\w.-]{1,99})(?P<attributes>\s[^<>]{0,500}+)?(?P<empty>/?)>",
    re.DOTALL,
)
_XML_TEXT = re.compile(r"([^<]{0,2000}+|\s*+<!\[CDATA\[(?:[^\]]|\](?!\]>)){0,2000}+\]\]>\s*+)</")
_PARTS = frozenset({"item", "entry", "image", "source", "textInput", "textinput"})
"""Elements of feeds with titles of their own, which may precede the feed's title."""

_TYPE = re.compile(r"""\stype\s*+=\s*+["'](x?html)["']""")
_CDATA = re.compile(r"<!\[CDATA\[(.*)\]\]>", re.DOTALL)

_INFO = re.compile(rb"/Info\s{1,9}([0-9]{1,9})\s{1,9}([0-9]{1,5})\s{1,9}R")
_INFO_BYTES = 1 << 14
_LITERAL = re.compile(rb"/Title\s{0,9}\(((?:[^()\\]|\\.|\((?:[^()\\]|\\.){0,500}+\)){0,5000}+)\)", re.DOTALL)
_HEXADECIMAL = re.compile(rb"/Title\s{0,9}<([0-9A-Fa-f\s]{0,20000})>")
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|\r\n|.)", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f", b"\n": b"", b"\r": b"", b"\r\n": b""}
_XMP_TITLE = re.compile(rb"<dc:title>\s{0,99}<rdf:Alt>\s{0,99}<rdf:li[^<>]{0,99}>([^<]{0,5000})</rdf:li>")


def may_have_title(content_type: str | None) -> bool:
    """Whether `document_title` knows titles of the type (in lower case)."""
    return content_type is not None and (content_type == PDF or is_xml(content_type))


def document_title(content_type: str | None, body: bytes, charset: str | None = None) -> str | None:
    """The title of a document other than HTML; None if it has none or its type is not supported.

    Args:
        content_type: media type in lower case.
        body: the document.
        charset: label of the character encoding in the Content-Type header, if any.
    """
    if content_type == PDF:
        title = _pdf_title(body)
    elif may_have_title(content_type):
        title = _xml_title(decode_html(body[:_HEAD_BYTES], charset, xml=True).text)
    else:
        title = None
    return squeeze(title, MAX_TITLE_CHARS)


def _xml_title(text: str) -> str | None:
    """The title of the document, not of a part of it; one in a namespace without a prefix is preferred."""
    parts, prefixed = 0, None
    for token in _XML_TOKEN.finditer(text):
        if token["name"] is None or token["empty"] or (token["attributes"] or "").endswith("/"):
            continue
        if token["name"] in _PARTS:
            parts = max(0, parts - 1) if token["end"] else parts + 1
        elif token["name"] == "title" and not token["end"] and not parts:
            if token["prefix"] is None and (title := _xml_words(text, token)) is not None:
                return title
            if prefixed is None:
                prefixed = _xml_words(text, token)
    return prefixed


def _xml_words(text: str, title: re.Match[str]) -> str | None:
    """The text of an XML element; for Atom's text constructs with markup (RFC 4287, 3.1.1) without the markup."""
    kind = _TYPE.search(title["attributes"] or "")
    if kind is not None and kind[1] == "xhtml":
        end = text.find(f"</{title['prefix'] or ''}title", title.end())
        return text_of_markup(text[title.end() : end]) if end > 0 else None
    found = _XML_TEXT.match(text, title.end())
    if found is None:
        return None
    quoted = _CDATA.search(found[1])
    words = quoted[1] if quoted else html.unescape(found[1])
    return words if kind is None else text_of_markup(words)


def _pdf_title(body: bytes) -> str | None:
    """The title in the information dictionary (ISO 32000-1, 14.3.3), or that of the XMP metadata.

    Bookmarks have titles as well, so the dictionary of the last trailer is used. If it is encrypted or in a compressed
    object stream, only XMP can be read.
    """
    trailers = _INFO.findall(body)
    if trailers and b"/Encrypt" not in body:
        number, generation = trailers[-1]
        found = re.search(rb"(?<![0-9])%d\s{1,9}%d\s{1,9}obj" % (int(number), int(generation)), body)
        if found is not None:
            entries = body[found.end() : found.end() + _INFO_BYTES].partition(b"endobj")[0]
            literal, hexadecimal = _LITERAL.search(entries), _HEXADECIMAL.search(entries)
            if literal is not None:
                return _pdf_text(_ESCAPE.sub(_unescape, literal[1]))
            if hexadecimal is not None:
                digits = b"".join(hexadecimal[1].split())
                return _pdf_text(bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode("ascii")))
    named = _XMP_TITLE.search(body)
    return html.unescape(named[1].decode("utf-8", "replace")) if named else None


def _unescape(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8) & 0xFF]) if code.isdigit() and code < b"8" else _ESCAPED.get(code, code)


def _pdf_text(value: bytes) -> str:
    """A text string: UTF-16 or UTF-8 with a byte order mark, else PDFDocEncoding, which is nearly Latin-1."""
    if value.startswith(codecs.BOM_UTF16_BE):
        return value[2:].decode("utf-16-be", "replace")
    if value.startswith(codecs.BOM_UTF8):
        return value[3:].decode("utf-8", "replace")
    return value.decode("latin-1").replace("\0", " ")
