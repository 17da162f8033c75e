"""Drawings: levels, distances and crossings against counts made pair by pair."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.transforms.lattice.drawing import MOST_ABREAST, Placed, place_nodes


@st.composite
def layered(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int]]]:
    levels = draw(st.lists(st.integers(0, 4), min_size=1, max_size=30))
    pairs = [(a, b) for a in range(len(levels)) for b in range(len(levels)) if levels[a] < levels[b]]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=25, unique=True)) if pairs else []
    return levels, edges


@given(layered())
def test_levels_stand_below_each_other_and_nodes_beside_each_other(
    drawn: tuple[list[int], list[tuple[int, int]]],
) -> None:
    levels, edges = drawn
    placed = place_nodes(levels, edges)
    for one, other in combinations(range(len(levels)), 2):
        (x1, y1), (x2, y2) = placed.places[one], placed.places[other]
        if levels[one] == levels[other]:
            # Nodes of a step are one apart, those of different steps of a level stand at different heights.
            assert abs(x1 - x2) > 1 - 1e-9 or abs(y1 - y2) > 0.4
        else:
            assert (y1 < y2) == (levels[one] < levels[other])
    assert min(x for x, _ in placed.places) >= -1e-9
    for (upper, lower), bends in zip(edges, placed.bends, strict=True):
        passed = {level for level in levels if levels[upper] < level < levels[lower]}
        assert len(bends) == len(passed)
        downs = [placed.places[upper][1], *(y for _, y in bends), placed.places[lower][1]]
        assert downs == sorted(downs)
    assert place_nodes(levels, edges) == placed


def test_lines_that_need_not_cross_do_not() -> None:
    levels = [0, 0, 0, 1, 1, 1]
    placed = place_nodes(levels, [(0, 5), (1, 4), (2, 3)])
    order = [x for x, _ in placed.places]
    assert sorted(range(3), key=lambda node: order[node]) == [
        5 - n for n in sorted(range(3, 6), key=lambda n: order[n])
    ]
    # Nothing is in the way, so a line that joins two nodes alone goes straight down.
    assert order[0] == pytest.approx(order[5])


def test_wide_levels_take_turns() -> None:
    placed = place_nodes([0] * (2 * MOST_ABREAST), [])
    assert len({y for _, y in placed.places}) == 2
    assert max(x for x, _ in placed.places) < MOST_ABREAST


def test_nothing_is_drawn_of_nothing() -> None:
    assert place_nodes([], []) == Placed([], [])


def test_an_edge_has_to_lead_down() -> None:
    with pytest.raises(ValueError, match="found an edge from level 1 to 1, expected a lower level"):
        place_nodes([0, 1, 1], [(1, 2)])
