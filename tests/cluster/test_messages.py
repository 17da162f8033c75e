"""What would leave a job waiting is said within a minute, in one line; the cluster's own commands."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from tests.cluster.conftest import Chain, FlinkCluster, semrank

MINUTE = 75.0
"""A minute, and what a command's start takes on a machine that does other things too."""


@pytest.fixture
def silent_port() -> socket.socket:
    """A port that takes connections and never answers, as a pool does whose workers can't start."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    return listening


def refused(chain: Chain, output: Path, *options: str) -> tuple[int, str]:
    inputs = ["--snapshot", str(chain.snapshot), "--seeds", f"{chain.web}/seeds.txt", "--output", str(output)]
    begin = time.monotonic()
    done = semrank("rank", *inputs, *options)
    assert time.monotonic() - begin < MINUTE
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert not (output / "manifest.json").exists()
    return done.returncode, done.stderr


def test_job_server_is_not_there(cluster: FlinkCluster, local_chain: Chain, tmp_path: Path) -> None:
    options = [*cluster.options(1), "--job_endpoint=127.0.0.1:9"]
    status, message = refused(local_chain, tmp_path / "round", *options)
    assert status == 2
    assert "--job_endpoint 127.0.0.1:9: no answer" in message


def test_too_few_slots(cluster: FlinkCluster, local_chain: Chain, tmp_path: Path) -> None:
    status, message = refused(local_chain, tmp_path / "round", *cluster.options(100))
    assert status == 2
    assert "--parallelism 100: found 4 slots" in message


def test_worker_pool_is_not_there(cluster: FlinkCluster, local_chain: Chain, tmp_path: Path) -> None:
    options = [*cluster.options(1), "--environment_config=127.0.0.1:9"]
    status, message = refused(local_chain, tmp_path / "round", *options)
    assert status == 1
    assert "the workers of" in message
    assert "(--environment_config 127.0.0.1:9) can't be used" in message
    assert "Connection refused" in message


def test_workers_do_not_start(
    cluster: FlinkCluster, local_chain: Chain, tmp_path: Path, silent_port: socket.socket
) -> None:
    options = [*cluster.options(1), f"--environment_config=127.0.0.1:{silent_port.getsockname()[1]}"]
    status, message = refused(local_chain, tmp_path / "round", *options)
    silent_port.close()
    assert status == 1
    assert "no worker of" in message


def test_relative_paths(cluster: FlinkCluster, local_chain: Chain, tmp_path: Path) -> None:
    """Workers have another working folder; what the command names relative to its own is meant all the same."""
    inputs = ["--snapshot", local_chain.snapshot.name, "--seeds", "web/seeds.txt", "--output", f"{tmp_path.name}-round"]
    done = semrank("rank", *inputs, "--profile", "paper-2013", *cluster.options(2), cwd=local_chain.folder)
    assert done.returncode == 0, done.stderr
    assert list((local_chain.folder / f"{tmp_path.name}-round" / "frontier").glob("*.parquet"))


def test_status_and_second_up(cluster: FlinkCluster) -> None:
    options = cluster.up()
    before = cluster.saved()["processes"]
    assert cluster.up() == options
    assert cluster.saved()["processes"] == before
    done = cluster.command("status")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].split() == options
    assert done.stdout.count(" running") == len(before) == 5


def test_down_of_nothing(tmp_path: Path) -> None:
    done = FlinkCluster(tmp_path).command("down")
    assert (done.returncode, done.stdout) == (0, "nothing was running\n")
    assert FlinkCluster(tmp_path).command("status").returncode == 1
