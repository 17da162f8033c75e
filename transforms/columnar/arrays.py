"""Small operations on arrays and tables that several rooms need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

TARGET_TABLE_BYTES = 2 << 20
"""Size at which tables travel between stages: large enough that a table's fixed cost (some 50 us) does not show,
small enough that a runner's sort buffer takes it."""

PARTITION_BYTES = 8 << 20
"""Bytes aimed at for one group of a shuffle: a group reaches a worker as one record and has to fit several times."""

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_KEY_SPACE = 1 << 62
"""Keys of rows stay below it, far from the limit of int64."""

MAIN = "main"
"""Tag of the first output of a function that returns tables of several kinds."""


def partition_count(estimated_bytes: int) -> int:
    """Number of partitions for a shuffle of so many bytes: a power of two, at least 1."""
    wanted = max(1, -(-estimated_bytes // PARTITION_BYTES))
    return 1 << (wanted - 1).bit_length()


def int64s(column: pa.Array | pa.ChunkedArray) -> Int64s:
    """A column of integers without nulls as int64[n]."""
    return np.asarray(column.to_numpy(), dtype=np.int64)


def optional_int64s(table: pa.Table | None, name: str) -> Int64s:
    """A column of integers without nulls as int64[n]; empty if there is no table."""
    return np.zeros(0, dtype=np.int64) if table is None else int64s(table[name])


def bools(column: pa.Array | pa.ChunkedArray) -> Bools:
    """A column of booleans without nulls as bool[n]."""
    return np.asarray(column_array(column).to_numpy(zero_copy_only=False), dtype=np.bool_)


def column_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column as one contiguous array."""
    if isinstance(column, pa.ChunkedArray):
        return (
            column.chunk(0)
            if column.num_chunks == 1
            else pa.concat_arrays(column.chunks or [pa.array([], type=column.type)])
        )
    return column


def ragged(starts: Int64s, lengths: Int64s) -> tuple[Int64s, Int64s]:
    """Concatenated ranges: owner and position of every member of [starts[i], starts[i] + lengths[i]).

    Returns:
        (owner int64[sum(lengths)], position int64[sum(lengths)]).
    """
    owner = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
    offsets = starts - (np.cumsum(lengths) - lengths)
    return owner, np.arange(len(owner), dtype=np.int64) + offsets[owner]


def pointers(lengths: npt.NDArray[np.integer | np.bool_]) -> Int64s:
    """CSR pointers int64[n + 1] of rows with these lengths."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])


def row_pointers(rows: npt.NDArray[np.integer], count: int) -> Int64s:
    """CSR pointers int64[count + 1] of entries that are in these rows of `count`."""
    return pointers(np.bincount(rows, minlength=count))


def entry_rows(indptr: npt.NDArray[np.integer]) -> Int64s:
    """The row of each entry, int64[indptr[-1]], from CSR pointers."""
    return np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))


def list_column(values: pa.Array, indptr: Int64s, nulls: pa.BooleanArray | None = None) -> pa.ListArray:
    """A list array from CSR pointers and the values of all rows; `nulls` marks rows that are null."""
    return pa.ListArray.from_arrays(pa.array(indptr, type=pa.int32()), values, mask=nulls)


def list_parts(column: pa.Array | pa.ChunkedArray) -> tuple[Int64s, pa.Array]:
    """CSR pointers int64[n + 1] and the values of a list column; a null row has no values."""
    array = column_array(column)
    lengths = int64s(pc.fill_null(pc.list_value_length(array), 0))
    return pointers(lengths), array.flatten()


def filter_lists(lists: pa.ListArray, kept: Bools) -> pa.ListArray:
    """Lists with only some of their values; a null list stays one.

    Args:
        lists: a list array.
        kept: whether each value of the lists, one list after another, is kept.
    """
    indptr, values = list_parts(lists)
    return list_column(values.filter(pa.array(kept)), pointers(kept)[indptr], lists.is_null())


def is_new_row(*sorted_columns: npt.NDArray[np.integer]) -> Bools:
    """Whether each of the rows, sorted by these columns, differs from the one before, bool[n]; the first does."""
    new = np.zeros(len(sorted_columns[0]), dtype=np.bool_)
    new[:1] = True
    for column in sorted_columns:
        new[1:] |= column[1:] != column[:-1]
    return new


def group_starts(*sorted_columns: npt.NDArray[np.integer]) -> Int64s:
    """Where each group of equal rows begins in sorted columns, int64[number of distinct rows]."""
    return np.flatnonzero(is_new_row(*sorted_columns)).astype(np.int64)


def group_lengths(starts: Int64s, count: int) -> Int64s:
    """Number of rows of each group that begins at `starts`, of `count` rows in all; int64[len(starts)]."""
    return np.diff(np.append(starts, count))


def places_in_groups(starts: Int64s, count: int) -> Int64s:
    """Place of each row in its group, from 0; int64[count]."""
    return np.arange(count, dtype=np.int64) - np.repeat(starts, group_lengths(starts, count))


def group_sums(values: Int64s, starts: Int64s) -> Int64s:
    """The sum of each group of values; int64[len(starts)]."""
    return np.add.reduceat(values, starts) if len(starts) else np.zeros(0, dtype=np.int64)


def sum_rows(keys: Sequence[Int64s], *counts: Int64s) -> list[Int64s]:
    """Distinct rows of the key columns, ascending, and the sums of each column of counts, as further columns."""
    order = np.argsort(row_keys(*keys))
    sorted_keys = [column[order] for column in keys]
    starts = group_starts(*sorted_keys)
    sums = (group_sums(column[order], starts) for column in counts)
    return [*(column[starts] for column in sorted_keys), *sums]


def dense_ranks(values: Int64s) -> tuple[Int64s, int]:
    """Rank of each value among the distinct values, int64[n] from 0, and the number of distinct values."""
    order = np.argsort(values)
    ordered = values[order]
    numbers = np.cumsum(is_new_row(ordered), dtype=np.int64) - 1
    ranks = np.empty_like(order)
    ranks[order] = numbers
    return ranks, int(numbers[-1]) + 1 if len(numbers) else 0


def row_keys(*columns: Int64s) -> Int64s:
    """One key for each row of several columns: keys are equal where rows are, and ordered as rows are.

    To sort the keys takes a fraction of the time of `np.lexsort`, which sorts once for each column, and stably.

    Args:
        columns: int64[n] each, the most significant first; fewer than 2^31 rows.

    Returns:
        int64[n], not negative.
    """
    keys, count = np.zeros(len(columns[0]), dtype=np.int64), 1
    if not len(keys):
        return keys
    for column in columns:
        least = int(column.min())
        span = int(column.max()) - least + 1
        if count * span <= _KEY_SPACE:
            numbers = column - least
        else:
            numbers, span = dense_ranks(column)
            if count * span > _KEY_SPACE:
                keys, count = dense_ranks(keys)
        keys = keys * span + numbers
        count *= span
    return keys


def members(sorted_ids: Int64s, wanted: Int64s) -> Bools:
    """Whether each wanted id stands in a sorted id array, bool[len(wanted)]."""
    if not len(sorted_ids):
        return np.zeros(len(wanted), dtype=np.bool_)
    found = np.searchsorted(sorted_ids, wanted)
    return np.asarray(sorted_ids[np.minimum(found, len(sorted_ids) - 1)] == wanted, dtype=np.bool_)


def positions(sorted_ids: Int64s, wanted: Int64s) -> Int64s:
    """Position of each wanted id in a sorted id array, -1 where it is absent; int64[len(wanted)]."""
    if not len(sorted_ids):
        return np.full(len(wanted), -1, dtype=np.int64)
    found = np.minimum(np.searchsorted(sorted_ids, wanted), len(sorted_ids) - 1)
    return np.where(sorted_ids[found] == wanted, found, -1).astype(np.int64)


def mix_bits(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection of uint64 whose bits look independent."""
    mixed = values.copy()
    with np.errstate(over="ignore"):
        mixed ^= mixed >> np.uint64(30)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(27)
        mixed *= np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed


def partition_numbers(ids: Int64s, count: int) -> Int64s:
    """Partition of each id, int64[n] in [0, count): the id's bits are mixed first, so any id will do."""
    if count == 1:
        return np.zeros(len(ids), dtype=np.int64)
    return (mix_bits(ids.view(np.uint64)) % np.uint64(count)).astype(np.int64)


def split_by_partition(table: pa.Table, ids: Int64s, count: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows of a table by partition of their id: (partition, rows) for each partition that has rows."""
    if not table.num_rows:
        return
    if count == 1:
        yield 0, table
        return
    yield from split_by_value(table, partition_numbers(ids, count))


def split_by_value(table: pa.Table, numbers: Int64s) -> Iterator[tuple[int, pa.Table]]:
    """The rows of a table by their number: (number, rows), ascending."""
    if not table.num_rows:
        return
    # NumPy sorts 16-bit integers by radix, and few shuffles have more partitions than they can number.
    narrow = numbers.astype(np.uint16) if numbers.min() >= 0 and numbers.max() < 1 << 16 else numbers
    order = np.argsort(narrow, kind="stable")
    ordered = table.take(pa.array(order)).combine_chunks()
    starts = group_starts(numbers[order])
    ends = np.append(starts[1:], len(order))
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield int(numbers[order[start]]), ordered.slice(start, end - start)


def bounded_slices(table: pa.Table, target_bytes: int = TARGET_TABLE_BYTES) -> Iterator[pa.Table]:
    """A table cut into slices of about `target_bytes`; nothing for a table without rows."""
    if not table.num_rows:
        return
    pieces = max(1, -(-table.nbytes // target_bytes))
    rows = -(-table.num_rows // pieces)
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows)


def concatenate(tables: Iterable[pa.Table], schema: pa.Schema) -> pa.Table:
    """All tables one after another in one chunk; an empty table of `schema` where there are none."""
    return pa.concat_tables([schema.empty_table(), *(table.cast(schema) for table in tables)]).combine_chunks()


def fold_tables(
    parts: Iterable[pa.Table], combine: Callable[[pa.Table], pa.Table], schema: pa.Schema, rows: int
) -> pa.Table:
    """Tables of a schema combined as they come, so that memory holds what becomes of them and not every part.

    Args:
        parts: tables.
        combine: combines the rows of one table to fewer rows.
        schema: of all tables.
        rows: how many rows are combined at a time; more where they combine to as many.
    """
    folded = schema.empty_table()
    held: list[pa.Table] = []
    waiting, limit = 0, rows
    for part in parts:
        held.append(part)
        waiting += part.num_rows
        if waiting > limit:
            folded = combine(pa.concat_tables([folded, *held]))
            held, waiting, limit = [], 0, max(rows, folded.num_rows)
    return combine(pa.concat_tables([folded, *held]))


def sum_by_key(keys: pa.Table, counts: str) -> pa.Table:
    """Rows with equal values in all columns but `counts` made one, their counts added; columns keep their order."""
    names = [name for name in keys.column_names if name != counts]
    merged = keys.group_by(names).aggregate([(counts, "sum")])
    return merged.rename_columns([*names, counts]).select(keys.column_names).cast(keys.schema)


def distinct_rows(table: pa.Table) -> pa.Table:
    """A table's distinct rows, in no promised order."""
    return table.group_by(table.column_names).aggregate([]).select(table.column_names).cast(table.schema)


def sort_rows(table: pa.Table, *columns: str) -> pa.Table:
    """A table sorted ascending by columns (all of them when none is named), in one chunk."""
    names = columns or tuple(table.column_names)
    return table.sort_by([(name, "ascending") for name in names]).combine_chunks()
