"""Sums that do not depend on parts or order, against NumPy's."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from semrank.transforms.columnar.arrays import Float64s
from semrank.transforms.ranking import exact_sums

VALUES = arrays.arrays(np.float64, st.tuples(st.integers(0, 30), st.just(3)), elements=st.floats(-1000, 1000, width=32))


@given(VALUES, st.integers(0, 30))
def test_moments_are_those_of_all_rows(values: Float64s, cut: int) -> None:
    limbs = exact_sums.product_limbs(values[:cut]) + exact_sums.product_limbs(values[cut:])
    moments = exact_sums.Moments(limbs, 3)
    assert moments.count == len(values)
    whole = exact_sums.Moments(exact_sums.product_limbs(values[::-1]), 3)
    assert moments.means.tolist() == whole.means.tolist()
    assert moments.covariances.tolist() == whole.covariances.tolist()
    if len(values):
        np.testing.assert_allclose(moments.means, values.mean(axis=0), atol=1e-9)
        np.testing.assert_allclose(moments.covariances, np.cov(values.T, bias=True), atol=1e-6)
    else:
        assert not moments.means.any()
        assert not moments.covariances.any()


def test_equal_values_have_no_variance() -> None:
    moments = exact_sums.Moments(exact_sums.product_limbs(np.full((10_000, 2), 1 / 3)), 2)
    assert moments.count == 10_000
    assert not moments.covariances.any()
    np.testing.assert_allclose(moments.means, 1 / 3, atol=1e-11)


def test_too_large_a_value_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"found the value 1024.0, expected values below 1024"):
        exact_sums.product_limbs(np.array([[-1024.0]]))


def test_sums_have_room_for_all_terms() -> None:
    for terms in (0, 1, 1000, 1 << 30, (1 << 40) - 1):
        bits = exact_sums.sum_bits(terms)
        assert max(terms, 1) << bits < 1 << 62
    assert exact_sums.sum_bits(1) == 52


SIZES = {"first": 3, "none": 0, "second": 2}


@given(st.lists(st.lists(st.integers(-9, 9), min_size=5, max_size=5), max_size=4))
def test_rows_bring_the_vectors_back(parts: list[list[int]]) -> None:
    numbers = np.array(parts, dtype=np.int64).reshape(-1, 5)
    entries = exact_sums.entries
    tables = [exact_sums.sum_rows({"second": entries(row[3:]), "first": entries(row[:3])}, SIZES) for row in numbers]
    rows = exact_sums.added_sums(pa.concat_tables([exact_sums.SUM_SCHEMA.empty_table(), *tables]))
    found = exact_sums.sum_vectors([rows], SIZES)
    assert list(found) == list(SIZES)
    assert np.concatenate(list(found.values())).tolist() == numbers.sum(axis=0).tolist()
    assert exact_sums.sum_vectors([], SIZES)["first"].tolist() == [0, 0, 0]
