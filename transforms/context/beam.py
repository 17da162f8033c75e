"""Beam steps that describe the URLs of a round by the evidence of pages, links and clicks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.columnar.arrays import (
    MAIN,
    Int64s,
    bools,
    column_array,
    distinct_rows,
    int64s,
    members,
    sum_by_key,
)
from semrank.transforms.columnar.beam import (
    Collection,
    Combine,
    FilterIds,
    GatherTables,
    MapTables,
    MergePartitions,
    ReadParquet,
)
from semrank.transforms.columnar.idfilter import IdFilter, filter_positions
from semrank.transforms.columnar.ids import IdCollisionError, digest_table, shared_ids
from semrank.transforms.context import describe, links, objects, pages
from semrank.transforms.context.evidence import Evidence
from semrank.transforms.context.memory import DESCRIBED, HARVEST
from semrank.transforms.weblog.memory import VOCABULARY

HARVEST_SCHEMA = pa.schema(
    [
        pa.field("url_id", pa.int64()),
        pa.field("url", pa.string()),
        pa.field("seed", pa.bool_()),
        pa.field("queued", pa.bool_()),
    ]
)
"""A URL that the crawl chose so far, and whether it is of the round's queue."""

HARVESTED = "harvested"
HARVESTED_SCHEMA = pa.schema(
    [pa.field("url_id", pa.int64()), pa.field("seed", pa.bool_()), pa.field("queued", pa.bool_())]
)
"""The same without addresses, to be broadcast."""

DISCOVERED, CURRENT, KNOWN, EDGES, DIGESTS, ANCHORS, LINKS = (
    "discovered",
    "current",
    "known",
    "edges",
    "digests",
    "anchors",
    "links",
)
NEAR, UNKNOWN, NODES, DESCRIPTIONS, PLACES = "near", "unknown", "nodes", "descriptions", "places"


MOST_SHARED = 10_000
"""Shared ids that one error lists: 200 kB of text."""


class Partitions(NamedTuple):
    """Numbers of partitions, from the sizes of the tables, the size of id filters in bits, and rows of pages."""

    pages: int
    links: int
    clicks: int
    filter_bits: int
    page_rows: int

    @property
    def urls(self) -> int:
        """Number of partitions of URLs."""
        return max(self.pages, self.links)


class Harvest(NamedTuple):
    """All URLs that a crawl chose so far.

    Attributes:
        urls: with addresses (`HARVEST_SCHEMA`).
        ids: without (`HARVESTED_SCHEMA`).
        digests: their ids with check values.
    """

    urls: Collection
    ids: Collection
    digests: Collection


class Request(NamedTuple):
    """What is wanted of the URLs besides which they are.

    Attributes:
        contexts: the words of SemRank's two contexts.
        descriptions: what rankers by words look at.
        nodes: the known URLs as nodes of a graph.
        links: all followed links.
    """

    contexts: bool = False
    descriptions: bool = False
    nodes: bool = False
    links: bool = False

    @property
    def words(self) -> bool:
        """Whether any words are wanted."""
        return self.contexts or self.descriptions


class UrlFacts(NamedTuple):
    """What is known of the URLs; None where it was not requested.

    Attributes:
        base: queue URLs (`objects.OBJECT_SCHEMA`), with word ids.
        current: URLs to rank, likewise.
        current_ids: segments of a filter of the current URLs' ids, for `IdFilter.from_segments`.
        unknown: queue URLs that the snapshot does not know (`url`).
        vocabulary: the keywords of the contexts, one small collection in word order (`VOCABULARY_SCHEMA`).
        descriptions: known URLs (`DESCRIPTION_SCHEMA`) in bounded tables, words by number.
        described_words: their words, one small collection in word order (`describe.VOCABULARY_SCHEMA`).
        nodes: the known URLs (`objects.NODE_SCHEMA`).
        links: all followed links (`links.LINK_SCHEMA`).
        drawn: pages that the topic is learned from (`pages.DRAWN_SCHEMA`), where words are requested.
    """

    base: Collection
    current: Collection
    current_ids: Collection
    unknown: Collection
    vocabulary: Collection | None
    descriptions: Collection | None
    described_words: Collection | None
    nodes: Collection | None
    links: Collection | None
    drawn: Collection | None


class DescribeUrls(beam.PTransform[Any, Any]):
    """Reads pages and links of a snapshot once each and returns `UrlFacts`.

    Args:
        page_paths: Parquet files of the pages table.
        link_paths: Parquet files of the links table.
        harvest: all URLs that the crawl chose so far.
        from_queue: whether only link targets of the queue are ranked, else those of all harvested URLs.
        refresh: whether harvested URLs outside the queue are ranked, too.
        clicks: `ClickFacts` of the click log; `url_clicks`, `words` and `word_clicks` are there where words are
            requested.
        request: what is wanted.
        partitions: numbers of partitions.
        settings: how attributes are chosen.
    """

    def __init__(
        self,
        page_paths: Sequence[str],
        link_paths: Sequence[str],
        *,
        harvest: Harvest,
        from_queue: bool = False,
        refresh: bool = False,
        clicks: Any,
        request: Request,
        partitions: Partitions,
        settings: objects.ObjectSettings,
    ) -> None:
        super().__init__("describe URLs")
        self._page_paths, self._link_paths, self._harvest = page_paths, link_paths, harvest
        self._from_queue, self._refresh = from_queue, refresh
        self._clicks, self._request, self._partitions, self._settings = clicks, request, partitions, settings

    def expand(self, pipeline: beam.Pipeline) -> UrlFacts:
        """Applies the steps."""
        request = self._request
        found = self._links(pipeline)
        current = {"positions": found[CURRENT]} | FilterIds("filter current")
        about = {
            "sides": {"harvest": self._harvest.ids, "current": current},
            "prepare": partial(_wanted, bits=self._partitions.filter_bits, page_rows=self._partitions.page_rows),
            "holds": HARVEST,
        }
        page_facts = self._pages(pipeline, about)
        evidence, words = self._evidence(found, page_facts, about)
        results = self._urls(evidence, page_facts)
        digests = (
            found[DIGESTS],
            page_facts[pages.DIGESTS],
            self._clicks.digests,
            self._harvest.digests,
        ) | "all ids" >> beam.Flatten()
        shared = {"digests": digests} | MergePartitions(
            "check ids",
            _shared_ids,
            partitions=self._partitions.links,
            key="id",
            combine={"digests": distinct_rows},
        )
        # Nothing follows from this step: it ends the run where URLs share an id.
        {"ids": shared} | GatherTables("refuse shared ids", _refuse_shared)
        named = self._vocabularies([*words, results[pages.WORDS]], results) if request.words else {}
        descriptions = None
        if request.descriptions:
            descriptions = results[DESCRIPTIONS] | MapTables(
                "number descriptions",
                describe.number_descriptions,
                sides={"vocabulary": named[DESCRIPTIONS]},
                prepare=describe.WordNumbers.of,
                holds=DESCRIBED,
            )
        return UrlFacts(
            results[objects.BASE],
            results[MAIN],
            current,
            results[UNKNOWN],
            named[MAIN] if request.contexts else None,
            descriptions,
            named[DESCRIPTIONS] if request.descriptions else None,
            results[NODES] if request.nodes else None,
            found[LINKS] if request.links else None,
            page_facts[pages.DRAWN] if request.words else None,
        )

    def _evidence(
        self, found: Any, page_facts: Any, about: dict[str, Any]
    ) -> tuple[dict[str, Collection], list[Collection]]:
        """The evidence about each URL by kind, and its words."""
        request = self._request
        evidence: dict[str, Collection] = {
            "harvest": self._harvest.urls,
            "discovered": found[DISCOVERED],
            "known": found[KNOWN],
            "fetched": page_facts[pages.FETCHED],
        }
        words: list[Collection] = []
        clicked = self._clicks.edges | MapTables(
            "choose click edges",
            partial(_chosen_edges, near=request.descriptions),
            **about,
            tags=(MAIN, NEAR),
        )
        evidence["edges"] = (found[EDGES], clicked[MAIN]) | "all edges" >> beam.Flatten()
        if request.words:
            evidence |= {kind: page_facts[kind] for kind in (pages.TERMS, pages.GIVEN)}
            evidence["clicked"] = self._clicks.url_clicks | MapTables("choose clicked words", _wanted_clicks, **about)
            words += [page_facts[pages.WORDS], self._clicks.words]
        if request.contexts:
            anchors = found[ANCHORS] | MapTables(
                "read words of anchors",
                partial(_anchor_words, language=self._settings.language, nouns=self._settings.nouns),
                **about,
                tags=(MAIN, pages.WORDS),
            )
            evidence["anchors"] = anchors[MAIN]
            words.append(anchors[pages.WORDS])
        if request.descriptions:
            around = {"sources": page_facts[pages.SOURCES], "anchored": found[describe.ANCHORED]} | MergePartitions(
                "read words around anchors",
                partial(describe.anchor_evidence, language=self._settings.language, nouns=self._settings.nouns),
                partitions=self._partitions.urls,
                key="url_id",
                tags=_AROUND_KINDS,
            )
            evidence |= {"lead": page_facts[pages.LEAD], "linkers": found[describe.LINKERS], "near": clicked[NEAR]}
            evidence |= {kind: around[kind] for kind in (describe.ANCHOR, describe.AROUND)}
            words.append(around[pages.WORDS])
        return evidence, words

    def _links(self, pipeline: beam.Pipeline) -> Any:
        follow = partial(
            _follow_links,
            request=self._request,
            from_queue=self._from_queue,
            refresh=self._refresh,
            bits=self._partitions.filter_bits,
        )
        return (
            pipeline
            | ReadParquet("read links", self._link_paths, links.COLUMNS)
            | MapTables(
                "follow links",
                follow,
                sides={"harvest": self._harvest.ids},
                prepare=_Known.of,
                tags=_LINK_KINDS,
                holds=HARVEST,
            )
        )

    def _pages(self, pipeline: beam.Pipeline, about: dict[str, Any]) -> Any:
        request = self._request
        read: Any = pages.fetched_pages
        if request.words:
            read = partial(
                pages.read_pages,
                language=self._settings.language,
                every=request.contexts,
                lead=request.descriptions,
                nouns=self._settings.nouns,
            )
        return (
            pipeline
            | ReadParquet("read pages", self._page_paths, pages.COLUMNS if request.words else pages.FETCHED_COLUMNS)
            | MapTables("read words of pages" if request.words else "choose pages", read, **about, tags=_PAGE_KINDS)
        )

    def _urls(self, evidence: dict[str, Collection], page_facts: Any) -> Any:
        sides = {"harvested": self._harvest.ids}
        if self._request.contexts:
            frequencies = {"frequencies": page_facts[pages.FREQUENCIES]} | MergePartitions(
                "count documents of words",
                pages.frequent_words,
                partitions=self._partitions.pages,
                key="word_id",
                combine={"frequencies": partial(sum_by_key, counts="documents")},
            )
            sides |= {"frequencies": frequencies, "documents": page_facts[pages.DOCUMENTS]}
        return evidence | MergePartitions(
            "describe URLs",
            partial(_described, request=self._request, settings=self._settings),
            partitions=self._partitions.urls,
            key="url_id",
            combine=_COMBINED,
            sides=sides,
            prepare=_Corpus.of,
            tags=(MAIN, objects.BASE, objects.SUPPORTS, UNKNOWN, NODES, DESCRIPTIONS, PLACES, pages.WORDS),
            holds=HARVEST,
        )

    def _vocabularies(self, words: list[Collection], results: Any) -> Any:
        inputs = {"words": words | "all words" >> beam.Flatten()}
        if self._request.contexts:
            inputs |= {"supports": results[objects.SUPPORTS], "clicks": self._clicks.word_clicks}
        if self._request.descriptions:
            inputs["places"] = results[PLACES]
        named = inputs | MergePartitions(
            "name words",
            _named_words,
            partitions=self._partitions.pages,
            key="word_id",
            combine={"words": distinct_rows, "clicks": partial(sum_by_key, counts="clicks")},
            tags=(MAIN, DESCRIPTIONS),
        )
        return {"contexts": named[MAIN], "descriptions": named[DESCRIPTIONS]} | GatherTables(
            "number words", _number_words, tags=(MAIN, DESCRIPTIONS), holds=VOCABULARY
        )


_LINK_KINDS = (
    DISCOVERED,
    CURRENT,
    KNOWN,
    EDGES,
    DIGESTS,
    ANCHORS,
    LINKS,
    describe.LINKERS,
    describe.ANCHORED,
)
_PAGE_KINDS = (
    pages.TERMS,
    pages.GIVEN,
    pages.WORDS,
    pages.FETCHED,
    pages.FREQUENCIES,
    pages.DOCUMENTS,
    pages.DIGESTS,
    pages.LEAD,
    pages.SOURCES,
    pages.DRAWN,
)
_AROUND_KINDS = (describe.ANCHOR, describe.AROUND, pages.WORDS)


class _Known(NamedTuple):
    """Sorted ids of the queue's URLs and of all harvested ones."""

    queue: Int64s
    harvested: Int64s

    @staticmethod
    def of(harvest: pa.Table | None) -> _Known:
        if harvest is None:
            nothing = np.zeros(0, dtype=np.int64)
            return _Known(nothing, nothing)
        return _Known(*(np.sort(int64s(rows["url_id"])) for rows in (harvest.filter(harvest["queued"]), harvest)))


def _wanted(harvest: pa.Table | None, current: pa.Table | None, *, bits: int, page_rows: int) -> pages.Wanted:
    known = _Known.of(harvest)
    rows = HARVESTED_SCHEMA.empty_table() if harvest is None else harvest
    seed, queued = (bools(rows[name]) for name in ("seed", "queued"))
    draw = pages.Draw.of(int64s(rows["url_id"]), seed, queued, page_rows)
    return pages.Wanted(known.harvested, IdFilter.from_segments(current, bits), known.queue, draw)


def _follow_links(
    table: pa.Table, prepared: _Known, *, request: Request, from_queue: bool, refresh: bool, bits: int
) -> Iterator[tuple[str, pa.Table]]:
    rows = links.read_links(table)
    sources = prepared.queue if from_queue else prepared.harvested
    found = links.discovered_urls(rows, table, sources, prepared.queue if refresh else prepared.harvested)
    yield DISCOVERED, found
    yield CURRENT, filter_positions(int64s(found["url_id"]), bits)
    yield KNOWN, links.known_urls(rows, prepared.harvested)
    yield EDGES, links.link_edges(rows, prepared.queue)
    yield DIGESTS, digest_table(rows.digests)
    if request.contexts:
        yield ANCHORS, links.anchor_texts(table, rows)
    if request.descriptions:
        yield from describe.link_evidence(table, rows, prepared.harvested)
    if request.links:
        yield LINKS, links.followed_links(rows)


def _anchor_words(
    table: pa.Table, prepared: pages.Wanted, *, language: str, nouns: bool
) -> Iterator[tuple[str, pa.Table]]:
    table = table.filter(pa.array(prepared.contains(int64s(table["url_id"]))))
    counts, words = pages.text_words(int64s(table["url_id"]), column_array(table["anchor"]), language, nouns=nouns)
    yield MAIN, counts
    yield pages.WORDS, words


def _chosen_edges(edges: pa.Table, prepared: pages.Wanted, *, near: bool) -> Iterator[tuple[str, pa.Table]]:
    yield MAIN, links.click_edges_of_queue(edges, prepared.queue)
    if near:
        rows = describe.click_evidence(edges, prepared.harvested)
        yield NEAR, rows.filter(pa.array(prepared.contains(int64s(rows["url_id"]))))


def _wanted_clicks(clicks: pa.Table, prepared: pages.Wanted) -> pa.Table:
    kept = clicks.filter(pa.array(prepared.contains(int64s(clicks["url_id"]))))
    return kept.rename_columns(pages.TERM_SCHEMA.names)


class _Corpus(NamedTuple):
    """What all workers know: the harvested URLs, and the words' document frequencies."""

    harvested: Int64s
    words: objects.Corpus

    @staticmethod
    def of(
        harvested: pa.Table | None, frequencies: pa.Table | None = None, documents: pa.Table | None = None
    ) -> _Corpus:
        known = _Known.of(harvested)
        frequencies = pages.FREQUENCY_SCHEMA.empty_table() if frequencies is None else frequencies.sort_by("word_id")
        corpus = objects.Corpus(
            known.queue,
            int64s(frequencies["word_id"]),
            int64s(frequencies["documents"]),
            0 if documents is None else int(pc.sum(documents["documents"]).as_py()),
        )
        return _Corpus(known.harvested, corpus)


def _described(
    prepared: _Corpus,
    *,
    request: Request,
    settings: objects.ObjectSettings,
    harvest: pa.Table | None = None,
    **tables: pa.Table | None,
) -> Iterator[tuple[str, pa.Table]]:
    """The objects of one partition of URLs, their descriptions, and what else is requested."""
    harvest = HARVEST_SCHEMA.empty_table() if harvest is None else harvest
    queue = harvest.filter(harvest["queued"]).select(links.DISCOVERED_SCHEMA.names)
    if request.words:
        terms, words = pages.address_words(
            *_addressed(harvest, tables, request), settings.language, nouns=settings.nouns
        )
        tables["addresses"] = terms
        yield pages.WORDS, words
    evidence = Evidence(queue=queue, harvested=harvest.select(describe.HARVESTED_SCHEMA.names), **tables)
    results = dict(objects.make_objects(evidence, prepared.words, settings))
    yield from results.items()
    base = np.unique(int64s(results[objects.BASE]["url_id"])) if results else np.zeros(0, dtype=np.int64)
    yield UNKNOWN, queue.filter(pa.array(~members(base, int64s(queue["url_id"]))))
    if request.nodes:
        yield NODES, objects.graph_nodes(results.get(MAIN), harvest)
    if request.descriptions:
        for kind, table in describe.describe_urls(evidence, prepared.harvested):
            yield DESCRIPTIONS if kind == MAIN else PLACES, table


_COMBINED: dict[str, Combine] = {
    "discovered": distinct_rows,
    "known": distinct_rows,
    "edges": partial(sum_by_key, counts="times"),
    "clicked": partial(sum_by_key, counts="count"),
    "linkers": partial(sum_by_key, counts="count"),
}
"""Rows of one URL in several parts are added up before the exchange."""


def _addressed(harvest: pa.Table, tables: dict[str, pa.Table | None], request: Request) -> tuple[Int64s, pa.Array]:
    """Ids and addresses of the URLs whose addresses' words count: known ones; for contexts undescribed ones."""
    seen = [int64s(table["url_id"]) for name in ("known", "fetched") if (table := tables[name]) is not None]
    mentioned = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *seen]))
    rows = [harvest.filter(pa.array(members(mentioned, int64s(harvest["url_id"]))))]
    rows += [table for table in (tables["discovered"],) if table is not None]
    urls = pa.concat_tables([table.select(links.DISCOVERED_SCHEMA.names) for table in rows])
    ids, first = np.unique(int64s(urls["url_id"]), return_index=True)
    fetched = tables["fetched"]
    if not request.descriptions and fetched is not None:
        described = np.unique(int64s(fetched.filter(fetched["described"])["url_id"]))
        kept = ~members(described, ids)
        ids, first = ids[kept], first[kept]
    return ids, column_array(urls["url"]).take(pa.array(first))


def _named_words(
    words: pa.Table | None,
    supports: pa.Table | None = None,
    clicks: pa.Table | None = None,
    places: pa.Table | None = None,
) -> Iterator[tuple[str, pa.Table]]:
    """The keywords of one partition, and the words of descriptions; others are left out."""
    if words is None:
        return
    if supports is not None:
        yield MAIN, objects.keywords(words, supports, clicks)
    if places is not None:
        yield DESCRIPTIONS, describe.vocabulary_part(places, words)


def _number_words(contexts: pa.Table | None, descriptions: pa.Table | None) -> Iterator[tuple[str, pa.Table]]:
    if contexts is not None:
        yield MAIN, contexts.sort_by("word").combine_chunks()
    if descriptions is not None:
        yield DESCRIPTIONS, descriptions.sort_by("word").combine_chunks()


def _shared_ids(digests: pa.Table) -> pa.Table:
    return pa.table([shared_ids([digests])], schema=links.ID_SCHEMA)


def _refuse_shared(ids: pa.Table | None) -> Iterator[pa.Table]:
    if ids is not None:
        raise IdCollisionError(int64s(ids["url_id"]).tolist()[:MOST_SHARED])
    yield from ()
