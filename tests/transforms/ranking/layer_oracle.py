"""Word models of layers from their definition, word by word; for the tests of the rankers that use them."""

from __future__ import annotations

import math
from collections import Counter

import networkx as nx

from semrank.transforms.ranking.layer_words import LayerWordSettings
from tests.support.small_crawls import Crawl


def states_of(crawl: Crawl, count: int) -> dict[int, int]:
    """Layer of each URL that has one, `count` for other described URLs."""
    other = {url: count for url, page in crawl.pages.items() if page.described}
    return other | oracle(crawl, count)


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


def oracle(crawl: Crawl, count: int) -> dict[int, int]:
    """Steps to the nearest seed along links of described pages, up to the last layer."""
    graph = nx.DiGraph()
    graph.add_nodes_from(crawl.seeds)
    described = {url for url, page in crawl.pages.items() if page.described}
    graph.add_edges_from((target, source) for source, target in crawl.links if source in described)
    if not crawl.seeds:
        return {}
    lengths = nx.multi_source_dijkstra_path_length(graph, set(crawl.seeds), cutoff=count - 1)
    return {int(url): int(length) for url, length in lengths.items()}
