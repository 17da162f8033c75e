"""A snapshot in memory, prepared once, so that what a crawl knows at any moment is computed in milliseconds.

Replays of crawls ask for the facts of thousands of moments of one snapshot. Texts are read, anchors found and words
numbered once; the facts of a moment are rows of these matrices, and sums of rows over the harvested pages' links.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from semrank.transforms.columnar.arrays import (
    Bools,
    Int64s,
    bools,
    bounded_slices,
    column_array,
    concatenate,
    distinct_rows,
    int64s,
    members,
    pointers,
    positions,
    ragged,
    row_pointers,
)
from semrank.transforms.columnar.idfilter import MIN_BITS, IdFilter
from semrank.transforms.columnar.ids import (
    IdCollisionError,
    digest_table,
    shared_ids,
    text_digests,
    text_ids,
    without_shared_ids,
)
from semrank.transforms.context import describe
from semrank.transforms.context.descriptions import BLOCKS, Descriptions, counts_matrix
from semrank.transforms.context.links import Links, read_links
from semrank.transforms.context.pages import (
    COLUMNS,
    FETCHED,
    GIVEN,
    LEAD,
    SOURCE_SCHEMA,
    SOURCES,
    TERMS,
    WORDS,
    Wanted,
    address_words,
    read_pages,
    word_counts,
)
from semrank.transforms.context.words import DEFAULT_LANGUAGE, lemmas_of
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.weblog.clicks import (
    WORD_SCHEMA,
    Clicks,
    read_clicks,
    session_counts,
    url_word_clicks,
    url_word_sessions,
)
from semrank.transforms.weblog.sequences import click_edges, sequence_rows

SOURCE_BYTES = 8 << 20
"""Bytes of text whose anchors are looked for at a time: their tokens take some ten times as much memory."""


@dataclass(frozen=True, eq=False)
class Web:
    """A snapshot of n URLs over v words; every matrix has one empty row more, for URLs that the snapshot does not know.

    Attributes:
        url: ids of all URLs, ascending, int64[n].
        words: the words, ascending, string[v].
        word_ids: their ids, int64[v].
        language: language of queries.
        nouns: whether only nouns are words.
        fetched: whether there is a page, bool[n + 1].
        described: whether its content is known, bool[n + 1].
        text: occurrences in title and text, or given keywords, CSR int64[n + 1, v].
        lead: occurrences in the first words of the text, CSR int64[n + 1, v].
        address: occurrences in the address, CSR int64[n + 1, v].
        found: 1 where a link leads from a page to another URL, followed or not, CSR int64[n + 1, n + 1].
        links: 1 where a followed link does, CSR int64[n + 1, n + 1].
        anchor_source: source of each followed link with an anchor, equal ones once, int64[m].
        anchor_target: its target, int64[m].
        anchor: occurrences in each anchor, CSR int64[m, v].
        around: occurrences around it, CSR int64[m, v].
        clicks: how often each c-edge was walked, CSR int64[n + 1, n + 1].
        query: clicks on each URL after queries with each word, CSR int64[n + 1, v].
        asked: sessions in place of clicks, likewise.
    """

    url: Int64s
    words: pa.Array
    word_ids: Int64s
    language: str
    nouns: bool
    fetched: Bools
    described: Bools
    text: sparse.csr_array
    lead: sparse.csr_array
    address: sparse.csr_array
    found: sparse.csr_array
    links: sparse.csr_array
    anchor_source: Int64s
    anchor_target: Int64s
    anchor: sparse.csr_array
    around: sparse.csr_array
    clicks: sparse.csr_array
    query: sparse.csr_array
    asked: sparse.csr_array

    @classmethod
    def of_tables(
        cls,
        pages: pa.Table,
        links: pa.Table,
        clicks: pa.Table,
        *,
        language: str = DEFAULT_LANGUAGE,
        nouns: bool = False,
    ) -> Web:
        """The web of three conformed tables with canonical URLs (`schemas.tables`: PAGES, LINKS, CLICKS).

        Args:
            pages: one row a URL.
            links: any links; URLs that stand only here or in clicks are known, too.
            clicks: any clicks.
            language: language of queries, anchors and of pages whose language is neither given nor found out.
            nouns: whether only nouns are words.

        Raises:
            IdCollisionError: two URLs or two words share an id.
        """
        url = _url_ids(pages["url"], links["source_url"], links["target_url"], clicks["url"])
        wanted = Wanted(url, IdFilter.from_segments(None, MIN_BITS))
        page_facts = _gathered(read_pages(pages.select(COLUMNS), wanted, language, every=False, lead=True, nouns=nouns))
        rows = read_links(links)
        linked = _gathered(describe.link_evidence(links, rows, url))
        anchored = linked.pop(describe.ANCHORED, describe.ANCHORED_SCHEMA.empty_table())
        anchors, anchor_terms = _anchor_tables(page_facts.pop(SOURCES, None), anchored, language, nouns)
        read = read_clicks(clicks, partial(lemmas_of, fallback=language, nouns=nouns))
        addresses, address_names = _addresses(pages, links, language, nouns)
        terms = {
            "text": pa.concat_tables([page_facts[TERMS], page_facts[GIVEN]]),
            "lead": page_facts[LEAD],
            "address": addresses,
            "anchor": anchor_terms[describe.ANCHOR],
            "around": anchor_terms[describe.AROUND],
            "query": url_word_clicks(read).rename_columns(addresses.column_names),
        }
        words, numbers = _vocabulary(
            [page_facts[WORDS], address_names, anchor_terms[WORDS], read.words], list(terms.values())
        )
        found, followed = _link_matrices(rows, url)
        fetched, described = _page_flags(page_facts[FETCHED], url)
        return cls(
            url=url,
            words=words,
            word_ids=numbers.ids[np.argsort(numbers.numbers)],
            language=language,
            nouns=nouns,
            fetched=fetched,
            described=described,
            **_term_matrices({**terms, "asked": _asked(read)}, url, len(anchors[0]), numbers),
            found=found,
            links=followed,
            anchor_source=positions(url, anchors[0]),
            anchor_target=positions(url, anchors[1]),
            clicks=_click_matrix(click_edges(sequence_rows(read)), url),
        )

    def with_clicks(self, clicks: pa.Table) -> Web:
        """The same web with other clicks (a conformed CLICKS table), for example without those of a topic.

        Words that the web does not have are left out: the clicks should be some of those it was made with.
        """
        read = read_clicks(clicks, partial(lemmas_of, fallback=self.language, nouns=self.nouns))
        order = np.argsort(self.word_ids)
        numbers = describe.WordNumbers(self.word_ids[order], order.astype(np.int64))
        return replace(
            self,
            query=_term_matrix(url_word_clicks(read), self.url, 0, numbers),
            asked=_term_matrix(_asked(read), self.url, 0, numbers),
            clicks=_click_matrix(click_edges(sequence_rows(read)), self.url),
        )

    def facts(
        self,
        *,
        seeds: Int64s,
        harvested: Int64s,
        current: Int64s,
        content_known: bool,
        query: Sequence[str] = (),
        discovery: Int64s | None = None,
    ) -> Facts:
        """What a crawl knows at a moment.

        Args:
            seeds: ids of the URLs that the crawl began with.
            harvested: ids of the URLs it chose, in any order; the seeds count among them whether they are named or not.
            current: ids of the URLs to rank; those that are harvested are left out.
            content_known: whether text and links of the current URLs are known where the snapshot has them; else they
                are as if not fetched yet.
            query: words of the query.
            discovery: ids of URLs in the order in which they became known; others follow. None if it is unknown.
        """
        known = _Known.of(self.url, np.union1d(harvested, seeds), current)
        content_row = np.where(known.harvested | content_known, known.row, len(self.url))
        kept, blocks = _used_words(self._blocks(known, content_row))
        asked = blocks.pop("asked")
        source, target, _ = _entries(self.links, content_row, known.number)
        click_source, click_target, clicks = _entries(self.clicks, known.row, known.number)
        words = self.words.take(pa.array(kept))
        size = (len(known.url), len(known.url))
        descriptions = Descriptions(
            url=known.url,
            seed=members(np.unique(seeds), known.url),
            harvested=known.harvested,
            current=~known.harvested,
            fetched=self.fetched[content_row],
            described=self.described[content_row],
            place=known.place,
            **blocks,
            linkers=known.linkers(source, target),
            near=known.near(click_source, click_target, clicks),
        )
        return Facts(
            descriptions=descriptions,
            links=_ordered_matrix(source, target, np.ones(len(source), dtype=np.int64), size),
            clicks=_ordered_matrix(click_source, click_target, clicks, size),
            discovery=_order(known.url, discovery),
            query=_numbers_of(query, words),
            words=words,
            asked=asked,
        )

    def _blocks(self, known: _Known, content_row: Int64s) -> dict[str, sparse.csr_array]:
        """Occurrences of all words by place for the known URLs; `content_row` has the rows of their known content."""
        from_harvest = np.zeros(len(self.url) + 1, dtype=np.bool_)
        from_harvest[known.row[known.harvested]] = True
        from_harvest[-1] = False
        rows = np.flatnonzero(from_harvest[self.anchor_source] & (known.number[self.anchor_target] >= 0))
        places = np.arange(len(rows), dtype=np.int64)
        ones = np.ones(len(rows), dtype=np.int64)
        along = counts_matrix(known.number[self.anchor_target[rows]], places, ones, (len(known.url), len(rows)))
        return {
            "text": self.text[content_row],
            "lead": self.lead[content_row],
            "anchor": sparse.csr_array(self.address[known.row] + along @ self.anchor[rows]),
            "around": sparse.csr_array(along @ self.around[rows]),
            "query": self.query[known.row],
            "asked": self.asked[known.row],
        }

    def targets(self, sources: Int64s) -> Int64s:
        """Ids of the URLs that some URLs link to, followed or not, ascending; these URLs themselves are left out.

        Args:
            sources: ids of URLs, in any order.
        """
        row = positions(self.url, np.unique(sources))
        found = np.unique(self.found[row[row >= 0]].indices)
        return np.setdiff1d(self.url[found], sources)


@dataclass(frozen=True, eq=False)
class _Known:
    """The URLs that a crawl knows at a moment, k of them.

    Attributes:
        url: their ids, ascending, int64[k].
        row: row of each in the web's matrices, int64[k]; the last row for URLs that the web does not know.
        number: number of each row's URL among these, int64[n + 1]; -1 for others.
        place: place of each among the harvested ones, int64[k]; -1 for others.
        size: number of harvested URLs.
    """

    url: Int64s
    row: Int64s
    number: Int64s
    place: Int64s
    size: int

    @classmethod
    def of(cls, web: Int64s, harvested: Int64s, current: Int64s) -> _Known:
        url = np.union1d(harvested, current)
        row = positions(web, url)
        row[row < 0] = len(web)
        number = np.full(len(web) + 1, -1, dtype=np.int64)
        number[row] = np.arange(len(url))
        number[-1] = -1
        return cls(url, row, number, positions(harvested, url), len(harvested))

    @property
    def harvested(self) -> Bools:
        return self.place >= 0

    def linkers(self, source: Int64s, target: Int64s) -> sparse.csr_array:
        """Harvested pages that link to each URL, by followed links between known URLs."""
        linked = self.harvested[source]
        ones = np.ones(int(linked.sum()), dtype=np.int64)
        size = (self.size, len(self.url))
        return sparse.csr_array(_ordered_matrix(self.place[source[linked]], target[linked], ones, size).T)

    def near(self, source: Int64s, target: Int64s, clicks: Int64s) -> sparse.csr_array:
        """Harvested pages that were clicked before or after each URL, with how often, by c-edges of known URLs."""
        leaves, enters = self.harvested[source], self.harvested[target]
        return counts_matrix(
            np.concatenate([target[leaves], source[enters]]),
            np.concatenate([self.place[source[leaves]], self.place[target[enters]]]),
            np.concatenate([clicks[leaves], clicks[enters]]),
            (len(self.url), self.size),
        )


_BY_ANCHOR = ("anchor", "around")


def _asked(clicks: Clicks) -> pa.Table:
    return session_counts(url_word_sessions(clicks))


def _url_ids(*urls: pa.ChunkedArray) -> Int64s:
    digests = digest_table(text_digests(pa.concat_arrays([column_array(column) for column in urls])))
    shared = shared_ids([digests])
    if len(shared):
        raise IdCollisionError(shared.tolist())
    return int64s(digests["id"])


def _addresses(pages: pa.Table, links: pa.Table, language: str, nouns: bool) -> tuple[pa.Table, pa.Table]:
    """Words of the addresses of pages and of both ends of links."""
    columns = (pages["url"], links["source_url"], links["target_url"])
    urls = pc.unique(pa.concat_arrays([column_array(column).cast(pa.string()) for column in columns]))
    return address_words(text_ids(urls), urls, language, nouns=nouns)


def _term_matrices(
    terms: Mapping[str, pa.Table], url: Int64s, anchors: int, numbers: describe.WordNumbers
) -> dict[str, sparse.csr_array]:
    return {
        name: _term_matrix(table, url if name not in _BY_ANCHOR else None, anchors, numbers)
        for name, table in terms.items()
    }


def _link_matrices(links: Links, url: Int64s) -> tuple[sparse.csr_array, sparse.csr_array]:
    """All links between different URLs, and the followed ones, CSR int64[n + 1, n + 1] each."""
    size = (len(url) + 1, len(url) + 1)
    source, target = positions(url, links.source), positions(url, links.target)
    other = source != target
    followed = other & links.followed
    return _ones(source[other], target[other], size), _ones(source[followed], target[followed], size)


def _page_flags(fetched: pa.Table, url: Int64s) -> tuple[Bools, Bools]:
    """Whether each URL was fetched, and whether its content is known, bool[n + 1] each."""
    place = positions(url, int64s(fetched["url_id"]))
    flags = np.zeros((2, len(url) + 1), dtype=np.bool_)
    flags[0, place] = True
    flags[1, place] = bools(fetched["described"])
    return flags[0], flags[1]


def _gathered(evidence: Iterable[tuple[str, pa.Table]]) -> dict[str, pa.Table]:
    """The tables of each kind as one."""
    tables: dict[str, list[pa.Table]] = {}
    for kind, table in evidence:
        tables.setdefault(kind, []).append(table)
    return {kind: pa.concat_tables(parts).combine_chunks() for kind, parts in tables.items()}


def _anchor_tables(
    sources: pa.Table | None, anchored: pa.Table, language: str, nouns: bool
) -> tuple[tuple[Int64s, Int64s], dict[str, pa.Table]]:
    """Source and target of each anchor; the words of the anchors by number (`TERM_SCHEMA`), and those around them."""
    if sources is None:
        sources = SOURCE_SCHEMA.empty_table()
    sources = sources.sort_by("url_id").combine_chunks()
    anchored = anchored.sort_by([(name, "ascending") for name in anchored.column_names]).combine_chunks()
    source = int64s(anchored["url_id"])
    textless = ~members(int64s(sources["url_id"]), source)
    parts = [(np.flatnonzero(textless), sources.slice(0, 0))]
    parts += [
        (np.flatnonzero(members(int64s(piece["url_id"]), source)), piece)
        for piece in bounded_slices(sources, SOURCE_BYTES)
    ]
    tables: dict[str, list[pa.Table]] = {describe.ANCHOR: [], describe.AROUND: [], WORDS: []}
    for rows, piece in parts:
        found = describe.anchor_words(piece, anchored.take(pa.array(rows)), language, nouns=nouns)
        digests = text_digests(found.words, distinct=True)
        tables[describe.ANCHOR].append(word_counts(rows, found.anchor_row, digests[found.anchor_word, 0]))
        tables[describe.AROUND].append(word_counts(rows, found.around_row, digests[found.around_word, 0]))
        tables[WORDS].append(pa.table([digests[:, 0], digests[:, 1], found.words], schema=WORD_SCHEMA))
    ends = source, int64s(anchored["target_id"])
    return ends, {kind: concatenate(parts, parts[0].schema) for kind, parts in tables.items()}


def _vocabulary(named: Sequence[pa.Table], terms: Sequence[pa.Table]) -> tuple[pa.Array, describe.WordNumbers]:
    """The words that stand in several places, ascending, and their numbers."""
    words = without_shared_ids(distinct_rows(pa.concat_tables(named)), "word_id", "word")
    found, counts = np.unique(np.concatenate([int64s(table["word_id"]) for table in terms]), return_counts=True)
    used = found[counts >= describe.MIN_PLACES]
    words = words.filter(pa.array(members(used, int64s(words["word_id"])))).sort_by("word").combine_chunks()
    return column_array(words["word"]), describe.WordNumbers.of(words)


def _term_matrix(terms: pa.Table, url: Int64s | None, rows: int, numbers: describe.WordNumbers) -> sparse.csr_array:
    """Terms as a matrix: a row for each URL and an empty one, or, without URLs, so many rows that the terms number."""
    row, word, count = (int64s(terms.column(number)) for number in range(3))
    if url is not None:
        row, rows = positions(url, row), len(url) + 1
    place = positions(numbers.ids, word)
    kept = (place >= 0) & (row >= 0)
    return counts_matrix(row[kept], numbers.numbers[place[kept]], count[kept], (rows, len(numbers.ids)))


def _click_matrix(edges: pa.Table, url: Int64s) -> sparse.csr_array:
    source, target = (positions(url, int64s(edges[name])) for name in ("source", "target"))
    kept = (source >= 0) & (target >= 0)
    size = (len(url) + 1, len(url) + 1)
    return counts_matrix(source[kept], target[kept], int64s(edges["clicks"])[kept], size)


def _ones(rows: Int64s, columns: Int64s, shape: tuple[int, int]) -> sparse.csr_array:
    """1 at each pair, CSR int64[shape]."""
    matrix = counts_matrix(rows, columns, np.ones(len(rows), dtype=np.int64), shape)
    matrix.data[:] = 1
    return matrix


def _entries(matrix: sparse.csr_array, rows: Int64s, number: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """(place in `rows`, number of the column, value) of the entries of some rows whose column has a number.

    They are in order where the numbers of columns are.
    """
    start = matrix.indptr[:-1].astype(np.int64)[rows]
    owner, place = ragged(start, matrix.indptr[1:].astype(np.int64)[rows] - start)
    column = number[matrix.indices[place]]
    kept = column >= 0
    return owner[kept], column[kept], matrix.data[place[kept]]


def _ordered_matrix(rows: Int64s, columns: Int64s, values: Int64s, shape: tuple[int, int]) -> sparse.csr_array:
    """Distinct entries in the order of rows and columns as a matrix, CSR int64[shape]."""
    indptr = row_pointers(rows, shape[0])
    return sparse.csr_array((values, columns, indptr), shape=shape)


def _used_words(blocks: dict[str, sparse.csr_array]) -> tuple[Int64s, dict[str, sparse.csr_array]]:
    """The words that stand in several places, and the blocks over these alone; see `describe.vocabulary_part`."""
    width = next(iter(blocks.values())).shape[1]
    places = sum((np.bincount(blocks[name].indices, minlength=width) for name in BLOCKS), np.zeros(width, np.int64))
    used = places >= describe.MIN_PLACES
    number = (np.cumsum(used) - 1).astype(np.int64)
    kept = np.flatnonzero(used)
    return kept, {name: _columns(block, used, number, len(kept)) for name, block in blocks.items()}


def _columns(matrix: sparse.csr_array, used: Bools, number: Int64s, width: int) -> sparse.csr_array:
    inside = used[matrix.indices]
    indptr = pointers(inside.astype(np.int64))[matrix.indptr]
    narrow = sparse.csr_array(
        (matrix.data[inside], number[matrix.indices[inside]], indptr), shape=(matrix.shape[0], width)
    )
    narrow.sort_indices()
    return narrow


def _order(known: Int64s, discovery: Int64s | None) -> Int64s:
    if discovery is None:
        return np.zeros(len(known), dtype=np.int64)
    ids, first = np.unique(discovery, return_index=True)
    place = positions(ids, known)
    return np.where(place >= 0, first[np.maximum(place, 0)], len(discovery)).astype(np.int64) if len(ids) else place * 0


def _numbers_of(query: Sequence[str], words: pa.Array) -> Int64s:
    places = pc.index_in(pa.array(sorted(set(query)), pa.string()), value_set=words)
    return np.sort(int64s(places.drop_null()))
