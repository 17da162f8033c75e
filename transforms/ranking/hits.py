"""HITS of the known URLs (P13 1.1, Kleinberg 1999): the authority score.

A good authority is linked from good hubs, a good hub links to good authorities: a = E^T h, h = E a, which tends to the
first singular vectors of the edges. The score is a, L2-normalised, so it lies in [0, 1]. The edges are all links
between known URLs, or those of the subgraph that the topic induces (`induced`), outside of which authorities are 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from semrank.transforms.columnar.arrays import Float64s
from semrank.transforms.ranking import cosine, graph
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.ranking.induced import induced
from semrank.transforms.ranking.reasons import Term

ON_WORKER = graph.Iteration(1e-12, 1_000)
"""An error shrinks by the ratio of the two largest squared singular values, which can be close to 1."""

IN_BLOCKS = graph.Iteration(1e-6, 50)
"""A step over blocks costs two exchanges."""

_HUBS, _AUTHORITIES = "hub", "authority"

ALL, TOPIC = "all", "topic"
"""Links that count: all between known URLs, or those of the subgraph that the topic induces."""


class Hits(graph.Method):
    """Power iteration; the residual is the length of the change of the authorities at length 1.

    Between the products the values add up to 1, as what is to be added exactly has to.

    Args:
        iteration: when it ends.
    """

    name = "hits"
    directions: tuple[graph.Direction, ...] = ("in", "out")

    def __init__(self, iteration: graph.Iteration = ON_WORKER) -> None:
        self.iteration = iteration

    def start(self, around: graph.Surroundings) -> graph.State:
        """The same hub value for each node, no authority; no hubs either where there are no links."""
        linked = bool(around.out.any())
        hubs = np.full(len(around), 1.0 / len(around)) if linked else np.zeros(len(around))
        nothing = np.zeros(len(around))
        vectors = {_HUBS: hubs, _AUTHORITIES: nothing, "before": nothing}
        return graph.State(around, vectors, graph.BEGUN if linked else graph.NOTHING_TO_DO)

    def factor(self, state: graph.State) -> graph.Vector:
        """The hubs, then the authorities."""
        return graph.exact_terms(state.vectors[_AUTHORITIES if state.product else _HUBS])

    def follow(self, state: graph.State, joined: graph.Vector) -> graph.State:
        """New authorities, then new hubs."""
        if not state.product:
            known = {_HUBS: state.vectors[_HUBS], "before": state.vectors[_AUTHORITIES]}
            return graph.State(state.around, {**known, _AUTHORITIES: joined / joined.sum()}, state.convergence, 1)
        found = state.vectors[_AUTHORITIES]
        residual = _length(_unit(found) - _unit(state.vectors["before"]))
        vectors = {_HUBS: joined / joined.sum(), _AUTHORITIES: found, "before": found}
        return self.moved(state, vectors, residual)


def _length(vector: Float64s) -> float:
    # np.linalg.norm leaves the order of the sum to a library that may divide it among threads.
    return float(np.sqrt(np.square(vector).sum()))


def _unit(vector: Float64s) -> Float64s:
    length = _length(vector)
    return vector / length if length else vector


def methods(*, blocks: bool = False) -> tuple[graph.Method, ...]:
    """The methods to iterate on one worker or over blocks."""
    return (Hits(IN_BLOCKS if blocks else ON_WORKER),)


def table(nodes: graph.Nodes, states: tuple[graph.State, ...]) -> pa.Table:
    """Scores of the current URLs (`SCORED_SCHEMA`) from the last states of `methods`."""
    authorities, hubs = (_unit(states[0].vectors[name])[nodes.node] for name in (_AUTHORITIES, _HUBS))
    term = Term("authority", authorities, np.ones(len(nodes.urls)))
    return graph.scored(nodes, authorities, [term, Term("hub", hubs), *graph.degree_terms(nodes, states[0].around)])


def settings_of(options: Mapping[str, Any]) -> str:
    """The links that count, from a round's option `hits_graph`."""
    links: str = options["hits_graph"]
    return links


def rank(facts: Facts, settings: str = ALL) -> pa.Table:
    """Scores of the current URLs of a crawl in memory, a table of `SCORED_SCHEMA`, by the links that count."""
    links = graph.Graph.of_facts(facts)
    return graph.rank(methods(), table, induced(links, cosine.rank(facts)) if settings == TOPIC else links)
