"""The options of a round, checked when they are put together."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any, get_args, get_type_hints

from semrank.schemas.errors import InputError
from semrank.transforms.ranking.registry import DEFAULT_ONTOLOGY, RANKERS, with_option

PROFILES: dict[str, dict[str, Any]] = {
    "focused": {"ranker": "focused"},
    "paper-2013": {"weight": 0.4, "intension_norm": "min", "extension": "links"},
    "paper-2008": {"weight": None, "intension_norm": "min", "extension": "links"},
    "formica-2006": {"weight": 0.4, "intension_norm": "max", "extension": "objects"},
}
"""What each profile sets; the options of the same name change it. A weight of None follows from the extension."""

DEFAULT_PROFILE = "focused"
LEVELS = ("page", "host")
HOST_QUALITIES = ("pagerank", "harmonic", "equal")
SIGMAS = ("lift", "as-printed")
USER_GROUPS = ("given", "one", "minhash")
INTENSION_NORMS = ("min", "max")
C_EDGES = ("distinct", "clicks")


@dataclass(frozen=True)
class RoundConfig:
    """How a round is computed; every field is an option of the same name.

    Attributes:
        profile: the bundle of choices that the other fields start from.
        ranker: what the score is; see `RANKERS`.
        semrank_terms: whether another ranker than SemRank tells SemRank's terms too, which counts nothing in its score.
        level: whether PageRank, HITS and harmonic centrality are those of pages or of hosts.
        ontology: name of a shipped ontology, a file, or a database that one is learned from; for the ranker `ontology`.
        topic: name of the class that is the topic, or None for what the ontology says.
        sigma: how classes' weights are learned, `lift` or `as-printed`.
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
        max_per_domain: most URLs of one registrable domain that are selected, or None.
        budget: number of URLs to select, shared among hosts, or None.
        host_quality: what hosts' shares of the budget grow with: `pagerank` or `harmonic` of the graph of hosts, or
            `equal` shares.
        mix: parts of the selection for new and for known pages, `DISCOVER:REFRESH`; with it known pages count as much
            as they are likely to have changed. None where they count as new ones do.
        as_of: the moment that counts as now, ISO 8601, or None for the newest capture of the snapshot.
        write_lattices: whether the current lattice is written, too.

    Raises:
        InputError: a value is outside its range; the message names the option.
    """

    profile: str = DEFAULT_PROFILE
    ranker: str = "semrank"
    semrank_terms: bool = False
    level: str = "page"
    ontology: str | None = None
    topic: str | None = None
    sigma: str = "lift"
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
    max_per_domain: int | None = None
    budget: int | None = None
    host_quality: str = "pagerank"
    mix: str | None = None
    as_of: str | None = None
    write_lattices: bool = False

    def __post_init__(self) -> None:
        _one_of("profile", self.profile, tuple(PROFILES))
        _one_of("ranker", self.ranker, tuple(RANKERS))
        _one_of("level", self.level, LEVELS)
        own = RANKERS[self.ranker].options
        if self.level != "page" and "level" not in own:
            raise InputError(
                f"--level {self.level}: found --ranker {self.ranker}, expected one of {', '.join(with_option('level'))}"
            )
        _one_of("host-quality", self.host_quality, HOST_QUALITIES)
        _one_of("sigma", self.sigma, SIGMAS)
        for name in ("ontology", "topic"):
            if getattr(self, name) is not None and name not in own:
                raise InputError(
                    f"--{name} {getattr(self, name)}: found --ranker {self.ranker}, expected --ranker ontology"
                )
        _one_of("intension-norm", self.intension_norm, INTENSION_NORMS)
        _one_of("c-edges", self.c_edges, C_EDGES)
        _one_of("user-groups", self.user_groups, USER_GROUPS)
        if not re.fullmatch("[a-z]{2,3}", self.language):
            raise InputError(f"--language: found '{self.language}', expected a code of ISO 639 as in en")
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
        for name in ("max_urls", "max_per_host", "max_per_domain", "budget"):
            if getattr(self, name) is not None:
                _at_least_one(name, getattr(self, name))
        if self.budget is not None and self.max_urls is not None:
            raise InputError(
                f"--budget: found {self.budget} beside --max-urls {self.max_urls}, expected one of them: "
                "a budget is shared among hosts, --max-urls takes the best"
            )

        if self.as_of is not None and self.mix is None:
            raise InputError(f"--as-of {self.as_of}: found no --mix, expected one: nothing else depends on the time")
        _ = self.refresh_share, self.now

    @property
    def refresh_share(self) -> float | None:
        """Part of the selection that is for pages that were fetched before."""
        if self.mix is None:
            return None
        parts = re.fullmatch(r"(\d{1,9}):(\d{1,9})", self.mix)
        if parts is None or not int(parts[1]) + int(parts[2]):
            raise InputError(f"--mix: found '{self.mix}', expected two whole numbers as in 80:20, not both 0")
        return int(parts[2]) / (int(parts[1]) + int(parts[2]))

    @property
    def now(self) -> int | None:
        """`as_of` in microseconds since 1970."""
        if self.as_of is None:
            return None
        try:
            moment = datetime.fromisoformat(self.as_of)
        except ValueError as cause:
            raise InputError(f"--as-of: found '{self.as_of}', expected a time as in 2026-01-31T06:00:00Z") from cause
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)

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
    default = round_config(argparse.Namespace(profile=None))

    def add(name: str, text: str, kind: Any = str, **extra: Any) -> None:
        value = getattr(default, name)
        note = "" if value in (None, False) else f" (default {value})"
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=None, help=text + note, **extra)

    add("profile", f"bundle of choices: {', '.join(PROFILES)}", metavar="NAME")
    add("ranker", f"what the score is: {', '.join(RANKERS)}", metavar="NAME")
    add("level", "page or host: whose PageRank, HITS or harmonic centrality", metavar="LEVEL")
    add("ontology", f"ontology of --ranker ontology: {DEFAULT_ONTOLOGY}, a file, or a database's URL", metavar="NAME")
    add("topic", "class of the ontology that is the topic", metavar="CLASS")
    add("sigma", "how weights of classes are learned: lift, or as-printed in the paper", metavar="WAY")
    add("query", "what the crawl is about; a single keyword can be the top of the hierarchy", metavar="WORDS")
    add("weight", "w of the extension in the similarity, 0 to 1", _number, metavar="W")
    add(
        "threshold",
        f"gamma: a URL with a higher score is selected; {_thresholds()}, 0 with others",
        _number,
        metavar="G",
    )
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
    add("max_per_domain", "most URLs of one registrable domain that are selected", _whole, metavar="N")
    add("host_quality", "what hosts' shares of --budget grow with: pagerank, harmonic or equal", metavar="WAY")
    add("mix", "parts of new and known pages in the selection, as in 80:20", metavar="D:R")
    add("as_of", "moment from which known pages are judged by age; the newest capture if not given", metavar="TIME")
    add("budget", "URLs to select, shared among hosts by their quality", _whole, metavar="N")
    parser.add_argument(
        "--semrank-terms",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="tell SemRank's terms beside another ranker's; most of a round's time (default with the focused profile)",
    )
    parser.add_argument("--write-lattices", action="store_true", help="write the current lattice, too")


def _thresholds() -> str:
    return ", ".join(f"{ranker.threshold:g} with {name}" for name, ranker in RANKERS.items() if ranker.threshold)


def round_config(arguments: argparse.Namespace) -> RoundConfig:
    """The configuration that parsed options describe.

    Raises:
        InputError: an option is outside its range.
    """
    given = {field.name: getattr(arguments, field.name, None) for field in fields(RoundConfig)}
    profile = given["profile"] or DEFAULT_PROFILE
    _one_of("profile", profile, tuple(PROFILES))
    chosen = {name: value for name, value in given.items() if value is not None}
    values = {**PROFILES[profile], **chosen, "profile": profile}
    ranker = values.setdefault("ranker", "semrank")
    values.setdefault("threshold", RANKERS[ranker].threshold if ranker in RANKERS else 0.0)
    # The terms take most of a round's time: they come unasked only with the profile as it is.
    values.setdefault("semrank_terms", ranker == "focused" and "ranker" not in chosen)
    return RoundConfig(**values)


def stored_config(parameters: Mapping[str, Any], source: str) -> RoundConfig:
    """The configuration that a round's folder tells; an option that its version did not have has its default.

    Args:
        parameters: what `RoundConfig.as_dict` gave.
        source: the file that tells them, for messages.

    Raises:
        InputError: there is no such option, or an option can't have that value.
    """
    kinds = get_type_hints(RoundConfig)
    for name, value in parameters.items():
        if name not in kinds:
            raise InputError(f"{source}: found the parameter '{name}', expected options of this version of semrank")
        expected = get_args(kinds[name]) or (kinds[name],)
        # A whole number is a number, but a truth value, which Python counts among them, is none.
        if type(value) not in (*expected, *((int,) if float in expected else ())):
            names = " or ".join("null" if kind is type(None) else kind.__name__ for kind in expected)
            raise InputError(f"{source}: the parameter '{name}' is {value!r:.60}, expected {names}")
    try:
        return RoundConfig(**parameters)
    except InputError as cause:
        raise InputError(f"{source}: {cause}") from cause


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
