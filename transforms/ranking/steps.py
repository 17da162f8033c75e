"""Beam steps of the rankers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa

from schemas.tables import KEYWORDS, RELATIONS, conform
from transforms.columnar.arrays import MAIN, column_array, int64s
from transforms.columnar.steps import Collection, GatherTables, MapTables, MergePartitions, WritePartitions
from transforms.context.steps import number_words
from transforms.lattice.steps import MineConcepts, PlanBundles
from transforms.ranking import semrank
from transforms.similarity.best_pairs import SimilaritySettings
from transforms.weblog.relations import ISA, PART_OF


class Ranked(NamedTuple):
    """What a ranker gives.

    Attributes:
        rows: scored URLs (`RANKED_SCHEMA`).
        keywords: the keywords with their layers (`KEYWORDS`).
        base_concepts: extents of the base lattice as URLs (`semrank.NAMED_SCHEMA`).
        current_concepts: the same of the current lattice, or None.
    """

    rows: Collection
    keywords: Collection
    base_concepts: Collection
    current_concepts: Collection | None


class RankBySemRank(beam.PTransform[Any, Any]):
    """SemRank of the current URLs (P13 Def. 21); gives `Ranked`.

    The input is a dict with `base`, `current` (objects), `vocabulary`, `isa` and `part_of`.

    Args:
        settings: how similarities are computed.
        query: words of the query.
        min_support: smallest number of URLs of a concept.
        partitions: number of partitions of URLs.
        write_lattices: whether the current concepts are wanted.
    """

    def __init__(
        self,
        settings: SimilaritySettings,
        *,
        query: list[str],
        min_support: int,
        partitions: int,
        write_lattices: bool,
    ) -> None:
        super().__init__("rank by SemRank")
        self._settings, self._query, self._min_support = settings, query, min_support
        self._partitions, self._write_lattices = partitions, write_lattices

    def expand(self, inputs: dict[str, Collection]) -> Ranked:
        """Applies the steps."""
        words = {"vocabulary": inputs["vocabulary"]}
        relations = {"isa": inputs["isa"], "part_of": inputs["part_of"]}
        base = inputs["base"] | MapTables("number base words", _numbered, sides=words)
        current = inputs["current"] | MapTables("number current words", _numbered, sides=words)

        base_bundles = {"objects": base, **words} | PlanBundles("base", self._min_support)
        lattice = {"bundles": base_bundles, "objects": base, **words} | MineConcepts("base", self._min_support)

        bundles = {"objects": current, **words} | PlanBundles("current", self._min_support)
        tags = (MAIN, semrank.CURRENT_CONCEPTS) if self._write_lattices else ()
        scored = bundles | MapTables(
            "score current lattice",
            partial(_scored, write=self._write_lattices),
            sides={"objects": current, "lattice": lattice, **words, **relations},
            prepare=partial(
                semrank.Scoring.of, settings=self._settings, query=self._query, min_support=self._min_support
            ),
            tags=tags,
        )
        best = scored[MAIN] if self._write_lattices else scored
        rows = {"objects": current, "scores": best} | MergePartitions(
            "join scores",
            _join_scores,
            partitions=self._partitions,
            key="url_id",
            sides=words,
        )
        keywords = {**words, **relations} | GatherTables(
            "layer keywords", partial(semrank.keyword_table, settings=self._settings, query=self._query)
        )
        named = {"objects": base, **words}
        base_concepts = lattice | MapTables("name base concepts", semrank.named_base_concepts, sides=named)
        current_concepts = None
        if self._write_lattices:
            current_concepts = {"concepts": scored[semrank.CURRENT_CONCEPTS], "objects": current} | MergePartitions(
                "name current URLs",
                semrank.named_current_concepts,
                partitions=self._partitions,
                key="url_id",
                sides=words,
            )
        return Ranked(rows, keywords, base_concepts, current_concepts)


class WriteConcepts(beam.PTransform[Any, Any]):
    """Writes concepts with their URLs and words (`CONCEPTS`).

    Args:
        folder: folder of the files.
        name: which lattice.
        partitions: number of partitions of concepts.
    """

    def __init__(self, folder: str, name: str, partitions: int) -> None:
        super().__init__(f"name and write {name} concepts")
        self._folder, self._name, self._partitions = folder, name, partitions

    def expand(self, concepts: Collection) -> Collection:
        """Applies the step."""
        return {"concepts": concepts} | WritePartitions(  # type: ignore[no-any-return]
            f"write {self._name} concepts",
            self._folder,
            semrank.concept_rows,
            partitions=self._partitions,
            key="concept",
        )


def _numbered(table: pa.Table, vocabulary: pa.Table | None) -> pa.Table:
    ids = np.zeros(0, dtype=np.int64) if vocabulary is None else int64s(vocabulary["word_id"])
    return number_words(table, ids)


def _scored(row: pa.Table, prepared: semrank.Scoring, *, write: bool) -> Iterator[Any]:
    for kind, table in prepared.score_bundle(row, write=write):
        yield (kind, table) if write else table


def _join_scores(_: int, objects: pa.Table | None, scores: pa.Table | None, vocabulary: pa.Table | None) -> pa.Table:
    return semrank.join_scores(objects, scores, vocabulary)


def keyword_rows(keywords: pa.Table | None) -> pa.Table:
    """The keywords in their order, a table of `KEYWORDS`."""
    return KEYWORDS.empty() if keywords is None else conform(keywords.sort_by("keyword"), KEYWORDS)


def relation_rows(vocabulary: pa.Table | None, isa: pa.Table | None, part_of: pa.Table | None) -> pa.Table:
    """The relations with their words, a table of `RELATIONS` sorted by relation, source and target.

    ISA is symmetric: a pair stands once, source before target in the order of the words.
    """
    tables = [RELATIONS.empty()]
    for relation, pairs in ((ISA, isa), (PART_OF, part_of)):
        if pairs is None or vocabulary is None:
            continue
        words = column_array(vocabulary["word"])
        source, target = (words.take(column_array(pairs[name])) for name in ("source", "target"))
        kinds = pa.array([relation]).take(pa.array(np.zeros(pairs.num_rows, dtype=np.int64)))
        tables.append(pa.table([source, target, kinds, pairs["support"]], schema=RELATIONS.schema))
    return pa.concat_tables(tables).sort_by([(name, "ascending") for name in ("relation", "source", "target")])
