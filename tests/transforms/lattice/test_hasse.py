"""Order diagrams against their definitions."""

from __future__ import annotations

import itertools

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.transforms.lattice.hasse import covers, levels

INTENTS = st.lists(st.frozensets(st.sampled_from("abcdef")), unique=True, max_size=20)


@given(INTENTS)
def test_covers_have_nothing_between_them(intents: list[frozenset[str]]) -> None:
    found = covers([sorted(intent) for intent in intents])
    assert found == [
        (upper, lower)
        for upper, lower in itertools.permutations(range(len(intents)), 2)
        if intents[upper] < intents[lower] and not any(intents[upper] < between < intents[lower] for between in intents)
    ]
    level = levels(len(intents), found)
    for node in range(len(intents)):
        assert level[node] == max((level[upper] + 1 for upper, lower in found if lower == node), default=0)


def test_a_cycle_has_no_levels() -> None:
    with pytest.raises(nx.NetworkXUnfeasible):
        levels(2, [(0, 1), (1, 0)])
