"""The tutorial's loop runs as it is written."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from tests.support.blocks import ROOT, blocks_of, run_script

pytest.importorskip("scrapy")
pytest.importorskip("warcio")

ROUNDS = "0000 0001 0002 0003"


def test_the_loop(tmp_path: Path) -> None:
    (block,) = (block for block in blocks_of(ROOT / "docs" / "tutorial.md") if block.marker == "tutorial:loop")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert ROUNDS in block.script
    # Two rounds are enough to see that one leads to the next.
    script = block.script.replace("8080", str(port)).replace(ROUNDS, "0000 0001")
    # The commands are run in a folder that looks like the repository's root, with the command in the path.
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, module in (("semrank", "semrank.pipelines.cli"), ("scrapy", "scrapy")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}:$PYTHONPATH" exec "{sys.executable}" -m {module} "$@"\n')
        program.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    environment |= {"PATH": f"{programs}:{environment['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = run_script(script, tmp_path, environment, 500)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    for number in ("0000", "0001"):
        assert len((tmp_path / "loop" / f"frontier-{number}.jsonl").read_text().splitlines()) == 12
        assert (tmp_path / "loop" / "warc" / f"{number}.warc.gz").stat().st_size
