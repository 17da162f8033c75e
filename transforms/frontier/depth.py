"""Depth: the number of followed links from the nearest seed to a URL, over pages that the crawl chose.

Seeds have depth 0. A URL has depth d + 1 if d is the smallest depth of the chosen pages that link to it. Only links of
chosen pages count: nothing is reached through a page that was not chosen.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from semrank.transforms.columnar.arrays import MAIN, Int64s, int64s, members, optional_int64s
from semrank.transforms.context.links import ID_SCHEMA

MAX_DEPTH = 20
"""Largest possible limit of depth; each level costs a pass over the links between chosen pages."""

REACHED_SCHEMA = pa.schema([pa.field("url_id", pa.int64()), pa.field("depth", pa.int64())])
"""A chosen page and its depth."""

OUTER = "outer"
"""Tag of the links from chosen pages to others."""


def seeds_reached(harvested: pa.Table) -> pa.Table:
    """The seeds among chosen pages (`url_id`, `seed`), a table of `REACHED_SCHEMA`."""
    seeds = int64s(harvested.filter(harvested["seed"])["url_id"])
    return pa.table([seeds, np.zeros_like(seeds)], schema=REACHED_SCHEMA)


def chosen_ids(harvested: pa.Table | None) -> Int64s:
    """Sorted ids of the chosen pages, int64[n]."""
    return np.sort(optional_int64s(harvested, "url_id"))


def links_of_chosen(links: pa.Table, chosen: Int64s) -> list[tuple[str, pa.Table]]:
    """The links (`source_id`, `target_id`) of chosen pages: those to chosen pages, and with tag `OUTER` the others."""
    own = links.filter(pa.array(members(chosen, int64s(links["source_id"]))))
    inner = members(chosen, int64s(own["target_id"]))
    return [(MAIN, own.filter(pa.array(inner))), (OUTER, own.filter(pa.array(~inner)))]


def found_next(links: pa.Table, reached: pa.Table | None, *, depth: int) -> pa.Table:
    """The pages that pages of the previous depth link to, each once, a table of `ID_SCHEMA`.

    Args:
        links: links between chosen pages.
        reached: pages reached so far, a table of `REACHED_SCHEMA`.
        depth: the depth of the pages to find.
    """
    if reached is None:
        return ID_SCHEMA.empty_table()
    known, depths = int64s(reached["url_id"]), int64s(reached["depth"])
    last = np.sort(known[depths == depth - 1])
    found = np.unique(int64s(links["target_id"])[members(last, int64s(links["source_id"]))])
    return pa.table([found[~members(np.sort(known), found)]], schema=ID_SCHEMA)


def with_found(reached: pa.Table | None, found: pa.Table | None, *, depth: int) -> pa.Table:
    """The pages reached so far and those found, a table of `REACHED_SCHEMA`."""
    parts = [REACHED_SCHEMA.empty_table(), *([] if reached is None else [reached])]
    if found is not None:
        ids = np.unique(int64s(found["url_id"]))
        parts.append(pa.table([ids, np.full(len(ids), depth)], schema=REACHED_SCHEMA))
    return pa.concat_tables(parts)


def targets_of_reached(links: pa.Table, reached: pa.Table | None) -> pa.Table:
    """The URLs that reached pages link to, each once, a table of `ID_SCHEMA`."""
    sources = chosen_ids(reached)
    found = np.unique(int64s(links["target_id"])[members(sources, int64s(links["source_id"]))])
    return pa.table([found], schema=ID_SCHEMA)


def reached_ids(reached: pa.Table) -> pa.Table:
    """The pages themselves, a table of `ID_SCHEMA`."""
    return reached.select(ID_SCHEMA.names)


WITHIN = "within_depth"
"""Column with whether the URL is within the depth."""


def with_depth(rows: pa.Table, near: pa.Table | None) -> pa.Table:
    """Rows with a column `WITHIN`: whether their `url_id` is within the depth."""
    return rows.append_column(WITHIN, pa.array(members(chosen_ids(near), int64s(rows["url_id"]))))
