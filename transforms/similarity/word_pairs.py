"""Information content similarities of single pairs of words (P13 Def. 15)."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from semrank.transforms.columnar.arrays import Bools, Float64s, Int32s, Int64s, pointers, ragged
from semrank.transforms.similarity.hierarchy import ICS_UNITS, TILE_CELLS, WeightedHierarchy, runs, word_shares

ANCESTOR_SLAB = 1 << 12
"""Ancestors whose bits are made together: 512 bytes for a component."""

ANCESTOR_BYTES = 256 << 20
"""Bytes of bit sets that are kept."""


class _Slab(NamedTuple):
    """Which ancestors of a slab, itself included, each component has.

    Attributes:
        sets: the distinct bit sets, uint64[s, words]: most components have what some hubs have, or nothing, and
            themselves.
        some: whether each has any bit, bool[s].
        numbers: which of them is that of each row, int32[rows].
    """

    sets: npt.NDArray[np.uint64]
    some: Bools
    numbers: Int32s

    @classmethod
    def of(cls, bits: npt.NDArray[np.uint64]) -> _Slab:
        """The slab of the bit sets of all rows, uint64[rows, words]."""
        whole = bits.view(np.dtype((np.void, bits.shape[1] * bits.itemsize))).ravel()
        distinct, numbers = np.unique(whole, return_inverse=True)
        sets = distinct.view(np.uint64).reshape(len(distinct), bits.shape[1])
        return cls(sets, np.asarray(sets.any(axis=1), dtype=np.bool_), numbers.astype(np.int32))

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in self)


@dataclass(frozen=True, eq=False)
class WordPairs:
    """Information content similarities of single pairs of words, for where few of all pairs are needed.

    The common ancestor with the largest information content is the first bit that two bit sets of ancestors share, when
    ancestors are in descending order of it. Sets are made a slab of ancestors at a time; most pairs need the first.

    Attributes:
        hierarchy: the hierarchy of n words.
        relatives: row n + column of each entry of `hierarchy.relatives`, ascending, int64[].
        shares: see `word_shares`, float64[n].
        internal: components with children and clicks, by descending information content, int64[m].
        rank: position of each component there, or m, int64[c].
        places: row in the bit sets of each component that has ancestors or is one, else -1, int64[c].
        slabs: bit sets made so far, by number of the slab.
    """

    hierarchy: WeightedHierarchy
    relatives: Int64s
    shares: Float64s
    internal: Int64s
    rank: Int64s
    places: Int64s
    slabs: dict[int, _Slab] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, hierarchy: WeightedHierarchy) -> WordPairs:
        """The pairs of a hierarchy's words."""
        count, information = len(hierarchy.component_layer), hierarchy.component_information
        relatives = hierarchy.relatives
        keys = np.repeat(np.arange(len(hierarchy), dtype=np.int64) * len(hierarchy), np.diff(relatives.indptr))
        keys += relatives.indices
        has_children = np.zeros(count, dtype=np.bool_)
        has_children[hierarchy.parents] = True
        internal = np.flatnonzero(has_children & (information > -np.inf))
        internal = internal[np.argsort(-information[internal], kind="stable")]
        rank = np.full(count, len(internal), dtype=np.int64)
        rank[internal] = np.arange(len(internal))
        below = has_children | (np.diff(hierarchy.parent_pointers) > 0)
        places = np.where(below, np.cumsum(below) - 1, -1)
        return cls(hierarchy, keys, word_shares(hierarchy, np.arange(len(hierarchy))), internal, rank, places)

    def similarities(self, first: Int64s, second: Int64s) -> Float64s:
        """Similarities of pairs of words (P13 Def. 15).

        Args:
            first: word numbers below n, int64[p].
            second: likewise.

        Returns:
            float64[p], multiples of 2^-40 in [0, 1]; the same numbers as those of `IcsRows`.
        """
        hierarchy = self.hierarchy
        values = np.zeros(len(first))
        keys = first * len(hierarchy) + second
        found = np.searchsorted(self.relatives, keys)
        related = self.relatives[np.minimum(found, len(self.relatives) - 1)] == keys
        values[related] = 1.0
        clicked = np.flatnonzero(~related & (hierarchy.probability[first] > 0) & (hierarchy.probability[second] > 0))
        first, second = first[clicked], second[clicked]
        shared = self._shared_information(hierarchy.component[first], hierarchy.component[second])
        shared[shared < 0] = hierarchy.top_information
        own = self.shares[first] + self.shares[second]
        undefined = own == 0
        shared[undefined], own[undefined] = shared[undefined] > 0, 1.0
        # The operations of `_write_ics` one by one, so that every similarity is the same number.
        shared /= own
        shared *= 2 * ICS_UNITS
        values[clicked] = np.rint(np.minimum(shared, ICS_UNITS)) * (1 / ICS_UNITS)
        return values

    def _shared_information(self, first: Int32s, second: Int32s) -> Float64s:
        """The largest information content of a common ancestor of pairs of components, -inf without one, float64[p]."""
        information = self.hierarchy.component_information
        result = np.where(first == second, information[first], -np.inf)
        rows = self.places[first], self.places[second]
        undecided = np.flatnonzero((rows[0] >= 0) & (rows[1] >= 0))
        for slab in range(-(-len(self.internal) // ANCESTOR_SLAB)):
            if not len(undecided):
                break
            sets, some, numbers = self._ancestors(slab)
            first_set, second_set = numbers[rows[0][undecided]], numbers[rows[1][undecided]]
            # Most components have few ancestors, and none in most slabs.
            looked_at = some[first_set] & some[second_set]
            tried, first_set, second_set = undecided[looked_at], first_set[looked_at], second_set[looked_at]
            bit = np.zeros(len(tried), dtype=np.int64)
            step = max(1, TILE_CELLS // sets.shape[1])
            for start in range(0, len(tried), step):
                part = slice(start, start + step)
                bit[part] = _first_bit(sets[first_set[part]] & sets[second_set[part]])
            decided = bit >= 0
            ancestor = self.internal[slab * ANCESTOR_SLAB + bit[decided]]
            result[tried[decided]] = np.maximum(result[tried[decided]], information[ancestor])
            undecided = np.concatenate([undecided[~looked_at], tried[~decided]])
        return result

    def _ancestors(self, slab: int) -> _Slab:
        """The slab of this number, made now or kept."""
        if slab in self.slabs:
            return self.slabs[slab]
        hierarchy, start = self.hierarchy, slab * ANCESTOR_SLAB
        width = min(ANCESTOR_SLAB, len(self.internal) - start)
        rows = int(self.places.max(initial=-1)) + 1
        bits = np.zeros((rows, -(-width // 64)), dtype=np.uint64)
        own = np.arange(width)
        bits[self.places[self.internal[start : start + width]], own // 64] = np.uint64(1) << (own % 64).astype(
            np.uint64
        )
        degrees = np.diff(hierarchy.parent_pointers)
        children = np.flatnonzero(degrees > 0)
        children = children[np.argsort(hierarchy.component_layer[children], kind="stable")]
        for first, last in runs(hierarchy.component_layer[children]):
            layer = children[first:last]
            step = max(1, TILE_CELLS // max(1, bits.shape[1]))
            # Parents of a layer are complete; so many of them together as stay in the cache.
            cuts = np.searchsorted(np.cumsum(degrees[layer]), np.arange(0, int(degrees[layer].sum()), step))
            for begin, end in pairwise([*np.unique(cuts).tolist(), len(layer)]):
                group = layer[begin:end]
                _, edges = ragged(hierarchy.parent_pointers[group], degrees[group])
                starts = pointers(degrees[group])[:-1]
                bits[self.places[group]] |= np.bitwise_or.reduceat(
                    bits[self.places[hierarchy.parents[edges]]], starts, axis=0
                )
        found = _Slab.of(bits)
        if sum(kept.nbytes for kept in self.slabs.values()) + found.nbytes <= ANCESTOR_BYTES:
            self.slabs[slab] = found
        return found


def _first_bit(bits: npt.NDArray[np.uint64]) -> Int64s:
    """Number of the first bit that is set in each row, or -1, int64[rows]."""
    word = (bits != 0).argmax(axis=1)
    found = bits[np.arange(len(bits)), word]
    # A power of two is exact in float64, and so is its logarithm.
    lowest = np.log2((found & (~found + np.uint64(1))).astype(np.float64), where=found > 0, out=np.zeros(len(found)))
    return np.where(found > 0, word * 64 + lowest.astype(np.int64), -1)
