"""The benchmark of the local runner at a small size."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks import local_runner

ROOT = Path(__file__).resolve().parents[2]


def last_commit() -> str:
    done = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("the tests are not in a repository")
    return done.stdout.strip()


def test_it_compares_runners_workers_and_commits() -> None:
    commit = last_commit()
    results = local_runner.run(quick=True, pages=300, earlier=commit)
    assert [(result["name"].removeprefix("local_runner: "), result["peer"], result["aim"]) for result in results] == [
        ("rank the sample", "Beam's FnApiRunner", 0.3),
        ("rank the sample on Flink", "the local runner", None),
        ("rank, two workers", "one worker", 0.6),
        ("ingest, two workers", "one worker", 0.6),
        ("rank, an earlier commit", f"commit {commit}", 0.4),
    ]
    assert 0 < (results[0]["cpu_ratio"] or 0) < 1
    assert "memory " in results[-1]["note"]


def test_a_commit_is_unpacked_and_run_by_its_own_code(tmp_path: Path) -> None:
    local_runner.unpack_commit(last_commit(), tmp_path / "there")
    version = tmp_path / "there" / "pipelines" / "__init__.py"
    assert version.is_file()
    version.write_text('__version__ = "0.0.earlier"\n', encoding="utf-8")
    words = [*local_runner.commit_command(tmp_path / "there"), "--version"]
    assert "0.0.earlier" in subprocess.run(words, check=True, capture_output=True, text=True, cwd=tmp_path).stdout


def test_an_unknown_commit_is_told(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="--earlier nothing: fatal: "):
        local_runner.unpack_commit("nothing", tmp_path / "there")
