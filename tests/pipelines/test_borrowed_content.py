"""Revisits of other URLs' content: which pages get it, from which capture, and what they keep of their own."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from semrank.pipelines import ingest
from semrank.pipelines.cli import main
from semrank.schemas.tables import PAGES
from semrank.transforms.crawls import borrowed
from tests.support.crawls import http, warc
from tests.support.snapshots import read_rows, table_of

DAYS = [f"2024-03-{day:02}T12:00:00Z" for day in range(1, 10)]


def body(name: str) -> bytes:
    words = f"The {name} station on the mountain is kept by volunteers of the club."
    html = f"<html lang=en><title>{name}</title><body><p>{words}</p><a href='{name}-next'>on</a></body></html>"
    return html.encode()


def capture(path: str, day: int, name: str, digest: str | None, **headers: str) -> bytes:
    """A response with the content of this name."""
    named: dict[str, Any] = {} if digest is None else {"WARC_Payload_Digest": digest}
    return warc(http(body(name), **headers), f"http://{path}", date=DAYS[day], **named)


def visit(
    path: str,
    day: int,
    digest: str | None,
    original: tuple[str, int] | None = None,
    status: str = "200 OK",
    **headers: str,
) -> bytes:
    """A revisit record, with the URL and the day of the record that has the content, if told."""
    named: dict[str, Any] = {} if digest is None else {"WARC_Payload_Digest": digest}
    if original is not None:
        named["WARC_Refers_To_Target_URI"] = f"http://{original[0]}"
        named["WARC_Refers_To_Date"] = DAYS[original[1]]
    return warc(http(b"", status, **headers), f"http://{path}", kind="revisit", date=DAYS[day], **named)


def logged(path: str, day: int, digest: str) -> str:
    """A line of Heritrix's crawl.log about content that was seen before."""
    moment = DAYS[day]
    begin = "".join(filter(str.isdigit, moment))
    return f"{moment} 200 10 http://{path} - - text/html #1 {begin}000+9 {digest} - duplicate:digest"


def run(output: Path, sources: dict[str, list[bytes] | list[str]]) -> dict[str, Any]:
    """The manifest of a snapshot of files, whose option is the first part of their names."""
    folder = output.with_name(f"{output.name}-files")
    folder.mkdir()
    options: list[str] = []
    for name, records in sources.items():
        data = [record if isinstance(record, bytes) else f"{record}\n".encode() for record in records]
        (folder / name).write_bytes(b"".join(data))
        options += [f"--{name.partition('.')[0]}", str(folder / name)]
    assert main(["ingest", "--output", str(output), "--quiet", *options]) == 0
    return dict(json.loads((output / "manifest.json").read_text(encoding="utf-8")))


CASES: dict[str, tuple[list[bytes | str], str | None, int]] = {
    # name -> records (HOST becomes the case's own), title of its page /b, pages that borrow
    "by-digest-and-place": (
        [capture("HOST/a", 0, "A", "sha1:HOST"), visit("HOST/b", 1, "sha1:HOST", ("HOST/a", 0))],
        "A",
        1,
    ),
    "by-digest-alone": ([capture("HOST/a", 0, "A", "sha1:HOST"), visit("HOST/b", 1, "sha1:HOST")], "A", 1),
    "by-place-alone": ([capture("HOST/a", 0, "A", None), visit("HOST/b", 1, None, ("HOST/a", 0))], "A", 1),
    "by-place-where-the-digest-is-unknown": (
        [capture("HOST/a", 0, "A", "sha256:HOST"), visit("HOST/b", 1, "sha1:HOST", ("HOST/a", 0))],
        "A",
        1,
    ),
    "the-digest-before-the-place": (
        [
            capture("HOST/a", 0, "A", "sha1:other-HOST"),
            capture("HOST/c", 0, "C", "sha1:HOST"),
            visit("HOST/b", 1, "sha1:HOST", ("HOST/a", 0)),
        ],
        "C",
        1,
    ),
    "from-an-earlier-capture": (
        [
            capture("HOST/a", 0, "A", "sha1:HOST"),
            capture("HOST/a", 3, "new", "sha1:n-HOST"),
            visit("HOST/b", 1, "sha1:HOST", ("HOST/a", 0)),
        ],
        "A",
        1,
    ),
    "another-day-of-the-place": (
        [capture("HOST/a", 2, "A", "sha1:x-HOST"), visit("HOST/b", 1, "sha1:HOST", ("HOST/a", 0))],
        None,
        0,
    ),
    "content-that-nobody-has": ([visit("HOST/b", 1, "sha1:HOST", ("HOST/a", 0))], None, 0),
    "visits-that-lend-each-other-nothing": (
        [visit("HOST/a", 1, "sha1:HOST"), visit("HOST/b", 1, "sha1:HOST")],
        None,
        0,
    ),
    "older-content-of-its-own": (
        [
            capture("HOST/a", 0, "A", "sha1:HOST"),
            capture("HOST/b", 0, "own", "sha1:o-HOST"),
            visit("HOST/b", 1, "sha1:HOST", ("HOST/a", 0)),
        ],
        "A",
        1,
    ),
    "newer-content-of-its-own": (
        [
            capture("HOST/a", 0, "A", "sha1:HOST"),
            capture("HOST/b", 2, "own", "sha1:o-HOST"),
            visit("HOST/b", 1, "sha1:HOST", ("HOST/a", 0)),
        ],
        "own",
        0,
    ),
    "the-same-content-of-its-own": (
        [capture("HOST/b", 0, "own", "sha1:HOST"), visit("HOST/b", 1, "sha1:HOST")],
        "own",
        0,
    ),
    "the-newest-of-two-visits": (
        [
            *(capture(f"HOST/{name}", 0, name, f"sha1:{name}-HOST") for name in ("A", "C")),
            *(visit("HOST/b", day, f"sha1:{name}-HOST", (f"HOST/{name}", 0)) for day, name in ((1, "A"), (2, "C"))),
        ],
        "C",
        1,
    ),
    "an-older-visit-where-nobody-has-what-the-newest-found": (
        [
            capture("HOST/a", 0, "A", "sha1:HOST"),
            visit("HOST/b", 1, "sha1:HOST", ("HOST/a", 0)),
            visit("HOST/b", 2, "sha1:x-HOST", ("HOST/a", 1)),
        ],
        "A",
        1,
    ),
    "a-visit-that-found-its-own-content-again": (
        [
            capture("HOST/a", 0, "A", "sha1:HOST"),
            capture("HOST/b", 0, "own", "sha1:o-HOST"),
            visit("HOST/b", 1, "sha1:HOST", ("HOST/a", 0)),
            visit("HOST/b", 2, "sha1:o-HOST", ("HOST/b", 0)),
        ],
        "own",
        0,
    ),
    "a-visit-that-found-an-older-content-of-its-own": (
        [
            capture("HOST/b", 0, "own", "sha1:HOST"),
            capture("HOST/b", 1, "other", "sha1:o-HOST"),
            visit("HOST/b", 2, "sha1:HOST", ("HOST/b", 0)),
        ],
        "own",
        0,
    ),
    "a-line-of-a-log-about-an-older-content-of-its-own": (
        [
            capture("HOST/b", 0, "own", "sha1:HOST"),
            capture("HOST/b", 1, "other", "sha1:o-HOST"),
            logged("HOST/b", 2, "sha1:HOST"),
        ],
        "own",
        0,
    ),
    "a-visit-that-found-a-page-that-had-been-gone": (
        [
            capture("HOST/b", 0, "own", "sha1:HOST"),
            warc(http(b"", "404 Not Found"), "http://HOST/b", date=DAYS[1]),
            visit("HOST/b", 2, "sha1:HOST", ("HOST/b", 0)),
        ],
        "own",
        0,
    ),
    "a-later-visit-that-found-the-newest-content-again": (
        [
            capture("HOST/b", 0, "other", "sha1:HOST"),
            capture("HOST/b", 1, "own", "sha1:o-HOST"),
            visit("HOST/b", 2, "sha1:HOST", ("HOST/b", 0)),
            visit("HOST/b", 3, "sha1:o-HOST", ("HOST/b", 1)),
        ],
        "own",
        0,
    ),
    "a-visit-that-found-an-older-content-before-it-was-gone": (
        [
            capture("HOST/b", 0, "A", "sha1:HOST"),
            capture("HOST/b", 1, "other", "sha1:o-HOST"),
            visit("HOST/b", 2, "sha1:HOST", ("HOST/b", 0)),
            warc(http(b"", "404 Not Found"), "http://HOST/b", date=DAYS[3]),
        ],
        None,
        0,
    ),
    "gone-afterwards": (
        [
            capture("HOST/a", 0, "A", "sha1:HOST"),
            visit("HOST/b", 1, "sha1:HOST", ("HOST/a", 0)),
            visit("HOST/b", 2, "sha1:g-HOST", ("HOST/g", 0), "404 Not Found"),
        ],
        None,
        0,
    ),
    "an-original-that-is-gone-now": (
        [
            capture("HOST/a", 0, "A", "sha1:HOST"),
            warc(http(b"", "404 Not Found"), "http://HOST/a", date=DAYS[2]),
            visit("HOST/b", 1, "sha1:HOST", ("HOST/a", 0)),
        ],
        "A",
        1,
    ),
    "an-original-that-asks-not-to-be-indexed": (
        [
            capture("HOST/a", 0, "A", "sha1:HOST", X_Robots_Tag="noindex"),
            visit("HOST/b", 1, "sha1:HOST", ("HOST/a", 0)),
        ],
        None,
        1,
    ),
    "a-visit-that-asks-not-to-be-indexed": (
        [
            capture("HOST/a", 0, "A", "sha1:HOST"),
            visit("HOST/b", 1, "sha1:HOST", ("HOST/a", 0), X_Robots_Tag="noindex"),
        ],
        None,
        0,
    ),
    "a-line-of-a-log": ([capture("HOST/a", 0, "A", "sha1:HOST"), logged("HOST/b", 1, "sha1:HOST")], "A", 1),
    "a-line-of-a-log-about-a-revisit": (
        [
            capture("HOST/a", 0, "A", None),
            visit("HOST/b", 1, "sha1:HOST", ("HOST/a", 0)),
            logged("HOST/b", 1, "sha1:HOST"),
        ],
        "A",
        1,
    ),
}


def of_host(record: bytes | str, host: str) -> bytes | str:
    return record.replace("HOST", host) if isinstance(record, str) else record.replace(b"HOST", host.encode())


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, dict[str, Any]], set[str]]:
    """The manifest, pages by URL and sources of links of one snapshot of all cases, each on a host of its own."""
    records = [of_host(record, f"{name}.example") for name, (given, _, _) in CASES.items() for record in given]
    output = tmp_path_factory.mktemp("borrowed") / "snapshot"
    archived = [record for record in records if isinstance(record, bytes)]
    manifest = run(output, {"warc": archived, "heritrix": [record for record in records if isinstance(record, str)]})
    pages = {row["url"]: row for row in read_rows(output / "pages")}
    return manifest, pages, {row["source_url"] for row in read_rows(output / "links")}


@pytest.mark.parametrize("name", CASES)
def test_pages_get_the_content_that_a_visit_found(name: str, snapshot: Any) -> None:
    _, pages, sources = snapshot
    records, title, _ = CASES[name]
    row = pages[f"http://{name}.example/b"]
    expected = None if title is None else f"The {title} station on the mountain is kept by volunteers of the club."
    assert (row["title"], row["language"] if title else "en") == (title, "en")
    assert expected is None or expected in row["text"]
    assert expected or row["text"] is None
    has_own = any(isinstance(record, bytes) and b">own<" in record for record in records)
    assert (row["url"] in sources) == has_own, "links are never borrowed"


def test_the_manifest_counts_pages_with_borrowed_content(snapshot: Any) -> None:
    manifest, _, _ = snapshot
    assert manifest["borrowed"] == {"pages": sum(count for _, _, count in CASES.values())}
    for entry in manifest["sources"]:
        accounted = entry["used"] + sum(entry["rejected"].values()) + sum(entry["ignored"].values())
        assert entry["records"] == accounted > 0


def test_without_revisits_nothing_is_exchanged(tmp_path: Path) -> None:
    manifest = run(tmp_path / "snapshot", {"warc": [capture("a.example/", 0, "A", "sha1:A")]})
    assert manifest["borrowed"] == {"pages": 0}
    assert manifest["stages"].get("lend content", {"rows_in": 0})["rows_in"] == 0


@pytest.mark.parametrize("seed", [1, 2])
def test_borrowed_content_does_not_depend_on_partitions_or_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Random captures and visits against the rule written out, in 1, 2 and 7 partitions and files of random order."""
    draw = random.Random(seed)
    captures = [(f"s.example/{draw.randrange(30)}", draw.randrange(4), f"n{draw.randrange(12)}") for _ in range(40)]
    captures = list({(path, day): (path, day, name) for path, day, name in captures}.values())
    days = {page: draw.sample(range(4, 9), 2) for page in range(15, 45)}
    visits = [(f"s.example/{page}", day, f"n{draw.randrange(16)}") for page in days for day in sorted(days[page])]
    records = [capture(path, day, name, f"sha1:{name}") for path, day, name in captures]
    records += [visit(path, day, f"sha1:{name}") for path, day, name in visits]
    kept = {name for _, _, name in captures}
    expected: dict[str, str | None] = {path: name for path, _, name in sorted(captures)}
    own = dict(expected)
    for path, _, name in visits:  # in the order of time
        expected[path] = name if name in kept else expected.get(path)
    of_its_own = {(path, name) for path, _, name in captures}
    newest = {path: name for path, _, name in visits}
    borrowing = sum(name != own.get(path) and (path, newest[path]) not in of_its_own for path, name in expected.items())
    assert borrowing > 10

    found = []
    for partitions in (1, 2, 7):
        draw.shuffle(records)
        monkeypatch.setattr(borrowed, "REQUESTS_AT_ONCE", partitions)
        monkeypatch.setattr(ingest, "partition_count", lambda _, count=partitions: count)
        output = tmp_path / str(partitions)
        names = [f"warc.{number}" for number in range(partitions)]
        manifest = run(output, {name: records[number::partitions] for number, name in enumerate(names)})
        assert manifest["borrowed"] == {"pages": borrowing}
        rows = sorted(read_rows(output / "pages"), key=lambda row: str(row["url"]))
        assert {row["url"].removeprefix("http://"): row["title"] for row in rows} == expected
        found.append(rows)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("lent", "shown"),
    [
        ({"title": "T", "text": "words", "language": "de"}, ("T", "words", "de")),
        ({"text": "words"}, (None, "words", None)),
        ({"title": "", "text": ""}, (None, None, None)),
        ({"title": "T"}, ("T", "own words", "en")),
        ({}, ("own", "own words", "en")),
    ],
)
def test_a_borrowed_text_replaces_all_and_a_title_only_itself(lent: dict[str, str], shown: tuple[Any, ...]) -> None:
    own = {"title": "own", "text": "own words", "language": "en"}
    pages = table_of([{"url": "http://a.example/", **own}, {"url": "http://b.example/", **own}], PAGES)
    content = pa.Table.from_pylist([{"url": "http://b.example/", **lent}], schema=borrowed.BORROWED_CONTENT_SCHEMA)
    found = borrowed.with_borrowed(pages, content).to_pylist()
    names = ("title", "text", "language")
    assert [tuple(row[name] for name in names) for row in found] == [("own", "own words", "en"), shown]
