"""Beam steps of the rankers by graphs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import ModuleType
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.metrics.metric import Metrics

from transforms.columnar.arrays import MAIN
from transforms.columnar.steps import NAMESPACE, Collection, GatherTables, MapTables
from transforms.ranking import breadth_first, graph, harmonic, hits, pagerank

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
