"""Frontiers to export."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from semrank.schemas.tables import FRONTIER, conform
from semrank.transforms.columnar import files

NASTY = "\t\n\r\x0b\x0c\x00\x1c\x7f\x85 \u00a0\u2028\u3000\"'\\,;=#%&?/:|{}<>\u00e9\u6587\U0001f600ab1"
"""Characters that mean something to one format or another."""

urls = st.one_of(
    st.builds(
        "https://{}/{}".format, st.sampled_from(["a.example", "b.example:8080", "münchen.example"]), st.text(NASTY)
    ),
    st.builds(
        "{}{}".format,
        st.sampled_from(["HTTP://h.example/", "ftp://h.example/", "#", "", " https://h.example/"]),
        st.text(NASTY),
    ),
)
"""URLs, most of which no canonical URL looks like."""

scores = st.one_of(
    st.floats(0, 1),
    st.sampled_from([1.0, 1.0 - 1e-9, 1.0 + 1e-9, 0.0, 5e-324, 1e30, 1e300, -0.5, float("inf"), float("nan")]),
)


def frontier(
    urls: Sequence[str],
    scores: Sequence[float] | None = None,
    *,
    selected: Sequence[bool] | None = None,
    fetched: bool = False,
    chance: Sequence[float | None] | None = None,
    first_rank: int = 1,
) -> pa.Table:
    """Rows of `FRONTIER` in the order given."""
    count = len(urls)
    return conform(
        pa.table(
            {
                "rank": pa.array(range(first_rank, first_rank + count), pa.int64()),
                "url": pa.array(urls, pa.string()),
                "host": pa.array([host(url) for url in urls], pa.string()),
                "score": pa.array([0.5] * count if scores is None else scores, pa.float64()),
                "selected": pa.array([True] * count if selected is None else selected, pa.bool_()),
                "extension": pa.array([0.0] * count, pa.float64()),
                "intension": pa.array([0.0] * count, pa.float64()),
                "base_links": pa.array([0] * count, pa.int64()),
                "base_clicks": pa.array([0] * count, pa.int64()),
                "fetched": pa.array([fetched] * count, pa.bool_()),
                "change_probability": pa.array([None] * count if chance is None else chance, pa.float64()),
                "matches": pa.array([[]] * count, FRONTIER.schema.field("matches").type),
                "reasons": pa.array([[]] * count, FRONTIER.schema.field("reasons").type),
            }
        ),
        FRONTIER,
    )


def host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def pieces(table: pa.Table, cuts: Sequence[int]) -> list[pa.Table]:
    """A table cut into parts at the row numbers given, which may be beyond its end."""
    places = sorted({0, table.num_rows, *(min(cut, table.num_rows) for cut in cuts)})
    return [table.slice(start, end - start) for start, end in pairwise(places)] or [table]


def write_round(folder: Path, table: pa.Table, *, rows: int = 150, finished: bool = True) -> str:
    """A round that holds nothing but a frontier, in files of so many rows."""
    (folder / "frontier").mkdir(parents=True)
    for number, start in enumerate(range(0, max(table.num_rows, 1), rows)):
        pq.write_table(table.slice(start, rows), folder / "frontier" / f"part-{number:05d}.parquet")
    if finished:
        files.write_manifest(str(folder), {"kind": "round", "rows": {"frontier": table.num_rows}})
    return str(folder)
