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


def paths(*packages: str) -> list[str]:
    """The Python files of some folders, by default of all that are installed, from the root on."""
    rooms = packages or ("schemas", "transforms", "pipelines")
    return [path.relative_to(ROOT).as_posix() for room in rooms for path in sorted((ROOT / room).rglob("*.py"))]


ROOMS = (
    *("columnar", "streams", "logs", "crawls", "weblog", "context", "lattice", "similarity", "ranking", "frontier"),
    *("replay", "samples"),
)
"""The rooms of `transforms`, upstream first."""

BEAM_MODULES = {f"transforms/columnar/{name}.py" for name in ("coder", "files", "objects")} | {
    path.relative_to(ROOT).as_posix() for room in ROOMS for path in (ROOT / "transforms" / room).glob("*beam.py")
}
"""Where Beam may be imported besides `pipelines`: the steps, the coder, and the file systems."""
