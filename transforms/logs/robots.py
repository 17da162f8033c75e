"""Which user agents are no people: the maintained list of crawler-user-agents, and two rules of thumb."""

from __future__ import annotations

from functools import cache

import pyarrow as pa
import pyarrow.compute as pc
from crawleruseragents import CRAWLER_USER_AGENTS_DATA

PATTERNS_AT_ONCE = 200
"""Patterns joined to one expression. RE2's automaton of all 1,500 outgrows its memory, which is 200 times slower."""

SELF_DESCRIPTION = r"https?://|[\w.]@[\w-]+\.\w"
"""A robot that follows custom gives an address to read about it or to write to; browsers never do."""


@cache
def _expressions() -> tuple[str, ...]:
    patterns = [entry["pattern"] for entry in CRAWLER_USER_AGENTS_DATA]
    joined = ("|".join(patterns[at : at + PATTERNS_AT_ONCE]) for at in range(0, len(patterns), PATTERNS_AT_ONCE))
    return (SELF_DESCRIPTION, *joined)


def are_robots(agents: pa.BinaryArray) -> pa.BooleanArray:
    """Whether user agents are robots, bool[n]: listed, describing themselves, or empty (`-`), as no browser is.

    Args:
        agents: user agents, binary[n], best without repetitions.
    """
    robots = pc.is_in(agents, pa.array([b"", b"-"], pa.binary()))
    for expression in _expressions():
        robots = pc.or_(robots, pc.match_substring_regex(agents, expression))
    return robots
