"""Descriptions as the tables that stages exchange."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import sparse

from semrank.transforms.columnar.arrays import list_column
from semrank.transforms.context.descriptions import BLOCKS, DESCRIPTION_SCHEMA, Descriptions


def description_table(known: Descriptions) -> pa.Table:
    """The descriptions as a table of `DESCRIPTION_SCHEMA`."""
    flags = ("seed", "harvested", "current", "fetched", "described")
    columns: list[pa.Array] = [pa.array(known.url), *(pa.array(getattr(known, name)) for name in flags)]
    columns.append(pa.array(known.place))
    for name in (*BLOCKS, "near"):
        matrix = getattr(known, name)
        columns += [_lists(matrix, matrix.indices), _lists(matrix, matrix.data)]
    columns.append(_lists(known.linkers, known.linkers.indices))
    return pa.table(columns, schema=DESCRIPTION_SCHEMA)


def _lists(matrix: sparse.csr_array, values: npt.NDArray[np.integer]) -> pa.ListArray:
    return list_column(pa.array(values.astype(np.int64)), matrix.indptr.astype(np.int64))
