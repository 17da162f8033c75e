"""Estimates the memory of the tables that a stage holds whole, and refuses stages that exceed a worker's memory.

Exchanged rows reach a worker in bounded groups. Broadcast and gathered tables do not: a worker of the stage holds all
of them. The maximum for a stage is

    OWN_BYTES + sum over its inputs of factor * bytes of the input's Arrow tables + working memory

Factors were measured (maximum bytes of Arrow and NumPy while the stage prepared its inputs, per byte of its tables); a
factor above 2 is due to sorted, decoded or condensed copies. Each worker adds up its inputs as they arrive, so that
inputs that do not fit are refused before they are complete.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from semrank.schemas.errors import InputError

OPTION = "--worker-memory"

OWN_BYTES = 140 << 20
"""Bytes of a worker process without data: the interpreter and its libraries."""

OTHER_FACTOR = 5.5
"""Factor of stages without their own: the largest measured among them, for models of rankers."""

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


@dataclass(frozen=True)
class Held:
    """State that stages hold whole; declared with the stage.

    Attributes:
        state: its name in the documentation.
        factor: maximum bytes per byte of a table.
        lower: how to make it smaller, for messages.
        factors: factors of single inputs that differ.
        working: additional working memory of the stage, per byte of an input's tables.
        most_working: maximum of this.
    """

    state: str
    factor: float
    lower: str
    factors: Mapping[str, float] = field(default_factory=dict)
    working: Mapping[str, float] = field(default_factory=dict)
    most_working: int = 0

    def bytes_of(self, tables: Mapping[str, int]) -> int:
        """Bytes that a stage takes on a worker.

        Args:
            tables: bytes of each input's Arrow tables.
        """
        return OWN_BYTES + self.held_bytes(tables) + self._working_bytes(tables)

    def held_bytes(self, tables: Mapping[str, int]) -> int:
        """The part of `bytes_of` before the stage works."""
        return round(sum(self.factors.get(name, self.factor) * size for name, size in tables.items()))

    def _working_bytes(self, tables: Mapping[str, int]) -> int:
        return min(self.most_working, round(sum(self.working.get(name, 0) * size for name, size in tables.items())))


OTHER = Held("anything else", OTHER_FACTOR, "smaller inputs")


class Meter:
    """Adds up the tables that a stage is about to hold.

    Args:
        stage: the stage's name.
        held: what the stage holds.
        limit: bytes that a worker has, or None for all that its machine has.
    """

    def __init__(self, stage: str, held: Held, limit: int | None) -> None:
        self._stage, self._held, self._limit = stage, held, machine_bytes() if limit is None else limit
        self._tables: dict[str, int] = {}

    @property
    def needed(self) -> int:
        """Bytes that the stage takes with the tables added so far."""
        return self._held.bytes_of(self._tables)

    def fits(self, name: str, size: int) -> bool:
        """Adds bytes of a table of an input; returns whether a worker can still hold everything."""
        self._tables[name] = self._tables.get(name, 0) + size
        return self.needed <= self._limit

    def check(self) -> None:
        """Refuses tables that do not fit.

        Raises:
            InputError: it is more than a worker has.
        """
        if self.needed > self._limit:
            largest = sorted(self._tables.items(), key=lambda item: -item[1])
            tables = ", ".join(f"{name} {shown_bytes(size)}" for name, size in largest if size)
            raise InputError(
                f"{OPTION}: found {shown_bytes(self._limit)}, expected {shown_bytes(self.needed)}, which "
                f"'{self._stage}' takes on a worker ({self._held.state}; its tables: {tables or 'none'}); lower it by "
                f"{self._held.lower}, or give workers more"
            )


def check_held(stage: str, held: Held, tables: Mapping[str, int], limit: int | None) -> None:
    """Refuses tables that a stage could not hold.

    Args:
        stage: the stage's name.
        held: what the stage holds.
        tables: bytes of each input's Arrow tables.
        limit: bytes that a worker has, or None for all that this machine has.

    Raises:
        InputError: they are more than a worker has.
    """
    meter = Meter(stage, held, limit)
    for name, size in tables.items():
        meter.fits(name, size)
    meter.check()


def shown_bytes(size: float) -> str:
    """A readable number of bytes."""
    unit = 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.4g} {_UNITS[unit]}"


@cache
def machine_bytes(root: Path = Path("/")) -> int:
    """Memory available to this process: that of the machine, its container or its control group.

    Args:
        root: root of the file system.
    """
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([total, *_group_limits(root)])


def _group_limits(root: Path) -> Iterable[int]:
    """Limits of the control groups that this process is in, of both versions."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        controllers, _, path = line.partition(":")[2].partition(":")
        if controllers not in ("", "memory"):
            continue
        top, name = (
            (root / "sys/fs/cgroup", "memory.max")
            if not controllers
            else (root / "sys/fs/cgroup/memory", "memory.limit_in_bytes")
        )
        group = top / path.lstrip("/")
        for folder in (group, *(parent for parent in group.parents if parent == top or top in parent.parents)):
            try:
                text = (folder / name).read_text(encoding="ascii").strip()
            except OSError:  # a container sees its own group as the top one
                continue
            if re.fullmatch(r"\d+", text):
                yield int(text)
