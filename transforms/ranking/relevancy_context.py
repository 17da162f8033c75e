"""Relevancy context graph: the expected worth of a URL's layer (Hsu and Wu 2006, P13 RCGCrawler).

Layer i around the seeds is worth a^i, a page in none nothing; P(layer | words) is naive Bayes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from semrank.transforms.context.descriptions import Descriptions
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.ranking.layer_words import LayerWords, LayerWordSettings, expected_value, state_terms
from semrank.transforms.ranking.naive_bayes import posteriors
from semrank.transforms.ranking.reasons import reason_lists
from semrank.transforms.ranking.topic_words import known_words, page_words, scored


@dataclass(frozen=True)
class RelevancyContextSettings:
    """What layers are worth.

    Attributes:
        decay: a, what a layer is worth of the one before it.
        words: how layers and their words are found.
    """

    decay: float = 0.5
    words: LayerWordSettings = field(default_factory=LayerWordSettings)

    @property
    def values(self) -> list[float]:
        """What each state is worth, the layers', then that of other pages."""
        return [*(self.decay**layer for layer in range(self.words.layers.count)), 0.0]


def scores(descriptions: Descriptions, model: LayerWords, settings: RelevancyContextSettings) -> pa.Table:
    """Scores of the current URLs of a part, in [0, 1], a table of `SCORED_SCHEMA`.

    Without words all states that have any are equally likely; where none has, the score is 0.
    """
    current = descriptions.select(descriptions.current)
    words = page_words(current)
    posterior = posteriors(model.bayes.log_likelihoods(words))
    terms = [*state_terms(posterior, settings.values, words, model), known_words(current, words)]
    score = expected_value(posterior, settings.values)
    return scored(current.url, score, reason_lists(terms, len(current)))


def settings_of(options: Mapping[str, Any]) -> RelevancyContextSettings:
    """The settings from a round's option `rcg_alpha`."""
    return RelevancyContextSettings(options["rcg_alpha"])


def rank(facts: Facts, settings: RelevancyContextSettings | None = None) -> pa.Table:
    """Scores of the current URLs of a crawl in memory, a table of `SCORED_SCHEMA`."""
    settings = settings or RelevancyContextSettings()
    return scores(facts.descriptions, LayerWords.of_facts(facts, settings.words), settings)
