"""Runs a function in a process of its own and measures the memory that it takes."""

from __future__ import annotations

import io
import multiprocessing
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, BinaryIO

MEBIBYTE = 1 << 20

PIECE_BYTES = 1 << 18
"""Bytes of repetitions that are in memory at once."""

HARD_LIMIT_BYTES = 3 << 30
"""Address space that a process may take beyond what it begins with: what goes wrong ends it, not the machine."""

PRELOADED = ("semrank.pipelines.runtime", "semrank.pipelines.rank")
"""Modules that take a second to import."""


@dataclass(frozen=True)
class Outcome:
    """What came of a call.

    Attributes:
        value: what the function returned.
        grown_bytes: the largest memory that the process held, less what it held before.
        seconds: processor time, so that a busy machine makes no difference.
    """

    value: Any
    grown_bytes: int
    seconds: float


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1]) << 10


def begin_peak() -> int:
    """Lets the peak of this process's memory begin anew; gives the memory that it holds."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def peak_growth(before: int) -> int:
    """The largest memory that this process held since `begin_peak`, less what it held then."""
    return _status("VmHWM") - before


@dataclass(frozen=True)
class Repeated:
    """Much the same over and over, between a head and a tail; made where it is read, and a piece at a time.

    Attributes:
        head: bytes at the beginning.
        unit: bytes that follow, `count` times.
        count: number of repetitions.
        tail: bytes at the end.
    """

    head: bytes
    unit: bytes
    count: int
    tail: bytes = b""

    def __bytes__(self) -> bytes:
        with self.stream() as stream:
            return stream.read()

    def stream(self) -> BinaryIO:
        """A seekable stream of the bytes, which does not hold them."""
        return io.BufferedReader(_Repetitions(self))


class _Repetitions(io.RawIOBase):
    def __init__(self, content: Repeated) -> None:
        self._content, self._position = content, 0
        self._begin = len(content.head)
        self._end = self._begin + content.count * len(content.unit)
        self._piece = content.unit * (PIECE_BYTES // len(content.unit) + 1)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        end = self._end + len(self._content.tail)
        self._position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: end}[whence]
        return self._position

    def readinto(self, buffer: Any) -> int:
        position = self._position
        if position < self._begin:
            found = self._content.head[position:]
        elif position < self._end:
            phase = (position - self._begin) % len(self._content.unit)
            found = self._piece[phase : phase + self._end - position]
        else:
            found = self._content.tail[position - self._end :]
        found = found[: len(buffer)]
        buffer[: len(found)] = found
        self._position += len(found)
        return len(found)


def _run(function: Callable[..., Any], arguments: tuple[Any, ...], sender: Connection) -> None:
    limit = _status("VmSize") + HARD_LIMIT_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    before, begin = begin_peak(), time.process_time()
    try:
        value: Any = function(*arguments)
    except BaseException as error:  # the parent raises it
        value = error
    sender.send(Outcome(value, peak_growth(before), time.process_time() - begin))


def forked(function: Callable[..., Any], *arguments: Any, preloaded: str | None = None) -> ForkServerProcess:
    """Starts an importable function in a process forked from one that has imported a module, by default its own.

    That process is the same for all tests, and knows the module of the first one that needs it.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PRELOADED, preloaded or function.__module__])
    process = context.Process(target=function, args=arguments)
    process.start()
    return process


def apart(function: Callable[..., Any], *arguments: Any, timeout: float = 120.0) -> Outcome:
    """Calls an importable function in a fresh process.

    Raises:
        AssertionError: the process died or hung.
        Exception: what the function raised.
    """
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = forked(_run, function, arguments, sender, preloaded=function.__module__)
    sender.close()
    try:
        assert receiver.poll(timeout), f"no answer after {timeout} s"
        outcome: Outcome = receiver.recv()
    except EOFError:
        process.join()
        raise AssertionError(f"the process died with status {process.exitcode}") from None
    finally:
        process.kill()
        process.join()
        receiver.close()
    if isinstance(outcome.value, BaseException):
        raise outcome.value
    return outcome
