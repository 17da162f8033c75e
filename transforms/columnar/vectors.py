"""Vectors by name as small tables: what is broadcast of a model that has a number for each word or page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from semrank.transforms.columnar.arrays import Float64s, list_parts

VECTOR_SCHEMA = pa.schema(
    [
        pa.field("vector", pa.string()),
        pa.field("size", pa.int64()),
        pa.field("begin", pa.int64()),
        pa.field("values", pa.list_(pa.float64())),
    ]
)
"""A piece of a vector: the vector's name and length, and the numbers from `begin` on."""

_PIECE = 1 << 14
"""Numbers in a piece, 128 KiB: a worker that reads vectors holds one piece besides."""


def vector_tables(vectors: Mapping[str, Float64s]) -> Iterator[pa.Table]:
    """Vectors as tables of `VECTOR_SCHEMA` with one piece each; a vector without numbers has a piece, too."""
    for name, vector in vectors.items():
        for begin in range(0, max(len(vector), 1), _PIECE):
            piece = vector[begin : begin + _PIECE]
            values = pa.ListArray.from_arrays(pa.array([0, len(piece)], pa.int32()), pa.array(piece))
            yield pa.table([[name], [len(vector)], [begin], values], schema=VECTOR_SCHEMA)


def read_vectors(tables: Iterable[pa.Table]) -> dict[str, Float64s]:
    """The vectors of tables of `VECTOR_SCHEMA`, in any order, float64 each; one table after another is held."""
    vectors: dict[str, Float64s] = {}
    for table in tables:
        indptr, values = list_parts(table["values"])
        numbers = values.to_numpy()
        rows = table.select(["vector", "size", "begin"]).to_pylist()
        for row, start, end in zip(rows, indptr[:-1], indptr[1:], strict=True):
            if row["vector"] not in vectors:
                vectors[row["vector"]] = np.zeros(row["size"])
            vectors[row["vector"]][row["begin"] : row["begin"] + end - start] = numbers[start:end]
    return vectors
