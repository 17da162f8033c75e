"""Opening Parquet files, and the errors of those that can't be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from semrank.schemas.errors import InputError

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


def unreadable(source: str, cause: BaseException) -> InputError:
    """The error of a file that holds no Parquet that can be read."""
    line = str(cause).splitlines()[0] if str(cause) else type(cause).__name__
    return InputError(f"{source}: is not a readable Parquet file: {line}")


def open_parquet(stream: BinaryIO, source: str, *, encoded: Sequence[str] = ()) -> pq.ParquetFile:
    """A Parquet file; all that are read are opened here.

    Args:
        stream: seekable binary stream.
        source: name of the file, for messages.
        encoded: columns of texts that are read as dictionaries.

    Raises:
        InputError: the file is not Parquet or is damaged.
    """
    try:
        file = pq.ParquetFile(stream, pre_buffer=False, read_dictionary=list(encoded))
        _ = file.schema_arrow
    except UNREADABLE as cause:
        raise unreadable(source, cause) from cause
    return file
