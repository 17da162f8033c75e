"""The order diagram of some concepts: which one covers which."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from semrank.transforms.columnar.arrays import Bools


def covers(intents: Sequence[Sequence[str]]) -> list[tuple[int, int]]:
    """Pairs (upper, lower) of concepts with no other of the given ones between them, ascending.

    A concept is below another if its intent holds the other's (Ganter and Wille, Formal Concept Analysis, 1.1). Among a
    selection of a lattice's concepts the pairs are the Hasse diagram of the order that it has on them.

    Args:
        intents: distinct sets of attributes, k of them; takes k^2 bytes and about k^3 steps.
    """
    count = len(intents)
    names = {word: number for number, word in enumerate(sorted({word for intent in intents for word in intent}))}
    rows = np.repeat(np.arange(count), [len(intent) for intent in intents])
    columns = np.array([names[word] for intent in intents for word in intent], dtype=np.int64)
    held = sparse.csr_array((np.ones(len(rows), dtype=np.int64), (rows, columns)), shape=(count, max(1, len(names))))
    sizes = np.array([len(intent) for intent in intents], dtype=np.int64)
    shared = np.asarray((held @ held.T).todense()).reshape(count, count)
    below: Bools = (shared == sizes[:, None]) & (sizes[:, None] < sizes[None, :])
    through = (below.astype(np.float32) @ below.astype(np.float32)) > 0
    upper, lower = np.nonzero(below & ~through)
    return list(zip(upper.tolist(), lower.tolist(), strict=True))


def levels(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Level of each node in a drawing: the length of the longest way down to it from a node without an upper one."""
    level = [0] * count
    for _ in range(count + 1):
        changed = False
        for upper, lower in edges:
            if level[lower] < level[upper] + 1:
                level[lower] = level[upper] + 1
                changed = True
        if not changed:
            return level
    raise ValueError("the edges form a circle, expected an order")
