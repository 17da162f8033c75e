"""Beam steps of concept mining."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from semrank.transforms.columnar.arrays import MAIN, int64s, optional_int64s
from semrank.transforms.columnar.beam import Collection, GatherTables, MapTables, MergePartitions
from semrank.transforms.columnar.ids import set_id
from semrank.transforms.lattice.context import Concepts
from semrank.transforms.lattice.memory import CONTEXT
from semrank.transforms.lattice.mining import (
    MiningContext,
    SpreadContext,
    added_counts,
    attribute_counts,
    bundle_rows,
    exchanged_bundle,
    lattice_table,
    mine_bundle,
    spread_context,
)
from semrank.transforms.lattice.search_space import RankedContext
from semrank.transforms.weblog.memory import VOCABULARY

_MEMBERS = "members"


class PlanBundles(beam.PTransform[Any, Any]):
    """Plans the mining of a context; the input is a dict with `objects` and `vocabulary`.

    Args:
        name: which context.
        min_support: smallest number of objects of a concept.
    """

    def __init__(self, name: str, min_support: int) -> None:
        super().__init__(f"plan mining of {name} lattice")
        self._name, self._min_support = name, min_support

    def expand(self, inputs: dict[str, Collection]) -> Collection:
        """Applies the steps."""
        planned = inputs | GatherTables(
            f"plan {self._name} lattice", partial(_planned, min_support=self._min_support), holds=CONTEXT
        )
        return planned | "spread bundles" >> beam.Reshuffle()  # type: ignore[no-any-return]


def _planned(objects: pa.Table | None, vocabulary: pa.Table | None, *, min_support: int) -> Iterator[pa.Table]:
    return bundle_rows(MiningContext.of(objects, vocabulary, min_support=min_support))


class MineConcepts(beam.PTransform[Any, Any]):
    """Mines a context that every worker holds; returns tables of `LATTICE_SCHEMA`.

    The input is a dict with `bundles`, `objects` and `vocabulary`; extents hold the objects' queue positions.
    """

    def __init__(self, name: str, min_support: int) -> None:
        super().__init__(f"mine {name} concepts")
        self._name, self._min_support = name, min_support

    def expand(self, inputs: dict[str, Collection]) -> Collection:
        """Applies the step."""
        sides = {name: inputs[name] for name in ("objects", "vocabulary")}
        return inputs["bundles"] | MapTables(  # type: ignore[no-any-return]
            f"mine {self._name} lattice",
            _mined,
            sides=sides,
            prepare=partial(_prepared, min_support=self._min_support),
            holds=CONTEXT,
        )


class MineSpreadConcepts(beam.PTransform[Any, Any]):
    """Mines a context that no worker holds: the rows that each bundle needs are exchanged.

    The input is a dict with `objects` and `vocabulary`; the result is that of `MineConcepts`.
    """

    def __init__(self, name: str, min_support: int) -> None:
        super().__init__(f"mine spread {name} concepts")
        self._name, self._min_support = name, min_support

    def expand(self, inputs: dict[str, Collection]) -> Collection:
        """Applies the steps."""
        objects, vocabulary = inputs["objects"], inputs["vocabulary"]
        counts = objects | MapTables(f"count {self._name} attributes", attribute_counts, combine=added_counts)
        plan = partial(spread_context, min_support=self._min_support)
        shared: dict[str, Any] = {"sides": {"counts": counts, "vocabulary": vocabulary}, "holds": VOCABULARY}
        cut = objects | MapTables(
            f"cut {self._name} conditional databases", _bundle_rows, prepare=plan, tags=(MAIN, _MEMBERS), **shared
        )
        concepts = {"rows": cut[MAIN]} | MergePartitions(
            f"mine {self._name} conditional databases",
            partial(_mined_spread, min_support=self._min_support),
            partitions=None,
            key="bundle",
            prepare=partial(_spread, min_support=self._min_support),
            **shared,
        )
        top = {"members": cut[_MEMBERS], **shared["sides"]} | GatherTables(
            f"list {self._name} top concept", partial(_top, min_support=self._min_support), holds=VOCABULARY
        )
        return (concepts, top) | f"concepts of spread {self._name} context" >> beam.Flatten()  # type: ignore[no-any-return]


def _bundle_rows(objects: pa.Table, prepared: SpreadContext | None) -> Iterator[tuple[str, pa.Table]]:
    if prepared is None:
        raise ValueError(f"{objects.num_rows} objects are exchanged, but nothing was counted")
    rows = objects.select(["url_id", "queue", "words"])
    yield from ((MAIN, cut) for cut in prepared.rows_of_bundles(rows))
    if not prepared.has_top:
        yield _MEMBERS, rows.select(["url_id", "queue"])


def _spread(
    counts: pa.Table | None, vocabulary: pa.Table | None, *, min_support: int
) -> tuple[SpreadContext | None, pa.Table | None]:
    return spread_context(counts, vocabulary, min_support=min_support), vocabulary


def _mined_spread(
    partition: int, rows: pa.Table, prepared: tuple[SpreadContext | None, pa.Table | None], *, min_support: int
) -> Iterator[pa.Table]:
    row, context = exchanged_bundle(partition, rows, *prepared, min_support=min_support)
    if context is not None:
        yield from _mined(row, (context, context.ranked()))


def _top(
    members: pa.Table | None, counts: pa.Table | None, vocabulary: pa.Table | None, *, min_support: int
) -> Iterator[pa.Table]:
    """The concept of all objects, where no bundle has it."""
    spread = spread_context(counts, vocabulary, min_support=min_support)
    if members is None or spread is None:
        return
    queue = int64s(members.sort_by("url_id")["queue"]).astype(np.int32)
    word_ids = optional_int64s(vocabulary, "word_id")
    extent, intent = (np.array([0, len(values)], dtype=np.int64) for values in (queue, spread.top_intent))
    concept = Concepts(extent, queue, intent, spread.top_intent)
    yield lattice_table(concept, set_id(word_ids[spread.top_intent], intent))


def _prepared(
    objects: pa.Table | None, vocabulary: pa.Table | None, *, min_support: int
) -> tuple[MiningContext, RankedContext]:
    context = MiningContext.of(objects, vocabulary, min_support=min_support)
    if context is None:
        raise ValueError("a bundle was planned for a context without objects")
    return context, context.ranked()


def _mined(row: pa.Table, prepared: tuple[MiningContext, RankedContext]) -> Iterator[pa.Table]:
    context, ranked = prepared
    queue = int64s(context.objects["queue"]).astype(np.int32)
    for concepts in mine_bundle(row, context, ranked):
        in_queue = Concepts(
            concepts.extent_indptr, queue[concepts.extent_indices], concepts.intent_indptr, concepts.intent_indices
        )
        yield lattice_table(in_queue, context.concept_ids(concepts))
