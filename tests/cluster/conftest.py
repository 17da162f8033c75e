"""A Flink cluster on this machine, and the chain of commands that runs on it.

Not in the default suite, since it needs Java, Maven and some minutes; `python -m pytest tests/cluster` runs it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.round_growth import write_round_input
from deploy.flink.cluster import Process, is_alive
from tests.cluster.prism import beam_version, build

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = ROOT / "deploy" / "flink" / "cluster"

COMMAND_SECONDS = 420
UNREACHABLE = (
    "No plugin found for prefix 'dependency'",
    "Unknown host",
    "Connection refused",
    "Connect timed out",
    "No route to host",
    "Network is unreachable",
    "no such host",
    "connection refused",
    "i/o timeout",
    "Name or service not known",
    "Temporary failure in name resolution",
)
"""What Maven and Go say without a network."""

PAGES = 20_000
"""Pages of the generated web: its mining takes long enough to be interrupted."""

ROUND_TABLES = ("frontier", "harvest", "keywords", "relations", "base_concepts", "rejects")
SNAPSHOT_TABLES = ("pages", "links", "clicks", "aliases", "history", "rejects")


def semrank(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Runs a command in a process of its own, as users do."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    return subprocess.run(
        [sys.executable, "-m", "semrank.pipelines", *arguments, "--quiet"],
        check=False,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment,
        timeout=COMMAND_SECONDS,
    )


def succeed(*arguments: str) -> None:
    done = semrank(*arguments)
    assert done.returncode == 0, done.stderr


def digests(folder: Path, tables: tuple[str, ...]) -> dict[str, str]:
    """SHA-256 of every file of the tables."""
    found = {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for table in tables
        for path in sorted((folder / table).glob("*.parquet"))
    }
    assert {name.split("/")[0] for name in found} == set(tables)
    return found


def manifest(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return content


@dataclass(frozen=True)
class FlinkCluster:
    """A running cluster."""

    state: Path

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHON": sys.executable}
        return subprocess.run(
            [str(CLUSTER), *arguments, "--state", str(self.state)],
            check=False,
            capture_output=True,
            text=True,
            env=environment,
        )

    def up(self) -> list[str]:
        """Starts what is missing; gives the options that it prints."""
        done = self.command("up", "--slots", "2")
        skip_if_unreachable("Maven", done)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[-1].split()

    def options(self, parallelism: int) -> list[str]:
        """Options of a job; whatever a test killed is there again."""
        return [*self.up(), f"--parallelism={parallelism}"]

    def saved(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.state / "cluster.json").read_text(encoding="utf-8"))
        return content

    def rest(self, path: str) -> Any:
        port = self.saved()["ports"]["rest"]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=10) as answer:
            return json.load(answer)

    def runs(self, step: str) -> bool:
        """Whether a job's step is running."""
        running = [job["jid"] for job in self.rest("jobs/overview")["jobs"] if job["state"] == "RUNNING"]
        vertices = [vertex for job in running for vertex in self.rest(f"jobs/{job}")["vertices"]]
        return any(step in vertex["name"] and vertex["status"] == "RUNNING" for vertex in vertices)

    def kill_when(self, reached: Callable[[], bool]) -> None:
        """Kills a TaskManager without warning as soon as a job has got so far."""
        victim = self.saved()["processes"]["taskmanager-1"]["pid"]
        deadline = time.monotonic() + COMMAND_SECONDS
        while not reached():
            if time.monotonic() > deadline:
                raise AssertionError("no job got so far")
            time.sleep(0.02)
        os.kill(victim, signal.SIGKILL)

    def last_job(self) -> Any:
        """What Flink says of the job that was started last."""
        newest = max(self.rest("jobs/overview")["jobs"], key=lambda job: int(job["start-time"]))
        return self.rest(f"jobs/{newest['jid']}")


def skip_if_unreachable(tool: str, done: subprocess.CompletedProcess[str]) -> None:
    """Skips where a tool has no registry to fetch from, as good as missing; what a registry refuses is a failure."""
    told = (done.stdout + done.stderr).splitlines()
    signs = [line.strip() for line in told if any(sign in line for sign in UNREACHABLE)]
    if done.returncode and signs:
        pytest.skip(f"{tool} reaches no registry: {signs[0]}")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkCluster]:
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            pytest.skip(f"`{tool}` is not on PATH")
    started = FlinkCluster(tmp_path_factory.mktemp("flink"))
    started.up()
    yield started
    processes = started.saved()["processes"]
    assert started.command("down").returncode == 0
    assert not [name for name, process in processes.items() if is_alive(Process(**process))]


@pytest.fixture(scope="session")
def prism(request: pytest.FixtureRequest) -> str:
    """Path of Beam's Go runner, built once."""
    if shutil.which("go") is None:
        pytest.skip("`go` is not on PATH")
    cache = request.config.cache
    assert cache is not None
    folder = cache.mkdir(f"prism-{beam_version()}")
    if not (folder / "prism").exists():
        done = build(folder)
        skip_if_unreachable("Go", done)
        assert done.returncode == 0, done.stderr
    return str(folder / "prism")


@dataclass(frozen=True)
class Chain:
    """What sample, ingest and three rounds left: by a paper's profile, by the topic's base, and by all terms."""

    web: Path
    folder: Path

    @property
    def snapshot(self) -> Path:
        return self.folder / "snapshot"

    @property
    def rounds(self) -> list[Path]:
        return [self.folder / f"round-{number:04}" for number in range(3)]

    def all_digests(self) -> list[dict[str, str]]:
        return [
            digests(self.snapshot, SNAPSHOT_TABLES),
            *(digests(folder, ROUND_TABLES) for folder in self.rounds),
        ]


def run_chain(web: Path, folder: Path, *options: str) -> Chain:
    chain = Chain(web, folder)
    sources = ["--warc", f"{web}/warc/*", "--clicks", f"{web}/clicks/*"]
    succeed("ingest", *sources, "--output", str(chain.snapshot), *options)
    ranking = ["--snapshot", str(chain.snapshot), "--max-urls", "40", *options]
    by_paper, by_all = ["--profile", "paper-2013"], ["--profile", "focused", "--semrank-terms"]
    first, second, third = chain.rounds
    succeed("rank", *ranking, *by_paper, "--seeds", f"{web}/seeds.txt", "--output", str(first))
    succeed("rank", *ranking, *by_paper, "--base", "topic", "--previous", str(first), "--output", str(second))
    succeed("rank", *ranking, *by_all, "--previous", str(first), "--output", str(third))
    return chain


@pytest.fixture(scope="session")
def local_chain(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    """The chain on the local runner, in one process."""
    folder = tmp_path_factory.mktemp("local")
    succeed("sample", "--output", str(folder / "web"))
    return run_chain(folder / "web", folder)


@dataclass(frozen=True)
class GeneratedWeb:
    """A snapshot large enough that its groups and its mining show, with the round that the local runner made."""

    snapshot: Path
    seeds: Path
    local: Path

    def rank(self, output: Path, *options: str) -> Path:
        inputs = ["--snapshot", str(self.snapshot), "--seeds", str(self.seeds), "--profile", "paper-2013"]
        succeed("rank", *inputs, "--max-urls", "400", "--output", str(output), *options)
        return output


@pytest.fixture(scope="session")
def generated_web(tmp_path_factory: pytest.TempPathFactory) -> GeneratedWeb:
    folder = tmp_path_factory.mktemp("generated")
    snapshot, seeds = write_round_input(folder, PAGES)
    web = GeneratedWeb(snapshot, seeds, folder / "local")
    web.rank(web.local)
    return web
