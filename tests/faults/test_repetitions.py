"""Runs of one small round, each in its own way, give equal tables.

The suite makes a few; `SEMRANK_REPETITIONS=50` before the command makes fifty of all rankers, which takes minutes.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import apache_beam
import pytest

from semrank.pipelines import rank
from semrank.pipelines.cli import main
from semrank.transforms.ranking.registry import RANKERS
from tests.support.snapshots import read_rows, write_snapshot
from tests.support.strategies import HOST, START, WORDS

REPETITIONS = int(os.environ.get("SEMRANK_REPETITIONS", "6"))
TWO_PROCESSES = ("--direct_num_workers=2", "--direct_running_mode=multi_processing")
RUNNERS = 6
"""Of so many repetitions one has two worker processes, one runs on Prism where that is there, the others locally."""

TABLES = ("frontier", "keywords", "relations", "base_concepts", "harvest", "rejects")
PROFILES = (
    ("--profile", "paper-2013"),
    ("--profile", "focused", "--no-semrank-terms"),
    ("--profile", "paper-2008", "--max-per-host", "3", "--mix", "2:1"),
    ("--ranker", "pagerank", "--budget", "5"),
    *(
        ("--ranker", ranker, "--query", "lattice network")
        for ranker in RANKERS
        if ranker not in ("semrank", "pagerank")
    ),
)
"""All rankers, the two that most depend on order first."""


def rows() -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Pages, links and clicks with many ties, so that any dependence on order shows."""
    draw = random.Random(7)
    urls = [f"{HOST}/{name}" for name in "abcdefghijkl"]
    pages: list[dict[str, Any]] = [
        {"url": url, "keywords": draw.sample(WORDS, 3), "text": " ".join(draw.choices(WORDS, k=20)), "language": "en"}
        for url in urls
    ]
    links: list[dict[str, Any]] = [
        {"source_url": source, "target_url": target, "anchor_text": draw.choice(WORDS), "nofollow": False}
        for source in urls[:5]
        for target in draw.sample(urls, 6)
        if source != target
    ]
    clicks = [
        {
            "user_id": f"user {number % 9}",
            "user_group": f"group {number % 3}",
            "query": word,
            "keywords": [word],
            "clicked_at": START,
            "position": number,
            "url": draw.choice(urls),
        }
        for number, word in enumerate(draw.choices(WORDS, k=60))
    ]
    return pages, links, clicks


def run(folder: Path, draw: random.Random | None, monkeypatch: pytest.MonkeyPatch, *options: str) -> dict[str, Any]:
    """The tables of a round; in the given order and one partition without `draw`."""
    tables, seeds = rows(), [f"{HOST}/{name}" for name in "abc"]
    files, partitions = 1, 1
    if draw is not None:
        for table in tables:
            draw.shuffle(table)
        draw.shuffle(seeds)
        files, partitions = draw.randint(1, 4), draw.choice([1, 2, 3, 5, 8])
    monkeypatch.setattr(rank, "partition_count", lambda _: partitions)
    write_snapshot(folder / "snapshot", *tables, files=files)
    (folder / "seeds.txt").write_text("\n".join(seeds) + "\nno url\n")
    named = ["--snapshot", str(folder / "snapshot"), "--seeds", str(folder / "seeds.txt")]
    assert main(["rank", *named, "--output", str(folder / "round"), "--quiet", *options]) == 0
    return {table: read_rows(folder / "round" / table) for table in TABLES}


@pytest.fixture
def prism(request: pytest.FixtureRequest) -> str | None:
    """Prism as the tests of clusters built it, or as `SEMRANK_PRISM` names it; None where it is not there."""
    named = os.environ.get("SEMRANK_PRISM")
    cache = getattr(request.config, "cache", None)  # pytest may run without one
    if named is None and cache is not None:
        built = cache.mkdir(f"prism-{apache_beam.__version__}") / "prism"
        named = str(built) if built.exists() else None
    return named


def runner_options(number: int, prism: str | None) -> tuple[str, ...]:
    if number % RUNNERS == 0:
        return TWO_PROCESSES
    if number % RUNNERS == 1 and prism is not None:
        return ("--runner=PrismRunner", f"--prism_location={prism}", "--prism_log_level=error")
    return ()


def test_repetitions_are_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prism: str | None) -> None:
    expected: dict[int, dict[str, Any]] = {}
    for number in range(REPETITIONS):
        profile = number % len(PROFILES)
        options = PROFILES[profile]
        if profile not in expected:
            expected[profile] = run(tmp_path / f"first-{profile}", None, monkeypatch, *options)
            assert len(expected[profile]["frontier"]) > 3, options
        draw = random.Random(number)
        runner = runner_options(number, prism)
        found = run(tmp_path / str(number), draw, monkeypatch, *options, *runner)
        for table in TABLES:
            assert found[table] == expected[profile][table], (number, table, options, runner)
