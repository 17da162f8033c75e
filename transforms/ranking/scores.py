"""The result of every ranker for a URL: a score, and the terms that made it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.schemas.tables import RANKED_SCHEMA, REASONS
from semrank.transforms.columnar.arrays import Bools, Int64s, column_array, int64s, list_column, list_parts, positions

SCORED_SCHEMA = pa.schema(
    [pa.field("url_id", pa.int64()), pa.field("score", pa.float64()), pa.field("reasons", REASONS)]
)
"""A URL's score and its terms, the most important first. A reason's `value` is the term's size, `weight` what it counts
in the score (null where a term only informs), `detail` the evidence in words."""

SCORE_DECIMALS = 12
"""Scores are rounded to so many decimals, so that ties do not depend on the order in which floats were added."""

QUALITY_SCHEMA = pa.schema([pa.field("host_id", pa.int64()), pa.field("quality", pa.float64())])
"""How good a host is, above 0: its share of a budget."""


def unscored_rows(objects: pa.Table) -> pa.Table:
    """URLs to rank (`objects.OBJECT_SCHEMA`) as rows of `RANKED_SCHEMA` with score 0 and no reason."""
    count = objects.num_rows
    zeros, nothing = pa.array(np.zeros(count)), pa.nulls(count, pa.int64())
    columns = {
        "score": zeros,
        "extension": zeros,
        "intension": zeros,
        "change_probability": pa.nulls(count, pa.float64()),
        "base_concept": nothing,
        "current_concept": nothing,
        "matches": pa.array([[]] * count, RANKED_SCHEMA.field("matches").type),
        "reasons": pa.array([[]] * count, REASONS),
    }
    return pa.table(
        [columns[name] if name in columns else objects[name] for name in RANKED_SCHEMA.names], schema=RANKED_SCHEMA
    )


def with_scores(rows: pa.Table, scores: pa.Table | None) -> pa.Table:
    """Rows with a ranker's scores and reasons in place of what they have, a table of `RANKED_SCHEMA`.

    Args:
        rows: URLs of a partition, a table of `RANKED_SCHEMA`; terms of SemRank that they have stay, as terms that count
            nothing.
        scores: their scores, a table of `SCORED_SCHEMA`; a URL without one has score 0 and no reason. Further columns
            that a row of `RANKED_SCHEMA` has, SemRank's terms, take the place of what the rows have.
    """
    count = rows.num_rows
    score = np.zeros(count)
    reasons = pa.array([[]] * count, REASONS)
    columns: dict[str, pa.Array] = {}
    if scores is not None:
        scores = scores.sort_by("url_id").combine_chunks()
        place = positions(int64s(scores["url_id"]), int64s(rows["url_id"]))
        found = place >= 0
        score[found] = np.round(scores["score"].to_numpy()[place[found]], SCORE_DECIMALS)
        taken = column_array(scores["reasons"]).take(pa.array(np.maximum(place, 0), mask=~found))
        indptr, terms = list_parts(taken.fill_null([]))
        reasons = list_column(terms, indptr)
        rest = [name for name in RANKED_SCHEMA.names if name in scores.schema.names and name not in SCORED_SCHEMA.names]
        columns |= {name: _placed(scores[name], place, found, rows[name]) for name in rest}
    columns |= {"score": pa.array(score), "reasons": reasons}
    return pa.table(
        [columns[name] if name in columns else rows[name] for name in RANKED_SCHEMA.names], schema=RANKED_SCHEMA
    )


def _placed(values: pa.ChunkedArray, place: Int64s, found: Bools, others: pa.ChunkedArray) -> pa.Array:
    """Values by place, and the others' where none is found."""
    taken = column_array(values).take(pa.array(np.maximum(place, 0), mask=~found))
    return pc.if_else(pa.array(found), taken, column_array(others))
