"""Runs a command in a process of its own that tells how far it has come, and kills it there, or at any moment.

What it tells are its steps: each stage of the pipeline as it takes a table, and each file half written, written under
its draft's name, renamed and deleted. They are written to a file of their own before they happen, so the last one says
where a killed process was.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from semrank.pipelines.cli import main
from semrank.pipelines.local import options as local_options
from semrank.transforms.columnar import beam as columnar_beam
from semrank.transforms.columnar import files

PATIENCE_SECONDS = 300.0


@dataclass(frozen=True)
class Step:
    """The n-th time that a run comes to a step, from 1."""

    name: str
    occurrence: int = 1


@dataclass(frozen=True)
class Run:
    """What came of a run.

    Attributes:
        status: exit status of the command; None where it was killed.
        steps: its steps in order.
        error: what it wrote on standard error; nothing where it was killed.
        seconds: from its first step to its end; 0 where it was killed.
    """

    status: int | None
    steps: list[str]
    error: str
    seconds: float


@dataclass(frozen=True)
class Kept:
    """Where to keep, for each step, what a kill would leave then.

    Attributes:
        folder: what the run writes.
        copies: folder of the copies, one a step, named by its number from 1.
    """

    folder: Path
    copies: Path


class _Trace:
    """Tells steps, and kills the process at one of them."""

    def __init__(self, path: Path, kill: Step | None, kept: Kept | None) -> None:
        self._told = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_APPEND)
        self._kill, self._kept = kill, kept
        self._seen, self._lock = Counter[str](), threading.Lock()
        self.begun: float | None = None

    def __call__(self, name: str) -> None:
        with self._lock:
            self.begun = self.begun or time.monotonic()
            os.write(self._told, f"{name}\n".encode())
            self._seen[name] += 1
            if self._kept is not None and self._kept.folder.exists():
                shutil.copytree(self._kept.folder, self._kept.copies / str(self._seen.total()))
            if self._kill == Step(name, self._seen[name]):
                os.kill(os.getpid(), signal.SIGKILL)


def _shown(path: object) -> str:
    """A file by its table and folder, without what differs between runs."""
    name = Path(str(path))
    return name.name if name.suffix == ".json" else name.parent.name


def _traced(trace: _Trace) -> list[Any]:
    """Patches that tell steps."""
    count_in, write_bytes, replace, delete = (
        columnar_beam._StageDoFn._count_in,
        Path.write_bytes,
        Path.replace,
        files.delete,
    )

    def stage(self: columnar_beam._StageDoFn, rows: int) -> None:
        trace(f"stage {self._stage}")
        count_in(self, rows)

    def half_and_whole(self: Path, data: Any) -> int:
        with self.open("wb") as stream:
            stream.write(memoryview(data)[: len(memoryview(data)) // 2])
        trace(f"half of {_drafted(self)}")
        return write_bytes(self, data)

    def renamed(self: Path, target: Any) -> Path:
        trace(f"draft of {_shown(target)}")
        found = replace(self, target)
        trace(f"written {_shown(target)}")
        return found

    def deleted(path: str) -> None:
        trace("delete")
        delete(path)

    return [
        # Steps are counted and killed in one process; tests of the local runner kill commands with workers.
        mock.patch.object(local_options, "CAN_FORK", False),
        mock.patch.object(columnar_beam._StageDoFn, "_count_in", stage),
        mock.patch.object(Path, "write_bytes", half_and_whole),
        mock.patch.object(Path, "replace", renamed),
        mock.patch.object(files, "delete", deleted),
    ]


def _drafted(draft: Path) -> str:
    """What a draft's file will be."""
    return _shown(draft.with_name(draft.name.removeprefix(".").rpartition(".")[0]))


def _run(arguments: Sequence[str], told: Path, kill: Step | None, kept: Kept | None, sender: Any) -> None:
    sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
    trace = _Trace(told, kill, kept)
    for patch in _traced(trace):
        patch.start()
    status = main(list(arguments))
    now = time.monotonic()
    sender.send((status, sys.stderr.getvalue(), now - (trace.begun or now)))
    sender.close()
    os._exit(0)  # threads of the runner may still be inside Arrow


def run(
    arguments: Sequence[str],
    told: Path,
    *,
    kill: Step | None = None,
    kept: Kept | None = None,
    seconds: float | None = None,
) -> Run:
    """Runs a command; it is killed at a step, or some time after its first one, if it comes so far.

    Args:
        arguments: of the command.
        told: file for the steps.
        kill: where the process kills itself.
        kept: where to keep what a kill at each step would leave.
        seconds: when it is killed from outside.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["semrank.pipelines.ingest", "semrank.pipelines.rounds", __name__])
    receiver, sender = context.Pipe(duplex=False)
    told.unlink(missing_ok=True)
    process = context.Process(target=_run, args=(arguments, told, kill, kept, sender))
    process.start()
    sender.close()
    status, error, taken = None, "", 0.0
    try:
        if seconds is not None:
            while not (told.exists() and told.stat().st_size) and not receiver.poll(0.01):
                pass
        if receiver.poll(PATIENCE_SECONDS if seconds is None else seconds):
            status, error, taken = receiver.recv()
        elif seconds is None:
            raise AssertionError(f"no answer after {PATIENCE_SECONDS:g} s")
    except EOFError:
        pass  # it was killed
    finally:
        process.kill()
        process.join()
        receiver.close()
    if status is None and process.exitcode != -signal.SIGKILL:
        raise AssertionError(f"the process ended with status {process.exitcode}")
    return Run(status, told.read_text(encoding="utf-8").splitlines() if told.exists() else [], error, taken)
