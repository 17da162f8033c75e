"""Click sequences and c-edges, against walking through sorted rows one by one."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.transforms.weblog.sequences import CLICK_EDGE_SCHEMA, SEQUENCE_SCHEMA, click_edges

MINUTES_30 = 30 * 60 * 1_000_000
Row = tuple[int, int, int, int, int, int]
"""user, session, query, time, position, url"""

TIMES = st.sampled_from([0, 1, 5, MINUTES_30 - 1, MINUTES_30, MINUTES_30 + 1, 2 * MINUTES_30 + 1, 3 * MINUTES_30])
ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 1), TIMES, st.integers(-1, 2), st.integers(0, 3)),
    max_size=25,
)


def table_of(rows: list[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * 6
    return pa.table([pa.array(column, pa.int64()) for column in columns], schema=SEQUENCE_SCHEMA)


def walked(rows: list[Row]) -> Counter[tuple[int, int]]:
    edges: Counter[tuple[int, int]] = Counter()
    rows = sorted(rows)
    for one, other in pairwise(rows):
        if one[:3] == other[:3] and other[3] - one[3] <= MINUTES_30 and one[5] != other[5]:
            edges[one[5], other[5]] += 1
    return edges


def listed(edges: pa.Table) -> list[tuple[tuple[int, int], int]]:
    pairs = zip(edges["source"].to_pylist(), edges["target"].to_pylist(), strict=True)
    return list(zip(pairs, edges["clicks"].to_pylist(), strict=True))


@given(ROWS)
def test_edges_are_those_of_a_walk(rows: list[Row]) -> None:
    found = click_edges(table_of(rows))
    assert found.schema == CLICK_EDGE_SCHEMA
    assert listed(found) == sorted(walked(rows).items())


@given(ROWS, st.randoms())
def test_order_of_rows_does_not_matter(rows: list[Row], random: object) -> None:
    shuffled = sorted(rows, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert click_edges(table_of(shuffled)).equals(click_edges(table_of(rows)))


@pytest.mark.parametrize(
    ("second", "edges"),
    [
        ((7, 0, 0, MINUTES_30, 0, 2), 1),
        ((7, 0, 0, MINUTES_30 + 1, 0, 2), 0),
        ((7, 0, 0, 9, 0, 1), 0),
        ((8, 0, 0, 9, 0, 2), 0),
        ((7, 1, 0, 9, 0, 2), 0),
        ((7, 0, 1, 9, 0, 2), 0),
    ],
    ids=["just in time", "too late", "same page", "other user", "other session", "other query"],
)
def test_what_ends_a_sequence(second: Row, edges: int) -> None:
    assert click_edges(table_of([(7, 0, 0, 0, 0, 1), second])).num_rows == edges
