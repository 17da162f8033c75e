"""The graph of followed links between known URLs, or between their hosts, and how values are iterated over it.

A ranker is one or several `Method`s and a table of scores from their last states. A step of a method multiplies the
edges by a vector and computes the next state from the products. `Method.solve` does so in memory; on a cluster the
edges are in blocks, whose products are added up (`block_products`, `joined_products`). Both give the same bits: the
numbers that are added are rounded to multiples of 2^-52 and add up to at most 1, so that no sum depends on its order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import sparse

from semrank.schemas.errors import InputError
from semrank.transforms.columnar.arrays import (
    Bools,
    Float64s,
    Int64s,
    bools,
    column_array,
    group_starts,
    int64s,
    optional_int64s,
    positions,
    row_keys,
)
from semrank.transforms.context.links import LINK_SCHEMA
from semrank.transforms.context.objects import NODE_SCHEMA
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.ranking.reasons import Term, reason_lists
from semrank.transforms.ranking.scores import SCORE_DECIMALS, SCORED_SCHEMA

Vector: TypeAlias = npt.NDArray[Any]
"""A value, or a row of values, of each node."""

Direction: TypeAlias = Literal["in", "out"]
"""Whether a node receives the values of the nodes that link to it, or of those that it links to."""

_FLAGS = ("seed", "current")

EDGE_BYTES = 16

MAX_EDGE_BYTES = 2 << 30
"""Maximum bytes of edges on one worker: some 130 million links between known URLs."""

WORKER_BYTES = 256 << 20
"""Maximum bytes of links that are gathered on one worker, some 16 million links: it needs about four times the memory,
and takes seconds for iterations that need an exchange per step in blocks."""

REDUCED_EDGES = 1 << 18
"""Edges whose rows of values are joined at a time: 64 MB for rows of 256 bytes."""

_TERM_BITS = 52
"""Binary places of numbers that are added: multiples of 2^-52 have exact sums up to 2."""


@dataclass(frozen=True)
class Iteration:
    """When an iteration ends.

    Attributes:
        tolerance: residual at which it has converged; each method defines how it is measured.
        max_iterations: maximum number of steps.

    Raises:
        InputError: one of them is out of range.
    """

    tolerance: float
    max_iterations: int

    def __post_init__(self) -> None:
        if not 0.0 <= self.tolerance < np.inf:
            raise InputError(f"tolerance: found {self.tolerance}, expected a number of at least 0")
        if self.max_iterations < 1:
            raise InputError(f"max_iterations: found {self.max_iterations}, expected at least 1")


@dataclass(frozen=True)
class Convergence:
    """How an iteration ended.

    Attributes:
        iterations: steps made.
        residual: change of the last step, in the norm of the stopping criterion.
        converged: whether the residual is at most the tolerance.
    """

    iterations: int
    residual: float
    converged: bool


BEGUN = Convergence(0, np.inf, False)
NOTHING_TO_DO = Convergence(0, 0.0, True)


@dataclass(frozen=True, eq=False)
class Nodes:
    """Known URLs and their nodes.

    Attributes:
        ids: ids of the nodes, ascending, int64[n].
        urls: ids of the known URLs, ascending, int64[u].
        node: node of each URL, int64[u]; at the level of hosts, URLs of a host share a node.
        seed: whether the crawl began with the URL, bool[u].
        current: whether the URL is to be ranked, bool[u].
        discovery: order in which the URLs became known, lowest first, int64[u].
    """

    ids: Int64s
    urls: Int64s
    node: Int64s
    seed: Bools
    current: Bools
    discovery: Int64s

    @staticmethod
    def of_table(nodes: pa.Table | None, *, level: str) -> Nodes:
        """Nodes of distinct known URLs, a table of `NODE_SCHEMA`, or of their hosts if the level is `host`."""
        nodes = NODE_SCHEMA.empty_table() if nodes is None else nodes.sort_by("url_id").combine_chunks()
        urls = int64s(nodes["url_id"])
        seed, current = (bools(nodes[name]) for name in _FLAGS)
        ids, node = np.unique(int64s(nodes["host_id"]) if level == "host" else urls, return_inverse=True)
        return Nodes(ids, urls, node.astype(np.int64), seed, current, np.zeros(len(urls), dtype=np.int64))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def seed_nodes(self) -> Bools:
        """Whether the crawl began with a URL of the node, bool[n]."""
        seeds = np.zeros(len(self), dtype=np.bool_)
        seeds[self.node[self.seed]] = True
        return seeds

    def numbered(self, edges: pa.Table | None) -> tuple[Int64s, Int64s]:
        """Nodes at the two ends of the links (`LINK_SCHEMA`) whose ends are known, as (sources, targets)."""
        if edges is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        source, target = (positions(self.urls, int64s(edges[name])) for name in LINK_SCHEMA.names)
        known = (source >= 0) & (target >= 0)
        return self.node[source[known]], self.node[target[known]]


@dataclass(frozen=True, eq=False)
class Graph(Nodes):
    """Nodes with the edges between them.

    Attributes:
        edges: 1 where a followed link leads from one node to another, itself excluded, CSR float64[n, n].
    """

    edges: sparse.csr_array

    @classmethod
    def of_facts(cls, facts: Facts) -> Graph:
        """The graph of the known URLs of a crawl in memory."""
        known = facts.descriptions
        count = len(known)
        source, target = facts.links.nonzero()
        return cls(
            known.url,
            known.url,
            np.arange(count, dtype=np.int64),
            known.seed,
            known.current,
            facts.discovery,
            adjacency(source.astype(np.int64), target.astype(np.int64), count),
        )

    @classmethod
    def of_tables(cls, nodes: pa.Table | None, edges: pa.Table | None, *, level: str) -> Graph:
        """The graph of known URLs (`NODE_SCHEMA`) and followed links (`LINK_SCHEMA`, may repeat).

        Raises:
            InputError: there are more links than a worker takes.
        """
        if edges is not None and edges.nbytes > MAX_EDGE_BYTES:
            raise InputError(
                f"--ranker: found {edges.num_rows:,} links between known URLs, expected at most "
                f"{MAX_EDGE_BYTES // EDGE_BYTES:,} on one worker; --level host needs fewer"
            )
        known = Nodes.of_table(nodes, level=level)
        source, target = known.numbered(edges)
        return cls(**vars(known), edges=adjacency(source, target, len(known)))

    @property
    def surroundings(self) -> Surroundings:
        """The facts about nodes that methods need."""
        return Surroundings.of_edges(self.edges, self)


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The facts about nodes that a method needs.

    Attributes:
        seed: whether the crawl began with the node, bool[n].
        into: number of nodes that link to it, float64[n].
        out: number of nodes that it links to, float64[n].
    """

    seed: Bools
    into: Float64s
    out: Float64s

    def __len__(self) -> int:
        return len(self.out)

    @classmethod
    def of_edges(cls, edges: sparse.csr_array, nodes: Nodes | None = None) -> Surroundings:
        """The facts about a graph in memory; without nodes there are no seeds."""
        into = np.bincount(edges.indices, minlength=edges.shape[1])
        seed = np.zeros(edges.shape[0], dtype=np.bool_) if nodes is None else nodes.seed_nodes
        return cls(seed, into.astype(np.float64), np.diff(edges.indptr).astype(np.float64))


@dataclass(frozen=True, eq=False)
class State:
    """The state of a method between two products.

    Attributes:
        around: the facts about the nodes.
        vectors: values of the nodes by name, each with n rows.
        convergence: how far the iteration is.
        product: number of the step's next product.
    """

    around: Surroundings
    vectors: dict[str, Vector]
    convergence: Convergence = BEGUN
    product: int = 0


class Method(ABC):
    """An iteration over the edges of a graph.

    Attributes:
        name: its name in labels.
        directions: the products of one step, one after the other.
        join: how the values of several edges are combined: `sum` for numbers that add up to at most 1, `max` for rows
            of bytes.
        iteration: when it ends.
    """

    name: str
    directions: tuple[Direction, ...] = ("in",)
    join: Literal["sum", "max"] = "sum"
    iteration: Iteration

    @abstractmethod
    def start(self, around: Surroundings) -> State:
        """The state before the first step."""

    @abstractmethod
    def factor(self, state: State) -> Vector:
        """The next factor of the edges: float64[n], or uint8[n, k] if they are joined by `max`."""

    @abstractmethod
    def follow(self, state: State, joined: Vector) -> State:
        """The state after a product; after the last one of a step it is made by `moved`.

        Args:
            state: the state before.
            joined: the combined value of each node, of the shape of the factor.
        """

    def moved(self, state: State, vectors: dict[str, Vector], residual: float) -> State:
        """The state after a whole step with this residual."""
        iterations = state.convergence.iterations + 1
        converged = residual <= self.iteration.tolerance
        return State(state.around, vectors, Convergence(iterations, residual, converged))

    def ended(self, state: State) -> bool:
        """Whether the iteration has ended."""
        so_far = state.convergence
        return so_far.converged or so_far.iterations >= self.iteration.max_iterations

    def solve(self, edges: sparse.csr_array, around: Surroundings | None = None) -> State:
        """The last state over a graph in memory, step by step.

        Args:
            edges: 1 where a link leads from the row's node to the column's, CSR float64[n, n].
            around: the facts about the nodes, or None to take them from the edges.
        """
        state = self.start(Surroundings.of_edges(edges) if around is None else around)
        sides = {"in": sparse.csr_array(edges.T) if "in" in self.directions else edges, "out": edges}
        while not self.ended(state):
            for direction in self.directions:
                factor, side = self.factor(state), sides[direction]
                joined = side @ factor if self.join == "sum" else joined_rows(side, factor, np.maximum)
                state = self.follow(state, joined)
        return state

    def on_worker(self, edges: sparse.csr_array, around: Surroundings) -> State:
        """The last state on a worker that has all edges; a method may have a shorter way to it."""
        return self.solve(edges, around)


def exact_terms(values: Float64s) -> Float64s:
    """Numbers in [0, 1] as the nearest multiples of 2^-52, whose sums up to 1 are exact in any order."""
    return np.ldexp(np.rint(np.ldexp(values, _TERM_BITS)), -_TERM_BITS)


MakeTable: TypeAlias = Callable[[Nodes, tuple[State, ...]], pa.Table]
"""Makes scores, a table of `SCORED_SCHEMA`, of the last states of a ranker's methods."""


def on_worker(methods: tuple[Method, ...], graph: Graph) -> tuple[State, ...]:
    """The last states of methods on a worker that has the whole graph."""
    around = graph.surroundings
    return tuple(method.on_worker(graph.edges, around) for method in methods)


def rank(methods: tuple[Method, ...], table: MakeTable, graph: Graph) -> pa.Table:
    """Scores of the current URLs of a graph in memory."""
    return table(graph, on_worker(methods, graph))


def joined_rows(side: sparse.csr_array, factor: Vector, join: np.ufunc) -> Vector:
    """The combined values of each row's columns, 0 for empty rows, of the shape of the factor.

    Args:
        side: edges, CSR [n, n].
        factor: values of the columns, n rows.
        join: `np.maximum` or `np.bitwise_or`.
    """
    joined = np.zeros_like(factor)
    rows = np.flatnonzero(np.diff(side.indptr)).astype(np.int64)
    starts, entries = side.indptr[rows].astype(np.int64), side.indices
    for part in _runs(starts):
        low, high = _ends(starts, part, len(entries))
        joined[rows[part]] = join.reduceat(factor[entries[low:high]], starts[part] - low, axis=0)
    return joined


def _runs(starts: Int64s) -> Iterator[slice]:
    """Runs of groups that begin within the same `REDUCED_EDGES` members."""
    cuts = np.flatnonzero(np.diff(starts // REDUCED_EDGES)) + 1
    for begin, end in pairwise([0, *cuts.tolist(), len(starts)]):
        if begin < end:
            yield slice(begin, end)


def _ends(starts: Int64s, part: slice, count: int) -> tuple[int, int]:
    """Begin and end of the members of a run of groups."""
    return int(starts[part.start]), int(starts[part.stop]) if part.stop < len(starts) else count


def distinct_nodes(nodes: pa.Table | None) -> pa.Table:
    """Each known URL once, a table of `NODE_SCHEMA` ascending by URL; a flag is set if one of the URL's rows has it."""
    if nodes is None:
        return NODE_SCHEMA.empty_table()
    kept = nodes.group_by("url_id").aggregate([("host_id", "min"), *((name, "max") for name in _FLAGS)])
    return kept.rename_columns(NODE_SCHEMA.names).cast(NODE_SCHEMA).sort_by("url_id")


def known_edges(links: pa.Table, nodes: pa.Table | None) -> pa.Table:
    """The distinct links of a part whose two ends are known, a table of `LINK_SCHEMA`."""
    known = np.sort(optional_int64s(nodes, "url_id"))
    source, target = (int64s(links[name]) for name in LINK_SCHEMA.names)
    kept = (positions(known, source) >= 0) & (positions(known, target) >= 0) & (source != target)
    return pa.table(_distinct(source[kept], target[kept]), schema=LINK_SCHEMA)


def adjacency(source: Int64s, target: Int64s, count: int) -> sparse.csr_array:
    """Edges from arrays of their ends, which may repeat, as CSR float64[n, n]: ones, without loops.

    Args:
        source: sources of the edges, int64[m] below n.
        target: targets of the edges, int64[m] below n.
        count: n, the number of nodes.
    """
    other = source != target
    ones = np.ones(int(other.sum()))
    edges = sparse.csr_array((ones, (source[other], target[other])), shape=(count, count))
    edges.sum_duplicates()
    edges.data[:] = 1.0
    return edges


def _distinct(first: Int64s, second: Int64s) -> list[Int64s]:
    """Distinct pairs, ascending."""
    kept = np.unique(row_keys(first, second), return_index=True)[1]
    return [first[kept], second[kept]]


BLOCK_SCHEMA = pa.schema(
    [pa.field("row", pa.int64()), pa.field("column", pa.int64()), pa.field("direction", pa.string())]
)
"""Edges of a block, ascending by row: receiving nodes, and nodes whose values they receive."""


@dataclass(frozen=True)
class Grid:
    """Cuts edges into blocks by ranges of the nodes at both ends.

    Thus the links to a node that half of the web links to are distributed over a row of the grid.

    Attributes:
        targets: number of ranges of targets.
        sources: number of ranges of sources.
    """

    targets: int
    sources: int

    @classmethod
    def of(cls, partitions: int) -> Grid:
        """A grid of `partitions` blocks, a power of two, with about as many ranges of either end."""
        sources = 1 << ((partitions.bit_length() - 1) // 2)
        return cls(partitions // sources, sources)

    def blocks(self, source: Int64s, target: Int64s, count: int) -> Int64s:
        """The block of each edge, int64[m]; `count` is the number of nodes."""
        return (target * self.targets // count) * self.sources + source * self.sources // count


KEYED_SCHEMA = pa.schema(
    [pa.field("block", pa.int64()), pa.field("source", pa.int64()), pa.field("target", pa.int64())]
)


def keyed_edges(links: pa.Table, nodes: Nodes, grid: Grid) -> pa.Table:
    """The distinct edges of a part of the links (`LINK_SCHEMA`) with their blocks, a table of `KEYED_SCHEMA`."""
    source, target = nodes.numbered(links)
    other = source != target
    source, target = _distinct(source[other], target[other])
    return pa.table([grid.blocks(source, target, max(1, len(nodes))), source, target], schema=KEYED_SCHEMA)


def block_edges(keyed: pa.Table, direction: Direction) -> pa.Table:
    """The distinct edges of a block for products of one direction, a table of `BLOCK_SCHEMA`."""
    ends = (int64s(keyed["target"]), int64s(keyed["source"]))
    rows, columns = _distinct(*(ends if direction == "in" else ends[::-1]))
    return pa.table([rows, columns, pa.array([direction] * len(rows))], schema=BLOCK_SCHEMA)


def block_products(edges: pa.Table, factor: Vector, join: Literal["sum", "max"]) -> tuple[Int64s, Vector]:
    """Products of some rows of a block (`BLOCK_SCHEMA`): (rows int64[r] ascending, their values, r rows)."""
    rows, columns = int64s(edges["row"]), int64s(edges["column"])
    starts = group_starts(rows)
    reduce = np.add.reduceat if join == "sum" else np.maximum.reduceat
    parts = [np.zeros((0, *factor.shape[1:]), dtype=factor.dtype)]
    for part in _runs(starts):
        low, high = _ends(starts, part, len(rows))
        parts.append(reduce(factor[columns[low:high]], starts[part] - low, axis=0))
    return rows[starts], np.concatenate(parts)


def joined_products(rows: Int64s, values: Vector, shape: tuple[int, ...], join: Literal["sum", "max"]) -> Vector:
    """The combined products of all blocks, of the shape of the factor.

    Args:
        rows: receiving nodes, int64[r], may repeat.
        values: their values, r rows.
        shape: shape of the factor.
        join: how values are combined.
    """
    if join == "sum":
        return np.bincount(rows, weights=values, minlength=shape[0]).astype(np.float64)
    joined = np.zeros(shape, dtype=values.dtype)
    order = np.argsort(rows, kind="stable")
    starts = group_starts(rows[order])
    for part in _runs(starts):
        low, high = _ends(starts, part, len(rows))
        joined[rows[order[starts[part]]]] = np.maximum.reduceat(values[order[low:high]], starts[part] - low, axis=0)
    return joined


def vector_column(vector: Vector) -> pa.Array:
    """Values of nodes as a column; rows of values as lists of fixed size."""
    if vector.ndim == 1:
        return pa.array(vector)
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(vector).ravel()), vector.shape[1])


def column_vector(column: pa.ChunkedArray) -> Vector:
    """The values of a column of `vector_column`."""
    array = column_array(column)
    if not pa.types.is_fixed_size_list(array.type):
        return np.asarray(array.to_numpy(zero_copy_only=False))
    return np.asarray(array.flatten().to_numpy(zero_copy_only=False)).reshape(len(array), array.type.list_size)


def scored(nodes: Nodes, score: Float64s, terms: list[Term]) -> pa.Table:
    """The current URLs with scores, a table of `SCORED_SCHEMA`.

    Args:
        nodes: the known URLs.
        score: score of each URL, float64[u].
        terms: terms of each URL.
    """
    rows = np.flatnonzero(nodes.current)
    reasons = reason_lists(terms, len(nodes.urls)).take(pa.array(rows))
    return pa.table([nodes.urls[rows], np.round(score[rows], SCORE_DECIMALS), reasons], schema=SCORED_SCHEMA)


def degree_terms(nodes: Nodes, around: Surroundings) -> list[Term]:
    """Informative terms: numbers of links to and from a URL's node."""
    return [Term("links-in", around.into[nodes.node]), Term("links-out", around.out[nodes.node])]
