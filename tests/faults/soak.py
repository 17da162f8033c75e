"""Rounds back to back in one process: memory, file handles, threads and temporary files stay what they are.

    python -m tests.faults.soak [--minutes N | --quick]

A schedule that calls `semrank` each night has a fresh process each time; this is for programs that call rounds from
one that stays, and shows what a round leaves behind.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from semrank.pipelines.cli import main as semrank

MINUTES = 10.0
QUICK_MINUTES = 1 / 3
WARM_ROUNDS = 3
"""Rounds before the first look: imports, compiled functions, memory pools and caches of words come with them."""

FEWEST_ROUNDS = 4
"""Rounds between the two looks, however slow the machine is."""

MAX_GROWTH = 0.10
"""Part by which memory may grow from the first look to the last: pools keep what they freed."""

PROFILES = ("focused", "paper-2013")


@dataclass(frozen=True)
class State:
    """What a process holds.

    Attributes:
        rounds: rounds that it has run.
        memory_bytes: resident memory.
        handles: open file handles.
        threads: threads of Python.
        temporary: files and folders in the temporary folder.
    """

    rounds: int
    memory_bytes: int
    handles: int
    threads: int
    temporary: int

    def __str__(self) -> str:
        """In one line."""
        return (
            f"after {self.rounds:>5,} rounds: {self.memory_bytes / 1e6:8.1f} MB, {self.handles} file handles, "
            f"{self.threads} threads, {self.temporary} temporary files"
        )


def state(rounds: int) -> State:
    """What this process holds now, garbage collected."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    handles = len(list(Path("/proc/self/fd").iterdir())) - 1  # the listing has one itself
    temporary = sum(1 for _ in Path(tempfile.gettempdir()).rglob("*"))
    return State(rounds, pages * os.sysconf("SC_PAGE_SIZE"), handles, threading.active_count(), temporary)


def _command(arguments: Sequence[str]) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        status = semrank(list(arguments))
    if status:
        raise RuntimeError(f"semrank {' '.join(arguments)} ended with status {status}, expected 0")


def soak(minutes: float) -> tuple[State, State]:
    """Runs rounds on the sample for some time; gives the states after the warm rounds and at the end.

    Raises:
        RuntimeError: a round failed.
    """
    place = Path(tempfile.mkdtemp(prefix="semrank-soak-"))
    before, tempfile.tempdir = tempfile.tempdir, str(place / "temporary")
    (place / "temporary").mkdir()
    try:
        web, snapshot = place / "web", place / "snapshot"
        inputs = ["--warc", f"{web}/warc/*", "--clicks", f"{web}/clicks/*", "--output", str(snapshot), "--quiet"]
        _command(["sample", "--output", str(web)])
        _command(["ingest", *inputs])
        named = ["--snapshot", str(snapshot), "--seeds", str(web / "seeds.txt"), "--quiet", "--overwrite"]
        rounds, begin = 0, time.monotonic()
        first = None
        while rounds < WARM_ROUNDS + FEWEST_ROUNDS or time.monotonic() - begin < 60 * minutes:
            profile = PROFILES[rounds % len(PROFILES)]
            _command(["rank", *named, "--output", str(place / profile), "--profile", profile])
            rounds += 1
            if rounds == WARM_ROUNDS:
                first = state(rounds)
        if first is None:
            raise RuntimeError(f"{rounds} rounds ran, expected more than {WARM_ROUNDS}")
        return first, state(rounds)
    finally:
        tempfile.tempdir = before
        shutil.rmtree(place)


def is_flat(first: State, last: State) -> bool:
    """Whether nothing was left behind."""
    held = (first.handles, first.threads, first.temporary) == (last.handles, last.threads, last.temporary)
    return held and last.memory_bytes <= first.memory_bytes * (1 + MAX_GROWTH)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: prints both states; 1 where they are not flat."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak", description="Runs rounds back to back.")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=float, default=MINUTES, metavar="N", help=f"how long (default {MINUTES:g})")
    length.add_argument("--quick", action="store_true", help="twenty seconds")
    parsed = parser.parse_args(arguments)
    first, last = soak(QUICK_MINUTES if parsed.quick else parsed.minutes)
    print(first, last, "flat" if is_flat(first, last) else "NOT FLAT", sep="\n")
    return int(not is_flat(first, last))


if __name__ == "__main__":
    raise SystemExit(main())
