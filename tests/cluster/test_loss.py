"""A TaskManager is killed in the middle of a job: the job ends with the same bytes, every row once."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.cluster.conftest import ROUND_TABLES, FlinkCluster, GeneratedWeb, digests, manifest

PARALLELISM = 2
"""Slots that one TaskManager has for itself, so that the job goes on without the other."""


@pytest.mark.parametrize("step", ["score current lattice", "write frontier/write/merge"])
def test_killed(step: str, cluster: FlinkCluster, generated_web: GeneratedWeb, tmp_path: Path) -> None:
    options = cluster.options(PARALLELISM)
    jobs: list[str] = []
    killing = threading.Thread(target=lambda: jobs.append(cluster.kill_when(step)))
    killing.start()
    output = generated_web.rank(tmp_path / "round", *options)
    killing.join()
    job = cluster.rest(f"jobs/{jobs[0]}")
    assert job["state"] == "FINISHED"
    assert job["timestamps"]["RESTARTING"] > 0, "the job was not hit"
    assert digests(output, ROUND_TABLES) == digests(generated_web.local, ROUND_TABLES)
    assert manifest(output)["rows"] == manifest(generated_web.local)["rows"]
    urls = pq.read_table(output / "frontier", columns=["url"])["url"]
    assert len(urls) == pc.count_distinct(urls).as_py() > 0
