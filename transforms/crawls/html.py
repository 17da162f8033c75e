"""Extracts the facts about an HTML page: title, main text, language, links with anchors, directives."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree
from resiliparse.parse.html.node import ElementNode, Node, NodeType
from resiliparse.parse.lang import detect_fast

from semrank.transforms.crawls.charsets import decode_html
from semrank.transforms.crawls.links import DEFAULT_MAX_LINKS, MAX_ANCHOR_CHARS, MAX_BASE_CHARS, PageLinks, squeeze
from semrank.transforms.crawls.markup import as_html, bounded_markup
from semrank.transforms.crawls.words import HIDDEN, UNBROKEN, is_foreign, is_hidden, link_words
from semrank.transforms.streams.languages import language_code
from semrank.transforms.streams.parameters import NO_RULES, ParameterRules

MAX_HTML_BYTES = 4 << 20
"""Maximum bytes of a page that are parsed: crawlers cut pages at 1-5 MiB, and the rest is data, not text."""

MAX_TEXT_CHARS = 1 << 20
"""Maximum characters of a page's text: four times the longest encyclopaedia articles."""

MAX_TITLE_CHARS = 1_000
"""Maximum characters of a title."""

MIN_DETECTABLE_CHARS = 40
"""Minimum characters of a text to detect its language."""

_LINKS = "a[href], area[href], frame[src], iframe[src]"
_OTHERS = f"base[href], meta[content], link[rel][href], title, {HIDDEN}, {UNBROKEN}"
"""Selectors of the elements that are read: links, and facts about the page itself."""

_LETTER = "[\u0900-\u1fff\u2e80-\u2fff\u3040-\ud7ff\uf900-\ufaff]"
_LONE_LETTER = re.compile(rf">\s*+{_LETTER}\s*+<")
"""A letter that is an element's whole text; Resiliparse treats any single character of three bytes as a bullet."""

_NO_BULLET = "\ufdd0"
"""A noncharacter that is added to a lone letter while the text is extracted."""

_UNBROKEN = frozenset(UNBROKEN.split(", "))


@dataclass(frozen=True)
class HtmlPage:
    """The facts about a page.

    Attributes:
        title: the title, white space collapsed; None if there is none, or the page asks not to be indexed.
        text: main text without markup; None if the page has none, or asks not to be indexed.
        language: code as `language_code` gives it, from the page's `lang` attribute or else guessed from the text.
        links: its links, with counters of ignored and cut parts.
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
    robots_name: str | None = None,
    rules: ParameterRules = NO_RULES,
    xml: bool = False,
) -> HtmlPage:
    """Reads an HTML page; any bytes give a page, perhaps an empty one.

    Args:
        body: the page as sent, content encodings undone.
        url: canonical URL of the page, the base of relative references.
        charset: label of the character encoding in the Content-Type header, if any.
        robots: X-Robots-Tag headers, one a line, if any.
        refresh: value of the Refresh header, if any; counts as a refresh meta element.
        max_links: number of links after which further ones are only counted.
        robots_name: the crawler's name in robots directives.
        rules: the user's rules for parameters of URLs.
        xml: whether the page is XHTML, which has self-closing elements.
    """
    links = PageLinks(url, max_links, robots_name, rules)
    if len(body) > MAX_HTML_BYTES:
        body = body[:MAX_HTML_BYTES]
        links.counters["html-cut"] += 1
    html, links.encoding = decode_html(body, charset, xml=xml)
    if xml:
        html = as_html(html)
    html = bounded_markup(html, links.counters)
    tree = HTMLTree.parse(html)
    if robots is not None:
        links.robots.header(robots)
    taken = _Taken()
    if tree.document is not None:
        taken.sort(tree.document.query_selector_all(_OTHERS).values(), links)
        taken.into(links)
        _take_links(tree.document.query_selector_all(_LINKS).values(), links)
    for content in [*([] if refresh is None else [refresh]), *taken.refreshes]:
        links.refresh_to(content)
    if links.noindex:
        links.counters["noindex"] += 1
        return HtmlPage(None, None, _declared_language(tree), links)
    title = squeeze(taken.title.text_content, MAX_TITLE_CHARS) if taken.title is not None else None
    text = _main_text(tree, taken, links, lone_letters=_LONE_LETTER.search(html) is not None)
    return HtmlPage(title, text, _declared_language(tree) or guess_language(text), links)


def text_of_markup(markup: str) -> str:
    """The words of a fragment of HTML, such as a title with tags, cut at the length of a title."""
    tree = HTMLTree.parse(markup[: 4 * MAX_TITLE_CHARS])
    return tree.title or (link_words(tree.body, MAX_TITLE_CHARS) or "" if tree.body is not None else "")


def links_of_markup(markup: str, links: PageLinks) -> None:
    """Adds the links of a fragment of HTML, which is cut at the length of a base."""
    tree = HTMLTree.parse(markup[:MAX_BASE_CHARS])
    if tree.document is not None:
        _take_links(tree.document.query_selector_all(_LINKS).values(), links)


class _Taken:
    """The relevant elements of a page by purpose."""

    def __init__(self) -> None:
        self.title: ElementNode | None = None
        self.refreshes: list[str] = []
        self._canonicals: list[str] = []
        self._hidden: list[ElementNode] = []
        self._unbroken: list[ElementNode] = []
        self._base: str | None = None

    def sort(self, elements: Iterable[ElementNode], links: PageLinks) -> None:
        """Sorts the elements of `_OTHERS`, in document order."""
        for element in elements:
            tag = element.tag or ""
            if tag == "meta":
                self._meta(element, links)
            elif tag == "base":
                if self._base is None and not is_foreign(element):  # the first one counts
                    self._base = element.get_attribute("href") or ""
            elif tag == "link":
                if "canonical" in (element.get_attribute("rel") or "").lower().split():
                    self._canonicals.append(element.get_attribute("href") or "")
            elif tag == "title" and self.title is None and not is_foreign(element):
                self.title = element
                self._hidden.append(element)
            elif is_hidden(element):
                self._hidden.append(element)
            elif tag in _UNBROKEN:
                self._unbroken.append(element)

    def _meta(self, element: ElementNode, links: PageLinks) -> None:
        content = element.get_attribute("content") or ""
        links.robots.meta(element.get_attribute("name") or "", content)
        # Browsers that run scripts ignore the content of noscript.
        if (element.get_attribute("http-equiv") or "").strip().lower() == "refresh" and not element.closest("noscript"):
            self.refreshes.append(content)

    def into(self, links: PageLinks) -> None:
        """Passes on the page's own attributes and its references."""
        if self._base is not None:
            links.base(self._base)
        for href in self._canonicals:
            links.canonical_link(href)

    def leave_visible(self, tree: HTMLTree) -> None:
        """Removes hidden elements from the tree, and adds line breaks that its text would lack."""
        for element in self._unbroken:
            element.before(cast(Node, tree.create_element("br")))
            element.after(cast(Node, tree.create_element("br")))
        for element in self._hidden:
            element.remove()


def _take_links(elements: Iterable[ElementNode], links: PageLinks) -> None:
    """Adds the links: the elements of `_LINKS`, in document order."""
    for element in elements:
        tag = element.tag
        if tag in ("frame", "iframe"):
            links.frame(element.get_attribute("src") or "")
        elif links.is_full:
            links.link("", None, None)
        else:
            # Most links contain only text.
            plain = tag == "a" and element.first_element_child is None
            words = element.text_content if plain else link_words(element, MAX_ANCHOR_CHARS)
            links.link(element.get_attribute("href") or "", words, element.get_attribute("rel"))


def _main_text(tree: HTMLTree, taken: _Taken, links: PageLinks, *, lone_letters: bool) -> str | None:
    taken.leave_visible(tree)
    if lone_letters and tree.body is not None:
        _mark_lone_letters(tree.body)
    text = "" if links.counters["html-too-deep"] else extract_plain_text(tree, main_content=True)
    text = text or extract_plain_text(tree, main_content=False)
    if lone_letters:
        text = text.replace(_NO_BULLET, "")
    if len(text) > MAX_TEXT_CHARS:
        links.counters["text-cut"] += 1
        text = text[:MAX_TEXT_CHARS]
    return text.strip() or None


def _mark_lone_letters(body: ElementNode) -> None:
    texts = [(node, (node.value or "").strip()) for node in body if node.type == NodeType.TEXT]
    for node, letter in texts:
        if len(letter) == 1 and re.match(_LETTER, letter):
            node.value = (node.value or "").replace(letter, letter + _NO_BULLET)


def _declared_language(tree: HTMLTree) -> str | None:
    root = tree.document.document_element if tree.document is not None else None
    if root is None:
        return None
    return language_code(root.get_attribute("lang")) or language_code(root.get_attribute("xml:lang"))


def guess_language(text: str | None) -> str | None:
    """The language of a text by its character n-grams; None if the text is too short or the result uncertain."""
    if text is None or len(text) < MIN_DETECTABLE_CHARS:
        return None
    return language_code(detect_fast(text)[0])  # "unknown" is not a code
