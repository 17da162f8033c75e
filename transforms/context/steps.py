"""Beam steps that build the two formal contexts and their vocabulary."""

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
    column_array,
    distinct_rows,
    int64s,
    list_column,
    list_parts,
    positions,
)
from semrank.transforms.columnar.idfilter import IdFilter
from semrank.transforms.columnar.ids import IdCollisionError, digest_table, shared_ids, text_digests, without_shared_ids
from semrank.transforms.columnar.steps import (
    Collection,
    FilterIds,
    GatherTables,
    MapTables,
    MergePartitions,
    ReadParquet,
)
from semrank.transforms.context import links, objects, pages
from semrank.transforms.context.memory import QUEUE
from semrank.transforms.weblog.memory import VOCABULARY

DISCOVERED, KNOWN, EDGES, LINK_DIGESTS = "discovered", "known", "edges", "digests"

QUEUE_SCHEMA = pa.schema([pa.field("url_id", pa.int64()), pa.field("url", pa.string())])
VOCABULARY_SCHEMA = pa.schema(
    [
        pa.field("word", pa.string()),
        pa.field("word_id", pa.int64()),
        pa.field("clicks", pa.int64()),
        pa.field("base_support", pa.int64()),
        pa.field("current_support", pa.int64()),
    ]
)
"""A keyword of the contexts; a word's number is its place in the order of the words."""


class Partitions(NamedTuple):
    """Numbers of partitions, from the sizes of the tables, and the size of id filters in bits."""

    pages: int
    links: int
    clicks: int
    filter_bits: int


class ContextParts(NamedTuple):
    """The contexts.

    Attributes:
        base: queue URLs (`objects.OBJECT_SCHEMA`), with word ids.
        current: URLs to rank, likewise.
        current_ids: segments of a filter of the current URLs' ids, for `IdFilter.from_segments`.
        vocabulary: all keywords, one small collection in word order (`VOCABULARY_SCHEMA`).
        unknown: queue URLs that the snapshot does not know.
    """

    base: Collection
    current: Collection
    current_ids: Collection
    vocabulary: Collection
    unknown: Collection


class BuildContexts(beam.PTransform[Any, Any]):
    """Reads the snapshot and gives `ContextParts`.

    Args:
        page_paths: Parquet files of the pages table.
        link_paths: Parquet files of the links table.
        queue: the queue's URLs (`QUEUE_SCHEMA`), sorted by id.
        harvested: ids of all URLs that the crawl chose so far (`url_id`), the queue's among them; they are not ranked.
        from_queue: whether only link targets of the queue are ranked, else those of all harvested URLs.
        refresh: whether harvested URLs outside the queue are ranked, too.
        clicks: c-edges, clicks by word, clicks by (URL, word), words and digests of the click log; attributes
            `edges`, `word_clicks`, `url_clicks`, `words` and `digests`.
        partitions: numbers of partitions.
        settings: how attributes are chosen.
    """

    def __init__(
        self,
        page_paths: Sequence[str],
        link_paths: Sequence[str],
        *,
        queue: Collection,
        harvested: Collection,
        from_queue: bool = False,
        refresh: bool = False,
        clicks: Any,
        partitions: Partitions,
        settings: objects.ObjectSettings,
    ) -> None:
        super().__init__("build contexts")
        self._harvested, self._from_queue, self._refresh = harvested, from_queue, refresh
        self._page_paths, self._link_paths = page_paths, link_paths
        self._queue, self._clicks, self._partitions, self._settings = queue, clicks, partitions, settings

    def expand(self, pipeline: beam.Pipeline) -> ContextParts:
        """Applies the steps."""
        queue = {"queue": self._queue}
        found = (
            pipeline
            | ReadParquet("read links", self._link_paths, links.COLUMNS)
            | MapTables(
                "follow queue's links",
                partial(_queue_links, from_queue=self._from_queue, refresh=self._refresh),
                sides={**queue, "harvested": self._harvested},
                prepare=_Known.of,
                tags=(DISCOVERED, KNOWN, EDGES, LINK_DIGESTS),
                holds=QUEUE,
            )
        )
        current = found[DISCOVERED] | FilterIds("filter current", self._partitions.filter_bits, "url_id")
        wanted = {"queue": self._queue, "current": current}
        prepare = partial(_wanted, bits=self._partitions.filter_bits)
        said = (
            pipeline
            | ReadParquet("read pages", self._page_paths, pages.COLUMNS)
            | MapTables(
                "read words of pages",
                partial(_page_words, language=self._settings.language),
                sides=wanted,
                prepare=prepare,
                tags=_PAGE_KINDS,
                holds=QUEUE,
            )
        )
        anchors = (
            pipeline
            | ReadParquet("read anchors", self._link_paths, links.COLUMNS)
            | MapTables(
                "read words of anchors",
                partial(_anchor_words, language=self._settings.language),
                sides=wanted,
                prepare=prepare,
                tags=(MAIN, pages.WORDS),
                holds=QUEUE,
            )
        )
        clicked = self._clicks.url_clicks | MapTables(
            "choose clicked words", _wanted_clicks, sides=wanted, prepare=prepare, holds=QUEUE
        )
        click_edges = self._clicks.edges | MapTables(
            "choose click edges", _queue_clicks, sides=queue, prepare=_queue_ids, holds=QUEUE
        )
        frequencies = {"frequencies": said[pages.FREQUENCIES]} | MergePartitions(
            "count documents of words", _frequencies, partitions=self._partitions.pages, key="word_id"
        )
        edges = (found[EDGES], click_edges) | "all edges" >> beam.Flatten()
        made = {
            "discovered": found[DISCOVERED],
            "known": found[KNOWN],
            "edges": edges,
            "fetched": said[pages.FETCHED],
            "terms": said[pages.TERMS],
            "given": said[pages.GIVEN],
            "anchors": anchors[MAIN],
            "clicked": clicked,
        } | MergePartitions(
            "make objects",
            partial(_objects, settings=self._settings),
            partitions=max(self._partitions.links, self._partitions.pages),
            key="url_id",
            sides={"queue": self._queue, "frequencies": frequencies, "documents": said[pages.DOCUMENTS]},
            prepare=_corpus,
            tags=(MAIN, objects.BASE, objects.SUPPORTS, pages.WORDS),
            holds=QUEUE,
        )
        words = (
            said[pages.WORDS],
            anchors[pages.WORDS],
            made[pages.WORDS],
            self._clicks.words,
        ) | "all words" >> beam.Flatten()
        vocabulary = {
            "words": words,
            "supports": made[objects.SUPPORTS],
            "clicks": self._clicks.word_clicks,
        } | MergePartitions("join words", _vocabulary, partitions=self._partitions.pages, key="word_id")
        numbered = {"words": vocabulary} | GatherTables("number words", _number_words, holds=VOCABULARY)
        of_queue = self._queue | MapTables("list ids of queue", _queue_digests)
        digests = (
            found[LINK_DIGESTS],
            said[pages.DIGESTS],
            self._clicks.digests,
            of_queue,
        ) | "all ids" >> beam.Flatten()
        shared = {"digests": digests} | MergePartitions(
            "check ids", _shared_ids, partitions=self._partitions.links, key="id"
        )
        # Nothing follows from this step: it ends the run where URLs share an id.
        {"ids": shared} | GatherTables("refuse shared ids", _refuse_shared)
        unknown = {
            "known": made[objects.BASE] | MapTables("list queue URLs", _url_ids),
            "queue": self._queue,
        } | GatherTables("find unknown queue URLs", _unknown, holds=QUEUE)
        return ContextParts(made[objects.BASE], made[MAIN], current, numbered, unknown)


MOST_SHARED = 10_000
"""Shared ids that one error lists: 200 kB of text."""

_SHARED_SCHEMA = pa.schema([pa.field("url_id", pa.int64())])

_PAGE_KINDS = (
    pages.TERMS,
    pages.GIVEN,
    pages.WORDS,
    pages.FETCHED,
    pages.FREQUENCIES,
    pages.DOCUMENTS,
    pages.DIGESTS,
)


def _queue_ids(queue: pa.Table | None) -> Int64s:
    return np.zeros(0, dtype=np.int64) if queue is None else np.sort(int64s(queue["url_id"]))


class _Known(NamedTuple):
    """Sorted ids of the queue's URLs and of all harvested ones."""

    queue: Int64s
    harvested: Int64s

    @classmethod
    def of(cls, queue: pa.Table | None, harvested: pa.Table | None) -> _Known:
        return cls(_queue_ids(queue), _queue_ids(harvested))


def _wanted(queue: pa.Table | None, current: pa.Table | None, *, bits: int) -> pages.Wanted:
    return pages.Wanted(_queue_ids(queue), IdFilter.from_segments(current, bits))


def _queue_links(
    table: pa.Table, prepared: _Known, *, from_queue: bool, refresh: bool
) -> Iterator[tuple[str, pa.Table]]:
    rows = links.read_links(table)
    sources = prepared.queue if from_queue else prepared.harvested
    excluded = prepared.queue if refresh else prepared.harvested
    yield DISCOVERED, links.discovered_urls(rows, table, sources, excluded)
    yield KNOWN, links.known_queue_urls(rows, prepared.queue)
    yield EDGES, links.link_edges(rows, prepared.queue)
    yield LINK_DIGESTS, digest_table(rows.digests)


def _queue_clicks(edges: pa.Table, prepared: Int64s) -> pa.Table:
    return links.click_edges_of_queue(edges, prepared)


def _page_words(table: pa.Table, prepared: pages.Wanted, *, language: str) -> Iterator[tuple[str, pa.Table]]:
    yield from pages.page_words(table, prepared, language)


def _anchor_words(table: pa.Table, prepared: pages.Wanted, *, language: str) -> Iterator[tuple[str, pa.Table]]:
    rows = links.read_links(table)
    targets, anchors = links.anchor_rows(table, prepared.contains(rows.target), rows)
    counts, words = pages.text_words(targets, anchors, language)
    yield MAIN, counts
    yield pages.WORDS, words


def _wanted_clicks(clicks: pa.Table, prepared: pages.Wanted) -> pa.Table:
    kept = clicks.filter(pa.array(prepared.contains(int64s(clicks["url_id"]))))
    return kept.rename_columns(pages.TERM_SCHEMA.names)


def _frequencies(frequencies: pa.Table) -> pa.Table:
    return pages.frequent_words(frequencies)


def _corpus(queue: pa.Table | None, frequencies: pa.Table | None, documents: pa.Table | None) -> objects.Corpus:
    queue = QUEUE_SCHEMA.empty_table() if queue is None else queue.sort_by("url_id").combine_chunks()
    frequencies = pages.FREQUENCY_SCHEMA.empty_table() if frequencies is None else frequencies.sort_by("word_id")
    return objects.Corpus(
        int64s(queue["url_id"]),
        column_array(queue["url"]),
        int64s(frequencies["word_id"]),
        int64s(frequencies["documents"]),
        0 if documents is None else int(pc.sum(documents["documents"]).as_py()),
    )


def _objects(
    prepared: objects.Corpus, *, settings: objects.ObjectSettings, **evidence: pa.Table | None
) -> Iterator[tuple[str, pa.Table]]:
    yield from objects.make_objects(objects.Evidence(**evidence), prepared, settings)


def _vocabulary(words: pa.Table | None, supports: pa.Table | None, clicks: pa.Table | None) -> pa.Table:
    """The keywords of one partition; words that neither context has are left out."""
    if words is None or supports is None:
        return VOCABULARY_SCHEMA.empty_table()
    summed = supports.group_by("word_id").aggregate([("base", "sum"), ("current", "sum")])
    used = summed.sort_by("word_id")
    ids = int64s(used["word_id"])
    named = distinct_rows(words.filter(pa.array(positions(ids, int64s(words["word_id"])) >= 0)))
    named = without_shared_ids(named, "word_id", "word")
    if named.num_rows != len(ids):
        raise RuntimeError(f"{len(ids)} keywords have a support but {named.num_rows} have a name")
    counts = np.zeros(len(ids), dtype=np.int64)
    if clicks is not None:
        place = positions(ids, int64s(clicks["word_id"]))
        np.add.at(counts, place[place >= 0], int64s(clicks["clicks"])[place >= 0])
    return pa.table(
        [named["word"], named["word_id"], counts, used["base_sum"], used["current_sum"]], schema=VOCABULARY_SCHEMA
    )


def _number_words(words: pa.Table | None) -> pa.Table:
    return VOCABULARY_SCHEMA.empty_table() if words is None else words.sort_by("word").combine_chunks()


def _queue_digests(queue: pa.Table) -> pa.Table:
    return digest_table(text_digests(queue["url"]))


def _shared_ids(digests: pa.Table) -> pa.Table:
    return pa.table([shared_ids([digests])], schema=_SHARED_SCHEMA)


def _refuse_shared(ids: pa.Table | None) -> pa.Table:
    if ids is not None:
        raise IdCollisionError(int64s(ids["url_id"]).tolist()[:MOST_SHARED])
    return _SHARED_SCHEMA.empty_table()


def _url_ids(table: pa.Table) -> pa.Table:
    return table.select(["url_id"])


def _unknown(known: pa.Table | None, queue: pa.Table | None) -> pa.Table:
    return objects.unknown_queue_urls(known, _queue_ids(queue))


def number_words(table: pa.Table, vocabulary_ids: Int64s) -> pa.Table:
    """Objects with word numbers, ascending, in place of word ids.

    Args:
        table: objects of `OBJECT_SCHEMA`.
        vocabulary_ids: word id of each word number, int64[v].
    """
    order = np.argsort(vocabulary_ids)
    indptr, words = list_parts(table["words"])
    numbers = order[positions(vocabulary_ids[order], int64s(words))]
    owner = np.repeat(np.arange(table.num_rows, dtype=np.int64), np.diff(indptr))
    numbers = numbers[np.lexsort((numbers, owner))]
    return table.set_column(
        table.schema.get_field_index("words"), "words", list_column(pa.array(numbers.astype(np.int64)), indptr)
    )


def prepare_filter(clicked: pa.Table | None, *, bits: int) -> IdFilter:
    """An id filter from its broadcast segments; for `clicked_links`."""
    return IdFilter.from_segments(clicked, bits)


def clicked_links(table: pa.Table, prepared: IdFilter) -> pa.Table:
    """The followed links whose both ends may have been clicked, by id."""
    rows = links.read_links(table)
    return links.followed_links(rows, prepared.may_contain(rows.source) & prepared.may_contain(rows.target))
