"""Hierarchy, ics and the similarity of concepts evaluated from the definitions, word by word and pair by pair."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import networkx as nx
import numpy as np
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from semrank.transforms.similarity.hierarchy import WeightedHierarchy, build_hierarchy
from tests.support.strategies import choices


@dataclass(frozen=True)
class Words:
    """The arguments of a hierarchy, as plain values."""

    clicks: list[int]
    in_base: list[bool]
    in_current: list[bool]
    part_of: list[tuple[int, int]] = field(default_factory=list)
    isa: list[tuple[int, int]] = field(default_factory=list)
    alpha: float = 0.2
    top_word: int | None = None
    top_probability: str | float = "max"
    smoothing: float = 0.0

    def build(self) -> WeightedHierarchy:
        def sides(pairs: Iterable[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
            array = np.array(list(pairs), dtype=np.int32).reshape(-1, 2)
            return array[:, 0], array[:, 1]

        return build_hierarchy(
            np.array(self.clicks, dtype=np.int64),
            np.array(self.in_base, dtype=np.bool_),
            np.array(self.in_current, dtype=np.bool_),
            sides(self.part_of),
            sides(self.isa),
            alpha=self.alpha,
            top_word=self.top_word,
            top_probability=self.top_probability,
            smoothing=self.smoothing,
        )


class NaiveHierarchy:
    """Components, longest paths and common ancestors by a graph library, probabilities by hand."""

    def __init__(self, words: Words) -> None:
        numbers = range(len(words.clicks))
        used = [n for n in numbers if words.in_base[n] or words.in_current[n]]
        counts = {n: words.clicks[n] + words.smoothing if n in used else 0.0 for n in numbers}
        total = sum(counts.values())
        self.p = {n: counts[n] / total if total else 0.0 for n in numbers}
        self.related = {frozenset(pair) for pair in words.isa}
        query = words.top_word
        is_top = query is not None and not any(query in pair and len(pair) == 2 for pair in self.related)
        self.top = query if is_top else None
        self.graph = nx.DiGraph()
        self.graph.add_nodes_from(numbers)
        for whole, part in words.part_of:
            if words.in_base[whole] and words.in_current[part] and whole != part and part != self.top:
                self.graph.add_edge(whole, part)
        positive = [p for p in self.p.values() if p > 0]
        if isinstance(words.top_probability, float):
            self.p_top = words.top_probability
        else:
            self.p_top = (max if words.top_probability == "max" else min)(positive, default=1.0)
        if self.top is not None and self.p[self.top] > 0:
            self.p_top = self.p[self.top]
        self.above = {n: nx.ancestors(self.graph, n) | {n} for n in numbers}
        self._ics: dict[tuple[int, int], float] = {}
        self._optima: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}
        self.layer = self._layers()
        self.w = {n: sum(1 / (k + words.alpha) for k in range(1, self.layer[n] + 1)) for n in numbers}

    def _layers(self) -> dict[int, int]:
        condensed = nx.condensation(self.graph)
        rooted = nx.DiGraph(condensed)
        start = "Top" if self.top is None else condensed.graph["mapping"][self.top]
        for component in condensed:
            if component != start and condensed.in_degree(component) == 0:
                rooted.add_edge(start, component)
        longest = {start: 0}
        for node in nx.topological_sort(rooted):
            if node != start:
                longest[node] = 1 + max(longest[parent] for parent in rooted.predecessors(node))
        return {n: longest[condensed.graph["mapping"][n]] for n in self.graph}

    def common_information(self, a: int, b: int) -> float | None:
        """-log p(s), or None for Top."""
        known = [-math.log(self.p[s]) for s in self.above[a] & self.above[b] if s != self.top and self.p[s] > 0]
        return max(known, default=None)

    def ics(self, a: int, b: int) -> float:
        if (a, b) not in self._ics:
            self._ics[a, b] = self._ics_of(a, b)
        return self._ics[a, b]

    def _ics_of(self, a: int, b: int) -> float:
        if a == b or frozenset((a, b)) in self.related:
            return 1.0
        if not self.p[a] or not self.p[b]:
            return 0.0
        information = self.common_information(a, b)
        above = 2 * (-math.log(self.p_top) if information is None else information)
        below = -math.log(self.p[a]) * self.w[a] - math.log(self.p[b]) * self.w[b]
        if below == 0:
            return 0.0 if above == 0 else 1.0
        return min(1.0, max(0.0, above / below))

    def intension(self, first: Collection[int], second: Collection[int], norm: str) -> float:
        if not first or not second:
            return 0.0
        words = tuple(first), tuple(second)
        if words not in self._optima:
            table = np.array([[self.ics(a, b) for b in second] for a in first])
            self._optima[words] = float(table[linear_sum_assignment(table, maximize=True)].sum())
        return self._optima[words] / (min if norm == "min" else max)(len(first), len(second))


def naive_similarity(extension: float, intension: float, weight: float | None) -> float:
    share = weight
    if share is None:
        share = extension / (extension + intension) if extension + intension else 0.0
    return share * extension + (1 - share) * intension


@st.composite
def word_sets(draw: st.DrawFn, count: int = 8) -> Words:
    """Words with circles, words without clicks, outside a context, with and without a query of one word."""
    pairs = [(a, b) for a in range(count) for b in range(count)]
    flags = choices([False, True, True, True, True], count, count)
    return Words(
        clicks=draw(choices([0, 1, 1, 2, 5, 40, 300], count, count)),
        in_base=draw(flags),
        in_current=draw(flags),
        part_of=draw(choices(pairs, 0, 14)),
        isa=draw(choices(pairs, 0, 3)),
        alpha=draw(st.sampled_from([0.05, 0.2, 0.5])),
        top_word=draw(st.none() | st.integers(0, count - 1)),
        top_probability=draw(st.sampled_from(["max", "min"]) | st.sampled_from([0.3, 1.0])),
        smoothing=draw(st.sampled_from([0.0, 0.0, 0.5])),
    )
