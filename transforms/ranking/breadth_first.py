"""The order in which a breadth-first crawl finds the URLs (P13 BFCrawler), ties by PageRank.

URLs come by the number of links from the seeds, then in the order in which the crawl discovered them where that is
known, then by PageRank, then by id. The score is 1 - place / number of URLs, so it lies in (0, 1].
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from scipy import sparse

from semrank.transforms.columnar.arrays import Int64s
from semrank.transforms.ranking import graph, pagerank
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.ranking.reasons import Term

UNREACHED = np.iinfo(np.int64).max
"""Distance of a URL that no followed links lead to from the seeds."""

IN_BLOCKS = graph.Iteration(0.0, 64)
"""Steps over blocks that look for URLs; one that is further away counts as unreached."""


class Walk(graph.Method):
    """Steps from the seeds along the links; the residual is the number of nodes that the last step has found.

    Args:
        iteration: when it ends.
    """

    name = "distance"
    join = "max"

    def __init__(self, iteration: graph.Iteration = IN_BLOCKS) -> None:
        self.iteration = iteration

    def start(self, around: graph.Surroundings) -> graph.State:
        """The seeds are reached."""
        distance = np.where(around.seed, 0, UNREACHED)
        return graph.State(around, {"distance": distance}, graph.BEGUN if around.seed.any() else graph.NOTHING_TO_DO)

    def factor(self, state: graph.State) -> graph.Vector:
        """Whether the last step has reached the node, uint8[n, 1]."""
        reached: Int64s = state.vectors["distance"]
        front: graph.Vector = (reached == state.convergence.iterations).astype(np.uint8)[:, None]
        return front

    def follow(self, state: graph.State, joined: graph.Vector) -> graph.State:
        """What is linked from there and was not reached before."""
        distance = state.vectors["distance"]
        found = (joined[:, 0] > 0) & (distance == UNREACHED)
        following = np.where(found, state.convergence.iterations + 1, distance)
        return self.moved(state, {"distance": following}, float(found.sum()))

    def on_worker(self, edges: sparse.csr_array, around: graph.Surroundings) -> graph.State:
        """The distances to the end, without a cap, each edge followed once."""
        distance = np.full(len(around), UNREACHED, dtype=np.int64)
        front = np.flatnonzero(around.seed)
        steps = 0
        while len(front):
            distance[front] = steps
            steps += 1
            found = np.unique(edges[front].indices).astype(np.int64)
            front = found[distance[found] == UNREACHED]
        return graph.State(around, {"distance": distance}, graph.NOTHING_TO_DO)


def methods(*, blocks: bool = False) -> tuple[graph.Method, ...]:
    """The methods to iterate on one worker or over blocks."""
    return (Walk(IN_BLOCKS), *pagerank.methods(blocks=blocks))


def table(nodes: graph.Nodes, states: tuple[graph.State, ...]) -> pa.Table:
    """Scores of the current URLs (`SCORED_SCHEMA`) from the last states of `methods`."""
    values = pagerank.values_of(states[1])[nodes.node]
    distance = states[0].vectors["distance"][nodes.node]
    # Values that differ by rounding only are equal: how floats were added must not decide.
    tied = np.round(values, 12)
    current = np.flatnonzero(nodes.current)
    order = current[np.lexsort((current, -tied[current], nodes.discovery[current], distance[current]))]
    score = np.zeros(len(nodes.urls))
    score[order] = 1.0 - np.arange(len(order)) / max(1, len(order))
    reached = distance < UNREACHED
    terms = [
        Term("distance", np.where(reached, distance, 0).astype(np.float64), shown=reached),
        Term("pagerank", values),
    ]
    return graph.scored(nodes, score, terms)


def rank(facts: Facts) -> pa.Table:
    """Scores of the current URLs of a crawl in memory, a table of `SCORED_SCHEMA`."""
    return graph.rank(methods(), table, graph.Graph.of_facts(facts))
