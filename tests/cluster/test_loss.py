"""A TaskManager is killed in the middle of a job: the job ends with the same bytes, every row once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.cluster.conftest import ROUND_TABLES, FlinkCluster, GeneratedWeb, digests, manifest

PARALLELISM = 2
"""Slots that one TaskManager has for itself, so that the job goes on without the other."""


def check_loss(cluster: FlinkCluster, web: GeneratedWeb, output: Path, reached: Callable[[], bool]) -> None:
    options = cluster.options(PARALLELISM)
    killing = threading.Thread(target=cluster.kill_when, args=[reached])
    killing.start()
    web.rank(output, *options)
    killing.join()
    job = cluster.last_job()
    assert job["state"] == "FINISHED"
    assert job["timestamps"]["RESTARTING"] > 0, "the job was not hit"
    assert digests(output, ROUND_TABLES) == digests(web.local, ROUND_TABLES)
    assert manifest(output)["rows"] == manifest(web.local)["rows"]
    urls = pq.read_table(output / "frontier", columns=["url"])["url"]
    assert len(urls) == pc.count_distinct(urls).as_py() > 0


def test_while_mining(cluster: FlinkCluster, generated_web: GeneratedWeb, tmp_path: Path) -> None:
    check_loss(cluster, generated_web, tmp_path / "round", lambda: cluster.runs("score current lattice"))


def test_while_writing(cluster: FlinkCluster, generated_web: GeneratedWeb, tmp_path: Path) -> None:
    """The first table is written, the others are not."""
    output = tmp_path / "round"
    check_loss(cluster, generated_web, output, lambda: any((output / "relations").glob("*.parquet")))
