"""Pages and links of random captures against the rule written out row by row."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semrank.schemas.tables import LINKS, PAGES
from semrank.transforms.crawls import snapshot
from semrank.transforms.crawls.beam import _tables
from semrank.transforms.crawls.links import PageLinks
from semrank.transforms.crawls.pages import Fetch, page
from semrank.transforms.streams.batch import BatchBuilder, SourceBatch

Rows = dict[str, pa.Table]


class Record(NamedTuple):
    """What one record says of one capture."""

    url: str
    time: int | None
    digest: str | None
    status: int | None
    title: str | None
    text: str | None
    targets: tuple[str, ...]


RECORDS = st.builds(
    Record,
    url=st.sampled_from(["https://a.example/", "https://b.example/x"]),
    time=st.sampled_from([None, 1, 2, 3]),
    digest=st.sampled_from([None, "d1", "d2"]),
    status=st.sampled_from([None, 200]),
    title=st.sampled_from([None, "", "T", "half \ud800"]),
    text=st.sampled_from([None, "", "words"]),
    targets=st.lists(st.sampled_from([f"https://t.example/{n}" for n in range(9)]), max_size=3).map(tuple),
)


def read(records: list[Record]) -> SourceBatch:
    builder = BatchBuilder("test")
    for record in records:
        links = PageLinks(record.url)
        for target in record.targets:
            links.link(target, None, None)
        fetch = Fetch(record.url, record.time, record.status, record.digest, "a record")
        page(builder, fetch, title=record.title, text=record.text, language=None, links=links)
    (batch,) = builder.drain(last=True)
    return batch


def told(record: Record) -> tuple[str, str, str, int]:
    title = (record.title or "").replace("\ud800", "\ufffd")
    return record.digest or "", title, record.text or "", record.status or 0


def are_one(record: Record, capture: Record, digest: str | None) -> bool:
    same_time = record.time is not None and record.time == capture.time
    same_content = record.digest is not None and record.digest == digest
    return same_time or same_content or (record.time is None and capture.time is None and told(record) == told(capture))


def preference(record: Record) -> tuple[Any, ...]:
    time = -1 if record.time is None else record.time
    return time, *told(record), record.text is not None, record.title is not None


def by_hand(records: list[Record]) -> tuple[set[tuple[str, str]], int, dict[str, tuple[str | None, str | None]]]:
    """The links that count, the number of those that do not, and title and text of the pages."""
    kept, dropped, content = set(), 0, {}
    for url in {record.url for record in records}:
        own = sorted((record for record in records if record.url == url), key=preference, reverse=True)
        newest = own[0]
        fetch = [record for record in own if record is newest or (record.time == newest.time is not None)]
        digest = next((record.digest for record in fetch if record.digest), None)
        silent = all(record.text is None for record in fetch)
        telling = own if silent else fetch
        title = next((record.title for record in telling if record.title is not None), None)
        text = next((record.text for record in telling if record.text is not None), None)
        content[url] = ((title or "").replace("\ud800", "\ufffd") or None, text or None)
        shown = next((record for record in own if record.text is not None or record.title is not None), newest)
        has_own = any(record.targets and are_one(record, newest, digest) for record in own)
        for record in own:
            of_content = silent and not has_own and are_one(record, shown, shown.digest)
            if are_one(record, newest, digest) or of_content:
                kept |= {(url, target) for target in record.targets}
            else:
                dropped += len(record.targets)
    return kept, dropped, content


@given(records=st.lists(RECORDS, min_size=1, max_size=7))
@settings(max_examples=300, deadline=None)
def test_links_are_those_of_the_newest_capture(records: list[Record]) -> None:
    tables: Rows = dict(_tables(read(records)))
    captured = tables.get("captured")
    found: dict[str, list[dict[str, Any]]] = {}
    for name, table in snapshot.page_partition(tables["pages"], None, None, captured):
        found.setdefault(name, []).extend(table.to_pylist())
    kept, dropped, content = by_hand(records)
    assert {row["url"]: (row["title"], row["text"]) for row in found["pages"]} == content
    links = found.get("links", [])
    assert {(row["source_url"], row["target_url"]) for row in links} == kept
    assert len(links) + dropped == sum(len(record.targets) for record in records)
    if captured is not None:
        assert [(row["kind"], row["name"], row["count"]) for row in found["balance"]] == [
            ("outdated", "links", dropped)
        ]


def test_links_of_pages_without_a_row_are_kept() -> None:
    record = Record("https://a.example/", 1, "d1", 200, "T", None, ("https://t.example/1",))
    captured = dict(_tables(read([record])))["captured"]
    elsewhere = read([record._replace(url="https://b.example/x", time=9)]).tables["pages"]
    for pages in (PAGES.empty(), elsewhere):
        links = snapshot.current_links(captured, pages, pages)
        assert links.schema.equals(LINKS.schema)
        assert links["target_url"].to_pylist() == ["https://t.example/1"]


FIRST, LATER = 1_000_000, 2_000_000
CONTENT: dict[str, Any] = {"title": "T", "text": "words", "language": "en"}


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        ({}, CONTENT),
        ({"content_digest": "d2"}, CONTENT),
        ({"status": 200, "language": "de"}, {"title": "T", "text": "words", "language": "de"}),
        ({"title": "New"}, {"title": "New", "text": "words", "language": "en"}),
        ({"text": "new"}, {"title": None, "text": "new", "language": None}),
        ({"text": ""}, {"title": None, "text": None, "language": None}),
        ({"status": 404}, {"title": None, "text": None, "language": None}),
        ({"fetched_at": None, "text": "undated"}, CONTENT),
    ],
)
def test_a_capture_without_content_takes_none_away(later: dict[str, Any], expected: dict[str, Any]) -> None:
    url = "https://a.example/"
    rows = [{"url": url, "fetched_at": FIRST, "content_digest": "d1"} | CONTENT]
    rows += [{"url": url, "fetched_at": LATER} | later]
    schema = PAGES.schema
    for ordered in (rows, rows[::-1]):
        table = pa.table(
            [pa.array([row.get(name) for row in ordered], schema.field(name).type) for name in schema.names],
            schema=schema,
        )
        (page_row,) = snapshot.newest_pages(table).pages.to_pylist()
        assert {name: page_row[name] for name in expected} == expected
        newest = FIRST if "fetched_at" in later else LATER
        assert page_row["fetched_at"].timestamp() == newest / 1_000_000
