"""The sample web and its snapshot, as several rooms' tests begin."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from semrank.pipelines.cli import main
from semrank.transforms.samples import sample_web


@cache
def _original() -> TemporaryDirectory[str]:
    folder: TemporaryDirectory[str] = TemporaryDirectory(prefix="semrank-sample-")
    web, snapshot = f"{folder.name}/web", f"{folder.name}/snapshot"
    assert main(["sample", "--output", web, "--quiet"]) == 0
    logs = ["--warc", f"{web}/warc/*", "--clicks", f"{web}/clicks/*"]
    assert main(["ingest", *logs, "--output", snapshot, "--quiet"]) == 0
    return folder


def ingest_sample(folder: Path) -> Path:
    """Copies the sample web to `folder`/web and its snapshot to `folder`/snapshot; returns the latter.

    Both are made once a process.
    """
    for name in ("web", "snapshot"):
        shutil.copytree(Path(_original().name, name), folder / name)
    return folder / "snapshot"


def captured_urls() -> list[str]:
    """URLs that the WARC files of the sample hold a response of, in the order of URLs."""
    return sorted(sample_web._web().captured)
