"""The topic of seeds against the same formulas with plain dictionaries."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.transforms.context.words import LemmaCounts
from semrank.transforms.ranking.seed_topic import scattered, seed_topic

WORDS = ["auk", "bee", "cat", "dog", "elk"]
PAGES = st.lists(st.dictionaries(st.sampled_from(WORDS), st.integers(1, 5)), min_size=3, max_size=8)
Vector = dict[str, float]


def counts_of(pages: list[dict[str, int]]) -> LemmaCounts:
    rows = [(number, WORDS.index(word), page[word]) for number, page in enumerate(pages) for word in sorted(page)]
    document, lemma, count = (np.array([row[column] for row in rows], dtype=np.int64) for column in range(3))
    return LemmaCounts(document, lemma.astype(np.int32), count.astype(np.int32), pa.array(WORDS))


def unit(vector: Vector) -> Vector:
    length = math.sqrt(sum(value * value for value in vector.values()))
    return {word: value / length for word, value in vector.items()} if length else vector


def cosine(one: Vector, other: Vector) -> float:
    return sum(value * other.get(word, 0.0) for word, value in one.items())


def cohesion(vectors: list[Vector]) -> float | None:
    pairs = list(combinations(vectors, 2))
    return sum(cosine(*pair) for pair in pairs) / len(pairs) if pairs else None


@given(PAGES, st.integers(1, 3), st.sets(st.sampled_from(WORDS), max_size=2))
def test_topic_and_cohesion(pages: list[dict[str, int]], seeds: int, query: set[str]) -> None:
    random = pages[1:]
    holders = Counter(word for page in random for word in page)
    idf = {word: math.log((len(random) + 1) / (holders[word] + 1)) for word in WORDS}
    vectors = [unit({word: (1 + math.log(n)) * idf[word] for word, n in page.items()}) for page in pages]
    kept = [vector for vector in vectors[:seeds] if any(vector.values())]
    asked = unit({word: idf[word] for word in query})
    members = [*kept, *([asked] if any(asked.values()) else [])]
    topic = {}
    for word in WORDS:
        holders_of_word = [vector for vector in members if word in vector and (vector is not asked or idf[word] > 0)]
        share = len(holders_of_word) / max(len(members), 1)
        topic[word] = sum(vector[word] for vector in holders_of_word) * math.sqrt(share)
    found = seed_topic(
        counts_of(pages),
        seeds=np.arange(seeds),
        others=np.arange(0),
        batch=np.arange(len(pages) - 2, len(pages)),
        random=np.arange(1, len(pages)),
        query=query,
    )
    assert found.seeds == len(kept)
    assert dict(found.words) == pytest.approx({word: value for word, value in unit(topic).items() if value > 0})
    assert found.relevance == pytest.approx(sum(cosine(unit(topic), vector) for vector in vectors[-2:]) / 2)
    assert found.cohesion == pytest.approx(cohesion(kept))
    assert found.random_cohesion == pytest.approx(cohesion([vector for vector in vectors[1:] if any(vector.values())]))


def test_harvested_pages_like_the_seeds_count_too() -> None:
    pages = [{"auk": 3}, {"auk": 1, "bee": 2}, {"cat": 1}, {"dog": 1}, {"elk": 1}]
    numbers = {"seeds": np.array([0]), "random": np.arange(2, 5), "query": [], "batch": np.arange(0)}
    alone = seed_topic(counts_of(pages), others=np.arange(0), **numbers)  # type: ignore[arg-type]
    together = seed_topic(counts_of(pages), others=np.array([1]), **numbers)  # type: ignore[arg-type]
    assert [word for word, _ in alone.words] == ["auk"]
    assert [word for word, _ in together.words] == ["auk", "bee"]


@pytest.mark.parametrize(
    ("cohesion", "by_chance", "expected"),
    [(0.0, 0.0, True), (0.1, 0.1, True), (0.3, 0.1, False), (0.1, 0.0, False), (None, 0.1, False), (0.1, None, False)],
)
def test_seeds_without_a_word_in_common_are_scattered(
    cohesion: float | None, by_chance: float | None, expected: bool
) -> None:
    assert scattered(cohesion, by_chance) is expected
