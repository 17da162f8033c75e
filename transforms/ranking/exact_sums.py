"""Sums that come out the same however their terms are cut into parts and in whatever order these are added.

Floats are rounded to multiples of a power of two and added as integers; where squares are added, which need more bits
than an integer has, the sums are kept in limbs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from semrank.transforms.columnar.arrays import Float64s, Int64s, int64s, sum_by_key

Entries: TypeAlias = tuple[Int64s, Int64s]
"""What a part adds to a vector: positions, which may repeat, and summands; parts are many, and vectors long."""

SUM_SCHEMA = pa.schema([pa.field("slot", pa.int64()), pa.field("value", pa.int64())])
"""One entry of the vectors that a part adds to: their entries are numbered one vector after the other."""

LIMB_BITS = 31
"""Bits of a limb: 2^32 parts can be added before one overflows."""

LIMBS = 4
"""Limbs of a sum of products: 2 x 46 bits of a product and 31 bits for the number of terms, with its sign."""

PRODUCT_BITS = 36
"""Binary places of numbers whose products are added: 1.5e-11."""

_HALF_BITS = 23
_ROWS = 4096
"""Rows whose products are added as integers: 2 x 23 bits of a product, 2^12 terms."""

LARGEST = float(1 << (2 * _HALF_BITS - PRODUCT_BITS))
"""Numbers whose products are added must be smaller, 1024."""


def fixed(values: Float64s, bits: int) -> Int64s:
    """Numbers as multiples of 2^-bits, int64[n]."""
    return np.rint(np.ldexp(values, bits)).astype(np.int64)


def sum_bits(terms: int) -> int:
    """Binary places with which that many terms of size up to 1 can be added: at most 52, a float's precision."""
    return min(52, 61 - max(terms, 1).bit_length())


def entries(vector: Int64s) -> Entries:
    """All entries of a short vector."""
    return np.arange(len(vector), dtype=np.int64), vector


def sum_rows(sums: Mapping[str, Entries], sizes: Mapping[str, int]) -> pa.Table:
    """What a part adds to vectors, a table of `SUM_SCHEMA`, zeros left out.

    Args:
        sums: entries of some of the vectors by name.
        sizes: length of every vector by name; their order numbers the slots.
    """
    slots, values, begin = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)], 0
    for name, size in sizes.items():
        if name in sums:
            places, summands = sums[name]
            kept = summands != 0
            slots.append(begin + places[kept])
            values.append(summands[kept])
        begin += size
    return pa.table([np.concatenate(slots), np.concatenate(values)], schema=SUM_SCHEMA)


def added_sums(rows: pa.Table) -> pa.Table:
    """Sums of several parts added up, a table of `SUM_SCHEMA`."""
    return sum_by_key(rows, "value")


def sum_vectors(tables: Iterable[pa.Table], sizes: Mapping[str, int]) -> dict[str, Int64s]:
    """The vectors of `sum_rows` of all parts, each whole; one table after another is held."""
    values = np.zeros(sum(sizes.values()), dtype=np.int64)
    for rows in tables:
        np.add.at(values, int64s(rows["slot"]), int64s(rows["value"]))
    ends = np.cumsum(list(sizes.values()))[:-1]
    return dict(zip(sizes, np.split(values, ends), strict=True))


def product_limbs(values: Float64s) -> Int64s:
    """Sums over rows of 1, the values and all their products, as limbs that are added limb by limb.

    Args:
        values: float64[n, k], each of them smaller than `LARGEST`.

    Returns:
        int64[(k + 1)^2 * LIMBS]: the limbs of a symmetric matrix whose first row holds n and the sums of the values.

    Raises:
        ValueError: a value is too large.
    """
    if values.size and np.abs(values).max() >= LARGEST:
        raise ValueError(f"found the value {np.abs(values).max()}, expected values below {LARGEST:.0f}")
    numbers = np.ones((len(values), values.shape[1] + 1), dtype=np.int64)
    numbers[:, 1:] = fixed(values, PRODUCT_BITS)
    high, low = numbers >> _HALF_BITS, numbers & ((1 << _HALF_BITS) - 1)
    total = np.zeros((numbers.shape[1], numbers.shape[1]), dtype=object)
    for start in range(0, len(values), _ROWS):
        upper, lower = high[start : start + _ROWS], low[start : start + _ROWS]
        mixed = upper.T @ lower
        total += (upper.T @ upper).astype(object) << (2 * _HALF_BITS)
        total += (mixed + mixed.T).astype(object) << _HALF_BITS
        total += (lower.T @ lower).astype(object)
    mask = (1 << LIMB_BITS) - 1
    limbs = [(total >> (LIMB_BITS * limb)) & mask for limb in range(LIMBS - 1)]
    limbs.append(total >> (LIMB_BITS * (LIMBS - 1)))
    return np.stack(limbs, axis=-1).astype(np.int64).ravel()


class Moments:
    """Number, means and covariances of rows, exact except for the rounding of the values.

    Args:
        limbs: sums of `product_limbs`.
        values: k, the number of values in a row.
    """

    def __init__(self, limbs: Int64s, values: int) -> None:
        parts = limbs.reshape(values + 1, values + 1, LIMBS).astype(object)
        total = np.zeros(parts.shape[:2], dtype=object)
        for limb in range(LIMBS):
            total += parts[..., limb] << (LIMB_BITS * limb)
        self.count = int(total[0, 0])
        several = max(self.count, 1)
        self.means: Float64s = np.ldexp((total[0, 1:] / several).astype(np.float64), -PRODUCT_BITS)
        centred = (total[1:, 1:] * self.count - np.outer(total[0, 1:], total[0, 1:])) / several**2
        self.covariances: Float64s = np.ldexp(centred.astype(np.float64), -2 * PRODUCT_BITS)
