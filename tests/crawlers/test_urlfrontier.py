"""URL Frontier's own messages are made of exported lines, as its client makes them.

Its service and its client are in no artifact, so no queue is asked for the order in which it gives URLs.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from semrank.pipelines.cli import main
from tests.support.frontiers import frontier, host, write_round

READER = Path(__file__).with_name("ReadUrlItems.java")
URLS = [
    "https://a.example/b,c?d='e'&f=\"g\"",
    "https://a.example/\\h\\u0041",
    "https://münchen.example/é文😀",
    "http://a.example/",
]


def test_messages(class_path: Callable[[str], str], tmp_path: Path) -> None:
    folder = write_round(tmp_path / "round", frontier(URLS, [1.0, 0.5, 0.25, 1e-9]))
    output = tmp_path / "frontier.jsonl"
    assert main(["export", "--round", folder, "--format", "urlfrontier", "--output", str(output), "--quiet"]) == 0
    command = ["java", "-Xmx256m", "-cp", class_path("urlfrontier"), str(READER), str(output)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = [tuple(line.split("\t")) for line in done.stdout.splitlines()]
    assert found == [(str(rank), host(url), str(rank), url) for rank, url in enumerate(URLS, start=1)]
