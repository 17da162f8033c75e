"""What the closed-set kernels search: a context's distinct rows with attributes replaced by their ranks.

Ranks run from the rarest attribute to the most frequent one. The kernels find concepts with at least two distinct
rows in the extent; those with one (`lone_rows`) are found here, without a search.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from semrank.transforms.columnar.arrays import (
    Bools,
    Int32s,
    Int64s,
    entry_rows,
    group_lengths,
    group_starts,
    mix_bits,
    pointers,
    ragged,
    row_pointers,
)
from semrank.transforms.columnar.ids import set_id
from semrank.transforms.lattice.attributes import AttributeOrder, predicted_work
from semrank.transforms.lattice.context import Concepts, FormalContext

PAIR_BUDGET = 1 << 20
"""Pairs of rows that are compared at once: some ten arrays of that length (80 MB) stand in memory together."""


SPARSE_SHARE = 0.5
"""Share of all entries that are above a rank, below which its rows are searched by these alone."""


class RankedConcepts(NamedTuple):
    """A kernel's output: closed sets of `SearchSpace` as row numbers and ranks.

    Attributes:
        extent_indptr: int64[n + 1].
        extent_rows: row numbers, int32, ascending within a concept.
        intent_indptr: int64[n + 1].
        intent_ranks: ranks, int32, in any order within a concept.
    """

    extent_indptr: Int64s
    extent_rows: Int32s
    intent_indptr: Int64s
    intent_ranks: Int32s


@dataclass(frozen=True, eq=False)
class RankedRows:
    """Distinct rows as sets of ranks.

    Attributes:
        indptr: where each row's ranks begin and end, int64[n + 1].
        ranks: int32[indptr[-1]], ascending within a row.
        weights: number of objects that have the row, int64[n].
        rank_count: ranks run from 0 to rank_count - 1.
        min_support: least number of objects of a concept.
    """

    indptr: Int64s
    ranks: Int32s
    weights: Int64s
    rank_count: int
    min_support: int

    @property
    def row_count(self) -> int:
        """Number of rows, n."""
        return len(self.indptr) - 1

    @cached_property
    def lengths(self) -> Int64s:
        """Number of ranks of each row, int64[n]."""
        return np.diff(self.indptr)

    @cached_property
    def owners(self) -> Int64s:
        """Row of each entry of `ranks`."""
        return np.repeat(np.arange(self.row_count, dtype=np.int64), self.lengths)

    @cached_property
    def columns(self) -> tuple[Int64s, Int32s]:
        """The transpose: (indptr int64[rank_count + 1], row numbers int32, ascending within a rank)."""
        rows = max(1, self.row_count)
        keys = np.sort(self.ranks.astype(np.int64) * rows + self.owners)
        return row_pointers(self.ranks, self.rank_count), (keys % rows).astype(np.int32)

    @cached_property
    def entries_read(self) -> Int64s:
        """Number of entries of the rows that hold each rank, int64[rank_count]."""
        lengths = self.lengths[self.owners].astype(np.float64)
        return np.bincount(self.ranks, weights=lengths, minlength=self.rank_count).astype(np.int64)

    @cached_property
    def column_words(self) -> tuple[Int64s, Int64s]:
        """At most how many words the columns of each rank's rows take, int64[rank_count].

        Returns:
            (columns of all frequent items, columns of the items above the rank).
        """
        width = (np.diff(self.columns[0]) + 63) // 64
        items = np.minimum(self.entries_read // max(2, self.min_support), self.rank_count)
        return items * width, np.minimum(items, np.arange(self.rank_count)[::-1]) * width

    @cached_property
    def sparse(self) -> Bools:
        """Ranks whose rows are better searched by the items above the rank alone, bool[rank_count].

        These have more rows than a word has bits, and either most items of a row are rarer than the rank, or columns
        of all items would take more words than the rows have entries.
        """
        supports = np.diff(self.columns[0])
        above = supports[::-1].cumsum()[::-1] - supports
        mostly_below = above < SPARSE_SHARE * supports.sum()
        return np.asarray((supports > 64) & (mostly_below | (self.column_words[0] > self.entries_read)), dtype=np.bool_)

    def select(self, numbers: Int64s) -> RankedRows:
        """Some of the rows, in the order given and numbered anew."""
        lengths = self.lengths[numbers]
        ranks = self.ranks[ragged(self.indptr[numbers], lengths)[1]]
        return RankedRows(pointers(lengths), ranks, self.weights[numbers], self.rank_count, self.min_support)

    def keep_entries(self, kept: Bools) -> RankedRows:
        """The same rows with only some of the entries of `ranks`."""
        lengths = np.bincount(self.owners[kept], minlength=self.row_count)
        return RankedRows(pointers(lengths), self.ranks[kept], self.weights, self.rank_count, self.min_support)

    def condition(self, prefix: Sequence[int]) -> tuple[RankedRows, Int64s]:
        """The rows that hold all ranks of a prefix, without these ranks, and their row numbers int64[rows]."""
        indptr, members = self.columns
        chosen = np.arange(self.row_count, dtype=np.int64)
        for rank in prefix:
            chosen = np.intersect1d(chosen, members[indptr[rank] : indptr[rank + 1]], assume_unique=True)
        rows = self.select(chosen)
        return rows.keep_entries(~np.isin(rows.ranks, np.array(prefix, dtype=np.int32))), chosen

    @cached_property
    def search_space(self) -> SearchSpace:
        """What a kernel searches for the concepts with at least two rows."""
        return SearchSpace.of(self)

    def lone_rows(self, start: int, stop: int) -> Int64s:
        """Rows whose attributes no other row holds, among those whose least rank is in [start, stop); int64[found].

        Each is the extent of a concept, and these are all concepts with one distinct row (an empty row apart).
        """
        filled = np.flatnonzero((self.lengths > 0) & (self.weights >= self.min_support))
        least = self.ranks[self.indptr[filled]]
        wanted = filled[(least >= start) & (least < stop)]
        lone = np.ones(self.row_count, dtype=np.bool_)
        for chunk in chunks(self._sharers_of_least_rank(wanted), PAIR_BUDGET):
            lone[self._held_by_another(wanted[chunk])] = False
        return wanted[lone[wanted]]

    def _sharers_of_least_rank(self, rows: Int64s) -> Int64s:
        """Number of rows that hold each row's least rank; any row that holds all its ranks is among them."""
        return np.diff(self.columns[0])[self.ranks[self.indptr[rows]]]

    @cached_property
    def _signatures(self) -> npt.NDArray[np.uint64]:
        """One bit of 64 for each rank of a row: a row can hold another's ranks only if it has all its bits."""
        bits = np.uint64(1) << (mix_bits(np.arange(self.rank_count, dtype=np.uint64)) >> np.uint64(58))
        signatures = np.zeros(self.row_count, dtype=np.uint64)
        filled = np.flatnonzero(self.lengths)
        if len(filled):
            signatures[filled] = np.bitwise_or.reduceat(bits[self.ranks], self.indptr[filled])
        return signatures

    @cached_property
    def _entry_keys(self) -> Int64s:
        """One ascending number for each entry, by row and then rank."""
        return self.owners * max(1, self.rank_count) + self.ranks

    def _held_by_another(self, rows: Int64s) -> Int64s:
        """Those of the rows whose ranks are all held by some other row."""
        indptr, members = self.columns
        least = self.ranks[self.indptr[rows]]
        owner, positions = ragged(indptr[least], np.diff(indptr)[least])
        held, holder = rows[owner], members[positions].astype(np.int64)
        possible = (self._signatures[held] & ~self._signatures[holder]) == 0
        possible &= (held != holder) & (self.lengths[holder] > self.lengths[held])
        held, holder = held[possible], holder[possible]
        pair, entries = ragged(self.indptr[held], self.lengths[held])
        keys = holder[pair] * max(1, self.rank_count) + self.ranks[entries]
        found = np.searchsorted(self._entry_keys, keys)
        present = self._entry_keys[np.minimum(found, len(self._entry_keys) - 1)] == keys
        matches = np.bincount(pair[present], minlength=len(held))
        return np.asarray(held[matches == self.lengths[held]], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class SearchSpace:
    """Rows and columns for the search of concepts with at least two distinct rows.

    Ranks with fewer than two rows or fewer than `min_support` objects have been dropped; the others keep their
    number, so that a search does not depend on which rows are present.

    Attributes:
        row_indptr: int64[n + 1].
        row_ranks: int32, ascending within a row.
        column_indptr: int64[m + 1].
        column_rows: int32, ascending within a rank.
        weights: number of objects of each row, int64[n].
        has_weights: whether any row stands for more than one object.
        sparse: ranks whose rows are better searched by the items above the rank alone, bool[m].
        min_support: least number of objects of a concept.
    """

    row_indptr: Int64s
    row_ranks: Int32s
    column_indptr: Int64s
    column_rows: Int32s
    weights: Int64s
    has_weights: bool
    sparse: Bools
    min_support: int

    @classmethod
    def of(cls, rows: RankedRows) -> SearchSpace:
        """The search space of ranked rows."""
        distinct = np.bincount(rows.ranks, minlength=rows.rank_count)
        has_weights = bool((rows.weights > 1).any())
        objects = (
            np.bincount(rows.ranks, weights=rows.weights[rows.owners].astype(np.float64), minlength=rows.rank_count)
            if has_weights
            else distinct
        )
        searched = (distinct >= 2) & (objects >= rows.min_support)
        if not searched.all():
            rows = rows.keep_entries(searched[rows.ranks])
        return cls(rows.indptr, rows.ranks, *rows.columns, rows.weights, has_weights, rows.sparse, rows.min_support)

    @property
    def rank_count(self) -> int:
        """Number of ranks, m."""
        return len(self.column_indptr) - 1


@dataclass(frozen=True, eq=False)
class RankedContext:
    """A context prepared for mining: equal rows are merged, attributes replaced by ranks.

    Build it once and mine any number of bundles from it.

    Attributes:
        order: the attributes' order; it may be that of a larger context of which this one is a part.
        rows: the distinct rows, numbered by their first object.
        member_indptr: where each distinct row's objects begin and end, int64[rows + 1].
        member_objects: object numbers, int32, ascending within a row.
    """

    order: AttributeOrder
    rows: RankedRows
    member_indptr: Int64s
    member_objects: Int32s

    @classmethod
    def of(cls, context: FormalContext, order: AttributeOrder) -> RankedContext:
        """Prepares a context.

        Raises:
            ValueError: the order is for another number of attributes.
        """
        if context.attribute_count != len(order.ranks):
            raise ValueError(
                f"the context has {context.attribute_count} attributes, the order {len(order.ranks)}; "
                "expected the same number"
            )
        owners, ranks = _ranked_entries(context, order)
        indptr = row_pointers(owners, context.object_count)
        objects, class_starts = _equal_rows(indptr, ranks)
        weights = group_lengths(class_starts, len(objects))
        first = objects[class_starts]
        by_first = np.argsort(first)
        _, positions = ragged(class_starts[by_first], weights[by_first])
        lengths = np.diff(indptr)[first[by_first]]
        _, entries = ragged(indptr[first[by_first]], lengths)
        rows = RankedRows(pointers(lengths), ranks[entries], weights[by_first], len(order), order.min_support)
        return cls(order, rows, pointers(rows.weights), objects[positions].astype(np.int32))

    @cached_property
    def predicted_work(self) -> float:
        """Predicted work of enumerating all concepts, in the unit of `attributes.predicted_work`."""
        rows = self.rows
        supports = np.diff(rows.columns[0])
        return float(predicted_work(rows.row_count, supports, rows.entries_read, rows.min_support).sum())

    def concepts(
        self, found: RankedConcepts, row_numbers: Int64s | None = None, prefix: Sequence[int] = ()
    ) -> Concepts:
        """Row numbers and ranks turned back into object and attribute numbers.

        Args:
            found: concepts of these rows, or of the rows that hold a prefix.
            row_numbers: number of each of the rows that hold the prefix; all rows when not given.
            prefix: ranks that every intent has besides those found.
        """
        rows = found.extent_rows if row_numbers is None else row_numbers[found.extent_rows].astype(np.int32)
        extents = self._object_sets(found.extent_indptr, rows)
        intents = self._attribute_sets(found.intent_indptr, found.intent_ranks, prefix)
        return Concepts(*extents, *intents)

    def _object_sets(self, indptr: Int64s, rows: Int32s) -> tuple[Int64s, Int32s]:
        if len(self.member_objects) == self.rows.row_count:
            # No two objects have equal rows, so a row has its object's number.
            return indptr, rows
        weights = self.rows.weights[rows]
        entry, positions = ragged(self.member_indptr[rows], weights)
        owners = entry_rows(indptr)[entry]
        return row_pointers(owners, len(indptr) - 1), _sorted_within(owners, self.member_objects[positions])

    def _attribute_sets(self, indptr: Int64s, ranks: Int32s, prefix: Sequence[int]) -> tuple[Int64s, Int32s]:
        concept_numbers = np.arange(len(indptr) - 1, dtype=np.int64)
        owners = np.repeat(concept_numbers, np.diff(indptr))
        if prefix:
            owners = np.concatenate([owners, np.repeat(concept_numbers, len(prefix))])
            ranks = np.concatenate([ranks, np.tile(np.array(prefix, dtype=np.int32), len(concept_numbers))])
        lengths = np.diff(indptr) + len(prefix)
        return pointers(lengths), _sorted_within(owners, self.order.attributes[ranks])


def _sorted_within(owners: Int64s, numbers: Int32s) -> Int32s:
    """Numbers grouped by owner and ascending within each."""
    keys = owners << 32
    keys |= numbers
    keys.sort()
    # The low half of a key is the number.
    return (keys & 0xFFFFFFFF).astype(np.int32)


def _ranked_entries(context: FormalContext, order: AttributeOrder) -> tuple[Int64s, Int32s]:
    """Object and rank of each incidence whose attribute is in the order, by object and then rank."""
    ranks = order.ranks[context.indices]
    owners = entry_rows(context.indptr)
    if len(order) < context.attribute_count:
        kept = ranks >= 0
        owners, ranks = owners[kept], ranks[kept]
    return owners, _sorted_within(owners, ranks)


def _equal_rows(indptr: Int64s, ranks: Int32s) -> tuple[Int64s, Int64s]:
    """Objects grouped by equal rows: (object numbers int64[n], where each group begins int64[groups]).

    Objects ascend within a group. Two rows that share a 64-bit hash are compared in full; should different rows share
    one, equal rows between them may stay apart, which costs time and changes nothing.
    """
    hashes = set_id(ranks.astype(np.int64), indptr)
    objects = np.argsort(hashes, kind="stable")
    if not len(objects):
        return objects, objects
    same = np.zeros(len(objects), dtype=np.bool_)
    alike = np.flatnonzero(hashes[objects[1:]] == hashes[objects[:-1]]) + 1
    left, right = objects[alike - 1], objects[alike]
    lengths = np.diff(indptr)
    same[alike] = lengths[left] == lengths[right]
    pair, positions = ragged(indptr[left], np.where(same[alike], lengths[left], 0))
    partner = positions - indptr[left][pair] + indptr[right][pair]
    same[alike[pair[ranks[positions] != ranks[partner]]]] = False
    return objects, np.flatnonzero(~same)


def chunks(costs: Int64s, budget: int) -> Iterator[slice]:
    """Consecutive slices whose costs add up to about a budget, or to one item's cost where that is larger."""
    if not len(costs):
        return
    starts = group_starts((np.cumsum(costs) - costs) // budget)
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(costs)], strict=True):
        yield slice(start, stop)
