"""URLs with one id: each costs itself, by name, and nothing else."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

import semrank
from semrank.pipelines import rank as rank_command
from semrank.pipelines import runtime
from semrank.pipelines.cli import main
from semrank.pipelines.runtime import DEFAULT_RUNNER
from semrank.transforms.columnar import ids
from tests.support.crawls import http, warc

HOST = "https://a.example"
PAGES = ["", "birds", "finches", "owls"]
PAIR = (f"{HOST}/trap/a", f"{HOST}/trap/b")
"""Two URLs that a hash below gives one id."""


def colliding_hash(text: bytes, digest_size: int) -> Any:
    whole = hashlib.blake2b(text, digest_size=digest_size).digest()
    return SimpleNamespace(digest=lambda: bytes(8) + whole[8:] if text.decode() in PAIR else whole)


def snapshot(folder: Path, targets: tuple[str, ...], clicked: str) -> Path:
    """A small web whose first page links to all others and to some further URLs."""
    urls = [f"{HOST}/{name}" for name in PAGES]
    tables: dict[str, list[dict[str, Any]]] = {
        "pages": [{"url": url, "text": f"lattices of birds, {url[-4:]} and owls"} for url in urls],
        "links": [
            {"source_url": urls[0], "target_url": url, "anchor_text": "owls and birds"} for url in (*urls[1:], *targets)
        ],
        "clicks": [
            {"user_id": user, "query": "owls", "clicked_at": f"2026-01-01T00:00:0{place}Z", "url": url}
            for user in "xy"
            for place, url in enumerate([urls[1], clicked])
        ],
    }
    arguments = ["ingest", "--output", str(folder / "snapshot"), "--quiet"]
    for name, rows in tables.items():
        path = folder / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        arguments += [f"--{name}", str(path)]
    assert main(arguments) == 0
    return folder / "snapshot"


def rank(folder: Path, snapshot_folder: Path, *seeds: str) -> Path:
    (folder / "seeds.txt").write_text("".join(f"{seed}\n" for seed in seeds))
    inputs = ["--snapshot", str(snapshot_folder), "--seeds", str(folder / "seeds.txt")]
    assert main(["rank", *inputs, "--output", str(folder / "round")]) == 0
    return folder / "round"


def frontier(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder / "frontier").to_pylist()
    return rows


def test_a_collision_costs_one_url_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = rank(tmp_path, snapshot(tmp_path / "plain", PAIR[:1], f"{HOST}/owls"), f"{HOST}/")
    expected = frontier(plain)
    plain.rename(tmp_path / "expected")
    both = snapshot(tmp_path / "both", PAIR, f"{HOST}/owls")
    monkeypatch.setattr(ids, "blake2b", colliding_hash)
    found = rank(tmp_path, both, f"{HOST}/")
    assert pq.read_table(found / "rejects").to_pylist() == [
        {"stage": "ids", "reason": "id-collision", "record": PAIR[1]}
    ]
    assert [row["url"] for row in frontier(found)] == [row["url"] for row in expected]
    assert frontier(found) == expected
    assert json.loads((found / "manifest.json").read_text())["rejected"] == {"id-collision": 1}


def test_collisions_of_seeds_and_clicks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = snapshot(tmp_path / "web", PAIR[1:], PAIR[0])
    monkeypatch.setattr(ids, "blake2b", colliding_hash)
    found = rank(tmp_path, folder, f"{HOST}/", *PAIR)
    rejects = pq.read_table(found / "rejects").to_pylist()
    assert {"stage": "ids", "reason": "id-collision", "record": PAIR[1]} in rejects
    assert PAIR[1] not in [row["url"] for row in frontier(found)]


def test_a_job_that_nobody_runs_again_begins_without_collisions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = snapshot(tmp_path / "web", PAIR, f"{HOST}/owls")
    monkeypatch.setattr(ids, "blake2b", colliding_hash)
    expected = rank(tmp_path, folder, f"{HOST}/")
    output = tmp_path / "part"
    with beam.Pipeline(options=PipelineOptions([f"--runner={DEFAULT_RUNNER}"])) as pipeline:
        pipeline | semrank.RankUrls(folder, output, seeds=[f"{HOST}/"])
    semrank.finish_round(str(output))
    for name in ("frontier", "rejects"):
        assert pq.read_table(output / name).equals(pq.read_table(expected / name))


def constant_hash(text: bytes, digest_size: int) -> Any:
    whole = hashlib.blake2b(text, digest_size=digest_size).digest()
    return SimpleNamespace(digest=lambda: bytes(8) + whole[8:])


@pytest.mark.parametrize("weak", [colliding_hash, constant_hash])
def test_collisions_cost_nothing_when_sources_are_read(
    weak: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages, their older captures, links of these, redirects and what they move: URLs are told apart by themselves."""
    older, newer = "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"
    records = [
        warc(http(b"<title>one</title><a href=/x>x</a>"), PAIR[0], date=older),
        warc(http(b"<title>two</title><a href=/y>y</a>"), PAIR[0], date=newer),
        warc(http(b"<title>of the other</title><a href=/z>z</a>"), PAIR[1], date=older),
        warc(http(b"", Location=PAIR[0], status="301 Moved"), f"{HOST}/1", date=older),
        warc(http(b"", Location=PAIR[1], status="301 Moved"), f"{HOST}/2", date=older),
        warc(http(b"", Location=f"{HOST}/end", status="301 Moved"), PAIR[1], date=newer),
        warc(
            http(b"".join(b"<a href=%s>to</a>" % url.encode() for url in (*PAIR, "/1", "/2"))), f"{HOST}/", date=older
        ),
    ]
    path = tmp_path / "crawl.warc"
    path.write_bytes(b"".join(records))
    tables = []
    for name in ("plain", "weak"):
        assert main(["ingest", "--warc", str(path), "--output", str(tmp_path / name), "--quiet"]) == 0
        parts = ("pages", "links", "aliases", "history", "rejects")
        tables.append({part: pq.read_table(tmp_path / name / part).to_pylist() for part in parts})
        monkeypatch.setattr(ids, "blake2b", weak)
    for part, rows in tables[0].items():
        assert sorted(map(str, tables[1][part])) == sorted(map(str, rows)), part
    targets = [row["target_url"] for row in tables[0]["links"] if row["source_url"] == f"{HOST}/"]
    assert sorted(targets) == [f"{HOST}/end", PAIR[0]]


@pytest.mark.parametrize("replaced", [True, False])
def test_a_snapshot_that_is_replaced_while_it_is_ranked(
    replaced: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = snapshot(tmp_path / "web", PAIR, f"{HOST}/owls")
    run = runtime.run_pipeline

    def replace(*arguments: Any, **options: Any) -> Any:
        if replaced:
            manifest = json.loads((folder / "manifest.json").read_text())
            (folder / "manifest.json").write_text(json.dumps({**manifest, "seconds": 0}))
            return run(*arguments, **options)
        for path in (folder / "links").iterdir():
            path.unlink()
        (folder / "manifest.json").unlink()
        return run(*arguments, **options)

    monkeypatch.setattr(rank_command, "run_pipeline", replace)
    (tmp_path / "seeds.txt").write_text(f"{HOST}/\n")
    inputs = ["--snapshot", str(folder), "--seeds", str(tmp_path / "seeds.txt")]
    assert main(["rank", *inputs, "--output", str(tmp_path / "round"), "--quiet"]) == 2
    assert "was replaced while it was read" in capsys.readouterr().err
    assert not (tmp_path / "round" / "manifest.json").exists()


def test_order_does_not_depend_on_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another hash gives the same rows in the same order, but for the numbers of concepts."""
    folder = snapshot(tmp_path / "web", PAIR, f"{HOST}/owls")

    def rows(round_folder: Path) -> list[pa.Table]:
        names = ("frontier", "keywords", "relations", "rejects", "harvest")
        tables = (pq.read_table(round_folder / name) for name in names)
        return [table.drop_columns([name for name in table.column_names if "concept" in name]) for table in tables]

    one = rank(tmp_path, folder, f"{HOST}/")
    tables = rows(one)
    one.rename(tmp_path / "one")
    other = hashlib.blake2b
    monkeypatch.setattr(ids, "blake2b", lambda text, digest_size: other(text, digest_size=digest_size, key=b"other"))
    two = rank(tmp_path, folder, f"{HOST}/")
    for found, expected in zip(rows(two), tables, strict=True):
        assert found.to_pylist() == expected.to_pylist()
