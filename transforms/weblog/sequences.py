"""Click sequences and the c-edges between consecutive pages (P13 3.2, SPEC of the click log).

The clicks of one user after one query, each at most half an hour after the one before, form a sequence; a log that
names sessions ends a sequence with its session. Each consecutive pair of different pages is a c-edge.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from semrank.transforms.columnar.arrays import int64s, row_keys, sum_rows
from semrank.transforms.streams.dates import SESSION_GAP_SECONDS
from semrank.transforms.weblog.clicks import Clicks

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
    url, time = int64s(rows["url_id"]), int64s(rows["time"])
    visit = row_keys(*(int64s(rows[name]) for name in ("user", "session", "query")))
    order = np.argsort(row_keys(visit, time, int64s(rows["position"]), url))
    url, time, visit = url[order], time[order], visit[order]
    follows = (visit[1:] == visit[:-1]) & (time[1:] - time[:-1] <= SESSION_GAP_SECONDS * 1_000_000)
    follows &= url[1:] != url[:-1]
    steps = np.ones(int(follows.sum()), dtype=np.int64)
    return pa.table(sum_rows((url[:-1][follows], url[1:][follows]), steps), schema=CLICK_EDGE_SCHEMA)
