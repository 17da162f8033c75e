"""The best pair of concepts of each object against the definitions, evaluated naively on small random instances."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from scipy import sparse

from semrank.transforms.columnar.arrays import Int64s
from semrank.transforms.lattice.context import Concepts
from semrank.transforms.similarity import every_pair, linked
from semrank.transforms.similarity.base_lattice import BaseLattice
from semrank.transforms.similarity.concept_similarity import BestScores, best_per_object, matchings
from semrank.transforms.similarity.hierarchy import WeightedHierarchy, build_hierarchy
from semrank.transforms.similarity.settings import SimilaritySettings
from semrank.transforms.similarity.word_pairs import WordPairs
from tests.support.similarities import ics
from tests.support.strategies import choices
from tests.transforms.similarity.orders import ORDERS, ordered

WORDS = 7
QUEUE = 4
OBJECTS = 5

Pair = tuple[list[int], list[int]]
Entry = tuple[float, float, float, int, int]

PROFILES = [
    SimilaritySettings(),
    SimilaritySettings(weight=None),
    SimilaritySettings(intension_norm="max", extension="objects"),
    SimilaritySettings(weight=0.0),
    SimilaritySettings(weight=1.0),
]


def sets_of(universe: int, least: int) -> st.SearchStrategy[frozenset[int]]:
    return st.frozensets(st.integers(0, universe - 1), min_size=least, max_size=5)


top_probabilities: st.SearchStrategy[str | float] = st.sampled_from(["max", "min", 0.3])
word_pairs = choices([(a, b) for a in range(WORDS) for b in range(WORDS)], 0, 8)


@st.composite
def hierarchies(draw: st.DrawFn) -> WeightedHierarchy:
    clicks = np.array(draw(choices(range(10), WORDS, WORDS)), dtype=np.int64)
    part_of = [(a, b) for a, b in draw(word_pairs) if a != b]
    isa = [(a, b) for a, b in draw(word_pairs) if a != b and (a, b) not in part_of and (b, a) not in part_of]
    everywhere = np.ones(WORDS, dtype=np.bool_)

    def columns(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
        array = np.array(sorted(set(pairs)), dtype=np.int64).reshape(-1, 2)
        return array[:, 0], array[:, 1]

    return build_hierarchy(
        clicks,
        everywhere,
        everywhere,
        columns(part_of),
        columns(isa),
        alpha=draw(st.sampled_from([0.2, 0.5])),
        top_probability=draw(top_probabilities),
        smoothing=draw(st.sampled_from([0.0, 1.0])),
    )


lattices = st.dictionaries(sets_of(WORDS, 0), sets_of(QUEUE, 1), min_size=1, max_size=5)
current_lattices = st.dictionaries(sets_of(WORDS, 0), sets_of(OBJECTS, 1), min_size=1, max_size=6)
edge_counts = choices(range(5), OBJECTS * QUEUE, OBJECTS * QUEUE)


def matching_weight(a: list[int], b: list[int], hierarchy: WeightedHierarchy) -> float:
    """The largest sum of similarities of words that are matched, by trying all matchings."""
    small, large = sorted((a, b), key=len)
    values = {(x, y): ics(hierarchy, x, y) for x in a for y in b}
    return max(
        sum(values[(x, y) if small is a else (y, x)] for x, y in zip(small, chosen, strict=True))
        for chosen in itertools.permutations(large, len(small))
    )


def naive_similarity(extension: float, intension: float, weight: float | None) -> float:
    if weight is None:
        total = extension + intension
        weight = 0.0 if total == 0 else extension / total
    return weight * extension + (1 - weight) * intension


@dataclass(frozen=True)
class Instance:
    """Base and current concepts as (extent, intent), and what current objects count with queue objects."""

    hierarchy: WeightedHierarchy
    base: list[Pair]
    current: list[Pair]
    current_ids: Int64s
    edges: Int64s

    @cached_property
    def links(self) -> sparse.csr_array:
        """The edges as the search takes them."""
        return sparse.csr_array(self.edges)

    @cached_property
    def similarities(self) -> WordPairs:
        """Similarities of the words."""
        return WordPairs.of(self.hierarchy)

    def weights(self) -> np.ndarray:
        """Largest weights of matchings of all pairs, float64[current, base]."""
        weights = [[matching_weight(base, own, self.hierarchy) for _, base in self.base] for _, own in self.current]
        return np.array(weights)

    def entries(self, profile: SimilaritySettings, weights: np.ndarray) -> dict[int, list[Entry]]:
        """The pairs of each object: (similarity, extension, intension, base concept, id of the current concept)."""
        scale = 4 if profile.extension == "links" else 1
        found: dict[int, list[Entry]] = {}
        for number, (extent, intent) in enumerate(self.current):
            for base_number, (base_extent, base_intent) in enumerate(self.base):
                between = int(self.edges[np.ix_(extent, base_extent)].sum())
                extension = min(1.0, between / (scale * max(len(extent), len(base_extent))))
                divisor = (min if profile.intension_norm == "min" else max)(len(intent), len(base_intent))
                intension = weights[number, base_number] / max(divisor, 1)
                similarity = naive_similarity(extension, intension, profile.weight)
                for member in extent:
                    entry = (similarity, extension, intension, base_number, int(self.current_ids[number]))
                    found.setdefault(member, []).append(entry)
        return found

    def best(self, lattice: BaseLattice, profile: SimilaritySettings, batch: int) -> BestScores:
        """The product's scores, batch by batch."""
        best, concepts = BestScores.none(OBJECTS), Concepts.of(self.current)
        for start in range(0, len(concepts), batch):
            stop = min(start + batch, len(concepts))
            part, ids = concepts.slice(start, stop), self.current_ids[start:stop]
            best = best_per_object(part, ids, self.links, lattice, self.hierarchy, profile, best)
        return best

    def check(self, best: BestScores, expected: dict[int, list[Entry]], norm: str) -> None:
        """Holds the best pair of each object, and its matching, to all of the object's pairs."""
        for member in range(OBJECTS):
            entries = expected.get(member)
            if entries is None:
                assert best.base[member] == -1
                continue
            highest = max(entry[0] for entry in entries)
            assert best.score[member] == pytest.approx(highest, abs=1e-9)
            reached = [entry for entry in entries if entry[0] >= highest - 1e-12]
            chosen = (int(best.base[member]), int(best.current[member]))
            reason = next(entry for entry in reached if entry[3:] == chosen)
            assert best.extension[member] == pytest.approx(reason[1], abs=1e-12)
            assert best.intension[member] == pytest.approx(reason[2], abs=1e-9)
            assert reason[3:] == min(entry[3:] for entry in reached)
            words, base_words = best.intents[chosen[1]], np.array(self.base[chosen[0]][1], dtype=np.int64)
            [pairs] = matchings(self.similarities, [(base_words, words)])
            divisor = (min if norm == "min" else max)(len(base_words), len(words))
            total = sum(pair[2] for pair in pairs)
            assert total == pytest.approx(reason[2] * max(divisor, 1), abs=1e-9)
            assert len({pair[0] for pair in pairs}) == len({pair[1] for pair in pairs}) == len(pairs)


@st.composite
def instances(draw: st.DrawFn) -> Instance:
    base, current = draw(lattices), draw(current_lattices)
    return Instance(
        draw(hierarchies()),
        [(sorted(extent), sorted(intent)) for intent, extent in base.items()],
        [(sorted(extent), sorted(intent)) for intent, extent in current.items()],
        np.array([(7 * number) % 11 for number in range(len(current))], dtype=np.int64),
        np.array(draw(edge_counts), dtype=np.int64).reshape(OBJECTS, QUEUE),
    )


@settings(max_examples=120, deadline=None)
@given(instance=instances(), batch=st.integers(1, 6), cells=st.sampled_from([1, 7, 1 << 20]))
def test_equals_the_definitions(instance: Instance, batch: int, cells: int) -> None:
    base_ids = np.arange(len(instance.base), dtype=np.int64) * 10 + 3
    weights = instance.weights()
    for profile in PROFILES:
        expected = instance.entries(profile, weights)
        for order in ORDERS:
            note(f"{profile}, {order}")
            # A lattice of its own, so that nothing is kept from another search.
            lattice = BaseLattice.of(Concepts.of(instance.base), base_ids, QUEUE)
            with ordered(order), pytest.MonkeyPatch.context() as patch:
                for module in (every_pair, linked):
                    patch.setattr(module, "BLOCK_CELLS", cells)
                best = instance.best(lattice, profile, batch)
            instance.check(best, expected, profile.intension_norm)


def test_p13_example_19() -> None:
    """Extension 4 / (4 * 3), intension (0.8351 + 1) / 2, Sim 0.68385 with w = 0.4."""
    extension = np.array([4 / 12])
    intension = np.array([(0.8351 + 1) / 2])
    assert SimilaritySettings().similarity(extension, intension)[0] == pytest.approx(0.68385, abs=1e-4)


def test_equal_words_are_matched_with_each_other() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    everywhere = np.ones(3, dtype=np.bool_)
    related = (np.array([0, 0, 1]), np.array([1, 2, 2]))
    hierarchy = build_hierarchy(np.ones(3, dtype=np.int64), everywhere, everywhere, (nothing, nothing), related)
    words = np.arange(3, dtype=np.int64)
    assert list(matchings(WordPairs.of(hierarchy), [(words, words)])) == [[(0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0)]]


def test_base_ids_must_ascend() -> None:
    concepts = Concepts.of([([0], [0]), ([1], [1])])
    with pytest.raises(ValueError, match="do not ascend"):
        BaseLattice.of(concepts, np.array([5, 5], dtype=np.int64), 2)
