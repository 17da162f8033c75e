"""What a command prints at its end: a text for people, or with `--json` the same facts as JSON."""

from __future__ import annotations

import argparse
import json
from typing import Any


def answer(arguments: argparse.Namespace, text: str, facts: dict[str, Any]) -> None:
    """Prints the text, or the facts as one JSON object if `--json` was given."""
    print(json.dumps(facts, ensure_ascii=False, sort_keys=True) if arguments.json else text, flush=True)


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A number with what it counts, as in "1 page" and "2,461 links".

    Args:
        count: the number.
        noun: what one of them is called.
        plural: what several are called, if it is not the noun with an s.
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
