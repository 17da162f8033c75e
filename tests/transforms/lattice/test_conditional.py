from __future__ import annotations

from collections import defaultdict
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semrank.transforms.columnar.arrays import Int64s
from semrank.transforms.lattice.attributes import AttributeOrder
from semrank.transforms.lattice.bundles import Bundle, plan_bundles
from semrank.transforms.lattice.closed_sets import closed_sets
from semrank.transforms.lattice.conditional import ConditionalRows, conditional_rows
from semrank.transforms.lattice.context import FormalContext
from tests.support.contexts import partitions, rows_of
from tests.transforms.lattice.oracle import (
    added_statistics,
    check,
    concepts_by_definition,
    contexts,
    listed,
    topical_context,
)


def shuffled(
    context: FormalContext, ids: Int64s, order: AttributeOrder, bundles: list[Bundle], parts: int, seed: int
) -> dict[int, ConditionalRows]:
    """The rows of each bundle, gathered from several parts of the context in some order."""
    random = np.random.default_rng(seed)
    part = random.integers(0, parts, context.object_count)
    groups: dict[int, list[ConditionalRows]] = defaultdict(list)
    for number in random.permutation(parts):
        members = random.permutation(np.flatnonzero(part == number))
        for bundle, rows in conditional_rows(context.select_rows(members), ids[members], order, bundles):
            groups[bundle].append(rows)
    return {bundle: ConditionalRows.concatenate(rows) for bundle, rows in groups.items()}


@settings(max_examples=150, deadline=None)
@given(contexts(8), st.integers(1, 4), st.integers(1, 3), st.integers(0, 10**6), st.data())
def test_each_bundle_is_mined_from_its_rows_alone(
    context: FormalContext, min_support: int, parts: int, seed: int, data: st.DataObject
) -> None:
    order = AttributeOrder.of(context.supports(), min_support)
    bundles = data.draw(partitions(len(order)))
    ids = np.sort(np.random.default_rng(seed).choice(10**12, context.object_count, replace=False) - 5 * 10**11)
    gathered = shuffled(context, ids, order, bundles, parts, seed)
    found = []
    for number, rows in gathered.items():
        whole = set(listed(closed_sets(context, order=order, bundle=bundles[number], kernel="numpy"), ids))
        mine = listed(closed_sets(rows.context, order=order, bundle=bundles[number], kernel="numpy"), rows.object_ids)
        check(mine, whole)
        found += mine
    expected = concepts_by_definition(rows_of(context), context.attribute_count, min_support)
    check(found, {(tuple(ids[list(extent)].tolist()), intent) for extent, intent in expected})


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
@pytest.mark.parametrize("parts", [1, 2, 7])
def test_a_planned_context_of_several_parts(parts: int, kernel: Literal["numpy", "numba"]) -> None:
    if kernel == "numba":
        pytest.importorskip("numba")
    context = topical_context(seed=5, objects=500, topics=5, per_topic=10, common=10, length=6, copies=0.2)
    ids = np.arange(500, dtype=np.int64) * 7
    order = AttributeOrder.of(context.supports(), 2)
    statistics = added_statistics([context.select_rows(range(start, 500, parts)) for start in range(parts)], order)
    bundles = plan_bundles(statistics, order, largest_share=0.01, least_work=0)
    assert any(bundle.prefix for bundle in bundles)
    gathered = shuffled(context, ids, order, bundles, parts, seed=1)
    found = []
    for number, rows in gathered.items():
        found += listed(closed_sets(rows.context, order=order, bundle=bundles[number], kernel=kernel), rows.object_ids)
    check(found, set(listed(closed_sets(context, min_support=2, kernel="numpy"), ids)))


def test_a_bundle_gets_each_row_it_needs_once() -> None:
    # Supports: 0 has 1 object, 1 has 2, 2 has 3, 3 has 4; so ranks are the attribute numbers, 0 being too rare.
    context = FormalContext.from_rows([[3], [2, 3], [1, 2, 3], [1, 2, 3], [0]], 4)
    ids = np.array([50, 40, 30, 20, 10], dtype=np.int64)
    order = AttributeOrder.of(context.supports(), 2)
    assert order.attributes.tolist() == [1, 2, 3]
    bundles = [Bundle((), 0, 1), Bundle((), 2, 3), Bundle((1,), 2, 2), Bundle((1,), 2, 3)]
    gathered = dict(conditional_rows(context, ids, order, bundles))
    rows = {
        number: {int(g): part.context.row(place).tolist() for place, g in enumerate(part.object_ids)}
        for number, part in gathered.items()
    }
    assert rows[0] == {30: [1, 2, 3], 20: [1, 2, 3]}
    assert rows[1] == {50: [3], 40: [2, 3], 30: [1, 2, 3], 20: [1, 2, 3]}
    assert rows[2] == {40: [2, 3], 30: [1, 2, 3], 20: [1, 2, 3]}
    assert rows[3] == rows[2]
    assert list(gathered) == [0, 1, 2, 3]


def test_rows_without_frequent_attributes_go_nowhere() -> None:
    context = FormalContext.from_rows([[0], []], 2)
    order = AttributeOrder.of(np.array([1, 5]), 2)
    assert list(conditional_rows(context, np.array([1, 2], dtype=np.int64), order, [Bundle((), 0, 1)])) == []
    assert list(conditional_rows(context.select_rows([]), np.zeros(0, dtype=np.int64), order, [])) == []


def test_unusable_parts_are_refused() -> None:
    context = FormalContext.from_rows([[0], [0]], 1)
    order = AttributeOrder.of(context.supports(), 1)
    ids = np.array([1, 2], dtype=np.int64)
    with pytest.raises(ValueError, match="1 object ids and 2 objects found"):
        list(conditional_rows(context, ids[:1], order, []))
    with pytest.raises(ValueError, match="expected ranges that do not overlap"):
        list(conditional_rows(context, ids, order, [Bundle((), 0, 1), Bundle((), 0, 1)]))
    parts = [ConditionalRows(ids, context), ConditionalRows(ids + 1, context)]
    with pytest.raises(ValueError, match="object 2 found twice, expected each object in one part"):
        ConditionalRows.concatenate(parts)
    with pytest.raises(ValueError, match=r"parts of \[\] attributes found"):
        ConditionalRows.concatenate([])
