"""Input of URL Frontier's client (`PutURLs`): a `URLItem` of its protocol as protobuf JSON a line.

A queue of URL Frontier gives URLs in the order of `refetchable_from_date`, seconds since 1970, and what is due at all;
0 means never. So the date is the rank: always due, in the order of rank, and never 0. The URLs are sent as known ones,
since only those take a date.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from semrank.transforms.frontier.exports.rows import joined, json_text, text


def lines(tables: Iterator[pa.Table]) -> Iterator[pa.Array]:
    """Lines of JSON."""
    for rows in tables:
        rank = text(rows["rank"])
        yield joined(
            *('{"known":{"info":{"url":', json_text(rows["url"]), ',"key":', json_text(rows["host"])),
            *(',"metadata":{"semrank_rank":{"values":["', rank, '"]}'),
            *(',"semrank_score":{"values":["', text(rows["score"]), '"]}}}'),
            *(',"refetchable_from_date":', rank, "}}"),
        )
