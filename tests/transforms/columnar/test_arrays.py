"""Operations on arrays and tables, against loops."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.transforms.columnar.arrays import (
    PARTITION_BYTES,
    bounded_slices,
    distinct_rows,
    entry_rows,
    filter_lists,
    group_lengths,
    group_starts,
    group_sums,
    is_new_row,
    list_column,
    list_parts,
    members,
    optional_int64s,
    partition_count,
    partition_numbers,
    places_in_groups,
    pointers,
    positions,
    ragged,
    row_pointers,
    sort_rows,
    split_by_partition,
    split_by_value,
    sum_by_key,
    sum_rows,
)

SMALL = st.integers(-3, 3)
WIDE = st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1])
RANGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), max_size=8)


def int64(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize(
    ("size", "count"),
    [(0, 1), (PARTITION_BYTES, 1), (PARTITION_BYTES + 1, 2), (2 * PARTITION_BYTES + 1, 4), (4 * PARTITION_BYTES, 4)],
)
def test_partitions_are_a_power_of_two(size: int, count: int) -> None:
    assert partition_count(size) == count


@given(RANGES)
def test_ragged_ranges(ranges: list[tuple[int, int]]) -> None:
    owner, position = ragged(int64([start for start, _ in ranges]), int64([length for _, length in ranges]))
    expected = [(i, place) for i, (start, length) in enumerate(ranges) for place in range(start, start + length)]
    assert list(zip(owner.tolist(), position.tolist(), strict=True)) == expected


@given(st.lists(st.none() | st.lists(SMALL, max_size=3), max_size=8), st.integers(0, 3))
def test_lists_and_pointers(lists: list[list[int] | None], skipped: int) -> None:
    whole = pa.chunked_array([pa.array(lists[:2], pa.list_(pa.int64())), pa.array(lists[2:], pa.list_(pa.int64()))])
    indptr, values = list_parts(whole.slice(skipped))
    known = [members or [] for members in lists[skipped:]]
    assert indptr.tolist() == pointers(int64([len(row) for row in known])).tolist()
    assert list_column(values, indptr).to_pylist() == known


@given(st.lists(st.none() | st.lists(SMALL, max_size=3), max_size=8), st.integers(0, 3))
def test_lists_keep_some_of_their_values(lists: list[list[int] | None], skipped: int) -> None:
    column = pa.array(lists, pa.list_(pa.int64())).slice(skipped)
    kept = np.array([value > 0 for members in lists[skipped:] for value in members or []], dtype=np.bool_)
    expected = [members and [value for value in members if value > 0] for members in lists[skipped:]]
    assert filter_lists(column, kept).to_pylist() == expected


@given(st.lists(SMALL | WIDE), st.lists(SMALL | WIDE))
def test_look_up(ids: list[int], wanted: list[int]) -> None:
    known = sorted(set(ids))
    assert members(int64(known), int64(wanted)).tolist() == [number in known for number in wanted]
    expected = [known.index(number) if number in known else -1 for number in wanted]
    assert positions(int64(known), int64(wanted)).tolist() == expected


@given(st.lists(SMALL))
def test_groups_begin_where_the_key_changes(keys: list[int]) -> None:
    runs = [[place for place, _ in run] for _, run in groupby(enumerate(sorted(keys)), key=lambda pair: pair[1])]
    starts = group_starts(int64(sorted(keys)))
    assert starts.tolist() == [run[0] for run in runs]
    assert group_lengths(starts, len(keys)).tolist() == [len(run) for run in runs]
    assert places_in_groups(starts, len(keys)).tolist() == [place for run in runs for place in range(len(run))]
    assert group_sums(np.arange(len(keys)), starts).tolist() == [sum(run) for run in runs]


@given(st.lists(st.tuples(SMALL | WIDE, SMALL, st.integers(1, 5)), max_size=15))
def test_rows_with_equal_keys_are_added_up(rows: list[tuple[int, int, int]]) -> None:
    expected: Counter[tuple[int, int]] = Counter()
    for first, second, count in rows:
        expected[first, second] += count
    *keys, counts = (int64([row[place] for row in rows]) for place in range(3))
    found = sum_rows(keys, counts, -counts)
    assert list(zip(*(column.tolist() for column in found), strict=True)) == [
        (*key, expected[key], -expected[key]) for key in sorted(expected)
    ]


@given(st.lists(st.integers(0, 4)), st.integers(5, 7))
def test_pointers_and_rows_of_entries(rows: list[int], count: int) -> None:
    indptr = row_pointers(int64(rows), count)
    assert np.diff(indptr).tolist() == [rows.count(row) for row in range(count)]
    assert entry_rows(indptr).tolist() == sorted(rows)


def test_a_missing_table_has_no_numbers() -> None:
    assert optional_int64s(None, "id").tolist() == []
    assert optional_int64s(pa.table({"id": [3, 1]}), "id").tolist() == [3, 1]


@given(st.lists(st.tuples(SMALL, SMALL)))
def test_rows_are_new_where_any_column_changes(rows: list[tuple[int, int]]) -> None:
    columns = [int64([row[place] for row in sorted(rows)]) for place in range(2)]
    found = [row for row, new in zip(sorted(rows), is_new_row(*columns).tolist(), strict=True) if new]
    assert found == sorted(set(rows))


@given(st.lists(SMALL | WIDE), st.integers(1, 5))
def test_split_by_partition_keeps_rows_of_an_id_together(ids: list[int], count: int) -> None:
    table = pa.table({"id": pa.array(ids, pa.int64()), "row": list(range(len(ids)))})
    parts = list(split_by_partition(table, int64(ids), count))
    numbers = [number for number, _ in parts]
    assert numbers == sorted(set(numbers))
    assert set(numbers) <= set(range(count))
    found = {row: number for number, part in parts for row in part["row"].to_pylist()}
    assert found == dict(enumerate(partition_numbers(int64(ids), count).tolist()))
    assert all(part["row"].to_pylist() == sorted(part["row"].to_pylist()) for _, part in parts)
    of_id: dict[int, set[int]] = {}
    for number, part in parts:
        for one in part["id"].to_pylist():
            of_id.setdefault(one, set()).add(number)
    assert all(len(partitions) == 1 for partitions in of_id.values())


@given(st.lists(st.sampled_from([-1, 0, 1, 65535, 65536, 2**40])))
def test_split_by_value(numbers: list[int]) -> None:
    table = pa.table({"row": pa.array(range(len(numbers)), pa.int64())})
    found = [(number, part["row"].to_pylist()) for number, part in split_by_value(table, int64(numbers))]
    expected = [(n, [row for row, other in enumerate(numbers) if other == n]) for n in sorted(set(numbers))]
    assert found == expected


def test_partitions_are_about_equal_for_neighbouring_ids() -> None:
    counts = np.bincount(partition_numbers(np.arange(8000, dtype=np.int64), 8))
    assert counts.min() > 900
    assert counts.max() < 1100


@given(st.integers(0, 50), st.integers(8, 200))
def test_slices_are_bounded_and_complete(rows: int, target: int) -> None:
    table = pa.table({"row": pa.array(range(rows), pa.int64())})
    slices = list(bounded_slices(table, target))
    assert [row for part in slices for row in part["row"].to_pylist()] == list(range(rows))
    # A slice is a whole number of rows of eight bytes.
    assert all(0 < part.num_rows * 8 <= target + 8 for part in slices)


@given(st.lists(st.tuples(SMALL, st.sampled_from("ab"), st.integers(0, 5)), max_size=15))
def test_sums_and_distinct_rows(rows: list[tuple[int, str, int]]) -> None:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    schema = pa.schema([("key", pa.int64()), ("name", pa.string()), ("count", pa.int64())])
    table = pa.table([pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema)
    sums: Counter[tuple[int, str]] = Counter()
    for key, name, count in rows:
        sums[key, name] += count
    summed = sort_rows(sum_by_key(table, "count"), "key", "name")
    assert summed.schema == schema
    assert [tuple(row.values()) for row in summed.to_pylist()] == sorted((*key, total) for key, total in sums.items())
    assert [tuple(row.values()) for row in sort_rows(distinct_rows(table)).to_pylist()] == sorted(set(rows))
