"""Every runner writes the same bytes: Flink with parallelism 1, 2 and 4, Prism, the local one with two processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.conftest import Chain, FlinkCluster, manifest, run_chain

PRISM_TRIES = 6
"""Some two of five runs have counts that fall short."""


def check_same(chain: Chain, expected: Chain) -> None:
    check_tables(chain, expected)
    assert stage_rows(chain) == stage_rows(expected)


def check_tables(chain: Chain, expected: Chain) -> None:
    assert chain.all_digests() == expected.all_digests()
    for folder, local in zip(chain.rounds, expected.rounds, strict=True):
        found, wanted = manifest(folder), manifest(local)
        assert found["rows"] == wanted["rows"]
        assert found["rejected"] == wanted["rejected"]


def stage_rows(chain: Chain) -> list[dict[str, int]]:
    """Rows that each stage of each round gave; how many an exchange takes depends on how many were added up before."""
    return [{name: stage["rows_out"] for name, stage in manifest(folder)["stages"].items()} for folder in chain.rounds]


@pytest.mark.parametrize("parallelism", [1, 2, 4])
def test_flink(parallelism: int, cluster: FlinkCluster, local_chain: Chain, tmp_path: Path) -> None:
    chain = run_chain(local_chain.web, tmp_path, *cluster.options(parallelism))
    check_same(chain, local_chain)
    # Flink's processes have Beam on their class path; to bring its jars with every job takes longer than such a job.
    brought = [path for path in (cluster.state / "tmp").glob("*/blobStorage/job_*/*") if path.is_file()]
    assert not [path for path in brought if path.read_bytes().startswith(b"PK")]


def test_prism(prism: str, local_chain: Chain, tmp_path: Path) -> None:
    """Prism at times loses counters of a bundle that runs long, such as 50 of 100 rows, so it has several tries."""
    options = ["--runner=PrismRunner", f"--prism_location={prism}", "--prism_log_level=error"]
    for number in range(PRISM_TRIES):
        chain = run_chain(local_chain.web, tmp_path / str(number), *options)
        check_tables(chain, local_chain)
        if stage_rows(chain) == stage_rows(local_chain):
            break
    check_same(chain, local_chain)


def test_two_processes(local_chain: Chain, tmp_path: Path) -> None:
    options = ["--direct_num_workers=2", "--direct_running_mode=multi_processing"]
    check_same(run_chain(local_chain.web, tmp_path, *options), local_chain)
