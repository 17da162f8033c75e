"""The start of commands is measured as processes, and held to the times that people wait."""

from __future__ import annotations

import pytest

from benchmarks import startup


@pytest.mark.usefixtures("forked_runs")
def test_a_run_measures_the_help_and_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "QUICK_REPEATS", 1)
    helped, ranked = startup.run(quick=True)
    assert (helped["name"], helped["peer"]) == ("startup: help", "bare interpreter")
    assert (ranked["name"], ranked["peer"]) == ("startup: rank the sample, focused", "import apache_beam")
    for result, limit in ((helped, 0.5), (ranked, 8.0)):
        assert (result["aim"] or 0) * (result["peer_s"] or 0) == pytest.approx(limit)
        assert result["met"] == ((result["ours_s"] or 0) <= limit)
        assert result["ratio"] == (result["ours_s"] or 0) / (result["peer_s"] or 0) > 0
