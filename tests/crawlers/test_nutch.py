"""Nutch's own Injector takes exported lists.

Its plugins are in no artifact, so a plugin that declares the extension points and nothing else stands in for them: no
URL is filtered, normalised or scored on the way. For the same reason its Generator can't be asked: without a scoring
plugin it knows no score.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semrank.pipelines.cli import main
from tests.support.frontiers import frontier, write_round

_EXTENSION_POINTS = """
<plugin id="nutch-extensionpoints" name="extension points" version="1">
 <extension-point id="org.apache.nutch.net.URLNormalizer" name="normalizer"/>
 <extension-point id="org.apache.nutch.net.URLFilter" name="filter"/>
 <extension-point id="org.apache.nutch.net.URLExemptionFilter" name="exemption"/>
 <extension-point id="org.apache.nutch.scoring.ScoringFilter" name="scoring"/>
</plugin>
"""

URLS = [f"https://host{place}.example/a,b?q='{place}'&r=%09;x=\"1\"" for place in range(30)]


class Nutch:
    """A CrawlDb in a folder."""

    def __init__(self, folder: Path, class_path: str) -> None:
        self.folder = folder
        plugin = folder / "plugins" / "nutch-extensionpoints" / "plugin.xml"
        plugin.parent.mkdir(parents=True)
        plugin.write_text(_EXTENSION_POINTS)
        self.command = ["java", "-Xmx512m", "-cp", class_path]
        self.settings = [
            f"-Dplugin.folders={folder}/plugins",
            "-Dplugin.includes=nutch-extensionpoints",
            f"-Dhadoop.tmp.dir={folder}/tmp",
        ]

    def run(self, tool: str, *arguments: str) -> None:
        done = subprocess.run(
            [*self.command, f"org.apache.nutch.crawl.{tool}", *self.settings, *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]

    def inject(self, urls: str, *options: str) -> None:
        self.run("Injector", "crawldb", urls, *options)

    def records(self) -> dict[str, dict[str, Any]]:
        """The CrawlDb's records by URL, as Nutch prints them."""
        name = f"dump-{len(list(self.folder.glob('dump-*')))}"
        self.run("CrawlDbReader", "crawldb", "-dump", name, "-format", "json")
        lines = (self.folder / name / "part-r-00000").read_text(encoding="utf-8").splitlines()
        return {record["url"]: record for record in map(json.loads, lines)}


@pytest.fixture
def nutch(class_path: Callable[[str], str], tmp_path: Path) -> Nutch:
    return Nutch(tmp_path, class_path("nutch"))


def export(folder: Path, name: str, scores: list[float], *options: str) -> None:
    """Writes folder/NAME, which holds an exported list of `URLS` with the scores."""
    ranked = write_round(folder / f"round-{name}", frontier(URLS[: len(scores)], scores))
    output = folder / name / "list.tsv.gz"
    arguments = ["export", "--round", ranked, "--format", "nutch", "--output", str(output), "--quiet", *options]
    assert main(arguments) == 0


def test_injector_reads_every_field(nutch: Nutch, tmp_path: Path) -> None:
    scores = [1.0] * 10 + [0.75] * 10 + [0.5 - place / 100 for place in range(10)]
    export(tmp_path, "urls", scores, "--fetch-interval", "86400")
    nutch.inject("urls")
    records = nutch.records()
    assert set(records) == set(URLS)
    for place, (url, score) in enumerate(zip(URLS, scores, strict=True)):
        record = records[url]
        assert record["statusName"] == "db_unfetched"
        assert record["retryIntervalSeconds"] == 86_400
        metadata = record["metadata"]
        assert sorted(metadata) == ["semrank_rank", "semrank_score"]
        assert (metadata["semrank_rank"], float(metadata["semrank_score"])) == (str(place + 1), score)
        assert record["score"] == pytest.approx(score, abs=1e-5)
    found = [np.float32(records[url]["score"]) for url in URLS]
    assert sorted(set(found), reverse=True) == found, "a score of its own for each, in the order of rank"


def test_update_and_overwrite(nutch: Nutch, tmp_path: Path) -> None:
    """What the documentation says of them, also of a score of 1.0."""
    export(tmp_path, "first", [0.25, 0.125], "--fetch-interval", "60")
    export(tmp_path, "second", [1.0, 0.5])
    nutch.inject("first")
    before = nutch.records()
    nutch.inject("second")
    assert nutch.records() == before, "a known URL stays as it is"
    nutch.inject("second", "-update")
    updated = nutch.records()
    assert [np.float32(updated[url]["score"]) for url in URLS[:2]] == [np.nextafter(np.float32(1), 0), 0.5]
    assert [updated[url]["metadata"]["semrank_score"] for url in URLS[:2]] == ["1", "0.5"]
    assert [updated[url]["retryIntervalSeconds"] for url in URLS[:2]] == [60, 60], "the default interval changes none"
    assert [updated[url]["fetchTime"] for url in URLS[:2]] == [before[url]["fetchTime"] for url in URLS[:2]]
    nutch.inject("second", "-overwrite")
    overwritten = nutch.records()
    assert [overwritten[url]["retryIntervalSeconds"] for url in URLS[:2]] == [2_592_000] * 2
