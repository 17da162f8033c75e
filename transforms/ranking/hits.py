"""HITS of the known URLs (P13 1.1, Kleinberg 1999): the authority score.

A good authority is linked from good hubs, a good hub links to good authorities: a = E^T h, h = E a, each divided by its
length, which is the first singular vector of the edges. The score is a, L2-normalised, so it lies in [0, 1].
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from scipy import sparse

from transforms.ranking.facts import Facts
from transforms.ranking.graph import Convergence, Float64s, Graph, degree_terms, scored
from transforms.ranking.reasons import Term

TOLERANCE = 1e-12
"""Length of the authorities' change below which the iteration ends."""

MAX_ITERATIONS = 1_000
"""The error shrinks by the ratio of the two largest squared singular values, which can be close to 1."""


def hits(
    edges: sparse.csr_array, *, tolerance: float = TOLERANCE, max_iterations: int = MAX_ITERATIONS
) -> tuple[Float64s, Float64s, Convergence]:
    """Authorities and hubs.

    Args:
        edges: 1 where a link leads from the row's node to the column's, CSR float64[n, n].
        tolerance: length of the change at which the iteration ends.
        max_iterations: steps after which it ends anyway.

    Returns:
        (authorities float64[n], hubs float64[n], each of length 1 or 0 where there are no edges; how it ended).
    """
    count = edges.shape[0]
    authorities, hubs = np.zeros(count), np.zeros(count)
    if not edges.nnz:
        return authorities, hubs, Convergence(0, 0.0, True)
    incoming = sparse.csr_array(edges.T)
    hubs = np.full(count, 1.0 / np.sqrt(count))
    residual, iteration = np.inf, 0
    while residual > tolerance and iteration < max_iterations:
        following = _unit(incoming @ hubs)
        hubs = _unit(edges @ following)
        residual = float(np.linalg.norm(following - authorities))
        authorities, iteration = following, iteration + 1
    return authorities, hubs, Convergence(iteration, residual, residual <= tolerance)


def _unit(vector: Float64s) -> Float64s:
    return vector / float(np.linalg.norm(vector))


def scores(graph: Graph) -> tuple[pa.Table, Convergence]:
    """Scores of the current URLs (`SCORED_SCHEMA`), and how the iteration ended."""
    authorities, hubs, convergence = hits(graph.edges)
    ones = np.ones(len(graph.urls))
    terms = [Term("authority", authorities[graph.node], ones), Term("hub", hubs[graph.node]), *degree_terms(graph)]
    return scored(graph, authorities[graph.node], terms), convergence


def rank(facts: Facts) -> pa.Table:
    """Scores of the current URLs of a crawl in memory, a table of `SCORED_SCHEMA`."""
    return scores(Graph.of_facts(facts))[0]
