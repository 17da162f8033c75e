"""The order in which a breadth-first crawl finds the URLs (P13 BFCrawler), ties by PageRank.

URLs come by the number of links from the seeds, then in the order in which the crawl discovered them where that is
known, then by PageRank, then by id. The score is 1 - place / number of URLs, so it lies in (0, 1].
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from transforms.columnar.arrays import Int64s
from transforms.ranking.facts import Facts
from transforms.ranking.graph import Convergence, Graph, scored
from transforms.ranking.pagerank import pagerank
from transforms.ranking.reasons import Term

UNREACHED = np.iinfo(np.int64).max
"""Distance of a URL that no followed links lead to from the seeds."""


def distances(graph: Graph) -> Int64s:
    """Links on the shortest way from a seed to each node, int64[n]."""
    distance = np.full(graph.node_count, UNREACHED, dtype=np.int64)
    front = np.unique(graph.node[graph.seed])
    steps = 0
    while len(front):
        distance[front] = steps
        steps += 1
        found = np.unique(graph.edges[front].indices).astype(np.int64)
        front = found[distance[found] == UNREACHED]
    return distance


def scores(graph: Graph) -> tuple[pa.Table, Convergence]:
    """Scores of the current URLs (`SCORED_SCHEMA`), and how the iteration of PageRank ended."""
    values, convergence = pagerank(graph.edges)
    distance = distances(graph)[graph.node]
    # Values that differ by rounding only are equal: how floats were added must not decide.
    tied = np.round(values[graph.node], 12)
    current = np.flatnonzero(graph.current)
    order = current[np.lexsort((current, -tied[current], graph.discovery[current], distance[current]))]
    score = np.zeros(len(graph.urls))
    score[order] = 1.0 - np.arange(len(order)) / max(1, len(order))
    reached = distance < UNREACHED
    terms = [
        Term("distance", np.where(reached, distance, 0).astype(np.float64), shown=reached),
        Term("pagerank", values[graph.node]),
    ]
    return scored(graph, score, terms), convergence


def rank(facts: Facts) -> pa.Table:
    """Scores of the current URLs of a crawl in memory, a table of `SCORED_SCHEMA`."""
    return scores(Graph.of_facts(facts))[0]
