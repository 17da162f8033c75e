"""The best pair of concepts of each object against the definitions, evaluated naively on small random instances."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from semrank.transforms.lattice.context import Concepts
from semrank.transforms.similarity import every_pair, linked
from semrank.transforms.similarity.base_lattice import BaseLattice
from semrank.transforms.similarity.concept_similarity import BestScores, best_per_object, matchings
from semrank.transforms.similarity.hierarchy import WeightedHierarchy, build_hierarchy
from semrank.transforms.similarity.settings import SimilaritySettings
from semrank.transforms.similarity.word_pairs import WordPairs
from tests.support.similarities import ics

pytestmark = pytest.mark.usefixtures("order_of_search")

WORDS = 7
QUEUE = 4
OBJECTS = 5

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
word_pairs = st.lists(st.tuples(st.integers(0, WORDS - 1), st.integers(0, WORDS - 1)), max_size=8)


@st.composite
def hierarchies(draw: st.DrawFn) -> WeightedHierarchy:
    clicks = np.array(draw(st.lists(st.integers(0, 9), min_size=WORDS, max_size=WORDS)), dtype=np.int64)
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
edge_counts = st.lists(st.integers(0, 4), min_size=OBJECTS * QUEUE, max_size=OBJECTS * QUEUE)


def naive_intension(a: list[int], b: list[int], hierarchy: WeightedHierarchy, norm: str) -> float:
    if not a or not b:
        return 0.0
    small, large = sorted((a, b), key=len)
    values = {(x, y): ics(hierarchy, x, y) for x in a for y in b}
    best = max(
        sum(values[(x, y) if small is a else (y, x)] for x, y in zip(small, chosen, strict=True))
        for chosen in itertools.permutations(large, len(small))
    )
    return best / (len(small) if norm == "min" else len(large))


def naive_similarity(extension: float, intension: float, weight: float | None) -> float:
    if weight is None:
        total = extension + intension
        weight = 0.0 if total == 0 else extension / total
    return weight * extension + (1 - weight) * intension


@pytest.mark.parametrize("profile", PROFILES)
@settings(max_examples=120, deadline=None)
@given(
    hierarchy=hierarchies(),
    base=lattices,
    current=current_lattices,
    counts=edge_counts,
    batch=st.integers(1, 6),
    cells=st.sampled_from([1, 7, 1 << 20]),
)
def test_equals_the_definitions(
    profile: SimilaritySettings,
    hierarchy: WeightedHierarchy,
    base: dict[frozenset[int], frozenset[int]],
    current: dict[frozenset[int], frozenset[int]],
    counts: list[int],
    batch: int,
    cells: int,
) -> None:
    edges = np.array(counts, dtype=np.int64).reshape(OBJECTS, QUEUE)
    base_pairs = [(sorted(extent), sorted(intent)) for intent, extent in base.items()]
    current_pairs = [(sorted(extent), sorted(intent)) for intent, extent in current.items()]
    base_ids = np.arange(len(base_pairs), dtype=np.int64) * 10 + 3
    current_ids = np.array([(7 * number) % 11 for number in range(len(current_pairs))], dtype=np.int64)
    lattice = BaseLattice.of(Concepts.of(base_pairs), base_ids, QUEUE)

    scale = 4 if profile.extension == "links" else 1
    expected: dict[int, list[tuple[float, float, float, int, int]]] = {}
    for number, (extent, intent) in enumerate(current_pairs):
        for base_number, (base_extent, base_intent) in enumerate(base_pairs):
            between = int(edges[np.ix_(extent, base_extent)].sum())
            extension = min(1.0, between / (scale * max(len(extent), len(base_extent))))
            intension = naive_intension(base_intent, intent, hierarchy, profile.intension_norm)
            similarity = naive_similarity(extension, intension, profile.weight)
            for member in extent:
                entry = (similarity, extension, intension, base_number, int(current_ids[number]))
                expected.setdefault(member, []).append(entry)

    with pytest.MonkeyPatch.context() as patch:
        for module in (every_pair, linked):
            patch.setattr(module, "BLOCK_CELLS", cells)
        best = BestScores.none(OBJECTS)
        concepts = Concepts.of(current_pairs)
        for start in range(0, len(concepts), batch):
            stop = min(start + batch, len(concepts))
            best = best_per_object(
                concepts.slice(start, stop),
                current_ids[start:stop],
                sparse.csr_array(edges),
                lattice,
                hierarchy,
                profile,
                best,
            )

    for member in range(OBJECTS):
        entries = expected.get(member)
        if entries is None:
            assert best.base[member] == -1
            continue
        highest = max(entry[0] for entry in entries)
        assert best.score[member] == pytest.approx(highest, abs=1e-9)
        reached = [entry for entry in entries if entry[0] >= highest - 1e-12]
        reason = next(entry for entry in reached if entry[3:] == (int(best.base[member]), int(best.current[member])))
        assert best.extension[member] == pytest.approx(reason[1], abs=1e-12)
        assert best.intension[member] == pytest.approx(reason[2], abs=1e-9)
        assert reason[3:] == min(entry[3:] for entry in reached)
        words = best.intents[int(best.current[member])]
        [pairs] = matchings(WordPairs.of(hierarchy), [(lattice.concepts.intent(int(best.base[member])), words)])
        divisor = (min if profile.intension_norm == "min" else max)(
            len(base_pairs[int(best.base[member])][1]), len(words)
        )
        total = sum(pair[2] for pair in pairs)
        assert total == pytest.approx(reason[2] * max(divisor, 1), abs=1e-9)
        assert len({pair[0] for pair in pairs}) == len({pair[1] for pair in pairs}) == len(pairs)


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
