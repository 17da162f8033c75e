"""PageRank of the known URLs (P13 Eq. 1, EC Eq. 5).

PR(v) = (1 - d) / n + d (sum of PR(u) / out-degree(u) over links u -> v + mass of nodes without links / n), d = 0.85.
The values add up to 1; the score is PR(v) / the largest, so that it lies in [0, 1].
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from scipy import sparse

from semrank.transforms.columnar.arrays import Float64s
from semrank.transforms.ranking import graph
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.ranking.graph import (
    BEGUN,
    NOTHING_TO_DO,
    Convergence,
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
from semrank.transforms.ranking.reasons import Term

DAMPING = 0.85
TOLERANCE = 1e-12
"""Sum of the values' changes at which the iteration ends; they are within d / (1 - d) times that of the limit."""

MAX_ITERATIONS = 200
"""With d = 0.85 an error shrinks to 1e-14 in these."""

ON_WORKER = Iteration(TOLERANCE, MAX_ITERATIONS)
IN_BLOCKS = Iteration(1e-6, 100)
"""Each step over blocks costs an exchange; an error of a millionth of all mass moves few places of an order."""


class PageRank(Method):
    """Power iteration; the residual is the sum of the values' changes.

    Args:
        iteration: when it ends.
        damping: d.
    """

    name = "pagerank"

    def __init__(self, iteration: Iteration = ON_WORKER, damping: float = DAMPING) -> None:
        self.iteration, self.damping = iteration, damping

    def start(self, around: Surroundings) -> State:
        """The same value for each node."""
        values = np.full(len(around), 1.0 / max(1, len(around)))
        return State(around, {"value": values}, BEGUN if len(around) else NOTHING_TO_DO)

    def factor(self, state: State) -> Vector:
        """Each node's value shared among its links."""
        return exact_terms(state.vectors["value"] / np.maximum(state.around.out, 1.0))

    def follow(self, state: State, joined: Vector) -> State:
        """Damped sums, and the rest of the mass spread evenly."""
        values = state.vectors["value"]
        dangling = float(values[state.around.out == 0].sum())
        following = self.damping * joined + (1.0 - self.damping + self.damping * dangling) / len(values)
        return self.moved(state, {"value": following}, float(np.abs(following - values).sum()))


def pagerank(
    edges: sparse.csr_array,
    *,
    damping: float = DAMPING,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
) -> tuple[Float64s, Convergence]:
    """The PageRank of each node by power iteration.

    Args:
        edges: 1 where a link leads from the row's node to the column's, CSR float64[n, n].
        damping: d.
        tolerance: sum of changes at which the iteration ends.
        max_iterations: maximum number of steps.

    Returns:
        (values that add up to 1, float64[n]; how the iteration ended).

    Raises:
        InputError: tolerance or max_iterations is out of range.
    """
    state = graph.solve(PageRank(Iteration(tolerance, max_iterations), damping), edges)
    return values_of(state), state.convergence


def node_values(edges: sparse.csr_array) -> Float64s:
    """The PageRank of each node with the settings for one worker; see `pagerank`."""
    return pagerank(edges)[0]


def values_of(state: State) -> Float64s:
    """The values of a state, normalised to sum 1."""
    values: Float64s = state.vectors["value"]
    return values / values.sum() if len(values) else values


def methods(iteration: Iteration | None = None, *, blocks: bool = False) -> tuple[Method, ...]:
    """The methods to iterate; `iteration` replaces the setting for one worker or for blocks."""
    return (PageRank(iteration or (IN_BLOCKS if blocks else ON_WORKER)),)


def table(nodes: Nodes, states: tuple[State, ...]) -> pa.Table:
    """Scores of the current URLs (`SCORED_SCHEMA`) from the last states of `methods`."""
    values = values_of(states[0])
    scale = 1.0 / max(float(values.max(initial=0.0)), np.finfo(np.float64).tiny)
    term = Term("pagerank", values[nodes.node], np.full(len(nodes.urls), scale))
    return scored(nodes, (values * scale)[nodes.node], [term, *degree_terms(nodes, states[0].around)])


def scores(links: Graph, iteration: Iteration | None = None) -> tuple[pa.Table, Convergence]:
    """Scores of the current URLs (`SCORED_SCHEMA`), and how the iteration ended."""
    return graph.scores(methods(iteration), table, links)


def rank(facts: Facts, iteration: Iteration | None = None) -> pa.Table:
    """Scores of the current URLs of a crawl in memory, a table of `SCORED_SCHEMA`."""
    return scores(Graph.of_facts(facts), iteration)[0]
