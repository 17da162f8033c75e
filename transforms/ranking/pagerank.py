"""PageRank of the known URLs (P13 Eq. 1, EC Eq. 5).

PR(v) = (1 - d) / n + d (sum of PR(u) / out-degree(u) over links u -> v + mass of nodes without links / n), d = 0.85.
The values add up to 1; the score is PR(v) / the largest, so that it lies in [0, 1].
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from semrank.transforms.columnar.arrays import Float64s
from semrank.transforms.ranking import graph
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.ranking.reasons import Term

DAMPING = 0.85
ON_WORKER = graph.Iteration(1e-12, 200)
"""The values are within d / (1 - d) times the tolerance of the limit; an error shrinks to 1e-14 in these steps."""

IN_BLOCKS = graph.Iteration(1e-6, 100)
"""Each step over blocks costs an exchange; an error of a millionth of all mass moves few places of an order."""


class PageRank(graph.Method):
    """Power iteration; the residual is the sum of the values' changes.

    Args:
        iteration: when it ends.
        damping: d.
    """

    name = "pagerank"

    def __init__(self, iteration: graph.Iteration = ON_WORKER, damping: float = DAMPING) -> None:
        self.iteration, self.damping = iteration, damping

    def start(self, around: graph.Surroundings) -> graph.State:
        """The same value for each node."""
        values = np.full(len(around), 1.0 / max(1, len(around)))
        return graph.State(around, {"value": values}, graph.BEGUN if len(around) else graph.NOTHING_TO_DO)

    def factor(self, state: graph.State) -> graph.Vector:
        """Each node's value shared among its links."""
        return graph.exact_terms(state.vectors["value"] / np.maximum(state.around.out, 1.0))

    def follow(self, state: graph.State, joined: graph.Vector) -> graph.State:
        """Damped sums, and the rest of the mass spread evenly."""
        values = state.vectors["value"]
        dangling = float(values[state.around.out == 0].sum())
        following = self.damping * joined + (1.0 - self.damping + self.damping * dangling) / len(values)
        return self.moved(state, {"value": following}, float(np.abs(following - values).sum()))


def values_of(state: graph.State) -> Float64s:
    """The values of a state, normalised to sum 1."""
    values: Float64s = state.vectors["value"]
    return values / values.sum() if len(values) else values


def methods(*, blocks: bool = False) -> tuple[graph.Method, ...]:
    """The methods to iterate on one worker or over blocks."""
    return (PageRank(IN_BLOCKS if blocks else ON_WORKER),)


def table(nodes: graph.Nodes, states: tuple[graph.State, ...]) -> pa.Table:
    """Scores of the current URLs (`SCORED_SCHEMA`) from the last states of `methods`."""
    values = values_of(states[0])
    scale = 1.0 / max(float(values.max(initial=0.0)), np.finfo(np.float64).tiny)
    term = Term("pagerank", values[nodes.node], np.full(len(nodes.urls), scale))
    return graph.scored(nodes, (values * scale)[nodes.node], [term, *graph.degree_terms(nodes, states[0].around)])


def rank(facts: Facts) -> pa.Table:
    """Scores of the current URLs of a crawl in memory, a table of `SCORED_SCHEMA`."""
    return graph.rank(methods(), table, graph.Graph.of_facts(facts))
