"""The base lattice as a worker holds it, with what it keeps of words' similarities from search to search."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import sparse

from semrank.transforms.columnar.arrays import Bools, Int64s
from semrank.transforms.lattice.context import Concepts
from semrank.transforms.similarity.hierarchy import IcsRows, WeightedHierarchy, clicked_first
from semrank.transforms.similarity.word_pairs import WordPairs

BOUND_UNITS = 1 << 12
"""Steps in 1 of the values that are summed to bounds, rounded up; uint16 takes sums of up to 15, uint32 larger ones."""

BLOCK_CELLS = 1 << 21
"""Pairs of concepts bounded, or word similarities gathered, at a time: 2^21 float64 are 16 MB."""

WORDS_TOGETHER = 64
"""Words whose similarities are written together where four blocks hold so many: a cache line of their maxima or two."""

CACHE_BYTES = 256 << 20
"""Bytes of words' similarities and of their column maxima that a base lattice keeps."""


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
    similarities: WordSimilarities = field(default_factory=lambda: WordSimilarities(), repr=False)

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
        members = ones(ordered.extent_indptr, ordered.extent_indices, queue_size, np.int64)
        return cls(
            concepts=concepts,
            ids=ids,
            columns=columns,
            sizes=sizes,
            supports=ordered.support,
            words=words[by_column],
            word_counts=np.searchsorted(first[by_column], ordered.intent_indptr).astype(np.int64),
            padded=padded,
            intents=ones(ordered.intent_indptr, places, len(words), np.uint16),
            extents=sparse.csr_array(members.T),
        )

    def __len__(self) -> int:
        return len(self.ids)

    def head(self, size: int) -> BaseLattice:
        """The lattice of the first concepts by id, which keep their positions."""
        first = self.concepts.select(np.arange(size, dtype=np.int64))
        return BaseLattice.of(first, self.ids[:size], self.extents.shape[0])


def ones(
    indptr: Int64s, indices: npt.NDArray[np.integer], width: int, dtype: type[np.uint16 | np.int64]
) -> sparse.csr_array:
    """The matrix with a 1 in each of these places, CSR of shape [len(indptr) - 1, width]."""
    values = np.ones(len(indices), dtype=dtype)
    return sparse.csr_array((values, indices.astype(np.int32), indptr), shape=(len(indptr) - 1, width))


def word_limit(base: BaseLattice) -> int:
    """Number of words whose similarities fit the memory budget."""
    return max(1, CACHE_BYTES // (10 * (len(base.words) + 1) + 2 * len(base)))


class WordSimilarities:
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
        self._pairs: RelatedWords | None = None
        self._words = np.zeros(0, dtype=np.int64)
        self._used = np.zeros(0, dtype=np.int64)
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[WordSimilarities], tuple[()]]:
        """What is kept can be made anew, so copies begin with nothing."""
        return WordSimilarities, ()

    @contextmanager
    def taken(self) -> Iterator[WordSimilarities]:
        """These similarities, or others that begin with nothing while another thread works with these."""
        if not self._lock.acquire(blocking=False):
            yield WordSimilarities()
            return
        try:
            yield self
        finally:
            self._lock.release()

    def pairs_of(self, base: BaseLattice, hierarchy: WeightedHierarchy) -> RelatedWords:
        """What is known of a base lattice's words in a hierarchy."""
        if self._pairs is None or self._pairs.words.hierarchy is not hierarchy:
            self._pairs = RelatedWords.of(base, hierarchy)
        return self._pairs

    def provide(self, words: Int64s, base: BaseLattice, hierarchy: WeightedHierarchy) -> None:
        """Have rows for all of some distinct words, in place of those of words that were not used for longest."""
        base_words = self._rows
        if base_words is None or base_words.hierarchy is not hierarchy or len(words) > len(self._words):
            base_words = self._forget(max(len(words), min(word_limit(base), len(hierarchy))), base, hierarchy)
        now = self._used.max(initial=0) + 1
        have = self.places[words] >= 0
        missing = words[~have]
        self._used[self.places[words[have]]] = now
        rows = np.argsort(self._used, kind="stable")[: len(missing)]
        dropped = self._words[rows]
        self.places[dropped[dropped >= 0]] = -1
        self.places[missing], self._words[rows], self._used[rows] = rows, missing, now
        order = clicked_first(hierarchy, missing)
        missing, rows = missing[order], rows[order]
        width = max(1, len(base), len(base.words))
        step = max(1, BLOCK_CELLS // width, min(WORDS_TOGETHER, 4 * BLOCK_CELLS // width))
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


@dataclass(frozen=True, eq=False)
class RelatedWords:
    """Similarities of single words, and where words stand in a base lattice.

    Attributes:
        words: similarities of pairs of words.
        related: words of the base lattice that are equal or ISA-related to each word, CSR bool[n, v].
        alive: whether each word may be similar to one of the base lattice: it has clicks, or a relative there, bool[n].
        first: the first base concept by id with a word that is equal or ISA-related to each word, the number of
            base concepts where there is none, int64[n].
        first_single: likewise, of the base concepts with one word.
    """

    words: WordPairs
    related: sparse.csr_array
    alive: Bools
    first: Int64s
    first_single: Int64s

    @classmethod
    def of(cls, base: BaseLattice, hierarchy: WeightedHierarchy) -> RelatedWords:
        """What is known of a base lattice's words in a hierarchy."""
        sizes = np.diff(base.concepts.intent_indptr)
        owner = np.repeat(np.arange(len(base), dtype=np.int64), sizes)
        words = base.concepts.intent_indices
        single = sizes[owner] == 1
        relatives = hierarchy.relatives

        def first(words: npt.NDArray[np.integer], concepts: Int64s) -> Int64s:
            own = np.full(len(hierarchy), len(base), dtype=np.int64)
            np.minimum.at(own, words, concepts)
            # Every word is its own relative, so that no row is empty.
            return np.minimum.reduceat(own[relatives.indices], relatives.indptr[:-1])

        related = sparse.csr_array(relatives[:, base.words])
        alive = (hierarchy.probability > 0) | (np.diff(related.indptr) > 0)
        return cls(WordPairs.of(hierarchy), related, alive, first(words, owner), first(words[single], owner[single]))
