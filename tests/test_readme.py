"""The README's commands are true."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from semrank.pipelines.cli import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def command(name: str) -> str:
    found = re.search(rf"<!-- readme:{name} -->\n```sh\n(.+)\n```", README)
    assert found is not None
    return found[1]


def test_main_command_runs_here(tmp_path: Path) -> None:
    """What the main command runs after its installation, in the interpreter of the tests."""
    *_, last = command("main").split("&&")
    python, *arguments = shlex.split(last)
    assert python == ".venv/bin/python"
    done = subprocess.run(
        [sys.executable, *arguments, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    best = pq.read_table(tmp_path / "round" / "frontier", filters=pc.field("selected")).to_pylist()[0]
    assert f"\n{best['url']}\nrank {best['rank']} of " in done.stdout
    assert (tmp_path / "round" / "manifest.json").exists()
    assert "Traceback" not in done.stderr


def test_commands_install_what_they_use() -> None:
    assert command("main").startswith("python3 -m venv .venv && .venv/bin/pip install -q . &&")
    assert command("test").endswith(".venv/bin/python -m pytest -q -n auto --dist loadfile")
    assert re.search(r"pip install -q --no-compile -e '\.\[test,lint,benchmarks,fast\]'", command("test"))


def test_ci_runs_the_test_command() -> None:
    assert "readme:test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_every_command_is_told() -> None:
    for name in COMMANDS:
        assert f"`semrank {name}" in README


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / target).exists(), target
