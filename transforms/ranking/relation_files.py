"""The written relations: their rows, and which file each is in.

The files are sorted by relation, source and target, one after another. They are cut between sources, into ranges of
about `RANGE_ROWS` relations, so a worker holds a range, whatever their number.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from semrank.schemas.tables import RELATIONS
from semrank.transforms.columnar.arrays import column_array, int64s, sum_by_key
from semrank.transforms.weblog.relations import ISA, PART_OF

RANGE_ROWS = 1 << 20
"""Relations of a file, 32 MiB of pairs; more only where neighbouring sources have them."""

_SOURCES = 64
"""Neighbouring sources that are counted together."""

COUNT_SCHEMA = pa.schema([pa.field("bucket", pa.int64()), pa.field("count", pa.int64())])
"""Relations of a bucket: of some sources and one kind. Buckets are numbered in the order of the rows."""

CUT_SCHEMA = pa.schema([pa.field("bucket", pa.int64())])
"""First bucket of each range but the first one."""

_KINDS = {ISA: 0, PART_OF: 1 << 60}


def _buckets(pairs: pa.Table, kind: str) -> pa.Array:
    return pa.array(_KINDS[kind] + int64s(pairs["source"]) // _SOURCES)


def bucket_counts(pairs: pa.Table, *, kind: str) -> pa.Table:
    """Numbers of relations of a part, a table of `COUNT_SCHEMA`."""
    rows = pa.table([_buckets(pairs, kind), np.ones(pairs.num_rows, dtype=np.int64)], schema=COUNT_SCHEMA)
    return added_counts(rows)


def added_counts(counts: pa.Table) -> pa.Table:
    """Numbers of several parts added up, a table of `COUNT_SCHEMA`."""
    return sum_by_key(counts, "count")


def range_cuts(**counts: pa.Table | None) -> pa.Table:
    """Where the files are cut, a table of `CUT_SCHEMA`, ascending.

    Args:
        counts: rows of `COUNT_SCHEMA` of all parts.
    """
    parts = [table for table in counts.values() if table is not None]
    if not parts:
        return CUT_SCHEMA.empty_table()
    added = added_counts(pa.concat_tables(parts)).sort_by("bucket")
    ranges = (np.cumsum(int64s(added["count"])) - 1) // RANGE_ROWS
    first = np.flatnonzero(np.diff(ranges, prepend=ranges[:1]) > 0)
    return added.select(CUT_SCHEMA.names).take(pa.array(first))


def with_ranges(pairs: pa.Table, cuts: pa.Table | None, *, kind: str) -> pa.Table:
    """Relations with the number of their file in a column `range`."""
    numbers = np.zeros(pairs.num_rows, dtype=np.int64)
    if cuts is not None:
        numbers = np.searchsorted(int64s(cuts["bucket"]), _buckets(pairs, kind), side="right").astype(np.int64)
    return pairs.append_column("range", pa.array(numbers))


def relation_rows(
    vocabulary: pa.Table | None, isa: pa.Table | None = None, part_of: pa.Table | None = None
) -> pa.Table:
    """The relations with their words, a table of `RELATIONS` sorted by relation, source and target.

    ISA is symmetric: a pair stands once, source before target in the order of the words.
    """
    tables = [RELATIONS.empty()]
    for relation, pairs in ((ISA, isa), (PART_OF, part_of)):
        if pairs is None or vocabulary is None:
            continue
        words = column_array(vocabulary["word"])
        source, target = (words.take(column_array(pairs[name])) for name in ("source", "target"))
        kinds = pa.array([relation]).take(pa.array(np.zeros(pairs.num_rows, dtype=np.int64)))
        tables.append(pa.table([source, target, kinds, pairs["support"]], schema=RELATIONS.schema))
    return pa.concat_tables(tables).sort_by([(name, "ascending") for name in ("relation", "source", "target")])
