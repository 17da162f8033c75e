"""Parquet files as the product writes them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from transforms.columnar import files

ROW_GROUP_ROWS = 1 << 17
"""Rows of one row group: some 10 MB of a frontier, so that readers can split a file and skip parts of it."""


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
