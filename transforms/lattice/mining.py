"""Contexts of gathered URLs, planned and mined bundle by bundle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from transforms.columnar.arrays import Int64s, column_array, int64s, list_column, list_parts
from transforms.columnar.ids import set_id
from transforms.lattice.attributes import AttributeOrder
from transforms.lattice.bundles import Bundle, plan_bundles
from transforms.lattice.closed_sets import closed_sets
from transforms.lattice.context import Concepts, FormalContext, enumeration_yields_top, top_concept
from transforms.lattice.search_space import RankedContext

BUNDLE_SCHEMA = pa.schema(
    [pa.field("prefix", pa.list_(pa.int64())), pa.field("start", pa.int64()), pa.field("stop", pa.int64())]
)
"""A bundle of work; one without a prefix list (null) stands for the top concept."""

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
    def of(cls, objects: pa.Table | None, vocabulary: pa.Table | None, *, min_support: int) -> MiningContext | None:
        """The context of gathered objects (`words` being word numbers); None where there are no objects."""
        if objects is None or (vocabulary is None and not objects.num_rows):
            return None
        objects = objects.sort_by("url_id").combine_chunks()
        word_ids = np.zeros(0, dtype=np.int64) if vocabulary is None else int64s(vocabulary["word_id"])
        indptr, words = list_parts(objects["words"])
        context = FormalContext(indptr, int64s(words).astype(np.int32), len(word_ids))
        return cls(objects, context, AttributeOrder.of(context.supports(), min_support), word_ids)

    def ranked(self) -> RankedContext:
        """The context as the kernels search it."""
        return RankedContext.of(self.context, self.order)

    def concept_ids(self, concepts: Concepts) -> Int64s:
        """Ids of concepts, from the ids of their words, int64[n]; they do not depend on numbers or partitions."""
        return set_id(self.word_ids[concepts.intent_indices], concepts.intent_indptr)


def bundle_rows(context: MiningContext | None) -> Iterator[pa.Table]:
    """The bundles of a context's lattice, one a table, so that a runner spreads them."""
    if context is None or not context.objects.num_rows:
        return
    if not enumeration_yields_top(context.context.supports(), context.context.object_count):
        yield pa.table([[None], [0], [0]], schema=BUNDLE_SCHEMA)
    for bundle in plan_bundles(context.context, context.order):
        yield pa.table([[list(bundle.prefix)], [bundle.start], [bundle.stop]], schema=BUNDLE_SCHEMA)


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
