"""WET files of Common Crawl: the plain text of pages, the title in the first line.

A `conversion` record becomes a page row; records of other types are ignored. WET files have no links and no status.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from semrank.transforms.crawls.archive import read_records
from semrank.transforms.crawls.html import MAX_TEXT_CHARS, MAX_TITLE_CHARS, guess_language
from semrank.transforms.crawls.links import squeeze
from semrank.transforms.crawls.pages import CrawlLimits, Fetch, is_robots_txt, page
from semrank.transforms.streams.batch import BatchBuilder, SourceBatch
from semrank.transforms.streams.dates import microseconds
from semrank.transforms.streams.languages import language_code
from semrank.transforms.streams.urls import canonical_url

STAGE = "wet"


def read(
    stream: BinaryIO,
    *,
    source: str,
    start: int = 0,
    end: int | None = None,
    limits: CrawlLimits = CrawlLimits(),  # noqa: B008 - immutable
) -> Iterator[SourceBatch]:
    """Batches of a WET file, or of the records that begin in bytes [start, end) of it; see `warc.read`.

    The digest of a page row is left empty: that of a WET record is of the text, and can't be compared with others.
    """
    builder = BatchBuilder(STAGE)
    for record in read_records(stream, start=start, end=end, max_record_bytes=limits.max_record_bytes):
        described = f"{source} {record.describe()}"
        if record.problem is not None:
            builder.reject(record.problem, described)
        elif record.kind != "conversion":
            builder.ignore(record.kind or "record-type-missing")
        else:
            url, reason = canonical_url(record.headers.get("warc-target-uri", ""))
            if url is None:
                builder.reject(reason or "url-invalid", described)
            elif not is_robots_txt(builder, url):
                text = record.block.decode("utf-8", "replace").strip()
                if len(text) > MAX_TEXT_CHARS:
                    builder.count("text-cut")
                title, _, rest = text[:MAX_TEXT_CHARS].partition("\n")
                language = language_code(record.headers.get("warc-identified-content-language"))
                page(
                    builder,
                    Fetch(url, microseconds(record.headers.get("warc-date")), None, None, described),
                    title=squeeze(title, MAX_TITLE_CHARS),
                    text=rest.strip(),
                    language=language or guess_language(rest),
                )
        yield from builder.drain()
    yield from builder.drain(last=True)
