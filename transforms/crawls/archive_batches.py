"""The loop that the readers of WARC, WAT and WET files share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, TypeAlias

from semrank.transforms.crawls.archive import Record, read_records
from semrank.transforms.crawls.bounded import UnreadableError
from semrank.transforms.crawls.pages import DEFAULT_LIMITS, CrawlLimits
from semrank.transforms.streams.batch import BatchBuilder, SourceBatch

SettleRecord: TypeAlias = Callable[[BatchBuilder, Record, str, CrawlLimits], None]
"""Uses, ignores or rejects an undamaged record, given its description for reject rows."""


def read_archive(
    stage: str,
    settle: SettleRecord,
    stream: BinaryIO,
    *,
    source: str,
    start: int = 0,
    end: int | None = None,
    limits: CrawlLimits = DEFAULT_LIMITS,
) -> Iterator[SourceBatch]:
    """Batches of an archive, of gzip, zstd or uncompressed data; see `formats.Read`.

    `settle` handles each record; an `UnreadableError` rejects it. `stage` is that of reject rows.
    """
    builder = BatchBuilder(stage, limits.rules)
    for record in read_records(stream, start=start, end=end, max_record_bytes=limits.max_record_bytes):
        described = f"{source} {record.describe()}"
        if record.problem is not None:
            builder.reject(record.problem, described)
        else:
            try:
                settle(builder, record, described, limits)
            except UnreadableError as cause:
                builder.reject(cause.reason, described)
        yield from builder.drain()
    yield from builder.drain(last=True)
