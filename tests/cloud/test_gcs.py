"""Rounds in a bucket, against an emulator of the object store: the same bytes as locally, and Dataflow's staging.

Needs the extras `gcp` and `cloud-test`, so it is no part of the default suite: `python -m pytest tests/cloud`.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

server = pytest.importorskip("gcp_storage_emulator.server")
storage = pytest.importorskip("google.cloud.storage")

ROOT = Path(__file__).resolve().parents[2]
BUCKET = "bucket"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    emulator = server.create_server("localhost", port, in_memory=True, default_bucket=BUCKET)
    emulator.start()
    yield f"http://localhost:{port}"
    emulator.stop()


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("web")
    run(None, folder, "sample", "--output", "web")
    return folder / "web"


def run(endpoint: str | None, folder: Path, *arguments: str, expected: int = 0) -> str:
    """Standard output and error of a command."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    if endpoint is not None:
        cloud = {"GOOGLE_CLOUD_PROJECT": "semrank-test", "NO_GCE_CHECK": "true", "GCE_METADATA_TIMEOUT": "1"}
        environment |= {"STORAGE_EMULATOR_HOST": endpoint, **cloud}
    command = [sys.executable, "-m", "pipelines.cli", *arguments, "--quiet"]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == expected, done.stderr
    return done.stdout + done.stderr


def objects(endpoint: str, prefix: str) -> dict[str, bytes]:
    os.environ["STORAGE_EMULATOR_HOST"] = endpoint
    try:
        client = storage.Client.create_anonymous_client()
        return {
            blob.name.removeprefix(prefix): blob.download_as_bytes()
            for blob in client.list_blobs(BUCKET, prefix=prefix)
        }
    finally:
        del os.environ["STORAGE_EMULATOR_HOST"]


def test_rounds_in_a_bucket_are_those_of_a_disk(endpoint: str, web: Path, tmp_path: Path) -> None:
    sources = ("--warc", f"{web}/warc/*", "--clicks", f"{web}/clicks/*")
    limits = ("--max-urls", "12", "--profile", "paper-2013")
    for place, where in (("gs://bucket/a", endpoint), (str(tmp_path), None)):
        run(where, tmp_path, "ingest", *sources, "--output", f"{place}/snapshot")
        rank = ("rank", "--snapshot", f"{place}/snapshot", *limits)
        run(where, tmp_path, *rank, "--seeds", f"{web}/seeds.txt", "--output", f"{place}/first")
        run(where, tmp_path, *rank, "--previous", f"{place}/first", "--output", f"{place}/second")
    found = objects(endpoint, "a/")
    local = {path.relative_to(tmp_path).as_posix(): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert set(found) == set(local)
    for name, content in local.items():
        if not name.endswith("manifest.json"):
            assert found[name] == content, name
    row = json.loads(found["first/manifest.json"])["rows"]
    assert row == json.loads(local["first/manifest.json"])["rows"]
    assert "rank 1 of" in run(endpoint, tmp_path, "explain", "--round", "gs://bucket/a/first", _first(local))
    again = run(endpoint, tmp_path, *rank_in_bucket(web), "--output", "gs://bucket/a/first", expected=2)
    assert "holds a finished result" in again


def rank_in_bucket(web: Path) -> tuple[str, ...]:
    return ("rank", "--profile", "paper-2013", "--snapshot", "gs://bucket/a/snapshot", "--seeds", f"{web}/seeds.txt")


def _first(local: dict[str, bytes]) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(pa.BufferReader(local["first/frontier/part-00000.parquet"]))
    return str(table["url"][0].as_py())


def test_dataflow_gets_the_graph_and_the_round_is_finished_later(endpoint: str, web: Path, tmp_path: Path) -> None:
    places = ("--temp_location", "gs://bucket/tmp", "--staging_location", "gs://bucket/staging")
    project = ("--project", "semrank-test", "--region", "europe-west1", "--setup_file", str(ROOT / "setup.py"))
    said = run(
        endpoint, ROOT, *rank_in_bucket(web), "--output", "gs://bucket/later", "--runner", "DataflowRunner",
        *places, *project, "--template_location", "gs://bucket/template",
    )  # fmt: skip
    assert "semrank finish --round gs://bucket/later" in said
    job = json.loads(objects(endpoint, "template")[""])
    staged = objects(endpoint, "staging/")
    assert any(name.endswith("pipeline.pb") for name in staged)
    assert any(name.endswith("workflow.tar.gz") for name in staged)
    assert job["environment"]["sdkPipelineOptions"]
    assert "manifest.json" not in {name.split("/")[-1] for name in objects(endpoint, "later/")}
    unfinished = run(endpoint, tmp_path, "finish", "--round", "gs://bucket/later", expected=2)
    assert "has no frontier" in unfinished
    assert "unfinished" in run(
        endpoint, tmp_path, "explain", "--round", "gs://bucket/later", "https://x.example/", expected=2
    )
