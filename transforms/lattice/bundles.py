"""Bundles of work: which part of a lattice a worker enumerates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from semrank.transforms.columnar.arrays import Float64s, Int64s
from semrank.transforms.lattice.attributes import (
    AttributeOrder,
    AttributeStatistics,
    attribute_statistics,
    predicted_work,
)
from semrank.transforms.lattice.context import FormalContext
from semrank.transforms.lattice.search_space import RankedContext

LARGEST_SHARE = 1 / 64
"""Share of all predicted work that one bundle may have: enough bundles for some sixteen workers to finish together;
smaller ones cost more in conditional databases than they even out."""

LEAST_WORK = 1e6
"""Predicted work (4 to 160 ms) below which a bundle is not made smaller: its fixed costs would show."""

LONGEST_PREFIX = 3
"""A rank, or a pair of ranks, that is too heavy is split by one more rank until prefixes are so long."""


@dataclass(frozen=True)
class Bundle:
    """Concepts that share the rarest attributes of their intents.

    Write an intent as its ranks in ascending order. The bundle holds the concepts whose intent begins with `prefix`
    and goes on with a rank in [start, stop); if start follows immediately on the prefix, also the concept whose
    intent is the prefix itself. So bundles with one prefix and adjoining ranges share no concept and miss none, and
    those of the prefix (a,) together hold what the bundle of the range [a, a + 1) without a prefix holds.

    Attributes:
        prefix: ranks, ascending; empty unless a heavy rank is split.
        start: first rank that may follow the prefix.
        stop: one more than the last such rank.

    Raises:
        ValueError: the ranks do not ascend.
    """

    prefix: tuple[int, ...]
    start: int
    stop: int

    def __post_init__(self) -> None:
        lowest = self.prefix[-1] + 1 if self.prefix else 0
        if list(self.prefix) != sorted(set(self.prefix)) or not lowest <= self.start <= self.stop:
            raise ValueError(
                f"bundle of prefix {self.prefix} and range [{self.start}, {self.stop}) found, "
                f"expected ascending ranks and a range from {lowest} upwards"
            )

    @property
    def owns_prefix(self) -> bool:
        """Whether the concept whose intent is the prefix belongs here, if there is one."""
        return bool(self.prefix) and self.start == self.prefix[-1] + 1


def plan_bundles(
    source: FormalContext | AttributeStatistics,
    order: AttributeOrder,
    *,
    largest_share: float = LARGEST_SHARE,
    least_work: float = LEAST_WORK,
) -> list[Bundle]:
    """Bundles that together hold every concept with a non-empty intent once, of about equal predicted work.

    Args:
        source: the whole context, or its counts. From counts alone, the work of a rank that has to be split is
            divided as if attributes were independent.
        order: order of the whole context.
        largest_share: share of all work that no bundle should exceed.
        least_work: work below which no bundle is made smaller, see `predicted_work`.

    Returns:
        Bundles in ascending order of prefix and range; the same for the same counts. A bundle exceeds the limit only
        where a single rank after a prefix of `LONGEST_PREFIX - 1` ranks does.

    Raises:
        ValueError: the source has another number of attributes than the order.
    """
    statistics = attribute_statistics(source, order) if isinstance(source, FormalContext) else source
    if len(statistics.supports) != len(order.ranks):
        raise ValueError(
            f"{len(statistics.supports)} attributes and an order of {len(order.ranks)} found, expected the same number"
        )
    counts = _Counts(
        statistics.object_count, statistics.supports[order.attributes], statistics.row_lengths[order.attributes]
    )
    limit = max(least_work, largest_share * float(counts.work(order.min_support).sum()))
    finished: list[Bundle] = []
    unsplit: list[tuple[tuple[int, ...], _Counts]] = [((), counts)] if len(order) else []
    ranked: RankedContext | None = None
    while unsplit:
        prefix, counts = unsplit.pop()
        for bundle, work in _ranges(prefix, counts.work(order.min_support), limit):
            heavy = work > limit and bundle.stop == bundle.start + 1 and len(prefix) + 1 < LONGEST_PREFIX
            if not heavy:
                finished.append(bundle)
                continue
            if bundle.owns_prefix:
                finished.append(Bundle(prefix, bundle.start, bundle.start))
            longer = (*prefix, bundle.start)
            if isinstance(source, FormalContext):
                ranked = ranked or RankedContext.of(source, order)
                unsplit.append((longer, _counted(ranked, longer)))
            else:
                unsplit.append((longer, counts.above(bundle.start)))
    return sorted(finished, key=lambda bundle: (*bundle.prefix, bundle.start))


@dataclass(frozen=True, eq=False)
class _Counts:
    """What predicts the work of the ranks, given that the objects hold a prefix."""

    object_count: int
    supports: Int64s
    row_lengths: Int64s

    def work(self, min_support: int) -> Float64s:
        return predicted_work(self.object_count, self.supports, self.row_lengths, min_support)

    def above(self, rank: int) -> _Counts:
        """The counts given one more rank, as if attributes were independent; ranks up to it are left out."""
        share = self.supports / max(1, self.object_count)
        supports = np.rint(share * self.supports[rank]).astype(np.int64)
        lengths = np.rint(supports * (self.row_lengths[rank] / max(1, self.supports[rank]))).astype(np.int64)
        supports[: rank + 1], lengths[: rank + 1] = 0, 0
        return _Counts(int(self.supports[rank]), supports, lengths)


def _counted(ranked: RankedContext, prefix: tuple[int, ...]) -> _Counts:
    """The counts of the rows that hold a prefix."""
    rows, _ = ranked.rows.condition(prefix)
    supports, row_lengths = np.diff(rows.columns[0]), rows.entries_read.copy()
    supports[: prefix[-1] + 1], row_lengths[: prefix[-1] + 1] = 0, 0
    return _Counts(rows.row_count, supports, row_lengths)


def _ranges(prefix: tuple[int, ...], work: Float64s, limit: float) -> Iterator[tuple[Bundle, float]]:
    """Cuts the ranks above a prefix into ranges of at most the limit, or of one rank: (bundle, work)."""
    before = np.concatenate([np.zeros(1), np.cumsum(work)])
    start = prefix[-1] + 1 if prefix else 0
    if start == len(work):
        yield Bundle(prefix, start, start), 0.0
    while start < len(work):
        stop = max(start + 1, int(np.searchsorted(before, before[start] + limit, side="right")) - 1)
        yield Bundle(prefix, start, stop), float(before[stop] - before[start])
        start = stop
