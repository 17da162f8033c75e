"""Growth is told as an exponent of the pages, with what each round found."""

from __future__ import annotations

import math
from typing import Any

import pytest

from benchmarks import round_growth
from benchmarks.harness import Measurement


def manifest(**stages: float) -> dict[str, Any]:
    rows = {name: 10 * number for number, name in enumerate(round_growth.COUNTED)}
    return {
        "rows": {**rows, "rejects": 3},
        "stages": {name: {"seconds": seconds, "largest_group_bytes": 1e6} for name, seconds in stages.items()},
    }


@pytest.mark.parametrize(
    ("seconds", "exponent", "met"), [(10.0, "1.00", True), (12.5, "1.10", True), (13.0, "1.11", False)]
)
def test_a_tenfold_web_may_take_little_more_than_tenfold_time(seconds: float, exponent: str, met: bool) -> None:
    before, after = Measurement(1.0, 1.0, 0), Measurement(seconds, seconds, 0)
    result = round_growth._step("paper-2013", 1000, before, after, manifest(read=1.0, mine=3.0, a=0, b=0, c=0))
    assert result["name"] == "round_growth: paper-2013, 1,000 pages"
    assert result["met"] == met
    assert result["aim"] == pytest.approx(10**1.1)
    assert f"pages^{exponent};" in result["note"]
    assert "longest stages: mine 3.0 s, read 1.0 s" in result["note"]
    assert result["counts"] == {name: 10 * number for number, name in enumerate(round_growth.COUNTED)}


@pytest.mark.usefixtures("forked_runs")
def test_a_run_ranks_webs_of_growing_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(round_growth, "PROFILES", ("paper-2013",))
    (result,) = round_growth.run(quick=True, pages=2_000)
    assert result["name"] == "round_growth: paper-2013, 2,000 pages"
    assert result["counts"]["frontier"] > 20
    assert result["ratio"] is not None
    assert result["cpu_ratio"] is not None
    assert math.isclose(result["ratio"], (result["ours_s"] or 0) / (result["peer_s"] or 1))
