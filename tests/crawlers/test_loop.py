"""The loop closed: Scrapy fetches an exported frontier, what it wrote is ingested and ranked, and so on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from semrank.pipelines.cli import main
from semrank.pipelines.sample_server import SampleServer
from semrank.transforms.samples.sample_web import SEED_TOPIC
from tests.crawlers.scrapy_crawl import crawl
from tests.support.snapshots import read_rows

pytest.importorskip("scrapy")
pytest.importorskip("warcio")

ROUNDS = 4
BUDGET = 12
"""URLs a round; four rounds can't have all of the topic's 56 pages."""


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("loop") / "web"
    assert main(["sample", "--output", str(folder), "--quiet"]) == 0
    return folder


@pytest.fixture(scope="module")
def relevant(web: Path) -> set[str]:
    return {row["url"] for row in pq.read_table(web / "topics.parquet").to_pylist() if row["topic"] == SEED_TOPIC}


def seeds(web: Path) -> list[str]:
    return [line for line in (web / "seeds.txt").read_text().splitlines() if not line.startswith("#")]


def close_loop(
    folder: Path, web: Path, proxy: str, choose: Callable[[int, Path], Path], *, rounds: int = ROUNDS
) -> list[str]:
    """Crawls the seeds and then what `choose` makes a list of, round by round.

    Args:
        folder: where everything is written.
        web: the sample, of which the seeds and the click log are used.
        proxy: where the sample is served.
        choose: round number and snapshot of all crawled so far -> the file to crawl next.
        rounds: how often.

    Returns:
        The URLs chosen, in the order of crawling.
    """
    folder.mkdir()
    crawl(web / "seeds.txt", folder / "crawl-0000.warc.gz", proxy)
    chosen: list[str] = []
    for number in range(rounds):
        snapshot = folder / f"snapshot-{number:04d}"
        sources = ["--warc", f"{folder}/*.warc.gz", "--clicks", f"{web}/clicks/*"]
        assert main(["ingest", *sources, "--output", str(snapshot), "--quiet"]) == 0
        frontier = choose(number, snapshot)
        urls = [json.loads(line)["url"] if line.startswith("{") else line for line in frontier.read_text().splitlines()]
        warc = folder / f"crawl-{number + 1:04d}.warc.gz"
        crawl(frontier, warc, proxy)
        assert not set(urls) & set(chosen)
        chosen += urls
    return chosen


def test_harvest_is_above_breadth_firsts(
    web: Path, relevant: set[str], sample_web: SampleServer, tmp_path: Path
) -> None:
    def best(number: int, snapshot: Path) -> Path:
        ranked, frontier = tmp_path / f"round-{number:04d}", tmp_path / f"frontier-{number:04d}.jsonl"
        start = ["--previous", str(tmp_path / f"round-{number - 1:04d}")]
        if not number:
            start = ["--seeds", str(web / "seeds.txt")]
        limits = ["--max-urls", str(BUDGET), "--output", str(ranked), "--quiet"]
        assert main(["rank", "--snapshot", str(snapshot), *start, *limits]) == 0
        assert main(["export", "--round", str(ranked), "--format", "scrapy", "--output", str(frontier)]) == 0
        return frontier

    found: dict[str, None] = dict.fromkeys(seeds(web))
    waiting = list(found)
    crawled = set(found)

    def first(number: int, snapshot: Path) -> Path:
        """What was found first and not crawled yet."""
        links: dict[str, list[str]] = {}
        for row in read_rows(snapshot / "links"):
            if not row["nofollow"]:
                links.setdefault(row["source_url"], []).append(row["target_url"])
        for source in waiting:
            found.update(dict.fromkeys(links.get(source, [])))
        waiting[:] = [url for url in found if url not in crawled][:BUDGET]
        crawled.update(waiting)
        frontier = tmp_path / f"breadth-first-{number:04d}.txt"
        frontier.write_text("".join(f"{url}\n" for url in waiting))
        return frontier

    ranked = close_loop(tmp_path / "ranked", web, sample_web.url, best)
    breadth_first = close_loop(tmp_path / "breadth-first", web, sample_web.url, first)
    assert len(ranked) <= len(breadth_first) == ROUNDS * BUDGET
    harvest, other = (sum(url in relevant for url in urls) / len(urls) for urls in (ranked, breadth_first))
    print(f"harvest {harvest:.3f} of {len(ranked)}, breadth-first {other:.3f} of {len(breadth_first)}")
    assert harvest > other
    assert len(set(ranked) & relevant) > len(set(breadth_first) & relevant)


def test_what_was_chosen_is_in_the_next_snapshot(web: Path, sample_web: SampleServer, tmp_path: Path) -> None:
    """A page fetched by Scrapy is read as it was served: its links are those of the sample's own WARC files."""
    full = tmp_path / "full"
    assert main(["ingest", "--warc", f"{web}/warc/*", "--output", str(full), "--quiet"]) == 0
    captured = {row["url"]: row for row in read_rows(full / "pages") if row["status"] == 200}
    pages = sorted(captured)
    frontier = tmp_path / "frontier.txt"
    frontier.write_text("".join(f"{url}\n" for url in pages))
    crawl(frontier, tmp_path / "crawl.warc.gz", sample_web.url)
    assert not (tmp_path / "crawl.warc.gz.open").exists()
    again = tmp_path / "again"
    assert main(["ingest", "--warc", f"{tmp_path}/crawl.warc.gz", "--output", str(again), "--quiet"]) == 0
    found = {row["url"]: row for row in read_rows(again / "pages")}
    assert set(pages) <= set(found)
    for url in pages:
        assert (found[url]["title"], found[url]["text"]) == (captured[url]["title"], captured[url]["text"])
        assert found[url]["content_digest"] == captured[url]["content_digest"]
    assert read_rows(again / "rejects") == []
