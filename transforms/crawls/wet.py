"""WET files of Common Crawl: the plain text of pages, the title in the first line.

A `conversion` record becomes a page row; records of other types, and conversions to pictures of pages, are ignored. WET
files have no links and no status.
"""

from __future__ import annotations

import re
from functools import partial

from semrank.transforms.crawls.archive import Record
from semrank.transforms.crawls.archive_batches import read_archive
from semrank.transforms.crawls.html import MAX_TEXT_CHARS, MAX_TITLE_CHARS, guess_language
from semrank.transforms.crawls.links import squeeze
from semrank.transforms.crawls.media import media_type
from semrank.transforms.crawls.pages import CrawlLimits, Fetch, is_robots_txt, known_time, page, web_url
from semrank.transforms.streams.batch import BatchBuilder
from semrank.transforms.streams.dates import microseconds
from semrank.transforms.streams.languages import language_code

_PICTURES = re.compile(r"(?:image|audio|video)/|application/pdf$")


def _settle(builder: BatchBuilder, record: Record, described: str, _limits: CrawlLimits) -> None:
    if record.kind != "conversion":
        builder.ignore(record.why_ignored)
        return
    if _PICTURES.match(media_type(record.headers.get("content-type")) or ""):
        builder.ignore("not-text")
        return
    url = web_url(builder, record.headers.get("warc-target-uri", ""), described)
    if url is not None and not is_robots_txt(builder, url):
        fetched_at = known_time(builder, microseconds(record.headers.get("warc-date")))
        text = record.block.decode("utf-8-sig", "replace").strip()
        if len(text) > MAX_TEXT_CHARS:
            builder.count("text-cut")
        title, _, rest = text[:MAX_TEXT_CHARS].partition("\n")
        language = language_code(record.headers.get("warc-identified-content-language"))
        page(
            builder,
            # The digest of a WET record is of the text, and can't be compared with those of other formats.
            Fetch(url, fetched_at, None, None, described),
            title=squeeze(title, MAX_TITLE_CHARS),
            text=rest.strip(),
            language=language or guess_language(rest),
        )


read = partial(read_archive, "wet", _settle)
"""Batches of a WET file; see `read_archive`."""
