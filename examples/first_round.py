"""The whole way once: makes the sample web, ingests it, ranks one round, and explains the best URL to fetch.

Run it from the checkout: `python -m examples.first_round [FOLDER]`; what it makes stays in FOLDER (default: out).
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from semrank.pipelines.cli import main


def first_round(folder: Path) -> int:
    """Makes folder/web, folder/snapshot and folder/round; gives the exit status."""
    for name in ("web", "snapshot", "round"):
        shutil.rmtree(folder / name, ignore_errors=True)
    web, snapshot, output = (str(folder / name) for name in ("web", "snapshot", "round"))
    steps = [
        ["sample", "--output", web],
        ["ingest", "--warc", f"{web}/warc/*", "--clicks", f"{web}/clicks/*", "--output", snapshot],
        ["rank", "--snapshot", snapshot, "--seeds", f"{web}/seeds.txt", "--output", output],
    ]
    for step in steps:
        print(f"\n$ semrank {' '.join(step)}", flush=True)
        status = main(step)
        if status:
            return status
    frontier = pq.read_table(f"{output}/frontier", columns=["url"], filters=pc.field("selected"))
    best = frontier["url"][0].as_py()
    print(f"\n$ semrank explain --round {output} {best}", flush=True)
    return main(["explain", "--round", output, best])


if __name__ == "__main__":
    raise SystemExit(first_round(Path(sys.argv[1] if len(sys.argv) > 1 else "out")))
