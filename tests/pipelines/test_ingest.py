"""`semrank ingest` as its user meets it: the sample's archives, tables, balance, bad input, equal bytes."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from semrank.pipelines import ingest
from semrank.pipelines.cli import main
from tests.support.snapshots import read_rows

TABLES = ("pages", "links", "clicks", "aliases", "history", "rejects")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample") / "web"
    assert main(["sample", "--output", str(folder), "--quiet"]) == 0
    return folder


def run_ingest(output: Path, *options: str) -> int:
    return main(["ingest", "--output", str(output), "--quiet", *options])


def manifest_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "manifest.json").read_text(encoding="utf-8")))


def table_bytes(folder: Path) -> dict[str, bytes]:
    return {f"{path.parent.name}/{path.name}": path.read_bytes() for path in sorted(folder.glob("*/*.parquet"))}


def test_sample_balances_and_moves_links(sample: Path, tmp_path: Path) -> None:
    output = tmp_path / "snapshot"
    assert run_ingest(output, "--warc", f"{sample}/warc/*", "--clicks", f"{sample}/clicks/*") == 0
    manifest = manifest_of(output)
    assert {Path(entry["path"]).name for entry in manifest["sources"]} == {
        path.name for folder in ("warc", "clicks") for path in (sample / folder).iterdir()
    }
    for entry in manifest["sources"]:
        accounted = entry["used"] + sum(entry["rejected"].values()) + sum(entry["ignored"].values())
        assert entry["records"] == accounted > 0
    assert manifest["rows"] == {name: len(read_rows(output / name)) for name in TABLES}
    pages = [row["url"] for row in read_rows(output / "pages")]
    assert len(pages) == len(set(pages))
    moved = {row["url"] for row in read_rows(output / "aliases") if row["kind"] != "canonical"}
    assert moved
    assert not moved & {row["target_url"] for row in read_rows(output / "links")}


def test_newest_capture_wins_and_earlier_digests_are_history(tmp_path: Path) -> None:
    rows = [
        {"url": "https://a.example/x", "fetched_at": "2024-01-02T00:00:00Z", "text": "new", "content_digest": "d2"},
        {
            "url": "https://A.example:443/x#top",
            "fetched_at": "2024-01-01T00:00:00Z",
            "text": "old",
            "content_digest": "d1",
        },
        {"url": "https://a.example/x", "text": "undated", "content_digest": "d0"},
    ]
    source = tmp_path / "pages.jsonl"
    source.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert run_ingest(tmp_path / "snapshot", "--pages", str(source)) == 0
    [page] = read_rows(tmp_path / "snapshot" / "pages")
    assert (page["url"], page["text"]) == ("https://a.example/x", "new")
    assert [row["content_digest"] for row in read_rows(tmp_path / "snapshot" / "history")] == ["d1", "d0"]


def test_records_of_one_fetch_fill_each_other(tmp_path: Path) -> None:
    """As the text and the metadata of one page come in files of their own."""
    page = {"url": "https://a.example/x", "fetched_at": "2024-01-02T00:00:00Z"}
    source = tmp_path / "pages.jsonl"
    rows = [{**page, "title": "Owls", "status": 200}, {**page, "text": "of the night", "content_digest": "d2"}]
    source.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert run_ingest(tmp_path / "snapshot", "--pages", str(source)) == 0
    [row] = read_rows(tmp_path / "snapshot" / "pages")
    assert (row["title"], row["text"], row["status"], row["content_digest"]) == ("Owls", "of the night", 200, "d2")
    assert read_rows(tmp_path / "snapshot" / "history") == []


@pytest.mark.parametrize("partitions", [1, 2, 7])
@pytest.mark.parametrize("seed", [1, 2])
def test_links_of_outdated_captures_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partitions: int, seed: int
) -> None:
    """Random captures, a few undated, in files of random order, against the rule written out capture by capture."""
    draw = random.Random(seed)
    monkeypatch.setattr(ingest, "partition_count", lambda _: partitions)
    captures: list[dict[str, Any]] = [
        {
            "url": f"https://site{draw.randrange(3)}.example/{draw.randrange(8)}",
            "fetched_at": draw.choice([None, *(f"2024-01-0{day}T00:00:00Z" for day in range(1, 8))]),
            "title": f"title {number}",
            "links": [f"https://other.example/{draw.randrange(40)}" for _ in range(draw.randrange(5))],
        }
        for number in range(120)
    ]
    bare = [("https://site0.example/0", "https://bare.example/"), ("https://unseen.example/", "https://bare.example/")]
    newest: dict[str, tuple[str, str]] = {}
    for capture in captures:
        rank = (capture["fetched_at"] or "", "" if capture["fetched_at"] else capture["title"])
        newest[capture["url"]] = max(rank, newest.get(capture["url"], ("", "")))
    expected, outdated = set(bare), 0
    for capture in captures:
        rank = (capture["fetched_at"] or "", "" if capture["fetched_at"] else capture["title"])
        if rank == newest[capture["url"]]:
            expected |= {(capture["url"], target) for target in capture["links"]}
        else:
            outdated += len(capture["links"])
    assert outdated > 50

    outputs = []
    for attempt in range(2):
        draw.shuffle(captures)
        folder = tmp_path / str(attempt)
        folder.mkdir()
        for part in range(attempt + 1):
            lines = map(json.dumps, captures[part :: attempt + 1])
            (folder / f"items-{part}.jsonl").write_text("\n".join(lines), encoding="utf-8")
        rows = [json.dumps({"source_url": source, "target_url": target}) for source, target in bare]
        (folder / "links.json").write_text("\n".join(rows), encoding="utf-8")
        output = folder / "snapshot"
        assert run_ingest(output, "--scrapy", f"{folder}/items-*", "--links", f"{folder}/links.json") == 0
        links = [(row["source_url"], row["target_url"]) for row in read_rows(output / "links")]
        assert len(links) == len(set(links))
        assert set(links) == expected
        manifest = manifest_of(output)
        given = sum(entry["rows"].get("links", 0) for entry in manifest["sources"])
        assert given == len(bare) + sum(len(capture["links"]) for capture in captures)
        assert manifest["outdated"] == {"links": outdated}
        assert given == manifest["rows"]["links"] + outdated + manifest["repeated"]["links"]
        outputs.append(table_bytes(output))
    assert outputs[0] == outputs[1]


def test_names_of_files_may_be_no_utf_8(tmp_path: Path) -> None:
    """POSIX: a file's name is bytes, and of archives from other systems often Latin-1."""
    names = (b"pages-\xe9.jsonl", b"seeds-\xe9.txt", b"round-\xe9")
    source, seeds, ranked = (tmp_path / os.fsdecode(name) for name in names)
    source.write_text('{"url": "https://a.example/", "text": "falcon"}\nnone\n')
    seeds.write_text("https://a.example/\n")
    snapshot = tmp_path / "snapshot"
    assert run_ingest(snapshot, "--pages", str(source), "--scrapy", str(source)) == 0
    shown = [entry["path"].rpartition("/")[2] for entry in manifest_of(snapshot)["sources"]]
    assert shown == ["pages-\\xe9.jsonl"] * 2
    assert {row["reason"] for row in read_rows(snapshot / "rejects")} == {"json-invalid"}
    options = ["--snapshot", str(snapshot), "--seeds", str(seeds), "--output", str(ranked), "--quiet"]
    assert main(["rank", *options]) == 0


def test_traps_are_marked_and_kept(tmp_path: Path) -> None:
    target = "https://a.example/" + "again/" * 6
    source = tmp_path / "links.jsonl"
    source.write_text(json.dumps({"source_url": "https://a.example/", "target_url": target}), encoding="utf-8")
    assert run_ingest(tmp_path / "snapshot", "--links", str(source)) == 0
    assert [row["target_url"] for row in read_rows(tmp_path / "snapshot" / "links")] == [target]
    assert {row["reason"] for row in read_rows(tmp_path / "snapshot" / "rejects")} == {"trap-repeating-path"}
    assert manifest_of(tmp_path / "snapshot")["sources"][0]["rejected"] == {}


def test_bytes_do_not_depend_on_partitions_files_or_order(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = ["--warc", f"{sample}/warc/*", "--clicks", f"{sample}/clicks/*"]
    monkeypatch.setattr(ingest, "partition_count", lambda _: 4)
    assert run_ingest(tmp_path / "whole", *sources) == 0
    monkeypatch.setattr(ingest, "RANGE_BYTES", 20_000)
    assert run_ingest(tmp_path / "ranges", *sources) == 0
    whole, ranges = table_bytes(tmp_path / "whole"), table_bytes(tmp_path / "ranges")
    assert whole == ranges
    assert manifest_of(tmp_path / "whole")["sources"] == manifest_of(tmp_path / "ranges")["sources"]

    clicks = pq.read_table(sample / "clicks").to_pylist()
    shuffled = tmp_path / "clicks.parquet"
    pq.write_table(
        pa.Table.from_pylist(clicks[::-1], schema=pq.read_schema(next((sample / "clicks").iterdir()))), shuffled
    )
    assert run_ingest(tmp_path / "shuffled", "--warc", f"{sample}/warc/*", "--clicks", str(shuffled)) == 0
    assert table_bytes(tmp_path / "shuffled") == whole


def test_bad_rows_are_rejects_with_a_reason(tmp_path: Path) -> None:
    lines = [
        {"source_url": "https://a.example/", "target_url": "https://b.example/"},
        {"source_url": "https://a.example/", "target_url": "http://[x"},
        {"source_url": None, "target_url": "https://b.example/"},
    ]
    source = tmp_path / "links.jsonl"
    source.write_text("\n".join(map(json.dumps, lines)) + "\n{broken\n", encoding="utf-8")
    assert run_ingest(tmp_path / "snapshot", "--links", str(source)) == 0
    [entry] = manifest_of(tmp_path / "snapshot")["sources"]
    assert (entry["records"], entry["used"]) == (4, 1)
    rejects = read_rows(tmp_path / "snapshot" / "rejects")
    assert len(rejects) == sum(entry["rejected"].values()) == 3
    assert all(row["reason"] and row["stage"] for row in rejects)


def test_chains_of_redirects_lead_to_their_end(sample: Path, tmp_path: Path) -> None:
    """The sample has redirects; links to them lead to pages that are no redirects themselves."""
    output = tmp_path / "snapshot"
    assert run_ingest(output, "--warc", f"{sample}/warc/*") == 0
    aliases = {row["url"]: row["target_url"] for row in read_rows(output / "aliases") if row["kind"] == "redirect"}
    for target in aliases.values():
        assert target not in aliases or aliases[target] != target


def _write(path: Path, table: pa.Table) -> Path:
    pq.write_table(table, path)
    return path


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (pa.table({"target_url": ["https://a.example/"]}), "column 'source_url' is missing"),
        (pa.table({"source_url": [1], "target_url": ["https://a.example/"]}), "column 'source_url' has type int64"),
    ],
)
def test_unusable_columns_end_with_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], table: pa.Table, expected: str
) -> None:
    source = _write(tmp_path / "links.parquet", table)
    assert run_ingest(tmp_path / "snapshot", "--links", str(source)) == 2
    message = capsys.readouterr().err
    assert expected in message
    assert message.count("\n") == 1
    assert not (tmp_path / "snapshot").exists()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], "nothing to read"),
        (["--warc", "no-such-file.warc"], "names no file"),
        (["--log", "combine=x.log"], "--log: found 'combine' (did you mean combined?), expected one of alb, aol"),
        (["--log", "x.log"], "--log: found 'x.log', expected FORMAT=GLOB with a format of alb, aol"),
        (["--log", "combined=x.log"], "--user-salt is missing"),
        (["--max-links", "0", "--warc", "x"], "--max-links: found 0"),
    ],
)
def test_unusable_options_end_with_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], expected: str
) -> None:
    assert run_ingest(tmp_path / "snapshot", *options) == 2
    message = capsys.readouterr().err
    assert expected in message
    assert message.count("\n") == 1
    assert not (tmp_path / "snapshot").exists()


def test_lists_of_paths_are_read_behind_their_base(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = tmp_path / "data"
    (base / "deep").mkdir(parents=True)
    for number in range(3):
        line = f"{number}\towls\t2006-03-01 07:17:12\t1\thttp://a.example/\n"
        (base / "deep" / f"{number}.log").write_text(line, encoding="utf-8")
    listing = tmp_path / "log.paths"
    listing.write_text("deep/0.log\n/deep/2.log\n", encoding="utf-8")
    options = ["--log", f"aol={listing}", "--path-list", "--base-url", str(base)]
    assert run_ingest(tmp_path / "snapshot", *options) == 0
    paths = [entry["path"] for entry in manifest_of(tmp_path / "snapshot")["sources"]]
    assert paths == [f"{base}/deep/0.log", f"{base}/deep/2.log"]
    assert len(read_rows(tmp_path / "snapshot" / "clicks")) == 2

    capsys.readouterr()
    listing.write_text("deep/0.log\ndeep/missing.log\n", encoding="utf-8")
    assert run_ingest(tmp_path / "other", *options) == 2
    message = capsys.readouterr().err
    assert "deep/missing.log: can't be read: No such file" in message
    assert message.count("\n") == 1
    assert not (tmp_path / "other").exists()


def test_unreadable_parquet_ends_with_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "pages.parquet"
    source.write_bytes(b"PAR1 this is no footer")
    assert run_ingest(tmp_path / "snapshot", "--pages", str(source)) == 2
    assert "is not a readable Parquet file" in capsys.readouterr().err


def test_finished_snapshot_is_kept(sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clicks = tmp_path / "clicks"
    shutil.copytree(sample / "clicks", clicks)
    assert run_ingest(tmp_path / "snapshot", "--clicks", str(clicks)) == 0
    assert run_ingest(tmp_path / "snapshot", "--clicks", str(clicks)) == 2
    assert "--overwrite replaces it" in capsys.readouterr().err
    assert run_ingest(tmp_path / "snapshot", "--clicks", str(clicks), "--overwrite") == 0


def test_access_log_becomes_clicks(tmp_path: Path) -> None:
    line = '1.2.3.4 - - [01/Jan/2024:10:00:0{second} +0000] "GET {path} HTTP/1.1" 200 10 "{referrer}" "Mozilla/5.0"\n'
    log = tmp_path / "access.log"
    log.write_text(
        line.format(second=0, path="/search?q=barn+owl", referrer="-")
        + line.format(second=5, path="/owls/barn", referrer="https://site.example/search?q=barn+owl")
        + line.format(second=9, path="/owls/tawny", referrer="https://site.example/owls/barn"),
        encoding="utf-8",
    )
    options = ["--log", f"combined={log}", "--log-site", "https://site.example", "--site-search", "q"]
    assert run_ingest(tmp_path / "snapshot", *options, "--user-salt", "a secret text") == 0
    clicks = read_rows(tmp_path / "snapshot" / "clicks")
    assert [(row["query"], row["url"]) for row in clicks] == [
        ("barn owl", "https://site.example/owls/barn"),
        ("barn owl", "https://site.example/owls/tawny"),
    ]
    assert "1.2.3.4" not in str(clicks)


def test_the_summary_tells_views_that_no_search_led_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "access.log"
    log.write_text(
        '1.2.3.4 - - [01/Jan/2024:10:00:00 +0000] "GET /owls HTTP/1.1" 200 10 "-" "Mozilla/5.0"\n', encoding="utf-8"
    )
    options = ["--log", f"combined={log}", "--log-site", "https://site.example", "--user-salt", "a secret text"]
    assert main(["ingest", *options, "--output", str(tmp_path / "snapshot")]) == 0
    _, views = re.split("views in access logs", capsys.readouterr().out)
    assert "ignored: 1 no-query" in views


def test_an_archive_of_a_sibling_format_is_asked_about(
    sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (warc, *_) = sorted((sample / "warc").iterdir())
    assert main(["ingest", "--wat", str(warc), "--output", str(tmp_path / "snapshot"), "--quiet"]) == 0
    assert f"{warc}: no record could be used; is wat the right format?" in capsys.readouterr().err


def test_a_file_of_another_format_is_asked_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pages.jsonl").write_text("{ no object\n[3]\n", encoding="utf-8")
    pages = str(tmp_path / "pages.jsonl")
    assert main(["ingest", "--pages", pages, "--output", str(tmp_path / "snapshot")]) == 0
    assert capsys.readouterr().err.splitlines()[-2:] == [
        f"{pages}: no record could be used; is pages the right format?",
        "the snapshot has no pages and no links, so no round can be ranked from it",
    ]
