"""Keys of rows against Python's order of tuples."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from semrank.transforms.columnar.arrays import dense_ranks, row_keys

numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)
tables = st.integers(1, 6).flatmap(lambda width: st.lists(st.tuples(*[numbers] * width), min_size=1, max_size=40))


@given(rows=tables)
def test_keys_are_ordered_and_equal_as_rows_are(rows: list[tuple[int, ...]]) -> None:
    columns = [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)]
    keys = row_keys(*columns).tolist()
    assert min(keys) >= 0
    for key, row in zip(keys, rows, strict=True):
        assert [key < other for other in keys] == [row < other for other in rows]


def test_wide_ranges_in_many_columns_do_not_overflow() -> None:
    random = np.random.default_rng(5)
    columns = [random.integers(-(2**63), 2**63 - 1, 3_000) for _ in range(7)]
    columns[0] = columns[0][random.integers(0, 3, 3_000)]
    assert np.array_equal(np.argsort(row_keys(*columns)), np.lexsort(columns[::-1]))


def test_no_rows_have_no_keys() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    assert len(row_keys(nothing, nothing)) == 0
    assert dense_ranks(nothing)[1] == 0


@given(values=st.lists(numbers))
def test_ranks_are_places_among_the_distinct_values(values: list[int]) -> None:
    ranks, count = dense_ranks(np.array(values, dtype=np.int64))
    distinct = sorted(set(values))
    assert ranks.tolist() == [distinct.index(value) for value in values]
    assert count == len(distinct)
