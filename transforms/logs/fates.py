"""What becomes of each record of a block: the first judgement holds, and every record gets one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from semrank.schemas.tables import CLICKS, REJECTS, conform
from semrank.transforms.logs.visits import VISITS, LogBatch
from semrank.transforms.streams.batch import MAX_REJECT_CHARS

Bools = npt.NDArray[np.bool_]

LAYOUT_UNKNOWN = "layout-unknown"

Quote = Callable[[int], str]
"""The text that a reject row quotes of record number i."""


class Fates:
    """Judgements over the n records of a block.

    Attributes:
        alive: records not judged yet, bool[n]. The reader uses what is left in the end.
    """

    def __init__(self, count: int) -> None:
        self.alive: Bools = np.ones(count, dtype=np.bool_)
        self.ignored: Counter[str] = Counter()
        self.rejected: list[tuple[str, npt.NDArray[np.int64]]] = []

    def ignore(self, reason: str, mask: Bools) -> None:
        """Leave records aside on purpose."""
        struck = int(np.count_nonzero(mask & self.alive))
        if struck:
            self.ignored[reason] += struck
            self.alive = self.alive & ~mask

    def reject(self, reason: str, mask: Bools) -> None:
        """Give records up as unusable."""
        struck = np.flatnonzero(mask & self.alive)
        if len(struck):
            self.rejected.append((reason, struck))
            self.alive = self.alive & ~mask

    def reject_each(self, reasons: pa.StringArray) -> None:
        """Give records up for a reason of their own; null is no reason, string[n]."""
        for reason in reasons.unique().drop_null().to_pylist():
            self.reject(reason, truths(pa.compute.equal(reasons, reason)))


def truths(values: pa.BooleanArray) -> Bools:
    """A boolean array as bool[n]; null is false."""
    return np.asarray(values.fill_null(False).to_numpy(zero_copy_only=False), dtype=np.bool_)


class Tally:
    """The balance of a block, from several runs of records judged by themselves.

    Attributes:
        unreadable: reason of records that fit no layout of the format; "record-truncated" while the last line of a
            stream that has no line end is read.
    """

    def __init__(self, stage: str) -> None:
        self._stage = stage
        self.unreadable = LAYOUT_UNKNOWN
        self._used = 0
        self._ignored: Counter[str] = Counter()
        self._rejected: Counter[str] = Counter()
        self._rejects: list[tuple[str, str]] = []
        self._clicks: list[pa.Table] = []
        self._visits: list[pa.Table] = []

    def ignore(self, reason: str, records: int) -> None:
        """Count records left aside on purpose."""
        if records:
            self._ignored[reason] += records

    def reject(self, reason: str, quoted: str) -> None:
        """Count a record given up, and quote it."""
        self._rejected[reason] += 1
        self._rejects.append((reason, quoted[:MAX_REJECT_CHARS]))

    def reject_line(self, quoted: str) -> None:
        """Count a record that fits no layout of the format, and quote it."""
        self.reject(self.unreadable, quoted)

    def settle(self, fates: Fates, quote: Quote) -> None:
        """Take over the judgements of a run of records; those still alive are used."""
        self._used += int(np.count_nonzero(fates.alive))
        self._ignored.update(fates.ignored)
        for reason, struck in fates.rejected:
            for record in struck.tolist():
                self.reject(reason, quote(record))

    def use(self, records: int) -> None:
        """Count records as used."""
        self._used += records

    def add_clicks(self, clicks: pa.Table) -> None:
        """Add rows of `CLICKS`."""
        if clicks.num_rows:
            self._clicks.append(conform(clicks, CLICKS))

    def add_visits(self, visits: pa.Table) -> None:
        """Add rows of `VISITS`."""
        if visits.num_rows:
            self._visits.append(conform(visits, VISITS))

    @property
    def records(self) -> int:
        """Records counted so far."""
        return self._used + sum(self._rejected.values()) + sum(self._ignored.values())

    @property
    def clicks(self) -> int:
        """Clicks added so far."""
        return sum(table.num_rows for table in self._clicks)

    def batch(self) -> LogBatch:
        """The batch of all that was added."""
        tables: dict[str, pa.Table] = {}
        if self._clicks:
            tables[CLICKS.name] = pa.concat_tables(self._clicks)
        if self._rejects:
            reasons, records = zip(*self._rejects, strict=True)
            stages = [self._stage] * len(reasons)
            tables[REJECTS.name] = pa.table([stages, reasons, records], schema=REJECTS.schema)
        ignored: Mapping[str, int] = dict(self._ignored)
        rejected: Mapping[str, int] = dict(self._rejected)
        return LogBatch(
            tables=tables,
            records=self.records,
            used=self._used,
            rejected=rejected,
            ignored=ignored,
            visits=pa.concat_tables(self._visits) if self._visits else VISITS.empty(),
        )
