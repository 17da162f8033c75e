"""Reduced Part-Of pairs have the paths of all pairs and the layers of a graph library, however they are cut."""

from __future__ import annotations

from collections.abc import Iterable

import networkx as nx
import numpy as np
from hypothesis import given, settings

from semrank.transforms.similarity.reduction import condense, reduced_pairs
from tests.support.strategies import choices

WORDS = 12
Pair = tuple[int, int]
pair_lists = choices([(a, b) for a in range(WORDS) for b in range(WORDS)], 0, 40)


def sides(pairs: Iterable[Pair]) -> tuple[np.ndarray, np.ndarray]:
    array = np.array(list(pairs), dtype=np.int32).reshape(-1, 2)
    return array[:, 0], array[:, 1]


def reduced(pairs: Iterable[Pair]) -> list[Pair]:
    wholes, parts = reduced_pairs(sides(pairs))
    return list(zip(wholes.tolist(), parts.tolist(), strict=True))


def graph_of(pairs: Iterable[Pair], words: int = WORDS) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(words))
    graph.add_edges_from(pairs)
    return graph


def reachable(graph: nx.DiGraph) -> dict[int, set[int]]:
    return {word: nx.descendants(graph, word) for word in graph}


def layers(graph: nx.DiGraph) -> dict[int, int]:
    """Edges of the longest path from Top in the condensation."""
    condensed = nx.condensation(graph)
    layer: dict[int, int] = {}
    for component in nx.topological_sort(condensed):
        layer[component] = 1 + max((layer[parent] for parent in condensed.predecessors(component)), default=0)
    return {word: layer[condensed.graph["mapping"][word]] for word in graph}


@settings(max_examples=400, deadline=None)
@given(pairs=pair_lists)
def test_components_and_their_edges_are_those_of_a_graph_library(pairs: list[Pair]) -> None:
    component, pointers, parents = condense(sides(pairs), WORDS)
    expected = sorted(map(sorted, nx.strongly_connected_components(graph_of(pairs))))
    assert [np.flatnonzero(component == number).tolist() for number in range(len(pointers) - 1)] == expected
    edges = {(component[whole], component[part]) for whole, part in pairs if component[whole] != component[part]}
    found = [
        (parent, child) for child in range(len(expected)) for parent in parents[pointers[child] : pointers[child + 1]]
    ]
    assert sorted(found) == sorted(edges)


@settings(max_examples=400, deadline=None)
@given(pairs=pair_lists)
def test_paths_and_layers_stay(pairs: list[Pair]) -> None:
    everything, found = graph_of(pairs), graph_of(reduced(pairs))
    assert reachable(found) == reachable(everything)
    assert layers(found) == layers(everything)


@settings(max_examples=200, deadline=None)
@given(pairs=pair_lists, parts=choices(range(4), 40, 40))
def test_parts_can_be_reduced_before_the_whole(pairs: list[Pair], parts: list[int]) -> None:
    cut = [[pair for pair, own in zip(pairs, parts, strict=False) if own == part] for part in range(4)]
    found = reduced(pair for part in cut for pair in reduced(part))
    assert reachable(graph_of(found)) == reachable(graph_of(pairs))


@settings(max_examples=200, deadline=None)
@given(pairs=pair_lists)
def test_few_pairs_are_left(pairs: list[Pair]) -> None:
    graph, found = graph_of(pairs), reduced(pairs)
    condensed = nx.condensation(graph)
    in_circles = sum(len(words) for words in nx.strongly_connected_components(graph) if len(words) > 1)
    assert len(found) == len(set(found)) <= in_circles + condensed.number_of_edges()


def test_a_hub_replaces_the_edges_past_it() -> None:
    """Five words above a circle of ten and five below it: all pairs of them are as many as their product."""
    above, circle, below = range(5), range(5, 15), range(15, 20)
    through = [(whole, part) for whole in (*above, *circle) for part in (*circle, *below) if whole != part]
    past = [(whole, part) for whole in above for part in below]
    found = reduced([*through, *past])
    assert len(found) == len(circle) + len(above) + len(below)
    assert reachable(graph_of(found, 20)) == reachable(graph_of([*through, *past], 20))


def test_no_pairs() -> None:
    assert reduced([]) == []
    assert reduced([(3, 3)]) == []
