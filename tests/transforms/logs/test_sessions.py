"""Click sequences against a plain reading of the rules, row by row."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semrank.schemas.tables import CLICKS
from semrank.transforms.logs.sessions import HOME_PAGE_HITS, HOME_PAGE_SECONDS, Sequences, click_sequences
from semrank.transforms.logs.visits import VISITS
from semrank.transforms.streams.dates import SESSION_GAP_SECONDS

BEGIN = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
SITE = "https://www.example.com"


def visit(
    user: str,
    second: float,
    path: str,
    referrer: str | None = "",
    query: str | None = None,
    *,
    is_search: bool = False,
    position: int | None = None,
) -> dict[str, Any]:
    return {
        "user_id": user,
        "visited_at": BEGIN + datetime.timedelta(seconds=second),
        "url": SITE + path,
        "referrer_url": SITE + referrer if referrer else referrer,
        "query": query,
        "position": position,
        "is_search": is_search,
    }


def sequences(*visits: dict[str, Any]) -> Sequences:
    result = click_sequences(pa.Table.from_pylist(list(visits), schema=VISITS.schema))
    assert result.clicks.schema.equals(CLICKS.schema)
    assert result.visits == len(visits) == result.used + sum(result.ignored.values())
    return result


def clicked(result: Sequences) -> list[tuple[str, str]]:
    return [(row["query"], row["url"].removeprefix(SITE)) for row in result.clicks.to_pylist()]


def test_a_chain_of_referrers_has_the_words_it_began_with() -> None:
    result = sequences(
        visit("u", 0, "/a", query="moon", position=3),
        visit("u", 10, "/b", "/a"),
        visit("u", 20, "/other"),
        visit("u", 30, "/c", "/b"),
        visit("u", 40, "/d", "/other"),
        visit("v", 50, "/b", "/a"),
    )
    assert clicked(result) == [("moon", "/a"), ("moon", "/b"), ("moon", "/c")]
    assert result.clicks["position"].to_pylist() == [3, None, None]
    assert result.ignored == {"no-query": 3}
    assert set(result.clicks["session_id"].to_pylist()) == {f"u-{int(BEGIN.timestamp())}"}


def test_a_session_ends_after_thirty_minutes_without_a_view() -> None:
    gap = SESSION_GAP_SECONDS
    near = sequences(visit("u", 0, "/a", query="moon"), visit("u", gap, "/b", "/a"))
    far = sequences(visit("u", 0, "/a", query="moon"), visit("u", gap + 1, "/b", "/a"))
    assert (len(clicked(near)), len(clicked(far))) == (2, 1)
    bridged = sequences(visit("u", 0, "/a", query="moon"), visit("u", gap, "/x"), visit("u", 2 * gap, "/b", "/a"))
    assert clicked(bridged) == [("moon", "/a"), ("moon", "/b")]


def test_new_words_begin_anew_and_the_latest_view_of_a_page_counts() -> None:
    result = sequences(
        visit("u", 0, "/a", query="moon"),
        visit("u", 10, "/b", "/a"),
        visit("u", 20, "/a", query="mars"),
        visit("u", 30, "/c", "/a"),
        visit("u", 40, "/d", "/b"),
    )
    assert clicked(result) == [("moon", "/a"), ("moon", "/b"), ("mars", "/a"), ("mars", "/c"), ("moon", "/d")]


def test_search_pages_hand_on_their_words_and_are_no_clicks() -> None:
    search = visit("u", 0, "/find?q=moon", query="moon", is_search=True)
    result = sequences(search, visit("u", 5, "/a", "/find?q=moon"), visit("u", 9, "/b", "/a"))
    assert clicked(result) == [("moon", "/a"), ("moon", "/b")]
    assert result.used == 3


def test_without_recorded_referrers_a_view_follows_the_one_before_it() -> None:
    search = visit("u", 0, "/find?q=moon", None, "moon", is_search=True)
    result = sequences(search, visit("u", 5, "/a", None), visit("u", 9, "/b", None), visit("v", 9, "/c", None))
    assert clicked(result) == [("moon", "/a"), ("moon", "/b")]
    assert result.ignored == {"no-query": 1}


def test_the_scheme_makes_no_other_page() -> None:
    first = visit("u", 0, "/a", query="moon")
    second = visit("u", 5, "/b") | {"referrer_url": "http://www.example.com/a"}
    assert len(clicked(sequences(first, second))) == 2


def test_views_of_one_second_stand_in_the_order_of_their_referrers() -> None:
    result = sequences(
        visit("u", 0, "/z", query="moon"),
        visit("u", 0, "/b", "/y"),
        visit("u", 0, "/y", "/z"),
        visit("u", 0, "/a", "/b"),
    )
    assert clicked(result) == [("moon", "/z"), ("moon", "/y"), ("moon", "/b"), ("moon", "/a")]
    times = result.clicks["clicked_at"].to_pylist()
    assert times == [BEGIN + datetime.timedelta(microseconds=place) for place in range(4)]


def test_circles_of_referrers_end() -> None:
    result = sequences(visit("u", 0, "/a", "/b"), visit("u", 0, "/b", "/a"), visit("u", 0, "/c", "/c"))
    assert clicked(result) == []
    with_words = sequences(visit("u", 0, "/a", "/b", "moon"), visit("u", 0, "/b", "/a"))
    assert sorted(clicked(with_words)) == [("moon", "/a"), ("moon", "/b")]


def test_floods_of_home_pages_are_ignored() -> None:
    step = (HOME_PAGE_SECONDS - 1) / (HOME_PAGE_HITS - 1)
    flood = [visit("u", place * step, "/", query="moon") for place in range(HOME_PAGE_HITS)]
    slow = [visit("v", place * (step + 1), "/", query="moon") for place in range(HOME_PAGE_HITS)]
    pages = [visit("w", place, "/page", query="moon") for place in range(HOME_PAGE_HITS)]
    result = sequences(*flood, *slow, *pages, visit("u", 70, "/a", query="moon"))
    assert result.ignored == {"home-page-flood": HOME_PAGE_HITS}
    assert result.used == 2 * HOME_PAGE_HITS + 1
    assert sequences(*flood).clicks.num_rows == 0
    assert sequences().clicks.num_rows == 0


PATHS = ["/", "/a", "/b", "/c"]
VISIT = st.builds(
    visit,
    user=st.sampled_from(["u", "v"]),
    second=st.integers(0, 5).map(lambda step: step * 700),
    path=st.sampled_from(PATHS),
    referrer=st.sampled_from([None, "", *PATHS]),
    query=st.sampled_from([None, None, "moon", "mars"]),
)


def by_hand(visits: list[dict[str, Any]]) -> set[tuple[str, str, datetime.datetime, str]]:
    """Clicks of visits that all have times of their own."""
    clicks = set()
    for user in {row["user_id"] for row in visits}:
        session: list[tuple[dict[str, Any], str | None]] = []
        for row in sorted((row for row in visits if row["user_id"] == user), key=lambda row: row["visited_at"]):
            if session and (row["visited_at"] - session[-1][0]["visited_at"]).total_seconds() > SESSION_GAP_SECONDS:
                session = []
            words = row["query"]
            if words is None and row["referrer_url"] is None and session:
                words = session[-1][1]
            elif words is None:
                words = next((known for seen, known in reversed(session) if seen["url"] == row["referrer_url"]), None)
            session.append((row, words))
            if words is not None:
                clicks.add((user, words, row["visited_at"], row["url"]))
    return clicks


@settings(max_examples=200, deadline=None)
@given(visits=st.lists(VISIT, max_size=14, unique_by=lambda row: (row["user_id"], row["visited_at"])))
def test_sequences_are_those_of_the_rules(visits: list[dict[str, Any]]) -> None:
    rows = sequences(*visits).clicks.to_pylist()
    found = {(row["user_id"], row["query"], row["clicked_at"], row["url"]) for row in rows}
    assert found == by_hand(visits)
    assert len(found) == len(rows)


@settings(max_examples=100, deadline=None)
@given(visits=st.lists(VISIT, max_size=14), seed=st.integers(0, 9))
def test_neither_order_nor_partitions_matter(visits: list[dict[str, Any]], seed: int) -> None:
    whole = sequences(*visits)
    shuffled = list(visits)
    random.Random(seed).shuffle(shuffled)
    assert sequences(*shuffled).clicks.equals(whole.clicks)
    parts = [sequences(*(row for row in visits if row["user_id"] == user)) for user in ("u", "v")]
    assert pa.concat_tables([part.clicks for part in parts]).equals(whole.clicks)
    assert sum(part.used for part in parts) == whole.used


@pytest.mark.parametrize("length", [1, 2, 1000])
def test_chains_may_be_long(length: int) -> None:
    chain = [
        visit("u", place, f"/{place}", f"/{place - 1}" if place else "", None if place else "moon")
        for place in range(length)
    ]
    assert sequences(*chain).used == length
