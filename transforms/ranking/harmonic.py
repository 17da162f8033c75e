"""Harmonic centrality of the known URLs (Boldi and Vigna, "Axioms for centrality", 2014).

H(v) = sum of 1 / d(u, v) over the other nodes u, d being the number of links on the shortest way, 1 / infinity = 0;
divided by n - 1 it lies in [0, 1]. Small graphs are walked from every node. On larger ones the nodes within each
distance are counted by HyperLogLog counters (Boldi and Vigna's HyperBall, 2013) with `REGISTERS` registers of a fixed
hash: the result is the same wherever it is computed, with a relative standard error of 1.04 / sqrt(256) = 6.5 % a
distance.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import sparse

from transforms.columnar.arrays import Int64s
from transforms.columnar.ids import mix_bits
from transforms.ranking.facts import Facts
from transforms.ranking.graph import Convergence, Float64s, Graph, degree_terms, scored
from transforms.ranking.reasons import Term

EXACT_STEPS = 4e9
"""Nodes times edges up to which every node is walked from: some seconds a worker."""

SOURCES = 256
"""Nodes that are walked from together."""

REGISTER_BITS = 8
REGISTERS = 1 << REGISTER_BITS
EDGE_BLOCK = 1 << 18
"""Edges whose counters are joined at a time: 64 MB of registers."""


def harmonic(edges: sparse.csr_array) -> Float64s:
    """The harmonic centrality of each node, float64[n] in [0, 1]: exact on small graphs, else estimated.

    Args:
        edges: 1 where a link leads from the row's node to the column's, CSR float64[n, n].
    """
    exact = float(edges.shape[0]) * edges.nnz <= EXACT_STEPS
    return exact_harmonic(edges) if exact else estimated_harmonic(edges)


def exact_harmonic(edges: sparse.csr_array) -> Float64s:
    """The same by walking from every node."""
    count = edges.shape[0]
    total = np.zeros(count)
    incoming = sparse.csr_array(edges.T.astype(np.float32))
    for start in range(0, count, SOURCES):
        sources = np.arange(start, min(start + SOURCES, count))
        reached = np.zeros((count, len(sources)), dtype=np.bool_)
        reached[sources, np.arange(len(sources))] = True
        front, distance = reached.copy(), 0
        while front.any():
            distance += 1
            front = (np.asarray(incoming @ front.astype(np.float32)) > 0) & ~reached
            reached |= front
            total += front.sum(axis=1) / distance
    return total / max(1, count - 1)


def estimated_harmonic(edges: sparse.csr_array) -> Float64s:
    """The same with counters instead of sets."""
    count = edges.shape[0]
    registers = _single_counters(count)
    incoming = sparse.csr_array(edges.T)
    reached, total, distance = _sizes(registers), np.zeros(count), 0
    while True:
        distance += 1
        following = registers.copy()
        for rows in _row_blocks(incoming.indptr):
            low, high = incoming.indptr[rows[0]], incoming.indptr[rows[-1] + 1]
            joined = np.maximum.reduceat(
                registers[incoming.indices[low:high]], (incoming.indptr[rows] - low).astype(np.int64), axis=0
            )
            following[rows] = np.maximum(following[rows], joined)
        if (following == registers).all():
            return np.clip(total / max(1, count - 1), 0.0, 1.0)
        registers = following
        sizes = np.maximum(_sizes(registers), reached)
        total += (sizes - reached) / distance
        reached = sizes


def _row_blocks(indptr: npt.NDArray[np.integer]) -> list[Int64s]:
    """Rows that have entries, cut into runs of about `EDGE_BLOCK` entries."""
    rows = np.flatnonzero(np.diff(indptr)).astype(np.int64)
    if not len(rows):
        return []
    block = indptr[rows] // EDGE_BLOCK
    return np.split(rows, np.flatnonzero(np.diff(block)) + 1)


def _single_counters(count: int) -> npt.NDArray[np.uint8]:
    """Counters that hold one node each, uint8[n, REGISTERS]."""
    hashes = mix_bits(np.arange(1, count + 1, dtype=np.uint64))
    register = (hashes >> np.uint64(64 - REGISTER_BITS)).astype(np.int64)
    rest = (hashes << np.uint64(REGISTER_BITS)) | np.uint64(1 << (REGISTER_BITS - 1))
    leading = 63 - np.floor(np.log2(rest.astype(np.float64))).astype(np.int64)
    counters = np.zeros((count, REGISTERS), dtype=np.uint8)
    counters[np.arange(count), register] = leading + 1
    return counters


def _sizes(registers: npt.NDArray[np.uint8]) -> Float64s:
    """HyperLogLog's estimate of how many nodes each counter holds, float64[n]; linear counting where few."""
    alpha = 0.7213 / (1 + 1.079 / REGISTERS)
    powers = np.exp2(-np.arange(66.0))
    sums, empty = np.zeros(len(registers)), np.zeros(len(registers))
    for start in range(0, len(registers), EDGE_BLOCK):
        part = registers[start : start + EDGE_BLOCK]
        sums[start : start + EDGE_BLOCK] = powers[part].sum(axis=1)
        empty[start : start + EDGE_BLOCK] = (part == 0).sum(axis=1)
    raw = alpha * REGISTERS * REGISTERS / sums
    few = (raw <= 2.5 * REGISTERS) & (empty > 0)
    return np.where(few, REGISTERS * np.log(REGISTERS / np.maximum(empty, 1)), raw)


def scores(graph: Graph) -> tuple[pa.Table, Convergence]:
    """Scores of the current URLs (`SCORED_SCHEMA`); nothing is iterated to a limit."""
    values = harmonic(graph.edges)
    term = Term("harmonic", values[graph.node], np.ones(len(graph.urls)))
    return scored(graph, values[graph.node], [term, *degree_terms(graph)]), Convergence(0, 0.0, True)


def rank(facts: Facts) -> pa.Table:
    """Scores of the current URLs of a crawl in memory, a table of `SCORED_SCHEMA`."""
    return scores(Graph.of_facts(facts))[0]
