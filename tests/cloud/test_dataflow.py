"""What Dataflow gets: the graph and the package are staged in a bucket, and the round is finished later."""

from __future__ import annotations

import json
from pathlib import Path

from semrank.transforms.columnar import files
from tests.cloud.conftest import LIMITS, ROOT, Disk, Store, run


def test_dataflow_gets_the_graph_and_the_round_is_finished_later(gcs: Store, disk: Disk, tmp_path: Path) -> None:
    with gcs.reached():
        for path in (disk.folder / "snapshot").rglob("*"):
            if path.is_file():
                files.write_bytes(gcs.path(path.relative_to(disk.folder).as_posix()), path.read_bytes())
    rank = ("rank", "--snapshot", gcs.path("snapshot"), "--seeds", f"{disk.web}/seeds.txt", *LIMITS)
    places = ("--temp_location", gcs.path("tmp"), "--staging_location", gcs.path("staging"))
    project = ("--project", "semrank-test", "--region", "europe-west1", "--setup_file", str(ROOT / "setup.py"))
    said = run(
        gcs, ROOT, *rank, "--output", gcs.path("later"), "--runner", "DataflowRunner",
        *places, *project, "--template_location", gcs.path("template"),
    )  # fmt: skip
    assert f"semrank finish --round {gcs.path('later')}" in said
    job = json.loads(gcs.objects("template")[""])
    staged = gcs.objects("staging/")
    assert any(name.endswith("pipeline.pb") for name in staged)
    assert any(name.endswith("workflow.tar.gz") for name in staged)
    assert job["environment"]["sdkPipelineOptions"]
    assert "manifest.json" not in {name.split("/")[-1] for name in gcs.objects("later/")}
    assert "has no frontier" in run(gcs, tmp_path, "finish", "--round", gcs.path("later"), expected=2)
    explain = ("explain", "--round", gcs.path("later"), "https://x.example/")
    assert "unfinished" in run(gcs, tmp_path, *explain, expected=2)
