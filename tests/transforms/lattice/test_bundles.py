from __future__ import annotations

import pickle
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semrank.transforms.lattice.attributes import AttributeOrder, attribute_statistics, predicted_work
from semrank.transforms.lattice.bundles import Bundle, plan_bundles
from semrank.transforms.lattice.closed_sets import closed_sets
from semrank.transforms.lattice.context import FormalContext
from semrank.transforms.lattice.search_space import RankedContext
from tests.support.contexts import partitions, rows_of
from tests.transforms.lattice.oracle import (
    Pair,
    added_statistics,
    check,
    concepts_by_definition,
    contexts,
    listed,
    topical_context,
)


def mined(
    context: FormalContext, order: AttributeOrder, bundles: list[Bundle], kernel: Literal["numpy", "numba"]
) -> list[Pair]:
    ranked = RankedContext.of(context, order)
    return [pair for bundle in bundles for pair in listed(closed_sets(ranked, bundle=bundle, kernel=kernel))]


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
def test_any_partition_gives_each_concept_once(kernel: Literal["numpy", "numba"]) -> None:
    if kernel == "numba":
        pytest.importorskip("numba")

    @settings(max_examples=150, deadline=None)
    @given(contexts(8), st.integers(1, 4), st.data())
    def run(context: FormalContext, min_support: int, data: st.DataObject) -> None:
        order = AttributeOrder.of(context.supports(), min_support)
        bundles = data.draw(partitions(len(order)))
        expected = concepts_by_definition(rows_of(context), context.attribute_count, min_support)
        check(mined(context, order, bundles, kernel), expected)

    run()


@settings(max_examples=200, deadline=None)
@given(contexts(8), st.integers(1, 4), st.floats(0, 1), st.floats(0.5, 200), st.booleans())
def test_any_plan_gives_each_concept_once(
    context: FormalContext, min_support: int, largest_share: float, least_work: float, from_counts: bool
) -> None:
    order = AttributeOrder.of(context.supports(), min_support)
    source = attribute_statistics(context, order) if from_counts else context
    bundles = plan_bundles(source, order, largest_share=largest_share, least_work=least_work)
    assert len(set(bundles)) == len(bundles)
    expected = concepts_by_definition(rows_of(context), context.attribute_count, min_support)
    check(mined(context, order, bundles, "numpy"), expected)


CONTEXT = topical_context(seed=8, objects=400, topics=6, per_topic=10, common=10, length=7)
ORDER = AttributeOrder.of(CONTEXT.supports(), 2)


def test_little_work_is_one_bundle_and_no_work_none() -> None:
    assert plan_bundles(CONTEXT, ORDER, least_work=1e12) == [Bundle((), 0, len(ORDER))]
    too_high = AttributeOrder.of(CONTEXT.supports(), CONTEXT.object_count + 1)
    assert plan_bundles(CONTEXT, too_high) == []


def test_no_bundle_exceeds_its_share() -> None:
    statistics = attribute_statistics(CONTEXT, ORDER)
    work = predicted_work(
        CONTEXT.object_count, statistics.supports[ORDER.attributes], statistics.row_lengths[ORDER.attributes], 2
    )
    share = 1 / 40
    bundles = plan_bundles(CONTEXT, ORDER, largest_share=share, least_work=0)
    assert work.max() > share * work.sum()
    for bundle in bundles:
        if not bundle.prefix:
            assert work[bundle.start : bundle.stop].sum() <= share * work.sum() * (1 + 1e-9)
    split = {bundle.prefix[0] for bundle in bundles if bundle.prefix}
    assert split == set((work > share * work.sum()).nonzero()[0].tolist())
    assert 40 <= len(bundles) <= 200


@pytest.mark.parametrize("from_counts", [False, True])
def test_measured_concepts_are_spread(from_counts: bool) -> None:
    source = attribute_statistics(CONTEXT, ORDER) if from_counts else CONTEXT
    bundles = plan_bundles(source, ORDER, largest_share=1 / 16, least_work=0)
    sizes = [len(mined(CONTEXT, ORDER, [bundle], "numpy")) for bundle in bundles]
    whole = len(mined(CONTEXT, ORDER, [Bundle((), 0, len(ORDER))], "numpy"))
    assert sum(sizes) == whole
    assert max(sizes) < 0.2 * whole


def test_the_plan_is_the_same_for_the_same_counts() -> None:
    parts = [CONTEXT.select_rows(range(start, 400, 3)) for start in (2, 0, 1)]
    merged = added_statistics(parts, ORDER)
    once = plan_bundles(attribute_statistics(CONTEXT, ORDER), ORDER, largest_share=0.01, least_work=0)
    assert plan_bundles(merged, ORDER, largest_share=0.01, least_work=0) == once
    assert once == sorted(once, key=lambda bundle: (*bundle.prefix, bundle.start))


def test_a_plan_is_for_its_order() -> None:
    with pytest.raises(ValueError, match="3 attributes and an order of 70 found, expected the same number"):
        plan_bundles(FormalContext.from_rows([[0, 1, 2]]), ORDER)


def test_bundles_are_small_values() -> None:
    bundle = Bundle((3, 5), 6, 9)
    assert pickle.loads(pickle.dumps(bundle)) == bundle
    assert hash(bundle) == hash(Bundle((3, 5), 6, 9))
    assert bundle.owns_prefix
    assert not Bundle((3, 5), 7, 9).owns_prefix
    assert not Bundle((), 0, 9).owns_prefix


@pytest.mark.parametrize("arguments", [((5, 3), 6, 9), ((3, 3), 6, 9), ((3, 5), 5, 9), ((), 4, 3)])
def test_ranks_of_a_bundle_ascend(arguments: tuple[tuple[int, ...], int, int]) -> None:
    with pytest.raises(ValueError, match="expected ascending ranks"):
        Bundle(*arguments)
