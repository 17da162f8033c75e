"""The rankers by name, each imported only when it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa

from semrank.schemas.errors import InputError
from semrank.transforms.ranking.facts import Facts

Rank: TypeAlias = Callable[[Facts], pa.Table]
"""Gives the current URLs their scores: facts -> a table of `SCORED_SCHEMA`."""

SEMRANK = "semrank"
"""The ranker that compares lattices, so facts are not enough for it; see `semrank_local`."""

_MODULES = {
    "focused": "focused",
    "breadth-first": "breadth_first",
    "pagerank": "pagerank",
    "hits": "hits",
    "harmonic": "harmonic",
    "cosine": "cosine",
    "keyword": "keyword",
    "link-context": "link_context",
    "relevancy-context": "relevancy_context",
    "hmm": "hmm",
    "ontology": "ontology",
}

RANKERS = ("focused", SEMRANK, *(name for name in _MODULES if name != "focused"))
"""Names of all rankers."""


def ranker(name: str) -> Rank:
    """The function that ranks in memory by facts.

    Raises:
        InputError: there is no such ranker.
    """
    if name not in _MODULES:
        raise InputError(f"found the ranker '{name}', expected one of {', '.join(_MODULES)}")
    rank: Rank = importlib.import_module(f"semrank.transforms.ranking.{_MODULES[name]}").rank
    return rank
