"""`semrank rank` as its user meets it: P13's example, messages for bad input, equal bytes whatever the partitions."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.pipeline import PipelineVisitor
from apache_beam.typehints import typehints

from semrank.pipelines import rank
from semrank.pipelines.cli import main
from semrank.pipelines.config import RoundConfig
from semrank.pipelines.queue import queue_from_seeds
from semrank.pipelines.runtime import DEFAULT_RUNNER
from semrank.transforms.lattice import bundles, mining
from tests.support.p13_web import P13_CLICKS, P13_LINKS, P13_PAGES, url
from tests.support.snapshots import read_rows, write_snapshot


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_snapshot(tmp_path_factory.mktemp("p13") / "snapshot", P13_PAGES, P13_LINKS, P13_CLICKS)


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("seeds") / "seeds.txt"
    path.write_text(f"# the queue\n{url(1)}\n{url(2)} # second\n\n{url(3)}\n", encoding="utf-8")
    return path


PAPER = ("--profile", "paper-2013", "--quiet")


def run_rank(snapshot: Path, seeds: Path, output: Path, *options: str) -> int:
    inputs = ["--snapshot", str(snapshot), "--seeds", str(seeds), "--output", str(output)]
    return main(["rank", *inputs, *PAPER, *options])


@pytest.fixture(scope="module")
def ranked(snapshot: Path, seeds: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A round with all of its tables."""
    folder = tmp_path_factory.mktemp("ranked") / "round"
    assert run_rank(snapshot, seeds, folder, "--write-lattices") == 0
    return folder


def test_lattices_of_p13_example_5(ranked: Path) -> None:
    base = read_rows(ranked / "base_concepts")
    assert {frozenset(row["intent"]) for row in base} == {
        frozenset({"spider"}),
        frozenset({"internet", "spider"}),
        frozenset({"ontology", "spider"}),
        frozenset({"internet", "ontology", "spider"}),
    }
    current = read_rows(ranked / "current_concepts")
    # 18 concepts, of which the bottom has an empty extent and is not enumerated.
    assert len(current) == 17
    assert all(row["support"] == len(row["extent"]) for row in base + current)
    top = [row for row in current if not row["intent"]]
    assert [row["extent"] for row in top] == [[url(number) for number in range(4, 9)]]


def test_frontier_is_ordered_explained_and_complete(ranked: Path) -> None:
    rows = read_rows(ranked / "frontier")
    assert sorted(row["url"] for row in rows) == [url(number) for number in range(4, 9)]
    assert [row["rank"] for row in rows] == [1, 2, 3, 4, 5]
    assert [(-row["score"], row["url"]) for row in rows] == sorted((-row["score"], row["url"]) for row in rows)
    by_url = {row["url"]: row for row in rows}
    # The best concepts of U4 are ({U1, U2, U3}, {spider}) and ({U4, U5, U7, U8}, {spider}) or a part of it: see the
    # comparison with the definitions for the values of all.
    assert by_url[url(4)]["base_links"] == 1
    assert by_url[url(4)]["base_clicks"] == 1
    assert by_url[url(5)]["base_links"] == 2
    assert all(row["selected"] == (row["score"] > 0.45) for row in rows)
    manifest = json.loads((ranked / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["kind"] == "round"
    assert manifest["rows"]["frontier"] == 5
    assert manifest["parameters"]["profile"] == "paper-2013"


@pytest.fixture(scope="module")
def one_partition(snapshot: Path, seeds: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("one") / "round"
    assert run_rank(snapshot, seeds, folder, "--max-per-host", "3") == 0
    return folder


@pytest.mark.parametrize("partitions", [2, 7])
def test_bytes_do_not_depend_on_partitions_or_order(
    one_partition: Path, seeds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    shuffled = write_snapshot(tmp_path / "shuffled", P13_PAGES[::-1], P13_LINKS[::-1], P13_CLICKS[::-1], files=3)
    monkeypatch.setattr(rank, "partition_count", lambda _: partitions)
    assert run_rank(shuffled, seeds, tmp_path / "many", "--max-per-host", "3") == 0
    for table in ("frontier", "keywords", "relations", "rejects"):
        one, many = (sorted((folder / table).glob("*.parquet")) for folder in (one_partition, tmp_path / "many"))
        assert [path.name for path in one] == [path.name for path in many]
        assert [path.read_bytes() for path in one] == [path.read_bytes() for path in many]
    assert sorted(map(str, read_rows(one_partition / "base_concepts"))) == sorted(
        map(str, read_rows(tmp_path / "many" / "base_concepts"))
    )


@pytest.mark.parametrize("min_support", ["1", "2", "3"])
def test_exchanged_conditional_databases_give_the_same_bytes(
    snapshot: Path, seeds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, min_support: str
) -> None:
    """A context too large to be broadcast is mined from the rows that each bundle needs."""
    options = ["--write-lattices", "--min-support", min_support]
    assert run_rank(snapshot, seeds, tmp_path / "held", *options) == 0
    monkeypatch.setattr(mining, "BROADCAST_BYTES", -1)
    monkeypatch.setattr(mining, "HELD_OBJECTS", 0)
    monkeypatch.setattr(bundles.plan_bundles, "__kwdefaults__", {"largest_share": 0.05, "least_work": 1.0})
    assert run_rank(snapshot, seeds, tmp_path / "spread", *options) == 0
    stages = json.loads((tmp_path / "spread" / "manifest.json").read_text(encoding="utf-8"))["stages"]
    for stage in ("mine base conditional databases", "score conditional databases"):
        assert stages[stage]["rows_in"] > 0
    for table in ("frontier", "keywords", "base_concepts", "current_concepts"):
        held, spread = (sorted((tmp_path / name / table).glob("*.parquet")) for name in ("held", "spread"))
        assert [path.read_bytes() for path in held] == [path.read_bytes() for path in spread]


def test_records_and_groups_stay_inside_the_bounds(ranked: Path) -> None:
    stages = json.loads((ranked / "manifest.json").read_text(encoding="utf-8"))["stages"]
    exchanges = {name: stage for name, stage in stages.items() if stage["largest_group_bytes"]}
    assert {"describe URLs", "link clicks", "write frontier", "join scores"} <= set(exchanges)
    for name, stage in exchanges.items():
        assert 0 < stage["largest_record_bytes"] <= 4 << 20, name
        assert stage["largest_group_bytes"] <= 32 << 20, name


def test_no_table_travels_without_the_arrow_coder(snapshot: Path, seeds: Path, tmp_path: Path) -> None:
    """A collection without a type hint would be pickled, and every slice with its whole parent table."""
    pipeline = beam.Pipeline(runner=DEFAULT_RUNNER)
    rank._build(
        pipeline,
        snapshot=rank._snapshot(str(snapshot)),
        queue=queue_from_seeds(str(seeds)),
        output=str(tmp_path / "round"),
        config=RoundConfig(write_lattices=True),
    )
    table_types = (pa.Table, typehints.Tuple[int, pa.Table])
    untyped: list[str] = []

    class Visitor(PipelineVisitor):
        def visit_transform(self, applied: Any) -> None:
            label = applied.full_label
            if label.endswith(("/map", "/merge", "/gather", "/read", "DoFn)")) or "/key " in label:
                kinds = [output.element_type for output in applied.outputs.values()]
                untyped.extend(f"{label}: {kind}" for kind in kinds if kind not in table_types)

    pipeline.visit(Visitor())
    assert not untyped


def test_limits_select_exactly_so_many(snapshot: Path, seeds: Path, tmp_path: Path) -> None:
    assert run_rank(snapshot, seeds, tmp_path / "round", "--max-urls", "2", "--threshold", "0") == 0
    assert [row["selected"] for row in read_rows(tmp_path / "round" / "frontier")] == [True, True, False, False, False]
    assert run_rank(snapshot, seeds, tmp_path / "host", "--max-per-host", "3", "--threshold", "0") == 0
    assert sum(row["selected"] for row in read_rows(tmp_path / "host" / "frontier")) == 3


def test_next_round_starts_from_what_was_selected(snapshot: Path, seeds: Path, tmp_path: Path) -> None:
    assert run_rank(snapshot, seeds, tmp_path / "first", "--max-urls", "2", "--threshold", "0") == 0
    chosen = {row["url"] for row in read_rows(tmp_path / "first" / "frontier") if row["selected"]}
    arguments = ["rank", "--snapshot", str(snapshot), "--previous", str(tmp_path / "first"), *PAPER]
    assert main([*arguments, "--output", str(tmp_path / "second")]) == 0
    extents = {member for row in read_rows(tmp_path / "second" / "base_concepts") for member in row["extent"]}
    assert extents == chosen


Mangle = Callable[[Path, Path, Path], list[str]]


def _no_seeds(snapshot: Path, _: Path, folder: Path) -> list[str]:
    (folder / "none.txt").write_text("# nothing\n", encoding="utf-8")
    return ["--snapshot", str(snapshot), "--seeds", str(folder / "none.txt")]


def _foreign_seeds(snapshot: Path, _: Path, folder: Path) -> list[str]:
    (folder / "foreign.txt").write_text("https://elsewhere.example/\n", encoding="utf-8")
    return ["--snapshot", str(snapshot), "--seeds", str(folder / "foreign.txt")]


def _no_urls(snapshot: Path, _: Path, folder: Path) -> list[str]:
    (folder / "words.txt").write_text("http://[x\n", encoding="utf-8")
    return ["--snapshot", str(snapshot), "--seeds", str(folder / "words.txt")]


def _unfinished(_: Path, seeds: Path, folder: Path) -> list[str]:
    (folder / "unfinished").mkdir()
    return ["--snapshot", str(folder / "unfinished"), "--seeds", str(seeds)]


@pytest.mark.parametrize(
    ("mangle", "options", "expected"),
    [
        (_no_seeds, [], "holds no URL"),
        (_foreign_seeds, [], "none of its URLs is in the snapshot"),
        (_no_urls, [], "found no URL in 1 line, the first is"),
        (_unfinished, [], "unfinished"),
        (None, ["--weight", "-1"], "--weight: found -1.0, expected a number from 0 to 1"),
        (None, ["--weight", "much"], "expected a number"),
        (
            None,
            ["--profile", "paper-1999"],
            "--profile: found 'paper-1999', expected one of focused, topic, paper-2013",
        ),
        (None, ["--threshold", "nan"], "--threshold: found nan"),
        (None, ["--alpha", "0.7"], "--alpha: found 0.7"),
        (None, ["--min-support", "0"], "--min-support: found 0"),
        (None, ["--max-urls", "1.5"], "expected a whole number"),
        (None, ["--no-such-option"], "--no-such-option: unknown option"),
        (None, ["--query", " "], "--query: found no word, expected words of the topic"),
        (None, ["--query", os.fsdecode(b"M\xf6bel")], "--query M\\xf6bel: is not UTF-8, expected words of the topic"),
    ],
)
def test_unusable_input_is_one_line_and_writes_nothing(
    snapshot: Path,
    seeds: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    mangle: Mangle | None,
    options: list[str],
    expected: str,
) -> None:
    inputs = (
        ["--snapshot", str(snapshot), "--seeds", str(seeds)] if mangle is None else mangle(snapshot, seeds, tmp_path)
    )
    try:
        status = main(["rank", *inputs, "--output", str(tmp_path / "round"), *options])
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    assert status == 2
    message = capsys.readouterr().err
    assert expected in message
    assert message.count("\n") == 1
    assert not (tmp_path / "round").exists()


def test_finished_round_is_kept_unless_told_otherwise(
    snapshot: Path, seeds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_rank(snapshot, seeds, tmp_path / "round") == 0
    before = (tmp_path / "round" / "manifest.json").read_bytes()
    assert run_rank(snapshot, seeds, tmp_path / "round") == 2
    assert "holds a finished result; --overwrite replaces it" in capsys.readouterr().err
    assert (tmp_path / "round" / "manifest.json").read_bytes() == before
    assert run_rank(snapshot, seeds, tmp_path / "round", "--overwrite", "--weight", "1") == 0
    assert json.loads((tmp_path / "round" / "manifest.json").read_text(encoding="utf-8"))["parameters"]["weight"] == 1


def test_foreign_folder_is_left_alone(
    snapshot: Path, seeds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.txt").write_text("precious", encoding="utf-8")
    assert run_rank(snapshot, seeds, tmp_path) == 2
    assert "holds 'mine.txt', expected a new or empty folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_queue_urls_outside_the_snapshot_are_rejects(snapshot: Path, tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_text(f"{url(1)}\nhttps://elsewhere.example/\nhttp://[x\n", encoding="utf-8")
    assert run_rank(snapshot, seeds, tmp_path / "round") == 0
    rejects = read_rows(tmp_path / "round" / "rejects")
    assert {(row["stage"], row["reason"], row["record"]) for row in rejects} == {
        ("queue", "not-in-snapshot", "https://elsewhere.example/"),
        ("queue", "url-invalid", "http://[x"),
    }
    manifest = json.loads((tmp_path / "round" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["rejected"] == {"not-in-snapshot": 1, "url-invalid": 1}


def test_a_round_that_selects_nothing_says_how_to_select(
    snapshot: Path, seeds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = ["--snapshot", str(snapshot), "--seeds", str(seeds), "--ranker", "semrank"]
    hint = "no score is above the threshold: --max-urls N"
    assert main(["rank", *inputs, "--output", str(tmp_path / "none")]) == 0
    assert hint in capsys.readouterr().out
    assert main(["rank", *inputs, "--output", str(tmp_path / "best"), "--max-urls", "2"]) == 0
    assert hint not in capsys.readouterr().out


def test_a_job_that_is_handed_over_says_how_to_finish_its_round(
    snapshot: Path, seeds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rank, "_run_checked", lambda *_: None)
    output = tmp_path / "round"
    inputs = ["--snapshot", str(snapshot), "--seeds", str(seeds), "--output", str(output)]
    assert main(["rank", *inputs, "--quiet", "--template_location", str(tmp_path / "template")]) == 0
    assert f"`semrank finish --round {output}` checks what it wrote" in capsys.readouterr().out
    assert (output / "pending.json").exists()
