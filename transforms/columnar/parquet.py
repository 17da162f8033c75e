"""Parquet files as the product writes them, and reading them back with an error for the user where they are damaged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from semrank.schemas.errors import InputError
from semrank.schemas.tables import SchemaMismatchError, TableSchema, conform
from semrank.transforms.columnar import files
from semrank.transforms.columnar.damage import UNREADABLE, open_parquet, unreadable

ROW_GROUP_ROWS = 1 << 17
"""Rows of one row group: some 10 MB of a frontier, so that readers can split a file and skip parts of it."""

READ_ROWS = 1 << 16
"""Rows of a stored table that are held at once, at most: some 5 MB of a frontier."""


@contextmanager
def open_stored(path: str) -> Iterator[pq.ParquetFile]:
    """A Parquet file at a path.

    Raises:
        InputError: it can't be read; also where Arrow finds that out later, inside the block.
    """
    with files.open_binary(path) as stream:
        try:
            yield open_parquet(stream, path)
        except InputError:
            raise
        except UNREADABLE as cause:
            raise unreadable(path, cause) from cause


def read_stored(path: str, expected: TableSchema) -> Iterator[pa.Table]:
    """The rows of a file, at most `READ_ROWS` at once, held to a schema; other columns are not read.

    Raises:
        InputError: the file can't be read, a required column is missing, or a column has another type.
    """
    with open_stored(path) as file:
        # Files of earlier versions have fewer columns.
        present = [name for name in expected.schema.names if name in file.schema_arrow.names]
        for batch in file.iter_batches(batch_size=READ_ROWS, columns=present, use_threads=False):
            yield _held_to(pa.Table.from_batches([batch]), expected, path)


def find_stored(path: str, expected: TableSchema, column: str, value: Any) -> pa.Table:
    """The first row of a file that has a value in a column, or none; the other columns are read only where it is.

    Raises:
        InputError: as `read_stored`.
    """
    searched = expected.columns(column)
    with open_stored(path) as file:
        names = file.schema_arrow.names
        for group in range(file.num_row_groups):
            values = file.read_row_group(group, columns=[column] if column in names else [], use_threads=False)
            place = pc.index(_held_to(values, searched, path)[column], value).as_py()
            if place >= 0:
                present = [name for name in expected.schema.names if name in names]
                rows = file.read_row_group(group, columns=present, use_threads=False)
                return _held_to(rows.slice(place, 1), expected, path)
    return expected.empty()


def _held_to(rows: pa.Table, expected: TableSchema, path: str) -> pa.Table:
    # Arrow takes on trust that texts are UTF-8 and that offsets lie inside their buffers.
    rows.validate(full=True)
    try:
        return conform(rows, expected)
    except SchemaMismatchError as cause:
        raise InputError(f"{path}: {cause}") from cause


def part_name(partition: int) -> str:
    """Name of a partition's file; names sort as the partitions do."""
    return f"part-{partition:05d}.parquet"


def write_parquet(path: str, table: pa.Table) -> int:
    """Writes one table as one Parquet file (zstd), which appears whole or not at all.

    Returns:
        The file's size in bytes.
    """
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", row_group_size=ROW_GROUP_ROWS)
    content = sink.getvalue()
    files.write_bytes(path, content)
    return int(content.size)
