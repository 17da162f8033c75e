"""Opening Parquet files, and the errors of those that can't be read."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from semrank.schemas.errors import InputError
from semrank.transforms.columnar.threads import is_alone

UNREADABLE = (
    pa.ArrowException,
    OSError,
    ValueError,
    RuntimeError,
    LookupError,
    ArithmeticError,
    MemoryError,
    TypeError,
)
"""What Arrow raises for damaged files, exceptions of its C++ code as Cython translates them among them."""


BATCH_MEMORY, GROUP_MEMORY = 1 << 29, 1 << 32
"""Bytes that reading a batch, or a whole row group, may take, where the system can hold a process to it.

A file does not contain what they take: pages are decompressed whole, and few bytes may stand for any number
of rows, nulls or repetitions.
"""

_SIZES = Path("/proc/self/statm")


@contextmanager
def bounded_memory(size: int) -> Iterator[None]:
    """A block in which this process gets at most so many bytes more; what needs more raises MemoryError.

    A limit holds for all threads of a process, so a program that runs others goes without.
    """
    if not is_alone() or not _SIZES.exists():
        yield
        return
    # Arrow's allocator reserves a gigabyte of addresses when it is first used, which is not of what is read.
    pa.allocate_buffer(1)
    before, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = int(_SIZES.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE") + size
    if before != resource.RLIM_INFINITY:
        most = min(most, before)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, hard))


class BoundedFile(pq.ParquetFile):  # type: ignore[misc]
    """A Parquet file each of whose pieces is read in bounded memory.

    Read with `use_threads=False`: every thread of Arrow's reserves addresses, which count.
    """

    def iter_batches(self, *arguments: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        """As `ParquetFile.iter_batches`; also raises MemoryError."""
        batches = super().iter_batches(*arguments, **options)
        while (batch := _next_batch(batches)) is not None:
            yield batch
            del batch  # before the next one is there

    def read_row_group(self, *arguments: Any, **options: Any) -> pa.Table:
        """As `ParquetFile.read_row_group`; also raises MemoryError."""
        with bounded_memory(GROUP_MEMORY):
            return super().read_row_group(*arguments, **options)


def _next_batch(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    with bounded_memory(BATCH_MEMORY):
        return next(batches, None)


def unreadable(source: str, cause: BaseException) -> InputError:
    """The error of a file that holds no Parquet that can be read."""
    if isinstance(cause, MemoryError):
        return InputError(f"{source}: takes too much memory to read, expected smaller pages and row groups of Parquet")
    line = str(cause).splitlines()[0] if str(cause) else type(cause).__name__
    return InputError(f"{source}: is not a readable Parquet file: {line}")


def open_parquet(stream: BinaryIO, source: str, *, encoded: Sequence[str] = ()) -> BoundedFile:
    """A Parquet file; all that are read are opened here.

    Args:
        stream: seekable binary stream.
        source: name of the file, for messages.
        encoded: columns of texts that are read as dictionaries.

    Raises:
        InputError: the file is not Parquet or is damaged.
    """
    try:
        with bounded_memory(BATCH_MEMORY):
            file = BoundedFile(stream, pre_buffer=False, read_dictionary=list(encoded))
            _ = file.schema_arrow
    except UNREADABLE as cause:
        raise unreadable(source, cause) from cause
    return file
