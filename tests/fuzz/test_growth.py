"""The time that a parser takes grows no faster than its input; `python -m tests.fuzz.growth` tries all of it."""

from __future__ import annotations

import contextlib
import re
import time
import tomllib
from collections.abc import Callable

import pytest

from semrank.pipelines import config_file
from semrank.transforms.crawls.charsets import declared_encoding, decode_html, encode_query
from semrank.transforms.crawls.documents import document_title
from semrank.transforms.crawls.html import read_html
from semrank.transforms.crawls.links import parse_refresh
from semrank.transforms.crawls.markup import as_html
from semrank.transforms.crawls.media import computed_type, content_type, looks_like_markup
from semrank.transforms.crawls.payload import decode_body, parse_http
from semrank.transforms.crawls.robots import Robots
from semrank.transforms.samples.wikispeedia import article_text
from semrank.transforms.streams.languages import language_code
from semrank.transforms.streams.quotes import quote_click_line, quote_line, quote_page, quote_page_line, quote_request
from semrank.transforms.streams.times import written_time
from semrank.transforms.streams.urls import canonical_url
from tests.fuzz.growth import COMMON_TOKENS, growing, parsers

SIZES = (1 << 13, 1 << 15, 1 << 18)
LARGE = SIZES[-1]
SECONDS = 2.0
"""Of processor time for `LARGE`: what is quadratic takes at least ten times as long."""

QUADRATIC_SECONDS = 16.0
"""Of processor time for `LARGE`, from which on the smaller sizes show what is quadratic."""

SHARE = 0.0005


def http(data: bytes) -> None:
    message = parse_http(data)
    if message is not None:
        decode_body(message, LARGE)


def option_file(data: bytes) -> None:
    """What tomllib refuses is refused after what takes long."""
    text = data.decode("latin-1")
    with contextlib.suppress(ValueError):
        config_file._check_keys(text, "file")
        tomllib.loads(text)


PARSERS: dict[str, tuple[Callable[[bytes], object], tuple[bytes, ...]]] = {
    "type of a body": (lambda data: computed_type(None, data), (b"", b"<!--", b"<?xml")),
    "feed in HTML": (lambda data: computed_type("text/html", data), (b"", b"<!--", b"<?xml")),
    "piece of markup": (lambda data: looks_like_markup(data.decode("latin-1")), (b"",)),
    "content type": (
        lambda data: content_type(data.decode("latin-1")),
        (b"", b"text/html", b"text/html;", b"text/html; charset=", b'text/html; charset="', b"text/html; a"),
    ),
    "declaration": (
        declared_encoding,
        (b"", b"<meta ", b"<meta charset=", b'<meta http-equiv="content-type" content="', b"<?xml ", b"<!--", b"<p a"),
    ),
    "EUC-JP": (lambda data: decode_html(data, "euc-jp"), (b"", b"\xad", b"\x8f")),
    "ISO-2022-JP": (lambda data: decode_html(data, "iso-2022-jp"), (b"", b"\x1b$B", b"\x1b(I")),
    "page": (
        lambda data: read_html(data, url="https://example.com/"),
        (b"", b"<a href=x>", b"<title>", b"<p ", b'<p x="', b"<svg>", b"<table>", b"<b>", b"<base href='"),
    ),
    "XHTML": (lambda data: as_html(data.decode("latin-1")), (b"", b"<p ", b"<![CDATA[", b'<p x="')),
    "PDF": (
        lambda data: document_title("application/pdf", data),
        (b"", b"/Info ", b"/Info 1 0 R 1 0 obj /Title (", b"/Info 1 0 R 1 0 obj /Title <", b"<dc:title><rdf:Alt>"),
    ),
    "XML": (lambda data: document_title("text/xml", data), (b"", b"<title", b"<title>", b"<title><![CDATA[", b"<a:")),
    "response": (
        http,
        (
            *(b"", b"HTTP/1.1 ", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nX-Robots-Tag:", b"HTTP/1.1 100 \r\n\r\n"),
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
        ),
    ),
    "refresh": (lambda data: parse_refresh(data.decode("latin-1")), (b"", b"1", b"1;", b"1;url=", b"1;url='")),
    "robots": (lambda data: Robots("bot").header(data.decode("latin-1")), (b"", b"a:", b"max-snippet:")),
    "URL": (lambda data: canonical_url(data.decode("latin-1")), (b"", b"http://a", b"http://a/", b"http://a/?", b"//")),
    "option file": (
        option_file,
        (b"", b"a.", b"[a.", b"[[a.", b'x = "', b'x = """', b"x = '''", b"x = [", b"x = {a.", b"x = 1", b"# "),
    ),
    "language": (lambda data: language_code(data.decode("latin-1")), (b"", b"en")),
    "request to quote": (lambda data: quote_request(data, data, data, data, 0), (b"", b"/", b"http://")),
    "line to quote": (lambda data: (quote_line(data), quote_page_line(data), quote_click_line(data)), (b"", b"GET /")),
    "page to quote": (lambda data: quote_page(data.decode("latin-1")), (b"", b"/", b"http://", b"http:")),
    "time": (written_time, (b"", b"1", b"2024-05-01T10:00:00", b"2024-05-01T10:00:00Z[", b"1.")),
    "query": (lambda data: encode_query(data.decode("latin-1"), "shift_jis"), (b"?\xfc", b"?\xfc#")),
    "article": (
        lambda data: article_text(data.decode("latin-1")),
        (
            b"",
            b"a\n",
            b"#copyright",
            b"Retrieved from",
            b'Retrieved from "',
            b"2007 Schools Wikipedia Selection. Related subjects:",
        ),
    ),
}
TOKENS = (
    *COMMON_TOKENS,
    *(b"\r", b"(\\", b"<!--", b"-->", b"--", b"<?", b"?>", b"<!", b"</", b"/>", b"]]>", b"<![CDATA["),
    *(b"<b><i><u><s>", b"<div>", b"<p>x", b"<rt>", b"<x></b>", b"<table><tr>x", b"<svg><foreignObject>"),
    *(b"<a/ ", b"<font color=1><p>", b"<select><option>", b"<a href=x>y", b"<p hidden>", b"<title>"),
    *(b"<script>", b"<summary>", b"<meta ", b"charset=", b"<meta charset=", b"url=", b"a=b ", b'a="b"', b"a:"),
    *(b"1\r\nx\r\n", b"x: y\r\n", b" \r\n", b"\x1b$B", b"\xad\xa1", b"\xff", b"/Title (", b"/Info 1 0 R"),
    *(b"<dc:title>", b"HTTP/1.1 100 \r\n\r\n", b"utm_source=a&", b";jsessionid=", b"/(S(a))", b"&#1;"),
    *(b"#copyright\n", b"Retrieved from "),
    *(b"a.", b"a . ", b"''.", b'"\\"".', b'"""', b"'''", b"{a=", b"[[a]]\n", b"a.b=1\n"),
)


def seconds_of_large(parse: Callable[[bytes], object], before: bytes, token: bytes) -> float:
    """Processor time of `LARGE`; 0 where a smaller size takes less than it would if the time were quadratic."""
    seconds = 0.0
    for size in SIZES:
        begin = time.process_time()
        parse(before + token * (size // len(token)))
        seconds = time.process_time() - begin
        if size < LARGE and seconds < QUADRATIC_SECONDS * (size / LARGE) ** 2:
            return 0.0
    return seconds


@pytest.mark.parametrize("name", sorted(PARSERS))
def test_each_token_of_a_grammar_may_repeat(name: str) -> None:
    parse, beginnings = PARSERS[name]
    for before in beginnings:
        for token in TOKENS:
            assert seconds_of_large(parse, before, token) < SECONDS, (before, token)


@pytest.mark.parametrize("name", parsers())
def test_tokens_of_files_may_repeat_anywhere(name: str) -> None:
    assert list(growing(name, SHARE, seed=1)) == []


def test_what_grows_faster_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = re.compile(rb"(?:a*)*b")
    monkeypatch.setattr("tests.fuzz.growth.TARGETS", {"url": pattern.match})
    monkeypatch.setattr("tests.fuzz.growth._HANG_SECONDS", 0.3)
    assert any(growth.token == b"a" for growth in growing("url", 0.2, seed=1))
