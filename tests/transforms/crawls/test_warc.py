from __future__ import annotations

import base64
import gzip
import hashlib
from datetime import UTC, datetime
from typing import Any

import pytest

from semrank.transforms.crawls.pages import CrawlLimits
from semrank.transforms.crawls.warc import read
from semrank.transforms.streams.dates import microseconds
from tests.support.crawls import HTML, arc, http, members, stream, together, warc

URL = "http://example.com/page"


def ingest(*records: bytes, limits: CrawlLimits | None = None) -> dict[str, Any]:
    return together(read(stream(b"".join(records)), source="f.warc", limits=limits or CrawlLimits()))


def test_a_page_with_its_links() -> None:
    found = ingest(warc(http(), WARC_Payload_Digest="sha1:ABC"))
    assert (found["records"], found["used"]) == (1, 1)
    assert found["pages"] == [
        {
            "url": URL,
            "fetched_at": datetime(2024, 3, 1, 12, tzinfo=UTC),
            "status": 200,
            "title": "T",
            "text": found["pages"][0]["text"],
            "keywords": None,
            "language": "en",
            "content_digest": "sha1:ABC",
        }
    ]
    assert "Some words of a page." in found["pages"][0]["text"]
    assert found["links"] == [
        {"source_url": URL, "target_url": "http://example.com/next", "anchor_text": "on", "nofollow": False}
    ]


def test_digest_is_made_where_the_crawler_gave_none() -> None:
    expected = "sha1:" + base64.b32encode(hashlib.sha1(HTML).digest()).decode()
    assert ingest(warc(http()))["pages"][0]["content_digest"] == expected
    packed = warc(http(gzip.compress(HTML), Content_Encoding="gzip"))
    assert ingest(packed)["pages"][0]["content_digest"] == expected


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 x", "308 x"])
def test_redirects_become_aliases(status: str) -> None:
    found = ingest(warc(http(b"moved", status, Location="/new?utm_source=x")))
    assert found["aliases"] == [
        {
            "url": URL,
            "target_url": "http://example.com/new",
            "found_at": datetime(2024, 3, 1, 12, tzinfo=UTC),
            "kind": "redirect",
        }
    ]
    assert (found["used"], found["pages"]) == (1, [])


def test_refresh_and_canonical_become_aliases_beside_the_page() -> None:
    html = b"<link rel=canonical href=/c><meta http-equiv=refresh content='0; url=/r'>words"
    found = ingest(warc(http(html)))
    assert [(row["target_url"], row["kind"]) for row in found["aliases"]] == [
        ("http://example.com/r", "meta-refresh"),
        ("http://example.com/c", "canonical"),
    ]
    assert len(found["pages"]) == 1
    header = ingest(warc(http(b"words", Refresh="0; url=/r")))
    assert [(row["target_url"], row["kind"]) for row in header["aliases"]] == [("http://example.com/r", "meta-refresh")]


def test_gone_pages_are_rows_without_text() -> None:
    found = ingest(warc(http(HTML, "404 Not Found")), warc(http(HTML, "410 Gone"), "http://example.com/2"))
    assert [(row["status"], row["text"], row["title"]) for row in found["pages"]] == [
        (404, None, None),
        (410, None, None),
    ]
    assert found["links"] == []


def test_revisits_become_history() -> None:
    block = http(b"")
    found = ingest(
        warc(block, kind="revisit", WARC_Payload_Digest="sha1:A"),
        warc(b"", kind="revisit", WARC_Payload_Digest="sha1:B"),
        warc(http(b"", "304 Not Modified", None), WARC_Payload_Digest="sha1:C"),
        warc(http(b"", content_type="image/png"), kind="revisit"),
    )
    assert [row["content_digest"] for row in found["history"]] == ["sha1:A", "sha1:B", "sha1:C"]
    assert (found["used"], found["ignored"]) == (3, {"not-html": 1})


OTHER = "http://other.example/page"


@pytest.mark.parametrize(
    ("original", "block", "rows", "result"),
    [
        (URL, http(b""), {"history": [URL]}, "used"),
        (f"<{URL}#part>", http(b""), {"history": [URL]}, "used"),
        (OTHER, http(b""), {"pages": [200]}, "used"),
        (OTHER, b"", {"pages": [None]}, "used"),
        (None, http(b""), {"pages": [200], "history": [URL]}, "used"),
        (OTHER, http(b"", "404 Not Found"), {"pages": [404]}, "used"),
        (URL, http(b"", "410 Gone"), {"pages": [410]}, "used"),
        (OTHER, http(b"", "301 Moved", None, Location="/next"), {"aliases": ["http://example.com/next"]}, "used"),
        (URL, http(b"", "500 Oops"), {}, "status-5xx"),
        (OTHER, http(b"", "304 Not Modified"), {"history": [URL]}, "used"),
        (OTHER, http(b"", content_type="image/png"), {}, "not-html"),
    ],
)
def test_revisits_tell_visits(original: str | None, block: bytes, rows: dict[str, list[Any]], result: str) -> None:
    record = warc(block, kind="revisit", WARC_Payload_Digest="sha1:A", WARC_Refers_To_Target_URI=original or "-")
    found = ingest(record if original else record.replace(b"WARC-Refers-To-Target-URI: -\r\n", b""))
    assert [row["status"] for row in found["pages"]] == rows.get("pages", [])
    assert [row["url"] for row in found["history"]] == rows.get("history", [])
    assert [row["target_url"] for row in found["aliases"]] == rows.get("aliases", [])
    assert all(row["text"] is None for row in found["pages"])
    assert {"used": found["used"], **found["ignored"]}[result] == 1


def test_resources_and_plain_text() -> None:
    text = b"These are the plain words of a text file, enough of them to tell the language."
    found = ingest(
        warc(HTML, kind="resource", content_type="text/html"),
        warc(text, "http://example.com/t", kind="resource", content_type="text/plain; charset=utf-8"),
        warc(http(text, content_type="text/plain"), "http://example.com/u"),
        warc(b"png", kind="resource", content_type="image/png"),
    )
    assert [(row["status"], row["title"], row["language"]) for row in found["pages"]] == [
        (None, "T", "en"),
        (None, None, "en"),
        (200, None, "en"),
    ]
    assert found["pages"][1]["text"] == text.decode()
    assert found["ignored"] == {"not-html": 1}


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (warc(b"x", None, kind="warcinfo"), "warcinfo"),
        (warc(b"GET / HTTP/1.1\r\n\r\n", kind="request"), "request"),
        (warc(b"x", kind="metadata"), "metadata"),
        (warc(b"x", kind="conversion"), "conversion"),
        (warc(b"x", kind="continuation"), "continuation"),
        (warc(b"x", kind=""), "record-type-missing"),
        (warc(http(content_type="application/pdf")), "not-html"),
        (warc(http(b"\x89PNG", content_type=None)), "not-html"),
        (warc(http(HTML, "500 Oops")), "status-5xx"),
        (warc(http(HTML, "403 Forbidden")), "status-4xx"),
        (warc(http(HTML, "300 Multiple Choices")), "status-3xx"),
        (warc(http(b"", "302 Found", Location="page#x")), "redirect-to-itself"),
        (warc(b"x", "dns:example.com"), "not-web"),
        (warc(http(), "http://example.com/robots.txt"), "robots-txt"),
    ],
)
def test_ignored(record: bytes, reason: str) -> None:
    found = ingest(record)
    assert (found["records"], found["used"], found["ignored"], found["rejects"]) == (1, 0, {reason: 1}, [])


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (warc(http(), None), "url-missing"),
        (warc(http(), "http://a..b/"), "host-invalid"),
        (warc(http(), "/page"), "scheme-missing"),
        (warc(b"<html>no header"), "http-header-invalid"),
        (warc(http(b"", "302 Found")), "redirect-without-target"),
        (warc(http(b"", "302 Found", Location="http://[")), "redirect-url-invalid"),
        (warc(http(b"", "302 Found", Location="app://open")), "redirect-scheme-unsupported"),
        (warc(http(b"\x1f\x8b\x08junk", Content_Encoding="gzip")), "body-undecodable"),
        (warc(http(), length=1 << 40), "record-truncated"),
        (b"<html>no archive</html>", "record-misplaced"),
    ],
)
def test_rejected(record: bytes, reason: str) -> None:
    found = ingest(record)
    assert (found["records"], found["used"], found["rejected"]) == (1, 0, {reason: 1})
    (row,) = found["rejects"]
    assert (row["stage"], row["reason"]) == ("warc", reason)
    assert row["record"].startswith("f.warc offset 0")


def test_records_over_the_cap_are_rejected() -> None:
    found = ingest(warc(http(b"x" * 5_000)), warc(http()), limits=CrawlLimits(max_record_bytes=2_000))
    assert (found["used"], found["rejected"]) == (1, {"record-too-large": 1})


def test_links_over_the_cap_are_counted() -> None:
    html = b"".join(b"<a href=/%d>x</a>" % number for number in range(5))
    found = ingest(warc(http(html)), limits=CrawlLimits(max_links=2))
    assert (len(found["links"]), found["counters"]["links-over-cap"]) == (2, 3)


def test_pages_that_ask_not_to_be_indexed() -> None:
    for block in (http(b"<meta name=robots content=noindex>" + HTML), http(X_Robots_Tag="noindex")):
        found = ingest(warc(block))
        assert (found["pages"][0]["title"], found["pages"][0]["text"]) == (None, "")
        assert found["counters"]["noindex"] == 1
        assert len(found["links"]) == 1


def test_texts_and_revisits_that_ask_not_to_be_indexed() -> None:
    text = http(b"Plain words.", content_type="text/plain", X_Robots_Tag="noindex")
    for record in (warc(text), warc(http(b"", X_Robots_Tag="noarchive, none"), kind="revisit")):
        found = ingest(record)
        assert [(row["title"], row["text"]) for row in found["pages"]] == [(None, "")]
        assert (found["used"], found["counters"]["noindex"]) == (1, 1)
    other = http(b"", X_Robots_Tag="otherbot: noindex")
    assert ingest(warc(other, kind="revisit"))["pages"][0]["text"] is None


def test_nofollow_pages_mark_all_links() -> None:
    assert ingest(warc(http(X_Robots_Tag="nofollow")))["links"][0]["nofollow"] is True


def test_bad_links_are_rejects_of_their_own() -> None:
    found = ingest(warc(http(b"<a href='http://['>x</a><a href=/ok>y</a>")))
    assert (found["records"], found["used"], len(found["links"])) == (1, 1, 1)
    assert found["rejects"] == [{"stage": "links", "reason": "url-invalid", "record": f"{URL} -> http://["}]


def test_cut_bodies_are_used_and_counted() -> None:
    packed = gzip.compress(HTML)
    found = ingest(warc(http(packed[:-10], Content_Encoding="gzip"), WARC_Truncated="length"))
    assert (found["used"], found["counters"]) == (1, {"payload-cut-by-crawler": 1, "body-truncated": 1})


def test_bad_dates_are_counted() -> None:
    found = ingest(warc(http(), date="yesterday"), warc(http(), date=None))
    assert [row["fetched_at"] for row in found["pages"]] == [None, None]
    assert found["counters"]["date-missing-or-invalid"] == 2


def test_arc_files_and_compressed_files_give_the_same_rows() -> None:
    plain = ingest(warc(http()))
    assert ingest(arc(http()))["links"] == plain["links"]
    assert ingest(arc(http()))["pages"] == plain["pages"]
    assert ingest(members([warc(http())])) == plain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-03-01T12:00:00Z", datetime(2024, 3, 1, 12, tzinfo=UTC)),
        ("2024-03-01T12:00:00.123456789Z", datetime(2024, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)),
        ("2024-03-01T12:00:00+02:00", datetime(2024, 3, 1, 10, tzinfo=UTC)),
        ("2024-03-01T12:00:00", datetime(2024, 3, 1, 12, tzinfo=UTC)),
        ("2024-03-01", datetime(2024, 3, 1, tzinfo=UTC)),
        ("2024-03", datetime(2024, 3, 1, tzinfo=UTC)),
        ("2024", datetime(2024, 1, 1, tzinfo=UTC)),
        ("20240301120000", datetime(2024, 3, 1, 12, tzinfo=UTC)),
        ("20240301", datetime(2024, 3, 1, tzinfo=UTC)),
        ("1969-12-31T23:59:59Z", datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("2024-13-01T00:00:00Z", None),
        ("20241301000000", None),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_times(text: str | None, expected: datetime | None) -> None:
    assert microseconds(text) == (None if expected is None else round(expected.timestamp() * 1_000_000))


def test_a_record_of_arc_without_a_byte_is_no_page() -> None:
    found = ingest(arc(b""), arc(HTML))
    assert (found["rejected"], found["used"]) == ({"http-header-invalid": 1}, 1)
