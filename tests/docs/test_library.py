"""The Python of docs/library.md runs, and prints what its comments show."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from tests.support.blocks import ROOT
from tests.support.sample import ingest_sample

PAGE = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
SHOWN = re.compile(r"^print\(.*\)  # (.*)$", re.MULTILINE)


def test_the_page_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ingest_sample(tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in BLOCKS:
        printed = StringIO()
        with redirect_stdout(printed):
            exec(block, names)  # the page's own code
        lines = printed.getvalue().splitlines()
        for expected in SHOWN.findall(block):
            assert expected in lines
    assert len(SHOWN.findall(PAGE)) == len(re.findall("#.*", "\n".join(BLOCKS)))
