"""Beam steps of the rankers by graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.metrics.metric import Metrics

from semrank.transforms.columnar.arrays import MAIN, bools, int64s, partition_count
from semrank.transforms.columnar.beam import NAMESPACE, Collection, GatherTables, MapTables, MergePartitions
from semrank.transforms.ranking import graph, hits
from semrank.transforms.ranking.graph import Convergence, Direction, Grid, Method, Nodes, State, Surroundings
from semrank.transforms.ranking.induced_beam import RankByInducedGraph
from semrank.transforms.ranking.memory import GRAPH
from semrank.transforms.ranking.registry import Making, module
from semrank.transforms.ranking.scores import QUALITY_SCHEMA, SCORE_DECIMALS

FromStates: TypeAlias = Callable[[Nodes, tuple[State, ...]], Any]
"""Makes tables of the last states of a ranker's methods."""

_CONVERGENCE = "convergence"
CONVERGENCE_SCHEMA = pa.schema(
    [pa.field("iterations", pa.int64()), pa.field("residual", pa.float64()), pa.field("converged", pa.bool_())]
)

_FACTOR = "factor"
_ROW = "row"
_DIRECTIONS: tuple[Direction, ...] = ("in", "out")
_DEGREE_SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in (_ROW, "into", "out")])
_AROUND_SCHEMA = _DEGREE_SCHEMA.append(pa.field("seed", pa.bool_()))


def needs_blocks(links: int | None) -> bool:
    """Whether the links are too many for one worker; False if their number is unknown (None)."""
    return links is not None and links * graph.EDGE_BYTES > graph.WORKER_BYTES


def _from_states(
    inputs: dict[str, Collection],
    stage: str,
    ranker: str,
    function: FromStates,
    *,
    level: str,
    links: int | None,
    tags: Sequence[str] = (),
) -> Any:
    """Applies a function to the last states of a ranker's methods over the graph of known URLs.

    Up to `graph.WORKER_BYTES` of links are brought to one worker, which iterates over them; more are cut into blocks
    that stay where they are, and the steps are unrolled: those after the last one that is needed do nothing.

    Args:
        inputs: `nodes` (known URLs, `graph.NODE_SCHEMA`) and `links`.
        stage: name of the stage that applies the function.
        ranker: name of a ranker whose module has `methods`.
        function: its result is as for `GatherTables`.
        level: `page`, or `host` for the graph of hosts.
        links: number of links, as large as it may be, or None to bring them to one worker however many they are.
        tags: names of the outputs, as for `GatherTables`.
    """
    nodes = {"nodes": inputs["nodes"]} | GatherTables("list nodes", graph.distinct_nodes)
    if links is not None and needs_blocks(links):
        methods = module(ranker).methods(blocks=True)
        solved = {"nodes": nodes, "links": inputs["links"]} | _SolveInBlocks(
            methods, level=level, partitions=partition_count(links * graph.EDGE_BYTES)
        )
        finish = partial(_from_blocks, methods=methods, level=level, function=function)
    else:
        edges = inputs["links"] | MapTables("choose links of known", graph.known_edges, sides={"nodes": nodes})
        solved = {"nodes": nodes, "edges": edges}
        finish = partial(_on_worker, ranker=ranker, level=level, function=function)
    return solved | GatherTables(stage, finish, tags=tags, holds=GRAPH)


def _on_worker(nodes: pa.Table | None, edges: pa.Table | None, *, ranker: str, level: str, function: FromStates) -> Any:
    known = graph.Graph.of_tables(nodes, edges, level=level)
    return function(known, graph.on_worker(module(ranker).methods(), known))


def _from_blocks(
    nodes: pa.Table | None,
    around: pa.Table | None,
    *,
    methods: tuple[Method, ...],
    level: str,
    function: FromStates,
    **solved: pa.Table | None,
) -> Any:
    known = _around_of(around)
    states = tuple(
        _state_of(method, known, solved[f"state{i}"], solved[f"convergence{i}"], 0) for i, method in enumerate(methods)
    )
    return function(Nodes.of_table(nodes, level=level), states)


class RankByGraph(beam.PTransform[Any, Any]):
    """Scores the current URLs by the links between known URLs; returns tables of `SCORED_SCHEMA`.

    The input is a dict with `nodes` and `links`, as for `_from_states`. The counters are `RANKER/iterations`,
    `RANKER/converged` and, in 1e-15, `RANKER/residual`.

    Args:
        ranker: name of a ranker whose module has `methods` and `table`.
        level: `page`, or `host` for the graph of hosts.
        links: number of links, as for `_from_states`.
    """

    def __init__(self, ranker: str, *, level: str, links: int | None = None) -> None:
        super().__init__(f"rank by {ranker}")
        self._ranker, self._level, self._links = ranker, level, links

    def expand(self, inputs: dict[str, Collection]) -> Collection:
        """Applies the steps."""
        score, tags = partial(_scores, ranker=self._ranker), (MAIN, _CONVERGENCE)
        results = _from_states(
            inputs, f"score by {self._ranker}", self._ranker, score, level=self._level, links=self._links, tags=tags
        )
        results[_CONVERGENCE] | "report convergence" >> beam.ParDo(_Report(self._ranker)).with_output_types(pa.Table)
        return results[MAIN]  # type: ignore[no-any-return]


def make_step(ranker: str, making: Making) -> RankByGraph | RankByInducedGraph:
    """A ranker's step; see `registry.step`."""
    step = RankByGraph(ranker, level=making.options["level"], links=making.links)
    if making.options.get("hits_graph") != hits.TOPIC:
        return step
    return RankByInducedGraph(step, query=list(making.query), partitions=making.partitions)


def _scores(nodes: Nodes, states: tuple[State, ...], *, ranker: str) -> Iterator[tuple[str, pa.Table]]:
    yield MAIN, module(ranker).table(nodes, states)
    ends = [state.convergence for state in states]
    every = all(end.converged for end in ends)
    yield _CONVERGENCE, _convergence_table(Convergence(ends[-1].iterations, ends[-1].residual, every))


class _SolveInBlocks(beam.PTransform[Any, Any]):
    """Last states of methods over edges in blocks.

    The input is a dict with `nodes` (distinct, one collection of `graph.NODE_SCHEMA`) and `links`. Gives a dict of
    small collections: `nodes`, `around` and, for the i-th method, `state{i}` and `convergence{i}`. A worker holds the
    values of all nodes, and never more edges than those of a block.

    Args:
        methods: the methods.
        level: `page` or `host`.
        partitions: number of blocks, a power of two.
    """

    def __init__(self, methods: tuple[Method, ...], *, level: str, partitions: int) -> None:
        super().__init__("iterate over blocks")
        self._methods, self._level, self._partitions = methods, level, partitions

    def expand(self, inputs: dict[str, Collection]) -> dict[str, Collection]:
        """Applies the steps."""
        nodes = inputs["nodes"]
        keyed = inputs["links"] | MapTables(
            "key edges by block",
            partial(graph.keyed_edges, grid=Grid.of(self._partitions)),
            sides={"nodes": nodes},
            prepare=partial(Nodes.of_table, level=self._level),
        )
        directions = tuple(name for name in _DIRECTIONS if any(name in method.directions for method in self._methods))
        blocks = {"keyed": keyed} | MergePartitions(
            "make blocks",
            partial(_blocks, directions=directions),
            partitions=None,
            key="block",
            tags=(MAIN, *directions),
        )
        around = {"nodes": nodes, "counts": blocks[MAIN]} | GatherTables(
            "add degrees", partial(_surroundings, level=self._level)
        )
        solved = {"nodes": nodes, "around": around}
        for i, method in enumerate(self._methods):
            state = {"around": around} | GatherTables(
                f"start {method.name}", partial(_start, method=method), tags=_STATE_TAGS
            )
            for step in range(method.iteration.max_iterations):
                for product, direction in enumerate(method.directions):
                    label = f"{method.name} {step + 1}" + (f" {direction}" if len(method.directions) > 1 else "")
                    products = blocks[direction] | MapTables(
                        f"multiply {label}",
                        partial(_products, join=method.join),
                        sides={"factor": state[_FACTOR]},
                        prepare=_factor_of,
                    )
                    state = {
                        "state": state[MAIN],
                        "convergence": state[_CONVERGENCE],
                        "around": around,
                        "products": products,
                    } | GatherTables(
                        f"follow {label}", partial(_follow, method=method, product=product), tags=_STATE_TAGS
                    )
            solved[f"state{i}"], solved[f"convergence{i}"] = state[MAIN], state[_CONVERGENCE]
        return solved


_STATE_TAGS = (MAIN, _FACTOR, _CONVERGENCE)


def _blocks(keyed: pa.Table, *, directions: tuple[Direction, ...]) -> Iterator[tuple[str, pa.Table]]:
    """A block's edges for each direction, and what it adds to the degrees."""
    edges = graph.block_edges(keyed, "in")
    into, out = (np.unique(int64s(edges[name]), return_counts=True) for name in (_ROW, "column"))
    counts = [np.concatenate([into[0], out[0]])]
    counts += [np.concatenate([into[1], np.zeros_like(out[1])]), np.concatenate([np.zeros_like(into[1]), out[1]])]
    yield MAIN, pa.table(counts, schema=_DEGREE_SCHEMA)
    for direction in directions:
        yield direction, edges if direction == "in" else graph.block_edges(keyed, direction)


def _surroundings(nodes: pa.Table | None, counts: pa.Table | None, *, level: str) -> pa.Table:
    known = Nodes.of_table(nodes, level=level)
    counts = _DEGREE_SCHEMA.empty_table() if counts is None else counts
    rows, size = int64s(counts[_ROW]), len(known)
    sums = [np.bincount(rows, weights=int64s(counts[name]), minlength=size) for name in ("into", "out")]
    columns = [np.arange(size), *(total.astype(np.int64) for total in sums), known.seed_nodes]
    return pa.table(columns, schema=_AROUND_SCHEMA)


def _around_of(table: pa.Table | None) -> Surroundings:
    table = (_AROUND_SCHEMA.empty_table() if table is None else table).sort_by(_ROW)
    into, out = (int64s(table[name]).astype(np.float64) for name in ("into", "out"))
    return Surroundings(bools(table["seed"]), into, out)


def _start(around: pa.Table | None, *, method: Method) -> Iterator[tuple[str, pa.Table]]:
    return _state_tables(method, method.start(_around_of(around)))


def _follow(
    state: pa.Table | None,
    convergence: pa.Table | None,
    around: pa.Table | None,
    products: pa.Table | None,
    *,
    method: Method,
    product: int,
) -> Iterator[tuple[str, pa.Table]]:
    before = _state_of(method, _around_of(around), state, convergence, product)
    if method.ended(before):
        yield MAIN, _vector_table(before.vectors)
        yield _CONVERGENCE, _convergence_table(before.convergence)
        return
    factor = method.factor(before)
    joined = np.zeros_like(factor)
    if products is not None:
        values = graph.column_vector(products[_FACTOR])
        joined = graph.joined_products(int64s(products[_ROW]), values, factor.shape, method.join)
    yield from _state_tables(method, method.follow(before, joined))


def _state_tables(method: Method, state: State) -> Iterator[tuple[str, pa.Table]]:
    """A state's vectors, how far it is, and where there is a further step what its edges are multiplied by."""
    yield MAIN, _vector_table(state.vectors)
    yield _CONVERGENCE, _convergence_table(state.convergence)
    if not method.ended(state):
        yield _FACTOR, _vector_table({_FACTOR: method.factor(state)})


def _vector_table(vectors: Mapping[str, graph.Vector]) -> pa.Table:
    rows = np.arange(len(next(iter(vectors.values()))))
    return pa.table({_ROW: rows, **{name: graph.vector_column(vector) for name, vector in vectors.items()}})


def _state_of(
    method: Method, around: Surroundings, state: pa.Table | None, convergence: pa.Table | None, product: int
) -> State:
    if state is None or convergence is None:
        # Tables without rows don't travel: there are no nodes.
        return method.start(around)
    return State(around, _vectors_of(state), Convergence(**convergence.to_pylist()[0]), product)


def _vectors_of(table: pa.Table) -> dict[str, graph.Vector]:
    order = np.argsort(int64s(table[_ROW]))
    return {name: graph.column_vector(table[name])[order] for name in table.column_names if name != _ROW}


def _factor_of(factor: pa.Table | None) -> graph.Vector | None:
    return None if factor is None else _vectors_of(factor)[_FACTOR]


def _products(edges: pa.Table, prepared: graph.Vector | None, *, join: Any) -> Iterator[pa.Table]:
    if prepared is not None:
        rows, values = graph.block_products(edges, prepared, join)
        yield pa.table({_ROW: rows, _FACTOR: graph.vector_column(values)})


class RateHosts(beam.PTransform[Any, Any]):
    """Quality of the hosts of known URLs; returns one small collection of `QUALITY_SCHEMA`.

    The input is a dict with `nodes` and `links`, as for `_from_states`.

    Args:
        by: `pagerank` or `harmonic`, of the graph of hosts.
        links: number of links, as for `_from_states`.
    """

    def __init__(self, by: str, *, links: int | None = None) -> None:
        super().__init__("rate hosts")
        self._by, self._links = by, links

    def expand(self, inputs: dict[str, Collection]) -> Collection:
        """Applies the steps."""
        rate = partial(_quality, by=self._by)
        return _from_states(  # type: ignore[no-any-return]
            inputs, f"rate hosts by {self._by}", self._by, rate, level="host", links=self._links
        )


def _quality(hosts: Nodes, states: tuple[State, ...], *, by: str) -> pa.Table:
    """Quality of each host, above 0, a table of `QUALITY_SCHEMA` ascending by host.

    Harmonic centrality is 0 where no link leads; 1 / number of hosts is added, as one link from afar would.
    """
    values = module(by).values_of(states[0])
    if by == "harmonic":
        values = values + 1.0 / max(1, len(hosts))
    return pa.table([hosts.ids, np.round(values, SCORE_DECIMALS + 3)], schema=QUALITY_SCHEMA)


def _convergence_table(convergence: Convergence) -> pa.Table:
    row = [[convergence.iterations], [convergence.residual], [convergence.converged]]
    return pa.table(row, schema=CONVERGENCE_SCHEMA)


class _Report(beam.DoFn):
    """Counts how the iteration ended; the manifest has it among its counters."""

    def __init__(self, ranker: str) -> None:
        self._counters = {name: Metrics.counter(NAMESPACE, f"{ranker}/{name}") for name in CONVERGENCE_SCHEMA.names}

    def process(self, convergence: pa.Table) -> Iterator[pa.Table]:
        for row in convergence.to_pylist():
            self._counters["iterations"].inc(row["iterations"])
            self._counters["residual"].inc(round(row["residual"] * 1e15))
            self._counters["converged"].inc(int(row["converged"]))
        yield from ()
