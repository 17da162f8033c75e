"""Items that Scrapy spiders export: JSON Lines (`-o pages.jsonl`), or an array in one or more lines (`-o pages.json`).

Items have the fields that their authors gave them, so each column is looked for under the usual names:

| column | fields, the first that is there counts |
|---|---|
| url | url, response_url, page_url, link |
| fetched_at | fetched_at, crawled_at, scraped_at, timestamp, date, time |
| status | status, status_code |
| title | title |
| text | text, content, body; html, body_html, which are HTML however they begin |
| language | language, lang |
| links | links, outlinks: URLs, or objects with url or href, text or anchor, nofollow |
| headers | headers, response_headers: X-Robots-Tag, Refresh and Location of the response |
| aliases | redirect_urls, redirected_from: the URLs that were passed through |

Each may be a list of one value, as item loaders without an output processor give it. Text that is HTML is read as a
page is, its links too where the item lists none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from semrank.transforms.crawls.bounded import UnreadableError, read_page
from semrank.transforms.crawls.html import (
    MAX_TEXT_CHARS,
    MAX_TITLE_CHARS,
    guess_language,
    links_of_markup,
    text_of_markup,
)
from semrank.transforms.crawls.links import PageLinks, squeeze
from semrank.transforms.crawls.media import XHTML_TYPES, computed_type, looks_like_markup
from semrank.transforms.crawls.pages import (
    DEFAULT_LIMITS,
    REDIRECT,
    CrawlLimits,
    Fetch,
    is_robots_txt,
    known_status,
    known_time,
    page,
    settle_status,
)
from semrank.transforms.crawls.payload import headers_of_json
from semrank.transforms.streams.batch import BatchBuilder, SourceBatch
from semrank.transforms.streams.json_lines import BRACKETS, parse_objects, read_lines, without_comma
from semrank.transforms.streams.languages import language_code
from semrank.transforms.streams.quotes import quote_page_line
from semrank.transforms.streams.texts import well_formed
from semrank.transforms.streams.times import written_time
from semrank.transforms.streams.urls import canonical_url

STAGE = "scrapy"

URL_FIELDS = ("url", "response_url", "page_url", "link")
TIME_FIELDS = ("fetched_at", "crawled_at", "scraped_at", "timestamp", "date", "time")
STATUS_FIELDS = ("status", "status_code")
HTML_FIELDS = ("html", "body_html")
TITLE_FIELDS = ("title",)
TEXT_FIELDS = ("text", "content", "body", *HTML_FIELDS)
LANGUAGE_FIELDS = ("language", "lang")
LINK_FIELDS = ("links", "outlinks")
HEADER_FIELDS = ("headers", "response_headers")
_TRUE = frozenset({"true", "1", "1.0", "yes"})
PASSED_FIELDS = ("redirect_urls", "redirected_from")


def read(stream: BinaryIO, *, source: str, limits: CrawlLimits = DEFAULT_LIMITS) -> Iterator[SourceBatch]:
    """Batches of a file of items.

    Args:
        stream: whole lines, perhaps compressed.
        source: name of the file, for reject rows.
        limits: bounds on what is taken.
    """
    builder = BatchBuilder(STAGE, limits.rules)
    for line in read_lines(stream, limits.max_record_bytes):
        text = without_comma(line.data)
        if line.problem is None and text in BRACKETS:
            builder.ignore("bracket")
            continue
        items = line.problem or parse_objects(text)
        if isinstance(items, str):
            builder.reject(items, f"{source} {quote_page_line(line.data)}")
            items = []
        for item in items:
            _read_item(builder, item, source, limits)
            yield from builder.drain()
    yield from builder.drain(last=True)


def _read_item(builder: BatchBuilder, item: Mapping[str, Any], source: str, limits: CrawlLimits) -> None:
    raw = _single(_first(item, URL_FIELDS))
    described = f"{source} {raw if isinstance(raw, str) else ''}".rstrip()
    try:
        _settle(builder, item, raw, described, limits)
    except UnreadableError as cause:
        builder.reject(cause.reason, described)


def _settle(builder: BatchBuilder, item: Mapping[str, Any], raw: Any, described: str, limits: CrawlLimits) -> None:
    url, reason = canonical_url(raw if isinstance(raw, str) else "", rules=limits.rules)
    if isinstance(raw, list) and raw:
        builder.reject("url-is-a-list", described)
        return
    if url is None:
        builder.reject(reason or "url-invalid", described)
        return
    if is_robots_txt(builder, url):
        return
    fetched_at = known_time(builder, _time(_single(_first(item, TIME_FIELDS))))
    status = known_status(builder, _single(_first(item, STATUS_FIELDS)))
    fetch = Fetch(url, fetched_at, status, None, described)
    for passed in _several(_first(item, PASSED_FIELDS)):
        origin = canonical_url(passed, rules=limits.rules).url if isinstance(passed, str) else None
        if origin is None:
            builder.count("redirects-unreadable")
        elif origin != url:
            builder.append("aliases", (origin, url, fetched_at, REDIRECT))
    headers = _headers(builder, _single(_first(item, HEADER_FIELDS)))
    if not settle_status(builder, fetch, headers.get("location")):
        _settle_content(builder, fetch, item, headers, limits)


def _settle_content(
    builder: BatchBuilder, fetch: Fetch, item: Mapping[str, Any], headers: Mapping[str, str], limits: CrawlLimits
) -> None:
    content = _text(item, TEXT_FIELDS)
    title = _shown(_text(item, TITLE_FIELDS))
    for counter, read, names in (("text", content, TEXT_FIELDS), ("title", title, TITLE_FIELDS)):
        builder.count(f"{counter}-unreadable", int(read is None and _first(item, names) not in (None, [])))
    language = language_code(_text(item, LANGUAGE_FIELDS))
    listed = _listed(_first(item, LINK_FIELDS))
    links = PageLinks(fetch.url, limits.max_links, limits.robots_name, limits.rules)
    links.robots.header(headers.get("x-robots-tag", ""))
    if listed is not None:
        _take_links(listed, links)
    if content is not None and (_has_html(item) or looks_like_markup(content)):
        body = content.encode("utf-8", "replace")
        html = read_page(
            body,
            seconds=limits.record_seconds,
            url=fetch.url,
            charset="utf-8",
            robots=headers.get("x-robots-tag"),
            refresh=headers.get("refresh"),
            max_links=limits.max_links,
            robots_name=limits.robots_name,
            rules=limits.rules,
            xml=computed_type(None, body) in XHTML_TYPES,
        )
        links.robots = html.links.robots
        page(
            builder,
            fetch,
            title=None if html.links.noindex else squeeze(title, MAX_TITLE_CHARS) or html.title,
            text=html.text or "",
            language=language or html.language,
            links=links if listed is not None else html.links,
        )
        return
    links.refresh_to(headers.get("refresh", ""))
    builder.count("noindex", int(links.noindex))
    text = None if content is None else content[:MAX_TEXT_CHARS].strip()
    page(
        builder,
        fetch,
        title=None if links.noindex else squeeze(title, MAX_TITLE_CHARS),
        text="" if links.noindex else text,
        language=language or guess_language(text),
        links=links,
    )


def _headers(builder: BatchBuilder, headers: Any) -> Mapping[str, str]:
    """Headers of a response by lower-case name; counts what is no header."""
    if not isinstance(headers, dict):
        builder.count("headers-unreadable", int(headers is not None))
        return {}
    values = [value for several in headers.values() for value in _several(several)]
    builder.count("headers-unreadable", sum(not isinstance(value, str) for value in values))
    return headers_of_json(headers)


def _has_html(item: Mapping[str, Any]) -> bool:
    """Whether the content of an item is of a field whose name implies HTML."""
    return next((name in HTML_FIELDS for name in TEXT_FIELDS if item.get(name) is not None), False)


def _shown(text: str | None) -> str | None:
    """A title or anchor as a reader sees it, where an item has the element with its tags."""
    return text_of_markup(text) if text is not None and looks_like_markup(text) else text


def _listed(value: Any) -> list[Any] | None:
    """The links of an item, of which one may stand alone; None where it lists none."""
    return [value] if isinstance(value, str | dict) else value if isinstance(value, list) else None


def _take_links(listed: list[Any], links: PageLinks) -> None:
    for link in map(_single, listed):
        href = _single(_first(link, ("url", "href"))) if isinstance(link, dict) else link
        if not isinstance(href, str):
            links.counters["links-unreadable"] += 1
        elif isinstance(link, dict):
            nofollow = str(_single(link.get("nofollow"))).strip().lower() in _TRUE
            anchor = _shown(_text(link, ("text", "anchor")))
            links.link(href, anchor, "nofollow" if nofollow else _text(link, ("rel",)))
        elif looks_like_markup(href) and not links.is_full:
            links_of_markup(href, links)
        else:
            links.link(href, None, None)


def _first(item: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((item[name] for name in names if item.get(name) is not None), None)


def _single(value: Any) -> Any:
    """The element of a list that has one, as item loaders give every value; other values as they are."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _several(value: Any) -> list[Any]:
    """The elements of a list, or a value that stands alone; none for null."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _text(item: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """A text, or several (as selectors give them) joined by lines."""
    value = _first(item, names)
    if isinstance(value, str):
        return well_formed(value)
    parts = _strings(value)
    return well_formed("\n".join(parts)) if parts else None


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [part for part in value if isinstance(part, str)] if isinstance(value, list) else []


def _time(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return written_time(str(value).encode("utf-8", "replace"))
