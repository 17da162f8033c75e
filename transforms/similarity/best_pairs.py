"""The best base concept of each current concept, exactly (P13 Def. 6, 17-20), with bounds before matchings.

    extension(C1, C2) = (links and c-edges between X1 and X2, both ways) / (4 max(|X1|, |X2|)), at most 1
    intension(C1, C2) = maximum weight matching of Y1 and Y2 under ics / n
    Sim = w extension + (1 - w) intension

The extension of all pairs of a block is one sparse product. The intension of a pair is at most the sum of the row
maxima of its ics block, and of the column maxima; it is at least the number of words that both intents have. Only pairs
whose upper bound reaches the best lower bound of their current concept are looked at, and only those whose row maxima
fall into one column twice need an optimal assignment. ics values are multiples of 2^-40, so all these sums are exact in
float64: a bound that is attained equals the value, ties are ties, and nothing depends on how the work was cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from schemas.errors import InputError
from transforms.columnar.arrays import Int64s, group_starts, pointers, positions
from transforms.lattice.context import Concepts
from transforms.similarity.hierarchy import (
    ICS_UNITS,
    TopProbability,
    WeightedHierarchy,
    check_hierarchy_options,
    ics_block,
)

Float64s = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

BLOCK_CELLS = 1 << 21
"""Pairs of concepts, or cells of an ics block, handled at a time: an array of so many float64 is 16 MB."""

INTENSION_NORMS = ("min", "max")
EXTENSIONS = ("links", "objects")


@dataclass(frozen=True)
class SimilaritySettings:
    """How the similarity of concepts is computed.

    Attributes:
        weight: w of the extension in [0, 1] (P13), or None for extension / (extension + intension) (P08).
        intension_norm: `min` divides a matching by the smaller intent (P13), `max` by the larger (Formica 2006).
        extension: `links` counts links and c-edges, `objects` shared objects (Formica 2006, P13 Eq. 4).
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
        """Sim of extensions and intensions, elementwise."""
        if self.weight is not None:
            return self.weight * extension + (1 - self.weight) * intension
        total = extension + intension
        return np.divide(
            extension * extension + intension * intension, total, out=np.zeros_like(total), where=total > 0
        )

    def upper_bound(self, extension: Float64s, intension_bound: Float64s) -> Float64s:
        """The largest Sim that an intension of at most the bound allows."""
        bound = self.similarity(extension, intension_bound)
        # With the weight of P08 the similarity falls, then rises with the intension: its maximum is at an end.
        return bound if self.weight is not None else np.maximum(bound, extension)


@dataclass(frozen=True, eq=False)
class BaseLattice:
    """The base concepts, in the order of their ids.

    Attributes:
        concepts: extents as queue positions, intents as word numbers.
        ids: ascending, int64[n].
        extents: CSR float64[queue, n], 1 where a queue URL belongs to a concept.
        words: the distinct words of the intents, ascending, int64[m].
        word_places: place in `words` of each intent's words, int64[total].
        intents: CSR float64[n, m].
        sizes: number of words of each intent, int64[n].
    """

    concepts: Concepts
    ids: Int64s
    extents: sparse.csr_array
    words: Int64s
    word_places: Int64s
    intents: sparse.csr_array
    sizes: Int64s

    @classmethod
    def of(cls, concepts: Concepts, ids: Int64s, queue_size: int) -> BaseLattice:
        """The base lattice; `ids` must ascend.

        Raises:
            ValueError: the ids do not ascend, so two concepts share one or the order is lost.
        """
        if len(ids) > 1 and not (ids[1:] > ids[:-1]).all():
            raise ValueError(f"ids of {len(ids)} base concepts do not ascend strictly, expected distinct sorted ids")
        words, places = np.unique(concepts.intent_indices.astype(np.int64), return_inverse=True)
        extents = _indicator(concepts.extent_indptr, concepts.extent_indices, queue_size)
        intents = _indicator(concepts.intent_indptr, places, len(words))
        sizes = np.diff(concepts.intent_indptr)
        return cls(concepts, ids, sparse.csr_array(extents.T), words, places.astype(np.int64), intents, sizes)

    def __len__(self) -> int:
        return len(self.ids)


class BestPairs(NamedTuple):
    """The best base concept of each current concept, arrays of length n.

    Attributes:
        base: its position in the base lattice, int64; -1 where the concept was passed over.
        score: Sim, float64.
        extension: float64.
        intension: float64.
        assignments: number of optimal assignments that were solved.
    """

    base: Int64s
    score: Float64s
    extension: Float64s
    intension: Float64s
    assignments: int


def _indicator(indptr: Int64s, indices: npt.NDArray[np.integer], width: int) -> sparse.csr_array:
    ones = np.ones(len(indices), dtype=np.float64)
    return sparse.csr_array((ones, indices.astype(np.int64), indptr), shape=(len(indptr) - 1, width))


def best_base_concepts(
    current: Concepts,
    edges: sparse.csr_array,
    base: BaseLattice,
    hierarchy: WeightedHierarchy,
    settings: SimilaritySettings,
    floor: Float64s | None = None,
) -> BestPairs:
    """The base concept most similar to each current concept; of equal ones that with the smallest id.

    Args:
        current: n current concepts; extents are rows of `edges`.
        edges: counts of links and c-edges (or of shared objects) between objects and queue URLs, CSR [objects, queue].
        base: the base lattice, not empty.
        hierarchy: the words' hierarchy.
        settings: how similarities are computed.
        floor: float64[n]; a concept whose similarity is certainly below it is passed over.
    """
    parts: list[BestPairs] = []
    rows = max(1, BLOCK_CELLS // max(1, len(base)))
    for start in range(0, len(current), rows):
        block = current.slice(start, min(start + rows, len(current)))
        part = _best_of_block(
            block, edges, base, hierarchy, settings, None if floor is None else floor[start : start + rows]
        )
        parts.append(part)
    if not parts:
        empty = np.zeros(0, dtype=np.float64)
        return BestPairs(np.zeros(0, dtype=np.int64), empty, empty, empty, 0)
    columns = [np.concatenate([part[number] for part in parts]) for number in range(4)]
    return BestPairs(columns[0], columns[1], columns[2], columns[3], sum(part.assignments for part in parts))


class _Pairs(NamedTuple):
    """Extension and bounds of the intension of all pairs of a block, float64[n, base]."""

    extension: Float64s
    least: Float64s
    most: Float64s


def _best_of_block(
    current: Concepts,
    edges: sparse.csr_array,
    base: BaseLattice,
    hierarchy: WeightedHierarchy,
    settings: SimilaritySettings,
    floor: Float64s | None,
) -> BestPairs:
    words, places = np.unique(current.intent_indices.astype(np.int64), return_inverse=True)
    similarities = ics_block(hierarchy, base.words, words)
    sizes = np.diff(current.intent_indptr)
    norm = np.minimum if settings.intension_norm == "min" else np.maximum
    divisor = np.maximum(norm(sizes[:, None], base.sizes[None, :]), 1).astype(np.float64)
    pairs = _Pairs(
        _extensions(current, edges, base, settings),
        _least_intensions(current, words, base) / divisor,
        _most_intensions(current, places, similarities, base) / divisor,
    )
    upper = settings.upper_bound(pairs.extension, pairs.most)
    known = pairs.least == pairs.most
    lower = np.where(known, settings.similarity(pairs.extension, pairs.most), -1.0)
    if settings.weight is not None:
        lower = np.maximum(lower, settings.similarity(pairs.extension, pairs.least))
    best_lower = lower.max(axis=1)
    if floor is not None:
        best_lower = np.maximum(best_lower, floor)
    looked_at = upper >= best_lower[:, None]
    intension = np.where(known, pairs.most, -1.0)
    opened = _Open(current, places, similarities, base, divisor, settings, pairs.extension)
    assignments = opened.settle(looked_at & ~known, upper, best_lower, intension)
    settled = looked_at & (intension >= 0)
    score = np.where(settled, settings.similarity(pairs.extension, np.maximum(intension, 0)), -1.0)
    chosen = score.argmax(axis=1)
    row = np.arange(len(current))
    found = score[row, chosen] >= 0
    return BestPairs(
        np.where(found, chosen, -1).astype(np.int64),
        score[row, chosen],
        pairs.extension[row, chosen],
        np.maximum(intension[row, chosen], 0),
        assignments,
    )


def _extensions(
    current: Concepts, edges: sparse.csr_array, base: BaseLattice, settings: SimilaritySettings
) -> Float64s:
    members = _indicator(current.extent_indptr, current.extent_indices, edges.shape[0])
    counts = ((members @ edges.astype(np.float64)) @ base.extents).toarray()
    larger = np.maximum(current.support[:, None], base.concepts.support[None, :])
    return np.asarray(np.minimum(counts / ((4 if settings.extension == "links" else 1) * larger), 1.0))


def _least_intensions(current: Concepts, words: Int64s, base: BaseLattice) -> Float64s:
    """Number of words that both intents have: matched with themselves they give 1 each."""
    columns = positions(base.words, words)
    _, word_of = np.unique(current.intent_indices.astype(np.int64), return_inverse=True)
    column = columns[word_of]
    owner = np.repeat(np.arange(len(current), dtype=np.int64), np.diff(current.intent_indptr))
    kept = column >= 0
    intents = _indicator(pointers(np.bincount(owner[kept], minlength=len(current))), column[kept], len(base.words))
    return np.asarray((intents @ sparse.csr_array(base.intents.T)).toarray())


def _most_intensions(current: Concepts, places: Int64s, similarities: Float64s, base: BaseLattice) -> Float64s:
    """The smaller of the sums of row and of column maxima of each pair's ics block, float64[n, base]."""
    count, total = len(current), len(base)
    by_rows = np.zeros((count, total))
    column_start = 0
    filled = np.flatnonzero(np.diff(current.intent_indptr) > 0)
    width = max(1, BLOCK_CELLS // max(1, len(base.words)))
    while column_start < len(filled):
        first = current.intent_indptr[filled[column_start]]
        stop = int(np.searchsorted(current.intent_indptr[filled], first + width, side="right"))
        rows = filled[column_start : max(stop, column_start + 1)]
        last = current.intent_indptr[rows[-1] + 1]
        maxima = np.maximum.reduceat(similarities[:, places[first:last]], current.intent_indptr[rows] - first, axis=1)
        by_rows[rows] = (base.intents @ maxima).T
        column_start += len(rows)
    intents = _indicator(current.intent_indptr, places, similarities.shape[1])
    by_columns = np.zeros((count, total))
    with_words = np.flatnonzero(base.sizes > 0)
    if len(with_words):
        starts = base.concepts.intent_indptr[with_words]
        per_base = max(1, BLOCK_CELLS // max(1, similarities.shape[1]))
        for begin in range(0, len(with_words), max(1, per_base // max(1, int(base.sizes.max())))):
            end = min(len(with_words), begin + max(1, per_base // max(1, int(base.sizes.max()))))
            low, high = starts[begin], base.concepts.intent_indptr[with_words[end - 1] + 1]
            maxima = np.maximum.reduceat(similarities[base.word_places[low:high]], starts[begin:end] - low, axis=0)
            by_columns[:, with_words[begin:end]] = intents @ maxima.T
    return np.minimum(by_rows, by_columns)


class _Open(NamedTuple):
    """A block of pairs whose intensions are not yet known."""

    current: Concepts
    places: Int64s
    similarities: Float64s
    base: BaseLattice
    divisor: Float64s
    settings: SimilaritySettings
    extension: Float64s

    def settle(self, open_pairs: Bools, upper: Float64s, best: Float64s, intension: Float64s) -> int:
        """Finds the intension of the open pairs that can still be the best of their current concept.

        Pairs are taken in the order of their bounds, so that most of them are ruled out by an earlier one.

        Args:
            open_pairs: bool[n, base].
            upper: bounds of the similarities, float64[n, base].
            best: the best lower bound of each current concept, float64[n]; raised in place.
            intension: float64[n, base]; the intensions that were found are written into it.

        Returns:
            Number of optimal assignments that were solved.
        """
        rows, columns = np.nonzero(open_pairs)
        order = np.lexsort((columns, -upper[rows, columns], rows))
        assignments = 0
        for row, column in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
            if upper[row, column] < best[row]:
                continue
            total, solved = _matching_total(self._block(row, column))
            assignments += solved
            intension[row, column] = total / self.divisor[row, column]
            pair = slice(column, column + 1)
            value = self.settings.similarity(self.extension[row, pair], intension[row, pair])[0]
            best[row] = max(best[row], value)
        return assignments

    def _block(self, row: int, column: int) -> Float64s:
        """Ics of the words of a pair's intents."""
        intents = self.base.concepts.intent_indptr
        base_words = self.base.word_places[intents[column] : intents[column + 1]]
        current_words = self.places[self.current.intent_indptr[row] : self.current.intent_indptr[row + 1]]
        return np.asarray(self.similarities[base_words[:, None], current_words])


def _matching_total(block: Float64s) -> tuple[float, bool]:
    """Weight of a maximum matching of an ics block, and whether an assignment had to be solved."""
    if block.shape[0] > block.shape[1]:
        block = block.T
    columns = block.argmax(axis=1)
    values = block[np.arange(len(block)), columns]
    used = columns[values > 0]
    if len(np.unique(used)) == len(used):
        return float(values.sum()), False
    chosen = linear_sum_assignment(block, maximize=True)
    return float(block[chosen].sum()), True


def matching(hierarchy: WeightedHierarchy, base_words: Int64s, current_words: Int64s) -> list[tuple[int, int, float]]:
    """A maximum weight matching of two intents: (base word, current word, ics) where ics is positive.

    Equal words are matched with each other before others of the same similarity, then words in their order.
    """
    if not len(base_words) or not len(current_words):
        return []
    block = ics_block(hierarchy, base_words, current_words)
    # A bonus below the grid of similarities prefers a word's match with itself without changing the total.
    equal = base_words[:, None] == current_words[None, :]
    pairs = zip(*linear_sum_assignment(block * (ICS_UNITS * 4096) + equal, maximize=True), strict=True)
    return [
        (int(base_words[row]), int(current_words[column]), float(block[row, column]))
        for row, column in pairs
        if block[row, column] > 0
    ]


@dataclass(frozen=True, eq=False)
class BestScores:
    """The best pair of concepts of each object so far, arrays of length n.

    Attributes:
        score: Sim, float64; -1 where no concept of the object was scored.
        extension: float64.
        intension: float64.
        base: position in the base lattice, int64.
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

    Args:
        current: the batch.
        ids: ids of its concepts, int64[n].
        edges: see `best_base_concepts`.
        base: the base lattice.
        hierarchy: the words' hierarchy.
        settings: how similarities are computed.
        best: the best scores before; a new object is given back, this one is not changed.
    """
    if not len(base) or not len(current):
        return best
    floor = np.minimum.reduceat(best.score[current.extent_indices], current.extent_indptr[:-1])
    pairs = best_base_concepts(current, edges, base, hierarchy, settings, floor)
    owner = np.repeat(np.arange(len(current), dtype=np.int64), current.support)
    objects = current.extent_indices.astype(np.int64)
    kept = (pairs.base[owner] >= 0) & (pairs.score[owner] >= best.score[objects])
    owner, objects = owner[kept], objects[kept]
    order = np.lexsort((ids[owner], pairs.base[owner], -pairs.score[owner], objects))
    starts = order[group_starts(objects[order])]
    owner, objects = owner[starts], objects[starts]
    better = pairs.score[owner] > best.score[objects]
    tie = pairs.score[owner] == best.score[objects]
    base_order = pairs.base[owner] - best.base[objects]
    better |= tie & ((base_order < 0) | ((base_order == 0) & (ids[owner] < best.current[objects])))
    owner, objects = owner[better], objects[better]
    score, extension, intension = best.score.copy(), best.extension.copy(), best.intension.copy()
    base_of, current_of = best.base.copy(), best.current.copy()
    score[objects], extension[objects] = pairs.score[owner], pairs.extension[owner]
    intension[objects], base_of[objects], current_of[objects] = pairs.intension[owner], pairs.base[owner], ids[owner]
    intents = dict(best.intents)
    for number in np.unique(owner).tolist():
        intents[int(ids[number])] = current.intent(number).astype(np.int64)
    return BestScores(score, extension, intension, base_of, current_of, intents, best.assignments + pairs.assignments)
