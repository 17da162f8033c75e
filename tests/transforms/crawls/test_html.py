from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semrank.transforms.crawls.charsets import decode_html
from semrank.transforms.crawls.html import guess_language, read_html
from semrank.transforms.crawls.links import MAX_ANCHOR_CHARS, MAX_REFRESH_SECONDS
from semrank.transforms.crawls.markup import MAX_NESTING
from semrank.transforms.crawls.media import computed_type
from semrank.transforms.streams.urls import canonical_url

URL = "http://example.com/dir/page"


def targets(html: str) -> list[str]:
    return read_html(html.encode(), url=URL).links.targets


def test_title_text_language_and_links() -> None:
    page = read_html(
        b"<html lang='de-AT'><head><title> A\n title &amp; more </title></head><body><p>The words of the page.</p>"
        b"<a href='one'>First <b>link</b></a><a href=/two#part rel='external NoFollow'>Second</a></body></html>",
        url=URL,
    )
    assert page.title == "A title & more"
    assert page.text is not None
    assert "The words of the page." in page.text
    assert page.language == "de"
    assert page.links.targets == ["http://example.com/dir/one", "http://example.com/two"]
    assert page.links.anchors == ["First link", "Second"]
    assert page.links.nofollows == [False, True]
    assert not page.links.noindex


@pytest.mark.parametrize("body", [b"", b"\x00", b"<", b"<html", b"\xff\xfe", b"plain words", b"<a href=", b"<!--" * 50])
def test_any_bytes_are_a_page(body: bytes) -> None:
    page = read_html(body, url=URL)
    assert page.links.targets == []
    assert page.title is None


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("<base href='http://other.example/x/'>", "http://other.example/x/a"),
        ("<base href='sub/'>", "http://example.com/dir/sub/a"),
        ("<base target=_top><base href='/first/'><base href='/second/'>", "http://example.com/first/a"),
        ("<base href='http://['>", "http://example.com/dir/a"),
        ("<svg><base href='/svg/'></svg><base href='/first/'>", "http://example.com/first/a"),
        ("", "http://example.com/dir/a"),
    ],
)
def test_base_elements(base: str, expected: str) -> None:
    assert targets(f"<head>{base}</head><a href=a>x</a>") == [expected]


def test_anchor_texts() -> None:
    page = read_html(
        b"<a href=1> <img alt='a picture'> <img alt=''><img alt=two></a><a href=2>words <img alt=no></a>"
        b"<a href=3></a><map><area href=4 alt='an area'></map><a href=5>" + b"long " * 500 + b"</a>",
        url=URL,
    )
    assert page.links.anchors[:4] == ["a picture two", "words", None, "an area"]
    assert len(page.links.anchors[4] or "") <= MAX_ANCHOR_CHARS


def test_links_that_lead_nowhere_are_counted_and_bad_ones_kept() -> None:
    links = read_html(
        b"<a href='#top'>t</a><a href='mailto:x@y.example'>m</a><a href='javascript:go()'>j</a><a href='http://['>b</a>"
        b"<a href='http://a..b/'>c</a><a name=x>n</a><a href=ok>o</a>",
        url=URL,
    ).links
    assert links.targets == ["http://example.com/dir/ok"]
    assert links.counters == {"links-to-fragment": 1, "links-scheme-unsupported": 2}
    assert links.bad == [("url-invalid", "http://["), ("host-invalid", "http://a..b/")]


def test_links_over_the_cap_are_counted() -> None:
    page = read_html(b"".join(b"<a href=%d>x</a>" % number for number in range(10)), url=URL, max_links=4)
    assert page.links.targets == [f"http://example.com/dir/{number}" for number in range(4)]
    assert page.links.counters == {"links-over-cap": 6}


@pytest.mark.parametrize(
    ("content", "noindex", "nofollow"),
    [
        ("index, follow", False, False),
        ("NOINDEX", True, False),
        ("nofollow,noarchive", False, True),
        ("none", True, True),
        ("noindex nofollow", True, True),
        ("max-image-preview:none", False, False),
        ("max-image-preview: none, noindex", True, False),
        ("unavailable_after: 25-Jun-2030 15:00:00 EST; nofollow", False, True),
    ],
)
def test_robots_directives(content: str, noindex: bool, nofollow: bool) -> None:
    html = f"<head><title>T</title><meta name=Robots content='{content}'></head><p>words</p><a href=a>x</a>".encode()
    page = read_html(html, url=URL)
    assert (page.links.noindex, page.links.nofollow) == (noindex, nofollow)
    assert (page.title is None, page.text is None) == (noindex, noindex)
    assert page.links.targets == ["http://example.com/dir/a"]
    header = read_html(b"<title>T</title>words<a href=a>x</a>", url=URL, robots=content)
    assert (header.links.noindex, header.links.nofollow) == (noindex, nofollow)


def test_canonical_link_is_recorded_unless_it_names_the_page() -> None:
    html = b"<link rel='stylesheet' href=s><link rel='alternate Canonical' href='/real?utm_source=x'>"
    assert read_html(html, url=URL).links.canonical == "http://example.com/real"
    assert read_html(b"<link rel=canonical href='page#x'>", url=URL).links.canonical is None


@pytest.mark.parametrize(
    ("content", "refresh", "link"),
    [
        ("0; url=/new", "http://example.com/new", None),
        ("0;URL='new'", "http://example.com/dir/new", None),
        ('5, "http://o.example/"', "http://o.example/", None),
        (f"{MAX_REFRESH_SECONDS + 1}; url=/slow", None, "http://example.com/slow"),
        ("30", None, None),
        ("0; url=page", None, None),
        ("0; url=", None, None),
        ("now; url=/x", None, None),
    ],
)
def test_refreshes(content: str, refresh: str | None, link: str | None) -> None:
    html = (
        f"<meta http-equiv=Refresh content='{content}'>"
        if "'" not in content
        else (f'<meta http-equiv=Refresh content="{content}">')
    )
    links = read_html(html.encode(), url=URL).links
    assert links.refresh == refresh
    assert links.targets == ([] if link is None else [link])
    assert read_html(b"", url=URL, refresh=content).links.refresh == refresh


def test_refresh_for_browsers_without_scripts_is_none() -> None:
    html = b"<noscript><meta http-equiv=refresh content='0; url=/nojs'></noscript><p>x"
    assert read_html(html, url=URL).links.refresh is None


RUSSIAN = "Привет, это страница о кошках и собаках, которую написали люди."
CHINESE = "这是一个关于猫和狗的网页，由人写成，内容很多。"


@pytest.mark.parametrize(
    ("body", "charset"),
    [
        (RUSSIAN.encode("windows-1251"), "windows-1251"),
        (RUSSIAN.encode("koi8-r"), " 'KOI8-R' "),
        (b"<meta charset=windows-1251>" + RUSSIAN.encode("windows-1251"), None),
        (b'<META http-equiv=Content-Type content="text/html; charset=koi8-r">' + RUSSIAN.encode("koi8-r"), None),
        (b" " * 5_000 + b"<meta charset='koi8-r'>" + RUSSIAN.encode("koi8-r"), None),
        (b"<?xml version='1.0' encoding='windows-1251'?>" + RUSSIAN.encode("windows-1251"), None),
        (b"<meta charset=nonsense>" + RUSSIAN.encode("utf-8"), "also-nonsense"),
        (b"<meta charset=utf-16>" + RUSSIAN.encode("utf-8"), None),
        (b"<meta charset=koi8-r>" + RUSSIAN.encode("utf-8"), "utf-8"),
        (b"\xef\xbb\xbf" + RUSSIAN.encode("utf-8"), "koi8-r"),
        (b"\xff\xfe" + RUSSIAN.encode("utf-16-le"), None),
        (b"\xfe\xff" + RUSSIAN.encode("utf-16-be"), "koi8-r"),
        (RUSSIAN.encode("utf-8"), None),
        (RUSSIAN.encode("windows-1251"), None),
    ],
)
def test_character_encodings(body: bytes, charset: str | None) -> None:
    assert decode_html(body, charset).text.endswith(RUSSIAN)


def test_labels_mean_what_browsers_take_them_for() -> None:
    assert decode_html(b"\x93quoted\x94", "iso-8859-1").text == "“quoted”"
    assert decode_html("𠀀中".encode("gb18030"), "gb2312").text.endswith("中")
    assert decode_html("日本語のページです。".encode("iso-2022-jp"), None).text == "日本語のページです。"
    assert decode_html(b"a\xffb", "utf-8").text == "a�b"


@pytest.mark.parametrize(
    ("html", "language"),
    [
        ("<html lang=EN-us><p>x", "en"),
        ("<html xml:lang='fr'><p>x", "fr"),
        ("<html lang='deu'><p>x", "de"),
        ("<html lang=''><p>" + RUSSIAN, "ru"),
        ("<html lang=und><p>" + RUSSIAN, "ru"),
        ("<p>short", None),
    ],
)
def test_languages(html: str, language: str | None) -> None:
    assert read_html(html.encode(), url=URL).language == language


def test_guesses_need_text() -> None:
    assert guess_language(None) is None
    assert guess_language("word") is None
    assert guess_language("This is a longer sentence of plain English words, and one more.") == "en"


def test_deep_nesting_costs_no_more_than_the_text() -> None:
    depth = 10 * MAX_NESTING
    begin = time.monotonic()
    page = read_html(b"<div>" * depth + b"deep words" + b"</div>" * depth, url=URL)
    assert page.text == "deep words"
    assert page.links.counters == {"html-too-deep": 1}
    assert time.monotonic() - begin < 2.0


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>我<b>是</b>人</p>", "我是人"),
        ("<ruby>漢<rt>かん</rt>字</ruby>", "漢かん字"),
        ("<table><tr><td> 年 <td>2024<td>가<td>अ</table>", "年 \t\t2024\t\t가\t\tअ"),
        ("<p>鷺<p>heron<p>•<p>…", "鷺\n\nheron"),
    ],
)
def test_letters_that_stand_alone_are_text_and_bullets_are_none(html: str, text: str) -> None:
    assert read_html(f"<body>{html}".encode(), url=URL, charset="utf-8").text == text


def test_flat_pages_with_many_blocks_are_not_taken_for_deep() -> None:
    page = read_html(b"<div>word</div>" * (2 * MAX_NESTING), url=URL)
    assert "html-too-deep" not in page.links.counters


tokens = st.sampled_from(
    [
        *(
            b"<a href='",
            b"'>",
            b"<a href=",
            b" rel=nofollow ",
            b"<base href=",
            b"<meta http-equiv=refresh content='0;url=",
        ),
        *(b"<meta name=robots content=", b"<meta charset=", b"gbk", b"utf-16", b"<img alt=", b"<area href=", b"<svg>"),
        *(
            b"<title>",
            b"</title>",
            b"<table><tr>",
            b"<!--",
            b"-->",
            b"<![CDATA[",
            b"<script>",
            b"<template>",
            b"<p>",
            b"</a>",
        ),
        *(
            b"http://h/",
            b"//",
            b"?",
            b"#",
            b";",
            b"&amp;",
            b"&#xD800;",
            b"&#0;",
            b"\x00",
            b"\xff\xfe",
            b"\xc3\x28",
            b"words ",
        ),
    ]
)


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(st.binary(max_size=200), st.lists(tokens, max_size=25).map(b"".join)), st.sampled_from([None, "gbk", "x"])
)
def test_any_markup_gives_a_page(body: bytes, charset: str | None) -> None:
    page = read_html(body, url=URL, charset=charset)
    links = page.links
    assert len(links.targets) == len(links.anchors) == len(links.nofollows)
    assert all(canonical_url(target).url == target for target in links.targets)
    for text in (page.title, page.text, *links.anchors):
        assert text is None or text.strip()
        assert text is None or text.encode()


@pytest.mark.parametrize("prefix", ["html", "h", "x-1"])
def test_xhtml_may_have_prefixes(prefix: str) -> None:
    page = (
        f"<?xml version='1.0'?><{prefix}:html xmlns:{prefix}='http://www.w3.org/1999/xhtml' xmlns:o='urn:o' lang='de'>"
        f"<{prefix}:head><{prefix}:title>T</{prefix}:title><{prefix}:script src='x'/></{prefix}:head><{prefix}:body>"
        f"<{prefix}:a href='/a'>one <{prefix}:b>two</{prefix}:b></{prefix}:a><o:a href='/o'>no link</o:a>"
        f"<{prefix}:p>Words &amp; more<{prefix}:br/>of them.</{prefix}:p></{prefix}:body></{prefix}:html>"
    )
    body = page.encode()
    found = read_html(body, url="http://example.com/", xml=True)
    assert (found.title, found.language) == ("T", "de")
    assert list(zip(found.links.targets, found.links.anchors, strict=True)) == [("http://example.com/a", "one two")]
    assert found.text is not None
    assert "Words & more\nof them." in found.text
    assert computed_type("application/xml", body) == computed_type(None, body) == "application/xhtml+xml"


def test_frames_count_as_links_where_they_lead_to_pages() -> None:
    frames = [f"<iframe src='{src}'></iframe>" for src in ("/a", "javascript:x", "about:blank", "")]
    links = read_html("".join(frames).encode(), url="http://example.com/").links
    assert (links.targets, links.counters["links-from-frames"]) == (["http://example.com/a"], 1)
    assert links.counters["links-scheme-unsupported"] == 2
