"""Pages and links of random captures against the rule written out row by row."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from semrank.schemas.tables import LINKS, PAGES
from semrank.transforms.sources import snapshot
from semrank.transforms.sources.batch import BatchBuilder, SourceBatch
from semrank.transforms.sources.links import PageLinks
from semrank.transforms.sources.pages import Fetch, page
from semrank.transforms.sources.steps import _tables

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
    text=st.sampled_from([None, "words"]),
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


def by_hand(records: list[Record]) -> tuple[set[tuple[str, str]], int]:
    """The links that count, and the number of those that do not."""
    kept, dropped = set(), 0
    for url in {record.url for record in records}:
        own = [record for record in records if record.url == url]
        newest = max(own, key=lambda record: (-1 if record.time is None else record.time, *told(record)))
        fetch = [record for record in own if record is newest or (record.time == newest.time is not None)]
        digests = [record.digest for record in sorted(fetch, key=told, reverse=True) if record.digest]
        for record in own:
            same_time = record.time is not None and record.time == newest.time
            same_content = record.digest is not None and record.digest in digests[:1]
            undated = record.time is None and newest.time is None and told(record) == told(newest)
            if same_time or same_content or undated:
                kept |= {(url, target) for target in record.targets}
            else:
                dropped += len(record.targets)
    return kept, dropped


@given(records=st.lists(RECORDS, min_size=1, max_size=7))
@settings(max_examples=300, deadline=None)
def test_links_are_those_of_the_newest_capture(records: list[Record]) -> None:
    tables: Rows = dict(_tables(read(records)))
    captured = tables.get("captured")
    found: dict[str, list[dict[str, Any]]] = {}
    for name, table in snapshot.page_partition(tables["pages"], None, None, captured):
        found.setdefault(name, []).extend(table.to_pylist())
    kept, dropped = by_hand(records)
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
        links = snapshot.current_links(captured, pages)
        assert links.schema.equals(LINKS.schema)
        assert links["target_url"].to_pylist() == ["https://t.example/1"]
