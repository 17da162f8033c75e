"""Scrapy fetches exported frontiers."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType

from semrank.pipelines.cli import main
from semrank.pipelines.sample_server import SampleServer
from semrank.transforms.samples.sample_web import sample_pages
from tests.crawlers.scrapy_crawl import PROJECT, crawl
from tests.support.frontiers import frontier, write_round

scrapy = pytest.importorskip("scrapy")
get_crawler = pytest.importorskip("scrapy.utils.test").get_crawler
pytest.importorskip("warcio")

CRAWLERS_PAGE = Path(__file__).resolve().parents[2] / "docs" / "crawlers.md"
URLS = [page.url for page in sample_pages() if page.url.endswith(".html") and page.status == 200][:40:2]


def fetched(warc: Path) -> list[tuple[str, int, bytes]]:
    """URL, status and body of each response, without robots files, in the order of fetching."""
    with warc.open("rb") as stream:
        records = [
            (str(record.headers["WARC-Target-URI"]), record.http_headers.status_code or 0, bytes(record.reader.read()))
            for record in ArchiveIterator(stream, record_types=WarcRecordType.response, parse_http=True)
        ]
    return [record for record in records if not record[0].endswith("/robots.txt")]


@pytest.mark.parametrize("name", ["scrapy frontier.jsonl", "scrapy frontier.jsonl.gz", "urls frontier.txt"])
def test_fetches_the_list_in_its_order(name: str, sample_web: SampleServer, tmp_path: Path) -> None:
    form, file_name = name.split()
    # One host, as Scrapy fetches from different hosts side by side.
    urls = [url for url in URLS if url.startswith("https://astronomy.example/")]
    assert len(urls) > 10
    folder = write_round(tmp_path / "round", frontier(urls, selected=[place != 3 for place in range(len(urls))]))
    exported = tmp_path / file_name
    assert main(["export", "--round", folder, "--format", form, "--output", str(exported), "--quiet"]) == 0
    crawl(exported, tmp_path / "crawl.warc.gz", sample_web.url)
    bodies = {page.url: page.body for page in sample_pages()}
    expected = [url for place, url in enumerate(urls) if place != 3]
    assert fetched(tmp_path / "crawl.warc.gz") == [(url, 200, bodies[url]) for url in expected]


def test_no_request_overtakes_those_that_wait_for_robots(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that comes in when the rules have arrived, before those that wait for them go on."""
    monkeypatch.syspath_prepend(str(PROJECT))
    robots = import_module("frontier_crawl.robots")
    done: list[str] = []

    async def requests() -> None:
        rules = asyncio.Event()

        async def robot_parser(*_: Any) -> None:
            await rules.wait()

        monkeypatch.setattr(robots.RobotsTxtMiddleware, "robot_parser", robot_parser)
        settings = {"ROBOTSTXT_OBEY": True, "USER_AGENT": "robot"}
        middleware = robots.OrderedRobotsMiddleware(get_crawler(settings_dict=settings))

        async def request(path: str) -> None:
            await middleware.process_request(scrapy.Request(f"https://a.example/{path}"))
            done.append(path)

        waiting = [asyncio.create_task(request(path)) for path in ("first", "second")]
        await asyncio.sleep(0)
        rules.set()
        await request("third")
        await asyncio.gather(*waiting)

    asyncio.run(requests())
    assert done == ["first", "second", "third"]


def test_every_answer_is_kept(sample_web: SampleServer, tmp_path: Path) -> None:
    """Redirects and what they lead to, missing pages, and files that are no HTML."""
    urls = [
        "http://birds.example/",
        "https://baking.example/recipes/seed-cake.html",
        "https://geology.example/maps/field-map.pdf",
    ]
    folder = write_round(tmp_path / "round", frontier(urls))
    exported = tmp_path / "frontier.jsonl"
    assert main(["export", "--round", folder, "--format", "scrapy", "--output", str(exported), "--quiet"]) == 0
    crawl(exported, tmp_path / "crawl.warc", sample_web.url)
    answers = {page.url: (page.url, page.status, page.body) for page in sample_pages()}
    expected = [answers[url] for url in [*urls, "https://birds.example/"]]
    assert sorted(fetched(tmp_path / "crawl.warc")) == sorted(expected)


def test_scrapy_redis_makes_the_same_requests(tmp_path: Path) -> None:
    """A spider of its kind as the documentation shows it, on the lines as they come out of a Redis list."""
    spiders = pytest.importorskip("scrapy_redis.spiders")
    found = re.search(r"class FrontierSpider\(RedisSpider\):.*?(?=```)", CRAWLERS_PAGE.read_text(), re.DOTALL)
    assert found is not None
    names = {"RedisSpider": spiders.RedisSpider, "json": json, "scrapy": scrapy}
    exec(found[0], names)
    urls = ["https://a.example/?q=1&r=%22,", "https://a.example/b"]
    folder = write_round(tmp_path / "round", frontier(urls, [0.75, 0.5]))
    exported = tmp_path / "frontier.jsonl.gz"
    assert main(["export", "--round", folder, "--format", "scrapy", "--output", str(exported), "--quiet"]) == 0
    spider = names["FrontierSpider"]()
    lines = gzip.decompress(exported.read_bytes()).splitlines()
    requests = [spider.make_request_from_data(line) for line in lines]
    assert [request.url for request in requests] == urls
    assert [request.method for request in requests] == ["GET", "GET"]
    assert [request.body for request in requests] == [b"", b""]
    assert [request.priority for request in requests] == [-1, -2]
    assert [request.meta["semrank_score"] for request in requests] == [0.75, 0.5]
    assert [request.meta for request in requests] == [json.loads(line)["meta"] for line in lines]
