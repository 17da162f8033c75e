"""The project's own modules, to look at what they do."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def modules() -> dict[str, ast.Module]:
    """All modules that are installed, parsed, by path; they are not to be changed."""
    return {path: ast.parse((ROOT / path).read_text(encoding="utf-8")) for path in paths()}


def paths() -> list[str]:
    """All modules that are installed."""
    found = [path for room in ("schemas", "transforms", "pipelines") for path in sorted((ROOT / room).rglob("*.py"))]
    return [path.relative_to(ROOT).as_posix() for path in found]
