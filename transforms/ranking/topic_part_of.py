"""Part-Of between words by evidence, along links; see `topic_relations`.

The words of a link's target are sent to its source, where pairs are made: a page has few links, while many may lead to
it. Equal rows of a source are added at once, so that its work grows with its targets' words and not with its links.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from semrank.transforms.columnar.arrays import (
    Int64s,
    bools,
    concatenate,
    distinct_rows,
    entry_rows,
    fold_tables,
    group_lengths,
    group_starts,
    group_sums,
    int64s,
    members,
    positions,
    ragged,
    sort_rows,
    sum_by_key,
)
from semrank.transforms.context.links import LINK_SCHEMA
from semrank.transforms.lattice.search_space import chunks
from semrank.transforms.ranking.topic_relations import (
    ALL,
    FROM,
    LEADING_SCHEMA,
    PAIR_SCHEMA,
    TO,
    WANTED,
    added_pairs,
    added_words,
    group_maxima,
    leading_words,
    page_evidence,
    pair_rows,
    relatives,
    word_rows,
)

SENT_SCHEMA = pa.schema([*LEADING_SCHEMA, pa.field("links", pa.int64())])
"""How many links of a page lead to pages v with s_v(n) `sessions`; the word `ALL` has the largest s_v(n) of each v."""

ROWS_AT_ONCE = 1 << 20
"""Number of words or pairs of words that are made at a time."""


def sent_words(leading: pa.Table, links: pa.Table) -> Iterator[pa.Table]:
    """The words of links' targets by their sources, tables of `SENT_SCHEMA` in parts, which `added_sent` adds.

    Args:
        leading: a result of `leading_words`, in any order.
        links: followed links (`links.LINK_SCHEMA`), for each target in it all of its rows.
    """
    words = sort_rows(concatenate([leading, _largest(leading)], LEADING_SCHEMA), "url_id")
    page = int64s(words["url_id"])
    links = distinct_rows(links.filter(pc.not_equal(links["source_id"], links["target_id"])))
    source, target = int64s(links["source_id"]), int64s(links["target_id"])
    begin = np.searchsorted(page, target, side="left")
    lengths = np.searchsorted(page, target, side="right") - begin
    for part in chunks(lengths, ROWS_AT_ONCE):
        link, place = ragged(begin[part], lengths[part])
        rows = words.take(pa.array(place)).set_column(0, SENT_SCHEMA.field("url_id"), pa.array(source[part][link]))
        yield added_sent(rows.append_column(SENT_SCHEMA.field("links"), pa.array(np.ones(len(link), dtype=np.int64))))


def _largest(leading: pa.Table) -> pa.Table:
    """The largest s_u(n) of each page as a row of the word `ALL`, a table of `LEADING_SCHEMA`."""
    most = leading.group_by("url_id").aggregate([("sessions", "max")])
    columns = [most["url_id"], pa.repeat(ALL, len(most)), most["sessions_max"], pa.repeat(False, len(most))]
    return pa.table(columns, schema=LEADING_SCHEMA)


def added_sent(rows: pa.Table) -> pa.Table:
    """Sums of several parts' words of targets, a table of `SENT_SCHEMA`."""
    return sum_by_key(rows, "links")


def link_evidence(leading: pa.Table, sent: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Sums for Part-Of over the links of some pages, as `topic_relations.page_evidence` gives them for ISA.

    Args:
        leading: a result of `leading_words`, in any order.
        sent: results of `sent_words` for these pages, in parts; rows of other pages are left out.
    """
    leading = sort_rows(leading, "url_id")
    starts = group_starts(int64s(leading["url_id"]))
    pages = int64s(leading["url_id"])[starts]
    sent = sort_rows(added_sent(sent.filter(pa.array(members(pages, int64s(sent["url_id"]))))), "url_id")
    row = positions(pages, int64s(sent["url_id"]))
    whole = bools(pc.equal(sent["word"], ALL))
    words, targets = sent.filter(pa.array(~whole)), sent.filter(pa.array(whole))
    pairs = fold_tables(_pairs(leading, starts, words, row[~whole]), added_pairs, PAIR_SCHEMA, ROWS_AT_ONCE)
    return pairs, added_words(pa.concat_tables([_sources(leading, starts, targets, row[whole]), _targets(words)]))


def _pairs(leading: pa.Table, starts: Int64s, sent: pa.Table, row: Int64s) -> Iterator[pa.Table]:
    """Pairs of a word of a page and one sent to it, one of them a base word, tables of `PAIR_SCHEMA` by whole pages.

    Args:
        leading: words of pages, ascending by page.
        starts: where each page begins in it.
        sent: words sent, ascending by page.
        row: number of the page of each, int64[sent].
    """
    lengths = group_lengths(starts, leading.num_rows)
    bounds = np.append(group_starts(row), len(row))
    for part in chunks(group_sums(lengths[row], bounds[:-1]), ROWS_AT_ONCE):
        low, high = bounds[part.start], bounds[part.stop]
        owner, place = ragged(starts[row[low:high]], lengths[row[low:high]])
        first, second = leading.take(pa.array(place)), sent.take(pa.array(owner + low))
        least = pc.min_element_wise(first["sessions"], second["sessions"])
        names = ("page", "source", "target", "source_base", "target_base", "sessions")
        columns = [first["url_id"], first["word"], second["word"], first["base"], second["base"]]
        made = pa.table([*columns, pc.multiply(least, second["links"])], names=names)
        wanted = pc.and_(pc.or_(made["source_base"], made["target_base"]), pc.not_equal(made["source"], made["target"]))
        by_page = sum_by_key(made.filter(wanted), "sessions")
        of_source, of_target = by_page.filter(by_page["source_base"]), by_page.filter(by_page["target_base"])
        forward = pair_rows(TO, *(int64s(of_source[name]) for name in ("source", "target", "sessions")))
        backward = pair_rows(FROM, *(int64s(of_target[name]) for name in ("target", "source", "sessions")))
        yield added_pairs(pa.concat_tables([forward, backward]))


def _sources(leading: pa.Table, starts: Int64s, targets: pa.Table, row: Int64s) -> pa.Table:
    """Sums of s_u(n) over links and S, a table of `WORD_SCHEMA`; the last two arguments are the rows of `ALL` sent."""
    word, sessions = int64s(leading["word"]), int64s(leading["sessions"])
    links, largest = int64s(targets["links"]), int64s(targets["sessions"])
    degree = np.zeros(len(starts), dtype=np.int64)
    np.add.at(degree, row, links)
    total = int((links * np.maximum(group_maxima(sessions, starts)[row], largest)).sum())
    every, totals = np.full(1, ALL, dtype=np.int64), np.full(1, total, dtype=np.int64)
    over_links = word_rows(TO, word, sessions * np.repeat(degree, group_lengths(starts, len(word))))
    return pa.concat_tables([over_links, word_rows(TO, every, totals), word_rows(FROM, every, totals)])


def _targets(sent: pa.Table) -> pa.Table:
    """Sums of s_v(n) over links, a table of `WORD_SCHEMA`."""
    return word_rows(FROM, int64s(sent["word"]), int64s(sent["links"]) * int64s(sent["sessions"]))


def learned_relatives(
    asked: pa.Table, links: sparse.csr_array, base_words: Int64s, urls: Int64s, which: str
) -> pa.Table:
    """The relatives of base words of a crawl in memory, a table of `RELATIVE_SCHEMA`.

    Args:
        asked: a result of `topic_relations.asked_words`.
        links: 1 where a followed link leads from one URL to another, CSR int64[n, n].
        base_words: numbers of the base words, ascending.
        urls: ids of the URLs, int64[n].
        which: the relations, one of `topic_relations.WANTED`.
    """
    leading = leading_words(asked, base_words)
    if TO not in WANTED[which]:
        return relatives(*page_evidence(leading), which)
    followed = pa.table([urls[entry_rows(links.indptr)], urls[links.indices]], schema=LINK_SCHEMA)
    sent = concatenate(sent_words(leading, followed), SENT_SCHEMA)
    pairs, words = zip(page_evidence(leading), link_evidence(leading, sent), strict=True)
    return relatives(pa.concat_tables(pairs), pa.concat_tables(words), which)
