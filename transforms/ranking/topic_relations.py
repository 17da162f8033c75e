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
a lower bound of the normalised pointwise mutual information (Bouma 2009). It is in [0, 1], as s(a, b) is at most s(a)
and s(b).

Part-Of(a, b) is found likewise along the followed links (u, v) between those pages, for a or b a base word:

    s(a, b) = sum of min(s_u(a), s_v(b))
    t(a, b) = the largest share of a single u in this sum
    S       = sum of the largest s_u(n) or s_v(n) of each link

and the sums of s_u(a) and of s_v(b) over all links in place of s(a) and s(b). ISA takes precedence; of Part-Of(a, b)
and Part-Of(b, a) the one with the larger s stays, neither if they are equal. Both words are relatives of each other.

By each of the two a word keeps its `MOST_RELATIVES` relatives with the largest ics; ties are broken by number,
ascending.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from scipy import sparse

from semrank.transforms.columnar.arrays import (
    Bools,
    Float64s,
    Int64s,
    bools,
    entry_rows,
    group_lengths,
    group_starts,
    int64s,
    members,
    places_in_groups,
    ragged,
    sum_by_key,
)
from semrank.transforms.context.descriptions import Descriptions

MOST_WORDS = 50
"""Largest number of words of a page that are paired, since pairs grow with its square."""

DEVIATIONS = 1.64
"""Number of standard deviations that are subtracted from a count of sessions: a one-sided bound of 95 %."""

LARGEST_PAGE = 1.0
"""Share of the sessions of a pair's largest page that is subtracted, so that no single page makes a relation."""

MOST_RELATIVES = 5
"""Largest number of relatives of a base word by ISA, and by Part-Of."""

ISA, TO, FROM = range(3)
"""Relations of a base word to another: ISA, Part-Of along links to the other's pages, Part-Of along links from them."""

REVERSED = np.array([ISA, FROM, TO], dtype=np.int64)
"""The relation of the other word to the base word."""

WANTED = {"isa": (ISA,), "part-of": (TO, FROM), "both": (ISA, TO, FROM)}
"""Relations by the option's values. ISA takes precedence even where its pairs are not wanted."""

ASKED_SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("url_id", "word", "sessions")])
"""s_u(n): number of sessions that clicked a page after queries with a word that it has."""

LEADING_SCHEMA = pa.schema([*ASKED_SCHEMA, pa.field("base", pa.bool_())])
"""s_u(n) of the words of a page that count, and whether each is a base word."""

PAIR_SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("relation", "source", "target", "sessions", "most")])
"""s(a, b) and t(a, b) of a base word and another word over some pages or links."""

WORD_SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("relation", "word", "sessions")])
"""s(n) of a word, over all links of which it is at the source (`TO`) or target (`FROM`); S has the word `ALL`."""

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


def leading_words(asked: pa.Table, base_words: Int64s) -> pa.Table:
    """The words that count of the pages with a base word, a table of `LEADING_SCHEMA` ascending by page.

    Args:
        asked: rows of `ASKED_SCHEMA`, for each page in it all of its rows.
        base_words: numbers of the base words, ascending.
    """
    url, word, sessions = (int64s(asked[name]) for name in ASKED_SCHEMA.names)
    order = np.lexsort((word, -sessions, url))
    leading = order[places_in_groups(group_starts(url[order]), len(order)) < MOST_WORDS]
    base = members(base_words, word[leading])
    of_topic = members(np.unique(url[leading[base]]), url[leading])
    kept = leading[of_topic]
    return pa.table([url[kept], word[kept], sessions[kept], base[of_topic]], schema=LEADING_SCHEMA)


def page_evidence(leading: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Sums for ISA over some pages, for pairs of words (`PAIR_SCHEMA`) and for words (`WORD_SCHEMA`).

    Parts are added by `added_pairs` and `added_words`.

    Args:
        leading: a result of `leading_words`.
    """
    page, word, sessions = (int64s(leading[name]) for name in ASKED_SCHEMA.names)
    starts = group_starts(page)
    lengths = group_lengths(starts, len(page))
    row = np.repeat(np.arange(len(starts)), lengths)
    sources = np.flatnonzero(bools(leading["base"]))
    owner, place = ragged(starts[row[sources]], lengths[row[sources]])
    owner = sources[owner]
    other = owner != place
    owner, place = owner[other], place[other]
    pairs = pair_rows(ISA, word[owner], word[place], np.minimum(sessions[owner], sessions[place]))
    largest = group_maxima(sessions, starts)
    words = [word_rows(ISA, word, sessions), word_rows(ISA, np.full(len(starts), ALL, dtype=np.int64), largest)]
    return added_pairs(pairs), added_words(pa.concat_tables(words))


def pair_rows(relation: int, source: Int64s, target: Int64s, sessions: Int64s) -> pa.Table:
    """Pairs of one page, a table of `PAIR_SCHEMA`."""
    same = np.full(len(source), relation, dtype=np.int64)
    return pa.table([same, source, target, sessions, sessions], schema=PAIR_SCHEMA)


def word_rows(relation: int, word: Int64s, sessions: Int64s) -> pa.Table:
    """Sessions of words, a table of `WORD_SCHEMA`."""
    return pa.table([np.full(len(word), relation, dtype=np.int64), word, sessions], schema=WORD_SCHEMA)


def group_maxima(values: Int64s, starts: Int64s) -> Int64s:
    """The largest value of each group that begins at `starts`, int64[len(starts)]."""
    return np.maximum.reduceat(values, starts) if len(starts) else values


def added_pairs(rows: pa.Table) -> pa.Table:
    """Sums of several parts' pairs, one row per relation and pair, a table of `PAIR_SCHEMA`."""
    merged = rows.group_by(["relation", "source", "target"]).aggregate([("sessions", "sum"), ("most", "max")])
    return merged.rename_columns(PAIR_SCHEMA.names).cast(PAIR_SCHEMA)


def added_words(rows: pa.Table) -> pa.Table:
    """Sums of several parts' words, one row per relation and word, a table of `WORD_SCHEMA`."""
    return sum_by_key(rows, "sessions")


def relatives(pairs: pa.Table, words: pa.Table, which: str) -> pa.Table:
    """The relatives of base words, a table of `RELATIVE_SCHEMA` ascending by source and target.

    Args:
        pairs: a result of `added_pairs`, for each base word in it all of its rows.
        words: results of `page_evidence`, and of `link_evidence` where Part-Of is wanted, for all words, in parts.
        which: the relations, one of `WANTED`.
    """
    total, each = _sessions(words)
    relation, source, target, both, most = (int64s(pairs[name]) for name in PAIR_SCHEMA.names)
    first, second = each[relation, source], each[REVERSED[relation], target]
    similar = similarities(both, most, first, second, total[relation])
    wanted = np.isin(relation, WANTED[which]) & _prevailing(relation, source, target, both, similar > 0)
    similar[~wanted] = 0.0
    isa = relation == ISA
    order = np.lexsort((target, -similar, isa, source))
    order = order[similar[order] > 0]
    kept = order[places_in_groups(group_starts(source[order], isa[order]), len(order)) < MOST_RELATIVES]
    kept = kept[np.lexsort((target[kept], source[kept]))]
    return pa.table([source[kept], target[kept], similar[kept]], schema=RELATIVE_SCHEMA)


def _prevailing(relation: Int64s, source: Int64s, target: Int64s, both: Int64s, similar: Bools) -> Bools:
    """Whether no other relation of the same pair takes precedence, bool[n]."""
    width = int(target.max(initial=0)) + 1
    pairs, pair = np.unique(source * width + target, return_inverse=True)
    isa = np.zeros(len(pairs), dtype=np.bool_)
    isa[pair[similar & (relation == ISA)]] = True
    sessions = np.zeros((len(pairs), len(REVERSED)), dtype=np.int64)
    sessions[pair, relation] = both
    better = both > sessions[pair, REVERSED[relation]]
    return np.asarray((relation == ISA) | (better & ~isa[pair]), dtype=np.bool_)


def _sessions(words: pa.Table) -> tuple[Int64s, Int64s]:
    """S by relation, and s(n) by relation and word up to the largest number."""
    relation, number, sessions = (int64s(words[name]) for name in WORD_SCHEMA.names)
    # The number of `ALL` is the last place.
    each = np.zeros((len(REVERSED), int(number.max(initial=ALL)) + 2), dtype=np.int64)
    np.add.at(each, (relation, number), sessions)
    return each[:, ALL], each


def similarities(both: Int64s, most: Int64s, first: Int64s, second: Int64s, total: Int64s) -> Float64s:
    """Ics of pairs of words, float64[n] in [0, 1].

    Args:
        both: s(a, b), int64[n].
        most: t(a, b), int64[n].
        first: s(a), int64[n].
        second: s(b), int64[n].
        total: S, int64[n].
    """
    least = both - LARGEST_PAGE * most - DEVIATIONS * np.sqrt(both)
    chance = first.astype(np.float64) * second
    found = least * total > chance
    least, total, chance = least[found], total[found], chance[found]
    similar = np.zeros(len(both))
    similar[found] = np.log(least * total / chance) / np.log(total / least)
    return np.minimum(similar, 1.0)
