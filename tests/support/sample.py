"""The sample web and its snapshot, as several rooms' tests begin."""

from __future__ import annotations

from pathlib import Path

from semrank.pipelines.cli import main
from semrank.transforms.samples import sample_web


def ingest_sample(folder: Path) -> str:
    """Writes the sample web to `folder`/web and its snapshot to `folder`/snapshot; the path of the latter."""
    web, snapshot = f"{folder}/web", f"{folder}/snapshot"
    assert main(["sample", "--output", web, "--quiet"]) == 0
    logs = ["--warc", f"{web}/warc/*", "--clicks", f"{web}/clicks/*"]
    assert main(["ingest", *logs, "--output", snapshot, "--quiet"]) == 0
    return snapshot


def captured_urls() -> list[str]:
    """URLs that the WARC files of the sample hold a response of, in the order of URLs."""
    return sorted(sample_web._web().captured)
