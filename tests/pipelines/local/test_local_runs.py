"""Rounds on the local runner: the same bytes however they run, and runs that are ended, killed, or out of disk."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from semrank.pipelines import rank
from semrank.pipelines.cli import main
from semrank.pipelines.local import options, runner
from semrank.pipelines.local.runner import LocalRunner
from tests.pipelines.local.apart_runs import sleep_in_a_step, workers_beside_threads
from tests.support.apart import apart, forked
from tests.support.interrupts import interruptible
from tests.support.sample import ingest_sample

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A snapshot of the sample, and its seeds."""
    folder = tmp_path_factory.mktemp("local")
    return ingest_sample(folder), folder / "web" / "seeds.txt"


def arguments(sample: tuple[Path, Path], output: Path, *more: str) -> list[str]:
    snapshot, seeds = map(str, sample)
    return ["rank", "--snapshot", snapshot, "--seeds", seeds, "--output", str(output), *more]


def tables(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.parquet")}


@pytest.fixture(scope="module")
def reference(sample: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The tables of a round by Beam's runner."""
    output = tmp_path_factory.mktemp("reference") / "round"
    assert main(arguments(sample, output, "--quiet", "--runner", "DirectRunner")) == 0
    return tables(output)


@pytest.mark.parametrize(
    ("workers", "partitions", "spilled"), [(1, 1, False), (1, 7, True), (2, 1, True), (2, 2, False), (2, 7, True)]
)
def test_rounds_have_the_same_bytes(
    workers: int,
    partitions: int,
    spilled: bool,
    sample: tuple[Path, Path],
    reference: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rank, "partition_count", lambda _: partitions)
    monkeypatch.setattr(runner, "SHARED_BYTES", 0)
    if spilled:
        monkeypatch.setattr(options, "EXCHANGE_SHARE", 0.0)
    assert main(arguments(sample, tmp_path / "round", "--quiet", "--workers", str(workers))) == 0
    assert tables(tmp_path / "round") == reference


# --- ends ------------------------------------------------------------------------------------------------------------


def full(*_: Any) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_full_disk_is_one_line(
    workers: str,
    sample: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(runner, "SHARED_BYTES", 0)
    monkeypatch.setattr(options, "EXCHANGE_SHARE", 0.0)
    monkeypatch.setattr(os, "pwrite", full)
    temp = ["--temp", str(tmp_path), "--workers", workers]
    assert main(arguments(sample, tmp_path / "round", "--quiet", *temp)) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"--temp {tmp_path}: the disk is full after 0 bytes" in line
    assert not (tmp_path / "round" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--workers", "0"], "--workers: found 0, expected a whole number of at least 1"),
        (["--temp", "/no/such/folder"], "--temp /no/such/folder: no file can be made there"),
        (["--workers", "2", "--runner", "DirectRunner"], "--workers: found with --runner FnApiRunner"),
    ],
)
def test_unusable_options(
    given: list[str], message: str, sample: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(sample, tmp_path / "round", *given)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_workers_are_the_processors_unless_other_threads_run() -> None:
    assert apart(workers_beside_threads).value == (len(os.sched_getaffinity(0)), 1, 3)


class PeculiarError(Exception):
    """An error that can't be pickled."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def fail(number: int, how: str) -> int:
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "peculiar":
        raise PeculiarError(number, number)
    raise ValueError(f"{number} is not good")


@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        ("plain", ValueError, "is not good"),
        ("peculiar", RuntimeError, r"PeculiarError: \d and \d"),
        ("killed", RuntimeError, "a worker process was killed by signal 9; it may have run out of memory"),
    ],
)
def test_what_ends_a_worker_is_raised(
    how: str, kind: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "SHARED_BYTES", 0)
    pipeline = beam.Pipeline(runner=LocalRunner(), options=PipelineOptions(["--workers=2"]))
    pipeline | beam.Create([1, 2, 3]) | "failing" >> beam.Map(fail, how)
    with pytest.raises(kind, match=message) as raised:
        pipeline.run()
    assert getattr(raised.value, "__notes__", []) == ([] if how == "killed" else ["[while running 'failing']"])


@pytest.fixture(params=[1, 2], ids=["one process", "two workers"])
def sleeping(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[ForkServerProcess, list[int], Path]]:
    """A run that sleeps inside its step, the processes that do so, and the folder of its temporary files."""
    marks, temp = tmp_path / "marks", tmp_path / "temp"
    marks.mkdir()
    temp.mkdir()
    process = forked(sleep_in_a_step, marks, request.param, temp)
    try:
        while len(list(marks.iterdir())) < request.param:
            assert process.is_alive()
            time.sleep(0.05)
        yield process, [int(mark.name) for mark in marks.iterdir()], temp
    finally:
        process.kill()
        process.join()


def runs(process: int) -> bool:
    """Whether there is such a process, and not only its exit status."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(processes: list[int], seconds: float) -> bool:
    """Whether processes end in time."""
    deadline = time.monotonic() + seconds
    while any(runs(each) for each in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_a_run(sign: signal.Signals, sleeping: tuple[ForkServerProcess, list[int], Path]) -> None:
    process, sleepers, temp = sleeping
    assert process.pid is not None
    os.kill(process.pid, sign)
    process.join(20)
    assert process.exitcode in ((130, -signal.SIGINT) if sign == signal.SIGINT else (-sign,))
    assert gone(sleepers, 10)
    assert list(temp.iterdir()) == []


def test_an_interrupted_round_is_unfinished(sample: tuple[Path, Path], tmp_path: Path) -> None:
    output = tmp_path / "round"
    process = subprocess.Popen(
        interruptible("-m", "semrank.pipelines.cli", *arguments(sample, output, "--runner", "LocalRunner")),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (output / "harvest").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    printed, errors = process.communicate(timeout=30)
    assert (process.returncode, printed) == (130, "")
    assert errors.splitlines()[-1] == "semrank rank: interrupted; the result is unfinished"
    assert not (output / "manifest.json").exists()
