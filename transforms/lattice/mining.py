"""Contexts of gathered URLs, planned and mined bundle by bundle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from semrank.transforms.columnar.arrays import (
    Int32s,
    Int64s,
    column_array,
    int64s,
    list_column,
    list_parts,
    optional_int64s,
    sum_rows,
)
from semrank.transforms.columnar.ids import set_id
from semrank.transforms.lattice.attributes import AttributeOrder, AttributeStatistics
from semrank.transforms.lattice.bundles import Bundle, plan_bundles
from semrank.transforms.lattice.closed_sets import closed_sets
from semrank.transforms.lattice.conditional import conditional_rows
from semrank.transforms.lattice.context import Concepts, FormalContext, enumeration_yields_top, top_concept
from semrank.transforms.lattice.search_space import RankedContext

BROADCAST_BYTES = 64 << 20
"""Size of a context up to which every worker gets the whole; of a larger one a worker gets what its bundles need."""

HELD_OBJECTS = 1 << 17
"""URLs up to which a base context is broadcast: some 400 bytes each. Their number is known before the round."""

BUNDLE_SCHEMA = pa.schema(
    [
        pa.field("bundle", pa.int64()),
        pa.field("prefix", pa.list_(pa.int64())),
        pa.field("start", pa.int64()),
        pa.field("stop", pa.int64()),
    ]
)
"""A numbered bundle of work; one without a prefix list (null) stands for the top concept."""

SIZE_SCHEMA = pa.schema([pa.field("bytes", pa.int64()), pa.field("objects", pa.int64())])
COUNT_SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("word", "support", "row_length")])
"""Counts of a word's objects and of the words that they hold; the word `OBJECTS` counts all objects."""

OBJECTS = -1

LATTICE_SCHEMA = pa.schema(
    [
        pa.field("concept", pa.int64()),
        pa.field("extent", pa.list_(pa.int32())),
        pa.field("intent", pa.list_(pa.int32())),
    ]
)
"""A concept with its id, objects and words by number."""


@dataclass(frozen=True)
class MiningContext:
    """A formal context made ready for mining on a worker.

    Attributes:
        objects: rows that the context was made of, in the order of its objects.
        context: the context.
        order: its attributes from rare to frequent.
        word_ids: word id of each attribute, int64[v].
    """

    objects: pa.Table
    context: FormalContext
    order: AttributeOrder
    word_ids: Int64s

    @classmethod
    def of(
        cls,
        objects: pa.Table | None,
        vocabulary: pa.Table | None,
        *,
        min_support: int,
        order: AttributeOrder | None = None,
    ) -> MiningContext | None:
        """The context of gathered objects (`words` being word numbers); None where there are no objects.

        Args:
            objects: rows of the objects.
            vocabulary: the keywords in word order.
            min_support: smallest number of objects of a concept.
            order: order of the whole context, where the objects are a part of it.
        """
        if objects is None or (vocabulary is None and not objects.num_rows):
            return None
        objects = objects.sort_by("url_id").combine_chunks()
        word_ids = optional_int64s(vocabulary, "word_id")
        indptr, words = list_parts(objects["words"])
        context = FormalContext(indptr, int64s(words).astype(np.int32), len(word_ids))
        return cls(objects, context, order or AttributeOrder.of(context.supports(), min_support), word_ids)

    def ranked(self) -> RankedContext:
        """The context as the kernels search it."""
        return RankedContext.of(self.context, self.order)

    def concept_ids(self, concepts: Concepts) -> Int64s:
        """Ids of concepts, from the ids of their words, int64[n]; they do not depend on numbers or partitions."""
        return set_id(self.word_ids[concepts.intent_indices], concepts.intent_indptr)


def bundle_rows(context: MiningContext | None) -> Iterator[pa.Table]:
    """The bundles of a context's lattice, one a table, so that a runner spreads them.

    The concept of all objects is always among them, also where there are fewer than the minimum support: a URL none of
    whose words reaches it belongs to that concept only.
    """
    if context is None or not context.objects.num_rows:
        return
    count = context.context.object_count
    if count < context.order.min_support or not enumeration_yields_top(context.context.supports(), count):
        yield pa.table([[0], [None], [0], [0]], schema=BUNDLE_SCHEMA)
    yield from _numbered(plan_bundles(context.context, context.order))


def _numbered(bundles: Iterable[Bundle]) -> Iterator[pa.Table]:
    for number, bundle in enumerate(bundles):
        yield pa.table([[number], [list(bundle.prefix)], [bundle.start], [bundle.stop]], schema=BUNDLE_SCHEMA)


def context_size(objects: pa.Table) -> pa.Table:
    """Bytes and objects of a part of a context, a table of `SIZE_SCHEMA`."""
    return pa.table([[objects.nbytes], [objects.num_rows]], schema=SIZE_SCHEMA)


def is_held(sizes: pa.Table | None, *, min_support: int) -> bool:
    """Whether a context is broadcast.

    It is unless it is large; one with fewer objects than the minimum support has the top concept alone to score.

    Args:
        sizes: sizes of all its parts.
        min_support: smallest number of objects of a concept.
    """
    size, count = (0, 0) if sizes is None else (int(int64s(sizes[name]).sum()) for name in SIZE_SCHEMA.names)
    return size <= BROADCAST_BYTES or count < min_support


def attribute_counts(objects: pa.Table) -> pa.Table:
    """Counts of a part of a context, a table of `COUNT_SCHEMA`."""
    indptr, words = list_parts(objects["words"])
    lengths = np.repeat(np.diff(indptr), np.diff(indptr))
    distinct, supports, row_lengths = sum_rows([int64s(words)], np.ones(len(lengths), dtype=np.int64), lengths)
    everything = np.array([objects.num_rows], dtype=np.int64)
    return pa.table(
        [
            np.append(distinct, OBJECTS),
            np.concatenate([supports, everything]),
            np.concatenate([row_lengths, everything]),
        ],
        schema=COUNT_SCHEMA,
    )


def added_counts(counts: pa.Table | None) -> pa.Table:
    """Counts of all parts of a context added up, a table of `COUNT_SCHEMA` sorted by word."""
    if counts is None:
        return COUNT_SCHEMA.empty_table()
    summed = counts.group_by("word").aggregate([("support", "sum"), ("row_length", "sum")])
    return summed.rename_columns(COUNT_SCHEMA.names).sort_by("word").combine_chunks().cast(COUNT_SCHEMA)


@dataclass(frozen=True, eq=False)
class SpreadContext:
    """What workers know of a context that none of them holds.

    Attributes:
        statistics: counts of its attributes.
        order: the order of its attributes.
        bundles: the bundles of its lattice; a bundle's number is its place.
        has_top: whether the bundles hold the top concept.
        top_intent: words of all objects, ascending, int32.
    """

    statistics: AttributeStatistics
    order: AttributeOrder
    bundles: tuple[Bundle, ...]
    has_top: bool
    top_intent: Int32s

    @classmethod
    def of(cls, counts: pa.Table | None, word_count: int, *, min_support: int) -> SpreadContext | None:
        """From `added_counts`; None where there are no objects. The plan follows from the counts alone."""
        if counts is None or not counts.num_rows:
            return None
        word, support, row_length = (int64s(counts[name]) for name in COUNT_SCHEMA.names)
        known = word >= 0
        supports, row_lengths = (np.zeros(word_count, dtype=np.int64) for _ in range(2))
        supports[word[known]], row_lengths[word[known]] = support[known], row_length[known]
        object_count = int(support[word == OBJECTS].sum())
        order = AttributeOrder.of(supports, min_support)
        statistics = AttributeStatistics(object_count, supports, row_lengths)
        has_top = object_count >= min_support and enumeration_yields_top(supports, object_count)
        shared = np.flatnonzero(supports == object_count).astype(np.int32)
        return cls(statistics, order, tuple(plan_bundles(statistics, order)), has_top, shared)

    def rows_of_bundles(self, objects: pa.Table) -> Iterator[pa.Table]:
        """The rows of a part of the context that each bundle needs, with the bundle's number in a column `bundle`.

        The rows' words are reduced to those that reach the minimum support.
        """
        indptr, words = list_parts(objects["words"])
        part = FormalContext(indptr, int64s(words).astype(np.int32), len(self.order.ranks))
        places = np.arange(objects.num_rows, dtype=np.int64)
        column = objects.schema.get_field_index("words")
        for number, rows in conditional_rows(part, places, self.order, self.bundles):
            kept = list_column(pa.array(rows.context.indices.astype(np.int64)), rows.context.indptr)
            cut = objects.take(pa.array(rows.object_ids)).set_column(column, "words", kept)
            yield cut.append_column("bundle", pa.array(np.full(cut.num_rows, number, dtype=np.int64)))

    def row(self, number: int) -> pa.Table:
        """The row of a bundle, a table of `BUNDLE_SCHEMA`."""
        bundle = self.bundles[number]
        return pa.table([[number], [list(bundle.prefix)], [bundle.start], [bundle.stop]], schema=BUNDLE_SCHEMA)


def spread_context(counts: pa.Table | None, vocabulary: pa.Table | None, *, min_support: int) -> SpreadContext | None:
    """What workers know of a context that none of them holds.

    Args:
        counts: counts of all its parts (`COUNT_SCHEMA`), or None where there are no objects.
        vocabulary: the keywords in word order.
        min_support: smallest number of objects of a concept.
    """
    added = None if counts is None else added_counts(counts)
    return SpreadContext.of(added, 0 if vocabulary is None else vocabulary.num_rows, min_support=min_support)


def exchanged_bundle(
    partition: int, rows: pa.Table, spread: SpreadContext | None, vocabulary: pa.Table | None, *, min_support: int
) -> tuple[pa.Table, MiningContext | None]:
    """A bundle row of a context that no worker holds, and the bundle's conditional database, None if it is empty.

    Args:
        partition: number of the bundle.
        rows: the rows that it needs.
        spread: what is known of the whole context.
        vocabulary: the keywords in word order.
        min_support: smallest number of objects of a concept.

    Raises:
        ValueError: nothing is known of the context, although there are rows of it.
    """
    if spread is None:
        raise ValueError(f"bundle {partition} has {rows.num_rows} rows, but nothing was counted")
    return spread.row(partition), MiningContext.of(rows, vocabulary, min_support=min_support, order=spread.order)


def mine_bundle(row: pa.Table, context: MiningContext, ranked: RankedContext) -> Iterator[Concepts]:
    """The concepts of one bundle row, in batches."""
    prefix = row["prefix"][0].as_py()
    if prefix is None:
        yield top_concept(context.context)
        return
    bundle = Bundle(tuple(prefix), row["start"][0].as_py(), row["stop"][0].as_py())
    yield from closed_sets(ranked, bundle=bundle)


def lattice_table(concepts: Concepts, ids: Int64s) -> pa.Table:
    """Concepts as a table of `LATTICE_SCHEMA`."""
    return pa.table(
        [
            pa.array(ids),
            list_column(pa.array(concepts.extent_indices), concepts.extent_indptr),
            list_column(pa.array(concepts.intent_indices), concepts.intent_indptr),
        ],
        schema=LATTICE_SCHEMA,
    )


def lattice_concepts(table: pa.Table) -> tuple[Concepts, Int64s]:
    """Concepts and ids of a table of `LATTICE_SCHEMA`, in the order of the ids."""
    table = table.sort_by("concept").combine_chunks()
    extent_indptr, extents = list_parts(column_array(table["extent"]))
    intent_indptr, intents = list_parts(column_array(table["intent"]))
    concepts = Concepts(
        extent_indptr, int64s(extents).astype(np.int32), intent_indptr, int64s(intents).astype(np.int32)
    )
    return concepts, int64s(table["concept"])
