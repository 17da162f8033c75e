"""Common Crawl's columnar index (Parquet): captures without their content.

Columns as the project `cc-index-table` defines them. `fetch_redirect`, `content_languages` and others came with later
crawls, so only `url`, `fetch_time` and `fetch_status` are required.

| row | becomes |
|---|---|
| status 2xx, HTML or plain text | page row without text |
| redirect (301, 302, 303, 307, 308) | alias |
| status 404, 410 | page row with this status |
| other statuses, other content types, `robots.txt` | ignored, by reason |
| no usable URL, time or redirect target | rejected, by reason |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from semrank.schemas.tables import TIMESTAMP, TableSchema, conform
from semrank.transforms.crawls.media import PAGE_TYPES, media_type
from semrank.transforms.crawls.pages import DEFAULT_LIMITS, CrawlLimits, Fetch, is_robots_txt, page, settle_status
from semrank.transforms.crawls.tables import check_columns, in_convertible_types
from semrank.transforms.streams.batch import BatchBuilder, SourceBatch
from semrank.transforms.streams.languages import language_code
from semrank.transforms.streams.parquet import read_batches, read_schema
from semrank.transforms.streams.urls import canonical_url

STAGE = "cc-index"

INDEX = TableSchema(
    "cc-index",
    pa.schema(
        [
            pa.field("url", pa.string(), nullable=False),
            pa.field("fetch_time", TIMESTAMP, nullable=False),
            pa.field("fetch_status", pa.int64(), nullable=False),
            pa.field("fetch_redirect", pa.string()),
            pa.field("content_digest", pa.string()),
            pa.field("content_mime_type", pa.string()),
            pa.field("content_mime_detected", pa.string()),
            pa.field("content_languages", pa.string()),
            pa.field("warc_filename", pa.string()),
        ]
    ),
)
"""The columns that are read; the index has some twenty more."""

_ROBOTS_SUBSET = "/robotstxt/"  # the part of a WARC file's path that names the subset of robots.txt captures


def check(stream: BinaryIO, *, source: str) -> None:
    """Hold the columns of a file to the index.

    Raises:
        InputError: the file is unreadable, a required column is missing, or has a type that does not convert.
    """
    check_columns(read_schema(stream, source), INDEX, source)


def read(
    stream: BinaryIO, *, source: str, groups: Sequence[int] | None = None, limits: CrawlLimits = DEFAULT_LIMITS
) -> Iterator[SourceBatch]:
    """Batches of an index file.

    Args:
        stream: seekable binary stream.
        source: name of the file, for messages.
        groups: row groups to read, all if None.
        limits: the rules for parameters of URLs.

    Raises:
        InputError: as `check`.
    """
    check(stream, source=source)
    builder = BatchBuilder(STAGE, limits.rules)
    for rows in read_batches(stream, source, columns=INDEX.schema.names, groups=groups, reject=builder.reject):
        prepared, invalid = in_convertible_types(rows.table, INDEX.schema)
        reasons = pc.coalesce(rows.reasons, invalid).to_pylist()
        conformed = conform(prepared, INDEX, check_nulls=False)
        conformed = conformed.set_column(1, "fetch_time", conformed["fetch_time"].cast(pa.int64()))
        for row, reason in zip(conformed.to_pylist(), reasons, strict=True):
            if reason is None:
                _settle(builder, row)
            else:
                builder.reject(reason, row["url"] or "")
        yield from builder.drain()
    yield from builder.drain(last=True)


def _settle(builder: BatchBuilder, row: dict[str, Any]) -> None:
    raw = row["url"] or ""
    url, reason = canonical_url(raw, rules=builder.rules)
    if url is None:
        builder.reject(reason or "url-invalid", raw)
        return
    if row["fetch_time"] is None or row["fetch_status"] is None:
        builder.reject("time-missing" if row["fetch_time"] is None else "status-missing", raw)
        return
    if is_robots_txt(builder, url):
        return
    if _ROBOTS_SUBSET in (row["warc_filename"] or ""):
        builder.ignore("robots-txt")
        return
    digest = row["content_digest"] or None
    # The digests of WARC records carry the name of their algorithm, those of the index don't.
    labelled = digest if digest is None or ":" in digest else f"sha1:{digest}"
    fetch = Fetch(url, row["fetch_time"], row["fetch_status"], labelled, raw)
    if settle_status(builder, fetch, row["fetch_redirect"]):
        return
    content_type = row["content_mime_detected"] or row["content_mime_type"]
    if content_type and media_type(content_type) not in PAGE_TYPES:
        builder.ignore("not-html")
        return
    page(builder, fetch, title=None, text=None, language=language_code(row["content_languages"]))
