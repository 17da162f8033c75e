"""The rankers: what each is, what it needs, and where its functions are, which are imported only when asked for.

A ranker is one entry here, one module with `rank(facts)` for a crawl in memory, and one `..._beam.py` module with
`make_step(name, making)`. `text_beam` makes the step of every ranker whose module has `scores(descriptions, topic)`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from semrank.schemas.errors import InputError
from semrank.transforms.columnar.worker_memory import Held
from semrank.transforms.context.memory import DESCRIBED
from semrank.transforms.ranking.memory import GRAPH, LATTICE

if TYPE_CHECKING:
    import pyarrow as pa

    from semrank.transforms.ranking.facts import Facts

    Rank: TypeAlias = Callable[[Facts], pa.Table]
    """Scores the current URLs: facts -> a table of `SCORED_SCHEMA`."""

SEMRANK = "semrank"
"""The ranker that compares lattices. By the papers it needs more than facts; see `semrank_local`."""

DEFAULT_ONTOLOGY = "e-commerce"

DESCRIPTIONS, NODES, LINKS, CLICK_EDGES, CONTEXTS = "descriptions", "nodes", "links", "click_edges", "contexts"
TOPIC_LATTICE = "topic_lattice"
"""Facts that a round makes only for rankers that need them.

`descriptions` come with their `vocabulary` and the `harvested` URLs; `nodes` are the known URLs with their hosts;
`links` are all followed links of the web; `contexts` are SemRank's; `topic_lattice` has the `word_weights` of SemRank
by the topic's lattice, and the `sizes` of the known URLs.
"""


@dataclass(frozen=True)
class Ranker:
    """A ranker.

    Attributes:
        name: its name.
        score: what the score is.
        needs: the facts that its steps take.
        memory: what its steps hold whole on a worker.
        module: module of `transforms.ranking` with `rank(facts)`, or None where facts are not enough for it.
        steps: module of `transforms.ranking` with `make_step(name, making)`, or None as above.
        threshold: the default of `--threshold`; above 0 where the scores have a scale, else any score is selected.
        options: names of the round's options that only some rankers have, this one among them.
        further: (option, value, facts) that are needed as well where the option has that value.
    """

    name: str
    score: str
    needs: frozenset[str]
    memory: Held
    module: str | None = None
    steps: str | None = None
    threshold: float = 0.0
    options: frozenset[str] = frozenset()
    further: tuple[str, str, frozenset[str]] | None = None

    def needed(self, options: Mapping[str, Any]) -> frozenset[str]:
        """The facts that its steps take where its options have these values."""
        if self.further is None or options.get(self.further[0]) != self.further[1]:
            return self.needs
        return self.needs | self.further[2]


@dataclass(frozen=True)
class Making:
    """What a ranker's step is made with.

    Attributes:
        query: words of the query.
        partitions: number of partitions of URLs and of words.
        links: number of links of the snapshot.
        language: language of short texts.
        output: folder of the round.
        options: values of the ranker's own options by name.
        precision: share of relevant pages that a threshold is calibrated to, or None for no calibration.
    """

    query: Sequence[str]
    partitions: int
    links: int
    language: str
    output: str
    options: Mapping[str, Any] = field(default_factory=dict)
    precision: float | None = None


def _graph_ranker(name: str, score: str, *options: str, **further: Any) -> Ranker:
    needs, own = frozenset({NODES, LINKS}), frozenset({"level", *options})
    return Ranker(name, score, needs, GRAPH, name.replace("-", "_"), "graph_beam", options=own, **further)


def _text_ranker(name: str, score: str, steps: str, *needs: str, **further: Any) -> Ranker:
    return Ranker(name, score, frozenset({DESCRIPTIONS, *needs}), DESCRIBED, name.replace("-", "_"), steps, **further)


RANKERS: dict[str, Ranker] = {
    ranker.name: ranker
    for ranker in (
        _text_ranker(
            "focused",
            "words, links and clicks, weighted by how well they have predicted relevant pages so far; the default",
            "focused_beam",
            TOPIC_LATTICE,
            threshold=0.5,
            options=frozenset({"precision"}),
        ),
        Ranker(
            SEMRANK,
            "SemRank: concepts of pages, a hierarchy of clicked keywords, links and clicks",
            frozenset({CONTEXTS, DESCRIPTIONS}),
            LATTICE,
            module="topic_lattice",
            threshold=0.45,
            options=frozenset({"topic_relations"}),
        ),
        _graph_ranker("breadth-first", "order of discovery, ties by PageRank"),
        _graph_ranker("pagerank", "PageRank"),
        _graph_ranker(
            "hits", "authority of HITS", "hits_graph", further=("hits_graph", "topic", frozenset({DESCRIPTIONS}))
        ),
        _graph_ranker("harmonic", "harmonic centrality"),
        _text_ranker(
            "cosine",
            "cosine with the seeds and the query",
            "text_beam",
            options=frozenset({"cosine_k", "cosine_b"}),
        ),
        _text_ranker("keyword", "share of the topic's words on the page", "text_beam"),
        _text_ranker("link-context", "most probable link distance to the seeds, by naive Bayes", "layer_beam", LINKS),
        _text_ranker(
            "relevancy-context",
            "expected value of the link distance to the seeds",
            "layer_beam",
            LINKS,
            options=frozenset({"rcg_alpha"}),
        ),
        _text_ranker(
            "hmm",
            "expected distance to a target, by a hidden Markov model of browsing",
            "hmm_beam",
            LINKS,
            CLICK_EDGES,
        ),
        _text_ranker(
            "ontology",
            "classes of an ontology on the page and its links",
            "ontology_beam",
            options=frozenset(
                {
                    "ontology",
                    "topic",
                    "sigma",
                    "ontology_r1",
                    "ontology_r2",
                    "ontology_n",
                    "ontology_theta",
                    "ontology_combine",
                }
            ),
        ),
    )
}
"""Name -> ranker."""


def with_option(option: str) -> tuple[str, ...]:
    """Names of the rankers that have an option."""
    return tuple(name for name, ranker in RANKERS.items() if option in ranker.options)


def ranker(name: str, options: Mapping[str, Any] | None = None) -> Rank:
    """The function that ranks in memory by facts.

    Args:
        name: the ranker.
        options: values of all of its own options, for a ranker with `settings_of`, or None for the defaults.

    Raises:
        InputError: there is no such ranker.
    """
    names = [known.name for known in RANKERS.values() if known.module is not None]
    if name not in names:
        raise InputError(f"found the ranker '{name}', expected one of {', '.join(names)}")
    rank: Rank = function(name, "rank", options)
    return rank


def function(name: str, attribute: str, options: Mapping[str, Any] | None = None) -> Any:
    """A function of a ranker's module, with the settings that its own options give; without options, the defaults.

    Raises:
        ValueError: the ranker has no module.
    """
    own = module(name)
    found = getattr(own, attribute)
    return partial(found, settings=own.settings_of(options)) if options else found


def module(name: str) -> Any:
    """A ranker's module.

    Raises:
        ValueError: the ranker has none.
    """
    known = RANKERS[name].module
    if known is None:
        raise ValueError(f"{name} needs more than facts")
    return _import(known)


def step(name: str, making: Making) -> Any:
    """The Beam PTransform that ranks by the facts that the ranker needs; returns tables of `SCORED_SCHEMA`."""
    steps = RANKERS[name].steps
    if steps is None:
        raise ValueError(f"{name} needs more than facts")
    return _import(steps).make_step(name, making)


def _import(name: str) -> Any:
    return importlib.import_module(f"semrank.transforms.ranking.{name}")
