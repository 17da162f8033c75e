"""A click log's rows as ids: who clicked what, after which words.

f(n), the number of clicks made after submitting a word, is P13 Def. 11; a query that repeats a word submits it once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.columnar.arrays import (
    Int64s,
    bools,
    column_array,
    distinct_rows,
    entry_rows,
    group_lengths,
    group_starts,
    int64s,
    list_column,
    list_parts,
    members,
    pointers,
    ragged,
    row_keys,
    row_pointers,
)
from semrank.transforms.columnar.ids import combine_ids, text_digests, text_ids

COLUMNS = ("user_id", "user_group", "session_id", "query", "keywords", "clicked_at", "position", "url")
"""Columns of the clicks table that the reader takes."""

NO_GROUP = 0
"""Group of users without one: they form one group."""

WORD_SCHEMA = pa.schema([pa.field("word_id", pa.int64()), pa.field("check", pa.int64()), pa.field("word", pa.string())])
WORD_CLICKS_SCHEMA = pa.schema([pa.field("word_id", pa.int64()), pa.field("clicks", pa.int64())])
URL_WORD_CLICKS_SCHEMA = pa.schema(
    [pa.field("url_id", pa.int64()), pa.field("word_id", pa.int64()), pa.field("clicks", pa.int64())]
)
URL_WORD_SESSION_SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("url_id", "word_id", "session")])

_CLICK_COLUMNS = ("user", "group", "session", "query", "time", "position", "url")

WordsOf = Callable[[pa.Array], pa.ListArray]
"""Returns the words of each short text, as the attributes of pages are made: string[n] -> list<string>[n]."""


def no_words(texts: pa.Array) -> pa.ListArray:
    """No words of texts, where none are wanted."""
    return list_column(pa.array([], pa.string()), np.zeros(len(texts) + 1, dtype=np.int64))


@dataclass(frozen=True)
class Clicks:
    """Rows of a click log as ids; all arrays are of length n.

    Attributes:
        user: id of the user, int64.
        group: id of the user's group, int64; `NO_GROUP` where the log names none.
        session: id of the session, int64; 0 where the log names none.
        query: id of the query's text, int64.
        time: microseconds since 1970 in UTC, int64.
        position: position in the result list, int64; -1 where the log names none.
        url: id of the clicked URL, int64.
        url_digests: ids and check values of the distinct clicked URLs, int64[m, 2].
        word_indptr: where each click's words begin and end, int64[n + 1].
        word: ids of the words of all clicks, int64[word_indptr[-1]]; distinct within a click.
        words: the distinct words, a table of `WORD_SCHEMA`.
    """

    user: Int64s
    group: Int64s
    session: Int64s
    query: Int64s
    time: Int64s
    position: Int64s
    url: Int64s
    url_digests: Int64s
    word_indptr: Int64s
    word: Int64s
    words: pa.Table

    def __len__(self) -> int:
        return len(self.user)

    def in_one_group(self) -> Clicks:
        """The same clicks with all users in one group."""
        return replace(self, group=np.full(len(self), NO_GROUP, dtype=np.int64))

    def about(self, words: Int64s) -> Clicks:
        """The clicks after queries with one of some words.

        Args:
            words: ids of words, ascending.
        """
        click = entry_rows(self.word_indptr)
        named = np.zeros(len(self), dtype=np.bool_)
        named[click[members(words, self.word)]] = True
        columns = {name: getattr(self, name)[named] for name in _CLICK_COLUMNS}
        return replace(
            self,
            **columns,
            word_indptr=pointers(np.diff(self.word_indptr)[named]),
            word=self.word[named[click]],
        )


def read_clicks(table: pa.Table, words_of: WordsOf) -> Clicks:
    """The rows of a conformed clicks table as ids.

    Args:
        table: columns `COLUMNS` of the clicks table, URLs canonical.
        words_of: returns the words of queries; not called for rows with `keywords`.
    """
    queries = column_array(table["query"]).dictionary_encode()
    query_numbers = int64s(queries.indices)
    texts = pc.cast(queries.dictionary, pa.string())
    given = column_array(table["keywords"])
    given_indptr, given_words = list_parts(given)
    lacking = bools(pc.is_null(given))
    asked = np.zeros(len(texts), dtype=np.bool_)
    asked[query_numbers[lacking]] = True
    text_indptr, text_words = list_parts(words_of(texts.filter(pa.array(asked))))
    asked_number = (np.cumsum(asked) - 1)[query_numbers[lacking]]

    distinct = pa.concat_arrays([text_words.cast(pa.string()), given_words.cast(pa.string())]).dictionary_encode()
    digests = text_digests(distinct.dictionary, distinct=True)
    numbers = int64s(distinct.indices)
    starts, lengths = len(text_words) + given_indptr[:-1], np.diff(given_indptr)
    starts[lacking], lengths[lacking] = text_indptr[asked_number], np.diff(text_indptr)[asked_number]
    click, place = ragged(starts, lengths)
    click, word_number = _distinct_words(click, numbers[place], len(digests))

    url_ids, url_digests = column_ids(table["url"])
    return Clicks(
        user=text_ids(table["user_id"]),
        group=_optional_ids(table["user_group"]),
        session=_optional_ids(table["session_id"]),
        query=text_ids(texts)[query_numbers],
        time=int64s(table["clicked_at"].cast(pa.int64())),
        position=int64s(pc.fill_null(table["position"].cast(pa.int64()), -1)),
        url=url_ids,
        url_digests=url_digests,
        word_indptr=row_pointers(click, table.num_rows),
        word=digests[word_number, 0] if len(digests) else np.zeros(0, dtype=np.int64),
        words=pa.table([pa.array(digests[:, 0]), pa.array(digests[:, 1]), distinct.dictionary], schema=WORD_SCHEMA),
    )


def word_clicks(clicks: Clicks) -> pa.Table:
    """f(n) of these clicks: a table of `WORD_CLICKS_SCHEMA` with distinct words."""
    words, counts = np.unique(clicks.word, return_counts=True)
    return pa.table([pa.array(words), pa.array(counts.astype(np.int64))], schema=WORD_CLICKS_SCHEMA)


def url_word_clicks(clicks: Clicks) -> pa.Table:
    """Clicks of each URL after each word: a table of `URL_WORD_CLICKS_SCHEMA` with distinct (URL, word)."""
    url = np.repeat(clicks.url, np.diff(clicks.word_indptr))
    keys = row_keys(url, clicks.word)
    order = np.argsort(keys)
    starts = group_starts(keys[order])
    counts = group_lengths(starts, len(url))
    first = order[starts]
    return pa.table(
        [pa.array(url[first]), pa.array(clicks.word[first]), pa.array(counts)], schema=URL_WORD_CLICKS_SCHEMA
    )


def url_word_sessions(clicks: Clicks) -> pa.Table:
    """Sessions that clicked a URL after a query with a word: distinct rows of `URL_WORD_SESSION_SCHEMA`.

    A session is a user's; where the log names none, all clicks of a user are one.
    """
    repeats = np.diff(clicks.word_indptr)
    session = np.repeat(combine_ids(clicks.user, clicks.session), repeats)
    rows = pa.table([np.repeat(clicks.url, repeats), clicks.word, session], schema=URL_WORD_SESSION_SCHEMA)
    return distinct_rows(rows)


def session_counts(rows: pa.Table) -> pa.Table:
    """Number of sessions by the other columns of distinct rows, in place of `session`."""
    names = [name for name in rows.column_names if name != "session"]
    counted = rows.group_by(names).aggregate([([], "count_all")])
    return counted.rename_columns([*names, "sessions"])


def _distinct_words(click: Int64s, word: Int64s, word_count: int) -> tuple[Int64s, Int64s]:
    """(click, word number) pairs, sorted, each once."""
    keys = np.sort(click * max(word_count, 1) + word)
    keys = keys[group_starts(keys)]
    return keys // max(word_count, 1), keys % max(word_count, 1)


def column_ids(column: pa.ChunkedArray) -> tuple[Int64s, Int64s]:
    """Ids of a column's strings, int64[n], and the digests of its distinct strings, int64[m, 2]."""
    encoded = column_array(column).dictionary_encode()
    digests = text_digests(encoded.dictionary, distinct=True)
    return digests[int64s(encoded.indices), 0], digests


def _optional_ids(column: pa.ChunkedArray) -> Int64s:
    """Ids of a column's strings, 0 where there is none."""
    array = column_array(column)
    ids = np.zeros(len(array), dtype=np.int64)
    valid = bools(pc.is_valid(array))
    if valid.any():
        ids[valid] = text_ids(array.drop_null())
    return ids
