"""Rules that hold for every format of crawls, each asked in all formats that can show it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from semrank.schemas.tables import PAGES
from semrank.transforms.crawls import cc_index, heritrix, nutch, scrapy, tables, warc, wat, wet
from semrank.transforms.crawls.links import MAX_ANCHOR_CHARS
from semrank.transforms.crawls.snapshot import newest_pages
from tests.support.crawls import arc, http, stream, together
from tests.support.crawls import warc as warc_record

URL = "http://example.com/page"
HTML = b"<title>A title</title><p>Words of the page"


def from_warc(content: bytes) -> dict[str, Any]:
    return together(warc.read(stream(content), source="f"))


def from_wat(
    status: str, headers: dict[str, str], html: dict[str, Any] | None, date: str, digest: str = "sha1:A"
) -> dict[str, Any]:
    about = {"WARC-Type": "response", "WARC-Target-URI": URL, "WARC-Date": date, "WARC-Payload-Digest": digest}
    told = {"Response-Message": {"Status": status}, "Headers": headers, "HTML-Metadata": html or {}}
    envelope = {"WARC-Header-Metadata": about, "Payload-Metadata": {"HTTP-Response-Metadata": told}}
    content = warc_record(json.dumps({"Envelope": envelope}).encode(), URL, kind="metadata")
    return together(wat.read(stream(content), source="f"))


def from_scrapy(**item: Any) -> dict[str, Any]:
    return together(scrapy.read(stream(json.dumps({"url": URL, **item}).encode()), source="f"))


def from_nutch(due: Any) -> dict[str, Any]:
    entry = {"url": URL, "statusName": "db_fetched", "fetchTime": due, "retryIntervalSeconds": 0}
    return together(nutch.read(stream(json.dumps(entry).encode()), source="f"))


def from_heritrix(line: str) -> dict[str, Any]:
    return together(heritrix.read(stream(line.encode()), source="f"))


def from_index(**row: Any) -> dict[str, Any]:
    defaults = {"url": URL, "fetch_time": datetime(2024, 3, 1, tzinfo=UTC), "fetch_status": 200}
    content = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([{**defaults, **row}]), content)
    content.seek(0)
    return together(cc_index.read(content, source="f"))


def from_table(table: str = "pages", **row: Any) -> dict[str, Any]:
    content = stream(json.dumps({"url": URL, **row}).encode())
    return together(tables.read_json_lines(content, table=table, source="f"))


@pytest.mark.parametrize("year", [1096, 1969, 9999])
@pytest.mark.parametrize(
    "read",
    [
        lambda year: from_warc(warc_record(http(HTML), URL, date=f"{year}-07-10T00:00:00Z")),
        lambda year: from_warc(arc(http(HTML), URL).replace(b"20240301120000", b"%d0710000000" % year)),
        lambda year: from_wat("200", {"Content-Type": "text/html"}, None, f"{year}-07-10T00:00:00Z"),
        lambda year: together(
            wet.read(stream(warc_record(b"x", URL, kind="conversion", date=f"{year}-07-10")), source="f")
        ),
        lambda year: from_heritrix(f"{year}-07-10T00:00:00Z 200 5 {URL} - - text/html #1 - - - -"),
        lambda year: from_nutch(f"Sun Jul 10 00:00:00 UTC {year}"),
        lambda year: from_scrapy(date=f"{year}-07-10"),
    ],
)
def test_impossible_times_are_counted_and_outdate_nothing(read: Callable[[int], dict[str, Any]], year: int) -> None:
    found = read(year)
    assert [page["fetched_at"] for page in found["pages"]] == [None]
    assert found["counters"]["date-missing-or-invalid"] == 1


@pytest.mark.parametrize("kind", ["screenshot", "\x1b[31m", "x" * 10_000])
def test_record_types_that_no_standard_has_share_a_reason(kind: str) -> None:
    """ISO 28500, 5.5. Else a file's author makes the names of counters, and as many as it has records."""
    record = warc_record(b"x", URL, kind=kind)
    for read in (warc.read, wat.read, wet.read):
        assert together(read(stream(record), source="f"))["ignored"] == {"record-type-unknown": 1}
    about = {"Envelope": {"WARC-Header-Metadata": {"WARC-Type": kind}}}
    record = warc_record(json.dumps(about).encode(), URL, kind="metadata")
    assert together(wat.read(stream(record), source="f"))["ignored"] == {"about-unknown": 1}


def test_halves_of_surrogate_pairs_stop_no_run() -> None:
    """RFC 8259, 8.2: JSON may escape them, and what a reader does then is open. JavaScript writes those it has cut."""
    half = "a\ud83d"
    html = {"Head": {"Title": half}, "Links": [{"path": "A@/href", "url": f"/{half}", "text": half}]}
    wat_page = from_wat("200", {"Content-Type": "text/html"}, html, "2024-03-01", digest=half)
    headers = {"X-Robots-Tag": half, "Refresh": f"0;url=/{half}"}
    links = [{"url": f"/{half}", "text": half}, f"/{half}"]
    item = from_scrapy(title=half, links=links, headers=headers, html=half, redirect_urls=[f"http://h.example/{half}"])
    for found in (wat_page, item):
        assert found["pages"][0]["title"] == "a\ufffd"
        assert {row["target_url"] for row in found["links"]} == {"http://example.com/a%EF%BF%BD"}
    row = from_table(title=half, content_digest=half)["pages"][0]
    assert (row["title"], row["content_digest"]) == ("a\ufffd", "a\ufffd")


def test_empty_digests_are_unknown() -> None:
    """Else all contents with one would be the same."""
    at = "2024-03-01T00:00:00Z"
    (read,) = from_warc(warc_record(http(HTML), URL, WARC_Payload_Digest=""))["pages"]
    assert read["content_digest"].startswith("sha1:")
    for found in (
        from_wat("200", {"Content-Type": "text/html"}, None, at, digest=""),
        from_index(content_digest=""),
        from_table(content_digest=""),
    ):
        assert [page["content_digest"] for page in found["pages"]] == [None]


def test_huge_times_of_nutch_are_counted() -> None:
    assert from_nutch(2**51)["counters"] == {"date-missing-or-invalid": 1}


@pytest.mark.parametrize("year", [1000, 9999])
def test_rows_with_impossible_times_are_rejected_in_json_and_parquet(year: int) -> None:
    at = datetime(year, 1, 1, tzinfo=UTC)
    content = io.BytesIO()
    pq.write_table(pa.table({"url": [URL], "fetched_at": [at]}), content)
    content.seek(0)
    for found in (
        from_table(fetched_at=at.isoformat()),
        together(tables.read_parquet(content, table="pages", source="f")),
    ):
        assert found["rejected"] == {"fetched-at-invalid": 1}
    assert from_index(fetch_time=at)["rejected"] == {"fetch-time-invalid": 1}


@pytest.mark.parametrize(
    "found",
    [
        from_warc(warc_record(http(b"", "304 Not Modified"), URL)),
        from_wat("304", {}, None, "2024-03-01T00:00:00Z"),
        from_heritrix(f"2024-03-01T00:00:00Z 304 0 {URL} - - text/html #1 - - - -"),
        from_scrapy(status=304),
        from_index(fetch_status=304),
    ],
)
def test_a_visit_that_found_nothing_new_is_history(found: dict[str, Any]) -> None:
    assert [(row["url"], found["pages"], found["used"]) for row in found["history"]] == [(URL, [], 1)]


@pytest.mark.parametrize(
    ("status", "reason"), [(301, "redirect"), (304, "status-3xx"), (403, "status-4xx"), (503, "status-5xx")]
)
def test_errors_and_redirects_in_tables_take_no_content_away(status: int, reason: str) -> None:
    found = from_table(status=status, text="Try later")
    assert (found["ignored"], found["pages"]) == ({reason: 1}, [])


def test_a_missing_page_of_a_table_has_no_content() -> None:
    (page,) = from_table(status=404, title="Not found", text="There is no such page")["pages"]
    assert (page["status"], page["title"], page["text"]) == (404, None, None)


@pytest.mark.parametrize("status", [0, -1, 99, 1000])
def test_numbers_that_are_no_status_are_counted_in_tables(status: int) -> None:
    found = from_table(status=status, text="x")
    assert (found["pages"][0]["status"], found["counters"]) == (None, {"status-invalid": 1})


def test_crawlers_own_codes_are_no_status_of_a_server() -> None:
    assert from_index(fetch_status=-1)["ignored"] == {"not-fetched": 1}


def test_robots_txt_is_no_page_in_tables() -> None:
    assert from_table(url="http://example.com/robots.txt?x")["ignored"] == {"robots-txt": 1}
    assert from_table(url="http://example.com/robots.txt/more")["used"] == 1


@pytest.mark.parametrize(
    ("told", "code", "counters"),
    [
        ("de-AT", "de", {}),
        ("deu", "de", {}),
        ("", None, {}),
        (None, None, {}),
        ("Deutsch!", None, {"language-invalid": 1}),
    ],
)
def test_languages_of_tables_are_codes(told: str | None, code: str | None, counters: dict[str, int]) -> None:
    found = from_table(language=told)
    assert (found["pages"][0]["language"], found["counters"]) == (code, counters)


def test_long_anchors_and_texts_of_tables_are_cut() -> None:
    found = from_table("links", source_url=URL, target_url=URL, anchor_text="x" * (MAX_ANCHOR_CHARS + 1))
    assert (len(found["links"][0]["anchor_text"]), found["counters"]) == (MAX_ANCHOR_CHARS, {"anchor-text-cut": 1})
    found = from_table(title="x" * 1_001, text="x")
    assert (len(found["pages"][0]["title"]), found["counters"]) == (1_000, {"title-cut": 1})


@pytest.mark.parametrize("as_header", [True, False])
def test_the_text_of_a_wet_file_does_not_fill_a_page_that_is_not_to_be_indexed(as_header: bool) -> None:
    headers = {"Content-Type": "text/html", **({"X-Robots-Tag": "noindex"} if as_header else {})}
    head = {"Title": "A title", "Metas": [] if as_header else [{"name": "robots", "content": "noindex"}]}
    of_wat = from_wat("200", headers, {"Head": head}, "2024-03-01T12:00:00Z")
    text = warc_record(b"A title\nWords of the page", URL, kind="conversion", date="2024-03-01T12:00:00Z")
    of_wet = together(wet.read(stream(text), source="f"))
    assert of_wat["counters"] == {"noindex": 1}
    rows = pa.Table.from_pylist([*of_wat["pages"], *of_wet["pages"]], PAGES.schema)
    (page,) = newest_pages(rows).pages.to_pylist()
    assert (page["title"], page["text"]) == (None, None)


@pytest.mark.parametrize("told", ["text/html; charset=utf-8", "Text/HTML;charset=UTF-8", "", None])
def test_content_types_of_the_index_may_have_parameters(told: str | None) -> None:
    assert from_index(content_mime_type=told)["used"] == 1


@pytest.mark.parametrize(
    "found",
    [
        from_warc(warc_record(http(b"words", content_type="text/plain", refresh="0; url=/new"), URL)),
        from_scrapy(text="words", headers={"Refresh": "0; url=/new"}),
    ],
)
def test_a_refresh_header_moves_plain_text_too(found: dict[str, Any]) -> None:
    assert [(row["kind"], row["target_url"]) for row in found["aliases"]] == [
        ("meta-refresh", "http://example.com/new")
    ]


def test_a_cut_http_header_is_no_text_of_an_arc_page() -> None:
    record = arc(http(HTML), URL).replace(b"text/html %d" % len(http(HTML)), b"text/html 5")
    found = from_warc(record)
    assert (found["pages"], found["rejected"]) == ([], {"http-header-invalid": 1, "record-misplaced": 1})


def test_unusable_canonical_links_and_origins_are_counted() -> None:
    found = from_warc(warc_record(http(b"<link rel=canonical href='http://a b/'>"), URL))
    assert found["counters"] == {"canonical-invalid": 1}
    found = from_heritrix(f"2024-03-01T00:00:00Z 200 5 {URL} L nowhere text/html #1 - - - -")
    assert (found["counters"], found["links"]) == ({"links-rejected": 1}, [])
    assert [row["reason"] for row in found["rejects"]] == ["scheme-missing"]


@pytest.mark.parametrize(
    ("item", "counters"),
    [
        ({"text": 5}, {"text-unreadable": 1}),
        ({"title": {"a": 1}}, {"title-unreadable": 1}),
        ({"text": [], "title": ""}, {}),
    ],
)
def test_texts_of_items_that_are_none_are_counted(item: dict[str, Any], counters: dict[str, int]) -> None:
    found = from_scrapy(date="2024-03-01", **item)
    assert (found["used"], found["counters"]) == (1, counters)


def test_conversions_to_other_types_are_no_text() -> None:
    def ignored(content_type: str) -> dict[str, int]:
        record = warc_record(b"\x89PNG\nx", URL, kind="conversion", content_type=content_type)
        return dict(together(wet.read(stream(record), source="f"))["ignored"])

    assert (ignored("image/png"), ignored("text/plain; charset=utf-8"), ignored("")) == ({"not-text": 1}, {}, {})


def test_the_first_segment_of_a_record_is_counted_as_cut() -> None:
    found = from_warc(warc_record(http(HTML), URL, WARC_Segment_Number="1"))
    assert (found["used"], found["counters"]) == (1, {"payload-cut-by-crawler": 1})


@pytest.mark.parametrize("status", ["000", "099", "20", "2000"])
def test_what_is_no_status_of_a_server_is_no_answer(status: str) -> None:
    answer = http(HTML, f"{status} OK")
    for found in (from_warc(warc_record(answer, URL)), from_warc(arc(answer, URL))):
        assert (found["pages"], found["rejected"]) == ([], {"http-header-invalid": 1})


def test_items_of_an_array_in_one_line() -> None:
    def found(content: bytes) -> dict[str, Any]:
        return together(scrapy.read(stream(content), source="f"))

    first, second = {"url": URL, "text": "x"}, {"url": f"{URL}/2", "links": ["/next"]}
    several = found(json.dumps([first, second]).encode())
    assert several["pages"] == found(f"{json.dumps(first)}\n{json.dumps(second)}\n".encode())["pages"]
    assert (several["records"], len(several["links"])) == (2, 1)
    for other in ([], [first, 5], [[first]]):
        assert found(json.dumps(other).encode())["rejected"] == {"not-an-object": 1}


_REFERENCES = "<base href='/d/?q=ü'><a href='x?q=ü'>ü</a><link rel=canonical href='?c=ü'><meta http-equiv=refresh {}>"
_LATIN = ("text/html; charset=iso-8859-1", _REFERENCES.format("content='0;url=?r=ü'").encode("latin-1"))


def _wat_links(*metas: dict[str, str]) -> dict[str, Any]:
    refresh = {"http-equiv": "refresh", "content": "0;url=?r=ü"}
    canonical = {"path": "LINK@/href", "rel": "canonical", "url": "?c=ü"}
    head = {"Base": "/d/?q=ü", "Link": [canonical], "Metas": [*metas, refresh]}
    return {"Head": head, "Links": [{"path": "A@/href", "url": "x?q=ü", "text": "ü"}]}


@pytest.mark.parametrize(
    "found",
    [
        from_warc(warc_record(http(_LATIN[1], content_type=_LATIN[0]), URL)),
        from_warc(warc_record(http(b"<meta charset=latin1>" + _LATIN[1], content_type="text/html"), URL)),
        from_warc(arc(http(_LATIN[1], content_type=_LATIN[0]), URL)),
        from_wat("200", {"Content-Type": _LATIN[0]}, _wat_links(), "2024-03-01"),
        from_wat("200", {"Content-Type": "text/html"}, _wat_links({"charset": "latin1"}), "2024-03-01"),
    ],
)
def test_queries_of_references_have_the_encoding_of_the_page(found: dict[str, Any]) -> None:
    """URL standard, "query state", as browsers and Scrapy have it: paths are UTF-8, queries what the page is."""
    assert [row["target_url"] for row in found["links"]] == ["http://example.com/d/x?q=%FC"]
    targets = {row["target_url"] for row in found["aliases"]}
    assert targets == {"http://example.com/d/?c=%FC", "http://example.com/d/?r=%FC"}
