"""Words of URLs from pages, anchors and clicks, with their numbers of occurrences.

A fetched page's words come from its title and text, or are given by its `keywords`; an unfetched URL's come from the
anchor texts of links to it, the words of its address, and the queries that led to clicks on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.schemas.tables import TIMESTAMP
from semrank.transforms.columnar.arrays import (
    Bools,
    Int64s,
    bools,
    column_array,
    distinct_rows,
    entry_rows,
    int64s,
    list_parts,
    members,
    mix_bits,
    ragged,
    sum_rows,
)
from semrank.transforms.columnar.idfilter import IdFilter
from semrank.transforms.columnar.ids import digest_table, text_digests, without_shared_ids
from semrank.transforms.context.tokens import Tokens, tokens_of
from semrank.transforms.context.words import lemma_counts, lemmas_of, text_languages
from semrank.transforms.streams.urls import url_words
from semrank.transforms.weblog.clicks import WORD_SCHEMA

COLUMNS = ("url", "fetched_at", "status", "title", "text", "keywords", "language")
"""Columns of the pages table that are read."""

FETCHED_COLUMNS = ("url", "fetched_at", "status")
"""Columns that are read if no words are needed."""

TERM_SCHEMA = pa.schema(
    [pa.field("url_id", pa.int64()), pa.field("word_id", pa.int64()), pa.field("count", pa.int64())]
)
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
"""A fetched page; `described` if its own content is known, even if it has no words."""

TERMS, GIVEN, WORDS, FETCHED = "terms", "given", "words", "fetched"
FREQUENCIES, DOCUMENTS, DIGESTS = "frequencies", "documents", "digests"
LEAD, SOURCES, DRAWN = "lead", "sources", "drawn"

SOURCE_SCHEMA = pa.schema(
    [pa.field("url_id", pa.int64()), pa.field("text", pa.large_string()), pa.field("language", pa.string())]
)
"""Title and text of a harvested page."""

DRAWN_SCHEMA = pa.schema(
    [
        pa.field("url_id", pa.int64()),
        *(pa.field(name, pa.bool_()) for name in ("seed", "other", "batch", "random")),
        pa.field("text", pa.large_string()),
        pa.field("language", pa.string()),
    ]
)
"""A page that is drawn to describe the topic: as a seed, another harvested page, one of the queue, or at random."""

DRAWN_URLS = 1_000
"""URLs of each kind from which fetched pages are drawn: many more than are compared, as not all are fetched."""

LEAD_TOKENS = 150
"""Tokens at the head of a text that count as its introduction."""

LEAD_CHARACTERS = 4096
"""Code points of a text that are searched for its first tokens: some 27 a token, more than any language needs."""


@dataclass(frozen=True)
class Draw:
    """The URLs whose pages may describe the topic, drawn by a hash of their ids; sorted ids, int64.

    Attributes:
        seed: ids of seeds.
        other: ids of other harvested URLs.
        batch: ids of URLs of the queue other than seeds.
        below: upper bound of the hashes of randomly drawn pages.
    """

    seed: Int64s
    other: Int64s
    batch: Int64s
    below: np.uint64

    @classmethod
    def of(cls, ids: Int64s, seed: Bools, queued: Bools, pages: int) -> Draw:
        """The draw from a harvest.

        Args:
            ids: ids of harvested URLs, int64[n].
            seed: whether each is a seed, bool[n].
            queued: whether each is of the queue, bool[n].
            pages: rows of the pages table.
        """
        seeds, others, batch = (lowest_ids(kind, DRAWN_URLS) for kind in (ids[seed], ids[~seed], ids[queued & ~seed]))
        below = (2**64 - 1) * min(DRAWN_URLS, pages) // max(pages, 1)
        return cls(seeds, others, batch, np.uint64(below))


@dataclass(frozen=True)
class Wanted:
    """The URLs that are described: the harvested ones and, almost exactly, the current ones.

    Attributes:
        harvested: sorted ids of the harvested URLs.
        current: filter of the ids of the current URLs.
        queue: sorted ids of the harvested URLs that are of the queue.
        draw: the URLs whose pages may describe the topic.
    """

    harvested: Int64s
    current: IdFilter
    queue: Int64s = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    draw: Draw | None = None

    def contains(self, ids: Int64s) -> Bools:
        """Whether each id is wanted; a few others pass as well and are dropped by the next join."""
        return members(self.harvested, ids) | self.current.may_contain(ids)


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
        numbers = int64s(encoded.indices)
        return cls(row, numbers, text_digests(encoded.dictionary, distinct=True), encoded.dictionary)

    def table(self, used: Int64s) -> pa.Table:
        """The words with the numbers `used`, a table of `WORD_SCHEMA`."""
        distinct = np.unique(used)
        return words_table(self.words.take(pa.array(distinct)), self.digests[distinct])


def read_pages(
    table: pa.Table, wanted: Wanted, language: str, *, every: bool, lead: bool, nouns: bool = False
) -> Iterator[tuple[str, pa.Table]]:
    """The evidence in a part of the pages table.

    Args:
        table: columns `COLUMNS` of the pages table.
        wanted: the URLs whose words are wanted.
        language: language of pages whose language is neither given nor detected.
        every: whether the words of all pages are counted, else only those of the wanted ones are read.
        lead: whether the heads of texts are wanted, and the texts of harvested pages.
        nouns: whether only nouns are words; see `words.lemma_counts`.

    Yields:
        (kind, table): `digests` of all pages; `fetched` of the wanted pages; `terms` and `given` (`TERM_SCHEMA`) of
        them with their `words` (`WORD_SCHEMA`); with `every` also `frequencies`, the number of pages of each word, and
        `documents`, the number of pages with text; with `lead` also `lead` (`TERM_SCHEMA`) and `sources`
        (`SOURCE_SCHEMA`); with a draw also `drawn` (`DRAWN_SCHEMA`).
    """
    digests = text_digests(table["url"], distinct=True)
    yield DIGESTS, digest_table(digests)
    ids = digests[:, 0]
    if wanted.draw is not None:
        yield DRAWN, _drawn(ids, table, wanted.draw)
    chosen = wanted.contains(ids)
    if not every:
        rows = np.flatnonzero(chosen)
        table, ids, chosen = table.take(pa.array(rows)).combine_chunks(), ids[rows], chosen[rows]
    keywords, texts = column_array(table["keywords"]), title_and_text(table)
    has_keywords = _valid(keywords)
    has_text = _valid(texts) & ~has_keywords
    yield FETCHED, _fetched(ids, table, has_keywords | has_text, chosen)
    yield from _given(ids, keywords, chosen & has_keywords)

    documents = np.flatnonzero(has_text)
    texts = texts.take(pa.array(documents))
    languages = column_array(table["language"]).take(pa.array(documents))
    languages = text_languages(texts, languages, fallback=language)
    counts = lemma_counts(texts, languages, fallback=language, nouns=nouns)
    lemma, count = counts.lemma.astype(np.int64), counts.count.astype(np.int64)
    word_digests = text_digests(counts.lemmas, distinct=True)
    if every:
        yield DOCUMENTS, pa.table([[len(documents)]], schema=COUNT_SCHEMA)
        frequency = np.bincount(lemma, minlength=len(counts.lemmas)).astype(np.int64)
        yield FREQUENCIES, pa.table([word_digests[:, 0], frequency], schema=FREQUENCY_SCHEMA)
    kept = chosen[documents[counts.document]]
    rows = documents[counts.document[kept]]
    yield TERMS, pa.table([ids[rows], word_digests[lemma[kept], 0], count[kept]], schema=TERM_SCHEMA)
    used = np.unique(lemma[kept])
    yield WORDS, words_table(counts.lemmas.take(pa.array(used)), word_digests[used])
    if lead:
        place = np.flatnonzero(chosen[documents])
        heads = pc.utf8_slice_codeunits(
            column_array(table["text"]).take(pa.array(documents[place])), 0, LEAD_CHARACTERS
        )
        texts, languages = texts.take(pa.array(place)), languages.take(pa.array(place))
        ids = ids[documents[place]]
        yield from _lead(ids, tokens_of(heads, languages, language, nouns=nouns))
        sources = pa.table([pa.array(ids), texts, languages], schema=SOURCE_SCHEMA)
        yield SOURCES, sources.filter(pa.array(members(wanted.harvested, ids)))


def lowest_ids(ids: Int64s, most: int) -> Int64s:
    """At most so many of some distinct ids, those with the lowest hashes, ascending."""
    return np.sort(ids[np.argsort(mix_bits(ids.view(np.uint64)), kind="stable")[:most]])


def _drawn(ids: Int64s, table: pa.Table, draw: Draw) -> pa.Table:
    kinds = [
        *(members(sorted_ids, ids) for sorted_ids in (draw.seed, draw.other, draw.batch)),
        mix_bits(ids.view(np.uint64)) <= draw.below,
    ]
    rows = np.flatnonzero(np.any(kinds, axis=0))
    chosen = table.take(pa.array(rows)).combine_chunks()
    keywords = pc.binary_join(column_array(chosen["keywords"]), "\n").cast(pa.large_string())
    texts, languages = pc.coalesce(keywords, title_and_text(chosen)), column_array(chosen["language"])
    return pa.table([ids[rows], *(kind[rows] for kind in kinds), texts, languages], schema=DRAWN_SCHEMA)


def fetched_pages(table: pa.Table, wanted: Wanted) -> Iterator[tuple[str, pa.Table]]:
    """`digests` and `fetched` of `read_pages`, if no words are needed; the columns are `FETCHED_COLUMNS`."""
    digests = text_digests(table["url"], distinct=True)
    yield DIGESTS, digest_table(digests)
    unread = np.zeros(table.num_rows, dtype=np.bool_)
    yield FETCHED, _fetched(digests[:, 0], table, unread, wanted.contains(digests[:, 0]))


def named_words(words: pa.Table, ids: Int64s) -> pa.Table:
    """The names of words, a table of `WORD_SCHEMA` in the order of the ids.

    Args:
        words: names (`WORD_SCHEMA`), may repeat.
        ids: sorted ids of the words that are used.

    Raises:
        RuntimeError: a word has no name.
    """
    named = distinct_rows(words.filter(pa.array(members(ids, int64s(words["word_id"])))))
    named = without_shared_ids(named, "word_id", "word")
    if named.num_rows != len(ids):
        raise RuntimeError(f"{len(ids)} words are used, but {named.num_rows} have a name")
    return named


def _lead(ids: Int64s, tokens: Tokens) -> Iterator[tuple[str, pa.Table]]:
    row, place = ragged(tokens.indptr[:-1], np.minimum(np.diff(tokens.indptr), LEAD_TOKENS))
    token = tokens.token[place]
    is_word = token < len(tokens.words)
    digests = text_digests(tokens.words, distinct=True)
    yield LEAD, word_counts(ids, row[is_word], digests[token[is_word], 0])
    yield WORDS, words_table(tokens.words, digests)


def _valid(array: pa.Array) -> Bools:
    return bools(pc.is_valid(array))


def words_table(words: pa.Array, digests: Int64s) -> pa.Table:
    """Words with their digests, a table of `WORD_SCHEMA`."""
    return pa.table([pa.array(digests[:, 0]), pa.array(digests[:, 1]), words], schema=WORD_SCHEMA)


def title_and_text(table: pa.Table) -> pa.Array:
    """Titles and texts of pages as one text, large_string[n], null where a page has neither."""
    title, text = (column_array(table[name]).cast(pa.large_string()) for name in ("title", "text"))
    either = pc.or_(pc.is_valid(title), pc.is_valid(text))
    empty = pa.scalar("", pa.large_string())
    joined = pc.binary_join_element_wise(
        pc.fill_null(title, empty), pc.fill_null(text, empty), pa.scalar("\n", pa.large_string())
    )
    return pc.if_else(either, joined, pa.scalar(None, pa.large_string()))


def _fetched(ids: Int64s, table: pa.Table, described: Bools, chosen: Bools) -> pa.Table:
    rows = np.flatnonzero(chosen)
    times, statuses = (column_array(table[name]).take(pa.array(rows)) for name in ("fetched_at", "status"))
    return pa.table([pa.array(ids[rows]), times, statuses, pa.array(described[rows])], schema=FETCHED_SCHEMA)


def _given(ids: Int64s, keywords: pa.ListArray, chosen: Bools) -> Iterator[tuple[str, pa.Table]]:
    """Given keywords, each once."""
    rows = np.flatnonzero(chosen)
    indptr, values = list_parts(keywords.take(pa.array(rows)))
    owner = entry_rows(indptr)[_valid(values)]
    words = _Words.of(owner, values.drop_null())
    spread = max(len(words.digests), 1)
    pairs = np.unique(owner * spread + words.number)
    yield GIVEN, word_counts(ids[rows], pairs // spread, words.digests[pairs % spread, 0])
    yield WORDS, words.table(words.number)


def address_words(ids: Int64s, urls: pa.Array, language: str, *, nouns: bool = False) -> tuple[pa.Table, pa.Table]:
    """Words of the addresses of distinct URLs; see `text_words`."""
    return text_words(ids, pc.binary_join(url_words(urls), " "), language, nouns=nouns)


def text_words(ids: Int64s, texts: pa.Array, language: str, *, nouns: bool = False) -> tuple[pa.Table, pa.Table]:
    """Words of short texts by URL.

    Args:
        ids: URL id of each text, int64[n].
        texts: string[n].
        language: language of the texts.
        nouns: whether only nouns are words.

    Returns:
        (counts, a table of `TERM_SCHEMA` with distinct (URL, word); words, a table of `WORD_SCHEMA`).
    """
    encoded = texts.dictionary_encode()
    indptr, values = list_parts(lemmas_of(encoded.dictionary, fallback=language, nouns=nouns))
    number = int64s(encoded.indices)
    lengths = np.diff(indptr)[number]
    owner, place = ragged(indptr[number], lengths)
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
    return pa.table(sum_rows((ids[row], word), np.ones(len(row), dtype=np.int64)), schema=TERM_SCHEMA)


def frequent_words(frequencies: pa.Table) -> pa.Table:
    """Words on at least two pages, a table of `FREQUENCY_SCHEMA` sorted by word id.

    Missing words are on one page, like most words of a web, which need not be broadcast.

    Args:
        frequencies: all counts of the words that occur in it.
    """
    word, documents = sum_rows([int64s(frequencies["word_id"])], int64s(frequencies["documents"]))
    return pa.table([word[documents > 1], documents[documents > 1]], schema=FREQUENCY_SCHEMA)
