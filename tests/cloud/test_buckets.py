"""Rounds in a bucket have the bytes of rounds on a disk, and of two runs into one folder one wins."""

from __future__ import annotations

import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.io.aws.clients.s3 import boto3_client
from apache_beam.options.pipeline_options import PipelineOptions

from semrank.schemas.errors import InputError
from semrank.transforms.columnar import files
from semrank.transforms.columnar.objects import create_object, use_options
from tests.cloud.conftest import LIMITS, Disk, Store, run, run_chain


def test_rounds_in_a_bucket_are_those_of_a_disk(store: Store, disk: Disk, tmp_path: Path) -> None:
    run_chain(store, disk.web, tmp_path, store.path("a"))
    found = store.objects("a/")
    local = {
        path.relative_to(disk.folder).as_posix(): path.read_bytes() for path in disk.folder.rglob("*") if path.is_file()
    }
    assert set(found) == set(local)
    for name, content in local.items():
        if not name.endswith("manifest.json"):
            assert found[name] == content, name
    rows = json.loads(found["first/manifest.json"])["rows"]
    assert rows == json.loads(local["first/manifest.json"])["rows"]
    table = pq.read_table(pa.BufferReader(local["first/frontier/part-00000.parquet"]))
    best = str(table["url"][0].as_py())
    assert "rank 1 of" in run(store, tmp_path, "explain", "--round", store.path("a/first"), best)

    # A finished round is refused, and with --overwrite written anew: what it held is gone, its bytes are the same.
    again = ("rank", "--snapshot", store.path("a/snapshot"), "--seeds", f"{disk.web}/seeds.txt", *LIMITS)
    into = ("--output", store.path("a/first"))
    assert "holds a finished result" in run(store, tmp_path, *again, *into, expected=2)
    run(store, tmp_path, *again, *into, "--overwrite")
    rewritten = store.objects("a/first/")
    assert rewritten.pop("manifest.json") != found["first/manifest.json"]
    assert rewritten == {
        name.removeprefix("first/"): content
        for name, content in found.items()
        if name.startswith("first/") and not name.endswith("manifest.json")
    }


def test_the_second_of_two_writers_loses(store: Store) -> None:
    """Two runs found the folder empty; the manifest that is there first stays as it is."""
    with store.reached():
        use_options([])
        files.write_manifest(store.path("race"), {"kind": "round", "writer": "first"})
        with pytest.raises(InputError, match=r"race/manifest\.json: another run has finished there meanwhile"):
            files.write_manifest(store.path("race"), {"kind": "round", "writer": "second"})
        assert files.read_manifest(store.path("race"), "round")["writer"] == "first"


def test_of_many_writers_at_once_one_wins(store: Store) -> None:
    names = [f"writer {number}".encode() for number in range(8)]
    with store.reached(), ThreadPoolExecutor(len(names)) as pool:
        use_options([])
        won = list(pool.map(lambda name: create_object(store.path("many/manifest.json"), name), names))
    assert won.count(True) == 1
    assert store.objects("many/") == {"manifest.json": names[won.index(True)]}


def test_a_process_makes_one_s3_client_for_the_same_options() -> None:
    """Each client of Beam's is one stream's; what they share serves threads, but never two processes."""
    pytest.importorskip("boto3")
    options = PipelineOptions(["--s3_region_name=eu-west-1"])
    one, other = boto3_client.Client(options), boto3_client.Client(options)
    assert one is not other
    assert one.client is other.client
    assert boto3_client.Client({"s3_region_name": "eu-west-2"}).client is not one.client
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        assert pool.submit(_shared_identity, options).result() != id(one.client)


def _shared_identity(options: PipelineOptions) -> int:
    return id(boto3_client.Client(options).client)
