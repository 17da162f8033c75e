"""Closed sets by depth-first search, compiled with Numba.

The search is prefix-preserving closure extension (Uno, Asai, Uchida, Arimura 2004; Kuznetsov's Close-by-One): an
extent is extended by one item above its last generator, and the result counts only if no item below the generator is
new in its closure. Four things make it fast.

- The conditional database of a rank holds its rows reduced to the items that are frequent there, and a column of bits
  for each item. A child's columns are its parent's columns, each cut by one AND with the child's extent.
- An item below the generator that holds the whole extent stands in the extent's first row; so only the few items of
  that row are tested, each by one AND-NOT of its column in the database against the extent.
- Where a rank has many rows and most of their items are rarer than it (`SearchSpace.sparse`), its database keeps only
  the items above the rank. Those below are tested without columns: the first row's are looked up in the second,
  third, ... row of the extent until none is left, mostly at once.
- A node with far fewer rows than its columns have bits gets a database of its own.

The stack is kept in arrays that the caller owns: the search stops when the output is full and goes on from there.

Positions in the inner loops are made unsigned: for signed ones Numba adds a test whether they count from the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

from semrank.transforms.columnar.arrays import Bools, Int32s, Int64s
from semrank.transforms.lattice.search_space import RankedConcepts, SearchSpace

Words = npt.NDArray[np.uint64]

EXTENT_BUFFER = 1 << 20
"""Row numbers (4 MiB) that the output takes before it is handed over; one larger extent enlarges it."""

INTENT_BUFFER = 1 << 18
"""Ranks (1 MiB) that the output takes before it is handed over."""

FIRST_LENGTH = 1 << 14
"""Length of each growing array of the workspace (128 KiB of words) before anything is known to need more."""

RELOAD_CANDIDATES = 8
"""A node needs more candidates than this for a database of its own: below, cutting long columns is cheaper."""

INSERTION_SORT = 64
"""Up to so many items, insertion beats the general sort."""

DONE, OUTPUT_FULL, WORKSPACE_FULL = 0, 1, 2

# Fields of `_State.registers`.
ROOT, STOP, DEPTH, CONCEPTS, EXTENT_END, INTENT_END, EXTENT_NEED, INTENT_NEED = range(8)

# Fields of `_State.needs`: entries that each growing array of the workspace must hold.
NEED_ROWS, NEED_ENTRIES, NEED_ITEMS, NEED_WORDS, NEED_CANDIDATES = range(5)

# Fields of a conditional database: where its parts begin in the workspace's arrays, and their sizes.
(
    DB_ROWS,
    DB_ROW_COUNT,
    DB_ENTRIES_END,
    DB_ITEMS,
    DB_ITEM_COUNT,
    DB_WIDTH,
    DB_MASK,
    DB_HEAVY,
    DB_COLUMNS,
    DB_BELOW,
    DB_KNOWN,
) = range(11)

# Fields of a node of the search tree.
DATABASE, EXTENT, COLUMNS, CANDIDATES, COUNT, NEXT, INTENT = range(7)

ZERO, ONE = np.uint64(0), np.uint64(1)

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _compiled(function: _Function) -> _Function:
    """Compiles a function on first use; the machine code is kept on disk where some directory can be written."""
    try:
        return cast(_Function, numba.njit(cache=True)(function))
    except RuntimeError:
        # Numba found neither NUMBA_CACHE_DIR nor a writable package or user directory.
        return cast(_Function, numba.njit(function))


class _Space(NamedTuple):
    """`SearchSpace` in the form of a conditional database's source."""

    row_indptr: Int64s
    row_ranks: Int32s
    column_indptr: Int64s
    column_rows: Int32s
    ranks: Int32s
    rows: Int32s
    weights: Int64s
    sparse: Bools


class _Workspace(NamedTuple):
    """Stacks of conditional databases and nodes, and scratch space.

    Attributes:
        counts: weight of each item of the source being read, int64; all 0 between uses.
        numbers: number of each of its items in the new database, int32; all -1 between uses.
        touched: its items found, int32; longer than the items are many, see `_keep_frequent`.
        selected: rows of the source in the current extent, int32.
        intent: ranks of the current intent, int32.
        databases: one row of `DB_*` fields for each open database, int64.
        nodes: one row of fields for each open node, int64.
        rows: row numbers of the databases' rows, int32.
        weights: packed weights of these rows, int64.
        indptr: where the entries of these rows begin and end, int64; one more than rows for each database.
        entries: items of these rows, ascending within a row, int32.
        ranks: rank of each item, int32.
        item_counts: weight of each item, int64.
        words: masks and columns, uint64.
        candidates: items that may extend the nodes, int32.
        candidate_counts: their weights in the node, int64.
    """

    counts: Int64s
    numbers: Int32s
    touched: Int32s
    selected: Int32s
    intent: Int32s
    databases: Int64s
    nodes: Int64s
    rows: Int32s
    weights: Int64s
    indptr: Int64s
    entries: Int32s
    ranks: Int32s
    item_counts: Int64s
    words: Words
    candidates: Int32s
    candidate_counts: Int64s


class _State(NamedTuple):
    """Output and registers.

    Attributes:
        extent_indptr: int64[batch size + 1].
        extent_rows: int32.
        intent_indptr: int64[batch size + 1].
        intent_ranks: int32.
        registers: where the search stands and how far the output is filled, int64[8].
        needs: lengths that the workspace's growing arrays must have, int64[5].
    """

    extent_indptr: Int64s
    extent_rows: Int32s
    intent_indptr: Int64s
    intent_ranks: Int32s
    registers: Int64s
    needs: Int64s


@_compiled
def _population(word: np.uint64) -> np.uint64:
    """Number of one bits; LLVM compiles this idiom to the processor's instruction, also for vectors."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@_compiled
def _lowest(word: np.uint64) -> np.int64:
    """Position of the lowest one bit of a word that is not 0."""
    return np.int64(_population((word & (~word + ONE)) - ONE))


@_compiled
def _contained(words: Words, part: int, whole: int, width: int) -> bool:
    """Whether the words at `part` have no bit beyond those at `whole`."""
    # Unsigned positions keep the loop free of tests for negative ones.
    left, right = np.uintp(part), np.uintp(whole)
    for word in range(np.uintp(width)):  # noqa: SIM110 - Numba compiles no generator expression
        if words[left + word] & ~words[right + word] != 0:
            return False
    return True


@_compiled
def _common_count(words: Words, one: int, other: int, width: int) -> np.int64:
    """Number of bits that the words at two places share."""
    left, right = np.uintp(one), np.uintp(other)
    total = np.uint64(0)
    for word in range(np.uintp(width)):
        total += _population(words[left + word] & words[right + word])
    return np.int64(total)


@_compiled
def _store_common(words: Words, one: int, other: int, target: int, width: int) -> None:
    """Writes the bits that the words at two places share."""
    left, right, out = np.uintp(one), np.uintp(other), np.uintp(target)
    for word in range(np.uintp(width)):
        words[out + word] = words[left + word] & words[right + word]


@_compiled
def _surplus(word: np.uint64, first_row: int, weights: Int64s) -> np.int64:
    """Weight beyond 1 of the rows whose bits stand in a word."""
    total = np.int64(0)
    while word != 0:
        total += (weights[first_row + _lowest(word)] >> 32) - 1
        word &= word - ONE
    return total


@_compiled
def _select(words: Words, extent: int, width: int, first_row: int, selected: Int32s) -> None:
    """Lists the rows whose bits stand in an extent."""
    count = np.uintp(0)
    for word in range(np.uintp(width)):
        bits = words[np.uintp(extent) + word]
        base = first_row + (np.int64(word) << 6)
        while bits != 0:
            selected[count] = base + _lowest(bits)
            count += np.uintp(1)
            bits &= bits - ONE


@_compiled
def _write_rows(
    words: Words, extent: int, width: int, first_row: int, rows: Int32s, target: Int32s, position: np.int64
) -> None:
    """Writes the row numbers of the rows whose bits stand in an extent."""
    out = np.uintp(position)
    for word in range(np.uintp(width)):
        bits = words[np.uintp(extent) + word]
        base = np.uintp(first_row) + (word << np.uintp(6))
        while bits != 0:
            target[out] = rows[base + np.uintp(_lowest(bits))]
            out += np.uintp(1)
            bits &= bits - ONE


@_compiled
def _items_below(indptr: Int64s, entries: Int32s, row: int, stop: int, scratch: Int32s) -> np.int64:
    """Lists the items of a row that are below `stop`; returns their number."""
    count = np.uintp(0)
    for entry in range(np.uintp(indptr[row]), np.uintp(indptr[row + 1])):
        if entries[entry] >= stop:
            break
        scratch[count] = entries[entry]
        count += np.uintp(1)
    return np.int64(count)


@_compiled
def _keep_common(indptr: Int64s, entries: Int32s, row: int, scratch: Int32s, count: np.int64) -> np.int64:
    """Keeps those of the listed items that a row holds too; returns their number."""
    entry, end = np.uintp(indptr[row]), np.uintp(indptr[row + 1])
    kept = np.uintp(0)
    for place in range(np.uintp(count)):
        item = scratch[place]
        while entry < end and entries[entry] < item:
            entry += np.uintp(1)
        if entry < end and entries[entry] == item:
            scratch[kept] = item
            kept += np.uintp(1)
    return np.int64(kept)


@_compiled
def _listed_share_item(indptr: Int64s, entries: Int32s, rows: Int32s, count: int, stop: int, scratch: Int32s) -> bool:
    """Whether some item below `stop` stands in all of the listed rows."""
    left = _items_below(indptr, entries, rows[0], stop, scratch)
    for position in range(1, count):
        if left == 0:
            return False
        left = _keep_common(indptr, entries, rows[position], scratch, left)
    return bool(left > 0)


@_compiled
def _extent_shares_more(
    words: Words,
    extent: int,
    width: int,
    rows: Int32s,
    first_row: int,
    indptr: Int64s,
    entries: Int32s,
    stop: int,
    known: int,
    scratch: Int32s,
) -> bool:
    """Whether more than `known` items below `stop` stand in all rows of an extent.

    The extent is given as bits of the rows from `first_row` on; `known` items are in all of them at least.
    """
    left = np.int64(-1)
    for word in range(width):
        bits = words[extent + word]
        while bits != 0:
            row = rows[first_row + (word << 6) + _lowest(bits)]
            bits &= bits - ONE
            if left < 0:
                left = _items_below(indptr, entries, row, stop, scratch)
            else:
                left = _keep_common(indptr, entries, row, scratch, left)
            if left == known:
                return False
    return True


@_compiled
def _first_above(entries: Int32s, begin: int, end: int, below: int) -> int:
    """Where a row's items above `below` begin; there are few of them if there is a `below`."""
    if below < 0:
        return begin
    while end > begin and entries[end - 1] > below:
        end -= 1
    return end


@_compiled
def _append(
    registers: Int64s,
    extent_indptr: Int64s,
    extent_capacity: int,
    intent_indptr: Int64s,
    intent_ranks: Int32s,
    intent: Int32s,
    length: int,
    size: int,
) -> np.int64:
    """Appends a concept to the output, if there is room for it, all but the rows of its extent.

    Returns:
        Where the caller has to write these; -1 if there is no room.
    """
    concept, extent_end, intent_end = registers[CONCEPTS], registers[EXTENT_END], registers[INTENT_END]
    registers[EXTENT_NEED] = size
    registers[INTENT_NEED] = length
    if (
        concept + 1 >= extent_indptr.shape[0]
        or extent_end + size > extent_capacity
        or intent_end + length > intent_ranks.shape[0]
    ):
        return np.int64(-1)
    for position in range(length):
        intent_ranks[intent_end + position] = intent[position]
    registers[CONCEPTS] = concept + 1
    registers[EXTENT_END] = extent_end + size
    registers[INTENT_END] = intent_end + length
    extent_indptr[concept + 1] = extent_end + size
    intent_indptr[concept + 1] = intent_end + length
    return np.int64(extent_end)


@_compiled
def _count_items(
    indptr: Int64s,
    entries: Int32s,
    weights: Int64s,
    selected: Int32s,
    size: int,
    below: int,
    counts: Int64s,
    touched: Int32s,
) -> tuple[int, int, int]:
    """Adds up in `counts` the packed weights of the selected rows by item, and lists the items in `touched`.

    Only items above `below` are read.

    Returns:
        (number of items found, number of entries read, packed weight of the rows).
    """
    found, read, total = np.uintp(0), 0, 0
    for position in range(size):
        row = selected[position]
        weight = weights[row]
        total += weight
        begin, end = _first_above(entries, indptr[row], indptr[row + 1], below), indptr[row + 1]
        read += end - begin
        for entry in range(np.uintp(begin), np.uintp(end)):
            # Whether the item is new is unpredictable, so there is no branch.
            item = np.uintp(entries[entry])
            count = counts[item]
            touched[found] = item
            found += np.uintp(1 if count == 0 else 0)
            counts[item] = count + weight
    return int(found), read, total


@_compiled
def _sort(items: Int32s, count: int) -> None:
    """Sorts the first items, of which there are mostly few."""
    if count > INSERTION_SORT:
        items[:count].sort()
        return
    for position in range(1, count):
        item = items[position]
        place = position
        while place > 0 and items[place - 1] > item:
            items[place] = items[place - 1]
            place -= 1
        items[place] = item


@_compiled
def _keep_frequent(
    counts: Int64s, touched: Int32s, found: int, total: int, generator: int, min_support: int
) -> tuple[int, int]:
    """Keeps in `touched` the items that are frequent but not in all rows, ascending; clears the others' counts.

    Items above the generator that are in all rows are put in `touched` from its end downwards.

    Returns:
        (items kept, items above the generator that are in all rows).
    """
    kept, full = 0, 0
    end = touched.shape[0] - 1
    for position in range(found):
        item = touched[position]
        count = counts[item]
        if count == total:
            counts[item] = 0
            if item > generator:
                touched[end - full] = item
                full += 1
        elif count >> 32 >= min_support and count & 0xFFFFFFFF >= 2:
            touched[kept] = item
            kept += 1
        else:
            counts[item] = 0
    _sort(touched, kept)
    return kept, full


@_compiled
def _load(
    indptr: Int64s,
    entries: Int32s,
    rows: Int32s,
    weights: Int64s,
    ranks: Int32s,
    first_rank: int,
    size: int,
    read: int,
    kept: int,
    generator: int,
    below: int,
    length: int,
    level: int,
    first_word: int,
    first_candidate: int,
    work: _Workspace,
    needs: Int64s,
) -> int:
    """Builds the conditional database of the selected rows of a source, and lists the node's candidates.

    Args:
        indptr: where the entries of the source's rows begin and end.
        entries: items of the source's rows.
        rows: row numbers of the source's rows.
        weights: packed weights of the source's rows.
        ranks: ranks of the source's items from `first_rank` on.
        first_rank: where these begin.
        size: number of selected rows.
        read: number of their entries.
        kept: number of items in `work.touched` that the database keeps.
        generator: item of the source; the candidates are the items kept above it.
        below: only items above it have been counted; -1 if all have.
        length: length of the node's intent in `work.intent`.
        level: the new database's place in the stack.
        first_word: end of the words in use.
        first_candidate: end of the candidates in use.
        work: the workspace.
        needs: where to note what is needed if the workspace is too small.

    Returns:
        Number of candidates, or -1 if the workspace is too small.
    """
    counts, numbers, touched, selected = work.counts, work.numbers, work.touched, work.selected
    databases, words = work.databases, work.words
    new_rows, new_weights, new_indptr, new_entries = work.rows, work.weights, work.indptr, work.entries
    new_ranks, item_counts = work.ranks, work.item_counts
    row, entry, item = 0, 0, 0
    if level > 0:
        row = databases[level - 1, DB_ROWS] + databases[level - 1, DB_ROW_COUNT] + 1
        entry = databases[level - 1, DB_ENTRIES_END]
        item = databases[level - 1, DB_ITEMS] + databases[level - 1, DB_ITEM_COUNT]
    earlier = 0
    while touched[earlier] < generator:
        earlier += 1
    width = (size + 63) >> 6
    heavy = first_word + width
    columns = heavy + width
    end = columns + kept * width
    candidates = kept - earlier
    needs[NEED_ROWS] = row + size + 1
    needs[NEED_ENTRIES] = entry + read
    needs[NEED_ITEMS] = item + kept
    needs[NEED_WORDS] = end
    needs[NEED_CANDIDATES] = first_candidate + candidates
    if (
        needs[NEED_ROWS] > new_rows.shape[0]
        or needs[NEED_ENTRIES] > new_entries.shape[0]
        or needs[NEED_ITEMS] > new_ranks.shape[0]
        or needs[NEED_WORDS] > words.shape[0]
        or needs[NEED_CANDIDATES] > work.candidates.shape[0]
    ):
        for position in range(kept):
            counts[touched[position]] = 0
        return -1
    for position in range(kept):
        source_item = touched[position]
        numbers[source_item] = position
        new_ranks[item + position] = ranks[first_rank + source_item]
        item_counts[item + position] = counts[source_item] >> 32
        counts[source_item] = 0
    for word in range(first_word, end):
        words[word] = 0
    merged = False
    for position in range(size):
        source_row = selected[position]
        word, bit = position >> 6, ONE << np.uint64(position & 63)
        weight = weights[source_row]
        new_rows[row + position] = rows[source_row]
        new_weights[row + position] = weight
        new_indptr[row + position] = entry
        words[first_word + word] |= bit
        if weight >> 32 > 1:
            words[heavy + word] |= bit
            merged = True
        begin = _first_above(entries, indptr[source_row], indptr[source_row + 1], below)
        out = np.uintp(entry)
        for place in range(np.uintp(begin), np.uintp(indptr[source_row + 1])):
            number = numbers[np.uintp(entries[place])]
            new_entries[out] = number
            out += np.uintp(1 if number >= 0 else 0)
        for place in range(np.uintp(entry), out):
            words[np.uintp(columns + new_entries[place] * width + word)] |= bit
        entry = int(out)
    new_indptr[row + size] = entry
    for position in range(kept):
        numbers[touched[position]] = -1
    for position in range(candidates):
        work.candidates[first_candidate + position] = earlier + position
        work.candidate_counts[first_candidate + position] = item_counts[item + earlier + position]
    databases[level, DB_ROWS] = row
    databases[level, DB_ROW_COUNT] = size
    databases[level, DB_ENTRIES_END] = entry
    databases[level, DB_ITEMS] = item
    databases[level, DB_ITEM_COUNT] = kept
    databases[level, DB_WIDTH] = width
    databases[level, DB_MASK] = first_word
    databases[level, DB_HEAVY] = heavy if merged else -1
    databases[level, DB_COLUMNS] = columns
    databases[level, DB_BELOW] = ranks[first_rank + below] if below >= 0 else -1
    databases[level, DB_KNOWN] = 0
    for position in range(length):
        if work.intent[position] < databases[level, DB_BELOW]:
            databases[level, DB_KNOWN] += 1
    return candidates


@_compiled
def _open_roots(space: _Space, work: _Workspace, state: _State, min_support: int) -> int:
    """Goes through the next ranks: emits the closure of each rank alone, until one has candidates.

    The node of that one is put on the stack. A rank's closure that belongs to a lesser rank is left out.

    Returns:
        `DONE`, or which buffer is too small for the current rank.
    """
    registers, selected, touched, counts, intent = (
        state.registers,
        work.selected,
        work.touched,
        work.counts,
        work.intent,
    )
    indptr, ranks, rows, weights = space.row_indptr, space.row_ranks, space.rows, space.weights
    column_indptr, column_rows, identity, sparse = space.column_indptr, space.column_rows, space.ranks, space.sparse
    extent_indptr, extent_rows = state.extent_indptr, state.extent_rows
    intent_indptr, intent_ranks = state.intent_indptr, state.intent_ranks
    candidates = 0
    while candidates == 0 and registers[ROOT] < registers[STOP]:
        root = registers[ROOT]
        begin, size = column_indptr[root], column_indptr[root + 1] - column_indptr[root]
        if size < 2:
            registers[ROOT] = root + 1
            continue
        for position in range(size):
            selected[position] = column_rows[begin + position]
        if _listed_share_item(indptr, ranks, selected, size, root, touched):
            registers[ROOT] = root + 1
            continue
        below = root if sparse[root] else -1
        found, read, total = _count_items(indptr, ranks, weights, selected, size, below, counts, touched)
        kept, full = _keep_frequent(counts, touched, found, total, root, min_support)
        intent[0] = root
        for position in range(full):
            intent[1 + position] = touched[touched.shape[0] - 1 - position]
        if kept > 0 and touched[kept - 1] > root:
            candidates = _load(
                indptr, ranks, rows, weights, identity, 0, size, read, kept, root, below,
                1 + full, 0, 0, 0, work, state.needs,
            )  # fmt: skip
            if candidates < 0:
                return WORKSPACE_FULL
        else:
            for position in range(kept):
                counts[touched[position]] = 0
        out = _append(
            registers, extent_indptr, extent_rows.shape[0], intent_indptr, intent_ranks, intent, 1 + full, size
        )
        if out < 0:
            return OUTPUT_FULL
        for position in range(size):
            extent_rows[out + position] = selected[position]
        registers[ROOT] = root + 1
        if candidates > 0:
            _push_loaded(registers, work.nodes, work.databases, 0, 0, candidates, 1 + full)
    return DONE


@_compiled
def _push(
    registers: Int64s,
    nodes: Int64s,
    level: int,
    extent: int,
    columns: int,
    first_candidate: int,
    candidates: int,
    length: int,
) -> None:
    """Puts a node on the stack."""
    registers[DEPTH] += 1
    depth = registers[DEPTH]
    nodes[depth, DATABASE] = level
    nodes[depth, EXTENT] = extent
    nodes[depth, COLUMNS] = columns
    nodes[depth, CANDIDATES] = first_candidate
    nodes[depth, COUNT] = candidates
    nodes[depth, NEXT] = 0
    nodes[depth, INTENT] = length


@_compiled
def _push_loaded(
    registers: Int64s,
    nodes: Int64s,
    databases: Int64s,
    level: int,
    first_candidate: int,
    candidates: int,
    length: int,
) -> None:
    """Puts the node of a fresh database on the stack: its extent is all rows, its candidates the last items."""
    width = databases[level, DB_WIDTH]
    columns = databases[level, DB_COLUMNS] + (databases[level, DB_ITEM_COUNT] - candidates) * width
    _push(registers, nodes, level, databases[level, DB_MASK], columns, first_candidate, candidates, length)


@_compiled
def _narrow_adds_earlier(
    words: Words,
    entries: Int32s,
    entry: int,
    end: int,
    columns: int,
    parent: int,
    extent: int,
    generator: int,
) -> bool:
    """`_wide_adds_earlier` where a column is one word."""
    bits, parent_bits = words[extent], words[parent]
    for place in range(np.uintp(entry), np.uintp(end)):
        item = entries[place]
        if item >= generator:
            return False
        missing = ~words[np.uintp(columns + item)]
        if bits & missing == 0 and parent_bits & missing != 0:
            return True
    return False


@_compiled
def _wide_adds_earlier(
    words: Words,
    entries: Int32s,
    entry: int,
    end: int,
    columns: int,
    parent: int,
    extent: int,
    generator: int,
    width: int,
    item_counts: Int64s,
    first_count: int,
    weight: int,
) -> bool:
    """Whether an item below the generator holds the extent, but not the parent's extent, by the items' columns.

    Only the items of one row of the extent, those from `entry` to `end`, can.
    """
    while entry < end and entries[entry] < generator:
        item = entries[entry]
        if item_counts[first_count + item] >= weight:
            column = columns + item * width
            if _contained(words, extent, column, width) and not _contained(words, parent, column, width):
                return True
        entry += 1
    return False


@_compiled
def _narrow_candidates(
    words: Words,
    candidates: Int32s,
    counts: Int64s,
    begin: int,
    end: int,
    column: int,
    extent: int,
    target: int,
    heavy: int,
    first_row: int,
    weights: Int64s,
    min_support: int,
    intent: Int32s,
    length: int,
    ranks: Int32s,
    first_rank: int,
) -> tuple[int, int]:
    """`_wide_candidates` where a column is one word."""
    bits = words[extent]
    heavy_bits = words[heavy] if heavy >= 0 else ZERO
    kept = np.uintp(0)
    out, listed = np.uintp(target), np.uintp(end)
    for place in range(np.uintp(begin), np.uintp(end)):
        common = bits & words[np.uintp(column - begin) + place]
        if common == bits:
            intent[length] = ranks[first_rank + candidates[place]]
            length += 1
            continue
        weight = np.int64(_population(common))
        if weight >= 2:
            if common & heavy_bits != 0:
                weight += _surplus(common & heavy_bits, first_row, weights)
            if weight >= min_support:
                words[out + kept] = common
                candidates[listed + kept] = candidates[place]
                counts[listed + kept] = weight
                kept += np.uintp(1)
    return int(kept), length


@_compiled
def _wide_candidates(
    words: Words,
    candidates: Int32s,
    counts: Int64s,
    begin: int,
    end: int,
    column: int,
    extent: int,
    target: int,
    heavy: int,
    first_row: int,
    weights: Int64s,
    min_support: int,
    intent: Int32s,
    length: int,
    ranks: Int32s,
    first_rank: int,
    width: int,
    total: int,
) -> tuple[int, int]:
    """Sorts a node's later candidates, seen from one of its children.

    Those that hold the child's extent are put in the intent; those that are frequent in it are listed at `end` and
    their columns, cut by the extent, written at `target`.

    Returns:
        (number of the child's candidates, length of its intent).
    """
    kept = 0
    for place in range(begin, end):
        weight = _common_count(words, extent, column, width)
        if weight >= 2:
            if heavy >= 0:
                for word in range(width):
                    common = words[extent + word] & words[column + word] & words[heavy + word]
                    weight += _surplus(common, first_row + (word << 6), weights)
            if weight == total:
                intent[length] = ranks[first_rank + candidates[place]]
                length += 1
            elif weight >= min_support:
                _store_common(words, extent, column, target + kept * width, width)
                candidates[end + kept] = candidates[place]
                counts[end + kept] = weight
                kept += 1
        column += width
    return kept, length


@_compiled
def _search(space: _Space, work: _Workspace, state: _State, min_support: int) -> int:
    """Searches on until all is found, or the output or the workspace is too small; returns which.

    Nothing has changed on the stack when it returns for want of room, so the same step is tried again.
    """
    # Arrays are taken out of their tuples once: each access to a tuple's array costs an atomic reference count.
    registers, needs, selected, touched, intent = state.registers, state.needs, work.selected, work.touched, work.intent
    extent_indptr, extent_rows = state.extent_indptr, state.extent_rows
    intent_indptr, intent_ranks = state.intent_indptr, state.intent_ranks
    databases, nodes, words = work.databases, work.nodes, work.words
    rows, weights, indptr, entries = work.rows, work.weights, work.indptr, work.entries
    ranks, item_counts = work.ranks, work.item_counts
    candidates, candidate_counts = work.candidates, work.candidate_counts
    space_indptr, space_ranks = space.row_indptr, space.row_ranks
    while True:
        depth = registers[DEPTH]
        if depth < 0:
            if registers[ROOT] >= registers[STOP]:
                return DONE
            status = _open_roots(space, work, state, min_support)
            if status != DONE:
                return status
            continue
        count, begin, first_column = nodes[depth, COUNT], nodes[depth, CANDIDATES], nodes[depth, COLUMNS]
        level, parent, parent_length = nodes[depth, DATABASE], nodes[depth, EXTENT], nodes[depth, INTENT]
        width, first_row, first_item = databases[level, DB_WIDTH], databases[level, DB_ROWS], databases[level, DB_ITEMS]
        columns, below, heavy = databases[level, DB_COLUMNS], databases[level, DB_BELOW], databases[level, DB_HEAVY]
        known = databases[level, DB_KNOWN]
        end, target = begin + count, first_column + count * width
        needs[NEED_ROWS], needs[NEED_ENTRIES], needs[NEED_ITEMS] = 0, 0, 0
        needs[NEED_WORDS], needs[NEED_CANDIDATES] = target + count * width, end + count
        if needs[NEED_WORDS] > words.shape[0] or needs[NEED_CANDIDATES] > candidates.shape[0]:
            return WORKSPACE_FULL
        position = nodes[depth, NEXT]
        while position < count and registers[DEPTH] == depth:
            place, extent = begin + position, first_column + position * width
            generator, weight = candidates[place], candidate_counts[place]
            word = 0
            while words[extent + word] == 0:
                word += 1
            row = first_row + (word << 6) + _lowest(words[extent + word])
            if width == 1:
                rejected = _narrow_adds_earlier(
                    words, entries, indptr[row], indptr[row + 1], columns, parent, extent, generator
                )
            else:
                rejected = _wide_adds_earlier(
                    words, entries, indptr[row], indptr[row + 1], columns, parent, extent, generator,
                    width, item_counts, first_item, weight,
                )  # fmt: skip
            if rejected:
                position += 1
                continue
            if below >= 0 and _extent_shares_more(
                words, extent, width, rows, first_row, space_indptr, space_ranks, below, known, touched
            ):
                position += 1
                continue
            size = int(_common_count(words, extent, extent, width))
            intent[parent_length] = ranks[first_item + generator]
            if width == 1:
                kept, length = _narrow_candidates(
                    words, candidates, candidate_counts, place + 1, end, extent + 1, extent, target,
                    heavy, first_row, weights, min_support, intent, parent_length + 1, ranks, first_item,
                )  # fmt: skip
            else:
                kept, length = _wide_candidates(
                    words, candidates, candidate_counts, place + 1, end, extent + width, extent, target,
                    heavy, first_row, weights, min_support, intent, parent_length + 1, ranks, first_item,
                    width, weight,
                )  # fmt: skip
            reload = kept > RELOAD_CANDIDATES and 2 * ((size + 63) >> 6) <= width
            if reload:
                _select(words, extent, width, first_row, selected)
                left_out = generator if below >= 0 else -1
                found, read, total = _count_items(
                    indptr, entries, weights, selected, size, left_out, work.counts, touched
                )
                frequent, _ = _keep_frequent(work.counts, touched, found, total, generator, min_support)
                kept = _load(
                    indptr, entries, rows, weights, ranks, first_item, size, read, frequent, generator, left_out,
                    length, level + 1, target, end, work, needs,
                )  # fmt: skip
                if kept < 0:
                    nodes[depth, NEXT] = position
                    return WORKSPACE_FULL
            out = _append(
                registers, extent_indptr, extent_rows.shape[0], intent_indptr, intent_ranks, intent, length, size
            )
            if out < 0:
                nodes[depth, NEXT] = position
                return OUTPUT_FULL
            _write_rows(words, extent, width, first_row, rows, extent_rows, out)
            position += 1
            if reload:
                _push_loaded(registers, nodes, databases, level + 1, end, kept, length)
            elif kept > 0:
                _push(registers, nodes, level, extent, target, end, kept, length)
        nodes[depth, NEXT] = position
        if registers[DEPTH] == depth:
            registers[DEPTH] = depth - 1


def closed_sets(space: SearchSpace, start: int, stop: int, batch_size: int) -> Iterator[RankedConcepts]:
    """The concepts with at least two distinct rows whose least rank is in [start, stop), each once.

    Args:
        space: what to search.
        start: first rank.
        stop: one more than the last rank.
        batch_size: largest number of concepts of a batch.

    Yields:
        Batches of at least one concept.
    """
    identity = np.arange(max(space.rank_count, len(space.weights)), dtype=np.int32)
    source = _Space(
        space.row_indptr,
        space.row_ranks,
        space.column_indptr,
        space.column_rows,
        identity,
        identity,
        (space.weights << 32) + 1,
        space.sparse,
    )
    work, state = _workspace(space), _state(start, stop, batch_size)
    while True:
        status = _search(source, work, state, max(2, space.min_support))
        if status == WORKSPACE_FULL:
            work = _enlarged(work, state.needs)
            continue
        if state.registers[CONCEPTS]:
            yield _taken(state)
        if status == DONE:
            return
        state = _emptied(state)


def _workspace(space: SearchSpace) -> _Workspace:
    """A workspace whose fixed arrays suit the search space; the growing ones begin small."""
    longest = int(np.diff(space.row_indptr).max(initial=0))
    largest = int(np.diff(space.column_indptr).max(initial=0))
    items = space.rank_count + 1
    return _Workspace(
        counts=np.zeros(items, dtype=np.int64),
        numbers=np.full(items, -1, dtype=np.int32),
        touched=np.empty(2 * items, dtype=np.int32),
        selected=np.empty(largest + 1, dtype=np.int32),
        intent=np.empty(longest + 1, dtype=np.int32),
        databases=np.zeros((largest.bit_length() + 1, 11), dtype=np.int64),
        nodes=np.zeros((longest + 2, 7), dtype=np.int64),
        rows=np.empty(FIRST_LENGTH, dtype=np.int32),
        weights=np.empty(FIRST_LENGTH, dtype=np.int64),
        indptr=np.empty(FIRST_LENGTH, dtype=np.int64),
        entries=np.empty(FIRST_LENGTH, dtype=np.int32),
        ranks=np.empty(FIRST_LENGTH, dtype=np.int32),
        item_counts=np.empty(FIRST_LENGTH, dtype=np.int64),
        words=np.empty(FIRST_LENGTH, dtype=np.uint64),
        candidates=np.empty(FIRST_LENGTH, dtype=np.int32),
        candidate_counts=np.empty(FIRST_LENGTH, dtype=np.int64),
    )


def _enlarged(work: _Workspace, needs: Int64s) -> _Workspace:
    """The workspace with growing arrays of at least the needed length, at least doubled where they were too short."""
    rows, entries, items, words, candidates = needs.tolist()
    lengths = {
        "rows": rows,
        "weights": rows,
        "indptr": rows,
        "entries": entries,
        "ranks": items,
        "item_counts": items,
        "words": words,
        "candidates": candidates,
        "candidate_counts": candidates,
    }
    grown: dict[str, Any] = {}
    for name, length in lengths.items():
        array = getattr(work, name)
        if length > len(array):
            grown[name] = np.empty(max(length, 2 * len(array)), dtype=array.dtype)
            grown[name][: len(array)] = array
    return work._replace(**grown)


def _state(start: int, stop: int, batch_size: int) -> _State:
    registers = np.zeros(8, dtype=np.int64)
    registers[ROOT], registers[STOP], registers[DEPTH] = start, stop, -1
    return _State(
        extent_indptr=np.zeros(batch_size + 1, dtype=np.int64),
        extent_rows=np.empty(EXTENT_BUFFER, dtype=np.int32),
        intent_indptr=np.zeros(batch_size + 1, dtype=np.int64),
        intent_ranks=np.empty(INTENT_BUFFER, dtype=np.int32),
        registers=registers,
        needs=np.zeros(5, dtype=np.int64),
    )


def _taken(state: _State) -> RankedConcepts:
    """A copy of the concepts in the output."""
    concepts, extent_end, intent_end = state.registers[[CONCEPTS, EXTENT_END, INTENT_END]].tolist()
    return RankedConcepts(
        state.extent_indptr[: concepts + 1].copy(),
        state.extent_rows[:extent_end].copy(),
        state.intent_indptr[: concepts + 1].copy(),
        state.intent_ranks[:intent_end].copy(),
    )


def _emptied(state: _State) -> _State:
    """The output empty again, and large enough for the concept that did not fit."""
    state.registers[[CONCEPTS, EXTENT_END, INTENT_END]] = 0
    extent, intent = state.registers[[EXTENT_NEED, INTENT_NEED]].tolist()
    if extent > len(state.extent_rows):
        state = state._replace(extent_rows=np.empty(extent, dtype=np.int32))
    if intent > len(state.intent_ranks):
        state = state._replace(intent_ranks=np.empty(intent, dtype=np.int32))
    return state
