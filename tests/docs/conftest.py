"""What the tests of the documentation share: the sample's results, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from semrank.pipelines.cli import main
from tests.support.plots import without_plots
from tests.support.sample import ingest_sample


@pytest.fixture(scope="session")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with web/, snapshot/, round-0000/, round-0001/ and evaluation/ of the sample."""
    folder = tmp_path_factory.mktemp("chain")
    snapshot = str(ingest_sample(folder))
    first, second = str(folder / "round-0000"), str(folder / "round-0001")
    seeds, topics = str(folder / "web/seeds.txt"), str(folder / "web/topics.parquet")
    assert main(["rank", "--snapshot", snapshot, "--seeds", seeds, "--output", first, "--quiet"]) == 0
    assert main(["rank", "--snapshot", snapshot, "--previous", first, "--output", second, "--quiet"]) == 0
    brief = ["--rankers", "cosine", "--budget", "20", "--seed-sets", "1", "--quiet"]
    evaluation = ["--snapshot", snapshot, "--topics", topics, "--output", str(folder / "evaluation")]
    with without_plots():
        assert main(["evaluate", *evaluation, *brief]) == 0
    return folder
