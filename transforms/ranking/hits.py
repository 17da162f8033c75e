"""HITS of the known URLs (P13 1.1, Kleinberg 1999): the authority score.

A good authority is linked from good hubs, a good hub links to good authorities: a = E^T h, h = E a, which tends to the
first singular vectors of the edges. The score is a, L2-normalised, so it lies in [0, 1]. The edges are all links
between known URLs, or those of the subgraph that the topic induces (`induced`), outside of which authorities are 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from semrank.schemas.errors import InputError
from semrank.transforms.columnar.arrays import Float64s
from semrank.transforms.ranking import cosine, graph
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.ranking.graph import (
    BEGUN,
    NOTHING_TO_DO,
    Convergence,
    Direction,
    Graph,
    Iteration,
    Method,
    Nodes,
    State,
    Surroundings,
    Vector,
    degree_terms,
    exact_terms,
    scored,
)
from semrank.transforms.ranking.induced import induced
from semrank.transforms.ranking.reasons import Term

TOLERANCE = 1e-12
"""Length of the change of the authorities, which have length 1, at which the iteration ends."""

MAX_ITERATIONS = 1_000
"""The error shrinks by the ratio of the two largest squared singular values, which can be close to 1."""

ON_WORKER = Iteration(TOLERANCE, MAX_ITERATIONS)
IN_BLOCKS = Iteration(1e-6, 50)
"""A step over blocks costs two exchanges."""

_HUBS, _AUTHORITIES = "hub", "authority"


ALL, TOPIC = "all", "topic"
"""Links that count: all between known URLs, or those of the subgraph that the topic induces."""


@dataclass(frozen=True)
class HitsSettings:
    """Which links count.

    Attributes:
        graph: `ALL` or `TOPIC`.

    Raises:
        InputError: it is neither.
    """

    graph: str = ALL

    def __post_init__(self) -> None:
        if self.graph not in (ALL, TOPIC):
            raise InputError(f"graph: found '{self.graph}', expected {ALL} or {TOPIC}")


class Hits(Method):
    """Power iteration; the residual is the length of the change of the authorities at length 1.

    Between the products the values add up to 1, as what is to be added exactly has to.

    Args:
        iteration: when it ends.
    """

    name = "hits"
    directions: tuple[Direction, ...] = ("in", "out")

    def __init__(self, iteration: Iteration = ON_WORKER) -> None:
        self.iteration = iteration

    def start(self, around: Surroundings) -> State:
        """The same hub value for each node, no authority; no hubs either where there are no links."""
        linked = bool(around.out.any())
        hubs = np.full(len(around), 1.0 / len(around)) if linked else np.zeros(len(around))
        nothing = np.zeros(len(around))
        vectors = {_HUBS: hubs, _AUTHORITIES: nothing, "before": nothing}
        return State(around, vectors, BEGUN if linked else NOTHING_TO_DO)

    def factor(self, state: State) -> Vector:
        """The hubs, then the authorities."""
        return exact_terms(state.vectors[_AUTHORITIES if state.product else _HUBS])

    def follow(self, state: State, joined: Vector) -> State:
        """New authorities, then new hubs."""
        if not state.product:
            known = {_HUBS: state.vectors[_HUBS], "before": state.vectors[_AUTHORITIES]}
            return State(state.around, {**known, _AUTHORITIES: joined / joined.sum()}, state.convergence, 1)
        found = state.vectors[_AUTHORITIES]
        residual = _length(_unit(found) - _unit(state.vectors["before"]))
        vectors = {_HUBS: joined / joined.sum(), _AUTHORITIES: found, "before": found}
        return self.moved(state, vectors, residual)


def hits(
    edges: sparse.csr_array, *, tolerance: float = TOLERANCE, max_iterations: int = MAX_ITERATIONS
) -> tuple[Float64s, Float64s, Convergence]:
    """Authorities and hubs.

    Args:
        edges: 1 where a link leads from the row's node to the column's, CSR float64[n, n].
        tolerance: length of the change at which the iteration ends.
        max_iterations: maximum number of steps.

    Returns:
        (authorities float64[n], hubs float64[n], each of length 1 or 0 where there are no edges; how it ended).

    Raises:
        InputError: tolerance or max_iterations is out of range.
    """
    state = graph.solve(Hits(Iteration(tolerance, max_iterations)), edges)
    return _unit(state.vectors[_AUTHORITIES]), _unit(state.vectors[_HUBS]), state.convergence


def _length(vector: Float64s) -> float:
    # np.linalg.norm leaves the order of the sum to a library that may divide it among threads.
    return float(np.sqrt(np.square(vector).sum()))


def _unit(vector: Float64s) -> Float64s:
    length = _length(vector)
    return vector / length if length else vector


def methods(iteration: Iteration | None = None, *, blocks: bool = False) -> tuple[Method, ...]:
    """The methods to iterate; `iteration` replaces the setting for one worker or for blocks."""
    return (Hits(iteration or (IN_BLOCKS if blocks else ON_WORKER)),)


def table(nodes: Nodes, states: tuple[State, ...]) -> pa.Table:
    """Scores of the current URLs (`SCORED_SCHEMA`) from the last states of `methods`."""
    authorities, hubs = (_unit(states[0].vectors[name])[nodes.node] for name in (_AUTHORITIES, _HUBS))
    term = Term("authority", authorities, np.ones(len(nodes.urls)))
    return scored(nodes, authorities, [term, Term("hub", hubs), *degree_terms(nodes, states[0].around)])


def scores(links: Graph, iteration: Iteration | None = None) -> tuple[pa.Table, Convergence]:
    """Scores of the current URLs (`SCORED_SCHEMA`), and how the iteration ended."""
    return graph.scores(methods(iteration), table, links)


def settings_of(options: Mapping[str, Any]) -> HitsSettings:
    """The settings from a round's option `hits_graph`."""
    return HitsSettings(options["hits_graph"])


def rank(facts: Facts, iteration: Iteration | None = None, settings: HitsSettings | None = None) -> pa.Table:
    """Scores of the current URLs of a crawl in memory, a table of `SCORED_SCHEMA`."""
    links = Graph.of_facts(facts)
    if settings is not None and settings.graph == TOPIC:
        links = induced(links, cosine.rank(facts))
    return scores(links, iteration)[0]
