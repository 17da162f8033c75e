"""Beam steps of SemRank's profile `topic`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa

from semrank.transforms.columnar.arrays import MAIN
from semrank.transforms.columnar.beam import Collection, GatherTables, MapTables, MergePartitions
from semrank.transforms.context.descriptions import Descriptions
from semrank.transforms.context.memory import DESCRIBED
from semrank.transforms.ranking import exact_sums, topic_lattice
from semrank.transforms.ranking.text_beam import Widths
from semrank.transforms.ranking.topic_words import Vocabulary

CONCEPTS = "concepts"
_SIZES = "sizes"


class RankByTopicLattice(beam.PTransform[Any, Any]):
    """SemRank by the topic's lattice (see `topic_lattice`).

    The input is a dict with `descriptions`, `vocabulary` and `harvested`; the result one with `main`, tables of
    `topic_lattice.TOPIC_SCHEMA`, and `concepts`, one table of `topic_lattice.EXTENT_SCHEMA`.

    Args:
        query: words of the query.
        partitions: number of partitions of words.
    """

    def __init__(self, *, query: list[str], partitions: int) -> None:
        super().__init__("rank by topic's lattice")
        self._query, self._partitions = query, partitions

    def expand(self, inputs: dict[str, Collection]) -> dict[str, Collection]:
        """Applies the steps."""
        widths = {"vocabulary": inputs["vocabulary"], "harvested": inputs["harvested"]}
        begun = inputs["descriptions"] | MapTables(
            "list seeds", _seeds, sides=widths, prepare=Widths.of, tags=(MAIN, _SIZES), holds=DESCRIBED
        )
        seeds = {"objects": begun[MAIN]} | GatherTables("choose seeds", topic_lattice.first_seeds, holds=DESCRIBED)
        known = {**widths, "sizes": begun[_SIZES], "seeds": seeds}
        lattice = partial(_prepared, query=self._query)
        compared = inputs["descriptions"] | MapTables(
            "compare harvested pages", _near, sides=known, prepare=lattice, holds=DESCRIBED
        )
        near = {"objects": compared, "sizes": begun[_SIZES]} | GatherTables(
            "choose base pages", _nearest, holds=DESCRIBED
        )
        sums = inputs["descriptions"] | MapTables(
            "count told words", _told, sides=known, prepare=lattice, holds=DESCRIBED
        )
        known["near"] = near
        told = {"rows": sums} | MergePartitions(
            "add told words",
            exact_sums.added_sums,
            partitions=self._partitions,
            key="slot",
            combine={"rows": exact_sums.added_sums},
        )
        rows = inputs["descriptions"] | MapTables(
            "score by topic's lattice", _score, sides={**known, "told": told}, prepare=lattice, holds=DESCRIBED
        )
        concepts = known | GatherTables("list base concepts", partial(_concepts, query=self._query), holds=DESCRIBED)
        return {MAIN: rows, CONCEPTS: concepts}


class _Prepared(NamedTuple):
    lattice: topic_lattice.TopicLattice
    widths: Widths


def _prepared(
    vocabulary: pa.Table | None,
    harvested: pa.Table | None,
    sizes: pa.Table | None,
    seeds: pa.Table | None,
    near: pa.Table | None = None,
    told: pa.Table | None = None,
    *,
    query: list[str],
) -> _Prepared:
    known = topic_lattice.Collection.of_parts(Vocabulary.of_table(vocabulary), query, sizes)
    objects = topic_lattice.OBJECT_SCHEMA.empty_table() if seeds is None else seeds
    return _Prepared(topic_lattice.TopicLattice(known, objects, near, told), Widths.of(vocabulary, harvested))


def _seeds(table: pa.Table, prepared: Widths) -> Iterator[tuple[str, pa.Table]]:
    known = prepared.read(table)
    yield MAIN, topic_lattice.seed_objects(known)
    yield _SIZES, topic_lattice.part_size(known)


def _read(table: pa.Table, prepared: _Prepared) -> Descriptions:
    return prepared.widths.read(table)


def _told(table: pa.Table, prepared: _Prepared) -> pa.Table:
    return topic_lattice.told_sums(_read(table, prepared), prepared.lattice.known)


def _near(table: pa.Table, prepared: _Prepared) -> pa.Table:
    return topic_lattice.near_objects(_read(table, prepared), prepared.lattice)


def _nearest(objects: pa.Table | None, sizes: pa.Table | None) -> pa.Table:
    nothing = Vocabulary.of_table(None)
    return topic_lattice.nearest_pages(objects, topic_lattice.Collection.of_parts(nothing, (), sizes).nearest)


def _score(table: pa.Table, prepared: _Prepared) -> pa.Table:
    return topic_lattice.scores(_read(table, prepared), prepared.lattice)


def _concepts(*, query: list[str], **tables: pa.Table | None) -> pa.Table:
    return _prepared(**tables, query=query).lattice.concept_extents()
