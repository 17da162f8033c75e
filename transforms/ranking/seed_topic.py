"""What a crawl's seeds are about, in words, and how much they have in common.

A page's vector has (1 + ln n) idf for a word that stands n times in it, and length 1; idf = ln((N + 1) / (N_w + 1))
with N pages drawn at random, of which N_w have the word. The topic is the mean of the seeds' vectors, each word times
the root of the share of seeds that have it, and of length 1; the query counts as one more seed. In later rounds the
mean of the harvested pages most like it is added, as the ranker `focused` does. The cohesion of pages is the mean
cosine of two of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from semrank.transforms.columnar.arrays import Float64s, Int64s
from semrank.transforms.context.words import LemmaCounts

TOPIC_WORDS = 15
"""Words of a topic that are shown."""

FEEDBACK, FEEDBACK_PAGES = 0.7, 40
"""Weight of the harvested pages most like the seeds, and how many they are."""

LEAST_COHESION = 2.0
"""How many times the cohesion of random pages the seeds' cohesion exceeds if they have a topic in common."""


@dataclass(frozen=True)
class SeedTopic:
    """What seeds are about.

    Attributes:
        words: the strongest words with their weights, the strongest first.
        seeds: number of seeds that were compared.
        cohesion: mean cosine of two of them, or None with less than two.
        random_cohesion: mean cosine of two random pages, or None with less than two.
        relevance: mean cosine of the last batch's pages with the topic of the seeds, or None without a batch.
    """

    words: tuple[tuple[str, float], ...]
    seeds: int
    cohesion: float | None
    random_cohesion: float | None
    relevance: float | None

    def as_dict(self) -> dict[str, Any]:
        """The fields, for manifests; numbers with six decimals."""
        names = ("cohesion", "random_cohesion", "relevance")
        numbers: dict[str, float | None] = {name: getattr(self, name) for name in names}
        rounded = {name: None if value is None else round(value, 6) for name, value in numbers.items()}
        words = [[word, round(weight, 6)] for word, weight in self.words]
        return {"words": words, "seeds": self.seeds, **rounded}


def scattered(cohesion: float | None, random_cohesion: float | None) -> bool:
    """Whether seeds have little more in common than random pages; not where either is unknown."""
    return cohesion is not None and random_cohesion is not None and cohesion <= LEAST_COHESION * random_cohesion


def seed_topic(
    counts: LemmaCounts, *, seeds: Int64s, others: Int64s, batch: Int64s, random: Int64s, query: Iterable[str]
) -> SeedTopic:
    """The topic of seeds.

    Args:
        counts: words of n pages.
        seeds: places of the seeds among the pages, int64.
        others: places of harvested pages that are no seeds, int64.
        batch: places of pages that the round before selected, int64.
        random: places of pages drawn at random, int64.
        query: words of the query.
    """
    size = (int(max([*seeds, *others, *batch, *random], default=-1)) + 1, len(counts.lemmas))
    matrix = sparse.csr_array((counts.count.astype(np.float64), (counts.document, counts.lemma)), shape=size)
    holders = np.bincount(matrix[random].indices, minlength=size[1])
    idf = np.log((len(random) + 1.0) / (holders + 1.0))
    matrix.data = (1.0 + np.log(matrix.data)) * idf[matrix.indices]
    length = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    pages = sparse.csr_array(sparse.diags_array(1.0 / np.where(length > 0, length, 1.0)) @ matrix)

    asked = np.isin(np.array(counts.lemmas.to_pylist(), dtype=object), list(query)) * idf
    used = seeds[length[seeds] > 0]
    share = np.bincount(pages[used].indices, minlength=size[1]) + (asked > 0)
    members = max(len(used) + int(asked.any()), 1)
    topic = _unit((_sum(pages[used]) + _unit(asked)) * np.sqrt(share / members))
    relevance = float(np.mean(np.asarray(pages[batch] @ topic))) if len(batch) else None
    if len(others):
        likeness = np.round(np.asarray(pages[others] @ topic), 12)
        nearest = others[np.argsort(-likeness, kind="stable")[:FEEDBACK_PAGES]]
        topic = _unit(topic + FEEDBACK * _unit(_sum(pages[nearest])))
    order = np.argsort(-np.round(topic, 12), kind="stable")[:TOPIC_WORDS]
    words = tuple((counts.lemmas[place].as_py(), float(topic[place])) for place in order.tolist() if topic[place] > 0)
    by_chance = _cohesion(pages[random[length[random] > 0]])
    return SeedTopic(words, len(used), _cohesion(pages[used]), by_chance, relevance)


def _sum(rows: sparse.csr_array) -> Float64s:
    return np.asarray(rows.sum(axis=0), dtype=np.float64).ravel()


def _unit(vector: Float64s) -> Float64s:
    length = float(np.sqrt((vector * vector).sum()))
    return vector / length if length > 0 else vector


def _cohesion(pages: sparse.csr_array) -> float | None:
    """Mean cosine of two of some vectors of length 1; the square of their sum has every pair twice and each alone."""
    count = pages.shape[0]
    if count < 2:
        return None
    total = _sum(pages)
    return max(0.0, (float((total * total).sum()) - count) / (count * (count - 1)))
