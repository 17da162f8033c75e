"""Records and groups of every stage stay below what Flink's sort buffers take."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.conftest import PAGES, ROUND_TABLES, FlinkCluster, GeneratedWeb, digests, manifest, succeed

RECORD_LIMIT = 4 << 20
"""Bytes of a table in a shuffle; tables are cut to about 2 MiB."""

GROUP_LIMIT = 30_000_000
"""Bytes of a group, which reaches a worker as one record; 32 MB failed with 256 MB of memory for sorting."""


def check_limits(folder: Path) -> None:
    stages = manifest(folder)["stages"]
    for name, stage in sorted(stages.items(), key=lambda item: -item[1]["largest_group_bytes"]):
        print(f"{stage['largest_record_bytes']:>12,} {stage['largest_group_bytes']:>12,}  {name}")
        assert stage["largest_record_bytes"] <= RECORD_LIMIT, name
        assert stage["largest_group_bytes"] <= GROUP_LIMIT, name
    assert max(stage["largest_group_bytes"] for stage in stages.values()) > 1_000_000, "nothing large was measured"


def test_ingest(generated_web: GeneratedWeb) -> None:
    assert manifest(generated_web.snapshot)["rows"]["pages"] <= PAGES
    check_limits(generated_web.snapshot)


@pytest.mark.parametrize("profile", ["paper-2013", "focused"])
def test_round(profile: str, generated_web: GeneratedWeb, tmp_path: Path) -> None:
    inputs = ["--snapshot", str(generated_web.snapshot), "--seeds", str(generated_web.seeds), "--profile", profile]
    succeed("rank", *inputs, "--max-urls", "400", "--output", str(tmp_path / "first"))
    check_limits(tmp_path / "first")
    again = [*inputs[:2], "--previous", str(tmp_path / "first"), "--profile", profile]
    succeed("rank", *again, "--max-urls", "400", "--output", str(tmp_path / "second"))
    check_limits(tmp_path / "second")


def test_flink_takes_them(cluster: FlinkCluster, generated_web: GeneratedWeb, tmp_path: Path) -> None:
    """The same groups on a cluster whose memory is as small as `cluster up` makes it."""
    output = generated_web.rank(tmp_path / "round", *cluster.options(4))
    assert digests(output, ROUND_TABLES) == digests(generated_web.local, ROUND_TABLES)
    check_limits(output)
