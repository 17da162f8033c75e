"""What a crawler's snapshot needs of an HTML page: title, main text, language, links with anchors, directives."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5
from resiliparse.parse.html import HTMLTree
from resiliparse.parse.html.node import ElementNode
from resiliparse.parse.lang import detect_fast

from semrank.transforms.sources.languages import language_code
from semrank.transforms.sources.links import DEFAULT_MAX_LINKS, PageLinks, squeeze

MAX_HTML_BYTES = 4 << 20
"""Bytes of a page that are parsed: crawlers cut pages at 1-5 MiB, and what follows is data, not text."""

MAX_TEXT_CHARS = 1 << 20
"""Characters of a page's text that are kept: four times the longest encyclopaedia articles."""

MAX_TITLE_CHARS = 1_000
"""Characters of a title that are kept."""

MAX_NESTING = 2_000
"""Depth of nested blocks up to which the main text is looked for: its cost grows with the square of the depth."""

MIN_DETECTABLE_CHARS = 40
"""Characters of text below which a guess at its language is no better than none."""

_META_CHARSET = re.compile(rb"<meta\b[^>]*?\bcharset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]+)", re.IGNORECASE)
_XML_CHARSET = re.compile(rb"\s*<\?xml\b[^>]*?\bencoding\s*=\s*[\"']([A-Za-z0-9_.:-]+)", re.IGNORECASE)
_META_CHARSET_BYTES = 1 << 16  # browsers look at 1,024 bytes; pages that declare it later exist and are right
_BLOCK = re.compile(r"<(/?)(?:div|article|li|td)\b", re.IGNORECASE)
_LINK_ELEMENTS = "a[href], area[href], base[href], meta[content], link[rel][href]"
# The WHATWG encoding standard reads these by larger tables, which the codecs know by other names.
_SUPERSETS = {"gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949", "big5": "big5hkscs", "iso8859-11": "cp874"}
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


@dataclass(frozen=True)
class HtmlPage:
    """What was found on a page.

    Attributes:
        title: the title, white space collapsed; None if there is none, or the page asks not to be indexed.
        text: main text without markup; None if the page has none, or asks not to be indexed.
        language: code as `language_code` gives it, from the page's `lang` attribute or else guessed from the text.
        links: where it leads, and counters of what was left aside or cut.
    """

    title: str | None
    text: str | None
    language: str | None
    links: PageLinks


def read_html(
    body: bytes,
    *,
    url: str,
    charset: str | None = None,
    robots: str | None = None,
    refresh: str | None = None,
    max_links: int = DEFAULT_MAX_LINKS,
) -> HtmlPage:
    """Read one HTML page; any bytes give a page, if an empty one.

    Args:
        body: the page as sent, content encodings undone.
        url: canonical URL of the page, the base of relative references.
        charset: label of the character encoding in the Content-Type header, if any.
        robots: value of the X-Robots-Tag header, if any; counts as a robots meta element.
        refresh: value of the Refresh header, if any; counts as a refresh meta element.
        max_links: number of links after which further ones are only counted.
    """
    links = PageLinks(url, max_links)
    if len(body) > MAX_HTML_BYTES:
        body = body[:MAX_HTML_BYTES]
        links.counters["html-cut"] += 1
    html = decode_html(body, charset)
    tree = HTMLTree.parse(html)
    if robots is not None:
        links.robots(robots)
    refreshes = [] if refresh is None else [refresh]
    if tree.document is not None:
        refreshes += _read_elements(tree.document.query_selector_all(_LINK_ELEMENTS).values(), links)
    for content in refreshes:
        links.refresh_to(content)
    if links.noindex:
        links.counters["noindex"] += 1
        return HtmlPage(None, None, _declared_language(tree), links)
    text = _main_text(tree, html, links)
    return HtmlPage(squeeze(tree.title, MAX_TITLE_CHARS), text, _declared_language(tree) or guess_language(text), links)


def decode_html(body: bytes, charset: str | None = None) -> str:
    """The characters of a page: by its byte order mark, header, declaration, or a guess, in this order.

    Labels mean what the WHATWG encoding standard says (`iso-8859-1` is windows-1252); unknown labels are passed over.
    Bytes that the encoding does not have become U+FFFD.
    """
    for mark, encoding in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, "replace")
    declared = _known(charset) or _declared_encoding(body)
    if declared is not None:
        return body.decode(declared, "replace")
    if b"\x1b" not in body:  # the escape-driven encodings are valid UTF-8 as well
        try:
            return body.decode("utf-8")
        except UnicodeDecodeError:
            pass
    return body.decode(_known(detect_encoding(body)) or "utf-8", "replace")


def _known(label: str | None) -> str | None:
    """The codec of an encoding's label; None for labels that the standard does not have."""
    encoding = map_encoding_to_html5(label.strip(" \t\r\n\"'"), False) if label else None
    return _SUPERSETS.get(encoding, encoding) if encoding is not None else None


def _declared_encoding(body: bytes) -> str | None:
    head = body[:_META_CHARSET_BYTES]
    found = _META_CHARSET.search(head) or _XML_CHARSET.match(head)
    encoding = _known(found[1].decode("ascii")) if found else None
    # A declaration that could be read as ASCII was not written in UTF-16.
    return "utf-8" if encoding is not None and encoding.startswith("utf-16") else encoding


def _read_elements(elements: Iterable[ElementNode], links: PageLinks) -> list[str]:
    """Take the elements of `_LINK_ELEMENTS`, given in document order; gives the refreshes among them."""
    anchors: list[ElementNode] = []
    canonicals: list[str] = []
    refreshes: list[str] = []
    has_base = False
    for element in elements:
        tag = element.tag
        if tag in ("a", "area"):
            anchors.append(element)
        elif tag == "meta":
            content = element.get_attribute("content") or ""
            if (element.get_attribute("name") or "").strip().lower() == "robots":
                links.robots(content)
            # A browser that runs scripts never sees what stands in noscript.
            elif _is_refresh(element) and element.closest("noscript") is None:
                refreshes.append(content)
        elif tag == "base":
            if not has_base:  # the first one counts
                links.base(element.get_attribute("href") or "")
                has_base = True
        elif "canonical" in (element.get_attribute("rel") or "").lower().split():
            canonicals.append(element.get_attribute("href") or "")
    for href in canonicals:
        links.canonical_link(href)
    for element in anchors:
        links.link(element.get_attribute("href") or "", _anchor_text(element), element.get_attribute("rel"))
    return refreshes


def _is_refresh(element: ElementNode) -> bool:
    return (element.get_attribute("http-equiv") or "").strip().lower() == "refresh"


def _anchor_text(element: ElementNode) -> str | None:
    """The words of a link; where it has none, those that stand for its images."""
    text = element.text_content
    if text and not text.isspace():
        return text
    if element.tag == "area":
        return element.get_attribute("alt")
    images = element.query_selector_all("img[alt]").values()
    return " ".join(image.get_attribute("alt") or "" for image in images)


def _main_text(tree: HTMLTree, html: str, links: PageLinks) -> str | None:
    if html.count("<") > MAX_NESTING and _nesting(html) > MAX_NESTING:
        links.counters["html-too-deep"] += 1
        text = extract_plain_text(tree, main_content=False)
    else:
        text = extract_plain_text(tree, main_content=True) or extract_plain_text(tree, main_content=False)
    if len(text) > MAX_TEXT_CHARS:
        links.counters["text-cut"] += 1
        text = text[:MAX_TEXT_CHARS]
    return text.strip() or None


def _nesting(html: str) -> int:
    """An upper estimate of how deep blocks are nested: the largest surplus of opening over closing tags."""
    steps = np.array([-1 if closing else 1 for closing in _BLOCK.findall(html)], dtype=np.int64)
    if not len(steps):
        return 0
    depths = np.cumsum(steps)
    return int(np.max(depths - np.minimum.accumulate(np.minimum(depths, 0))))


def _declared_language(tree: HTMLTree) -> str | None:
    root = tree.document.document_element if tree.document is not None else None
    if root is None:
        return None
    return language_code(root.get_attribute("lang")) or language_code(root.get_attribute("xml:lang"))


def guess_language(text: str | None) -> str | None:
    """The language that a text's character n-grams speak for; None where it is too short or too odd to tell."""
    if text is None or len(text) < MIN_DETECTABLE_CHARS:
        return None
    language, _ = detect_fast(text)
    return None if language == "unknown" else language
