"""The local runner: a round of the sample against Beam's own runner, and two workers against one on a large web.

    python -m benchmarks local_runner

Both sides are the same command with other options, and write the same bytes.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.harness import Command, Result, interleaved
from benchmarks.round_growth import write_round_input, write_web_and_seeds
from benchmarks.startup import write_sample

REPEATS = 3
PAGES = 1_000_000
RUNNER_AIM = 0.3
"""Of the time with Beam's runner."""

WORKERS_AIM = 0.6
"""Of the time with one worker."""

_SEMRANK = (sys.executable, "-m", "semrank.pipelines.cli")


def run(*, quick: bool = False, pages: int = PAGES) -> list[Result]:
    """Results of the benchmark: the sample alone where it is quick.

    Args:
        quick: whether to measure what takes seconds only.
        pages: pages of the large web.
    """
    with tempfile.TemporaryDirectory() as folder:
        results = [_sample(Path(folder) / "sample", 1 if quick else REPEATS)]
        if not quick:
            results += _workers(Path(folder) / "web", pages)
    return results


def _sample(folder: Path, repeats: int) -> Result:
    snapshot, seeds = write_sample(folder)
    begin = (*_SEMRANK, "rank", "--snapshot", str(snapshot), "--seeds", str(seeds), "--quiet", "--overwrite")
    ours, beams = interleaved(
        [
            Command((*begin, "--output", f"{folder}/local")),
            Command((*begin, "--output", f"{folder}/beam", "--runner", "DirectRunner")),
        ],
        repeats,
    )
    return ours.against(beams, "local_runner: rank the sample", "Beam's FnApiRunner", RUNNER_AIM, "start included", {})


def _workers(folder: Path, pages: int) -> list[Result]:
    """A round and an ingest with two workers, each against one; the two take turns once."""
    snapshot, seeds = write_round_input(folder, pages)
    inputs, _ = write_web_and_seeds(folder / "again", pages)
    rank = ("rank", "--snapshot", str(snapshot), "--seeds", str(seeds), "--no-semrank-terms")
    results = []
    for name, words in (("rank", rank), ("ingest", ("ingest", *inputs))):
        two, one = interleaved(
            [
                Command((*_SEMRANK, *words, "--quiet", "--workers", str(n), "--output", f"{folder}/{name}-{n}"))
                for n in (2, 1)
            ],
            1,
        )
        note = f"{pages:,} pages"
        results.append(two.against(one, f"local_runner: {name}, two workers", "one worker", WORKERS_AIM, note, {}))
    return results
