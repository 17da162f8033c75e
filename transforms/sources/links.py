"""Where a page leads: its links, its own name for itself, its refresh, and what it asks of robots."""

from __future__ import annotations

import re
from collections import Counter

import can_ada

from semrank.transforms.sources.urls import MAX_URL_CHARS, CanonicalUrl, canonical_url, parse_base

DEFAULT_MAX_LINKS = 2_000
"""Links taken from a page, in document order: menus and maps of large sites stay below it, link farms don't."""

MAX_ANCHOR_CHARS = 500
"""Characters of an anchor text that are kept; longer ones wrap whole paragraphs, whose first words say most."""

MAX_REFRESH_SECONDS = 10
"""Longest delay of a refresh that makes a page an alias of its target; a page shown longer is a page with a link."""

MAX_BASE_CHARS = MAX_URL_CHARS
"""Characters of a base element's reference: each link of the page would have to carry what is longer."""

_REFRESH = re.compile(
    r"\s*([0-9]{1,6})(?:\.[0-9]*)?\s*[;,\s]\s*(?:url\s*=\s*|(?!\s*url\s*=))[\"']?([^\"'>]+)", re.IGNORECASE
)
_DIRECTIVE = re.compile(r"[a-z]+")


class PageLinks:
    """Collects what a page says about where it leads and how it wants to be treated.

    `base` must be called before `link`, `canonical_link` and `refresh_to`, whose references are relative to it.

    Args:
        url: canonical URL of the page.
        max_links: number of links after which further ones are only counted.

    Attributes:
        targets: canonical URLs of the links, in document order, repetitions included.
        anchors: anchor text of each link, None where it has none.
        nofollows: whether each link says nofollow.
        canonical: canonical URL that the page names as its own, if it differs from the page's.
        refresh: canonical URL that the page sends its visitors to by itself, if it differs from the page's.
        noindex: whether the page asks not to be indexed.
        nofollow: whether the page says nofollow for all its links.
        bad: (reason, reference) of links whose target is no usable URL although it means to be one.
        counters: number of links left aside, by kind.
    """

    def __init__(self, url: str, max_links: int = DEFAULT_MAX_LINKS) -> None:
        self.targets: list[str] = []
        self.anchors: list[str | None] = []
        self.nofollows: list[bool] = []
        self.canonical: str | None = None
        self.refresh: str | None = None
        self.noindex = False
        self.nofollow = False
        self.bad: list[tuple[str, str]] = []
        self.counters: Counter[str] = Counter()
        self._url = url
        self._base: can_ada.URL | None = parse_base(url)
        self._max_links = max_links
        self._seen = 0
        self._known: dict[str, CanonicalUrl] = {}

    def robots(self, content: str) -> None:
        """Take the content of a robots meta element or X-Robots-Tag header."""
        words = set(_DIRECTIVE.findall(content.lower()))
        self.noindex = self.noindex or "noindex" in words or "none" in words
        self.nofollow = self.nofollow or "nofollow" in words or "none" in words

    def base(self, href: str) -> None:
        """Take the page's base element, which may itself be relative to the page."""
        if len(href) > MAX_BASE_CHARS:
            self.counters["base-invalid"] += 1
        elif self._base is not None:
            try:
                self._base = self._base + href
            except (ValueError, TypeError):
                self.counters["base-invalid"] += 1

    def canonical_link(self, href: str) -> None:
        """Take a link element with rel=canonical; the first usable one counts."""
        if self.canonical is None:
            own = canonical_url(href, self._base).url
            self.canonical = None if own == self._url else own

    def link(self, href: str, anchor: str | None, rel: str | None) -> None:
        """Take a link: its reference, text and relations."""
        if self._is_over_cap():
            return
        if href.lstrip().startswith("#"):
            self.counters["links-to-fragment"] += 1
            return
        known = self._known.get(href)  # a fifth to a half of a page's links repeat others
        if known is None:
            known = self._known[href] = canonical_url(href, self._base)
        url, reason = known
        if url is not None:
            self._add(url, squeeze(anchor, MAX_ANCHOR_CHARS), rel is not None and "nofollow" in rel.lower().split())
        elif reason == "scheme-unsupported":
            self.counters["links-scheme-unsupported"] += 1
        else:
            self.bad.append((reason or "url-invalid", href.strip()))

    def _is_over_cap(self) -> bool:
        """Count a reference; whether it is one too many, which is counted, too."""
        self._seen += 1
        if self._seen > self._max_links:
            self.counters["links-over-cap"] += 1
            return True
        return False

    def _add(self, url: str, anchor: str | None, nofollow: bool) -> None:
        self.targets.append(url)
        self.anchors.append(anchor)
        self.nofollows.append(nofollow)

    def refresh_to(self, content: str) -> None:
        """Take the content of a refresh meta element or header; the first that leads elsewhere at once counts."""
        found = _REFRESH.match(content)
        if found is None or self._is_over_cap():
            return
        url, reason = canonical_url(found[2].strip(), self._base)
        if url is None:
            self.bad.append((reason or "url-invalid", content))
        elif url != self._url:
            if int(found[1]) > MAX_REFRESH_SECONDS:
                self._add(url, None, False)
            elif self.refresh is None:
                self.refresh = url


def squeeze(text: str | None, max_chars: int) -> str | None:
    """The text with runs of white space made one space and cut to its length; None where nothing is left."""
    return " ".join(text.split())[:max_chars].rstrip() or None if text else None
