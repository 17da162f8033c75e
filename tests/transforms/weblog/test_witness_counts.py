"""Witnesses are counted alike whether or not a pair and its witness fit into one number."""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.transforms.weblog import relations

WORD_COUNT = 6
TRIPLES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 4)), max_size=30)


@pytest.mark.parametrize("space", [relations._KEY_SPACE, 1])
@given(triples=TRIPLES)
def test_each_witness_of_a_pair_counts_once(space: int, triples: list[tuple[int, int, int]]) -> None:
    source, target, witness = np.array(triples, dtype=np.int64).reshape(-1, 3).T
    with patch.object(relations, "_KEY_SPACE", space):
        table = relations._count_witnesses(source, target, witness, WORD_COUNT)
    assert table.schema == relations.PAIR_SCHEMA
    found = [(row["source"], row["target"], row["support"]) for row in table.to_pylist()]
    expected = Counter((a, b) for a, b, _ in set(triples))
    assert found == sorted((a, b, count) for (a, b), count in expected.items())
