"""Prints the flex template's metadata: every option of `semrank rank` as a parameter, with its help and a pattern.

python -m deploy.dataflow.template > deploy/dataflow/metadata.json
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from semrank.pipelines import rank
from semrank.pipelines.cli import command_parser

NUMBER = r"^[0-9]+(\.[0-9]+)?$"
WHOLE = r"^[1-9][0-9]*$"
PATTERNS = {
    "snapshot": r"^gs://[^\s]+$",
    "seeds": r"^gs://[^\s]+$",
    "previous": r"^gs://[^\s]+$",
    "output": r"^gs://[^\s]+$",
    "profile": r"^[a-z0-9-]+$",
    "ranker": r"^[a-z-]+$",
    "level": r"^(page|host)$",
    "weight": NUMBER,
    "threshold": NUMBER,
    "alpha": NUMBER,
    "smoothing": NUMBER,
    "intension-norm": r"^(min|max)$",
    "top-probability": r"^(max|min|[0-9]+(\.[0-9]+)?)$",
    "c-edges": r"^(distinct|clicks)$",
    "user-groups": r"^(given|one|minhash)$",
    "language": r"^[a-z]{2,3}(-[A-Za-z]+)?$",
    "host-quality": r"^(pagerank|harmonic|equal)$",
    "sigma": r"^(lift|as-printed)$",
    "worker-memory": r"^[0-9]+[KMGTkmgt]?(i?[Bb])?$",
    "mix": r"^[0-9]{1,9}:[0-9]{1,9}$",
    "as-of": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]+(Z|[+-][0-9:]+)?)?$",
}
"""What a parameter's value looks like; whole numbers and switches are told by the option's type."""

PRIVATE = {"help", "quiet", "verbose", "json"}
"""Options of no use to a service."""

FREE = {"query", "ontology", "topic"}
"""Options whose value may be anything."""


def metadata() -> dict[str, Any]:
    """The template's metadata."""
    return {
        "name": "semrank rank",
        "description": "Ranks the URLs that a queue of pages links to: one round, written as a Parquet frontier.",
        "parameters": [parameter(action) for action in options()],
    }


def options() -> list[argparse.Action]:
    """The options that are parameters."""
    actions = command_parser("rank", rank)._actions
    return [action for action in actions if name_of(action) not in PRIVATE]


def name_of(action: argparse.Action) -> str:
    """An option's name, as parameters are called."""
    return action.option_strings[-1].removeprefix("--")


def parameter(action: argparse.Action) -> dict[str, Any]:
    """An option as a parameter."""
    name = name_of(action)
    told = {
        "name": name,
        "label": name.replace("-", " ").capitalize(),
        "helpText": action.help,
        "isOptional": not action.required,
    }
    if action.nargs == 0:
        return {**told, "regexes": ["^(true|false)$"]}
    if name in PATTERNS:
        return {**told, "regexes": [PATTERNS[name]]}
    if name in FREE:
        return told
    return {**told, "regexes": [WHOLE]}


if __name__ == "__main__":
    print(json.dumps(metadata(), indent=2))
