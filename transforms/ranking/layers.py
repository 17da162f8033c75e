"""Layers of pages around the seeds, as back links lead to them (Diligenti et al. 2000, P13 1.3).

Layer 0 are the seeds; layer i + 1 are the known URLs whose content is known, that have a followed link to a URL of
layer i and stand in no earlier layer. On a cluster the links are exchanged once, so that a partition has all links of
its pages; then a pass over them finds a layer, the last layer's ids being broadcast. So a layer is capped: where more
URLs belong to it, those with the lowest ids stay; one that was left out may be found again as a page of a later
layer, or counts as a page of none. Ids are hashes, which makes this a sample. To find the lowest without bringing all
to one worker, the ids are counted by their highest bits first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from semrank.schemas.errors import InputError
from semrank.transforms.columnar.arrays import MAIN, Int64s, int64s, members, optional_int64s, positions, sum_by_key
from semrank.transforms.context.descriptions import Descriptions
from semrank.transforms.ranking.facts import Facts

MAX_LAYER_URLS = 1 << 20
"""URLs of a layer at most: 8 MiB of ids, which every worker holds, and far more pages than a word model needs."""

BUCKET_BITS = 12
"""Highest bits of the ids by which they are counted: 4,096 counts find the cap up to a 4,096th of a layer."""

BUCKETS = "buckets"
"""Tag of the counts of found ids."""

NO_STATE = -1
"""State of a URL in no layer whose content isn't known."""

KEYED_LINK_SCHEMA = pa.schema([pa.field("url_id", pa.int64()), pa.field("target", pa.int64())])
"""A link, to be exchanged by the URL that has it."""

ID_SCHEMA = pa.schema([pa.field("url_id", pa.int64())])
LAYER_SCHEMA = pa.schema([pa.field("url_id", pa.int64()), pa.field("layer", pa.int64())])
BUCKET_SCHEMA = pa.schema([pa.field("bucket", pa.int64()), pa.field("urls", pa.int64())])
CUT_SCHEMA = pa.schema([pa.field("bucket", pa.int64()), pa.field("left_out", pa.int64())])
"""The highest bucket of ids that a layer needs, and how many URLs the cap leaves out."""

STATE_SCHEMA = pa.schema([pa.field("url_id", pa.int64()), pa.field("state", pa.int64())])
"""A URL's layer, or the number of layers where it is in none though its content is known ("other")."""


@dataclass(frozen=True)
class LayerSettings:
    """How far layers reach.

    Attributes:
        count: number of layers, the seeds' among them.
        max_urls: URLs of a layer at most.

    Raises:
        InputError: a number is below 1.
    """

    count: int = 4
    max_urls: int = MAX_LAYER_URLS

    def __post_init__(self) -> None:
        for name in ("count", "max_urls"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} of layers: found {getattr(self, name)}, expected a number >= 1")


def keyed_links(links: pa.Table) -> pa.Table:
    """Links (`source_id`, `target_id`) by source, a table of `KEYED_LINK_SCHEMA`."""
    return pa.table([links["source_id"], links["target_id"]], schema=KEYED_LINK_SCHEMA)


def described_urls(descriptions: Descriptions) -> pa.Table:
    """URLs whose content is known, a table of `ID_SCHEMA`."""
    return pa.table([descriptions.url[descriptions.described]], schema=ID_SCHEMA)


def seed_urls(harvested: pa.Table) -> pa.Table:
    """The seeds among harvested URLs (`url_id`, `seed`), a table of `ID_SCHEMA`."""
    return harvested.filter(harvested["seed"]).select(["url_id"]).cast(ID_SCHEMA)


def links_of(links: pa.Table | None, described: pa.Table | None) -> pa.Table:
    """The links of described URLs of a partition, a table of `KEYED_LINK_SCHEMA`."""
    if links is None or described is None:
        return KEYED_LINK_SCHEMA.empty_table()
    known = np.sort(int64s(described["url_id"]))
    return links.filter(pa.array(members(known, int64s(links["url_id"]))))


def found_urls(links: pa.Table, layers: pa.Table | None) -> Iterator[tuple[str, pa.Table]]:
    """The URLs of a partition that belong to the next layer, and their counts by bucket.

    Args:
        links: all links of the partition's described URLs (`KEYED_LINK_SCHEMA`).
        layers: the layers so far (`LAYER_SCHEMA`), in any order.
    """
    if layers is None:
        return
    place, layer = int64s(layers["url_id"]), int64s(layers["layer"])
    last = np.sort(place[layer == layer.max()])
    sources = np.unique(int64s(links["url_id"])[members(last, int64s(links["target"]))])
    yield from counted_urls(sources[~members(np.sort(place), sources)])


def counted_urls(ids: Int64s) -> Iterator[tuple[str, pa.Table]]:
    """Ids of a layer (`ID_SCHEMA`), each once, and their counts by bucket (`BUCKET_SCHEMA`, tag `BUCKETS`)."""
    buckets, counts = np.unique(_buckets(ids), return_counts=True)
    yield MAIN, pa.table([ids], schema=ID_SCHEMA)
    yield BUCKETS, pa.table([buckets, counts.astype(np.int64)], schema=BUCKET_SCHEMA)


def _buckets(ids: Int64s) -> Int64s:
    return ids >> (64 - BUCKET_BITS)


def cut_of(buckets: pa.Table | None, *, max_urls: int) -> pa.Table:
    """Where the cap falls, a table of `CUT_SCHEMA` with one row, none where nothing was found.

    Args:
        buckets: counts of all partitions (`BUCKET_SCHEMA`).
        max_urls: URLs of the layer at most.
    """
    if buckets is None or not buckets.num_rows:
        return CUT_SCHEMA.empty_table()
    summed = sum_by_key(buckets, "urls").sort_by("bucket")
    total = np.cumsum(int64s(summed["urls"]))
    last = min(int(np.searchsorted(total, max_urls)), len(total) - 1)
    return pa.table([[int(int64s(summed["bucket"])[last])], [max(0, int(total[-1]) - max_urls)]], schema=CUT_SCHEMA)


def ids_below_cut(ids: pa.Table, cut: pa.Table | None) -> pa.Table:
    """The ids that may stay in a layer, a table of `ID_SCHEMA`."""
    if cut is None:
        return ID_SCHEMA.empty_table()
    return ids.filter(pa.array(_buckets(int64s(ids["url_id"])) <= int64s(cut["bucket"])[0]))


def layer_of(ids: pa.Table | None, *, layer: int, max_urls: int) -> pa.Table:
    """A layer (`LAYER_SCHEMA`, ascending ids) of the lowest of the ids that were found, which are distinct."""
    lowest = np.sort(optional_int64s(ids, "url_id"))[:max_urls]
    return pa.table([lowest, np.full(len(lowest), layer, dtype=np.int64)], schema=LAYER_SCHEMA)


def states(descriptions: Descriptions, layers: pa.Table | None, count: int) -> Int64s:
    """State of each URL of a part, int64[n].

    Args:
        descriptions: the URLs.
        layers: all layers (`LAYER_SCHEMA`), in any order.
        count: number of layers, which is also the state "other" of described URLs that are in none.

    Returns:
        A URL's layer, else `count` where it is described, else `NO_STATE`.
    """
    state = np.where(descriptions.described, count, NO_STATE).astype(np.int64)
    if layers is None:
        return state
    ordered = layers.sort_by("url_id")
    place = positions(int64s(ordered["url_id"]), descriptions.url)
    state[place >= 0] = int64s(ordered["layer"])[place[place >= 0]]
    return state


def state_table(descriptions: Descriptions, layers: pa.Table | None, count: int) -> pa.Table:
    """The URLs of a part that have a state, a table of `STATE_SCHEMA`; see `states`."""
    state = states(descriptions, layers, count)
    known = state != NO_STATE
    return pa.table([descriptions.url[known], state[known]], schema=STATE_SCHEMA)


def layers_of_facts(facts: Facts, settings: LayerSettings) -> pa.Table:
    """The layers of a crawl in memory, a table of `LAYER_SCHEMA`."""
    descriptions = facts.descriptions
    source, target = facts.links.nonzero()
    links = pa.table([descriptions.url[source], descriptions.url[target]], names=["source_id", "target_id"])
    kept = links_of(keyed_links(links), described_urls(descriptions))
    layers = _capped(dict(counted_urls(descriptions.url[descriptions.seed])), 0, settings)
    for layer in range(1, settings.count):
        if not layers.num_rows or int64s(layers["layer"]).max() != layer - 1:
            break
        layers = pa.concat_tables([layers, _capped(dict(found_urls(kept, layers)), layer, settings)])
    return layers


def _capped(found: dict[str, pa.Table], layer: int, settings: LayerSettings) -> pa.Table:
    cut = cut_of(found[BUCKETS], max_urls=settings.max_urls)
    ids = ids_below_cut(found[MAIN], cut if cut.num_rows else None)
    return layer_of(ids, layer=layer, max_urls=settings.max_urls)
