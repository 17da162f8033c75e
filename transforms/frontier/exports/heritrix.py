"""Files of Heritrix 3: what its action directory takes, and precedences.

- `.seeds`: a URL a line; becomes part of the scope.
- `.schedule` and `.force`: lines of a recovery log, `F+ URL hops via context`; `.force` fetches again what the crawl
  has fetched already. The hops are `L`, one link, since no seed is meant. Such a URL needs a via: without one, Heritrix
  3.13 fails to write its WARC records. A frontier does not know which page linked to a URL, so its via is the URL
  itself, and it has no context.
- `.precedence`: `URL precedence`, for `PrecedenceLoader`; 1 is first, and 127 the last one that a queue distinguishes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from semrank.transforms.frontier.exports.rows import URL_FAULTS, Fault, joined, longer_than, text

LAST_PRECEDENCE = 127
"""Precedence is the most significant byte of a queue's keys; larger ones are clipped."""

LONGEST_URL = 2083
"""Characters of the longest URL that Heritrix takes."""

FAULTS: tuple[Fault, ...] = (*URL_FAULTS, ("url-too-long", longer_than(LONGEST_URL)))
"""What Heritrix would misread."""


def schedule(tables: Iterator[pa.Table]) -> Iterator[pa.Array]:
    """Lines of `.schedule` and `.force`."""
    for rows in tables:
        yield joined("F+ ", rows["url"], " L ", rows["url"])


def precedence(tables: Iterator[pa.Table], *, total: int) -> Iterator[pa.Array]:
    """Lines of `.precedence`: place in the file up to 127 URLs, above that 127 classes of the same size.

    `total` is the number of rows in all tables, or a bound of it.
    """
    classes = max(total, LAST_PRECEDENCE)
    before = 0
    for rows in tables:
        place = before + np.arange(rows.num_rows, dtype=np.int64)
        before += rows.num_rows
        value = np.minimum(1 + place * LAST_PRECEDENCE // classes, LAST_PRECEDENCE)
        yield joined(rows["url"], " ", text(pa.array(value)))
