"""Harmonic centrality of the known URLs (Boldi and Vigna, "Axioms for centrality", 2014).

H(v) = sum of 1 / d(u, v) over the other nodes u, d being the number of links on the shortest way, 1 / infinity = 0;
divided by n - 1 it lies in [0, 1]. Small graphs are walked from every node. On larger ones the nodes within each
distance are counted by HyperLogLog counters (Boldi and Vigna's HyperBall, 2013) of a fixed hash: the result is the same
wherever it is computed.

H(v) = sum of N(t) (1 / t - 1 / (t + 1)) - 1, N(t) being the number of nodes within distance t, is a sum of counts with
positive weights, so the relative standard error of H(v) + 1 is at most that of one count, 1.04 / sqrt(registers): 6.5 %
with 256 registers, 13 % with 64.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import sparse

from semrank.transforms.columnar.arrays import Float64s
from semrank.transforms.columnar.ids import mix_bits
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
    scored,
)
from semrank.transforms.ranking.reasons import Term

EXACT_STEPS = 4e9
"""Nodes times edges up to which every node is walked from: some seconds of a worker."""

SOURCE_WORDS = 64
"""Nodes that are walked from together, in words of 64 bits: rows of 512 bytes amortise what an edge costs."""

REGISTER_BITS = 8
BLOCK_REGISTER_BITS = 6
"""Every step over blocks sends all registers to all workers, so there are fewer."""

ON_WORKER = Iteration(0.0, 1_000)
IN_BLOCKS = Iteration(0.0, 64)
"""Nodes at a larger distance are left out: less than 1 / 64 of the score."""

_SIZED_ROWS = 1 << 16
"""Counters that are estimated at a time: 128 MB of powers where they have 256 registers."""


class HyperBall(Method):
    """Joins the counters of linking nodes, a link further in each step; the residual is the share of nodes that grew.

    Args:
        iteration: when it ends.
        register_bits: the logarithm of the number of registers.
    """

    name = "harmonic"
    join = "max"

    def __init__(self, iteration: Iteration = ON_WORKER, register_bits: int = REGISTER_BITS) -> None:
        self.iteration, self.register_bits = iteration, register_bits

    def start(self, around: Surroundings) -> State:
        """Each node has reached itself."""
        registers = _single_counters(len(around), self.register_bits)
        vectors: dict[str, Vector] = {
            "registers": registers,
            "reached": _sizes(registers),
            "total": np.zeros(len(registers)),
        }
        return State(around, vectors, BEGUN if around.out.any() else NOTHING_TO_DO)

    def factor(self, state: State) -> Vector:
        """The counters, uint8[n, registers]."""
        return state.vectors["registers"]

    def follow(self, state: State, joined: Vector) -> State:
        """What the balls have gained counts by their radius."""
        registers, reached = state.vectors["registers"], state.vectors["reached"]
        following = np.maximum(registers, joined)
        grown = np.flatnonzero((following != registers).any(axis=1))
        sizes = reached.copy()
        sizes[grown] = np.maximum(_sizes(following[grown]), reached[grown])
        total = state.vectors["total"] + (sizes - reached) / (state.convergence.iterations + 1)
        vectors = {"registers": following, "reached": sizes, "total": total}
        return self.moved(state, vectors, len(grown) / len(registers))


def node_values(edges: sparse.csr_array) -> Float64s:
    """The harmonic centrality of each node, float64[n] in [0, 1]: exact on small graphs, else estimated.

    Args:
        edges: 1 where a link leads from the row's node to the column's, CSR float64[n, n].
    """
    return exact_harmonic(edges) if _is_small(edges) else estimated_harmonic(edges)


def _is_small(edges: sparse.csr_array) -> bool:
    return float(edges.shape[0]) * edges.nnz <= EXACT_STEPS


def exact_harmonic(edges: sparse.csr_array) -> Float64s:
    """The same by walking from every node, many at a time: each node has a bit for each that has reached it."""
    count = edges.shape[0]
    total = np.zeros(count)
    incoming = sparse.csr_array(edges.T)
    for first in range(0, count, 64 * SOURCE_WORDS):
        number = np.arange(min(64 * SOURCE_WORDS, count - first))
        front = np.zeros((count, -(-len(number) // 64)), dtype=np.uint64)
        front[first + number, number // 64] = np.uint64(1) << (number % 64).astype(np.uint64)
        reached, distance = front.copy(), 0
        while front.any():
            distance += 1
            front = graph.joined_rows(incoming, front, np.bitwise_or) & ~reached
            reached |= front
            total += np.bitwise_count(front).sum(axis=1, dtype=np.int64) / distance
    return total / max(1, count - 1)


def estimated_harmonic(edges: sparse.csr_array, register_bits: int = REGISTER_BITS) -> Float64s:
    """The same with counters of 2^register_bits registers instead of sets."""
    return values_of(graph.solve(HyperBall(register_bits=register_bits), edges))


def values_of(state: State) -> Float64s:
    """Harmonic centralities of a state of `HyperBall`, float64[n] in [0, 1]."""
    total: Float64s = state.vectors["total"]
    shares: Float64s = np.clip(total / max(1, len(total) - 1), 0.0, 1.0)
    return shares


def _single_counters(count: int, register_bits: int) -> npt.NDArray[np.uint8]:
    """Counters that hold one node each, uint8[n, 2^register_bits]."""
    hashes = mix_bits(np.arange(1, count + 1, dtype=np.uint64))
    register = (hashes >> np.uint64(64 - register_bits)).astype(np.int64)
    rest = (hashes << np.uint64(register_bits)) | np.uint64(1 << (register_bits - 1))
    leading = 63 - np.floor(np.log2(rest.astype(np.float64))).astype(np.int64)
    counters = np.zeros((count, 1 << register_bits), dtype=np.uint8)
    counters[np.arange(count), register] = leading + 1
    return counters


def _sizes(registers: npt.NDArray[np.uint8]) -> Float64s:
    """HyperLogLog's estimate of how many nodes each counter holds, float64[n]; linear counting where few."""
    count = registers.shape[1]
    alpha = 0.7213 / (1 + 1.079 / count)
    powers = np.exp2(-np.arange(66.0))
    sums, empty = np.zeros(len(registers)), np.zeros(len(registers))
    for start in range(0, len(registers), _SIZED_ROWS):
        part = registers[start : start + _SIZED_ROWS]
        sums[start : start + _SIZED_ROWS] = powers[part].sum(axis=1)
        empty[start : start + _SIZED_ROWS] = (part == 0).sum(axis=1)
    raw = alpha * count * count / sums
    few = (raw <= 2.5 * count) & (empty > 0)
    sizes: Float64s = np.where(few, count * np.log(count / np.maximum(empty, 1)), raw)
    return sizes


def methods(iteration: Iteration | None = None, *, blocks: bool = False) -> tuple[Method, ...]:
    """The methods to iterate; `iteration` replaces the setting for one worker or for blocks."""
    bits = BLOCK_REGISTER_BITS if blocks else REGISTER_BITS
    return (HyperBall(iteration or (IN_BLOCKS if blocks else ON_WORKER), bits),)


def table(nodes: Nodes, states: tuple[State, ...]) -> pa.Table:
    """Scores of the current URLs (`SCORED_SCHEMA`) from the last states of `methods`."""
    return _table(nodes, states[0].around, values_of(states[0]))


def _table(nodes: Nodes, around: Surroundings, values: Float64s) -> pa.Table:
    term = Term("harmonic", values[nodes.node], np.ones(len(nodes.urls)))
    return scored(nodes, values[nodes.node], [term, *degree_terms(nodes, around)])


def scores(links: Graph, iteration: Iteration | None = None) -> tuple[pa.Table, Convergence]:
    """Scores of the current URLs (`SCORED_SCHEMA`), and how the iteration ended; a small graph needs none."""
    if _is_small(links.edges):
        return _table(links, links.surroundings, exact_harmonic(links.edges)), NOTHING_TO_DO
    return graph.scores(methods(iteration), table, links)


def rank(facts: Facts, iteration: Iteration | None = None) -> pa.Table:
    """Scores of the current URLs of a crawl in memory, a table of `SCORED_SCHEMA`."""
    return scores(Graph.of_facts(facts), iteration)[0]
