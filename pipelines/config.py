"""The options of a round, checked when they are put together."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, get_args, get_type_hints

from semrank.pipelines.options import (
    add_options,
    check_options,
    declared,
    given_options,
    help_group,
    option,
    option_name,
)
from semrank.schemas.errors import InputError, shown_path
from semrank.transforms.context.nouns import MODELS
from semrank.transforms.frontier.depth import MAX_DEPTH
from semrank.transforms.ranking.ontology_database import shown_address
from semrank.transforms.ranking.registry import CONTEXTS, DEFAULT_ONTOLOGY, DESCRIPTIONS, RANKERS, SEMRANK, with_option
from semrank.transforms.streams.texts import well_formed

PROFILES: dict[str, dict[str, Any]] = {
    "focused": {"ranker": "focused"},
    "topic": {"ranker": "semrank"},
    "paper-2013": {"weight": 0.4, "intension_norm": "min", "extension": "links"},
    "paper-2008": {"weight": None, "intension_norm": "min", "extension": "links"},
    "formica-2006": {"weight": 0.4, "intension_norm": "max", "extension": "objects"},
}
"""What each profile sets; the options of the same name change it. A weight of None follows from the extension."""

DEFAULT_PROFILE = "focused"
TOPIC_THRESHOLD = 0.35
"""Threshold of SemRank by the topic's lattice where none is given."""

PAPER_PROFILES = ("paper-2013", "paper-2008", "formica-2006")
LEVELS = ("page", "host")
HOST_QUALITIES = ("pagerank", "harmonic", "equal")
SIGMAS = ("lift", "as-printed")
COMBINATIONS = ("sum", "logarithms")
USER_GROUPS = ("given", "one", "minhash")
INTENSION_NORMS = ("min", "max")
C_EDGES = ("distinct", "clicks")
TOPIC_RELATIONS = (NO_RELATIONS := "none", "isa", "part-of", "both")
BASES = ("last", "seeds", "topic")
LOG_SCOPES = ("all", "topic")
WORDS, NOUNS = "words", "nouns"


QUEUE_GROUP, SELECTION, RANKING, SEMRANK_GROUP, LOG = "queue", "selection", "ranker", "SemRank", "log"
"""Titles of groups of options."""

_LARGEST = 1e9
"""Largest value of options that are numbers without a bound of their own."""

_SEMRANK = frozenset({SEMRANK})
_BY_TEXT = frozenset(name for name, ranker in RANKERS.items() if ranker.needs & {DESCRIPTIONS, CONTEXTS})


def _semrank(default: Any, text: str, **further: Any) -> Any:
    return option(default, text, SEMRANK_GROUP, rankers=_SEMRANK, **further)


def _own(default: Any, text: str, name: str, **further: Any) -> Any:
    """An option of one ranker, found by its name in the registry; a number of at least 0 by default."""
    bounds = {} if "choices" in further else {"low": 0, "high": _LARGEST}
    return option(default, text, RANKING, rankers=frozenset(with_option(name)), **{**bounds, **further})


def _log(default: Any, text: str, **further: Any) -> Any:
    return option(default, text, LOG, rankers=_SEMRANK, **further)


def _count(text: str) -> Any:
    """A limit of the selection; none if it is not given."""
    return option(None, text, SELECTION, metavar="N", low=1)


def _file(text: str) -> Any:
    """A file that bounds the selection; none if it is not given."""
    return option(None, text, SELECTION, metavar="FILE")


@dataclass(frozen=True)
class ScopeOptions:
    """The URLs that a round may select, or an export may write."""

    include: str | None = _file(
        "keep only URLs that these rules keep: +REGEX or -REGEX on each line, the first match decides"
    )
    exclude: str | None = _file(
        "leave out URLs that these rules exclude: -REGEX or +REGEX on each line, the first match decides"
    )
    only_hosts: str | None = _file("keep only URLs of these hosts, one on each line")
    only_domains: str | None = _file("keep only URLs of these domains and all hosts below them, one on each line")
    max_url_length: int | None = _count("leave out URLs of more than N characters")

    @property
    def files(self) -> list[str]:
        """The files that are given."""
        return [path for path in (self.include, self.exclude, self.only_hosts, self.only_domains) if path is not None]


@dataclass(frozen=True)
class RoundConfig(ScopeOptions):
    """How a round is computed; every field but `extension`, which profiles set, is an option of the same name.

    Raises:
        InputError: a value is outside its range; the message names the option.
    """

    profile: str = option(
        DEFAULT_PROFILE,
        "preset of options, each of which can still be given",
        RANKING,
        metavar="NAME",
        choices=tuple(PROFILES),
    )
    ranker: str = option("semrank", "ranker that computes the score", RANKING, metavar="NAME", choices=tuple(RANKERS))
    query: str | None = option(
        None,
        "words about the topic, in addition to the seeds; a single keyword can be the top of the hierarchy",
        RANKING,
        metavar="WORDS",
        rankers=_BY_TEXT,
    )
    language: str = option(
        "en",
        "language of queries and anchor texts, and of pages whose language is unknown",
        RANKING,
        metavar="CODE",
        pattern="[a-z]{2,3}",
        example="a code of ISO 639 as in en",
        rankers=_BY_TEXT,
    )
    keywords: str = option(
        WORDS,
        f"keywords: every word, or only nouns and names (languages {', '.join(MODELS)}, the extra `nouns`)",
        RANKING,
        metavar="KIND",
        choices=(WORDS, NOUNS),
        rankers=_BY_TEXT,
    )
    level: str = option(
        "page",
        "what PageRank, HITS and harmonic centrality are computed for",
        RANKING,
        metavar="LEVEL",
        choices=LEVELS,
        rankers=frozenset(with_option("level")),
    )
    ontology: str | None = option(
        None, f"ontology of --ranker ontology: {DEFAULT_ONTOLOGY}, a file, or a database's URL", RANKING, metavar="NAME"
    )
    topic: str | None = option(None, "class of the ontology that is the topic", RANKING, metavar="CLASS")
    sigma: str = option(
        "lift",
        "how the weights of classes are learned",
        RANKING,
        metavar="WAY",
        choices=SIGMAS,
        rankers=frozenset(with_option("sigma")),
    )
    ontology_r1: float = _own(0.5, "r1 of the content score", "ontology_r1", metavar="R")
    ontology_r2: float = _own(0.5, "r2 of the link score", "ontology_r2", metavar="R")
    ontology_n: float = _own(
        0.5,
        "n, factor of a class's weight for each relation between it and the topic",
        "ontology_n",
        metavar="N",
        high=1,
        above=True,
    )
    ontology_theta: float = _own(
        0.5, "theta, smoothing of the share of relevant child pages", "ontology_theta", metavar="T", above=True
    )
    ontology_combine: str = _own(
        "sum",
        "how the two scores are combined",
        "ontology_combine",
        metavar="WAY",
        choices=COMBINATIONS,
    )
    rcg_alpha: float = _own(
        0.5, "weight of a layer around the seeds, relative to the layer before it", "rcg_alpha", metavar="A", high=1
    )
    cosine_k: float = _own(
        2.0,
        "saturation of word counts: the larger, the more further occurrences of a word count",
        "cosine_k",
        metavar="K",
    )
    cosine_b: float = _own(0.75, "normalization by page length, 0 for none", "cosine_b", metavar="B", high=1)
    hits_graph: str = _own(
        "all",
        "links that HITS uses: all between known URLs, or those of the subgraph around the topic",
        "hits_graph",
        metavar="LINKS",
        choices=("all", "topic"),
    )
    semrank_terms: bool = option(
        False,
        "compute SemRank's terms as well, when another ranker computes the score",
        SEMRANK_GROUP,
    )
    weight: float | None = _semrank(
        0.4, "weight w of the extension in the similarity, 0 to 1", metavar="W", low=0, high=1
    )
    intension_norm: str = _semrank(
        "min", "size of the two intents that a matching is divided by", metavar="NORM", choices=INTENSION_NORMS
    )
    extension: str = "links"
    alpha: float = _semrank(
        0.2, "adjustment of the hierarchy's edge weights, above 0 to 0.5", metavar="A", low=0, high=0.5, above=True
    )
    top_probability: str | float = _semrank(
        "max",
        "probability of the top of the hierarchy, p(Top)",
        metavar="P",
        choices=("max", "min"),
        low=0,
        high=1,
        above=True,
    )
    smoothing: float = _semrank(0.0, "clicks added to every word's count", metavar="F", low=0, high=1e9)
    min_support: int = _semrank(1, "smallest number of URLs of a concept", metavar="N", low=1)
    keywords_per_page: int = _semrank(
        12, "number of best words that describe a page, or a URL by its anchor texts", metavar="K", low=1
    )
    write_lattices: bool = _semrank(False, "also write the current lattice", plain=True)
    base: str = _semrank(
        "last",
        "pages of the base lattice: what the last round selected, the seeds, or the seeds with the harvested pages "
        "that are nearest to them; with the latter two, all URLs that harvested pages link to are ranked",
        metavar="PAGES",
        choices=BASES,
    )
    log_scope: str = _log(
        "all",
        "clicks that relations and probabilities are learned from; topic: those after queries that share a word with "
        "the base lattice or --query",
        metavar="SCOPE",
        choices=LOG_SCOPES,
    )
    isa_needs_word: bool = _log(False, "count a page for a word's relations only if the word is one of its keywords")
    query_words: bool = _log(True, "use the words of a query as words of the unfetched URLs that were clicked after it")
    topic_relations: str = option(
        NO_RELATIONS,
        "with the profile topic, also match words that the click log relates, by ISA, Part-Of or both",
        LOG,
        metavar="WHICH",
        choices=TOPIC_RELATIONS,
        rankers=frozenset(with_option("topic_relations")),
    )
    c_edges: str = option(
        "distinct", "whether each pair of pages counts once, or every click", LOG, metavar="WAY", choices=C_EDGES
    )
    min_clicks: int = _log(
        1, "smallest number of clicks that makes a query word a word of an unfetched URL", metavar="N", low=1
    )
    max_keywords_per_url: int = _log(
        50, "number of best clicked words of a URL that relations are learned from", metavar="N", low=1
    )
    min_relation_support: int = _log(1, "smallest number of pages or links that support a relation", metavar="N", low=1)
    user_groups: str = _log(
        "given",
        "groups of users: given by the log, one for all, or made by MinHash of the users' words",
        metavar="WAY",
        choices=USER_GROUPS,
    )
    threshold: float | None = option(
        None,
        "select URLs with a score above G (default: none with --max-urls or --budget, else that of --precision, else "
        "the ranker's own)",
        SELECTION,
        metavar="G",
        low=0,
        high=1,
    )
    precision: float = option(
        0.5,
        "calibrate the threshold: the lowest score above which at least this share of the harvested pages is half as "
        "like the topic as the seeds; if there is none, nothing is selected; only with --ranker focused and without "
        "--threshold, --max-urls and --budget",
        SELECTION,
        metavar="P",
        low=0,
        high=1,
        rankers=frozenset(with_option("precision")),
    )
    max_urls: int | None = _count("select at most N URLs")
    max_per_host: int | None = _count("select at most N URLs of a host")
    max_per_domain: int | None = _count("select at most N URLs of a registrable domain")
    budget: int | None = _count("select N URLs, shared among hosts by their quality")
    host_quality: str = option(
        "pagerank",
        "quality that the hosts' shares of --budget are proportional to",
        SELECTION,
        metavar="WAY",
        choices=HOST_QUALITIES,
    )
    mix: str | None = option(
        None,
        "ratio of new to known pages in the selection, as in 80:20",
        SELECTION,
        metavar="D:R",
        pattern=r"\d{1,9}:\d{1,9}",
        example="two whole numbers as in 80:20, not both 0",
    )
    as_of: str | None = option(
        None,
        "time that counts as now for --mix (default: the newest capture)",
        SELECTION,
        metavar="TIME",
    )

    recrawl: bool = option(False, "also select pages that the snapshot already has", SELECTION, plain=True)
    max_depth: int | None = option(
        None,
        "leave out URLs that are more than N links away from the seeds, over pages that the crawl chose",
        SELECTION,
        metavar="N",
        low=1,
        high=MAX_DEPTH,
    )
    allow_private: bool = option(
        False, "also select URLs of the crawler's own network, such as localhost or 10.0.0.1", SELECTION, plain=True
    )

    def __post_init__(self) -> None:
        check_options(self)
        own = RANKERS[self.ranker].options
        if self.level != "page" and "level" not in own:
            raise InputError(
                f"--level {self.level}: found --ranker {self.ranker}, expected one of {', '.join(with_option('level'))}"
            )
        for name in ("ontology", "topic"):
            if getattr(self, name) is not None and name not in own:
                raise InputError(
                    f"--{name} {getattr(self, name)}: found --ranker {self.ranker}, expected --ranker ontology"
                )
        if self.budget is not None and self.max_urls is not None:
            raise InputError(
                f"--budget: found {self.budget} together with --max-urls {self.max_urls}, expected one of them: "
                "a budget is shared among hosts, --max-urls takes the best"
            )
        if self.as_of is not None and self.mix is None:
            raise InputError(f"--as-of {self.as_of}: found no --mix, expected one: only --mix depends on the time")
        if self.query is not None and not self.query.strip():
            raise InputError("--query: found no word, expected words of the topic")
        if self.query is not None and self.query != well_formed(self.query):
            raise InputError(f"--query {shown_path(self.query)}: is not UTF-8, expected words of the topic")
        _ = self.refresh_share, self.now

    @property
    def nouns_only(self) -> bool:
        """Whether only nouns are keywords."""
        return self.keywords == NOUNS

    @property
    def compares_rounds(self) -> bool:
        """Whether SemRank compares the lattices of two rounds, as the papers do, and not with the topic's lattice."""
        return self.profile in PAPER_PROFILES

    @property
    def relates_topic_words(self) -> bool:
        """Whether words of the topic's lattice match others that the click log relates."""
        return self.topic_relations != NO_RELATIONS and self.ranker == SEMRANK and not self.compares_rounds

    @property
    def relates_by_links(self) -> bool:
        """Whether links decide which words are related."""
        return self.relates_topic_words and self.topic_relations in ("part-of", "both")

    @property
    def refresh_share(self) -> float | None:
        """Part of the selection that is for pages that were fetched before."""
        if self.mix is None:
            return None
        discover, refresh = map(int, self.mix.split(":"))
        if not discover + refresh:
            raise InputError(f"--mix: found '{self.mix}', expected two whole numbers as in 80:20, not both 0")
        return refresh / (discover + refresh)

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

    @property
    def fills_budget(self) -> bool:
        """Whether as many URLs are selected as the limits allow, whatever their scores."""
        return self.threshold is None and (self.max_urls is not None or self.budget is not None)

    @property
    def calibrates(self) -> bool:
        """Whether the threshold follows from `precision`."""
        return self.threshold is None and not self.fills_budget and "precision" in RANKERS[self.ranker].options

    @property
    def least_score(self) -> float | None:
        """The threshold before it is calibrated: the user's, none where a budget is to be filled, or the ranker's."""
        if self.threshold is not None or self.fills_budget:
            return self.threshold
        by_topic = self.ranker == SEMRANK and not self.compares_rounds
        return TOPIC_THRESHOLD if by_topic else RANKERS[self.ranker].threshold

    def as_dict(self) -> dict[str, Any]:
        """The fields, for manifests, without the secrets of a database's address."""
        fields = asdict(self)
        if self.ontology is not None:
            fields["ontology"] = shown_ontology(self.ontology)
        return fields


SEMRANK_OPTIONS = (
    *(name for name, (what, _) in declared(RoundConfig).items() if what.rankers == _SEMRANK and not what.plain),
    "c_edges",
    "language",
    "keywords",
)
"""Options of how SemRank is computed, whatever is selected and written."""


RANKER_OPTIONS = (
    "sigma",
    "topic_relations",
    "ontology",
    "topic",
    *(name for name in declared(RoundConfig) if name.startswith(("ontology_", "rcg_", "cosine_", "hits_"))),
)
"""Options of how another ranker is computed in memory."""


def shown_ontology(name: str) -> str:
    """The name of an ontology without the secrets of a database's address."""
    return shown_address(name) if "://" in name else name


def semrank_config(profile: str, options: Mapping[str, Any]) -> RoundConfig:
    """The configuration of SemRank with a profile and those of some options that are `SEMRANK_OPTIONS`.

    Raises:
        InputError: an option is outside its range.
    """
    own = {name: value for name, value in options.items() if name in SEMRANK_OPTIONS}
    return RoundConfig(**{**PROFILES[profile], **own, "profile": profile, "ranker": SEMRANK})


def ranker_options(ranker: str, options: Mapping[str, Any]) -> dict[str, Any] | None:
    """The values of a ranker's own options where some of them are given, else None.

    Raises:
        InputError: an option is outside its range.
    """
    own = {name: options[name] for name in RANKER_OPTIONS if name in options and ranker in with_option(name)}
    if not own:
        return None
    config = RoundConfig(ranker=ranker, **own)
    return {name: getattr(config, name) for name in RANKERS[ranker].options}


def add_round_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `RoundConfig`; one that is not given keeps the profile's value."""
    for title in (SELECTION, RANKING, SEMRANK_GROUP, LOG):
        help_group(parser, title)
    scope = declared(ScopeOptions)
    own = [name for name in declared(RoundConfig) if name not in scope]
    add_options(parser, RoundConfig, round_config(argparse.Namespace(profile=None)).as_dict(), names=own)
    add_options(parser, ScopeOptions)


def round_config(arguments: argparse.Namespace) -> RoundConfig:
    """The configuration that parsed options describe.

    Raises:
        InputError: an option is outside its range.
    """
    chosen = given_options(RoundConfig, arguments)
    by_ranker = "topic" if chosen.get("ranker") == SEMRANK else DEFAULT_PROFILE
    profile = chosen.get("profile", by_ranker)
    declared(RoundConfig)["profile"][0].check("--profile", profile)
    values = {**PROFILES[profile], **chosen, "profile": profile}
    values.setdefault("ranker", SEMRANK)
    return RoundConfig(**values)


def unused_options(arguments: argparse.Namespace, config: RoundConfig) -> list[str]:
    """A line for each option that was given and that has no effect with the others."""
    options = declared(RoundConfig)
    by_papers = config.compares_rounds and (config.ranker == SEMRANK or config.semrank_terms)
    used = {config.ranker, *(_SEMRANK if config.semrank_terms else ())}

    def applies(name: str, rankers: frozenset[str]) -> bool:
        if name == "topic_relations":
            return config.relates_topic_words
        return by_papers if rankers == _SEMRANK else bool(rankers & used)

    given = given_options(RoundConfig, arguments)
    lines = [
        f"{option_name(name)}: has no effect with --ranker {config.ranker}"
        for name in given
        if (rankers := options[name][0].rankers) is not None and not applies(name, rankers)
    ]
    if "precision" in given and "precision" in RANKERS[config.ranker].options and not config.calibrates:
        chosen = next(name for name in ("threshold", "max_urls", "budget") if getattr(config, name) is not None)
        lines.append(f"--precision: has no effect with {option_name(chosen)}")
    if config.mix is not None and config.max_urls is None and config.budget is None:
        lines.append(f"--mix {config.mix}: the ratio has no effect without --max-urls or --budget")
    if config.mix is not None and "recrawl" in given:
        lines.append("--recrawl: has no effect with --mix, which selects known pages too")
    return lines


def stored_config(parameters: Mapping[str, Any], source: str) -> RoundConfig:
    """The configuration in a round's folder; an option that its version did not have has its default.

    Args:
        parameters: what `RoundConfig.as_dict` gave.
        source: the file that contains it, for messages.

    Raises:
        InputError: there is no such option, or an option can't have that value.
    """
    kinds = get_type_hints(RoundConfig)
    for name, value in parameters.items():
        if name not in kinds:
            raise InputError(f"{source}: found the parameter '{name}', expected options of this version of semrank")
        expected = get_args(kinds[name]) or (kinds[name],)
        # bool is a subclass of int but is not accepted as a number.
        if type(value) not in (*expected, *((int,) if float in expected else ())):
            names = " or ".join("null" if kind is type(None) else kind.__name__ for kind in expected)
            raise InputError(f"{source}: the parameter '{name}' is {value!r:.60}, expected {names}")
    try:
        return RoundConfig(**parameters)
    except InputError as cause:
        raise InputError(f"{source}: {cause}") from cause
