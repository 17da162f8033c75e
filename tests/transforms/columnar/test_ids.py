"""Ids that never change, and collisions that are found."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.transforms.columnar import ids
from semrank.transforms.columnar.arrays import mix_bits
from semrank.transforms.columnar.ids import (
    DIGEST_SCHEMA,
    IdCollisionError,
    combine_ids,
    digest_table,
    set_id,
    shared_ids,
    surplus_strings,
    text_digests,
    text_draws,
    text_ids,
    without_shared_ids,
)

IDS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.lists(st.text(max_size=5), max_size=10)


def test_ids_are_stable_for_ever() -> None:
    # The first half of what `b2sum -l 128` prints for nothing.
    found = text_ids(pa.array(["", "https://example.org/", "ä"])).tolist()
    assert found == [
        -3826255101854499520,
        4534805212106757940,
        -3797316707550536085,
    ]


@given(TEXTS)
def test_digests_are_the_halves_of_blake2b(texts: list[str]) -> None:
    digests = text_digests(pa.array(texts, pa.string()))
    assert digests.shape == (len(texts), 2)
    for text, (number, check) in zip(texts, digests.tolist(), strict=True):
        whole = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "big")
        assert number % 2**64 == whole >> 64
        assert check % 2**64 == whole % 2**64


def test_draws_are_the_low_half_of_xxh3() -> None:
    # The first is that of the published XXH3-128 of nothing, 99aa06d3014798d86001c324468d497f.
    drawn = text_draws(pa.array(["", "https://example.org/", "ä"])).tolist()
    assert drawn == [0x6001C324468D497F, -3096692557192492266, 6066459093398238388]
    assert text_draws(pa.array([], pa.string())).tolist() == []


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
def test_mixing_and_combining_keep_ids_apart(numbers: list[int]) -> None:
    column = np.array(numbers, dtype=np.int64)
    assert len(set(mix_bits(column.view(np.uint64)).tolist())) == len(numbers)
    assert len(set(combine_ids(column, np.full_like(column, 3)).tolist())) == len(numbers)


def test_combined_ids_depend_on_the_order_of_columns() -> None:
    one, two = np.array([1], dtype=np.int64), np.array([2], dtype=np.int64)
    assert combine_ids(one, two) != combine_ids(two, one)


@given(st.lists(st.sets(st.integers(-3, 3), max_size=4), min_size=2, max_size=8), st.randoms())
def test_ids_of_sets(sets: list[set[int]], random: object) -> None:
    shuffled = [sorted(members, key=lambda _: random.random()) for members in sets]  # type: ignore[attr-defined]
    indptr = np.cumsum([0, *map(len, sets)])
    found = set_id(np.array([member for members in shuffled for member in members], dtype=np.int64), indptr)
    assert (found >= 0).all()
    assert len(set(found.tolist())) == len(set(map(frozenset, sets)))
    assert len(dict(zip(found.tolist(), map(frozenset, sets), strict=True))) == len(set(found.tolist()))


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), max_size=12))
def test_digest_tables_are_distinct(rows: list[tuple[int, int]]) -> None:
    table = digest_table(np.array(rows, dtype=np.int64).reshape(-1, 2))
    assert table.schema == DIGEST_SCHEMA
    assert list(zip(table["id"].to_pylist(), table["check"].to_pylist(), strict=True)) == sorted(set(rows))


def test_collisions_are_found_across_tables() -> None:
    tables = [digest_table(np.array(rows, dtype=np.int64)) for rows in ([[1, 5], [2, 6]], [[1, 5]], [[2, 7], [3, 7]])]
    assert shared_ids(tables[:2]).tolist() == []
    assert shared_ids([]).tolist() == []
    assert shared_ids(tables).tolist() == [2]


def test_an_error_passes_its_ids_on_as_text() -> None:
    error = IdCollisionError([5, -(2**63)])
    assert IdCollisionError.ids_of_message(f"Traceback: {error} [while running 'x']").tolist() == [5, -(2**63)]
    assert IdCollisionError.ids_of_message("another error").tolist() == []


def short_hash(text: bytes, digest_size: int) -> Any:
    """A hash with five values of the id."""
    whole = hashlib.blake2b(text, digest_size=digest_size).digest()
    return SimpleNamespace(digest=lambda: bytes(7) + bytes([whole[0] % 5]) + whole[8:])


@given(TEXTS)
def test_of_strings_with_one_id_the_first_is_kept(texts: list[str]) -> None:
    with mock.patch.object(ids, "blake2b", short_hash):
        surplus = surplus_strings(pa.array(texts, pa.string())).to_pylist()
        known = pa.array(sorted(set(texts), reverse=True), pa.string())
        words = pa.table({"id": text_ids(known), "word": known})
        kept = without_shared_ids(words, "id", "word")
    first: dict[int, str] = {}
    for text in sorted(set(texts)):
        first.setdefault(hashlib.blake2b(text.encode(), digest_size=16).digest()[0] % 5, text)
    assert surplus == sorted(set(texts) - set(first.values()))
    assert dict(zip(kept["id"].to_pylist(), kept["word"].to_pylist(), strict=True)) == first
    assert kept["id"].to_pylist() == sorted(first)
