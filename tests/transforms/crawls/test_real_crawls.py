"""Published crawls read twice: here, and with another WARC reader and the HTML parser of the standard library."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
from warcio.archiveiterator import ArchiveIterator

from semrank.transforms.crawls.pages import CrawlLimits
from semrank.transforms.crawls.warc import read
from semrank.transforms.streams.urls import canonical_url
from tests.support.crawls import together

FILES = ["iana.warc.gz", "whirlwind.warc.gz", "resiliparse-warcfile.warc.gz", "example.warc.gz"]


class _Links(HTMLParser):
    """Targets of a, area and frame elements, the base and the title."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.hrefs: list[str] = []
        self.base: str | None = None
        self.title = ""
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = "src" if tag in ("frame", "iframe") else "href"
        href = next((value for name, value in attrs if name == named), None)
        if tag in ("a", "area", "frame", "iframe") and href is not None:
            self.hrefs.append(href)
        elif tag == "base" and href is not None and self.base is None:
            self.base = href
        self._in_title = tag == "title" and not self.title

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data

    def handle_endtag(self, tag: str) -> None:
        self._in_title = self._in_title and tag != "title"


def expected_links(body: bytes, charset: str, url: str) -> tuple[str, list[str]]:
    parser = _Links()
    parser.feed(body.decode(charset, "replace"))
    base = urljoin(url, parser.base or "")
    targets = []
    for href in parser.hrefs:
        if href.strip().startswith("#") or href.strip() in ("http://", "https://"):  # urljoin takes these for empty
            continue
        target = urljoin(base, href.strip())
        if urlsplit(target).scheme in ("http", "https"):
            found = canonical_url(target).url
            targets += [] if found is None else [found]
    return " ".join(parser.title.split()), targets


@pytest.mark.parametrize("name", FILES)
def test_pages_and_links_agree_with_independent_readers(name: str, shared_data: Path) -> None:
    path = shared_data / "warc" / name
    with path.open("rb") as opened:
        found = together(read(opened, source=name, limits=CrawlLimits(max_links=1_000_000)))
    links: dict[str, list[str]] = {}
    for row in found["links"]:
        links.setdefault(row["source_url"], []).append(row["target_url"])
    titles = {row["url"]: row["title"] for row in found["pages"]}
    records = pages = 0
    with path.open("rb") as opened:
        for record in ArchiveIterator(opened):
            records += 1
            if record.rec_type != "response" or record.http_headers is None:
                continue
            content_type = record.http_headers.get_header("Content-Type") or ""
            if not content_type.startswith("text/html") or record.http_headers.get_statuscode() != "200":
                continue
            pages += 1
            url = canonical_url(record.rec_headers.get_header("WARC-Target-URI")).url
            assert url is not None
            body = record.content_stream().read()
            declared = content_type.partition("charset=")[2].strip() or (
                "gb18030" if b"charset=gb" in body.lower() else "utf-8"
            )
            charset = "gb18030" if declared.lower() == "gb2312" else declared
            title, targets = expected_links(body, charset, url)
            if titles[url] is not None:
                assert titles[url] == title
            assert sorted(links.get(url, [])) == sorted(targets), url
    assert records == found["records"]
    assert pages == len(found["pages"])
    assert found["rejected"] == {}
