"""Runs that are killed at any moment: nobody takes what is left for a result, and a rerun is as if undisturbed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from pipelines.cli import main
from pipelines.locks import LOCK

ROOT = Path(__file__).resolve().parents[2]
KILLS = 4
"""Kills of each command: enough to meet start, reading, exchange and writing over a few runs of the suite."""

VOLATILE = {"seconds", "stages", "counters"}
"""What two manifests of the same work may differ in."""


def command(arguments: Sequence[str]) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "pipelines.cli", *arguments],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finished(arguments: Sequence[str]) -> str:
    process = command(arguments)
    output, error = process.communicate(timeout=300)
    assert process.returncode == 0, error
    return output


def content(folder: Path) -> dict[str, bytes]:
    """All files below a folder but the manifests, and the locks that a killed run can't take away."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("manifest.json", LOCK)
    }


def told(folder: Path) -> dict[str, object]:
    manifest = json.loads((folder / "manifest.json").read_text())
    return {name: value for name, value in manifest.items() if name not in VOLATILE}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crash")
    assert main(["sample", "--output", str(folder / "web"), "--quiet"]) == 0
    logs = ["--warc", str(folder / "web" / "warc" / "*"), "--clicks", str(folder / "web" / "clicks" / "*")]
    assert main(["ingest", *logs, "--output", str(folder / "snapshot"), "--quiet"]) == 0
    return folder


def commands(place: Path, output: Path) -> dict[str, list[str]]:
    web = place / "web"
    seeds = ["--snapshot", str(place / "snapshot"), "--seeds", str(web / "seeds.txt"), "--max-urls", "12"]
    return {
        "ingest": ["ingest", "--warc", f"{web}/warc/*", "--clicks", f"{web}/clicks/*", "--output", str(output)],
        "rank": ["rank", *seeds, "--output", str(output)],
        "rounds": ["rounds", *seeds, "--rounds", "2", "--output", str(output)],
    }


def reading(name: str, folder: Path, place: Path, scratch: Path) -> list[str]:
    """A command that reads what another one wrote to a folder."""
    if name != "ingest":
        return ["explain", "--round", str(folder), "https://x.example/"]
    rank = commands(place, scratch / "unread")["rank"]
    rank[rank.index("--snapshot") + 1] = str(folder)
    return rank


@pytest.mark.parametrize("name", ["ingest", "rank", "rounds"])
def test_a_killed_run_is_never_taken_for_a_result(name: str, place: Path, tmp_path: Path) -> None:
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    begin = time.monotonic()
    finished(commands(place, undisturbed)[name])
    usual = time.monotonic() - begin
    draw = random.Random(name)
    ended = 0
    for _ in range(KILLS):
        process = command(commands(place, killed)[name])
        try:
            process.wait(timeout=draw.uniform(0.2, 1.0) * usual)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            ended += 1
        finally:
            for stream in (process.stdout, process.stderr):
                assert stream is not None
                stream.close()
        folders = sorted(killed.glob("round-*")) if name == "rounds" else [killed]
        for folder in folders:
            if not (folder / "manifest.json").exists():
                assert main(reading(name, folder, place, tmp_path)) == 2
            else:
                other = undisturbed / folder.name if name == "rounds" else undisturbed
                assert content(folder) == content(other)
        if name != "rounds" and (killed / "manifest.json").exists():
            (killed / "manifest.json").unlink()
    finished(commands(place, killed)[name])
    assert ended, "no run was killed: they all ended before"
    assert content(killed) == content(undisturbed)
    if name == "rounds":
        for folder in sorted(undisturbed.glob("round-*")):
            assert told(killed / folder.name)["rows"] == told(folder)["rows"]
    else:
        assert told(killed) == told(undisturbed)


def test_of_two_runs_into_one_folder_one_wins(place: Path, tmp_path: Path) -> None:
    arguments = commands(place, tmp_path / "round")["rank"]
    runs = [command(arguments) for _ in range(2)]
    errors = [run.communicate(timeout=300)[1] for run in runs]
    assert sorted(run.returncode for run in runs) == [0, 2], errors
    loser = errors[[run.returncode for run in runs].index(2)]
    assert "another run" in loser or "holds a finished result" in loser
    alone = tmp_path / "alone"
    finished(commands(place, alone)["rank"])
    assert content(tmp_path / "round") == content(alone)


def test_a_folder_that_can_not_be_written_is_said_before_the_work(place: Path, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        blocked = Path("/proc/semrank")
    else:
        tmp_path.chmod(0o500)
        blocked = tmp_path / "round"
    process = command(commands(place, blocked)["rank"])
    _, error = process.communicate(timeout=120)
    assert process.returncode == 2
    assert error.count("\n") == 1
    assert "can't be written" in error


def test_an_input_that_vanishes_fails_the_run_and_leaves_no_result(place: Path, tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot"
    finished(commands(place, snapshot)["ingest"])
    for path in (snapshot / "pages").glob("*.parquet"):
        path.write_bytes(path.read_bytes()[:-20])
    rank = commands(place, tmp_path / "round")["rank"]
    rank[rank.index("--snapshot") + 1] = str(snapshot)
    process = command(rank)
    _, error = process.communicate(timeout=120)
    assert process.returncode in (1, 2)
    assert "Traceback" not in error
    assert not (tmp_path / "round" / "manifest.json").exists()


def test_a_full_disk_fails_the_run_and_leaves_no_result(place: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk: writing fails with an error of the system."""
    rank = commands(place, tmp_path / "round")["rank"]
    limited = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)); "
        "from pipelines.cli import leave, main; leave(main(sys.argv[1:]))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    program = [sys.executable, "-c", limited, *rank]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "round" / "manifest.json").exists()
