"""Stable 64-bit ids of strings, and the check that no two strings share one.

The id is the low half of the 128-bit XXH3 hash of the UTF-8 bytes, seen as a signed integer; it does not depend on
machine, process or version. The high half is kept as a check value wherever ids from different places meet: two
strings with the same id but different check values are a collision, which ends the run instead of mixing two URLs.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

DIGEST_SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("check", pa.int64(), nullable=False)])


class IdCollisionError(RuntimeError):
    """Two different strings have the same 64-bit id."""


def text_digests(strings: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Ids and check values of strings.

    Args:
        strings: string, large_string or dictionary-encoded string array of length n without nulls.

    Returns:
        int64[n, 2]: column 0 the id, column 1 the check value.

    Raises:
        ValueError: there is a null among the strings.
    """
    if strings.null_count:
        raise ValueError(f"ids are for strings; found {strings.null_count} nulls among {len(strings)} values")
    if isinstance(strings, pa.ChunkedArray):
        strings = strings.combine_chunks()
        if isinstance(strings, pa.ChunkedArray):
            strings = pa.concat_arrays(strings.chunks)
    encoded = strings if pa.types.is_dictionary(strings.type) else strings.dictionary_encode()
    digest = xxhash.xxh3_128_digest
    values = b"".join(map(digest, pc.cast(encoded.dictionary, pa.large_binary()).to_pylist()))
    # A canonical XXH3 digest is big-endian: the high half stands first.
    halves = np.frombuffer(values, dtype=">i8").astype(np.int64).reshape(-1, 2)[:, ::-1]
    return np.ascontiguousarray(halves[encoded.indices.to_numpy(zero_copy_only=False)])


def text_ids(strings: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """The ids alone, int64[n]; see `text_digests`."""
    return np.ascontiguousarray(text_digests(strings)[:, 0])


def combine_ids(*parts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """One id for each row of several id columns (splitmix64 finaliser over a running sum), int64[n]."""
    total = np.zeros(parts[0].shape, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for part in parts:
            total = mix_bits(total + part.view(np.uint64) + np.uint64(0x9E3779B97F4A7C15))
    return total.view(np.int64)


def mix_bits(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection of uint64 whose bits look independent."""
    mixed = values.copy()
    with np.errstate(over="ignore"):
        mixed ^= mixed >> np.uint64(30)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(27)
        mixed *= np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed


def set_id(ids: npt.NDArray[np.int64], indptr: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """One non-negative id for each set of ids, whatever the order of its members.

    Args:
        ids: members of all sets one after another, int64[indptr[-1]].
        indptr: where each set begins and ends, int64[n + 1].

    Returns:
        int64[n], in [0, 2^63).
    """
    with np.errstate(over="ignore"):
        mixed = mix_bits(ids.view(np.uint64) + np.uint64(0x9E3779B97F4A7C15))
        sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(mixed, dtype=np.uint64)])
        totals = sums[indptr[1:]] - sums[indptr[:-1]]
        spread = mix_bits(totals + mix_bits(np.diff(indptr).astype(np.uint64)))
    return (spread >> np.uint64(1)).astype(np.int64)


def digest_table(digests: npt.NDArray[np.int64]) -> pa.Table:
    """The distinct rows of an int64[n, 2] digest array as a table of `DIGEST_SCHEMA`."""
    ids, checks = np.ascontiguousarray(digests[:, 0]), np.ascontiguousarray(digests[:, 1])
    order = np.argsort(ids)
    if (ids[order[1:]] == ids[order[:-1]]).any():
        order = np.lexsort((checks, ids))
        same = (ids[order[1:]] == ids[order[:-1]]) & (checks[order[1:]] == checks[order[:-1]])
        order = np.delete(order, np.flatnonzero(same) + 1)
    return pa.table([pa.array(ids[order]), pa.array(checks[order])], schema=DIGEST_SCHEMA)


def check_collisions(tables: Iterable[pa.Table]) -> int:
    """Counts the distinct ids of tables of `DIGEST_SCHEMA`.

    Raises:
        IdCollisionError: one id stands with two check values.
    """
    merged = (
        pa.concat_tables([DIGEST_SCHEMA.empty_table(), *(table.cast(DIGEST_SCHEMA) for table in tables)])
        .group_by(["id", "check"])
        .aggregate([])
    )
    counts = merged.group_by("id").aggregate([("check", "count")])
    shared = counts.filter(pc.greater(counts["check_count"], 1))
    if shared.num_rows:
        raise IdCollisionError(
            f"{shared.num_rows} of {counts.num_rows} 64-bit ids stand for more than one string, "
            f"expected none; the first is {shared['id'][0].as_py()}"
        )
    return int(counts.num_rows)
