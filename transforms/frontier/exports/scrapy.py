"""JSON Lines for Scrapy and scrapy-redis: `{"url": ..., "meta": {...}}`, which is all that a request needs.

scrapy-redis takes `url`, `method` and `meta` from such a message and would send any other key as form data, so there is
none. The keys of `meta` are prefixed: Scrapy gives some names a meaning of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from semrank.transforms.frontier.exports.rows import joined, json_text, text


def lines(tables: Iterator[pa.Table]) -> Iterator[pa.Array]:
    """Lines of JSON.

    Args:
        tables: rows of `EXPORTED` without faults, in the order of rank.
    """
    for rows in tables:
        yield joined(
            *('{"url":', json_text(rows["url"]), ',"meta":{"semrank_rank":', text(rows["rank"])),
            *(',"semrank_score":', text(rows["score"]), ',"semrank_fetched":', text(rows["fetched"]), "}}"),
        )
