"""Similarities of single pairs of words are those of blocks, to the last bit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given

from semrank.transforms.similarity import word_pairs
from semrank.transforms.similarity.hierarchy import WeightedHierarchy, build_hierarchy
from semrank.transforms.similarity.word_pairs import WordPairs
from tests.support.similarities import ics_block
from tests.transforms.similarity.naive import Words, word_sets


def check(hierarchy: WeightedHierarchy, slabs: Sequence[tuple[int, int]]) -> None:
    """Holds the pairs of all words to blocks, whatever the bits of a slab and the bytes that are kept."""
    count = len(hierarchy)
    first, second = (side.ravel() for side in np.indices((count, count)))
    words = np.arange(count)
    expected = ics_block(hierarchy, words, words)
    for slab, kept in slabs:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(word_pairs, "ANCESTOR_SLAB", slab)
            patch.setattr(word_pairs, "ANCESTOR_BYTES", kept)
            pairs = WordPairs.of(hierarchy)
            for _ in range(2):
                found = pairs.similarities(first, second).reshape(count, count)
                np.testing.assert_array_equal(found, expected, err_msg=f"slabs of {slab}, {kept} bytes kept")


@given(words=word_sets())
def test_equals_blocks(words: Words) -> None:
    check(words.build(), [(1, 0), (3, 1 << 10), (65, 1 << 20), (4096, 1 << 20)])


@pytest.mark.parametrize("edges", [200, 600, 2_000])
def test_many_ancestors(edges: int) -> None:
    random = np.random.default_rng(edges)
    count = 400
    clicks = (random.pareto(0.7, count) * 3).astype(np.int64)
    wholes = (count * random.random(edges) ** 2).astype(np.int64)
    parts = (wholes + 1 + (count - 1) * random.random(edges) ** 3).astype(np.int64) % count
    everywhere = np.ones(count, dtype=np.bool_)
    isa = random.integers(0, count, (2, 50))
    hierarchy = build_hierarchy(clicks, everywhere, everywhere, (wholes, parts), (isa[0], isa[1]))
    check(hierarchy, [(64, word_pairs.ANCESTOR_BYTES), (128, word_pairs.ANCESTOR_BYTES)])


def test_words_below_the_same_hubs_share_their_bit_sets() -> None:
    """Bit sets grow with the hubs, not with the words times the hubs."""
    hubs, count = 50, 1_000
    wholes = np.concatenate([np.arange(hubs - 1), np.arange(count) % hubs])
    parts = np.concatenate([np.arange(1, hubs), np.arange(hubs, hubs + count)])
    everywhere, clicks = np.ones(hubs + count, dtype=np.bool_), np.ones(hubs + count, dtype=np.int64)
    nothing = np.zeros(0, dtype=np.int64)
    hierarchy = build_hierarchy(clicks, everywhere, everywhere, (wholes, parts), (nothing, nothing))
    pairs = WordPairs.of(hierarchy)
    words = np.arange(hubs, hubs + count)
    first, second = np.repeat(words, len(words)), np.tile(words, len(words))
    found = pairs.similarities(first, second).reshape(count, count)
    np.testing.assert_array_equal(found, ics_block(hierarchy, words, words))
    (slab,) = pairs.slabs.values()
    assert len(slab.numbers) == hubs + count
    assert len(slab.sets) <= hubs + 1
