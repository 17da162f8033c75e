from __future__ import annotations

import re
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from semrank.transforms.streams.parameters import ParameterRules, urls_that_lost_parameters
from semrank.transforms.streams.urls import (
    MAX_RAW_CHARS,
    MAX_URL_CHARS,
    canonical_url,
    canonicalize,
    host_of,
    parse_base,
    plainly_resolved,
    root_of,
    url_words,
)

GOOD = [
    ("http://example.com", "http://example.com/"),
    ("HTTP://EXAMPLE.com:80/A", "http://example.com/A"),
    ("https://example.com:443/", "https://example.com/"),
    ("http://example.com:443/", "http://example.com:443/"),
    ("  http://example.com/ \n", "http://example.com/"),
    ("http://exa\tmple.com/a\nb", "http://example.com/ab"),
    ("http://example.com/a/../b/./c//d", "http://example.com/b/c//d"),
    ("http://example.com/%2e%2e/a/%2E/b", "http://example.com/a/b"),
    ("http://example.com/a#part", "http://example.com/a"),
    ("http://user:secret@example.com/", "http://example.com/"),
    ("http://example.com?", "http://example.com/"),
    ("http://example.com/?#x", "http://example.com/"),
    ("http://exampl%65.org/", "http://example.org/"),
    ("http://app.ıo/", "http://app.xn--o-eka/"),
    ("http://müller.example/straße?q=ü", "http://xn--mller-kva.example/stra%C3%9Fe?q=%C3%BC"),
    ("http://ＥＸＡＭＰＬＥ.com/", "http://example.com/"),
    ("http:\\\\example.com\\a\\b", "http://example.com/a/b"),
    ("http:///host/path", "http://host/path"),
    ("http:/feeds/x.xml", "http://feeds/x.xml"),
    ("http://example.com/a b", "http://example.com/a%20b"),
    ("http://example.com/%zz%", "http://example.com/%zz%"),
    ("http://example.com./", "http://example.com/"),
    ("http://com./com.", "http://com/com."),
    ("http://0x7f.1/", "http://127.0.0.1/"),
    ("http://[::1]:80/", "http://[::1]/"),
    ("http://example.com/p;jsessionid=0A1B.node?x=1", "http://example.com/p?x=1"),
    ("http://example.com/p;JSESSIONID%3D0A1B/q;a=b", "http://example.com/p/q;a=b"),
    ("http://example.com/p;sid=9f86d081884c7d65;x=1", "http://example.com/p;x=1"),
    ("http://example.com/p;sid=news;session_id=CON1204", "http://example.com/p;sid=news;session_id=CON1204"),
    ("http://example.com/p;JSESSIONID=0A1B/q;v=2", "http://example.com/p/q;v=2"),
    ("http://example.com/..;jsessionid=1/a", "http://example.com/a"),
    ("http://example.com/(S(lit3py55t21z5v55vlm25s55))/a.aspx", "http://example.com/a.aspx"),
    ("http://example.com/?PHPSESSID=1&a=2", "http://example.com/?a=2"),
    ("http://example.com/?a=1&sid=9f86d081884c", "http://example.com/?a=1"),
    ("http://example.com/?sid=1234&s=news", "http://example.com/?sid=1234&s=news"),
    (
        "http://example.com/?session_id=CON1204&s=phone-15-review-2024",
        "http://example.com/?session_id=CON1204&s=phone-15-review-2024",
    ),
    ("http://example.com/?session_id=0f8fad5b-d9cb-469f-a165-70867728950e", "http://example.com/"),
    ("http://example.com/?sid=q1w2e3r4t5y6u7i8&sess=aB3,-dE6fG9hI2jK5lM8nO1pQ", "http://example.com/"),
    ("http://example.com/?sid=chapter12introduction", "http://example.com/?sid=chapter12introduction"),
    ("http://example.com/?pk_product=1&pk_campaign=a&pk=2", "http://example.com/?pk_product=1&pk=2"),
    ("http://example.com/?utm_zone=32&mtm_x=1&hsa_y=2", "http://example.com/?utm_zone=32&mtm_x=1&hsa_y=2"),
    ("http://example.com/?ASPSESSIONIDQABCDEFG=x", "http://example.com/"),
    ("http://example.com/?utm_source=a&UTM_medium=b&q=c&fbclid=d&gclid=e", "http://example.com/?q=c"),
    ("http://example.com/?utm%5Fsource=a", "http://example.com/"),
    ("http://example.com/?PHPSESSID=1;id=7", "http://example.com/?id=7"),
    ("http://example.com/?utm_source=a;utm_medium=b;id=7;x=y&z=1", "http://example.com/?id=7;x=y&z=1"),
    ("http://example.com/?utm_source=a;gclid=b", "http://example.com/"),
    ("http://example.com/?a=1&&b&", "http://example.com/?a=1&b"),
    ("http://example.com/?b=2&a=1&b=1", "http://example.com/?b=2&a=1&b=1"),
    ("http://example.com/a\ud800b", "http://example.com/a%EF%BF%BDb"),
]

BAD = [
    ("", "url-missing"),
    (" \x00\n", "url-missing"),
    ("/relative", "scheme-missing"),
    ("example.com/a", "scheme-missing"),
    ("//example.com/", "scheme-missing"),
    ("mailto:a@example.com", "scheme-unsupported"),
    ("javascript:void(0)", "scheme-unsupported"),
    ("ftp://example.com/", "scheme-unsupported"),
    ("data:text/html,x", "scheme-unsupported"),
    ("http://", "host-missing"),
    ("https:///?a", "host-missing"),
    ("http://[http//w.example/", "url-invalid"),
    ("http://exa mple.com/", "url-invalid"),
    ("http://example.com:99999/", "url-invalid"),
    ("http://xn--/", "url-invalid"),
    ("http://economist...../", "host-invalid"),
    ("http://a..b/", "host-invalid"),
    (f"http://{'a' * 64}.com/", "host-invalid"),
    (f"http://{'a.' * 127}com/", "host-invalid"),
    ("http://example.com/" + "a" * MAX_URL_CHARS, "url-too-long"),
    ("http://example.com/" + "ü" * (MAX_URL_CHARS // 5), "url-too-long"),
    ("x" * (MAX_RAW_CHARS + 1), "url-too-long"),
]


@pytest.mark.parametrize(("raw", "expected"), GOOD)
def test_canonical(raw: str, expected: str) -> None:
    assert canonical_url(raw) == (expected, None)


@pytest.mark.parametrize(("raw", "reason"), BAD)
def test_unusable(raw: str, reason: str) -> None:
    assert canonical_url(raw) == (None, reason)


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("b", "http://h/d/b"),
        ("../b", "http://h/b"),
        ("?q=1", "http://h/d/p?q=1"),
        ("//o/x", "http://o/x"),
        ("http:/feeds/x.xml", "http://h/feeds/x.xml"),
        ("\\x", "http://h/x"),
        ("", "http://h/d/p?z"),
        ("http://[", None),
        ("mailto:x", None),
    ],
)
def test_references_are_resolved(reference: str, expected: str | None) -> None:
    assert canonical_url(reference, "http://h/d/p?z").url == expected
    assert canonical_url(reference, parse_base("http://h/d/p?z")).url == expected


def test_raw_string_may_be_longer_than_the_cap_if_the_canonical_one_is_not() -> None:
    assert canonical_url("http://h/?utm_source=" + "a" * MAX_URL_CHARS + "&a=1").url == "http://h/?a=1"


hosts = st.sampled_from(
    ["example.com", "EXAMPLE.com.", "exa_mple.com", "müller.de", "[::1]", "1.2.3", "a..b", "u:p@h", "h:80"]
)
pieces = st.sampled_from(
    [
        *"/?#;&=.%\\ ab1()",
        "..",
        "%2e",
        "%zz",
        ";jsessionid=",
        "jsessionid=",
        "sid=",
        "utm_a=",
        "(S(x1))",
        "9f86d0",
        "ü",
        "\t",
    ]
)
urlish = st.builds(
    "{}{}{}".format,
    st.sampled_from(["http://", "https:", "HTTP:\\\\"]),
    hosts,
    st.lists(pieces, max_size=20).map("".join),
)


@given(st.one_of(urlish, st.text(max_size=60)))
@example("http://h/;jsessi;jsessionid=1onid=2")
@example("http://h/..;jsessionid=1/..;jsessionid=2/x")
@example("http://h/(S(a))/(S(b))/x")
def test_canonicalising_twice_changes_nothing(raw: str) -> None:
    url, reason = canonical_url(raw)
    assert (url is None) != (reason is None)
    if url is not None:
        assert canonical_url(url).url == url
        parts = urlsplit(url)
        assert parts.scheme in ("http", "https")
        assert url.isascii()
        assert not re.search(r"[\s#]", url)
        assert "\\" not in parts.path
        assert parts.username is None
        assert "?" not in url or url.partition("?")[2]


@given(urlish, st.lists(st.one_of(pieces, st.sampled_from("/.ab~")), max_size=9).map("".join))
@example("http://example.com./a", "/b/c.html")
@example("http://h:80/a;jsessionid=1?b", "/b/")
def test_plain_paths_are_resolved_as_others_are(base: str, path: str) -> None:
    parsed = parse_base(base)
    if parsed is not None:
        plain = plainly_resolved(f"/{path}", root_of(parsed))
        assert plain in (None, canonical_url(f"/{path}", parsed).url)
        if root_of(parsed) is not None and re.fullmatch(r"(?:\w+/)*\w*", path, re.ASCII):
            assert plain is not None


@given(st.lists(st.one_of(st.none(), urlish), max_size=20))
def test_arrays_are_canonicalised_as_single_urls_are(raws: list[str | None]) -> None:
    expected = [canonical_url(raw or "") for raw in raws]
    array = pa.array(raws, pa.string())
    for form in (array, array.dictionary_encode(), pa.chunked_array([array.slice(0, 3), array.slice(3)])):
        result = canonicalize(form)
        assert result.urls.to_pylist() == [url for url, _ in expected]
        assert result.reasons.to_pylist() == [reason for _, reason in expected]


def test_hosts() -> None:
    urls = pa.array(["http://example.com/", "https://example.com:8080/a", "http://[::1]:81/?x", None, "no url"])
    assert host_of(urls).to_pylist() == ["example.com", "example.com", "[::1]", None, None]
    assert host_of(pa.chunked_array([urls, urls])).to_pylist()[5] == "example.com"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://example.com/", []),
        ("http://example.com/Red-apples_and/pears2.html", ["Red", "apples", "and", "pears"]),
        ("http://example.com/Caf%C3%A9/na%C3%AFve", ["Café", "naïve"]),
        ("http://example.com/search?q=new+york&page=2&hotel", ["search", "new", "york", "hotel"]),
        ("http://example.com/%E6%9D%B1%E4%BA%AC", ["東京"]),
        ("http://example.com/%FF%zz", ["zz"]),
        ("http://example.com/?a.b", ["a", "b"]),
        ("http://example.com/a.b/c.php?id=x", ["a", "b", "c", "x"]),
    ],
)
def test_words_of_urls(url: str, words: list[str]) -> None:
    assert url_words(pa.array([url])).to_pylist() == [words]


def test_words_of_arrays_keep_nulls_and_slices() -> None:
    urls = pa.array(["http://h/a", None, "http://h/b%20c", "http://h/"])
    assert url_words(urls).to_pylist() == [["a"], None, ["b", "c"], []]
    assert url_words(urls.slice(1, 2)).to_pylist() == [None, ["b", "c"]]
    assert url_words(pa.array([], pa.string())).to_pylist() == []


def test_users_keep_and_drop_parameters() -> None:
    raw = "http://example.com/?UTM_source=a&ref=b&sid=9f86d081884c&c=d"
    rules = ParameterRules.of(["utm_SOURCE", "sid", "ref"], ["ref", "c"])
    assert canonical_url(raw, rules=rules).url == "http://example.com/?UTM_source=a&ref=b&sid=9f86d081884c"
    assert canonicalize(pa.array([raw]), rules).urls.to_pylist() == [canonical_url(raw, rules=rules).url]
    assert canonical_url(raw).url == "http://example.com/?ref=b&c=d"


def test_urls_that_lose_parameters_are_counted() -> None:
    before = urls_that_lost_parameters()
    for raw in ("http://h/?gclid=1&fbclid=2", "http://h/?a=1&&", "http://h/?sid=news", "http://h/?a&utm_id=1"):
        canonical_url(raw)
    assert urls_that_lost_parameters() - before == 2
