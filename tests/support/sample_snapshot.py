"""The sample as a snapshot, made by the commands that a user would give."""

from __future__ import annotations

from pathlib import Path

from semrank.pipelines.cli import main


def make_sample_snapshot(folder: Path) -> Path:
    """Writes folder/web (the sample) and gives folder/snapshot."""
    web, snapshot = folder / "web", folder / "snapshot"
    assert main(["sample", "--output", str(web)]) == 0
    inputs = ["--warc", f"{web}/warc/*", "--clicks", f"{web}/clicks/*"]
    assert main(["ingest", *inputs, "--output", str(snapshot), "--quiet"]) == 0
    return snapshot
