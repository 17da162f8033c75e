"""Generated tables have the promised shapes, and always the same rows."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks import generate
from benchmarks.generate import ClickLog, Web, page_urls, power_law_ranks, words, write_clicks, write_web
from semrank.schemas.errors import InputError
from semrank.schemas.tables import CLICKS, LINKS, PAGES, TOPICS
from semrank.transforms.streams.urls import canonicalize

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several pieces even for small tables."""
    monkeypatch.setattr(generate, "PIECE_PAGES", 700)
    monkeypatch.setattr(generate, "PIECE_SESSIONS", 500)


def read(folder: Path) -> pa.Table:
    return pq.read_table(folder)


@pytest.mark.parametrize("exponent", [0.5, 0.9, 1.0, 1.5])
def test_ranks_follow_the_law(exponent: float) -> None:
    """The middle of each share of the unit interval falls on the rank that the continuous law's integral gives."""
    count = 1000
    random = (np.arange(100_000) + 0.5) / 100_000
    found = np.bincount(power_law_ranks(random, count, exponent), minlength=count) / 100_000
    edges = np.arange(1, count + 2, dtype=np.float64)
    integral = np.log(edges) if exponent == 1.0 else (edges ** (1 - exponent) - 1) / (1 - exponent)
    expected = np.diff(integral) / integral[-1]
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_ranks_stay_below_their_counts() -> None:
    random = np.array([0.0, np.nextafter(1.0, 0.0), 0.999999])
    assert power_law_ranks(random, np.array([1, 1, 3]), 0.9).tolist()[:2] == [0, 0]
    assert power_law_ranks(random, 5, 1.0).tolist() == [0, 4, 4]


def test_words_differ_and_are_words() -> None:
    made = words(np.arange(200_000))
    assert pc.count_distinct(made).as_py() == 200_000
    assert pc.all(pc.match_substring_regex(made, "^[a-z]{8}$")).as_py()


def test_urls_are_canonical() -> None:
    urls = page_urls(np.arange(50), 7)
    assert canonicalize(urls).urls.equals(urls)


@pytest.mark.parametrize("content", ["keywords", "text"])
def test_a_web(tmp_path: Path, content: str) -> None:
    web = Web(pages=5_000, topics=10, hosts=30, content=content)  # type: ignore[arg-type]
    rows = write_web(tmp_path, web)
    pages, links, topics = (read(tmp_path / name) for name in ("pages", "links", "topics"))
    assert {"pages": pages.num_rows, "links": links.num_rows, "topics": topics.num_rows} == rows
    for table, schema in ((pages, PAGES), (links, LINKS), (topics, TOPICS)):
        assert table.schema.equals(schema.schema)
    assert topics.num_rows == 5_000
    assert 0.45 * 5_000 < pages.num_rows < 0.55 * 5_000
    assert pc.count_distinct(pages["url"]).as_py() == pages.num_rows
    assert set(links["source_url"].to_pylist()) == set(pages["url"].to_pylist())
    assert set(links["target_url"].to_pylist()) <= set(topics["url"].to_pylist())
    assert 9 < links.num_rows / pages.num_rows < 11
    if content == "keywords":
        lists = pages["keywords"].to_pylist()
        assert all(len(found) == len(set(found)) > 3 for found in lists)
        assert pages["text"].null_count == pages.num_rows
    else:
        assert pages["keywords"].null_count == pages.num_rows
        texts = pages["text"].to_pylist()
        assert {len(text.split()) for text in texts} == {generate.TEXT_WORDS}
        assert {text.count(".") for text in texts} == {10}


def test_links_have_hubs_and_stay_within_topics(tmp_path: Path) -> None:
    write_web(tmp_path, Web(pages=5_000, topics=10, hosts=30))
    links, topics = read(tmp_path / "links"), read(tmp_path / "topics")
    of = dict(zip(topics["url"].to_pylist(), topics["topic"].to_pylist(), strict=True))
    sources, targets = links["source_url"].to_pylist(), links["target_url"].to_pylist()
    within = sum(of[source] == of[target] for source, target in zip(sources, targets, strict=True)) / len(sources)
    assert 0.68 < within < 0.78
    degrees = sorted(Counter(targets).values(), reverse=True)
    assert sum(degrees[:50]) > 0.15 * len(targets)


@pytest.mark.parametrize("clicks", [1, 4_001])
def test_a_click_log(tmp_path: Path, clicks: int) -> None:
    log = ClickLog(clicks=clicks, pages=2_000, users=300, topics=10, hosts=30, queries_per_topic=40)
    assert write_clicks(tmp_path, log) == {"clicks": clicks}
    table = read(tmp_path / "clicks")
    assert table.schema.equals(CLICKS.schema)
    assert table.num_rows == clicks
    urls = set(page_urls(np.arange(2_000), 30).to_pylist())
    assert set(table["url"].to_pylist()) <= urls
    sessions: dict[str, list[dict[str, object]]] = {}
    for row in table.to_pylist():
        sessions.setdefault(row["session_id"], []).append(row)
    for rows in sessions.values():
        assert len({(row["user_id"], row["query"], row["user_group"]) for row in rows}) == 1
        times = [row["clicked_at"] for row in rows]
        gaps = [(later - earlier).total_seconds() for earlier, later in itertools.pairwise(times)]  # type: ignore[operator]
        assert all(0 < gap <= 600 for gap in gaps)
    if clicks > 1:
        groups = {row["user_id"]: row["user_group"] for row in table.to_pylist()}
        assert None in groups.values()
        assert max(Counter(group for group in groups.values() if group is not None).values()) > 3


def test_the_same_numbers_give_the_same_rows(tmp_path: Path) -> None:
    web = Web(pages=2_000, topics=10, hosts=30)
    log = ClickLog(clicks=1_000, pages=2_000, users=300, topics=10, hosts=30, queries_per_topic=40)
    for folder in ("a", "b"):
        write_web(tmp_path / folder, web)
        write_clicks(tmp_path / folder, log)
    write_web(tmp_path / "c", Web(pages=2_000, topics=10, hosts=30, seed=2))
    for name in ("pages", "links", "topics", "clicks"):
        assert read(tmp_path / "a" / name).equals(read(tmp_path / "b" / name))
    assert not read(tmp_path / "a" / "links").equals(read(tmp_path / "c" / "links"))


@pytest.mark.parametrize(
    "numbers",
    [{"pages": 99}, {"pages": 1000, "hosts": 0}, {"pages": 1000, "topics": 0}, {"pages": 1000, "links_per_page": 0.5}],
)
def test_webs_that_cannot_be(numbers: dict[str, int]) -> None:
    with pytest.raises(InputError, match="expected at least"):
        Web(**numbers)  # type: ignore[arg-type]


def test_logs_that_cannot_be() -> None:
    with pytest.raises(InputError, match="expected numbers of at least 1"):
        ClickLog(clicks=0)


def test_the_command(tmp_path: Path) -> None:
    def command(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "benchmarks.generate", *words], cwd=ROOT, capture_output=True, text=True, check=False
        )

    done = command("web", "--pages", "1000", "--output", str(tmp_path / "web"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "1,000 topics" in done.stdout
    refused = command("web", "--pages", "3", "--output", str(tmp_path / "none"))
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1


def test_few_topics_have_words_of_their_own_and_many_share_them() -> None:
    def distinct(topics: int) -> int:
        topic = np.repeat(np.arange(topics), generate.TOPIC_WORDS)
        rank = np.tile(np.arange(generate.TOPIC_WORDS), topics)
        return len(np.unique(generate._word_of_topic(topic, rank, topics)))

    assert distinct(10) == 10 * generate.TOPIC_WORDS
    assert distinct(50) == 50 * generate.TOPIC_WORDS
    assert distinct(500) / distinct(50) == pytest.approx(10**generate.VOCABULARY_EXPONENT, rel=0.1)
