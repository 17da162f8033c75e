"""URLs that share an id: the first one in order is used, the others are rejected."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.schemas.tables import REJECTS
from semrank.transforms.columnar.arrays import Int64s, int64s
from semrank.transforms.columnar.beam import URL_COLUMNS
from semrank.transforms.columnar.ids import (
    DIGEST_SCHEMA,
    digest_table,
    shared_ids,
    surplus_strings,
    text_digests,
    text_ids,
)
from semrank.transforms.columnar.parquet import READ_ROWS, open_stored

STAGE = "ids"
COLLISION = "id-collision"
"""Stage and reason of rejects."""


def shared_url_ids(paths: Sequence[str], further: pa.Array) -> Int64s:
    """The ids of several URLs of a snapshot, ascending, int64[n]; takes 16 bytes of memory for each URL.

    Args:
        paths: files of its tables.
        further: URLs that are not in the snapshot.

    Raises:
        InputError: a file can't be read.
    """
    known = digest_table(text_digests(further))
    waiting: list[pa.Table] = []
    for urls in _stored_urls(paths):
        waiting.append(digest_table(text_digests(pc.unique(urls))))
        if sum(table.num_rows for table in waiting) > known.num_rows:
            known, waiting = _merged([known, *waiting]), []
    return shared_ids([known, *waiting])


def _merged(digests: Sequence[pa.Table]) -> pa.Table:
    return digest_table(np.column_stack([int64s(pa.concat_tables(digests)[name]) for name in DIGEST_SCHEMA.names]))


def _stored_urls(paths: Sequence[str]) -> Iterator[pa.Array]:
    """The columns with URLs in the files of a snapshot's tables, in pieces."""
    for path in paths:
        with open_stored(path) as file:
            names = [name for name in URL_COLUMNS if name in file.schema_arrow.names]
            for batch in file.iter_batches(batch_size=READ_ROWS, columns=names, use_threads=False):
                yield from (column.cast(pa.string()) for column in batch.columns)


def surplus_urls(paths: Sequence[str], further: pa.Array, ids: Int64s) -> pa.Array:
    """The rejected URLs of a snapshot that share one of the ids, sorted, string[n].

    Args:
        paths: files of its tables.
        further: URLs that are not in the snapshot.
        ids: ids that several URLs have.

    Raises:
        InputError: a file can't be read.
    """
    wanted = pa.array(ids)
    found = [_with_ids(urls, wanted) for urls in itertools.chain([further], _stored_urls(paths))]
    return surplus_strings(pa.concat_arrays(found))


def _with_ids(urls: pa.Array, ids: pa.Array) -> pa.Array:
    distinct = pc.unique(urls)
    return distinct.filter(pc.is_in(pa.array(text_ids(distinct)), value_set=ids))


def collision_rejects(urls: pa.Array) -> pa.Table:
    """A row of `REJECTS` for each rejected URL."""
    return pa.table([[STAGE] * len(urls), [COLLISION] * len(urls), urls], schema=REJECTS.schema)


def url_chunks(table: pa.Table) -> list[pa.Array]:
    """The arrays of a table with URLs."""
    names = [name for name in URL_COLUMNS if name in table.column_names]
    return [chunk for name in names for chunk in table[name].cast(pa.string()).chunks]
