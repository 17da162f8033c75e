"""Closed sets with NumPy alone: the search of `closed_sets_numba`, made for many nodes of the search tree at a time.

Prefix-preserving closure extension (Uno, Asai, Uchida, Arimura 2004; Kuznetsov's Close-by-One). A chunk of nodes is
expanded at once: all their candidates are tested against the items of one row of each candidate's extent, the closed
ones become nodes of the next chunk. Chunks wait on a stack, so that memory is bounded by the depth of the tree and
the size of a chunk. Sets of rows are bits; databases whose columns need equally many words are stacked.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    pointers,
    ragged,
    row_pointers,
)
from semrank.transforms.lattice.search_space import RankedConcepts, SearchSpace, chunks

Words = npt.NDArray[np.uint64]

CHUNK_WORDS = 1 << 18
"""Words (2 MiB) that the pairs of columns of one chunk come to: they stay in the processor's cache."""

LOAD_ENTRIES = 1 << 20
"""Entries of the rows that are made into databases at once: some ten arrays of that length (80 MB) stand together."""

RELOAD_GAIN = 4
"""A node gets a database of its own when the words that this saves are so many times the entries it reads."""


class _Tasks(NamedTuple):
    """Sets of rows that are to become databases, one for each node.

    Attributes:
        generator: rank; the node's candidates are the ranks above it.
        row_indptr: where each task's rows begin and end.
        rows: row numbers, ascending within a task.
        intent_indptr: where each task's intent begins and ends.
        intents: ranks.
    """

    generator: Int64s
    row_indptr: Int64s
    rows: Int64s
    intent_indptr: Int64s
    intents: Int32s


class _Databases(NamedTuple):
    """Conditional databases whose columns have equally many words.

    Attributes:
        row_start: where each database's rows begin, int64[databases].
        rows: row numbers.
        entry_indptr: where each row's entries begin and end.
        entries: numbers of the items that the rows hold, ascending within a row.
        ranks: rank of each item.
        counts: number of objects of each item.
        columns: rows of each item, uint64[items, width].
        heavy: rows that stand for several objects, uint64[databases, width]; None if there are none.
    """

    row_start: Int64s
    rows: Int64s
    entry_indptr: Int64s
    entries: Int64s
    ranks: Int32s
    counts: Int64s
    columns: Words
    heavy: Words | None


class _Nodes(NamedTuple):
    """Nodes of the search tree that share stacked databases.

    Attributes:
        database: database of each node.
        extent: its rows, uint64[nodes, width].
        indptr: where its candidates begin and end.
        items: items that may extend the nodes, ascending within a node.
        counts: number of objects of each extended node.
        columns: its rows, uint64[candidates, width].
        intent_indptr: where each node's intent begins and ends.
        intents: ranks.
    """

    database: Int64s
    extent: Words
    indptr: Int64s
    items: Int64s
    counts: Int64s
    columns: Words
    intent_indptr: Int64s
    intents: Int32s


def closed_sets(space: SearchSpace, start: int, stop: int) -> Iterator[RankedConcepts]:
    """The concepts with at least two distinct rows whose least rank is in [start, stop), each once.

    Args:
        space: what to search.
        start: first rank.
        stop: one more than the last rank.

    Yields:
        Batches of at least one concept, as large as the chunks of the search happen to be.
    """
    sizes = np.diff(space.column_indptr)[start:stop]
    ranks = np.flatnonzero(sizes) + start
    row_indptr = pointers(sizes[sizes > 0])
    first = space.column_indptr[start]
    rows = space.column_rows[first : first + row_indptr[-1]].astype(np.int64)
    nothing = np.zeros(len(ranks) + 1, dtype=np.int64)
    roots = _Tasks(ranks, row_indptr, rows, nothing, np.zeros(0, dtype=np.int32))
    yield from _Search(space).run(roots)


class _Search:
    """One search; holds the stack and the tasks that wait for company."""

    def __init__(self, space: SearchSpace) -> None:
        self.space = space
        self.min_support = max(2, space.min_support)
        self.row_lengths = np.diff(space.row_indptr)
        self.stack: list[tuple[_Databases, _Nodes]] = []
        self.waiting: list[_Tasks] = []
        self.waiting_entries = 0

    def run(self, roots: _Tasks) -> Iterator[RankedConcepts]:
        for tasks in self._alike(roots):
            yield from self._load_roots(tasks)
            while self.stack or self.waiting:
                if not self.stack or self.waiting_entries > LOAD_ENTRIES:
                    self._load_waiting()
                else:
                    yield from self._expand(*self.stack.pop())

    def _alike(self, tasks: _Tasks) -> Iterator[_Tasks]:
        """The tasks in portions of equal column width and bounded size."""
        widths = _widths(np.diff(tasks.row_indptr))
        reads = np.add.reduceat(np.append(self.row_lengths[tasks.rows], 0), tasks.row_indptr[:-1])
        for width in np.unique(widths):
            chosen = np.flatnonzero(widths == width)
            for portion in chunks(reads[chosen], LOAD_ENTRIES):
                yield _select_tasks(tasks, chosen[portion])

    def _load_roots(self, tasks: _Tasks) -> Iterator[RankedConcepts]:
        """Databases of the tasks' rows; yields the closures of the generators that belong to them."""
        loaded = _Load(self.space, tasks, self.min_support)
        own, closures = loaded.closures()
        if own.any():
            kept = _select_tasks(tasks, np.flatnonzero(own))
            yield RankedConcepts(kept.row_indptr, kept.rows.astype(np.int32), *closures)
        self._push(*loaded.nodes(own, *closures))

    def _load_waiting(self) -> None:
        """Databases of the nodes that were put aside."""
        tasks = _concatenate_tasks(self.waiting)
        self.waiting, self.waiting_entries = [], 0
        for portion in self._alike(tasks):
            loaded = _Load(self.space, portion, self.min_support)
            everything = np.ones(len(portion.generator), dtype=np.bool_)
            self._push(*loaded.nodes(everything, portion.intent_indptr, portion.intents))

    def _push(self, databases: _Databases, nodes: _Nodes) -> None:
        """Puts nodes on the stack in chunks of bounded work."""
        candidates = np.diff(nodes.indptr)
        row_length = len(databases.entries) / max(1, len(databases.rows))
        work = candidates * (candidates // 2 + int(row_length) + 1) * databases.columns.shape[1]
        for portion in chunks(work, CHUNK_WORDS):
            whole = portion == slice(0, len(candidates))
            chunk = nodes if whole else _select_nodes(nodes, np.arange(portion.start, portion.stop))
            self.stack.append((databases, chunk))

    def _put_aside(self, databases: _Databases, nodes: _Nodes, generators: Int64s) -> Bools:
        """Takes the nodes that are worth databases of their own; returns which are left."""
        width = databases.columns.shape[1]
        if width == 1:
            return np.ones(len(nodes.database), dtype=np.bool_)
        sizes = _sizes(nodes.extent)
        narrower = _widths(sizes)
        candidates = np.diff(nodes.indptr)
        row_length = len(databases.entries) / len(databases.rows)
        gain = candidates * candidates * (width - narrower)
        chosen = np.flatnonzero((2 * narrower <= width) & (gain > RELOAD_GAIN * row_length * sizes))
        left = np.ones(len(nodes.database), dtype=np.bool_)
        if len(chosen):
            left[chosen] = False
            indptr, rows = _listed_rows(databases, nodes.database[chosen], nodes.extent[chosen])
            intent_indptr, intents = _select_lists(nodes.intent_indptr, nodes.intents, chosen)
            ranks = databases.ranks[generators[chosen]].astype(np.int64)
            self.waiting.append(_Tasks(ranks, indptr, rows, intent_indptr, intents))
            self.waiting_entries += int(self.row_lengths[rows].sum())
        return left

    def _expand(self, databases: _Databases, nodes: _Nodes) -> Iterator[RankedConcepts]:
        """Tests all candidates of some nodes, yields those that are closed and pushes their own candidates."""
        owner = entry_rows(nodes.indptr)
        closed = np.flatnonzero(~_adds_earlier_item(databases, nodes, owner))
        if not len(closed):
            return
        owner, extent, generators = owner[closed], nodes.columns[closed], nodes.items[closed]
        child, later = ragged(closed + 1, nodes.indptr[owner + 1] - closed - 1)
        columns = extent[child] & nodes.columns[later]
        counts = self._object_counts(databases, nodes.database[owner[child]], columns)
        full = counts == nodes.counts[closed][child]
        frequent = (counts >= self.min_support) & ~full
        if self.space.has_weights:
            frequent &= _sizes(columns) >= 2
        intent_indptr, intents = _child_intents(
            databases, nodes, owner, generators, child[full], nodes.items[later[full]]
        )
        yield RankedConcepts(
            *_narrow_rows(_listed_rows(databases, nodes.database[owner], extent)), intent_indptr, intents
        )
        candidates = np.bincount(child[frequent], minlength=len(closed))
        parents = np.flatnonzero(candidates)
        if not len(parents):
            return
        children = _Nodes(
            nodes.database[owner[parents]],
            extent[parents],
            pointers(candidates[parents]),
            nodes.items[later[frequent]],
            counts[frequent],
            columns[frequent],
            *_select_lists(intent_indptr, intents, parents),
        )
        left = self._put_aside(databases, children, generators[parents])
        if left.any():
            self._push(databases, children if left.all() else _select_nodes(children, np.flatnonzero(left)))

    def _object_counts(self, databases: _Databases, database: Int64s, sets: Words) -> Int64s:
        """Number of objects of sets of rows."""
        counts = _sizes(sets)
        if databases.heavy is not None:
            common = sets & databases.heavy[database]
            merged = np.flatnonzero(_filled(common))
            indptr, rows = _listed_rows(databases, database[merged], common[merged])
            surplus = pointers(self.space.weights[rows] - 1)
            counts[merged] += surplus[indptr[1:]] - surplus[indptr[:-1]]
        return counts


class _Load:
    """The rows of some tasks, read once: groups of equal (task, rank) and their counts.

    The tasks' columns must need equally many words.
    """

    def __init__(self, space: SearchSpace, tasks: _Tasks, min_support: int) -> None:
        self.space, self.tasks = space, tasks
        self.sizes = np.diff(tasks.row_indptr)
        self.width = int(_widths(self.sizes).max(initial=1))
        self.task_of_row = np.repeat(np.arange(len(self.sizes), dtype=np.int64), self.sizes)
        lengths = np.diff(space.row_indptr)[tasks.rows]
        row, entry = ragged(space.row_indptr[tasks.rows], lengths)
        # One sort by (task, rank, row) groups the entries by item and puts the bits of a column in order.
        keys = (self.task_of_row[row] * space.rank_count + space.row_ranks[entry]) * max(1, len(tasks.rows)) + row
        keys.sort()
        item_keys, self.row = np.divmod(keys, max(1, len(tasks.rows)))
        self.starts = group_starts(item_keys)
        self.distinct = group_lengths(self.starts, len(keys))
        self.task, self.rank = np.divmod(item_keys[self.starts], max(1, space.rank_count))
        if space.has_weights:
            weights = pointers(space.weights[tasks.rows][self.row])
            self.counts = np.diff(weights[np.append(self.starts, len(keys))])
        else:
            self.counts = self.distinct
        self.full = self.distinct == self.sizes[self.task]
        self.frequent = ~self.full & (self.distinct >= 2) & (self.counts >= min_support)

    def closures(self) -> tuple[Bools, tuple[Int64s, Int32s]]:
        """Which tasks have a closure without a rank below the generator, and these closures as lists of ranks."""
        own = np.ones(len(self.sizes), dtype=np.bool_)
        own[self.task[self.full & (self.rank < self.tasks.generator[self.task])]] = False
        closed = np.flatnonzero(self.full & own[self.task])
        lengths = np.bincount(self.task[closed], minlength=len(own))[own]
        return own, (pointers(lengths), self.rank[closed].astype(np.int32))

    def nodes(self, own: Bools, intent_indptr: Int64s, intents: Int32s) -> tuple[_Databases, _Nodes]:
        """Databases of the tasks with candidates among those marked, whose intents are given, and a node of each."""
        above = self.frequent & (self.rank > self.tasks.generator[self.task])
        candidates = np.bincount(self.task[above], minlength=len(own)) * own
        live = np.flatnonzero(candidates)
        database_of = np.full(len(own), -1, dtype=np.int64)
        database_of[live] = np.arange(len(live))
        items = np.flatnonzero(self.frequent & (database_of[self.task] >= 0))
        item_of = np.full(len(self.task), -1, dtype=np.int64)
        item_of[items] = np.arange(len(items))

        kept = np.flatnonzero(np.repeat(item_of >= 0, self.distinct))
        row = self.row[kept]
        item = np.repeat(item_of[items], self.distinct[items])
        new_rows, row_start, new_number = self._live_rows(live, database_of)
        position = row - self.tasks.row_indptr[self.task[items]][item]
        databases = _Databases(
            row_start,
            new_rows,
            *_entries_by_row(new_number[row], item, len(new_rows), len(items)),
            self.rank[items].astype(np.int32),
            self.counts[items],
            _bits(item, position, len(items), self.width),
            self._heavy(new_rows, row_start, len(live)),
        )
        chosen = np.flatnonzero(above[items])
        numbers = np.arange(len(live), dtype=np.int64)
        extents = _bits(*ragged(np.zeros(len(live), dtype=np.int64), self.sizes[live]), len(live), self.width)
        position_among_own = np.cumsum(own) - 1
        nodes = _Nodes(
            numbers,
            extents,
            pointers(candidates[live]),
            chosen,
            databases.counts[chosen],
            databases.columns[chosen],
            *_select_lists(intent_indptr, intents, position_among_own[live]),
        )
        return databases, nodes

    def _live_rows(self, live: Int64s, database_of: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """Rows of the tasks that live on: (row numbers, where each task's begin, new place of each old one)."""
        staying = database_of[self.task_of_row] >= 0
        return self.tasks.rows[staying], pointers(self.sizes[live])[:-1], np.cumsum(staying) - 1

    def _heavy(self, rows: Int64s, row_start: Int64s, databases: int) -> Words | None:
        heavy = np.flatnonzero(self.space.weights[rows] > 1) if self.space.has_weights else rows[:0]
        if not len(heavy):
            return None
        database = np.searchsorted(row_start, heavy, side="right") - 1
        return _bits(database, heavy - row_start[database], databases, self.width)


def _widths(sizes: Int64s) -> Int64s:
    """Words of a column of so many bits: a power of two, so that databases of like size can be stacked."""
    words = np.maximum(1, (sizes + 63) >> 6)
    # The exponent of a whole number is its length in bits.
    return np.asarray(np.left_shift(1, np.frexp(words - 1)[1].astype(np.int64)), dtype=np.int64)


def _sizes(sets: Words) -> Int64s:
    """Number of members of bit sets."""
    counts = np.bitwise_count(sets)
    # Reductions of an axis of length 1 take ten times as long as all else.
    return counts[:, 0].astype(np.int64) if sets.shape[1] == 1 else counts.sum(axis=1, dtype=np.int64)


def _filled(sets: Words) -> Bools:
    """Which bit sets have members."""
    return np.asarray(sets[:, 0] != 0 if sets.shape[1] == 1 else sets.any(axis=1), dtype=np.bool_)


def _first_words(sets: Words) -> tuple[Int64s, npt.NDArray[np.uint64]]:
    """The first word of each bit set that is not 0: (its place, the word)."""
    if sets.shape[1] == 1:
        return np.zeros(len(sets), dtype=np.int64), sets[:, 0]
    places = (sets != 0).argmax(axis=1)
    return places, sets[np.arange(len(sets)), places]


def _lowest(words: npt.NDArray[np.uint64]) -> Int64s:
    """Position of the lowest one bit of words that are not 0."""
    return np.bitwise_count((words & (~words + np.uint64(1))) - np.uint64(1)).astype(np.int64)


def _bits(sets: Int64s, members: Int64s, count: int, width: int) -> Words:
    """Bit sets uint64[count, width] of pairs (set, member) in ascending order."""
    words = np.zeros(count * width, dtype=np.uint64)
    if len(sets):
        places = sets * width + (members >> 6)
        starts = group_starts(places)
        bits = np.uint64(1) << (members & 63).astype(np.uint64)
        words[places[starts]] = np.bitwise_or.reduceat(bits, starts)
    return words.reshape(count, width)


def _entries_by_row(rows: Int64s, items: Int64s, row_count: int, item_count: int) -> tuple[Int64s, Int64s]:
    """CSR of the items of each row, from pairs in any order."""
    keys = np.sort(rows * max(1, item_count) + items)
    return row_pointers(rows, row_count), keys % max(1, item_count)


def _listed_rows(databases: _Databases, database: Int64s, sets: Words) -> tuple[Int64s, Int64s]:
    """Row numbers of sets of rows, as CSR."""
    width = sets.shape[1]
    octets = np.ascontiguousarray(sets).astype("<u8", copy=False).view(np.uint8)
    found = np.flatnonzero(np.unpackbits(octets, axis=1, bitorder="little"))
    owner, position = np.divmod(found, 64 * width)
    rows = databases.rows[databases.row_start[database[owner]] + position]
    return row_pointers(owner, len(sets)), rows


def _narrow_rows(lists: tuple[Int64s, Int64s]) -> tuple[Int64s, Int32s]:
    return lists[0], lists[1].astype(np.int32)


def _adds_earlier_item(databases: _Databases, nodes: _Nodes, owner: Int64s) -> Bools:
    """Whether an item below a candidate holds the candidate's extent, but not the node's.

    Such an item stands in every row of the extent, so only those of its first row are compared.
    """
    word, bits = _first_words(nodes.columns)
    row = databases.row_start[nodes.database[owner]] + 64 * word + _lowest(bits)
    lengths = np.diff(databases.entry_indptr)[row]
    candidate, entry = ragged(databases.entry_indptr[row], lengths)
    item = databases.entries[entry]
    if databases.columns.shape[1] == 1:
        # Most comparisons fail, so the cheapest comes first.
        missing = ~databases.columns[item, 0]
        missing &= np.repeat(bits, lengths)
        found = np.flatnonzero(missing == 0)
        candidate, item = candidate[found], item[found]
        below = item < nodes.items[candidate]
        candidate, item = candidate[below], item[below]
    else:
        possible = (item < nodes.items[candidate]) & (databases.counts[item] >= nodes.counts[candidate])
        candidate, item = candidate[possible], item[possible]
        holds = ~_filled(nodes.columns[candidate] & ~databases.columns[item])
        candidate, item = candidate[holds], item[holds]
    new = _filled(nodes.extent[owner[candidate]] & ~databases.columns[item])
    rejected = np.zeros(len(owner), dtype=np.bool_)
    rejected[candidate[new]] = True
    return rejected


def _child_intents(
    databases: _Databases, nodes: _Nodes, owner: Int64s, generators: Int64s, closed_by: Int64s, closing: Int64s
) -> tuple[Int64s, Int32s]:
    """Intents of children: the node's intent, the generator, and the items that the closure adds.

    Args:
        databases: the databases.
        nodes: the nodes.
        owner: node of each child.
        generators: item that made each child.
        closed_by: child of each item that a closure adds, ascending.
        closing: these items.
    """
    before = np.diff(nodes.intent_indptr)[owner]
    indptr = pointers(before + 1 + np.bincount(closed_by, minlength=len(owner)))
    intents = np.empty(indptr[-1], dtype=np.int32)
    child, source = ragged(nodes.intent_indptr[owner], before)
    intents[source - nodes.intent_indptr[owner][child] + indptr[child]] = nodes.intents[source]
    intents[indptr[:-1] + before] = databases.ranks[generators]
    added = np.arange(len(closed_by)) - np.searchsorted(closed_by, closed_by)
    intents[indptr[closed_by] + before[closed_by] + 1 + added] = databases.ranks[closing]
    return indptr, intents


def _select_lists(indptr: Int64s, values: Int32s, chosen: Int64s) -> tuple[Int64s, Int32s]:
    """Some rows of a CSR array."""
    lengths = np.diff(indptr)[chosen]
    return pointers(lengths), values[ragged(indptr[chosen], lengths)[1]]


def _select_tasks(tasks: _Tasks, chosen: Int64s) -> _Tasks:
    sizes = np.diff(tasks.row_indptr)[chosen]
    rows = tasks.rows[ragged(tasks.row_indptr[chosen], sizes)[1]]
    lists = _select_lists(tasks.intent_indptr, tasks.intents, chosen)
    return _Tasks(tasks.generator[chosen], pointers(sizes), rows, *lists)


def _concatenate_tasks(tasks: list[_Tasks]) -> _Tasks:
    return _Tasks(
        np.concatenate([task.generator for task in tasks]),
        pointers(np.concatenate([np.diff(task.row_indptr) for task in tasks])),
        np.concatenate([task.rows for task in tasks]),
        pointers(np.concatenate([np.diff(task.intent_indptr) for task in tasks])),
        np.concatenate([task.intents for task in tasks]),
    )


def _select_nodes(nodes: _Nodes, chosen: Int64s) -> _Nodes:
    lengths = np.diff(nodes.indptr)[chosen]
    _, candidates = ragged(nodes.indptr[chosen], lengths)
    return _Nodes(
        nodes.database[chosen],
        nodes.extent[chosen],
        pointers(lengths),
        nodes.items[candidates],
        nodes.counts[candidates],
        nodes.columns[candidates],
        *_select_lists(nodes.intent_indptr, nodes.intents, chosen),
    )
