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

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from schemas.errors import InputError
from transforms.columnar.arrays import group_starts, pointers, positions, ragged
from transforms.similarity.hierarchy import (
    ICS_UNITS,
    Bools,
    Float64s,
    Int32s,
    Int64s,
    TopProbability,
    WeightedHierarchy,
    check_hierarchy_options,
    ics_block,
)

Float32s: TypeAlias = npt.NDArray[np.float32]

SIMILARITY_DECIMALS = 12
"""Similarities that differ by less are equal; float rounding stays far below, the promised exactness of 1e-9 above."""

BOUND_UNITS = 2.0**12
"""Steps in 1 of the values that are summed to bounds, rounded up: float32 sums of up to 2^12 of them are exact."""

BOUND_SLACK = 2.0**-12
"""Relative widening of a bound: far above the rounding error of a float32 quotient, so that what does not attain a
bound of 0 or 1 stays below it by more than similarities are rounded."""

BLOCK_PAIRS = 1 << 22
"""Pairs bounded at a time: float32 bounds of 2^22 pairs are 16 MB."""

CHUNK_BYTES = 256 << 20
"""Bytes of word similarities and of their column maxima kept at a time."""

EXACT_VALUES = 1 << 22
"""Word similarities gathered at a time for pairs that are looked at in full: 32 MB of float64, and as much again."""

UNLINKED_ROUNDS = 4
"""Unlinked candidates tried one a row before all that are left are listed: most rows need one or two."""

DISTINCT_MATCHES = 64
"""Largest intent for which equal words are preferred in a matching; the preference needs the bits that larger sums
take."""


@dataclass(frozen=True)
class SimilaritySettings:
    """How concepts are compared, and from where on a URL is selected.

    Attributes:
        weight: w, the extension's share in [0, 1], or "adaptive": extension / (extension + intension) (P08).
        intension_norm: what a matching is divided by: the "min" or the "max" of |Y1| and |Y2|.
        extension: "links" counts links and c-edges between the extents over 4 max(|X1|, |X2|); "shared" counts shared
            objects over max(|X1|, |X2|) (Formica).
        c_edges: whether distinct "pairs" of URLs with c-edges count, or all "clicks".
        alpha: adjustment of the hierarchy's edge weights, 0 < alpha <= 0.5.
        top_probability: p(Top) as "max" or "min" of p(n), or a number in (0, 1].
        smoothing: added to every f(n), >= 0.
        threshold: gamma in [0, 1]; a URL with a larger SemRank is selected.

    Raises:
        InputError: when made with a value outside its range.
    """

    weight: float | Literal["adaptive"] = 0.4
    intension_norm: Literal["min", "max"] = "min"
    extension: Literal["links", "shared"] = "links"
    c_edges: Literal["pairs", "clicks"] = "pairs"
    alpha: float = 0.2
    top_probability: TopProbability = "max"
    smoothing: float = 0.0
    threshold: float = 0.45

    def __post_init__(self) -> None:
        if isinstance(self.weight, str):
            if self.weight != "adaptive":
                raise InputError(f"weight: found {self.weight!r}, expected 'adaptive' or a number in [0, 1]")
        elif not 0 <= self.weight <= 1:
            raise InputError(f"weight: found {self.weight}, expected 'adaptive' or a number in [0, 1]")
        for name, found, expected in (
            ("intension_norm", self.intension_norm, ("min", "max")),
            ("extension", self.extension, ("links", "shared")),
            ("c_edges", self.c_edges, ("pairs", "clicks")),
        ):
            if found not in expected:
                raise InputError(f"{name}: found {found!r}, expected {expected[0]!r} or {expected[1]!r}")
        if not 0 <= self.threshold <= 1:
            raise InputError(f"threshold: found {self.threshold}, expected a number in [0, 1]")
        check_hierarchy_options(self.alpha, self.top_probability, self.smoothing)

    @property
    def extension_parts(self) -> int:
        """What one pair of objects can count at most without repeated clicks: 4 kinds of edges, or being shared."""
        return 4 if self.extension == "links" else 1


PROFILES: Mapping[str, SimilaritySettings] = MappingProxyType(
    {
        "paper-2013": SimilaritySettings(),
        "paper-2008": SimilaritySettings(weight="adaptive"),
        "formica-2006": SimilaritySettings(weight=0.5, intension_norm="max", extension="shared"),
    }
)
"""The papers' choices by name."""


@dataclass(frozen=True, eq=False)
class Concepts:
    """n formal concepts; row i of a CSR pair holds the members of concept i, each once.

    Attributes:
        ids: identities of the concepts, int64[n], distinct.
        extent_pointers: int64[n + 1] into `extents`.
        extents: object numbers.
        intent_pointers: int64[n + 1] into `intents`.
        intents: word numbers.
    """

    ids: Int64s
    extent_pointers: Int64s
    extents: Int32s
    intent_pointers: Int64s
    intents: Int32s

    def __post_init__(self) -> None:
        for name, indptr, values in (
            ("extents", self.extent_pointers, self.extents),
            ("intents", self.intent_pointers, self.intents),
        ):
            if len(indptr) != len(self.ids) + 1 or indptr[-1] != len(values):
                raise ValueError(
                    f"{name}: found {len(indptr)} pointers up to {indptr[-1:]} and {len(values)} values for "
                    f"{len(self.ids)} concepts, expected {len(self.ids) + 1} pointers up to the number of values"
                )

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def extent_sizes(self) -> Int64s:
        """|X| of each concept, int64[n]."""
        return np.diff(self.extent_pointers)

    @property
    def intent_sizes(self) -> Int64s:
        """|Y| of each concept, int64[n]."""
        return np.diff(self.intent_pointers)

    def intent(self, concept: int) -> Int32s:
        """Word numbers of one concept's intent."""
        return self.intents[self.intent_pointers[concept] : self.intent_pointers[concept + 1]]


@dataclass(frozen=True, eq=False)
class BaseLattice:
    """Base concepts made ready for `best_base_concepts`; made once by `prepare_base`.

    Columns are the concepts in order of (|Y1|, id).

    Attributes:
        concepts: the base concepts as given.
        hierarchy: hierarchy over the words of both contexts.
        columns: position in `concepts` of each column, int64[b].
        ranks: place of each column's id among all ids in ascending order, int64[b].
        words: distinct words of the intents, ascending, int64[v].
        sizes: |Y1| of each column, ascending, int64[b].
        extent_sizes: |X1| of each column, int64[b].
        padded: each column's words as positions in `words`, filled up with v, int64[b, max |Y1|].
        incidence: which words a column has, CSR float32[b, v] of ones.
        membership: which columns a queue object is in, CSR int64[queue objects, b] of ones.
    """

    concepts: Concepts
    hierarchy: WeightedHierarchy
    columns: Int64s
    ranks: Int64s
    words: Int64s
    sizes: Int64s
    extent_sizes: Int64s
    padded: Int64s
    incidence: sparse.csr_array
    membership: sparse.csr_array

    def __len__(self) -> int:
        return len(self.columns)


def prepare_base(concepts: Concepts, hierarchy: WeightedHierarchy, queue_size: int) -> BaseLattice:
    """Base concepts in the form that `best_base_concepts` searches.

    Args:
        concepts: base concepts; objects are numbers below `queue_size`, words those of the hierarchy.
        hierarchy: hierarchy over the words of both contexts.
        queue_size: number of queue objects.

    Raises:
        ValueError: ids repeat, or an object or word has no such number.
    """
    if len(np.unique(concepts.ids)) != len(concepts):
        raise ValueError(f"base concepts: found {len(np.unique(concepts.ids))} ids for {len(concepts)} concepts")
    _check_numbers("objects of base concepts", concepts.extents, queue_size)
    _check_numbers("words of base concepts", concepts.intents, len(hierarchy))
    columns = np.lexsort((concepts.ids, concepts.intent_sizes)).astype(np.int64)
    ranks = np.empty(len(concepts), dtype=np.int64)
    ranks[np.argsort(concepts.ids[columns])] = np.arange(len(concepts))
    sizes, extent_sizes = concepts.intent_sizes[columns], concepts.extent_sizes[columns]

    words, spelled = np.unique(concepts.intents.astype(np.int64), return_inverse=True)
    column, taken = ragged(concepts.intent_pointers[columns], sizes)
    padded = np.full((len(columns), int(sizes.max(initial=0))), len(words), dtype=np.int64)
    padded[column, np.arange(len(column)) - pointers(sizes)[column]] = spelled[taken]
    incidence = _ones_csr(pointers(sizes), spelled[taken], len(words), np.float32)

    column, taken = ragged(concepts.extent_pointers[columns], extent_sizes)
    by_column = _ones_csr(pointers(extent_sizes), concepts.extents[taken], queue_size, np.int64)
    return BaseLattice(
        concepts=concepts,
        hierarchy=hierarchy,
        columns=columns,
        ranks=ranks,
        words=words,
        sizes=sizes,
        extent_sizes=extent_sizes,
        padded=padded,
        incidence=incidence,
        membership=by_column.T.tocsr(),
    )


def _check_numbers(name: str, numbers: npt.NDArray[np.integer], count: int) -> None:
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= count):
        raise ValueError(f"{name}: found numbers {numbers.min()}..{numbers.max()}, expected numbers below {count}")


def _ones_csr(
    indptr: Int64s, indices: npt.NDArray[np.integer], width: int, dtype: type[np.float32 | np.int64]
) -> sparse.csr_array:
    return sparse.csr_array(
        (np.ones(len(indices), dtype=dtype), indices.astype(np.int32), indptr), shape=(len(indptr) - 1, width)
    )


Edges: TypeAlias = tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]


def link_counts(
    object_count: int, queue_size: int, links: Iterable[Edges], c_edges: Iterable[Edges], settings: SimilaritySettings
) -> sparse.csr_array:
    """What each current object counts towards the extension with each queue object (P13 Def. 6).

    Args:
        object_count: number of current objects.
        queue_size: number of queue objects.
        links: (current object, queue object) pairs of hyperlinks, one array pair for each direction; repeated pairs
            count once.
        c_edges: likewise for c-edges; repeated pairs count once, or each time with `c_edges="clicks"`.
        settings: `c_edges` is used.

    Returns:
        CSR int64[object_count, queue_size].
    """
    total = sparse.csr_array((object_count, queue_size), dtype=np.int64)
    for directions, every in ((links, False), (c_edges, settings.c_edges == "clicks")):
        for current, queue in directions:
            one = sparse.coo_array(
                (np.ones(len(current), dtype=np.int64), (current, queue)), shape=(object_count, queue_size)
            ).tocsr()
            if not every:
                one.data[:] = 1
            total = total + one
    return total


@dataclass(frozen=True)
class SimilarityCounters:
    """How much work a search was.

    Attributes:
        pairs: pairs of a base and a current concept, all of which are decided.
        examined: pairs whose similarities of words were looked at in full.
        matchings: assignments solved; the other examined pairs attained a bound, or fell behind by a tighter one.
    """

    pairs: int = 0
    examined: int = 0
    matchings: int = 0

    def __add__(self, other: SimilarityCounters) -> SimilarityCounters:
        return SimilarityCounters(
            self.pairs + other.pairs, self.examined + other.examined, self.matchings + other.matchings
        )


@dataclass(frozen=True, eq=False)
class BestPairs:
    """The best base concept of each of n current concepts.

    Attributes:
        base: position among the base concepts, int64[n]; -1 where there is none, or none that reaches the floor.
        similarity: float64[n] in [0, 1], rounded to 12 decimals; 0 without a base concept.
        extension: float64[n] in [0, 1].
        intension: float64[n] in [0, 1].
        counters: work done.
    """

    base: Int64s
    similarity: Float64s
    extension: Float64s
    intension: Float64s
    counters: SimilarityCounters


@dataclass(frozen=True, eq=False)
class Floors:
    """What a pair of each of n current concepts must reach to matter, in the order (similarity desc, base id asc).

    Attributes:
        similarity: float64[n]; -1 lets every pair pass, inf none.
        base_id: int64[n].
    """

    similarity: Float64s
    base_id: Int64s


def combine(extension: Float64s, intension: Float64s, settings: SimilaritySettings) -> Float64s:
    """Similarity of concepts from its two parts (P13 Def. 18; P08 Def. 10), rounded to 12 decimals; float64[n]."""
    if settings.weight == "adaptive":
        total = extension + intension
        total = np.where(total > 0, total, 1.0)
        similarity = (extension * extension + intension * intension) / total
    else:
        similarity = settings.weight * extension + (1.0 - settings.weight) * intension
    return np.round(similarity, SIMILARITY_DECIMALS)


def _bound(extension: Float64s, intension: Float64s, settings: SimilaritySettings) -> Float64s:
    """Largest similarity with this extension and at most this intension.

    With the adaptive weight the similarity is a convex function of the intension, so it is largest at an end.
    """
    at_most = combine(extension, intension, settings)
    return np.maximum(at_most, combine(extension, np.zeros_like(intension), settings))


def best_base_concepts(
    batch: Concepts,
    links: sparse.csr_array,
    base: BaseLattice,
    settings: SimilaritySettings,
    floors: Floors | None = None,
) -> BestPairs:
    """The most similar base concept of each current concept; of equally similar ones that with the smallest id.

    Args:
        batch: n current concepts; objects are rows of `links`, words those of the base's hierarchy.
        links: what each current object counts with each queue object, CSR integers [current objects, queue objects]:
            `link_counts`, or 1 for a queue object that is the same object where `settings.extension` is "shared".
        base: the base concepts.
        settings: profile of the similarity.
        floors: pairs below can be left out of the search, or None.

    Returns:
        The best pairs; the result for a concept does not depend on the rest of the batch.

    Raises:
        ValueError: an object or word has no such number, or `links` has another number of queue objects.
    """
    _check_numbers("objects of current concepts", batch.extents, links.shape[0])
    _check_numbers("words of current concepts", batch.intents, len(base.hierarchy))
    if links.shape[1] != base.membership.shape[0]:
        raise ValueError(f"links: found {links.shape[1]} queue objects, expected {base.membership.shape[0]}")
    race = _Race.start(len(batch), base, floors)
    if len(base):
        links = sparse.csr_array((links.data.astype(np.int64), links.indices, links.indptr), shape=links.shape)
        for rows in _chunks(batch, base):
            _search_chunk(batch, links, base, settings, rows, race)
    found = race.column >= 0
    return BestPairs(
        base=np.where(found, base.columns[race.column], -1) if len(base) else race.column,
        similarity=np.where(found, race.similarity, 0.0),
        extension=race.extension,
        intension=race.intension,
        counters=SimilarityCounters(len(batch) * len(base), race.examined, race.matchings),
    )


@dataclass(eq=False)
class _Race:
    """Best pair so far of each row; rows are current concepts, columns those of the base lattice."""

    similarity: Float64s
    rank: Int64s
    """A pair as similar as the best so far wins with a smaller rank than this."""
    column: Int64s
    extension: Float64s
    intension: Float64s
    examined: int = 0
    matchings: int = 0

    @classmethod
    def start(cls, count: int, base: BaseLattice, floors: Floors | None) -> _Race:
        similarity, rank = np.full(count, -1.0), np.full(count, len(base), dtype=np.int64)
        if floors is not None:
            similarity = floors.similarity.astype(np.float64)
            rank = np.searchsorted(np.sort(base.concepts.ids), floors.base_id, side="right").astype(np.int64)
        return cls(similarity, rank, np.full(count, -1, dtype=np.int64), np.zeros(count), np.zeros(count))

    def leads(self, rows: Int64s, similarity: Float64s, rank: Int64s) -> Bools:
        """Whether pairs with this similarity would be the best of their rows."""
        best = self.similarity[rows]
        return np.asarray((similarity > best) | ((similarity == best) & (rank < self.rank[rows])), dtype=np.bool_)

    def enter(
        self, rows: Int64s, columns: Int64s, ranks: Int64s, similarity: Float64s, parts: tuple[Float64s, Float64s]
    ) -> None:
        """Enter pairs; of several of a row the best counts."""
        order = np.lexsort((ranks, -similarity, rows))
        order = order[group_starts(rows[order])]
        order = order[self.leads(rows[order], similarity[order], ranks[order])]
        row = rows[order]
        self.similarity[row], self.rank[row], self.column[row] = similarity[order], ranks[order], columns[order]
        self.extension[row], self.intension[row] = parts[0][order], parts[1][order]


def _chunks(batch: Concepts, base: BaseLattice) -> Iterator[Int64s]:
    """Rows in groups whose words' similarities to the base's words fit the memory budget."""
    # Held for each word: float64 and two float32 for each base word, two float32 for each column while one is made.
    word_bytes = 16 * (len(base.words) + 1) + 8 * len(base)
    limit = max(1, CHUNK_BYTES // word_bytes)
    waiting = [np.arange(len(batch), dtype=np.int64)]
    while waiting:
        rows = waiting.pop()
        if len(rows) > 1:
            _, taken = ragged(batch.intent_pointers[rows], batch.intent_sizes[rows])
            seen = np.zeros(len(base.hierarchy), dtype=np.bool_)
            seen[batch.intents[taken]] = True
            if np.count_nonzero(seen) > limit:
                waiting += [rows[len(rows) // 2 :], rows[: len(rows) // 2]]
                continue
        if len(rows):
            yield rows


@dataclass(frozen=True, eq=False)
class _WordSimilarities:
    """Similarities of a chunk's u words to the v words of the base lattice.

    Attributes:
        words: distinct words of the chunk, ascending, int64[u].
        exact: ics, float64[v + 1, u]; the last row, where `BaseLattice.padded` points, is -1.
        upper: transposed upper bounds of the ics, float32[u, v].
        column_maxima: the largest upper bound in each column's intent, float32[u, b].
    """

    words: Int64s
    exact: Float64s
    upper: Float32s
    column_maxima: Float32s

    @classmethod
    def of(cls, words: Int64s, base: BaseLattice) -> _WordSimilarities:
        exact = np.full((len(base.words) + 1, len(words)), -1.0)
        upper = np.empty((len(words), len(base.words)), dtype=np.float32)
        column_maxima = np.empty((len(words), len(base)), dtype=np.float32)
        step = max(1, BLOCK_PAIRS // max(1, len(base), len(base.words)))
        for start in range(0, len(words), step):
            part = slice(start, start + step)
            exact[:-1, part] = ics_block(base.hierarchy, base.words, words[part])
            above = (np.ceil(exact[:-1, part] * BOUND_UNITS) / BOUND_UNITS).astype(np.float32)
            upper[part] = above.T
            maxima = np.zeros((len(base), above.shape[1]), dtype=np.float32)
            for i in range(base.padded.shape[1]):
                longer = int(np.searchsorted(base.sizes, i, side="right"))
                np.maximum(maxima[longer:], above[base.padded[longer:, i]], out=maxima[longer:])
            column_maxima[part] = maxima.T
        return cls(words, exact, upper, column_maxima)


def _search_chunk(
    batch: Concepts,
    links: sparse.csr_array,
    base: BaseLattice,
    settings: SimilaritySettings,
    rows: Int64s,
    race: _Race,
) -> None:
    sizes = batch.intent_sizes[rows]
    _, taken = ragged(batch.intent_pointers[rows], sizes)
    words = np.unique(batch.intents[taken].astype(np.int64))
    similarities = _WordSimilarities.of(words, base)
    step = max(1, BLOCK_PAIRS // len(base))
    for size in np.unique(sizes).tolist():
        of_size = rows[sizes == size]
        for start in range(0, len(of_size), step):
            part = of_size[start : start + step]
            block = _Block.of(batch, links, base, settings, similarities, part, race)
            block.search()


@dataclass(eq=False)
class _Block:
    """Current concepts with one number of words, against all columns.

    Attributes:
        rows: rows of the race, int64[r].
        intents: positions in the similarities' words, int64[r, |Y2|].
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
        batch: Concepts,
        links: sparse.csr_array,
        base: BaseLattice,
        settings: SimilaritySettings,
        similarities: _WordSimilarities,
        rows: Int64s,
        race: _Race,
    ) -> _Block:
        """The block of some rows; those that can't reach their floors are left out."""
        extent_sizes = batch.extent_sizes[rows]
        _, taken = ragged(batch.extent_pointers[rows], extent_sizes)
        extents = _ones_csr(pointers(extent_sizes), batch.extents[taken], links.shape[0], np.int64)
        counts = ((extents @ links) @ base.membership).tocsr()
        per_row = np.diff(counts.indptr).astype(np.int64)
        row = np.repeat(np.arange(len(rows), dtype=np.int64), per_row)
        column = counts.indices.astype(np.int64)
        largest = settings.extension_parts * np.maximum(extent_sizes[row], base.extent_sizes[column])
        extension = np.minimum(counts.data / largest, 1.0)

        best_extension = np.zeros(len(rows))
        np.maximum.at(best_extension, row, extension)
        reachable = _bound(best_extension, np.ones(len(rows)), settings) >= race.similarity[rows]
        if not reachable.all():
            kept = reachable[row]
            place = np.cumsum(reachable) - 1
            row, column, extension, rows = place[row[kept]], column[kept], extension[kept], rows[reachable]
        size = int(batch.intent_sizes[rows[0]]) if len(rows) else 0
        words = batch.intents[batch.intent_pointers[rows][:, None] + np.arange(size)]
        intents = np.searchsorted(similarities.words, words)
        return cls(base, settings, similarities, race, rows, intents, row, column, extension)

    def search(self) -> None:
        """Settle the best pair of each row."""
        if not len(self.rows):
            return
        intension = self._intension_bounds()
        linked_intension = intension[self.linked_rows, self.linked_columns].astype(np.float64)
        bounds = _bound(self.linked_extension, linked_intension, self.settings)
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
        weight = 1.0 if self.settings.weight == "adaptive" else 1.0 - self.settings.weight
        least = 1.0 / (BOUND_UNITS * max(self.intents.shape[1], self.base.padded.shape[1], 1))
        return weight * least * BOUND_SLACK

    def _intension_bounds(self) -> Float32s:
        """Upper bounds of the intension of all pairs, float32[r, b]: sums of the smaller intent's largest ics."""
        base, size = self.base, self.intents.shape[1]
        smaller = int(np.searchsorted(base.sizes, size, side="right"))
        bounds = np.zeros((len(self.rows), len(base)), dtype=np.float32)
        if smaller and size:
            maxima = self.similarities.upper[self.intents[:, 0]]
            for i in range(1, size):
                np.maximum(maxima, self.similarities.upper[self.intents[:, i]], out=maxima)
            bounds[:, :smaller] = (base.incidence[:smaller] @ np.ascontiguousarray(maxima.T)).T
        if smaller < len(base):
            for i in range(size):
                bounds[:, smaller:] += self.similarities.column_maxima[self.intents[:, i], smaller:]
        norms = self._norms(np.arange(len(base))).astype(np.float32)
        bounds /= norms * np.float32(1 - BOUND_SLACK)
        np.minimum(bounds, 1.0, out=bounds)
        return bounds

    def _leads(self, rows: Int64s, columns: Int64s, bounds: Float64s) -> Bools:
        return self.race.leads(self.rows[rows], bounds, self.base.ranks[columns])

    def _try_best_linked(self, bounds: Float64s) -> None:
        """Examine the linked pair with the largest bound of each row, and strike its bound out."""
        starts = group_starts(self.linked_rows)
        if not len(starts):
            return
        lengths = np.diff(starts, append=len(bounds))
        top = bounds == np.repeat(np.maximum.reduceat(bounds, starts), lengths)
        ranks = np.where(top, self.base.ranks[self.linked_columns], len(self.base))
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
            going = np.flatnonzero((top >= 0) & (bound >= self.race.similarity[self.rows[active]]))
            if not len(going):
                return _no_pairs()
            left = left if len(going) == len(left) else left[going]
            active, top, bound = active[going], top[going], bound[going]
            ranks = np.where(left == top[:, None], self.base.ranks, len(self.base))
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
        return _bound(np.zeros(len(intension)), intension.astype(np.float64), self.settings)

    def _try_all(self, rows: Int64s, columns: Int64s, extension: Float64s, bounds: Float64s) -> None:
        """Examine pairs until none could lead, by descending bounds, twice as many of a row each time."""
        count = 1
        while len(rows):
            order = np.lexsort((self.base.ranks[columns], -bounds, rows))
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
        size = self.intents.shape[1]
        result = np.full(len(rows), -1.0)
        smaller = self.base.sizes[columns] <= size
        for base_first, group in ((True, np.flatnonzero(smaller)), (False, np.flatnonzero(~smaller))):
            width = int(self.base.sizes[columns[group]].max(initial=0))
            step = max(1, EXACT_VALUES // max(1, width * size))
            for start in range(0, len(group), step):
                part = group[start : start + step]
                result[part] = self._examine_part(rows[part], columns[part], extension[part], width, base_first)
        return result

    def _examine_part(
        self, rows: Int64s, columns: Int64s, extension: Float64s, width: int, base_first: bool
    ) -> Float64s:
        base_words, current_words = self.base.padded[columns, :width], self.intents[rows]
        if base_first:
            values = self.similarities.exact[base_words[:, :, None], current_words[:, None, :]]
        else:
            values = self.similarities.exact[base_words[:, None, :], current_words[:, :, None]]
        norms, ranks = self._norms(columns), self.base.ranks[columns]
        matched, bound = _greedy_matchings(values, np.minimum(self.base.sizes[columns], self.intents.shape[1]))

        def enter(which: Int64s, total: Float64s) -> None:
            intension = total / norms[which]
            similarity[which] = combine(extension[which], intension, self.settings)
            self.race.enter(
                self.rows[rows[which]],
                columns[which],
                ranks[which],
                similarity[which],
                (extension[which], intension),
            )

        similarity = np.full(len(rows), -1.0)
        settled = matched == bound
        enter(np.flatnonzero(settled), matched[settled])
        open_pairs = np.flatnonzero(~settled)
        upper = _bound(extension[open_pairs], bound[open_pairs] / norms[open_pairs], self.settings)
        open_pairs = open_pairs[self._leads(rows[open_pairs], columns[open_pairs], upper)]
        self.race.matchings += len(open_pairs)
        totals = np.zeros(len(open_pairs))
        for i, pair in enumerate(open_pairs.tolist()):
            # Filling, where there is any, is the last words of the base's side.
            block = (
                values[pair, : self.base.sizes[columns[pair]]]
                if base_first
                else (values[pair, :, : self.base.sizes[columns[pair]]])
            )
            chosen = linear_sum_assignment(block, maximize=True)
            totals[i] = block[chosen].sum()
        enter(open_pairs, totals)
        return similarity


def _no_pairs() -> tuple[Int64s, Int64s, Float64s]:
    return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)


def _greedy_matchings(values: Float64s, counts: Int64s) -> tuple[Float64s, Float64s]:
    """Matchings made row by row, and upper bounds of the optimal ones.

    Args:
        values: float64[p, rows, columns], >= 0 and negative in filling; the filling is at the end of the rows or of the
            columns, and no block has more rows than columns without it.
        counts: matched pairs of each block, int64[p]: its rows without filling.

    Returns:
        (weight of the greedy matching, upper bound) float64[p] each; where they are equal the matching is optimal.
    """
    row_bound = np.maximum(values.max(axis=2, initial=0.0), 0.0).sum(axis=1)
    free = values.copy()
    matched = np.zeros(len(values))
    block = np.arange(len(values))
    for row in range(values.shape[1]):
        best = free[:, row].argmax(axis=1)
        matched += np.maximum(values[block, row, best], 0.0)
        free[block, :, best] = -1.0
    bound = row_bound.copy()
    behind = np.flatnonzero(matched < row_bound)
    column_maxima = -np.sort(-np.maximum(values[behind].max(axis=1, initial=0.0), 0.0), axis=1)
    column_bound = np.where(np.arange(column_maxima.shape[1]) < counts[behind, None], column_maxima, 0.0).sum(axis=1)
    bound[behind] = np.minimum(row_bound[behind], column_bound)
    return matched, bound


def matching(
    hierarchy: WeightedHierarchy, base_intent: npt.NDArray[np.integer], current_intent: npt.NDArray[np.integer]
) -> tuple[Int32s, Int32s, Float64s]:
    """An optimal matching of two intents under ics (P13 Def. 17), to show what an intension is made of.

    Of the optimal matchings one with as many equal words as possible is taken, unless both intents have more than 64.

    Returns:
        (base words, current words, ics), int32[n], int32[n], float64[n], n = min(|Y1|, |Y2|), by ascending base word.
    """
    rows, columns = np.sort(base_intent).astype(np.int32), np.sort(current_intent).astype(np.int32)
    block = ics_block(hierarchy, rows, columns)
    weights = block
    if min(block.shape) <= DISTINCT_MATCHES:
        # Less than a step of the grid even for all words together, so it decides between equal sums only.
        weights = block + (rows[:, None] == columns) / (2 * DISTINCT_MATCHES * ICS_UNITS)
    chosen = linear_sum_assignment(weights, maximize=True)
    return rows[chosen[0]], columns[chosen[1]], block[chosen]


@dataclass(frozen=True, eq=False)
class ObjectScores:
    """SemRank of n current objects (P13 Def. 21) and the pair of concepts that it comes from.

    Attributes:
        objects: numbers or ids of the objects, ascending, int64[n].
        similarity: the largest similarity over the object's concepts, float64[n].
        extension: of that pair, float64[n].
        intension: of that pair, float64[n].
        base_ids: id of its base concept, int64[n].
        current_ids: id of its current concept, int64[n].
    """

    objects: Int64s
    similarity: Float64s
    extension: Float64s
    intension: Float64s
    base_ids: Int64s
    current_ids: Int64s

    def __len__(self) -> int:
        return len(self.objects)


def best_per_object(batch: Concepts, pairs: BestPairs, base: BaseLattice) -> ObjectScores:
    """The best pair of each object of a batch: (similarity desc, base id asc, current id asc) decides."""
    found = np.flatnonzero(pairs.base >= 0)
    base_ids = base.concepts.ids[pairs.base[found]]
    order = found[np.lexsort((batch.ids[found], base_ids, -pairs.similarity[found]))]
    place, taken = ragged(batch.extent_pointers[order], batch.extent_sizes[order])
    objects, numbers = np.unique(batch.extents[taken].astype(np.int64), return_inverse=True)
    first = np.full(len(objects), len(order), dtype=np.int64)
    np.minimum.at(first, numbers, place)
    best = order[first]
    return ObjectScores(
        objects=objects,
        similarity=pairs.similarity[best],
        extension=pairs.extension[best],
        intension=pairs.intension[best],
        base_ids=base.concepts.ids[pairs.base[best]],
        current_ids=batch.ids[best],
    )


def no_scores() -> ObjectScores:
    """Scores of no object."""
    numbers, values = np.zeros(0, dtype=np.int64), np.zeros(0)
    return ObjectScores(numbers, values, values, values, numbers, numbers)


def merge_best(scores: Iterable[ObjectScores]) -> ObjectScores:
    """The best of several scores of each object, by the order of `best_per_object`; associative and commutative."""
    parts = [no_scores(), *scores]
    objects = np.concatenate([part.objects for part in parts])
    similarity = np.concatenate([part.similarity for part in parts])
    base_ids = np.concatenate([part.base_ids for part in parts])
    current_ids = np.concatenate([part.current_ids for part in parts])
    order = np.lexsort((current_ids, base_ids, -similarity, objects))
    best = order[group_starts(objects[order])]
    return ObjectScores(
        objects=objects[best],
        similarity=similarity[best],
        extension=np.concatenate([part.extension for part in parts])[best],
        intension=np.concatenate([part.intension for part in parts])[best],
        base_ids=base_ids[best],
        current_ids=current_ids[best],
    )


def object_floors(batch: Concepts, known: ObjectScores) -> Floors:
    """What the pairs of current concepts must reach to improve any of their objects: the worst score known for one.

    A concept without objects can't improve any: its floor is inf.
    """
    place = positions(known.objects, batch.extents.astype(np.int64))
    if len(known):
        similarity = np.where(place >= 0, known.similarity[place], -1.0)
        base_ids = np.where(place >= 0, known.base_ids[place], np.iinfo(np.int64).max)
    else:
        similarity = np.full(len(place), -1.0)
        base_ids = np.full(len(place), np.iinfo(np.int64).max)
    concept = np.repeat(np.arange(len(batch), dtype=np.int64), batch.extent_sizes)
    floor = np.full(len(batch), np.inf)
    np.minimum.at(floor, concept, similarity)
    worst = similarity == floor[concept]
    floor_ids = np.full(len(batch), np.iinfo(np.int64).min)
    np.maximum.at(floor_ids, concept[worst], base_ids[worst])
    return Floors(floor, floor_ids)


def rank_objects(
    batches: Iterable[Concepts], links: sparse.csr_array, base: BaseLattice, settings: SimilaritySettings
) -> tuple[ObjectScores, SimilarityCounters]:
    """SemRank of all objects of some batches; what is known from earlier batches narrows the search in later ones.

    Args:
        batches: current concepts over the same objects, which are rows of `links`.
        links: as in `best_base_concepts`.
        base: the base concepts.
        settings: profile of the similarity.

    Returns:
        The scores, which don't depend on how the concepts are split into batches, and the work done.
    """
    scores, counters = no_scores(), SimilarityCounters()
    for batch in batches:
        pairs = best_base_concepts(batch, links, base, settings, object_floors(batch, scores))
        counters += pairs.counters
        scores = merge_best([scores, best_per_object(batch, pairs, base)])
    return scores, counters
