"""Parquet files as inputs: opened with an error for the user, read in bounded pieces, split by row groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import InputError

MAGIC = b"PAR1"
"""How a Parquet file begins (and ends)."""

READ_ROWS = 1 << 14
"""Rows that are worked on at once: some 2 MiB of links, and no more than some 50 MiB of pages."""


def open_parquet(stream: BinaryIO, source: str) -> pq.ParquetFile:
    """A Parquet file.

    Raises:
        InputError: the stream holds none that can be read.
    """
    try:
        return pq.ParquetFile(stream)
    except (pa.ArrowException, OSError) as cause:
        raise _unreadable(source, cause) from cause


def _unreadable(source: str, cause: BaseException) -> InputError:
    line = str(cause).splitlines()[0] if str(cause) else type(cause).__name__
    return InputError(f"{source}: is no readable Parquet file: {line}")


def groups_in_range(stream: BinaryIO, source: str, start: int, end: int | None) -> list[int]:
    """The row groups whose data begin in bytes [start, end) of the file.

    Ranges that follow each other give every row group once.
    """
    metadata = open_parquet(stream, source).metadata
    groups = []
    for group in range(metadata.num_row_groups):
        if metadata.num_columns:
            column = metadata.row_group(group).column(0)
            begins = min(at for at in (column.dictionary_page_offset, column.data_page_offset) if at)
        else:
            begins = 0
        if begins >= start and (end is None or begins < end):
            groups.append(group)
    return groups


def read_batches(
    stream: BinaryIO, source: str, *, columns: Sequence[str], groups: Sequence[int] | None = None
) -> Iterator[pa.Table]:
    """The rows of some row groups (all if None) in tables of at most `READ_ROWS` rows, with the columns that exist.

    Raises:
        InputError: the file can't be read.
    """
    file = open_parquet(stream, source)
    present = [name for name in columns if name in file.schema_arrow.names]
    batches = file.iter_batches(batch_size=READ_ROWS, row_groups=groups, columns=present, use_threads=False)
    while True:
        try:
            batch = next(batches, None)
        except (pa.ArrowException, OSError) as cause:
            raise _unreadable(source, cause) from cause
        if batch is None:
            return
        yield pa.Table.from_batches([batch])
