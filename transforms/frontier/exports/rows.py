"""The rows that are exported, what in them crawlers would misread, and text that several targets share."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.schemas.errors import InputError
from semrank.schemas.tables import FRONTIER, REJECTS, TableSchema, conform
from semrank.transforms.columnar.arrays import Float64s, Int64s, bools, column_array, int64s
from semrank.transforms.frontier.rules import EVERYWHERE, Rules

STAGE = "export"
"""Stage of the rejects."""

EXPORTED = TableSchema(
    "frontier",
    pa.schema(
        [
            FRONTIER.schema.field(name)
            for name in ("rank", "url", "host", "score", "selected", "fetched", "change_probability")
        ]
    ),
)
"""The frontier's columns that exports read."""

NOT_FINITE = "score-not-finite"
"""The score is no number, or infinite."""

_CONTROLS = r"[\x00-\x1f\x7f]"
"""What JSON has to escape, and DEL."""


Fault: TypeAlias = tuple[str, Callable[[pa.Array], pa.Array]]
"""Something about a URL that a target would misread: the reject's reason, and a function URLs -> whether it applies."""


def matches(pattern: str) -> Callable[[pa.Array], pa.Array]:
    """A function that returns which strings match a regular expression (RE2)."""
    return partial(pc.match_substring_regex, pattern=pattern)


def longer_than(characters: int) -> Callable[[pa.Array], pa.Array]:
    """A function that returns which strings have more characters."""
    return lambda values: pc.greater(pc.utf8_length(values), characters)


def _not_http(urls: pa.Array) -> pa.Array:
    return pc.invert(pc.match_substring_regex(urls, r"^(?i:https?)://[^/?#]"))


URL_FAULTS: tuple[Fault, ...] = (
    ("url-with-space", matches(r"[\pZ\t\n\v\f\r\x{85}]")),
    ("url-with-control", matches(r"\p{Cc}")),
    ("url-not-http", _not_http),
)
"""Every target reads lines, trims them, and splits most of them at spaces or tabs; none has an escape for them."""


@dataclass
class Selection:
    """What is exported of a frontier: tables go through `take` in the order of their files.

    Attributes:
        faults: what the target would misread.
        most: most URLs to take, None for all.
        rules: the scope outside of which URLs are rejected.
        taken: URLs taken so far.
        rejected: number of rejects by reason, so far.
        last_rank: rank of the last row seen, 0 before the first.
    """

    faults: tuple[Fault, ...] = URL_FAULTS
    most: int | None = None
    rules: Rules = EVERYWHERE
    taken: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    last_rank: int = 0

    @property
    def full(self) -> bool:
        """Whether no further row would be taken."""
        return self.most is not None and self.taken >= self.most

    def take(self, table: pa.Table) -> tuple[pa.Table, pa.Table]:
        """The selected rows that the target reads right, and the rejects.

        Args:
            table: the next rows of the frontier, with at least the columns of `EXPORTED`.

        Returns:
            Rows of `EXPORTED` and rows of `REJECTS`, both in the order of the input. Rows beyond `most` are in neither.

        Raises:
            InputError: the rows are not in the order of rank, or a column is missing or null.
        """
        rows = conform(table, EXPORTED)
        self._check_order(int64s(rows["rank"]))
        rows = rows.filter(rows["selected"])
        reasons = pc.coalesce(self.rules.reasons(rows["url"], rows["host"]), find_faults(rows, self.faults))
        if self.most is not None:
            good = bools(pc.is_null(reasons))
            within = self.taken + np.cumsum(good) - good < self.most
            rows, reasons = rows.filter(pa.array(within)), reasons.filter(pa.array(within))
        taken = rows.filter(pc.is_null(reasons))
        self.taken += taken.num_rows
        return taken, self._rejects(rows, reasons)

    def _check_order(self, ranks: Int64s) -> None:
        before = np.concatenate([[self.last_rank], ranks[:-1]])
        wrong = np.flatnonzero(ranks <= before)
        if len(wrong):
            found = int(ranks[wrong[0]])
            raise InputError(
                f"the frontier is not in the order of rank: found rank {found} after {int(before[wrong[0]])}, "
                "expected ranks from 1 that rise from row to row and from file to file"
            )
        self.last_rank = int(ranks[-1]) if len(ranks) else self.last_rank

    def _rejects(self, rows: pa.Table, reasons: pa.Array) -> pa.Table:
        bad = pc.is_valid(reasons)
        reasons, urls = reasons.filter(bad), column_array(rows["url"]).filter(bad)
        for item in pc.value_counts(reasons).to_pylist():
            self.rejected[item["values"]] = self.rejected.get(item["values"], 0) + item["counts"]
        return pa.table([pa.array([STAGE] * len(reasons), pa.string()), reasons, urls], schema=REJECTS.schema)


def find_faults(rows: pa.Table, faults: tuple[Fault, ...]) -> pa.Array:
    """Why each row can't be written, string[n]; null where it can. The first of `faults` that applies."""
    urls, score = column_array(rows["url"]), column_array(rows["score"])
    reasons = pc.if_else(pc.is_finite(score), pa.scalar(None, pa.string()), NOT_FINITE)
    for reason, applies in reversed(faults):
        reasons = pc.if_else(applies(urls), reason, reasons)
    return column_array(reasons)


def priority(rows: pa.Table) -> Float64s:
    """What the frontier is ordered by: score times probability of a change where that counts; float64[n]."""
    chance = pc.fill_null(column_array(rows["change_probability"]), 1.0)
    return np.asarray(pc.multiply(column_array(rows["score"]), chance), dtype=np.float64)


def text(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Numbers as text, string[n]: the shortest that reads back as the same number."""
    return column_array(values).cast(pa.string())


def json_text(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Strings as JSON string literals (RFC 8259, section 7), string[n]; other than ASCII stands as it is."""
    values = column_array(values)
    escaped = pc.replace_substring(pc.replace_substring(values, "\\", "\\\\"), '"', '\\"')
    quoted = pc.binary_join_element_wise('"', escaped, '"', "")
    control = pc.match_substring_regex(values, _CONTROLS)
    if pc.any(control).as_py():
        literals = [json.dumps(value, ensure_ascii=False) for value in values.filter(control).to_pylist()]
        quoted = pc.replace_with_mask(quoted, control, pa.array(literals, pa.string()))
    return column_array(quoted)


def joined(*parts: str | pa.Array) -> pa.Array:
    """Parts of lines put together, string[n]; a part is a text for all lines or one for each."""
    return column_array(pc.binary_join_element_wise(*parts, ""))
