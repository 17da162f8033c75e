"""Files of relations, one after another, are the whole table in its order, whatever parts they were counted in."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.transforms.ranking import relation_files
from semrank.transforms.ranking.relation_files import (
    added_counts,
    bucket_counts,
    range_cuts,
    relation_rows,
    with_ranges,
)
from semrank.transforms.weblog.relations import ISA, PAIR_SCHEMA, PART_OF

WORDS = 40
VOCABULARY = pa.table({"word": [f"w{number:02}" for number in range(WORDS)]})

numbers = st.integers(0, WORDS - 1)
pair_tables = st.lists(st.tuples(numbers, numbers, st.integers(1, 9)), max_size=60, unique_by=lambda row: row[:2]).map(
    lambda rows: pa.Table.from_pylist(
        [dict(zip(PAIR_SCHEMA.names, row, strict=True)) for row in rows], schema=PAIR_SCHEMA
    )
)


def counted(pairs: pa.Table, kind: str, parts: int) -> pa.Table:
    cut = [pairs.filter(pa.array(np.arange(pairs.num_rows) % parts == part)) for part in range(parts)]
    return pa.concat_tables([bucket_counts(part, kind=kind) for part in cut])


@given(pair_tables, pair_tables, st.integers(1, 20), st.integers(1, 3), st.integers(1, 3))
def test_files_are_the_table_in_its_order(
    isa: pa.Table, part_of: pa.Table, most: int, sources: int, parts: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relation_files, "RANGE_ROWS", most)
        patch.setattr(relation_files, "_SOURCES", sources)
        kinds = {ISA: isa, PART_OF: part_of}
        counts = {kind: counted(pairs, kind, parts) for kind, pairs in kinds.items()}
        cuts = range_cuts(isa=counts[ISA], part_of=counts[PART_OF])
        ranged = [with_ranges(pairs, cuts, kind=kind) for kind, pairs in kinds.items()]
    files = [
        relation_rows(VOCABULARY, *(pairs.filter(pc.equal(pairs["range"], number)) for pairs in ranged))
        for number in range(cuts.num_rows + 1)
    ]
    assert pa.concat_tables(files).equals(relation_rows(VOCABULARY, isa, part_of))
    buckets = added_counts(pa.concat_tables(counts.values()))["count"].to_pylist()
    assert all(file.num_rows < most + max(buckets) for file in files if file.num_rows)


def test_few_relations_are_one_file() -> None:
    pairs = pa.table([[3, 9], [5, 11], [1, 2]], schema=PAIR_SCHEMA)
    cuts = range_cuts(isa=bucket_counts(pairs, kind=ISA), part_of=None)
    assert cuts.num_rows == 0
    assert with_ranges(pairs, cuts, kind=ISA)["range"].to_pylist() == [0, 0]
