"""What is known about each URL that a ranker looks at: its words by where they stand, and who links or clicks to it.

The known URLs of a round are the harvested ones (seeds and what earlier rounds chose) and the current ones, which are
to be ranked. A description of a URL is one row: on a cluster a partition of the URLs is a table of
`DESCRIPTION_SCHEMA`, in memory all of them are one; a ranker's functions take `Descriptions`, which is such a table as
arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from semrank.transforms.columnar.arrays import Bools, Int64s, bools, int64s, list_parts, row_pointers

BLOCKS = ("text", "lead", "anchor", "around", "query")
"""Where words stand: title and text, the first words of the text, anchors that point to the URL and the address, the
words around those anchors, and queries that led to clicks on it."""

_COUNTED = (*BLOCKS, "near")
_FLAGS = ("seed", "harvested", "current", "fetched", "described")

DESCRIPTION_SCHEMA = pa.schema(
    [
        pa.field("url_id", pa.int64()),
        *(pa.field(name, pa.bool_()) for name in _FLAGS),
        pa.field("place", pa.int64()),
        *(pa.field(f"{name}{suffix}", pa.list_(pa.int64())) for name in _COUNTED for suffix in ("", "_counts")),
        pa.field("linkers", pa.list_(pa.int64())),
    ]
)
"""A URL's description. Words are word ids, or word numbers once the vocabulary is known; `near` and `linkers` hold
places of harvested URLs: those clicked directly before or after this URL, with how often, and those that link to it."""


@dataclass(frozen=True, eq=False)
class Descriptions:
    """Descriptions of n URLs over v words and h harvested URLs, rows ascending by `url`.

    Attributes:
        url: id of each URL, int64[n].
        seed: whether the crawl began with it, bool[n].
        harvested: whether the crawl chose it in an earlier round, or it is a seed, bool[n].
        current: whether it is to be ranked, bool[n].
        fetched: whether it was fetched, bool[n].
        described: whether its own content is known, bool[n]; `text` and `lead` are empty elsewhere.
        place: number of a harvested URL in the ascending order of the harvested ids, -1 for others, int64[n].
        text: occurrences of words in title and text, or given keywords, CSR int64[n, v].
        lead: occurrences in the first words of the text, CSR int64[n, v].
        anchor: occurrences in anchors that point to the URL from harvested pages and in its address, CSR int64[n, v].
        around: occurrences around those anchors, CSR int64[n, v].
        query: clicks on the URL after queries with the word, CSR int64[n, v].
        linkers: 1 where a harvested page links to the URL, CSR int64[n, h].
        near: clicks directly between a harvested page and the URL, either way, CSR int64[n, h].
    """

    url: Int64s
    seed: Bools
    harvested: Bools
    current: Bools
    fetched: Bools
    described: Bools
    place: Int64s
    text: sparse.csr_array
    lead: sparse.csr_array
    anchor: sparse.csr_array
    around: sparse.csr_array
    query: sparse.csr_array
    linkers: sparse.csr_array
    near: sparse.csr_array

    def __len__(self) -> int:
        return len(self.url)

    @property
    def word_count(self) -> int:
        """v, the size of the vocabulary."""
        return int(self.text.shape[1])

    @property
    def harvested_count(self) -> int:
        """h, the number of harvested URLs of the whole crawl."""
        return int(self.linkers.shape[1])

    @classmethod
    def of_table(cls, table: pa.Table, *, words: int, harvested: int) -> Descriptions:
        """Descriptions of a table of `DESCRIPTION_SCHEMA` whose words are numbers below `words`."""
        order = np.argsort(int64s(table["url_id"]), kind="stable")
        table = table.take(pa.array(order)).combine_chunks()
        widths = {**dict.fromkeys(BLOCKS, words), "near": harvested}
        flags: dict[str, Any] = {name: bools(table[name]) for name in _FLAGS}
        matrices: dict[str, Any] = {
            name: _matrix(table[name], table[f"{name}_counts"], width) for name, width in widths.items()
        }
        return cls(
            url=int64s(table["url_id"]),
            **flags,
            place=int64s(table["place"]),
            **matrices,
            linkers=_matrix(table["linkers"], None, harvested),
        )

    def select(self, rows: Int64s | Bools) -> Descriptions:
        """The rows with some numbers, or where a mask is true, in their order."""
        numbers = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return Descriptions(**{field.name: getattr(self, field.name)[numbers] for field in fields(self)})


def _matrix(indices: pa.ChunkedArray, counts: pa.ChunkedArray | None, width: int) -> sparse.csr_array:
    indptr, places = list_parts(indices)
    data = np.ones(len(places), dtype=np.int64) if counts is None else int64s(list_parts(counts)[1])
    matrix = sparse.csr_array((data, int64s(places), indptr), shape=(len(indptr) - 1, width))
    matrix.sort_indices()
    return matrix


def counts_matrix(rows: Int64s, columns: Int64s, counts: Int64s, shape: tuple[int, int]) -> sparse.csr_array:
    """Counts added by (row, column), CSR int64[shape] with ascending indices."""
    order = np.lexsort((columns, rows))
    matrix = sparse.csr_array((counts[order], columns[order], row_pointers(rows, shape[0])), shape=shape)
    matrix.sum_duplicates()
    return matrix
