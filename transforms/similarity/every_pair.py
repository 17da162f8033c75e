"""The best base concepts of current concepts whose words' similarities with the whole base lattice are computed.

Linked pairs are bounded and examined first. Unlinked pairs are bounded only where one could improve.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from semrank.transforms.columnar.arrays import Float64s, Int64s, group_starts
from semrank.transforms.similarity.base_lattice import BLOCK_CELLS, BOUND_UNITS, WordSimilarities, word_limit
from semrank.transforms.similarity.matching import Matcher, Pairs, Search, edge_counts, first_of_rows
from semrank.transforms.similarity.settings import SIMILARITY_DECIMALS

Float32s: TypeAlias = npt.NDArray[np.float32]
Units: TypeAlias = npt.NDArray[np.uint16]

BOUND_SLACK = 2.0**-12
"""Relative widening of a bound: far above the rounding error of a float32 product, so that what does not attain a
bound of 0 or 1 stays below it by more than similarities are rounded."""

UNLINKED_ROUNDS = 4
"""Unlinked pairs of a row examined one by one before all remaining ones are listed: most rows need one or two."""


def able_rows(search: Search) -> Int64s:
    """Rows that may reach their lower bounds, by their extensions alone.

    Computing words' similarities is most of a search's work, so this first finds the rows that need them.
    """
    count, settings = len(search.current), search.settings
    able = np.zeros(count, dtype=np.bool_)
    step = max(1, BLOCK_CELLS // len(search.base))
    for start in range(0, count, step):
        rows = np.arange(start, min(count, start + step), dtype=np.int64)
        row, _, extension = search.linked(rows)
        largest = np.zeros(len(rows))
        starts = group_starts(row)
        if len(starts):
            largest[row[starts]] = np.maximum.reduceat(extension, starts)
        same_words = np.ones(len(rows))
        # With the weight of P08 Sim is convex in the extension, too.
        bound = np.maximum(
            settings.upper_bound(largest, same_words), settings.upper_bound(np.zeros(len(rows)), same_words)
        )
        able[rows] = bound >= search.best.score[rows]
    return np.flatnonzero(able).astype(np.int64)


def chunks(search: Search, rows: Int64s, word_count: int) -> Iterator[tuple[Int64s, Int64s]]:
    """Rows in groups whose words' similarities fit the memory budget, with the distinct words of each, ascending."""
    limit = word_limit(search.base)
    waiting = [rows] if len(rows) else []
    while waiting:
        group = waiting.pop()
        seen = np.zeros(word_count, dtype=np.bool_)
        seen[search.current.intents(group)[1]] = True
        if len(group) > 1 and np.count_nonzero(seen) > limit:
            middle = len(group) // 2
            waiting += [group[middle:], group[:middle]]
        else:
            yield group, np.flatnonzero(seen)


def search_chunk(search: Search, rows: Int64s, similarities: WordSimilarities) -> None:
    """Finds the best base concepts of some rows, whose words' similarities are computed."""
    sizes = np.diff(search.current.intent_indptr)[rows]
    order = np.argsort(sizes, kind="stable")
    rows, sizes = rows[order], sizes[order]
    counts = edge_counts(*search.current.extents(rows), search.edges)
    step = max(1, BLOCK_CELLS // len(search.base))
    for first, end in pairwise([*group_starts(sizes).tolist(), len(rows)]):
        for start in range(first, end, step):
            part = slice(start, min(end, start + step))
            _Block.of(search, rows[part], counts[part], similarities).search()


@dataclass(eq=False)
class _Block(Matcher):
    """Current concepts with one number of words, against all columns.

    Attributes:
        intents: rows of the words' similarities, int64[r, |Y2|].
        similarities: similarities of their words.
        linked: the pairs with an extension above 0, by ascending rows.
    """

    intents: Int64s
    similarities: WordSimilarities
    linked: Pairs

    @classmethod
    def of(cls, search: Search, rows: Int64s, counts: sparse.csr_array, similarities: WordSimilarities) -> _Block:
        """The block of some current concepts, whose `edge_counts` are known."""
        indptr, words = search.current.intents(rows)
        intents, sizes = similarities.places[words].reshape(len(rows), -1), np.diff(indptr)
        linked = search.linked(rows, counts)
        return cls(search.base, search.settings, search.best, rows, sizes, intents, similarities, linked)

    def search(self) -> None:
        """Finds the best pair of each row."""
        maxima = self._maxima()
        bounds = self.settings.upper_bound(self.linked.extension, self._linked_intension(maxima))
        self._try_best_linked(bounds)
        unlinked = self._try_unlinked(maxima)
        left = np.flatnonzero(self._improves(self.linked.rows, self.linked.columns, bounds))
        linked = self.linked.select(left)
        pairs = Pairs(
            np.concatenate([linked.rows, unlinked[0]]),
            np.concatenate([linked.columns, unlinked[1]]),
            np.concatenate([linked.extension, np.zeros(len(unlinked[0]))]),
        )
        self._try_all(pairs, np.concatenate([bounds[left], unlinked[2]]))

    def _widening(self) -> float:
        """Least difference between the similarity of an unlinked pair and its bound, unless that is 0 or attained."""
        weight = 1.0 if self.settings.weight is None else 1.0 - self.settings.weight
        least = 1.0 / (BOUND_UNITS * max(self.intents.shape[1], self.base.padded.shape[1], 1))
        return float(weight * least * BOUND_SLACK)

    def _units_type(self) -> np.dtype[np.unsignedinteger]:
        """A type that holds the sum of the smaller intent's largest similarities."""
        largest = BOUND_UNITS * min(self.intents.shape[1], self.base.padded.shape[1])
        return np.dtype(np.uint16 if largest <= np.iinfo(np.uint16).max else np.uint32)

    def _unit_norms(self, rows: Int64s, columns: Int64s) -> Float64s:
        """Divisors that turn sums in `BOUND_UNITS` into bounds of the intension, float64[p]."""
        return np.asarray(self._norms(rows, columns) * (BOUND_UNITS * (1 - BOUND_SLACK)))

    def _maxima(self) -> Units:
        """The largest of `upper` of each row's words with each word of the columns with no more words, [r, words]."""
        size = self.intents.shape[1]
        words = int(self.base.word_counts[np.searchsorted(self.base.sizes, size, side="right")]) if size else 0
        maxima = np.zeros((len(self.rows), words), dtype=np.uint16)
        for i in range(size):
            np.maximum(maxima, self.similarities.upper[self.intents[:, i], :words], out=maxima)
        return maxima

    def _linked_intension(self, maxima: Units) -> Float64s:
        """Upper bounds of the intension of the linked pairs, float64[p]: sums of the smaller intent's largest ics."""
        (rows, columns), size = self.linked[:2], self.intents.shape[1]
        sizes = self.base.sizes[columns]
        sums = np.zeros(len(rows), dtype=self._units_type())
        smaller = np.flatnonzero(sizes <= size)
        for i in range(min(size, self.base.padded.shape[1])):
            smaller = smaller[sizes[smaller] > i]
            sums[smaller] += maxima[rows[smaller], self.base.padded[columns[smaller], i]]
        larger = np.flatnonzero(sizes >= size)
        own = np.zeros(len(larger), dtype=sums.dtype)
        for i in range(size):
            own += self.similarities.column_maxima[self.intents[rows[larger], i], columns[larger]]
        equal = sizes[larger] == size
        sums[larger] = np.where(equal, np.minimum(own, sums[larger]), own)
        bounds = sums / self._unit_norms(rows, columns)
        return np.asarray(np.minimum(bounds, 1.0))

    def _intension(self, rows: Int64s, maxima: Units) -> Float32s:
        """Upper bounds of the intension of some rows with all columns, float32[len(rows), b]."""
        base, intents = self.base, self.intents[rows]
        size, dtype = intents.shape[1], self._units_type()
        smaller = int(np.searchsorted(base.sizes, size, side="right"))
        sums = np.zeros((len(rows), len(base)), dtype=dtype)
        if smaller and size:
            words = maxima.shape[1]
            sums[:, :smaller] = (base.intents[:smaller, :words] @ maxima[rows].T.astype(dtype, order="C")).T
        least = int(np.searchsorted(base.sizes, size, side="left"))
        if size and least < len(base):
            others = self.similarities.column_maxima[intents[:, 0], least:].astype(dtype)
            for i in range(1, size):
                others += self.similarities.column_maxima[intents[:, i], least:]
            sums[:, smaller:] = others[:, smaller - least :]
            np.minimum(sums[:, least:smaller], others[:, : smaller - least], out=sums[:, least:smaller])
        columns = np.arange(len(base))
        scale = 1 / self._unit_norms(np.zeros_like(columns), columns)
        bounds = np.multiply(sums, scale.astype(np.float32), dtype=np.float32)
        return np.minimum(bounds, 1.0, out=bounds)

    def _unlinked_intension(self, rows: Int64s, maxima: Units) -> Float32s:
        """`_intension`, and -1 for linked pairs."""
        intension = self._intension(rows, maxima)
        place = np.full(len(self.rows), -1, dtype=np.int64)
        place[rows] = np.arange(len(rows))
        known = place[self.linked.rows]
        intension[known[known >= 0], self.linked.columns[known >= 0]] = -1
        if self._widening() < 4 * 10.0**-SIMILARITY_DECIMALS:
            intension[intension >= 0] = 1.0
        return intension

    def _try_best_linked(self, bounds: Float64s) -> None:
        """Examines the linked pair with the largest bound of each row, and sets its bound to -1."""
        chosen = first_of_rows(self.linked.rows, bounds, self.base.columns[self.linked.columns], len(self.base))
        chosen = chosen[self._improves(self.linked.rows[chosen], self.linked.columns[chosen], bounds[chosen])]
        self._examine(*self.linked.select(chosen))
        bounds[chosen] = -1.0

    def _try_unlinked(self, maxima: Units) -> tuple[Int64s, Int64s, Float64s]:
        """Examines unlinked pairs of the rows that one could improve, the largest bound of each row first.

        Returns:
            (rows, columns, bounds) of the pairs that could still improve.
        """
        rows = np.flatnonzero(self.best.unlinked_improves(self.settings)[self.rows])
        if not len(rows):
            return _no_pairs()
        intension = self._unlinked_intension(rows, maxima)
        active = np.arange(len(rows), dtype=np.int64)
        for _ in range(UNLINKED_ROUNDS):
            left = intension if len(active) == len(intension) else intension[active]
            top = left.max(axis=1)
            bound = self._unlinked_bound(top)
            going = np.flatnonzero((top >= 0) & (bound >= self.best.score[self.rows[rows[active]]]))
            if not len(going):
                return _no_pairs()
            left = left if len(going) == len(left) else left[going]
            active, top, bound = active[going], top[going], bound[going]
            ranks = np.where(left == top[:, None], self.base.columns, len(self.base))
            columns = ranks.argmin(axis=1)
            improving = self._improves(rows[active], columns, bound)
            active, columns, bound = active[improving], columns[improving], bound[improving]
            similarity = self._examine(rows[active], columns, np.zeros(len(active)))
            intension[active, columns] = -1
            # Other pairs of a row that attained its bound are less similar, or equally similar with a larger id.
            active = active[similarity < bound]
        left = intension[active]
        place, columns = np.nonzero(left >= 0)
        bound = self._unlinked_bound(left[place, columns])
        improving = self._improves(rows[active[place]], columns, bound)
        return rows[active[place[improving]]], columns[improving], bound[improving]

    def _unlinked_bound(self, intension: Float32s) -> Float64s:
        return self.settings.upper_bound(np.zeros(len(intension)), intension.astype(np.float64))

    def _examine(self, rows: Int64s, columns: Int64s, extension: Float64s) -> Float64s:
        self.best.examined += len(rows)
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
                result[part] = self._weigh(rows[part], columns[part], extension[part], values)
        return result


def _no_pairs() -> tuple[Int64s, Int64s, Float64s]:
    return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
