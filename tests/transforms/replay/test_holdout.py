"""Which clicks are held out."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from semrank.schemas.tables import CLICKS, PAGES
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.replay.holdout import ClickTargets, plain_text
from tests.support.snapshots import table_of

START = datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC)


def page(name: str) -> str:
    return f"https://a.example/{name}"


PAGES_TABLE = table_of(
    [
        {"url": page("penguin"), "title": "Emperor  Penguin (bird)"},
        {"url": page("seal"), "title": "Seal"},
        {"url": page("seal-2"), "title": "SEAL!"},
        {"url": page("ice"), "title": None},
        {"url": page("sea"), "title": "???"},
    ],
    PAGES,
)


def click(user: str, query: str, name: str, minute: float, session: str | None = None) -> dict[str, Any]:
    at = START + datetime.timedelta(minutes=minute)
    return {"user_id": user, "query": query, "url": page(name), "clicked_at": at, "session_id": session}


def held(rows: list[dict[str, Any]], *topic: str) -> list[bool]:
    targets = ClickTargets.of(table_of(rows, CLICKS), PAGES_TABLE)
    found: list[bool] = targets.held_out(np.sort(text_ids(pa.array([page(name) for name in topic])))).tolist()
    return found


def test_a_query_that_is_a_title_looks_for_that_page() -> None:
    rows = [click("a", "emperor penguin, bird", "ice", 0), click("a", "emperor penguin, bird", "sea", 1)]
    assert held(rows, "penguin") == [True, True]
    # The way there led over other pages, and ended on one: that they were clicked is no answer.
    assert held(rows, "ice") == [False, False]
    assert held(rows, "sea") == [False, False]


def test_all_pages_of_a_title_are_looked_for() -> None:
    assert held([click("a", "seal", "ice", 0)], "seal-2") == [True]
    assert held([click("a", "seal", "ice", 0)], "seal") == [True]


def test_without_a_title_the_last_page_was_looked_for() -> None:
    rows = [click("a", "cold birds", "ice", 0), click("a", "cold birds", "penguin", 3)]
    assert held(rows, "penguin") == [True, True]
    assert held(rows, "ice") == [False, False]
    assert held(rows[::-1], "penguin") == [True, True]


def test_queries_and_titles_without_words_are_no_titles() -> None:
    assert held([click("a", "!!", "ice", 0)], "sea") == [False]
    assert held([click("a", "!!", "ice", 0)], "ice") == [True]


def test_a_pause_ends_a_sequence() -> None:
    rows = [click("a", "cold", "penguin", 0), click("a", "cold", "ice", 31)]
    assert held(rows, "penguin") == [True, False]
    assert held(rows, "ice") == [False, True]
    together = [click("a", "cold", "penguin", 0), click("a", "cold", "ice", 30)]
    assert held(together, "penguin") == [False, False]


def test_a_session_is_held_out_whole() -> None:
    rows = [
        click("a", "cold", "ice", 0, "s"),
        click("a", "seal", "sea", 50, "s"),
        click("a", "cold", "ice", 60, "t"),
        click("b", "cold", "ice", 0, "s"),
        click("a", "cold", "ice", 0),
    ]
    assert held(rows, "seal") == [True, True, False, False, False]


def test_no_clicks() -> None:
    assert held([], "seal") == []


@pytest.mark.parametrize(
    "spelling", ["Emperor Penguin", "  emperor\tpenguin ", "EMPEROR-PENGUIN", "\uff25mperor penguin?"]
)
def test_plain_spellings(spelling: str) -> None:
    assert plain_text(pa.array([spelling])).to_pylist() == ["emperor penguin"]
