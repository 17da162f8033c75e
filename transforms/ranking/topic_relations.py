"""Relations between words by evidence, for SemRank by the topic's lattice (P13 Def. 11 and 15, graded).

P13 makes two words equal (ISA) for which one page was clicked. Here a page counts for a word only where it contains it
(Examples 7 to 10): s_u(n) is the number of sessions that clicked page u after a query with the word n which u itself
has, for the `MOST_WORDS` words of u with the most sessions. Only pairs with a base word count, a keyword of the topic's
lattices, and only the topic's part of the log: the clicks after queries with a base word and, one step further, all
clicks on the pages that these led to. Over those pages, with a a base word:

    s(a, b) = sum of min(s_u(a), s_u(b))          sessions that agree on a page
    t(a, b) = the largest of these minima
    s(n)    = sum of s_u(n)
    S       = sum of the largest s_u(n) of each page

    l(a, b)   = s(a, b) - LARGEST_PAGE t(a, b) - DEVIATIONS sqrt(s(a, b))
    ics(a, b) = ln(l S / (s(a) s(b))) / ln(S / l)            where l > 0 and l S > s(a) s(b), else 0

l is a lower bound of the number of sessions that support a pair, without its largest page. So ics is
a lower bound of the normalised pointwise mutual information (Bouma 2009). It is in [0, 1], as s(a) + s(b) - s(a, b) is
at most S. A word keeps its `MOST_RELATIVES` relatives with the largest ics; ties are broken by number, ascending.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from scipy import sparse

from semrank.transforms.columnar.arrays import (
    Float64s,
    Int64s,
    entry_rows,
    group_starts,
    int64s,
    members,
    places_in_groups,
    ragged,
    sum_by_key,
)
from semrank.transforms.context.descriptions import Descriptions, counts_matrix

MOST_WORDS = 50
"""Largest number of words of a page that are paired, since pairs grow with its square."""

DEVIATIONS = 1.64
"""Number of standard deviations that are subtracted from a count of sessions: a one-sided bound of 95 %."""

LARGEST_PAGE = 1.0
"""Share of the sessions of a pair's largest page that is subtracted, so that no single page makes a relation."""

MOST_RELATIVES = 5
"""Largest number of relatives of a base word."""

ASKED_SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("url_id", "word", "sessions")])
"""s_u(n): number of sessions that clicked a page after queries with a word that it has."""

PAIR_SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("source", "target", "sessions", "most")])
"""s(a, b) and t(a, b) of a base word and another word over some pages."""

WORD_SCHEMA = pa.schema([pa.field("word", pa.int64()), pa.field("sessions", pa.int64())])
"""s(n) of a word; S is the value of the word `ALL`."""

ALL = -1

RELATIVE_SCHEMA = pa.schema(
    [pa.field("source", pa.int64()), pa.field("target", pa.int64()), pa.field("ics", pa.float64())]
)
"""A base word, a relative, and their similarity."""


def contained_words(known: Descriptions) -> tuple[Int64s, Int64s]:
    """(row, word) of words of queries that led to clicks on a URL which itself has them.

    A URL whose content is not known has the words of anchors, of the text around them, and of its address.
    """
    from_others = sparse.csr_array(known.anchor + known.around)
    from_others.data = from_others.data * np.repeat(~known.described, np.diff(from_others.indptr))
    own = sparse.csr_array((known.text + from_others).multiply(known.query > 0))
    own.eliminate_zeros()
    rows = entry_rows(own.indptr)
    return rows, own.indices.astype(np.int64)


def asked_words(known: Descriptions, asked: sparse.csr_array) -> pa.Table:
    """s_u(n) of known URLs, a table of `ASKED_SCHEMA`.

    Args:
        known: n URLs.
        asked: sessions that clicked each after queries with each word, CSR int64[n, v].
    """
    row, word = contained_words(known)
    sessions = np.asarray(asked[row, word], dtype=np.int64).ravel()
    kept = sessions > 0
    return pa.table([known.url[row[kept]], word[kept], sessions[kept]], schema=ASKED_SCHEMA)


def page_evidence(asked: pa.Table, base_words: Int64s) -> tuple[pa.Table, pa.Table]:
    """Sums over some pages for pairs of words (`PAIR_SCHEMA`) and for words (`WORD_SCHEMA`).

    Parts are added by `added_pairs` and `added_words`.

    Args:
        asked: rows of `ASKED_SCHEMA`, for each page in it all of its rows.
        base_words: numbers of the base words, ascending.
    """
    pages, row = np.unique(int64s(asked["url_id"]), return_inverse=True)
    words, counts = int64s(asked["word"]), int64s(asked["sessions"])
    width = int(words.max(initial=-1)) + 1
    matrix = _leading(counts_matrix(row.astype(np.int64), words, counts, (len(pages), width)))
    base = members(base_words, matrix.indices.astype(np.int64))
    owner = entry_rows(matrix.indptr)
    matrix = sparse.csr_array(matrix[np.unique(owner[base])])
    return added_pairs(_pairs(matrix, base_words)), added_words(_words(matrix))


def _leading(matrix: sparse.csr_array) -> sparse.csr_array:
    """The `MOST_WORDS` largest counts of each row, ties broken by column, ascending, CSR int64."""
    row = entry_rows(matrix.indptr)
    order = np.lexsort((matrix.indices, -matrix.data, row))
    kept = np.sort(order[np.arange(len(order)) - matrix.indptr[row[order]] < MOST_WORDS])
    return counts_matrix(row[kept], matrix.indices[kept].astype(np.int64), matrix.data[kept], matrix.shape)


def _words(matrix: sparse.csr_array) -> pa.Table:
    largest = np.zeros(0, dtype=np.int64)
    if matrix.nnz:
        largest = np.asarray(matrix.max(axis=1).toarray(), dtype=np.int64).ravel()
    words = np.concatenate([matrix.indices.astype(np.int64), np.full(len(largest), ALL, dtype=np.int64)])
    return pa.table([words, np.concatenate([matrix.data, largest])], schema=WORD_SCHEMA)


def _pairs(matrix: sparse.csr_array, base_words: Int64s) -> pa.Table:
    """Pairs of a base word and another of each page, at most the square of `MOST_WORDS` a page."""
    indptr, words = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
    row = entry_rows(indptr)
    sources = np.flatnonzero(members(base_words, words))
    owner, place = ragged(indptr[row[sources]], np.diff(indptr)[row[sources]])
    owner = sources[owner]
    other = words[owner] != words[place]
    owner, place = owner[other], place[other]
    counts = np.minimum(matrix.data[owner], matrix.data[place])
    return pa.table([words[owner], words[place], counts, counts], schema=PAIR_SCHEMA)


def added_pairs(rows: pa.Table) -> pa.Table:
    """Sums of several parts' pairs, one row per pair, a table of `PAIR_SCHEMA`."""
    merged = rows.group_by(["source", "target"]).aggregate([("sessions", "sum"), ("most", "max")])
    return merged.rename_columns(PAIR_SCHEMA.names).cast(PAIR_SCHEMA)


def added_words(rows: pa.Table) -> pa.Table:
    """Sums of several parts' words, one row per word, a table of `WORD_SCHEMA`."""
    return sum_by_key(rows, "sessions")


def relatives(pairs: pa.Table, words: pa.Table) -> pa.Table:
    """The relatives of base words, a table of `RELATIVE_SCHEMA` ascending by source and target.

    Args:
        pairs: a result of `added_pairs`, for each base word in it all of its rows.
        words: results of `page_evidence` for all words, in parts.
    """
    total, each = _sessions(words)
    source, target = int64s(pairs["source"]), int64s(pairs["target"])
    similar = similarities(int64s(pairs["sessions"]), int64s(pairs["most"]), each[source], each[target], total)
    order = np.lexsort((target, -similar, source))
    order = order[similar[order] > 0]
    starts = group_starts(source[order])
    rank = places_in_groups(starts, len(order))
    kept = order[rank < MOST_RELATIVES]
    kept = kept[np.lexsort((target[kept], source[kept]))]
    return pa.table([source[kept], target[kept], similar[kept]], schema=RELATIVE_SCHEMA)


def _sessions(words: pa.Table) -> tuple[int, Int64s]:
    """S, and s(n) of each word up to the largest number."""
    number, sessions = int64s(words["word"]), int64s(words["sessions"])
    each = np.zeros(int(number.max(initial=ALL)) + 1, dtype=np.int64)
    np.add.at(each, number[number != ALL], sessions[number != ALL])
    return int(sessions[number == ALL].sum()), each


def similarities(both: Int64s, most: Int64s, first: Int64s, second: Int64s, total: int) -> Float64s:
    """Ics of pairs of words, float64[n] in [0, 1].

    Args:
        both: s(a, b), int64[n].
        most: t(a, b), int64[n].
        first: s(a), int64[n].
        second: s(b), int64[n].
        total: S.
    """
    least = both - LARGEST_PAGE * most - DEVIATIONS * np.sqrt(both)
    found = least * total > first.astype(np.float64) * second
    similar = np.zeros(len(both))
    lift = least[found] * total / (first[found].astype(np.float64) * second[found])
    similar[found] = np.log(lift) / np.log(total / least[found])
    return np.minimum(similar, 1.0)
