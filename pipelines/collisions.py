"""URLs that share an id with another one: of these the first one in order is used, the others are left out by name."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from semrank.schemas.tables import REJECTS
from semrank.transforms.columnar.arrays import Int64s
from semrank.transforms.columnar.ids import surplus_strings, text_ids
from semrank.transforms.columnar.parquet import READ_ROWS, open_stored
from semrank.transforms.columnar.steps import URL_COLUMNS

STAGE = "ids"
COLLISION = "id-collision"
"""Stage and reason of rejects."""


def surplus_urls(paths: Sequence[str], further: pa.Array, ids: Int64s) -> pa.Array:
    """The URLs of a snapshot that are left out because they share one of some ids, sorted; string[n].

    Args:
        paths: files of its tables.
        further: URLs that are not in the snapshot.
        ids: ids that several URLs have.

    Raises:
        InputError: a file can't be read.
    """
    wanted = pa.array(ids)
    found = [_with_ids(further, wanted)]
    for path in paths:
        with open_stored(path) as file:
            names = [name for name in URL_COLUMNS if name in file.schema_arrow.names]
            for batch in file.iter_batches(batch_size=READ_ROWS, columns=names):
                found += [_with_ids(column, wanted) for column in batch.columns]
    return surplus_strings(pa.concat_arrays(found))


def _with_ids(urls: pa.Array, ids: pa.Array) -> pa.Array:
    distinct = pc.unique(urls.cast(pa.string()))
    return distinct.filter(pc.is_in(pa.array(text_ids(distinct)), value_set=ids))


def collision_rejects(urls: pa.Array) -> pa.Table:
    """A row of `REJECTS` for each URL that is left out."""
    return pa.table([[STAGE] * len(urls), [COLLISION] * len(urls), urls], schema=REJECTS.schema)


def url_chunks(table: pa.Table) -> list[pa.Array]:
    """The arrays of a table that hold URLs."""
    names = [name for name in URL_COLUMNS if name in table.column_names]
    return [chunk for name in names for chunk in table[name].cast(pa.string()).chunks]
