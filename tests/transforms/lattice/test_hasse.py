"""Order diagrams against networkx."""

from __future__ import annotations

import itertools

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.transforms.lattice.hasse import covers, levels

INTENTS = st.lists(st.frozensets(st.sampled_from("abcdef")), unique=True, max_size=20)


@given(INTENTS)
def test_covers_are_the_transitive_reduction_of_the_order(intents: list[frozenset[str]]) -> None:
    order = nx.DiGraph()
    order.add_nodes_from(range(len(intents)))
    order.add_edges_from(
        (upper, lower)
        for upper, lower in itertools.permutations(range(len(intents)), 2)
        if intents[upper] < intents[lower]
    )
    found = covers([sorted(intent) for intent in intents])
    assert found == sorted(nx.transitive_reduction(order).edges)
    level = levels(len(intents), found)
    for node in order:
        longest = max((level[upper] + 1 for upper in order.predecessors(node)), default=0)
        assert level[node] == longest


def test_a_circle_has_no_levels() -> None:
    with pytest.raises(ValueError, match="the edges form a circle"):
        levels(2, [(0, 1), (1, 0)])
