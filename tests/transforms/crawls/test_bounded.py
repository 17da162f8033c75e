"""Pages that take too long are rejected, and reading goes on."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from semrank.transforms.crawls import bounded, scrapy, warc
from semrank.transforms.crawls.bounded import APART_BYTES, TOOK_TOO_LONG, UnreadableError, read_page, time_limit
from semrank.transforms.crawls.html import read_html
from semrank.transforms.crawls.pages import CrawlLimits
from semrank.transforms.streams.parameters import ParameterRules, urls_that_lost_parameters
from tests.support.crawls import http, stream, together
from tests.support.crawls import warc as record

ROOT = Path(__file__).resolve().parents[3]
URL = "http://example.com/page"
LARGE = (
    b"<title>T</title><base href=/b/><p>words</p>" + b"<a href='x?a=1' rel=nofollow>on \xf0\x9f\x98\x80</a>" * 20_000
)


@pytest.fixture(autouse=True)
def no_helper_is_left() -> object:
    yield
    bounded._helper.close()


def test_large_pages_are_read_as_small_ones_are() -> None:
    assert len(LARGE) > APART_BYTES
    options = {
        "url": URL,
        "robots": "noarchive\nbot: nofollow",
        "refresh": "0;/r",
        "robots_name": "bot",
        "max_links": 10,
        "rules": ParameterRules.of((), ("a",)),
    }
    counts = [urls_that_lost_parameters()]
    apart = read_page(LARGE, **options)  # type: ignore[arg-type]
    counts.append(urls_that_lost_parameters())
    here = read_html(LARGE, **options)  # type: ignore[arg-type]
    counts.append(urls_that_lost_parameters())
    assert counts[2] - counts[1] == counts[1] - counts[0] > 0
    assert (apart.title, apart.text, apart.language) == (here.title, here.text, here.language)
    assert apart.links.state() == here.links.state()
    assert (apart.links.nofollow, apart.links.targets) == (True, ["http://example.com/b/x"] * 10)


def test_compiled_code_is_ended_and_reading_goes_on() -> None:
    begin = time.monotonic()
    with pytest.raises(UnreadableError) as caught:
        read_page(LARGE * 8, seconds=0.01, url=URL)
    assert (caught.value.reason, time.monotonic() - begin < 30) == (TOOK_TOO_LONG, True)
    assert read_page(LARGE, url=URL).title == "T"


ASKING = f"""
from semrank.transforms.crawls import bounded
page = b"<a href=x>words</a>" * 100_000
bounded.read_page(page, url={URL!r})
print("asking", flush=True)
while True:
    bounded.read_page(page, url={URL!r})
"""


@pytest.mark.parametrize("seconds", [0.1, 0.3])
def test_the_helper_of_a_killed_process_ends_without_a_word(seconds: float) -> None:
    asking = [sys.executable, "-c", ASKING]
    with subprocess.Popen(asking, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"asking\n"
        time.sleep(seconds)
        program.kill()
        # The helper holds the other end of the pipe, so this waits for its end as well.
        assert program.communicate(timeout=30)[1] == b""


def test_a_crash_of_the_parser_costs_one_page() -> None:
    process = bounded._helper._running()
    process.kill()
    process.wait()
    with pytest.raises(UnreadableError) as caught:
        read_page(LARGE, url=URL)
    assert caught.value.reason == bounded.CRASHED
    assert read_page(LARGE, url=URL).title == "T"


def test_small_records_have_the_limit_too() -> None:
    def work() -> None:
        with time_limit(0.01):
            begin = time.thread_time()
            while time.thread_time() - begin < 0.02:
                pass

    with pytest.raises(UnreadableError):
        work()
    with time_limit(60):
        pass


@pytest.mark.parametrize("body", [b"<p>" + b"words " * 100, LARGE * 2], ids=["small", "large"])
def test_records_that_take_too_long_are_rejects(body: bytes) -> None:
    limits = CrawlLimits(record_seconds=1e-6)
    found = together(
        warc.read(stream(record(http(body), URL) + record(http(b"", "404 Gone"))), source="f", limits=limits)
    )
    assert found["rejected"] == {TOOK_TOO_LONG: 1}
    assert [row["reason"] for row in found["rejects"]] == [TOOK_TOO_LONG]
    assert URL in found["rejects"][0]["record"]
    assert (found["records"], found["used"]) == (2, 1)


def test_items_of_scrapy_have_the_limit_too() -> None:
    item = b'{"url": "http://example.com/", "html": "<p>words</p>"}\n'
    found = together(scrapy.read(stream(item * 2), source="f", limits=CrawlLimits(record_seconds=1e-9)))
    assert found["rejected"] == {TOOK_TOO_LONG: 2}
