"""A filter of ids that stays small however many ids there are: one hash bit an id.

A set as large as the web can't be broadcast, but a bitmap of fixed size can. An id whose bit is not set is certainly
outside the set; one whose bit is set is almost always inside, and the exact answer is left to the join that follows.
The filter is made in segments, so that no worker ever holds it whole before it is broadcast.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from semrank.transforms.columnar.arrays import Bools, Int64s, int64s, mix_bits

MIN_BITS = 1 << 16
MAX_BITS = 1 << 27
"""16 MiB: with ten million ids one in 14 foreign ids passes, with a hundred million every second one."""

SEGMENT_BITS = 1 << 21
"""Bits of a segment, 256 KiB."""

BITS_PER_ID = 16
"""Bits for each expected id: one in 17 foreign ids passes."""

POSITION_SCHEMA = pa.schema([pa.field("segment", pa.int64()), pa.field("position", pa.int64())])
SEGMENT_SCHEMA = pa.schema([pa.field("segment", pa.int64()), pa.field("bits", pa.binary())])

_SEED = np.uint64(0x6A09E667F3BCC909)
"""Keeps the filter's bits independent of the partition of an id, which uses the same mixing."""


def filter_bits(expected_ids: int) -> int:
    """Size of a filter for so many ids, in bits: a power of two."""
    wanted = min(max(expected_ids * BITS_PER_ID, MIN_BITS), MAX_BITS)
    return 1 << (wanted - 1).bit_length()


def _bit_positions(ids: Int64s, bits: int) -> Int64s:
    return (mix_bits(ids.view(np.uint64) ^ _SEED) & np.uint64(bits - 1)).astype(np.int64)


def filter_positions(ids: Int64s, bits: int) -> pa.Table:
    """The bits of ids, a table of `POSITION_SCHEMA`; exchange it by `segment`."""
    positions = np.unique(_bit_positions(ids, bits))
    return pa.table([positions // SEGMENT_BITS, positions % SEGMENT_BITS], schema=POSITION_SCHEMA)


def filter_segment(partition: int, positions: pa.Table) -> pa.Table:
    """One segment of the filter, a table of `SEGMENT_SCHEMA`.

    Args:
        partition: number of the segment.
        positions: all its positions.
    """
    segment = np.zeros(SEGMENT_BITS, dtype=np.bool_)
    segment[int64s(positions["position"])] = True
    return pa.table([[partition], [np.packbits(segment, bitorder="little").tobytes()]], schema=SEGMENT_SCHEMA)


@dataclass(frozen=True)
class IdFilter:
    """A whole filter.

    Attributes:
        bits: its size in bits.
        packed: the bits, eight to a byte, uint8[max(bits, SEGMENT_BITS) / 8].
    """

    bits: int
    packed: npt.NDArray[np.uint8]

    @staticmethod
    def from_segments(segments: pa.Table | None, bits: int) -> IdFilter:
        """The filter of all segments; one that lets nothing pass where there is none."""
        packed = np.zeros(max(bits, SEGMENT_BITS) // 8, dtype=np.uint8)
        size = SEGMENT_BITS // 8
        if segments is not None:
            for segment, content in zip(segments["segment"].to_pylist(), segments["bits"].to_pylist(), strict=True):
                packed[segment * size : (segment + 1) * size] = np.frombuffer(content, dtype=np.uint8)
        return IdFilter(bits, packed)

    def may_contain(self, ids: Int64s) -> Bools:
        """Whether each id may be in the set, bool[len(ids)]; never False for an id of the set."""
        positions = _bit_positions(ids, self.bits)
        return np.asarray((self.packed[positions >> 3] >> (positions & 7).astype(np.uint8)) & 1, dtype=np.bool_)
