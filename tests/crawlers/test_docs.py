"""The documentation's loop runs as it is written."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("scrapy")
pytest.importorskip("warcio")

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = "0000 0001 0002 0003"


def test_the_loop(tmp_path: Path) -> None:
    found = re.search(r"<!-- export:loop -->\n```sh\n(.+?)\n```", (ROOT / "docs" / "export.md").read_text(), re.DOTALL)
    assert found is not None
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert ROUNDS in found[1]
    # Two rounds are enough to see that one leads to the next.
    script = found[1].replace("8080", str(port)).replace(ROUNDS, "0000 0001")
    # The commands are run in a folder that looks like the repository's root, with the command in the path.
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, module in (("semrank", "pipelines.cli"), ("scrapy", "scrapy")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}:$PYTHONPATH" exec "{sys.executable}" -m {module} "$@"\n')
        program.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    environment |= {"PATH": f"{programs}:{environment['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    for number in ("0000", "0001"):
        assert len((tmp_path / "loop" / f"frontier-{number}.jsonl").read_text().splitlines()) == 12
        assert (tmp_path / "loop" / "warc" / f"{number}.warc.gz").stat().st_size
