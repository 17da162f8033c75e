"""Link context graph: the layer that a URL's words speak for, nearest first (Diligenti et al. 2000, P13 LCGCrawler).

One naive Bayes class a layer of back links around the seeds; a URL belongs to its most probable layer, or to "other"
where that one's posterior is below a threshold. Nearer layers come first, within a layer the larger posterior.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from semrank.transforms.context.descriptions import Descriptions
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.ranking.layer_words import LayerWords, LayerWordSettings
from semrank.transforms.ranking.naive_bayes import posteriors
from semrank.transforms.ranking.reasons import Term, best_words, reason_lists
from semrank.transforms.ranking.topic_words import known_words, page_words, scored


@dataclass(frozen=True)
class LinkContextSettings:
    """When a URL belongs to a layer.

    Attributes:
        threshold: posterior that a URL's most probable layer must have.
        words: how layers and their words are found.
    """

    threshold: float = 0.5
    words: LayerWordSettings = field(default_factory=LayerWordSettings)


def scores(descriptions: Descriptions, model: LayerWords, settings: LinkContextSettings) -> pa.Table:
    """Scores of the current URLs of a part, in [0, 1], a table of `SCORED_SCHEMA`.

    With L layers and posterior p, a URL of layer i scores (L - i + p) / (L + 1) and an other one p / (L + 1); 0 without
    words, or where no layer has any.
    """
    current = descriptions.select(descriptions.current)
    words = page_words(current)
    count = settings.words.layers.count
    layers = np.ascontiguousarray(model.bayes.log_likelihoods(words)[:, :count])
    posterior = posteriors(layers)
    layer = np.argmax(posterior, axis=1)
    best = posterior[np.arange(len(current)), layer]
    # Without words the posterior only repeats what was thought before.
    best = np.where(np.diff(words.indptr) > 0, best, 0.0)
    inside = (best >= settings.threshold) & (best > 0)
    nearness = np.where(inside, count - layer, 0).astype(np.float64)
    score = (nearness + best) / (count + 1)
    weight = np.full(len(current), 1 / (count + 1))
    names = pa.array([*(f"layer {number} of 0 to {count - 1}" for number in range(count)), "other"])
    terms = [
        Term("layer-nearness", nearness, weight, names.take(pa.array(np.where(inside, layer, count)))),
        Term("posterior", best, weight, best_words(model.bayes.evidence(words, layer), model.vocabulary)),
        known_words(current, words),
    ]
    return scored(current.url, score, reason_lists(terms, len(current)))


def settings_of(_: Mapping[str, Any]) -> LinkContextSettings:
    """The settings; a round has no options for them."""
    return LinkContextSettings()


def rank(facts: Facts, settings: LinkContextSettings | None = None) -> pa.Table:
    """Scores of the current URLs of a crawl in memory, a table of `SCORED_SCHEMA`."""
    settings = settings or LinkContextSettings()
    return scores(facts.descriptions, LayerWords.of_facts(facts, settings.words), settings)
