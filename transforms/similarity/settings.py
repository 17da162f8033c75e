"""How the similarity of concepts is computed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semrank.transforms.columnar.arrays import Float64s
from semrank.transforms.similarity.hierarchy import TopProbability

SIMILARITY_DECIMALS = 12
"""Similarities that differ by less are equal; float rounding stays far below, the promised exactness of 1e-9 above."""

EDGE_KINDS = 4
"""What an ordered pair of objects can count without repeated clicks: links and c-edges, in both directions."""


@dataclass(frozen=True)
class SimilaritySettings:
    """How the similarity of concepts is computed.

    Attributes:
        weight: w of the extension in [0, 1] (P13), or None for extension / (extension + intension) (P08).
        intension_norm: `min` divides a matching by the smaller intent (P13), `max` by the larger (Formica 2006).
        extension: `links` counts links and c-edges over 4 max(|X1|, |X2|), `objects` shared objects over
            max(|X1|, |X2|) (Formica 2006, P13 Eq. 4).
        alpha: see `hierarchy.build_hierarchy`.
        top_probability: likewise.
        smoothing: likewise.
    """

    weight: float | None = 0.4
    intension_norm: str = "min"
    extension: str = "links"
    alpha: float = 0.2
    top_probability: TopProbability = "max"
    smoothing: float = 0.0

    def similarity(self, extension: Float64s, intension: Float64s) -> Float64s:
        """Sim of extensions and intensions (P13 Def. 18, P08 Def. 10), elementwise, rounded to 12 decimals."""
        if self.weight is not None:
            similarity = self.weight * extension + (1.0 - self.weight) * intension
        else:
            total = extension + intension
            similarity = (extension * extension + intension * intension) / np.where(total > 0, total, 1.0)
        return np.round(similarity, SIMILARITY_DECIMALS)

    def upper_bound(self, extension: Float64s, intension_bound: Float64s) -> Float64s:
        """The largest Sim that an intension of at most the bound allows, rounded like Sim."""
        bound = self.similarity(extension, intension_bound)
        # With the weight of P08 Sim is a convex function of the intension, so it is largest at an end.
        return bound if self.weight is not None else np.maximum(bound, np.round(extension, SIMILARITY_DECIMALS))

    @property
    def largest_unlinked(self) -> float:
        """The largest Sim of a pair whose extension is 0."""
        return float(self.similarity(np.zeros(1), np.ones(1))[0])
