"""Prints the flex template's metadata: every option of `semrank rank` as a parameter, with its help and a pattern.

python -m deploy.dataflow.template > deploy/dataflow/metadata.json
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from semrank.pipelines import rank
from semrank.pipelines.cli import command_parser

IN_BUCKETS = dict.fromkeys(("snapshot", "seeds", "previous", "output"), r"^gs://[^\s]+$")
"""Patterns of options whose values a service must be able to read or write; others follow from the declarations."""

PRIVATE = {"help", "quiet", "verbose", "json", "config", "top", "workers", "temp", "plan"}
"""Options of no use to a service."""


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
    return action.option_strings[0 if isinstance(action, argparse.BooleanOptionalAction) else -1].removeprefix("--")


def parameter(action: argparse.Action) -> dict[str, Any]:
    """An option as a parameter."""
    name = name_of(action)
    described = {
        "name": name,
        "label": name.replace("-", " ").capitalize(),
        "helpText": action.help,
        "isOptional": not action.required,
    }
    if action.nargs == 0:
        return {**described, "regexes": ["^(true|false)$"]}
    pattern = IN_BUCKETS.get(name) or getattr(action, "pattern", None)
    return {**described, "regexes": [pattern]} if pattern else described


if __name__ == "__main__":
    print(json.dumps(metadata(), indent=2))
