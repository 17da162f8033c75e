"""The benchmark's contexts have the promised shape, and a run gives results in the agreed form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from benchmarks import closed_sets


def test_generated_contexts_have_the_promised_shape() -> None:
    pages = closed_sets.keyword_context(500, 12, seed=1)
    assert (pages.object_count, pages.attribute_count) == (500, 36_000)
    assert 10 < np.diff(pages.indptr).mean() <= 12
    even = closed_sets.random_context(200, 60, 0.3, seed=1)
    assert len(even.indices) / (200 * 60) == pytest.approx(0.3, abs=0.02)
    zipf = closed_sets.zipf_context(1_000, 50, 5, seed=1)
    supports = zipf.supports()
    assert supports[0] > 2 * supports[3] > 4 * supports[20]


def small_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    small = partial(closed_sets.keyword_context, 60, 8, seed=5)
    monkeypatch.setattr(closed_sets, "CASES", [replace(case, quick=small, min_support=1) for case in closed_sets.CASES])
    monkeypatch.setattr(closed_sets, "RUNS", 1)
    monkeypatch.setattr(closed_sets, "QUICK_RUNS", 1)


def test_quick_contexts_are_small_and_of_the_same_shape() -> None:
    for case in closed_sets.CASES:
        full, quick = case.make(), case.quick()
        assert len(quick.indices) < len(full.indices)
        assert len(quick.indices) / quick.object_count == pytest.approx(len(full.indices) / full.object_count, rel=0.2)


@pytest.mark.usefixtures("forked_runs")
def test_a_run_compares_with_every_peer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    small_cases(monkeypatch)
    stored = closed_sets.random_context(40, 10, 0.4, seed=1)
    np.savez(tmp_path / "R.npz", indptr=stored.indptr, indices=stored.indices, attributes=stored.attribute_count)
    results = closed_sets.run(quick=True, contexts=tmp_path)
    assert {result["peer"] for result in results} == {"pyfim eclat", *closed_sets.FCA_PEERS}
    assert len(results) == 6 + len(closed_sets.FCA_PEERS)
    for result in results:
        assert {"name", "peer", "ours_s", "peer_s", "ratio", "aim", "met", "note"} < set(result)
        if result["met"] is None:
            assert "not installed" in result["note"]
        else:
            assert result["met"] == ((result["ratio"] or 0) <= (result["aim"] or 0))
            assert result["counts"]["concepts"] > 0
    assert sum("stored context R (40 x 10" in result["note"] for result in results) == 1


@pytest.mark.usefixtures("forked_runs")
def test_an_absent_peer_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    small_cases(monkeypatch)
    monkeypatch.setattr(closed_sets, "_installed", lambda _: False)
    results = closed_sets.run(quick=True)
    assert all(result["met"] is None and "not installed" in result["note"] for result in results)
    # Ours was counted all the same, by the kernel that needs nothing.
    assert sum(result["counts"].get("concepts", 0) > 0 for result in results) == 2


def find_one_more(source: closed_sets.Source, min_support: int) -> Callable[[], dict[str, int]]:
    found = closed_sets.prepare_ours(source, min_support, "numpy")()["concepts"]
    return lambda: {"concepts": found + 1}


@pytest.mark.usefixtures("forked_runs")
def test_a_difference_does_not_go_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fim")
    small_cases(monkeypatch)
    monkeypatch.setattr(closed_sets, "prepare_eclat", find_one_more)
    with pytest.raises(RuntimeError, match="concepts, eclat"):
        closed_sets.run(quick=True)
