"""Hypothesis strategies that several rooms' tests share."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import strategies as st

_Value = TypeVar("_Value")

HOST = "https://example.org"
START = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
WORDS = ("internet", "lattice", "network", "ontology", "spider", "zebra")
"""Words that are their own lemmas; few, so that relations meet and form cycles."""

FOREIGN_WORD = "tiger"
"""A word of queries that no page has."""

GAPS = (0, 1, 60, 1799, 1800, 1801, 4000)
"""Seconds between two clicks, around the longest pause inside a sequence."""


def choices(values: Sequence[_Value], least: int, most: int) -> st.SearchStrategy[list[_Value]]:
    """Lists of some of up to 256 values, drawn as bytes: many times as fast as value by value."""
    return st.binary(min_size=least, max_size=most).map(lambda codes: [values[code % len(values)] for code in codes])


@dataclass(frozen=True)
class SmallSnapshot:
    """Rows of the three tables and the queue; all URLs are pages with keywords."""

    pages: list[dict[str, Any]]
    links: list[dict[str, Any]]
    clicks: list[dict[str, Any]]
    seeds: list[str]


@st.composite
def small_snapshots(draw: st.DrawFn, smallest_queue: int = 1) -> SmallSnapshot:
    """Snapshots small enough to rank by definition.

    A queue of up to 4 pages links to 2 to 6 others, some of them by nofollow links alone; there are links to the page
    itself, inside the queue, back to it and from elsewhere. Clicks lie around the longest pause of a sequence, with and
    without group, session and position; no two clicks of a sequence have the same time and position.
    """
    queue = [f"{HOST}/q{number}" for number in range(draw(st.integers(smallest_queue, 4)))]
    current = [f"{HOST}/c{number}" for number in range(draw(st.integers(2, 6)))]
    everything = [*queue, *current, f"{HOST}/elsewhere"]
    used = WORDS[: draw(st.integers(1, len(WORDS)))]
    keywords = st.lists(st.sampled_from(used), max_size=4)
    pages = [{"url": url, "keywords": draw(keywords)} for url in everything]

    nofollow = st.sampled_from([None, False, True])
    ends = [(draw(st.sampled_from(queue)), url) for url in current]
    ends += draw(st.lists(st.tuples(st.sampled_from(everything), st.sampled_from(everything)), max_size=20))
    links = [{"source_url": source, "target_url": target, "nofollow": draw(nofollow)} for source, target in ends]
    return SmallSnapshot(pages, links, draw(_clicks(everything, used)), queue)


@st.composite
def _clicks(draw: st.DrawFn, urls: list[str], words: tuple[str, ...]) -> list[dict[str, Any]]:
    clicks: dict[tuple[Any, ...], dict[str, Any]] = {}
    asked = st.sampled_from([*words, FOREIGN_WORD])
    # ISA beats Part-Of, and a group that asks for much makes all words ISA-related: most groups ask for little.
    groups = st.sampled_from([None, *"efghijkl"])
    for _ in range(draw(st.integers(0, 14))):
        user = draw(st.sampled_from("abcdefgh"))
        group = draw(groups)
        query = draw(st.lists(asked, min_size=1, max_size=1) | st.lists(asked, max_size=2))
        session = draw(st.sampled_from([None, None, "first"]))
        numbered = draw(st.booleans())
        when = START + datetime.timedelta(minutes=draw(st.sampled_from([0, 30, 45])))
        for number in range(draw(st.integers(1, 3))):
            when += datetime.timedelta(seconds=draw(st.sampled_from(GAPS)))
            position = number if numbered else None
            text = " ".join(sorted(set(query)))
            row = {"user_id": user, "user_group": group, "session_id": session, "query": text, "keywords": query}
            row |= {"clicked_at": when, "position": position, "url": draw(st.sampled_from(urls))}
            clicks.setdefault((user, session, text, when, position), row)
        # Another query of the same group, so that a link has different words at its ends.
        if draw(st.booleans()):
            for word, url in zip(draw(st.permutations(words))[:2], draw(st.permutations(urls))[:2], strict=False):
                row = {"user_id": f"{group} {word}", "user_group": group, "query": word, "keywords": [word]}
                row |= {"clicked_at": when, "position": len(clicks), "url": url}
                clicks.setdefault((row["user_id"], None, word, when, len(clicks)), row)
    return list(clicks.values())
