"""Similarities of all pairs of words."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from semrank.transforms.columnar.arrays import Float64s
from semrank.transforms.similarity.hierarchy import IcsRows, WeightedHierarchy, clicked_first


def ics_block(
    hierarchy: WeightedHierarchy, rows: npt.NDArray[np.integer], columns: npt.NDArray[np.integer]
) -> Float64s:
    """What `IcsRows` writes for two lists of words in any order, float64[len(rows), len(columns)]."""
    order = clicked_first(hierarchy, columns)
    block, ordered = np.empty((len(rows), len(columns))), np.empty((len(rows), len(columns)))
    IcsRows.of(hierarchy, rows).write(columns[order], ordered)
    block[:, order] = ordered
    return block
