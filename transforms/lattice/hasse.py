"""The order diagram of some concepts: which one covers which."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import networkx as nx


def covers(intents: Sequence[Sequence[str]]) -> list[tuple[int, int]]:
    """Pairs (upper, lower) of concepts with no other of the given ones between them, ascending.

    A concept is below another if its intent holds the other's (Ganter and Wille, Formal Concept Analysis, 1.1). Among a
    selection of a lattice's concepts the pairs are the Hasse diagram of the order that it has on them.

    Args:
        intents: distinct sets of attributes, some dozens.
    """
    sets = [frozenset(intent) for intent in intents]
    order = nx.DiGraph(
        (upper, lower) for upper, lower in permutations(range(len(sets)), 2) if sets[upper] < sets[lower]
    )
    return sorted(nx.transitive_reduction(order).edges)


def levels(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Level of each node in a drawing: the length of the longest path down to it from a node without an upper one.

    Raises:
        networkx.NetworkXUnfeasible: the edges have a cycle.
    """
    graph = nx.DiGraph(edges)
    graph.add_nodes_from(range(count))
    level = {node: depth for depth, nodes in enumerate(nx.topological_generations(graph)) for node in nodes}
    return [level[node] for node in range(count)]
