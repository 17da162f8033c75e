"""What pages, anchors and clicks say about URLs: words by URL, with how often each occurs.

A fetched page's words come from its title and text, or are given by its `keywords`; an unfetched URL's come from the
anchor texts of the links that point to it, the words of its address, and the words after which it was clicked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from semrank.schemas.tables import TIMESTAMP
from semrank.transforms.columnar.arrays import Int64s, column_array, group_starts, list_parts, members
from semrank.transforms.columnar.idfilter import IdFilter
from semrank.transforms.columnar.ids import digest_table, text_digests
from semrank.transforms.context.words import lemma_counts, lemmas_of

COLUMNS = ("url", "fetched_at", "status", "title", "text", "keywords", "language")
"""Columns of the pages table that the reader takes."""

TERM_SCHEMA = pa.schema(
    [pa.field("url_id", pa.int64()), pa.field("word_id", pa.int64()), pa.field("count", pa.int64())]
)
WORD_SCHEMA = pa.schema([pa.field("word_id", pa.int64()), pa.field("check", pa.int64()), pa.field("word", pa.string())])
FREQUENCY_SCHEMA = pa.schema([pa.field("word_id", pa.int64()), pa.field("documents", pa.int64())])
COUNT_SCHEMA = pa.schema([pa.field("documents", pa.int64())])
FETCHED_SCHEMA = pa.schema(
    [
        pa.field("url_id", pa.int64()),
        pa.field("fetched_at", TIMESTAMP),
        pa.field("status", pa.int16()),
        pa.field("described", pa.bool_()),
    ]
)
"""A fetched page; `described` where its own content says what it is about, if only that it is about nothing."""

TERMS, GIVEN, WORDS, FETCHED = "terms", "given", "words", "fetched"
FREQUENCIES, DOCUMENTS, DIGESTS = "frequencies", "documents", "digests"


@dataclass(frozen=True)
class Wanted:
    """The URLs whose words are wanted: the queue and, almost exactly, the current URLs."""

    queue: Int64s
    current: IdFilter

    def contains(self, ids: Int64s) -> npt.NDArray[np.bool_]:
        """Whether each id is wanted; a few others pass as well and find no partner in the join that follows."""
        return members(self.queue, ids) | self.current.may_contain(ids)


@dataclass(frozen=True)
class _Words:
    """Words of rows: row and word number of each occurrence, and the distinct words with their digests."""

    row: Int64s
    number: Int64s
    digests: Int64s
    words: pa.Array

    @classmethod
    def of(cls, row: Int64s, words: pa.Array) -> _Words:
        encoded = words.cast(pa.string()).dictionary_encode()
        numbers = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
        return cls(row, numbers, text_digests(encoded.dictionary), encoded.dictionary)

    def table(self, used: Int64s) -> pa.Table:
        """The words with the numbers `used`, a table of `WORD_SCHEMA`."""
        distinct = np.unique(used)
        digests = self.digests[distinct]
        return pa.table([digests[:, 0], digests[:, 1], self.words.take(pa.array(distinct))], schema=WORD_SCHEMA)


def page_words(table: pa.Table, wanted: Wanted, language: str) -> Iterator[tuple[str, pa.Table]]:
    """What a part of the pages table says.

    Args:
        table: columns `COLUMNS` of the pages table.
        wanted: the URLs whose words are wanted.
        language: language of pages whose language is neither given nor found out.

    Yields:
        (kind, table): `terms` and `given` (`TERM_SCHEMA`), `words` (`WORD_SCHEMA`) and `fetched` of the wanted pages;
        `frequencies` (the number of pages of each word), `documents` (the number of pages with text) and `digests` of
        all pages.
    """
    digests = text_digests(table["url"])
    ids = digests[:, 0]
    chosen = wanted.contains(ids)
    keywords = column_array(table["keywords"])
    has_keywords = np.asarray(pc.is_valid(keywords).to_numpy(zero_copy_only=False), dtype=np.bool_)
    texts = title_and_text(table)
    has_text = np.asarray(pc.is_valid(texts).to_numpy(zero_copy_only=False), dtype=np.bool_) & ~has_keywords

    yield DIGESTS, digest_table(digests)
    yield FETCHED, _fetched(ids, table, has_keywords | has_text, chosen)
    yield from _given(ids, keywords, chosen & has_keywords)
    documents = np.flatnonzero(has_text)
    yield DOCUMENTS, pa.table([[len(documents)]], schema=COUNT_SCHEMA)
    place = pa.array(documents)
    counts = lemma_counts(texts.take(place), column_array(table["language"]).take(place), fallback=language)
    lemma, count = counts.lemma.astype(np.int64), counts.count.astype(np.int64)
    word_digests = text_digests(counts.lemmas)
    frequency = np.bincount(lemma, minlength=len(counts.lemmas)).astype(np.int64)
    yield FREQUENCIES, pa.table([word_digests[:, 0], frequency], schema=FREQUENCY_SCHEMA)
    row = documents[counts.document]
    kept = chosen[row]
    yield TERMS, pa.table([ids[row[kept]], word_digests[lemma[kept], 0], count[kept]], schema=TERM_SCHEMA)
    used = np.unique(lemma[kept])
    yield (
        WORDS,
        pa.table(
            [word_digests[used, 0], word_digests[used, 1], counts.lemmas.take(pa.array(used))], schema=WORD_SCHEMA
        ),
    )


def title_and_text(table: pa.Table) -> pa.Array:
    """Titles and texts of pages as one text, large_string[n], null where a page has neither."""
    title, text = (column_array(table[name]).cast(pa.large_string()) for name in ("title", "text"))
    either = pc.or_(pc.is_valid(title), pc.is_valid(text))
    empty = pa.scalar("", pa.large_string())
    joined = pc.binary_join_element_wise(
        pc.fill_null(title, empty), pc.fill_null(text, empty), pa.scalar("\n", pa.large_string())
    )
    return pc.if_else(either, joined, pa.scalar(None, pa.large_string()))


def _fetched(ids: Int64s, table: pa.Table, described: npt.NDArray[np.bool_], chosen: npt.NDArray[np.bool_]) -> pa.Table:
    rows = np.flatnonzero(chosen)
    times, statuses = (column_array(table[name]).take(pa.array(rows)) for name in ("fetched_at", "status"))
    return pa.table([pa.array(ids[rows]), times, statuses, pa.array(described[rows])], schema=FETCHED_SCHEMA)


def _given(ids: Int64s, keywords: pa.ListArray, chosen: npt.NDArray[np.bool_]) -> Iterator[tuple[str, pa.Table]]:
    rows = np.flatnonzero(chosen)
    indptr, values = list_parts(keywords.take(pa.array(rows)))
    owner = np.repeat(np.arange(len(rows), dtype=np.int64), np.diff(indptr))
    valid = np.asarray(pc.is_valid(values).to_numpy(zero_copy_only=False), dtype=np.bool_)
    words = _Words.of(owner[valid], values.drop_null())
    yield GIVEN, word_counts(ids[rows], words.row, words.digests[words.number, 0])
    yield WORDS, words.table(words.number)


def text_words(ids: Int64s, texts: pa.Array, language: str) -> tuple[pa.Table, pa.Table]:
    """Words of short texts by URL.

    Args:
        ids: URL id of each text, int64[n].
        texts: string[n].
        language: language of the texts.

    Returns:
        (counts, a table of `TERM_SCHEMA` with distinct (URL, word); words, a table of `WORD_SCHEMA`).
    """
    encoded = texts.dictionary_encode()
    indptr, values = list_parts(lemmas_of(encoded.dictionary, fallback=language))
    number = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
    lengths = np.diff(indptr)[number]
    owner = np.repeat(np.arange(len(number), dtype=np.int64), lengths)
    place = np.arange(len(owner), dtype=np.int64) + np.repeat(indptr[number] - (np.cumsum(lengths) - lengths), lengths)
    words = _Words.of(owner, values)
    occurring = words.number[place]
    return word_counts(ids, owner, words.digests[occurring, 0]), words.table(occurring)


def word_counts(ids: Int64s, row: Int64s, word: Int64s) -> pa.Table:
    """Occurrences by (URL, word), a table of `TERM_SCHEMA`.

    Args:
        ids: URL id of each row.
        row: row of each occurrence.
        word: word id of each occurrence.
    """
    return sum_terms(ids[row], word, np.ones(len(row), dtype=np.int64))


def sum_terms(url: Int64s, word: Int64s, count: Int64s) -> pa.Table:
    """Counts added by (URL, word), a table of `TERM_SCHEMA` sorted by them."""
    order = np.lexsort((word, url))
    url, word, count = url[order], word[order], count[order]
    new = np.ones(len(url), dtype=np.bool_)
    new[1:] = (url[1:] != url[:-1]) | (word[1:] != word[:-1])
    starts = np.flatnonzero(new)
    sums = np.add.reduceat(count, starts) if len(starts) else count
    return pa.table([url[starts], word[starts], sums], schema=TERM_SCHEMA)


def frequent_words(frequencies: pa.Table) -> pa.Table:
    """Words that stand on at least two pages, a table of `FREQUENCY_SCHEMA` sorted by word id.

    A word that is missing stands on one page: most words of a web do, and need not be broadcast.

    Args:
        frequencies: all counts of the words that stand in it.
    """
    word = np.asarray(frequencies["word_id"].to_numpy(), dtype=np.int64)
    order = np.argsort(word, kind="stable")
    word = word[order]
    starts = group_starts(word)
    counts = np.asarray(frequencies["documents"].to_numpy(), dtype=np.int64)[order]
    sums = np.add.reduceat(counts, starts) if len(starts) else counts
    kept = sums > 1
    return pa.table([word[starts][kept], sums[kept]], schema=FREQUENCY_SCHEMA)
