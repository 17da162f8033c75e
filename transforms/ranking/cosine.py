"""Cosine of a URL's words and the topic's (P13 1.2, CosTFCrawler), weighted by P13 Eq. 2.

    w(t, d) = cfw(t) tf(t, d) (k + 1) / (k ((1 - b) + b N(d)) + tf(t, d)),   cfw(t) = ln(n / n_t)

with tf the occurrences of word t in d, n known URLs of which n_t have t, and N(d) the length of d over the mean
length. The print has `tf k + 1` for `tf (k + 1)`: read so, a word that a page lacks would weigh something, and more
than a common word that it has. The equation is Robertson's and Sparck Jones's combined weight, which has `tf (k +
1)`. The topic (the seeds' words and the query's, see `topic_words`) is weighted as one more document.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from semrank.transforms.columnar.arrays import Float64s
from semrank.transforms.context.descriptions import Descriptions
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.ranking.reasons import Term, best_words, reason_lists
from semrank.transforms.ranking.topic_words import Topic, known_words, page_words, row_sums, scored


@dataclass(frozen=True)
class CosineSettings:
    """The adjustment factors of P13 Eq. 2, for which the paper has no numbers.

    Attributes:
        k: how slowly further occurrences of a word saturate; with 0 only the presence of the word counts.
        b: how much long documents are held back, from 0 (not at all) to 1 (by their whole length).
    """

    k: float = 2.0
    b: float = 0.75


def term_weights(counts: sparse.csr_array, topic: Topic, settings: CosineSettings) -> sparse.csr_array:
    """w(t, d) of each word of each row (P13 Eq. 2), CSR float64[n, v].

    Args:
        counts: occurrences of words, int64[n, v], without zeros.
        topic: has the collection's statistics.
        settings: k and b.
    """
    mean_length = topic.length / topic.urls if topic.length else 1.0
    relative_length = row_sums(counts) / mean_length
    damping = settings.k * ((1 - settings.b) + settings.b * relative_length)
    occurrences = counts.data.astype(np.float64)
    saturation = np.repeat(damping, np.diff(counts.indptr)) + occurrences
    data = topic.collection_frequency_weights[counts.indices] * occurrences * (settings.k + 1) / saturation
    return sparse.csr_array((data, counts.indices, counts.indptr), shape=counts.shape)


def scores(descriptions: Descriptions, topic: Topic, settings: CosineSettings) -> pa.Table:
    """Scores of the current URLs of a part, in [0, 1], a table of `SCORED_SCHEMA`.

    0 where a URL and the topic share no word, or none that another URL lacks.
    """
    current = descriptions.select(descriptions.current)
    words = page_words(current)
    weights = term_weights(words, topic, settings)
    wanted = _topic_vector(topic, settings)
    lengths = np.sqrt(row_sums(weights.power(2))) * math.sqrt(math.fsum(wanted**2))
    shared = sparse.csr_array((weights.data * wanted[weights.indices], weights.indices, weights.indptr), weights.shape)
    score = np.minimum(row_sums(shared) / np.where(lengths > 0, lengths, 1.0), 1.0)
    terms = [
        Term("cosine", score, np.ones(len(current)), best_words(shared, topic.vocabulary.words)),
        known_words(current, words),
    ]
    return scored(current.url, score, reason_lists(terms, len(current)))


def _topic_vector(topic: Topic, settings: CosineSettings) -> Float64s:
    counts = topic.counts
    found = np.flatnonzero(counts)
    pointer = np.array([0, len(found)])
    row = sparse.csr_array((counts[found], found, pointer), shape=(1, len(counts)))
    vector = np.zeros(len(counts))
    vector[found] = term_weights(row, topic, settings).data
    return vector


def settings_of(options: Mapping[str, Any]) -> CosineSettings:
    """The settings from a round's options `cosine_k` and `cosine_b`."""
    return CosineSettings(options["cosine_k"], options["cosine_b"])


def rank(facts: Facts, settings: CosineSettings | None = None) -> pa.Table:
    """Scores of the current URLs of a crawl in memory, a table of `SCORED_SCHEMA`."""
    return scores(facts.descriptions, Topic.of_facts(facts), settings or CosineSettings())
