from __future__ import annotations

import csv
import io
import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo, available_timezones

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from semrank.schemas.errors import InputError
from semrank.schemas.tables import PAGES, conform
from semrank.transforms.crawls import cc_index, heritrix, nutch, scrapy, warc
from semrank.transforms.crawls.pages import CrawlLimits
from semrank.transforms.crawls.snapshot import newest_pages
from tests.support.crawls import HERITRIX, NUTCH_HEADER, URL, arc, http, nutch_json, nutch_line, stream, together
from tests.support.crawls import warc as warc_record

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


def index_file(*rows: dict[str, Any], **columns: pa.Array) -> io.BytesIO:
    defaults: dict[str, Any] = {
        "url_surtkey": "com,example)/page",
        "url": URL,
        "fetch_time": NOON,
        "fetch_status": 200,
        "fetch_redirect": None,
        "content_digest": "ABC",
        "content_mime_type": "text/html",
        "content_mime_detected": "text/html",
        "content_languages": "deu,eng",
        "warc_filename": "crawl-data/x/segments/1/warc/x.warc.gz",
    }
    table = pa.Table.from_pylist([{**defaults, **row} for row in rows])
    for name, values in columns.items():
        table = table.set_column(table.schema.get_field_index(name), name, values)
    content = io.BytesIO()
    pq.write_table(table, content)
    content.seek(0)
    return content


def from_index(*rows: dict[str, Any]) -> dict[str, Any]:
    return together(cc_index.read(index_file(*rows), source="f"))


def test_index_rows_become_pages_and_aliases() -> None:
    found = from_index(
        {},
        {"url": "http://example.com/old", "fetch_status": 301, "fetch_redirect": "/page"},
        {"url": "http://example.com/gone", "fetch_status": 404},
    )
    page, gone = found["pages"]
    assert (page["url"], page["fetched_at"], page["status"], page["language"]) == (URL, NOON, 200, "de")
    assert (page["content_digest"], page["text"], gone["status"]) == ("sha1:ABC", None, 404)
    assert [(row["url"], row["target_url"]) for row in found["aliases"]] == [("http://example.com/old", URL)]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"content_mime_detected": "application/pdf"}, "not-html"),
        ({"content_mime_detected": None, "content_mime_type": "image/png"}, "not-html"),
        ({"fetch_status": 503}, "status-5xx"),
        ({"url": "http://example.com/robots.txt"}, "robots-txt"),
        ({"warc_filename": "crawl-data/x/segments/1/robotstxt/x.warc.gz"}, "robots-txt"),
    ],
)
def test_index_rows_that_are_ignored(row: dict[str, Any], reason: str) -> None:
    assert from_index(row)["ignored"] == {reason: 1}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"url": "http://a..b/"}, "host-invalid"),
        ({"url": None}, "url-missing"),
        ({"fetch_status": 302}, "redirect-without-target"),
        ({"fetch_time": None}, "time-missing"),
        ({"fetch_status": None}, "status-missing"),
    ],
)
def test_index_rows_that_are_rejected(row: dict[str, Any], reason: str) -> None:
    assert from_index({}, row)["rejected"] == {reason: 1}


def test_index_columns() -> None:
    early = pa.table(
        {"url": [URL], "fetch_time": pa.array([NOON], pa.timestamp("ns")), "fetch_status": pa.array([200])}
    )
    content = io.BytesIO()
    pq.write_table(early, content)
    content.seek(0)
    assert together(cc_index.read(content, source="f"))["pages"][0]["fetched_at"] == NOON
    with pytest.raises(InputError, match="f: table cc-index: column 'fetch_status' is missing"):
        list(cc_index.read(_without_status(), source="f"))
    with pytest.raises(InputError, match="column 'fetch_time' has type bool, expected timestamp"):
        list(cc_index.read(index_file({}, fetch_time=pa.array([True])), source="f"))
    with pytest.raises(InputError, match="is not a readable Parquet file"):
        cc_index.check(stream(b"no parquet"), source="f")


def _without_status() -> io.BytesIO:
    content = io.BytesIO()
    pq.write_table(pa.table({"url": [URL], "fetch_time": [NOON]}), content)
    content.seek(0)
    return content


def from_nutch(*lines: str) -> dict[str, Any]:
    return together(nutch.read(stream("\n".join(lines).encode()), source="f"))


def test_crawldb_entries_of_both_dumps() -> None:
    found = from_nutch(NUTCH_HEADER, nutch_line(), nutch_json())
    assert (found["used"], found["ignored"]) == (2, {"header": 1})
    for row in found["pages"]:
        # Due on 31 March at noon, thirty days after the fetch.
        assert (row["url"], row["fetched_at"], row["status"]) == (URL, NOON, 200)
        assert row["content_digest"] == "nutch:0a1b"


@pytest.mark.parametrize("kind", ["db_redir_temp", "db_redir_perm"])
def test_crawldb_redirects(kind: str) -> None:
    moved = "moved(12), lastModified=0: http://example.com/new"
    lines = [
        nutch_line(status=kind, metadata=f"_pst_:{moved}|||x:y|||"),
        nutch_line("http://example.com/2", kind, metadata=f"_pst_:temp_{moved}|||"),
        nutch_json(statusName=kind, metadata={"_pst_": moved}, url="http://example.com/3"),
    ]
    found = from_nutch(*lines)
    assert [row["target_url"] for row in found["aliases"]] == ["http://example.com/new"] * 3
    assert from_nutch(nutch_line(status=kind))["ignored"] == {"redirect-without-target": 1}


@pytest.mark.parametrize(
    ("status", "ignored"),
    [("db_unfetched", "unfetched"), ("db_duplicate", "duplicate"), ("db_orphan", "orphan")],
)
def test_crawldb_entries_that_are_ignored(status: str, ignored: str) -> None:
    assert from_nutch(nutch_line(status=status), nutch_json(statusName=status))["ignored"] == {ignored: 2}


@pytest.mark.parametrize(
    ("protocol_status", "ignored"),
    [("notfound(14)", None), ("gone(11)", None), *((f"{name}(1)", name) for name in ("robots_denied", "exception"))],
)
def test_why_the_crawldb_has_given_up_a_page(protocol_status: str, ignored: str | None) -> None:
    """Nutch's FetcherThread: pages denied by robots.txt, or with too many errors, are `db_gone`, too."""
    for line in (
        nutch_line(status="db_gone", metadata=f"a:b|||_pst_:{protocol_status}, lastModified=0|||"),
        nutch_json(statusName="db_gone", metadata={"_pst_": f"{protocol_status}, lastModified=0"}),
    ):
        found = from_nutch(line)
        assert [row["status"] for row in found["pages"]] == ([404] if ignored is None else [])
        assert found["ignored"] == ({} if ignored is None else {ignored.replace("_", "-"): 1})


def test_crawldb_gone_pages() -> None:
    assert [row["status"] for row in from_nutch(nutch_line(status="db_gone"))["pages"]] == [404]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("no crawldb", "layout-unknown"),
        (nutch_line()[:-20], "layout-unknown"),
        (nutch_line("http://a..b/"), "host-invalid"),
        (nutch_line(status="odd"), "status-unknown"),
        (nutch_json(url=None), "url-missing"),
        (nutch_json(statusName=3), "status-unknown"),
        (nutch_json()[:-1], "json-invalid"),
    ],
)
def test_crawldb_entries_that_are_rejected(line: str, reason: str) -> None:
    assert from_nutch(line)["rejected"] == {reason: 1}


def test_crawldb_urls_with_quotes_and_commas() -> None:
    found = from_nutch(nutch_line('http://example.com/a","b,c'))
    assert found["pages"][0]["url"] == "http://example.com/a%22,%22b,c"


@pytest.mark.parametrize(
    ("due", "fetched"),
    [
        ("Sun Mar 31 12:00:00 GMT 2024", NOON),
        ("Sun Mar 31 08:00:00 EDT 2024", NOON),
        ("Sun Mar 31 17:30:00 GMT+05:30 2024", NOON),
        ("2024-03-31T12:00:00Z", NOON),
        ("Sun Foo 31 12:00:00 GMT 2024", None),
        ("Sun Feb 31 12:00:00 GMT 2024", None),
        ("", None),
    ],
)
def test_crawldb_times(due: str, fetched: datetime | None) -> None:
    found = from_nutch(nutch_line(due=due))
    assert found["pages"][0]["fetched_at"] == fetched
    assert found["counters"] == ({} if fetched else {"date-missing-or-invalid": 1})
    milliseconds = from_nutch(nutch_json(fetchTime=round(NOON.timestamp() + 2592000) * 1000 + 345))
    assert milliseconds["pages"][0]["fetched_at"] == NOON


def duplicate(status: int, annotation: str = "duplicate:digest", content_type: str = "text/html") -> str:
    return f"2024-03-01T12:00:01.000Z {status} 10 {URL} - - {content_type} #1 20240301120000000+9 sha1:A - {annotation}"


@pytest.mark.parametrize(
    ("reader", "line"),
    [
        (scrapy, '{"url": "http://example.com/robots.txt", "text": "User-agent: *"}'),
        (nutch, nutch_line(url="http://example.com/robots.txt")),
        (heritrix, duplicate(200).replace(URL, "http://example.com/robots.txt")),
    ],
)
def test_rules_for_robots_are_no_page(reader: Any, line: str) -> None:
    assert together(reader.read(stream(line.encode()), source="f"))["ignored"] == {"robots-txt": 1}
    below = line.replace("/robots.txt", "/about/robots.txt")
    assert together(reader.read(stream(below.encode()), source="f"))["used"] == 1


@pytest.mark.parametrize("space", ["\u00a0", "\u3000", "\u0085", "\u2028"])
def test_other_spaces_are_parts_of_addresses_in_heritrix_logs(space: str) -> None:
    line = duplicate(200, "-").replace(URL, f"{URL}{space}x")
    (row,) = together(heritrix.read(stream(line.encode()), source="f"))["pages"]
    assert row["url"] == f"{URL}{quote(space)}x"


def test_heritrix_log() -> None:
    found = together(heritrix.read(stream("\n".join(HERITRIX).encode()), source="f"))
    assert [(row["url"], row["status"], row["content_digest"]) for row in found["pages"]] == [
        (URL, 200, "sha1:B"),
        ("http://example.com/new", 200, "sha1:D"),
        ("http://example.com/gone", 404, None),
    ]
    assert found["pages"][0]["fetched_at"] == NOON, "seconds, as the crawl's WARC files tell them"
    assert [(row["source_url"], row["target_url"]) for row in found["links"]] == [
        ("http://example.com/", URL),
        (URL, "http://example.com/old"),
        (URL, "http://down.example/"),
    ]
    assert [(row["url"], row["target_url"], row["kind"]) for row in found["aliases"]] == [
        ("http://example.com/old", "http://example.com/new", "redirect")
    ]
    assert [(row["url"], row["content_digest"]) for row in found["history"]] == [("http://example.com/new", "sha1:D")]
    assert (found["records"], found["used"]) == (11, 5)
    assert found["ignored"] == {"prerequisite": 1, "not-html": 1, "not-web": 1, "status-5xx": 1}
    assert found["rejected"] == {"layout-unknown": 1, "host-invalid": 1}


@pytest.mark.parametrize(
    ("line", "pages", "history", "result"),
    [
        (duplicate(200), [(200, "sha1:A")], 1, "used"),
        (duplicate(200, "2t,warcRevisit:digest"), [(200, "sha1:A")], 1, "used"),
        (duplicate(200, "no-duplicate:x"), [(200, "sha1:A")], 0, "used"),
        (duplicate(404), [(404, None)], 0, "used"),
        (duplicate(304, "warcRevisit:notModified"), [], 1, "used"),
        (duplicate(301), [], 0, "redirect"),
        (duplicate(503), [], 0, "status-5xx"),
        (duplicate(200, content_type="image/png"), [], 0, "not-html"),
    ],
)
def test_duplicates_in_heritrix_logs(line: str, pages: list[Any], history: int, result: str) -> None:
    found = together(heritrix.read(stream(line.encode()), source="f"))
    assert [(row["status"], row["content_digest"]) for row in found["pages"]] == pages
    assert len(found["history"]) == history
    assert {"used": found["used"], **found["ignored"]}[result] == 1


def from_scrapy(*items: Any) -> dict[str, Any]:
    content = "\n".join(item if isinstance(item, str) else json.dumps(item) for item in items)
    return together(scrapy.read(stream(content.encode()), source="f"))


def test_scrapy_feeds_that_are_arrays() -> None:
    """Scrapy's docs, `JsonItemExporter`: by default (`FEED_EXPORT_INDENT` 0) an array with each item on a new line."""
    items = [json.dumps({"url": f"http://example.com/{name}"}) for name in "abc"]
    found = from_scrapy("[", *(f"{item}," for item in items[:-1]), items[-1], "]")
    assert [row["url"] for row in found["pages"]] == [f"http://example.com/{name}" for name in "abc"]
    assert (found["records"], found["used"], found["ignored"]) == (5, 3, {"bracket": 2})


TEXT = "These are the plain words of a page, enough of them to tell the language."


def test_items_with_the_usual_fields() -> None:
    found = from_scrapy(
        {
            "url": URL,
            "timestamp": "2024-03-01T12:00:00+00:00",
            "status": 200,
            "title": [" A\n title "],
            "text": TEXT,
            "links": ["/one", {"url": "two", "text": " Two ", "nofollow": True}, {"href": "mailto:x"}, 3, None],
            "redirect_urls": ["http://example.com/old", URL, "bad"],
        }
    )
    (page,) = found["pages"]
    assert (page["fetched_at"], page["status"], page["title"]) == (NOON, 200, "A title")
    assert (page["text"], page["language"]) == (TEXT, "en")
    assert [(row["target_url"], row["anchor_text"], row["nofollow"]) for row in found["links"]] == [
        ("http://example.com/one", None, False),
        ("http://example.com/two", "Two", True),
    ]
    assert [(row["url"], row["target_url"]) for row in found["aliases"]] == [("http://example.com/old", URL)]


def test_items_with_html_are_read_as_pages() -> None:
    html = f"<html lang=de><title>T</title><p>{TEXT}</p><a href=/next>on</a></html>"
    found = from_scrapy({"link": URL, "body": html}, {"url": URL, "html": html, "title": "Own", "links": []})
    first, second = found["pages"]
    assert (first["title"], first["language"], second["title"]) == ("T", "de", "Own")
    assert TEXT in first["text"]
    assert [row["target_url"] for row in found["links"]] == ["http://example.com/next"]


@pytest.mark.parametrize(
    ("fields", "title", "text"),
    [
        ({"html": "<svg><title>Icon</title></svg><p>Words"}, None, "Words"),
        ({"body_html": ["<x-card>Words</x-card>"]}, None, "Words"),
        ({"html": "Words &amp; more"}, None, "Words & more"),
        ({"text": "Words &amp; more"}, None, "Words &amp; more"),
        ({"text": "<x-card> is an element"}, None, "<x-card> is an element"),
        (
            {
                "body": "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><head><script src='a'/>"
                "<title>T</title></head><body><p>Words</p></body></html>"
            },
            *("T", "Words"),
        ),
        ({"title": "<title>Alpine huts</title>"}, "Alpine huts", None),
        ({"title": "<h1>Alpine<br>huts <b>op</b>en</h1>"}, "Alpine huts open", None),
        ({"title": "a < b"}, "a < b", None),
    ],
)
def test_markup_in_items(fields: dict[str, Any], title: str | None, text: str | None) -> None:
    (row,) = from_scrapy({"url": URL, **fields})["pages"]
    assert (row["title"], row["text"]) == (title, text)


@pytest.mark.parametrize(
    ("links", "found"),
    [
        ("/a", [(None, False)]),
        ({"url": "/a", "text": "<a href=/a>A<br>b</a>"}, [("A b", False)]),
        ([["/a"]], [(None, False)]),
        ([{"href": "/a", "nofollow": "True"}], [(None, True)]),
        ([{"href": "/a", "nofollow": 1}], [(None, True)]),
        ([{"href": "/a", "nofollow": "false"}], [(None, False)]),
        ([{"href": "/a", "rel": "nofollow noopener"}], [(None, True)]),
        ([{"href": "/a", "rel": "UGC,nofollow"}], [(None, True)]),
        (["<a href='/a' rel=nofollow>A<br>b</a>", "<a href=/a></a>"], [("A b", True), (None, False)]),
    ],
)
def test_links_of_items(links: Any, found: list[tuple[str | None, bool]]) -> None:
    rows = from_scrapy({"url": URL, "links": links})["links"]
    assert [(row["anchor_text"], row["nofollow"]) for row in rows] == found
    assert {row["target_url"] for row in rows} == {"http://example.com/a"}


@pytest.mark.parametrize(
    ("fields", "counters"),
    [
        ({"status": 200, "date": "2024-03-01"}, {}),
        ({"status": "404 Not Found", "date": "2024-03-01"}, {"status-invalid": 1}),
        ({"status": 200.5, "date": "2024-03-01"}, {"status-invalid": 1}),
        ({"date": "yesterday"}, {"date-missing-or-invalid": 1}),
        ({}, {"date-missing-or-invalid": 1}),
    ],
)
def test_values_of_items_that_are_none_are_counted(fields: dict[str, Any], counters: dict[str, int]) -> None:
    assert from_scrapy({"url": URL, **fields})["counters"] == counters


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ("{", "json-invalid"),
        ("[]", "not-an-object"),
        ({}, "url-missing"),
        ({"url": 3}, "url-missing"),
        ({"url": "/page"}, "scheme-missing"),
    ],
)
def test_items_that_are_rejected(item: Any, reason: str) -> None:
    assert from_scrapy(item)["rejected"] == {reason: 1}


@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: [value]])
@pytest.mark.parametrize("status", [200, 200.0, "200"])
def test_items_of_loaders_have_lists_of_one_value(wrap: Any, status: Any) -> None:
    link = {"url": wrap("/a"), "text": wrap("A"), "nofollow": wrap(True)}
    fields = {
        "url": URL,
        "title": "T",
        "text": TEXT,
        "status": status,
        "date": "2024-03-01T13:00:00+01:00",
        "lang": "en",
    }
    found = from_scrapy({name: wrap(value) for name, value in fields.items()} | {"links": [link]})
    (row,) = found["pages"]
    assert (row["url"], row["title"], row["text"], row["language"]) == (URL, "T", TEXT, "en")
    assert (row["status"], row["fetched_at"]) == (200, NOON)
    assert [(row["target_url"], row["anchor_text"], row["nofollow"]) for row in found["links"]] == [
        ("http://example.com/a", "A", True)
    ]


def test_lists_of_several_urls_are_told() -> None:
    assert from_scrapy({"url": [URL, "http://example.com/b"]})["rejected"] == {"url-is-a-list": 1}
    assert from_scrapy({"url": []})["rejected"] == {"url-missing": 1}


@pytest.mark.parametrize("number", [2592000, 2592000.0, "2592000"])
def test_numbers_of_a_crawldb(number: Any) -> None:
    due = float(round(NOON.timestamp() * 1000) + 2592000 * 1000)
    found = from_nutch(nutch_json(fetchTime=due, retryIntervalSeconds=number))
    assert found["pages"][0]["fetched_at"] == NOON


def test_items_of_other_kinds() -> None:
    found = from_scrapy(
        {"url": URL, "status": 503},
        {"url": URL, "status": "404"},
        {"url": URL, "status": "fine", "time": {"x": 1}, "text": {"y": 2}, "title": "\ud800", "lang": "eng"},
        {"url": URL, "time": 1709294400, "text": ["One", "two"]},
    )
    assert found["ignored"] == {"status-5xx": 1}
    assert [(row["status"], row["text"], row["title"]) for row in found["pages"]] == [
        (404, None, None),
        (None, None, "�"),
        (None, "One\ntwo", None),
    ]
    assert (found["pages"][1]["language"], found["pages"][2]["fetched_at"]) == ("en", NOON)


def test_csv_header_is_the_one_that_is_looked_for() -> None:
    assert NUTCH_HEADER.encode().startswith(nutch.HEADER)
    assert next(csv.reader([NUTCH_HEADER]))[3] == "Fetch Time"


@pytest.mark.parametrize(
    ("due", "zone", "fetched"),
    [
        ("Sun Mar 31 20:00:00 CST 2024", "Asia/Shanghai", NOON),
        ("Sun Mar 31 06:00:00 CST 2024", None, None),
        ("Sun Mar 31 05:00:00 PST 2024", None, None),
        ("Sun Mar 31 07:00:00 CDT 2024", None, None),
        ("Sun Mar 31 07:00:00 CDT 2024", "America/Chicago", NOON),
        ("Sun Mar 31 20:00:00 PST 2024", "Asia/Manila", NOON),
        ("Sun Mar 31 17:30:00 IST 2024", "Asia/Kolkata", NOON),
        ("Sun Mar 31 17:30:00 IST 2024", None, None),
        ("Sun Mar 31 21:00:00 JST 2024", None, NOON),
        ("Sun Mar 31 21:00:00 JST 2024", "Asia/Shanghai", NOON),
        ("Sun Mar 31 12:00:00 UTC 2024", "Asia/Shanghai", NOON),
        *((f"Sun Mar 31 20:00:00 {zone} 2024", None, NOON) for zone in ("UTC+8", "GMT+08:00", "GMT+8", "+0800", "SGT")),
        ("Sun Mar 31 19:00:00 WIB 2024", None, NOON),
        ("Sun Mar 31 08:30:00 GMT-3:30 2024", None, NOON),
        ("Sun Mar 31 20:00:00 UTC+80 2024", None, None),
        ("Sun Mar 31 15:00:00 MSK 2024", None, None),
        ("Sun Mar 31 15:00:00 MSK 2024", "Europe/Moscow", NOON),
        ("Sun Mar 31 12:00:00 XYZ 2024", None, None),
    ],
)
def test_zones_of_several_meanings_are_told(due: str, zone: str | None, fetched: datetime | None) -> None:
    for line in (nutch_line(due=due), nutch_json(fetchTime=due)):
        found = together(nutch.read(stream(line.encode()), source="f", limits=CrawlLimits(nutch_zone=zone)))
        assert found["pages"][0]["fetched_at"] == fetched
        assert found["counters"] == ({} if fetched else {"date-missing-or-invalid": 1, "zone-ambiguous": 1})


def test_the_hour_that_comes_twice_is_told_by_its_abbreviation() -> None:
    limits = CrawlLimits(nutch_zone="America/Chicago")
    for text, hour in (("CDT", 6), ("CST", 7)):
        line = nutch_line(due=f"Sun Nov 03 01:30:00 {text} 2024")
        found = together(nutch.read(stream(line.encode()), source="f", limits=limits))
        assert found["pages"][0]["fetched_at"] == datetime(2024, 10, 4, hour, 30, tzinfo=UTC)


def test_certain_zones_have_one_meaning() -> None:
    meanings: dict[str, set[int]] = {}
    moments = [datetime(year, month, 1, tzinfo=UTC) for year in range(2019, 2031) for month in (1, 7)]
    for name in available_timezones():
        for moment in moments:
            local = moment.astimezone(ZoneInfo(name))
            offset = local.utcoffset()
            assert offset is not None
            meanings.setdefault(local.tzname() or "", set()).add(round(offset.total_seconds()) // 60)
    for abbreviation, minutes in nutch._ZONES.items():
        assert meanings.get(abbreviation, {minutes}) == {minutes}
    assert {name for name in ("CST", "CDT", "PST", "IST") if len(meanings[name]) > 1} == {"CST", "CDT", "PST", "IST"}


def test_index_of_a_published_page(shared_data: Path) -> None:
    from semrank.transforms.crawls import warc

    with (shared_data / "warc" / "whirlwind.warc.gz").open("rb") as opened:
        (page,) = together(warc.read(opened, source="f"))["pages"]
    row = {"url": page["url"], "fetch_time": page["fetched_at"], "content_digest": page["content_digest"][5:]}
    (indexed,) = from_index(row)["pages"]
    assert all(indexed[name] == page[name] for name in ("url", "fetched_at", "status", "content_digest"))


@pytest.mark.parametrize("told", ["heritrix", "nutch"])
def test_what_a_crawl_tells_beside_its_archive_does_not_outdate_it(told: str) -> None:
    """The archive has seconds and the text, the log or dump milliseconds and no text: one fetch, one page."""
    fetched = round(NOON.timestamp() * 1000) + 500
    beside = {
        "heritrix": lambda: heritrix.read(stream("\n".join(HERITRIX).encode()), source="f"),
        "nutch": lambda: nutch.read(stream(nutch_json(fetchTime=fetched + 2592000 * 1000).encode()), source="f"),
    }[told]()
    archived = {"url": URL, "fetched_at": NOON, "status": None, "title": "T", "text": TEXT}
    rows = [batch.tables["pages"] for batch in beside] + [conform(pa.Table.from_pylist([archived]), PAGES)]
    newest = newest_pages(pa.concat_tables(rows))
    (page,) = (row for row in newest.pages.to_pylist() if row["url"] == URL)
    assert (page["title"], page["text"], page["status"], page["fetched_at"]) == ("T", TEXT, 200, NOON)
    assert newest.history.num_rows == 0


def test_headers_of_scrapys_responses_count_as_those_of_archives() -> None:
    html = {"url": URL, "html": "<title>T</title><a href=/a>words</a>"}
    hidden = from_scrapy(html | {"headers": {"X-Robots-Tag": ["otherbot: nofollow", "noindex"]}})
    assert ([row["title"] for row in hidden["pages"]], hidden["counters"]["noindex"]) == ([None], 1)
    assert [row["nofollow"] for row in hidden["links"]] == [False]
    plain = from_scrapy({"url": URL, "text": "words", "headers": {"x-robots-tag": "none"}})
    assert ([row["text"] for row in plain["pages"]], plain["counters"]["noindex"]) == ([""], 1)
    listed = from_scrapy({"url": URL, "html": "<meta name=robots content=nofollow>words", "links": ["/a"]})
    assert [row["nofollow"] for row in listed["links"]] == [True]
    found = from_scrapy(
        html | {"headers": {"Refresh": "0;url=/r"}}, {"url": URL, "status": 301, "headers": {"Location": ["/l"]}}
    )
    assert [row["target_url"].rpartition("/")[2] for row in found["aliases"]] == ["r", "l"]


LATIN = b"http://example.com/caf\xe9"


@pytest.mark.parametrize(
    ("reader", "content"),
    [
        (heritrix.read, HERITRIX[1].encode().replace(HERITRIX[1].split()[3].encode(), LATIN) + b"\n"),
        (nutch.read, nutch_line(LATIN.decode("latin-1")).encode("latin-1")),
        (warc.read, warc_record(http(), "http://example.com/caf#").replace(b"caf#", b"caf\xe9")),
        (warc.read, arc(http(), "http://example.com/caf#").replace(b"caf#", b"caf\xe9")),
    ],
)
def test_bytes_of_urls_stay_as_they_are(reader: Any, content: bytes) -> None:
    (page,) = together(reader(stream(content), source="f"))["pages"]
    assert page["url"] == "http://example.com/caf%E9"


def test_seconds_of_a_crawldb_are_no_milliseconds() -> None:
    for due in (1_709_294_400, 1_709_294_400_000):
        assert from_nutch(nutch_json(fetchTime=due, retryIntervalSeconds=0))["pages"][0]["fetched_at"] == NOON


def test_times_of_heritrix_that_are_none_are_counted() -> None:
    line = re.sub("[0-9]{14,17}[+][0-9]+", "-", HERITRIX[1]).split(" ", 1)[1]
    assert together(heritrix.read(stream(f"x {line}".encode()), source="f"))["counters"] == {
        "date-missing-or-invalid": 1
    }


def test_links_of_items_that_cannot_be_read_are_counted() -> None:
    found = from_scrapy({"url": URL, "date": "2024-03-01", "links": ["/a", None, 5, ["/b", "/c"], {"to": "/d"}]})
    assert ([row["target_url"] for row in found["links"]], found["counters"]) == (
        ["http://example.com/a"],
        {"links-unreadable": 4},
    )
    redirected = from_scrapy({"url": URL, "date": "2024-03-01", "redirect_urls": ["/a", "http://example.com/b"]})
    assert (len(redirected["aliases"]), redirected["counters"]) == (1, {"redirects-unreadable": 1})
    others = from_scrapy({"url": URL, "date": "2024-03-01", "redirect_urls": ["http://example.com/b", 5, None]})
    assert (len(others["aliases"]), others["counters"]) == (1, {"redirects-unreadable": 2})
    none = from_scrapy({"url": URL, "date": "2024-03-01", "redirect_urls": {"from": "http://example.com/b"}})
    assert (len(none["aliases"]), none["counters"]) == (0, {"redirects-unreadable": 1})


@pytest.mark.parametrize(
    ("headers", "counters"),
    [
        ({"Refresh": None, "X-Robots-Tag": ["all"]}, {}),
        ({"Server": 5, "X-Robots-Tag": ["all", 7, None]}, {"headers-unreadable": 3}),
        ([["X-Robots-Tag", "noindex"], ["Server", "a"]], {"headers-unreadable": 1}),
        ("X-Robots-Tag: noindex", {"headers-unreadable": 1}),
    ],
)
def test_headers_of_items_that_cannot_be_read_are_counted(headers: Any, counters: dict[str, int]) -> None:
    found = from_scrapy({"url": URL, "date": "2024-03-01", "text": "Herons", "headers": headers})
    assert (len(found["pages"]), found["counters"]) == (1, counters)


@pytest.mark.parametrize(
    ("values", "status", "reason"),
    [
        (pa.array([200.0]), 200, None),
        (pa.array([200.5]), None, "fetch-status-invalid"),
        (pa.array([float("nan")]), None, "status-missing"),
        (pa.array([2**63 + 1], pa.uint64()), None, "fetch-status-invalid"),
        (pa.array([200], pa.uint64()), 200, None),
        (pa.array([Decimal("404.0")]), 404, None),
    ],
)
def test_one_status_of_an_index_that_is_none_is_one_reject(values: pa.Array, status: int | None, reason: str) -> None:
    found = together(cc_index.read(index_file({}, fetch_status=values), source="f"))
    assert [page["status"] for page in found["pages"]] == ([] if status is None else [status])
    assert list(found["rejected"]) == ([] if reason is None else [reason])
