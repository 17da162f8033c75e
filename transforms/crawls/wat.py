"""WAT files of Common Crawl: metadata of WARC records as JSON, with the links of each page.

| record | becomes |
|---|---|
| metadata of a response with HTML, status 2xx | page row without text, its links, and aliases |
| metadata of a redirect; of a 404 or 410; of a revisit | as in WARC files |
| metadata of other responses, requests, warcinfo and metadata records; warcinfo | ignored, by reason |
| damaged, not JSON, without a usable URL | rejected, by reason |
"""

from __future__ import annotations

import re
from functools import partial
from html import unescape
from html.entities import html5
from typing import Any

from semrank.transforms.crawls.archive import RECORD_TYPES, Record, with_bare_uris
from semrank.transforms.crawls.archive_batches import read_archive
from semrank.transforms.crawls.charsets import codec_of
from semrank.transforms.crawls.html import MAX_TITLE_CHARS
from semrank.transforms.crawls.links import PageLinks, squeeze
from semrank.transforms.crawls.media import HTML_TYPES, content_type, media_type
from semrank.transforms.crawls.pages import (
    CrawlLimits,
    Fetch,
    is_robots_txt,
    known_status,
    known_time,
    page,
    settle_revisit,
    settle_status,
    web_url,
)
from semrank.transforms.crawls.payload import headers_of_json
from semrank.transforms.streams.batch import BatchBuilder
from semrank.transforms.streams.dates import microseconds
from semrank.transforms.streams.json_lines import JSON_INVALID, parse_json
from semrank.transforms.streams.languages import language_code

# Common Crawl's WAT files of before September 2019 have references to characters as they stand in the page, as have
# those that the Internet Archive's tools make (commoncrawl/ia-web-commons, issues 14 and 19).
_REFERENCE = re.compile(r"&(#[0-9]{1,7};|#[xX][0-9A-Fa-f]{1,6};|[A-Za-z][A-Za-z0-9]{1,31};)")
_LINK_PATHS = frozenset({"A@/href", "AREA@/href"})
_FRAME_PATHS = frozenset({"FRAME@/src", "IFRAME@/src"})
_LANGUAGES = ("HTML@/lang", "HTML@/xml:lang")
"""Names that the root element's attributes have among the `meta` elements."""


def _settle(builder: BatchBuilder, record: Record, described: str, limits: CrawlLimits) -> None:
    if record.kind != "metadata":
        builder.ignore(record.why_ignored)
        return
    try:
        envelope = _member(parse_json(record.block), "Envelope")
    except ValueError:
        builder.reject(JSON_INVALID, described)
        return
    members = _member(envelope, "WARC-Header-Metadata").items()
    about = with_bare_uris({name.lower(): value for name, value in members if isinstance(value, str)})
    kind = about.get("warc-type", "").lower()
    if kind not in ("response", "revisit"):
        builder.ignore(f"about-{kind if kind in RECORD_TYPES else 'unknown' if kind else 'nothing'}")
        return
    url = web_url(builder, about.get("warc-target-uri") or record.headers.get("warc-target-uri", ""), described)
    if url is None or is_robots_txt(builder, url):
        return
    http = _member(envelope, "Payload-Metadata", "HTTP-Response-Metadata")
    status = known_status(builder, _member(http, "Response-Message").get("Status"))
    fetched_at = known_time(builder, microseconds(about.get("warc-date")))
    fetch = Fetch(url, fetched_at, status, about.get("warc-payload-digest") or None, described)
    headers = headers_of_json(_member(http, "Headers"))
    if kind == "revisit":
        settle_revisit(builder, fetch, headers if http else None, about, limits.robots_name)
    elif not settle_status(builder, fetch, headers.get("location")):
        _settle_page(builder, fetch, headers, _member(http, "HTML-Metadata"), limits)


def _settle_page(
    builder: BatchBuilder, fetch: Fetch, headers: dict[str, str], html: dict[str, Any], limits: CrawlLimits
) -> None:
    if not html and media_type(headers.get("content-type")) not in HTML_TYPES:
        builder.ignore("not-html")
        return
    head = _member(html, "Head")
    links = PageLinks(fetch.url, limits.max_links, limits.robots_name, limits.rules)
    links.encoding = _encoding(headers, head)
    base = _text(head, "Base")
    if base is not None:
        links.base(base)
    if "x-robots-tag" in headers:
        links.robots.header(headers["x-robots-tag"])
    for meta in _members(head, "Metas"):
        links.robots.meta(_text(meta, "name") or "", _text(meta, "content") or "")
    for link in _members(head, "Link"):
        if "canonical" in (_text(link, "rel") or "").lower().split():
            links.canonical_link(_text(link, "url") or "")
    for link in _members(html, "Links"):
        if _text(link, "path") in _LINK_PATHS and (href := _text(link, "url")) is not None:
            links.link(href, _text(link, "text") or _text(link, "alt"), _text(link, "rel"))
        elif _text(link, "path") in _FRAME_PATHS and (src := _text(link, "url")) is not None:
            links.frame(src)
    refreshes = [headers["refresh"]] if "refresh" in headers else []
    refreshes += [
        _text(meta, "content") or ""
        for meta in _members(head, "Metas")
        if (_text(meta, "http-equiv") or "").strip().lower() == "refresh"
    ]
    for content in refreshes:
        links.refresh_to(content)
    builder.count("noindex", int(links.noindex))
    title = None if links.noindex else squeeze(_text(head, "Title"), MAX_TITLE_CHARS)
    # Unknown text would be filled from the WET record of the fetch, which does not know that it is not to be indexed.
    text = "" if links.noindex else None
    page(builder, fetch, title=title or "", text=text, language=_language(head), links=links)


def _encoding(headers: dict[str, str], head: dict[str, Any]) -> str:
    """The codec of the page by its header, or else by the first of its `meta` elements that names one."""
    types = [headers.get("content-type")]
    labels: list[str | None] = []
    for meta in _members(head, "Metas"):
        labels.append(_text(meta, "charset"))
        if (_text(meta, "http-equiv") or "").strip().lower() == "content-type":
            types.append(_text(meta, "content"))
    labels = [found.charset for found in map(content_type, types) if found is not None] + labels
    return next(filter(None, map(codec_of, labels)), "utf-8")


def _language(head: dict[str, Any]) -> str | None:
    tags = {_text(meta, "name"): _text(meta, "content") for meta in reversed(_members(head, "Metas"))}
    return next((code for name in _LANGUAGES if (code := language_code(tags.get(name))) is not None), None)


read = partial(read_archive, "wat", _settle)
"""Batches of a WAT file; see `read_archive`."""


def _member(value: Any, *path: str) -> dict[str, Any]:
    """The object at a path of names; empty where there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _members(value: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects in a list member."""
    listed = value.get(name)
    return [element for element in listed if isinstance(element, dict)] if isinstance(listed, list) else []


def _text(value: dict[str, Any], name: str) -> str | None:
    text = value.get(name)
    if not isinstance(text, str):
        return None
    return _REFERENCE.sub(_character, text) if "&" in text else text


def _character(reference: re.Match[str]) -> str:
    """The character of a complete reference; `&or` in `?a=1&order=2` is none."""
    known = reference[1].startswith("#") or reference[1] in html5
    return unescape(reference[0]) if known else reference[0]
