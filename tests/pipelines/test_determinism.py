"""The same frontier with one and two processes and with shuffled input: on the sample, and on Wikispeedia."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from semrank.pipelines import rank
from semrank.pipelines.cli import main
from semrank.pipelines.local import runner
from tests.support.sample import ingest_sample

TWO_PROCESSES = ("--workers=2",)
TWO_OF_BEAM = ("--direct_num_workers=2", "--direct_running_mode=multi_processing")
"""Two processes of Beam's runner, which take as long to start as such a round takes."""


def shuffled(snapshot: Path, folder: Path) -> Path:
    """A snapshot with the rows of each table in another order, in other files."""
    random = np.random.default_rng(5)
    for table in ("pages", "links", "clicks"):
        rows = pq.read_table(snapshot / table)
        order = random.permutation(rows.num_rows)
        (folder / table).mkdir(parents=True)
        for number, part in enumerate(np.array_split(order, 3)):
            pq.write_table(rows.take(pa.array(part)), folder / table / f"part-{number:05d}.parquet")
    (folder / "manifest.json").write_bytes((snapshot / "manifest.json").read_bytes())
    return folder


def frontier(snapshot: Path, seeds: Path, output: Path, *options: str) -> list[bytes]:
    arguments = ["--snapshot", str(snapshot), "--seeds", str(seeds), "--output", str(output), "--quiet"]
    assert main(["rank", *arguments, *options]) == 0
    return [path.read_bytes() for path in sorted((output / "frontier").glob("*.parquet"))]


def check_all_equal(
    snapshot: Path,
    seeds: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *options: str,
    processes: tuple[str, ...] = TWO_PROCESSES,
) -> None:
    one = frontier(snapshot, seeds, folder / "one", *options)
    monkeypatch.setattr(runner, "SHARED_BYTES", 0)
    assert frontier(snapshot, seeds, folder / "two", *options, *processes) == one
    monkeypatch.setattr(rank, "partition_count", lambda _: 3)
    assert frontier(shuffled(snapshot, folder / "shuffled"), seeds, folder / "three", *options) == one


def check_bounds(folder: Path) -> None:
    """Records are a few MiB, groups fit a worker several times; a runner's sort buffer takes both."""
    stages = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["stages"]
    for name, stage in stages.items():
        assert stage["largest_record_bytes"] <= 4 << 20, name
        assert stage["largest_group_bytes"] <= 32 << 20, name
    assert sum(stage["largest_group_bytes"] > 0 for stage in stages.values()) > 5


@pytest.mark.parametrize(("profile", "processes"), [("focused", TWO_OF_BEAM), ("paper-2013", TWO_PROCESSES)])
def test_sample(profile: str, processes: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot, seeds = ingest_sample(tmp_path), tmp_path / "web" / "seeds.txt"
    check_all_equal(snapshot, seeds, tmp_path, monkeypatch, "--profile", profile, processes=processes)
    check_bounds(snapshot)
    check_bounds(tmp_path / "one")


@pytest.fixture(scope="module")
def wikispeedia(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The snapshot of the published set."""
    snapshot = tmp_path_factory.mktemp("wikispeedia") / "snapshot"
    source = str(shared_data / "wikispeedia")
    # One process decompresses the archive once.
    options = ["--workers", "1", "--quiet"]
    assert main(["dataset", "wikispeedia", "--source", source, "--output", str(snapshot), *options]) == 0
    return snapshot


def test_the_published_set(wikispeedia: Path) -> None:
    manifest = json.loads((wikispeedia / "manifest.json").read_text(encoding="utf-8"))
    assert {name: manifest["rows"][name] for name in ("pages", "links", "clicks", "rejects")} == {
        "pages": 4_598,
        "links": 119_879,
        "clicks": 129_295,
        "rejects": 0,
    }
    urls = pq.read_table(wikispeedia / "pages", columns=["url"])["url"]
    topics = pq.read_table(wikispeedia / "topics.parquet")["url"]
    assert pc.all(pc.is_in(topics, value_set=urls.combine_chunks())).as_py()


def test_wikispeedia(wikispeedia: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that `check_all_equal` changes one after the other on the sample is changed at once."""
    seeds = wikispeedia / "seeds" / "subject.Science.Biology.Birds.txt"
    one = frontier(wikispeedia, seeds, tmp_path / "one")
    check_bounds(tmp_path / "one")
    monkeypatch.setattr(runner, "SHARED_BYTES", 0)
    monkeypatch.setattr(rank, "partition_count", lambda _: 3)
    other = shuffled(wikispeedia, tmp_path / "shuffled")
    assert frontier(other, seeds, tmp_path / "two", *TWO_PROCESSES) == one
