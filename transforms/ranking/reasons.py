"""The terms of scores as a column, made for all URLs at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from semrank.schemas.tables import REASONS
from semrank.transforms.columnar.arrays import (
    Bools,
    Float64s,
    Int64s,
    entry_rows,
    group_lengths,
    group_starts,
    list_column,
    places_in_groups,
    pointers,
    row_pointers,
)
from semrank.transforms.ranking.scores import SCORE_DECIMALS

MAX_REASONS = 9
"""Terms that a URL shows: all that count in a score, so that they add up to it, and some that only inform."""

WORDS_SHOWN = 5
"""Words that a term's detail names."""


@dataclass(frozen=True, eq=False)
class Term:
    """One term of the scores of n URLs.

    Attributes:
        name: what the term is called, in kebab case.
        value: size of the term, float64[n].
        weight: what the value counts in the score, float64[n], or None where the term only informs.
        detail: evidence in words, string[n], or None.
        shown: URLs that have the term, bool[n], or None for all.
    """

    name: str
    value: Float64s
    weight: Float64s | None = None
    detail: pa.Array | None = None
    shown: Bools | None = None


def reason_lists(terms: Sequence[Term], rows: int) -> pa.ListArray:
    """The terms of each URL, a list array of the type `REASONS`.

    The largest part of the score (|value x weight|) comes first, terms that only inform come last, those that are equal
    keep the order of `terms`; after `MAX_REASONS` the rest is left out. Values are rounded like scores.

    Args:
        terms: at least one.
        rows: n, the number of URLs.
    """
    everybody = np.ones(rows, dtype=np.bool_)
    row = np.tile(np.arange(rows, dtype=np.int64), len(terms))
    number = np.repeat(np.arange(len(terms), dtype=np.int64), rows)
    value = np.round(np.concatenate([term.value for term in terms]), SCORE_DECIMALS)
    nothing = np.full(rows, np.nan)
    weight = np.concatenate([nothing if term.weight is None else term.weight for term in terms])
    informs = np.isnan(weight)
    shown = np.concatenate([everybody if term.shown is None else term.shown for term in terms])
    details = pa.concat_arrays([pa.nulls(rows, pa.string()) if term.detail is None else term.detail for term in terms])

    part = np.where(informs, -1.0, np.abs(value * np.where(informs, 0.0, weight)))
    kept = np.flatnonzero(shown)
    order = kept[np.lexsort((number[kept], -part[kept], row[kept]))]
    order = order[places_in_groups(group_starts(row[order]), len(order)) < MAX_REASONS]
    structs = pa.StructArray.from_arrays(
        [
            pa.array([term.name for term in terms], pa.string()).take(pa.array(number[order])),
            pa.array(value[order]),
            pa.array(weight[order], mask=informs[order]),
            details.take(pa.array(order)),
        ],
        fields=list(REASONS.value_type),
    )
    return list_column(structs, row_pointers(row[order], rows)).cast(REASONS)


def best_words(weights: sparse.csr_array, words: pa.Array) -> pa.Array:
    """The words with the largest positive weights of each row, string[n], null where a row has none.

    Args:
        weights: float64[n, v].
        words: the vocabulary, string[v]; of equal weights the lower word number comes first.
    """
    row = entry_rows(weights.indptr)
    kept = np.flatnonzero(weights.data > 0)
    kept = kept[_among_largest(weights.data[kept], row[kept])]
    order = kept[np.lexsort((weights.indices[kept], -weights.data[kept], row[kept]))]
    order = order[places_in_groups(group_starts(row[order]), len(order)) < WORDS_SHOWN]
    counts = np.bincount(row[order], minlength=weights.shape[0]).astype(np.int64)
    lists = list_column(words.take(pa.array(weights.indices[order].astype(np.int64))), pointers(counts))
    joined = pc.binary_join(lists, ", ")
    return pc.if_else(pa.array(counts > 0), joined, pa.scalar(None, pa.string()))


def _among_largest(values: Float64s, rows: Int64s) -> Bools:
    """Whether a value is one of the `WORDS_SHOWN` largest distinct ones of its row, bool[m]; rows ascend.

    To take the largest away a few times costs a tenth of sorting all of them.
    """
    starts = group_starts(rows)
    lengths = group_lengths(starts, len(rows))
    left = values.copy()
    for _ in range(WORDS_SHOWN if len(rows) else 0):
        left[left == np.repeat(np.maximum.reduceat(left, starts), lengths)] = -np.inf
    return np.asarray(np.isneginf(left), dtype=np.bool_)


def main_reason(reasons: Sequence[Mapping[str, Any]]) -> str:
    """The term that counts most for a URL, in a few words.

    Args:
        reasons: at least one, of the type `REASONS` as Python objects.
    """
    first = max(reasons, key=lambda reason: reason["value"] * (reason["weight"] or 0.0))
    return f"{first['term']} {first['value']:.3g}" + (f": {first['detail']}" if first["detail"] else "")
