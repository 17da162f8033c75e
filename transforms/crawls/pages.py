"""Turns fetched resources into rows of pages, links and aliases, for all crawl formats."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from semrank.schemas.tables import GONE_STATUSES
from semrank.transforms.columnar.arrays import Int64s
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.crawls.bounded import DEFAULT_RECORD_SECONDS
from semrank.transforms.crawls.links import DEFAULT_MAX_LINKS, PageLinks
from semrank.transforms.crawls.media import may_be_page, media_type
from semrank.transforms.crawls.robots import Robots
from semrank.transforms.streams.batch import DEFAULT_MAX_RECORD_BYTES, BatchBuilder, Capture
from semrank.transforms.streams.dates import microseconds
from semrank.transforms.streams.json_lines import status_code
from semrank.transforms.streams.parameters import NO_RULES, ParameterRules
from semrank.transforms.streams.texts import well_formed
from semrank.transforms.streams.times import MAX_MOMENT
from semrank.transforms.streams.urls import canonical_url

REDIRECTS = frozenset({301, 302, 303, 307, 308})
"""Status codes that redirect to the Location header (RFC 9110, 15.4)."""

NOT_MODIFIED = 304
"""Status code of a visit that found the same content as an earlier one."""

_NOT_MODIFIED_PROFILE = "/revisit/server-not-modified"

GONE = frozenset(GONE_STATUSES)
"""Status codes of missing pages: the row has the status and no text, and outdates older rows of the page."""

REDIRECT, META_REFRESH, CANONICAL = "redirect", "meta-refresh", "canonical"
"""Kinds of aliases. Redirects and refreshes are followed; a page's own canonical URL is only recorded."""


@dataclass(frozen=True)
class CrawlLimits:
    """Limits on what is read from a crawl, and what the user knows about it.

    Attributes:
        max_record_bytes: bytes of one record, stored or decoded.
        max_links: links of one page.
        nutch_zone: time zone of Nutch's machine, as in the tz database, None if unknown.
        record_seconds: processor time of one record.
        robots_name: the crawler's name in robots directives, None if only those for all crawlers count.
        rules: rules for parameters of URLs.
    """

    max_record_bytes: int = DEFAULT_MAX_RECORD_BYTES
    max_links: int = DEFAULT_MAX_LINKS
    nutch_zone: str | None = None
    record_seconds: float = DEFAULT_RECORD_SECONDS
    robots_name: str | None = None
    rules: ParameterRules = NO_RULES


DEFAULT_LIMITS = CrawlLimits()
"""The default limits."""


@dataclass(frozen=True)
class Fetch:
    """The facts about a fetch apart from its content.

    Attributes:
        url: canonical URL.
        fetched_at: microseconds since 1970 in UTC, None if unknown.
        status: HTTP status, None if unknown.
        digest: digest of the content as reported by the crawler, None if unknown.
        record: the record in one line, for reject rows.
    """

    url: str
    fetched_at: int | None
    status: int | None
    digest: str | None
    record: str


def content_digest(content: bytes) -> str:
    """SHA-1 of fetched content in base 32, labelled as in WARC files."""
    return f"sha1:{base64.b32encode(hashlib.sha1(content, usedforsecurity=False).digest()).decode()}"


def web_url(builder: BatchBuilder, raw_url: str, described: str) -> str | None:
    """The canonical form of a record's URL, or None: URLs of schemes like dns: are ignored, invalid ones rejected."""
    url, reason = canonical_url(raw_url, rules=builder.rules)
    if url is None and reason == "scheme-unsupported":
        builder.ignore("not-web")
    elif url is None:
        builder.reject(reason or "url-invalid", described)
    return url


def known_time(builder: BatchBuilder, fetched_at: int | None) -> int | None:
    """The time of a fetch, in microseconds since 1970; missing, unreadable and impossible ones are counted.

    A time before 1970 or far in the future is a mistake, and the latter would outdate all other captures of the page.
    """
    if fetched_at is None or not 0 <= fetched_at <= MAX_MOMENT:
        builder.count("date-missing-or-invalid")
        return None
    return fetched_at


def known_status(builder: BatchBuilder, member: Any) -> int | None:
    """The HTTP status of a JSON member; unreadable ones are counted."""
    status = status_code(member)
    if member is not None and status is None:
        builder.count("status-invalid")
    return status


def is_robots_txt(builder: BatchBuilder, url: str) -> bool:
    """Whether a canonical URL is that of a robots.txt file (RFC 9309, 2.3); its record is ignored then."""
    found = urlsplit(url).path == "/robots.txt"
    if found:
        builder.ignore("robots-txt")
    return found


def settle_status(builder: BatchBuilder, fetch: Fetch, location: str | None) -> bool:
    """Handles a fetch without a page (redirect, gone, unchanged, error); returns False if its content is to be read."""
    status = fetch.status
    if status is None or 200 <= status < 300:
        return False
    if status in REDIRECTS:
        redirect(builder, fetch, location)
    elif status in GONE:
        builder.append("pages", (fetch.url, fetch.fetched_at, status, None, None, None, None, fetch.digest))
        builder.use()
    elif status == NOT_MODIFIED:
        unchanged(builder, fetch)
    else:
        builder.ignore(left_aside(status))
    return True


def left_aside(status: int) -> str:
    """Why a fetch with the status of a redirect or an error is ignored; below 100 are crawlers' own codes."""
    if status in REDIRECTS:
        return "redirect"
    return f"status-{status // 100}xx" if status >= 100 else "not-fetched"


def unchanged(builder: BatchBuilder, fetch: Fetch) -> None:
    """Handles a visit that found the same content as an earlier one at the same URL."""
    builder.append("history", (fetch.url, fetch.fetched_at, fetch.digest))
    builder.use()


def revisit(builder: BatchBuilder, fetch: Fetch, original: str | None, original_at: int | None = None) -> None:
    """Handles a visit whose content is not stored, since an earlier record has it.

    The earlier record may be of another URL (WARC 1.1, 6.7): then the visit is a page row, which borrows the content.
    If the other URL is unknown, the visit is added both to the pages and to the history.

    Args:
        builder: collects the rows.
        fetch: the visit.
        original: URL of the earlier record, None if unknown.
        original_at: time of the earlier record, None if unknown.
    """
    known = canonical_url(original, rules=builder.rules).url if original else None
    if known == fetch.url:
        unchanged(builder, fetch)
        return
    if known is None:
        builder.append("history", (fetch.url, fetch.fetched_at, fetch.digest))
    if fetch.digest is not None or (known is not None and original_at is not None):
        builder.borrow((fetch.url, fetch.fetched_at, fetch.digest, known, original_at))
    page(builder, fetch, title=None, text=None, language=None)


def settle_revisit(
    builder: BatchBuilder,
    fetch: Fetch,
    headers: Mapping[str, str] | None,
    record: Mapping[str, str],
    robots_name: str | None,
) -> None:
    """Handles a revisit record, which has its own status and headers and another record's payload.

    Args:
        builder: collects the rows.
        fetch: the visit.
        headers: its HTTP headers by lower-case name, None if the record has none.
        record: the headers of the record itself by lower-case name.
        robots_name: the crawler's name in robots directives.
    """
    profile = record.get("warc-profile", "").strip("<> ")
    if fetch.status == NOT_MODIFIED or profile.endswith(_NOT_MODIFIED_PROFILE):
        unchanged(builder, fetch)
        return
    known = headers or {}
    if headers is not None and settle_status(builder, fetch, known.get("location")):
        return
    if headers is not None and not may_be_page(media_type(known.get("content-type"))):
        builder.ignore("not-html")
    elif asks_not_to_be_indexed(known, robots_name):
        unindexed(builder, fetch)
    else:
        original_at = microseconds(record.get("warc-refers-to-date"))
        revisit(builder, fetch, record.get("warc-refers-to-target-uri"), original_at)


def asks_not_to_be_indexed(headers: Mapping[str, str], robots_name: str | None) -> bool:
    """Whether the HTTP headers of a fetch, by lower-case name, have noindex."""
    directives = Robots(robots_name)
    directives.header(headers.get("x-robots-tag", ""))
    return directives.noindex


def unindexed(builder: BatchBuilder, fetch: Fetch) -> None:
    """Adds the row of a page with noindex, and counts its record as used."""
    builder.count("noindex")
    page(builder, fetch, title=None, text="", language=None)


def redirect(builder: BatchBuilder, fetch: Fetch, location: str | None) -> None:
    """Handles a redirect."""
    if not location:
        builder.reject("redirect-without-target", fetch.record)
        return
    target, reason = canonical_url(location, fetch.url, builder.rules)
    if target is None:
        builder.reject(f"redirect-{reason}", f"{fetch.record} -> {location}")
    elif target == fetch.url:
        builder.ignore("redirect-to-itself")
    else:
        builder.append("aliases", (fetch.url, target, fetch.fetched_at, REDIRECT))
        builder.use()


def page(
    builder: BatchBuilder,
    fetch: Fetch,
    *,
    title: str | None,
    text: str | None,
    language: str | None,
    links: PageLinks | None = None,
) -> None:
    """Adds the rows of a fetched page, and counts its record as used.

    Args:
        builder: collects the rows.
        fetch: the fetch.
        title: None if unknown, empty if the page is known to have none.
        text: the same.
        language: code of the language, None if unknown.
        links: targets of the page's links, None if unknown.
    """
    builder.append("pages", (fetch.url, fetch.fetched_at, fetch.status, title, text, None, language, fetch.digest))
    if links is not None:
        state = _page_state(fetch, title, text) if fetch.fetched_at is None else None
        _page_links(builder, fetch, links, Capture(fetch.fetched_at, fetch.digest, state))
    builder.use()


def page_states(pages: pa.Table) -> Int64s:
    """Hashes of status, digest, title and text of rows of `PAGES`, int64[n]."""
    columns = [pages["status"].cast(pa.string()), pages["content_digest"], pages["title"], pages["text"]]
    texts = pc.binary_join_element_wise(*(pc.fill_null(column, "") for column in columns), "\x1f")
    return text_ids(texts)


def _page_state(fetch: Fetch, title: str | None, text: str | None) -> int:
    values = (fetch.status, fetch.digest, title, text)
    columns = [None if value is None else well_formed(str(value)) for value in values]
    names = ("status", "content_digest", "title", "text")
    row = pa.table([pa.array([value], pa.string()) for value in columns], names=names)
    return int(page_states(row)[0])


def _page_links(builder: BatchBuilder, fetch: Fetch, links: PageLinks, capture: Capture) -> None:
    """Adds the links and aliases of a page."""
    if links.targets:
        nofollows = [True] * len(links.targets) if links.nofollow else links.nofollows
        builder.extend_links(([fetch.url] * len(links.targets), links.targets, links.anchors, nofollows), capture)
    for kind, target in _aliases(links):
        builder.append("aliases", (fetch.url, target, fetch.fetched_at, kind))
    for reason, href in links.bad:
        builder.note(reason, f"{fetch.url} -> {href}", stage="links")
        builder.count("links-rejected")
    for counter, events in links.counters.items():
        builder.count(counter, events)


def _aliases(links: PageLinks) -> Iterator[tuple[str, str]]:
    if links.refresh is not None:
        yield META_REFRESH, links.refresh
    if links.canonical is not None:
        yield CANONICAL, links.canonical
