"""Heritrix's crawl.log: what was fetched, and by which link it was found.

A line has, separated by spaces: time of logging, fetch status, size, URI, discovery path, the URI it was found on,
content type, worker, begin and duration of the fetch, digest, source tag, annotations, and perhaps a JSON object.
The last letter of the discovery path is how the URI was found: L a link, R a redirect, E and X what a page embeds, I
by inference, S by speculation, P what was needed first (DNS, robots.txt).

| line | becomes |
|---|---|
| status 2xx, HTML or plain text | page row without text, and a history row if it is a duplicate |
| status 304 | history row |
| found by a link (L) | also a link row, whether or not the fetch succeeded |
| found by a redirect (R) | also an alias row |
| status 404, 410 | page row with this status |
| else | ignored, by reason |

A redirect's own line is ignored, since its target's line has the redirect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

from semrank.transforms.crawls.media import PAGE_TYPES, media_type
from semrank.transforms.crawls.pages import (
    DEFAULT_LIMITS,
    GONE,
    NOT_MODIFIED,
    REDIRECT,
    CrawlLimits,
    Fetch,
    is_robots_txt,
    known_time,
    left_aside,
    page,
    revisit,
    unchanged,
    web_url,
)
from semrank.transforms.streams.batch import BatchBuilder, SourceBatch
from semrank.transforms.streams.dates import microseconds
from semrank.transforms.streams.json_lines import read_lines
from semrank.transforms.streams.quotes import quote_page_line
from semrank.transforms.streams.texts import text_or_escapes
from semrank.transforms.streams.urls import canonical_url

STAGE = "heritrix"

_FIELDS = 12  # the optional JSON object stays in the last one
_STATUS = re.compile(r"-?[0-9]{1,5}")
_BEGIN = re.compile(r"([0-9]{14})(?:[0-9]{3})?(?:\+[0-9]+)?")
_DUPLICATE = re.compile(r"(?:^|,)(?:duplicate|warcRevisit):")  # annotations of a fetch whose content was seen before


def read(stream: BinaryIO, *, source: str, limits: CrawlLimits = DEFAULT_LIMITS) -> Iterator[SourceBatch]:
    """Batches of a crawl.log; see `formats.Read`."""
    builder = BatchBuilder(STAGE, limits.rules)
    for line in read_lines(stream):
        if line.problem is not None:
            builder.reject(line.problem, f"{source} {quote_page_line(line.data)}")
        else:
            _settle(builder, line.data, source)
        yield from builder.drain()
    yield from builder.drain(last=True)


def _settle(builder: BatchBuilder, line: bytes, source: str) -> None:
    fields = [text_or_escapes(field) for field in line.split(None, _FIELDS - 1)]
    if len(fields) < 4 or not _STATUS.fullmatch(fields[1]):
        builder.reject("layout-unknown", f"{source} {quote_page_line(line)}")
        return
    fields += ["-"] * (_FIELDS - len(fields))
    logged, code, _, raw, path, via, content_type, _, begin, digest, _, annotations = fields
    described = f"{source} {raw}"
    url = web_url(builder, raw, described)
    if url is None:
        return
    hop = path[-1:]
    if hop == "P":
        builder.ignore("prerequisite")
        return
    if is_robots_txt(builder, url):
        return
    fetched_at = known_time(builder, _fetch_time(begin, logged))
    fetch = Fetch(url, fetched_at, int(code), None if digest == "-" else digest, described)
    found = _found(builder, url, hop, via, fetched_at)
    reason = _why_no_page(fetch, content_type)
    if reason is not None:
        if found:
            builder.use()
        else:
            builder.ignore(reason)
    elif fetch.status == NOT_MODIFIED:
        unchanged(builder, fetch)
    elif fetch.status in GONE:
        page(builder, replace(fetch, digest=None), title=None, text=None, language=None)
    elif _DUPLICATE.search(annotations):
        revisit(builder, fetch, None)
    else:
        page(builder, fetch, title=None, text=None, language=None)


def _why_no_page(fetch: Fetch, content_type: str) -> str | None:
    """Why a fetch is no page's; None where it is."""
    status = fetch.status or 0
    if status in GONE or status == NOT_MODIFIED:
        return None
    if 200 <= status < 300:
        return None if (media_type(content_type) or "-") in PAGE_TYPES else "not-html"
    return left_aside(status)


def _found(builder: BatchBuilder, url: str, hop: str, via: str, fetched_at: int | None) -> bool:
    """Add the link or alias that led to the URL; returns whether there is one."""
    if hop not in ("L", "R") or via == "-":
        return False
    origin, reason = canonical_url(via, rules=builder.rules)
    if origin is None:
        builder.note(reason or "url-invalid", f"{via} -> {url}")
        builder.count("links-rejected")
    if origin is None or origin == url:
        return False
    if hop == "L":
        builder.append("links", (origin, url, None, None))
    else:
        builder.append("aliases", (origin, url, fetched_at, REDIRECT))
    return True


def _fetch_time(begin: str, logged: str) -> int | None:
    """When the fetch began, in whole seconds; if that is missing, when it was logged.

    The crawl's WARC files have seconds: with a finer time, the log's row without text would be the newer capture.
    """
    found = _BEGIN.fullmatch(begin)
    moment = None if found is None else microseconds(found[1])
    return microseconds(logged) if moment is None else moment
