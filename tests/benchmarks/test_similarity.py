"""The benchmark of similarity holds ours to the peer's scores, and counts a missed share of assignments as missed."""

from __future__ import annotations

import pytest

from benchmarks import similarity
from benchmarks.harness import Measurement
from benchmarks.similarity import Size

TINY = Size(base=20, current=200, queue=30, objects=60, sample=5)


@pytest.mark.parametrize("profile", similarity.PROFILES)
def test_the_peer_finds_our_scores(profile: str) -> None:
    expected = similarity.prepare_peer(TINY, profile)()
    assert max(expected) > 0
    assert similarity.our_scores(TINY, profile) == pytest.approx(expected, abs=similarity.TOLERANCE)


@pytest.mark.usefixtures("forked_runs")
def test_a_run_has_concepts_and_urls_of_each_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity, "QUICK", TINY)
    monkeypatch.setattr(similarity, "PROFILES", {"paper-2013": similarity.PROFILES["paper-2013"]})
    concepts, urls = similarity.run(quick=True)
    assert concepts["peer"].endswith("best of all concepts, paper-2013")
    assert urls["peer"].endswith("best of all URLs, paper-2013")
    assert concepts["counts"]["base concepts"] <= TINY.base
    assert concepts["counts"]["current concepts"] <= TINY.current


def test_many_assignments_miss_the_aim() -> None:
    peer = Measurement(1.0, 1.0, 0, value=[0.5])
    for assignments, met in ((10, True), (11, False)):
        counts = {"base concepts": 10, "current concepts": 100, "assignments": assignments}
        result = similarity._result("x", Measurement(0.001, 0.001, 0, value=counts), peer)
        assert result["ratio"] == pytest.approx(1e-5)
        assert result["met"] is met
    slow = similarity._result("x", Measurement(1.0, 1.0, 0, value={**counts, "assignments": 0}), peer)
    assert slow["met"] is False


@pytest.mark.usefixtures("forked_runs")
def test_a_difference_does_not_go_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity, "QUICK", TINY)
    monkeypatch.setattr(similarity, "our_scores", lambda _size, _profile: [2.0] * TINY.sample)
    with pytest.raises(RuntimeError, match="paper-2013: scores"):
        similarity.run(quick=True)
