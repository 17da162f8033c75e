"""Beam steps of ranking by the subgraph that a topic induces."""

from __future__ import annotations

from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from semrank.transforms.columnar.arrays import Int64s, int64s, optional_int64s
from semrank.transforms.columnar.beam import Collection, GatherTables, MapTables
from semrank.transforms.context.links import ID_SCHEMA
from semrank.transforms.ranking import cosine, graph, induced
from semrank.transforms.ranking.cosine import CosineSettings
from semrank.transforms.ranking.text_beam import RankByTopic


class RankByInducedGraph(beam.PTransform[Any, Any]):
    """Scores the current URLs by the links of the subgraph that the topic induces (`induced`).

    The input is a dict with `nodes`, `links`, `descriptions`, `vocabulary` and `harvested`.

    Args:
        ranks: ranks by nodes and links.
        query: words of the query.
        partitions: number of partitions of words.
    """

    def __init__(self, ranks: beam.PTransform[Any, Any], *, query: list[str], partitions: int) -> None:
        super().__init__("rank by induced graph")
        self._ranks, self._query, self._partitions = ranks, query, partitions

    def expand(self, inputs: dict[str, Collection]) -> Collection:
        """Applies the steps."""
        words = {name: inputs[name] for name in ("descriptions", "vocabulary", "harvested")}
        near = words | RankByTopic("cosine", _near, query=self._query, partitions=self._partitions)
        nearest = near | MapTables("choose nearest of part", induced.nearest)
        known = {"nodes": inputs["nodes"]} | GatherTables("list known", graph.distinct_nodes)
        root = {"nodes": known, "scored": nearest} | GatherTables("choose root set", _root_rows)
        edges = inputs["links"] | MapTables("choose links of known URLs", graph.known_edges, sides={"nodes": known})
        touching = edges | MapTables("follow root set", induced.touching, sides={"root": root}, prepare=_root_ids)
        base = {"root": root, "edges": touching} | GatherTables("choose base set", _base_rows)
        inner = edges | MapTables(
            "choose links of base set", induced.inner_edges, sides={"root": base}, prepare=_root_ids
        )
        return {"nodes": inputs["nodes"], "links": inner} | self._ranks  # type: ignore[no-any-return]


def _near(descriptions: Any, topic: Any) -> pa.Table:
    return cosine.scores(descriptions, topic, CosineSettings())


def _root_rows(nodes: pa.Table | None, scored: pa.Table | None) -> pa.Table:
    seeds = np.zeros(0, dtype=np.int64) if nodes is None else int64s(nodes.filter(nodes["seed"])["url_id"])
    return pa.table([induced.root_set(seeds, scored)], schema=ID_SCHEMA)


def _base_rows(root: pa.Table | None, edges: pa.Table | None) -> pa.Table:
    return pa.table([induced.base_set(_root_ids(root), edges)], schema=ID_SCHEMA)


def _root_ids(root: pa.Table | None) -> Int64s:
    return optional_int64s(root, "url_id")
