from __future__ import annotations

import gzip
import json
import os
from contextlib import suppress
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semrank.schemas.errors import InputError
from semrank.transforms.crawls.formats import FORMATS, expand, listed_paths
from semrank.transforms.crawls.pages import CrawlLimits
from tests.support.crawls import (
    HERITRIX,
    NUTCH_HEADER,
    WAT_HTML,
    envelope,
    http,
    members,
    nutch_json,
    nutch_line,
    stream,
    together,
    warc,
)


def parquet(columns: dict[str, list[Any]], rows: int) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink, row_group_size=rows)
    return bytes(sink.getvalue())


def lines(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


URLS = [f"http://example.com/{number}" for number in range(40)]
CLICKS = [{"user_id": "u", "query": "q", "clicked_at": f"2024-03-01T12:00:{n:02}Z", "url": URLS[n]} for n in range(40)]
PAGES = [{"url": url, "text": "words"} for url in URLS] + [{"url": "bad"}]
INDEX = {
    "url": URLS,
    "fetch_time": pa.array([1_700_000_000_000] * 40, pa.timestamp("ms")),
    "fetch_status": pa.array([200] * 40, pa.int16()),
}

FILES = {
    "warc": members(warc(http(), url) for url in URLS) + b"junk",
    "wat": b"".join(envelope(url=url, html=WAT_HTML) for url in URLS),
    "wet": members(warc(b"title\nwords", url, kind="conversion") for url in URLS),
    "cc-index": parquet(INDEX, 7),
    "nutch": "\n".join([NUTCH_HEADER, *map(nutch_line, URLS), nutch_json(), "odd"]).encode(),
    "heritrix": "\n".join(HERITRIX).encode(),
    "scrapy": lines([{"url": url, "links": ["/x"]} for url in URLS]),
    "pages": lines(PAGES),
    "links": parquet({"source_url": URLS, "target_url": URLS}, 11),
    "clicks": lines(CLICKS),
}


def read(name: str, start: int = 0, end: int | None = None, content: bytes | None = None) -> dict[str, Any]:
    chosen = stream(FILES[name] if content is None else content)
    return together(FORMATS[name].read(chosen, source="f", start=start, end=end, limits=CrawlLimits()))


@cache
def whole_file(name: str) -> dict[str, Any]:
    return read(name)


def test_every_format_has_a_file_here() -> None:
    assert set(FILES) == set(FORMATS)


@pytest.mark.parametrize("name", list(FILES))
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_ranges_give_every_record_once(name: str, data: st.DataObject) -> None:
    size = len(FILES[name])
    cuts = sorted(data.draw(st.sets(st.integers(1, size - 1), max_size=3)))
    parts = [read(name, start, end) for start, end in pairwise([0, *cuts, size])]
    whole = whole_file(name)
    for key in ("records", "used"):
        assert sum(part[key] for part in parts) == whole[key]
    for key in ("rejected", "ignored", "counters"):
        assert sum((part[key] for part in parts), start=whole[key].__class__()) == whole[key]
    for key in ("pages", "links", "clicks", "aliases", "history", "rejects"):
        assert [row for part in parts for row in part[key]] == whole[key]


@pytest.mark.parametrize("name", ["nutch", "heritrix", "scrapy", "pages", "clicks"])
@pytest.mark.parametrize("end", [b"\r", b"\r\n"])
def test_lines_may_end_in_carriage_returns(name: str, end: bytes) -> None:
    assert read(name, content=FILES[name].replace(b"\n", end)) == read(name)


@pytest.mark.parametrize("name", list(FILES))
@settings(max_examples=40, deadline=None)
@given(
    edits=st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 30), st.binary(max_size=20)), max_size=4),
    kept=st.integers(0, 20_000),
)
def test_damage_never_raises_but_for_the_user(name: str, edits: list[tuple[int, int, bytes]], kept: int) -> None:
    content = FILES[name]
    for at, removed, inserted in edits:
        at %= len(content)
        content = content[:at] + inserted + content[at + removed :]
    content = content[: max(kept, len(content) // 2)]
    with suppress(InputError):
        together(FORMATS[name].read(stream(content), source="f", start=0, end=None, limits=CrawlLimits()))


def test_checks_of_files(tmp_path: Path) -> None:
    for name, content in FILES.items():
        path = tmp_path / name
        path.write_bytes(content)
        FORMATS[name].check(str(path))
        assert FORMATS[name].splittable(str(path))
    odd = tmp_path / "odd"
    odd.write_bytes(b"%PDF-1.4 neither of them")
    for name in ("warc", "wat", "wet", "cc-index", "pages", "links", "clicks"):
        with pytest.raises(InputError, match="odd"):
            FORMATS[name].check(str(odd))
    packed = tmp_path / "pages.jsonl.gz"
    packed.write_bytes(gzip.compress(FILES["pages"]))
    FORMATS["pages"].check(str(packed))
    assert not FORMATS["pages"].splittable(str(packed))


def test_globs_of_any_folders_and_names_with_brackets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in Bash with `globstar` and Python's `glob`, `**/` stands for no folder, too."""
    for name in ("a.warc", "[b].warc", "in/c.warc", "in/deep/d.warc", "in/e.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_bytes(b"")
    every = ["[b].warc", "a.warc", "in/c.warc", "in/deep/d.warc"]
    assert expand("--warc", f"{tmp_path}/**/*.warc") == [f"{tmp_path}/{name}" for name in every]
    assert expand("--warc", f"{tmp_path}/**/in/**/d.warc") == [f"{tmp_path}/in/deep/d.warc"]
    assert expand("--warc", f"{tmp_path}/[b].warc") == [f"{tmp_path}/[b].warc"]
    assert expand("--warc", f"{tmp_path}/[a-z].warc") == [f"{tmp_path}/a.warc"]
    monkeypatch.chdir(tmp_path)
    assert expand("--warc", "**/*.warc") == every
    assert expand("--warc", "[b].warc") == ["[b].warc"]


def test_pipes_are_the_users_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.warc")
    with pytest.raises(InputError, match=r"^--warc .*/a\.warc: is a pipe, expected a file$"):
        expand("--warc", f"{tmp_path}/a.warc")


def test_globs_folders_and_lists(tmp_path: Path) -> None:
    for name in ("b.warc", "a.warc", "c.txt"):
        (tmp_path / name).write_bytes(b"")
    assert expand("--warc", f"{tmp_path}/*.warc") == [f"{tmp_path}/a.warc", f"{tmp_path}/b.warc"]
    assert len(expand("--warc", str(tmp_path))) == 3
    assert expand("--warc", "https://example.com/a.warc.gz") == ["https://example.com/a.warc.gz"]
    with pytest.raises(InputError, match=r"^--warc .*/\*\.zip: names no file"):
        expand("--warc", f"{tmp_path}/*.zip")
    listing = tmp_path / "warc.paths.gz"
    listing.write_bytes(gzip.compress(b"crawl-data/1.warc.gz\n\n crawl-data/2.warc.gz\n"))
    assert listed_paths(str(listing), None) == ["crawl-data/1.warc.gz", "crawl-data/2.warc.gz"]
    assert listed_paths(str(listing), "https://data.example/")[0] == "https://data.example/crawl-data/1.warc.gz"
    listing.write_bytes(b"https://other.example/1.warc.gz\n/2.warc.gz\n")
    assert listed_paths(str(listing), "https://data.example") == [
        "https://other.example/1.warc.gz",
        "https://data.example/2.warc.gz",
    ]
    listing.write_bytes(b"\xef\xbb\xbfcrawl-data/1.warc.gz\r\n")
    assert listed_paths(str(listing), None) == ["crawl-data/1.warc.gz"]
    listing.write_bytes("crawl-data/1.warc.gz".encode("utf-16"))
    with pytest.raises(InputError, match="is UTF-16, expected UTF-8 text with one path a line"):
        listed_paths(str(listing), None)
    for damaged in (b"\x1f\x8b\x08 no gzip", gzip.compress(b"crawl-data/1.warc.gz\n" * 99)[:-9]):
        listing.write_bytes(damaged)
        with pytest.raises(InputError, match=r"warc\.paths\.gz: can't be read: compressed data"):
            listed_paths(str(listing), None)
    with pytest.raises(InputError, match="lists no path"):
        listed_paths(str(tmp_path / "c.txt"), None)
