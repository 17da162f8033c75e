"""The sample web holds what it promises, and always the same bytes."""

from __future__ import annotations

import gzip
import hashlib
import io
import itertools
import os
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastwarc.warc import ArchiveIterator as FastArchiveIterator
from warcio.archiveiterator import ArchiveIterator

from semrank.schemas.tables import CLICKS, TOPICS
from semrank.transforms.samples.sample_vocabulary import TOPICS as VOCABULARY
from semrank.transforms.samples.sample_web import (
    SEED_TOPIC,
    SamplePage,
    sample_clicks,
    sample_files,
    sample_pages,
    sample_seeds,
    sample_topics,
)
from semrank.transforms.streams.urls import canonical_url, canonicalize
from tests.support.sample import captured_urls

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def written() -> dict[str, bytes]:
    return dict(sample_files())


@pytest.fixture(scope="module")
def answers() -> dict[str, SamplePage]:
    return {page.url: page for page in sample_pages()}


class Record:
    """What a test asks of a WARC record, read by warcio with its digests checked."""

    def __init__(self, kind: str, url: str | None, date: str, status: int, body: bytes, record_id: str) -> None:
        self.kind, self.url, self.date, self.status, self.body, self.record_id = (
            kind,
            url,
            date,
            status,
            body,
            record_id,
        )


@pytest.fixture(scope="module")
def records(written: dict[str, bytes]) -> list[Record]:
    found = []
    for path in sorted(written):
        if not path.endswith(".warc.gz"):
            continue
        for record in ArchiveIterator(io.BytesIO(written[path]), check_digests="raise"):
            head = record.rec_headers
            body = record.content_stream().read()
            status = int(record.http_headers.get_statuscode()) if record.rec_type in ("response", "revisit") else 0
            found.append(
                Record(
                    record.rec_type,
                    head.get_header("WARC-Target-URI"),
                    head.get_header("WARC-Date"),
                    status,
                    body,
                    head.get_header("WARC-Record-ID"),
                )
            )
    return found


class PageParser(HTMLParser):
    """Links, base and metadata of a page by the standard library's parser."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.base = url
        self.links: list[tuple[str, bool]] = []
        self.images: list[dict[str, str | None]] = []
        self.meta: list[dict[str, str | None]] = []
        self.tags: Counter[str] = Counter()
        self.language: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags[tag] += 1
        if tag == "html":
            self.language = values.get("lang")
        elif tag == "base":
            self.base = values["href"] or ""
        elif tag == "a":
            self.links.append((urljoin(self.base, values["href"] or ""), "nofollow" in (values.get("rel") or "")))
        elif tag == "img":
            self.images.append(values)
        elif tag == "meta":
            self.meta.append(values)


def parsed(page: SamplePage) -> PageParser:
    parser = PageParser(page.url)
    parser.feed(page.body.decode("latin-1" if "8859" in dict(page.headers)["Content-Type"] else "utf-8"))
    return parser


def html_pages(answers: dict[str, SamplePage]) -> list[SamplePage]:
    return [page for page in answers.values() if dict(page.headers)["Content-Type"].startswith("text/html")]


def test_another_process_with_another_hash_seed_writes_the_same_bytes(written: dict[str, bytes]) -> None:
    code = (
        "import hashlib; from semrank.transforms.samples.sample_web import sample_files\n"
        "print({path: hashlib.sha256(content).hexdigest() for path, content in sample_files()})"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "4242", "TZ": "Asia/Kathmandu"}
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    expected = {path: hashlib.sha256(content).hexdigest() for path, content in written.items()}
    assert found.stdout.strip() == str(expected)


def test_layout(written: dict[str, bytes]) -> None:
    assert list(written) == [
        "warc/sample-20240304-00000.warc.gz",
        "warc/sample-20240304-00001.warc.gz",
        "warc/sample-20240318-00000.warc.gz",
        "clicks/clicks-00000.parquet",
        "topics.parquet",
        "seeds.txt",
    ]


def test_every_record_stands_in_a_gzip_member_of_its_own(written: dict[str, bytes], records: list[Record]) -> None:
    # warcio refuses files that are one long gzip stream, so the fixture has checked the members already;
    # here the same content must come out as one stream, and the second library must see the same records.
    total = 0
    for path, content in written.items():
        if path.endswith(".warc.gz"):
            assert gzip.decompress(content).startswith(b"WARC/1.1\r\n")
            for record in FastArchiveIterator(io.BytesIO(content), parse_http=False):
                assert record.verify_block_digest(consume=False)
                total += 1
    assert total == len(records)
    assert len({record.record_id for record in records}) == len(records)


def test_kinds_of_records(records: list[Record]) -> None:
    kinds = Counter(record.kind for record in records)
    assert kinds["warcinfo"] == 3
    assert kinds["request"] == kinds["response"] + kinds["revisit"]
    assert kinds["revisit"] == 1
    assert set(kinds) == {"warcinfo", "request", "response", "revisit"}


def test_responses_are_what_the_pages_say(records: list[Record], answers: dict[str, SamplePage]) -> None:
    responses = [record for record in records if record.kind == "response"]
    assert sorted({record.url for record in responses if record.url is not None}) == captured_urls()
    newest = {record.url: record for record in sorted(responses, key=lambda record: record.date)}
    for url, record in newest.items():
        assert url is not None
        assert record.status == answers[url].status
        assert record.body == answers[url].body


def test_some_pages_changed_between_two_captures(records: list[Record]) -> None:
    bodies: dict[str | None, set[bytes]] = {}
    for record in records:
        if record.kind == "response":
            bodies.setdefault(record.url, set()).add(record.body)
    assert sum(len(found) == 2 for found in bodies.values()) == 3
    (revisit,) = [record for record in records if record.kind == "revisit"]
    assert revisit.url in bodies


def test_at_least_half_of_the_urls_are_not_captured(answers: dict[str, SamplePage]) -> None:
    assert 300 <= len(answers) <= 600
    assert set(captured_urls()) < set(answers)
    assert len(captured_urls()) <= len(answers) / 2


def test_uncaptured_pages_are_in_reach_of_captured_ones(answers: dict[str, SamplePage]) -> None:
    captured = set(captured_urls())
    reached = set()
    for page in html_pages(answers):
        if page.url in captured:
            reached |= {canonical_url(target).url for target, nofollow in parsed(page).links if not nofollow}
    uncaptured = set(answers) - captured
    assert len(reached & uncaptured) > 0.9 * len(uncaptured)


def test_urls_are_canonical(answers: dict[str, SamplePage]) -> None:
    urls = pa.array(list(answers))
    assert canonicalize(urls).urls.equals(urls)


def test_urls_lie_below_a_reserved_domain(answers: dict[str, SamplePage]) -> None:
    assert {(urlsplit(url).hostname or "").rsplit(".", 1)[-1] for url in answers} == {"example"}


def test_every_link_leads_to_a_page_of_the_sample(answers: dict[str, SamplePage]) -> None:
    for page in html_pages(answers):
        for target, _ in parsed(page).links:
            assert canonical_url(target).url in answers, (page.url, target)


def test_the_web_holds_the_oddities_of_a_crawl(answers: dict[str, SamplePage]) -> None:
    captured = [answers[url] for url in captured_urls()]
    statuses = Counter(page.status for page in captured)
    assert statuses[301] == 2
    assert statuses[302] == 1
    assert statuses[404] == 1
    for page in captured:
        if page.status in (301, 302):
            target = urljoin(page.url, dict(page.headers)["Location"])
            assert answers[target].status == 200
    types = Counter(dict(page.headers)["Content-Type"] for page in captured)
    assert types["application/pdf"] == 1
    assert types["text/html; charset=iso-8859-1"] == 1
    pages = [parsed(page) for page in html_pages(answers)]
    assert [page.language for page in pages].count("de") == 1
    assert any(meta.get("name") == "robots" for page in pages for meta in page.meta)
    assert sum(meta.get("http-equiv") == "refresh" for page in pages for meta in page.meta) == 1
    assert sum(page.tags["base"] for page in pages) > 50
    assert all(image["alt"] for page in pages for image in page.images)
    assert any(nofollow for page in pages for _, nofollow in page.links)
    for tag in ("nav", "main", "footer", "h1", "h2", "img", "script"):
        assert sum(page.tags[tag] > 0 for page in pages) > 100, tag
    raw = b"".join(page.body for page in html_pages(answers))
    assert b"PHPSESSID=" in raw
    assert b"utm_source=" in raw


def test_lengths_are_declared(answers: dict[str, SamplePage]) -> None:
    assert all(int(dict(page.headers)["Content-Length"]) == len(page.body) for page in answers.values())


@pytest.mark.parametrize("topic", [topic.name for topic in VOCABULARY])
def test_a_topics_pages_share_words_that_other_pages_lack(answers: dict[str, SamplePage], topic: str) -> None:
    """Document frequencies alone, without any of the product's text code, tell the topics apart."""
    urls = sample_topics().filter(pa.compute.equal(sample_topics()["topic"], topic))["url"].to_pylist()
    inside = [set(answers[url].body.decode("utf-8", "ignore").lower().split()) for url in urls]
    outside = [
        set(page.body.decode("utf-8", "ignore").lower().split())
        for page in html_pages(answers)
        if page.url not in set(urls)
    ]
    common_inside = Counter(word for words in inside for word in words)
    common_outside = Counter(word for words in outside for word in words)
    telling = [
        word
        for word, count in common_inside.items()
        if word.isalpha() and count > 0.2 * len(inside) and common_outside[word] < 0.02 * len(outside)
    ]
    assert len(telling) >= 5


def test_sentences_are_complete(answers: dict[str, SamplePage]) -> None:
    for page in html_pages(answers):
        text = page.body.decode("utf-8", "ignore").partition("<body>")[2]
        assert "{" not in text
        assert "None" not in text


def test_topics(answers: dict[str, SamplePage]) -> None:
    topics = sample_topics()
    assert topics.schema.equals(TOPICS.schema)
    rows = topics.to_pylist()
    assert rows == sorted(rows, key=lambda row: (row["topic"], row["url"]))
    assert {row["url"] for row in rows} <= set(answers)
    assert Counter(row["topic"] for row in rows if row["is_seed"]) == dict.fromkeys((t.name for t in VOCABULARY), 4)
    captured = set(captured_urls())
    assert all(row["url"] in captured for row in rows if row["is_seed"])
    assert all(
        sum(row["url"] not in captured for row in rows if row["topic"] == topic.name) >= 20 for topic in VOCABULARY
    )


def test_seeds_are_the_seed_topics() -> None:
    lines = sample_seeds().splitlines()
    seeds = [row["url"] for row in sample_topics().to_pylist() if row["topic"] == SEED_TOPIC and row["is_seed"]]
    assert any(line.startswith("#") for line in lines)
    assert sorted(line for line in lines if not line.startswith("#")) == seeds


def test_clicks(answers: dict[str, SamplePage], written: dict[str, bytes]) -> None:
    clicks = sample_clicks()
    assert clicks.schema.equals(CLICKS.schema)
    assert pq.read_table(io.BytesIO(written["clicks/clicks-00000.parquet"])).equals(clicks)
    rows = clicks.to_pylist()
    assert 1_500 <= len(rows) <= 5_000
    assert {row["url"] for row in rows} <= set(answers)
    captured = set(captured_urls())
    assert sum(row["url"] not in captured for row in rows) > 0.3 * len(rows)
    users = {row["user_id"]: row["user_group"] for row in rows}
    groups = Counter(users.values())
    assert groups.pop(None) == 6
    assert groups == {topic.group: 8 for topic in VOCABULARY}
    assert sum(" " in row["query"] for row in rows) > 0.5 * len(rows)
    positions = [row["position"] for row in rows]
    assert None in positions
    assert min(position for position in positions if position is not None) == 1


def test_click_sequences_follow_links_in_time(answers: dict[str, SamplePage]) -> None:
    links = {page.url: {canonical_url(target).url for target, _ in parsed(page).links} for page in html_pages(answers)}
    sessions: dict[str, list[dict[str, object]]] = {}
    for row in sample_clicks().to_pylist():
        sessions.setdefault(row["session_id"], []).append(row)
    followed = 0
    for rows in sessions.values():
        assert len({(row["user_id"], row["query"]) for row in rows}) == 1
        for before, after in itertools.pairwise(rows):
            gap = after["clicked_at"] - before["clicked_at"]  # type: ignore[operator]
            assert 0 < gap.total_seconds() <= 30 * 60
            if after["position"] is None:
                assert after["url"] in links[str(before["url"])]
                followed += 1
    assert followed > 300
