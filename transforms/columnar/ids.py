"""Stable 64-bit ids of strings, and the check that no two strings share one.

The id is the first half of the 128-bit BLAKE2b hash (RFC 7693) of the UTF-8 bytes, a big-endian signed integer; it does
not depend on machine, process or version. The hash is cryptographic: a string with a given id can't be constructed, but
two strings with some id in common take about 2^32 hashes to find, so a page may link to such pairs. The second half of
the hash is kept as a check value wherever ids from different places meet: two strings with the same id but different
check values are a collision. The one that sorts first is used, and the others are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from semrank.transforms.columnar.arrays import Int64s, mix_bits

HASHED_AT_ONCE = 1 << 16
"""Strings that are objects of Python at the same time, each of which takes some 100 bytes."""

DIGEST_SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("check", pa.int64(), nullable=False)])


class IdCollisionError(RuntimeError):
    """Several strings have the same 64-bit id.

    The message lists the ids, which is all that a runner passes on; `ids_of_message` reads them.
    """

    def __init__(self, ids: Iterable[int]) -> None:
        super().__init__(f"several strings have the id {', '.join(map(str, ids))}")

    @staticmethod
    def ids_of_message(message: str) -> Int64s:
        """The ids that an error's text lists, int64[n]; none where it is another error's."""
        found = re.search(r"several strings have the id (-?\d+(?:, -?\d+)*)", message)
        return np.array([int(text) for text in found[1].split(", ")] if found else [], dtype=np.int64)


def text_digests(strings: pa.Array | pa.ChunkedArray, *, distinct: bool = False) -> Int64s:
    """Ids and check values of strings.

    Args:
        strings: string, large_string or dictionary-encoded string array of length n without nulls.
        distinct: whether hardly any string is repeated: then all are hashed, without a search for repetitions, which
            takes half as long.

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
    if pa.types.is_dictionary(strings.type):
        encoded = strings
    elif distinct:
        return _digests(strings)
    else:
        encoded = strings.dictionary_encode()
    return np.ascontiguousarray(_digests(encoded.dictionary)[encoded.indices.to_numpy(zero_copy_only=False)])


def _digests(strings: pa.Array) -> Int64s:
    values = bytearray()
    for start in range(0, len(strings), HASHED_AT_ONCE):
        texts = pc.cast(strings.slice(start, HASHED_AT_ONCE), pa.large_binary()).to_pylist()
        values += b"".join([blake2b(text, digest_size=16).digest() for text in texts])
    return np.frombuffer(values, dtype=">i8").astype(np.int64).reshape(-1, 2)


def text_ids(strings: pa.Array | pa.ChunkedArray) -> Int64s:
    """The ids alone, int64[n]; see `text_digests`."""
    return np.ascontiguousarray(text_digests(strings)[:, 0])


def text_draws(strings: pa.Array) -> Int64s:
    """Numbers to draw strings at random by, int64[n]: the low half of the 128-bit XXH3 hash of the UTF-8 bytes."""
    digests = map(xxhash.xxh3_128_digest, pc.cast(strings, pa.large_binary()).to_pylist())
    return np.frombuffer(b"".join(digests), dtype=">i8").astype(np.int64)[1::2]


def combine_ids(*parts: Int64s) -> Int64s:
    """One id for each row of several id columns (splitmix64 finaliser over a running sum), int64[n]."""
    total = np.zeros(parts[0].shape, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for part in parts:
            total = mix_bits(total + part.view(np.uint64) + np.uint64(0x9E3779B97F4A7C15))
    return total.view(np.int64)


def set_id(ids: Int64s, indptr: Int64s) -> Int64s:
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


def digest_table(digests: Int64s) -> pa.Table:
    """The distinct rows of an int64[n, 2] digest array as a table of `DIGEST_SCHEMA`."""
    ids, checks = np.ascontiguousarray(digests[:, 0]), np.ascontiguousarray(digests[:, 1])
    order = np.argsort(ids)
    if (ids[order[1:]] == ids[order[:-1]]).any():
        order = np.lexsort((checks, ids))
        same = (ids[order[1:]] == ids[order[:-1]]) & (checks[order[1:]] == checks[order[:-1]])
        order = np.delete(order, np.flatnonzero(same) + 1)
    return pa.table([pa.array(ids[order]), pa.array(checks[order])], schema=DIGEST_SCHEMA)


def shared_ids(tables: Iterable[pa.Table]) -> Int64s:
    """The ids that stand with several check values in tables of `DIGEST_SCHEMA`, ascending, int64[n]."""
    merged = (
        pa.concat_tables([DIGEST_SCHEMA.empty_table(), *(table.cast(DIGEST_SCHEMA) for table in tables)])
        .group_by(["id", "check"])
        .aggregate([])
    )
    counts = merged.group_by("id").aggregate([("check", "count")])
    return np.sort(counts.filter(pc.greater(counts["check_count"], 1))["id"].to_numpy())


def surplus_strings(strings: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The strings that share an id with one that sorts before them, each once and sorted; string[m].

    Args:
        strings: string array without nulls, in any order, with repetitions.
    """
    distinct = pc.unique(strings)
    ids = text_ids(distinct)
    order = np.argsort(ids)
    equal = np.flatnonzero(ids[order[1:]] == ids[order[:-1]])
    if not len(equal):
        return distinct.slice(0, 0)
    several = distinct.take(pa.array(np.unique(np.concatenate([order[equal], order[equal + 1]]))))
    several = several.take(pc.sort_indices(several))
    kept = np.unique(text_ids(several), return_index=True)[1]
    return several.take(pa.array(np.delete(np.arange(len(several)), kept)))


def without_shared_ids(words: pa.Table, key: str, name: str) -> pa.Table:
    """Rows sorted by the id in column `key`, of those with the same id only the first by name."""
    ids, first = np.unique(words[key].to_numpy(), return_index=True)
    if len(ids) < words.num_rows:
        words = words.sort_by([(key, "ascending"), (name, "ascending")])
        first = np.unique(words[key].to_numpy(), return_index=True)[1]
    return words.take(pa.array(first)).combine_chunks()
