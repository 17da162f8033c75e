"""Layers, weights and ics against the definitions evaluated naively, and against the numbers that P13 prints."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semrank.transforms.similarity import hierarchy as kernel
from semrank.transforms.similarity.hierarchy import (
    TOP,
    WeightedHierarchy,
    build_hierarchy,
    common_ancestor,
    path_from_top,
)
from tests.support.similarities import ics, ics_block
from tests.transforms.similarity.naive import NaiveHierarchy, Words, word_sets

INTERNET, SPIDER, TECHNOLOGY, NETWORK, WEB_PAGE, OTHERS = range(6)
P13 = Words(
    # Table 3's click numbers are ten times as many as the probabilities that the examples use; these give the latter.
    clicks=[372, 65, 281, 502, 1484, 97296],
    in_base=[True, True, False, False, False, True],
    in_current=[True, True, True, True, True, True],
    part_of=[(INTERNET, TECHNOLOGY), (INTERNET, NETWORK), (SPIDER, WEB_PAGE)],
    top_probability=0.01484,
)


def everywhere(count: int) -> np.ndarray:
    return np.ones(count, dtype=np.bool_)


def random_hierarchy(words: int, part_of: tuple[np.ndarray, np.ndarray], seed: int = 0) -> WeightedHierarchy:
    random = np.random.default_rng(seed)
    clicks = random.integers(1, 1_000, words)
    isa = random.integers(0, words, (2, words // 10))
    return build_hierarchy(clicks, everywhere(words), everywhere(words), part_of, (isa[0], isa[1]))


def test_p13_example_16() -> None:
    hierarchy = P13.build()
    assert hierarchy.layer[[INTERNET, SPIDER, TECHNOLOGY, NETWORK, WEB_PAGE]].tolist() == [1, 1, 2, 2, 2]
    assert hierarchy.weight[NETWORK] == pytest.approx(1 / 1.2 + 1 / 2.2, abs=1e-15)
    assert ics(hierarchy, NETWORK, NETWORK) == 1
    assert ics(hierarchy, INTERNET, WEB_PAGE) == pytest.approx(0.8351, abs=5e-5)
    assert common_ancestor(hierarchy, INTERNET, WEB_PAGE) == TOP
    assert ics(hierarchy, TECHNOLOGY, NETWORK) == pytest.approx(0.7778, abs=5e-5)
    assert common_ancestor(hierarchy, TECHNOLOGY, NETWORK) == INTERNET
    assert path_from_top(hierarchy, NETWORK) == [INTERNET, NETWORK]


@settings(max_examples=400, deadline=None)
@given(words=word_sets())
def test_equals_the_definitions(words: Words) -> None:
    found, expected = words.build(), NaiveHierarchy(words)
    everything = range(len(words.clicks))
    assert found.layer.tolist() == [expected.layer[n] for n in everything]
    assert found.weight == pytest.approx([expected.w[n] for n in everything], abs=1e-12)
    assert found.probability == pytest.approx([expected.p[n] for n in everything], abs=1e-15)
    assert found.top_word == (TOP if expected.top is None else expected.top)
    for a in everything:
        for b in everything:
            assert ics(found, a, b) == pytest.approx(expected.ics(a, b), abs=1e-11), (a, b)
            s, information = common_ancestor(found, a, b), expected.common_information(a, b)
            assert (s == TOP) == (information is None)
            assert s == TOP or found.information[s] == pytest.approx(information, abs=1e-12)


@settings(max_examples=150, deadline=None)
@given(
    words=word_sets(12),
    data=st.data(),
    sizes=st.sampled_from([(8, 1, 1, 0), (8, 40, 8, 2), (1024, 1 << 21, 1 << 16, 8)]),
)
def test_blocks_equal_single_pairs(words: Words, data: st.DataObject, sizes: tuple[int, int, int, int]) -> None:
    hierarchy = words.build()
    numbers = st.lists(st.integers(0, 11), max_size=15)
    rows, columns = (np.array(data.draw(numbers), dtype=np.int32) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        for name, size in zip(("SLAB", "SHARED_CELLS", "TILE_CELLS", "FEW"), sizes, strict=True):
            patch.setattr(kernel, name, size)
        block = ics_block(hierarchy, rows, columns)
    expected = [[ics(hierarchy, a, b) for b in columns.tolist()] for a in rows.tolist()]
    assert block.shape == (len(rows), len(columns))
    assert block.tolist() == expected


@settings(max_examples=100, deadline=None)
@given(words=word_sets())
def test_paths_explain_layers(words: Words) -> None:
    hierarchy, naive = words.build(), NaiveHierarchy(words)
    for word in range(len(words.clicks)):
        path = path_from_top(hierarchy, word)
        assert path[-1] == word
        first = 1 if hierarchy.top_word == TOP else 0
        assert hierarchy.layer[path].tolist() == list(range(first, hierarchy.layer[word] + 1))
        below_top = path if hierarchy.top_word == TOP else path[1:]
        for whole, part in itertools.pairwise(below_top):
            assert nx.has_path(naive.graph, whole, part)


def test_a_query_of_one_word_is_top() -> None:
    words = Words([10, 20, 30, 40], [True] * 4, [True] * 4, [(1, 0), (0, 2), (3, 2)], top_word=0)
    hierarchy = words.build()
    assert hierarchy.top_word == 0
    # The edge into word 0 is gone, the other roots hang below it.
    assert hierarchy.layer.tolist() == [0, 1, 2, 1]
    assert hierarchy.weight[0] == 0
    assert ics(hierarchy, 0, 2) == pytest.approx(min(1.0, 2 * np.log(0.1) / (np.log(0.3) * (1 / 1.2 + 1 / 2.2))))
    assert path_from_top(hierarchy, 2) == [0, 3, 2]
    assert path_from_top(hierarchy, 0) == [0]
    related = replace(words, isa=[(0, 3)]).build()
    assert related.top_word == TOP
    assert related.layer.tolist() == [2, 1, 3, 1]


def test_quotients_without_a_value() -> None:
    """A word that has all clicks has probability 1: 0/0 counts as 0, and x/0 as 1."""
    only = Words([7, 0, 5], [True, True, False], [True, True, False])
    assert ics(only.build(), 0, 1) == 0
    top = Words([7, 7], [True, True], [True, True], top_word=0, smoothing=0.0)
    assert top.build().weight.tolist() == [0, pytest.approx(1 / 1.2)]
    circle = Words([7, 0], [True, True], [True, True], [(0, 1), (1, 0)], top_probability=0.5)
    assert ics_block(circle.build(), np.arange(2), np.arange(2)).tolist() == [[1, 0], [0, 1]]


def test_a_hundred_thousand_words_and_a_large_circle() -> None:
    words, circle = 100_000, 20_000
    random = np.random.default_rng(5)
    ring = np.arange(circle)
    others = random.integers(0, words, (2, words))
    downwards = others[:, others[1] >= circle]
    begin = time.perf_counter()
    hierarchy = random_hierarchy(
        words, (np.concatenate([ring, downwards[0]]), np.concatenate([np.roll(ring, -1), downwards[1]]))
    )
    assert len(set(hierarchy.component[:circle].tolist())) == 1
    assert (hierarchy.layer[:circle] >= 1).all()
    rows, columns = random.integers(0, words, 500), random.integers(0, words, 3_000)
    block = ics_block(hierarchy, rows, columns)
    assert time.perf_counter() - begin < 30
    for row, column in zip(random.integers(0, 500, 200).tolist(), random.integers(0, 3_000, 200).tolist(), strict=True):
        assert block[row, column] == ics(hierarchy, int(rows[row]), int(columns[column]))


def test_a_deep_chain_and_a_wide_fan() -> None:
    """Two thousand layers, the last of which have two thousand parents each."""
    depth = 2_000
    chain = (np.arange(depth - 1), np.arange(1, depth))
    fan = (np.repeat(np.arange(depth), 2), np.tile([depth, depth + 1], depth))
    hierarchy = random_hierarchy(depth + 2, (np.concatenate([chain[0], fan[0]]), np.concatenate([chain[1], fan[1]])))
    assert hierarchy.layer.tolist() == [*range(1, depth + 1), depth + 1, depth + 1]
    rows, columns = np.array([0, 7, depth - 1, depth]), np.arange(0, depth + 2, 7)
    block = ics_block(hierarchy, rows, columns)
    for i, row in enumerate(rows.tolist()):
        for j in range(0, len(columns), 41):
            assert block[i, j] == ics(hierarchy, row, int(columns[j]))


def test_no_words() -> None:
    hierarchy = Words([], [], []).build()
    assert len(hierarchy) == 0
    assert ics_block(hierarchy, np.zeros(0, np.int32), np.zeros(0, np.int32)).shape == (0, 0)


def test_wrong_arrays_say_what_was_found() -> None:
    with pytest.raises(ValueError, match="in_base: found 1 values, expected one for each of 2 words"):
        Words([1, 2], [True], [True, True]).build()
    with pytest.raises(ValueError, match=r"part_of: found word numbers 2..2, expected numbers from 0 to 1"):
        Words([1, 2], [True] * 2, [True] * 2, [(0, 2)]).build()
    with pytest.raises(ValueError, match="top_word: found 2, expected a word number below 2"):
        Words([1, 2], [True] * 2, [True] * 2, top_word=2).build()
