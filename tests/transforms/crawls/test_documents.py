"""Titles of PDF and XML documents, good and odd ones, and of any bytes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semrank.transforms.crawls.documents import document_title, may_have_title
from semrank.transforms.crawls.warc import read
from tests.support.crawls import http, stream, together, warc


def pdf(info: bytes, *, more: bytes = b"", trailer: bytes = b"<< /Size 9 /Info 7 0 R >>") -> bytes:
    outline = b"3 0 obj << /Title (Chapter 1) /Parent 2 0 R >> endobj\n17 0 obj << /Title (No info) >> endobj\n"
    return b"%PDF-1.7\n" + outline + b"7 0 obj << " + info + b" >> endobj\n" + more + b"trailer " + trailer + b"\n%%EOF"


XMP = b"<dc:title><rdf:Alt><rdf:li xml:lang='x-default'>Owls &amp; \xc3\xa9tudes</rdf:li></rdf:Alt></dc:title>"


@pytest.mark.parametrize(
    ("body", "title"),
    [
        (pdf(b"/Title (Barn owls) /Author (A)"), "Barn owls"),
        (pdf(rb"/Title(A \(b\) (c) \\ \144\n  e)"), "A (b) (c) \\ d e"),
        (pdf(b"/Title (two \\\nlines)"), "two lines"),
        (pdf(b"/Title (\xfe\xff\x00O\x00w\x00l)"), "Owl"),
        (pdf(b"/Title <FEFF 004F 0077 006C>"), "Owl"),
        (pdf(b"/Title (\xef\xbb\xbfH\xc3\xbbu)"), "Hûu"),
        (pdf(b"/Title <4F776>"), "Ow`"),
        (pdf(b"/Title ()"), None),
        (pdf(b"/Author (A)"), None),
        (pdf(b"/Author (A)", more=XMP), "Owls & études"),
        (pdf(b"/Title (\x93\x01\xff)", more=XMP, trailer=b"<< /Info 7 0 R /Encrypt 8 0 R >>"), "Owls & études"),
        (pdf(b"/Title (Old)", more=b"trailer << /Info 3 0 R >>"), "Old"),
        (b"%PDF-1.4 cut off", None),
        (b"", None),
    ],
)
def test_titles_of_pdf(body: bytes, title: str | None) -> None:
    assert document_title("application/pdf", body) == title


@pytest.mark.parametrize(
    ("content_type", "body", "title"),
    [
        ("application/rss+xml", b"<rss><channel><title>News &amp; more</title><item><title>x</title>", "News & more"),
        ("application/atom+xml", b"<feed><title type='html'><![CDATA[ Owl <b>news</b> ]]></title>", "Owl news"),
        ("application/atom+xml", b"<feed><title type='html'>Owl &lt;b>news&lt;/b> &amp;amp;</title>", "Owl news &"),
        ("application/atom+xml", b"<feed><title type='xhtml'><div>Owl <b>news</b></div></title>", "Owl news"),
        ("application/atom+xml", b"<feed><entry><title>x</title></entry><title>Owls</title>", "Owls"),
        ("application/atom+xml", b"<a:feed><a:title>Owls</a:title><a:entry>", "Owls"),
        ("application/rss+xml", b"<rss><channel><image><title>x</title></image><title>Owls</title>", "Owls"),
        ("application/rss+xml", b"<rss><channel><media:title>x</media:title><title>Owls</title>", "Owls"),
        ("application/rss+xml", b"<!-- <title>x</title> --><rss><item/><channel><title>Owls</title>", "Owls"),
        ("application/rdf+xml", b"<rdf:RDF><item><title>x</title></item><channel><title>Owls</title>", "Owls"),
        ("text/xml", "<?xml version='1.0' encoding='iso-8859-1'?><a><title>é</title>".encode("latin-1"), "é"),
        ("application/xml", b"<svg:title>\n A\n b </svg:title>", "A b"),
        ("application/xml", b"<a><title/><title></title></a>", None),
        ("application/json", b"<title>no</title>", None),
        ("image/svg+xml", b"<title>no document</title>", None),
        (None, b"<title>no</title>", None),
    ],
)
def test_titles_of_xml(content_type: str | None, body: bytes, title: str | None) -> None:
    """RFC 4287: children of a feed have no order, and a title may be HTML. RSS 2.0: an image has a title, too."""
    assert document_title(content_type, body) == title
    assert title is None or may_have_title(content_type)


@settings(max_examples=200, deadline=None)
@given(
    pieces=st.lists(
        st.one_of(
            st.sampled_from(
                [
                    *(
                        b"/Title (",
                        b")",
                        b"(",
                        b"\\",
                        b"/Title <",
                        b">",
                        b"/Info 7 0 R",
                        b"7 0 obj",
                        b"\\777",
                        b"<title>",
                        b"<title type='xhtml'>",
                        b"<!--",
                        b"<item>",
                    ),
                    *(b"<![CDATA[", b"]]>", b"</title>", b"&#x110000;", b"&#", b"\xfe\xff", XMP),
                ]
            ),
            st.binary(max_size=6),
        ),
        max_size=20,
    ),
    content_type=st.sampled_from(["application/pdf", "text/xml", "application/rss+xml"]),
)
def test_any_bytes_have_a_title_or_none(pieces: list[bytes], content_type: str) -> None:
    title = document_title(content_type, b"".join(pieces))
    assert title is None or title == " ".join(title.split()) != ""


def test_documents_with_a_title_are_pages_without_text() -> None:
    body = pdf(b"/Title (Barn owls)")
    records = [
        warc(http(body, content_type="application/pdf"), "http://a.example/1.pdf"),
        warc(http(body, content_type="application/pdf", X_Robots_Tag="noindex"), "http://a.example/2.pdf"),
        warc(http(pdf(b""), content_type="application/pdf"), "http://a.example/3.pdf"),
        warc(http(body, status="404 Not Found", content_type="application/pdf"), "http://a.example/4.pdf"),
    ]
    found = together(read(stream(b"".join(records)), source="x.warc"))
    assert [(row["url"], row["status"], row["title"], row["text"]) for row in found["pages"]] == [
        ("http://a.example/1.pdf", 200, "Barn owls", ""),
        ("http://a.example/4.pdf", 404, None, None),
    ]
    assert found["pages"][0]["content_digest"].startswith("sha1:")
    assert (found["used"], found["ignored"]) == (2, {"not-html": 2})
