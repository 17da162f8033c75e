"""What a command prints at its end: a text for people, or with `--json` the same facts as JSON."""

from __future__ import annotations

import argparse
import json
from typing import Any


def answer(arguments: argparse.Namespace, text: str, facts: dict[str, Any]) -> None:
    """Prints the text, or the facts as one JSON object if `--json` was given."""
    print(json.dumps(facts, ensure_ascii=False, sort_keys=True) if arguments.json else text, flush=True)
