"""The best base concept of every current concept and URL, against an assignment for every pair of concepts.

Both lattices are mined from generated contexts: pages take half of their keywords from their topic and half from
everywhere, by power laws; links mostly stay within a topic; clicked words are related mostly within a topic. The peer
gets the similarities of words and the counts of edges ready made, and scores some current concepts against the whole
base lattice; its time for all of them is extrapolated. Its scores have to be ours; few pairs may need an assignment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from benchmarks.harness import Measurement, Prepared, Result, interleaved
from semrank.transforms.columnar.arrays import Int64s
from semrank.transforms.lattice.closed_sets import closed_sets
from semrank.transforms.lattice.context import Concepts, FormalContext
from semrank.transforms.similarity.base_lattice import BaseLattice
from semrank.transforms.similarity.concept_similarity import BestScores, best_base_concepts, best_per_object
from semrank.transforms.similarity.hierarchy import WeightedHierarchy, build_hierarchy
from semrank.transforms.similarity.settings import SimilaritySettings
from tests.support.similarities import ics_block

TOPICS = 60
TOPIC_WORDS = 150
COMMON_WORDS = 6_000
KEYWORDS = 12
CLICKS = 50_000
BATCH = 1 << 14
REPEATS = 3

AIM = 1 / 500
MATCHINGS_AIM = 0.01
"""Largest share of all pairs that may need an assignment."""

TOLERANCE = 1e-9

PROFILES = {
    "paper-2013": SimilaritySettings(),
    "paper-2008": SimilaritySettings(weight=None),
    "max norm": SimilaritySettings(intension_norm="max"),
}


@dataclass(frozen=True)
class Size:
    """How much is compared.

    Attributes:
        base: base concepts.
        current: current concepts.
        queue: queue URLs.
        objects: current URLs.
        sample: current concepts that the peer scores.
    """

    base: int
    current: int
    queue: int
    objects: int
    sample: int


FULL = Size(base=2_000, current=200_000, queue=700, objects=30_000, sample=30)
QUICK = Size(base=500, current=10_000, queue=300, objects=3_000, sample=10)


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


def make_round(size: Size, seed: int = 3) -> Round:
    """A generated round with at most so many concepts."""
    random = np.random.default_rng(seed)
    queue_topics = random.integers(0, TOPICS, size.queue)
    topics = random.integers(0, TOPICS, size.objects)
    word_count = TOPICS * TOPIC_WORDS + COMMON_WORDS
    base = next(_batches(_context(random, queue_topics, word_count), size.base, size.base))
    batches = list(_batches(_context(random, topics, word_count), size.current, BATCH))
    return Round(base, size.queue, batches, _edges(random, topics, queue_topics), _hierarchy(random, word_count))


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
    return build_hierarchy(clicks, everywhere, everywhere, pairs[0], pairs[1])


def sample_of(data: Round, size: Size) -> Concepts:
    """The current concepts that the peer scores, evenly chosen."""
    step = -(-sum(len(batch) for batch in data.batches) // size.sample)
    return Concepts.concatenate(batch.select(np.arange(0, len(batch), step)) for batch in data.batches)


def prepare_peer(size: Size, profile: str) -> Callable[[], list[float]]:
    """The largest similarity of each of the sample's concepts, by an assignment for each pair."""
    data, settings = make_round(size), PROFILES[profile]
    current = sample_of(data, size)
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

    def score() -> list[float]:
        best = []
        for i in range(len(current)):
            columns = places[current.intent_indptr[i] : current.intent_indptr[i + 1]]
            support, own_counts, largest = int(current.support[i]), counts[i].tolist(), 0.0
            for j, rows in enumerate(intents):
                extension = min(1.0, own_counts[j] / (4 * max(support, supports[j])))
                block = similarities[rows[:, None], columns]
                least = min(block.shape) if settings.intension_norm == "min" else max(block.shape)
                intension = block[linear_sum_assignment(block, maximize=True)].sum() / least if block.size else 0.0
                total = extension + intension
                weight = settings.weight if settings.weight is not None else extension / total if total else 0.0
                largest = max(largest, weight * extension + (1 - weight) * intension)
            best.append(float(largest))
        return best

    return score


def our_scores(size: Size, profile: str) -> list[float]:
    """The largest similarity of each of the sample's concepts as we find it."""
    data = make_round(size)
    found = best_base_concepts(sample_of(data, size), data.edges, _lattice(data), data.hierarchy, PROFILES[profile])
    scores: list[float] = found.score.tolist()
    return scores


def _lattice(data: Round) -> BaseLattice:
    return BaseLattice.of(data.base, np.arange(len(data.base), dtype=np.int64), data.queue)


def prepare_concepts(size: Size, profile: str) -> Callable[[], dict[str, int]]:
    """The best base concept of each current concept: numbers of concepts, pairs examined, and assignments."""
    data = make_round(size)

    def score() -> dict[str, int]:
        base, examined, assignments = _lattice(data), 0, 0
        for batch in data.batches:
            pairs = best_base_concepts(batch, data.edges, base, data.hierarchy, PROFILES[profile])
            examined, assignments = examined + pairs.examined, assignments + pairs.assignments
        return {**_sizes(data), "examined": examined, "assignments": assignments}

    return score


def prepare_urls(size: Size, profile: str) -> Callable[[], dict[str, int]]:
    """The best pair of each URL: numbers of concepts and of assignments."""
    data = make_round(size)

    def score() -> dict[str, int]:
        base, best, first = _lattice(data), BestScores.none(data.edges.shape[0]), 0
        for batch in data.batches:
            ids = np.arange(first, first + len(batch), dtype=np.int64)
            best = best_per_object(batch, ids, data.edges, base, data.hierarchy, PROFILES[profile], best)
            first += len(batch)
        return {**_sizes(data), "assignments": best.assignments}

    return score


def _sizes(data: Round) -> dict[str, int]:
    return {"base concepts": len(data.base), "current concepts": sum(len(batch) for batch in data.batches)}


def run(*, quick: bool = False) -> list[Result]:
    """Results of the benchmark: for each profile one for all concepts and one for all URLs.

    Raises:
        RuntimeError: the peer finds other scores.
    """
    size, repeats = (QUICK, 1) if quick else (FULL, REPEATS)
    results = []
    for profile in PROFILES:
        sides = [Prepared(partial(prepare, size, profile)) for prepare in (prepare_concepts, prepare_urls)]
        concepts, urls, peer = interleaved(
            [*sides, Prepared(partial(prepare_peer, size, profile), warm=False)], repeats
        )
        expected = peer.value
        found = our_scores(size, profile)
        if np.abs(np.subtract(found, expected)).max(initial=0) > TOLERANCE:
            raise RuntimeError(f"{profile}: scores {found} found, expected {expected}")
        results += [
            _result(f"best of all {what}, {profile}", ours, peer)
            for what, ours in (("concepts", concepts), ("URLs", urls))
        ]
    return results


def _result(what: str, ours: Measurement, peer: Measurement) -> Result:
    counts: dict[str, int] = ours.value
    current = counts["current concepts"]
    pairs = counts["base concepts"] * current
    scored = len(peer.value)
    share = current / scored
    whole = Measurement(peer.wall_s * share, peer.cpu_s * share, peer.peak_bytes)
    examined = f", {counts['examined'] / pairs:.3%} of the pairs examined" if "examined" in counts else ""
    note = (
        f"{counts['base concepts']:,} x {current:,} concepts, {counts['assignments']:,} assignments{examined}; "
        f"the peer extrapolated from {scored} current concepts, whose scores are equal"
    )
    result = ours.against(whole, "similarity", f"SciPy assignment of all pairs: {what}", AIM, note, counts)
    result["met"] = bool(result["met"]) and counts["assignments"] <= MATCHINGS_AIM * pairs
    return result
