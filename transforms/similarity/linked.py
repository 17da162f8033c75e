"""The best base concepts among those that are linked with a current concept.

They are few, and the best base concept is nearly always among them. Similarities of words are computed for these pairs
only, so that the work grows with the links and not with the product of both lattices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import sparse

from semrank.transforms.columnar.arrays import Bools, Float64s, Int64s, group_starts, ragged
from semrank.transforms.similarity.base_lattice import BLOCK_CELLS, RelatedWords, ones
from semrank.transforms.similarity.matching import Matcher, Pairs, Search, edge_counts, extensions_of, first_of_rows
from semrank.transforms.similarity.word_pairs import WordPairs

LINKED_ROUNDS = 3
"""Linked pairs of a row that are examined one by one."""

LINKED_PAIRS = 64
"""Rows with up to so many linked pairs have all examined before words' similarities are bounded."""


def linked_parts(search: Search) -> Iterator[Int64s]:
    """Rows in groups that have some `BLOCK_CELLS` linked pairs together."""
    current, edges, base = search.current, search.edges, search.base
    by_queue = np.diff(base.extents.indptr)
    by_object = np.add.reduceat(np.append(by_queue[edges.indices], 0), edges.indptr[:-1])
    by_object[np.diff(edges.indptr) == 0] = 0
    work = np.add.reduceat(np.append(by_object[current.extent_indices], 0), current.extent_indptr[:-1])
    work[current.support == 0] = 0
    group = np.cumsum(work) // BLOCK_CELLS
    cuts = np.flatnonzero(np.diff(group)) + 1
    for start, end in pairwise([0, *cuts.tolist(), len(current)]):
        if start < end:
            yield np.arange(start, end, dtype=np.int64)


def try_known(search: Search, rows: Int64s, pairs: RelatedWords) -> Bools:
    """Evaluates base concepts whose intension is known without similarities of words.

    It is 1 where a concept has one word, which is related to one of the other's; the first of these by id is used.
    It is 0 for all base concepts where none of a row's words is similar to any of theirs; the first of all is used.

    Returns:
        Whether it is 0 for all base concepts, bool[len(rows)].
    """
    if not len(rows):
        return np.zeros(0, dtype=np.bool_)
    current, base, settings = search.current.select(rows), search.base, search.settings
    sizes = np.diff(current.intent_indptr)
    single = np.flatnonzero(sizes == 1)
    owner = np.repeat(np.arange(len(rows)), sizes)
    column = np.full(len(rows), len(base), dtype=np.int64)
    if settings.intension_norm == "min":
        np.minimum.at(column, owner, pairs.first_single[current.intent_indices])
        words = current.intent_indices[current.intent_indptr[single]]
        column[single] = np.minimum(column[single], pairs.first[words])
    else:
        column[single] = pairs.first_single[current.intent_indices[current.intent_indptr[single]]]
    alive = np.zeros(len(rows), dtype=np.bool_)
    alive[owner[pairs.alive[current.intent_indices]]] = True
    column[~alive] = 0
    known = np.flatnonzero(column < len(base))
    own = edge_counts(*current.extents(known), search.edges)
    concepts = base.concepts.select(column[known])
    members = ones(concepts.extent_indptr, concepts.extent_indices, search.edges.shape[1], np.int64)
    counts = np.asarray(own.multiply(members).sum(axis=1)).ravel()
    extension = extensions_of(counts, current.support[known], concepts.support, settings)
    intension = alive[known].astype(np.float64)
    search.best.update(rows[known], column[known], settings.similarity(extension, intension), extension, intension)
    return ~alive


@dataclass(eq=False)
class Linked(Matcher):
    """Current concepts of any size, against the columns that are linked with them.

    Attributes:
        intents: words of each row, filled up with -1 at the end, int64[r, max |Y2|].
        linked: the pairs with an extension above 0, by ascending rows.
        words: similarities of words.
        related: words of the base lattice that are equal or ISA-related to each word, CSR bool[n, v].
        base_words: the words of the base lattice and -1 after them, int64[v + 1].
    """

    intents: Int64s
    linked: Pairs
    words: WordPairs
    related: sparse.csr_array
    base_words: Int64s

    @classmethod
    def of(cls, search: Search, rows: Int64s, pairs: RelatedWords) -> Linked:
        """The matcher of some current concepts."""
        indptr, words = search.current.intents(rows)
        sizes = np.diff(indptr)
        intents = np.full((len(rows), int(sizes.max(initial=0))), -1, dtype=np.int64)
        intents[np.arange(intents.shape[1]) < sizes[:, None]] = words
        return cls(
            search.base,
            search.settings,
            search.best,
            rows,
            sizes,
            intents,
            search.linked(rows),
            pairs.words,
            pairs.related,
            np.append(search.base.words, -1),
        )

    def search(self) -> None:
        """Finds the best linked pair of each row.

        The first bound of an intension is its largest value. In most rows a few pairs attain it, which excludes pairs
        with a smaller extension. For the others the words that may be similar are counted, and only for what remains
        similarities of words are computed.
        """
        rows, columns, extension = self.linked
        largest = self._smaller(rows, columns) / self._norms(rows, columns)
        bounds = self.settings.upper_bound(extension, largest)
        pairs, bounds = self._try_few(*self._try_first(self.linked, bounds, bounds))
        if not len(pairs.rows):
            return
        related, positive = self._word_counts(pairs)
        norms = self._norms(pairs.rows, pairs.columns)
        bounds = self.settings.upper_bound(pairs.extension, positive / norms)
        likely = np.minimum(self.settings.similarity(pairs.extension, related / norms), bounds)
        pairs, bounds = self._try_few(*self._try_first(pairs, bounds, likely))
        for part in self._parts(pairs):
            some = pairs.select(part)
            bound = self._matching_bounds(some) / self._norms(some.rows, some.columns)
            bound = self.settings.upper_bound(some.extension, bound)
            left = self._improves(some.rows, some.columns, bound)
            self._try_all(some.select(left), bound[left])

    def _try_first(self, pairs: Pairs, bounds: Float64s, order: Float64s) -> tuple[Pairs, Float64s]:
        """Examines the first pairs of each row in descending order, returns those that could still improve."""
        for _ in range(LINKED_ROUNDS):
            left = np.flatnonzero(self._improves(pairs.rows, pairs.columns, bounds))
            pairs, bounds, order = pairs.select(left), bounds[left], order[left]
            if not len(left):
                return pairs, bounds
            chosen = first_of_rows(pairs.rows, order, self.base.columns[pairs.columns], len(self.base))
            self._examine(*pairs.select(chosen))
            bounds[chosen] = order[chosen] = -1.0
        left = np.flatnonzero(self._improves(pairs.rows, pairs.columns, bounds))
        return pairs.select(left), bounds[left]

    def _try_few(self, pairs: Pairs, bounds: Float64s) -> tuple[Pairs, Float64s]:
        """Examines all pairs of rows with few; returns those of the others."""
        few = (np.bincount(pairs.rows, minlength=len(self.rows)) <= LINKED_PAIRS)[pairs.rows]
        self._try_all(pairs.select(few), bounds[few])
        return pairs.select(~few), bounds[~few]

    def _parts(self, pairs: Pairs) -> Iterator[slice]:
        """Pairs in groups of whole rows that have some `BLOCK_CELLS` pairs of words together."""
        starts = group_starts(pairs.rows)
        if not len(starts):
            return
        work = np.cumsum(np.add.reduceat(self.base.sizes[pairs.columns], starts) * self.sizes[pairs.rows[starts]])
        cuts = np.flatnonzero(np.diff(work // BLOCK_CELLS)) + 1
        for start, end in pairwise([0, *starts[cuts].tolist(), len(pairs.rows)]):
            yield slice(start, end)

    def _matching_bounds(self, pairs: Pairs) -> Float64s:
        """Sums of the smaller intents' largest similarities with words of the larger ones, float64[p]."""
        lengths, base = self.base.sizes[pairs.columns], self.base.intents
        pair, positions = ragged(base.indptr[pairs.columns].astype(np.int64), lengths)
        rows = pairs.rows[pair]
        keys, places = np.unique(rows * len(self.base_words) + base.indices[positions], return_inverse=True)
        row, word = np.divmod(keys, len(self.base_words))
        similarities = self._values(self.base_words[word][:, None], self.intents[row])[:, 0]
        counted, smaller = np.zeros(len(lengths)), lengths <= self.sizes[pairs.rows]
        best = similarities.max(axis=1, initial=0.0)[places]
        counted[smaller] = np.bincount(pair, weights=best, minlength=len(lengths))[smaller]
        larger = np.flatnonzero(~smaller)
        if len(larger):
            members = similarities[places[~smaller[pair]]]
            starts = np.cumsum(lengths[larger]) - lengths[larger]
            best_own = np.maximum.reduceat(members, starts, axis=0)
            counted[larger] = np.maximum(best_own, 0.0).sum(axis=1)
        return counted

    def _word_counts(self, pairs: Pairs) -> tuple[Int64s, Int64s]:
        """Bounds of matchings that need no similarities of words.

        A word without clicks is similar to its relatives only.

        Returns:
            (related, positive), int64[p], at most the smaller intent's size: words of the base concepts that are equal
            or ISA-related to one of the current concepts', and those that may be similar to one. No more matches than
            the latter count.
        """
        hierarchy = self.words.hierarchy
        clicked = hierarchy.probability > 0
        rows, place = np.unique(pairs.rows, return_inverse=True)
        intents = self.intents[rows]
        owner, at = np.nonzero(intents >= 0)
        words = intents[owner, at]
        own = sparse.csr_array((np.ones(len(words), dtype=np.bool_), (owner, words)), shape=(len(rows), len(hierarchy)))
        related = (own @ self.related).toarray()
        some_clicked = np.zeros(len(rows), dtype=np.bool_)
        some_clicked[owner[clicked[words]]] = True
        base_clicked = clicked[self.base_words[:-1]]
        smaller = self._smaller(pairs.rows, pairs.columns)
        counts = np.zeros((2, len(place)), dtype=np.int64)
        lengths, base = self.base.sizes[pairs.columns], self.base.intents
        cuts = np.unique(np.searchsorted(np.cumsum(lengths), np.arange(0, int(lengths.sum()), BLOCK_CELLS)))
        for start, end in pairwise([*cuts.tolist(), len(place)]):
            part = slice(start, end)
            pair, positions = ragged(base.indptr[pairs.columns[part]].astype(np.int64), lengths[part])
            row, word = place[part][pair], base.indices[positions]
            found = related[row, word]
            counts[0, part] = np.bincount(pair[found], minlength=end - start)
            found |= base_clicked[word] & some_clicked[row]
            counts[1, part] = np.bincount(pair[found], minlength=end - start)
        return np.minimum(counts[0], smaller), np.minimum(counts[1], smaller)

    def _examine(self, rows: Int64s, columns: Int64s, extension: Float64s) -> Float64s:
        self.best.examined += len(rows)
        result = np.full(len(rows), -1.0)
        sizes, base_sizes = self.sizes[rows], self.base.sizes[columns]
        smaller, larger = np.minimum(sizes, base_sizes), np.maximum(sizes, base_sizes)
        # Pairs of like sizes together, so that little is filling.
        shape = (smaller * 64 + np.frexp(larger)[1]) * 2 + (base_sizes <= sizes)
        order = np.argsort(shape, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(shape[order])) + 1):
            if not len(group):
                continue
            count, width = int(smaller[group[0]]), int(larger[group].max())
            step = max(1, BLOCK_CELLS // max(1, count * width))
            for start in range(0, len(group), step):
                part = group[start : start + step]
                own = self.intents[rows[part]]
                others = self.base_words[self.base.padded[columns[part]]]
                few, many = (others, own) if base_sizes[part[0]] <= sizes[part[0]] else (own, others)
                values = self._values(few[:, :count], many[:, :width])
                result[part] = self._weigh(rows[part], columns[part], extension[part], values)
        return result

    def _values(self, few: Int64s, many: Int64s) -> Float64s:
        """Similarities of the words of pairs, float64[p, few, many]; -1 for filling, which only `many` has."""
        values = np.full((*few.shape, many.shape[1]), -1.0)
        known = np.broadcast_to(many[:, None, :] >= 0, values.shape)
        first, second = (np.broadcast_to(side, values.shape)[known] for side in (few[:, :, None], many[:, None, :]))
        # The same words meet in many pairs.
        count = len(self.words.hierarchy)
        keys, places = np.unique(first * count + second, return_inverse=True)
        values[known] = self.words.similarities(*np.divmod(keys, count))[places]
        return values
