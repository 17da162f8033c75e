"""The best base concept of every current concept and URL, against an assignment for every pair of concepts.

Both lattices are mined from generated contexts: pages take half of their keywords from their topic and half from
everywhere, by power laws; links mostly stay within a topic; clicked words are related mostly within a topic. The peer
gets the similarities of words and the counts of edges ready made, and scores some current concepts against the whole
base lattice; its time for all of them is extrapolated. Its scores have to be ours.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from transforms.lattice.closed_sets import closed_sets
from transforms.lattice.context import Concepts, FormalContext
from transforms.similarity.concept_similarity import (
    BaseLattice,
    BestScores,
    SimilaritySettings,
    best_base_concepts,
    best_per_object,
)
from transforms.similarity.hierarchy import WeightedHierarchy, build_hierarchy, ics_block

Int64s = npt.NDArray[np.int64]

BASE_CONCEPTS = 2_000
CURRENT_CONCEPTS = 200_000
QUEUE = 700
OBJECTS = 30_000
TOPICS = 60
TOPIC_WORDS = 150
COMMON_WORDS = 6_000
KEYWORDS = 12
CLICKS = 50_000
BATCH = 1 << 14
SAMPLE = 30
"""Current concepts that the peer scores: some 60,000 assignments."""

AIM = 1 / 500
MATCHINGS_AIM = 0.01
"""Largest share of all pairs that may need an assignment."""

PROFILES = {
    "paper-2013": SimilaritySettings(),
    "paper-2008": SimilaritySettings(weight=None),
    "max norm": SimilaritySettings(intension_norm="max"),
}


@dataclass(frozen=True, eq=False)
class Round:
    """What the ranking of a round has to compare.

    Attributes:
        base: base concepts.
        queue: number of queue URLs.
        batches: current concepts as they are mined.
        edges: counts of links and c-edges, CSR int64[objects, queue].
        hierarchy: the keywords' hierarchy.
    """

    base: Concepts
    queue: int
    batches: list[Concepts]
    edges: sparse.csr_array
    hierarchy: WeightedHierarchy


def make_round(base_concepts: int, current_concepts: int, queue: int, objects: int, seed: int = 3) -> Round:
    """A generated round with at most so many concepts."""
    random = np.random.default_rng(seed)
    queue_topics = random.integers(0, TOPICS, queue)
    topics = random.integers(0, TOPICS, objects)
    word_count = TOPICS * TOPIC_WORDS + COMMON_WORDS
    base = next(_batches(_context(random, queue_topics, word_count), base_concepts, base_concepts))
    batches = list(_batches(_context(random, topics, word_count), current_concepts, BATCH))
    return Round(base, queue, batches, _edges(random, topics, queue_topics), _hierarchy(random, word_count))


def _words(random: np.random.Generator, topics: Int64s) -> Int64s:
    """A word for each topic given: half of them the topic's, half anybody's."""
    topical = topics * TOPIC_WORDS + TOPIC_WORDS * random.random(topics.shape) ** 3
    common = TOPICS * TOPIC_WORDS + COMMON_WORDS * random.random(topics.shape) ** 5
    return np.where(random.random(topics.shape) < 0.5, topical, common).astype(np.int64)


def _context(random: np.random.Generator, topics: Int64s, word_count: int) -> FormalContext:
    return FormalContext.from_rows(_words(random, np.repeat(topics[:, None], KEYWORDS, axis=1)).tolist(), word_count)


def _batches(context: FormalContext, count: int, size: int) -> Iterator[Concepts]:
    """Concepts evenly chosen from the lattice, in the order of their intents."""
    concepts = Concepts.concatenate(closed_sets(context)).sorted()
    chosen = np.unique(np.linspace(0, len(concepts) - 1, min(count, len(concepts))).astype(np.int64))
    for start in range(0, len(chosen), size):
        yield concepts.select(chosen[start : start + size])


def _edges(random: np.random.Generator, topics: Int64s, queue_topics: Int64s) -> sparse.csr_array:
    """Each object is linked from one to a few queue URLs, two thirds of which are of its topic."""
    objects = np.repeat(np.arange(len(topics)), 1 + random.geometric(0.5, len(topics)))
    by_topic = np.argsort(queue_topics, kind="stable")
    ends = np.searchsorted(queue_topics[by_topic], np.arange(TOPICS + 1))
    start, stop = ends[topics[objects]], ends[topics[objects] + 1]
    own = by_topic[
        np.minimum(start + ((stop - start) * random.random(len(objects))).astype(np.int64), len(by_topic) - 1)
    ]
    anywhere = random.integers(0, len(queue_topics), len(objects))
    queue = np.where(random.random(len(objects)) < 2 / 3, own, anywhere)
    kinds = random.geometric(0.7, len(objects)).clip(1, 4)
    edges = sparse.coo_array((kinds, (objects, queue)), shape=(len(topics), len(queue_topics))).tocsr()
    edges.data = np.minimum(edges.data, 4)
    return edges


def _hierarchy(random: np.random.Generator, word_count: int) -> WeightedHierarchy:
    """Queries use words as pages do; words of queries of one topic are related now and then."""
    clicks = np.bincount(_words(random, random.integers(0, TOPICS, CLICKS)), minlength=word_count).astype(np.int64)
    pairs = []
    for _ in range(2):
        topics = random.integers(0, TOPICS, word_count)
        first, second = _words(random, topics), _words(random, topics)
        kept = (clicks[first] > 0) & (clicks[second] > 0) & (first != second)
        pairs.append((first[kept], second[kept]))
    everywhere = np.ones(word_count, dtype=np.bool_)
    return build_hierarchy(word_count, clicks, everywhere, everywhere, pairs[0], pairs[1])


def peer_scores(current: Concepts, data: Round, settings: SimilaritySettings) -> tuple[npt.NDArray[np.float64], float]:
    """The largest similarity of some current concepts by an assignment for each pair, and the seconds it took."""
    words, places = np.unique(current.intent_indices, return_inverse=True)
    base_words, base_places = np.unique(data.base.intent_indices, return_inverse=True)
    similarities = ics_block(data.hierarchy, base_words, words)
    membership = sparse.csr_array(
        (np.ones(len(data.base.extent_indices)), data.base.extent_indices, data.base.extent_indptr),
        shape=(len(data.base), data.queue),
    )
    counts = np.array([membership @ data.edges[current.extent(i)].sum(axis=0) for i in range(len(current))])
    intents = [base_places[a:b] for a, b in zip(data.base.intent_indptr, data.base.intent_indptr[1:], strict=False)]
    supports = data.base.support.tolist()
    best = np.zeros(len(current))
    begin = time.perf_counter()
    for i in range(len(current)):
        columns = places[current.intent_indptr[i] : current.intent_indptr[i + 1]]
        support, own_counts = int(current.support[i]), counts[i].tolist()
        for j, rows in enumerate(intents):
            extension = min(1.0, own_counts[j] / (4 * max(support, supports[j])))
            block = similarities[rows[:, None], columns]
            size = min(block.shape) if settings.intension_norm == "min" else max(block.shape)
            intension = block[linear_sum_assignment(block, maximize=True)].sum() / size if block.size else 0.0
            total = extension + intension
            weight = settings.weight if settings.weight is not None else extension / total if total else 0.0
            best[i] = max(best[i], weight * extension + (1 - weight) * intension)
    return best, time.perf_counter() - begin


def _concept_pass(data: Round, settings: SimilaritySettings) -> tuple[int, int]:
    """The best base concept of each current concept: (pairs examined, assignments)."""
    base = BaseLattice.of(data.base, np.arange(len(data.base), dtype=np.int64), data.queue)
    examined = assignments = 0
    for batch in data.batches:
        pairs = best_base_concepts(batch, data.edges, base, data.hierarchy, settings)
        examined, assignments = examined + pairs.examined, assignments + pairs.assignments
    return examined, assignments


def _object_pass(data: Round, settings: SimilaritySettings) -> int:
    """The best pair of each object: assignments."""
    base = BaseLattice.of(data.base, np.arange(len(data.base), dtype=np.int64), data.queue)
    best, first = BestScores.none(data.edges.shape[0]), 0
    for batch in data.batches:
        ids = np.arange(first, first + len(batch), dtype=np.int64)
        best = best_per_object(batch, ids, data.edges, base, data.hierarchy, settings, best)
        first += len(batch)
    return best.assignments


def run() -> list[dict[str, Any]]:
    """Results of the benchmark: for each profile one object for all concepts and one for all URLs.

    Raises:
        RuntimeError: the peer finds other scores.
    """
    data = make_round(BASE_CONCEPTS, CURRENT_CONCEPTS, QUEUE, OBJECTS)
    concepts = sum(len(batch) for batch in data.batches)
    sample = Concepts.concatenate(
        batch.select(np.arange(0, len(batch), -(-concepts // SAMPLE))) for batch in data.batches
    )
    base = BaseLattice.of(data.base, np.arange(len(data.base), dtype=np.int64), data.queue)
    pairs = len(base) * concepts
    results = []
    for profile, settings in PROFILES.items():
        expected, seconds = peer_scores(sample, data, settings)
        found = best_base_concepts(sample, data.edges, base, data.hierarchy, settings).score
        if np.abs(found - expected).max(initial=0) > 1e-9:
            raise RuntimeError(f"{profile}: scores {found} found, expected {expected}")
        peer_s = seconds / len(sample) * concepts
        begin = time.perf_counter()
        examined, assignments = _concept_pass(data, settings)
        per_concept = time.perf_counter() - begin
        begin = time.perf_counter()
        object_assignments = _object_pass(data, settings)
        per_object = time.perf_counter() - begin
        for what, ours_s, solved, more in (
            ("concepts", per_concept, assignments, f", {examined / pairs:.3%} examined"),
            ("URLs", per_object, object_assignments, ""),
        ):
            ratio = ours_s / peer_s
            results.append(
                {
                    "name": "similarity",
                    "peer": f"SciPy assignment of all pairs, {profile}, best of all {what}",
                    "ours_s": ours_s,
                    "peer_s": peer_s,
                    "ratio": ratio,
                    "aim": AIM,
                    "met": ratio <= AIM and solved <= MATCHINGS_AIM * pairs,
                    "note": f"{len(base):,} x {concepts:,} concepts, the peer extrapolated from {len(sample)}; "
                    f"{solved:,} assignments for {pairs:,} pairs{more}",
                }
            )
    return results
