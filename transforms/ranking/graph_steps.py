"""Beam steps of the rankers by graphs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import ModuleType
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.metrics.metric import Metrics

from transforms.columnar.arrays import MAIN, int64s
from transforms.columnar.steps import NAMESPACE, Collection, GatherTables, MapTables
from transforms.ranking import breadth_first, graph, harmonic, hits, pagerank
from transforms.ranking.scores import SCORE_DECIMALS

MODULES: dict[str, ModuleType] = {
    "breadth-first": breadth_first,
    "pagerank": pagerank,
    "hits": hits,
    "harmonic": harmonic,
}
"""Ranker -> its functions."""

_CONVERGENCE = "convergence"
CONVERGENCE_SCHEMA = pa.schema(
    [pa.field("iterations", pa.int64()), pa.field("residual", pa.float64()), pa.field("converged", pa.bool_())]
)


class RankByGraph(beam.PTransform[Any, Any]):
    """Scores the current URLs by the links between known URLs; gives tables of `SCORED_SCHEMA`.

    The input is a dict with `nodes` (known URLs, `graph.NODE_SCHEMA`) and `links`. The links are brought to one worker,
    which iterates over them; counters tell `RANKER/iterations`, `RANKER/converged` and, in 1e-15, `RANKER/residual`.

    Args:
        ranker: which of `MODULES`.
        level: `page`, or `host` for the graph of hosts.
    """

    def __init__(self, ranker: str, *, level: str) -> None:
        super().__init__(f"rank by {ranker}")
        self._ranker, self._level = ranker, level

    def expand(self, inputs: dict[str, Collection]) -> Collection:
        """Applies the steps."""
        nodes = {"nodes": inputs["nodes"]} | GatherTables("list nodes", graph.distinct_nodes)
        edges = inputs["links"] | MapTables("choose links of known", graph.known_edges, sides={"nodes": nodes})
        made = {"nodes": nodes, "edges": edges} | GatherTables(
            f"score by {self._ranker}",
            partial(_scores, ranker=self._ranker, level=self._level),
            tags=(MAIN, _CONVERGENCE),
        )
        made[_CONVERGENCE] | "report convergence" >> beam.ParDo(_Report(self._ranker)).with_output_types(pa.Table)
        return made[MAIN]  # type: ignore[no-any-return]


def _scores(
    nodes: pa.Table | None, edges: pa.Table | None, *, ranker: str, level: str
) -> Iterator[tuple[str, pa.Table]]:
    scored, convergence = MODULES[ranker].scores(graph.Graph.of_tables(nodes, edges, level=level))
    yield MAIN, scored
    told = [[convergence.iterations], [convergence.residual], [convergence.converged]]
    yield _CONVERGENCE, pa.table(told, schema=CONVERGENCE_SCHEMA)


class RateHosts(beam.PTransform[Any, Any]):
    """Quality of the hosts of known URLs; gives one small collection of `QUALITY_SCHEMA`.

    The input is a dict with `nodes` and `links`, as for `RankByGraph`.

    Args:
        by: `pagerank` or `harmonic`, of the graph of hosts.
    """

    def __init__(self, by: str) -> None:
        super().__init__("rate hosts")
        self._by = by

    def expand(self, inputs: dict[str, Collection]) -> Collection:
        """Applies the steps."""
        nodes = {"nodes": inputs["nodes"]} | GatherTables("list nodes of hosts", graph.distinct_nodes)
        edges = inputs["links"] | MapTables("choose links of hosts", graph.known_edges, sides={"nodes": nodes})
        return {"nodes": nodes, "edges": edges} | GatherTables(  # type: ignore[no-any-return]
            f"rate hosts by {self._by}", partial(host_quality, by=self._by)
        )


QUALITY_SCHEMA = pa.schema([pa.field("host_id", pa.int64()), pa.field("quality", pa.float64())])


def host_quality(nodes: pa.Table | None, edges: pa.Table | None, *, by: str) -> pa.Table:
    """Quality of each host, above 0, a table of `QUALITY_SCHEMA` ascending by host.

    Harmonic centrality is 0 where no link leads; 1 / number of hosts is added, as one link from afar would.
    """
    hosts = graph.Graph.of_tables(nodes, edges, level="host")
    if by == "pagerank":
        values = pagerank.pagerank(hosts.edges)[0]
    else:
        values = harmonic.harmonic(hosts.edges) + 1.0 / max(1, hosts.node_count)
    ids = np.unique(int64s((graph.NODE_SCHEMA.empty_table() if nodes is None else nodes)["host_id"]))
    return pa.table([ids, np.round(values, SCORE_DECIMALS + 3)], schema=QUALITY_SCHEMA)


class _Report(beam.DoFn):
    """Counts how the iteration ended, which the manifest tells among its counters."""

    def __init__(self, ranker: str) -> None:
        self._counters = {name: Metrics.counter(NAMESPACE, f"{ranker}/{name}") for name in CONVERGENCE_SCHEMA.names}

    def process(self, told: pa.Table) -> Iterator[pa.Table]:
        for row in told.to_pylist():
            self._counters["iterations"].inc(row["iterations"])
            self._counters["residual"].inc(round(row["residual"] * 1e15))
            self._counters["converged"].inc(int(row["converged"]))
        yield from ()
