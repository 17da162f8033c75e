"""Share of the topic's words that a page has: the keyword-based crawler that EC (section IV) compares with.

The paper leaves open which words a topic has. Here these are the words of the query, and the words of the seeds with
the largest tf-idf (occurrences in all seeds together, times ln(n / n_t)).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from scipy import sparse

from semrank.transforms.columnar.arrays import Int64s
from semrank.transforms.context.descriptions import Descriptions
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.ranking.reasons import Term, best_words, reason_lists
from semrank.transforms.ranking.topic_words import Topic, known_words, page_words, row_sums, scored

SEED_WORDS = 20
"""Largest number of words that the seeds give."""


def topic_keywords(topic: Topic) -> Int64s:
    """Numbers of the topic's words, ascending, int64; of equal tf-idf the lower number is taken."""
    weights = topic.seeds * topic.collection_frequency_weights
    found = np.flatnonzero(weights > 0)
    best = found[np.lexsort((found, -weights[found]))][:SEED_WORDS]
    return np.union1d(topic.query, best).astype(np.int64)


def scores(descriptions: Descriptions, topic: Topic) -> pa.Table:
    """Scores of the current URLs of a part, in [0, 1], a table of `SCORED_SCHEMA`.

    0 for all where the topic has no word.
    """
    current = descriptions.select(descriptions.current)
    words = page_words(current)
    keywords = topic_keywords(topic)
    importance = np.zeros(words.shape[1])
    # The words that weigh most are named first; the query's come before all of the seeds'.
    importance[keywords] = 1.0 + topic.seeds[keywords] * topic.collection_frequency_weights[keywords]
    importance[topic.query] += importance.max(initial=0.0)
    found = sparse.csr_array((importance[words.indices], words.indices, words.indptr), words.shape)
    share = row_sums(sparse.csr_array(found > 0)) / max(len(keywords), 1)
    terms = [
        Term("topic-words", share, np.ones(len(current)), best_words(found, topic.vocabulary.words)),
        known_words(current, words),
    ]
    return scored(current.url, share, reason_lists(terms, len(current)))


def rank(facts: Facts) -> pa.Table:
    """Scores of the current URLs of a crawl in memory, a table of `SCORED_SCHEMA`."""
    return scores(facts.descriptions, Topic.of_facts(facts))
