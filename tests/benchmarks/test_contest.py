"""Means over topics and the tables of rankers replayed one by one."""

from __future__ import annotations

import pyarrow as pa
import pytest

from benchmarks.contest import claim_lines, compared, mean_sweep, threshold_lines
from benchmarks.ranking import difference_lines, table_lines
from semrank.pipelines.evaluation_config import EvaluationConfig
from semrank.pipelines.evaluation_results import THRESHOLDS


def crawl(harvest: float, recall: float) -> dict[str, float]:
    return {"harvest": harvest, "recall": recall, "f_measure": harvest / 2, "harvest_area": 0.0, "seconds": 0.5}


FOUND = {
    ("first", "expand"): {"values": {"a": [crawl(0.25, 0.5), crawl(0.75, 1.0)]}, "sweep": {}},
    ("second", "expand"): {
        "values": {"a": [crawl(0.25, 0.5)]},
        "sweep": {f"{gamma:.2f}": 1 - abs(gamma - 0.45) for gamma in THRESHOLDS},
    },
}


def test_a_topics_crawls_are_averaged_first() -> None:
    rows = [(0.5, "a", 0.2), (0.5, "a", 0.4), (0.5, "b", 0.5), (0.75, "a", 1.0)]
    sweep = pa.table(dict(zip(("threshold", "topic", "f_measure"), map(list, zip(*rows, strict=True)), strict=True)))
    assert mean_sweep(sweep) == {"0.50": pytest.approx(0.4), "0.75": 1.0}
    assert mean_sweep(sweep.slice(0, 0)) == {}


def test_the_tables() -> None:
    summary = compared(FOUND, EvaluationConfig(("focused",)))
    assert list(table_lines(summary))[2:] == ["| first | 0.500 / 0.750 |", "| second | 0.250 / 0.500 |"]
    assert list(difference_lines(summary))[2:] == ["| second | -0.250 / -0.250 |"]
    assert list(claim_lines(FOUND))[2:] == ["| first | expand | 0.250 | 0.500 |", "| second | expand | 0.125 | 0.500 |"]
    (shown,) = list(threshold_lines(FOUND))[2:]
    assert shown.startswith("| second | expand | 0.600 | 0.650 |")
    assert "| 0.950 | **1.000** | 0.950 |" in shown
