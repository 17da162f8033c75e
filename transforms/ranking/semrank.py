"""SemRank: the best similarity of a concept of the URL with a concept of the queue (P13 Def. 18-21).

    SemRank(u) = max over current concepts C with u in C, over base concepts B, of Sim(B, C)

A worker mines a bundle of the current lattice and scores its concepts at once against the broadcast base lattice; of
each URL it keeps the best value and the pair of concepts behind it. Of equal values the pair with the smallest base
concept id, then the smallest current concept id, is the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from semrank.schemas.tables import CONCEPTS, KEYWORDS, MATCH, RANKED_SCHEMA, REASONS
from semrank.transforms.columnar.arrays import (
    MAIN,
    Int64s,
    column_array,
    entry_rows,
    group_starts,
    int64s,
    is_new_row,
    list_column,
    list_parts,
    pointers,
    positions,
    sum_rows,
)
from semrank.transforms.columnar.ids import set_id
from semrank.transforms.lattice.context import Concepts
from semrank.transforms.lattice.mining import LATTICE_SCHEMA, OBJECTS, MiningContext, lattice_concepts, mine_bundle
from semrank.transforms.lattice.search_space import RankedContext
from semrank.transforms.ranking.held_relations import only_word
from semrank.transforms.similarity.base_lattice import BaseLattice
from semrank.transforms.similarity.concept_similarity import BestScores, best_per_object, matchings
from semrank.transforms.similarity.hierarchy import WeightedHierarchy, build_hierarchy
from semrank.transforms.similarity.reduction import Pairs
from semrank.transforms.similarity.settings import SimilaritySettings

CURRENT_CONCEPTS = "current_concepts"

SCORE_SCHEMA = pa.schema(
    [
        pa.field("url_id", pa.int64()),
        pa.field("score", pa.float64()),
        pa.field("extension", pa.float64()),
        pa.field("intension", pa.float64()),
        pa.field("base_concept", pa.int64()),
        pa.field("current_concept", pa.int64()),
        pa.field(
            "matches",
            pa.list_(pa.struct([("base", pa.int32()), ("current", pa.int32()), ("ics", pa.float64())])),
        ),
    ]
)
"""The best pair of concepts that a part of the lattice has for a URL; words by number."""

NAMED_SCHEMA = pa.schema(
    [pa.field("concept", pa.int64()), pa.field("url", pa.string()), pa.field("intent", pa.list_(pa.string()))]
)
"""A URL of a concept."""

MEMBER_SCHEMA = pa.schema(
    [pa.field("url_id", pa.int64()), pa.field("concept", pa.int64()), pa.field("intent", pa.list_(pa.int32()))]
)
"""A URL of a concept by id, words by number."""


def word_hierarchy(
    vocabulary: pa.Table | None,
    isa: pa.Table | None,
    part_of: pa.Table | None,
    *,
    settings: SimilaritySettings,
    query: Sequence[str],
) -> WeightedHierarchy:
    """The hierarchy of the round's keywords.

    Args:
        vocabulary: the keywords in word order, or None where there are none.
        isa: ISA pairs of word numbers, or None.
        part_of: Part-Of pairs of word numbers, or None.
        settings: alpha, p(Top) and smoothing.
        query: words of the query; a single one that is a keyword may be Top.
    """
    empty = np.zeros(0, dtype=np.int64)

    def pairs(table: pa.Table | None) -> Pairs:
        return (empty, empty) if table is None else (table["source"].to_numpy(), table["target"].to_numpy())

    top_word = -1
    if vocabulary is None:
        clicks = base = current = empty
    else:
        clicks, base, current = (int64s(vocabulary[name]) for name in ("clicks", "base_support", "current_support"))
        top_word = only_word(vocabulary, query)
    return build_hierarchy(
        clicks,
        base > 0,
        current > 0,
        pairs(part_of),
        pairs(isa),
        alpha=settings.alpha,
        top_word=top_word if top_word >= 0 else None,
        top_probability=settings.top_probability,
        smoothing=settings.smoothing,
    )


def keyword_table(
    vocabulary: pa.Table | None,
    isa: pa.Table | None,
    part_of: pa.Table | None,
    *,
    settings: SimilaritySettings,
    query: Sequence[str],
) -> pa.Table:
    """The keywords with probability and layer, a table of `KEYWORDS`."""
    if vocabulary is None:
        return KEYWORDS.empty()
    hierarchy = word_hierarchy(vocabulary, isa, part_of, settings=settings, query=query)
    return pa.table(
        [
            vocabulary["word"],
            vocabulary["clicks"],
            pa.array(hierarchy.probability),
            pa.array(hierarchy.layer),
            pc.greater(vocabulary["base_support"], 0),
            pc.greater(vocabulary["current_support"], 0),
        ],
        schema=KEYWORDS.schema,
    )


EDGE_SUM_SCHEMA = pa.schema([pa.field("queue", pa.int64()), pa.field("edges", pa.int64())])


@dataclass(frozen=True, eq=False)
class Judge:
    """What a worker holds to compare concepts with the queue's.

    Attributes:
        base: the base lattice.
        hierarchy: the keywords' hierarchy.
        settings: how similarities are computed.
        queue_size: one more than the largest queue position in the base lattice.
    """

    base: BaseLattice
    hierarchy: WeightedHierarchy
    settings: SimilaritySettings
    queue_size: int

    @classmethod
    def of(
        cls,
        lattice: pa.Table | None,
        vocabulary: pa.Table | None,
        isa: pa.Table | None,
        part_of: pa.Table | None,
        *,
        settings: SimilaritySettings,
        query: Sequence[str],
    ) -> Judge:
        """Puts the broadcast tables together; see `RankBySemRank` for what they are."""
        concepts, ids = lattice_concepts(LATTICE_SCHEMA.empty_table() if lattice is None else lattice)
        queue_size = int(concepts.extent_indices.max(initial=-1)) + 1
        hierarchy = word_hierarchy(vocabulary, isa, part_of, settings=settings, query=query)
        return cls(BaseLattice.of(concepts, ids, queue_size), hierarchy, settings, queue_size)

    def edges(self, objects: pa.Table) -> sparse.csr_array:
        """Counts of links and c-edges between objects and queue URLs, CSR int64[objects, queue].

        Queue URLs in no base concept are left out: they count for none.
        """
        indptr, neighbours = list_parts(objects["neighbours"])
        _, counts = list_parts(objects["edges"])
        owner = entry_rows(indptr)
        queue = int64s(neighbours)
        known = queue < self.queue_size
        return sparse.csr_array(
            (int64s(counts)[known], (owner[known], queue[known])), shape=(objects.num_rows, self.queue_size)
        )

    def top_scores(self, sums: pa.Table | None, object_count: int) -> pa.Table:
        """The best pair of the top concept with an empty intent, a table of `SCORE_SCHEMA` of one row without URL.

        Args:
            sums: edges of all objects, added by queue position (`EDGE_SUM_SCHEMA`).
            object_count: number of objects of the context.
        """
        if not len(self.base):
            return SCORE_SCHEMA.empty_table()
        totals = np.zeros(self.queue_size, dtype=np.int64)
        if sums is not None and self.settings.extension == "links":
            queue, edges = int64s(sums["queue"]), int64s(sums["edges"])
            np.add.at(totals, queue[queue < self.queue_size], edges[queue < self.queue_size])
        counts = self.base.extents.T @ totals.astype(np.float64)
        extension = np.minimum(counts / (4 * np.maximum(object_count, self.base.concepts.support)), 1.0)
        score = self.settings.similarity(extension, np.zeros(len(extension)))
        best = int(score.argmax())
        empty = set_id(np.zeros(0, dtype=np.int64), np.zeros(2, dtype=np.int64))
        return pa.table(
            [[OBJECTS], [score[best]], [extension[best]], [0.0], [int(self.base.ids[best])], empty, [[]]],
            schema=SCORE_SCHEMA,
        )


@dataclass(frozen=True, eq=False)
class Scoring:
    """A context, or the part that a bundle needs, with what it is compared to.

    Attributes:
        judge: the base lattice and the hierarchy.
        context: the current context.
        ranked: the same as the kernels search it.
        edges: counts of links and c-edges between current and queue URLs, CSR int64[objects, queue].
    """

    judge: Judge
    context: MiningContext
    ranked: RankedContext
    edges: sparse.csr_array

    @classmethod
    def of(cls, judge: Judge, context: MiningContext | None) -> Scoring:
        """Makes a context ready.

        Raises:
            ValueError: there is no context.
        """
        if context is None:
            raise ValueError("a bundle was planned for a context without objects")
        return cls(judge, context, context.ranked(), judge.edges(context.objects))

    def score_bundle(self, row: pa.Table, *, write: bool) -> Iterator[tuple[str, pa.Table]]:
        """Mines and scores a bundle.

        Args:
            row: a row of `BUNDLE_SCHEMA`.
            write: whether the bundle's concepts are wanted, too.

        Yields:
            (kind, table): `main` the best pair of each URL of the bundle (`SCORE_SCHEMA`), and `current_concepts`
            (`MEMBER_SCHEMA`).
        """
        judge = self.judge
        edges = self.edges if judge.settings.extension == "links" else sparse.csr_array(self.edges.shape)
        best = BestScores.none(self.context.context.object_count)
        for concepts in mine_bundle(row, self.context, self.ranked):
            ids = self.context.concept_ids(concepts)
            best = best_per_object(concepts, ids, edges, judge.base, judge.hierarchy, judge.settings, best)
            if write:
                yield CURRENT_CONCEPTS, self._members(concepts, ids)
        yield MAIN, self._score_table(best)

    def _members(self, concepts: Concepts, ids: Int64s) -> pa.Table:
        owner = np.repeat(np.arange(len(concepts), dtype=np.int64), concepts.support)
        urls = int64s(self.context.objects["url_id"])[concepts.extent_indices]
        intents = list_column(pa.array(concepts.intent_indices), concepts.intent_indptr)
        return pa.table([pa.array(urls), pa.array(ids[owner]), intents.take(pa.array(owner))], schema=MEMBER_SCHEMA)

    def _score_table(self, best: BestScores) -> pa.Table:
        scored = np.flatnonzero(best.base >= 0)
        base, current = best.base[scored], best.current[scored]
        reasons = np.lexsort((current, base))
        new = is_new_row(base[reasons], current[reasons])
        number = np.empty(len(scored), dtype=np.int64)
        number[reasons] = np.cumsum(new) - 1
        lattice = self.judge.base
        intents = (
            (lattice.concepts.intent(b), best.intents[c])
            for b, c in zip(base[reasons][new].tolist(), current[reasons][new].tolist(), strict=True)
        )
        with lattice.similarities.taken() as kept:
            words = kept.pairs_of(lattice, self.judge.hierarchy).words
            matches = list(matchings(words, intents))
        flat = [match for pairs in matches for match in pairs]
        columns = list(zip(*flat, strict=True)) or [(), (), ()]
        structs = pa.StructArray.from_arrays(
            [pa.array(columns[0], pa.int32()), pa.array(columns[1], pa.int32()), pa.array(columns[2], pa.float64())],
            names=["base", "current", "ics"],
        )
        lists = list_column(structs, pointers(np.array([len(pairs) for pairs in matches], dtype=np.int64)))
        return pa.table(
            [
                pa.array(int64s(self.context.objects["url_id"])[scored]),
                pa.array(best.score[scored]),
                pa.array(best.extension[scored]),
                pa.array(best.intension[scored]),
                pa.array(self.judge.base.ids[base]),
                pa.array(current),
                lists.take(pa.array(number)),
            ],
            schema=SCORE_SCHEMA,
        )


def edge_sums(objects: pa.Table) -> pa.Table:
    """Edges of a part of a context added by queue position, a table of `EDGE_SUM_SCHEMA`."""
    _, neighbours = list_parts(objects["neighbours"])
    _, counts = list_parts(objects["edges"])
    return pa.table(sum_rows([int64s(neighbours)], int64s(counts)), schema=EDGE_SUM_SCHEMA)


def top_members(objects: pa.Table) -> pa.Table:
    """A part of the extent of the top concept with an empty intent, a table of `MEMBER_SCHEMA`."""
    empty = set_id(np.zeros(0, dtype=np.int64), np.zeros(2, dtype=np.int64))
    count = objects.num_rows
    return pa.table([objects["url_id"], np.repeat(empty, count), [[]] * count], schema=MEMBER_SCHEMA)


def join_scores(
    objects: pa.Table | None, scores: pa.Table | None, vocabulary: pa.Table | None, top: pa.Table | None
) -> pa.Table:
    """The URLs of one partition with their best scores, a table of `RANKED_SCHEMA`.

    A URL that no pair of concepts scores, for want of a base lattice, has score 0 and no concepts.

    Args:
        objects: current URLs, or None.
        scores: best pairs of all parts of the lattice (`SCORE_SCHEMA`), or None.
        vocabulary: the keywords in word order.
        top: the best pair of the concept of all URLs (`SCORE_SCHEMA`, one row), or None where it is among the scores.
    """
    if objects is None:
        return RANKED_SCHEMA.empty_table()
    objects = objects.sort_by("url_id").combine_chunks()
    if top is not None:
        everybody = top.take(pa.array(np.zeros(objects.num_rows, dtype=np.int64)))
        everybody = everybody.set_column(0, SCORE_SCHEMA.field(0), objects["url_id"])
        scores = everybody if scores is None else pa.concat_tables([scores, everybody])
    best = SCORE_SCHEMA.empty_table() if scores is None else _best_rows(scores)
    place = positions(int64s(best["url_id"]), int64s(objects["url_id"]))
    taken = best.take(pa.array(np.maximum(place, 0), mask=place < 0)).combine_chunks()
    words = pa.array([], pa.string()) if vocabulary is None else column_array(vocabulary["word"])
    columns = {
        "url_id": objects["url_id"],
        "url": objects["url"],
        "host": objects["host"],
        "score": pc.fill_null(taken["score"], 0.0),
        "extension": pc.fill_null(taken["extension"], 0.0),
        "intension": pc.fill_null(taken["intension"], 0.0),
        "base_concept": taken["base_concept"],
        "current_concept": taken["current_concept"],
        "base_links": objects["base_links"],
        "base_clicks": objects["base_clicks"],
        "fetched": objects["fetched"],
        "last_fetched_at": objects["last_fetched_at"],
        "status": objects["status"],
        "change_probability": pa.nulls(objects.num_rows, pa.float64()),
        "matches": _named_matches(column_array(taken["matches"]), words),
        "reasons": pa.array([[]] * objects.num_rows, REASONS),
    }
    return pa.table([columns[name] for name in RANKED_SCHEMA.names], schema=RANKED_SCHEMA)


def _best_rows(scores: pa.Table) -> pa.Table:
    """One row a URL: the highest score, of equal ones the smallest base, then current concept id."""
    url, score = int64s(scores["url_id"]), scores["score"].to_numpy()
    order = np.lexsort((int64s(scores["current_concept"]), int64s(scores["base_concept"]), -score, url))
    return scores.take(pa.array(order[group_starts(url[order])])).combine_chunks()


def _named_matches(matches: pa.ListArray, words: pa.Array) -> pa.ListArray:
    indptr, structs = list_parts(matches)
    base, current, ics = (
        (structs.field(name) for name in range(3))
        if len(structs)
        else (
            pa.array([], pa.int32()),
            pa.array([], pa.int32()),
            pa.array([], pa.float64()),
        )
    )
    named = pa.StructArray.from_arrays([words.take(base), words.take(current), ics], fields=list(MATCH))
    return list_column(named, indptr)


def named_base_concepts(lattice: pa.Table, objects: pa.Table | None, vocabulary: pa.Table | None) -> pa.Table:
    """The URLs of base concepts, a table of `NAMED_SCHEMA`.

    Args:
        lattice: base concepts (`LATTICE_SCHEMA`), extents being queue positions.
        objects: the queue's objects.
        vocabulary: the keywords in word order.
    """
    if objects is None:
        return NAMED_SCHEMA.empty_table()
    objects = objects.sort_by("queue").combine_chunks()
    indptr, members = list_parts(lattice["extent"])
    owner = entry_rows(indptr)
    place = positions(int64s(objects["queue"]), int64s(members))
    return pa.table(
        [
            lattice["concept"].take(pa.array(owner)),
            objects["url"].take(pa.array(place)),
            _named_lists(column_array(lattice["intent"]), vocabulary).take(pa.array(owner)),
        ],
        schema=NAMED_SCHEMA,
    )


def named_current_concepts(
    concepts: pa.Table | None, objects: pa.Table | None, vocabulary: pa.Table | None
) -> pa.Table:
    """The URLs of current concepts, a table of `NAMED_SCHEMA`.

    Args:
        concepts: members of concepts in one partition of URLs (`MEMBER_SCHEMA`).
        objects: the URLs of the partition.
        vocabulary: the keywords in word order.
    """
    if concepts is None or objects is None:
        return NAMED_SCHEMA.empty_table()
    objects = objects.sort_by("url_id").combine_chunks()
    place = positions(int64s(objects["url_id"]), int64s(concepts["url_id"]))
    return pa.table(
        [
            concepts["concept"],
            objects["url"].take(pa.array(place)),
            _named_lists(column_array(concepts["intent"]), vocabulary),
        ],
        schema=NAMED_SCHEMA,
    )


def _named_lists(numbers: pa.ListArray, vocabulary: pa.Table | None) -> pa.ListArray:
    indptr, values = list_parts(numbers)
    words = pa.array([], pa.string()) if vocabulary is None else column_array(vocabulary["word"])
    return list_column(words.take(values), indptr)


def concept_rows(concepts: pa.Table) -> pa.Table:
    """The concepts of one partition with extents and intents, a table of `CONCEPTS` sorted by id.

    Args:
        concepts: all rows of the concepts that stand in it (`NAMED_SCHEMA`).
    """
    concepts = concepts.sort_by([("concept", "ascending"), ("url", "ascending")]).combine_chunks()
    starts = group_starts(int64s(concepts["concept"]))
    first = concepts.take(pa.array(starts))
    indptr = np.append(starts, concepts.num_rows).astype(np.int64)
    return pa.table(
        [
            first["concept"],
            pa.array(np.diff(indptr)),
            list_column(column_array(concepts["url"]), indptr),
            first["intent"],
        ],
        schema=CONCEPTS.schema,
    )
