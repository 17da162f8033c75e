from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.transforms.lattice.attributes import AttributeOrder, attribute_statistics, predicted_work
from semrank.transforms.lattice.context import FormalContext
from tests.transforms.lattice.oracle import added_statistics, contexts, topical_context


def test_order_is_by_support_and_then_number() -> None:
    order = AttributeOrder.of(np.array([3, 1, 0, 3, 2]), 2)
    assert order.attributes.tolist() == [4, 0, 3]
    assert order.ranks.tolist() == [1, -1, -1, 2, 0]
    assert (len(order), order.min_support) == (3, 2)
    assert len(AttributeOrder.of(np.array([3, 1]), 4)) == 0


def test_min_support_is_positive() -> None:
    with pytest.raises(ValueError, match="min_support is 0, expected at least 1"):
        AttributeOrder.of(np.array([3, 1]), 0)


@given(contexts(), st.integers(1, 3), st.integers(0, 30))
def test_statistics_of_parts_add_up(context: FormalContext, min_support: int, seed: int) -> None:
    order = AttributeOrder.of(context.supports(), min_support)
    part = np.random.default_rng(seed).integers(0, 3, context.object_count)
    parts = [context.select_rows(np.flatnonzero(part == number)) for number in range(3)]
    for counted in (None, order):
        whole = attribute_statistics(context, counted)
        merged = added_statistics(parts, counted)
        assert merged.object_count == whole.object_count == context.object_count
        assert merged.supports.tolist() == whole.supports.tolist()
        assert merged.row_lengths.tolist() == whole.row_lengths.tolist()
        rows = [set(context.row(number).tolist()) for number in range(context.object_count)]
        if counted is not None:
            kept = set(order.attributes.tolist())
            rows = [row & kept if row & kept else row for row in rows]
        for attribute in range(context.attribute_count) if counted is None else order.attributes.tolist():
            assert whole.row_lengths[attribute] == sum(len(row) for row in rows if attribute in row)


def test_work_is_the_entries_where_nothing_can_be_extended() -> None:
    work = predicted_work(100, np.array([2, 40, 50]), np.array([6, 100, 130]), 50)
    assert work.tolist() == [6.0, 100.0, 130.0]
    assert len(predicted_work(0, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), 1)) == 0


def test_work_follows_the_formula() -> None:
    # One attribute of 10 objects above the rank at hand, which 9 objects have; 100 objects, min_support 3.
    work = predicted_work(100, np.array([9, 10]), np.array([19, 30]), 3)
    levels = np.log(9 / 3) / -np.log(10 / 100)
    assert 0 < levels < 1
    per_row = (19 / 9) * (10 / 19)
    assert work == pytest.approx([19 + 9 * per_row * levels, 30.0])


def test_work_grows_with_density_and_falls_with_min_support() -> None:
    sparse = topical_context(seed=1, objects=300, topics=10, per_topic=30, common=20, length=4)
    dense = topical_context(seed=1, objects=300, topics=10, per_topic=30, common=20, length=20)
    totals = {}
    for name, context in (("sparse", sparse), ("dense", dense)):
        statistics = attribute_statistics(context)
        for min_support in (2, 10):
            order = AttributeOrder.of(statistics.supports, min_support)
            work = predicted_work(
                300, statistics.supports[order.attributes], statistics.row_lengths[order.attributes], min_support
            )
            assert np.isfinite(work).all()
            totals[name, min_support] = work.sum()
    assert totals["dense", 2] > 10 * totals["sparse", 2]
    assert totals["dense", 2] > totals["dense", 10]
