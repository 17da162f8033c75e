"""Parquet files that can't be read."""

from __future__ import annotations

import pyarrow as pa

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
    return InputError(f"{source}: is no readable Parquet file: {line}")
