"""Beam steps that describe the URLs a ranker looks at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa

from semrank.transforms.columnar.arrays import MAIN, Int64s, int64s
from semrank.transforms.columnar.idfilter import IdFilter
from semrank.transforms.columnar.steps import Collection, GatherTables, MapTables, MergePartitions, ReadParquet
from semrank.transforms.context import describe, links
from semrank.transforms.context.memory import DESCRIBED, HARVEST
from semrank.transforms.context.pages import TERM_SCHEMA, WORDS, Wanted
from semrank.transforms.context.steps import Partitions


class Described(NamedTuple):
    """What the rankers look at.

    Attributes:
        descriptions: known URLs (`DESCRIPTION_SCHEMA`) in bounded tables, words by number.
        vocabulary: the words, one small collection in word order (`describe.VOCABULARY_SCHEMA`).
    """

    descriptions: Collection
    vocabulary: Collection


class DescribeUrls(beam.PTransform[Any, Any]):
    """Reads the snapshot and gives `Described`: the harvested URLs and those they link to.

    Args:
        page_paths: Parquet files of the pages table.
        link_paths: Parquet files of the links table.
        harvested: all URLs that the crawl chose so far, seeds among them (`describe.HARVESTED_SCHEMA`).
        current: segments of a filter of the ids of the URLs to rank; `ContextParts.current_ids`.
        clicks: c-edges, clicks by (URL, word) and words of the click log; attributes `edges`, `url_clicks` and `words`.
        partitions: numbers of partitions.
        language: language of anchors, addresses and of pages whose language is not known.
    """

    def __init__(
        self,
        page_paths: Sequence[str],
        link_paths: Sequence[str],
        *,
        harvested: Collection,
        current: Collection,
        clicks: Any,
        partitions: Partitions,
        language: str,
    ) -> None:
        super().__init__("describe URLs")
        self._page_paths, self._link_paths = page_paths, link_paths
        self._harvested, self._current, self._clicks = harvested, current, clicks
        self._partitions, self._language = partitions, language

    def expand(self, pipeline: beam.Pipeline) -> Described:
        """Applies the steps."""
        harvested = {"harvested": self._harvested}
        known = {**harvested, "current": self._current}
        prepare = partial(_wanted, bits=self._partitions.filter_bits)
        said = (
            pipeline
            | ReadParquet("read described pages", self._page_paths, describe.PAGE_COLUMNS)
            | MapTables(
                "read evidence of pages",
                partial(_page_evidence, language=self._language),
                sides=known,
                prepare=prepare,
                tags=_PAGE_KINDS,
                holds=HARVEST,
            )
        )
        linked = (
            pipeline
            | ReadParquet("read links of harvested", self._link_paths, links.COLUMNS)
            | MapTables(
                "read evidence of links",
                partial(_link_evidence, language=self._language),
                sides=harvested,
                prepare=_ids,
                tags=_LINK_KINDS,
                holds=HARVEST,
            )
        )
        told = {"sources": said[describe.SOURCES], "anchored": linked[describe.ANCHORED]} | MergePartitions(
            "read words around anchors",
            partial(_anchor_evidence, language=self._language),
            partitions=max(self._partitions.pages, self._partitions.links),
            key="url_id",
            tags=_ANCHOR_KINDS,
        )
        about: dict[str, Any] = {"sides": known, "prepare": prepare, "holds": HARVEST}
        near = self._clicks.edges | MapTables("choose neighbouring clicks", _near, **about)
        query = self._clicks.url_clicks | MapTables("choose words of clicks", _query, **about)
        addresses = (said[describe.ADDRESSES], linked[describe.ADDRESSES]) | "all addresses" >> beam.Flatten()
        made = {
            "harvested": self._harvested,
            "current": linked[describe.CURRENT],
            "pages": said[describe.PAGES],
            "text": said[describe.TEXT],
            "lead": said[describe.LEAD],
            "anchor": told[describe.ANCHOR],
            "around": told[describe.AROUND],
            "query": query,
            "addresses": addresses,
            "linkers": linked[describe.LINKERS],
            "near": near,
        } | MergePartitions(
            "make descriptions",
            _describe,
            partitions=max(self._partitions.pages, self._partitions.links),
            key="url_id",
            sides=harvested,
            prepare=_ids,
            tags=(MAIN, describe.SUPPORTS),
            holds=HARVEST,
        )
        words = (said[WORDS], linked[WORDS], told[WORDS], self._clicks.words) | "all words told" >> beam.Flatten()
        vocabulary = {
            "words": {"words": words, "supports": made[describe.SUPPORTS]}
            | MergePartitions(
                "name words of descriptions", _vocabulary_part, partitions=self._partitions.pages, key="word_id"
            )
        } | GatherTables("number words of descriptions", describe.number_vocabulary, holds=DESCRIBED)
        descriptions = made[MAIN] | MapTables(
            "number descriptions",
            _number_descriptions,
            sides={"vocabulary": vocabulary},
            prepare=describe.WordNumbers.of,
            holds=DESCRIBED,
        )
        return Described(descriptions, vocabulary)


_PAGE_KINDS = (describe.PAGES, describe.TEXT, describe.LEAD, describe.ADDRESSES, describe.SOURCES, WORDS)
_LINK_KINDS = (describe.CURRENT, describe.LINKERS, describe.ANCHORED, describe.ADDRESSES, WORDS)
_ANCHOR_KINDS = (describe.ANCHOR, describe.AROUND, WORDS)


def _ids(harvested: pa.Table | None) -> Int64s:
    return np.zeros(0, dtype=np.int64) if harvested is None else np.sort(int64s(harvested["url_id"]))


def _wanted(harvested: pa.Table | None, current: pa.Table | None, *, bits: int) -> Wanted:
    return Wanted(_ids(harvested), IdFilter.from_segments(current, bits))


def _page_evidence(table: pa.Table, prepared: Wanted, *, language: str) -> Iterator[tuple[str, pa.Table]]:
    yield from describe.page_evidence(table, prepared, language)


def _link_evidence(table: pa.Table, prepared: Int64s, *, language: str) -> Iterator[tuple[str, pa.Table]]:
    yield from describe.link_evidence(table, links.read_links(table), prepared, language)


def _anchor_evidence(
    sources: pa.Table | None, anchored: pa.Table | None, *, language: str
) -> Iterator[tuple[str, pa.Table]]:
    yield from describe.anchor_evidence(sources, anchored, language)


def _near(edges: pa.Table, prepared: Wanted) -> pa.Table:
    near = describe.click_evidence(edges, prepared.queue)
    return near.filter(pa.array(prepared.contains(int64s(near["url_id"]))))


def _query(clicks: pa.Table, prepared: Wanted) -> pa.Table:
    kept = clicks.filter(pa.array(prepared.contains(int64s(clicks["url_id"]))))
    return kept.rename_columns(TERM_SCHEMA.names)


def _describe(prepared: Int64s, **evidence: pa.Table | None) -> Iterator[tuple[str, pa.Table]]:
    yield from describe.describe_urls(describe.Evidence(**evidence), prepared)


def _vocabulary_part(words: pa.Table | None, supports: pa.Table | None) -> pa.Table:
    return describe.vocabulary_part(supports, words)


def _number_descriptions(table: pa.Table, prepared: describe.WordNumbers) -> pa.Table:
    return describe.number_descriptions(table, prepared)
