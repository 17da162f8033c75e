"""The subgraph that a topic induces (Kleinberg 1999, section 2), for HITS as it was published.

The root set are the seeds and the `ROOT_URLS` current URLs whose words are nearest to the topic's (the seeds' words and
the query's) by the cosine of P13 Eq. 2. The base set are the root set, all that it links to, and, for each of its
URLs, `LINKING_URLS` that link to it, those of the smallest ids where there are more. The links between URLs of the base
set are kept.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from semrank.transforms.columnar.arrays import (
    Int64s,
    distinct_rows,
    group_starts,
    int64s,
    members,
    places_in_groups,
    positions,
)
from semrank.transforms.context.links import LINK_SCHEMA
from semrank.transforms.ranking.graph import Graph, adjacency

ROOT_URLS = 200
"""Kleinberg's t."""

LINKING_URLS = 50
"""Kleinberg's d: a page that half of the web links to would make the whole web the subgraph."""


def root_set(seeds: Int64s, scored: pa.Table | None) -> Int64s:
    """Ids of the root set, ascending.

    Args:
        seeds: ids of the seeds.
        scored: current URLs with their nearness to the topic (`SCORED_SCHEMA`).
    """
    return np.union1d(seeds, int64s(nearest(scored)["url_id"]))


def nearest(scored: pa.Table | None) -> pa.Table:
    """The `ROOT_URLS` current URLs with the highest scores above 0; ties by the smallest id."""
    if scored is None:
        return pa.table({"url_id": pa.array([], pa.int64()), "score": pa.array([], pa.float64())})
    ids, scores = int64s(scored["url_id"]), np.asarray(scored["score"].to_numpy(), dtype=np.float64)
    order = np.lexsort((ids, -scores))[:ROOT_URLS]
    order = order[scores[order] > 0]
    return pa.table({"url_id": ids[order], "score": scores[order]})


def touching(edges: pa.Table, root: Int64s) -> pa.Table:
    """The links of a part that the base set can follow from, a table of `LINK_SCHEMA`.

    Args:
        edges: distinct links between known URLs (`LINK_SCHEMA`).
        root: ids of the root set, ascending.
    """
    source, target = (int64s(edges[name]) for name in LINK_SCHEMA.names)
    leaving = members(root, source)
    entering = np.flatnonzero(members(root, target) & ~leaving)
    order = entering[np.lexsort((source[entering], target[entering]))]
    starts = group_starts(target[order])
    place = places_in_groups(starts, len(order))
    kept = np.concatenate([np.flatnonzero(leaving), order[place < LINKING_URLS]])
    return pa.table([source[kept], target[kept]], schema=LINK_SCHEMA)


def base_set(root: Int64s, edges: pa.Table | None) -> Int64s:
    """Ids of the base set, ascending.

    Args:
        root: ids of the root set, ascending.
        edges: the links of all parts that `touching` returned; may repeat.
    """
    if edges is None:
        return root
    found = touching(distinct_rows(edges), root)
    return np.unique(np.concatenate([root, *(int64s(found[name]) for name in LINK_SCHEMA.names)]))


def inner_edges(edges: pa.Table, base: Int64s) -> pa.Table:
    """The links of a part between URLs of the base set, whose ids are ascending."""
    inside = members(base, int64s(edges["source_id"])) & members(base, int64s(edges["target_id"]))
    return edges.filter(pa.array(inside))


def induced(links: Graph, scored: pa.Table) -> Graph:
    """The subgraph in memory: the same nodes with fewer edges.

    Args:
        links: the graph of known URLs.
        scored: current URLs with their nearness to the topic (`SCORED_SCHEMA`).
    """
    edges = pa.table([links.urls[ends] for ends in links.edges.nonzero()], schema=LINK_SCHEMA)
    root = root_set(links.urls[links.seed], scored)
    kept = inner_edges(edges, base_set(root, edges))
    source, target = (positions(links.urls, int64s(kept[name])) for name in LINK_SCHEMA.names)
    return replace(links, edges=adjacency(source, target, len(links)))
