"""Ids that never change, and collisions that are found."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from semrank.transforms.columnar.ids import (
    DIGEST_SCHEMA,
    IdCollisionError,
    check_collisions,
    combine_ids,
    digest_table,
    mix_bits,
    set_id,
    text_digests,
    text_ids,
)

IDS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.lists(st.text(max_size=5), max_size=10)


def test_ids_are_stable_for_ever() -> None:
    # The first is the published XXH3-128 of nothing, 99aa06d3014798d86001c324468d497f.
    assert text_ids(pa.array(["", "https://example.org/", "ä"])).tolist() == [
        0x6001C324468D497F,
        -3096692557192492266,
        6066459093398238388,
    ]


@given(TEXTS)
def test_digests_are_the_halves_of_xxh3(texts: list[str]) -> None:
    digests = text_digests(pa.array(texts, pa.string()))
    assert digests.shape == (len(texts), 2)
    for text, (number, check) in zip(texts, digests.tolist(), strict=True):
        whole = xxhash.xxh3_128_intdigest(text.encode())
        assert number % 2**64 == whole % 2**64
        assert check % 2**64 == whole >> 64


@given(TEXTS)
def test_ids_do_not_depend_on_the_kind_of_array(texts: list[str]) -> None:
    plain = pa.array(texts, pa.string())
    expected = text_ids(plain).tolist()
    chunks = pa.chunked_array([plain.slice(0, 3), plain.slice(3)], pa.string())
    for strings in (plain.cast(pa.large_string()), plain.dictionary_encode(), chunks, chunks.dictionary_encode()):
        assert text_ids(strings).tolist() == expected


def test_null_has_no_id() -> None:
    with pytest.raises(ValueError, match="found 1 nulls among 2 values"):
        text_ids(pa.array(["a", None]))


@given(st.lists(IDS, unique=True, max_size=20))
def test_mixing_and_combining_keep_ids_apart(ids: list[int]) -> None:
    column = np.array(ids, dtype=np.int64)
    assert len(set(mix_bits(column.view(np.uint64)).tolist())) == len(ids)
    assert len(set(combine_ids(column, np.full_like(column, 3)).tolist())) == len(ids)


def test_combined_ids_depend_on_the_order_of_columns() -> None:
    one, two = np.array([1], dtype=np.int64), np.array([2], dtype=np.int64)
    assert combine_ids(one, two) != combine_ids(two, one)


@given(st.lists(st.sets(st.integers(-3, 3), max_size=4), min_size=2, max_size=8), st.randoms())
def test_ids_of_sets(sets: list[set[int]], random: object) -> None:
    shuffled = [sorted(members, key=lambda _: random.random()) for members in sets]  # type: ignore[attr-defined]
    indptr = np.cumsum([0, *map(len, sets)])
    ids = set_id(np.array([member for members in shuffled for member in members], dtype=np.int64), indptr)
    assert (ids >= 0).all()
    assert len(set(ids.tolist())) == len(set(map(frozenset, sets)))
    assert len(dict(zip(ids.tolist(), map(frozenset, sets), strict=True))) == len(set(ids.tolist()))


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), max_size=12))
def test_digest_tables_are_distinct(rows: list[tuple[int, int]]) -> None:
    table = digest_table(np.array(rows, dtype=np.int64).reshape(-1, 2))
    assert table.schema == DIGEST_SCHEMA
    assert list(zip(table["id"].to_pylist(), table["check"].to_pylist(), strict=True)) == sorted(set(rows))


def test_collisions_are_found_across_tables() -> None:
    tables = [digest_table(np.array(rows, dtype=np.int64)) for rows in ([[1, 5], [2, 6]], [[1, 5]], [[2, 7]])]
    assert check_collisions(tables[:2]) == 2
    assert check_collisions([]) == 0
    with pytest.raises(IdCollisionError, match=r"1 of 2 64-bit ids stand for more than one string.*first is 2"):
        check_collisions(tables)
