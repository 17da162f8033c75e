"""The benchmark of the local runner at a small size."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import local_runner
from benchmarks.harness import Command, Measurement
from semrank.pipelines.cli import main

ROOT = Path(__file__).resolve().parents[2]


def last_commit() -> str:
    done = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("the tests are not in a repository")
    return done.stdout.strip()


def cpu_seconds() -> float:
    """Processor time of this process and of the workers that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def measured_here(sides: Sequence[Command], _: int) -> list[Measurement]:
    """Measures each command once, in this process; those of `round_growth` and `startup` are processes."""
    measured = []
    for side in sides:
        assert side.words[:3] == (sys.executable, "-m", "semrank.pipelines.cli")
        cpu, begin = cpu_seconds(), time.perf_counter()
        assert main([*side.words[3:]]) == 0
        measured.append(Measurement(time.perf_counter() - begin, cpu_seconds() - cpu, 0))
    return measured


def test_it_compares_runners_and_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_runner, "interleaved", measured_here)
    results = local_runner.run(quick=True, pages=300)
    assert [(result["name"].removeprefix("local_runner: "), result["peer"], result["aim"]) for result in results] == [
        ("rank the sample", "Beam's FnApiRunner", 0.3),
        ("rank the sample on Flink", "the local runner", None),
        ("rank, two workers", "one worker", 0.6),
        ("ingest, two workers", "one worker", 0.6),
        ("rank with SemRank's terms", "without them", 1.15),
    ]
    assert 0 < (results[0]["cpu_ratio"] or 0) < 1


def test_it_compares_with_an_earlier_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both rank the same seeds, each a snapshot that its own code made; nothing is run here."""
    given: list[tuple[str, ...]] = []

    def measured(sides: list[Command], _: int) -> list[Measurement]:
        given.extend(side.words for side in sides)
        return [Measurement(3.0, 2.0, 40), Measurement(10.0, 8.0, 50)][: len(sides)]

    monkeypatch.setattr(local_runner, "interleaved", measured)
    commit = last_commit()
    result = local_runner._earlier(tmp_path, 300, commit)
    assert (result["peer"], result["ratio"], result["aim"]) == (f"commit {commit}", 0.3, 0.4)
    assert "memory 0.80 of the peer's, aim 0.5" in result["note"]
    ingest, ours, theirs = given
    assert ingest[: len(theirs[:5])] == theirs[:5]
    assert f"{tmp_path}/earlier" in theirs
    assert f"{tmp_path}/earlier" not in ours
    for words, snapshot in ((ours, "snapshot"), (theirs, "earlier-snapshot")):
        assert words[words.index("--snapshot") + 1] == f"{tmp_path}/{snapshot}"
        assert words[words.index("--seeds") + 1] == f"{tmp_path}/seeds.txt"


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
