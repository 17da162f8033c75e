"""What a page asks of robots, by robots meta elements and X-Robots-Tag headers.

Both follow Google's "Robots meta tag, data-nosnippet, and X-Robots-Tag specifications", the only full description of
them: rules are parted by commas and compared as whole words, a rule may have a value behind a colon, names of crawlers
(RFC 9309's product tokens) restrict rules to them, and all rules that apply add up.
"""

from __future__ import annotations

import re

MAX_DIRECTIVES_CHARS = 8_192
"""Characters of a header or element that are looked at."""

ANY = "robots"
"""The name under which meta elements speak to all robots."""

_WITH_VALUES = frozenset({"max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"})
_DATE = "unavailable_after"  # whose value may have blanks
_CRAWLER = re.compile(r"[A-Za-z0-9_.*-]++(?:/[0-9.]++)?")
_PARTS = re.compile(r"[,;]")


class Robots:
    """Adds up what pages ask of one crawler.

    Args:
        name: the crawler's name (product token); None for one that only rules for all robots speak to.

    Attributes:
        noindex: whether title and text are not to be used.
        nofollow: whether no link of the page is to be followed.
    """

    def __init__(self, name: str | None = None) -> None:
        self.noindex = False
        self.nofollow = False
        self._names = frozenset({"*", ANY} if name is None else {"*", ANY, name.strip().lower()})

    def meta(self, name: str, content: str) -> None:
        """Take a meta element; those of other names than `robots` and the crawler's are passed over."""
        if name.strip().lower() in self._names:
            for part in _parts(content):
                self._rule(part)

    def header(self, value: str) -> None:
        """Take X-Robots-Tag headers, one a line; a crawler's name counts up to the next name or the line's end."""
        for line in value[:MAX_DIRECTIVES_CHARS].split("\n"):
            applies = True
            for part in _parts(line):
                name, colon, rest = part.partition(":")
                name = name.strip().lower()
                if colon and name not in _WITH_VALUES and _CRAWLER.fullmatch(name):
                    applies, part = name.partition("/")[0] in self._names, rest
                if applies:
                    self._rule(part)

    def _rule(self, part: str) -> None:
        name, colon, value = part.partition(":")
        if colon and name.strip().lower() in _WITH_VALUES:
            # Behind a value without a comma there may be further rules.
            words = [] if name.strip().lower() == _DATE else value.lower().split()[1:]
        else:
            words = part.lower().split()
        self.noindex = self.noindex or "noindex" in words or "none" in words
        self.nofollow = self.nofollow or "nofollow" in words or "none" in words


def _parts(text: str) -> list[str]:
    return _PARTS.split(text[:MAX_DIRECTIVES_CHARS])
