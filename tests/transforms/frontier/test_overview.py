"""The overview of a frontier against counts made row by row."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.schemas.errors import InputError
from semrank.schemas.tables import FRONTIER
from semrank.transforms.frontier import overview


def frontier(scores: list[float], held: list[str | None]) -> list[dict[str, Any]]:
    rows = []
    for rank, (score, reason) in enumerate(zip(sorted(scores, reverse=True), held, strict=True), start=1):
        host = f"h{rank % 3}.example"
        rows.append(
            {
                "rank": rank,
                "url": f"https://{host}/{rank}",
                "host": host,
                "score": score,
                "selected": reason is None,
                "extension": 0.0,
                "intension": 0.0,
                "base_links": 0,
                "base_clicks": 0,
                "fetched": False,
                "held_back": reason,
                "matches": [],
                "reasons": [],
            }
        )
    return rows


@st.composite
def frontiers(draw: st.DrawFn) -> list[dict[str, Any]]:
    scores = draw(st.lists(st.floats(0, 1), max_size=30))
    held = draw(st.lists(st.sampled_from([None, "threshold", "budget"]), min_size=len(scores), max_size=len(scores)))
    return frontier(scores, held)


def seen(rows: list[dict[str, Any]], parts: int) -> overview.Overview:
    size = -(-max(1, len(rows)) // parts)
    tables = [
        pa.Table.from_pylist(rows[start : start + size], schema=FRONTIER.schema).select(list(overview.COLUMNS))
        for start in range(0, len(rows), size)
    ]
    with (
        mock.patch.object(overview, "TOP_ROWS", 5),
        mock.patch.object(overview, "SAMPLE_ROWS", 4),
        mock.patch.object(overview, "PENDING_HOSTS", 2),
    ):
        return overview.overview(tables)


@given(frontiers(), st.integers(1, 5))
def test_an_overview_counts_every_row(rows: list[dict[str, Any]], parts: int) -> None:
    found = seen(rows, parts)
    assert found.rows == len(rows)
    assert found.selected == sum(row["selected"] for row in rows)
    assert [row["rank"] for row in found.top] == [row["rank"] for row in rows[:5]]
    assert len(found.sample) == min(4, max(0, len(rows) - 5))
    assert found.sample == seen(rows, 1).sample
    assert dict(found.held) == dict(Counter(row["held_back"] for row in rows if row["held_back"]))
    assert found.bins.sum(axis=1).tolist() == [len(rows), found.selected]
    names = pa.array([row["host"] for row in rows], pa.string())
    listed = overview.top_hosts(found.hosts, [pa.chunked_array([names[:3], names[3:]])])
    assert sorted(row["host"] for row in listed) == sorted(set(names.to_pylist()))
    for counted in listed:
        own = [row for row in rows if row["host"] == counted["host"]]
        assert (counted["urls"], counted["selected"]) == (len(own), sum(row["selected"] for row in own))
        assert abs(counted["score"] - sum(row["score"] for row in own) / len(own)) < 1e-9
    order = [(-row["selected"], -row["urls"], row["host"]) for row in listed]
    assert order == sorted(order)
    with mock.patch.object(overview, "SHOWN_HOSTS", 1):
        shown = overview.top_hosts(found.hosts, [pa.chunked_array([names])])
    assert [row["selected"] for row in shown] == [row["selected"] for row in listed[:1]]


def test_a_score_that_is_no_number_is_refused() -> None:
    rows = frontier([0.5, 0.25], [None, None])
    rows[1]["score"] = float("nan")
    with pytest.raises(InputError, match="the score nan, expected finite numbers"):
        seen(rows, 1)


def test_changes_between_rounds() -> None:
    before = [{"url": name, "rank": rank, "selected": name == "e"} for rank, name in enumerate("abcde", start=1)]
    now = [{"url": name, "rank": rank} for rank, name in enumerate("daxc", start=1)]
    found = overview.changes(now, before)
    assert found["came"] == {"count": 1, "rows": [{"url": "x", "rank": 3}]}
    assert found["went"] == {"count": 1, "rows": [{"url": "b", "before": 2}]}
    assert found["chosen"] == {"count": 1, "rows": [{"url": "e", "before": 5}]}
    assert found["rose"]["rows"] == [{"url": "d", "rank": 1, "before": 4, "move": 2}]
    assert found["fell"]["rows"] == [
        {"url": "a", "rank": 2, "before": 1, "move": -1},
        {"url": "c", "rank": 4, "before": 3, "move": -1},
    ]
    left = overview.changes([{"url": name, "rank": rank} for rank, name in enumerate("bcde", start=1)], before)
    assert (left["chosen"]["count"], left["rose"]["count"]) == (0, 0), "none rises because another left"
    with mock.patch.object(overview, "SHOWN_MOVES", 1):
        assert overview.changes(now, before)["fell"] == {"count": 2, "rows": found["fell"]["rows"][:1]}
