"""The search for best base concepts: incumbents, bounds, extensions of pairs, and maximum weight matchings."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

import numpy as np
import scipy
from scipy import sparse

from semrank.transforms.columnar.arrays import (
    Bools,
    Float64s,
    Int32s,
    Int64s,
    entry_rows,
    group_lengths,
    group_starts,
    places_in_groups,
)
from semrank.transforms.lattice.context import Concepts
from semrank.transforms.similarity.base_lattice import BaseLattice, ones
from semrank.transforms.similarity.settings import EDGE_KINDS, SimilaritySettings

FIRST_TRIES = 4
"""Pairs of a row that are evaluated together at first; each round has a fixed cost of about that of some pairs."""


@dataclass(frozen=True, eq=False)
class LowerBounds:
    """Lower bounds of the best pair of each current concept, arrays of length n.

    Attributes:
        score: float64; pairs below it are ignored. -1 for no bound.
        base: position in the base lattice, int64; pairs of exactly this score are ignored after this base concept.
    """

    score: Float64s
    base: Int64s


@dataclass(eq=False)
class Incumbents:
    """Best pair so far of each row. Rows are current concepts, bases are positions in the base lattice.

    Attributes:
        score: similarity to reach, float64[n].
        limit: pairs of exactly this score must have a base below this one, int64[n].
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
    def start(cls, count: int, bases: int, lower: LowerBounds | None) -> Incumbents:
        """The incumbents before any pair is evaluated."""
        score = np.full(count, -1.0) if lower is None else lower.score.copy()
        limit = np.full(count, bases, dtype=np.int64) if lower is None else lower.base + 1
        return cls(score, limit, np.full(count, -1, dtype=np.int64), np.zeros(count), np.zeros(count))

    def improves(self, rows: Int64s, score: Float64s, base: Int64s) -> Bools:
        """Whether pairs of this similarity would replace the incumbents of their rows."""
        best = self.score[rows]
        return np.asarray((score > best) | ((score == best) & (base < self.limit[rows])), dtype=np.bool_)

    def unlinked_improves(self, settings: SimilaritySettings) -> Bools:
        """Whether an unlinked pair could still replace the incumbent of each row, bool[n]."""
        largest = settings.largest_unlinked
        return np.asarray((largest > self.score) | ((largest == self.score) & (self.limit > 0)), dtype=np.bool_)

    def update(self, rows: Int64s, base: Int64s, score: Float64s, extension: Float64s, intension: Float64s) -> None:
        """Replaces incumbents by pairs that improve on them; of several pairs of a row the best counts."""
        order = np.lexsort((base, -score, rows))
        order = order[group_starts(rows[order])]
        order = order[self.improves(rows[order], score[order], base[order])]
        row = rows[order]
        self.score[row], self.limit[row], self.base[row] = score[order], base[order], base[order]
        self.extension[row], self.intension[row] = extension[order], intension[order]


@dataclass(frozen=True, eq=False)
class Search:
    """Current concepts, and what they are compared with.

    Attributes:
        current: n current concepts; extents are rows of `edges`.
        edges: counts of links and c-edges between objects and queue URLs, CSR int64[objects, queue].
        base: the base lattice.
        settings: how similarities are computed.
        best: the incumbents of the current concepts, in their order.
    """

    current: Concepts
    edges: sparse.csr_array
    base: BaseLattice
    settings: SimilaritySettings
    best: Incumbents

    def linked(self, rows: Int64s, counts: sparse.csr_array | None = None) -> Pairs:
        """The pairs of some current concepts whose extension is above 0.

        Args:
            rows: the concepts, int64[r].
            counts: their `edge_counts`, where they are known.

        Returns:
            Pairs by ascending rows, which are positions in `rows`.
        """
        known = edge_counts(*self.current.extents(rows), self.edges) if counts is None else counts
        found = known @ self.base.extents
        row = entry_rows(found.indptr)
        column = found.indices.astype(np.int64)
        supports = self.current.support[rows[row]], self.base.supports[column]
        return Pairs(row, column, extensions_of(found.data, *supports, self.settings))


def edge_counts(indptr: Int64s, objects: Int32s, edges: sparse.csr_array) -> sparse.csr_array:
    """Counts of links and c-edges between the objects of extents and queue URLs, CSR int64[extents, queue]."""
    counts: sparse.csr_array = ones(indptr, objects, edges.shape[0], np.int64) @ edges
    return counts


def extensions_of(counts: Int64s, support: Int64s, base_support: Int64s, settings: SimilaritySettings) -> Float64s:
    """Ext of pairs of concepts from what counts between them (P13 Def. 14, Formica 2006), elementwise."""
    larger = np.maximum(np.maximum(support, base_support), 1) * (EDGE_KINDS if settings.extension == "links" else 1)
    return np.asarray(np.minimum(counts / larger, 1.0))


class Pairs(NamedTuple):
    """Pairs of concepts.

    Attributes:
        rows: positions of the current concepts, int64[p].
        columns: of the base concepts, int64[p].
        extension: float64[p].
    """

    rows: Int64s
    columns: Int64s
    extension: Float64s

    def select(self, chosen: Int64s | Bools | slice) -> Pairs:
        """Some of the pairs."""
        return Pairs(self.rows[chosen], self.columns[chosen], self.extension[chosen])


@dataclass(eq=False)
class Matcher:
    """Evaluates pairs of some current concepts.

    Attributes:
        base: the base lattice.
        settings: how similarities are computed.
        best: incumbents of all rows.
        rows: rows of `best` that take part, int64[r]; methods take positions in it.
        sizes: |Y2| of each, int64[r].
    """

    base: BaseLattice
    settings: SimilaritySettings
    best: Incumbents
    rows: Int64s
    sizes: Int64s

    def _smaller(self, rows: Int64s, columns: Int64s) -> Int64s:
        """Size of the smaller intent of pairs: the largest number of matched words."""
        return np.minimum(self.sizes[rows], self.base.sizes[columns])

    def _norms(self, rows: Int64s, columns: Int64s) -> Int64s:
        """Divisors of the matchings' weights; 1 where an intent is empty, whose weight is 0."""
        if self.settings.intension_norm == "min":
            return np.maximum(self._smaller(rows, columns), 1)
        return np.maximum(np.maximum(self.sizes[rows], self.base.sizes[columns]), 1)

    def _improves(self, rows: Int64s, columns: Int64s, bounds: Float64s) -> Bools:
        return self.best.improves(self.rows[rows], bounds, self.base.columns[columns])

    def _try_all(self, pairs: Pairs, bounds: Float64s) -> None:
        """Examines pairs by descending bounds, a few of a row, then twice as many, until none could improve."""
        count = FIRST_TRIES
        while len(pairs.rows):
            order = np.lexsort((self.base.columns[pairs.columns], -bounds, pairs.rows))
            pairs, bounds = pairs.select(order), bounds[order]
            starts = group_starts(pairs.rows)
            now = places_in_groups(starts, len(order)) < count
            self._examine(*pairs.select(now))
            left = ~now & self._improves(pairs.rows, pairs.columns, bounds)
            pairs, bounds = pairs.select(left), bounds[left]
            count *= 2

    def _examine(self, rows: Int64s, columns: Int64s, extension: Float64s) -> Float64s:
        """Evaluates pairs and updates the incumbents.

        Returns:
            The similarities, float64[len(rows)]; -1 for a pair that was excluded by a bound.
        """
        raise NotImplementedError

    def _weigh(self, rows: Int64s, columns: Int64s, extension: Float64s, values: Float64s) -> Float64s:
        """`_examine` for pairs whose words' similarities are known; `values` as in `_settle`."""
        result = np.full(len(rows), -1.0)
        bound = values.max(axis=2, initial=0.0).sum(axis=1)
        left = np.flatnonzero(self._could_improve(rows, columns, extension, bound))
        if not len(left):
            return result
        result[left] = self._settle(rows[left], columns[left], extension[left], bound[left], values[left])
        return result

    def _could_improve(self, rows: Int64s, columns: Int64s, extension: Float64s, bound: Float64s) -> Bools:
        """Whether pairs whose matchings have at most some weight could improve."""
        return self._improves(rows, columns, self.settings.upper_bound(extension, bound / self._norms(rows, columns)))

    def _settle(
        self, rows: Int64s, columns: Int64s, extension: Float64s, bound: Float64s, values: Float64s
    ) -> Float64s:
        """Evaluates pairs and updates the incumbents.

        Args:
            rows: positions in `rows` of the block, int64[p].
            columns: int64[p].
            extension: float64[p].
            bound: sums of the rows' largest values, float64[p].
            values: similarities of words, those of the smaller intent in the rows, float64[p, words, words]; filling,
                where there is any, is negative and the last rows or columns.
        """
        counts = self._smaller(rows, columns)
        matched, bound = _greedy_matchings(values, counts, bound)
        result = np.full(len(rows), -1.0)
        settled = matched == bound
        left = np.flatnonzero(settled)
        result[left] = self._update(rows[left], columns[left], extension[left], matched[left])
        left = np.flatnonzero(~settled)
        left = left[self._could_improve(rows[left], columns[left], extension[left], bound[left])]
        if not len(left):
            return result
        self.best.assignments += len(left)
        # A row that is filling may have any column: it adds 0.
        chosen = np.zeros((len(left), values.shape[1]), dtype=np.int64)
        for i, (pair, words) in enumerate(zip(left.tolist(), counts[left].tolist(), strict=True)):
            chosen[i, :words] = scipy.optimize.linear_sum_assignment(values[pair, :words], maximize=True)[1]
        weights = np.maximum(np.take_along_axis(values[left], chosen[:, :, None], axis=2), 0.0).sum(axis=(1, 2))
        result[left] = self._update(rows[left], columns[left], extension[left], weights)
        return result

    def _update(self, rows: Int64s, columns: Int64s, extension: Float64s, weights: Float64s) -> Float64s:
        """Updates the incumbents with pairs whose matchings are known; returns their similarities."""
        intension = weights / self._norms(rows, columns)
        similarity = self.settings.similarity(extension, intension)
        self.best.update(self.rows[rows], self.base.columns[columns], similarity, extension, intension)
        return similarity


def first_of_rows(rows: Int64s, bounds: Float64s, base: Int64s, bases: int) -> Int64s:
    """The pair with the largest bound of each row, of equal ones that with the first base concept.

    Args:
        rows: ascending, int64[p].
        bounds: float64[p].
        base: positions in the base lattice, int64[p].
        bases: number of base concepts.
    """
    starts = group_starts(rows)
    if not len(starts):
        return np.zeros(0, dtype=np.int64)
    lengths = group_lengths(starts, len(bounds))
    top = bounds == np.repeat(np.maximum.reduceat(bounds, starts), lengths)
    ranks = np.where(top, base, bases)
    return np.flatnonzero(top & (ranks == np.repeat(np.minimum.reduceat(ranks, starts), lengths)))


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
    # An optimal matching has no improving exchange, so greedy finds it for some order of the rows.
    for count in (2, 3):
        open_blocks = np.flatnonzero((matched < bound) & (counts == count))
        if len(open_blocks):
            for order in list(permutations(range(count)))[1:]:
                total = _greedy(values[open_blocks[:, None], order])
                matched[open_blocks] = np.maximum(matched[open_blocks], total)
            bound[open_blocks] = matched[open_blocks]
    return matched, bound


def _greedy(values: Float64s) -> Float64s:
    """Weights of greedy matchings: each row in turn takes the largest remaining value, float64[p]."""
    free = values.copy()
    matched = np.zeros(len(values))
    block = np.arange(len(values))
    for row in range(values.shape[1]):
        best = free[:, row].argmax(axis=1)
        matched += np.maximum(values[block, row, best], 0.0)
        free[block, :, best] = -1.0
    return matched
