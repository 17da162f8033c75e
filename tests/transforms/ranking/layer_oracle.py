"""Word models of layers from their definition, word by word; for the tests of the rankers that use them."""

from __future__ import annotations

import math
from collections import Counter

from semrank.transforms.ranking.layer_words import LayerWordSettings
from tests.support.small_crawls import Crawl
from tests.transforms.ranking.test_layers import oracle as layers_of


def states_of(crawl: Crawl, count: int) -> dict[int, int]:
    """Layer of each URL that has one, `count` for other described URLs."""
    other = {url: count for url, page in crawl.pages.items() if page.described}
    return other | layers_of(crawl, count)


def state_words(crawl: Crawl, count: int) -> list[Counter[str]]:
    """Words of the pages of each state; the query's are the targets'."""
    words: list[Counter[str]] = [Counter() for _ in range(count + 1)]
    words[0] += Counter({word: 1 for word in crawl.query if word in crawl.words})
    for url, state in states_of(crawl, count).items():
        if url in crawl.pages:
            words[state] += crawl.pages[url].words
    return words


def likelihoods(crawl: Crawl, words: Counter[str], settings: LayerWordSettings) -> list[float]:
    """P(words | state) for each state, scaled for long pages; 0 for states without words.

    The largest is 1: only ratios matter, and those of long pages would be too small for a float.
    """
    logs = []
    scale = min(1.0, settings.bayes.most_words / max(words.total(), 1))
    for seen in state_words(crawl, settings.layers.count):
        total = seen.total() + settings.bayes.smoothing * len(crawl.words)
        log = sum(n * math.log((seen[word] + settings.bayes.smoothing) / total) for word, n in words.items())
        logs.append(scale * log if seen else -math.inf)
    best = max(logs)
    return [math.exp(log - best) if log > -math.inf else 0.0 for log in logs]


def normalised(values: list[float]) -> list[float]:
    """Values that add up to 1, or zeros."""
    total = sum(values)
    return [value / total if total else 0.0 for value in values]
