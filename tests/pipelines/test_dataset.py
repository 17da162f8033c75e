"""The command `semrank dataset wikispeedia`."""

from __future__ import annotations

import functools
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from semrank.pipelines.cli import main
from semrank.schemas.tables import TOPICS
from semrank.transforms.samples.wikispeedia import GRAPH, GRAPH_ARCHIVE, TEXTS, TEXTS_ARCHIVE
from tests.support.snapshots import read_rows

WIKI = "https://en.wikipedia.org/wiki/"
ARTICLES = ["Bird", "Zebra", "AT%26T", "%C3%85land", "Bede", "Owl", "Heron", "Wren"]
GRAPH_FILES = {
    "articles.tsv": ARTICLES,
    "categories.tsv": [
        *(f"{name}\tsubject.Science.Biology.Birds" for name in ("Bird", "Owl", "Heron", "Wren")),
        "Zebra\tsubject.Science.Biology.Mammals",
        "AT%26T\tsubject.Business",
        "Phoenix\tsubject.Science.Biology.Birds",
    ],
    "links.tsv": ["Bird\tOwl", "Bird\tHeron", "Owl\tBird", "Heron\tZebra", "Zebra\tPhoenix"],
    "paths_unfinished.tsv": [
        "u1\t1297054935\t60\tBird;Owl;<;Heron\tZebra\trestart",
        "u1\t1297054935\t60\t<\tZebra\trestart",
    ],
    "paths_finished.tsv": ["u2\t1297740409\t30\tOwl;Bird;Heron;Zebra\tNULL"],
}


def text(article: str) -> str:
    related = "2007 Schools Wikipedia Selection. Related subjects: Secrets"
    return f"   #copyright\n\n{article}\n\n{related}\n\n   About {article}.\n"


def pack(path: Path, members: dict[str, str]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content.encode())
            archive.addfile(info, io.BytesIO(content.encode()))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    graph = {f"{GRAPH}/{name}": "# About.\n\n" + "\n".join(lines) + "\n" for name, lines in GRAPH_FILES.items()}
    pack(folder / GRAPH_ARCHIVE, graph)
    pack(folder / TEXTS_ARCHIVE, {f"{TEXTS}/{article}.txt": text(article) for article in ARTICLES})
    return folder


@pytest.fixture(scope="module")
def snapshot(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("dataset") / "snapshot"
    assert run("--source", str(source), "--output", str(output)) == 0
    return output


@pytest.fixture
def server(source: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(source.parent)))
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{listening.server_port}"
    listening.shutdown()
    listening.server_close()
    thread.join()


def run(*words: str) -> int:
    return main(["dataset", "wikispeedia", *words, "--quiet"])


def test_pages_and_links(snapshot: Path) -> None:
    pages = {row["url"]: row for row in read_rows(snapshot / "pages")}
    assert set(pages) == {f"{WIKI}{article}" for article in ARTICLES}
    assert pages[f"{WIKI}%C3%85land"]["title"] == "Åland"
    assert all("Secrets" not in row["text"] for row in pages.values())
    links = {(row["source_url"], row["target_url"]): row["anchor_text"] for row in read_rows(snapshot / "links")}
    assert links[f"{WIKI}Bird", f"{WIKI}Owl"] == "Owl"
    assert len(links) == 4


def test_clicks(snapshot: Path) -> None:
    sessions: dict[str, list[dict[str, object]]] = {}
    for row in sorted(read_rows(snapshot / "clicks"), key=lambda row: row["clicked_at"]):
        sessions.setdefault(row["session_id"], []).append(row)
    seen = sorted([str(row["url"]).removeprefix(WIKI) for row in rows] for rows in sessions.values())
    assert seen == [["Bird", "Owl", "Bird", "Heron"], ["Owl", "Bird", "Heron", "Zebra"]]
    assert {str(row["query"]) for rows in sessions.values() for row in rows} == {"Zebra"}


def test_topics_and_seeds(snapshot: Path) -> None:
    topics = pq.read_table(snapshot / "topics.parquet")
    assert topics.schema.equals(TOPICS.schema)
    birds = [row for row in topics.to_pylist() if row["topic"] == "subject.Science.Biology.Birds"]
    assert [row["url"] for row in birds] == sorted(f"{WIKI}{name}" for name in ("Bird", "Owl", "Heron", "Wren"))
    seeds = (snapshot / "seeds" / "subject.Science.Biology.Birds.txt").read_text().split()
    assert seeds == [row["url"] for row in birds if row["is_seed"]]
    assert len(seeds) == 2
    assert sorted(path.stem for path in (snapshot / "seeds").iterdir()) == [
        "subject.Science",
        "subject.Science.Biology",
        "subject.Science.Biology.Birds",
    ]


def test_the_manifest_accounts_for_every_record(snapshot: Path) -> None:
    manifest = json.loads((snapshot / "manifest.json").read_text())
    assert manifest["kind"] == "snapshot"
    files = {entry["path"].rsplit("/", 1)[-1]: entry for entry in manifest["sources"]}
    assert set(files) == {*GRAPH_FILES, TEXTS_ARCHIVE}
    for entry in files.values():
        assert entry["records"] == entry["used"] + sum(entry["rejected"].values()) + sum(entry["ignored"].values())
    assert files["links.tsv"]["rejected"] == {"article-unknown": 1}
    assert files["categories.tsv"]["rejected"] == {"article-unknown": 1}
    assert files["paths_unfinished.tsv"]["rejected"] == {"path-invalid": 1}
    rejects = sorted((row["reason"], row["record"]) for row in read_rows(snapshot / "rejects"))
    assert rejects == [
        ("article-unknown", "Phoenix\tsubject.Science.Biology.Birds"),
        ("article-unknown", "Zebra\tPhoenix"),
        ("path-invalid", "u1\t1297054935\t60\t<\tZebra\trestart"),
    ]


def test_topics_and_seeds_are_there_before_the_manifest(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that dies at its last step leaves no manifest, and the next run starts over without being told to."""

    def fail(*_: object) -> None:
        assert (tmp_path / "snapshot" / "topics.parquet").is_file()
        assert list((tmp_path / "snapshot" / "seeds").iterdir())
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("semrank.transforms.columnar.files.write_manifest", fail)
        assert run("--source", str(source), "--output", str(tmp_path / "snapshot")) == 1
    assert not (tmp_path / "snapshot" / "manifest.json").exists()
    assert run("--source", str(source), "--output", str(tmp_path / "snapshot")) == 0


def test_a_url_gives_the_same_snapshot(source: Path, snapshot: Path, server: str, tmp_path: Path) -> None:
    output, downloads = tmp_path / "snapshot", tmp_path / "downloads"
    words = ("--source", f"{server}/{source.name}/", "--output", str(output), "--downloads", str(downloads))
    assert run(*words) == 0
    for table in ("pages", "links", "clicks", "topics.parquet"):
        assert pq.read_table(output / table).equals(pq.read_table(snapshot / table))
    assert {path.name for path in downloads.glob("*.gz")} == {GRAPH_ARCHIVE, TEXTS_ARCHIVE}


def test_downloads_are_kept_in_the_users_cache(
    source: Path, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert run("--source", f"{server}/{source.name}", "--output", str(tmp_path / "snapshot")) == 0
    assert (tmp_path / "cache" / "semrank" / "wikispeedia" / GRAPH_ARCHIVE).is_file()


def test_topics_go_where_they_are_asked_to(source: Path, tmp_path: Path) -> None:
    output, topics = tmp_path / "snapshot", tmp_path / "elsewhere" / "t.parquet"
    assert run("--source", str(source), "--output", str(output), "--topics", str(topics)) == 0
    assert pq.read_table(topics).num_rows == 4 + 5 + 5 + 1 + 1
    assert not (output / "topics.parquet").exists()


def test_a_finished_snapshot_is_replaced_only_when_asked(source: Path, tmp_path: Path) -> None:
    output = tmp_path / "snapshot"
    assert run("--source", str(source), "--output", str(output)) == 0
    before = (output / "manifest.json").read_bytes()
    (output / "seeds" / "old.txt").write_text("an earlier version's")
    assert run("--source", str(source), "--output", str(output)) == 2
    assert (output / "manifest.json").read_bytes() == before
    assert run("--source", str(source), "--output", str(output), "--overwrite") == 0
    assert not (output / "seeds" / "old.txt").exists()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("no/such/folder", "no such folder, expected one with"),
        ("ftp://data.example/wikispeedia", "expected a folder, or the http(s) URL of one"),
        ("https://data.example/wikispeedia?version=2", "expected a folder, or the http(s) URL of one"),
    ],
)
def test_unusable_sources(source: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--source", source, "--output", str(tmp_path / "snapshot")) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "snapshot").exists()


def test_a_folder_without_the_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--source", str(tmp_path), "--output", str(tmp_path / "snapshot")) == 2
    assert f"found neither {GRAPH_ARCHIVE} nor" in capsys.readouterr().err
    assert not (tmp_path / "snapshot").exists()


def test_a_folder_without_the_texts(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / GRAPH_ARCHIVE).write_bytes((source / GRAPH_ARCHIVE).read_bytes())
    assert run("--source", str(tmp_path), "--output", str(tmp_path / "snapshot")) == 2
    assert f"found neither {TEXTS_ARCHIVE} nor" in capsys.readouterr().err


def test_damaged_texts(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / GRAPH_ARCHIVE).write_bytes((source / GRAPH_ARCHIVE).read_bytes())
    (tmp_path / TEXTS_ARCHIVE).write_bytes((source / TEXTS_ARCHIVE).read_bytes()[:300])
    assert run("--source", str(tmp_path), "--output", str(tmp_path / "snapshot")) == 2
    error = capsys.readouterr().err
    assert "is damaged, or not a tar.gz archive" in error
    assert error.count("\n") == 1


@pytest.fixture
def manuals(tmp_path: Path) -> Path:
    """Two manuals of one section each, and a page on top."""
    pages = {"index": [], "net/a": ["b.html"], "net/b": ["a.html", "c.html"], "net/c": [], "fs/a": ["../net/a.html"]}
    for name, links in pages.items():
        path = tmp_path / "manuals" / f"{name}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        anchors = "".join(f'<a href="{link}">{link}</a>' for link in links)
        path.write_text(f"<title>{name}</title><p>About {name}.</p>{anchors}", encoding="utf-8")
    return tmp_path / "manuals"


def test_manuals(manuals: Path, tmp_path: Path) -> None:
    for output, more in (("one", []), ("two", ["--topics", str(tmp_path / "topics.parquet")])):
        arguments = ["--source", str(manuals), "--output", str(tmp_path / output), *more]
        assert main(["dataset", "manuals", *arguments, "--quiet"]) == 0
    pages, links = (read_rows(tmp_path / "one" / name) for name in ("pages", "links"))
    title = {row["url"]: row["title"] for row in pages}
    assert sorted(title.values()) == ["fs/a", "index", "net/a", "net/b", "net/c"]
    assert {(title[row["source_url"]], title[row["target_url"]]) for row in links} == {
        ("net/a", "net/b"),
        ("net/b", "net/a"),
        ("net/b", "net/c"),
        ("fs/a", "net/a"),
    }
    topics = pq.read_table(tmp_path / "one" / "topics.parquet")
    assert topics.schema == TOPICS.schema
    assert sorted((row["topic"], title[row["url"]]) for row in topics.to_pylist()) == [
        ("fs", "fs/a"),
        *(("net", f"net/{name}") for name in "abc"),
    ]
    (seed,) = (row["url"] for row in topics.to_pylist() if row["is_seed"])
    assert (tmp_path / "one" / "seeds" / "net.txt").read_text(encoding="utf-8") == f"{seed}\n"
    manifest = json.loads((tmp_path / "one" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["dataset"] == "manuals"
    assert {Path(entry["path"]).name: entry["records"] for entry in manifest["sources"]} == {
        "manuals": 1,
        "net": 3,
        "fs": 1,
    }
    assert pq.read_table(tmp_path / "topics.parquet").equals(topics)
    for table in ("pages", "links"):
        assert read_rows(tmp_path / "two" / table) == read_rows(tmp_path / "one" / table)


@pytest.mark.parametrize("name", ["nowhere", "empty"])
def test_manuals_that_are_none(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    arguments = ["--source", str(tmp_path / name), "--output", str(tmp_path / "snapshot")]
    assert main(["dataset", "manuals", *arguments, "--quiet"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / "snapshot").exists()
