"""Conditional databases: the rows that a bundle needs, for contexts that are too large for one worker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from semrank.transforms.columnar.arrays import Bools, Int64s, entry_rows, pointers, row_pointers
from semrank.transforms.lattice.attributes import AttributeOrder
from semrank.transforms.lattice.bundles import Bundle
from semrank.transforms.lattice.context import FormalContext


@dataclass(frozen=True, eq=False)
class ConditionalRows:
    """Objects with their attributes, as far as a bundle needs them.

    Mined with the order of the whole context, `context` yields the bundle's concepts; their extents are positions in
    `object_ids`.

    Attributes:
        object_ids: ids of the objects, int64[n].
        context: their attributes that reach the minimum support; n objects.
    """

    object_ids: Int64s
    context: FormalContext

    @classmethod
    def concatenate(cls, parts: Iterable[ConditionalRows]) -> ConditionalRows:
        """All parts' objects together, in ascending order of their ids, so that the order of the parts is no matter.

        Raises:
            ValueError: there is no part, the parts' attributes differ in number, or an object stands in two parts.
        """
        listed = list(parts)
        attribute_counts = {part.context.attribute_count for part in listed}
        if len(attribute_counts) != 1:
            raise ValueError(f"parts of {sorted(attribute_counts)} attributes found, expected one number of attributes")
        ids = np.concatenate([part.object_ids for part in listed])
        lengths = np.concatenate([np.diff(part.context.indptr) for part in listed])
        indices = np.concatenate([part.context.indices for part in listed])
        together = FormalContext(pointers(lengths), indices, attribute_counts.pop())
        by_id = np.argsort(ids, kind="stable")
        repeated = np.flatnonzero(ids[by_id[1:]] == ids[by_id[:-1]])
        if len(repeated):
            raise ValueError(f"object {int(ids[by_id[repeated[0]]])} found twice, expected each object in one part")
        return cls(ids[by_id], together.select_rows(by_id))


def conditional_rows(
    part: FormalContext, object_ids: Int64s, order: AttributeOrder, bundles: Sequence[Bundle]
) -> Iterator[tuple[int, ConditionalRows]]:
    """The rows of some of the objects that each bundle needs.

    A bundle needs the objects that hold its prefix and an attribute of its range (the range may be missing where the
    bundle owns the prefix). The attributes below the range stay in the rows: they decide which concepts belong to
    other bundles.

    Args:
        part: some objects of the whole context, all its attributes.
        object_ids: their ids, int64[objects of the part].
        order: order of the whole context.
        bundles: the bundles, whose ranges must not overlap where their prefixes are equal.

    Yields:
        (number of a bundle, its rows), each object once, in ascending order of the bundles; nothing for a bundle
        that needs none of these objects.

    Raises:
        ValueError: the ids are not as many as the objects, or ranges of one prefix overlap.
    """
    if len(object_ids) != part.object_count:
        raise ValueError(f"{len(object_ids)} object ids and {part.object_count} objects found, expected one id each")
    owners = entry_rows(part.indptr)
    ranks = order.ranks[part.indices].astype(np.int64)
    kept = ranks >= 0
    owners, ranks = owners[kept], ranks[kept]
    reduced = FormalContext(row_pointers(owners, part.object_count), part.indices[kept], part.attribute_count)
    needs = [
        _needed(owners, ranks, part.object_count, prefix, numbers, bundles)
        for prefix, numbers in _by_prefix(bundles).items()
    ]
    pairs = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *needs]))
    numbers, objects = np.divmod(pairs, max(1, part.object_count))
    begins = np.searchsorted(numbers, np.arange(len(bundles) + 1))
    for number in np.unique(numbers).tolist():
        chosen = objects[begins[number] : begins[number + 1]]
        yield number, ConditionalRows(object_ids[chosen], reduced.select_rows(chosen))


def _by_prefix(bundles: Sequence[Bundle]) -> dict[tuple[int, ...], list[int]]:
    """Numbers of the bundles of each prefix, in ascending order of their ranges."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for number in sorted(range(len(bundles)), key=lambda number: (bundles[number].start, bundles[number].stop)):
        groups.setdefault(bundles[number].prefix, []).append(number)
    return groups


def _needed(
    owners: Int64s,
    ranks: Int64s,
    object_count: int,
    prefix: tuple[int, ...],
    numbers: list[int],
    bundles: Sequence[Bundle],
) -> Int64s:
    """What the bundles of one prefix need: bundle number * object_count + object, each once, int64."""
    starts = np.array([bundles[number].start for number in numbers], dtype=np.int64)
    stops = np.array([bundles[number].stop for number in numbers], dtype=np.int64)
    if (starts[1:] < stops[:-1]).any():
        first = int(np.argmax(starts[1:] < stops[:-1]))
        raise ValueError(
            f"{bundles[numbers[first]]} and {bundles[numbers[first + 1]]} found, expected ranges that do not overlap"
        )
    having = np.arange(object_count, dtype=np.int64)
    if prefix:
        matches = np.bincount(owners[np.isin(ranks, prefix)], minlength=object_count)
        having = np.flatnonzero(matches == len(prefix))
        chosen = _are(having, object_count)[owners]
        owners, ranks = owners[chosen], ranks[chosen]
    # Empty ranges share their start with the next one; the last that starts at or below a rank is the one to look at.
    place = np.searchsorted(starts, ranks, side="right") - 1
    inside = (place >= 0) & (ranks < stops[place])
    ids = np.array(numbers, dtype=np.int64)
    needed = [ids[place[inside]] * object_count + owners[inside]]
    needed += [number * object_count + having for number in numbers if bundles[number].owns_prefix]
    return np.unique(np.concatenate(needed))


def _are(members: Int64s, count: int) -> Bools:
    """Which of the numbers below `count` are members."""
    marks = np.zeros(count, dtype=np.bool_)
    marks[members] = True
    return marks
