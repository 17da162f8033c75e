"""Similarities of words: one pair by the definition, all pairs as a block."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from semrank.transforms.columnar.arrays import Float64s
from semrank.transforms.similarity.hierarchy import (
    ICS_UNITS,
    TOP,
    IcsRows,
    WeightedHierarchy,
    clicked_first,
    common_ancestor,
)


def ics_block(
    hierarchy: WeightedHierarchy, rows: npt.NDArray[np.integer], columns: npt.NDArray[np.integer]
) -> Float64s:
    """What `IcsRows` writes for two lists of words in any order, float64[len(rows), len(columns)]."""
    order = clicked_first(hierarchy, columns)
    block, ordered = np.empty((len(rows), len(columns))), np.empty((len(rows), len(columns)))
    IcsRows.of(hierarchy, rows).write(columns[order], ordered)
    block[:, order] = ordered
    return block


def ics(hierarchy: WeightedHierarchy, a: int, b: int) -> float:
    """Information content similarity of two words (P13 Def. 15), in [0, 1]; the readable form of `IcsRows`."""
    relatives = hierarchy.relatives
    if (relatives.indices[relatives.indptr[a] : relatives.indptr[a + 1]] == b).any():
        return 1.0
    if hierarchy.probability[a] == 0 or hierarchy.probability[b] == 0:
        return 0.0
    s = common_ancestor(hierarchy, a, b)
    shared = 2 * (hierarchy.top_information if s == TOP else hierarchy.information[s])
    own = hierarchy.information[a] * hierarchy.weight[a] + hierarchy.information[b] * hierarchy.weight[b]
    if own == 0:
        return 0.0 if shared == 0 else 1.0
    return float(np.rint(min(1.0, shared / own) * ICS_UNITS) / ICS_UNITS)
