"""The options of a round, checked when they are put together."""

from __future__ import annotations

import argparse
import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from schemas.errors import InputError

PROFILES: dict[str, dict[str, Any]] = {
    "paper-2013": {"weight": 0.4, "intension_norm": "min", "extension": "links"},
    "paper-2008": {"weight": None, "intension_norm": "min", "extension": "links"},
    "formica-2006": {"weight": 0.4, "intension_norm": "max", "extension": "objects"},
}
"""What each profile sets; the options of the same name change it. A weight of None follows from the extension."""

DEFAULT_PROFILE = "paper-2013"
USER_GROUPS = ("given", "one", "minhash")
INTENSION_NORMS = ("min", "max")
C_EDGES = ("distinct", "clicks")


@dataclass(frozen=True)
class RoundConfig:
    """How a round is computed; every field is an option of the same name.

    Attributes:
        profile: the bundle of choices that the other fields start from.
        weight: w of the extension in [0, 1], or None for extension / (extension + intension).
        intension_norm: `min` divides a matching by the smaller intent, `max` by the larger.
        extension: `links` counts links and clicks between extents, `objects` shared URLs.
        threshold: gamma; a URL whose score is above it is selected.
        alpha: adjustment of the hierarchy's edge weights, in (0, 0.5].
        top_probability: p(Top): `max`, `min` or a number in (0, 1].
        smoothing: added to the clicks of every word.
        c_edges: `distinct` counts each pair of pages once, `clicks` each click.
        min_support: smallest number of URLs of a concept.
        keywords_per_page: K best words of a page or of the anchors of a URL.
        min_clicks: clicks from which a query word is a word of an unfetched URL.
        max_keywords_per_url: best clicked words of a URL that take part in relations.
        min_relation_support: smallest support of a relation.
        user_groups: where groups of users come from.
        language: language of short texts and of pages whose language is not known.
        query: what the crawl is about; a single keyword can be the top of the hierarchy.
        max_urls: most URLs that are selected, or None.
        max_per_host: most URLs of one host that are selected, or None.
        write_lattices: whether the current lattice is written, too.

    Raises:
        InputError: a value is outside its range; the message names the option.
    """

    profile: str = DEFAULT_PROFILE
    weight: float | None = 0.4
    intension_norm: str = "min"
    extension: str = "links"
    threshold: float = 0.45
    alpha: float = 0.2
    top_probability: str | float = "max"
    smoothing: float = 0.0
    c_edges: str = "distinct"
    min_support: int = 1
    keywords_per_page: int = 12
    min_clicks: int = 1
    max_keywords_per_url: int = 50
    min_relation_support: int = 1
    user_groups: str = "given"
    language: str = "en"
    query: str | None = None
    max_urls: int | None = None
    max_per_host: int | None = None
    write_lattices: bool = False

    def __post_init__(self) -> None:
        _one_of("profile", self.profile, tuple(PROFILES))
        _one_of("intension-norm", self.intension_norm, INTENSION_NORMS)
        _one_of("c-edges", self.c_edges, C_EDGES)
        _one_of("user-groups", self.user_groups, USER_GROUPS)
        if self.weight is not None:
            _in_range("weight", self.weight, 0, 1)
        _in_range("threshold", self.threshold, 0, 1)
        if not 0 < self.alpha <= 0.5:
            raise InputError(f"--alpha: found {self.alpha}, expected a number above 0 and at most 0.5")
        if isinstance(self.top_probability, str):
            _one_of("top-probability", self.top_probability, ("max", "min", "a number in (0, 1]"))
        elif not 0 < self.top_probability <= 1:
            raise InputError(
                f"--top-probability: found {self.top_probability}, expected max, min or a number in (0, 1]"
            )
        _in_range("smoothing", self.smoothing, 0, 1e9)
        for name in ("min_support", "keywords_per_page", "min_clicks", "max_keywords_per_url", "min_relation_support"):
            _at_least_one(name, getattr(self, name))
        for name in ("max_urls", "max_per_host"):
            if getattr(self, name) is not None:
                _at_least_one(name, getattr(self, name))

    def as_dict(self) -> dict[str, Any]:
        """The fields, for manifests."""
        return asdict(self)


def _one_of(option: str, found: str, expected: tuple[str, ...]) -> None:
    if found not in expected:
        raise InputError(f"--{option}: found '{found}', expected one of {', '.join(expected)}")


def _in_range(option: str, found: float, low: float, high: float) -> None:
    if not (math.isfinite(found) and low <= found <= high):
        raise InputError(f"--{option}: found {found}, expected a number from {low:g} to {high:g}")


def _at_least_one(name: str, found: int) -> None:
    if found < 1:
        raise InputError(f"--{name.replace('_', '-')}: found {found}, expected a whole number of at least 1")


def add_round_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `RoundConfig`; one that is not given keeps the profile's value."""
    default = RoundConfig()

    def add(name: str, text: str, kind: Any = str, **extra: Any) -> None:
        value = getattr(default, name)
        note = "" if value in (None, False) else f" (default {value})"
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=None, help=text + note, **extra)

    add("profile", f"bundle of choices: {', '.join(PROFILES)}", metavar="NAME")
    add("query", "what the crawl is about; a single keyword can be the top of the hierarchy", metavar="WORDS")
    add("weight", "w of the extension in the similarity, 0 to 1", _number, metavar="W")
    add("threshold", "gamma: a URL with a higher score is selected", _number, metavar="G")
    add("alpha", "adjustment of the hierarchy's edge weights, above 0 to 0.5", _number, metavar="A")
    add("intension_norm", "size that divides a matching: min or max of the two intents", metavar="NORM")
    add("top_probability", "p(Top): max, min or a number", _word_or_number, metavar="P")
    add("smoothing", "clicks added to every word", _number, metavar="F")
    add("c_edges", "distinct counts each pair of pages once, clicks every click", metavar="WAY")
    add("min_support", "smallest number of URLs of a concept", _whole, metavar="N")
    add("keywords_per_page", "best words of a page", _whole, metavar="K")
    add("min_clicks", "clicks from which a query word is a word of an unfetched URL", _whole, metavar="N")
    add("max_keywords_per_url", "best clicked words of a URL that take part in relations", _whole, metavar="N")
    add("min_relation_support", "smallest number of pages or links behind a relation", _whole, metavar="N")
    add("user_groups", "groups of users: given in the log, one, or minhash of their words", metavar="WAY")
    add("language", "language of queries, anchors and of pages whose language is not known", metavar="CODE")
    add("max_urls", "most URLs that are selected", _whole, metavar="N")
    add("max_per_host", "most URLs of one host that are selected", _whole, metavar="N")
    parser.add_argument("--write-lattices", action="store_true", help="write the current lattice, too")


def round_config(arguments: argparse.Namespace) -> RoundConfig:
    """The configuration that parsed options describe.

    Raises:
        InputError: an option is outside its range.
    """
    given = {field.name: getattr(arguments, field.name, None) for field in fields(RoundConfig)}
    profile = given["profile"] or DEFAULT_PROFILE
    _one_of("profile", profile, tuple(PROFILES))
    chosen = {name: value for name, value in given.items() if value is not None}
    return RoundConfig(**{**PROFILES[profile], **chosen, "profile": profile})


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as cause:
        raise argparse.ArgumentTypeError(f"found '{text}', expected a number") from cause


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError as cause:
        raise argparse.ArgumentTypeError(f"found '{text}', expected a whole number") from cause


def _word_or_number(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text
