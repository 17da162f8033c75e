"""The best base concept of each current concept, exactly (P13 Def. 6, 17-20; P08 Def. 5, 9-11; Formica 2006 Eq. 4).

    extension(C1, C2) = (links + c-edges between X1 and X2, both directions) / (4 max(|X1|, |X2|)), at most 1
    intension(C1, C2) = maximum weight matching of Y1 and Y2 under ics / n
    similarity        = w extension + (1 - w) intension

The search is a branch and bound, so that few pairs need a matching. The best base concept is mostly among those that a
current concept is linked with (`linked`); the other pairs are bounded one by one (`every_pair`): where |Y1| <= |Y2|,
each word of Y1 has at most its best value in Y2, and the sum of these bounds the matching; otherwise Y1 and Y2 are
exchanged. A pair whose bound exceeds the incumbent is evaluated: a greedy matching that attains a bound is
optimal; only if it does not, and the pair's bound still exceeds the incumbent, an assignment is solved.

Bounds are compared with >=, after the same rounding as similarities, so that no tie is lost. A pair's similarity is a
function of the pair alone: extensions are quotients of integers, similarities of words are multiples of 2^-40, whose
sums are exact, and the result is rounded to 12 decimals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import scipy
from scipy import sparse

from semrank.transforms.columnar.arrays import Float64s, Int64s
from semrank.transforms.lattice.context import Concepts
from semrank.transforms.similarity.base_lattice import BLOCK_CELLS, BaseLattice, RelatedWords, WordSimilarities
from semrank.transforms.similarity.every_pair import able_rows, chunks, search_chunk
from semrank.transforms.similarity.hierarchy import ICS_UNITS, WeightedHierarchy
from semrank.transforms.similarity.linked import Linked, linked_parts, try_known
from semrank.transforms.similarity.matching import Incumbents, LowerBounds, Search
from semrank.transforms.similarity.settings import SimilaritySettings
from semrank.transforms.similarity.word_pairs import WordPairs

Words: TypeAlias = npt.NDArray[np.integer]
_Value = TypeVar("_Value", np.float64, np.int64)

MANY_CONCEPTS = 1 << 12
"""Base concepts from which on similarities of words are computed pair by pair, not as a full matrix."""

FIRST_HEAD = 64

HEAD_GROWTH = 8
"""Sizes of the first parts of a base lattice that are searched for a smaller id."""


@dataclass(frozen=True, eq=False)
class BestPairs:
    """The best base concept of each current concept, arrays of length n.

    Attributes:
        base: its position in the base lattice, int64; -1 where no base concept reaches the lower bound.
        score: Sim, float64, rounded to 12 decimals; -1 where there is no base concept.
        extension: float64.
        intension: float64.
        examined: number of pairs whose word similarities were looked at one by one.
        assignments: number of optimal assignments that were solved; the other examined pairs attain a bound, or are
            excluded by a tighter one.
    """

    base: Int64s
    score: Float64s
    extension: Float64s
    intension: Float64s
    examined: int
    assignments: int


def best_base_concepts(
    current: Concepts,
    edges: sparse.csr_array,
    base: BaseLattice,
    hierarchy: WeightedHierarchy,
    settings: SimilaritySettings,
    lower: LowerBounds | None = None,
) -> BestPairs:
    """The base concept most similar to each current concept; of equal ones that with the smallest id.

    Args:
        current: n current concepts; extents are rows of `edges`.
        edges: counts of links and c-edges (or of shared objects) between objects and queue URLs, integers, CSR
            [objects, queue].
        base: the base lattice.
        hierarchy: the words' hierarchy.
        settings: how similarities are computed.
        lower: lower bounds of the scores; concepts without a pair that reaches them are skipped. None for no bounds.

    Returns:
        The best pairs. The pair of a concept that is not skipped depends neither on the rest of the batch nor on the
        lower bounds.
    """
    best = Incumbents.start(len(current), len(base), lower)
    if len(base):
        with base.similarities.taken() as similarities:
            search = Search(current, edges.astype(np.int64, copy=False), base, settings, best)
            if len(base) < MANY_CONCEPTS:
                able = np.arange(len(current), dtype=np.int64) if lower is None else able_rows(search)
                searches = iter([(search, able)])
            else:
                searches = _unsettled(search, similarities.pairs_of(base, hierarchy))
            for part, left in searches:
                kept = similarities if part is search else WordSimilarities()
                for rows, words in chunks(part, left, len(hierarchy)):
                    kept.provide(words, part.base, hierarchy)
                    search_chunk(part, rows, kept)
    found = best.base >= 0
    return BestPairs(
        base=best.base,
        score=np.where(found, best.score, -1.0),
        extension=best.extension,
        intension=best.intension,
        examined=best.examined,
        assignments=best.assignments,
    )


def _unsettled(search: Search, pairs: RelatedWords) -> Iterator[tuple[Search, Int64s]]:
    """Evaluates the linked pairs, which decide nearly all rows.

    Yields:
        (search, rows that are still undecided). Where only an equally similar base concept with a smaller id could
        improve on the incumbent, the search's base lattice has the first concepts only.
    """
    base, settings, best = search.base, search.settings, search.best
    for part in linked_parts(search):
        Linked.of(search, part, pairs).search()
    rest = np.flatnonzero(best.unlinked_improves(settings))
    rest = rest[~try_known(search, rest, pairs)]
    rest = rest[best.unlinked_improves(settings)[rest]]
    tied = best.score[rest] == settings.largest_unlinked
    yield search, rest[~tied]
    rest = rest[tied]
    size = FIRST_HEAD
    while len(rest):
        within = best.limit[rest] <= size
        yield search if size >= len(base) else replace(search, base=base.head(size)), rest[within]
        rest = rest[~within]
        size *= HEAD_GROWTH


def matchings(words: WordPairs, intents: Iterable[tuple[Words, Words]]) -> Iterator[list[tuple[int, int, float]]]:
    """Maximum weight matchings of pairs of intents (P13 Def. 17).

    Of equally good matchings one with as many equal words as possible is taken.

    Args:
        words: similarities of words.
        intents: (base words, current words) of each pair.

    Yields:
        (base word, current word, ics) where ics is positive, by ascending base word.
    """
    waiting: list[tuple[Int64s, Int64s]] = []
    cells = 0
    for base_words, current_words in intents:
        waiting.append((np.sort(base_words).astype(np.int64), np.sort(current_words).astype(np.int64)))
        cells += len(base_words) * len(current_words)
        if cells >= BLOCK_CELLS:
            yield from _matched(words, waiting)
            waiting, cells = [], 0
    yield from _matched(words, waiting)


def _matched(words: WordPairs, intents: list[tuple[Int64s, Int64s]]) -> Iterator[list[tuple[int, int, float]]]:
    if not intents:
        return
    first = np.concatenate([np.repeat(rows, len(columns)) for rows, columns in intents])
    second = np.concatenate([np.tile(columns, len(rows)) for rows, columns in intents])
    values = words.similarities(first, second)
    start = 0
    for rows, columns in intents:
        block = values[start : start + len(rows) * len(columns)].reshape(len(rows), len(columns))
        start += block.size
        # All bonuses together are less than a step of the grid of similarities, so that they never change the total.
        bonus = (rows[:, None] == columns) / (2 * ICS_UNITS * max(1, *block.shape))
        pairs = zip(*scipy.optimize.linear_sum_assignment(block + bonus, maximize=True), strict=True)
        yield [
            (int(rows[row]), int(columns[column]), float(block[row, column]))
            for row, column in pairs
            if block[row, column] > 0
        ]


@dataclass(frozen=True, eq=False)
class BestScores:
    """The best pair of concepts of each object so far (P13 Def. 21), arrays of length n.

    Of equally similar pairs the one with the smaller base, then the smaller current concept id is the best.

    Attributes:
        score: Sim, float64; -1 where no concept of the object was scored.
        extension: float64.
        intension: float64.
        base: position in the base lattice, int64; -1 where no concept of the object was scored.
        current: id of the current concept, int64.
        intents: words of the current concepts that are an object's best, by id.
        assignments: number of optimal assignments that were solved.
    """

    score: Float64s
    extension: Float64s
    intension: Float64s
    base: Int64s
    current: Int64s
    intents: dict[int, Int64s]
    assignments: int

    @classmethod
    def none(cls, objects: int) -> BestScores:
        """No scores yet."""
        nothing = np.zeros(objects, dtype=np.float64)
        no_id = np.full(objects, -1, dtype=np.int64)
        return cls(np.full(objects, -1.0), nothing, nothing, no_id, no_id, {}, 0)


def best_per_object(
    current: Concepts,
    ids: Int64s,
    edges: sparse.csr_array,
    base: BaseLattice,
    hierarchy: WeightedHierarchy,
    settings: SimilaritySettings,
    best: BestScores,
) -> BestScores:
    """The objects' best scores after a further batch of current concepts.

    The objects' best scores so far are lower bounds of the search, so later batches are cheaper.

    Args:
        current: the batch.
        ids: ids of its concepts, int64[n].
        edges: see `best_base_concepts`.
        base: the base lattice.
        hierarchy: the words' hierarchy.
        settings: how similarities are computed.
        best: the best scores before; this object is not changed.
    """
    pairs = best_base_concepts(current, edges, base, hierarchy, settings, _lower_bounds(current, best))
    found = np.flatnonzero(pairs.base >= 0)
    order = found[np.lexsort((ids[found], pairs.base[found], -pairs.score[found]))]
    ordered = current.select(order)
    place = np.full(len(best.score), len(order), dtype=np.int64)
    np.minimum.at(place, ordered.extent_indices, np.repeat(np.arange(len(order)), ordered.support))
    objects = np.flatnonzero(place < len(order))
    concepts = order[place[objects]]
    batch_best = BestScores(
        score=_at(objects, pairs.score[concepts], best.score.shape, -1),
        extension=_at(objects, pairs.extension[concepts], best.score.shape, 0),
        intension=_at(objects, pairs.intension[concepts], best.score.shape, 0),
        base=_at(objects, pairs.base[concepts], best.score.shape, -1),
        current=_at(objects, ids[concepts], best.score.shape, -1),
        intents={int(ids[number]): current.intent(number).astype(np.int64) for number in np.unique(concepts).tolist()},
        assignments=pairs.assignments,
    )
    return merge_best(best, batch_best)


def _at(places: Int64s, values: npt.NDArray[_Value], shape: tuple[int, ...], other: int) -> npt.NDArray[_Value]:
    """An array with values at some places and `other` elsewhere."""
    array = np.full(shape, other, dtype=values.dtype)
    array[places] = values
    return array


def _lower_bounds(current: Concepts, best: BestScores) -> LowerBounds:
    """Lower bounds of a concept's pairs: the worst of its objects' best scores so far."""
    concept = np.repeat(np.arange(len(current), dtype=np.int64), current.support)
    score, base = best.score[current.extent_indices], best.base[current.extent_indices]
    worst = np.full(len(current), np.inf)
    np.minimum.at(worst, concept, score)
    last = np.full(len(current), -1, dtype=np.int64)
    at_worst = score == worst[concept]
    np.maximum.at(last, concept[at_worst], base[at_worst])
    return LowerBounds(worst, last)


def merge_best(first: BestScores, second: BestScores) -> BestScores:
    """The better of two scores of each of the same objects; associative and commutative."""
    order = ((first.score, second.score), (second.base, first.base), (second.current, first.current))
    better, equal = np.zeros(len(first.score), dtype=np.bool_), np.ones(len(first.score), dtype=np.bool_)
    for small, large in order:
        better |= equal & (small < large)
        equal &= small == large
    current, base = (np.where(better, *sides) for sides in ((second.current, first.current), (second.base, first.base)))
    intents = {**first.intents, **second.intents}
    return BestScores(
        score=np.where(better, second.score, first.score),
        extension=np.where(better, second.extension, first.extension),
        intension=np.where(better, second.intension, first.intension),
        base=base,
        current=current,
        intents={concept: intents[concept] for concept in np.unique(current[base >= 0]).tolist()},
        assignments=first.assignments + second.assignments,
    )
