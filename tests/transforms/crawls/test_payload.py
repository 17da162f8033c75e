from __future__ import annotations

import gzip
import lzma
import time
import zlib
from collections.abc import Callable
from io import BytesIO

import pytest
import zstandard
from fastwarc.stream_io import BrotliWriter
from hypothesis import given, settings
from hypothesis import strategies as st

from semrank.transforms.crawls.media import looks_like_html
from semrank.transforms.crawls.payload import Body, HttpMessage, decode_body, parse_http
from tests.support.crawls import http

TEXT = b"<html>" + b"some text of a page " * 200 + b"</html>"
CAP = 1 << 20


def chunked(body: bytes, size: int = 700) -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x;ext=1\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def brotli(body: bytes) -> bytes:
    sink = BytesIO()
    writer = BrotliWriter(sink)
    writer.write(body)
    writer.close()
    return sink.getvalue()


def raw_deflate(body: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(body) + compressor.flush()


ENCODED = {
    "gzip": gzip.compress(TEXT),
    "x-gzip": gzip.compress(TEXT),
    "deflate": zlib.compress(TEXT),
    "br": brotli(TEXT),
    "zstd": zstandard.ZstdCompressor().compress(TEXT),
    "identity": TEXT,
    "unheard-of": TEXT,
}


def message(body: bytes, **headers: str) -> HttpMessage:
    parsed = parse_http(http(body, **headers))
    assert parsed is not None
    return parsed


@pytest.mark.parametrize("encoding", list(ENCODED))
def test_content_encodings(encoding: str) -> None:
    body = decode_body(message(ENCODED[encoding], Content_Encoding=encoding.upper()), CAP)
    assert (body.content, body.problem) == (TEXT, None)


def test_zstd_frames_without_content_are_passed_over() -> None:
    packed = b"\x5f\x2a\x4d\x18\x03\0\0\0abc" + ENCODED["zstd"]
    assert decode_body(message(packed, Content_Encoding="zstd"), CAP).content == TEXT
    assert decode_body(message(packed, Content_Type="text/html"), CAP).content == TEXT


def test_bare_deflate_and_stacked_encodings() -> None:
    assert decode_body(message(raw_deflate(TEXT), Content_Encoding="deflate"), CAP).content == TEXT
    twice = gzip.compress(brotli(TEXT))
    assert decode_body(message(twice, Content_Encoding="br, gzip"), CAP).content == TEXT


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
def test_encodings_that_were_undone_before(encoding: str) -> None:
    body = decode_body(message(TEXT, Content_Encoding=encoding, Transfer_Encoding="chunked"), CAP)
    assert (body.content, body.problem) == (TEXT, None)


def test_chunks() -> None:
    assert decode_body(message(chunked(TEXT), Transfer_Encoding="chunked"), CAP).content == TEXT
    both = message(chunked(gzip.compress(TEXT)), Transfer_Encoding="chunked", Content_Encoding="gzip")
    assert decode_body(both, CAP).content == TEXT


@pytest.mark.parametrize("size", [7, 700])
def test_chunks_that_no_header_tells(size: int) -> None:
    html = b"<title>T</title>" * 50
    for body in (chunked(html, size), html):
        assert decode_body(message(body, Content_Type="text/html"), CAP).content == html
    for kept in (chunked(html, size)[:-9], b"5\r\nwords"):
        assert decode_body(message(kept, Content_Type="text/html"), CAP) == Body(kept, None)
    text = chunked(TEXT, size)
    assert decode_body(message(text, Content_Type="text/plain"), CAP).content == text


@pytest.mark.parametrize(
    "before",
    [
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 2,
        b"HTTP/1.0 200 Connection established\r\n\r\n",
        b"HTTP/1.1 200 Connection Established\r\nProxy-agent: Apache\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n",
    ],
)
def test_what_comes_before_the_answer_is_passed_over(before: bytes) -> None:
    found = parse_http(before + b"HTTP/1.1 404 Not Found\r\r\nContent-Type: text/html\r\n\r\nbody")
    assert found is not None
    assert (found.status, found.content_type, found.body) == (404, "text/html", b"body")


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
def test_bodies_that_break_off_give_what_there_is(encoding: str) -> None:
    whole = {
        "gzip": gzip.compress(TEXT),
        "deflate": zlib.compress(TEXT),
        "br": brotli(TEXT),
        "zstd": zstandard.ZstdCompressor().compress(TEXT),
    }[encoding]
    body = decode_body(message(whole[:-6], Content_Encoding=encoding), CAP)
    assert body.problem in ("body-truncated", "body-undecodable")
    assert TEXT.startswith(body.content)


def test_chunks_that_break_off_give_what_there_is() -> None:
    body = decode_body(message(chunked(TEXT)[:1_000], Transfer_Encoding="chunked"), CAP)
    assert body.problem == "body-truncated"
    assert TEXT.startswith(body.content)
    assert len(body.content) > 900


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd"])
def test_bombs_are_cut(encoding: str) -> None:
    bomb = bytes(50 << 20)
    packed = {
        "gzip": gzip.compress(bomb),
        "br": brotli(bomb),
        "zstd": zstandard.ZstdCompressor().compress(bomb),
    }[encoding]
    body = decode_body(message(packed, Content_Encoding=encoding), CAP)
    assert (len(body.content), body.problem) == (CAP, "body-too-large")


def test_garbage_that_claims_to_be_compressed() -> None:
    body = decode_body(message(b"\x1f\x8b garbage", Content_Encoding="gzip"), CAP)
    assert (body.content, body.problem) == (b"", "body-undecodable")


@pytest.mark.parametrize(
    ("block", "status"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", 200),
        (b"HTTP/1.0 404\r\n\r\n", 404),
        (b"http/2 301 Moved\nLocation: /x\n\nbody", 301),
        (b"ICY 200 OK\r\n\r\n", 200),
        (b"HTTP/1.1 200 OK", 200),
    ],
)
def test_status_lines(block: bytes, status: int) -> None:
    parsed = parse_http(block)
    assert parsed is not None
    assert parsed.status == status


@pytest.mark.parametrize(
    "block", [b"", b"<html>", b"HTTP/1.1 OK\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 20\r\n\r\n"]
)
def test_what_is_no_response(block: bytes) -> None:
    assert parse_http(block) is None


def test_headers_and_charset() -> None:
    parsed = message(b"x", content_type='Text/HTML; Charset="utf-8"', Location="/ä", X_Other="1")
    assert (parsed.content_type, parsed.charset, parsed.headers["location"]) == ("text/html", "utf-8", "/ä")
    assert "x-other" not in parsed.headers
    latin = parse_http(b"HTTP/1.1 302 Found\r\nLocation: /\xe4\r\n\r\n")
    assert latin is not None
    assert latin.headers["location"] == "/%E4"  # as Chromium's HttpResponseHeaders::IsRedirect keeps the bytes


@pytest.mark.parametrize(
    ("body", "html"),
    [
        (b"<!DOCTYPE html><p>", True),
        (b"\n <HTML>", True),
        (b"<!-- c --><body>", True),
        (b"<?xml version='1.0'?><rss>", False),
        (b"%PDF-1.4", False),
        (b"plain", False),
        (b"", False),
    ],
)
def test_sniffing(body: bytes, html: bool) -> None:
    assert looks_like_html(body) is html


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([*ENCODED, "chunked"]),
    st.lists(st.tuples(st.integers(0, 4_000), st.integers(0, 9), st.binary(max_size=9)), max_size=3),
    st.booleans(),
)
def test_no_damage_raises(encoding: str, edits: list[tuple[int, int, bytes]], in_chunks: bool) -> None:
    content = ENCODED.get(encoding, TEXT)
    content = chunked(content) if in_chunks else content
    for at, removed, inserted in edits:
        at %= len(content) or 1
        content = content[:at] + inserted + content[at + removed :]
    headers = {"Transfer_Encoding": "chunked"} if in_chunks else {}
    body = decode_body(message(content, Content_Encoding=encoding, **headers), CAP)
    assert len(body.content) <= CAP
    if not edits:
        assert (body.content, body.problem) == (TEXT, None)


@given(st.binary(max_size=100))
def test_any_block_is_a_response_or_none(block: bytes) -> None:
    for content in (block, b"HTTP/1.1 200 OK\r\n" + block):
        parsed = parse_http(content)
        assert parsed is None or decode_body(parsed, CAP).content is not None


@pytest.mark.parametrize("pack", [zlib.compress, raw_deflate])
@pytest.mark.parametrize("name", ["gzip", "x-gzip", "deflate"])
def test_deflated_bodies_by_other_names(name: str, pack: Callable[[bytes], bytes]) -> None:
    assert decode_body(message(pack(TEXT), Content_Encoding=name), CAP) == Body(TEXT, None)


@pytest.mark.parametrize("encoding", ["xz", "compress", "dcb", "br"])
def test_binary_data_of_unknown_encodings_is_no_page(encoding: str) -> None:
    packed = lzma.compress(TEXT)
    assert decode_body(message(packed, Content_Encoding=encoding), CAP).problem in (
        "body-undecodable",
        "body-truncated",
    )
    assert decode_body(message(TEXT + b"\x01", Content_Encoding=encoding), CAP).problem is None
    wide = "<p>x</p>".encode("utf-16-le")
    told = message(wide, content_type="text/html; charset=UTF-16", Content_Encoding="compress")
    assert decode_body(told, CAP) == Body(wide, None)


def test_interim_responses_take_time_in_proportion_to_their_number() -> None:
    begin = time.process_time()
    parsed = parse_http(b"HTTP/1.1 100 Continue\r\n\r\n" * 150_000 + http(b"x"))
    assert parsed is not None
    assert (parsed.status, parsed.body) == (200, b"x")
    assert time.process_time() - begin < 5  # with a copy of the rest for each: 20 s and more
