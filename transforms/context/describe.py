"""Descriptions of URLs from what pages, links and clicks say: the evidence of each, and what it adds up to.

A page tells its own words. A followed link from a harvested page tells words of its target: those of its anchor, and
those that stand around the anchor in the page's text. Clicks tell words of queries and pages that were clicked next to
one another. Links from a page to itself tell nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.columnar.arrays import (
    MAIN,
    Int64s,
    bounded_slices,
    column_array,
    distinct_rows,
    group_starts,
    int64s,
    list_column,
    list_parts,
    members,
    pointers,
    positions,
    ragged,
    row_keys,
)
from semrank.transforms.columnar.ids import text_digests, without_shared_ids
from semrank.transforms.context.descriptions import BLOCKS, DESCRIPTION_SCHEMA, Bools
from semrank.transforms.context.links import ID_SCHEMA, Links
from semrank.transforms.context.pages import (
    TERM_SCHEMA,
    WORD_SCHEMA,
    WORDS,
    Wanted,
    sum_terms,
    text_words,
    title_and_text,
    word_counts,
)
from semrank.transforms.context.words import lemma_counts, lemmas_of, text_languages
from semrank.transforms.sources.urls import url_words

PAGE_COLUMNS = ("url", "title", "text", "keywords", "language")
"""Columns of the pages table that the reader takes."""

LEAD_TOKENS = 150
"""Tokens at the head of a text that say what it is about: an introduction is about as long."""

LEAD_CHARACTERS = 4096
"""Code points of a text in which its first tokens are looked for: some 27 a token, more than any language needs."""

AROUND_TOKENS = 12
"""Tokens before and after an anchor whose words tell of its target: about a sentence."""

PAGES, TEXT, LEAD, ADDRESSES, SOURCES = "pages", "text", "lead", "addresses", "sources"
CURRENT, LINKERS, ANCHORED = "current", "linkers", "anchored"
ANCHOR, AROUND, SUPPORTS = "anchor", "around", "supports"

PAGE_SCHEMA = pa.schema([pa.field("url_id", pa.int64()), pa.field("described", pa.bool_())])
"""A fetched page; `described` where its own content says what it is about, if only that it is about nothing."""

SOURCE_SCHEMA = pa.schema(
    [pa.field("url_id", pa.int64()), pa.field("text", pa.large_string()), pa.field("language", pa.string())]
)
"""Title and text of a harvested page."""

ANCHORED_SCHEMA = pa.schema(
    [pa.field("url_id", pa.int64()), pa.field("target_id", pa.int64()), pa.field("anchor", pa.string())]
)
"""A followed link with an anchor from a page, `url_id`, to another."""

NEIGHBOUR_SCHEMA = pa.schema(
    [pa.field("url_id", pa.int64()), pa.field("place", pa.int64()), pa.field("count", pa.int64())]
)
"""A harvested URL, by its place, that links to a URL or was clicked next to it, and how often."""

HARVESTED_SCHEMA = pa.schema([pa.field("url_id", pa.int64()), pa.field("seed", pa.bool_())])

SUPPORT_SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("word_id", "places", "documents")])
"""In how many blocks of URLs a word stands, and how many URLs have it as a document has words."""

VOCABULARY_SCHEMA = pa.schema(
    [pa.field("word", pa.string()), pa.field("word_id", pa.int64()), pa.field("documents", pa.int64())]
)
"""A word, numbered by its place in the ascending order; `documents` counts the known URLs that have it."""

MIN_PLACES = 2
"""A word that stands in a single block of a single URL says nothing of any other."""

_LETTERS = r"\p{L}\p{M}\p{N}'\x{2019}\x{AD}\x{200C}\x{200D}\x{2060}"
_BETWEEN_TOKENS = rf"[^{_LETTERS}]+"


@dataclass(frozen=True, eq=False)
class Tokens:
    """Texts as sequences of tokens: words, and between them what is no word, as are stop words and numbers.

    Attributes:
        indptr: where each text's tokens begin and end, int64[n + 1].
        token: number of each token, int64[indptr[-1]]; equal in all texts where the tokens are.
        words: the distinct words, string[w]; a token whose number is below w is that word, any other is no word.
    """

    indptr: Int64s
    token: Int64s
    words: pa.Array


def tokens_of(texts: pa.Array, languages: pa.Array, language: str) -> Tokens:
    """The tokens of texts in their order.

    Longest runs of letters, marks, digits and apostrophes are tokens; where a run has several words (scripts without
    spaces, words that an apostrophe joins) each word is one.

    Args:
        texts: string[n] or large_string[n]; a null has no tokens.
        languages: language of each text, string[n]; null for the fallback.
        language: the fallback.
    """
    indptr, runs = list_parts(pc.split_pattern_regex(texts.cast(pa.large_string()), _BETWEEN_TOKENS))
    filled = np.asarray(pc.not_equal(runs, "").to_numpy(zero_copy_only=False), dtype=np.bool_)
    owner = np.repeat(np.arange(len(texts), dtype=np.int64), np.diff(indptr))[filled]
    run_codes = runs.filter(pa.array(filled)).dictionary_encode()
    language_codes = languages.fill_null(language).dictionary_encode()
    spread = max(len(language_codes.dictionary), 1)
    codes = int64s(run_codes.indices) * spread + int64s(language_codes.indices)[owner]
    kinds, kind = np.unique(codes, return_inverse=True)
    run = run_codes.dictionary.take(pa.array(kinds // spread))
    # Stop words are told apart by their spelling in lower case, words by their lemma.
    given = language_codes.dictionary.take(pa.array(kinds % spread))
    lemma_indptr, lemmas = list_parts(lemmas_of(run, given, fallback=language))
    lemma_codes = lemmas.cast(pa.string()).dictionary_encode()
    words = lemma_codes.dictionary
    wordless = np.diff(lemma_indptr) == 0
    other_codes = pc.utf8_lower(run.filter(pa.array(wordless))).dictionary_encode()

    lengths = np.maximum(np.diff(lemma_indptr), 1)
    first = pointers(lengths)[:-1]
    numbers = np.zeros(int(lengths.sum()), dtype=np.int64)
    is_word = np.repeat(~wordless, lengths)
    numbers[is_word] = int64s(lemma_codes.indices)
    numbers[~is_word] = len(words) + int64s(other_codes.indices)
    _, place = ragged(first[kind], lengths[kind])
    per_text = np.bincount(owner, weights=lengths[kind], minlength=len(texts)).astype(np.int64)
    return Tokens(pointers(per_text), numbers[place], words)


def page_evidence(table: pa.Table, wanted: Wanted, language: str) -> Iterator[tuple[str, pa.Table]]:
    """What a part of the pages table says of the wanted URLs.

    Args:
        table: columns `PAGE_COLUMNS` of the pages table.
        wanted: the known URLs, the harvested ones as its queue.
        language: language of pages whose language is neither given nor found out.

    Yields:
        (kind, table): `pages` (`PAGE_SCHEMA`); `text`, `lead` and `addresses` (`TERM_SCHEMA`); `words` of them
        (`WORD_SCHEMA`); `sources` (`SOURCE_SCHEMA`), the harvested pages that have a text.
    """
    ids = text_digests(table["url"])[:, 0]
    rows = np.flatnonzero(wanted.contains(ids))
    table, ids = table.take(pa.array(rows)).combine_chunks(), ids[rows]
    keywords = column_array(table["keywords"])
    texts = title_and_text(table)
    has_keywords, has_text = _valid(keywords), _valid(texts)
    has_text &= ~has_keywords
    yield PAGES, pa.table([pa.array(ids), pa.array(has_keywords | has_text)], schema=PAGE_SCHEMA)
    yield from _address_evidence(ids, column_array(table["url"]), language)
    yield from _given_evidence(ids, keywords)

    documents = np.flatnonzero(has_text)
    place = pa.array(documents)
    texts = texts.take(place)
    languages = text_languages(texts, column_array(table["language"]).take(place), fallback=language)
    counts = lemma_counts(texts, languages, fallback=language)
    digests = text_digests(counts.lemmas)
    text = [ids[documents[counts.document]], digests[counts.lemma, 0], counts.count.astype(np.int64)]
    yield TEXT, pa.table(text, schema=TERM_SCHEMA)
    yield WORDS, _words_table(counts.lemmas, digests)

    heads = pc.utf8_slice_codeunits(column_array(table["text"]).take(place), 0, LEAD_CHARACTERS)
    tokens = tokens_of(heads, languages, language)
    row, token = _leading_tokens(tokens)
    digests = text_digests(tokens.words)
    yield LEAD, word_counts(ids[documents], row, digests[token, 0])
    yield WORDS, _words_table(tokens.words, digests)

    harvested = members(wanted.queue, ids[documents])
    sources = [pa.array(ids[documents]), texts, languages]
    yield SOURCES, pa.table(sources, schema=SOURCE_SCHEMA).filter(pa.array(harvested))


def _valid(array: pa.Array) -> Bools:
    return np.array(pc.is_valid(array).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _words_table(words: pa.Array, digests: Int64s) -> pa.Table:
    return pa.table([pa.array(digests[:, 0]), pa.array(digests[:, 1]), words], schema=WORD_SCHEMA)


def _address_evidence(ids: Int64s, urls: pa.Array, language: str) -> Iterator[tuple[str, pa.Table]]:
    """Words of the addresses of distinct URLs."""
    terms, words = text_words(ids, pc.binary_join(url_words(urls), " "), language)
    yield ADDRESSES, terms
    yield WORDS, words


def _given_evidence(ids: Int64s, keywords: pa.ListArray) -> Iterator[tuple[str, pa.Table]]:
    """Given keywords, each once, in place of the words of a text."""
    indptr, values = list_parts(keywords)
    owner = np.repeat(np.arange(len(ids), dtype=np.int64), np.diff(indptr))[_valid(values)]
    encoded = values.drop_null().cast(pa.string()).dictionary_encode()
    digests = text_digests(encoded.dictionary)
    spread = max(len(digests), 1)
    pairs = np.unique(owner * spread + int64s(encoded.indices))
    yield TEXT, word_counts(ids, pairs // spread, digests[pairs % spread, 0])
    yield WORDS, _words_table(encoded.dictionary, digests)


def _leading_tokens(tokens: Tokens) -> tuple[Int64s, Int64s]:
    """(text, word number) of the words among the first `LEAD_TOKENS` tokens of each text."""
    row, place = ragged(tokens.indptr[:-1], np.minimum(np.diff(tokens.indptr), LEAD_TOKENS))
    token = tokens.token[place]
    is_word = token < len(tokens.words)
    return row[is_word], token[is_word]


def link_evidence(table: pa.Table, links: Links, harvested: Int64s, language: str) -> Iterator[tuple[str, pa.Table]]:
    """What a part of the links table says of the URLs that harvested pages link to.

    Args:
        table: columns `links.COLUMNS` of the links table.
        links: its rows as ids.
        harvested: sorted ids of the harvested URLs.
        language: language of addresses.

    Yields:
        (kind, table): `current` (`ID_SCHEMA`), the link targets of harvested URLs that are not harvested; `linkers`
        (`NEIGHBOUR_SCHEMA`); `anchored` (`ANCHORED_SCHEMA`); `addresses` of known URLs and their `words`.
    """
    place = positions(harvested, links.source)
    from_harvested = place >= 0
    target_harvested = members(harvested, links.target)
    yield CURRENT, pa.table([np.unique(links.target[from_harvested & ~target_harvested])], schema=ID_SCHEMA)

    told = from_harvested & links.followed & (links.source != links.target)
    yield LINKERS, _neighbours(links.target[told], place[told], np.ones(int(told.sum()), dtype=np.int64))

    anchors = column_array(table["anchor_text"])
    rows = np.flatnonzero(told & _valid(anchors))
    anchored = [pa.array(links.source[rows]), pa.array(links.target[rows]), anchors.take(pa.array(rows))]
    yield ANCHORED, distinct_rows(pa.table(anchored, schema=ANCHORED_SCHEMA))

    source_rows = np.flatnonzero(from_harvested)
    target_rows = np.flatnonzero(from_harvested | target_harvested)
    urls = pa.concat_arrays(
        [
            column_array(table[name]).cast(pa.string()).take(pa.array(rows))
            for name, rows in (("source_url", source_rows), ("target_url", target_rows))
        ]
    )
    ids, first = np.unique(np.concatenate([links.source[source_rows], links.target[target_rows]]), return_index=True)
    yield from _address_evidence(ids, urls.take(pa.array(first)), language)


def click_evidence(edges: pa.Table, harvested: Int64s) -> pa.Table:
    """Clicks between harvested URLs and any others, either way, a table of `NEIGHBOUR_SCHEMA`.

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
    """Counts added by (URL, place), a table of `NEIGHBOUR_SCHEMA` sorted by them."""
    return sum_terms(url, place, count).rename_columns(NEIGHBOUR_SCHEMA.names)


@dataclass(frozen=True, eq=False)
class AnchorWords:
    """Words of n anchors, and those around them in the texts where they stand, with repetitions.

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


def anchor_words(sources: pa.Table | None, anchored: pa.Table, language: str) -> AnchorWords:
    """Words of anchors, read in the language of their page, and of what stands around each in that page's text.

    An anchor stands where its tokens first occur in title and text one after another; around it are the
    `AROUND_TOKENS` tokens before and after, as far as the text goes. Tokens are compared by their lemmas.

    Args:
        sources: texts of pages (`SOURCE_SCHEMA`).
        anchored: links (`ANCHORED_SCHEMA`), n rows.
        language: language of anchors on pages without a text.
    """
    sources = SOURCE_SCHEMA.empty_table() if sources is None else sources.sort_by("url_id").combine_chunks()
    page = positions(int64s(sources["url_id"]), int64s(anchored["url_id"]))
    languages = column_array(sources["language"])
    anchor_languages = languages.take(pa.array(np.maximum(page, 0), mask=page < 0))
    tokens = tokens_of(
        pa.concat_arrays([column_array(sources["text"]), column_array(anchored["anchor"]).cast(pa.large_string())]),
        pa.concat_arrays([languages, anchor_languages]),
        language,
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
    """Where the tokens of each anchor first stand in its page, -1 where they do not; int64[n].

    Args:
        tokens: of so many pages, then of the anchors.
        pages: number of pages.
        page: page of each anchor, -1 where it has none.
    """
    start, length = tokens.indptr[:-1], np.diff(tokens.indptr)
    end = int(tokens.indptr[pages])
    kinds = int(tokens.token.max()) + 1 if len(tokens.token) else 1
    owner = np.repeat(np.arange(pages, dtype=np.int64), length[:pages])
    key = owner * kinds + tokens.token[:end]
    order = np.argsort(key, kind="stable")
    key = key[order]

    # Each anchor is looked for by its token that is rarest on the page.
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
    sources: pa.Table | None, anchored: pa.Table | None, language: str
) -> Iterator[tuple[str, pa.Table]]:
    """What the anchors of some pages say of the URLs they point to.

    Args:
        sources: texts of these pages (`SOURCE_SCHEMA`).
        anchored: their links (`ANCHORED_SCHEMA`); equal ones count once.
        language: language of anchors on pages without a text.

    Yields:
        (kind, table): `anchor` and `around` (`TERM_SCHEMA`) and their `words`.
    """
    if anchored is None:
        return
    anchored = distinct_rows(anchored)
    told = anchor_words(sources, anchored, language)
    targets = int64s(anchored["target_id"])
    digests = text_digests(told.words)
    yield ANCHOR, word_counts(targets, told.anchor_row, digests[told.anchor_word, 0])
    yield AROUND, word_counts(targets, told.around_row, digests[told.around_word, 0])
    yield WORDS, _words_table(told.words, digests)


@dataclass(frozen=True)
class Evidence:
    """A partition's rows about its URLs; tables are None where it has none.

    Attributes:
        harvested: harvested URLs (`HARVESTED_SCHEMA`).
        current: URLs to rank (`ID_SCHEMA`), may repeat.
        pages: fetched pages (`PAGE_SCHEMA`).
        text: words of pages (`TERM_SCHEMA`), as are those of `lead`, `anchor`, `around` and `query`.
        addresses: words of addresses; the same rows may stand several times.
        linkers: harvested pages that link to a URL (`NEIGHBOUR_SCHEMA`), may repeat.
        near: harvested URLs clicked next to a URL (`NEIGHBOUR_SCHEMA`).
    """

    harvested: pa.Table | None = None
    current: pa.Table | None = None
    pages: pa.Table | None = None
    text: pa.Table | None = None
    lead: pa.Table | None = None
    anchor: pa.Table | None = None
    around: pa.Table | None = None
    query: pa.Table | None = None
    addresses: pa.Table | None = None
    linkers: pa.Table | None = None
    near: pa.Table | None = None


def describe_urls(evidence: Evidence, harvested: Int64s) -> Iterator[tuple[str, pa.Table]]:
    """The descriptions of a partition's known URLs.

    Args:
        evidence: all that is said of them; rows about URLs that are neither harvested nor current are left out.
        harvested: sorted ids of all harvested URLs.

    Yields:
        (kind, table): `main`, bounded tables of `DESCRIPTION_SCHEMA` with word ids, ascending by URL id; `supports`
        (`SUPPORT_SCHEMA`) of the words, each word once.
    """
    seeds = HARVESTED_SCHEMA.empty_table() if evidence.harvested is None else evidence.harvested.sort_by("url_id")
    seed_ids = int64s(seeds["url_id"])
    found = np.zeros(0, dtype=np.int64) if evidence.current is None else int64s(evidence.current["url_id"])
    ids = np.union1d(seed_ids, found)
    place = positions(harvested, ids)
    fetched, described = _page_flags(evidence.pages, ids)
    seed = _flags(seeds, "seed")[np.maximum(positions(seed_ids, ids), 0)] if len(seed_ids) else np.zeros_like(fetched)
    flags = [seed & (place >= 0), place >= 0, place < 0, fetched, described]

    blocks = {name: _counts(getattr(evidence, name), ids) for name in ("text", "lead", "around", "query")}
    blocks["anchor"] = _counts(evidence.anchor, ids, _once(evidence.addresses))
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
        indptr = pointers(np.bincount(self.row, minlength=rows).astype(np.int64))
        return [list_column(pa.array(self.key), indptr), list_column(pa.array(self.count), indptr)]


def _counts(table: pa.Table | None, ids: Int64s, further: pa.Table | None = None) -> _Counts:
    """The counts of two tables (URL id, key, count) about known URLs added up."""
    tables = [table for table in (table, further) if table is not None]
    columns = [np.concatenate([np.zeros(0, dtype=np.int64), *(int64s(t.column(k)) for t in tables)]) for k in range(3)]
    row = positions(ids, columns[0])
    kept = row >= 0
    summed = sum_terms(row[kept], columns[1][kept], columns[2][kept])
    return _Counts(*(int64s(summed.column(number)) for number in range(3)))


def _once(terms: pa.Table | None) -> pa.Table | None:
    """Terms that several parts tell alike, once."""
    return None if terms is None else distinct_rows(terms)


def _flags(table: pa.Table, name: str) -> Bools:
    return np.asarray(column_array(table[name]).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _page_flags(pages: pa.Table | None, ids: Int64s) -> tuple[Bools, Bools]:
    """Whether each URL was fetched, and whether its own content is known."""
    if pages is None:
        return np.zeros(len(ids), dtype=np.bool_), np.zeros(len(ids), dtype=np.bool_)
    pages = pages.sort_by("url_id")
    place = positions(int64s(pages["url_id"]), ids)
    fetched = place >= 0
    return fetched, fetched & _flags(pages, "described")[np.maximum(place, 0)]


def _supports(blocks: dict[str, _Counts], described: Bools) -> pa.Table:
    """In how many blocks each word stands, and how many URLs have it; see `facts.document_words`."""
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
    """The words of one partition that stand in at least `MIN_PLACES` blocks, a table of `VOCABULARY_SCHEMA`.

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
    named = distinct_rows(words.filter(pa.array(members(ids, int64s(words["word_id"])))))
    named = without_shared_ids(named, "word_id", "word")
    if named.num_rows != len(ids):
        raise RuntimeError(f"{len(ids)} words stand in descriptions, but {named.num_rows} have a name")
    return pa.table([named["word"], named["word_id"], used["documents_sum"]], schema=VOCABULARY_SCHEMA)


def number_vocabulary(words: pa.Table | None) -> pa.Table:
    """The words of all partitions in ascending order, a table of `VOCABULARY_SCHEMA`."""
    return VOCABULARY_SCHEMA.empty_table() if words is None else words.sort_by("word").combine_chunks()


@dataclass(frozen=True, eq=False)
class WordNumbers:
    """The ids of the vocabulary's words, sorted, with the number of each; int64[v]."""

    ids: Int64s
    numbers: Int64s

    @classmethod
    def of(cls, vocabulary: pa.Table | None) -> WordNumbers:
        """The numbers of a vocabulary's words (`VOCABULARY_SCHEMA`)."""
        ids = np.zeros(0, dtype=np.int64) if vocabulary is None else int64s(vocabulary["word_id"])
        order = np.argsort(ids)
        return cls(ids[order], order.astype(np.int64))


def number_descriptions(table: pa.Table, vocabulary: WordNumbers) -> pa.Table:
    """Descriptions with word numbers, ascending, in place of word ids; words that have no number are left out."""
    for name in BLOCKS:
        indptr, ids = list_parts(table[name])
        counts = int64s(list_parts(table[f"{name}_counts"])[1])
        place = positions(vocabulary.ids, int64s(ids))
        row = np.repeat(np.arange(table.num_rows, dtype=np.int64), np.diff(indptr))
        kept = place >= 0
        row, counts, number = row[kept], counts[kept], vocabulary.numbers[place[kept]]
        order = np.argsort(row_keys(row, number))
        columns = _Counts(row[order], number[order], counts[order]).columns(table.num_rows)
        for field, column in zip((name, f"{name}_counts"), columns, strict=True):
            table = table.set_column(table.schema.get_field_index(field), field, column)
    return table
