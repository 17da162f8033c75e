"""What a user wants of a crawl's scope: rules by regular expressions, lists of hosts and domains, lengths of URLs.

A file of rules has one rule a line, `+REGEX` or `-REGEX`, as Nutch's `regex-urlfilter.txt` has: the first rule whose
expression is found anywhere in the URL decides. A URL that no rule of a file matches is kept by a file that excludes,
and held back by one that includes. Expressions are those of RE2, whose time is in proportion to the URL's length.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from semrank.schemas.errors import InputError
from semrank.transforms.columnar.arrays import column_array

FILTER = "filter"
"""First part of the reason why such a URL is held back; the rule follows after a colon."""


@dataclass(frozen=True)
class Rule:
    """One line of a file of rules.

    Attributes:
        keeps: whether a URL that matches is kept.
        pattern: regular expression of RE2.
    """

    keeps: bool
    pattern: str

    @property
    def text(self) -> str:
        """The line."""
        return ("+" if self.keeps else "-") + self.pattern


@dataclass(frozen=True)
class Rules:
    """The scope of a crawl; without any field every URL is inside.

    Attributes:
        include: rules of the file that includes, or None without one.
        exclude: rules of the file that excludes.
        hosts: the only hosts, or None.
        domains: the only domains, with all hosts below them, or None.
        max_url_length: most characters of a URL, or None.
    """

    include: tuple[Rule, ...] | None = None
    exclude: tuple[Rule, ...] = ()
    hosts: frozenset[str] | None = None
    domains: frozenset[str] | None = None
    max_url_length: int | None = None

    def reasons(self, urls: pa.Array | pa.ChunkedArray, hosts: pa.Array | pa.ChunkedArray) -> pa.Array:
        """Why each URL is outside, `filter:RULE`, null where it is inside; string[n].

        Args:
            urls: canonical URLs, string[n].
            hosts: their hosts, string[n].
        """
        urls, hosts = column_array(urls), column_array(hosts).dictionary_encode()
        found = pa.nulls(len(urls), pa.string())
        if self.max_url_length is not None:
            found = _first(found, pc.greater(pc.utf8_length(urls), self.max_url_length), "max-url-length")
        for name, only in (("only-hosts", self.hosts), ("only-domains", self.domains)):
            if only is not None:
                outside = [
                    not _is_in(host, only, below=name == "only-domains") for host in hosts.dictionary.to_pylist()
                ]
                found = _first(found, pa.array(outside, pa.bool_()).take(hosts.indices), name)
        found = pc.coalesce(found, _decided(urls, self.exclude))
        if self.include is not None:
            found = pc.coalesce(found, _decided(urls, (*self.include, Rule(False, ""))))
        return column_array(found)


EVERYWHERE = Rules()
"""The scope without bounds."""


def _is_in(host: str, names: frozenset[str], *, below: bool) -> bool:
    if host in names or not below:
        return host in names
    labels = host.split(".")
    return any(".".join(labels[start:]) in names for start in range(1, len(labels)))


def _first(found: pa.Array, outside: pa.Array, name: str) -> Any:
    return pc.coalesce(found, pc.if_else(outside, f"{FILTER}:{name}", pa.scalar(None, pa.string())))


def _decided(urls: pa.Array, rules: Iterable[Rule]) -> pa.Array:
    """`filter:RULE` where the first rule that matches is one that holds back, else null."""
    open_urls = pa.repeat(True, len(urls))
    reasons = pa.nulls(len(urls), pa.string())
    for rule in rules:
        matched = pc.and_(open_urls, pc.match_substring_regex(urls, rule.pattern))
        if not rule.keeps:
            # The rule without an expression stands for the end of a file that includes.
            name = rule.text if rule.pattern else "include"
            reasons = pc.if_else(matched, f"{FILTER}:{name}", reasons)
        open_urls = pc.and_not(open_urls, matched)
    return reasons


def read_rules(text: str, source: str) -> tuple[Rule, ...]:
    """The rules of a file's text.

    Args:
        text: the lines.
        source: option and path, for messages.

    Raises:
        InputError: a line is no rule, or its expression is none of RE2.
    """
    rules = []
    for number, line in enumerate(text.splitlines(), 1):
        rule = line.strip()
        if not rule or rule.startswith("#"):
            continue
        if rule[0] not in "+-" or len(rule) == 1:
            raise InputError(
                f"{source}, line {number}: found '{rule:.100}', expected +REGEX, -REGEX or # and a comment"
            )
        try:
            pc.match_substring_regex(pa.array([""]), rule[1:])
        except pa.ArrowInvalid as cause:
            reason = str(cause).split(": ", 1)[-1].splitlines()[0]
            raise InputError(
                f"{source}, line {number}: '{rule:.100}' is not a regular expression of RE2: {reason}"
            ) from cause
        rules.append(Rule(rule[0] == "+", rule[1:]))
    return tuple(rules)
