"""Markup that a tree can be built of in linear time: bounds on depth, formatting, attributes and tags.

Building a tree looks through the open elements at each tag, and through an element's attributes at each attribute, so
its cost is the product of tags and depth. Small pages are left as they are: their cost is bounded by their size. In
larger ones, tags beyond the bounds are taken out, never text. Browsers do the same (Chromium's limit of depth is 512).
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice

MAX_NESTING = 512
"""Depth of open elements; tags of deeper ones are taken out."""

MAX_FORMATTING = 8
"""Open formatting elements (`b`, `font`, ...), which are repeated in each block; they never separate words."""

MAX_ATTRIBUTES = 256
"""Attributes of a tag."""

MAX_TAGS = 200_000
"""Tags of a page; what follows is cut off."""

SMALL_TAGS = 2_000
"""Tags of a page up to which nothing is bounded, if it is also short."""

SMALL_CHARS = 1 << 16
"""Characters of a page up to which nothing is bounded, if it also has few tags: its attributes cost less than 1 s."""

MAX_TAGS_BY_NESTING = 8_000_000
"""Tags of a page times its depth, up to which its main text is looked for: some tenths of a second."""

_ATTRIBUTES = r"""(?:[^>=]++|=\s*+(?:"[^"]*+"?|'[^']*+'?|[^\s>"'])?)*+"""
_NEXT = re.compile(
    rf"<(?:!--(?:[^-]++|-(?!->))*+(?:-->|\Z)|(?P<end>/?)(?P<name>[A-Za-z][^\s/>]*+)(?P<attributes>{_ATTRIBUTES})>?)"
)
_ATTRIBUTE = re.compile(r"""[\s/]*+[^\s/>=][^\s/>=]*+(?:\s*+=\s*+(?:"[^"]*+"?|'[^']*+'?|[^\s>"'][^\s>]*+)?)?""")
_FEW_ATTRIBUTES_CHARS = 2 * MAX_ATTRIBUTES  # in which there is no room for more than the bound
_VOID_NAMES = """
area base br col embed frame hr image img input keygen link meta param source track wbr !doctype
"""
_VOID = frozenset(_VOID_NAMES.split())
_RAW_NAMES = """
script style textarea title xmp iframe noembed noframes
"""
_RAW = frozenset(_RAW_NAMES.split())
_FORMATTING_NAMES = """
b big code em font i nobr s small strike strong tt u
"""
_FORMATTING = frozenset(_FORMATTING_NAMES.split())
_CLOSES = {
    **{name: frozenset({name}) for name in ("li", "option")},
    **dict.fromkeys(("dd", "dt"), frozenset({"dd", "dt"})),
    **dict.fromkeys(("td", "th"), frozenset({"td", "th"})),
    "optgroup": frozenset({"option", "optgroup"}),
    "tr": frozenset({"td", "th", "tr"}),
    **dict.fromkeys(("tbody", "thead", "tfoot"), frozenset({"td", "th", "tr", "tbody", "thead", "tfoot"})),
}
_CLOSE_P_NAMES = """
address article aside blockquote center details dialog dir div dl dd dt fieldset figcaption figure footer form
h1 h2 h3 h4 h5 h6 header hgroup hr li main menu nav ol p pre search section summary table ul
"""
_CLOSE_P = frozenset(_CLOSE_P_NAMES.split())
_BARRIERS_NAMES = """
applet button caption marquee object svg math table td template th
"""
_BARRIERS = frozenset(_BARRIERS_NAMES.split())
_LOOKED_THROUGH = 32  # open elements among which an end tag looks for its own, so that the scan stays linear


class _Scan:
    """Follows the open elements of a page as the tree's builder would, roughly, and keeps what stays within bounds."""

    def __init__(self, html: str) -> None:
        self.counters: Counter[str] = Counter()
        self._html = html
        self._kept: list[str] = []
        self._copied = 0
        self._open: list[str] = []
        self._formatting = 0
        self._deepest = 0
        self._left_out: Counter[str] = Counter()  # open elements whose tags were taken out, by name

    def run(self) -> str:
        html, position, tags = self._html, 0, 0
        while (found := _NEXT.search(html, position)) is not None:
            position = found.end()
            name = found["name"]
            if name is None:
                continue
            tags += 1
            if tags > MAX_TAGS:
                self.counters["html-cut"] += 1
                html = self._html = html[: found.start()]
                break
            name = name.lower()
            if found["end"]:
                self._close(name, found)
            elif name not in _VOID:
                self._bound_attributes(found)
                if name in _RAW:
                    position = self._end_of_raw(name, position)
                else:
                    self._begin(name, found)
            else:
                self._bound_attributes(found)
        if tags * self._deepest > MAX_TAGS_BY_NESTING:
            self.counters["html-too-deep"] = 1
        if not self._copied:
            return html
        self._kept.append(html[self._copied :])
        return "".join(self._kept)

    def _take_out(self, begin: int, end: int) -> None:
        self._kept.append(self._html[self._copied : begin])
        self._copied = end

    def _end_of_raw(self, name: str, position: int) -> int:
        """Where the end tag of an element begins whose content is text."""
        found = _RAW_END[name].search(self._html, position)
        return len(self._html) if found is None else found.start()

    def _bound_attributes(self, found: re.Match[str]) -> None:
        begin, end = found.span("attributes")
        if end - begin > _FEW_ATTRIBUTES_CHARS:
            beyond = next(islice(_ATTRIBUTE.finditer(self._html, begin, end), MAX_ATTRIBUTES, None), None)
            if beyond is not None:
                self.counters["attributes-cut"] += 1
                self._take_out(beyond.start(), end)

    def _begin(self, name: str, found: re.Match[str]) -> None:
        if name in _FORMATTING:
            if self._formatting >= MAX_FORMATTING:
                self._leave_out(name, found)
            else:
                self._formatting += 1
        elif name == "a" and "svg" not in self._open and "math" not in self._open:  # closes the one before
            return
        else:
            opened = self._open
            if opened and opened[-1] == "p" and name in _CLOSE_P:
                opened.pop()
            closed = _CLOSES.get(name)
            while closed is not None and opened and opened[-1] in closed:
                opened.pop()
            if len(opened) >= MAX_NESTING:
                self.counters["html-too-deep"] = 1
                self._leave_out(name, found)
            else:
                opened.append(name)
                self._deepest = max(self._deepest, len(opened))

    def _leave_out(self, name: str, found: re.Match[str]) -> None:
        self._left_out[name] += 1
        self._take_out(max(found.start(), self._copied), found.end())

    def _close(self, name: str, found: re.Match[str]) -> None:
        if self._left_out[name]:
            self._left_out[name] -= 1
            self._take_out(found.start(), found.end())
        elif name in _FORMATTING:
            self._formatting = max(0, self._formatting - 1)
        else:
            opened = self._open
            for place in range(len(opened) - 1, max(-1, len(opened) - 1 - _LOOKED_THROUGH), -1):
                if opened[place] == name:
                    del opened[place:]
                    break
                if opened[place] in _BARRIERS:
                    break


_RAW_END = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _RAW}


def bounded_markup(html: str, counters: Counter[str]) -> str:
    """The page with what exceeds the bounds taken out.

    Args:
        html: the page.
        counters: gains html-too-deep (1 for a page, whose main text can't be separated from the rest in bounded time),
            attributes-cut (tags) and html-cut.
    """
    if len(html) <= SMALL_CHARS and html.count("<") <= SMALL_TAGS:
        return html
    scan = _Scan(html)
    bounded = scan.run()
    counters.update(scan.counters)
    return bounded


_XML_NEXT = re.compile(
    r"<(?:!--(?:[^-]++|-(?!->))*+(?:-->|\Z)|!\[CDATA\[(?P<text>(?:[^\]]++|\](?!\]>))*+)(?:\]\]>|\Z)"
    r"""|(?P<end>/?)(?P<name>[A-Za-z_][^\s/>]*+)(?P<attributes>(?:[^>"'/]++|"[^"]*+"?|'[^']*+'?|/(?!>))*+)(?P<empty>/?)>?)"""
)


_XHTML_PREFIX = re.compile(r"""xmlns:([^\s=<>"'/]{1,99}+)\s*+=\s*+["']http://www\.w3\.org/1999/xhtml["']""")


def as_html(xhtml: str) -> str:
    """XHTML as an HTML parser understands it: empty elements with an end tag, CDATA sections escaped, no prefixes."""
    prefixes = frozenset(_XHTML_PREFIX.findall(xhtml))
    return _XML_NEXT.sub(lambda found: _in_html(found, prefixes), xhtml)


def _in_html(found: re.Match[str], prefixes: frozenset[str]) -> str:
    if found["text"] is not None:
        return found["text"].replace("&", "&amp;").replace("<", "&lt;")
    name = found["name"]
    if name is None:
        return found[0]
    prefix, colon, local = name.partition(":")
    name = local if colon and prefix in prefixes else name
    if found["empty"] and name.lower() not in _VOID:
        return f"<{name}{found['attributes']}></{name}>"
    return found[0] if name is not local else f"<{found['end']}{name}{found['attributes']}>"
