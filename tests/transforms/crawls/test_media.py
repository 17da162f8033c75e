"""Content types and sniffing, by the tables of the WHATWG standards "MIME Sniffing" and "Fetch"."""

from __future__ import annotations

import pytest

from semrank.transforms.crawls.media import MediaType, computed_type, content_type, looks_like_markup

PAGE = b"<!DOCTYPE html><title>T</title>"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("text/html", ("text/html", None)),
        ("TEXT/HTML ; Charset=UTF-8", ("text/html", "UTF-8")),
        ("text/html;;charset=UTF-8", ("text/html", "UTF-8")),
        ('text/html; charset="koi8-r"', ("text/html", "koi8-r")),
        ('text/html; x="a;charset=b"; charset=c', ("text/html", "c")),
        ("text/html; charset=a; charset=b", ("text/html", "a")),
        ("text/html, text/html; charset=utf-8", ("text/html", "utf-8")),
        (", text/html; charset=utf-8", ("text/html", "utf-8")),
        ("text/html;charset=a, text/html", ("text/html", "a")),
        ("text/html;charset=a, text/plain", ("text/plain", None)),
        ("text/html;charset=a, */*", ("text/html", "a")),
        ("text/plain, nonsense", ("text/plain", None)),
        ("text/html charset=utf-8", None),
        ("text/html:charset=utf-8", None),
        ('"text/html; charset=utf-8"', None),
        ("text", None),
        ("text/", None),
        ("", None),
        (None, None),
    ],
)
def test_content_types(header: str | None, expected: tuple[str, str | None] | None) -> None:
    assert content_type(header) == (None if expected is None else MediaType(*expected))


@pytest.mark.parametrize(
    ("told", "body", "expected"),
    [
        (None, PAGE, "text/html"),
        (None, b"\r\n <HTML>", "text/html"),
        (None, b"<!-- note --><x>", "text/html"),
        (None, b"<b>bold", "text/html"),
        (None, b"<bold>", "text/plain"),
        (None, b"<br", "text/plain"),
        (None, b"words", "text/plain"),
        (None, b"", "text/plain"),
        (None, b"\xef\xbb\xbfwords", "text/plain"),
        (None, b"w\x00rds", "application/octet-stream"),
        (None, b"%PDF-1.7", "application/pdf"),
        (None, b"\x89PNG\r\n\x1a\n", "image/png"),
        (None, b"GIF89a", "image/gif"),
        (None, b"<?xml version='1.0'?><rss>", "text/xml"),
        (None, b"<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'>", "application/xhtml+xml"),
        ("unknown/unknown", PAGE, "text/html"),
        ("application/unknown", PAGE, "text/html"),
        ("text/plain", PAGE, "text/plain"),
        ("text/plain", b"\x80\x01binary", "application/octet-stream"),
        ("text/plain", b"\xfe\xff\x00a\x00b", "text/plain"),
        ("text/plain", b"\x1b[1mbold\x1b[0m \x80", "text/plain"),
        ("image/png", PAGE, "image/png"),
        ("application/octet-stream", PAGE, "application/octet-stream"),
        ("text/html", b"<?xml?><!-- c --> <rss version='2.0'>", "application/xml"),
        ("text/html", b"<feed xmlns='http://www.w3.org/2005/Atom'>", "application/xml"),
        ("text/html", b"<p>a <rss> word", "text/html"),
        ("text/xml", b"<?xml?><html xmlns='http://www.w3.org/1999/xhtml'>", "application/xhtml+xml"),
        ("text/xml", b"<rss>", "text/xml"),
    ],
)
def test_types_of_bodies(told: str | None, body: bytes, expected: str) -> None:
    assert computed_type(told, body) == expected


def test_servers_may_forbid_to_sniff() -> None:
    assert computed_type(None, PAGE, nosniff=True) == "text/plain"
    assert computed_type("text/html", b"<rss>", nosniff=True) == "text/html"
    assert computed_type("text/plain", b"\x01", nosniff=True) == "text/plain"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" <article class=x>", True),
        ("<li>", True),
        ("<!DOCTYPE html>", True),
        ("a < b", False),
        ("<me@example.com>", False),
    ],
)
def test_pieces_of_markup(text: str, expected: bool) -> None:
    assert looks_like_markup(text) is expected
