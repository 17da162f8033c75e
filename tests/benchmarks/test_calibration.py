"""What the calibration benchmark counts, on a crawl of the sample web."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks import calibration
from benchmarks.calibration import Counts, judged, lines
from benchmarks.contest import Place
from semrank.pipelines.evaluation_config import FRONTIER, EvaluationConfig
from tests.support.sample import ingest_sample


def test_thresholds_are_judged_by_the_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = ingest_sample(tmp_path)
    topics = tmp_path / "web" / "topics.parquet"
    labels = pq.read_table(topics)
    pages = labels.filter([topic == "birds" for topic in labels["topic"].to_pylist()])
    pq.write_table(pages, tmp_path / "birds.parquet")
    monkeypatch.setattr(calibration, "HARVESTS", (12,))
    config = EvaluationConfig(("focused",), mode=FRONTIER, budget=20, batch=8, seed_sets=1)
    found = judged(Place(snapshot, tmp_path / "birds.parquet", tmp_path), config)
    assert found
    assert set(found) <= {(12, precision) for precision in calibration.PRECISIONS}
    for counts in (topic for topics in found.values() for topic in topics):
        assert 0 <= counts.relevant <= min(counts.selected, counts.all_relevant)
        assert counts.all_relevant <= pages.num_rows - 4
        assert all(0 <= threshold <= 1 for threshold in counts.thresholds)


def test_means_are_over_topics() -> None:
    topics = [Counts(10, 5, 20, [0.2, 0.4]), Counts(0, 0, 10, [0.9]), Counts(4, 1, 0, [0.6])]
    assert list(lines({(24, 0.5): topics, (24, 0.7): [Counts(9, 1, 2, [0.5])]}))[2:] == [
        "| 24 | 0.5 | 3 | 0.60 | 3 | 0.38 | 0.12 |",
        "| 24 | 0.7 | 1 | 0.50 | 9 | 0.11 | 0.50 |",
    ]
