"""What docs/extending.md adds works: it is applied to a copy of the program, whose commands and tests are then run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.blocks import ROOT, blocks_of, run_script
from tests.support.command_server import served

PAGE = ROOT / "docs" / "extending.md"
TEXT = PAGE.read_text(encoding="utf-8")
FILES = re.findall(r"^```python\n# (\S+)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
CHANGES = re.findall(r"^```diff\n--- (\S+)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
SHARED_TESTS = (
    "tests/transforms/ranking/test_registry.py",
    "tests/transforms/logs/test_formats.py::test_each_format_has_a_sample_that_is_used",
)
"""Tests that look at every entry of a registry."""

COPIED = ("pipelines", "transforms", "schemas", "semrank", "docs", "deploy", "tests/support", "tests/transforms")


def change(path: Path, difference: str) -> None:
    """Applies a difference without line numbers: what stands before it has to be in the file exactly once."""
    lines = difference.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] != "+")
    after = "".join(line[1:] for line in lines if line[0] != "-")
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1, f"{path}: {before}"
    path.write_text(text.replace(before, after), encoding="utf-8")


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the program with all that the page adds."""
    copy = tmp_path_factory.mktemp("extended")
    for name in COPIED:
        # With the compiled modules, which are those of the copied sources until these are changed.
        shutil.copytree(ROOT / name, copy / name, symlinks=True)
    for path in [*ROOT.glob("tests/*.py"), ROOT / "pyproject.toml"]:
        shutil.copy(path, copy / path.relative_to(ROOT))
    for name, content in FILES:
        assert not (copy / name).exists()
        (copy / name).write_text(content, encoding="utf-8")
    for name, difference in CHANGES:
        change(copy / name, difference)
    return copy


@pytest.fixture(scope="module")
def programs(extended: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a `semrank` and a `python` that find the program in its copy."""
    folder = tmp_path_factory.mktemp("programs")
    with served(folder, extended):
        yield folder


def test_the_commands_of_the_page_run(extended: Path, programs: Path, tmp_path: Path) -> None:
    """What is generated is made in the copy."""
    variables = os.environ | {"PATH": f"{programs}:/usr/bin:/bin"}
    for block in blocks_of(PAGE):
        place = extended if block.marker == "extending:generated" else tmp_path
        done = run_script(block.script, place, variables, 300)
        assert done.returncode == 0, done.stderr
    for name in ("docs/reference.md", "deploy/dataflow/metadata.json"):
        assert "jaccard" in (extended / name).read_text(encoding="utf-8")
    urls = pq.read_table(tmp_path / "round-jaccard" / "frontier", columns=["url", "selected"]).to_pylist()
    selected = [row["url"] for row in urls if row["selected"]]
    assert selected
    assert (tmp_path / "frontier.curl").read_text(encoding="utf-8") == "".join(f'url = "{url}"\n' for url in selected)
    clicks = pq.read_table(tmp_path / "snapshot-helpdesk" / "clicks").to_pylist()
    assert [(row["query"], row["url"]) for row in clicks] == [("kestrel", "https://birds.example/raptors/kestrel.html")]


def test_the_tests_of_the_page_pass(extended: Path, programs: Path) -> None:
    tests = [name for name, _ in FILES if name.startswith("tests/")]
    assert len(tests) == 3
    command = [programs / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    call = [*command, *tests, *SHARED_TESTS]
    done = subprocess.run(call, cwd=extended, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_code_of_the_page_keeps_the_style(extended: Path) -> None:
    names = [*dict.fromkeys(name for name, _ in FILES + CHANGES)]
    for command in (["check"], ["format", "--check"]):
        call = [sys.executable, "-m", "ruff", *command, *names]
        done = subprocess.run(call, cwd=extended, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
