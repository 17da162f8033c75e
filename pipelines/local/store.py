"""Collections between stages: held by reference in memory, and in files above a limit.

A table in a file is an Arrow IPC stream, which is memory-mapped. The files have no name: they are unlinked when they
are created, so that none is left however the process ends.
"""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from typing import IO, Any

import pyarrow as pa

_PAGE = mmap.ALLOCATIONGRANULARITY


class TableFile:
    """A file of tables, written by one process and read by those that inherit it.

    Args:
        folder: its folder.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._file = TableFile.unnamed(folder)
        self._size = 0

    @staticmethod
    def unnamed(folder: str) -> IO[bytes]:
        """A new file that only this process and its children can access."""
        return tempfile.TemporaryFile(dir=folder, prefix="semrank-", buffering=0)

    def write(self, table: pa.Table) -> Stored:
        """Appends a table.

        Raises:
            RuntimeError: the disk is full.
        """
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        content = sink.getvalue()
        start = -(-self._size // 64) * 64
        try:
            written = 0
            while written < content.size:
                written += os.pwrite(self._file.fileno(), memoryview(content)[written:], start + written)
        except OSError as cause:
            if cause.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise RuntimeError(
                f"--temp {self._folder}: the disk is full after {start:,} bytes of exchanged tables; use another "
                "folder or more --worker-memory is needed"
            ) from cause
        self._size = start + content.size
        return Stored(self, start, content.size)

    def read(self, start: int, length: int) -> pa.Table:
        """A table; its memory is released with its last buffer."""
        first = start // _PAGE * _PAGE
        mapped = mmap.mmap(self._file.fileno(), start - first + length, offset=first, access=mmap.ACCESS_READ)
        return pa.ipc.open_stream(pa.py_buffer(mapped).slice(start - first)).read_all()


class Stored:
    """A table in a file."""

    __slots__ = ("_file", "_length", "_start")

    def __init__(self, file: TableFile | None, start: int, length: int) -> None:
        self._file, self._start, self._length = file, start, length

    @property
    def nbytes(self) -> int:
        """Bytes in the file."""
        return self._length

    def load(self) -> pa.Table:
        """Reads the table."""
        assert self._file is not None
        return self._file.read(self._start, self._length)

    def inside(self, file: TableFile) -> Stored:
        """The same place in the file, as another process has it open."""
        return Stored(file, self._start, self._length)

    def __reduce__(self) -> tuple[Any, ...]:
        return Stored, (None, self._start, self._length)


def loaded(value: Any) -> Any:
    """A stored value as it was added."""
    return value.load() if isinstance(value, Stored) else value


class Budget:
    """The bytes of tables that may wait in memory.

    Args:
        limit: largest number of bytes.
        folder: the folder for tables above the limit.
    """

    def __init__(self, limit: int, folder: str) -> None:
        self._limit, self.folder = limit, folder
        self._waiting = 0

    def take(self, value: Any, file: TableFile | None) -> tuple[Any, TableFile | None]:
        """A value as it is stored, and its file, if it is in one."""
        if not isinstance(value, pa.Table):
            return value, file
        size = value.nbytes
        if self._waiting + size <= self._limit:
            self._waiting += size
            return value, file
        file = file or TableFile(self.folder)
        return file.write(value), file

    def give(self, value: Any) -> None:
        """Subtracts a value that no longer waits."""
        if isinstance(value, pa.Table):
            self._waiting -= value.nbytes


def whole(item: Any, grouped: bool) -> Any:
    """An element whose tables may be in files."""
    if grouped:
        key, values = item
        return key, [loaded(value) for value in values]
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], Stored):
        return item[0], item[1].load()
    return loaded(item)


def nbytes(item: Any) -> int | None:
    """Bytes of the tables in a stored element or group, or that it stands for; None if they are unknown."""
    own = getattr(item, "nbytes", None)
    if own is not None:
        return int(own)
    if not isinstance(item, tuple) or len(item) != 2:
        return None
    sizes = [nbytes(value) for value in item[1]] if isinstance(item[1], list) else [nbytes(item[1])]
    known = [size for size in sizes if size is not None]
    return sum(known) if known else None


class Elements:
    """The elements of a collection, in the order in which they came."""

    def __init__(self, budget: Budget, elements: Iterable[Any] = ()) -> None:
        self._budget = budget
        self._file: TableFile | None = None
        self._elements = deque(elements)

    def add(self, element: Any) -> None:
        """Adds an element."""
        kept, self._file = self._budget.take(element, self._file)
        self._elements.append(kept)

    def __len__(self) -> int:
        return len(self._elements)

    def items(self) -> list[Any]:
        """Its elements as they are kept."""
        return list(self._elements)

    def drain(self) -> Iterator[Any]:
        """Its elements as they are kept; each one is forgotten here when it is taken."""
        while self._elements:
            item = self._elements.popleft()
            self._budget.give(item)
            yield item


class Groups:
    """The elements of a collection of pairs, grouped by key."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._file: TableFile | None = None
        self._groups: dict[Any, list[Any]] = {}

    def add(self, element: tuple[Any, Any]) -> None:
        """Adds a pair of key and value."""
        key, value = element
        kept, self._file = self._budget.take(value, self._file)
        self._groups.setdefault(key, []).append(kept)

    def __len__(self) -> int:
        return len(self._groups)

    def items(self) -> list[Any]:
        """Pairs of key and values as they are kept."""
        return list(self._groups.items())

    def drain(self) -> Iterator[Any]:
        """Pairs of key and values as they are kept; each one is forgotten here when it is taken."""
        for key in list(self._groups):
            values = self._groups.pop(key)
            for value in values:
                self._budget.give(value)
            yield key, values
