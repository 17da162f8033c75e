"""The local runner: against Beam's own runner, one worker, an earlier commit, and a cluster; what SemRank's terms cost.

    python -m benchmarks local_runner [--pages N] [--earlier COMMIT]

A round of the sample is compared with the same round by Beam's runner and on a Flink cluster of its own, a large web's
ingest and round with two workers are compared with one worker's. All of these write the same bytes. A round with
SemRank's terms is compared with one without. An earlier commit ranks the large web by its own code, with the same
packages, from the same files.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.harness import Command, Result, interleaved, without_peer
from benchmarks.round_growth import write_round_input, write_web_and_seeds
from benchmarks.scale import flink_cluster
from benchmarks.startup import write_sample

REPEATS = 3
PAGES = 1_000_000
QUICK_PAGES = 2_000
RUNNER_AIM = 0.3
"""Of the time with Beam's runner."""

WORKERS_AIM = 0.6
"""Of the time with one worker."""

TERMS_AIM = 1.15
"""Of the time without SemRank's terms."""

EARLIER_AIM, EARLIER_MEMORY_AIM = 0.4, 0.5
"""Of an earlier commit's time and memory; meant for the last commit before this runner."""

FLINK_SECONDS = 30.0

_ROOT = Path(__file__).resolve().parents[1]
_SEMRANK = (sys.executable, "-m", "semrank.pipelines.cli")
_ROUND = ("--quiet", "--overwrite")
_TERMS, _NO_TERMS = "--semrank-terms", "--no-semrank-terms"


def run(*, quick: bool = False, pages: int | None = None, earlier: str | None = None) -> list[Result]:
    """Results of the benchmark: without the cluster, and with a small web, where it is quick.

    Args:
        quick: whether to measure what takes seconds only.
        pages: pages of the large web.
        earlier: a commit to compare with, or None.
    """
    pages = pages or (QUICK_PAGES if quick else PAGES)
    repeats = 1 if quick else REPEATS
    with tempfile.TemporaryDirectory() as folder:
        sample, web = Path(folder) / "sample", Path(folder) / "web"
        results = [_sample(sample, repeats), _flink(sample, quick=quick), *_workers(web, pages), _terms(web, pages)]
        if earlier is not None:
            results.append(_earlier(web, pages, earlier))
    return results


def _sample(folder: Path, repeats: int) -> Result:
    snapshot, seeds = write_sample(folder)
    ours, beams = interleaved(
        [
            Command((*_ranking(snapshot, seeds), "--output", f"{folder}/local")),
            Command((*_ranking(snapshot, seeds), "--output", f"{folder}/beam", "--runner", "DirectRunner")),
        ],
        repeats,
    )
    return ours.against(beams, "local_runner: rank the sample", "Beam's FnApiRunner", RUNNER_AIM, "start included", {})


def _ranking(snapshot: Path, seeds: Path, terms: str = _NO_TERMS) -> tuple[str, ...]:
    return (*_SEMRANK, "rank", "--snapshot", str(snapshot), "--seeds", str(seeds), terms, *_ROUND)


def _flink(folder: Path, *, quick: bool) -> Result:
    """The same round on a cluster of two workers; the cluster starts outside the clock."""
    name, peer = "local_runner: rank the sample on Flink", "the local runner"
    lacking = "left out: a cluster takes longer to start than all else" if quick else _flink_lacks()
    if lacking is not None:
        return without_peer(name, peer, None, lacking)
    ranking = _ranking(folder / "snapshot", folder / "web" / "seeds.txt")
    with flink_cluster(folder / "flink") as place:
        flink, local = interleaved(
            [
                Command((*ranking, "--output", f"{folder}/flink-round", *place.options)),
                Command((*ranking, "--output", f"{folder}/local")),
            ],
            1,
        )
    note = f"at most {FLINK_SECONDS:g} s; processor time and memory are those of the command alone"
    return flink.against(local, name, peer, FLINK_SECONDS / local.wall_s, note, {})


def _flink_lacks() -> str | None:
    missing = [tool for tool in ("java", "mvn") if shutil.which(tool) is None]
    return f"no `{missing[0]}` on PATH" if missing else None


def _workers(folder: Path, pages: int) -> list[Result]:
    """A round and an ingest with two workers, each against one; the two take turns once."""
    snapshot, seeds = write_round_input(folder, pages)
    inputs, _ = write_web_and_seeds(folder / "again", pages)
    results = []
    for name, words in (("rank", _ranking(snapshot, seeds)), ("ingest", (*_SEMRANK, "ingest", *inputs, "--quiet"))):
        two, one = interleaved(
            [Command((*words, "--workers", str(n), "--output", f"{folder}/{name}-{n}")) for n in (2, 1)], 1
        )
        note = f"{pages:,} pages"
        results.append(two.against(one, f"local_runner: {name}, two workers", "one worker", WORKERS_AIM, note, {}))
    return results


def _terms(folder: Path, pages: int) -> Result:
    """A round of the web of `_workers` with SemRank's terms by the topic's lattice against one without."""
    sides = [
        Command((*_ranking(folder / "snapshot", folder / "seeds.txt", terms), "--output", f"{folder}/rank{terms}"))
        for terms in (_TERMS, _NO_TERMS)
    ]
    with_terms, without = interleaved(sides, 1)
    name = "local_runner: rank with SemRank's terms"
    return with_terms.against(without, name, "without them", TERMS_AIM, f"{pages:,} pages", {})


def _earlier(folder: Path, pages: int, commit: str) -> Result:
    """A round with the default number of workers against an earlier commit's, each from a snapshot of its own."""
    checkout = folder / "earlier"
    unpack_commit(commit, checkout)
    theirs = commit_command(checkout)
    inputs = [f"--{table}={folder}/again/generated/{table}/*" for table in ("pages", "links", "clicks")]
    interleaved([Command((*theirs, "ingest", *inputs, "--output", f"{folder}/earlier-snapshot", "--quiet"))], 1)
    seeds = folder / "seeds.txt"
    ranking = (*theirs, "rank", "--snapshot", f"{folder}/earlier-snapshot", "--seeds", str(seeds))
    ours, peer = interleaved(
        [
            Command((*_ranking(folder / "snapshot", seeds), "--output", f"{folder}/ours")),
            Command((*ranking, _NO_TERMS, *_ROUND, "--output", f"{folder}/theirs")),
        ],
        1,
    )
    note = f"{pages:,} pages; memory {ours.peak_bytes / peer.peak_bytes:.2f} of the peer's, aim {EARLIER_MEMORY_AIM:g}"
    name = "local_runner: rank, an earlier commit"
    return ours.against(peer, name, f"commit {commit}", EARLIER_AIM, note, {})


def unpack_commit(commit: str, folder: Path) -> None:
    """Writes the files of a commit of this repository into a folder.

    Raises:
        RuntimeError: Git does not know the commit.
    """
    folder.mkdir(parents=True)
    with tempfile.TemporaryFile() as archive:
        words = ["git", "-C", str(_ROOT), "archive", "--format=tar", commit]
        done = subprocess.run(words, check=False, stdout=archive, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise RuntimeError(f"--earlier {commit}: {done.stderr.strip().splitlines()[-1]}")
        archive.seek(0)
        # `tarfile` warns without a filter, and Python before 3.11.4 has none.
        subprocess.run(["tar", "-x", "-C", str(folder)], stdin=archive, check=True)


def commit_command(checkout: Path) -> tuple[str, ...]:
    """The `semrank` command of a checkout; before the package had its name, its parts were packages of their own."""
    module = "semrank.pipelines.cli" if (checkout / "semrank").is_dir() else "pipelines.cli"
    program = (
        "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module(sys.argv.pop(1), None, '__main__')"
    )
    return (sys.executable, "-c", program, str(checkout), module)
