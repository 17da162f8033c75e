"""Robots directives, by Google's specification of the meta element and the header."""

from __future__ import annotations

import json

import pytest

from semrank.transforms.crawls import warc as warc_reader
from semrank.transforms.crawls import wat
from semrank.transforms.crawls.pages import CrawlLimits
from semrank.transforms.crawls.robots import Robots
from tests.support.crawls import http, stream, together, warc

HEADERS = [
    ("noindex", None, True, False),
    ("NoFollow", None, False, True),
    ("none", None, True, True),
    ("all", None, False, False),
    ("index, follow, max-image-preview:none", None, False, False),
    ("max-image-preview: none, max-snippet: -1", None, False, False),
    ("max-snippet:-1 noindex", None, True, False),
    ("nonetheless, noindexing", None, False, False),
    ("noarchive\nnoindex, nofollow", None, True, True),
    ("otherbot: noindex, nofollow", None, False, False),
    ("otherbot: noindex\nnofollow", None, False, True),
    ("otherbot: noindex, mybot: nofollow", "mybot", False, True),
    ("otherbot: noindex, nofollow", "OtherBot", True, True),
    ("otherbot/2.1: noindex", "otherbot", True, False),
    ("*: noindex", None, True, False),
    ("unavailable_after: 25 Jun 2030 15:00:00 PST, nofollow", None, False, True),
    ("unavailable_after: Friday, 25-Jun-30 15:00:00 GMT", None, False, False),
    ("nofollow; noindex", None, True, True),
    ("", None, False, False),
]


@pytest.mark.parametrize(("value", "name", "noindex", "nofollow"), HEADERS)
def test_headers(value: str, name: str | None, noindex: bool, nofollow: bool) -> None:
    robots = Robots(name)
    robots.header(value)
    assert (robots.noindex, robots.nofollow) == (noindex, nofollow)


@pytest.mark.parametrize(("value", "name", "noindex", "nofollow"), HEADERS)
def test_formats_agree(value: str, name: str | None, noindex: bool, nofollow: bool) -> None:
    """WARC and WAT of the same response."""
    lines = value.split("\n")
    head = "".join(f"X-Robots-Tag: {line}\r\n" for line in lines)
    block = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{head}\r\n<title>T</title><a href=/x>on</a>".encode()
    limits = CrawlLimits(robots_name=name)
    found = together(warc_reader.read(stream(warc(block)), source="f", limits=limits))
    assert ([row["title"] or None for row in found["pages"]], [row["nofollow"] for row in found["links"]]) == (
        [None if noindex else "T"],
        [nofollow],
    )
    html = {"Head": {"Title": "T"}, "Links": [{"path": "A@/href", "url": "/x", "text": "on"}]}
    envelope = {
        "WARC-Header-Metadata": {"WARC-Type": "response", "WARC-Target-URI": "http://example.com/page"},
        "Payload-Metadata": {
            "HTTP-Response-Metadata": {
                "Response-Message": {"Status": "200"},
                "Headers": {"Content-Type": "text/html", "X-Robots-Tag": lines if len(lines) > 1 else value},
                "HTML-Metadata": html,
            }
        },
    }
    metadata = warc(json.dumps({"Envelope": envelope}).encode(), kind="metadata", content_type="application/json")
    same = together(wat.read(stream(metadata), source="f", limits=limits))
    assert ([row["title"] or None for row in same["pages"]], [row["nofollow"] for row in same["links"]]) == (
        [None if noindex else "T"],
        [nofollow],
    )


def test_meta_elements_of_other_crawlers_do_not_count() -> None:
    body = b"<meta name=otherbot content=noindex><meta name=MyBot content=nofollow><title>T</title><a href=x>on</a>"
    for name, nofollow in (("mybot", True), (None, False)):
        found = together(warc_reader.read(stream(warc(http(body))), source="f", limits=CrawlLimits(robots_name=name)))
        assert [row["title"] for row in found["pages"]] == ["T"]
        assert [row["nofollow"] for row in found["links"]] == [nofollow]
