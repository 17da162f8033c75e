"""What a round prints of its seeds' topic."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from semrank.pipelines.cli import main
from tests.support.sample import ingest_sample


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ingest_sample(tmp_path_factory.mktemp("topic"))


def rank(snapshot: Path, seeds: list[str], output: Path) -> None:
    (output.parent / "seeds.txt").write_text("".join(f"{url}\n" for url in seeds), encoding="utf-8")
    arguments = ["--snapshot", str(snapshot), "--seeds", str(output.parent / "seeds.txt"), "--output", str(output)]
    assert main(["rank", *arguments, "--ranker", "cosine", "--max-urls", "5"]) == 0


def test_seeds_of_one_topic(snapshot: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seeds = (snapshot.parent / "web" / "seeds.txt").read_text(encoding="utf-8").split()
    capsys.readouterr()
    rank(snapshot, seeds, tmp_path / "round")
    printed = capsys.readouterr()
    found = re.search(r"^topic: (.*)$", printed.out, re.MULTILINE)
    assert found is not None
    words = found[1].split(", ")
    assert len(words) == 15
    assert all(re.fullmatch(r"\S+ 0\.\d\d", word) for word in words)
    topic = json.loads((tmp_path / "round" / "manifest.json").read_text(encoding="utf-8"))["inputs"]["topic"]
    assert [f"{word} {weight:.2f}" for word, weight in topic["words"]] == words
    assert "in common" not in printed.err


def test_seeds_of_several_topics_are_warned_of(
    snapshot: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = pq.read_table(snapshot.parent / "web" / "topics.parquet").to_pylist()
    known = set(pq.read_table(snapshot / "pages", columns=["url"])["url"].to_pylist())
    first = {row["topic"]: row["url"] for row in reversed(rows) if row["url"] in known}
    capsys.readouterr()
    rank(snapshot, list(first.values()), tmp_path / "round")
    assert "the seeds have little in common" in capsys.readouterr().err
