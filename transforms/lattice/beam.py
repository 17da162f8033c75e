"""Beam steps of concept mining."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from semrank.transforms.columnar.arrays import int64s
from semrank.transforms.columnar.beam import Collection, GatherTables, MapTables
from semrank.transforms.lattice.context import Concepts
from semrank.transforms.lattice.memory import CONTEXT
from semrank.transforms.lattice.mining import MiningContext, bundle_rows, lattice_table, mine_bundle
from semrank.transforms.lattice.search_space import RankedContext


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
