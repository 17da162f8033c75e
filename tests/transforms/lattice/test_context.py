from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given

from semrank.transforms.columnar.arrays import Int32s, Int64s
from semrank.transforms.lattice.context import Concepts, FormalContext, enumeration_yields_top, top_concept
from tests.transforms.lattice.oracle import concepts_by_definition, contexts, listed

ROWS = [[3, 4, 5], [0, 1, 2, 3, 5], [0, 1, 2, 3], [1, 2, 4, 5], [1, 3, 4, 5]]


def int64(*values: int) -> Int64s:
    return np.array(values, dtype=np.int64)


def int32(*values: int) -> Int32s:
    return np.array(values, dtype=np.int32)


def test_rows_become_sorted_sets() -> None:
    context = FormalContext.from_rows([[2, 0, 2], [], [1]])
    assert context.indptr.tolist() == [0, 2, 2, 3]
    assert context.indices.tolist() == [0, 2, 1]
    assert (context.object_count, context.attribute_count, len(context.indices)) == (3, 3, 3)
    assert context.supports().tolist() == [1, 1, 1]


def test_a_context_may_be_empty() -> None:
    context = FormalContext.from_rows([])
    assert (context.object_count, context.attribute_count) == (0, 0)
    assert len(top_concept(context)) == 1
    assert not enumeration_yields_top(context.supports(), 0)


@pytest.mark.parametrize(
    ("indptr", "indices", "message"),
    [
        (int64(0, 2), int32(1, 0), "object 0 holds attribute 0 after 1, expected strictly ascending"),
        (int64(0, 0, 1, 3), int32(0, 1, 1), "object 2 holds attribute 1 after 1, expected strictly ascending"),
        (int64(0, 1), int32(4), "attribute numbers from 4 to 4 found, expected 0 to 3"),
        (int64(0, 1), int32(-1), "attribute numbers from -1 to -1 found, expected 0 to 3"),
        (int64(0, 3), int32(0, 1), "indptr of 2 values runs 0..3, expected an ascent from 0 to 2"),
        (int64(0, 2, 1, 2), int32(0, 1), "indptr of 4 values runs 0..2, expected an ascent"),
        (int64(), int32(), "indptr of 0 values runs nothing"),
        (int32(0, 1), int32(0), r"indptr is int32\[2\], expected a one-dimensional int64 array"),
        (int64(0, 1), int64(0), r"indices is int64\[1\], expected a one-dimensional int32 array"),
        ([0, 1], int32(0), "indptr is list, expected a one-dimensional int64 array"),
    ],
)
def test_arrays_that_are_no_context_are_refused(indptr: Int64s, indices: Int32s, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FormalContext(indptr, indices, 4)


def test_rows_may_fall_where_one_row_ends_and_rows_are_empty() -> None:
    context = FormalContext(int64(0, 0, 2, 2, 3, 3), int32(2, 3, 0), 4)
    assert [context.row(number).tolist() for number in range(5)] == [[], [2, 3], [], [0], []]


def test_a_context_does_not_change() -> None:
    indices = int32(0, 1)
    context = FormalContext(int64(0, 2), indices, 2)
    with pytest.raises(ValueError, match="read-only"):
        context.indices[0] = 1
    indices[1] = 1
    copy = pickle.loads(pickle.dumps(context))
    assert copy.indices.tolist() == context.indices.tolist()


def test_rows_are_selected_in_the_order_given() -> None:
    context = FormalContext.from_rows(ROWS, 6).select_rows([4, 0, 4])
    assert [context.row(number).tolist() for number in range(3)] == [ROWS[4], ROWS[0], ROWS[4]]
    assert context.attribute_count == 6


@given(contexts())
def test_extents_share_their_intents(context: FormalContext) -> None:
    assert context.common_attributes([]).tolist() == list(range(context.attribute_count))
    for extent, intent in concepts_by_definition(
        [context.row(number).tolist() for number in range(context.object_count)], context.attribute_count, 1
    ):
        assert tuple(context.common_attributes(extent).tolist()) == intent


def test_concepts_are_read_sliced_and_joined() -> None:
    concepts = Concepts.of([([0, 1], [5]), ([2], [0, 3]), ([], [1, 2])])
    assert len(concepts) == 3
    assert concepts.support.tolist() == [2, 1, 0]
    assert concepts.extent(0).tolist() == [0, 1]
    assert concepts.intent(1).tolist() == [0, 3]
    assert listed([concepts.slice(1, 3)]) == [((2,), (0, 3)), ((), (1, 2))]
    assert listed([concepts.select([2, 0])]) == [((), (1, 2)), ((0, 1), (5,))]
    parts = [concepts.slice(0, 1), Concepts.empty(), concepts.slice(1, 3)]
    assert listed([Concepts.concatenate(parts)]) == listed([concepts])
    assert len(Concepts.concatenate([])) == 0


def test_as_many_extents_as_intents_are_expected() -> None:
    with pytest.raises(ValueError, match="2 extents and 1 intents found"):
        Concepts(int64(0, 0, 0), int32(), int64(0, 0), int32())


def test_canonical_order_is_lexicographic_by_intent() -> None:
    intents = [(), (0,), (0, 1), (0, 1, 300), (0, 2), (1,), (255,), (256,), (300, 70000)]
    shuffled = [intents[place] for place in np.random.default_rng(5).permutation(len(intents))]
    concepts = Concepts.of([([len(intent)], intent) for intent in shuffled]).sorted()
    assert [intent for _, intent in listed([concepts])] == intents
    assert [extent for extent, _ in listed([concepts])] == [(len(intent),) for intent in intents]


def test_the_top_concept_holds_all_objects() -> None:
    without = FormalContext.from_rows(ROWS, 6)
    assert listed([top_concept(without)]) == [((0, 1, 2, 3, 4), ())]
    assert not enumeration_yields_top(without.supports(), without.object_count)
    with_one = FormalContext.from_rows([[0, 1], [1]])
    assert listed([top_concept(with_one)]) == [((0, 1), (1,))]
    assert enumeration_yields_top(with_one.supports(), with_one.object_count)
