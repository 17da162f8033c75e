"""The order in which a breadth-first crawl finds the URLs (P13 BFCrawler), ties by PageRank.

URLs come by the number of links from the seeds, then in the order in which the crawl discovered them where that is
known, then by PageRank, then by id. The score is 1 - place / number of URLs, so it lies in (0, 1].
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from semrank.transforms.columnar.arrays import Int64s
from semrank.transforms.ranking import graph, pagerank
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
    scored,
)
from semrank.transforms.ranking.reasons import Term

UNREACHED = np.iinfo(np.int64).max
"""Distance of a URL that no followed links lead to from the seeds."""

IN_BLOCKS = Iteration(0.0, 64)
"""Steps over blocks that look for URLs; one that is further away counts as unreached."""


class Walk(Method):
    """Steps from the seeds along the links; the residual is the number of nodes that the last step has found.

    Args:
        iteration: when it ends.
    """

    name = "distance"
    join = "max"

    def __init__(self, iteration: Iteration = IN_BLOCKS) -> None:
        self.iteration = iteration

    def start(self, around: Surroundings) -> State:
        """The seeds are reached."""
        distance = np.where(around.seed, 0, UNREACHED)
        return State(around, {"distance": distance}, BEGUN if around.seed.any() else NOTHING_TO_DO)

    def factor(self, state: State) -> Vector:
        """Whether the last step has reached the node, uint8[n, 1]."""
        reached: Int64s = state.vectors["distance"]
        front: Vector = (reached == state.convergence.iterations).astype(np.uint8)[:, None]
        return front

    def follow(self, state: State, joined: Vector) -> State:
        """What is linked from there and was not reached before."""
        distance = state.vectors["distance"]
        found = (joined[:, 0] > 0) & (distance == UNREACHED)
        following = np.where(found, state.convergence.iterations + 1, distance)
        return self.moved(state, {"distance": following}, float(found.sum()))


def distances(links: Graph) -> Int64s:
    """Links on the shortest path from a seed to each node, int64[n]: the same as `Walk` to the end, each edge once."""
    distance = np.full(links.node_count, UNREACHED, dtype=np.int64)
    front = np.flatnonzero(links.seed_nodes)
    steps = 0
    while len(front):
        distance[front] = steps
        steps += 1
        found = np.unique(links.edges[front].indices).astype(np.int64)
        front = found[distance[found] == UNREACHED]
    return distance


def methods(iteration: Iteration | None = None, *, blocks: bool = False) -> tuple[Method, ...]:
    """The methods to iterate over blocks; `iteration` replaces the setting of PageRank."""
    return (Walk(IN_BLOCKS), *pagerank.methods(iteration, blocks=blocks))


def table(nodes: Nodes, states: tuple[State, ...]) -> pa.Table:
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
    return scored(nodes, score, terms)


def scores(links: Graph, iteration: Iteration | None = None) -> tuple[pa.Table, Convergence]:
    """Scores of the current URLs (`SCORED_SCHEMA`), and how the iteration of PageRank ended."""
    around = links.surroundings
    reached = State(around, {"distance": distances(links)}, NOTHING_TO_DO)
    (method,) = pagerank.methods(iteration)
    values = graph.solve(method, links.edges, around)
    return table(links, (reached, values)), values.convergence


def rank(facts: Facts, iteration: Iteration | None = None) -> pa.Table:
    """Scores of the current URLs of a crawl in memory, a table of `SCORED_SCHEMA`."""
    return scores(Graph.of_facts(facts), iteration)[0]
