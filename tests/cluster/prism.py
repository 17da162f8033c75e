"""Builds Beam's Go runner of the version that `constraints.txt` pins for Python.

`python3 -m tests.cluster.prism` builds it into Go's cache, from which the tests install it within seconds.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PRISM = "github.com/apache/beam/sdks/v2/go/cmd/prism"


def beam_version() -> str:
    """Version of Apache Beam in the constraints."""
    constraints = (Path(__file__).resolve().parents[2] / "constraints.txt").read_text(encoding="utf-8")
    (pinned,) = re.finditer(r"^apache-beam==(\S+)$", constraints, re.MULTILINE)
    return pinned[1]


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    """Builds `prism` in a folder; needs `go`."""
    # Inlining and debug data take a quarter of the processor time to build, and small pipelines need neither.
    quick = ["-gcflags=all=-l", "-ldflags=-s -w"]
    command = ["go", "install", *quick, f"{PRISM}@v{beam_version()}"]
    environment = {**os.environ, "GOBIN": str(folder)}
    return subprocess.run(command, check=False, env=environment, capture_output=True, text=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as nowhere:
        done = build(Path(nowhere))
    sys.exit(done.stderr if done.returncode else None)
