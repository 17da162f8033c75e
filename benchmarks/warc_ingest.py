"""Reading a crawl: WARC records to conformed tables, against a bare loop over FastWARC and Resiliparse.

The crawl is generated: pages with a menu that the footer repeats, a main text of some hundred words, a list of further
links, styles and scripts; one gzip member a record, a request before each response and one image in five responses. The
bare loop takes the same fields from the same pages, but knows no damage, no encodings, no caps and no reasons.
"""

from __future__ import annotations

import gzip
import random
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import can_ada
from fastwarc.warc import ArchiveIterator, WarcRecordType
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree
from resiliparse.parse.lang import detect_fast

from benchmarks.harness import Result, interleaved
from semrank.transforms.crawls import warc

PAGES = 1_000
QUICK_PAGES = 60
REPEATS = 5
AIM = 1.5

_WORDS = (
    *("water", "river", "stone", "garden", "market", "letter", "winter", "summer", "window"),
    *("bridge", "castle", "forest", "island", "harbour", "village", "museum", "history", "science"),
    *("music", "theatre", "painter", "writer", "doctor", "teacher", "student", "number", "energy"),
    *("engine", "railway", "station", "ticket", "travel", "weather", "mountain", "valley", "animal"),
    *("flower", "bread", "coffee", "kitchen", "family", "children", "morning", "evening", "story"),
    *("picture"),
)
_STYLE = "body{margin:0;font:16px sans-serif}.menu a{color:#336}.box{padding:1em;border:1px solid #ccc}\n" * 40
_SCRIPT = "function go(i){var e=document.getElementById('x'+i);if(e){e.className='on';}return false;}\n" * 60


def write_crawl(path: Path, pages: int, seed: int = 11) -> None:
    """Write a WARC file with one gzip member a record."""
    draw = random.Random(seed)
    with path.open("wb") as out:
        for number in range(pages):
            host = f"www.site{number % 50}.example"
            url = f"http://{host}/{draw.choice(_WORDS)}/{number}.html"
            out.write(_member("request", url, f"GET /{number}.html HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()))
            if number % 5 == 4:
                image = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n" + draw.randbytes(20_000)
                out.write(_member("response", url.replace(".html", ".png"), image))
            html = _page(draw, host, pages).encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(html)}\r\n\r\n"
            out.write(_member("response", url, head.encode() + html))


def _member(kind: str, url: str, block: bytes) -> bytes:
    header = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2024-03-01T12:00:00Z\r\n"
        f"WARC-Payload-Digest: sha1:{'A' * 32}\r\nContent-Type: application/http; msgtype={kind}\r\n"
        f"Content-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(header.encode() + block + b"\r\n\r\n", compresslevel=6)


def _page(draw: random.Random, host: str, pages: int) -> str:
    def text(words: int) -> str:
        return " ".join(draw.choices(_WORDS, k=words))

    def link() -> str:
        target = f"/{draw.choice(_WORDS)}/{draw.randrange(pages)}.html"
        if draw.random() < 0.2:
            target = f"http://www.site{draw.randrange(50)}.example{target}"
        return f'<a class="l" href="{target}">{text(3)}</a>'

    menu = "".join(f"<li>{link()}</li>" for _ in range(40))
    paragraphs = "".join(f"<p>{text(30)}, {link()} {text(20)}.</p>" for _ in range(25))
    more = "".join(f'<div class="box"><h3>{text(4)}</h3>{link()}<span>{text(8)}</span></div>' for _ in range(60))
    return (
        f'<!DOCTYPE html><html lang="en"><head><title>{text(5)}</title><meta name="description" content="{text(15)}">'
        f"<style>{_STYLE}</style><script>{_SCRIPT}</script></head><body><nav class=menu><ul>{menu}</ul></nav>"
        f"<main><article><h1>{text(5)}</h1>{paragraphs}</article></main><aside>{more}</aside>"
        f"<footer><ul>{menu}</ul><p>{host} {text(10)}</p></footer></body></html>"
    )


def read_with_ours(path: Path) -> tuple[int, int]:
    """Ours: pages and links of the crawl."""
    pages = links = 0
    with path.open("rb") as stream:
        for batch in warc.read(stream, source=str(path)):
            pages += batch.tables["pages"].num_rows
            links += batch.tables["links"].num_rows
    return pages, links


def read_in_a_loop(path: Path) -> tuple[int, int]:
    """The peer: pages and links that the bare loop takes."""
    pages: list[tuple[Any, ...]] = []
    links: list[tuple[str, str, str | None, bool]] = []
    with path.open("rb") as stream:
        for record in ArchiveIterator(stream, record_types=WarcRecordType.response):
            if record.http_content_type != "text/html":
                continue
            url = can_ada.parse(record.headers["WARC-Target-URI"]).href
            tree = HTMLTree.parse_from_bytes(record.reader.read(), record.http_charset or "utf-8")
            base = can_ada.parse(url)
            document = tree.document
            if document is None:
                continue
            for element in document.query_selector_all("a[href]").values():
                target = (base + (element.get_attribute("href") or "")).href
                rel = element.get_attribute("rel")
                links.append((url, target, element.text_content, rel is not None and "nofollow" in rel))
            text = extract_plain_text(tree, main_content=True)
            root = document.document_element
            language = root.get_attribute("lang") if root is not None else None
            pages.append(
                (
                    url,
                    record.record_date,
                    record.http_headers.status_code,
                    tree.title,
                    text,
                    language or detect_fast(text)[0],
                    record.headers.get("WARC-Payload-Digest"),
                )
            )
    return len(pages), len(links)


def run(*, quick: bool = False) -> list[Result]:
    """Results of the benchmark.

    Raises:
        RuntimeError: the two don't find the same numbers of pages and links.
    """
    pages, repeats = (QUICK_PAGES, 1) if quick else (PAGES, REPEATS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "crawl.warc.gz"
        write_crawl(path, pages)
        ours, peer = interleaved([partial(read_with_ours, path), partial(read_in_a_loop, path)], repeats)
        size = path.stat().st_size
    if ours.value != peer.value:
        raise RuntimeError(f"found {ours.value} pages and links, the peer {peer.value}")
    counts = dict(zip(("pages", "links"), ours.value, strict=True))
    note = (
        f"{counts['pages']:,} pages, {counts['links']:,} links, {size:,} bytes, one core each: "
        f"{counts['pages'] / ours.wall_s:,.0f} pages a second"
    )
    return [ours.against(peer, "warc_ingest", "FastWARC + Resiliparse", AIM, note, counts)]
