"""Words as a reader sees them: anchors, texts and titles alike."""

from __future__ import annotations

import pytest

from semrank.transforms.crawls.html import HtmlPage, read_html

URL = "http://example.com/dir/page"


def read(body: str, *, xml: bool = False) -> HtmlPage:
    return read_html(f"<html><head><meta charset=utf-8></head><body>{body}".encode(), url=URL, xml=xml)


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        ("<h3>Alpine huts</h3><p>Open in June</p>", "Alpine huts Open in June"),
        ("First line<br>second line", "First line second line"),
        ("<div>Breaking</div><div>News</div>", "Breaking News"),
        ("<ul><li>One</li><li>Two</li></ul>", "One Two"),
        ("One<hr>Two", "One Two"),
        ("<summary>One</summary>Two", "One Two"),
        ("<table><tr><td>One<td>Two<tr><td>Three</table>", "One Two Three"),
        ("<b>Bold</b>ness", "Boldness"),
        ("<span>a</span><span>b</span>", "ab"),
        ("Do\u00adnau", "Donau"),
        (" One\u00a0Two  Three\n\tFour ", "One Two Three Four"),
        ("<style>.c{color:red}</style>Styled", "Styled"),
        ("<script>var q</script>Scripted", "Scripted"),
        ("<template>not</template>Shown", "Shown"),
        ("<span hidden>not</span>Shown", "Shown"),
        ("<span hidden=until-found>found</span>Shown", "foundShown"),
        ("<span style='color:red; Display : None'>not</span>Shown", "Shown"),
        ("<i style='visibility:hidden'>not</i>Shown", "Shown"),
        ("<i style='background:url(none)'>and</i>Shown", "andShown"),
        ("<svg><title>Icon</title><desc>not</desc></svg>Shown", "Shown"),
        ("<noscript>not</noscript>Shown", "Shown"),
        ("<img alt=Pic><noscript><img alt=Pic></noscript>", "Pic"),
        ("<svg><title>Icon</title></svg>", "Icon"),
        ("<img alt=Pic>Words", "Words"),
        ("<!-- not -->", None),
        ("", None),
    ],
)
def test_anchors(inside: str, words: str | None) -> None:
    assert read(f"<a href=x>{inside}</a>").links.anchors == [words]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("aa<dialog open>bb</dialog>cc", "aa bb cc"),
        ("aa<dialog>bb</dialog>cc", "aacc"),
        ("<details><summary>aa</summary>bb</details>", "aa bb"),
        ("<menu><li>aa<li>bb</menu>cc", "aa bb cc"),
        ("<fieldset><legend>aa</legend>bb</fieldset>", "aa bb"),
        ("<search>aa</search>bb", "aa bb"),
        ("aa<p hidden>bb</p>cc", "aacc"),
        ("aa<div style='display:none'>bb</div>cc", "aacc"),
        ("aa<div style='DISPLAY: NONE !important'>bb</div>cc", "aacc"),
        ("aa<div style='Visibility:Hidden'>bb</div>cc", "aacc"),
        ("aa <svg><title>bb</title><desc>cc</desc></svg>", "aa"),
        ("aa<template>bb</template><canvas>cc</canvas>", "aa"),
        ("aa<title>bb</title>", "aa"),
    ],
)
def test_texts(body: str, words: str) -> None:
    text = read(f"<div>{body}</div>").text
    assert text is not None
    assert " ".join(word for word in text.split() if word != "•") == words


@pytest.mark.parametrize(
    "hidden",
    [
        *(
            f"<{name}>not</{name}>"
            for name in ("noframes", "noembed", "div popover", "div style='visibility:collapse'")
        ),
        "<svg><metadata>not</metadata></svg>",
        *(
            f"<math><{name} encoding='application/x-tex'>not</{name}></math>"
            for name in ("annotation", "annotation-xml")
        ),
    ],
)
def test_what_style_sheets_of_browsers_hide(hidden: str) -> None:
    """HTML, "Hidden elements" and "The popover attribute"; MathML Core shows the first child of `semantics` only."""
    assert read(f"<a href=x>aa{hidden}</a>").links.anchors == ["aa"]
    assert (read(f"<div>aa{hidden}</div>").text or "").split() == ["aa"]


def test_bodies_that_a_script_will_show_have_words() -> None:
    assert read_html(b"<body style='visibility:hidden'><p>words", url=URL).text == "words"
    assert read_html(b"<html hidden><p>words", url=URL).text == "words"


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<svg><title>Icon</title></svg>", None),
        ("<svg><title>Icon</title></svg><title>Real</title>", "Real"),
        ("<svg><foreignObject><title>Real</title></foreignObject></svg>", "Real"),
        ("<math><title>Sum</title></math><title>Real</title>", "Real"),
        ("<template><title>not</title></template><title>Real</title>", "Real"),
        ("<title> </title><title>Second</title>", None),
        ("<title>One</title><title>Two</title>", "One"),
        ("<title>A <b>b</b></title>", "A <b>b</b>"),
    ],
)
def test_titles(html: str, title: str | None) -> None:
    assert read(html).title == title


@pytest.mark.parametrize(
    ("xhtml", "title", "anchors"),
    [
        ("<script src='/a.js'/><title>T</title><a href='x'>on</a>", "T", ["on"]),
        ("<title/><p/><a name='top'/><a href='x'>on</a>", None, ["on"]),
        ("<title>T</title><a href='x' title='a/>b'><b/><![CDATA[1 < 2]]></a>", "T", ["1 < 2"]),
        ("<title>T</title><br/><img src='a'/><a href='x/'>on</a>", "T", ["on"]),
        ("<!-- <script/> --><title>T</title>", "T", []),
    ],
)
def test_xhtml(xhtml: str, title: str | None, anchors: list[str]) -> None:
    page = read(xhtml, xml=True)
    assert (page.title, page.links.anchors) == (title, anchors)
