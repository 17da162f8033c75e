"""SemRank in memory against the command `semrank rank`, and what a crawl remembers of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from semrank.pipelines.cli import main
from semrank.pipelines.config import semrank_config
from semrank.pipelines.semrank_settings import reading
from semrank.schemas.tables import CLICKS, LINKS, PAGES
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.replay import semrank_local
from semrank.transforms.replay.replay import Moment
from semrank.transforms.replay.semrank_local import ClickLog, SemRankCrawler, SemRankWeb, make_round, score_round
from semrank.transforms.replay.web import Web
from tests.support.p13_web import random_web
from tests.support.sample import ingest_sample
from tests.support.snapshots import read_rows, table_of, write_snapshot

Rows = list[dict[str, Any]]

COMPARED = (
    "score",
    "extension",
    "intension",
    "base_concept",
    "current_concept",
    "base_links",
    "base_clicks",
    "matches",
)


def queue_table(urls: list[str]) -> pa.Table:
    ids = text_ids(pa.array(urls, pa.string()))
    order = np.argsort(ids)
    return pa.table({"url_id": ids[order], "url": pa.array(urls, pa.string()).take(pa.array(order))})


def frontier(folder: Path, pages: Rows, links: Rows, clicks: Rows, queue: list[str]) -> dict[str, dict[str, Any]]:
    """The rows of `semrank rank` by URL."""
    snapshot = write_snapshot(folder / "snapshot", pages, links, clicks)
    (folder / "seeds.txt").write_text("\n".join(queue), encoding="utf-8")
    arguments = ["--snapshot", str(snapshot), "--seeds", str(folder / "seeds.txt"), "--profile", "paper-2013"]
    assert main(["rank", *arguments, "--output", str(folder / "round"), "--quiet"]) == 0
    return {row["url"]: row for row in read_rows(folder / "round" / "frontier")}


def in_memory(pages: Rows, links: Rows, clicks: Rows, queue: list[str], known: list[str]) -> dict[str, dict[str, Any]]:
    """The same rows in memory, from a web of which a crawl knows some pages."""
    web = SemRankWeb.of(table_of(pages, PAGES), table_of(links, LINKS))
    log = ClickLog.of(table_of(clicks, CLICKS))
    urls = queue_table(queue)
    ids = np.sort(text_ids(pa.array(known, pa.string())))
    contexts = make_round(web, log, known=ids, queue=urls, harvested=np.sort(urls["url_id"].to_numpy()))
    return {row["url"]: row for row in score_round(contexts, log).to_pylist()}


def assert_equal(found: dict[str, dict[str, Any]], expected: dict[str, dict[str, Any]]) -> None:
    assert found.keys() == expected.keys()
    for url, row in expected.items():
        assert {name: found[url][name] for name in COMPARED} == {name: row[name] for name in COMPARED}, url


@pytest.mark.parametrize("seed", range(4))
def test_rounds_of_given_keywords(seed: int, tmp_path: Path) -> None:
    pages, links, clicks, queue = random_web(seed)
    expected = frontier(tmp_path, pages, links, clicks, queue)
    assert_equal(in_memory(pages, links, clicks, queue, [page["url"] for page in pages]), expected)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[Rows, Rows, Rows, list[str]]:
    """The sample with its texts, anchors and clicks, and a queue."""
    snapshot = ingest_sample(tmp_path_factory.mktemp("sample"))
    pages, links, clicks = (read_rows(snapshot / name) for name in ("pages", "links", "clicks"))
    return pages, links, clicks, [page["url"] for page in pages[:40:10]]


def test_a_crawl_before_it_fetches(sample: tuple[Rows, Rows, Rows, list[str]], tmp_path: Path) -> None:
    """Frontier mode: the snapshot that the command gets holds nothing but the queue's pages and their links."""
    pages, links, clicks, queue = sample
    fetched = [page for page in pages if page["url"] in queue]
    followed = [link for link in links if link["source_url"] in queue]
    expected = frontier(tmp_path, fetched, followed, clicks, queue)
    assert len(expected) > 3
    assert len({row["score"] for row in expected.values()}) > 3
    assert_equal(in_memory(pages, links, clicks, queue, queue), expected)


def test_a_crawl_that_knows_texts(sample: tuple[Rows, Rows, Rows, list[str]], tmp_path: Path) -> None:
    pages, links, clicks, queue = sample
    expected = frontier(tmp_path, pages, links, clicks, queue)
    assert_equal(in_memory(pages, links, clicks, queue, [page["url"] for page in pages]), expected)


READINGS: list[dict[str, Any]] = [
    {},
    {"base": "seeds", "query_words": False},
    {"log_scope": "topic", "isa_needs_word": True},
    {"base": "seeds", "log_scope": "topic", "isa_needs_word": True, "user_groups": "minhash", "keywords_per_page": 6},
    {"base": "seeds", "keywords": "nouns"},
    {"base": "topic", "isa_needs_word": True},
    {"base": "topic", "keywords": "nouns"},
]


def numbers(everything: Any, urls: list[str]) -> Any:
    """Places of URLs among all, ascending."""
    return np.searchsorted(everything, np.sort(urls)).astype(np.int64)


@pytest.mark.parametrize("options", READINGS, ids=lambda options: " ".join(options) or "paper-2013")
def test_every_round_of_a_crawl(
    options: dict[str, Any], sample: tuple[Rows, Rows, Rows, list[str]], tmp_path: Path
) -> None:
    """Frontier mode, round after round: the command goes on from its own rounds with what the crawl has fetched."""
    config = semrank_config("paper-2013", options)
    chosen = reading(config)
    nouns = config.nouns_only
    given = [f"--{name.replace('_', '-')}={value}" for name, value in options.items() if not isinstance(value, bool)]
    given += [
        f"--{'' if value else 'no-'}{name.replace('_', '-')}"
        for name, value in options.items()
        if value in (True, False)
    ]
    pages, links, clicks, queue = sample
    tables = table_of(pages, PAGES), table_of(links, LINKS), table_of(clicks, CLICKS)
    web = SemRankWeb.of(*tables[:2], nouns=nouns)
    log = ClickLog.of(tables[2], groups=config.user_groups, nouns=nouns)
    everything = np.unique([*(page["url"] for page in pages), *(link["target_url"] for link in links)])
    urls = pa.array(everything)
    crawler = SemRankCrawler(
        web,
        log,
        ids=text_ids(urls),
        urls=urls,
        content_known=False,
        reading=chosen,
        facts=Web.of_tables(*tables, nouns=nouns),
    )
    seeds, harvested = numbers(everything, queue), list(queue)
    (tmp_path / "seeds.txt").write_text("\n".join(queue), encoding="utf-8")
    start = ["--seeds", str(tmp_path / "seeds.txt")]
    for number in range(3):
        snapshot = write_snapshot(
            tmp_path / f"snapshot-{number}",
            [page for page in pages if page["url"] in harvested],
            [link for link in links if link["source_url"] in harvested],
            clicks,
        )
        output = tmp_path / f"round-{number}"
        common = ["--profile", "paper-2013", "--threshold", "0", "--max-urls", "8", "--quiet", *given]
        assert main(["rank", "--snapshot", str(snapshot), *start, "--output", str(output), *common]) == 0
        expected = {row["url"]: row for row in read_rows(output / "frontier")}
        candidates = numbers(everything, list(expected))
        moment = Moment(seeds, numbers(everything, harvested), numbers(everything, queue), candidates, candidates)
        contexts, _ = crawler.look(moment)
        assert_equal({row["url"]: row for row in score_round(contexts, log, chosen).to_pylist()}, expected)
        queue = [url for url, row in expected.items() if row["selected"]]
        assert len(queue) == 8
        harvested += queue
        start = ["--previous", str(output)]


def test_a_candidate_keeps_its_best_score(monkeypatch: pytest.MonkeyPatch) -> None:
    urls = [f"https://a.example/{name}" for name in "abcd"]
    links = [{"source_url": urls[a], "target_url": urls[b]} for a, b in ((0, 1), (0, 2), (1, 2), (1, 3))]
    web = SemRankWeb.of(table_of([{"url": url, "title": url[-1]} for url in urls], PAGES), table_of(links, LINKS))
    log = ClickLog.of(table_of([], CLICKS))
    ids = text_ids(pa.array(urls))
    crawler = SemRankCrawler(web, log, ids=ids, urls=pa.array(urls), content_known=False)
    given = {"b": 0.5, "c": 0.4, "d": 0.3}

    def scores(contexts: Any, *_: Any) -> pa.Table:
        current = contexts.current["url"].to_pylist()
        return pa.table({"url_id": contexts.current["url_id"], "score": [given[url[-1]] for url in current]})

    monkeypatch.setattr(semrank_local, "score_round", scores)

    def moment(harvested: list[int], batch: list[int], candidates: list[int]) -> Moment:
        return Moment(
            np.array([0]), np.array(harvested), np.array(batch), np.array(candidates), np.arange(4, dtype=np.int64)
        )

    contexts, candidates = crawler.look(moment([0], [0], [1, 2]))
    assert sorted(contexts.current["url"].to_pylist()) == urls[1:3]
    assert crawler.scores((contexts, candidates)).tolist() == [0.5, 0.4]
    given.update(c=0.1)
    known = crawler.look(moment([0, 1], [1], [2, 3]))
    assert sorted(known[0].current["url"].to_pylist()) == urls[2:]
    assert crawler.scores(known).tolist() == [0.4, 0.3]
    # What the last batch does not link to keeps what it had.
    known = crawler.look(moment([0, 1, 3], [3], [2]))
    assert known[0].current.num_rows == 0
    assert crawler.scores(known).tolist() == [0.4]
