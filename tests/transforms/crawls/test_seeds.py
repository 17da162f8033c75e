"""Lines of seeds files, and that what the exports write is read back."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest

from semrank.pipelines.queue import queue_from_seeds
from semrank.schemas.errors import InputError
from semrank.transforms.crawls.seeds import read_seeds
from semrank.transforms.frontier.exports import targets
from semrank.transforms.frontier.exports.rows import EXPORTED

URL = "https://www.example.org/"


@pytest.mark.parametrize(
    ("line", "url", "reason"),
    [
        (URL, URL, None),
        (f"\t{URL}  ", URL, None),
        (f"{URL}  # why", URL, None),
        (f"{URL}\t#why", URL, None),
        (f"{URL}#top", f"{URL}#top", None),
        (f"{URL}\tnutch.score=2.5\tnutch.fetchInterval=86400", URL, None),
        (f"{URL}\tkey=a value of several words", URL, None),
        (f"{URL} \t key=value", URL, None),
        (f"{URL} tag=x", URL, None),
        (f"{URL} 12", URL, None),
        (f"F+ {URL} L {URL}", URL, None),
        (f'{{"url": "{URL}", "meta": {{}}}}', URL, None),
        (f'{{"known": {{"info": {{"url": "{URL}"}}}}}}', URL, None),
        (f'{{"discovered": {{"info": {{"url": "{URL}"}}}}}}', URL, None),
        ('{"known": 3}', None, "url-missing"),
        ('{"url": "https://a.example/\\ud83d"}', "https://a.example/\ufffd", None),
        ("{", None, "json-invalid"),
        (f"{URL}a page", None, "layout-unknown"),
        (f"{URL}\tpage", None, "layout-unknown"),
        (f"{URL} {URL}", None, "layout-unknown"),
        (f"{URL},1.0", None, "layout-unknown"),
        (f"{URL},{URL}", None, "layout-unknown"),
        (f"{URL};https://example.com/", None, "layout-unknown"),
        (f"{URL}routes;0.5", None, "layout-unknown"),
        (f"{URL}b,1.0\tkey=value", f"{URL}b,1.0", None),
        (f"{URL}page,2", f"{URL}page,2", None),
        (f"{URL}a,b.html", f"{URL}a,b.html", None),
    ],
)
def test_what_a_line_holds(line: str, url: str | None, reason: str | None) -> None:
    (seed,) = read_seeds(line)
    assert (seed.url, seed.reason) == (url, reason)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_marks_and_comments(end: str) -> None:
    text = "\ufeff" + end.join([URL, "", "# comment", "  ", f"{URL}b # c"])
    assert [seed.url for seed in read_seeds(text)] == [URL, f"{URL}b"]


@pytest.mark.parametrize("blank", [" ", "\t"])
def test_a_long_line_of_blanks_takes_linear_time(blank: str) -> None:
    blanks = blank * 1_000_000
    begin = time.process_time()
    assert [seed.url for seed in read_seeds(f"{URL}{blanks}\n{URL}b{blanks}# c")] == [URL, f"{URL}b"]
    # What looks from each blank to the end of the line takes minutes.
    assert time.process_time() - begin < 2


NAMES = ("seeds.txt", "a.seeds", "a.schedule", "a.force", "a.precedence")


@pytest.mark.parametrize(
    ("name", "file"),
    [
        *((name, "seeds.txt") for name in ("nutch", "stormcrawler", "urlfrontier", "scrapy", "urls")),
        *(("heritrix", file) for file in NAMES[1:]),
    ],
)
def test_lines_that_exports_write_are_read_back(tmp_path: Path, name: str, file: str) -> None:
    urls = [URL, f"{URL}b?c=d&e=%20f", f"{URL}%7B%7D,2"]
    rows = [
        {
            **dict.fromkeys(EXPORTED.schema.names),
            **{"rank": rank, "url": url, "host": "www.example.org", "score": 0.5, "fetched": False},
        }
        for rank, url in enumerate(urls, 1)
    ]
    table = pa.Table.from_pylist(rows, schema=EXPORTED.schema)
    target = targets.target(name, file, total=len(urls))
    path = tmp_path / file
    path.write_text("".join(f"{line}\n" for part in target.lines(iter([table])) for line in part.to_pylist()))
    queue = queue_from_seeds(str(path))
    assert sorted(queue.urls["url"].to_pylist()) == sorted(urls)
    assert queue.rejects.num_rows == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no URL, expected"),
        (b"# nothing\n", "holds no URL, expected"),
        (b'"https://www.example.org/"\n', "found no URL in 1 line, the first is '\"https:"),
        (b"<https://www.example.org/>\n", r"found no URL in 1 line, .* \(scheme-missing\)"),
        (b"www.example.org\n", r"found no URL in 1 line, .* \(scheme-missing\)"),
        (URL.encode("utf-16"), "is UTF-16, expected UTF-8 text"),
        (b"\x1f\x8b\x08 and no more", "compressed data"),
    ],
)
def test_files_without_a_seed(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "seeds.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        queue_from_seeds(str(path))


def test_a_url_in_the_place_of_a_file() -> None:
    with pytest.raises(InputError, match=r"^--seeds https://a.example/: found a URL, expected a file"):
        queue_from_seeds("https://a.example/")


@pytest.mark.parametrize("separator", ["\u2028", "\x85", "\x0c", "\x1e"])
def test_only_ends_of_lines_part_seeds(separator: str) -> None:
    text = f"{URL}a{separator}b\r\n{URL}c\r{URL}d\n{URL}e"
    assert [seed.url for seed in read_seeds(text)] == [f"{URL}{rest}" for rest in (f"a{separator}b", "c", "d", "e")]
