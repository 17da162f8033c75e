"""The words of URLs, and those of the topic: what the rankers by content compare.

A URL whose content is known has the words of its text, any other the words about it: those of anchors, of
the text around them and of its address, and, each once, those of queries that led to clicks on it (often clicked
pages would otherwise have no words but those). The topic has the words of all seeds together, and the query's, each
once more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from semrank.transforms.columnar.arrays import Float64s, Int64s, bools, column_array, int64s, sum_by_key
from semrank.transforms.context.descriptions import Descriptions
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.ranking.reasons import Term
from semrank.transforms.ranking.scores import SCORE_DECIMALS, SCORED_SCHEMA
from semrank.transforms.ranking.vectors import with_data

WORD_COUNT_SCHEMA = pa.schema([pa.field("word", pa.int64()), pa.field("count", pa.int64())])
"""How often a word, by its number, occurs in the seeds."""

SIZE_SCHEMA = pa.schema([pa.field("urls", pa.int64()), pa.field("words", pa.int64())])
"""Number of URLs of a part of the known ones, and of their words' occurrences; parts are added."""


def page_words(descriptions: Descriptions) -> sparse.csr_array:
    """Occurrences of words that a URL is judged by, CSR int64[n, v] with ascending word numbers and no zeros."""
    if descriptions.described.all():
        words = descriptions.text.copy()
    else:
        from_others = words_of_others(descriptions)
        from_others.data *= np.repeat(~descriptions.described, np.diff(from_others.indptr))
        words = sparse.csr_array(descriptions.text + from_others)
    words.sum_duplicates()
    words.eliminate_zeros()
    return words


def words_of_others(descriptions: Descriptions) -> sparse.csr_array:
    """Occurrences of words about a URL, whether its content is known or not, in the form of `page_words`."""
    query = descriptions.query
    clicked = with_data(query, (query.data > 0).astype(np.int64))
    words = sparse.csr_array(descriptions.anchor + descriptions.around + clicked)
    words.sum_duplicates()
    words.eliminate_zeros()
    return words


def row_sums(matrix: sparse.csr_array) -> Float64s:
    """The sum of each row, added from left to right, float64[n]."""
    return np.asarray(matrix.astype(np.float64) @ np.ones(matrix.shape[1]), dtype=np.float64)


def seed_words(descriptions: Descriptions) -> pa.Table:
    """Words of the seeds of a part, a table of `WORD_COUNT_SCHEMA`; parts are added by `added_words`."""
    words = page_words(descriptions.select(descriptions.seed))
    counts = np.zeros(words.shape[1], dtype=np.int64)
    np.add.at(counts, words.indices, words.data)
    found = np.flatnonzero(counts)
    return pa.table([found.astype(np.int64), counts[found]], schema=WORD_COUNT_SCHEMA)


def added_words(counts: pa.Table) -> pa.Table:
    """Word counts of several parts added up, a table of `WORD_COUNT_SCHEMA`."""
    return sum_by_key(counts, "count")


def collection_size(descriptions: Descriptions) -> pa.Table:
    """Size of a part of the known URLs, a table of `SIZE_SCHEMA` with one row."""
    return pa.table([[len(descriptions)], [int(page_words(descriptions).data.sum())]], schema=SIZE_SCHEMA)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The words, by number.

    Attributes:
        words: ascending, string[v].
        documents: number of known URLs that have the word, int64[v].
    """

    words: pa.Array
    documents: Int64s

    @classmethod
    def of_table(cls, table: pa.Table | None) -> Vocabulary:
        """The words of a table with `word` and `documents`, in the order of its rows."""
        if table is None:
            return cls(pa.array([], pa.string()), np.zeros(0, dtype=np.int64))
        return cls(column_array(table["word"]), int64s(table["documents"]))

    @classmethod
    def of_facts(cls, facts: Facts) -> Vocabulary:
        """The words of a crawl in memory."""
        return cls(facts.words, facts.document_counts)

    def numbers(self, words: Iterable[str]) -> Int64s:
        """Numbers of words, ascending, each once; unknown words have none."""
        return np.flatnonzero(bools(pc.is_in(self.words, value_set=pa.array(sorted(set(words)), pa.string()))))


@dataclass(frozen=True, eq=False)
class Topic:
    """What is looked for, and the collection that it is looked for in.

    Attributes:
        vocabulary: the words.
        seeds: occurrences of each word in the seeds, int64[v].
        query: numbers of the query's words, ascending, each once, int64.
        urls: number of known URLs.
        length: occurrences of words in all known URLs.
    """

    vocabulary: Vocabulary
    seeds: Int64s
    query: Int64s
    urls: int
    length: int

    @classmethod
    def of_parts(cls, vocabulary: Vocabulary, query: Int64s, counts: pa.Table | None, sizes: pa.Table | None) -> Topic:
        """The topic from what the parts counted.

        Args:
            vocabulary: the words.
            query: numbers of the query's words.
            counts: rows of `WORD_COUNT_SCHEMA` of all parts, in any order.
            sizes: rows of `SIZE_SCHEMA` of all parts, in any order.
        """
        seeds = np.zeros(len(vocabulary.documents), dtype=np.int64)
        if counts is not None:
            np.add.at(seeds, int64s(counts["word"]), int64s(counts["count"]))
        urls, length = (0, 0) if sizes is None else (int(pc.sum(sizes[name]).as_py()) for name in SIZE_SCHEMA.names)
        return cls(vocabulary, seeds, np.unique(query), urls, length)

    @classmethod
    def of_facts(cls, facts: Facts) -> Topic:
        """The topic of a crawl in memory, which is one part."""
        counts, size = seed_words(facts.descriptions), collection_size(facts.descriptions)
        return cls.of_parts(Vocabulary.of_facts(facts), facts.query, counts, size)

    @property
    def counts(self) -> Int64s:
        """Occurrences of each word in the seeds and the query together, int64[v]."""
        counts = self.seeds.copy()
        counts[self.query] += 1
        return counts

    @property
    def collection_frequency_weights(self) -> Float64s:
        """cfw(t) = ln(n / n_t) of P13 Eq. 2, not below 0, float64[v].

        A word that no URL has counts as one that a single URL has.
        """
        shares = np.maximum(self.urls, 1) / np.maximum(self.vocabulary.documents, 1)
        return np.asarray(np.maximum(np.log(shares), 0.0), dtype=np.float64)


def known_words(descriptions: Descriptions, words: sparse.csr_array) -> Term:
    """Informs how many words a URL was judged by, and where they come from."""
    sources = pa.array(["anchors, their surroundings, address and queries", "own text"])
    detail = sources.take(pa.array(descriptions.described.astype(np.int64)))
    return Term("words", row_sums(words), detail=detail)


def scored(url: Int64s, score: Float64s, reasons: pa.Array) -> pa.Table:
    """URLs with their rounded scores, a table of `SCORED_SCHEMA`."""
    return pa.table([pa.array(url), pa.array(np.round(score, SCORE_DECIMALS)), reasons], schema=SCORED_SCHEMA)
