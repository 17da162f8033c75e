"""Writes small snapshots for tests, as `semrank ingest` leaves them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from semrank.schemas.tables import CLICKS, LINKS, PAGES, TableSchema, conform


def table_of(rows: Sequence[dict[str, Any]], schema: TableSchema) -> pa.Table:
    """Rows as a conformed table; columns that no row names are null."""
    return conform(pa.Table.from_pylist(list(rows), schema=schema.schema), schema)


def write_snapshot(
    folder: Path,
    pages: Sequence[dict[str, Any]],
    links: Sequence[dict[str, Any]],
    clicks: Sequence[dict[str, Any]],
    *,
    files: int = 1,
) -> Path:
    """A finished snapshot of these rows, each table cut into so many files."""
    for rows, schema in ((pages, PAGES), (links, LINKS), (clicks, CLICKS)):
        (folder / schema.name).mkdir(parents=True)
        for number in range(files):
            part = table_of(rows[number::files], schema)
            pq.write_table(part, folder / schema.name / f"part-{number:05d}.parquet")
    (folder / "manifest.json").write_text(json.dumps({"kind": "snapshot", "sources": []}), encoding="utf-8")
    return folder


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """All rows of a table's files, in the order of the files."""
    rows: list[dict[str, Any]] = []
    for path in sorted(folder.glob("*.parquet")):
        rows += pq.read_table(path).to_pylist()
    return rows
