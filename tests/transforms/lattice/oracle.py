"""Concepts by definition, independent of the package's search, and contexts to try it on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from semrank.transforms.columnar.arrays import Int64s
from semrank.transforms.lattice.attributes import AttributeOrder, AttributeStatistics, attribute_statistics
from semrank.transforms.lattice.context import Concepts, FormalContext
from tests.support.strategies import choices

Pair = tuple[tuple[int, ...], tuple[int, ...]]


def concepts_by_definition(rows: Sequence[Iterable[int]], attribute_count: int, min_support: int) -> set[Pair]:
    """All (extent, intent) with a non-empty intent, from the closure of every set of attributes."""
    sets = [set(row) for row in rows]
    found = set()
    for size in range(attribute_count + 1):
        for attributes in combinations(range(attribute_count), size):
            extent = tuple(number for number, row in enumerate(sets) if row.issuperset(attributes))
            if len(extent) >= min_support:
                intent = set.intersection(*(sets[number] for number in extent))
                if intent:
                    found.add((extent, tuple(sorted(intent))))
    return found


def concepts_by_intersection(context: FormalContext, min_support: int) -> set[Pair]:
    """The same for larger contexts: extents are the intersections of columns, here as bits of whole numbers."""
    columns = [0] * context.attribute_count
    for number in range(context.object_count):
        for attribute in context.row(number).tolist():
            columns[attribute] |= 1 << number
    extents: set[int] = set()
    for column in columns:
        extents |= {column} | {extent & column for extent in extents}
        extents = {extent for extent in extents if extent.bit_count() >= min_support}
    found = set()
    for extent in extents:
        octets = np.frombuffer(extent.to_bytes(context.object_count // 8 + 1, "little"), dtype=np.uint8)
        objects = tuple(np.flatnonzero(np.unpackbits(octets, bitorder="little")).tolist())
        found.add((objects, tuple(a for a, column in enumerate(columns) if extent & ~column == 0)))
    return found


def listed(batches: Iterable[Concepts], object_ids: Int64s | None = None) -> list[Pair]:
    """The concepts of batches as pairs, in the order found."""
    pairs = []
    for batch in batches:
        for number in range(len(batch)):
            extent = batch.extent(number) if object_ids is None else object_ids[batch.extent(number)]
            pairs.append((tuple(extent.tolist()), tuple(batch.intent(number).tolist())))
    return pairs


def check(found: list[Pair], expected: set[Pair]) -> None:
    """Every expected concept is found once, and nothing else."""
    assert len(found) == len(set(found))
    assert set(found) == expected


@st.composite
def contexts(draw: st.DrawFn, largest: int = 9) -> FormalContext:
    """Small contexts: dense and sparse, with repeated and empty rows, full, empty and repeated columns."""
    attributes = draw(st.integers(1, largest))
    density = draw(st.sampled_from([0.1, 0.3, 0.5, 0.8]))
    rows = draw(st.integers(0, largest))
    # Bytes are drawn many times as fast as a list of lists.
    cells = draw(st.binary(min_size=rows * attributes, max_size=rows * attributes))
    table = (np.frombuffer(cells, dtype=np.uint8) < 256 * density).reshape(rows, attributes)
    if draw(st.booleans()) and rows:
        table = table[draw(choices(range(rows), 0, 2 * largest))]
    if draw(st.booleans()):
        table[:, draw(st.integers(0, attributes - 1))] = True
    if draw(st.booleans()):
        table[:, draw(st.integers(0, attributes - 1))] = table[:, draw(st.integers(0, attributes - 1))]
    return FormalContext.from_rows([np.flatnonzero(row).tolist() for row in table], attributes)


def topical_context(
    seed: int,
    objects: int,
    topics: int,
    per_topic: int,
    common: int,
    length: int,
    copies: float = 0.0,
    frequent: int = 0,
) -> FormalContext:
    """A larger context in which attributes imply one another, as words of pages do.

    Args:
        seed: of the random numbers.
        objects: number of objects; each has a topic and some of the topic's attributes.
        topics: number of topics.
        per_topic: number of attributes of a topic.
        common: number of attributes that any object may have, the first ones more often.
        length: attributes of an object, about.
        copies: share of objects that have another object's attributes.
        frequent: number of attributes that each object has with probability 0.3.
    """
    random = np.random.default_rng(seed)
    rows: list[set[int]] = []
    for _ in range(objects):
        if rows and random.random() < copies:
            rows.append(rows[random.integers(len(rows))])
            continue
        topic = random.integers(topics)
        own = random.choice(per_topic, min(per_topic, int(random.integers(0, length + 1))), replace=False)
        popular = (common * random.random(random.integers(0, length + 1)) ** 3).astype(int)
        everywhere = common + topics * per_topic + np.flatnonzero(random.random(frequent) < 0.3)
        rows.append({*(common + topic * per_topic + own).tolist(), *popular.tolist(), *everywhere.tolist()})
    return FormalContext.from_rows(rows, common + topics * per_topic + frequent)


def added_statistics(parts: Sequence[FormalContext], order: AttributeOrder | None) -> AttributeStatistics:
    """The statistics of the parts of a context, added up."""
    found = [attribute_statistics(part, order) for part in parts]
    return AttributeStatistics(
        sum(part.object_count for part in found),
        np.sum([part.supports for part in found], axis=0, dtype=np.int64),
        np.sum([part.row_lengths for part in found], axis=0, dtype=np.int64),
    )
