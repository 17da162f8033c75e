"""Groups of users with the same interests (P13 3.3: relations are learned within a group).

`given` takes the log's own groups, `one` puts everybody together, `minhash` derives groups from the words that a user
submits: users whose word sets have the same minimum under two independent hash functions share a group, so two users
with Jaccard similarity J of their words meet with probability about J^2 (Broder 1997).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from semrank.transforms.columnar.arrays import Int64s, group_starts, int64s, is_new_row, mix_bits
from semrank.transforms.columnar.ids import combine_ids
from semrank.transforms.weblog.clicks import NO_GROUP, Clicks

_MINHASH_SEEDS = (0x5851F42D4C957F2D, 0x14057B7EF767814F)
"""Two odd constants that make two hash functions of one; any two do."""

USER_GROUP_SCHEMA = pa.schema([pa.field("user", pa.int64()), pa.field("group", pa.int64())])
USER_WORD_SCHEMA = pa.schema([pa.field("user", pa.int64()), pa.field("word_id", pa.int64())])


def user_groups(clicks: Clicks) -> pa.Table:
    """Distinct (user, group) of the log, a table of `USER_GROUP_SCHEMA`."""
    return _distinct_pairs(clicks.user, clicks.group, USER_GROUP_SCHEMA)


def user_words(clicks: Clicks) -> pa.Table:
    """Distinct (user, submitted word), a table of `USER_WORD_SCHEMA`; exchange it by `user`."""
    return _distinct_pairs(np.repeat(clicks.user, np.diff(clicks.word_indptr)), clicks.word, USER_WORD_SCHEMA)


def users_of_several_groups(groups: pa.Table) -> pa.Table:
    """Users whom the log puts into more than one group, a table of `USER_GROUP_SCHEMA` with `NO_GROUP` as group.

    Args:
        groups: all (user, group) rows of the users that stand in it.
    """
    pairs = _distinct_pairs(int64s(groups["user"]), int64s(groups["group"]), USER_GROUP_SCHEMA)
    users, counts = np.unique(int64s(pairs["user"]), return_counts=True)
    several = users[counts > 1]
    return pa.table([several, np.full(len(several), NO_GROUP, dtype=np.int64)], schema=USER_GROUP_SCHEMA)


def minhash_groups(words: pa.Table) -> pa.Table:
    """The minhash group of each user, a table of `USER_GROUP_SCHEMA`.

    Args:
        words: all (user, word) rows of the users that stand in it.
    """
    user, word = int64s(words["user"]), int64s(words["word_id"])
    order = np.argsort(user, kind="stable")
    user, word = user[order], word[order]
    starts = group_starts(user)
    if not len(starts):
        return USER_GROUP_SCHEMA.empty_table()
    minima: list[Int64s] = []
    for seed in _MINHASH_SEEDS:
        with np.errstate(over="ignore"):
            hashed = mix_bits(word.view(np.uint64) * np.uint64(seed))
        minima.append(np.minimum.reduceat(hashed, starts).view(np.int64))
    return pa.table([user[starts], combine_ids(*minima)], schema=USER_GROUP_SCHEMA)


def _distinct_pairs(first: Int64s, second: Int64s, schema: pa.Schema) -> pa.Table:
    order = np.lexsort((second, first))
    first, second = first[order], second[order]
    new = is_new_row(first, second)
    return pa.table([first[new], second[new]], schema=schema)
