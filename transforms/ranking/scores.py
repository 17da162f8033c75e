"""What every ranker gives for a URL: a score, and the terms that made it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from schemas.tables import RANKED_SCHEMA, REASONS
from transforms.columnar.arrays import column_array, int64s, positions

SCORED_SCHEMA = pa.schema(
    [pa.field("url_id", pa.int64()), pa.field("score", pa.float64()), pa.field("reasons", REASONS)]
)
"""A URL's score and its terms, the most important first. A reason's `value` is the term's size, `weight` what it counts
in the score (null where a term only informs), `detail` the evidence in words."""

SCORE_DECIMALS = 12
"""Scores are rounded to so many decimals, so that ties do not depend on the order in which floats were added."""


def scored_rows(objects: pa.Table | None, scores: pa.Table | None) -> pa.Table:
    """URLs with their scores, a table of `RANKED_SCHEMA` without SemRank's terms.

    Args:
        objects: URLs to rank (`objects.OBJECT_SCHEMA`), all of a partition.
        scores: their scores, a table of `SCORED_SCHEMA`; a URL without one has score 0 and no reason.
    """
    if objects is None:
        return RANKED_SCHEMA.empty_table()
    count = objects.num_rows
    score = np.zeros(count)
    reasons = pa.array([[]] * count, REASONS)
    if scores is not None and scores.num_rows:
        scores = scores.sort_by("url_id").combine_chunks()
        place = positions(int64s(scores["url_id"]), int64s(objects["url_id"]))
        found = place >= 0
        score[found] = np.round(scores["score"].to_numpy()[place[found]], SCORE_DECIMALS)
        reasons = column_array(scores["reasons"]).take(pa.array(place, mask=~found)).fill_null([])
    nothing = pa.nulls(count, pa.int64())
    zeros = pa.array(np.zeros(count))
    columns = {
        **{name: objects[name] for name in ("url_id", "url", "host", "base_links", "base_clicks", "fetched")},
        "last_fetched_at": objects["last_fetched_at"],
        "score": pa.array(score),
        "extension": zeros,
        "intension": zeros,
        "base_concept": nothing,
        "current_concept": nothing,
        "matches": pa.array([[]] * count, RANKED_SCHEMA.field("matches").type),
        "reasons": reasons,
    }
    return pa.table([columns[name] for name in RANKED_SCHEMA.names], schema=RANKED_SCHEMA)
