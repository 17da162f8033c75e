"""Links as ids: what the queue's pages link to, and the edges between the queue and the URLs to rank.

Queue URLs are the pages a round starts from; harvested URLs are the queue's and those of earlier rounds. Current URLs
are link targets of the queue's or of all harvested URLs that are not harvested themselves; where pages are to be
refreshed, only the queue's are left out.
A nofollow link makes its target known but counts as no link.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.columnar.arrays import Bools, Int64s, bools, column_array, int64s, members, positions, sum_rows
from semrank.transforms.columnar.idfilter import IdFilter
from semrank.transforms.weblog.clicks import column_ids

COLUMNS = ("source_url", "target_url", "anchor_text", "nofollow")
"""Columns of the links table that the readers take."""

LINK_OUT, LINK_IN, CLICK_OUT, CLICK_IN = 0, 1, 2, 3
"""Kinds of edges, seen from the queue: links and c-edges from a queue URL to a current one, and back."""

EDGE_SCHEMA = pa.schema(
    [
        pa.field("url_id", pa.int64()),
        pa.field("queue", pa.int64()),
        pa.field("kind", pa.int64()),
        pa.field("times", pa.int64()),
    ]
)
"""An edge between URL and queue URL (its position in the sorted queue ids), and how often it was walked."""

DISCOVERED_SCHEMA = pa.schema([pa.field("url_id", pa.int64()), pa.field("url", pa.string())])
ID_SCHEMA = pa.schema([pa.field("url_id", pa.int64())])
ANCHOR_SCHEMA = pa.schema([pa.field("url_id", pa.int64()), pa.field("anchor", pa.string())])
"""The URL that a link points to, and the link's text."""

LINK_SCHEMA = pa.schema([pa.field("source_id", pa.int64()), pa.field("target_id", pa.int64())])


@dataclass(frozen=True)
class Links:
    """Rows of a links table as ids; arrays of length n.

    Attributes:
        source: id of the linking URL, int64.
        target: id of the URL linked to, int64.
        followed: whether the link counts as one, bool.
        digests: ids and check values of the distinct URLs, int64[m, 2].
    """

    source: Int64s
    target: Int64s
    followed: Bools
    digests: Int64s


def read_links(table: pa.Table) -> Links:
    """The rows of a conformed links table as ids; the anchor texts are not needed."""
    source, source_digests = column_ids(table["source_url"])
    target, target_digests = column_ids(table["target_url"])
    nofollow = bools(pc.fill_null(column_array(table["nofollow"]), False))
    return Links(source, target, ~nofollow.astype(np.bool_), np.concatenate([source_digests, target_digests]))


def discovered_urls(links: Links, table: pa.Table, sources: Int64s, excluded: Int64s) -> pa.Table:
    """Link targets of some URLs with their addresses, a table of `DISCOVERED_SCHEMA`, each once.

    Args:
        links: the rows of `table` as ids.
        table: rows of the links table.
        sources: sorted ids of the linking URLs.
        excluded: sorted ids of URLs that are not to be ranked.
    """
    rows = np.flatnonzero(members(sources, links.source) & ~members(excluded, links.target))
    ids, first = np.unique(links.target[rows], return_index=True)
    urls = column_array(table["target_url"]).take(pa.array(rows[first]))
    return pa.table([ids, urls], schema=DISCOVERED_SCHEMA)


def known_urls(links: Links, urls: Int64s) -> pa.Table:
    """Which of some URLs stand in links, a table of `ID_SCHEMA`, each once.

    Args:
        links: the links.
        urls: sorted ids of the URLs.
    """
    ids = np.unique(np.concatenate([links.source, links.target]))
    return pa.table([ids[members(urls, ids)]], schema=ID_SCHEMA)


def link_edges(links: Links, queue: Int64s) -> pa.Table:
    """Followed links between queue URLs and others, a table of `EDGE_SCHEMA`, each once.

    Exchange it by `url_id`: most of the URLs that link to a queue URL turn out not to be current.
    """
    source, target = links.source[links.followed], links.target[links.followed]
    return _edges(source, target, np.ones(len(source), dtype=np.int64), queue, LINK_OUT, LINK_IN)


def click_edges_of_queue(edges: pa.Table, queue: Int64s) -> pa.Table:
    """C-edges between queue URLs and others, a table of `EDGE_SCHEMA`.

    Args:
        edges: distinct c-edges: source, target, clicks.
        queue: sorted ids of the queue URLs.
    """
    return _edges(int64s(edges["source"]), int64s(edges["target"]), int64s(edges["clicks"]), queue, CLICK_OUT, CLICK_IN)


def _edges(source: Int64s, target: Int64s, times: Int64s, queue: Int64s, out: int, into: int) -> pa.Table:
    from_queue, to_queue = positions(queue, source), positions(queue, target)
    leaves = (from_queue >= 0) & (to_queue < 0)
    enters = (from_queue < 0) & (to_queue >= 0)
    url = np.concatenate([target[leaves], source[enters]])
    place = np.concatenate([from_queue[leaves], to_queue[enters]])
    kind = np.concatenate([np.full(int(leaves.sum()), out), np.full(int(enters.sum()), into)]).astype(np.int64)
    return pa.table(sum_rows((url, place, kind), np.concatenate([times[leaves], times[enters]])), schema=EDGE_SCHEMA)


def anchor_rows(table: pa.Table, wanted: Bools, links: Links) -> tuple[Int64s, pa.Array]:
    """Targets and anchor texts of the followed links that have one and are wanted.

    Args:
        table: rows of the links table.
        wanted: bool[n], for example whether the target is to be ranked.
        links: the rows of `table` as ids.

    Returns:
        (target ids int64[k], anchor texts string[k]).
    """
    anchors = column_array(table["anchor_text"])
    valid = bools(pc.is_valid(anchors))
    rows = np.flatnonzero(wanted & links.followed & valid)
    return links.target[rows], anchors.take(pa.array(rows))


def followed_links(links: Links) -> pa.Table:
    """The followed links, a table of `LINK_SCHEMA`."""
    return pa.table([links.source[links.followed], links.target[links.followed]], schema=LINK_SCHEMA)


def anchor_texts(table: pa.Table, links: Links) -> pa.Table:
    """The followed links that have an anchor text, a table of `ANCHOR_SCHEMA`."""
    return pa.table(anchor_rows(table, np.ones(table.num_rows, dtype=np.bool_), links), schema=ANCHOR_SCHEMA)


def clicked_links(table: pa.Table, clicked: IdFilter) -> pa.Table:
    """The links by id (`LINK_SCHEMA`) whose both ends may have been clicked."""
    source, target = (int64s(table[name]) for name in ("source_id", "target_id"))
    return table.filter(pa.array(clicked.may_contain(source) & clicked.may_contain(target)))
