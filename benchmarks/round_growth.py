"""How the time and the memory of a whole round grow: `semrank rank` on generated webs, each ten times the one before.

A larger web has more topics of the same size, more users and more clicks, and its queue is the same share of it. Each
round is a process of its own that starts from Parquet files and ends with a written frontier. The peer of a web is the
one with a tenth of its pages; the ratio that is allowed is that of time growing as pages^1.1.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.generate import ClickLog, Web, write_clicks, write_web
from benchmarks.harness import Command, Measurement, Result, interleaved
from semrank.pipelines.cli import main as semrank

GROWTH = 10
LARGEST = 100_000
QUICK_LARGEST = 10_000
SIZES = 3
"""Webs that are compared: the largest, and those with a tenth and a hundredth of its pages."""
QUICK_SIZES = 2
EXPONENT_AIM = 1.1

PAGES_PER_TOPIC = 2_000
PAGES_PER_QUEUE_URL = 100
PAGES_PER_USER = 5
CLICKS_PER_PAGE = 2

REPEATS = 3
PROFILES = ("paper-2013", "focused")
COUNTED = ("frontier", "keywords", "relations", "base_concepts")
SHOWN_STAGES = 4


def write_round_input(folder: Path, pages: int) -> tuple[Path, Path]:
    """Writes a snapshot and seeds of a web of so many pages; gives their paths.

    Raises:
        RuntimeError: the snapshot could not be written.
    """
    inputs, seeds = write_web_and_seeds(folder, pages)
    snapshot = folder / "snapshot"
    # What it tells would stand between the results.
    with contextlib.redirect_stdout(io.StringIO()):
        status = semrank(["ingest", *inputs, "--output", str(snapshot), "--quiet"])
    if status:
        raise RuntimeError(f"semrank ingest ended with status {status}, expected 0")
    return snapshot, seeds


def write_web_and_seeds(folder: Path, pages: int) -> tuple[list[str], Path]:
    """Writes a web of so many pages and seeds; gives the inputs as options of `semrank ingest`, and the seeds' path."""
    topics = -(-pages // PAGES_PER_TOPIC)
    generated, seeds = folder / "generated", folder / "seeds.txt"
    write_web(generated, Web(pages=pages, topics=topics))
    log = ClickLog(clicks=pages * CLICKS_PER_PAGE, pages=pages, users=pages // PAGES_PER_USER, topics=topics)
    write_clicks(generated, log)
    urls = pq.read_table(generated / "topics", columns=["url"])["url"]
    queue = urls.slice(0, pages // PAGES_PER_QUEUE_URL).to_pylist()
    seeds.write_text("".join(f"{url}\n" for url in queue), encoding="utf-8")
    return [word for table in ("pages", "links", "clicks") for word in (f"--{table}", f"{generated}/{table}/*")], seeds


def run(*, quick: bool = False, pages: int | None = None) -> list[Result]:
    """Results of the benchmark: one for each profile and step from a web to the next larger one.

    Args:
        quick: two small webs.
        pages: pages of the largest web, where it is not to be `LARGEST`.
    """
    largest = pages or (QUICK_LARGEST if quick else LARGEST)
    sizes = [largest // GROWTH**step for step in reversed(range(QUICK_SIZES if quick else SIZES))]
    with tempfile.TemporaryDirectory() as folder:
        inputs = []
        for size in sizes:
            (Path(folder) / str(size)).mkdir()
            inputs.append(write_round_input(Path(folder) / str(size), size))
        results = []
        for profile in PROFILES:
            outputs = [Path(folder) / f"{profile}-{size}" for size in sizes]
            commands = [
                _command(profile, snapshot, seeds, output)
                for (snapshot, seeds), output in zip(inputs, outputs, strict=True)
            ]
            measured = interleaved(commands, 1 if quick else REPEATS)
            manifests = [json.loads((output / "manifest.json").read_text(encoding="utf-8")) for output in outputs]
            steps = itertools.pairwise(zip(sizes, measured, strict=True))
            for ((_, before), (size, after)), manifest in zip(steps, manifests[1:], strict=True):
                results.append(_step(profile, size, before, after, manifest))
    return results


def _command(profile: str, snapshot: Path, seeds: Path, output: Path) -> Command:
    rank = (sys.executable, "-m", "semrank.pipelines.cli", "rank", "--profile", profile, "--overwrite", "--quiet")
    return Command((*rank, "--snapshot", str(snapshot), "--seeds", str(seeds), "--output", str(output)))


def _step(profile: str, pages: int, before: Measurement, after: Measurement, manifest: dict[str, Any]) -> Result:
    counts = {name: int(manifest["rows"][name]) for name in COUNTED}
    stages = sorted(manifest["stages"].items(), key=lambda stage: -stage[1]["seconds"])[:SHOWN_STAGES]
    exponent = math.log(after.cpu_s / before.cpu_s, GROWTH)
    sizes = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items())
    longest = ", ".join(f"{name} {stage['seconds']:.1f} s" for name, stage in stages)
    group = max(stage["largest_group_bytes"] for stage in manifest["stages"].values())
    note = (
        f"processor time grows as pages^{exponent:.2f}; {sizes}; longest stages: {longest}; "
        f"largest group of a shuffle {group / 1e6:.1f} MB"
    )
    name = f"round_growth: {profile}, {pages:,} pages"
    return after.against(before, name, "a tenth of the pages", GROWTH**EXPONENT_AIM, note, counts)
