"""Seed files of Apache StormCrawler (`FileSpout` with its `StringTabScheme`): `url<TAB>key=value<TAB>key=value`.

All metadata is text, and status stores sort it as text, so the rank is padded with zeros.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.frontier.exports.rows import joined, text

RANK_DIGITS = 12
"""Digits of a rank, enough for any frontier, and always the same so that files compare."""


def lines(tables: Iterator[pa.Table]) -> Iterator[pa.Array]:
    """Lines of a seed file."""
    for rows in tables:
        rank = pc.utf8_lpad(text(rows["rank"]), width=RANK_DIGITS, padding="0")
        yield joined(rows["url"], "\tsemrank_rank=", rank, "\tsemrank_score=", text(rows["score"]))
