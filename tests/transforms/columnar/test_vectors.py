"""Vectors come back from their tables, in whatever order these come."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.transforms.columnar import vectors
from semrank.transforms.columnar.vectors import read_vectors, vector_tables


@pytest.fixture(scope="module", autouse=True)
def small_pieces() -> object:
    """Several pieces even of short vectors."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors, "_PIECE", 3)
        yield


@given(st.dictionaries(st.sampled_from("abc"), st.lists(st.floats(allow_nan=False), max_size=10)), st.randoms())
def test_vectors_come_back(expected: dict[str, list[float]], chance: random.Random) -> None:
    tables = list(vector_tables({name: np.array(numbers) for name, numbers in expected.items()}))
    assert all(table.nbytes < 100 for table in tables)
    found = read_vectors(chance.sample(tables, len(tables)))
    assert {name: vector.tolist() for name, vector in found.items()} == expected
