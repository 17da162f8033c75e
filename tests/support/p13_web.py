"""The web of P13's example, and rows of webs like it."""

from __future__ import annotations

import datetime
import random
from typing import Any

HOST = "https://example.org"

START = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)

P13_KEYWORDS = {
    1: ["internet", "spider"],
    2: ["spider", "ontology"],
    3: ["internet", "spider", "ontology"],
    4: ["web page", "information", "spider"],
    5: ["internet", "technology", "network", "web page", "spider"],
    6: ["internet", "technology", "network", "web page"],
    7: ["technology", "network", "information", "spider"],
    8: ["technology", "web page", "information", "spider"],
}
"""The contexts of P13 Example 5: U1 to U3 are the queue, U4 to U8 the current URLs."""


def url(number: int) -> str:
    return f"{HOST}/u{number}"


def link(source: int, target: int, **more: Any) -> dict[str, Any]:
    return {"source_url": url(source), "target_url": url(target), **more}


def click(user: str, words: list[str], target: int, minute: int, **more: Any) -> dict[str, Any]:
    when = START + datetime.timedelta(minutes=minute)
    given = {"user_id": user, "query": " ".join(words), "keywords": words, "clicked_at": when}
    return {**given, "url": url(target), **more}


P13_PAGES = [{"url": url(number), "keywords": words} for number, words in P13_KEYWORDS.items()]

P13_LINKS = [link(1, 8), link(3, 5), link(2, 4), link(2, 6), link(2, 7), link(5, 2), link(4, 4), link(1, 2)]

P13_CLICKS = [
    click("a", ["internet", "spider"], 3, 0),
    click("a", ["internet", "spider"], 4, 1),
    click("b", ["internet", "spider"], 3, 0),
    click("b", ["internet", "spider"], 5, 29),
    click("c", ["technology"], 7, 0, user_group="readers"),
    click("d", ["network"], 7, 9, user_group="readers"),
    click("d", ["web page"], 5, 9),
]

WORDS = ["ant", "bee", "cat", "dog", "eel", "fox"]


def random_web(seed: int) -> tuple[list[Any], list[Any], list[Any], list[str]]:
    """Pages, links, clicks and seeds of a small web; words without clicks, pages without words and circles occur."""
    draw = random.Random(seed)
    queue = [url(number) for number in range(draw.choice([1, 2, 3, 4]))]
    others = [url(number) for number in range(10, 10 + draw.randint(2, 6))]
    everything = queue + others
    pages = [{"url": page, "keywords": draw.sample(WORDS, draw.choice([0, 1, 2, 3, 4]))} for page in everything]
    links: list[dict[str, Any]] = [{"source_url": queue[0], "target_url": others[0]}]
    for _ in range(draw.randint(3, 25)):
        ends = {"source_url": draw.choice(everything), "target_url": draw.choice(everything)}
        links.append({**ends, "nofollow": draw.choice([None, False, False, True])})
    clicks = []
    for step in range(draw.randint(0, 40)):
        words = draw.sample(WORDS[:-1], draw.choice([1, 1, 2, 3]))
        clicks.append(
            {
                "user_id": draw.choice("abc"),
                "user_group": draw.choice([None, "g", "h"]) if seed % 2 else None,
                "session_id": draw.choice([None, "s"]),
                "query": " ".join(sorted(words)),
                "keywords": words,
                # No two clicks have the same time, so that their order is given.
                "clicked_at": START
                + datetime.timedelta(seconds=draw.choice([60, 1799, 1801]) * step, microseconds=step),
                "url": draw.choice(everything),
            }
        )
    return pages, links, clicks, queue
