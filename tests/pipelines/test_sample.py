"""The command `semrank sample`."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from urllib.parse import urljoin

import pytest

from semrank.pipelines import sample
from semrank.pipelines.cli import command_parser, main
from semrank.schemas.errors import InputError
from semrank.transforms.samples.sample_web import sample_files, sample_pages
from semrank.transforms.streams.urls import canonical_url
from tests.support.sample import captured_urls
from tests.support.snapshots import read_rows


def run(*words: str) -> int:
    return sample.run(command_parser("sample", sample).parse_args(words))


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_writes_the_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "a" / "sample"
    assert run("--output", str(output)) == 0
    assert content(output) == dict(sample_files())
    assert str(output) in capsys.readouterr().out


def test_an_empty_folder_is_fresh(tmp_path: Path) -> None:
    assert run("--output", str(tmp_path)) == 0
    assert (tmp_path / "seeds.txt").is_file()


def test_a_folder_with_content_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match=r"not empty, expected a new or empty folder"):
        run("--output", str(tmp_path))
    assert content(tmp_path) == {"mine.txt": b"mine"}


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(InputError, match="is a file, expected a folder"):
        run("--output", str(tmp_path / "mine"), "--overwrite")


def test_overwrite_replaces_the_sample_and_nothing_else(tmp_path: Path) -> None:
    run("--output", str(tmp_path))
    (tmp_path / "warc" / "mine.warc.gz").write_bytes(b"mine")
    (tmp_path / "warc" / "sample-20200101-00000.warc.gz").write_bytes(b"an older version's")
    (tmp_path / "seeds.txt").write_text("changed")
    assert run("--output", str(tmp_path), "--overwrite") == 0
    assert content(tmp_path) == {**dict(sample_files()), "warc/mine.warc.gz": b"mine"}


def test_a_misspelt_option_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sample", "--output", str(tmp_path / "sample"), "--overwirte"]) == 2
    assert "--overwirte: unknown option (did you mean --overwrite?)" in capsys.readouterr().err
    assert not (tmp_path / "sample").exists()


def test_ingesting_the_sample_gives_its_pages_and_links(tmp_path: Path) -> None:
    """The links of the snapshot are those that a pattern finds in the newest bodies, moved where pages have moved."""
    assert main(["sample", "--output", str(tmp_path / "web"), "--quiet"]) == 0
    sources = ["--warc", f"{tmp_path}/web/warc/*.warc.gz", "--clicks", f"{tmp_path}/web/clicks/*.parquet"]
    assert main(["ingest", *sources, "--output", str(tmp_path / "snapshot"), "--quiet"]) == 0
    captured = set(captured_urls())
    bodies = {
        page.url: page.body.decode("latin-1" if "iso-8859-1" in page.headers[0][1] else "utf-8")
        for page in sample_pages()
        if page.url in captured and page.headers[0][1].startswith("text/html") and page.status in (200, 404)
    }
    rows = read_rows(tmp_path / "snapshot" / "pages")
    pages = {row["url"]: row for row in rows}
    assert set(pages) == set(bodies)
    assert pages["https://birds.example/de/turmfalke.html"]["language"] == "de"
    assert "spring letters" in pages["https://news.example/"]["text"]
    moved = {
        "http://birds.example/": "https://birds.example/",
        "https://birds.example/kestrel": "https://birds.example/raptors/kestrel.html",
        "https://railways.example/index.htm": "https://railways.example/",
    }
    found = {(row["source_url"], row["target_url"]) for row in read_rows(tmp_path / "snapshot" / "links")}
    expected = set()
    for url, body in bodies.items():
        based = re.search(r'<base href="([^"]*)">', body)
        for href in re.findall(r'<a href="([^"]*)"', body):
            target = canonical_url(urljoin(based[1] if based else url, unescape(href))).url
            expected.add((url, moved.get(str(target), target)))
    tonight = "https://astronomy.example/tonight"
    news = {target for source, target in found - expected if source == "https://astronomy.example/"}
    assert len(news) == 1
    assert found - {("https://astronomy.example/", *news)} == expected - {("https://astronomy.example/", tonight)}
    assert len(read_rows(tmp_path / "snapshot" / "rejects")) == 0
