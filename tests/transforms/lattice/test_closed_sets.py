from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semrank.transforms.lattice import closed_sets as closed_sets_module
from semrank.transforms.lattice import closed_sets_numpy
from semrank.transforms.lattice.attributes import AttributeOrder
from semrank.transforms.lattice.bundles import Bundle
from semrank.transforms.lattice.closed_sets import Kernel, choose_kernel, closed_sets
from semrank.transforms.lattice.context import FormalContext, enumeration_yields_top, top_concept
from semrank.transforms.lattice.search_space import RankedContext
from tests.transforms.lattice.oracle import (
    Pair,
    check,
    concepts_by_definition,
    concepts_by_intersection,
    contexts,
    listed,
    topical_context,
)

KERNELS: tuple[Kernel, ...] = ("numpy", "numba")

INTERNET, TECHNOLOGY, NETWORK, WEB_PAGE, INFORMATION, SPIDER = range(6)
CURRENT = [
    [WEB_PAGE, INFORMATION, SPIDER],
    [INTERNET, TECHNOLOGY, NETWORK, WEB_PAGE, SPIDER],
    [INTERNET, TECHNOLOGY, NETWORK, WEB_PAGE],
    [TECHNOLOGY, NETWORK, INFORMATION, SPIDER],
    [TECHNOLOGY, WEB_PAGE, INFORMATION, SPIDER],
]
"""U4..U8 of P13 Example 5."""
QUEUE = [[0, 1], [1, 2], [0, 1, 2]]
"""U1..U3; attributes Internet, Spider, Ontology."""


@pytest.fixture(params=KERNELS)
def kernel(request: pytest.FixtureRequest) -> Kernel:
    chosen: Kernel = request.param
    if chosen == "numba":
        pytest.importorskip("numba")
    return chosen


def rows_of(context: FormalContext) -> list[list[int]]:
    return [context.row(number).tolist() for number in range(context.object_count)]


def test_current_urls_of_the_paper_have_eighteen_concepts(kernel: Kernel) -> None:
    context = FormalContext.from_rows(CURRENT, 6)
    found = listed(closed_sets(context, kernel=kernel))
    assert not enumeration_yields_top(context.supports(), 5)
    top = listed([top_concept(context)])
    bottom = [((), (0, 1, 2, 3, 4, 5))]
    assert len({*found, *top, *bottom}) == len(found) + 2 == 18
    u4, u5, u6, u7, u8 = range(5)
    # The paper's list lacks the first and has the second, which is not closed.
    assert ((u4, u5, u7, u8), (SPIDER,)) in found
    assert ((u4,), (WEB_PAGE, INFORMATION, SPIDER)) not in found
    assert ((u4, u8), (WEB_PAGE, INFORMATION, SPIDER)) in found
    assert ((u5, u6), (INTERNET, TECHNOLOGY, NETWORK, WEB_PAGE)) in found


def test_queue_urls_of_the_paper_have_four_concepts(kernel: Kernel) -> None:
    context = FormalContext.from_rows(QUEUE, 3)
    assert enumeration_yields_top(context.supports(), 3)
    expected = {((0, 1, 2), (1,)), ((0, 2), (0, 1)), ((1, 2), (1, 2)), ((2,), (0, 1, 2))}
    check(listed(closed_sets(context, kernel=kernel)), expected)


@settings(max_examples=300, deadline=None)
@given(contexts(), st.integers(1, 4), st.integers(1, 40))
def test_small_contexts_by_definition(context: FormalContext, min_support: int, batch_size: int) -> None:
    expected = concepts_by_definition(rows_of(context), context.attribute_count, min_support)
    check(listed(closed_sets(context, min_support=min_support, kernel="numpy", batch_size=batch_size)), expected)


@settings(max_examples=300, deadline=None)
@given(contexts(), st.integers(1, 4), st.integers(1, 40))
def test_small_contexts_by_definition_compiled(context: FormalContext, min_support: int, batch_size: int) -> None:
    pytest.importorskip("numba")
    expected = concepts_by_definition(rows_of(context), context.attribute_count, min_support)
    check(listed(closed_sets(context, min_support=min_support, kernel="numba", batch_size=batch_size)), expected)


LARGER: dict[str, dict[str, Any]] = {
    "columns of one word": {"objects": 60, "topics": 3, "per_topic": 12, "common": 10, "length": 6},
    "columns of several words": {"objects": 700, "topics": 4, "per_topic": 14, "common": 12, "length": 6},
    "equal rows": {"objects": 900, "topics": 5, "per_topic": 9, "common": 8, "length": 5, "copies": 0.5},
    "rare attributes": {"objects": 1500, "topics": 60, "per_topic": 8, "common": 6, "length": 4},
    "many rows, few attributes": {"objects": 1000, "topics": 1, "per_topic": 5, "common": 9, "length": 8},
    "frequent and rare attributes": {
        "objects": 700,
        "topics": 20,
        "per_topic": 14,
        "common": 2,
        "length": 13,
        "copies": 0.1,
        "frequent": 14,
    },
}


@cache
def larger(name: str, min_support: int) -> tuple[FormalContext, set[Pair]]:
    """A larger context and its concepts, which each kernel has to find."""
    if min_support > 1:
        context, everything = larger(name, 1)
        return context, {pair for pair in everything if len(pair[0]) >= min_support}
    context = topical_context(seed=len(name), **LARGER[name])
    return context, concepts_by_intersection(context, 1)


@pytest.mark.parametrize("min_support", [1, 2, 7])
@pytest.mark.parametrize("name", LARGER)
def test_larger_contexts_by_intersection(name: str, min_support: int, kernel: Kernel) -> None:
    context, expected = larger(name, min_support)
    assert len(expected) > 20
    check(listed(closed_sets(context, min_support=min_support, kernel=kernel)), expected)


@cache
def implied_attribute() -> list[tuple[FormalContext, int, set[Pair]]]:
    """Contexts with least supports and concepts, where two frequent attributes together imply a rare one."""
    random = np.random.default_rng(11)
    first, second, implied = 0, 1, 2
    rows = [{first if number % 2 else second, *random.integers(4, 400, 2).tolist()} for number in range(1600)]
    rows[:6] = [{first, second, implied, *random.integers(4, 400, 2).tolist()} for _ in range(6)]
    rows[6:12] = [{first, second, *random.integers(4, 400, 2).tolist()} for _ in range(6)]
    for number in range(8):
        rows[100 + number] |= {implied, 3}
        rows[300 + 2 * number] |= {second, 3}
        rows[301 + 2 * number] |= {first}
    context = FormalContext.from_rows(rows, 400)
    without = context.select_rows([number for number in range(1600) if not 6 <= number < 12])
    cases = ((context, 1), (context, 4), (without, 1))
    found = [(some, least, concepts_by_intersection(some, least)) for some, least in cases]
    assert ((0, 1, 2, 3, 4, 5), (first, second, implied)) in found[2][2]
    return found


def test_a_rare_attribute_may_imply_what_two_frequent_ones_share(kernel: Kernel) -> None:
    """Rows of frequent attributes are too many and too sparse for columns of all attributes."""
    for context, min_support, expected in implied_attribute():
        check(listed(closed_sets(context, min_support=min_support, kernel=kernel)), expected)


@pytest.mark.parametrize("name", ["columns of several words", "rare attributes", "equal rows"])
def test_ranks_with_too_large_columns_are_split(name: str, kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    context = topical_context(seed=3, **{**LARGER[name], "objects": 30})
    whole = set(listed(closed_sets(context, kernel=kernel)))
    for words in (0, 40):
        monkeypatch.setattr(closed_sets_module, "MATRIX_WORDS", words)
        check(listed(closed_sets(context, kernel=kernel)), whole)


def test_batches_are_neither_larger_than_wanted_nor_tiny(kernel: Kernel) -> None:
    context = topical_context(seed=1, **LARGER["columns of several words"])
    sizes = [len(batch) for batch in closed_sets(context, kernel=kernel, batch_size=100)]
    assert max(sizes) <= 100
    assert min(sizes[:-1]) > 0
    assert sum(sizes) / len(sizes) > 50
    whole = list(closed_sets(context, kernel=kernel, batch_size=10**6))
    assert len(whole) == 1
    assert len(whole[0]) == sum(sizes)


def test_a_batch_ends_before_its_extents_grow_large(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    context = topical_context(seed=1, **LARGER["many rows, few attributes"])
    expected = listed(closed_sets(context, kernel=kernel))
    monkeypatch.setattr(closed_sets_module, "BATCH_ENTRIES", 700)
    batches = list(closed_sets(context, kernel=kernel))
    assert all(len(batch.extent_indices) <= 700 or len(batch) == 1 for batch in batches)
    assert any(len(batch.extent_indices) > 700 for batch in batches)
    check(listed(batches), set(expected))


def test_concepts_of_several_output_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = pytest.importorskip("semrank.transforms.lattice.closed_sets_numba")
    context = topical_context(seed=2, **LARGER["many rows, few attributes"])
    expected = set(listed(closed_sets(context, kernel="numpy")))
    monkeypatch.setattr(compiled, "EXTENT_BUFFER", 10)
    monkeypatch.setattr(compiled, "INTENT_BUFFER", 3)
    check(listed(closed_sets(context, kernel="numba", batch_size=7)), expected)


@pytest.mark.parametrize("name", LARGER)
def test_a_workspace_that_grows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = pytest.importorskip("semrank.transforms.lattice.closed_sets_numba")
    context = topical_context(seed=6, **LARGER[name])
    expected = set(listed(closed_sets(context, min_support=2, kernel="numpy")))
    monkeypatch.setattr(compiled, "FIRST_LENGTH", 1)
    check(listed(closed_sets(context, min_support=2, kernel="numba")), expected)


@pytest.mark.parametrize("name", ["columns of several words", "frequent and rare attributes"])
def test_small_chunks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    context = topical_context(seed=7, **{**LARGER[name], "objects": 300})
    expected = concepts_by_intersection(context, 2)
    monkeypatch.setattr(closed_sets_numpy, "CHUNK_WORDS", 200)
    monkeypatch.setattr(closed_sets_numpy, "LOAD_ENTRIES", 1000)
    check(listed(closed_sets(context, min_support=2, kernel="numpy")), expected)


def test_the_kernel_is_chosen_by_itself() -> None:
    context = FormalContext.from_rows(CURRENT, 6)
    check(listed(closed_sets(context)), concepts_by_definition(CURRENT, 6, 1))


def test_objects_without_frequent_attributes_are_in_no_concept(kernel: Kernel) -> None:
    context = FormalContext.from_rows([[0, 1], [0, 1], [2], []], 4)
    check(listed(closed_sets(context, min_support=2, kernel=kernel)), {((0, 1), (0, 1))})


@pytest.mark.parametrize("rows", [[], [[]], [[], []]])
def test_contexts_without_incidences_have_none(rows: list[list[int]], kernel: Kernel) -> None:
    for attributes in (0, 3):
        assert list(closed_sets(FormalContext.from_rows(rows, attributes), kernel=kernel)) == []


def test_a_prepared_context_serves_many_calls(kernel: Kernel) -> None:
    context = topical_context(seed=4, **LARGER["equal rows"])
    order = AttributeOrder.of(context.supports(), 3)
    ranked = RankedContext.of(context, order)
    half = len(order) // 2
    parts = [Bundle((), 0, half), Bundle((), half, len(order))]
    found = [pair for part in parts for pair in listed(closed_sets(ranked, bundle=part, kernel=kernel))]
    check(found, concepts_by_intersection(context, 3))


def test_contradicting_arguments_are_refused() -> None:
    context = FormalContext.from_rows(CURRENT, 6)
    order = AttributeOrder.of(context.supports(), 2)
    ranked = RankedContext.of(context, order)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"context": context, "min_support": 0}, "min_support is 0, expected at least 1"),
        ({"context": context, "order": order, "min_support": 1}, "min_support is 1, the order's is 2"),
        ({"context": ranked, "min_support": 1}, "min_support is 1, the order's is 2"),
        ({"context": ranked, "order": AttributeOrder.of(context.supports(), 2)}, "expected only the latter"),
        ({"context": context, "batch_size": 0}, "batch_size is 0, expected at least 1"),
        ({"context": context, "kernel": "fast"}, "kernel is 'fast', expected one of auto, numpy, numba"),
        ({"context": context, "bundle": Bundle((), 0, 7)}, "reaches beyond the 6 ranks"),
        ({"context": FormalContext.from_rows(QUEUE, 3), "order": order}, "has 3 attributes, the order 6"),
    ]
    for arguments, message in cases:
        with pytest.raises(ValueError, match=message):
            list(closed_sets(**arguments))


def test_the_compiled_kernel_is_for_large_work(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    monkeypatch.delitem(sys.modules, "semrank.transforms.lattice.closed_sets_numba", raising=False)
    assert choose_kernel(1e6) == "numpy"
    assert choose_kernel(1e8) == "numba"
    monkeypatch.setitem(sys.modules, "semrank.transforms.lattice.closed_sets_numba", closed_sets_module)
    assert choose_kernel(1e6) == "numba"
    assert choose_kernel(10) == "numpy"
    monkeypatch.setattr("importlib.util.find_spec", {}.get)
    assert choose_kernel(1e9) == "numpy"


@pytest.mark.parametrize(("name", "min_support"), [("A", 1), ("A", 2), ("A", 10), ("R", 1), ("C", 5), ("C", 10)])
def test_published_counts(name: str, min_support: int, shared_data: Path, kernel: Kernel) -> None:
    stored = np.load(shared_data / "contexts" / f"{name}.npz")
    context = FormalContext(stored["indptr"], stored["indices"], int(stored["attributes"]))
    counts = json.loads((shared_data / "contexts" / "counts.json").read_text())
    found = sum(len(batch) for batch in closed_sets(context, min_support=min_support, kernel=kernel))
    assert found == counts[name][str(min_support)]


def test_kernels_agree_on_real_concepts(shared_data: Path) -> None:
    pytest.importorskip("numba")
    stored = np.load(shared_data / "contexts" / "A.npz")
    context = FormalContext(stored["indptr"], stored["indices"], int(stored["attributes"]))
    one, other = (
        [batch.sorted() for batch in closed_sets(context, kernel=kernel, batch_size=10**6)] for kernel in KERNELS
    )
    assert len(one) == len(other) == 1
    for field in ("extent_indptr", "extent_indices", "intent_indptr", "intent_indices"):
        np.testing.assert_array_equal(getattr(one[0], field), getattr(other[0], field))
