"""ISA and Part-Of supports, against sets of witnesses; budgets so small that every URL and link is a chunk."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.schemas.tables import CLICKS
from semrank.transforms.columnar.ids import combine_ids
from semrank.transforms.weblog import relations
from semrank.transforms.weblog.clicks import NO_GROUP, read_clicks
from semrank.transforms.weblog.groups import USER_GROUP_SCHEMA
from semrank.transforms.weblog.relations import (
    PAIR_SCHEMA,
    SCOPE_SCHEMA,
    isa_pairs,
    leading_words,
    link_witnesses,
    merge_pairs,
    part_of_pairs,
    scope_rows,
    settle_relations,
)
from tests.support.clicks import number, split_words
from tests.support.snapshots import table_of
from tests.support.strategies import START

WORD_COUNT = 5
ScopeRow = tuple[int, int, int, int]
"""url, scope, word, clicks"""
Counts = dict[tuple[int, int], int]

SCOPE_ROWS = st.lists(
    st.tuples(st.integers(-2, 2), st.integers(0, 2), st.integers(0, WORD_COUNT - 1), st.integers(0, 3)), max_size=30
)
LINKS = st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), max_size=15)
MEMBERS = st.lists(st.booleans(), min_size=WORD_COUNT, max_size=WORD_COUNT).map(lambda flags: np.array(flags))
BUDGETS = st.sampled_from([1, 2, 5, 1 << 22])


def scope_table(rows: list[ScopeRow]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * 4
    return pa.table([pa.array(column, pa.int64()) for column in columns], schema=SCOPE_SCHEMA)


def pairs_of(table: pa.Table) -> Counts:
    pairs = list(zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    return dict(zip(pairs, table["support"].to_pylist(), strict=True))


def pair_table(counts: Counts) -> pa.Table:
    rows = [(*pair, support) for pair, support in counts.items()]
    columns = list(zip(*rows, strict=True)) or [()] * 3
    return pa.table([pa.array(column, pa.int64()) for column in columns], schema=PAIR_SCHEMA)


@given(SCOPE_ROWS, st.integers(1, 4))
def test_leading_words_are_the_best_clicked_of_their_page(rows: list[ScopeRow], most: int) -> None:
    clicks: dict[int, Counter[int]] = defaultdict(Counter)
    sums: Counter[tuple[int, int, int]] = Counter()
    for url, scope, word, count in rows:
        clicks[url][word] += count
        sums[url, scope, word] += count
    leading = {
        url: sorted(counter, key=lambda word, found=counter: (-found[word], word))[:most]  # type: ignore[misc]
        for url, counter in clicks.items()
    }
    table = leading_words(scope_table(rows), most)
    found = list(zip(*(table[name].to_pylist() for name in SCOPE_SCHEMA.names), strict=True))
    assert found == sorted((*key, count) for key, count in sums.items() if key[2] in leading[key[0]])


@given(SCOPE_ROWS, BUDGETS)
def test_isa_support_is_the_number_of_pages(rows: list[ScopeRow], budget: int) -> None:
    words: dict[tuple[int, int], set[int]] = defaultdict(set)
    for url, scope, word, _ in rows:
        words[url, scope].add(word)
    witnesses: dict[tuple[int, int], set[int]] = defaultdict(set)
    for (url, _), found in words.items():
        for pair in combinations(sorted(found), 2):
            witnesses[pair].add(url)
    with mock.patch.object(relations, "PAIR_BUDGET", budget):
        table = merge_pairs(isa_pairs(leading_words(scope_table(rows), WORD_COUNT), WORD_COUNT))
    assert pairs_of(table) == {pair: len(urls) for pair, urls in witnesses.items()}


@given(SCOPE_ROWS, LINKS, MEMBERS, MEMBERS, BUDGETS)
def test_part_of_support_is_the_number_of_links(
    rows: list[ScopeRow],
    links: list[tuple[int, int]],
    in_base: np.ndarray,
    in_current: np.ndarray,
    budget: int,
) -> None:
    clicked = {(url, scope, word) for url, scope, word, _ in rows}
    witnesses: dict[tuple[int, int], set[tuple[int, int]]] = defaultdict(set)
    for u, v in links:
        for url, scope, a in clicked:
            for other_url, other_scope, b in clicked:
                joined = url == u and other_url == v and u != v and scope == other_scope
                if joined and a != b and in_base[a] and in_current[b]:
                    witnesses[a, b].add((u, v))
    leading = leading_words(scope_table(rows), WORD_COUNT)
    columns = list(zip(*links, strict=True)) or [(), ()]
    table = pa.table([pa.array(column, pa.int64()) for column in columns], names=["source_id", "target_id"])
    with mock.patch.object(relations, "PAIR_BUDGET", budget):
        sent = pa.concat_tables([relations.WITNESS_SCHEMA.empty_table(), *link_witnesses(table, leading, in_base)])
        # Another partition's exchange gives them in another order.
        pairs = merge_pairs(part_of_pairs(sent.take(pa.array(np.arange(len(sent))[::-1])), leading, in_current))
    assert pairs_of(pairs) == {pair: len(found) for pair, found in witnesses.items()}


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 4)), max_size=6), max_size=6),
    BUDGETS,
)
def test_merged_parts_add_up(parts: list[list[tuple[int, int, int]]], budget: int) -> None:
    total: Counter[tuple[int, int]] = Counter()
    for part in parts:
        for source, target, support in part:
            total[source, target] += support
    tables = [
        pa.table([pa.array([row[place] for row in part], pa.int64()) for place in range(3)], schema=PAIR_SCHEMA)
        for part in parts
    ]
    with mock.patch.object(relations, "PAIR_BUDGET", budget):
        assert pairs_of(merge_pairs(tables)) == total


COUNTS = st.dictionaries(
    st.tuples(st.integers(0, WORD_COUNT - 1), st.integers(0, WORD_COUNT - 1)).filter(lambda pair: pair[0] != pair[1]),
    st.integers(1, 4),
    max_size=20,
)


@given(COUNTS, COUNTS, st.integers(1, 3))
def test_settled_relations(isa: Counts, part_of: Counts, least: int) -> None:
    isa = {pair: support for pair, support in isa.items() if pair[0] < pair[1]}
    kept_isa = {pair: support for pair, support in isa.items() if support >= least}
    strong = {pair: support for pair, support in part_of.items() if support >= least}
    kept = {
        (a, b): support
        for (a, b), support in strong.items()
        if (min(a, b), max(a, b)) not in kept_isa and support > strong.get((b, a), 0)
    }
    found_isa, found = settle_relations(pair_table(isa), pair_table(part_of), least)
    assert list(pairs_of(found_isa).items()) == sorted(kept_isa.items())
    assert list(pairs_of(found).items()) == sorted(kept.items())


CLICK = st.tuples(
    st.sampled_from("uvw"), st.sampled_from([None, "g", "h"]), st.sampled_from("xyz"), st.lists(st.sampled_from("abc"))
)


@pytest.mark.parametrize("way", ["given", "replaced"])
@given(clicks=st.lists(CLICK, max_size=12), vocabulary=st.sets(st.sampled_from("abc")))
def test_scopes_are_groups_and_users_of_several(
    way: str, clicks: list[tuple[str, str | None, str, list[str]]], vocabulary: set[str]
) -> None:
    table = table_of(
        [
            {"user_id": user, "user_group": group, "query": "", "keywords": words, "clicked_at": START, "url": url}
            for user, group, url, words in clicks
        ],
        CLICKS,
    )
    ids = np.array(sorted(map(number, vocabulary)), dtype=np.int64)
    groups = defaultdict(set)
    for user, group, _, _ in clicks:
        groups[user].add(group)
    several = {user for user, found in groups.items() if len(found) > 1} if way == "given" else set()
    replaced = {number("u"): 7, number("v"): -7}
    expected: Counter[tuple[int, int, str]] = Counter()
    for user, group, url, words in clicks:
        scope = NO_GROUP if group is None else number(group)
        if way == "replaced":
            scope = replaced.get(number(user), number(user))
        for word in set(words) & vocabulary:
            expected[number(url), scope, word] += 1
            if user in several:
                own = combine_ids(np.array([number(user)]), np.array([0x5C0FE]))[0]
                expected[number(url), int(own), word] += 0
    rows = scope_rows(
        read_clicks(table, split_words),
        ids,
        pa.table([[number(user) for user in sorted(several)], [NO_GROUP] * len(several)], schema=USER_GROUP_SCHEMA),
        pa.table([list(replaced), list(replaced.values())], schema=USER_GROUP_SCHEMA) if way == "replaced" else None,
    )
    found = {
        (url, scope, {number(word): word for word in "abc"}[int(ids[word])]): count
        for url, scope, word, count in zip(*(rows[name].to_pylist() for name in SCOPE_SCHEMA.names), strict=True)
    }
    assert len(found) == rows.num_rows
    assert found == dict(expected)
