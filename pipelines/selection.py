"""Counts over a frontier that is read part by part: what is selected, and why the rest is held back."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.frontier.budgets import is_dated

SELECTION_COLUMNS = ("host", "score", "held_back", "fetched", "last_fetched_at")


@dataclass
class Selection:
    """The counts.

    Attributes:
        selected: number of selected URLs.
        known: those of them whose page the snapshot has.
        undated: those of the known ones without a time of fetch.
        score: sum of the scores of the selected URLs.
        hosts: their hosts.
        times: earliest and latest times of fetch of the selected URLs, of each part.
        held: reason -> URLs that are not selected.
    """

    selected: int = 0
    known: int = 0
    undated: int = 0
    score: float = 0.0
    hosts: set[str] = field(default_factory=set)
    times: list[datetime] = field(default_factory=list)
    held: Counter[str] = field(default_factory=Counter)

    def add(self, part: pa.Table) -> None:
        """Counts a table with the columns `SELECTION_COLUMNS`."""
        for entry in pc.value_counts(part["held_back"].combine_chunks().drop_null()).to_pylist():
            self.held[entry["values"]] += entry["counts"]
        chosen = part.filter(pc.is_null(part["held_back"]))
        self.selected += chosen.num_rows
        self.known += pc.sum(chosen["fetched"]).as_py() or 0
        self.undated += pc.sum(pc.and_not(chosen["fetched"], is_dated(chosen))).as_py() or 0
        self.score += math.fsum(chosen["score"].to_pylist())
        self.hosts.update(pc.unique(chosen["host"]).to_pylist())
        self.times += [time for time in pc.min_max(chosen["last_fetched_at"]).as_py().values() if time is not None]
