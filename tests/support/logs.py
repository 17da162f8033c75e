"""What the tests of log formats share."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from semrank.schemas.tables import CLICKS, REJECTS
from semrank.transforms.logs.formats import FORMATS
from semrank.transforms.logs.options import LogOptions
from semrank.transforms.logs.visits import VISITS

OPTIONS = LogOptions(
    user_salt="a test's own key",
    site="https://www.example.com",
    site_search=("q",),
    columns={"user": "0", "query": "1", "time": "2", "url": "3"},
    spam_domains=("spam.example",),
)

BROWSER = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/535.11 (KHTML, like Gecko) Chrome/17.0.963.56 Safari/535.11"


@dataclass
class Outcome:
    """All that a reader yielded."""

    records: int = 0
    used: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    ignored: Counter[str] = field(default_factory=Counter)
    counters: Counter[str] = field(default_factory=Counter)
    visits: list[dict[str, Any]] = field(default_factory=list)
    clicks: list[dict[str, Any]] = field(default_factory=list)
    rejects: list[dict[str, Any]] = field(default_factory=list)

    def sorted_rows(self) -> tuple[list[str], list[str], list[str]]:
        return sorted(map(repr, self.visits)), sorted(map(repr, self.clicks)), sorted(map(repr, self.rejects))


def read_all(name: str, content: bytes, options: LogOptions = OPTIONS, source: str = "access.log") -> Outcome:
    """Read a log and check what holds for all of them: schemas, and a reject row for each rejected record."""
    outcome = Outcome()
    for batch in FORMATS[name].read(io.BytesIO(content), source=source, options=options):
        assert batch.records == batch.used + sum(batch.rejected.values()) + sum(batch.ignored.values())
        assert batch.visits.schema.equals(VISITS.schema)
        outcome.records += batch.records
        outcome.used += batch.used
        outcome.rejected.update(batch.rejected)
        outcome.ignored.update(batch.ignored)
        outcome.counters.update(batch.counters)
        outcome.visits += batch.visits.to_pylist()
        outcome.clicks += _rows(batch.tables, CLICKS.name, CLICKS.schema)
        rejects = _rows(batch.tables, REJECTS.name, REJECTS.schema)
        assert Counter(row["reason"] for row in rejects) == Counter(batch.rejected)
        outcome.rejects += rejects
    return outcome


def _rows(tables: Any, name: str, schema: pa.Schema) -> list[dict[str, Any]]:
    if name not in tables:
        return []
    assert tables[name].schema.equals(schema)
    rows: list[dict[str, Any]] = tables[name].to_pylist()
    return rows


def combined_line(
    *,
    client: str = "203.0.113.7",
    account: str = "-",
    time: str = "10/Feb/2012:16:42:07 -0500",
    request: str = "GET /a/b.html HTTP/1.1",
    status: str = "200",
    referrer: str = "-",
    agent: str = BROWSER,
) -> str:
    return f'{client} - {account} [{time}] "{request}" {status} 368 "{referrer}" "{agent}"\n'
