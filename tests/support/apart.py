"""Runs a function in a process of its own and measures the memory that it takes."""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

MEBIBYTE = 1 << 20

HARD_LIMIT_BYTES = 3 << 30
"""Address space that a process may take beyond what it begins with: what goes wrong ends it, not the machine."""


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


class Repeated(bytes):
    """Much the same over and over, between a head and a tail; to another process goes only what it is made of."""

    _parts: tuple[bytes, bytes, int, bytes]

    def __new__(cls, head: bytes, unit: bytes, count: int, tail: bytes = b"") -> Repeated:
        """The head, the unit so many times, and the tail."""
        made = super().__new__(cls, b"".join([head, unit * count, tail]))
        made._parts = (head, unit, count, tail)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _joined, self._parts


def _joined(head: bytes, unit: bytes, count: int, tail: bytes) -> bytes:
    return b"".join([head, unit * count, tail])


def _run(function: Callable[..., Any], arguments: tuple[Any, ...], sender: Connection) -> None:
    limit = _status("VmSize") + HARD_LIMIT_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    before, begin = begin_peak(), time.process_time()
    try:
        value: Any = function(*arguments)
    except BaseException as error:  # the parent raises it
        value = error
    sender.send(Outcome(value, peak_growth(before), time.process_time() - begin))


def apart(function: Callable[..., Any], *arguments: Any, timeout: float = 120.0) -> Outcome:
    """Calls an importable function in a fresh process.

    Raises:
        AssertionError: the process died or hung.
        Exception: what the function raised.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([function.__module__])
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(function, arguments, sender))
    process.start()
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
