"""PageRank of the known URLs (P13 Eq. 1, EC Eq. 5).

PR(v) = (1 - d) / n + d (sum of PR(u) / out-degree(u) over links u -> v + mass of nodes without links / n), d = 0.85.
The values add up to 1; the score is PR(v) / the largest, so that it lies in [0, 1].
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from scipy import sparse

from transforms.ranking.facts import Facts
from transforms.ranking.graph import Convergence, Float64s, Graph, degree_terms, scored
from transforms.ranking.reasons import Term

DAMPING = 0.85
TOLERANCE = 1e-12
"""Sum of the values' changes below which the iteration ends."""

MAX_ITERATIONS = 200
"""With d = 0.85 an error shrinks to 1e-14 in these."""


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
        max_iterations: steps after which it ends anyway.

    Returns:
        (values that add up to 1, float64[n]; how the iteration ended).
    """
    count = edges.shape[0]
    if not count:
        return np.zeros(0), Convergence(0, 0.0, True)
    degree = np.diff(edges.indptr).astype(np.float64)
    dangling = degree == 0
    share = np.where(dangling, 0.0, 1.0 / np.where(dangling, 1.0, degree))
    incoming = sparse.csr_array(edges.T)
    values = np.full(count, 1.0 / count)
    residual, iteration = np.inf, 0
    while residual > tolerance and iteration < max_iterations:
        spread = (1.0 - damping + damping * float(values[dangling].sum())) / count
        following = damping * (incoming @ (values * share)) + spread
        residual = float(np.abs(following - values).sum())
        values, iteration = following, iteration + 1
    return values / values.sum(), Convergence(iteration, residual, residual <= tolerance)


def scores(graph: Graph) -> tuple[pa.Table, Convergence]:
    """Scores of the current URLs (`SCORED_SCHEMA`), and how the iteration ended."""
    values, convergence = pagerank(graph.edges)
    score = values / max(float(values.max(initial=0.0)), np.finfo(np.float64).tiny)
    largest = np.full(len(graph.urls), 1.0 / max(float(values.max(initial=0.0)), np.finfo(np.float64).tiny))
    term = Term("pagerank", values[graph.node], largest)
    return scored(graph, score[graph.node], [term, *degree_terms(graph)]), convergence


def rank(facts: Facts) -> pa.Table:
    """Scores of the current URLs of a crawl in memory, a table of `SCORED_SCHEMA`."""
    return scores(Graph.of_facts(facts))[0]
