"""The definitions evaluated naively: from small tables to the scores, keywords and relations of a round.

Plain sets, dicts and loops, and an optimal assignment from scipy; nothing of the product is used. Every URL must be a
page with `keywords`, so that no words are extracted from texts.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import numpy as np
from scipy.optimize import linear_sum_assignment

Row = dict[str, Any]
Concept = tuple[frozenset[str], frozenset[str]]

GAP_SECONDS = 30 * 60


@dataclass(frozen=True)
class Options:
    """What a round is computed with; see the product's options of the same name."""

    weight: float | None = 0.4
    intension_norm: str = "min"
    extension: str = "links"
    alpha: float = 0.2
    min_support: int = 1
    min_relation_support: int = 1
    max_keywords_per_url: int = 50
    top_probability: str | float = "max"
    smoothing: float = 0.0
    user_groups: str = "given"
    query: str | None = None
    log_scope: str = "all"
    isa_needs_word: bool = False


@dataclass
class Oracle:
    """What a round should give."""

    pairs: dict[str, list[tuple[float, float, float, Concept, Concept]]] = field(default_factory=dict)
    base: set[Concept] = field(default_factory=set)
    current: set[Concept] = field(default_factory=set)
    clicks: Counter[str] = field(default_factory=Counter)
    probability: dict[str, float] = field(default_factory=dict)
    layer: dict[str, int] = field(default_factory=dict)
    base_words: set[str] = field(default_factory=set)
    current_words: set[str] = field(default_factory=set)
    relations: dict[tuple[str, str, str], int] = field(default_factory=dict)


def concepts(context: dict[str, frozenset[str]], min_support: int) -> set[Concept]:
    """All concepts with enough objects, by closing every set of objects; the concept of all objects always."""
    found: set[Concept] = set()
    names = sorted(context)
    for size in range(len(names), 0, -1):
        for chosen in itertools.combinations(names, size):
            intent = frozenset.intersection(*(context[name] for name in chosen))
            extent = frozenset(name for name in names if intent <= context[name])
            if len(extent) >= min_support or len(extent) == len(names):
                found.add((extent, intent))
    return found


def c_edges(clicks: Sequence[Row]) -> set[tuple[str, str]]:
    sequences: dict[tuple[str, str | None, str], list[tuple[Any, int, str]]] = defaultdict(list)
    for click in clicks:
        position = click.get("position")
        key = (click["user_id"], click.get("session_id"), click["query"])
        sequences[key].append((click["clicked_at"], -1 if position is None else position, click["url"]))
    edges = set()
    for steps in sequences.values():
        # Equal times and positions are ordered by something stable that the definitions leave open; tests avoid them.
        for (early, _, source), (late, _, target) in itertools.pairwise(sorted(steps)):
            if source != target and (late - early).total_seconds() <= GAP_SECONDS:
                edges.add((source, target))
    return edges


def learn_relations(
    clicks: Sequence[Row], links: set[tuple[str, str]], base: set[str], current: set[str], options: Options
) -> dict[tuple[str, str, str], int]:
    vocabulary = base | current
    by_url: dict[str, Counter[str]] = defaultdict(Counter)
    for click in clicks:
        for word in set(click["keywords"]) & vocabulary:
            by_url[click["url"]][word] += 1
    leading = {
        url: set(sorted(counts, key=lambda word: (-counts[word], word))[: options.max_keywords_per_url])
        for url, counts in by_url.items()
    }
    scopes: dict[tuple[str, Any], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for click in clicks:
        words = set(click["keywords"]) & leading.get(click["url"], set())
        group = None if options.user_groups == "one" else click.get("user_group")
        for scope in (("group", group), ("user", click["user_id"])):
            scopes[scope][click["url"]] |= words
    isa: dict[tuple[str, str], set[str]] = defaultdict(set)
    part_of: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for pages in scopes.values():
        for url, words in pages.items():
            for pair in itertools.combinations(sorted(words), 2):
                isa[pair].add(url)
        for source, target in links:
            for a in pages.get(source, set()) & base:
                for b in pages.get(target, set()) & current:
                    if a != b:
                        part_of[a, b].add((source, target))
    least = options.min_relation_support
    related = {pair: len(pages) for pair, pages in isa.items() if len(pages) >= least}
    parts = {pair: len(ends) for pair, ends in part_of.items() if len(ends) >= least}
    relations = {("ISA", *pair): support for pair, support in related.items()}
    for (a, b), support in parts.items():
        if (min(a, b), max(a, b)) not in related and support > parts.get((b, a), 0):
            relations["PART_OF", a, b] = support
    return relations


class Hierarchy:
    """Layers, weights and information of words."""

    def __init__(self, words: set[str], clicks: Counter[str], relations: dict[Any, int], options: Options) -> None:
        self.isa = {frozenset(key[1:]) for key in relations if key[0] == "ISA"}
        total = sum(clicks[word] + options.smoothing for word in words)
        self.p = {word: (clicks[word] + options.smoothing) / total if total else 0.0 for word in words}
        query = (options.query or "").split()
        alone = len(query) == 1 and query[0] in words and not any(query[0] in pair for pair in self.isa)
        self.top = query[0] if alone else None
        positive = [p for p in self.p.values() if p > 0]
        if self.top is not None:
            self.p_top = self.p[self.top]
        elif isinstance(options.top_probability, str):
            self.p_top = (max if options.top_probability == "max" else min)(positive, default=1.0)
        else:
            self.p_top = options.top_probability
        graph = nx.DiGraph()
        graph.add_nodes_from(words)
        graph.add_edges_from(key[1:] for key in relations if key[0] == "PART_OF" and key[2] != self.top)
        if self.top is not None:
            # Top stands above everything, so its own edges say nothing new.
            graph.remove_edges_from(list(graph.out_edges(self.top)))
        self.ancestors = {word: nx.ancestors(graph, word) | {word} for word in words}
        condensed = nx.condensation(graph)
        depth: dict[int, int] = {}
        for component in nx.topological_sort(condensed):
            depth[component] = 1 + max((depth[parent] for parent in condensed.predecessors(component)), default=0)
        self.layer = {word: depth[condensed.graph["mapping"][word]] for word in words}
        if self.top is not None:
            self.layer[self.top] = 0
        self.w = {word: sum(1 / (k + options.alpha) for k in range(1, layer + 1)) for word, layer in self.layer.items()}

    def ics(self, a: str, b: str) -> float:
        if a == b or frozenset((a, b)) in self.isa:
            return 1.0
        if self.p[a] == 0 or self.p[b] == 0:
            return 0.0
        shared = {s for s in self.ancestors[a] & self.ancestors[b] if self.p[s] > 0 and s != self.top}
        if self.top in (a, b):
            shared = set()
        information = max((-math.log(self.p[s]) for s in shared), default=-math.log(self.p_top) if self.p_top else 0.0)
        below = -math.log(self.p[a]) * self.w[a] - math.log(self.p[b]) * self.w[b]
        if below == 0:
            return 0.0 if information == 0 else 1.0
        return min(1.0, max(0.0, 2 * information / below))


def intension(a: frozenset[str], b: frozenset[str], hierarchy: Hierarchy, norm: str) -> float:
    if not a or not b:
        return 0.0
    block = np.array([[hierarchy.ics(x, y) for y in sorted(b)] for x in sorted(a)])
    total = block[linear_sum_assignment(block, maximize=True)].sum()
    return float(total) / (min if norm == "min" else max)(len(a), len(b))


def rank_oracle(
    pages: Sequence[Row],
    links: Sequence[Row],
    clicks: Sequence[Row],
    seeds: Sequence[str],
    options: Options,
    *,
    harvested: Sequence[str] = (),
) -> Oracle:
    """The whole round; with harvested pages the candidates are what they link to, the seeds' base being the same."""
    words = {page["url"]: frozenset(page["keywords"]) for page in pages}
    followed = {
        (link["source_url"], link["target_url"])
        for link in links
        if not link.get("nofollow") and link["source_url"] != link["target_url"]
    }
    queue = set(seeds)
    known = queue | set(harvested)
    current = {link["target_url"] for link in links if link["source_url"] in known} - known
    base_context = {url: words[url] for url in queue}
    current_context = {url: words[url] for url in current}
    oracle = Oracle()
    oracle.base_words = set().union(*base_context.values())
    oracle.current_words = set().union(*current_context.values())
    vocabulary = oracle.base_words | oracle.current_words
    topic = oracle.base_words | set((options.query or "").split())
    counted = [click for click in clicks if options.log_scope == "all" or topic & set(click["keywords"])]
    for click in counted:
        oracle.clicks.update(set(click["keywords"]) & vocabulary)
    if options.isa_needs_word:
        own = {**base_context, **current_context}
        counted = [
            {**click, "keywords": own.get(click["url"], frozenset()) & set(click["keywords"])} for click in counted
        ]
    oracle.relations = learn_relations(counted, followed, oracle.base_words, oracle.current_words, options)
    hierarchy = Hierarchy(vocabulary, oracle.clicks, oracle.relations, options)
    oracle.probability, oracle.layer = hierarchy.p, hierarchy.layer
    oracle.base = concepts(base_context, options.min_support) if base_context else set()
    oracle.current = concepts(current_context, options.min_support) if current_context else set()
    walked = c_edges(clicks)
    oracle.pairs = {url: [] for url in current}
    for c, b in itertools.product(oracle.current, oracle.base):
        if options.extension == "links":
            between = sum(
                ((x, y) in followed) + ((y, x) in followed) + ((x, y) in walked) + ((y, x) in walked)
                for x in b[0]
                for y in c[0]
            )
            extension = min(1.0, between / (4 * max(len(b[0]), len(c[0]))))
        else:
            extension = len(b[0] & c[0]) / max(len(b[0]), len(c[0]))
        inner = intension(b[1], c[1], hierarchy, options.intension_norm)
        total = extension + inner
        weight = options.weight if options.weight is not None else extension / total if total else 0.0
        entry = (weight * extension + (1 - weight) * inner, extension, inner, b, c)
        for url in c[0]:
            oracle.pairs[url].append(entry)
    return oracle
