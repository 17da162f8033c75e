"""The method's definitions, evaluated word for word on small inputs: sets, loops, and one assignment solver.

Nothing of the package is used, and nothing is clever: every pair of concepts is compared, every ancestor is looked at.
"""

from __future__ import annotations

import datetime
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

Row = Mapping[str, Any]
Concept = tuple[frozenset[str], frozenset[str]]
"""(extent, intent): URLs and words."""

GAP = datetime.timedelta(minutes=30)
TIE = 1e-9
"""Pairs of concepts whose similarities differ by less are equally good reasons."""


@dataclass
class Hierarchy:
    """Words with probabilities and relations below Top, and the similarity of two of them.

    Attributes:
        probability: p(n), of the word that is Top too.
        part_of: (whole, part) pairs.
        isa: unordered pairs.
        alpha: adjustment of the edge weights.
        top: the word that is Top, or None.
        top_probability: p(Top).
    """

    probability: dict[str, float]
    part_of: set[tuple[str, str]]
    isa: set[frozenset[str]]
    alpha: float
    top: str | None
    top_probability: float
    layers: dict[str, int] = field(init=False)
    above: dict[str, set[str]] = field(init=False)

    def __post_init__(self) -> None:
        edges = {(a, b) for a, b in self.part_of if b != self.top}
        self.above = {word: _reached(word, {(b, a) for a, b in edges}) for word in self.probability}
        self.layers = {word: 0 if word == self.top else self._layer(word, edges) for word in self.probability}

    def _layer(self, word: str, edges: set[tuple[str, str]]) -> int:
        """Edges of the longest path from Top to the component of a word."""
        component = {other for other in self.above[word] if word in self.above[other]}
        parents = {a for a, b in edges if b in component and a not in component}
        below_parents = [0 if parent == self.top else self._layer(parent, edges) for parent in parents]
        return 1 + max(below_parents, default=0)

    def weight(self, word: str) -> float:
        """w(n)."""
        return sum(1 / (k + self.alpha) for k in range(1, self.layers[word] + 1))

    def ics(self, a: str, b: str) -> float:
        """Information content similarity."""
        if a == b or frozenset((a, b)) in self.isa:
            return 1.0
        if not self.probability[a] or not self.probability[b]:
            return 0.0
        shared = [
            -math.log(self.probability[word])
            for word in self.above[a] & self.above[b]
            if word != self.top and self.probability[word]
        ]
        information = max(shared) if shared else -math.log(self.top_probability)
        own = sum(-math.log(self.probability[word]) * self.weight(word) for word in (a, b))
        if own == 0:
            return float(information > 0)
        return min(1.0, max(0.0, 2 * information / own))

    def matching(self, first: Iterable[str], second: Iterable[str]) -> float:
        """Weight of the maximum weight matching of two sets of words."""
        values = np.array([[self.ics(a, b) for b in sorted(second)] for a in sorted(first)])
        if not values.size:
            return 0.0
        return float(values[linear_sum_assignment(values, maximize=True)].sum())

    def intension(self, first: frozenset[str], second: frozenset[str], norm: str = "min") -> float:
        """Intension similarity of two intents."""
        size = (min if norm == "min" else max)(len(first), len(second))
        return self.matching(first, second) / size if first and second else 0.0


@dataclass(frozen=True)
class Oracle:
    """What a round should say.

    Attributes:
        scores: (score, extension, intension) of each current URL, of one best pair.
        reasons: (extension, intension) of all pairs that are as good.
        keywords: (clicks, p, layer, in_base, in_current) of each keyword.
        relations: support of (relation, source, target).
        base: concepts of the queue.
        current: concepts of the current URLs.
        hierarchy: the keywords' hierarchy.
    """

    scores: dict[str, tuple[float, float, float]]
    reasons: dict[str, list[tuple[float, float]]]
    keywords: dict[str, tuple[int, float, int, bool, bool]]
    relations: dict[tuple[str, str, str], int]
    base: set[Concept]
    current: set[Concept]
    hierarchy: Hierarchy


def rank_oracle(
    pages: Sequence[Row],
    links: Sequence[Row],
    clicks: Sequence[Row],
    seeds: Iterable[str],
    *,
    weight: float | None = 0.4,
    intension_norm: str = "min",
    extension: str = "links",
    alpha: float = 0.2,
    min_support: int = 1,
    min_relation_support: int = 1,
    max_keywords_per_url: int = 50,
    top_probability: str | float = "max",
    smoothing: float = 0.0,
    user_groups: str = "given",
    query: str | None = None,
) -> Oracle:
    """Ranks by definition; every current URL must be a page with (possibly no) `keywords`, every click have some."""
    words_of = {page["url"]: frozenset(page["keywords"]) for page in pages}
    queue = set(seeds)
    targets = {link["target_url"] for link in links if link["source_url"] in queue} - queue
    followed = {(link["source_url"], link["target_url"]) for link in links if not link.get("nofollow")}
    followed = {(source, target) for source, target in followed if source != target}
    base = concepts({url: words_of[url] for url in queue}, min_support)
    current = concepts({url: words_of[url] for url in targets}, min_support)

    in_base = set().union(*(words_of[url] for url in queue))
    in_current = set().union(*(words_of[url] for url in targets))
    vocabulary = in_base | in_current
    f = {word: sum(word in click["keywords"] for click in clicks) for word in vocabulary}
    scopes = _scopes(clicks, vocabulary, user_groups, max_keywords_per_url)
    relations = _relations(scopes, followed, in_base, in_current, min_relation_support)
    hierarchy = _hierarchy(f, relations, query, alpha, top_probability, smoothing)

    edges = [followed, click_edges(clicks)]
    pairs = []
    for b in base:
        for c in current:
            e = extension_similarity(b[0], c[0], edges, extension)
            i = hierarchy.intension(b[1], c[1], intension_norm)
            pairs.append((c[0], similarity(e, i, weight), e, i))
    scores, reasons = {}, {}
    for url in targets:
        of_url = [pair[1:] for pair in pairs if url in pair[0]]
        scores[url] = max(of_url, default=(0.0, 0.0, 0.0))
        reasons[url] = [(e, i) for score, e, i in of_url if score >= scores[url][0] - TIE] or [(0.0, 0.0)]
    keywords = {
        word: (f[word], hierarchy.probability[word], hierarchy.layers[word], word in in_base, word in in_current)
        for word in vocabulary
    }
    return Oracle(scores, reasons, keywords, relations, base, current, hierarchy)


def concepts(context: Mapping[str, frozenset[str]], min_support: int) -> set[Concept]:
    """Concepts with at least `min_support` URLs, and the one of all URLs."""
    found = set()
    for size in range(1, len(context) + 1):
        for chosen in combinations(sorted(context), size):
            intent = frozenset.intersection(*(context[url] for url in chosen))
            extent = frozenset(url for url, words in context.items() if words >= intent)
            if len(extent) >= min_support or size == len(context):
                found.add((extent, intent))
    return found


def similarity(extension: float, intension: float, weight: float | None) -> float:
    """Sim; a weight of None is the share of the extension."""
    if weight is None:
        weight = extension / (extension + intension) if extension + intension else 0.0
    return weight * extension + (1 - weight) * intension


def extension_similarity(
    first: frozenset[str], second: frozenset[str], edges: Sequence[set[tuple[str, str]]], kind: str = "links"
) -> float:
    """Extension similarity of two extents; `edges` are links and c-edges."""
    larger = max(len(first), len(second))
    if kind == "objects":
        return len(first & second) / larger
    count = sum(((u, v) in pairs) + ((v, u) in pairs) for pairs in edges for u in first for v in second)
    return min(1.0, count / (4 * larger))


def click_edges(clicks: Sequence[Row]) -> set[tuple[str, str]]:
    """Distinct c-edges."""
    sequences: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for click in clicks:
        sequences[click["user_id"], click.get("session_id"), click["query"]].append(click)
    edges = set()
    for rows in sequences.values():
        rows.sort(key=lambda row: (row["clicked_at"], _position(row), row["url"]))
        for one, other in zip(rows, rows[1:], strict=False):
            if other["clicked_at"] - one["clicked_at"] <= GAP and one["url"] != other["url"]:
                edges.add((one["url"], other["url"]))
    return edges


def _position(click: Row) -> int:
    position = click.get("position")
    return -1 if position is None else int(position)


def _scopes(
    clicks: Sequence[Row], vocabulary: set[str], user_groups: str, max_words: int
) -> dict[Any, dict[str, set[str]]]:
    """The words of each page in each group, and for users of several groups by themselves."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    groups_of: dict[str, set[Any]] = defaultdict(set)
    for click in clicks:
        groups_of[click["user_id"]].add(click.get("user_group"))
        for word in set(click["keywords"]) & vocabulary:
            counts[click["url"]][word] += 1
    leading = {
        url: set(sorted(words, key=lambda word: (-words[word], word))[:max_words]) for url, words in counts.items()
    }
    scopes: dict[Any, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for click in clicks:
        user, url = click["user_id"], click["url"]
        words = set(click["keywords"]) & leading.get(url, set())
        if user_groups == "one":
            scopes["everybody"][url] |= words
            continue
        scopes["group", click.get("user_group")][url] |= words
        if len(groups_of[user]) > 1:
            scopes["user", user][url] |= words
    return scopes


def _relations(
    scopes: Mapping[Any, Mapping[str, set[str]]],
    followed: set[tuple[str, str]],
    in_base: set[str],
    in_current: set[str],
    min_support: int,
) -> dict[tuple[str, str, str], int]:
    pages: dict[tuple[str, str], set[str]] = defaultdict(set)
    links: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for clicked in scopes.values():
        for url, words in clicked.items():
            for pair in combinations(sorted(words), 2):
                pages[pair].add(url)
        for u, v in followed:
            for a in clicked.get(u, set()) & in_base:
                for b in clicked.get(v, set()) & in_current:
                    if a != b:
                        links[a, b].add((u, v))
    isa = {pair: len(witnesses) for pair, witnesses in pages.items() if len(witnesses) >= min_support}
    part_of = {pair: len(witnesses) for pair, witnesses in links.items() if len(witnesses) >= min_support}
    found = {("ISA", *pair): support for pair, support in isa.items()}
    for (a, b), support in part_of.items():
        if (min(a, b), max(a, b)) not in isa and support > part_of.get((b, a), 0):
            found["PART_OF", a, b] = support
    return found


def _hierarchy(
    f: Mapping[str, int],
    relations: Iterable[tuple[str, str, str]],
    query: str | None,
    alpha: float,
    top_probability: str | float,
    smoothing: float,
) -> Hierarchy:
    total = sum(f.values()) + smoothing * len(f)
    probability = {word: (count + smoothing) / total if total else 0.0 for word, count in f.items()}
    isa = {frozenset((a, b)) for relation, a, b in relations if relation == "ISA"}
    part_of = {(a, b) for relation, a, b in relations if relation == "PART_OF"}
    top = query if query in f and not any(query in pair for pair in isa) else None
    positive = [p for p in probability.values() if p] or [1.0]
    if top is not None and probability[top]:
        top_p = probability[top]
    elif isinstance(top_probability, str):
        top_p = max(positive) if top_probability == "max" else min(positive)
    else:
        top_p = top_probability
    return Hierarchy(probability, part_of, isa, alpha, top, top_p)


def _reached(start: str, edges: set[tuple[str, str]]) -> set[str]:
    """Nodes that edges lead to from a node, itself included."""
    found, waiting = {start}, [start]
    while waiting:
        node = waiting.pop()
        for a, b in edges:
            if a == node and b not in found:
                found.add(b)
                waiting.append(b)
    return found
