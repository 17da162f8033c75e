"""Plain lists: one URL a line, best first. Most crawlers take them as seeds, and `semrank rank --seeds` does."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from semrank.transforms.frontier.exports.rows import joined


def lines(tables: Iterator[pa.Table]) -> Iterator[pa.Array]:
    """Lines of a list."""
    for rows in tables:
        yield joined(rows["url"])
