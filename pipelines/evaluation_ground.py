"""What the crawls of an evaluation are replayed on: a snapshot in memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from semrank.transforms.columnar.arrays import Int64s, column_array, positions
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.context.words import DEFAULT_LANGUAGE
from semrank.transforms.replay.holdout import ClickTargets
from semrank.transforms.replay.semrank_local import SemRankWeb
from semrank.transforms.replay.web import Web


@dataclass(frozen=True, eq=False)
class Ground:
    """What crawls are replayed on: the pages of a snapshot, numbered in the order of their URLs.

    Attributes:
        urls: the pages' URLs, ascending, string[n].
        ids: id of each, int64[n].
        order: numbers in the order of the ids, int64[n].
        links: which pages each page links to, CSR int64[n, n].
        pages_table: the snapshot's pages (`PAGES`).
        links_table: its links (`LINKS`).
        clicks_table: its clicks (`CLICKS`).
        language: language of queries, anchors and of pages whose language is not known.
        nouns: whether only nouns are words.
    """

    urls: pa.Array
    ids: Int64s
    order: Int64s
    links: sparse.csr_array
    pages_table: pa.Table
    links_table: pa.Table
    clicks_table: pa.Table
    language: str = DEFAULT_LANGUAGE
    nouns: bool = False

    @classmethod
    def of(
        cls,
        pages: pa.Table,
        links: pa.Table,
        clicks: pa.Table,
        *,
        language: str = DEFAULT_LANGUAGE,
        nouns: bool = False,
    ) -> Ground:
        """From conformed tables; see the attributes."""
        urls = column_array(pc.unique(pages["url"]).sort())
        ids = text_ids(urls)
        order = np.argsort(ids)
        source, target = (positions(ids[order], text_ids(links[name])) for name in ("source_url", "target_url"))
        inside = (source >= 0) & (target >= 0) & (source != target)
        ends = (order[source[inside]], order[target[inside]]) if len(ids) else (source[:0], target[:0])
        found = sparse.csr_array((np.ones(len(ends[0]), dtype=np.int64), ends), shape=(len(ids), len(ids)))
        found.sum_duplicates()
        return cls(urls, ids, order, found, pages, links, clicks, language, nouns)

    def __len__(self) -> int:
        return len(self.urls)

    @cached_property
    def targets(self) -> ClickTargets:
        """What each session of the click log was looking for."""
        return ClickTargets.of(self.clicks_table, self.pages_table)

    @cached_property
    def web(self) -> Web:
        """The snapshot as facts are made from it, with all clicks."""
        tables = (self.pages_table, self.links_table, self.clicks_table)
        return Web.of_tables(*tables, language=self.language, nouns=self.nouns)

    @cached_property
    def semrank_web(self) -> SemRankWeb:
        """The snapshot as SemRank's rounds are made from it."""
        return SemRankWeb.of(self.pages_table, self.links_table, language=self.language, nouns=self.nouns)
