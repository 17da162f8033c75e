"""Runs that are killed at any moment: nobody takes what is left for a result, and a rerun is as if undisturbed."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import resource
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from semrank.pipelines import folders
from semrank.pipelines.cli import main
from semrank.pipelines.locks import LOCK
from semrank.transforms.columnar.files import MANIFEST
from tests.faults.killing import Kept, Run, Step, run
from tests.support.command_server import served
from tests.support.sample import ingest_sample

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_KILLS = "2"
KILLS = os.environ.get("SEMRANK_KILLS", DEFAULT_KILLS)
"""Steps at which each command is killed, and as many moments; `all` is each of its steps, which takes long."""

RERUN_EVERY = 5
"""A killed run is followed by one that is killed later; one in so many by one that ends."""

QUICK = ["--ranker", "pagerank"]
"""Where it does not matter what ranks: a round of few stages."""

TIMES = re.compile("/(curve|summary)/part-|/plots/time-")
"""Files of an evaluation that tell how long a ranking took."""

VOLATILE = {"seconds", "stages", "counters"}
"""What two manifests of the same work may differ in."""


Command = Callable[[Sequence[str]], "subprocess.Popen[str]"]
"""Starts a command in a process of its own."""


class Server(NamedTuple):
    """A program that is served.

    Attributes:
        program: the command `semrank`.
        process: id of the process that commands are forked from.
    """

    program: Path
    process: int


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    programs = tmp_path_factory.mktemp("programs")
    with served(programs, ROOT) as process:
        yield Server(programs / "semrank", process)


@pytest.fixture(scope="module")
def command(server: Server) -> Command:
    def started(arguments: Sequence[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(server.program), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    return started


def content(folder: Path) -> dict[str, bytes]:
    """All files below a folder but the manifests, the locks that a killed run can't take away, and measured times."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in (MANIFEST, LOCK) and not TIMES.search(path.as_posix())
    }


def told_by(root: Path, folder: str) -> dict[str, object]:
    """A manifest without what may differ, such as where the round stands that its queue comes from."""
    manifest = json.loads((root / folder / MANIFEST).read_text().replace(str(root), ""))
    return {name: value for name, value in manifest.items() if name not in VOLATILE}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crash")
    ingest_sample(folder)
    for page in ("index", "net/a", "net/b", "fs/a"):
        path = folder / "manuals" / f"{page}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'<title>{page}</title><p>About {page}.</p><a href="/net/a.html">net</a>', encoding="utf-8")
    return folder


def commands(place: Path, output: Path) -> dict[str, list[str]]:
    web = place / "web"
    seeds = ["--snapshot", str(place / "snapshot"), "--seeds", str(web / "seeds.txt"), "--max-urls", "12"]
    return {
        "ingest": ["ingest", "--warc", f"{web}/warc/*", "--clicks", f"{web}/clicks/*", "--output", str(output)],
        "rank": ["rank", *seeds, "--output", str(output)],
        "rounds": ["rounds", *seeds, *QUICK, "--rounds", "2", "--output", str(output)],
        "dataset": ["dataset", "manuals", "--source", str(place / "manuals"), "--output", str(output)],
        "evaluate": [
            *("evaluate", *seeds[:2], "--topics", f"{web}/topics.parquet", "--rankers", "cosine,breadth-first"),
            *("--budget", "6", "--batch", "3", "--output", str(output)),
        ],
    }


def readings(name: str, folder: Path, place: Path, scratch: Path) -> list[list[str]]:
    """Commands that read what another one wrote to a folder."""
    rank = commands(place, scratch / "unread")["rank"]
    if name == "evaluate":
        return [["report", "--evaluation", str(folder), "--output", str(scratch / "unread.html")]]
    if name in ("ingest", "dataset"):
        rank[rank.index("--snapshot") + 1] = str(folder)
        return [rank]
    seeds = rank.index("--seeds")
    return [
        ["explain", "--round", str(folder), "https://x.example/"],
        ["report", "--round", str(folder), "--output", str(scratch / "unread.html")],
        ["export", "--round", str(folder), "--format", "scrapy", "--output", str(scratch / "unread.jsonl")],
        [*rank[:seeds], "--previous", str(folder), *rank[seeds + 2 :]],
    ]


def drawn_kills(name: str, whole: Run) -> list[Step | float]:
    """Steps, each at one of the times that the run comes to it, and as many moments."""
    draw, count = random.Random(name), Counter(whole.steps)
    every = [Step(step, draw.randint(1, times)) for step, times in sorted(count.items())]
    moments = [draw.uniform(0, whole.seconds) for _ in every]
    number = len(every) if KILLS == "all" else min(int(KILLS), len(every))
    return [*draw.sample(every, number), *moments[:number]]


def check_unfinished(name: str, folder: Path, place: Path, scratch: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in readings(name, folder, place, scratch):
        assert main([*arguments, "--quiet"]) == 2, arguments
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert "unfinished" in error or "no such folder" in error, error


COMMANDS = ["ingest", "rank", "rounds"]
"""The commands that are killed in every run of the tests; the others write by the same functions."""

MORE_COMMANDS = [*COMMANDS, "dataset", "evaluate"]


@pytest.mark.parametrize("name", COMMANDS if KILLS == DEFAULT_KILLS else MORE_COMMANDS)
def test_a_killed_run_is_never_taken_for_a_result(
    name: str, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Steps at files of the folder itself are told by its name.
    undisturbed, killed, told = tmp_path / "undisturbed" / "output", tmp_path / "killed" / "output", tmp_path / "told"
    whole = run(commands(place, undisturbed)[name], told)
    assert whole.status == 0, whole.error
    results = [folder.name for folder in sorted(undisturbed.glob("round-*"))] if name == "rounds" else ["."]
    met = Counter[str]()
    for number, kill in enumerate(drawn_kills(name, whole), 1):
        at = {"kill": kill} if isinstance(kill, Step) else {"seconds": kill}
        found = run(commands(place, killed)[name], told, **at)
        if isinstance(kill, Step):
            assert (found.status, found.steps[-1]) == (None, kill.name)
        met["end" if found.status is not None else found.steps[-1] if found.steps else "start"] += 1
        for folder in results:
            if (killed / folder / MANIFEST).exists():
                assert content(killed / folder) == content(undisturbed / folder)
            else:
                check_unfinished(name, killed / folder, place, tmp_path, capsys)
        take_manifests(killed, results)  # a run that was killed after its last step has finished
        if number % RERUN_EVERY == 0:
            check_rerun(name, killed, undisturbed, results, place, told)
            take_manifests(killed, results)
    check_rerun(name, killed, undisturbed, results, place, told)
    with capsys.disabled():
        if KILLS != DEFAULT_KILLS:
            print(f"\n{name}: {met.total()} kills at {len(met)} steps:", *sorted(met.items()), sep="\n  ")
    assert set(met) - {"start", "end"}, "no run was killed: they all ended before"


@pytest.mark.parametrize("name", [*COMMANDS, "dataset"] if KILLS == DEFAULT_KILLS else MORE_COMMANDS)
def test_nothing_that_a_kill_would_leave_at_any_step_is_taken_for_a_result(
    name: str, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One run, whose folder is copied at each of its steps, stands for as many that are killed there."""
    output, copies = tmp_path / "output", tmp_path / "copies"
    whole = run(commands(place, output)[name], tmp_path / "told", kept=Kept(output, copies))
    assert whole.status == 0, whole.error
    assert len(whole.steps) > (40 if name in COMMANDS else 4)
    results = [folder.name for folder in sorted(output.glob("round-*"))] if name == "rounds" else ["."]
    seen: set[frozenset[tuple[str, bytes]]] = set()
    finished_ones = 0
    for copy in sorted(copies.iterdir(), key=lambda path: int(path.name)):
        manifests = list(copy.rglob(MANIFEST))
        state = frozenset([*content(copy).items(), *((str(path.relative_to(copy)), b"") for path in manifests)])
        if state in seen:
            continue
        seen.add(state)
        for folder in results:
            if (copy / folder / MANIFEST).exists():
                assert content(copy / folder) == content(output / folder)
                finished_ones += 1
            else:
                check_unfinished(name, copy / folder, place, tmp_path, capsys)
    assert len(seen) > (10 if name in COMMANDS else 2)
    # The last step of all is the manifest's renaming, so that in its copy everything is finished.
    assert finished_ones >= len(results)


@pytest.fixture(scope="module")
def round_folder(place: Path) -> Path:
    folder = place / "ranked"
    assert main([*commands(place, folder)["rank"], *QUICK, "--quiet"]) == 0
    return folder


@pytest.mark.parametrize("name", ["export", "report"])
def test_a_killed_command_leaves_the_file_before_or_the_new_one(name: str, round_folder: Path, tmp_path: Path) -> None:
    output, copies, told = tmp_path / "output", tmp_path / "copies", tmp_path / "told"
    output.mkdir()
    target = output / ("frontier.jsonl" if name == "export" else "report.html")
    options = ["--format", "scrapy"] if name == "export" else []
    arguments = [name, "--round", str(round_folder), *options, "--output", str(target), "--overwrite"]
    before = b'{"url": "https://birds.example/"}\n'
    target.write_bytes(before)
    # An export replaces only what is recorded as one.
    record = output / ".semrank" / target.name
    record.parent.mkdir()
    record.write_text(hashlib.sha256(before).hexdigest())
    whole = run(arguments, told, kept=Kept(output, copies))
    assert whole.status == 0, whole.error
    after = target.read_bytes()
    found = [copy.joinpath(target.name).read_bytes() for copy in copies.iterdir()]
    assert {before, after} >= set(found)
    assert before in found
    moments = 1 if KILLS == DEFAULT_KILLS else 20
    for moment in range(moments):
        target.write_bytes(before)
        run(arguments, told, seconds=whole.seconds * moment / moments)
        assert target.read_bytes() in (before, after)


def test_a_killed_sample_has_whole_files_only_and_is_replaced(tmp_path: Path) -> None:
    whole, output, copies, told = (tmp_path / name for name in ("whole", "output", "copies", "told"))
    assert main(["sample", "--output", str(whole), "--quiet"]) == 0
    kept = run(["sample", "--output", str(output)], told, kept=Kept(output, copies))
    assert kept.status == 0, kept.error
    expected = content(whole)
    states = sorted(copies.iterdir(), key=lambda path: int(path.name))
    assert len(states) > len(expected)
    for state in states:
        written = {name: data for name, data in content(state).items() if not Path(name).name.startswith(".")}
        assert written.items() <= expected.items()
    for state in states[:: 1 if KILLS == "all" else len(states) // 3]:
        assert main(["sample", "--output", str(state), "--overwrite", "--quiet"]) == 0
        assert content(state).items() >= expected.items()


def take_manifests(output: Path, results: Sequence[str]) -> None:
    for folder in results:
        (output / folder / MANIFEST).unlink(missing_ok=True)


def check_rerun(name: str, killed: Path, undisturbed: Path, results: Sequence[str], place: Path, told: Path) -> None:
    again = run(commands(place, killed)[name], told)
    assert again.status == 0, again.error
    assert content(killed) == content(undisturbed)
    for folder in results:
        assert told_by(killed, folder) == told_by(undisturbed, folder)


def test_of_two_runs_into_one_folder_one_wins(place: Path, tmp_path: Path, command: Command) -> None:
    arguments = [*commands(place, tmp_path / "round")["rank"], *QUICK]
    runs = [command(arguments) for _ in range(2)]
    errors = [run.communicate(timeout=300)[1] for run in runs]
    assert sorted(run.returncode for run in runs) == [0, 2], errors
    loser = errors[[run.returncode for run in runs].index(2)]
    assert "another run" in loser or "holds a finished result" in loser
    alone = tmp_path / "alone"
    assert main([*commands(place, alone)["rank"], *QUICK, "--quiet"]) == 0
    assert content(tmp_path / "round") == content(alone)


def test_a_folder_that_can_not_be_written_is_said_before_the_work(
    place: Path, tmp_path: Path, command: Command
) -> None:
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


def check_failed(process: subprocess.Popen[str], folder: Path, *statuses: int) -> str:
    """A run that failed in one line and left no result; gives the line."""
    _, error = process.communicate(timeout=120)
    assert process.returncode in statuses, error
    assert "Traceback" not in error
    assert not (folder / MANIFEST).exists()
    return error.splitlines()[-1]


def test_an_input_that_is_cut_off_fails_the_run_and_leaves_no_result(
    place: Path, tmp_path: Path, command: Command
) -> None:
    snapshot = tmp_path / "snapshot"
    shutil.copytree(place / "snapshot", snapshot)
    for path in (snapshot / "pages").glob("*.parquet"):
        path.write_bytes(path.read_bytes()[:-20])
    rank = commands(place, tmp_path / "round")["rank"]
    rank[rank.index("--snapshot") + 1] = str(snapshot)
    check_failed(command(rank), tmp_path / "round", 1, 2)


@pytest.mark.parametrize("name", ["ingest", "rank"])
def test_an_input_that_vanishes_fails_the_run_and_leaves_no_result(
    name: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is there when the run looks, and gone when it reads."""
    inputs = tmp_path / "inputs"
    shutil.copytree(place / {"ingest": "web", "rank": "snapshot"}[name], inputs)
    arguments = commands(place, tmp_path / "output")[name]
    replaced = {f"{place}/web/warc/*": f"{inputs}/warc/*", str(place / "snapshot"): str(inputs)}
    claim = folders.claim_folder

    def vanish(*given: Any, **options: Any) -> None:
        claim(*given, **options)
        for kept in ("warc", "pages"):
            shutil.rmtree(inputs / kept, ignore_errors=True)

    monkeypatch.setattr(folders, "claim_folder", vanish)
    assert main([*(replaced.get(argument, argument) for argument in arguments), "--quiet"]) in (1, 2)
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "No such file" in error or "can't be read" in error, error
    assert not (tmp_path / "output" / MANIFEST).exists()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts a small disk with some options, or changes them; a system that does not allow it skips the test."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = False

    def mount(options: str) -> Path:
        nonlocal mounted
        asked = ["mount", "-t", "tmpfs", "-o", f"{'remount,' * mounted}{options}", "tmpfs", str(folder)]
        if shutil.which("mount") is None or subprocess.run(asked, capture_output=True, check=False).returncode:
            pytest.skip("a disk can't be mounted here")
        mounted = True
        return folder

    yield mount
    if mounted:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("name", ["ingest", "rank"])
def test_a_disk_that_is_full_or_read_only_fails_the_run(
    name: str, place: Path, tmp_path: Path, command: Command, disk: Callable[[str], Path]
) -> None:
    def arguments(output: Path) -> list[str]:
        return [*commands(place, output)[name], *(QUICK if name == "rank" else [])]

    whole = tmp_path / "whole"
    assert main([*arguments(whole), "--quiet"]) == 0
    size = sum(len(file) for file in content(whole).values())
    output = disk(f"size={size // 2 // 4096 * 4}k") / "output"
    told = check_failed(command(arguments(output)), output, 1)
    assert "No space left" in told
    disk("size=16m")
    process = command(arguments(output))
    _, error = process.communicate(timeout=300)
    assert process.returncode == 0, error
    assert content(output) == content(whole)
    disk("ro,size=16m")
    told = check_failed(command(arguments(output.with_name("other"))), output.with_name("other"), 2)
    assert "can't be written: Read-only file system" in told


def test_a_full_disk_fails_the_run_and_leaves_no_result(
    place: Path, tmp_path: Path, server: Server, command: Command
) -> None:
    """A limit on the size of files stands for the full disk: writing fails with an error of the system."""
    before = resource.prlimit(server.process, resource.RLIMIT_FSIZE)
    resource.prlimit(server.process, resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        process = command(commands(place, tmp_path / "round")["rank"])
        told = check_failed(process, tmp_path / "round", 1)
    finally:
        resource.prlimit(server.process, resource.RLIMIT_FSIZE, before)
    assert "File too large" in told
