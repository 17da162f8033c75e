"""Formal contexts and their bundles."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st

from semrank.transforms.lattice.bundles import Bundle
from semrank.transforms.lattice.context import FormalContext


@st.composite
def partitions(draw: st.DrawFn, ranks: int, deepest: int = 3) -> list[Bundle]:
    """Any bundles that together hold all concepts: ranges cut anywhere, single ranks split by longer prefixes."""
    finished: list[Bundle] = []
    open_prefixes: list[tuple[int, ...]] = [()]
    while open_prefixes:
        prefix = open_prefixes.pop()
        floor = prefix[-1] + 1 if prefix else 0
        cuts = sorted({floor, ranks, *draw(st.lists(st.integers(floor, ranks), max_size=4))})
        if len(cuts) == 1:
            finished.append(Bundle(prefix, floor, floor))
        for start, stop in itertools.pairwise(cuts):
            if stop == start + 1 and len(prefix) < deepest and draw(st.booleans()):
                open_prefixes.append((*prefix, start))
                if prefix and start == floor:
                    finished.append(Bundle(prefix, start, start))
            else:
                finished.append(Bundle(prefix, start, stop))
    return finished


def rows_of(context: FormalContext) -> list[list[int]]:
    return [context.row(number).tolist() for number in range(context.object_count)]
