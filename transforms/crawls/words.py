"""Words of a page as its reader sees them: where they end, and which are shown.

Blocks, line breaks, list items and table cells end a word (HTML, "Rendering": `display` and `innerText`). What is
hidden, and what is for machines, has no words.
"""

from __future__ import annotations

import re

from resiliparse.parse.html.node import DOMNode, ElementNode, NodeType

MAX_NODES = 300
"""Nodes of a link that are looked through for its words."""

_BREAKING_NAMES = """
address article aside blockquote body br button caption center dd details dialog dir div dl dt fieldset
figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing main menu nav ol
optgroup option p plaintext pre search section select summary table tbody td tfoot th thead tr ul xmp
"""
BREAKING = frozenset(_BREAKING_NAMES.split())
"""Elements before and after which a word ends."""

_SILENT_NAMES = """
annotation annotation-xml audio canvas datalist desc head iframe metadata noembed noframes noscript rp script style
template textarea title video
"""
SILENT = frozenset(_SILENT_NAMES.split())
"""Elements whose content is not shown as the page's words."""

UNBROKEN = "dialog, legend, menu, search, summary"
"""Selector of those in `BREAKING` that Resiliparse's text does not break at, and that pages have (each costs time)."""

HIDDEN = (
    "[hidden], [popover], [style*=none i], [style*=hidden i], [style*=collapse i], "
    "annotation, annotation-xml, canvas, desc, metadata, noembed, noframes, rp"
)
"""Selector of what may be hidden although Resiliparse's text has it; `is_hidden` decides. Titles are hidden, too."""

_INVISIBLE = re.compile(r"(?:display\s*+:\s*+none|visibility\s*+:\s*+(?:hidden|collapse))(?![\w-])", re.IGNORECASE)
_HTML_INSIDE_SVG = frozenset({"foreignobject", "desc", "title"})
_HTML_INSIDE_MATH = frozenset({"mi", "mo", "mn", "ms", "mtext", "annotation-xml"})


def is_hidden(element: ElementNode) -> bool:
    """Whether an element is not shown (HTML, "Hidden elements", and MathML Core; style sheets are not read)."""
    tag = element.tag
    if tag in ("html", "body"):  # hidden until a script shows it
        return False
    if tag in SILENT:
        return True
    if (tag == "dialog" or element.get_attribute("popover") is not None) and element.get_attribute("open") is None:
        return True
    hidden = element.get_attribute("hidden")
    if hidden is not None and hidden.strip().lower() != "until-found":
        return True
    style = element.get_attribute("style")
    return style is not None and _INVISIBLE.search(style) is not None


def link_words(element: ElementNode, max_chars: int) -> str | None:
    """The words of a link; where it has none, those that stand for its images."""
    if element.tag == "area":
        return element.get_attribute("alt")
    words, alternatives = _shown(element, max_chars)
    return words if words and not words.isspace() else alternatives


def _shown(root: ElementNode, max_chars: int) -> tuple[str, str]:
    """The text that an element shows, and the words that stand for its images; both cut at some length."""
    text: list[str] = []
    alternatives: list[str] = []
    size = 0
    open_elements: list[tuple[DOMNode | None, bool]] = [(root.first_child, False)]  # next child, whether its end breaks
    for _ in range(MAX_NODES):
        if not open_elements or size > max_chars:
            break
        node, breaks = open_elements.pop()
        if node is None:
            text.append(" " if breaks else "")
            continue
        open_elements.append((node.next, breaks))
        if node.type == NodeType.TEXT:
            text.append(node.value or "")
            size += len(text[-1])
        elif isinstance(node, ElementNode):
            tag = node.tag or ""
            if tag in ("img", "image"):
                alternatives.append((node.get_attribute("alt") or "")[:max_chars])
            elif tag == "title":
                alternatives.append((node.text_content or "")[:max_chars])
            elif not is_hidden(node):
                text.append(" " if tag in BREAKING else "")
                open_elements.append((node.first_child, tag in BREAKING))
    return "".join(text), " ".join(alternatives)


def is_foreign(element: ElementNode) -> bool:
    """Whether an element is one of SVG or MathML rather than of HTML."""
    parent = element.parent_element
    while parent is not None:
        tag = parent.tag
        if tag in _HTML_INSIDE_SVG or tag in _HTML_INSIDE_MATH:
            return False
        if tag in ("svg", "math"):
            return True
        parent = parent.parent_element
    return False
