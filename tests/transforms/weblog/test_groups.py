"""Groups of users: the log's own, and those of common words."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from semrank.schemas.tables import CLICKS
from semrank.transforms.weblog.clicks import NO_GROUP, Clicks, read_clicks
from semrank.transforms.weblog.groups import (
    USER_GROUP_SCHEMA,
    USER_WORD_SCHEMA,
    minhash_groups,
    user_groups,
    user_words,
    users_of_several_groups,
)
from tests.support.clicks import number, split_words
from tests.support.snapshots import table_of
from tests.support.strategies import START

Pair = tuple[str, str | None]
PAIRS = st.lists(st.tuples(st.sampled_from("uvw"), st.sampled_from([None, "g", "h"])), max_size=10)


def log(pairs: list[Pair], keywords: list[str]) -> Clicks:
    rows = [
        {"user_id": user, "user_group": group, "query": "", "keywords": keywords, "clicked_at": START, "url": "x:"}
        for user, group in pairs
    ]
    return read_clicks(table_of(rows, CLICKS), split_words)


@given(PAIRS)
def test_distinct_groups_of_users(pairs: list[Pair]) -> None:
    table = user_groups(log(pairs, []))
    found = list(zip(table["user"].to_pylist(), table["group"].to_pylist(), strict=True))
    expected = {(number(user), NO_GROUP if group is None else number(group)) for user, group in pairs}
    assert found == sorted(expected)


@given(PAIRS)
def test_users_of_several_groups(pairs: list[Pair]) -> None:
    groups = defaultdict(set)
    for user, group in pairs:
        groups[number(user)].add(group)
    # Rows of several parts of the log: nothing is distinct yet.
    parts = [user_groups(log([pair], [])) for pair in pairs]
    table = users_of_several_groups(pa.concat_tables([USER_GROUP_SCHEMA.empty_table(), *parts]))
    assert set(table["user"].to_pylist()) == {user for user, found in groups.items() if len(found) > 1}
    assert set(table["group"].to_pylist()) <= {NO_GROUP}


def test_words_of_users_are_distinct() -> None:
    table = user_words(log([("u", None), ("u", "g"), ("v", None)], ["b", "a", "b"]))
    found = list(zip(table["user"].to_pylist(), table["word_id"].to_pylist(), strict=True))
    assert found == sorted((number(user), number(word)) for user in "uv" for word in "ab")


@given(st.dictionaries(st.integers(0, 5), st.sets(st.integers(-4, 4), min_size=1), max_size=6), st.randoms())
def test_users_of_equal_words_share_a_group(words: dict[int, set[int]], random: object) -> None:
    rows = [(user, word) for user, found in words.items() for word in found] * 2
    rows.sort(key=lambda _: random.random())  # type: ignore[attr-defined]
    columns = [pa.array([row[place] for row in rows], pa.int64()) for place in range(2)]
    table = minhash_groups(pa.table(columns, schema=USER_WORD_SCHEMA))
    group = dict(zip(table["user"].to_pylist(), table["group"].to_pylist(), strict=True))
    assert group.keys() == words.keys()
    for user, found in words.items():
        for other, others in words.items():
            if found == others:
                assert group[user] == group[other]
            if not found & others:
                assert group[user] != group[other]


def test_users_meet_with_about_the_square_of_their_similarity() -> None:
    """Two users have three of five words in common: J = 0.6, so that they meet with probability 0.36."""
    pairs = 2000
    random = np.random.default_rng(7)
    words = random.integers(-(2**63), 2**63 - 1, size=(pairs, 5), dtype=np.int64)
    user = np.repeat(np.arange(2 * pairs), 4)
    word = np.concatenate([words[:, :4], words[:, 1:]], axis=1).ravel()
    table = minhash_groups(pa.table([user, word], schema=USER_WORD_SCHEMA))
    group = table["group"].to_numpy().reshape(pairs, 2)
    share = (group[:, 0] == group[:, 1]).mean()
    # Four standard errors of a share of 2000 draws.
    assert abs(share - 0.36) < 4 * np.sqrt(0.36 * 0.64 / pairs)
