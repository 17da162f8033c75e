"""Manuals in a folder: addresses, links, sections; unusable folders and files."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from semrank.schemas.errors import InputError
from semrank.transforms.samples.manuals import BASE, ManualFiles, read_manual, sections

LONG = "A page about {}, which has as many words as a main text needs to be taken for one by the reader of pages. "


def page(name: str, *links: str, head: str = "") -> str:
    anchors = "".join(f'<li><a href="{link}">to {link}</a></li>' for link in links)
    text = LONG.format(name) * 3
    return f"<html lang=en><head><title>{name}</title>{head}</head><body><ul>{anchors}</ul><p>{text}</p></body></html>"


FILES = {
    "index.html": page("start", "big-doc/usr/share/html/index.html", "small/"),
    "big-doc/usr/share/html/index.html": page("big", "net/tcp.html", "net/udp.html#top", "../html/fs/ext%204.HTML"),
    "big-doc/usr/share/html/net/tcp.html": page("tcp", "udp.html", "gone.html", "https://www.example.org/net"),
    "big-doc/usr/share/html/net/udp.html": page(
        "udp", "../fs/", head='<link rel=canonical href="https://big.example/net/udp.html">'
    ),
    "big-doc/usr/share/html/net/wifi/mac.html": page("mac", "../../../../../../small/index.html"),
    "big-doc/usr/share/html/fs/ext 4.HTML": page("ext 4", "index.html"),
    "big-doc/usr/share/html/fs/index.html": page("file systems"),
    "big-doc/usr/share/html/fs/notes.txt": "no page",
    "small/index.html": page("small", "../index.html", "/big-doc/usr/share/html/net/tcp.html"),
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / "manuals" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return tmp_path / "manuals"


def tables(files: ManualFiles) -> dict[str, pa.Table]:
    found: dict[str, list[pa.Table]] = {}
    for manual in files.manuals:
        for batch in read_manual(files, manual):
            for name, table in batch.tables.items():
                found.setdefault(name, []).append(table)
    return {name: pa.concat_tables(parts) for name, parts in found.items()}


def names_by_url(files: ManualFiles) -> dict[str, str]:
    return {url: path.rpartition("html/")[2] or path for path, url in files.urls.items()}


def test_addresses_are_numbers(source: Path) -> None:
    files = ManualFiles.of(source)
    assert len(files.urls) == len(FILES) - 1
    assert all(re.fullmatch(re.escape(BASE) + "[0-7]", url) for url in files.urls.values())
    # Not in the order of the paths, which would put the pages of a section side by side.
    assert [files.urls[path] for path in sorted(files.urls)] != sorted(files.urls.values())
    assert files.urls == ManualFiles.of(source).urls


def test_pages_and_links(source: Path) -> None:
    files = ManualFiles.of(source)
    found, names = tables(files), names_by_url(files)
    assert sorted(names[url] for url in found["pages"]["url"].to_pylist()) == sorted(names.values())
    titles = {names[row["url"]]: row["title"] for row in found["pages"].to_pylist()}
    assert titles["net/tcp.html"] == "tcp"
    assert all(row["language"] == "en" and "main text" in row["text"] for row in found["pages"].to_pylist())
    links = {
        (names[row["source_url"]], names.get(row["target_url"], row["target_url"]))
        for row in found["links"].to_pylist()
    }
    assert links == {
        ("index.html", "big-doc/usr/share/html/index.html".rpartition("html/")[2]),
        ("index.html", "small/index.html"),
        ("small/index.html", "index.html"),
        ("small/index.html", "net/tcp.html"),
        ("index.html", "net/tcp.html"),
        ("index.html", "net/udp.html"),
        ("index.html", "fs/ext 4.HTML"),
        ("net/tcp.html", "net/udp.html"),
        ("net/tcp.html", "https://www.example.org/net"),
        ("net/udp.html", "fs/index.html"),
        ("net/wifi/mac.html", "small/index.html"),
        ("fs/ext 4.HTML", "fs/index.html"),
    }
    # Navigation stays as it is; what a page calls itself elsewhere would name its path.
    assert "to udp.html" in found["links"]["anchor_text"].to_pylist()
    assert "aliases" not in found
    counted = sum(
        batch.counters.get("links-to-nothing", 0) for manual in files.manuals for batch in read_manual(files, manual)
    )
    assert counted == 1


def test_topics_are_sections(source: Path) -> None:
    files = ManualFiles.of(source)
    names = names_by_url(files)
    topics: dict[str, set[str]] = {}
    for row in files.topics().to_pylist():
        topics.setdefault(row["topic"], set()).add(names[row["url"]])
    net = {"net/tcp.html", "net/udp.html", "net/wifi/mac.html"}
    fs = {"fs/ext 4.HTML", "fs/index.html"}
    assert topics == {
        "big-doc": {*net, *fs, "index.html"},
        "big-doc.net": net,
        "big-doc.net.wifi": {"net/wifi/mac.html"},
        "big-doc.fs": fs,
        "small": {"small/index.html"},
    }


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (("a.html",), [()]),
        (("m/a.html",), [("m",)]),
        (("m/x/y/a.html", "m/x/y/z/b.html"), [("m",), ("m", "z")]),
        (("m/x/a.html", "m/y/b.html"), [("m", "x"), ("m", "y")]),
        (("m/x/y/a.html", "m/z/b.html"), [("m", "x"), ("m", "z")]),
        (("m/i.html", "m/x/a.html"), [("m",), ("m", "x")]),
    ],
)
def test_folders_that_hold_one_other_folder(paths: tuple[str, ...], expected: list[tuple[str, ...]]) -> None:
    assert [sections(paths)[path] for path in paths] == expected


def test_symbolic_links_lead_to_pages_once(source: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.html").write_text(page("outside"), encoding="utf-8")
    (source / "small" / "again.html").symlink_to("index.html")
    (source / "net").symlink_to("big-doc/usr/share/html/net")
    (source / "outside.html").symlink_to(tmp_path / "outside.html")
    (source / "loop.html").symlink_to("loop.html")
    (source / "small" / "more.html").write_text(
        page("more", "again.html", "../net/tcp.html", "../outside.html"), encoding="utf-8"
    )
    files = ManualFiles.of(source)
    assert len(files.paths) == len(FILES)
    found, names = tables(files), names_by_url(files)
    more = [
        names[row["target_url"]] for row in found["links"].to_pylist() if names[row["source_url"]] == "small/more.html"
    ]
    assert more == ["small/index.html", "net/tcp.html"]


def test_files_that_cannot_be_read_are_rejects(source: Path) -> None:
    files = ManualFiles.of(source)
    (source / "small" / "index.html").unlink()
    (batch,) = read_manual(files, "small")
    assert (batch.records, batch.rejected) == (1, {"unreadable": 1})
    assert batch.tables["rejects"]["record"].to_pylist() == ["small/index.html"]


def test_any_bytes_are_a_page(source: Path) -> None:
    (source / "odd").mkdir()
    (source / "odd" / "\x1b$B.html").write_bytes(bytes(range(256)) * 9)
    (source / "odd" / "empty.htm").write_bytes(b"")
    (batch,) = read_manual(ManualFiles.of(source), "odd")
    assert (batch.records, batch.used) == (2, 2)


def test_deep_sections_count_for_those_above(source: Path) -> None:
    deep = source.joinpath("deep", *["x" * 90] * 3)
    deep.mkdir(parents=True)
    for folder in (deep, *deep.parents[:3]):
        (folder / "a.html").write_text(page("deep"), encoding="utf-8")
    topics = set(ManualFiles.of(source).topics()["topic"].to_pylist())
    assert {name for name in topics if name.startswith("deep")} == {
        "deep",
        "deep." + "x" * 90,
        "deep." + ".".join(["x" * 90] * 2),
    }


@pytest.mark.parametrize(
    ("name", "message"), [("nowhere", "no such folder"), ("empty", "holds no .html, .htm, .xhtml")]
)
def test_folders_that_cannot_be_used(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "notes.txt").write_text("no page", encoding="utf-8")
    with pytest.raises(InputError, match=message):
        ManualFiles.of(tmp_path / name)
