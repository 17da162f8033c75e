"""Beam steps of the rankers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc

from semrank.schemas.tables import CONCEPTS, KEYWORDS, conform
from semrank.transforms.columnar.arrays import MAIN, optional_int64s
from semrank.transforms.columnar.beam import (
    Collection,
    GatherTables,
    MapTables,
    MergePartitions,
    WritePartitions,
    one_table,
)
from semrank.transforms.context.objects import BASE, number_words
from semrank.transforms.lattice import mining
from semrank.transforms.lattice.beam import MineConcepts, MineSpreadConcepts, PlanBundles
from semrank.transforms.ranking import held_relations, relation_files, semrank
from semrank.transforms.ranking.memory import BASE_LATTICE, LATTICE, PATHS
from semrank.transforms.ranking.scores import with_scores
from semrank.transforms.similarity.settings import SimilaritySettings
from semrank.transforms.weblog.memory import VOCABULARY
from semrank.transforms.weblog.relations import ISA, PART_OF

SPREAD, SUMS, ADDRESSES = "spread", "sums", "addresses"


class Ranked(NamedTuple):
    """The results of SemRank.

    Attributes:
        rows: scored URLs (`RANKED_SCHEMA`).
        addresses: `queue` and `url` of the base lattice's URLs.
        lattice: the base lattice (`LATTICE_SCHEMA`).
        current_concepts: extents of the current lattice as URLs (`semrank.NAMED_SCHEMA`), or None.
    """

    rows: Collection
    addresses: Collection
    lattice: Collection
    current_concepts: Collection | None


class RankBySemRank(beam.PTransform[Any, Any]):
    """SemRank of the current URLs (P13 Def. 21); returns `Ranked`.

    The input is a dict with `base`, `current` (objects), `vocabulary`, `isa` and `part_of` (as in `HeldRelations`);
    with the scores of another `ranker` (`SCORED_SCHEMA`) as well, rows have these, and SemRank's terms count nothing.

    Args:
        settings: how similarities are computed.
        query: words of the query.
        min_support: smallest number of URLs of a concept.
        partitions: number of partitions of URLs.
        base_urls: about how many URLs the base lattice is of.
        write_lattices: whether the current concepts are wanted.
    """

    def __init__(
        self,
        settings: SimilaritySettings,
        *,
        query: list[str],
        min_support: int,
        partitions: int,
        base_urls: int,
        write_lattices: bool,
    ) -> None:
        super().__init__("rank by SemRank")
        self._settings, self._query, self._min_support = settings, query, min_support
        self._partitions, self._base_urls, self._write_lattices = partitions, base_urls, write_lattices

    def expand(self, inputs: dict[str, Collection]) -> Ranked:
        """Applies the steps."""
        words = {"vocabulary": inputs["vocabulary"]}
        relations = {"isa": inputs["isa"], "part_of": inputs["part_of"]}
        both = (inputs["base"], inputs["current"]) | "both contexts" >> beam.Flatten()
        numbered = both | MapTables(
            "number words of URLs", _numbered, sides=words, tags=(MAIN, BASE, ADDRESSES), holds=VOCABULARY
        )
        base, current = numbered[BASE], numbered[MAIN]

        lattice = self._mine_base(base, words)
        sizes = current | MapTables("measure context", mining.context_size)
        by_strategy = current | MapTables(
            "choose mining strategy",
            _chosen_strategy,
            sides={"sizes": sizes},
            prepare=partial(mining.is_held, min_support=self._min_support),
            tags=(MAIN, SPREAD),
        )
        held, spread = by_strategy[MAIN], by_strategy[SPREAD]
        known = {"lattice": lattice, **words, **relations}
        whole = self._score_held(held, known)
        parts, top = self._score_spread(spread, known)
        scores, members = ([outputs[tag] for outputs in (whole, parts)] for tag in (MAIN, semrank.CURRENT_CONCEPTS))
        scored = {"objects": current, "scores": scores | "all scores" >> beam.Flatten()}
        if "ranker" in inputs:
            scored["ranker"] = inputs["ranker"]
        rows = scored | MergePartitions(
            "join scores",
            _join_scores,
            partitions=self._partitions,
            key="url_id",
            sides={**words, "top": top},
            holds=VOCABULARY,
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
        return Ranked(rows, numbered[ADDRESSES], lattice, current_concepts)

    def _mine_base(self, base: Collection, words: dict[str, Collection]) -> Collection:
        """The base lattice."""
        if self._base_urls > mining.HELD_OBJECTS:
            return {"objects": base, **words} | MineSpreadConcepts("base", self._min_support)  # type: ignore[no-any-return]
        bundles = {"objects": base, **words} | PlanBundles("base", self._min_support)
        return {"bundles": bundles, "objects": base, **words} | MineConcepts("base", self._min_support)  # type: ignore[no-any-return]

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
        counts = objects | MapTables("count attributes", mining.attribute_counts, combine=mining.added_counts)
        shared = {"counts": counts, "vocabulary": known["vocabulary"]}
        cut = objects | MapTables(
            "cut conditional databases",
            _rows_of_bundles,
            sides=shared,
            prepare=partial(mining.spread_context, min_support=self._min_support),
            tags=(MAIN, SUMS),
        )
        judging = partial(_judging, settings=self._settings, query=self._query, min_support=self._min_support)
        scores = {"rows": cut[MAIN]} | MergePartitions(
            "score conditional databases",
            partial(_score_spread, write=self._write_lattices),
            partitions=None,
            key="bundle",
            sides={**known, "counts": counts},
            prepare=judging,
            tags=(MAIN, semrank.CURRENT_CONCEPTS),
            holds=LATTICE,
        )
        top = {"sums": cut[SUMS], "lattice": known["lattice"], **shared} | GatherTables(
            "score top concept",
            partial(_top_scores, settings=self._settings, min_support=self._min_support),
            holds=BASE_LATTICE,
            streams=True,
        )
        return scores, top


class HeldRelations(NamedTuple):
    """Relations as workers hold them (`held_relations.HELD_SCHEMA`).

    Attributes:
        isa: ISA pairs that scoring asks for.
        top_isa: those of the query's only word, which decide whether it is Top.
        part_of: few Part-Of pairs with the same paths as all.
    """

    isa: Collection
    top_isa: Collection
    part_of: Collection


class HoldRelations(beam.PTransform[Any, Any]):
    """Reduces relations to what scoring asks for; returns `HeldRelations`.

    The input is a dict with `vocabulary`, `isa` and `part_of`.

    Args:
        query: words of the query.
    """

    def __init__(self, query: list[str]) -> None:
        super().__init__("hold relations")
        self._prepare = partial(held_relations.HierarchyWords.of, query=query)

    def expand(self, inputs: dict[str, Collection]) -> HeldRelations:
        """Applies the steps."""
        words = {"vocabulary": inputs["vocabulary"]}
        isa = inputs["isa"] | MapTables(
            "choose ISA",
            held_relations.held_isa,
            sides=words,
            prepare=self._prepare,
            tags=(MAIN, held_relations.TOP),
            holds=VOCABULARY,
        )
        paths = inputs["part_of"] | MapTables(
            "reduce Part-Of",
            held_relations.paths,
            sides=words,
            prepare=self._prepare,
            combine=held_relations.reduced_paths,
            holds=VOCABULARY,
        )
        part_of = {"part_of": paths} | GatherTables(
            "reduce Part-Of of all parts", held_relations.joined_paths, holds=PATHS, streams=True
        )
        return HeldRelations(isa[MAIN], isa[held_relations.TOP], part_of)


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


class WriteRelations(beam.PTransform[Any, Any]):
    """Writes the relations with their words (`RELATIONS`), sorted over all files; see `relation_files`.

    The input is a dict with `vocabulary`, `isa` and `part_of`.

    Args:
        folder: folder of the files.
    """

    def __init__(self, folder: str) -> None:
        super().__init__("write relations")
        self._folder = folder

    def expand(self, inputs: dict[str, Collection]) -> Collection:
        """Applies the steps."""
        pairs = {"isa": (ISA, inputs["isa"]), "part_of": (PART_OF, inputs["part_of"])}
        counts = {
            name: rows
            | MapTables(
                f"count {kind} by source",
                partial(relation_files.bucket_counts, kind=kind),
                combine=relation_files.added_counts,
            )
            for name, (kind, rows) in pairs.items()
        }
        cuts = counts | GatherTables("cut relations", relation_files.range_cuts)
        ranged = {
            name: rows
            | MapTables(f"place {kind} in files", partial(relation_files.with_ranges, kind=kind), sides={"cuts": cuts})
            for name, (kind, rows) in pairs.items()
        }
        return ranged | WritePartitions(  # type: ignore[no-any-return]
            "write relations",
            self._folder,
            relation_files.relation_rows,
            partitions=None,
            key="range",
            sides={"vocabulary": inputs["vocabulary"]},
            holds=VOCABULARY,
        )


def _numbered(table: pa.Table, vocabulary: pa.Table | None) -> Iterator[tuple[str, pa.Table]]:
    ids = optional_int64s(vocabulary, "word_id")
    numbered = number_words(table, ids)
    queued = pc.greater_equal(numbered["queue"], 0)
    base = numbered.filter(queued)
    yield BASE, base
    yield ADDRESSES, base.select(["queue", "url"])
    yield MAIN, numbered.filter(pc.invert(queued))


def _chosen_strategy(objects: pa.Table, held: bool) -> Iterator[tuple[str, pa.Table]]:
    yield (MAIN if held else SPREAD), objects


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


def _rows_of_bundles(objects: pa.Table, prepared: mining.SpreadContext | None) -> Iterator[tuple[str, pa.Table]]:
    yield SUMS, semrank.edge_sums(objects)
    if prepared is not None:
        yield from ((MAIN, rows) for rows in prepared.rows_of_bundles(objects))


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
    spread = mining.spread_context(counts, vocabulary, min_support=min_support)
    return _Judging(judge, spread, vocabulary, min_support)


def _score_spread(partition: int, rows: pa.Table, prepared: _Judging, *, write: bool) -> Iterator[tuple[str, pa.Table]]:
    row, context = mining.exchanged_bundle(
        partition, rows, prepared.spread, prepared.vocabulary, min_support=prepared.min_support
    )
    yield from semrank.Scoring.of(prepared.judge, context).score_bundle(row, write=write)


def _top_scores(
    sums: Iterator[pa.Table],
    counts: Iterator[pa.Table],
    vocabulary: Iterator[pa.Table],
    lattice: Iterator[pa.Table],
    *,
    settings: SimilaritySettings,
    min_support: int,
) -> pa.Table:
    """The best pair of the top concept; the lattice is not held where a bundle has that concept."""
    words = one_table(vocabulary)
    spread = mining.spread_context(one_table(counts), words, min_support=min_support)
    if spread is None or spread.has_top:
        return semrank.SCORE_SCHEMA.empty_table()
    # Its intent is empty, so no similarity of words is asked for.
    judge = semrank.Judge.of(one_table(lattice), words, None, None, settings=settings, query=())
    return judge.top_scores(one_table(sums), spread.statistics.object_count)


def _top_members(objects: pa.Table, top: pa.Table | None) -> pa.Table:
    return semrank.MEMBER_SCHEMA.empty_table() if top is None else semrank.top_members(objects)


def _join_scores(
    objects: pa.Table | None,
    scores: pa.Table | None,
    vocabulary: pa.Table | None,
    top: pa.Table | None,
    **other: pa.Table | None,
) -> Iterator[pa.Table]:
    if objects is not None:
        rows = semrank.join_scores(objects, scores, vocabulary, top)
        yield with_scores(rows, other["ranker"]) if "ranker" in other else rows


def keyword_rows(
    vocabulary: pa.Table | None,
    isa: pa.Table | None,
    part_of: pa.Table | None,
    *,
    settings: SimilaritySettings,
    query: list[str],
) -> pa.Table:
    """The keywords in their order with their layers, a table of `KEYWORDS`."""
    keywords = semrank.keyword_table(vocabulary, isa, part_of, settings=settings, query=query)
    return conform(keywords.sort_by("keyword"), KEYWORDS)


def base_concept_rows(lattice: pa.Table | None, objects: pa.Table | None, vocabulary: pa.Table | None) -> pa.Table:
    """The base concepts with their URLs and words, a table of `CONCEPTS`."""
    if lattice is None:
        return CONCEPTS.schema.empty_table()
    return semrank.concept_rows(semrank.named_base_concepts(lattice, objects, vocabulary))
