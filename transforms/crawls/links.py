"""The links of a page, its canonical URL, its refresh, and its directives for robots."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import can_ada

from semrank.transforms.crawls.charsets import encode_query
from semrank.transforms.crawls.robots import Robots
from semrank.transforms.streams.parameters import NO_RULES, ParameterRules
from semrank.transforms.streams.urls import (
    MAX_URL_CHARS,
    CanonicalUrl,
    canonical_url,
    parse_base,
    plainly_resolved,
    root_of,
)

DEFAULT_MAX_LINKS = 2_000
"""Maximum links of a page, in document order: enough for menus and site maps, not for link farms."""

MAX_ANCHOR_CHARS = 500
"""Maximum characters of an anchor text; longer ones contain whole paragraphs, whose first words matter most."""

MAX_REFRESH_SECONDS = 10
"""Maximum delay of a refresh that makes a page an alias of its target; otherwise the refresh is a link."""

MAX_BASE_CHARS = MAX_URL_CHARS
"""Maximum characters of a base element's reference, which is a part of each link of the page."""

MAX_REFRESH_CHARS = 2 * MAX_URL_CHARS
"""Maximum characters of a refresh that are read."""

# The HTML standard's "shared declarative refresh steps": a number, then perhaps an address behind a separator.
_REFRESH = re.compile(r"[\t\n\f\r ]*+([0-9]*+)[0-9.]*+(?:[\t\n\f\r ]*+[;,][\t\n\f\r ]*+|[\t\n\f\r ]++)(?=.)", re.DOTALL)
_REFRESH_LABEL = re.compile(r"url[\t\n\f\r ]*+=[\t\n\f\r ]*+", re.IGNORECASE)
_MAX_REFRESH_DIGITS = 6
_RELATIONS = re.compile(r"[^\s,]+")  # also separated by commas, as in Google's documentation of links
_COLLECTED = ("targets", "anchors", "nofollows", "canonical", "refresh", "bad", "counters")
_SOFT_HYPHEN = "\u00ad"  # visible only at a line break within a word
_UNUSABLE_BASES = ("data:", "javascript:")


class PageLinks:
    """Collects the links of a page and its directives.

    `base` must be called before `link`, `canonical_link` and `refresh_to`, whose references are relative to it.

    Args:
        url: canonical URL of the page.
        max_links: number of links after which further ones are only counted.
        robots_name: the crawler's name in directives for single crawlers, None if it has none.
        rules: the user's rules for parameters of URLs.

    Attributes:
        targets: canonical URLs of the links, in document order, repetitions included.
        anchors: anchor text of each link, None if it has none.
        nofollows: whether each link has nofollow.
        canonical: canonical URL that the page declares, if it differs from the page's.
        refresh: canonical URL of the page's refresh, if it differs from the page's.
        robots: the page's directives for robots.
        bad: (reason, reference) of links with an invalid URL.
        counters: number of ignored links, by kind.
        is_full: whether further links are only counted.
        encoding: codec of the page, in which browsers send the queries of its references.
    """

    def __init__(
        self,
        url: str,
        max_links: int = DEFAULT_MAX_LINKS,
        robots_name: str | None = None,
        rules: ParameterRules = NO_RULES,
    ) -> None:
        self.targets: list[str] = []
        self.anchors: list[str | None] = []
        self.nofollows: list[bool] = []
        self.canonical: str | None = None
        self.refresh: str | None = None
        self.robots = Robots(robots_name)
        self.bad: list[tuple[str, str]] = []
        self.counters: Counter[str] = Counter()
        self.encoding = "utf-8"
        self._url, self._rules = url, rules
        self._base: can_ada.URL | None = parse_base(url)
        self._root = None if self._base is None else root_of(self._base)
        self._is_own_base = True
        self._max_links = max_links
        self.is_full = max_links <= 0
        self._seen = 0
        self._known: dict[str, CanonicalUrl] = {}

    def state(self) -> dict[str, Any]:
        """The collected facts as JSON values."""
        directives = {"noindex": self.noindex, "nofollow": self.nofollow}
        return {**directives, **{name: getattr(self, name) for name in _COLLECTED}}

    @classmethod
    def of_state(cls, url: str, state: dict[str, Any]) -> PageLinks:
        """The links of a page from `state`."""
        links = cls(url)
        links.robots.noindex, links.robots.nofollow = state["noindex"], state["nofollow"]
        for name in _COLLECTED:
            setattr(links, name, state[name])
        links.bad = [(reason, reference) for reason, reference in links.bad]
        links.counters = Counter(links.counters)
        return links

    @property
    def noindex(self) -> bool:
        """Whether the page asks not to be indexed."""
        return self.robots.noindex

    @property
    def nofollow(self) -> bool:
        """Whether nofollow applies to all links of the page."""
        return self.robots.nofollow

    def base(self, href: str) -> None:
        """Sets the base URL, which may itself be relative to the page (HTML: "set the frozen base URL")."""
        if len(href) > MAX_BASE_CHARS:
            self.counters["base-invalid"] += 1
            return
        if self._base is None:
            return
        try:
            base = self._base + encode_query(href, self.encoding)
        except (ValueError, TypeError):
            self.counters["base-invalid"] += 1
            return
        if base.href.startswith(_UNUSABLE_BASES):
            self.counters["base-invalid"] += 1
        else:
            self._base, self._root = base, root_of(base)
            self._is_own_base = canonical_url(base.href, rules=self._rules).url == self._url

    def canonical_link(self, href: str) -> None:
        """Adds a link element with rel=canonical; the first usable one counts."""
        if self.canonical is None:
            own = self._resolved(href).url
            if own is None:
                self.counters["canonical-invalid"] += 1
            self.canonical = None if own == self._url else own

    def link(self, href: str, anchor: str | None, rel: str | None) -> None:
        """Adds a link: its reference, text and relations; above the limit (`is_full`) it is only counted."""
        if self._is_over_cap():
            return
        url, reason = plainly_resolved(href, self._root), None
        if url is None:
            if self._is_own_base and href.lstrip().startswith("#"):
                self.counters["links-to-fragment"] += 1
                return
            known = self._known.get(href)  # a fifth to a half of a page's links repeat others
            if known is None:
                known = self._known[href] = self._resolved(href)
            url, reason = known
        if url is not None:
            self.targets.append(url)
            self.anchors.append(squeeze(anchor, MAX_ANCHOR_CHARS))
            self.nofollows.append(rel is not None and "nofollow" in _RELATIONS.findall(rel.lower()))
        elif reason == "scheme-unsupported":
            self.counters["links-scheme-unsupported"] += 1
        else:
            self.bad.append((reason or "url-invalid", href.strip()))

    def _resolved(self, reference: str) -> CanonicalUrl:
        return canonical_url(encode_query(reference, self.encoding), self._base, self._rules)

    def _is_over_cap(self) -> bool:
        """Counts a reference; returns whether it is above the limit, and counts it as such."""
        if self.is_full:
            self.counters["links-over-cap"] += 1
            return True
        self._seen += 1
        self.is_full = self._seen >= self._max_links
        return False

    def frame(self, src: str) -> None:
        """Adds a frame as a link to its page; a frame without an address is ignored."""
        if src.strip():
            before = len(self.targets)
            self.link(src, None, None)
            self.counters["links-from-frames"] += len(self.targets) - before

    def refresh_to(self, content: str) -> None:
        """Adds the content of a refresh element or header; the first short one to another page counts."""
        found = parse_refresh(content)
        if found is None:
            return
        seconds, address = found
        url, reason = self._resolved(address)
        if url == self._url:
            return
        if url is not None and seconds > MAX_REFRESH_SECONDS:
            self.link(address, None, None)
        elif not self._is_over_cap():
            if url is None:
                self.bad.append((reason or "url-invalid", content[:MAX_REFRESH_CHARS]))
            elif self.refresh is None:
                self.refresh = url


def parse_refresh(content: str) -> tuple[int, str] | None:
    """The seconds and the address of a refresh, parsed as in the HTML standard; None if it has no address."""
    content = content[:MAX_REFRESH_CHARS]
    found = _REFRESH.match(content)
    if found is None or not (found[1] or "." in found[0]):
        return None
    address = content[found.end() :]
    label = _REFRESH_LABEL.match(address)
    if label is not None:
        address = address[label.end() :]
    if address[:1] in ("'", '"'):
        address = address[1:].partition(address[0])[0]
    address = address.strip()
    digits = found[1].lstrip("0")
    return (int(digits[:_MAX_REFRESH_DIGITS] or 0), address) if address else None


def squeeze(text: str | None, max_chars: int) -> str | None:
    """The text without soft hyphens, with white space collapsed, and cut; None if it is empty."""
    if not text:
        return None
    if text.isprintable() and "  " not in text:  # neither soft hyphens nor white space but single spaces
        squeezed = text.strip()
    else:
        squeezed = " ".join(text.replace(_SOFT_HYPHEN, "").split())
    return (squeezed if len(squeezed) <= max_chars else squeezed[:max_chars].rstrip()) or None
