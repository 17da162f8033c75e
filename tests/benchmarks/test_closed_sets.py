"""The benchmark's contexts have the promised shape, and a run gives results in the agreed form."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import closed_sets


def test_generated_contexts_have_the_promised_shape() -> None:
    pages = closed_sets.keyword_context(500, 12, seed=1)
    assert (pages.object_count, pages.attribute_count) == (500, 36_000)
    assert 10 < np.diff(pages.indptr).mean() <= 12
    even = closed_sets.random_context(200, 60, 0.3, seed=1)
    assert even.incidence_count / (200 * 60) == pytest.approx(0.3, abs=0.02)
    zipf = closed_sets.zipf_context(1_000, 50, 5, seed=1)
    supports = zipf.supports()
    assert supports[0] > 2 * supports[3] > 4 * supports[20]


def small_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [replace(case, make=lambda: closed_sets.keyword_context(60, 8, seed=5)) for case in closed_sets.CASES]
    monkeypatch.setattr(closed_sets, "CASES", [replace(case, min_support=1) for case in cases])
    monkeypatch.setattr(closed_sets, "REPEATS", 1)


def test_a_run_compares_with_every_peer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    small_cases(monkeypatch)
    stored = closed_sets.random_context(40, 10, 0.4, seed=1)
    np.savez(tmp_path / "R.npz", indptr=stored.indptr, indices=stored.indices, attributes=stored.attribute_count)
    results = closed_sets.run(tmp_path)
    assert {result["peer"] for result in results} == {"pyfim eclat", *closed_sets.FCA_PEERS}
    assert len(results) == 6 + len(closed_sets.FCA_PEERS)
    for result in results:
        assert set(result) == {"name", "peer", "ours_s", "peer_s", "ratio", "aim", "met", "note"}
        if result["met"] is None:
            assert "not installed" in result["note"]
        else:
            assert result["met"] == (result["ours_s"] / result["peer_s"] <= result["aim"])
            assert "the peer found" not in result["note"]
    assert sum("stored context R (40 x 10" in result["note"] for result in results) == 1


def test_an_absent_peer_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    small_cases(monkeypatch)
    monkeypatch.setattr(closed_sets, "_imported", lambda _: None)
    results = closed_sets.run()
    assert all(result["met"] is None and "not installed" in result["note"] for result in results)
