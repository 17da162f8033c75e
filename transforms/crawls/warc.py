"""WARC (0.17, 1.0, 1.1) and ARC files: responses become pages, links and aliases.

| record | becomes |
|---|---|
| response with HTML or plain text, status 2xx | page, its links, and aliases from a refresh or canonical link |
| resource with HTML or plain text | the same, status unknown |
| PDF or XML with a title, status 2xx | page with this title, without text and links |
| redirect (301, 302, 303, 307, 308) | alias |
| response 404 or 410 | page row without text |
| response 304, revisit of the same URL | history row: the page was visited, its content is the one with this digest |
| revisit of another URL's content, status 2xx | page row with that content, but without links |
| revisit with another status | as a response with that status |
| other statuses, other content types, requests, metadata, warcinfo, conversion | ignored, by reason |
| damaged, truncated, too large, without a usable URL | rejected, by reason |

A page that asks not to be indexed keeps its row and links, but not its title and text.
"""

from __future__ import annotations

from functools import partial

from semrank.transforms.crawls.archive import ARC_TYPE, Record
from semrank.transforms.crawls.archive_batches import read_archive
from semrank.transforms.crawls.bounded import read_page, time_limit
from semrank.transforms.crawls.charsets import decode_html
from semrank.transforms.crawls.documents import document_title, may_have_title
from semrank.transforms.crawls.html import MAX_TEXT_CHARS, guess_language
from semrank.transforms.crawls.links import PageLinks
from semrank.transforms.crawls.media import PAGE_TYPES, PLAIN_TEXT, XHTML_TYPES, computed_type, may_be_page, media_type
from semrank.transforms.crawls.pages import (
    CrawlLimits,
    Fetch,
    asks_not_to_be_indexed,
    content_digest,
    is_robots_txt,
    known_time,
    page,
    settle_revisit,
    settle_status,
    unindexed,
    web_url,
)
from semrank.transforms.crawls.payload import Body, HttpMessage, decode_body, parse_http
from semrank.transforms.streams.batch import BatchBuilder
from semrank.transforms.streams.dates import microseconds

_HTTP = b"HTTP/"


def _settle(builder: BatchBuilder, record: Record, described: str, limits: CrawlLimits) -> None:
    if record.kind in ("response", "resource", "revisit"):
        url = web_url(builder, record.headers.get("warc-target-uri", ""), described)
        if url is not None:
            _settle_fetch(builder, record, url, described, limits)
    else:
        builder.ignore(record.why_ignored)


read = partial(read_archive, "warc", _settle)
"""Batches of a WARC or ARC file; see `read_archive`."""


def _settle_fetch(builder: BatchBuilder, record: Record, url: str, described: str, limits: CrawlLimits) -> None:
    if is_robots_txt(builder, url):
        return
    fetched_at = known_time(builder, microseconds(record.headers.get("warc-date")))
    if "warc-truncated" in record.headers or "warc-segment-number" in record.headers:
        builder.count("payload-cut-by-crawler")
    digest = record.headers.get("warc-payload-digest") or None
    if record.kind == "revisit":
        visit = parse_http(record.block)
        fetch = Fetch(url, fetched_at, visit.status if visit else None, digest, described)
        settle_revisit(builder, fetch, visit.headers if visit else None, record.headers, limits.robots_name)
        return
    content_type = media_type(record.headers.get("content-type"))
    if record.kind == "resource" and content_type != "application/http":
        message = HttpMessage(200, {"content-type": record.headers.get("content-type", "")}, record.block)
        fetch = Fetch(url, fetched_at, None, digest, described)
    else:
        parsed = parse_http(record.block) or _without_header(record)
        if parsed is None:
            builder.reject("http-header-invalid", described)
            return
        message = parsed
        fetch = Fetch(url, fetched_at, parsed.status or None, digest, described)
    if not settle_status(builder, fetch, message.headers.get("location")):
        _settle_content(builder, fetch, message, limits)


def _without_header(record: Record) -> HttpMessage | None:
    """A response of an ARC file that has no HTTP header, as HTTP 0.9 had none and some writers leave out; status 0."""
    if ARC_TYPE not in record.headers or not record.block or record.block.startswith(_HTTP):
        return None
    content_type = record.headers[ARC_TYPE]
    return HttpMessage(0, {"content-type": content_type if "/" in content_type else ""}, record.block)


def _settle_content(builder: BatchBuilder, fetch: Fetch, message: HttpMessage, limits: CrawlLimits) -> None:
    declared = message.content_type
    if not may_be_page(declared) and not may_have_title(declared):
        builder.ignore("not-html")
        return
    with time_limit(limits.record_seconds):
        body = decode_body(message, limits.max_record_bytes)
    computed = computed_type(declared, body.content, nosniff=message.nosniff)
    if computed not in PAGE_TYPES:
        _settle_document(builder, _digested(fetch, body.content), message, body, computed, limits)
    elif body.problem is not None and not body.content:
        builder.reject(body.problem, fetch.record)
    else:
        _settle_page(builder, _digested(fetch, body.content), message, body, computed, limits)


def _settle_page(
    builder: BatchBuilder, fetch: Fetch, message: HttpMessage, body: Body, computed: str, limits: CrawlLimits
) -> None:
    if computed == PLAIN_TEXT and asks_not_to_be_indexed(message.headers, limits.robots_name):
        unindexed(builder, fetch)
    elif computed == PLAIN_TEXT:
        with time_limit(limits.record_seconds):
            text = decode_html(body.content, message.charset).text[:MAX_TEXT_CHARS].strip()
            language = guess_language(text)
        links = PageLinks(fetch.url, limits.max_links, limits.robots_name, limits.rules)
        links.refresh_to(message.headers.get("refresh", ""))
        page(builder, fetch, title=None, text=text, language=language, links=links)
    else:
        html = read_page(
            body.content,
            seconds=limits.record_seconds,
            url=fetch.url,
            charset=message.charset,
            robots=message.headers.get("x-robots-tag"),
            refresh=message.headers.get("refresh"),
            max_links=limits.max_links,
            robots_name=limits.robots_name,
            rules=limits.rules,
            xml=computed in XHTML_TYPES,
        )
        page(builder, fetch, title=html.title, text=html.text or "", language=html.language, links=html.links)
    if body.problem is not None:
        builder.count(body.problem)


def _settle_document(
    builder: BatchBuilder, fetch: Fetch, message: HttpMessage, body: Body, computed: str, limits: CrawlLimits
) -> None:
    noindex = asks_not_to_be_indexed(message.headers, limits.robots_name)
    title = None if noindex else document_title(computed, body.content, message.charset)
    if title is None:
        builder.ignore("not-html")
    else:
        page(builder, fetch, title=title, text="", language=None)


def _digested(fetch: Fetch, content: bytes) -> Fetch:
    """The fetch with a digest of its content, made here where the crawler gave none."""
    if fetch.digest is not None:
        return fetch
    return Fetch(fetch.url, fetch.fetched_at, fetch.status, content_digest(content), fetch.record)
