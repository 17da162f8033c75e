"""Places of the nodes of a layered drawing: few crossings, short lines, no two nodes in one place.

The method of Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system structures" (1981):
lines that skip levels get a bend on each, levels are sorted by the mean place of their neighbours until crossings do
not decrease, and then each level moves as near to its neighbours as the distances between its own nodes allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.optimize import isotonic_regression

SWEEPS = 12
"""How often the levels are sorted, down and up; drawings of some 50 nodes stop changing before."""

BEND_WIDTH = 0.2
"""Room of a bend beside others, in that of a node."""

MOST_ABREAST = 11
"""Nodes that stand side by side; more of a level take turns in steps below each other, closer together."""


@dataclass(frozen=True)
class Placed:
    """A drawing, in units of a node's width across and of steps downwards.

    Attributes:
        places: (across, down) of each node; the smallest across is 0.
        bends: the places that each line passes on its way, from its upper to its lower end.
    """

    places: list[tuple[float, float]]
    bends: list[list[tuple[float, float]]]


def place_nodes(levels: Sequence[int], edges: Sequence[tuple[int, int]]) -> Placed:
    """Places of nodes that stand on given levels.

    Args:
        levels: level of each node, 0 is the highest; levels without nodes take no room.
        edges: (upper, lower) nodes; the lower one stands on a lower level.

    Raises:
        ValueError: an edge does not lead to a lower level.
    """
    known = {level: place for place, level in enumerate(sorted(set(levels)))}
    level_of = [known[level] for level in levels]
    nodes = len(level_of)
    chains: list[list[int]] = []
    near: list[list[int]] = [[] for _ in level_of]
    for upper, lower in edges:
        if level_of[upper] >= level_of[lower]:
            raise ValueError(f"found an edge from level {level_of[upper]} to {level_of[lower]}, expected a lower level")
        chain = [upper]
        for level in range(level_of[upper] + 1, level_of[lower]):
            chain.append(len(level_of))
            level_of.append(level)
            near.append([])
        chain.append(lower)
        for first, second in pairwise(chain):
            near[first].append(second)
            near[second].append(first)
        chains.append(chain)
    rows: list[list[int]] = [[] for _ in known]
    for node, level in enumerate(level_of):
        rows[level].append(node)
    rows = _sorted_rows(rows, near, level_of)
    steps = [-(-sum(node < nodes for node in row) // MOST_ABREAST) or 1 for row in rows]
    across = _moved_rows(rows, near, nodes, steps)
    down = _depths(rows, nodes, steps)
    return Placed(
        [(across[node], down[node]) for node in range(nodes)],
        [[(across[node], down[node]) for node in chain[1:-1]] for chain in chains],
    )


def crossings(rows: Sequence[Sequence[int]], near: Sequence[Sequence[int]], level_of: Sequence[int]) -> int:
    """How many pairs of lines cross between neighbouring levels, if levels stand in the order of `rows`."""
    count = 0
    for row, below in pairwise(rows):
        order = {node: place for place, node in enumerate(below)}
        passed: list[int] = []
        for node in row:
            ends = sorted(order[other] for other in near[node] if level_of[other] == level_of[node] + 1)
            count += sum(before > end for end in ends for before in passed)
            passed += ends
    return count


def _sorted_rows(rows: list[list[int]], near: list[list[int]], level_of: list[int]) -> list[list[int]]:
    best, fewest = rows, crossings(rows, near, level_of)
    for sweep in range(SWEEPS):
        rows = [list(row) for row in rows]
        step = 1 if sweep % 2 == 0 else -1
        order = range(1, len(rows)) if step == 1 else range(len(rows) - 2, -1, -1)
        for level in order:
            fixed = {node: (place + 0.5) / len(rows[level - step]) for place, node in enumerate(rows[level - step])}
            own = {node: (place + 0.5) / len(rows[level]) for place, node in enumerate(rows[level])}

            def centre(node: int, fixed: dict[int, float] = fixed, own: dict[int, float] = own) -> float:
                places = [fixed[other] for other in near[node] if other in fixed]
                return _mean(places or [own[node]])

            rows[level].sort(key=centre)
        found = crossings(rows, near, level_of)
        if found < fewest:
            best, fewest = rows, found
    return best


def _moved_rows(rows: list[list[int]], near: list[list[int]], nodes: int, steps: list[int]) -> dict[int, float]:
    widths = [
        [(1 if node < nodes else BEND_WIDTH) / step for node in row] for row, step in zip(rows, steps, strict=True)
    ]
    across: dict[int, float] = {}
    for row, own in zip(rows, widths, strict=True):
        begin = -sum(own) / 2
        for node, width in zip(row, own, strict=True):
            across[node] = begin + width / 2
            begin += width
    for _ in range(SWEEPS):
        for row, own in zip(rows, widths, strict=True):
            wanted = [_mean([across[other] for other in near[node]] or [across[node]]) for node in row]
            across.update(zip(row, _spread(wanted, own), strict=True))
    left = min(across.values(), default=0.0)
    return {node: place - left for node, place in across.items()}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _spread(wanted: list[float], widths: list[float]) -> list[float]:
    """The places nearest to the wanted ones, by squares, that keep the order and leave each node its width.

    Less the widths before, places only have to rise: isotonic regression.
    """
    if not wanted:
        return []
    before = np.concatenate([[0.0], np.cumsum((np.array(widths[1:]) + widths[:-1]) / 2)])
    places: list[float] = (isotonic_regression(wanted - before).x + before).tolist()
    return places


def _depths(rows: list[list[int]], nodes: int, steps: list[int]) -> dict[int, float]:
    """How far down each node stands: levels are one apart, the steps of a level half as much."""
    down: dict[int, float] = {}
    top = 0.0
    for row, step in zip(rows, steps, strict=True):
        place = 0
        for node in row:
            down[node] = top + (place % step) / 2 if node < nodes else top
            place += node < nodes
        top += 1 + (step - 1) / 2
    return down
