"""Which records of a block are used, ignored or rejected: the first decision about a record holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from semrank.schemas.tables import CLICKS, REJECTS, conform
from semrank.transforms.columnar.arrays import Bools, Int64s, bools
from semrank.transforms.logs.visits import VISITS, LogBatch
from semrank.transforms.streams.batch import MAX_REJECT_CHARS
from semrank.transforms.streams.lines import RECORD_TRUNCATED

LAYOUT_UNKNOWN = "layout-unknown"

Quote = Callable[[int], str]
"""The text that a reject row quotes of record number i."""


class Rejections:
    """Decisions about the n records of a block.

    Attributes:
        alive: records without a decision, bool[n]; those that are left in the end are used.
    """

    def __init__(self, count: int) -> None:
        self.alive: Bools = np.ones(count, dtype=np.bool_)
        self.ignored: Counter[str] = Counter()
        self.rejected: list[tuple[str, Int64s]] = []

    def ignore(self, reason: str, mask: Bools) -> None:
        """Ignores records, for example requests of robots."""
        struck = int(np.count_nonzero(mask & self.alive))
        if struck:
            self.ignored[reason] += struck
            self.alive = self.alive & ~mask

    def reject(self, reason: str, mask: Bools) -> None:
        """Rejects records that can't be used."""
        struck = np.flatnonzero(mask & self.alive)
        if len(struck):
            self.rejected.append((reason, struck))
            self.alive = self.alive & ~mask

    def reject_each(self, reasons: pa.StringArray) -> None:
        """Rejects records, each for its own reason, string[n]; a null rejects nothing."""
        for reason in reasons.unique().drop_null().to_pylist():
            self.reject(reason, truths(pa.compute.equal(reasons, reason)))


def truths(values: pa.BooleanArray) -> Bools:
    """A boolean array as bool[n]; null is false."""
    return bools(values.fill_null(False))


class Balance:
    """Counts of a block's records by outcome, with its clicks, visits and rejects.

    Attributes:
        torn: whether the last line of a stream that has no line end is read: if it can't be, it is truncated.
    """

    def __init__(self, stage: str) -> None:
        self._stage = stage
        self.torn = False
        self._used = 0
        self._ignored: Counter[str] = Counter()
        self._rejected: Counter[str] = Counter()
        self._counters: Counter[str] = Counter()
        self._rejects: list[tuple[str, str]] = []
        self._clicks: list[pa.Table] = []
        self._visits: list[pa.Table] = []

    def ignore(self, reason: str, records: int) -> None:
        """Counts ignored records."""
        if records:
            self._ignored[reason] += records

    def count(self, counter: str, events: int = 1) -> None:
        """Adds to a counter of other events, as of values that are left out."""
        if events:
            self._counters[counter] += events

    def reject(self, reason: str, quoted: str) -> None:
        """Counts a rejected record, and quotes it."""
        self._rejected[reason] += 1
        self._rejects.append((reason, quoted[:MAX_REJECT_CHARS]))

    def reject_line(self, quoted: str, reason: str = LAYOUT_UNKNOWN) -> None:
        """Counts a record that fits no layout of the format, and quotes it."""
        self.reject(RECORD_TRUNCATED if self.torn else reason, quoted)

    def settle(self, rejections: Rejections, quote: Quote) -> None:
        """Adds the decisions about some records; those without one are used."""
        self._used += int(np.count_nonzero(rejections.alive))
        self._ignored.update(rejections.ignored)
        for reason, struck in rejections.rejected:
            for record in struck.tolist():
                self.reject(reason, quote(record))

    def use(self, records: int) -> None:
        """Counts records as used."""
        self._used += records

    def add_clicks(self, clicks: pa.Table) -> None:
        """Adds rows of `CLICKS`."""
        if clicks.num_rows:
            self._clicks.append(conform(clicks, CLICKS))

    def add_visits(self, visits: pa.Table) -> None:
        """Adds rows of `VISITS`."""
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
            counters=dict(self._counters),
            visits=pa.concat_tables(self._visits) if self._visits else VISITS.empty(),
        )
