"""A threshold from the harvest: the score above which a given share of the pages was relevant.

A ranker bins the scores of harvested pages whose relevance it knows (`score_bins`), part by part; the threshold follows
from the bins of all parts. A threshold is the lower end of a bin, so that it does not depend on how pages are parted.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from semrank.transforms.columnar.arrays import Bools, Float64s, sum_rows

SCORE_BINS = 1000
"""Steps of the scores, from 0 to 1, that a threshold is calibrated in."""

BIN_SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("bin", "pages", "relevant")])
"""Pages with a score of bin / `SCORE_BINS` to below (bin + 1) / `SCORE_BINS`."""


def score_bins(score: Float64s, relevant: Bools) -> pa.Table:
    """How many pages have about each score, and how many of these are relevant, a table of `BIN_SCHEMA`.

    Args:
        score: scores from 0 to 1, float64[n].
        relevant: whether each page is relevant, bool[n].
    """
    bins = (score * SCORE_BINS).astype(np.int64)
    return pa.table(sum_rows([bins], np.ones_like(bins), relevant.astype(np.int64)), schema=BIN_SCHEMA)


def calibrated_threshold(bins: pa.Table, precision: float) -> tuple[float | None, float | None]:
    """The lowest score above which at least a share of the pages is relevant, and the share above it.

    Args:
        bins: results of `score_bins`.
        precision: the share.

    Returns:
        1, which no score is above, and the largest share above any score if no score has enough; None twice if there
        are no pages.
    """
    pages, relevant = np.zeros(SCORE_BINS + 1, dtype=np.int64), np.zeros(SCORE_BINS + 1, dtype=np.int64)
    for total, name in ((pages, "pages"), (relevant, "relevant")):
        np.add.at(total, bins["bin"].to_numpy(), bins[name].to_numpy())
    above, relevant_above = np.cumsum(pages[::-1])[::-1], np.cumsum(relevant[::-1])[::-1]
    filled = np.flatnonzero(pages)
    if not len(filled):
        return None, None
    shares = relevant_above[filled] / above[filled]
    right = np.flatnonzero(shares >= precision)
    if not len(right):
        return 1.0, float(shares.max())
    return float(filled[right[0]] / SCORE_BINS), float(shares[right[0]])
