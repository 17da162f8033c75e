"""Starting: `semrank --help` and `semrank rank` on the sample, as processes, against what they can't do without.

That is the bare interpreter for the help, and the import of Apache Beam for a round. The aims are times that people
wait, 0.5 s and 8 s; each is told as a ratio to the peer's time of the same run.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from pathlib import Path

from benchmarks.harness import Command, Result, interleaved
from semrank.pipelines.cli import main as semrank

REPEATS = 5
QUICK_REPEATS = 3
PROFILES = ("focused", "paper-2013")
HELP_SECONDS = 0.5
ROUND_SECONDS = 8.0

_SEMRANK = (sys.executable, "-m", "semrank.pipelines.cli")


def write_sample(folder: Path) -> tuple[Path, Path]:
    """Writes the sample and its snapshot; gives the paths of snapshot and seeds.

    Raises:
        RuntimeError: a command failed; it has said why.
    """
    web, snapshot = folder / "web", folder / "snapshot"
    inputs = ["--warc", f"{web}/warc/*", "--clicks", f"{web}/clicks/*"]
    for command in (["sample", "--output", str(web)], ["ingest", *inputs, "--output", str(snapshot), "--quiet"]):
        # What they tell would stand between the results.
        with contextlib.redirect_stdout(io.StringIO()):
            status = semrank(command)
        if status:
            raise RuntimeError(f"semrank {' '.join(command)} ended with status {status}, expected 0")
    return snapshot, web / "seeds.txt"


def run(*, quick: bool = False) -> list[Result]:
    """Results of the benchmark: the help, and a round of each profile; of the default one alone where it is quick."""
    bare, helped = interleaved(
        [Command((sys.executable, "-c", "pass")), Command((*_SEMRANK, "--help"))], QUICK_REPEATS if quick else REPEATS
    )
    note = f"at most {HELP_SECONDS} s"
    results = [helped.against(bare, "startup: help", "bare interpreter", HELP_SECONDS / bare.wall_s, note, {})]
    profiles = PROFILES[:1] if quick else PROFILES
    with tempfile.TemporaryDirectory() as folder:
        snapshot, seeds = write_sample(Path(folder))
        begin = (*_SEMRANK, "rank", "--snapshot", str(snapshot), "--seeds", str(seeds), "--quiet", "--overwrite")
        commands = [Command((*begin, "--output", f"{folder}/{name}", "--profile", name)) for name in profiles]
        imported, *rounds = interleaved(
            [Command((sys.executable, "-c", "import apache_beam")), *commands], 1 if quick else REPEATS
        )
    for profile, ranked in zip(profiles, rounds, strict=True):
        name, aim = f"startup: rank the sample, {profile}", ROUND_SECONDS / imported.wall_s
        results.append(ranked.against(imported, name, "import apache_beam", aim, f"at most {ROUND_SECONDS:g} s", {}))
    return results
