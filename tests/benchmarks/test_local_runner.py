"""The benchmark of the local runner at a small size."""

from __future__ import annotations

import pytest

from benchmarks import local_runner


def test_it_compares_runners_and_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_runner, "REPEATS", 1)
    sample, ranked, ingested = local_runner.run(pages=1_000)
    assert [(result["name"], result["peer"], result["aim"]) for result in (sample, ranked, ingested)] == [
        ("local_runner: rank the sample", "Beam's FnApiRunner", 0.3),
        ("local_runner: rank, two workers", "one worker", 0.6),
        ("local_runner: ingest, two workers", "one worker", 0.6),
    ]
    assert 0 < (sample["cpu_ratio"] or 0) < 1
