"""The characters of a page, by the WHATWG encoding standard and the encoding sniffing of the HTML standard.

In this order: byte order mark, Content-Type header, declaration on the page (the standard's prescan), UTF-8 where it is
valid, a guess. Labels have the standard's meaning (`iso-8859-1` is windows-1252); unknown labels are passed over.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5

PRESCAN_BYTES = 1_024
"""Bytes of a page that are searched for a declaration whatever stands in them, as the standard has it."""

MAX_PRESCAN_BYTES = 1 << 16
"""Bytes in which a declaration counts that stands in the page's head, as in Chromium."""

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_WIDE_STARTS = tuple(("<?x".encode(encoding), encoding) for encoding in ("utf-16-le", "utf-16-be"))
# The standard reads these by larger tables, which the codecs know by other names.
_SUPERSETS = {"gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949", "big5": "big5hkscs", "iso8859-11": "cp874"}
# Labels whose encodings Resiliparse leaves out; declared on a page, the first one is windows-1252.
_OTHER_LABELS = {"x-user-defined": "cp1252", "x-mac-cyrillic": "mac_cyrillic", "x-mac-ukrainian": "mac_cyrillic"}
_EUC_JP, _ISO_2022_JP = frozenset({"euc-jp", "euc_jp"}), frozenset({"iso-2022-jp", "iso2022_jp"})

_COMMENT_END = re.compile(rb"-->")
_TAG = re.compile(rb"<(?P<end>/?)(?P<name>[A-Za-z][^\t\n\f\r >]*+)")
_MARKUP = re.compile(rb"<(?:!--|[!/?]|[A-Za-z])")
_ATTRIBUTE = re.compile(
    rb"[\t\n\f\r /]*+(?P<name>[^\t\n\f\r />][^\t\n\f\r />=]*+)"
    rb"(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:\"(?P<double>[^\"]*+)(?:\"|\Z)|'(?P<single>[^']*+)(?:'|\Z)"
    rb"|(?P<bare>[^\t\n\f\r >]*+)))?"
)
_CHARSET_IN_CONTENT = re.compile(
    rb"charset[\t\n\f\r ]*+=[\t\n\f\r ]*+"
    rb"(?:\"(?P<double>[^\"]*+)\"|'(?P<single>[^']*+)'|(?P<bare>[^\t\n\f\r ;\"'][^\t\n\f\r ;]*+))",
    re.IGNORECASE,
)
_XML_DECLARATION = re.compile(rb"<\?xml(?P<inside>[^>]{0,1000}+)>")
_XML_ENCODING = re.compile(rb"encoding[\x00-\x20]*+=[\x00-\x20]*+(?:\"([^\"]*+)\"|'([^']*+)')")
_RAW = frozenset({b"script", b"style", b"title", b"textarea", b"xmp", b"iframe", b"noembed", b"noframes"})
_HEAD = frozenset({b"html", b"head", b"meta", b"base", b"link", b"object", b"noscript", b"template"}) | _RAW

_ISO_2022_JP_ESCAPE = re.compile(rb"\x1b(\([BJI]|\$[@B])")
_JIS_PAIRS = re.compile(rb"[\x21-\x7e]{2}+")
# Six characters of JIS X 0208 for which Windows, and so the standard, has other ones than Python's codec.
_AS_WINDOWS = {0x301C: 0xFF5E, 0x2016: 0x2225, 0x2212: 0xFF0D, 0x00A2: 0xFFE0, 0x00A3: 0xFFE1, 0x00AC: 0xFFE2}
_FROM_WINDOWS = {windows: own for own, windows in _AS_WINDOWS.items()}

_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_QUERY_ESCAPES = frozenset({*range(0x21), *b"\"#'<>", *range(0x7F, 0x100)})
"""The URL standard's "special-query percent-encode set"."""


class Characters(NamedTuple):
    """The characters of a page, and the codec that they were read by."""

    text: str
    encoding: str


def decode_html(body: bytes, charset: str | None = None, *, xml: bool = False) -> Characters:
    """The characters of a page.

    Args:
        body: the page's bytes.
        charset: label of the encoding in the Content-Type header, if any.
        xml: whether the page is XML, whose declaration counts and whose default is UTF-8.

    Returns:
        The page; bytes that its encoding does not have became U+FFFD.
    """
    for mark, encoding in _BOMS:
        if body.startswith(mark):
            return Characters(body[len(mark) :].decode(encoding, "replace"), encoding)
    declared = codec_of(charset) or _wide_encoding(body) or (_xml_encoding(body) if xml else declared_encoding(body))
    if declared is not None:
        return _decode(body, declared)
    if b"\x1b" not in body:  # the escape-driven encodings are valid UTF-8 as well
        try:
            return Characters(body.decode("utf-8"), "utf-8")
        except UnicodeDecodeError:
            pass
    return _decode(body, codec_of(detect_encoding(body)) or "utf-8")


def encode_query(reference: str, encoding: str) -> str:
    """A reference on a page as browsers send it: characters of its query are those bytes that the page has for them.

    URL standard, "percent-encode after encoding"; a character that the encoding lacks becomes `%26%23NUMBER%3B`.

    Args:
        reference: a URL, or a reference relative to one.
        encoding: codec of the page, as `decode_html` gives it.
    """
    head, mark, query = reference.partition("?")
    if not mark or query.isascii() or "#" in head or encoding.startswith("utf"):
        return reference
    query, fragment_mark, fragment = query.partition("#")
    if encoding in _EUC_JP or encoding in _ISO_2022_JP:
        query = query.translate(_FROM_WINDOWS)
    encoded = _NOT_ASCII.sub(lambda run: _escaped(run[0].encode(encoding, "semrank-url-query")), query)
    return f"{head}?{encoded}{fragment_mark}{fragment}"


def _escaped(content: bytes) -> str:
    return "".join(f"%{byte:02X}" if byte in _QUERY_ESCAPES else chr(byte) for byte in content)


def _character_number(error: UnicodeError) -> tuple[bytes, int]:
    """Error handler of `encode_query`: the escaped reference to a character that an encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return b"".join(b"%%26%%23%d%%3B" % ord(character) for character in lacking), error.end


codecs.register_error("semrank-url-query", _character_number)


def codec_of(label: str | None) -> str | None:
    """The codec of an encoding's label; None for labels that the standard does not have."""
    label = label.strip("\t\n\f\r \"'") if label else None
    if not label or not label.isascii():
        return None
    own = _OTHER_LABELS.get(label.lower())
    if own is not None:
        return own
    encoding = map_encoding_to_html5(label, False)
    return _SUPERSETS.get(encoding, encoding) if encoding is not None else None


def _decode(body: bytes, encoding: str) -> Characters:
    if encoding in _EUC_JP:
        return Characters(body.decode("euc_jp", "semrank-windows-31j").translate(_AS_WINDOWS), encoding)
    if encoding in _ISO_2022_JP:
        return Characters("".join(_iso_2022_jp(body)), encoding)
    return Characters(body.decode(encoding, "replace"), encoding)


def _nec_rows(error: UnicodeError) -> tuple[str, int]:
    """Error handler for EUC-JP: the rows that Windows-31J adds to JIS X 0208; U+FFFD for what it doesn't have."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    pair = error.object[error.start : error.start + 2]
    if len(pair) == 2 and 0xA1 <= pair[0] <= 0xFE and 0xA1 <= pair[1] <= 0xFE:
        return _jis_pair(bytes([pair[0] & 0x7F, pair[1] & 0x7F])), error.start + 2
    return "\ufffd", error.start + 1


codecs.register_error("semrank-windows-31j", _nec_rows)


@lru_cache(maxsize=94 * 94)
def _jis_pair(pair: bytes) -> str:
    """The character of two bytes of JIS X 0208 (7 bits each) by Windows-31J."""
    row, cell = pair[0] - 0x21, pair[1] - 0x21
    lead = row // 2 + (0x81 if row < 62 else 0xC1)
    trail = (0x9F + cell) if row % 2 else 0x40 + cell + (cell >= 63)
    return bytes([lead, trail]).decode("cp932", "replace")[:1]


def _iso_2022_jp(body: bytes) -> Iterator[str]:
    parts = _ISO_2022_JP_ESCAPE.split(body)
    yield parts[0].decode("ascii", "replace")
    for escape, part in zip(parts[1::2], parts[2::2], strict=True):
        if escape == b"(I":
            yield bytes(byte | 0x80 if 0x21 <= byte <= 0x5F else byte for byte in part).decode("cp932", "replace")
        elif escape == b"(J":
            yield part.decode("ascii", "replace").replace("\\", "\u00a5").replace("~", "\u203e")
        elif escape == b"(B":
            yield part.decode("ascii", "replace")
        else:
            pairs = _JIS_PAIRS.sub(lambda found: bytes([found[0][0] | 0x80, found[0][1] | 0x80]), part)
            yield pairs.decode("euc_jp", "semrank-windows-31j").translate(_AS_WINDOWS)


def declared_encoding(body: bytes) -> str | None:
    """The codec that a page declares in a `meta` element or, failing this, an XML declaration; None if it does not.

    This is the standard's prescan: comments, other attributes and other elements' attributes don't count. Content of
    scripts, styles and titles doesn't either, as in Chromium.
    """
    head = body[:MAX_PRESCAN_BYTES]
    position = 0
    while (found := _MARKUP.search(head, position)) is not None:
        position = found.start()
        if found[0] == b"<!--":
            end = _COMMENT_END.search(head, position + 2)
            if end is None:
                break
            position = end.end()
            continue
        tag = _TAG.match(head, position)
        if tag is None:  # a declaration, a processing instruction or an end tag without a name
            position = head.find(b">", position) + 1
            if not position:
                break
            continue
        name = tag["name"].partition(b"/")[0].lower()
        if position >= PRESCAN_BYTES and not tag["end"] and name not in _HEAD:
            break
        position, attributes = _attributes(head, tag.start("name") + len(name), wanted=name == b"meta")
        if attributes and not tag["end"]:
            encoding = _meta_encoding(attributes)
            if encoding is not None:
                return encoding
        if name in _RAW and not tag["end"]:
            position = _after_raw(head, position, name)
    return _xml_encoding(body)


def _after_raw(head: bytes, position: int, name: bytes) -> int:
    end = _RAW_ENDS[name].search(head, position)
    return len(head) if end is None else end.start()


_RAW_ENDS = {name: re.compile(rb"</" + name + rb"(?=[\t\n\f\r />])", re.IGNORECASE) for name in _RAW}


def _attributes(head: bytes, position: int, *, wanted: bool) -> tuple[int, dict[bytes, bytes]]:
    """The place behind a tag whose name ends at `position`, and its attributes where they are wanted."""
    attributes: dict[bytes, bytes] = {}
    while (found := _ATTRIBUTE.match(head, position)) is not None:
        position = found.end()
        if wanted:
            value = found["double"] or found["single"] or found["bare"] or b""
            attributes.setdefault(found["name"].lower(), value)
    return position, attributes


def _meta_encoding(attributes: dict[bytes, bytes]) -> str | None:
    label = attributes.get(b"charset")
    if label is None and attributes.get(b"http-equiv", b"").strip().lower() == b"content-type":
        found = _CHARSET_IN_CONTENT.search(attributes.get(b"content", b""))
        label = (found["double"] or found["single"] or found["bare"] or b"") if found else None
    return None if label is None else _declared(label)


def _wide_encoding(body: bytes) -> str | None:
    """The encoding of a page without a byte order mark that begins with an XML declaration in UTF-16."""
    return next((encoding for start, encoding in _WIDE_STARTS if body.startswith(start)), None)


def _xml_encoding(body: bytes) -> str | None:
    declaration = _XML_DECLARATION.match(body.lstrip()[:PRESCAN_BYTES])
    found = _XML_ENCODING.search(declaration["inside"]) if declaration else None
    return None if found is None else _declared(found[1] or found[2] or b"")


def _declared(label: bytes) -> str | None:
    encoding = codec_of(label.decode("latin-1"))
    # A declaration that could be read as ASCII was not written in UTF-16.
    return "utf-8" if encoding is not None and encoding.lower().startswith("utf-16") else encoding
