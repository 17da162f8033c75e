"""ISA and Part-Of relations between words, learned from clicks (P13 3.3, Def. 11).

A scope is a group of users, or one user whom the log puts into several groups. In a scope, a page stands for the words
after which it was clicked there. Two words that share a page in a scope are ISA-related; the page is the witness. A
word of page u and a word of page v, where u links to v, are Part-Of-related; the link is the witness. A relation's
support is the number of its distinct witnesses over all scopes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.columnar.arrays import (
    Bools,
    Int64s,
    fold_tables,
    group_lengths,
    group_starts,
    group_sums,
    int64s,
    is_new_row,
    members,
    places_in_groups,
    positions,
    ragged,
    row_keys,
    sum_by_key,
    sum_rows,
)
from semrank.transforms.columnar.ids import combine_ids, text_ids
from semrank.transforms.weblog.clicks import Clicks

ISA, PART_OF = "ISA", "PART_OF"

PAIR_BUDGET = 1 << 22
"""Word pairs made at a time: 2^22 pairs of int64 keys and witnesses are some 100 MB while they are sorted."""

_KEY_SPACE = 1 << 62
"""Numbers of pairs with their witnesses stay below it, far from the limit of int64."""

SCOPE_SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("url_id", "scope", "word", "clicks")])
WITNESS_SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("target_id", "source_id", "scope", "word")])
OWN_WORD_SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("url_id", "word")])
PAIR_SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("source", "target", "support")])

_USER_SCOPE = np.int64(0x5C0FE)
"""Keeps the scope of a user apart from that of a group with the same id."""


def scope_rows(clicks: Clicks, vocabulary: Int64s, several: pa.Table | None, groups: pa.Table | None) -> pa.Table:
    """What each scope clicked: a table of `SCOPE_SCHEMA`; exchange it by `url_id`.

    Args:
        clicks: rows of the log.
        vocabulary: sorted ids of the words that take part; a word's number is its place in `order` of them.
        several: (user, ...) rows of users whom the log puts into several groups, or None.
        groups: (user, group) that replace the log's groups, or None.

    Returns:
        Distinct (url_id, scope, word) with clicks; `word` is the position of the word's id in `vocabulary`. Rows of a
        user's own scope have no clicks, so that no click counts twice.
    """
    group = clicks.group if groups is None else _replaced_groups(clicks.user, groups)
    repeats = np.diff(clicks.word_indptr)
    click = np.repeat(np.arange(len(clicks), dtype=np.int64), repeats)
    word = positions(vocabulary, clicks.word)
    known = word >= 0
    click, word = click[known], word[known]
    url, scope = clicks.url[click], group[click]
    counts = np.ones(len(word), dtype=np.int64)
    if several is not None:
        own = members(np.sort(int64s(several["user"])), clicks.user[click])
        user = clicks.user[click][own]
        user_scope = combine_ids(user, np.full(len(user), _USER_SCOPE))
        url, word = np.concatenate([url, url[own]]), np.concatenate([word, word[own]])
        scope = np.concatenate([scope, user_scope])
        counts = np.concatenate([counts, np.zeros(len(user), dtype=np.int64)])
    return pa.table(sum_rows((url, scope, word), counts), schema=SCOPE_SCHEMA)


def _replaced_groups(user: Int64s, groups: pa.Table) -> Int64s:
    users = int64s(groups["user"])
    order = np.argsort(users)
    place = positions(users[order], user)
    found = int64s(groups["group"])[order][place]
    return np.where(place >= 0, found, user)


@dataclass(frozen=True)
class RelationSettings:
    """How relations are learned.

    Attributes:
        groups: where groups of users come from: `given`, `one` or `minhash`.
        max_words: best clicked words of a URL that take part.
        min_support: smallest support of a relation.
        topic_log: whether only clicks count after queries that share a word with the base context or the query (the
            web log of a topic in P13's experiment).
        needs_word: whether a page counts for a word only where it has it as a keyword (P13 Examples 7 to 10).
        query: words of the query.
    """

    groups: str = "given"
    max_words: int = 50
    min_support: int = 1
    topic_log: bool = False
    needs_word: bool = False
    query: tuple[str, ...] = ()

    def topic_words(self, word_ids: Int64s, in_base: Bools) -> Int64s:
        """Ids of the words of the topic, ascending.

        Args:
            word_ids: id of each word of the vocabulary, int64[v].
            in_base: whether it occurs in the base context, bool[v].
        """
        return np.union1d(word_ids[in_base], text_ids(pa.array(self.query, pa.string())))


def contained_words(rows: pa.Table, own: pa.Table) -> pa.Table:
    """The rows whose word is one of the page's own.

    Args:
        rows: a table of `SCOPE_SCHEMA`.
        own: keywords of pages (`OWN_WORD_SCHEMA`), by the same numbers of words.
    """
    keys = np.sort(combine_ids(int64s(own["url_id"]), int64s(own["word"])))
    return rows.filter(pa.array(members(keys, combine_ids(int64s(rows["url_id"]), int64s(rows["word"])))))


def leading_words(rows: pa.Table, max_words: int) -> pa.Table:
    """Rows of the `max_words` best clicked words of each URL, so that one hub page can't cost a square.

    Args:
        rows: all rows of the URLs that stand in it, a table of `SCOPE_SCHEMA`.
        max_words: how many words of a URL take part; more clicks first, ties by word number.

    Returns:
        Distinct (url_id, scope, word), sorted by them, a table of `SCOPE_SCHEMA`.
    """
    merged = sum_rows([int64s(rows[name]) for name in ("url_id", "scope", "word")], int64s(rows["clicks"]))
    url, _, word, clicks = merged
    number, count = _numbered(url)
    # Few URLs have so many rows that they may have too many words.
    crowded = np.bincount(number, minlength=count) > max_words
    place = np.flatnonzero(crowded[number]) if count else number
    if not len(place):
        return pa.table(merged, schema=SCOPE_SCHEMA)
    url, word = number[place], word[place]
    keys = row_keys(url, word)
    order = np.argsort(keys)
    starts = group_starts(keys[order])
    totals = group_sums(clicks[place[order]], starts)
    pair_url, pair_word = url[order[starts]], word[order[starts]]
    by_clicks = np.argsort(row_keys(pair_url, -totals, pair_word))
    rank_start = group_starts(pair_url[by_clicks])
    rank = places_in_groups(rank_start, len(by_clicks))
    follows = np.ones(len(starts), dtype=np.bool_)
    follows[by_clicks[rank < max_words]] = False
    keep = np.ones(len(number), dtype=np.bool_)
    keep[place[order[np.repeat(follows, group_lengths(starts, len(order)))]]] = False
    return pa.table([column[keep] for column in merged], schema=SCOPE_SCHEMA)


def _numbered(*sorted_columns: Int64s) -> tuple[Int64s, int]:
    """The number of each run of equal rows, int64[n] from 0, and how many there are."""
    numbers = np.cumsum(is_new_row(*sorted_columns), dtype=np.int64) - 1
    return numbers, int(numbers[-1]) + 1 if len(numbers) else 0


def isa_pairs(rows: pa.Table, word_count: int) -> Iterator[pa.Table]:
    """Word pairs that share a page in a scope, with the number of such pages.

    Args:
        rows: result of `leading_words` for all rows of the URLs that stand in it.
        word_count: size of the vocabulary.

    Yields:
        Tables of `PAIR_SCHEMA` with source < target; a pair may stand in several tables, each page in one of them.
    """
    url, scope, word = (int64s(rows[name]) for name in ("url_id", "scope", "word"))
    if not len(url):
        return
    starts = group_starts(_numbered(url, scope)[0])
    ends = np.repeat(np.append(starts[1:], len(url)), group_lengths(starts, len(url)))
    later = ends - np.arange(len(url)) - 1
    page, _ = _numbered(url)
    for begin, end in _witness_chunks(page, later):
        first, second = ragged(np.arange(begin, end) + 1, later[begin:end])
        first = first + begin
        yield _count_witnesses(word[first], word[second], page[first] - page[begin], word_count)


def _witness_chunks(witness: Int64s, work: Int64s) -> Iterator[tuple[int, int]]:
    """Ranges of whole witnesses, whose numbers are sorted, with about `PAIR_BUDGET` pairs each."""
    starts = group_starts(witness)
    total = group_sums(work, starts)
    chunk = np.cumsum(total) // PAIR_BUDGET
    cuts = np.append(starts[group_starts(chunk)], len(witness))
    yield from zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)


def _count_witnesses(source: Int64s, target: Int64s, witness: Int64s, word_count: int) -> pa.Table:
    """Distinct (source, target, witness) counted by (source, target); witnesses are numbers from 0."""
    pair, span = source * word_count + target, int(witness.max(initial=0)) + 1
    distinct = None
    if word_count * word_count * span > _KEY_SPACE:
        distinct = np.unique(pair)
        pair = np.searchsorted(distinct, pair)
    # To sort numbers takes a tenth of the time of sorting places by them.
    keys = np.sort(pair * span + witness)
    pair = keys[group_starts(keys)] // span
    starts = group_starts(pair)
    counts = group_lengths(starts, len(pair))
    pair = pair[starts] if distinct is None else distinct[pair[starts]]
    return pa.table([pair // word_count, pair % word_count, counts], schema=PAIR_SCHEMA)


def merge_pairs(parts: Iterable[pa.Table]) -> pa.Table:
    """Tables of `PAIR_SCHEMA` with the supports of equal pairs added, in no promised order."""
    return fold_tables(parts, partial(sum_by_key, counts="support"), PAIR_SCHEMA, PAIR_BUDGET)


def link_witnesses(links: pa.Table, rows: pa.Table, in_base: Bools) -> Iterator[pa.Table]:
    """The first half of Part-Of: the words of each link's source, sent along the link.

    Args:
        links: followed links (source_id, target_id) whose source URLs' rows are in `rows`.
        rows: result of `leading_words`.
        in_base: whether each word occurs in the base context, bool[word_count].

    Yields:
        Tables of `WITNESS_SCHEMA`; exchange them by `target_id`.
    """
    words = rows.filter(pa.array(in_base[int64s(rows["word"])]))
    url = int64s(words["url_id"])
    source, target = _distinct_links(links)
    begin = np.searchsorted(url, source, side="left")
    lengths = np.searchsorted(url, source, side="right") - begin
    scope, word = int64s(words["scope"]), int64s(words["word"])
    for low, high in _work_chunks(lengths):
        link, place = ragged(begin[low:high], lengths[low:high])
        link = link + low
        yield pa.table([target[link], source[link], scope[place], word[place]], schema=WITNESS_SCHEMA)


def _distinct_links(links: pa.Table) -> tuple[Int64s, Int64s]:
    source, target = int64s(links["source_id"]), int64s(links["target_id"])
    keys = row_keys(source, target)
    order = np.argsort(keys)
    order = order[group_starts(keys[order])]
    source, target = source[order], target[order]
    different = source != target
    return source[different], target[different]


def _work_chunks(work: Int64s) -> Iterator[tuple[int, int]]:
    if not len(work):
        return
    chunk = np.cumsum(work) // PAIR_BUDGET
    cuts = np.append(group_starts(chunk), len(work))
    yield from zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)


def part_of_pairs(witnesses: pa.Table, rows: pa.Table, in_current: Bools) -> Iterator[pa.Table]:
    """The second half of Part-Of: words of a link's source with words of its target clicked in the same scope.

    Args:
        witnesses: all rows of `WITNESS_SCHEMA` for the targets whose rows are in `rows`.
        rows: result of `leading_words`.
        in_current: whether each word occurs in the current context, bool[word_count].

    Yields:
        Tables of `PAIR_SCHEMA`, source the word of the linking page; a pair may stand in several tables, each link in
        one of them.
    """
    words = rows.filter(pa.array(in_current[int64s(rows["word"])]))
    if not words.num_rows or not witnesses.num_rows:
        return
    target, source = int64s(witnesses["target_id"]), int64s(witnesses["source_id"])
    link = row_keys(target, source)
    by_link = np.argsort(link)
    link, _ = _numbered(link[by_link])
    key = combine_ids(int64s(words["url_id"]), int64s(words["scope"]))
    order = np.argsort(key)
    key, word = key[order], int64s(words["word"])[order]
    begins = group_starts(key)
    found = positions(key[begins], combine_ids(target, int64s(witnesses["scope"]))[by_link])
    lengths = np.where(found >= 0, group_lengths(begins, len(key))[found], 0)
    begin, source_word = begins[found], int64s(witnesses["word"])[by_link]
    for low, high in _witness_chunks(link, lengths):
        row, place = ragged(begin[low:high], lengths[low:high])
        row = row + low
        different = source_word[row] != word[place]
        row, place = row[different], place[different]
        yield _count_witnesses(source_word[row], word[place], link[row] - link[low], len(in_current))


def settle_relations(isa: pa.Table, part_of: pa.Table, min_support: int) -> tuple[pa.Table, pa.Table]:
    """Which relations hold, once all supports are known: of all words, or of some pairs in both directions.

    Relations below `min_support` are dropped; ISA beats Part-Of; of two opposite Part-Of the better supported stays,
    on a tie neither.

    Args:
        isa: distinct pairs with source < target, a table of `PAIR_SCHEMA`.
        part_of: distinct directed pairs, a table of `PAIR_SCHEMA`.
        min_support: smallest support of a relation.

    Returns:
        (ISA pairs, Part-Of pairs), each sorted.
    """
    isa = _supported(isa, min_support)
    part_of = _supported(part_of, min_support)
    source, target = int64s(part_of["source"]), int64s(part_of["target"])
    support = int64s(part_of["support"])
    isa_keys = np.sort((int64s(isa["source"]) << 32) | int64s(isa["target"]))
    unrelated = ~members(isa_keys, (np.minimum(source, target) << 32) | np.maximum(source, target))
    keys = (source << 32) | target
    order = np.argsort(keys)
    opposite = positions(keys[order], (target << 32) | source)
    opposite_support = np.where(opposite >= 0, support[order][opposite], 0) if len(keys) else support
    return isa, part_of.filter(pa.array(unrelated & (support > opposite_support)))


def _supported(pairs: pa.Table, min_support: int) -> pa.Table:
    kept = pairs.filter(pc.greater_equal(pairs["support"], min_support))
    return kept.sort_by([("source", "ascending"), ("target", "ascending")]).combine_chunks()
