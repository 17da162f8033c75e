"""The best base concept of each current concept, exactly (P13 Def. 6, 17-20; P08 Def. 5, 9-11; Formica 2006 Eq. 4).

    extension(C1, C2) = (links + c-edges between X1 and X2, both directions) / (4 max(|X1|, |X2|)), at most 1
    intension(C1, C2) = maximum weight matching of Y1 and Y2 under ics / n
    similarity        = w extension + (1 - w) intension

Few pairs need a matching. Where |Y1| <= |Y2|, each word of Y1 has at most its best value in Y2, and the sum of these
bounds the matching; otherwise the same holds from the other side. The sums for all pairs of a block are sparse products
and tell apart what could be the best from what can't. A pair that could is looked at in full: when its greedy matching
attains a bound it is optimal, and only otherwise, and only if the pair is still in the race, an assignment is solved.

Bounds are compared with >=, after the same rounding as similarities, so that no tie is lost. A pair's similarity is a
function of the pair alone: extensions are quotients of integers, similarities of words are multiples of 2^-40, whose
sums are exact, and the result is rounded to 12 decimals.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import permutations
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from schemas.errors import InputError
from transforms.columnar.arrays import group_starts
from transforms.lattice.context import Concepts
from transforms.similarity.hierarchy import (
    ICS_UNITS,
    Bools,
    Float64s,
    IcsRows,
    Int64s,
    TopProbability,
    WeightedHierarchy,
    check_hierarchy_options,
    ics_block,
)

Float32s: TypeAlias = npt.NDArray[np.float32]
Steps: TypeAlias = npt.NDArray[np.uint16]
_Value = TypeVar("_Value", np.float64, np.int64)

SIMILARITY_DECIMALS = 12
"""Similarities that differ by less are equal; float rounding stays far below, the promised exactness of 1e-9 above."""

BOUND_UNITS = 1 << 12
"""Steps in 1 of the values that are summed to bounds, rounded up; uint16 takes sums of up to 15, uint32 larger ones."""

BOUND_SLACK = 2.0**-12
"""Relative widening of a bound: far above the rounding error of a float32 product, so that what does not attain a
bound of 0 or 1 stays below it by more than similarities are rounded."""

BLOCK_CELLS = 1 << 21
"""Pairs of concepts bounded, or word similarities gathered, at a time: 2^21 float64 are 16 MB."""

CACHE_BYTES = 256 << 20
"""Bytes of words' similarities and of their column maxima that a base lattice keeps."""

FIRST_TRIES = 4
"""Pairs of a row that are tried together once all that are left are listed; a round costs as much as some pairs."""

UNLINKED_ROUNDS = 4
"""Unlinked candidates tried one a row before all that are left are listed: most rows need one or two."""

EDGE_KINDS = 4
"""What an ordered pair of objects can count without repeated clicks: links and c-edges, in both directions."""

INTENSION_NORMS = ("min", "max")
EXTENSIONS = ("links", "objects")


@dataclass(frozen=True)
class SimilaritySettings:
    """How the similarity of concepts is computed.

    Attributes:
        weight: w of the extension in [0, 1] (P13), or None for extension / (extension + intension) (P08).
        intension_norm: `min` divides a matching by the smaller intent (P13), `max` by the larger (Formica 2006).
        extension: `links` counts links and c-edges over 4 max(|X1|, |X2|), `objects` shared objects over
            max(|X1|, |X2|) (Formica 2006, P13 Eq. 4).
        alpha: see `hierarchy.build_hierarchy`.
        top_probability: likewise.
        smoothing: likewise.

    Raises:
        InputError: a value is outside its range.
    """

    weight: float | None = 0.4
    intension_norm: str = "min"
    extension: str = "links"
    alpha: float = 0.2
    top_probability: TopProbability = "max"
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        if self.weight is not None and not 0 <= self.weight <= 1:
            raise InputError(f"weight: found {self.weight}, expected 0 <= weight <= 1")
        if self.intension_norm not in INTENSION_NORMS:
            raise InputError(f"intension_norm: found '{self.intension_norm}', expected one of {INTENSION_NORMS}")
        if self.extension not in EXTENSIONS:
            raise InputError(f"extension: found '{self.extension}', expected one of {EXTENSIONS}")
        check_hierarchy_options(self.alpha, self.top_probability, self.smoothing)

    def similarity(self, extension: Float64s, intension: Float64s) -> Float64s:
        """Sim of extensions and intensions (P13 Def. 18, P08 Def. 10), elementwise, rounded to 12 decimals."""
        if self.weight is not None:
            similarity = self.weight * extension + (1.0 - self.weight) * intension
        else:
            total = extension + intension
            similarity = (extension * extension + intension * intension) / np.where(total > 0, total, 1.0)
        return np.round(similarity, SIMILARITY_DECIMALS)

    def upper_bound(self, extension: Float64s, intension_bound: Float64s) -> Float64s:
        """The largest Sim that an intension of at most the bound allows, rounded like Sim."""
        bound = self.similarity(extension, intension_bound)
        # With the weight of P08 Sim is a convex function of the intension, so it is largest at an end.
        return bound if self.weight is not None else np.maximum(bound, np.round(extension, SIMILARITY_DECIMALS))


@dataclass(frozen=True, eq=False)
class BaseLattice:
    """The base concepts, made ready to be searched; columns are the concepts by ascending (|Y1|, id).

    Attributes:
        concepts: extents as queue positions, intents as word numbers, in the order of the ids.
        ids: ascending, int64[b].
        columns: position of each column in `concepts`, int64[b].
        sizes: |Y1| of each column, ascending, int64[b].
        supports: |X1| of each column, int64[b].
        words: the distinct words of the intents, in the order of their first columns, int64[v].
        word_counts: distinct words of the columns before each, int64[b + 1].
        padded: places in `words` of each column's words, filled up with v at the end, int64[b, max |Y1|].
        intents: CSR uint16[b, v], 1 where a column has a word.
        extents: CSR int64[queue, b], 1 where a queue URL belongs to a column.
        similarities: kept from search to search, since batches share most of their words.
    """

    concepts: Concepts
    ids: Int64s
    columns: Int64s
    sizes: Int64s
    supports: Int64s
    words: Int64s
    word_counts: Int64s
    padded: Int64s
    intents: sparse.csr_array
    extents: sparse.csr_array
    similarities: _WordSimilarities = field(default_factory=lambda: _WordSimilarities(), repr=False)

    @classmethod
    def of(cls, concepts: Concepts, ids: Int64s, queue_size: int) -> BaseLattice:
        """The base lattice; `ids` must ascend.

        Raises:
            ValueError: the ids do not ascend, so two concepts share one or the order is lost.
        """
        if len(ids) > 1 and not (ids[1:] > ids[:-1]).all():
            raise ValueError(f"ids of {len(ids)} base concepts do not ascend strictly, expected distinct sorted ids")
        columns = np.argsort(np.diff(concepts.intent_indptr), kind="stable").astype(np.int64)
        ordered = concepts.select(columns)
        sizes = np.diff(ordered.intent_indptr)
        words, first, places = np.unique(
            ordered.intent_indices.astype(np.int64), return_index=True, return_inverse=True
        )
        by_column = np.argsort(first)
        places = np.argsort(by_column)[places]
        padded = np.full((len(columns), int(sizes.max(initial=0))), len(words), dtype=np.int64)
        padded[np.arange(padded.shape[1]) < sizes[:, None]] = places
        members = _ones(ordered.extent_indptr, ordered.extent_indices, queue_size, np.int64)
        return cls(
            concepts=concepts,
            ids=ids,
            columns=columns,
            sizes=sizes,
            supports=ordered.support,
            words=words[by_column],
            word_counts=np.searchsorted(first[by_column], ordered.intent_indptr).astype(np.int64),
            padded=padded,
            intents=_ones(ordered.intent_indptr, places, len(words), np.uint16),
            extents=sparse.csr_array(members.T),
        )

    def __len__(self) -> int:
        return len(self.ids)


def _ones(
    indptr: Int64s, indices: npt.NDArray[np.integer], width: int, dtype: type[np.uint16 | np.int64]
) -> sparse.csr_array:
    ones = np.ones(len(indices), dtype=dtype)
    return sparse.csr_array((ones, indices.astype(np.int32), indptr), shape=(len(indptr) - 1, width))


@dataclass(frozen=True, eq=False)
class BestPairs:
    """The best base concept of each current concept, arrays of length n.

    Attributes:
        base: its position in the base lattice, int64; -1 where no base concept reaches the floor.
        score: Sim, float64, rounded to 12 decimals; -1 where there is no base concept.
        extension: float64.
        intension: float64.
        examined: number of pairs whose word similarities were looked at one by one.
        assignments: number of optimal assignments that were solved; the other examined pairs attain a bound, or fall
            behind by a tighter one.
    """

    base: Int64s
    score: Float64s
    extension: Float64s
    intension: Float64s
    examined: int
    assignments: int


@dataclass(frozen=True, eq=False)
class Floor:
    """What a pair of each current concept must reach to matter, arrays of length n.

    Attributes:
        score: float64; a pair below it does not matter. -1 lets every pair pass.
        base: position in the base lattice, int64; a pair as similar as `score` must have a base concept up to this one.
    """

    score: Float64s
    base: Int64s


def best_base_concepts(
    current: Concepts,
    edges: sparse.csr_array,
    base: BaseLattice,
    hierarchy: WeightedHierarchy,
    settings: SimilaritySettings,
    floor: Floor | None = None,
) -> BestPairs:
    """The base concept most similar to each current concept; of equal ones that with the smallest id.

    Args:
        current: n current concepts; extents are rows of `edges`.
        edges: counts of links and c-edges (or of shared objects) between objects and queue URLs, integers, CSR
            [objects, queue].
        base: the base lattice.
        hierarchy: the words' hierarchy.
        settings: how similarities are computed.
        floor: a concept without a pair that reaches it is passed over; None lets every pair pass.

    Returns:
        The best pairs. What is found for a concept depends neither on the rest of the batch nor on the floor, as far
        as the floor lets it pass.
    """
    race = _Race.start(len(current), len(base), floor)
    if len(base):
        counts = sparse.csr_array((edges.data.astype(np.int64), edges.indices, edges.indptr), shape=edges.shape)
        able = np.arange(len(current), dtype=np.int64)
        if floor is not None:
            able = _able_rows(current, counts, base, settings, floor)
        with base.similarities.taken() as similarities:
            for rows, words in _chunks(current, able, base, len(hierarchy)):
                similarities.provide(words, base, hierarchy)
                _search_chunk(current, counts, base, settings, rows, similarities, race)
    found = race.base >= 0
    return BestPairs(
        base=race.base,
        score=np.where(found, race.score, -1.0),
        extension=race.extension,
        intension=race.intension,
        examined=race.examined,
        assignments=race.assignments,
    )


@dataclass(eq=False)
class _Race:
    """Best pair so far of each row; rows are current concepts, bases positions in the base lattice.

    Attributes:
        score: similarity to reach, float64[n].
        limit: a pair that just reaches it needs a base below this one, int64[n].
        base: base of the best pair, -1 before there is one, int64[n].
        extension: of the best pair, float64[n].
        intension: likewise.
        examined: see `BestPairs`.
        assignments: likewise.
    """

    score: Float64s
    limit: Int64s
    base: Int64s
    extension: Float64s
    intension: Float64s
    examined: int = 0
    assignments: int = 0

    @classmethod
    def start(cls, count: int, bases: int, floor: Floor | None) -> _Race:
        score = np.full(count, -1.0) if floor is None else floor.score.copy()
        limit = np.full(count, bases, dtype=np.int64) if floor is None else floor.base + 1
        return cls(score, limit, np.full(count, -1, dtype=np.int64), np.zeros(count), np.zeros(count))

    def leads(self, rows: Int64s, score: Float64s, base: Int64s) -> Bools:
        """Whether pairs of this similarity would be the best of their rows."""
        best = self.score[rows]
        return np.asarray((score > best) | ((score == best) & (base < self.limit[rows])), dtype=np.bool_)

    def enter(self, rows: Int64s, base: Int64s, score: Float64s, extension: Float64s, intension: Float64s) -> None:
        """Enter pairs; of several of a row the best counts."""
        order = np.lexsort((base, -score, rows))
        order = order[group_starts(rows[order])]
        order = order[self.leads(rows[order], score[order], base[order])]
        row = rows[order]
        self.score[row], self.limit[row], self.base[row] = score[order], base[order], base[order]
        self.extension[row], self.intension[row] = extension[order], intension[order]


def _able_rows(
    current: Concepts, edges: sparse.csr_array, base: BaseLattice, settings: SimilaritySettings, floor: Floor
) -> Int64s:
    """Rows that may reach their floors by what their extensions are, whatever their words.

    To make words' similarities ready is most of a search's work, so it is worth to know before whose are needed.
    """
    able = np.zeros(len(current), dtype=np.bool_)
    step = max(1, BLOCK_CELLS // len(base))
    for start in range(0, len(current), step):
        rows = np.arange(start, min(len(current), start + step), dtype=np.int64)
        row, _, extension = _extensions(current.select(rows), edges, base, settings)
        largest = np.zeros(len(rows))
        starts = group_starts(row)
        if len(starts):
            largest[row[starts]] = np.maximum.reduceat(extension, starts)
        same_words = np.ones(len(rows))
        # With the weight of P08 Sim is convex in the extension, too.
        bound = np.maximum(
            settings.upper_bound(largest, same_words), settings.upper_bound(np.zeros(len(rows)), same_words)
        )
        able[rows] = bound >= floor.score[rows]
    return np.flatnonzero(able).astype(np.int64)


def _extensions(
    current: Concepts, edges: sparse.csr_array, base: BaseLattice, settings: SimilaritySettings
) -> tuple[Int64s, Int64s, Float64s]:
    """(row, column, extension) of the pairs whose extension is above 0, by ascending rows."""
    members = _ones(current.extent_indptr, current.extent_indices, edges.shape[0], np.int64)
    counts = (members @ edges) @ base.extents
    row = np.repeat(np.arange(len(current), dtype=np.int64), np.diff(counts.indptr))
    column = counts.indices.astype(np.int64)
    larger = np.maximum(current.support[row], base.supports[column])
    extension = np.minimum(counts.data / (larger * (EDGE_KINDS if settings.extension == "links" else 1)), 1.0)
    return row, column, extension


def _chunks(current: Concepts, rows: Int64s, base: BaseLattice, word_count: int) -> Iterator[tuple[Int64s, Int64s]]:
    """Rows in groups whose words' similarities fit the memory budget, with the distinct words of each, ascending."""
    limit = _word_limit(base)
    waiting = [rows] if len(rows) else []
    while waiting:
        group = waiting.pop()
        seen = np.zeros(word_count, dtype=np.bool_)
        seen[current.select(group).intent_indices] = True
        if len(group) > 1 and np.count_nonzero(seen) > limit:
            middle = len(group) // 2
            waiting += [group[middle:], group[:middle]]
        else:
            yield group, np.flatnonzero(seen)


def _word_limit(base: BaseLattice) -> int:
    """Number of words whose similarities fit the memory budget."""
    return max(1, CACHE_BYTES // (10 * (len(base.words) + 1) + 2 * len(base)))


class _WordSimilarities:
    """Similarities of words to the v words of a base lattice; those used last are kept.

    Attributes:
        places: row of each word in the arrays below, -1 for a word that has none, int64[words of the hierarchy].
        exact: ics, float64[rows, v + 1]; the last column, where `BaseLattice.padded` points for filling, is -1.
        upper: the same in steps of `BOUND_UNITS`, rounded up, uint16[rows, v].
        column_maxima: the largest of `upper` among the words of each column's intent, uint16[rows, b].
    """

    def __init__(self) -> None:
        self.places = np.zeros(0, dtype=np.int64)
        self.exact = np.zeros((0, 0))
        self.upper = np.zeros((0, 0), dtype=np.uint16)
        self.column_maxima = np.zeros((0, 0), dtype=np.uint16)
        self._rows: IcsRows | None = None
        self._words = np.zeros(0, dtype=np.int64)
        self._used = np.zeros(0, dtype=np.int64)
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[_WordSimilarities], tuple[()]]:
        """What is kept can be made anew, so copies begin with nothing."""
        return _WordSimilarities, ()

    @contextmanager
    def taken(self) -> Iterator[_WordSimilarities]:
        """These similarities, or others that begin with nothing while another thread works with these."""
        if not self._lock.acquire(blocking=False):
            yield _WordSimilarities()
            return
        try:
            yield self
        finally:
            self._lock.release()

    def provide(self, words: Int64s, base: BaseLattice, hierarchy: WeightedHierarchy) -> None:
        """Have rows for all of some distinct words, in place of those of words that were not used for longest."""
        base_words = self._rows
        if base_words is None or base_words.hierarchy is not hierarchy or len(words) > len(self._words):
            base_words = self._forget(max(len(words), min(_word_limit(base), len(hierarchy))), base, hierarchy)
        now = self._used.max(initial=0) + 1
        have = self.places[words] >= 0
        missing = words[~have]
        self._used[self.places[words[have]]] = now
        rows = np.argsort(self._used, kind="stable")[: len(missing)]
        dropped = self._words[rows]
        self.places[dropped[dropped >= 0]] = -1
        self.places[missing], self._words[rows], self._used[rows] = rows, missing, now
        step = max(1, BLOCK_CELLS // max(1, len(base), len(base.words)))
        for start in range(0, len(missing), step):
            self._write(missing[start : start + step], rows[start : start + step], base, base_words)

    def _forget(self, rows: int, base: BaseLattice, hierarchy: WeightedHierarchy) -> IcsRows:
        self._rows = IcsRows.of(hierarchy, base.words)
        self._words, self._used = np.full(rows, -1, dtype=np.int64), np.zeros(rows, dtype=np.int64)
        self.places = np.full(len(hierarchy), -1, dtype=np.int64)
        self.exact = np.empty((rows, len(base.words) + 1))
        self.upper = np.empty((rows, len(base.words)), dtype=np.uint16)
        self.column_maxima = np.empty((rows, len(base)), dtype=np.uint16)
        return self._rows

    def _write(self, words: Int64s, rows: Int64s, base: BaseLattice, base_words: IcsRows) -> None:
        exact = np.full((len(base.words) + 1, len(words)), -1.0)
        base_words.write(words, exact[:-1])
        self.exact[rows] = exact.T
        exact *= BOUND_UNITS
        upper = np.ceil(exact[:-1], out=exact[:-1]).astype(np.uint16)
        self.upper[rows] = upper.T
        maxima = np.zeros((len(base), len(words)), dtype=np.uint16)
        for i in range(base.padded.shape[1]):
            longer = int(np.searchsorted(base.sizes, i, side="right"))
            np.maximum(maxima[longer:], upper[base.padded[longer:, i]], out=maxima[longer:])
        self.column_maxima[rows] = maxima.T


def _search_chunk(
    current: Concepts,
    edges: sparse.csr_array,
    base: BaseLattice,
    settings: SimilaritySettings,
    rows: Int64s,
    similarities: _WordSimilarities,
    race: _Race,
) -> None:
    sizes = np.diff(current.intent_indptr)[rows]
    step = max(1, BLOCK_CELLS // len(base))
    for size in np.unique(sizes).tolist():
        of_size = rows[sizes == size]
        for start in range(0, len(of_size), step):
            part = of_size[start : start + step]
            _Block.of(current.select(part), part, edges, base, settings, similarities, race).search()


@dataclass(eq=False)
class _Block:
    """Current concepts with one number of words, against all columns.

    Attributes:
        rows: rows of the race, int64[r].
        intents: rows of the words' similarities, int64[r, |Y2|].
        linked_rows: position in `rows` of each pair with an extension above 0, ascending, int64[p].
        linked_columns: its column, int64[p].
        linked_extension: its extension, float64[p].
    """

    base: BaseLattice
    settings: SimilaritySettings
    similarities: _WordSimilarities
    race: _Race
    rows: Int64s
    intents: Int64s
    linked_rows: Int64s
    linked_columns: Int64s
    linked_extension: Float64s

    @classmethod
    def of(
        cls,
        current: Concepts,
        rows: Int64s,
        edges: sparse.csr_array,
        base: BaseLattice,
        settings: SimilaritySettings,
        similarities: _WordSimilarities,
        race: _Race,
    ) -> _Block:
        """The block of current concepts, which are at some rows of the race."""
        intents = similarities.places[current.intent_indices].reshape(len(rows), -1)
        return cls(base, settings, similarities, race, rows, intents, *_extensions(current, edges, base, settings))

    def search(self) -> None:
        """Settle the best pair of each row."""
        intension = self._intension_bounds()
        linked_intension = intension[self.linked_rows, self.linked_columns].astype(np.float64)
        bounds = self.settings.upper_bound(self.linked_extension, linked_intension)
        intension[self.linked_rows, self.linked_columns] = -1
        if self._widening() < 4 * 10.0**-SIMILARITY_DECIMALS:
            intension[intension >= 0] = 1.0
        self._try_best_linked(bounds)
        unlinked = self._try_unlinked(intension)
        linked = np.flatnonzero(self._leads(self.linked_rows, self.linked_columns, bounds))
        self._try_all(
            np.concatenate([self.linked_rows[linked], unlinked[0]]),
            np.concatenate([self.linked_columns[linked], unlinked[1]]),
            np.concatenate([self.linked_extension[linked], np.zeros(len(unlinked[0]))]),
            np.concatenate([bounds[linked], unlinked[2]]),
        )

    def _norms(self, columns: Int64s) -> Int64s:
        """What the matchings with these columns are divided by; 1 where both or one intent is empty and they are 0."""
        size, sizes = self.intents.shape[1], self.base.sizes[columns]
        norms = np.minimum(sizes, size) if self.settings.intension_norm == "min" else np.maximum(sizes, size)
        return np.maximum(norms, 1)

    def _widening(self) -> float:
        """Least difference between the similarity of an unlinked pair and its bound, unless that is 0 or attained."""
        weight = 1.0 if self.settings.weight is None else 1.0 - self.settings.weight
        least = 1.0 / (BOUND_UNITS * max(self.intents.shape[1], self.base.padded.shape[1], 1))
        return float(weight * least * BOUND_SLACK)

    def _intension_bounds(self) -> Float32s:
        """Upper bounds of the intension of all pairs, float32[r, b]: sums of the smaller intent's largest ics."""
        base, size = self.base, self.intents.shape[1]
        smaller = int(np.searchsorted(base.sizes, size, side="right"))
        words = int(base.word_counts[smaller])
        largest = BOUND_UNITS * min(size, base.padded.shape[1])
        dtype = np.dtype(np.uint16 if largest <= np.iinfo(np.uint16).max else np.uint32)
        sums = np.zeros((len(self.rows), len(base)), dtype=dtype)
        if smaller and size:
            maxima = self.similarities.upper[self.intents[:, 0], :words]
            for i in range(1, size):
                np.maximum(maxima, self.similarities.upper[self.intents[:, i], :words], out=maxima)
            sums[:, :smaller] = (base.intents[:smaller, :words] @ maxima.T.astype(dtype, order="C")).T
        least = int(np.searchsorted(base.sizes, size, side="left"))
        if size and least < len(base):
            others = self.similarities.column_maxima[self.intents[:, 0], least:].astype(dtype)
            for i in range(1, size):
                others += self.similarities.column_maxima[self.intents[:, i], least:]
            sums[:, smaller:] = others[:, smaller - least :]
            np.minimum(sums[:, least:smaller], others[:, : smaller - least], out=sums[:, least:smaller])
        scale = 1 / (self._norms(np.arange(len(base))) * (BOUND_UNITS * (1 - BOUND_SLACK)))
        bounds = np.multiply(sums, scale.astype(np.float32), dtype=np.float32)
        return np.minimum(bounds, 1.0, out=bounds)

    def _leads(self, rows: Int64s, columns: Int64s, bounds: Float64s) -> Bools:
        return self.race.leads(self.rows[rows], bounds, self.base.columns[columns])

    def _try_best_linked(self, bounds: Float64s) -> None:
        """Examine the linked pair with the largest bound of each row, and strike its bound out."""
        starts = group_starts(self.linked_rows)
        if not len(starts):
            return
        lengths = np.diff(starts, append=len(bounds))
        top = bounds == np.repeat(np.maximum.reduceat(bounds, starts), lengths)
        ranks = np.where(top, self.base.columns[self.linked_columns], len(self.base))
        chosen = np.flatnonzero(top & (ranks == np.repeat(np.minimum.reduceat(ranks, starts), lengths)))
        chosen = chosen[self._leads(self.linked_rows[chosen], self.linked_columns[chosen], bounds[chosen])]
        self._examine(self.linked_rows[chosen], self.linked_columns[chosen], self.linked_extension[chosen])
        bounds[chosen] = -1.0

    def _try_unlinked(self, intension: Float32s) -> tuple[Int64s, Int64s, Float64s]:
        """Examine unlinked pairs, the largest bound of each row first.

        Args:
            intension: bounds of the intension, float32[r, b]; negative for pairs that are no candidates. Overwritten.

        Returns:
            (rows, columns, bounds) of the pairs that could still lead.
        """
        active = np.arange(len(self.rows), dtype=np.int64)
        for _ in range(UNLINKED_ROUNDS):
            left = intension if len(active) == len(intension) else intension[active]
            top = left.max(axis=1)
            bound = self._unlinked_bound(top)
            going = np.flatnonzero((top >= 0) & (bound >= self.race.score[self.rows[active]]))
            if not len(going):
                return _no_pairs()
            left = left if len(going) == len(left) else left[going]
            active, top, bound = active[going], top[going], bound[going]
            ranks = np.where(left == top[:, None], self.base.columns, len(self.base))
            columns = ranks.argmin(axis=1)
            leading = self._leads(active, columns, bound)
            active, columns, bound = active[leading], columns[leading], bound[leading]
            similarity = self._examine(active, columns, np.zeros(len(active)))
            intension[active, columns] = -1
            # What is left of a row that attained its bound is less similar, or as similar with a larger id.
            active = active[similarity < bound]
        left = intension[active]
        place, columns = np.nonzero(left >= 0)
        bound = self._unlinked_bound(left[place, columns])
        leading = self._leads(active[place], columns, bound)
        return active[place[leading]], columns[leading], bound[leading]

    def _unlinked_bound(self, intension: Float32s) -> Float64s:
        return self.settings.upper_bound(np.zeros(len(intension)), intension.astype(np.float64))

    def _try_all(self, rows: Int64s, columns: Int64s, extension: Float64s, bounds: Float64s) -> None:
        """Examine pairs by descending bounds, a few of a row, then twice as many, until none could lead."""
        count = FIRST_TRIES
        while len(rows):
            order = np.lexsort((self.base.columns[columns], -bounds, rows))
            rows, columns, extension, bounds = rows[order], columns[order], extension[order], bounds[order]
            starts = group_starts(rows)
            now = np.arange(len(rows)) - np.repeat(starts, np.diff(starts, append=len(rows))) < count
            self._examine(rows[now], columns[now], extension[now])
            left = ~now & self._leads(rows, columns, bounds)
            rows, columns, extension, bounds = rows[left], columns[left], extension[left], bounds[left]
            count *= 2

    def _examine(self, rows: Int64s, columns: Int64s, extension: Float64s) -> Float64s:
        """Enter pairs into the race with their similarities.

        Returns:
            The similarities, float64[len(rows)]; -1 for a pair that turned out not to lead.
        """
        self.race.examined += len(rows)
        base, size = self.base, self.intents.shape[1]
        result = np.full(len(rows), -1.0)
        smaller = base.sizes[columns] <= size
        for base_first, group in ((True, np.flatnonzero(smaller)), (False, np.flatnonzero(~smaller))):
            width = int(base.sizes[columns[group]].max(initial=0))
            step = max(1, BLOCK_CELLS // max(1, width * size))
            for start in range(0, len(group), step):
                part = group[start : start + step]
                current_words, base_words = self.intents[rows[part]], base.padded[columns[part], :width]
                places = (
                    (current_words[:, None, :], base_words[:, :, None])
                    if base_first
                    else (current_words[:, :, None], base_words[:, None, :])
                )
                values = self.similarities.exact[places]
                bound = values.max(axis=2, initial=0.0).sum(axis=1)
                left = self._could_lead(rows[part], columns[part], extension[part], bound)
                part, bound, values = part[left], bound[left], values[left]
                result[part] = self._settle(rows[part], columns[part], extension[part], bound, values)
        return result

    def _could_lead(self, rows: Int64s, columns: Int64s, extension: Float64s, bound: Float64s) -> Bools:
        """Whether pairs whose matchings have at most some weight could be the best of their rows."""
        return self._leads(rows, columns, self.settings.upper_bound(extension, bound / self._norms(columns)))

    def _settle(
        self, rows: Int64s, columns: Int64s, extension: Float64s, bound: Float64s, values: Float64s
    ) -> Float64s:
        """Enter pairs into the race.

        Args:
            rows: positions in `rows` of the block, int64[p].
            columns: int64[p].
            extension: float64[p].
            bound: sums of the rows' largest values, float64[p].
            values: similarities of words, those of the smaller intent in the rows, float64[p, words, words]; filling,
                where there is any, is negative and the last rows or columns.
        """
        counts = np.minimum(self.base.sizes[columns], self.intents.shape[1])
        matched, bound = _greedy_matchings(values, counts, bound)
        result = np.full(len(rows), -1.0)
        settled = matched == bound
        left = np.flatnonzero(settled)
        result[left] = self._enter(rows[left], columns[left], extension[left], matched[left])
        left = np.flatnonzero(~settled)
        left = left[self._could_lead(rows[left], columns[left], extension[left], bound[left])]
        self.race.assignments += len(left)
        # A row that is filling may have any column: it adds 0.
        chosen = np.zeros((len(left), values.shape[1]), dtype=np.int64)
        for i, (pair, words) in enumerate(zip(left.tolist(), counts[left].tolist(), strict=True)):
            chosen[i, :words] = linear_sum_assignment(values[pair, :words], maximize=True)[1]
        weights = np.maximum(np.take_along_axis(values[left], chosen[:, :, None], axis=2), 0.0).sum(axis=(1, 2))
        result[left] = self._enter(rows[left], columns[left], extension[left], weights)
        return result

    def _enter(self, rows: Int64s, columns: Int64s, extension: Float64s, weights: Float64s) -> Float64s:
        """Enter pairs into the race with the weights of their matchings, and give back their similarities."""
        intension = weights / self._norms(columns)
        similarity = self.settings.similarity(extension, intension)
        self.race.enter(self.rows[rows], self.base.columns[columns], similarity, extension, intension)
        return similarity


def _no_pairs() -> tuple[Int64s, Int64s, Float64s]:
    return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)


def _greedy_matchings(values: Float64s, counts: Int64s, row_bound: Float64s) -> tuple[Float64s, Float64s]:
    """Matchings made row by row, and upper bounds of the optimal ones.

    Args:
        values: float64[p, rows, columns], >= 0 and negative in filling; the filling is at the end of the rows or of the
            columns, and no block has more rows than columns without it.
        counts: matched pairs of each block, int64[p]: its rows without filling.
        row_bound: sums of the rows' largest values, float64[p].

    Returns:
        (weight of a matching, upper bound) float64[p] each; where they are equal the matching is optimal.
    """
    matched, bound = _greedy(values), row_bound.copy()
    behind = np.flatnonzero(matched < row_bound)
    column_maxima = -np.sort(-values[behind].max(axis=1, initial=0.0), axis=1)
    column_bound = np.where(np.arange(column_maxima.shape[1]) < counts[behind, None], column_maxima, 0.0).sum(axis=1)
    bound[behind] = np.minimum(row_bound[behind], column_bound)
    # In an optimal matching nobody can do better without somebody else's loss, so some order of the rows leads to it.
    for count in (2, 3):
        open_blocks = np.flatnonzero((matched < bound) & (counts == count))
        if len(open_blocks):
            for order in list(permutations(range(count)))[1:]:
                total = _greedy(values[open_blocks[:, None], order])
                matched[open_blocks] = np.maximum(matched[open_blocks], total)
            bound[open_blocks] = matched[open_blocks]
    return matched, bound


def _greedy(values: Float64s) -> Float64s:
    """Weight of the matchings that give each row in turn the largest value that is left, float64[p]."""
    free = values.copy()
    matched = np.zeros(len(values))
    block = np.arange(len(values))
    for row in range(values.shape[1]):
        best = free[:, row].argmax(axis=1)
        matched += np.maximum(values[block, row, best], 0.0)
        free[block, :, best] = -1.0
    return matched


def matching(hierarchy: WeightedHierarchy, base_words: Int64s, current_words: Int64s) -> list[tuple[int, int, float]]:
    """A maximum weight matching of two intents (P13 Def. 17): (base word, current word, ics) where ics is positive.

    Of equally good matchings one with as many equal words as possible is taken. Pairs are by ascending base word.
    """
    rows, columns = np.sort(base_words), np.sort(current_words)
    block = ics_block(hierarchy, rows, columns)
    # All bonuses together are less than a step of the grid of similarities, so that they never change the total.
    bonus = (rows[:, None] == columns) / (2 * ICS_UNITS * max(1, *block.shape))
    pairs = zip(*linear_sum_assignment(block + bonus, maximize=True), strict=True)
    return [
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
        intents: words of the current concepts that are someone's best, by id.
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

    What is known of a concept's objects is the floor of its search, so later batches are the cheaper ones.

    Args:
        current: the batch.
        ids: ids of its concepts, int64[n].
        edges: see `best_base_concepts`.
        base: the base lattice.
        hierarchy: the words' hierarchy.
        settings: how similarities are computed.
        best: the best scores before; a new object is given back, this one is not changed.
    """
    pairs = best_base_concepts(current, edges, base, hierarchy, settings, _floor(current, best))
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
    """An array with some values at their places and another one at all others."""
    array = np.full(shape, other, dtype=values.dtype)
    array[places] = values
    return array


def _floor(current: Concepts, best: BestScores) -> Floor:
    """What a concept's pairs must reach to improve one of its objects: the worst of what is known of them."""
    concept = np.repeat(np.arange(len(current), dtype=np.int64), current.support)
    score, base = best.score[current.extent_indices], best.base[current.extent_indices]
    worst = np.full(len(current), np.inf)
    np.minimum.at(worst, concept, score)
    last = np.full(len(current), -1, dtype=np.int64)
    at_worst = score == worst[concept]
    np.maximum.at(last, concept[at_worst], base[at_worst])
    return Floor(worst, last)


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
