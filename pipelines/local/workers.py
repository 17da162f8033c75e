"""Distributes the elements of a stage among forked processes.

A worker inherits what the stage needs, including prepared side inputs, processes one element after the other, and
writes the tables that it produces to a file. It sends back positions in that file, other elements, and metrics.
"""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import selectors
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

import pyarrow as pa

from semrank.pipelines.local.store import Stored, TableFile

_TICKET = 8
_PARENT_DEATH_SIGNAL = 1
_POLL_SECONDS = 0.2

CAN_FORK = sys.platform == "linux"
"""On other systems, libraries are not guaranteed to work in forked processes."""


class Tickets:
    """The positions of elements, each given to one process: they share the offset of an open file.

    Args:
        count: number of elements.
        folder: for the file.
    """

    def __init__(self, count: int, folder: str) -> None:
        self._file = TableFile.unnamed(folder)
        self._count = count
        os.write(self._file.fileno(), b"".join(n.to_bytes(_TICKET, "little") for n in range(count)))
        self._file.seek(0)

    def __iter__(self) -> Iterator[int]:
        while ticket := os.read(self._file.fileno(), _TICKET):
            yield int.from_bytes(ticket, "little")

    def taken(self) -> int:
        """Number of positions given out."""
        return min(self._count, os.lseek(self._file.fileno(), 0, os.SEEK_CUR) // _TICKET)


@dataclass
class Work:
    """The result of a worker.

    Attributes:
        elements: what it produced, by receiver, with positions in its file for tables.
        metrics: of its operations.
        error: the error that ended it, or None.
    """

    elements: dict[int, list[Any]]
    metrics: list[Any]
    error: Exception | None = None


class Box:
    """Stores the elements that a worker produces, tables in its file."""

    def __init__(self, file: TableFile) -> None:
        self._file = file
        self.elements: list[Any] = []

    def add(self, element: Any) -> None:
        """Takes an element."""
        if isinstance(element, pa.Table):
            element = self._file.write(element)
        elif isinstance(element, tuple) and len(element) == 2 and isinstance(element[1], pa.Table):
            element = (element[0], self._file.write(element[1]))
        self.elements.append(element)


def found_in(element: Any, file: TableFile) -> Any:
    """An element from a worker, with its positions in the worker's file."""
    if isinstance(element, Stored):
        return element.inside(file)
    if isinstance(element, tuple) and len(element) == 2 and isinstance(element[1], Stored):
        return element[0], element[1].inside(file)
    return element


def run_workers(
    files: Sequence[TableFile], work: Callable[[TableFile], Work], waiting: Callable[[], None]
) -> Iterator[Work]:
    """Runs a function in one process for each file; the processes end with the caller, however it ends.

    Args:
        files: a file for each process.
        work: what a process does.
        waiting: called several times a second.

    Raises:
        RuntimeError: a process was killed.
        Exception: what a function raised.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    parent, running, answers = os.getpid(), {}, {}
    try:
        for number, file in enumerate(files):
            receiver, sender = os.pipe()
            process = os.fork()
            if not process:
                _work(parent, file, work, sender)
            os.close(sender)
            running[receiver] = process
            answers[receiver] = (number, bytearray())
        _receive(running, answers, waiting)
    finally:
        for receiver, process in running.items():
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            os.close(receiver)
    for _, answer in sorted(answers.values(), key=lambda each: each[0]):
        done: Work = pickle.loads(answer)
        if done.error is not None:
            raise done.error
        yield done


def _receive(running: dict[int, int], answers: dict[int, tuple[int, bytearray]], waiting: Callable[[], None]) -> None:
    """Reads each process's answer to its end."""
    with selectors.DefaultSelector() as selector:
        for receiver in running:
            selector.register(receiver, selectors.EVENT_READ)
        while running:
            for key, _ in selector.select(_POLL_SECONDS):
                receiver = key.fd
                content = os.read(receiver, 1 << 20)
                answers[receiver][1].extend(content)
                if not content:
                    selector.unregister(receiver)
                    _, status = os.waitpid(running.pop(receiver), 0)
                    os.close(receiver)
                    if status:
                        raise RuntimeError(_lost(status))
            waiting()


def _lost(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    reason = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
    hint = "; it may have run out of memory: --workers 1 needs less" if code == -signal.SIGKILL else ""
    return f"a worker process {reason}{hint}"


def _work(parent: int, file: TableFile, work: Callable[[TableFile], Work], sender: int) -> NoReturn:
    """Runs a worker; never returns to the caller."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _end_with(parent)
        gc.freeze()
        try:
            done = work(file)
        except Exception as error:
            done = Work({}, [], error)
        with os.fdopen(sender, "wb") as stream:
            stream.write(_pickled(done))
        status = 0
    except BaseException:
        with suppress(Exception):
            traceback.print_exc()
    finally:
        os._exit(status)


def _end_with(parent: int) -> None:
    """Requests that the system kills this process when its parent dies."""
    ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _pickled(done: Work) -> bytes:
    try:
        content = pickle.dumps(done, protocol=pickle.HIGHEST_PROTOCOL)
        pickle.loads(content)
    except Exception:
        if done.error is None:
            raise
        error = RuntimeError(f"{type(done.error).__name__}: {done.error}")
        for note in getattr(done.error, "__notes__", ()):
            error.add_note(note)
        return pickle.dumps(Work({}, [], error))
    return content
