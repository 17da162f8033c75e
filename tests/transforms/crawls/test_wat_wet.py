from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from semrank.transforms.crawls import wat, wet
from semrank.transforms.crawls.pages import CrawlLimits
from tests.support.crawls import URL, WAT_HTML, envelope, stream, together, warc


def ingest(*records: bytes, max_links: int = 100) -> dict[str, Any]:
    return together(wat.read(stream(b"".join(records)), source="f.wat", limits=CrawlLimits(max_links=max_links)))


@pytest.mark.parametrize(("status", "number"), [("200", 200), (200, 200), (200.0, 200), ("2xx", None), (True, None)])
def test_statuses_are_numbers_or_digits(status: Any, number: int | None) -> None:
    (page,) = ingest(envelope(status=status, html={"Head": {"Title": "T"}}))["pages"]
    assert page["status"] == number


def test_bad_dates_are_counted() -> None:
    bad = json.loads(envelope().partition(b"\r\n\r\n")[2])
    bad["Envelope"]["WARC-Header-Metadata"]["WARC-Date"] = "yesterday"
    found = ingest(warc(json.dumps(bad).encode(), URL, kind="metadata", content_type="application/json"))
    assert (found["pages"][0]["fetched_at"], found["counters"]) == (None, {"date-missing-or-invalid": 1})


def test_pages_links_and_aliases() -> None:
    found = ingest(envelope(html=WAT_HTML))
    (row,) = found["pages"]
    assert (row["url"], row["status"], row["title"], row["text"]) == (URL, 200, "A title", None)
    assert (row["fetched_at"], row["content_digest"]) == (datetime(2024, 3, 1, 12, tzinfo=UTC), "sha1:A")
    assert [(link["target_url"], link["anchor_text"], link["nofollow"]) for link in found["links"]] == [
        ("http://example.com/base/one", "First link", True),
        ("http://example.com/two", "an area", True),
        ("http://example.com/base/", None, True),
    ]
    assert {(row["kind"], row["target_url"]) for row in found["aliases"]} == {
        ("meta-refresh", "http://example.com/r"),
        ("canonical", "http://example.com/c"),
    }
    assert found["counters"] == {"links-scheme-unsupported": 1, "links-rejected": 1}


@pytest.mark.parametrize(
    ("tags", "language"),
    [([("lang", "de-CH")], "de"), ([("lang", ""), ("xml:lang", "fr")], "fr"), ([("lang", "nl"), ("lang", "en")], "nl")],
)
def test_languages_of_pages(tags: list[tuple[str, str]], language: str) -> None:
    """Common Crawl's ia-web-commons, `HTMLTagExtractor`: attributes of `html` are among the `meta` elements."""
    metas = [{"name": f"HTML@/{name}", "content": content} for name, content in tags]
    assert [row["language"] for row in ingest(envelope(html={"Head": {"Metas": metas}}))["pages"]] == [language]


def test_redirects_and_gone_pages() -> None:
    found = ingest(envelope(status="301", headers={"location": "/new"}), envelope(status=404))
    assert [row["target_url"] for row in found["aliases"]] == ["http://example.com/new"]
    assert [row["status"] for row in found["pages"]] == [404]


@pytest.mark.parametrize(
    ("status", "headers", "result"),
    [
        ("200", {"Content-Type": "text/html"}, {"pages": 1, "history": 1}),
        ("200", {"Content-Type": "text/html", "X-Robots-Tag": "noindex"}, {"pages": 1}),
        ("200", {"Content-Type": "image/png"}, {}),
        ("301", {"Location": "/next"}, {"aliases": 1}),
        ("304", {}, {"history": 1}),
        ("404", {}, {"pages": 1}),
        ("503", {}, {}),
    ],
)
def test_revisits_tell_visits_as_in_warc_files(status: str, headers: dict[str, str], result: dict[str, int]) -> None:
    found = ingest(envelope("revisit", status=status, headers=headers))
    assert {name: len(found[name]) for name in ("pages", "history", "aliases") if found[name]} == result
    assert found["used"] + sum(found["ignored"].values()) == 1


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (envelope(kind="request"), "about-request"),
        (envelope(kind=""), "about-nothing"),
        (envelope(headers={"Content-Type": "image/png"}), "not-html"),
        (envelope(status="500"), "status-5xx"),
        (envelope(url="dns:example.com"), "not-web"),
        (envelope(url="http://example.com/robots.txt"), "robots-txt"),
        (warc(b"x", None, kind="warcinfo"), "warcinfo"),
    ],
)
def test_ignored(record: bytes, reason: str) -> None:
    found = ingest(record)
    assert (found["ignored"], found["pages"]) == ({reason: 1}, [])


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (warc(b"{not json", kind="metadata"), "json-invalid"),
        (warc(b"\xff", kind="metadata"), "json-invalid"),
        (warc(b"[" * 100_000, kind="metadata"), "json-invalid"),
        (envelope(url=None), "url-missing"),
        (envelope(url="http://a..b/"), "host-invalid"),
        (envelope(status="302"), "redirect-without-target"),
        (envelope()[:-10], "record-truncated"),
    ],
)
def test_rejected(record: bytes, reason: str) -> None:
    assert ingest(record)["rejected"] == {reason: 1}


@pytest.mark.parametrize(
    "content",
    [b"null", b"[]", b'"x"', b"1", b"{}", b'{"Envelope": []}', b'{"Envelope": {"WARC-Header-Metadata": "x"}}'],
)
def test_json_of_another_shape_is_ignored(content: bytes) -> None:
    assert ingest(warc(content, kind="metadata"))["ignored"] == {"about-nothing": 1}


def test_references_to_characters_are_undone() -> None:
    """Common Crawl's ia-web-commons, issues 14 and 19, of which the examples are: older WAT files have them."""
    links = {
        "https://h.example/wes/Show?WESPAGE&#x3D;iam/home.jsp&amp;MSRSMAG&#x3D;FI": "WESPAGE=iam/home.jsp&MSRSMAG=FI",
        "https://h.example/wes/Show?a=1&order=lexical&copy=2&notit;": "a=1&order=lexical&copy=2&notit;",
    }
    words = "© Verlag Madsack GmbH &amp; Co. KG &#39;x&#39; &eacute;"
    html = {
        "Head": {"Title": words, "Metas": [{"http-equiv": "refresh", "content": "0;url=/r?a&amp;b"}]},
        "Links": [{"path": "A@/href", "url": url, "text": words} for url in links],
    }
    found = together(wat.read(stream(envelope(html=html)), source="f"))
    assert [row["target_url"].partition("?")[2] for row in found["links"]] == list(links.values())
    assert {found["pages"][0]["title"], *(row["anchor_text"] for row in found["links"])} == {
        "© Verlag Madsack GmbH & Co. KG 'x' é"
    }
    assert [row["target_url"] for row in found["aliases"]] == ["http://example.com/r?a&b"]


def test_links_over_the_cap_are_counted() -> None:
    links = {"Links": [{"path": "A@/href", "url": f"/{number}"} for number in range(5)]}
    found = ingest(envelope(html=links), max_links=3)
    assert (len(found["links"]), found["counters"]) == (3, {"links-over-cap": 2})


def test_text_of_wet_files() -> None:
    text = b"A title\nThe words of the page.\nMore words of it."
    records = [
        warc(text, kind="conversion", content_type="text/plain", WARC_Identified_Content_Language="deu,eng"),
        warc(b"title only", "http://example.com/2", kind="conversion"),
        warc(b"x", None, kind="warcinfo"),
        warc(b"x", "http://a..b/", kind="conversion"),
        warc(b"x" * 50, kind="conversion")[:-20],
    ]
    found = together(wet.read(stream(b"".join(records)), source="f.wet"))
    first, second = found["pages"]
    assert (first["title"], first["text"]) == ("A title", "The words of the page.\nMore words of it.")
    assert (first["language"], first["status"], first["content_digest"]) == ("de", None, None)
    assert (second["title"], second["text"], second["language"]) == ("title only", "", None)
    assert (found["ignored"], found["rejected"]) == ({"warcinfo": 1}, {"host-invalid": 1, "record-truncated": 1})


def test_angle_brackets_around_uris_as_in_warc_1_0() -> None:
    assert [row["url"] for row in ingest(envelope(url=f"<{URL}>", html={}))["pages"]] == [URL]
    about = {"WARC-Type": "revisit", "WARC-Target-URI": f"<{URL}>", "WARC-Refers-To-Target-URI": f"<{URL}>"}
    again = ingest(warc(json.dumps({"Envelope": {"WARC-Header-Metadata": about}}).encode(), URL, kind="metadata"))
    assert (len(again["pages"]), len(again["history"])) == (0, 1)


def test_statuses_that_are_none_are_counted() -> None:
    assert ingest(envelope(status="OK", html={}))["counters"] == {"status-invalid": 1}


def test_texts_with_a_byte_order_mark_or_without_a_date() -> None:
    found = together(
        wet.read(stream(warc("\ufeffTitle\nwords".encode(), URL, kind="conversion", date="x")), source="f")
    )
    assert (found["pages"][0]["title"], found["counters"]) == ("Title", {"date-missing-or-invalid": 1})
    names = together(wet.read(stream(warc(b"x", "dns:example.com", kind="conversion")), source="f"))
    assert names["ignored"] == {"not-web": 1}
