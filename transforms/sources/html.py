"""What a crawler's snapshot needs of an HTML page: title, main text, language, links with anchors, directives."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

import can_ada
import numpy as np
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5
from resiliparse.parse.html import HTMLTree
from resiliparse.parse.html.node import ElementNode
from resiliparse.parse.lang import detect_fast

from transforms.sources.languages import language_code
from transforms.sources.urls import canonical_url, parse_base

DEFAULT_MAX_LINKS = 2_000
"""Links taken from a page, in document order: menus and maps of large sites stay below it, link farms don't."""

MAX_HTML_BYTES = 4 << 20
"""Bytes of a page that are parsed: crawlers cut pages at 1-5 MiB, and what follows is data, not text."""

MAX_TEXT_CHARS = 1 << 20
"""Characters of a page's text that are kept: four times the longest encyclopaedia articles."""

MAX_TITLE_CHARS = 1_000
"""Characters of a title that are kept."""

MAX_ANCHOR_CHARS = 500
"""Characters of an anchor text that are kept; longer ones wrap whole paragraphs, whose first words say most."""

MAX_REFRESH_SECONDS = 10
"""Longest delay of a refresh that makes a page an alias of its target; a page shown longer is a page with a link."""

MAX_NESTING = 2_000
"""Depth of nested blocks up to which the main text is looked for: its cost grows with the square of the depth."""

MIN_DETECTABLE_CHARS = 40
"""Characters of text below which a guess at its language is no better than none."""

_META_CHARSET = re.compile(rb"<meta\b[^>]*?\bcharset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]+)", re.IGNORECASE)
_XML_CHARSET = re.compile(rb"\s*<\?xml\b[^>]*?\bencoding\s*=\s*[\"']([A-Za-z0-9_.:-]+)", re.IGNORECASE)
_META_CHARSET_BYTES = 1 << 16  # browsers look at 1,024 bytes; pages that declare it later exist and are right
_BLOCK = re.compile(r"<(/?)(?:div|article|li|td)\b", re.IGNORECASE)
_REFRESH = re.compile(r"\s*([0-9]+)(?:\.[0-9]*)?\s*[;,\s]\s*(?:url\s*=\s*)?[\"']?([^\"'>]+)", re.IGNORECASE)
_SPACE = re.compile(r"\s+")
_LINK_ELEMENTS = "a[href], area[href], base[href], meta[content], link[rel][href]"
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


@dataclass(frozen=True)
class HtmlPage:
    """What was found on a page.

    Attributes:
        title: the title, white space collapsed; None if there is none.
        text: main text without markup; None if the page has none, or asks not to be indexed.
        language: code as `language_code` gives it, from the page's `lang` attribute or else guessed from the text.
        targets: canonical URLs of the links, in document order, repetitions included.
        anchors: anchor text of each link, None where it has none.
        nofollows: whether each link, or the page for all its links, says nofollow.
        canonical: canonical URL that the page names as its own, if it differs from the page's.
        refresh: canonical URL that the page sends its visitors to by itself, if it differs from the page's.
        noindex: whether the page asks not to be indexed; title and text are None then.
        bad_links: (reason, reference) of links whose target is no usable URL although it means to be one.
        counters: number of links left aside and of texts cut, by kind.
    """

    title: str | None
    text: str | None
    language: str | None
    targets: list[str]
    anchors: list[str | None]
    nofollows: list[bool]
    canonical: str | None
    refresh: str | None
    noindex: bool
    bad_links: list[tuple[str, str]]
    counters: Counter[str] = field(default_factory=Counter)


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
    counters: Counter[str] = Counter()
    if len(body) > MAX_HTML_BYTES:
        body = body[:MAX_HTML_BYTES]
        counters["html-cut"] += 1
    html = decode_html(body, charset)
    tree = HTMLTree.parse(html)
    reader = _LinkReader(url, max_links, counters)
    reader.directives(robots or "")
    if refresh is not None:
        reader.refreshes.append(refresh)
    if tree.document is not None:
        reader.read(tree.document.query_selector_all(_LINK_ELEMENTS).values())
    text = None if reader.noindex else _main_text(tree, html, counters)
    if reader.noindex:
        counters["noindex"] += 1
    return HtmlPage(
        title=None if reader.noindex else _clean(tree.title, MAX_TITLE_CHARS),
        text=text,
        language=_declared_language(tree) or guess_language(text),
        targets=reader.targets,
        anchors=reader.anchors,
        nofollows=[True] * len(reader.targets) if reader.nofollow else reader.nofollows,
        canonical=reader.canonical,
        refresh=reader.refresh,
        noindex=reader.noindex,
        bad_links=reader.bad_links,
        counters=counters,
    )


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
    return map_encoding_to_html5(label.strip(" \t\r\n\"'"), False) if label else None


def _declared_encoding(body: bytes) -> str | None:
    head = body[:_META_CHARSET_BYTES]
    found = _META_CHARSET.search(head) or _XML_CHARSET.match(head)
    encoding = _known(found[1].decode("ascii")) if found else None
    # A declaration that could be read as ASCII was not written in UTF-16.
    return "utf-8" if encoding is not None and encoding.startswith("utf-16") else encoding


class _LinkReader:
    """Collects what a page's elements say about where it leads and how it wants to be treated."""

    def __init__(self, url: str, max_links: int, counters: Counter[str]) -> None:
        self._url = url
        self._base: can_ada.URL | None = parse_base(url)
        self._max_links = max_links
        self._counters = counters
        self._has_base = False
        self.refreshes: list[str] = []
        self.targets: list[str] = []
        self.anchors: list[str | None] = []
        self.nofollows: list[bool] = []
        self.bad_links: list[tuple[str, str]] = []
        self.canonical: str | None = None
        self.refresh: str | None = None
        self.noindex = False
        self.nofollow = False

    def directives(self, content: str) -> None:
        """Take the words of a robots meta element or header."""
        words = re.split(r"[\s,:]+", content.lower())
        self.noindex = self.noindex or "noindex" in words or "none" in words
        self.nofollow = self.nofollow or "nofollow" in words or "none" in words

    def read(self, elements: list[ElementNode]) -> None:
        """Take the elements of `_LINK_ELEMENTS` in document order."""
        links: list[ElementNode] = []
        canonicals: list[str] = []
        for element in elements:
            tag = element.tag
            if tag in ("a", "area"):
                links.append(element)
            elif tag == "meta":
                self._meta(element)
            elif tag == "base":
                self._rebase(element.get_attribute("href") or "")
            elif "canonical" in (element.get_attribute("rel") or "").lower().split():
                canonicals.append(element.get_attribute("href") or "")
        for href in canonicals[:1]:
            own = canonical_url(href, self._base).url
            self.canonical = None if own == self._url else own
        for element in links[: self._max_links]:
            self._link(element)
        if len(links) > self._max_links:
            self._counters["links-over-cap"] += len(links) - self._max_links
        for content in self.refreshes:
            self._refresh(content)

    def _meta(self, element: ElementNode) -> None:
        name = (element.get_attribute("name") or "").strip().lower()
        if name == "robots":
            self.directives(element.get_attribute("content") or "")
        elif (element.get_attribute("http-equiv") or "").strip().lower() == "refresh" and not element.closest(
            "noscript"
        ):
            self.refreshes.append(element.get_attribute("content") or "")

    def _rebase(self, href: str) -> None:
        """The first base element counts; it may itself be relative to the page."""
        if self._has_base or self._base is None:
            return
        self._has_base = True
        try:
            self._base = self._base + href
        except (ValueError, TypeError):
            self._counters["base-invalid"] += 1

    def _link(self, element: ElementNode) -> None:
        href = (element.get_attribute("href") or "").strip()
        if href.startswith("#"):
            self._counters["links-to-fragment"] += 1
            return
        url, reason = canonical_url(href, self._base)
        if url is None:
            if reason == "scheme-unsupported":
                self._counters["links-scheme-unsupported"] += 1
            else:
                self.bad_links.append((reason or "url-invalid", href))
            return
        if element.tag == "area":
            anchor = element.get_attribute("alt")
        else:
            anchor = element.text_content
            if not anchor or anchor.isspace():
                images = element.query_selector_all("img[alt]").values()
                anchor = " ".join(image.get_attribute("alt") or "" for image in images)
        self.targets.append(url)
        self.anchors.append(_clean(anchor, MAX_ANCHOR_CHARS))
        rel = element.get_attribute("rel")
        self.nofollows.append(rel is not None and "nofollow" in rel.lower().split())

    def _refresh(self, content: str) -> None:
        found = _REFRESH.match(content)
        if found is None:
            return
        url, reason = canonical_url(found[2].strip(), self._base)
        if url is None:
            self.bad_links.append((reason or "url-invalid", content))
        elif url != self._url:
            if len(found[1]) <= 3 and int(found[1]) <= MAX_REFRESH_SECONDS:
                self.refresh = self.refresh or url
            else:
                self.targets.append(url)
                self.anchors.append(None)
                self.nofollows.append(False)


def _main_text(tree: HTMLTree, html: str, counters: Counter[str]) -> str | None:
    if html.count("<") > MAX_NESTING and _nesting(html) > MAX_NESTING:
        counters["html-too-deep"] += 1
        text = extract_plain_text(tree, main_content=False)
    else:
        text = extract_plain_text(tree, main_content=True) or extract_plain_text(tree, main_content=False)
    if len(text) > MAX_TEXT_CHARS:
        counters["text-cut"] += 1
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


def _clean(text: str | None, max_chars: int) -> str | None:
    """The text with white space collapsed and cut to its length; None where nothing is left."""
    return _SPACE.sub(" ", text).strip()[:max_chars].rstrip() or None if text else None
