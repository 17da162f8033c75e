"""Click sequences and the c-edges between consecutive pages (P13 3.2, SPEC of the click log).

The clicks of one user after one query, each at most half an hour after the one before, form a sequence; a log that
names sessions ends a sequence with its session. Each consecutive pair of different pages is a c-edge.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from transforms.columnar.arrays import int64s
from transforms.weblog.clicks import Clicks

SEQUENCE_GAP_SECONDS = 30 * 60
"""Longest pause inside a click sequence."""

SEQUENCE_SCHEMA = pa.schema(
    [pa.field(name, pa.int64()) for name in ("user", "session", "query", "time", "position", "url_id")]
)
CLICK_EDGE_SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("source", "target", "clicks")])


def sequence_rows(clicks: Clicks) -> pa.Table:
    """The rows that `click_edges` needs, a table of `SEQUENCE_SCHEMA`; exchange them by `user`."""
    return pa.table(
        [clicks.user, clicks.session, clicks.query, clicks.time, clicks.position, clicks.url], schema=SEQUENCE_SCHEMA
    )


def click_edges(rows: pa.Table) -> pa.Table:
    """The c-edges of click sequences.

    Args:
        rows: all rows of the users that stand in it, a table of `SEQUENCE_SCHEMA`.

    Returns:
        A table of `CLICK_EDGE_SCHEMA`: source and target URL id, distinct, and how often the edge was walked.
    """
    columns = [int64s(rows[name]) for name in ("url_id", "position", "time", "query", "session", "user")]
    order = np.lexsort(columns)
    url, _, time, query, session, user = (column[order] for column in columns)
    follows = (user[1:] == user[:-1]) & (session[1:] == session[:-1]) & (query[1:] == query[:-1])
    follows &= (time[1:] - time[:-1]) <= SEQUENCE_GAP_SECONDS * 1_000_000
    follows &= url[1:] != url[:-1]
    return count_edges(url[:-1][follows], url[1:][follows], np.ones(int(follows.sum()), dtype=np.int64))


def count_edges(source: np.ndarray, target: np.ndarray, clicks: np.ndarray) -> pa.Table:
    """Edges with their counts added where they stand more than once, a table of `CLICK_EDGE_SCHEMA`, sorted."""
    order = np.lexsort((target, source))
    source, target, clicks = source[order], target[order], clicks[order]
    new = np.ones(len(source), dtype=np.bool_)
    new[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    starts = np.flatnonzero(new)
    sums = np.add.reduceat(clicks, starts) if len(starts) else clicks
    return pa.table([source[starts], target[starts], sums], schema=CLICK_EDGE_SCHEMA)
