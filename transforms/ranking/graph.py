"""The graph of followed links between known URLs, or between their hosts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import sparse

from schemas.errors import InputError
from transforms.columnar.arrays import Int64s, int64s, positions, row_keys
from transforms.ranking.facts import Facts
from transforms.ranking.reasons import Term, reason_lists
from transforms.ranking.scores import SCORE_DECIMALS, SCORED_SCHEMA

Float64s: TypeAlias = npt.NDArray[np.float64]

NODE_SCHEMA = pa.schema(
    [
        pa.field("url_id", pa.int64()),
        pa.field("host_id", pa.int64()),
        pa.field("seed", pa.bool_()),
        pa.field("current", pa.bool_()),
    ]
)
"""A known URL."""

_FLAGS = ("seed", "current")

EDGE_SCHEMA = pa.schema([pa.field("source_id", pa.int64()), pa.field("target_id", pa.int64())])

MAX_EDGE_BYTES = 2 << 30
"""Bytes of edges that one worker takes, 16 each: some 130 million links between known URLs. Iterating over a graph in
parts would exchange all of them once more in every step."""


@dataclass(frozen=True)
class Convergence:
    """How an iteration ended.

    Attributes:
        iterations: steps made.
        residual: how much the last step still changed, in the norm that the iteration is stopped by.
        converged: whether that was below the tolerance.
    """

    iterations: int
    residual: float
    converged: bool


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes, edges and the known URLs that are on the nodes.

    Attributes:
        urls: ids of the known URLs, ascending, int64[u].
        node: node of each URL, int64[u]; URLs of one host share a node at the level of hosts.
        seed: whether the crawl began with the URL, bool[u].
        current: whether the URL is to be ranked, bool[u].
        discovery: order in which the URLs became known, lowest first, int64[u].
        edges: 1 where a followed link leads from one node to another, itself excluded, CSR float64[n, n].
    """

    urls: Int64s
    node: Int64s
    seed: npt.NDArray[np.bool_]
    current: npt.NDArray[np.bool_]
    discovery: Int64s
    edges: sparse.csr_array

    @classmethod
    def of_facts(cls, facts: Facts) -> Graph:
        """The graph of URLs that a crawl in memory knows."""
        known = facts.descriptions
        count = len(known)
        source, target = facts.links.nonzero()
        return cls(
            known.url,
            np.arange(count, dtype=np.int64),
            known.seed,
            known.current,
            facts.discovery,
            _adjacency(source.astype(np.int64), target.astype(np.int64), count),
        )

    @classmethod
    def of_tables(cls, nodes: pa.Table | None, edges: pa.Table | None, *, level: str) -> Graph:
        """The graph of known URLs (`NODE_SCHEMA`) and followed links (`EDGE_SCHEMA`, may repeat).

        Raises:
            InputError: there are more links than a worker takes.
        """
        if edges is not None and edges.nbytes > MAX_EDGE_BYTES:
            raise InputError(
                f"--ranker: found {edges.num_rows:,} links between known URLs, expected at most "
                f"{MAX_EDGE_BYTES // 16:,}: rankers by graphs hold them on one worker; --level host needs fewer"
            )
        nodes = NODE_SCHEMA.empty_table() if nodes is None else nodes.sort_by("url_id").combine_chunks()
        urls = int64s(nodes["url_id"])
        seed, current = (np.asarray(nodes[name].to_numpy(zero_copy_only=False), dtype=np.bool_) for name in _FLAGS)
        number = np.arange(len(urls), dtype=np.int64)
        if level == "host":
            number = np.unique(int64s(nodes["host_id"]), return_inverse=True)[1].astype(np.int64)
        source, target = (np.zeros(0, dtype=np.int64) for _ in range(2))
        if edges is not None:
            ends = [positions(urls, int64s(edges[name])) for name in EDGE_SCHEMA.names]
            known = (ends[0] >= 0) & (ends[1] >= 0)
            source, target = (number[end[known]] for end in ends)
        count = int(number.max(initial=-1)) + 1
        nothing = np.zeros(len(urls), dtype=np.int64)
        return cls(urls, number, seed, current, nothing, _adjacency(source, target, count))

    @property
    def node_count(self) -> int:
        """n, the number of nodes."""
        return int(self.edges.shape[0])


def distinct_nodes(nodes: pa.Table | None) -> pa.Table:
    """Each known URL once, a table of `NODE_SCHEMA` ascending by URL; what one of its rows says is so."""
    if nodes is None:
        return NODE_SCHEMA.empty_table()
    kept = nodes.group_by("url_id").aggregate([("host_id", "min"), *((name, "max") for name in _FLAGS)])
    return kept.rename_columns(NODE_SCHEMA.names).cast(NODE_SCHEMA).sort_by("url_id")


def known_edges(links: pa.Table, nodes: pa.Table | None) -> pa.Table:
    """The distinct links of a part whose two ends are known, a table of `EDGE_SCHEMA`."""
    known = np.zeros(0, dtype=np.int64) if nodes is None else np.sort(int64s(nodes["url_id"]))
    source, target = (int64s(links[name]) for name in EDGE_SCHEMA.names)
    kept = (positions(known, source) >= 0) & (positions(known, target) >= 0) & (source != target)
    source, target = source[kept], target[kept]
    first = np.unique(row_keys(source, target), return_index=True)[1]
    return pa.table([source[first], target[first]], schema=EDGE_SCHEMA)


def _adjacency(source: Int64s, target: Int64s, count: int) -> sparse.csr_array:
    other = source != target
    ones = np.ones(int(other.sum()))
    edges = sparse.csr_array((ones, (source[other], target[other])), shape=(count, count))
    edges.sum_duplicates()
    edges.data[:] = 1.0
    edges.sort_indices()
    return edges


def scored(graph: Graph, score: Float64s, terms: list[Term]) -> pa.Table:
    """The current URLs with scores, a table of `SCORED_SCHEMA`.

    Args:
        graph: the graph.
        score: score of each URL, float64[u].
        terms: terms of each URL.
    """
    rows = np.flatnonzero(graph.current)
    reasons = reason_lists(terms, len(graph.urls)).take(pa.array(rows))
    return pa.table([graph.urls[rows], np.round(score[rows], SCORE_DECIMALS), reasons], schema=SCORED_SCHEMA)


def degree_terms(graph: Graph) -> list[Term]:
    """Informs how many links lead to and from a URL's node."""
    ones = np.ones(graph.node_count)
    into, out = graph.edges.T @ ones, graph.edges @ ones
    return [Term("links-in", into[graph.node]), Term("links-out", out[graph.node])]
