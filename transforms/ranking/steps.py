"""Beam steps of the rankers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa

from semrank.schemas.tables import KEYWORDS, RELATIONS, conform
from semrank.transforms.columnar.arrays import MAIN, column_array, int64s
from semrank.transforms.columnar.steps import Collection, GatherTables, MapTables, MergePartitions, WritePartitions
from semrank.transforms.context.steps import number_words
from semrank.transforms.lattice import mining
from semrank.transforms.lattice.memory import CONTEXT
from semrank.transforms.lattice.steps import MineConcepts, PlanBundles
from semrank.transforms.ranking import semrank
from semrank.transforms.ranking.memory import HIERARCHY, LATTICE
from semrank.transforms.similarity.settings import SimilaritySettings
from semrank.transforms.weblog.memory import VOCABULARY
from semrank.transforms.weblog.relations import ISA, PART_OF


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
        base = inputs["base"] | MapTables("number base words", _numbered, sides=words, holds=VOCABULARY)
        current = inputs["current"] | MapTables("number current words", _numbered, sides=words, holds=VOCABULARY)

        base_bundles = {"objects": base, **words} | PlanBundles("base", self._min_support)
        lattice = {"bundles": base_bundles, "objects": base, **words} | MineConcepts("base", self._min_support)

        way = {"sizes": current | MapTables("measure context", mining.context_size)} | GatherTables(
            "choose way of mining", partial(mining.choose_way, min_support=self._min_support)
        )
        held, spread = (
            current
            | MapTables(f"{name} context", partial(mining.held_objects, broadcast=broadcast), sides={"way": way})
            for name, broadcast in (("hold", True), ("spread", False))
        )
        known = {"lattice": lattice, **words, **relations}
        whole = self._score_held(held, known)
        parts, top = self._score_spread(spread, known)
        scores, members = ([outputs[tag] for outputs in (whole, parts)] for tag in (MAIN, semrank.CURRENT_CONCEPTS))
        rows = {"objects": current, "scores": scores | "all scores" >> beam.Flatten()} | MergePartitions(
            "join scores",
            _join_scores,
            partitions=self._partitions,
            key="url_id",
            sides={**words, "top": top},
            holds=VOCABULARY,
        )
        keywords = {**words, **relations} | GatherTables(
            "layer keywords",
            partial(semrank.keyword_table, settings=self._settings, query=self._query),
            holds=HIERARCHY,
        )
        named = {"objects": base, **words}
        base_concepts = lattice | MapTables(
            "name base concepts", semrank.named_base_concepts, sides=named, holds=CONTEXT
        )
        current_concepts = None
        if self._write_lattices:
            everybody = spread | MapTables("list top concept", _top_members, sides={"top": top})
            concepts = [*members, everybody] | "all current concepts" >> beam.Flatten()
            current_concepts = {"concepts": concepts, "objects": current} | MergePartitions(
                "name current URLs",
                semrank.named_current_concepts,
                partitions=self._partitions,
                key="url_id",
                sides=words,
            )
        return Ranked(rows, keywords, base_concepts, current_concepts)

    def _score_held(self, objects: Collection, known: dict[str, Collection]) -> Any:
        """Scores of a context that every worker holds, bundle by bundle."""
        bundles = {"objects": objects, "vocabulary": known["vocabulary"]} | PlanBundles("current", self._min_support)
        return bundles | MapTables(
            "score current lattice",
            partial(_score_held, write=self._write_lattices),
            sides={"objects": objects, **known},
            prepare=partial(_scoring, settings=self._settings, query=self._query, min_support=self._min_support),
            tags=(MAIN, semrank.CURRENT_CONCEPTS),
            holds=LATTICE,
        )

    def _score_spread(self, objects: Collection, known: dict[str, Collection]) -> tuple[Any, Collection]:
        """Scores of a context that is too large to be held: its conditional databases are exchanged.

        The second result is the top concept's, where no bundle has it.
        """
        counts = {"counts": objects | MapTables("count attributes", mining.attribute_counts)} | GatherTables(
            "add attribute counts", mining.added_counts
        )
        shared = {"counts": counts, "vocabulary": known["vocabulary"]}
        rows = objects | MapTables(
            "cut conditional databases",
            _rows_of_bundles,
            sides=shared,
            prepare=partial(_spread_context, min_support=self._min_support),
        )
        judging = partial(_judging, settings=self._settings, query=self._query, min_support=self._min_support)
        scores = {"rows": rows} | MergePartitions(
            "score conditional databases",
            partial(_score_spread, write=self._write_lattices),
            partitions=None,
            key="bundle",
            sides={**known, "counts": counts},
            prepare=judging,
            tags=(MAIN, semrank.CURRENT_CONCEPTS),
            holds=LATTICE,
        )
        sums = objects | MapTables("sum edges", semrank.edge_sums)
        top = {"sums": sums, "counts": counts, **known} | GatherTables(
            "score top concept",
            partial(_top_scores, settings=self._settings, query=self._query, min_support=self._min_support),
            holds=HIERARCHY,
        )
        return scores, top


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


def _scoring(
    objects: pa.Table | None,
    vocabulary: pa.Table | None,
    *,
    settings: SimilaritySettings,
    query: list[str],
    min_support: int,
    **tables: pa.Table | None,
) -> semrank.Scoring:
    judge = semrank.Judge.of(vocabulary=vocabulary, settings=settings, query=query, **tables)
    return semrank.Scoring.of(judge, mining.MiningContext.of(objects, vocabulary, min_support=min_support))


def _score_held(row: pa.Table, prepared: semrank.Scoring, *, write: bool) -> Iterator[tuple[str, pa.Table]]:
    return prepared.score_bundle(row, write=write)


def _word_count(vocabulary: pa.Table | None) -> int:
    return 0 if vocabulary is None else int(vocabulary.num_rows)


def _spread_context(
    counts: pa.Table | None, vocabulary: pa.Table | None, *, min_support: int
) -> mining.SpreadContext | None:
    return mining.SpreadContext.of(counts, _word_count(vocabulary), min_support=min_support)


def _rows_of_bundles(objects: pa.Table, prepared: mining.SpreadContext | None) -> Iterator[pa.Table]:
    if prepared is not None:
        yield from prepared.rows_of_bundles(objects)


class _Judging(NamedTuple):
    """What a worker holds to score conditional databases."""

    judge: semrank.Judge
    spread: mining.SpreadContext | None
    vocabulary: pa.Table | None
    min_support: int


def _judging(
    counts: pa.Table | None,
    vocabulary: pa.Table | None,
    *,
    settings: SimilaritySettings,
    query: list[str],
    min_support: int,
    **tables: pa.Table | None,
) -> _Judging:
    judge = semrank.Judge.of(vocabulary=vocabulary, settings=settings, query=query, **tables)
    return _Judging(judge, _spread_context(counts, vocabulary, min_support=min_support), vocabulary, min_support)


def _score_spread(partition: int, rows: pa.Table, prepared: _Judging, *, write: bool) -> Iterator[tuple[str, pa.Table]]:
    if prepared.spread is None:
        raise ValueError(f"bundle {partition} has {rows.num_rows} rows, but nothing was counted")
    context = mining.MiningContext.of(
        rows, prepared.vocabulary, min_support=prepared.min_support, order=prepared.spread.order
    )
    scoring = semrank.Scoring.of(prepared.judge, context)
    yield from scoring.score_bundle(prepared.spread.row(partition), write=write)


def _top_scores(
    sums: pa.Table | None,
    counts: pa.Table | None,
    vocabulary: pa.Table | None,
    *,
    settings: SimilaritySettings,
    query: list[str],
    min_support: int,
    **tables: pa.Table | None,
) -> pa.Table:
    spread = _spread_context(counts, vocabulary, min_support=min_support)
    if spread is None or spread.has_top:
        return semrank.SCORE_SCHEMA.empty_table()
    judge = semrank.Judge.of(vocabulary=vocabulary, settings=settings, query=query, **tables)
    return judge.top_scores(sums, spread.statistics.object_count)


def _top_members(objects: pa.Table, top: pa.Table | None) -> pa.Table:
    return semrank.MEMBER_SCHEMA.empty_table() if top is None else semrank.top_members(objects)


def _join_scores(
    objects: pa.Table | None, scores: pa.Table | None, vocabulary: pa.Table | None, top: pa.Table | None
) -> pa.Table:
    return semrank.join_scores(objects, scores, vocabulary, top)


def keyword_rows(keywords: pa.Table | None) -> pa.Table:
    """The keywords in their order, a table of `KEYWORDS`."""
    return KEYWORDS.empty() if keywords is None else conform(keywords.sort_by("keyword"), KEYWORDS)


def relation_rows(
    vocabulary: pa.Table | None, isa: pa.Table | None = None, part_of: pa.Table | None = None
) -> pa.Table:
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
