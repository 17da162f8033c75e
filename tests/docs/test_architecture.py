"""The page on the architecture shows the stages that a round has, and the packages that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.architecture import PAGE, drawing, with_drawing
from tests.support.sample import ingest_sample
from tests.support.sources import BEAM_MODULES, ROOMS

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_drawing_is_the_plan_of_a_round(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ingest_sample(tmp_path)
    monkeypatch.chdir(tmp_path)
    drawn = drawing("snapshot", "web/seeds.txt")
    assert drawn.startswith("flowchart TD\n")
    assert with_drawing(TEXT, drawn) == TEXT, "`python -m docs.architecture` makes the drawing anew"


def test_the_folders_are_in_the_order_of_their_imports() -> None:
    assert re.findall(r"^\| `transforms/(\w+)` \|", TEXT, re.MULTILINE) == list(ROOMS)


def test_the_modules_with_beam_are_named() -> None:
    others = {name for name in BEAM_MODULES if not name.endswith("beam.py")}
    assert others == {"transforms/columnar/coder.py", "transforms/columnar/files.py", "transforms/columnar/objects.py"}
    assert "`transforms/columnar/coder.py`, `files.py`, `objects.py`" in TEXT
