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

from semrank.transforms.columnar.arrays import Float64s, mix_bits
from semrank.transforms.ranking import graph
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.ranking.reasons import Term

EXACT_STEPS = 4e9
"""Nodes times edges up to which every node is walked from: some seconds of a worker."""

SOURCE_WORDS = 64
"""Nodes that are walked from together, in words of 64 bits: rows of 512 bytes amortise what an edge costs."""

REGISTER_BITS = 8
BLOCK_REGISTER_BITS = 6
"""Every step over blocks sends all registers to all workers, so there are fewer."""

ON_WORKER = graph.Iteration(0.0, 1_000)
IN_BLOCKS = graph.Iteration(0.0, 64)
"""Nodes at a larger distance are left out: less than 1 / 64 of the score."""

_SIZED_ROWS = 1 << 16
"""Counters that are estimated at a time: 128 MB of powers where they have 256 registers."""


class HyperBall(graph.Method):
    """Joins the counters of linking nodes, a link further in each step; the residual is the share of nodes that grew.

    Args:
        iteration: when it ends.
        register_bits: the logarithm of the number of registers.
    """

    name = "harmonic"
    join = "max"

    def __init__(self, iteration: graph.Iteration = ON_WORKER, register_bits: int = REGISTER_BITS) -> None:
        self.iteration, self.register_bits = iteration, register_bits

    def start(self, around: graph.Surroundings) -> graph.State:
        """Each node has reached itself."""
        registers = _single_counters(len(around), self.register_bits)
        vectors: dict[str, graph.Vector] = {
            "registers": registers,
            "reached": _sizes(registers),
            "total": np.zeros(len(registers)),
        }
        return graph.State(around, vectors, graph.BEGUN if around.out.any() else graph.NOTHING_TO_DO)

    def factor(self, state: graph.State) -> graph.Vector:
        """The counters, uint8[n, registers]."""
        return state.vectors["registers"]

    def follow(self, state: graph.State, joined: graph.Vector) -> graph.State:
        """What the balls have gained counts by their radius."""
        registers, reached = state.vectors["registers"], state.vectors["reached"]
        following = np.maximum(registers, joined)
        grown = np.flatnonzero((following != registers).any(axis=1))
        sizes = reached.copy()
        sizes[grown] = np.maximum(_sizes(following[grown]), reached[grown])
        total = state.vectors["total"] + (sizes - reached) / (state.convergence.iterations + 1)
        vectors = {"registers": following, "reached": sizes, "total": total}
        return self.moved(state, vectors, len(grown) / len(registers))

    def on_worker(self, edges: sparse.csr_array, around: graph.Surroundings) -> graph.State:
        """The exact values of a small graph."""
        if float(edges.shape[0]) * edges.nnz > EXACT_STEPS:
            return self.solve(edges, around)
        return graph.State(around, {"total": distance_sums(edges)}, graph.NOTHING_TO_DO)


def distance_sums(edges: sparse.csr_array) -> Float64s:
    """H(v) of each node, float64[n], by walking from every node, many at a time.

    Each node has a bit for each that has reached it.
    """
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
    return total


def values_of(state: graph.State) -> Float64s:
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


def methods(*, blocks: bool = False) -> tuple[graph.Method, ...]:
    """The methods to iterate on one worker or over blocks."""
    return (HyperBall(IN_BLOCKS, BLOCK_REGISTER_BITS) if blocks else HyperBall(),)


def table(nodes: graph.Nodes, states: tuple[graph.State, ...]) -> pa.Table:
    """Scores of the current URLs (`SCORED_SCHEMA`) from the last states of `methods`."""
    values = values_of(states[0])[nodes.node]
    term = Term("harmonic", values, np.ones(len(nodes.urls)))
    return graph.scored(nodes, values, [term, *graph.degree_terms(nodes, states[0].around)])


def rank(facts: Facts) -> pa.Table:
    """Scores of the current URLs of a crawl in memory, a table of `SCORED_SCHEMA`."""
    return graph.rank(methods(), table, graph.Graph.of_facts(facts))
