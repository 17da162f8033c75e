"""The bit filter of ids: never a false no, seldom a false yes."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.transforms.columnar import idfilter
from semrank.transforms.columnar.arrays import int64s, split_by_value
from semrank.transforms.columnar.idfilter import (
    MAX_BITS,
    MIN_BITS,
    IdFilter,
    filter_bits,
    filter_positions,
    filter_segment,
)


def made(ids: np.ndarray, bits: int) -> IdFilter:
    positions = filter_positions(ids, bits)
    segments = [
        filter_segment(number, part) for number, part in split_by_value(positions, int64s(positions["segment"]))
    ]
    return IdFilter.from_segments(pa.concat_tables(segments[::-1]) if segments else None, bits)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=30), st.sampled_from([8, 64, 256]))
def test_no_id_of_the_set_is_missed(ids: list[int], segment_bits: int) -> None:
    with mock.patch.object(idfilter, "SEGMENT_BITS", segment_bits):
        column = np.array(ids, dtype=np.int64)
        assert made(column, 256).may_contain(column).all()


def test_few_foreign_ids_pass() -> None:
    count = 20_000
    ids = np.random.default_rng(3).integers(-(2**63), 2**63 - 1, size=2 * count, dtype=np.int64)
    bits = filter_bits(count)
    filled = made(ids[:count], bits)
    share = filled.may_contain(ids[count:]).mean()
    assert share == pytest.approx(1 - np.exp(-count / bits), abs=0.005)


def test_an_empty_filter_lets_nothing_pass() -> None:
    ids = np.arange(100, dtype=np.int64)
    assert not IdFilter.from_segments(None, MIN_BITS).may_contain(ids).any()


@pytest.mark.parametrize(("expected", "bits"), [(0, MIN_BITS), (10_000, 1 << 18), (10**12, MAX_BITS)])
def test_size_of_the_filter(expected: int, bits: int) -> None:
    assert filter_bits(expected) == bits
