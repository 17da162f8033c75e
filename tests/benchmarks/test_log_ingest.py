"""The benchmark's log has the promised mix, and a run gives results in the agreed form."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import log_ingest
from semrank.transforms.logs.formats import FORMATS
from semrank.transforms.logs.options import LogOptions

LINES = 3_000


def test_the_log_has_page_views_robots_assets_and_dirt(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    log_ingest.write_log(path, LINES)
    options = LogOptions(user_salt="benchmark-key", site=log_ingest.SITE)
    with path.open("rb") as stream:
        batches = list(FORMATS["combined"].read(stream, source=str(path), options=options))
    assert sum(batch.records for batch in batches) == LINES
    assert sum(batch.used for batch in batches) > LINES / 3
    assert sum(batch.ignored["robot"] for batch in batches) > LINES / 10
    assert sum(batch.ignored["static-asset"] for batch in batches) > LINES / 10
    assert 0 < sum(sum(batch.rejected.values()) for batch in batches) < LINES / 50


@pytest.mark.usefixtures("forked_runs")
def test_a_run_compares_with_both_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_ingest, "QUICK_LINES", LINES)
    results = log_ingest.run(quick=True)
    assert [result["peer"] for result in results] == ["pyarrow.csv", "DuckDB read_csv"]
    for result in results:
        assert result["note"].startswith("3,000 lines")
        assert result["counts"]["records"] == LINES
        assert 0 < result["counts"]["used"] < LINES
        assert result["ours_s"] is not None
        assert result["peer_s"] is not None
        assert result["met"] == (result["ours_s"] / result["peer_s"] <= log_ingest.AIM)
