"""The words of the layers around the seeds, and of the pages in none: the model that three rankers share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from semrank.transforms.columnar.arrays import Float64s, Int64s
from semrank.transforms.context.descriptions import Descriptions
from semrank.transforms.ranking import layers
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.ranking.layers import LayerSettings
from semrank.transforms.ranking.naive_bayes import NaiveBayes, NaiveBayesSettings, class_counts, query_counts
from semrank.transforms.ranking.reasons import Term, best_words
from semrank.transforms.ranking.topic_words import page_words

LEAST_SHOWN = 1e-9
"""Posterior from which on a state is shown as a reason: what smaller ones add to a score is below its rounding."""


@dataclass(frozen=True)
class LayerWordSettings:
    """How layers and their words are found.

    Attributes:
        layers: how far layers reach.
        bayes: how words are learned.
    """

    layers: LayerSettings = field(default_factory=LayerSettings)
    bayes: NaiveBayesSettings = field(default_factory=NaiveBayesSettings)

    @property
    def states(self) -> int:
        """Number of states of a page: the layers, then "other"."""
        return self.layers.count + 1


def layer_word_counts(descriptions: Descriptions, found: pa.Table | None, settings: LayerWordSettings) -> pa.Table:
    """Words of the states in a part of the known URLs, a table of `CLASS_COUNT_SCHEMA`.

    Args:
        descriptions: the part.
        found: all layers (`LAYER_SCHEMA`).
        settings: number of layers.
    """
    state = layers.states(descriptions, found, settings.layers.count)
    return class_counts(page_words(descriptions), state, settings.states)


@dataclass(frozen=True, eq=False)
class LayerWords:
    """The word models of the states.

    Attributes:
        bayes: a class for each layer, and one for the described URLs in none.
        vocabulary: the words, string[v].
    """

    bayes: NaiveBayes
    vocabulary: pa.Array

    @classmethod
    def of_counts(
        cls, counts: pa.Table | None, query: Int64s, vocabulary: pa.Array, settings: LayerWordSettings
    ) -> LayerWords:
        """The models from the counts of all parts; the query's words belong to the targets, layer 0.

        Args:
            counts: rows of `CLASS_COUNT_SCHEMA`.
            query: numbers of the query's words, each once.
            vocabulary: the words.
            settings: number of layers and how words are learned.
        """
        asked = query_counts(query)
        return cls(
            NaiveBayes.of_counts(
                asked if counts is None else pa.concat_tables([counts, asked]),
                classes=settings.states,
                words=len(vocabulary),
                settings=settings.bayes,
            ),
            vocabulary,
        )

    @classmethod
    def of_facts(cls, facts: Facts, settings: LayerWordSettings) -> LayerWords:
        """The models of a crawl in memory."""
        found = layers.layers_of_facts(facts, settings.layers)
        counts = layer_word_counts(facts.descriptions, found, settings)
        return cls.of_counts(counts, np.unique(facts.query), facts.words, settings)


def expected_value(posterior: Float64s, values: Sequence[float]) -> Float64s:
    """Sum of P(s | d) value(s) over the states, added in their order, float64[n].

    Args:
        posterior: float64[n, k].
        values: k numbers.
    """
    total = np.zeros(len(posterior))
    for state, value in enumerate(values):
        total += posterior[:, state] * value
    return np.minimum(total, 1.0)


def state_terms(posterior: Float64s, values: Sequence[float], words: sparse.csr_array, model: LayerWords) -> list[Term]:
    """A term for each probable state of a URL: its posterior, and the value of the state.

    Args:
        posterior: float64[n, k]; the last state is "other".
        values: k numbers.
        words: occurrences of words, int64[n, v].
        model: has the words that are the evidence for the most probable state.
    """
    rows = len(posterior)
    best = np.argmax(posterior, axis=1).astype(np.int64)
    spoken = best_words(model.bayes.evidence(words, best), model.vocabulary)
    nothing = pa.scalar(None, pa.string())
    terms = []
    for state, value in enumerate(values):
        name = "other" if state == len(values) - 1 else f"layer-{state}"
        probability = posterior[:, state]
        detail = pc.if_else(pa.array(best == state), spoken, nothing)
        terms.append(Term(name, probability, np.full(rows, value), detail, probability >= LEAST_SHOWN))
    return terms
