"""The output of all source formats: bounded batches of conformed tables and a balance of the records read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from semrank.schemas.tables import ALIASES, CLICKS, HISTORY, LINKS, PAGES, REJECTS, TIMESTAMP, TableSchema, conform
from semrank.transforms.streams.parameters import NO_RULES, ParameterRules
from semrank.transforms.streams.quotes import quote_page
from semrank.transforms.streams.texts import well_formed

DEFAULT_MAX_RECORD_BYTES = 20 << 20
"""Maximum bytes of a record's block: pages are far smaller; larger records are videos or archives."""

TABLES: Mapping[str, TableSchema] = {
    schema.name: schema for schema in (PAGES, LINKS, CLICKS, ALIASES, HISTORY, REJECTS)
}
"""The tables that a source may fill, by name."""

CAPTURES = TableSchema(
    "captures",
    pa.schema(
        [
            pa.field("is_capture", pa.bool_(), nullable=False),
            pa.field("captured_at", TIMESTAMP),
            pa.field("captured_digest", pa.string()),
            pa.field("captured_state", pa.int64()),
        ]
    ),
)
"""The capture of its source page that a link was read from, if any.

`captured_at` is the `fetched_at` of the capture's row of `PAGES`, `captured_digest` its `content_digest`; if the time
is unknown, `captured_state` is a hash of the row (`transforms.crawls.pages.page_states`).
"""

BORROWED = TableSchema(
    "borrowed",
    pa.schema(
        [
            pa.field("url", pa.string(), nullable=False),
            pa.field("fetched_at", TIMESTAMP),
            pa.field("content_digest", pa.string()),
            pa.field("original_url", pa.string()),
            pa.field("original_at", TIMESTAMP),
        ]
    ),
)
"""Visits whose content is stored with another URL: the visit's URL, time and digest, as in its row of `PAGES`, and the
URL and time of the capture with the content, if known."""

MAX_BATCH_BYTES = 2 << 20
"""Bytes of text after which a batch is emitted: elements between stages have 1-4 MiB."""

MAX_BATCH_RECORDS = 1 << 16
"""Records after which a batch is emitted, so that formats with little text report their balance, too."""

MAX_REJECT_CHARS = 2_000
"""Maximum characters of the quote in a reject row: enough to find the record, never a whole page."""

_CAPTURED = CAPTURES.schema.types[1:]
_ROW_BYTES = 32  # estimated bytes of a row without its text: offsets, validity, numbers


@dataclass(frozen=True)
class SourceBatch:
    """Rows made from a run of records, and the outcome of each record.

    Attributes:
        tables: conformed tables by name (keys of `TABLES`); tables without rows are left out.
        records: number of records read.
        used: number of records that yielded rows (or that stand for rows elsewhere, as a revisit does).
        rejected: number of records that could not be used, by reason; each also has a row in `rejects`.
        ignored: number of records that were left out on purpose, by reason.
        counters: other events, such as links over a page's limit.
        captures: table of `CAPTURES`, one row for each of `tables["links"]`; None if no link was read from a capture,
            so that no newer capture outdates it.
        borrowed: table of `BORROWED`; None if no visit refers to the content of another URL.

    Raises:
        ValueError: a table's name is unknown, records differ from used + rejected + ignored, or captures from links.
    """

    tables: Mapping[str, pa.Table]
    records: int
    used: int
    rejected: Mapping[str, int]
    ignored: Mapping[str, int]
    counters: Mapping[str, int] = field(default_factory=dict)
    captures: pa.Table | None = None
    borrowed: pa.Table | None = None

    def __post_init__(self) -> None:
        """Checks the balance."""
        unknown = sorted(set(self.tables) - set(TABLES))
        if unknown:
            raise ValueError(f"found tables {unknown}, expected some of {sorted(TABLES)}")
        accounted = self.used + sum(self.rejected.values()) + sum(self.ignored.values())
        if self.records != accounted:
            raise ValueError(
                f"found {self.records} records, expected {accounted}: used {self.used}, "
                f"rejected {dict(self.rejected)}, ignored {dict(self.ignored)}"
            )
        links = self.tables[LINKS.name].num_rows if LINKS.name in self.tables else 0
        if self.captures is not None and self.captures.num_rows != links:
            raise ValueError(f"found {self.captures.num_rows} captures, expected one for each of {links} links")


class Capture(NamedTuple):
    """A capture of a page, as in `CAPTURES`; the time is in microseconds since 1970 in UTC."""

    captured_at: int | None
    digest: str | None
    state: int | None


class BatchBuilder:
    """Collects rows column by column, keeps the balance, and cuts bounded batches.

    A format reader calls `use`, `reject` or `ignore` exactly once per record, `append`, `extend` or `add` for the rows,
    and `yield from builder.drain()` after every record (which yields nothing while the batch is small) and
    `yield from builder.drain(last=True)` at the end.

    Args:
        stage: name of the format, the `stage` of reject rows.
        rules: the user's rules for parameters of URLs.
        max_bytes: bytes of text after which `drain` yields.
    """

    def __init__(self, stage: str, rules: ParameterRules = NO_RULES, *, max_bytes: int = MAX_BATCH_BYTES) -> None:
        self.stage, self.rules = stage, rules
        self._max_bytes = max_bytes
        self._reset()

    def _reset(self) -> None:
        self._columns: dict[str, tuple[list[Any], ...]] = {}
        self._ready: dict[str, list[pa.Table]] = {}
        self._bytes = 0
        self._records = 0
        self._used = 0
        self._rejected: Counter[str] = Counter()
        self._ignored: Counter[str] = Counter()
        self._counters: Counter[str] = Counter()
        self._borrowed: list[tuple[Any, ...]] = []
        self._captured: list[tuple[Capture, int, int]] = []  # with first and number of its rows among appended links

    def _lists(self, table: str) -> tuple[list[Any], ...]:
        lists = self._columns.get(table)
        if lists is None:
            lists = self._columns[table] = tuple([] for _ in TABLES[table].schema)
        return lists

    def append(self, table: str, row: Sequence[Any]) -> None:
        """Adds one row: values in the order of the schema; timestamps are microseconds since 1970 in UTC."""
        for values, value in zip(self._lists(table), row, strict=True):
            values.append(value)
            if isinstance(value, str):
                self._bytes += len(value)
        self._bytes += _ROW_BYTES

    def extend(self, table: str, columns: Sequence[Sequence[Any]]) -> None:
        """Adds rows given as one sequence per column, all equally long, in the order of the schema."""
        for values, more in zip(self._lists(table), columns, strict=True):
            values.extend(more)
            if more and isinstance(more[0], str):
                self._bytes += sum(map(len, filter(None, more)))
        self._bytes += _ROW_BYTES * len(columns[0])

    def extend_links(self, columns: Sequence[Sequence[Any]], capture: Capture) -> None:
        """Adds links read from a capture of their source page, columns as for `extend`."""
        self._captured.append((capture, len(self._lists(LINKS.name)[0]), len(columns[0])))
        self.extend(LINKS.name, columns)

    def borrow(self, row: tuple[str, int | None, str | None, str | None, int | None]) -> None:
        """Adds a row of `BORROWED`."""
        self._borrowed.append(row)
        self._bytes += _ROW_BYTES + sum(len(value) for value in row if isinstance(value, str))

    def add(self, table: str, rows: pa.Table) -> None:
        """Adds an Arrow table's rows; its columns are conformed to the schema."""
        if rows.num_rows:
            self._ready.setdefault(table, []).append(conform(rows, TABLES[table]))
            self._bytes += rows.nbytes

    def use(self, records: int = 1) -> None:
        """Counts records as used."""
        self._records += records
        self._used += records

    def reject(self, reason: str, record: str, *, records: int = 1) -> None:
        """Counts records as rejected and adds one reject row."""
        self._records += records
        self._rejected[reason] += records
        self.note(reason, record)

    def reject_rows(self, reason: str, quoted: Sequence[str]) -> None:
        """Counts one rejected record per quote, and adds a reject row for each."""
        if quoted:
            self._records += len(quoted)
            self._rejected[reason] += len(quoted)
            for record in quoted:
                self.note(reason, record)

    def ignore(self, reason: str, records: int = 1) -> None:
        """Counts records as left out on purpose."""
        if records:
            self._records += records
            self._ignored[reason] += records

    def note(self, reason: str, record: str, *, stage: str | None = None) -> None:
        """Adds a reject row without rejecting a record: a bad link on a good page, a mark on a used row."""
        self.append("rejects", (self.stage if stage is None else stage, reason, quote_page(record)[:MAX_REJECT_CHARS]))

    def count(self, counter: str, events: int = 1) -> None:
        """Adds to a counter of other events."""
        if events:
            self._counters[counter] += events

    def drain(self, *, last: bool = False) -> Iterator[SourceBatch]:
        """Yields the collected batch if it is large enough, or, at the end, if it is not empty."""
        holds_anything = self._records or self._counters or self._columns or self._ready
        if self._bytes >= self._max_bytes or self._records >= MAX_BATCH_RECORDS or (last and holds_anything):
            batch = self._batch()
            self._reset()
            yield batch

    def _batch(self) -> SourceBatch:
        tables: dict[str, pa.Table] = {}
        for name, schema in TABLES.items():
            parts = self._ready.get(name, [])
            lists = self._columns.get(name)
            if lists is not None and lists[0]:
                arrays = [_array(values, column.type) for values, column in zip(lists, schema.schema, strict=True)]
                parts = [*parts, pa.table(arrays, schema=schema.schema)]
            if parts:
                tables[name] = pa.concat_tables(parts)
        return SourceBatch(
            tables=tables,
            records=self._records,
            used=self._used,
            rejected=dict(self._rejected),
            ignored=dict(self._ignored),
            counters=dict(self._counters),
            captures=self._captures(tables[LINKS.name].num_rows) if self._captured else None,
            borrowed=_borrowed_table(self._borrowed) if self._borrowed else None,
        )

    def _captures(self, links: int) -> pa.Table:
        """The capture of each link; appended links are after added ones."""
        added = sum(rows.num_rows for rows in self._ready.get(LINKS.name, []))
        number = np.full(links, -1, dtype=np.int64)
        for capture, (_, first, count) in enumerate(self._captured):
            number[added + first : added + first + count] = capture
        captures = [capture for capture, _, _ in self._captured]
        columns = [pa.array(column, kind) for column, kind in zip(zip(*captures, strict=True), _CAPTURED, strict=True)]
        chosen = pa.array(number, mask=number < 0)
        return pa.table([pa.array(number >= 0), *(column.take(chosen) for column in columns)], schema=CAPTURES.schema)


def _borrowed_table(rows: list[tuple[Any, ...]]) -> pa.Table:
    schema = BORROWED.schema
    columns = zip(zip(*rows, strict=True), schema.types, strict=True)
    return pa.table([_array(list(values), dtype) for values, dtype in columns], schema=schema)


def _array(values: list[Any], dtype: pa.DataType) -> pa.Array:
    """An Arrow array of `values`; half surrogate pairs, which UTF-8 can't hold, become U+FFFD."""
    try:
        return pa.array(values, dtype)
    except UnicodeEncodeError:
        return pa.array([_whole(value) for value in values], dtype)


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, list):
        return [_whole(element) for element in value]
    return value
