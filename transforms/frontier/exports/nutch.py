"""Seed lists of Apache Nutch's Injector: `url<TAB>nutch.score=F<TAB>nutch.fetchInterval=S<TAB>key=value`.

Nutch splits a line at bare tabs and a field at its first equals sign, and does not trim fields: with spaces around the
tabs, only the first field's key is what it should be. Scores are single precision (Java's `float`). Its Generator sorts
by score alone, so a score of its own for each URL carries the order of rank; `-update` leaves a record's score alone
where the injected one equals `db.score.injected`, which is 1.0, so none does.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from semrank.transforms.columnar.arrays import Float64s, Int64s
from semrank.transforms.frontier.exports.rows import joined, priority, text

FETCH_INTERVAL = 2_592_000
"""Seconds until a page is fetched again: 30 days, Nutch's own default (`db.fetch.interval.default`)."""

MOST_INTERVAL = 2**31 - 1
"""The longest interval in seconds that Nutch can hold (a Java `int`)."""

_FIELDS = ("nutch.score", "nutch.fetchInterval", "semrank_rank", "semrank_score")
_INJECTED = int(np.float32(1.0).view(np.int32))
"""Bits of the score that Nutch takes for none."""


def lines(tables: Iterator[pa.Table], *, fetch_interval: int = FETCH_INTERVAL) -> Iterator[pa.Array]:
    """Lines of a seed list; `fetch_interval` is the seconds until a page is fetched again, 1 to `MOST_INTERVAL`."""
    ceiling: int | None = None
    for rows in tables:
        steps = descending_steps(priority(rows), ceiling)
        if len(steps):
            ceiling = int(steps[-1])
        score, rank = text(pa.array(step_scores(steps))), text(rows["rank"])
        values = (score, str(fetch_interval), rank, text(rows["score"]))
        fields = [part for name, value in zip(_FIELDS, values, strict=True) for part in (f"\t{name}=", value)]
        yield joined(rows["url"], *fields)


def descending_steps(value: Float64s, ceiling: int | None) -> Int64s:
    """Numbers of single-precision scores that fall from row to row, int64[n], as near to the values as that allows.

    Positive floating point numbers are ordered as their bits are (IEEE 754), so the bits count them in steps; 1.0 is
    left out of the count. A row's step is the one of its value, or one below the row before: the least over the rows
    up to it of their step, less the rows between.

    Args:
        value: values to follow, those below 0 count as 0.
        ceiling: step of the last row before these, None if there is none.
    """
    narrow = np.clip(value, 0.0, float(np.finfo(np.float32).max)).astype(np.float32)
    bits = narrow.view(np.int32).astype(np.int64)
    steps = bits - (bits >= _INJECTED)
    place = np.arange(len(steps))
    if ceiling is not None and len(steps):
        steps[0] = min(int(steps[0]), ceiling - 1)
    # Only zeros share a step: there is no score below that Nutch would fetch.
    return np.maximum(np.minimum.accumulate(steps + place) - place, 0)


def step_scores(steps: Int64s) -> npt.NDArray[np.float32]:
    """The scores of steps, float32[n]; none is 1.0."""
    return (steps + (steps >= _INJECTED)).astype(np.int32).view(np.float32)
