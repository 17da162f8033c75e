"""Topics of a labelled set of pages, and which of their pages are seeds."""

from __future__ import annotations

from collections.abc import Mapping, Set

import numpy as np
import pyarrow as pa

from semrank.schemas.tables import TOPICS
from semrank.transforms.columnar.ids import text_draws

SEEDS_PER_TOPIC = 8
"""Pages of a topic marked as seeds; half of its pages where that is fewer, so that some are left to find."""


def topic_table(pages: Mapping[str, Set[str]]) -> pa.Table:
    """The table of topics (`TOPICS`), in the order of topic and URL.

    The seeds of a topic are its `SEEDS_PER_TOPIC` pages with the smallest `text_draws`, or half of its pages
    (rounded down) where that is fewer.

    Args:
        pages: topic -> URLs of its pages.
    """
    columns: tuple[list[str], list[str], list[bool]] = ([], [], [])
    for topic, urls in sorted(pages.items()):
        ordered = sorted(urls)
        columns[0].extend([topic] * len(ordered))
        columns[1].extend(ordered)
        columns[2].extend(_seed_marks(ordered))
    return pa.table([pa.array(values) for values in columns], schema=TOPICS.schema)


def _seed_marks(urls: list[str]) -> list[bool]:
    count = min(SEEDS_PER_TOPIC, len(urls) // 2)
    order = np.argsort(text_draws(pa.array(urls, pa.string())), kind="stable")
    marks = np.zeros(len(urls), dtype=np.bool_)
    marks[order[:count]] = True
    found: list[bool] = marks.tolist()
    return found


def topic_seeds(topics: pa.Table) -> dict[str, list[str]]:
    """The seeds of each topic that has any, in the order of the table's rows."""
    found: dict[str, list[str]] = {}
    for row in topics.to_pylist():
        if row["is_seed"]:
            found.setdefault(row["topic"], []).append(row["url"])
    return found
