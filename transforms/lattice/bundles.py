"""Bundles of work: which part of a lattice a worker enumerates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transforms.columnar.arrays import Int64s
from transforms.lattice.context import Int32s


@dataclass(frozen=True, eq=False)
class AttributeOrder:
    """The attributes that reach the minimum support, from the rarest to the most frequent, ties by number.

    Attributes:
        attributes: attribute number at each rank, int32[m].
        ranks: rank of each attribute, int32[attributes of the context]; -1 where the support is too small.
        supports: number of objects of the attribute at each rank, int64[m].
        min_support: the minimum support.
    """

    attributes: Int32s
    ranks: Int32s
    supports: Int64s
    min_support: int

    @classmethod
    def of(cls, supports: Int64s, min_support: int) -> AttributeOrder:
        """The order for the supports of all attributes of the whole context, int64[attributes].

        Raises:
            ValueError: the minimum support is not positive.
        """
        if min_support < 1:
            raise ValueError(f"min_support is {min_support}, expected at least 1")
        frequent = np.flatnonzero(supports >= min_support)
        attributes = frequent[np.argsort(supports[frequent], kind="stable")].astype(np.int32)
        ranks = np.full(len(supports), -1, dtype=np.int32)
        ranks[attributes] = np.arange(len(attributes), dtype=np.int32)
        return cls(attributes, ranks, supports[attributes], min_support)

    def __len__(self) -> int:
        return len(self.attributes)


@dataclass(frozen=True)
class Bundle:
    """Concepts that share the rarest attributes of their intents.

    Write an intent as its ranks in ascending order. The bundle holds the concepts whose intent begins with `prefix`
    and goes on with a rank in [start, stop); if start follows immediately on the prefix, also the concept whose
    intent is the prefix itself. So bundles with one prefix and adjoining ranges share no concept and miss none, and
    so do those that split one first rank by second ranks.

    Attributes:
        prefix: ranks, ascending; empty unless a heavy attribute is split.
        start: first rank that may follow the prefix.
        stop: one more than the last such rank.
    """

    prefix: tuple[int, ...]
    start: int
    stop: int

    def __post_init__(self) -> None:
        floor = self.prefix[-1] + 1 if self.prefix else 0
        if list(self.prefix) != sorted(set(self.prefix)) or not floor <= self.start <= self.stop:
            raise ValueError(
                f"bundle {self.prefix} [{self.start}, {self.stop}) found, expected ascending ranks, each above the last"
            )

    @property
    def owns_prefix(self) -> bool:
        """Whether the concept whose intent is the prefix belongs here, if there is one."""
        return bool(self.prefix) and self.start == self.prefix[-1] + 1
