"""Watches what processes, with all that they start, hold in memory."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

SAMPLE_SECONDS = 0.05

Families = Callable[[], Mapping[str, list[int]]]
"""Gives the processes to look at, by kind; each with all its descendants."""


class Watch(threading.Thread):
    """Looks at the memory of processes until it is ended.

    Attributes:
        stage: name of what they do now; whoever knows sets it.
        peaks: the largest memory seen, bytes by kind of process.
        stage_peaks: the largest memory of all kinds together, bytes by stage.
    """

    def __init__(self, families: Families) -> None:
        super().__init__(daemon=True)
        self._families, self._ended = families, threading.Event()
        self.stage = ""
        self.peaks: dict[str, int] = {}
        self.stage_peaks: dict[str, int] = {}

    def run(self) -> None:
        """Looks at them again and again."""
        while not self._ended.wait(SAMPLE_SECONDS):
            stage, born = self.stage, children()
            held = {kind: sum(map(resident_bytes, family(roots, born))) for kind, roots in self._families().items()}
            for kind, size in held.items():
                self.peaks[kind] = max(self.peaks.get(kind, 0), size)
            self.stage_peaks[stage] = max(self.stage_peaks.get(stage, 0), sum(held.values()))

    def end(self) -> None:
        """Ends it."""
        self._ended.set()
        self.join()


def children() -> dict[int, list[int]]:
    """Children of every process."""
    found: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The second field, the program's name, may hold anything.
            parent = int(path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
        found.setdefault(parent, []).append(int(path.parent.name))
    return found


def family(roots: Sequence[int], children: Mapping[int, list[int]]) -> Iterator[int]:
    """Processes with all their descendants."""
    waiting = list(roots)
    while waiting:
        process = waiting.pop()
        yield process
        waiting += children.get(process, [])


def resident_bytes(process: int) -> int:
    """A process's memory; what several share counts for each in its part, as forked workers share what is broadcast."""
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii")
    except OSError:  # it has ended
        return 0
    found = re.search(r"^Pss: +([0-9]+) kB$", text, re.MULTILINE)
    return int(found[1]) << 10 if found else 0
