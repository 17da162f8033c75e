"""Descriptions of URLs from the evidence of pages, links and clicks.

A page contributes its own words. A followed link from a harvested page contributes the words of its anchor, and those
around the anchor in the page's text, to its target. Clicks contribute words of queries, and pages that were clicked one
after the other. Links from a page to itself are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.columnar.arrays import (
    MAIN,
    Bools,
    Int64s,
    bools,
    bounded_slices,
    column_array,
    distinct_rows,
    entry_rows,
    group_starts,
    int64s,
    list_column,
    list_parts,
    optional_int64s,
    positions,
    ragged,
    row_keys,
    row_pointers,
    sum_rows,
)
from semrank.transforms.columnar.ids import text_digests
from semrank.transforms.context import pages
from semrank.transforms.context.descriptions import BLOCKS, DESCRIPTION_SCHEMA
from semrank.transforms.context.evidence import Evidence
from semrank.transforms.context.links import Links
from semrank.transforms.context.pages import SOURCE_SCHEMA, WORDS, word_counts, words_table
from semrank.transforms.context.tokens import Tokens, tokens_of

AROUND_TOKENS = 12
"""Tokens before and after an anchor whose words describe its target: about a sentence."""

LINKERS, ANCHORED, ANCHOR, AROUND, SUPPORTS = "linkers", "anchored", "anchor", "around", "supports"

ANCHORED_SCHEMA = pa.schema(
    [pa.field("url_id", pa.int64()), pa.field("target_id", pa.int64()), pa.field("anchor", pa.string())]
)
"""A followed link with an anchor from a page, `url_id`, to another."""

NEIGHBOUR_SCHEMA = pa.schema(
    [pa.field("url_id", pa.int64()), pa.field("place", pa.int64()), pa.field("count", pa.int64())]
)
"""A harvested URL, by its position, that links to a URL or was clicked before or after it, and how often."""

HARVESTED_SCHEMA = pa.schema([pa.field("url_id", pa.int64()), pa.field("seed", pa.bool_())])

SUPPORT_SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("word_id", "places", "documents")])
"""Number of blocks of URLs with a word, and number of URLs with it as documents."""

VOCABULARY_SCHEMA = pa.schema(
    [pa.field("word", pa.string()), pa.field("word_id", pa.int64()), pa.field("documents", pa.int64())]
)
"""A word, numbered in ascending order; `documents` is the number of known URLs that have it."""

MIN_PLACES = 2
"""A word in a single block of a single URL does not relate it to others."""


def link_evidence(table: pa.Table, links: Links, harvested: Int64s) -> Iterator[tuple[str, pa.Table]]:
    """Evidence of a part of the links table about the URLs that harvested pages link to.

    Args:
        table: columns `links.COLUMNS` of the links table.
        links: its rows as ids.
        harvested: sorted ids of the harvested URLs.

    Yields:
        (kind, table): `linkers` (`NEIGHBOUR_SCHEMA`); `anchored` (`ANCHORED_SCHEMA`).
    """
    place = positions(harvested, links.source)
    kept = (place >= 0) & links.followed & (links.source != links.target)
    yield LINKERS, _neighbours(links.target[kept], place[kept], np.ones(int(kept.sum()), dtype=np.int64))

    anchors = column_array(table["anchor_text"])
    rows = np.flatnonzero(kept & bools(pc.is_valid(anchors)))
    anchored = [pa.array(links.source[rows]), pa.array(links.target[rows]), anchors.take(pa.array(rows))]
    yield ANCHORED, distinct_rows(pa.table(anchored, schema=ANCHORED_SCHEMA))


def click_evidence(edges: pa.Table, harvested: Int64s) -> pa.Table:
    """Clicks between harvested URLs and any others, in both directions, a table of `NEIGHBOUR_SCHEMA`.

    Args:
        edges: distinct c-edges: source, target, clicks.
        harvested: sorted ids of the harvested URLs.
    """
    source, target, clicks = (int64s(edges[name]) for name in ("source", "target", "clicks"))
    from_place, to_place = positions(harvested, source), positions(harvested, target)
    leaves, enters = from_place >= 0, to_place >= 0
    return _neighbours(
        np.concatenate([target[leaves], source[enters]]),
        np.concatenate([from_place[leaves], to_place[enters]]),
        np.concatenate([clicks[leaves], clicks[enters]]),
    )


def _neighbours(url: Int64s, place: Int64s, count: Int64s) -> pa.Table:
    """Sums of counts by (URL, place), a table of `NEIGHBOUR_SCHEMA` sorted by them."""
    return pa.table(sum_rows((url, place), count), schema=NEIGHBOUR_SCHEMA)


@dataclass(frozen=True, eq=False)
class AnchorWords:
    """Words of n anchors, and those around them in the pages' texts, with repetitions.

    Attributes:
        anchor_row: number of the anchor of each word of an anchor, int64.
        anchor_word: number of the word, int64.
        around_row: number of the anchor of each word around one, int64.
        around_word: number of the word, int64.
        words: the distinct words, string[w].
    """

    anchor_row: Int64s
    anchor_word: Int64s
    around_row: Int64s
    around_word: Int64s
    words: pa.Array


def anchor_words(sources: pa.Table | None, anchored: pa.Table, language: str, *, nouns: bool = False) -> AnchorWords:
    """Words of anchors in the language of their page, and the words around each in that page's text.

    An anchor's position is the first occurrence of its sequence of tokens in title and text; around it are the
    `AROUND_TOKENS` tokens before and after. Tokens are compared by their lemmas.

    Args:
        sources: texts of pages (`SOURCE_SCHEMA`).
        anchored: links (`ANCHORED_SCHEMA`), n rows.
        language: language of anchors on pages without a text.
        nouns: whether only nouns are words.
    """
    sources = SOURCE_SCHEMA.empty_table() if sources is None else sources.sort_by("url_id").combine_chunks()
    page = positions(int64s(sources["url_id"]), int64s(anchored["url_id"]))
    languages = column_array(sources["language"])
    anchor_languages = languages.take(pa.array(np.maximum(page, 0), mask=page < 0))
    tokens = tokens_of(
        pa.concat_arrays([column_array(sources["text"]), column_array(anchored["anchor"]).cast(pa.large_string())]),
        pa.concat_arrays([languages, anchor_languages]),
        language,
        nouns=nouns,
    )
    start, length = tokens.indptr[:-1], np.diff(tokens.indptr)
    pages = sources.num_rows
    row, place = ragged(start[pages:], length[pages:])
    is_word = tokens.token[place] < len(tokens.words)
    found = _first_places(tokens, pages, page)

    rows = np.flatnonzero(found >= 0)
    begin, end = start[page[rows]], start[page[rows]] + length[page[rows]]
    after = found[rows] + length[pages + rows]
    before_from = np.maximum(found[rows] - AROUND_TOKENS, begin)
    after_to = np.minimum(after + AROUND_TOKENS, end)
    owner, near = ragged(
        np.concatenate([before_from, after]), np.concatenate([found[rows] - before_from, after_to - after])
    )
    owner = np.concatenate([rows, rows])[owner]
    near_word = tokens.token[near] < len(tokens.words)
    return AnchorWords(
        row[is_word], tokens.token[place[is_word]], owner[near_word], tokens.token[near[near_word]], tokens.words
    )


def _first_places(tokens: Tokens, pages: int, page: Int64s) -> Int64s:
    """Position of the first occurrence of each anchor's tokens in its page, -1 if there is none, int64[n].

    Args:
        tokens: those of the pages, then those of the anchors.
        pages: number of pages.
        page: page of each anchor, -1 if it has none.
    """
    start, length = tokens.indptr[:-1], np.diff(tokens.indptr)
    end = int(tokens.indptr[pages])
    kinds = int(tokens.token.max()) + 1 if len(tokens.token) else 1
    owner = np.repeat(np.arange(pages, dtype=np.int64), length[:pages])
    key = owner * kinds + tokens.token[:end]
    order = np.argsort(key, kind="stable")
    key = key[order]

    # Each anchor is searched for by its rarest token on the page.
    anchor, place = ragged(start[pages:], np.where(page >= 0, length[pages:], 0))
    wanted = page[anchor] * kinds + tokens.token[place]
    low, high = np.searchsorted(key, wanted), np.searchsorted(key, wanted, side="right")
    rarest = np.lexsort((place, high - low, anchor))
    rarest = rarest[group_starts(anchor[rarest])]
    candidate, position = ragged(low[rarest], (high - low)[rarest])
    chosen = rarest[candidate]
    number = anchor[chosen]
    first = order[position] - (place[chosen] - start[pages + number])

    begin = start[page[number]]
    fits = (first >= begin) & (first + length[pages + number] <= begin + length[page[number]])
    number, first = number[fits], first[fits]
    offset = 0
    matching = np.arange(len(number))
    alive = np.ones(len(number), dtype=np.bool_)
    while len(matching):
        matching = matching[length[pages + number[matching]] > offset]
        same = tokens.token[first[matching] + offset] == tokens.token[start[pages + number[matching]] + offset]
        alive[matching[~same]] = False
        matching = matching[same]
        offset += 1
    number, first = number[alive], first[alive]
    found = np.full(len(page), -1, dtype=np.int64)
    order = np.lexsort((first, number))
    starts = group_starts(number[order])
    found[number[order][starts]] = first[order][starts]
    return found


def anchor_evidence(
    sources: pa.Table | None, anchored: pa.Table | None, language: str, *, nouns: bool = False
) -> Iterator[tuple[str, pa.Table]]:
    """Evidence of the anchors of some pages about the URLs they point to.

    Args:
        sources: texts of these pages (`SOURCE_SCHEMA`).
        anchored: their links (`ANCHORED_SCHEMA`); equal ones count once.
        language: language of anchors on pages without a text.
        nouns: whether only nouns are words.

    Yields:
        (kind, table): `anchor` and `around` (`TERM_SCHEMA`) and their `words`.
    """
    if anchored is None:
        return
    anchored = distinct_rows(anchored)
    found = anchor_words(sources, anchored, language, nouns=nouns)
    targets = int64s(anchored["target_id"])
    digests = text_digests(found.words, distinct=True)
    yield ANCHOR, word_counts(targets, found.anchor_row, digests[found.anchor_word, 0])
    yield AROUND, word_counts(targets, found.around_row, digests[found.around_word, 0])
    yield WORDS, words_table(found.words, digests)


def describe_urls(evidence: Evidence, harvested: Int64s) -> Iterator[tuple[str, pa.Table]]:
    """The descriptions of a partition's known URLs.

    Args:
        evidence: the partition's rows; rows about URLs that are neither harvested nor current are left out.
        harvested: sorted ids of all harvested URLs.

    Yields:
        (kind, table): `main`, bounded tables of `DESCRIPTION_SCHEMA` with word ids, ascending by URL id; `supports`
        (`SUPPORT_SCHEMA`) of the words, each word once.
    """
    seeds = HARVESTED_SCHEMA.empty_table() if evidence.harvested is None else evidence.harvested.sort_by("url_id")
    seed_ids = int64s(seeds["url_id"])
    found = optional_int64s(evidence.discovered, "url_id")
    ids = np.union1d(seed_ids, found)
    place = positions(harvested, ids)
    fetched, described = _page_flags(evidence.fetched, ids)
    seed = bools(seeds["seed"])[np.maximum(positions(seed_ids, ids), 0)] if len(seed_ids) else np.zeros_like(fetched)
    flags = [seed & (place >= 0), place >= 0, place < 0, fetched, described]

    blocks = {
        "text": _counts(evidence.terms, ids, evidence.given),
        "lead": _counts(evidence.lead, ids),
        "anchor": _counts(evidence.anchor, ids, evidence.addresses),
        "around": _counts(evidence.around, ids),
        "query": _counts(evidence.clicked, ids),
    }
    columns = [pa.array(ids), *map(pa.array, flags), pa.array(place)]
    for name in BLOCKS:
        columns += blocks[name].columns(len(ids))
    columns += _counts(evidence.near, ids).columns(len(ids))
    columns.append(_counts(evidence.linkers, ids).columns(len(ids))[0])
    yield from ((MAIN, piece) for piece in bounded_slices(pa.table(columns, schema=DESCRIPTION_SCHEMA)))
    yield SUPPORTS, _supports(blocks, described)


@dataclass(frozen=True, eq=False)
class _Counts:
    """Counts by (row, key), sorted by them, each pair once."""

    row: Int64s
    key: Int64s
    count: Int64s

    def columns(self, rows: int) -> list[pa.Array]:
        """Keys and counts as list columns."""
        indptr = row_pointers(self.row, rows)
        return [list_column(pa.array(self.key), indptr), list_column(pa.array(self.count), indptr)]


def _counts(table: pa.Table | None, ids: Int64s, further: pa.Table | None = None) -> _Counts:
    """Sums of the counts of two tables (URL id, key, count) about known URLs."""
    tables = [table for table in (table, further) if table is not None]
    columns = [np.concatenate([np.zeros(0, dtype=np.int64), *(int64s(t.column(k)) for t in tables)]) for k in range(3)]
    row = positions(ids, columns[0])
    kept = row >= 0
    return _Counts(*sum_rows((row[kept], columns[1][kept]), columns[2][kept]))


def _page_flags(fetched: pa.Table | None, ids: Int64s) -> tuple[Bools, Bools]:
    """Whether each URL was fetched, and whether its own content is known."""
    if fetched is None:
        return np.zeros(len(ids), dtype=np.bool_), np.zeros(len(ids), dtype=np.bool_)
    fetched = fetched.sort_by("url_id")
    place = positions(int64s(fetched["url_id"]), ids)
    found = place >= 0
    return found, found & bools(fetched["described"])[np.maximum(place, 0)]


def _supports(blocks: dict[str, _Counts], described: Bools) -> pa.Table:
    """Number of blocks with each word, and number of URLs with it; see `facts.document_words`."""
    places = np.concatenate([blocks[name].key for name in BLOCKS])
    words = [blocks["text"], blocks["anchor"], blocks["around"]]
    row = np.concatenate([block.row for block in words])
    key = np.concatenate([block.key for block in words])
    own = np.repeat([True, False, False], [len(block.row) for block in words])
    kept = described[row] == own
    row, key = row[kept], key[kept]
    pairs = row_keys(key, row)
    order = np.argsort(pairs)
    first = order[group_starts(pairs[order])]
    word, number = np.unique(places, return_inverse=True)
    documents = np.zeros(len(word), dtype=np.int64)
    np.add.at(documents, np.searchsorted(word, key[first]), 1)
    counts = np.bincount(number, minlength=len(word)).astype(np.int64)
    return pa.table([word, counts, documents], schema=SUPPORT_SCHEMA)


def vocabulary_part(supports: pa.Table | None, words: pa.Table | None) -> pa.Table:
    """The words of one partition in at least `MIN_PLACES` blocks, a table of `VOCABULARY_SCHEMA`.

    Args:
        supports: all supports of these words (`SUPPORT_SCHEMA`).
        words: their names (`WORD_SCHEMA`), may repeat.

    Raises:
        RuntimeError: a word has no name.
    """
    if supports is None or words is None:
        return VOCABULARY_SCHEMA.empty_table()
    summed = supports.group_by("word_id").aggregate([("places", "sum"), ("documents", "sum")])
    used = summed.filter(pc.greater_equal(summed["places_sum"], MIN_PLACES)).sort_by("word_id").combine_chunks()
    ids = int64s(used["word_id"])
    named = pages.named_words(words, ids)
    return pa.table([named["word"], named["word_id"], used["documents_sum"]], schema=VOCABULARY_SCHEMA)


@dataclass(frozen=True, eq=False)
class WordNumbers:
    """The ids of the vocabulary's words, sorted, with the number of each; int64[v]."""

    ids: Int64s
    numbers: Int64s

    @staticmethod
    def of(vocabulary: pa.Table | None) -> WordNumbers:
        """The numbers of a vocabulary's words (`VOCABULARY_SCHEMA`)."""
        ids = optional_int64s(vocabulary, "word_id")
        order = np.argsort(ids)
        return WordNumbers(ids[order], order.astype(np.int64))


def number_descriptions(table: pa.Table, vocabulary: WordNumbers) -> pa.Table:
    """Descriptions with ascending word numbers in place of word ids; words without a number are left out."""
    for name in BLOCKS:
        indptr, ids = list_parts(table[name])
        counts = int64s(list_parts(table[f"{name}_counts"])[1])
        place = positions(vocabulary.ids, int64s(ids))
        row = entry_rows(indptr)
        kept = place >= 0
        row, counts, number = row[kept], counts[kept], vocabulary.numbers[place[kept]]
        order = np.argsort(row_keys(row, number))
        columns = _Counts(row[order], number[order], counts[order]).columns(table.num_rows)
        for field, column in zip((name, f"{name}_counts"), columns, strict=True):
            table = table.set_column(table.schema.get_field_index(field), field, column)
    return table
