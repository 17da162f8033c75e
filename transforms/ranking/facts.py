"""The facts of a crawl at one moment, in memory; on a cluster they are in partitions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from scipy import sparse

from semrank.transforms.columnar.arrays import Float64s, Int64s
from semrank.transforms.context.descriptions import Descriptions


@dataclass(frozen=True, eq=False)
class Facts:
    """Known URLs, numbered by the order of their ids, with what is known of them.

    Attributes:
        descriptions: all known URLs, n rows.
        links: 1 where a followed link leads from one known URL to another, itself excluded, CSR int64[n, n].
        clicks: how often a c-edge was walked, CSR int64[n, n].
        discovery: order in which the URLs became known, lowest first, int64[n]; equal where it is unknown.
        query: numbers of the query's words, int64.
        words: the vocabulary in ascending order, string[v].
        asked: how many sessions clicked each URL after queries with each word, CSR int64[n, v]; None where sessions
            were not counted.
    """

    descriptions: Descriptions
    links: sparse.csr_array
    clicks: sparse.csr_array
    discovery: Int64s
    query: Int64s
    words: pa.Array
    asked: sparse.csr_array | None = None

    @cached_property
    def document_counts(self) -> Int64s:
        """Number of known URLs whose words hold each word; see `document_words`; int64[v]."""
        found = document_words(self.descriptions)
        return np.bincount(found.indices, minlength=self.descriptions.word_count).astype(np.int64)

    @cached_property
    def current(self) -> Int64s:
        """Numbers of the URLs to rank, ascending."""
        return np.flatnonzero(self.descriptions.current).astype(np.int64)


def document_words(descriptions: Descriptions) -> sparse.csr_array:
    """Which words a URL has, bool[n, v]: those of its text where described, else of its anchors and around them."""
    link_words = sparse.csr_array(descriptions.anchor + descriptions.around)
    link_words.data = link_words.data * np.repeat(~descriptions.described, np.diff(link_words.indptr))
    words = sparse.csr_array(descriptions.text + link_words)
    words.eliminate_zeros()
    return sparse.csr_array(words > 0)


def inverse_document_frequency(document_counts: Int64s, documents: int) -> Float64s:
    """ln((N + 1) / (df + 0.5)) of each word, float64[v]."""
    return np.asarray(np.log((documents + 1) / (document_counts + 0.5)), dtype=np.float64)
