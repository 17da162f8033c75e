"""JSON Lines for Scrapy: `{"url": ..., "priority": ..., "meta": {...}}`, the arguments of a request.

Scrapy sends requests of a higher priority first, so the priority is the negative rank. The keys of `meta` are prefixed:
Scrapy reserves some names.
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
            *('{"url":', json_text(rows["url"]), ',"priority":-', rank, ',"meta":{"semrank_rank":', rank),
            *(',"semrank_score":', text(rows["score"]), ',"semrank_fetched":', text(rows["fetched"]), "}}"),
        )
