"""What workers hold of the relations gives the hierarchy and the similarities that all relations give."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semrank.transforms.columnar.arrays import MAIN
from semrank.transforms.ranking import held_relations
from semrank.transforms.ranking.held_relations import HELD_SCHEMA, TOP, HierarchyWords
from semrank.transforms.ranking.semrank import keyword_table, word_hierarchy
from semrank.transforms.similarity.settings import SimilaritySettings
from semrank.transforms.weblog.relations import PAIR_SCHEMA
from tests.support.similarities import ics
from tests.support.strategies import choices

NAMES = [f"w{number}" for number in range(9)]
pair_sets = choices([(a, b) for a in range(len(NAMES)) for b in range(len(NAMES)) if a != b], 0, 30).map(set)


def pair_table(pairs: Iterable[tuple[int, int]]) -> pa.Table:
    rows = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    return pa.table([rows[:, 0], rows[:, 1], np.ones(len(rows), dtype=np.int64)], schema=PAIR_SCHEMA)


def cut(table: pa.Table, parts: int) -> list[pa.Table]:
    return [table.take(pa.array(range(part, table.num_rows, parts), pa.int64())) for part in range(parts)]


@settings(max_examples=300, deadline=None)
@given(data=st.data(), parts=st.integers(1, 4), rows=st.sampled_from([0, 5, held_relations.FOLDED_ROWS]))
def test_the_same_similarities_and_layers(data: st.DataObject, parts: int, rows: int) -> None:
    flags = choices([False, True], len(NAMES), len(NAMES))
    in_base, in_current = data.draw(flags), data.draw(flags)
    vocabulary = pa.table(
        {
            "word": NAMES,
            "clicks": data.draw(choices([0, 1, 2, 7, 40], 9, 9)),
            "base_support": pa.array(map(int, in_base), pa.int64()),
            "current_support": pa.array(map(int, in_current), pa.int64()),
        }
    )
    query = data.draw(st.sampled_from([[], ["w0"], ["w5"], ["other"], ["w0", "w5"]]))
    # Pairs as they are learned and settled.
    isa = {(a, b) for a, b in data.draw(pair_sets) if a < b}
    directed = {(a, b) for a, b in data.draw(pair_sets) if in_base[a] and in_current[b]}
    part_of = {(a, b) for a, b in directed if (b, a) not in directed and not {(a, b), (b, a)} & isa}

    words = HierarchyWords.of(vocabulary, query=query)
    chosen: dict[str, list[pa.Table]] = {MAIN: [], TOP: []}
    for part in cut(pair_table(isa), parts):
        for tag, table in held_relations.held_isa(part, words):
            chosen[tag].append(table)
    paths = [held_relations.paths(part, words) for part in cut(pair_table(part_of), parts)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_relations, "FOLDED_ROWS", rows)
        joined = held_relations.joined_paths(held_relations.reduced_paths(part) for part in paths)
    held_isa, top_isa = (pa.concat_tables(tables).combine_chunks() for tables in chosen.values())
    assert joined.schema == held_isa.schema == HELD_SCHEMA

    settings = SimilaritySettings()
    everything = (vocabulary, pair_table(isa), pair_table(part_of))
    expected = word_hierarchy(*everything, settings=settings, query=query)
    found = word_hierarchy(vocabulary, held_isa, joined, settings=settings, query=query)
    assert found.top_word == expected.top_word
    for a in np.flatnonzero(in_base).tolist():
        for b in np.flatnonzero(in_current).tolist():
            assert ics(found, a, b) == ics(expected, a, b), (a, b)
    keywords = keyword_table(vocabulary, top_isa, joined, settings=settings, query=query)
    assert keywords.equals(keyword_table(*everything, settings=settings, query=query))


def test_pairs_that_are_not_compared_are_left_out() -> None:
    words = HierarchyWords(np.array([True, False, False, True]), np.array([False, True, True, False]), top=-1)
    found = dict(held_relations.held_isa(pair_table([(0, 1), (0, 3), (1, 2), (2, 3)]), words))
    assert found[MAIN].to_pydict() == {"source": [0, 2], "target": [1, 3]}
    assert found[TOP].num_rows == 0
    (_, kept), (_, decide) = held_relations.held_isa(pair_table([(0, 3), (1, 2)]), words._replace(top=2))
    assert kept.to_pydict() == decide.to_pydict() == {"source": [1], "target": [2]}


def test_a_word_that_may_be_top_replaces_no_path() -> None:
    """Without word 1 nothing leads from 0 to 2 but their own pair."""
    everywhere = np.ones(3, dtype=np.bool_)
    words = HierarchyWords(everywhere, everywhere, top=1)
    pairs = [(0, 1), (0, 2), (1, 2)]
    found = held_relations.joined_paths([held_relations.paths(pair_table(pairs), words)])
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == pairs
    known = held_relations.joined_paths([held_relations.paths(pair_table(pairs), words._replace(top=-1))])
    assert sorted(zip(*known.to_pydict().values(), strict=True)) == [(0, 1), (1, 2)]
