"""Every runner writes the same bytes: Flink with parallelism 1, 2 and 4, Prism, the local one with two processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.conftest import Chain, FlinkCluster, manifest, run_chain


def check_same(chain: Chain, expected: Chain, *, loses_counts: bool = False) -> None:
    assert chain.all_digests() == expected.all_digests()
    for folder, local in zip(chain.rounds, expected.rounds, strict=True):
        found, wanted = manifest(folder), manifest(local)
        assert found["rows"] == wanted["rows"]
        assert found["rejected"] == wanted["rejected"]
        # How many rows an exchange takes depends on how many were added up on their way into it.
        rows, local_rows = (
            {name: stage["rows_out"] for name, stage in each["stages"].items()} for each in (found, wanted)
        )
        if loses_counts:
            assert rows.keys() == local_rows.keys()
            assert all(count <= local_rows[name] for name, count in rows.items())
        else:
            assert rows == local_rows


@pytest.mark.parametrize("parallelism", [1, 2, 4])
def test_flink(parallelism: int, cluster: FlinkCluster, local_chain: Chain, tmp_path: Path) -> None:
    chain = run_chain(local_chain.web, tmp_path, *cluster.options(parallelism))
    check_same(chain, local_chain)
    # Flink's processes have Beam on their class path; to bring its jars with every job takes longer than such a job.
    brought = [path for path in (cluster.state / "tmp").glob("*/blobStorage/job_*/*") if path.is_file()]
    assert not [path for path in brought if path.read_bytes().startswith(b"PK")]


def test_prism(prism: str, local_chain: Chain, tmp_path: Path) -> None:
    """Prism can lose a bundle's counters on a busy machine: 50 of 100 rows of a stage, all of them written."""
    options = ["--runner=PrismRunner", f"--prism_location={prism}", "--prism_log_level=error"]
    check_same(run_chain(local_chain.web, tmp_path, *options), local_chain, loses_counts=True)


def test_two_processes(local_chain: Chain, tmp_path: Path) -> None:
    options = ["--direct_num_workers=2", "--direct_running_mode=multi_processing"]
    check_same(run_chain(local_chain.web, tmp_path, *options), local_chain)
