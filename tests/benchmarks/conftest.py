"""What the tests of benchmarks share."""

from __future__ import annotations

import multiprocessing

import pytest

from benchmarks import harness


@pytest.fixture
def forked_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes of runs are forked from one that has imported the benchmarks; `test_harness` has fresh ones."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.log_ingest", "benchmarks.relations", "benchmarks.similarity"])
    monkeypatch.setattr(harness, "CONTEXT", context)
