"""The table between access logs and click sequences, and the batch that log formats yield."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from semrank.schemas.tables import TIMESTAMP, TableSchema
from semrank.transforms.streams.batch import SourceBatch

VISITS = TableSchema(
    "visits",
    pa.schema(
        [
            pa.field("user_id", pa.string(), nullable=False),
            pa.field("visited_at", TIMESTAMP, nullable=False),
            pa.field("url", pa.string(), nullable=False),
            pa.field("referrer_url", pa.string()),
            pa.field("query", pa.string()),
            pa.field("position", pa.int32()),
            pa.field("is_search", pa.bool_(), nullable=False),
        ]
    ),
)
"""Page views of people, before sessions are formed.

`referrer_url` is the canonical URL of the page that led here; empty if the log has none or it is no web
page, null where the log does not record it. `query` is what the visitor had searched for just before, as the
referrer tells, or, where `is_search`, what this very page (a result page of the site's own search) was asked for.
"""


@dataclass(frozen=True)
class LogBatch(SourceBatch):
    """A batch with the page views that still have to meet the others of their users.

    Attributes:
        visits: table of `VISITS`; formats that know the query of each click fill `tables["clicks"]` instead.
    """

    visits: pa.Table = field(default_factory=VISITS.empty)
