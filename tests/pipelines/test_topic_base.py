"""Rounds by the papers' profiles with the topic as base: the seeds and the harvested pages nearest to them."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from semrank.pipelines import rank
from semrank.pipelines.cli import main
from semrank.pipelines.config import semrank_config
from semrank.pipelines.semrank_settings import reading
from semrank.schemas.tables import CLICKS, LINKS, PAGES
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.ranking.topic_lattice import nearest_of_facts
from semrank.transforms.replay.semrank_local import ClickLog, SemRankCrawler, SemRankWeb
from semrank.transforms.replay.web import Web
from tests.support.definitions import Options, rank_oracle
from tests.support.p13_web import START, url
from tests.support.snapshots import read_rows, table_of, write_snapshot

WORDS = [f"{first}{second}ord" for first in "abcdefg" for second in "wxyz"]
SEEDS, OTHERS, CHOSEN = 3, 24, 10


def web() -> tuple[list[Any], list[Any], list[Any]]:
    """Pages that all link to several others, and a few clicks."""
    draw = random.Random(4)
    urls = [url(number) for number in range(SEEDS + OTHERS)]
    pages = [{"url": page, "keywords": draw.sample(WORDS, 5)} for page in urls]
    links = [{"source_url": page, "target_url": target} for page in urls for target in draw.sample(urls, 6)]
    clicks = []
    for number in range(40):
        words = draw.sample(WORDS, 2)
        when = {"clicked_at": START + timedelta(minutes=number), "session_id": "s", "user_id": draw.choice("ab")}
        clicks.append({**when, "query": " ".join(sorted(words)), "keywords": words, "url": draw.choice(urls)})
    return pages, links, clicks


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a snapshot and a first round, which selects some pages."""
    folder = tmp_path_factory.mktemp("web")
    write_snapshot(folder / "snapshot", *web())
    (folder / "seeds.txt").write_text("\n".join(url(number) for number in range(SEEDS)), encoding="utf-8")
    start = ["rank", "--snapshot", str(folder / "snapshot"), "--seeds", str(folder / "seeds.txt"), "--recrawl"]
    limits = ["--threshold", "0", "--max-urls", str(CHOSEN), "--profile", "paper-2013", "--quiet"]
    assert main([*start, *limits, "--output", str(folder / "first")]) == 0
    return folder


def second(folder: Path, output: Path, *options: str) -> Path:
    """The round after the first."""
    start = ["rank", "--snapshot", str(folder / "snapshot"), "--previous", str(folder / "first"), "--quiet"]
    assert main([*start, "--base", "topic", "--output", str(output), *options]) == 0
    return output


def test_a_round_equals_the_definitions(rounds: Path, tmp_path: Path) -> None:
    pages, links, clicks = web()
    seeds = [url(number) for number in range(SEEDS)]
    chosen = [row["url"] for row in read_rows(rounds / "first" / "frontier") if row["selected"]]
    assert len(chosen) == CHOSEN
    output = second(rounds, tmp_path / "round", "--profile", "paper-2013")
    frontier = {row["url"]: row["score"] for row in read_rows(output / "frontier")}
    facts = Web.of_tables(table_of(pages, PAGES), table_of(links, LINKS), table_of(clicks, CLICKS)).facts(
        seeds=text_ids(pa.array(seeds)),
        harvested=text_ids(pa.array([*seeds, *chosen])),
        current=text_ids(pa.array(list(frontier))),
        content_known=True,
    )
    by_id = dict(zip(text_ids(pa.array(chosen)).tolist(), chosen, strict=True))
    near = [by_id[number] for number in nearest_of_facts(facts).tolist()]
    assert len(near) == 3
    far = sorted(set(chosen) - set(near))
    expected = rank_oracle(pages, links, clicks, [*seeds, *near], Options(), harvested=far)
    assert len(frontier) > 5
    assert set(frontier) == set(expected.pairs)
    for page, entries in expected.pairs.items():
        assert frontier[page] == pytest.approx(max(entry[0] for entry in entries), abs=1e-9), page
    base = {(frozenset(row["extent"]), frozenset(row["intent"])) for row in read_rows(output / "base_concepts")}
    assert base == expected.base


@pytest.mark.parametrize("options", [("--profile", "paper-2008"), ("--semrank-terms", "--profile", "formica-2006")])
def test_bytes_do_not_depend_on_partitions_or_runner(
    options: tuple[str, ...], rounds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    for partitions, runner in ((1, []), (2, ["--runner=FnApiRunner"]), (7, [])):
        monkeypatch.setattr(rank, "partition_count", lambda _, count=partitions: count)
        output = second(rounds, tmp_path / str(partitions), *options, *runner)
        written.append({table: read_rows(output / table) for table in ("frontier", "keywords", "base_concepts")})
    assert written[0]["base_concepts"]
    assert written[1:] == written[:1] * 2


def test_facts_are_needed() -> None:
    pages, links, clicks = web()
    semrank_web = SemRankWeb.of(table_of(pages, PAGES), table_of(links, LINKS))
    log = ClickLog.of(table_of(clicks, CLICKS))
    with pytest.raises(ValueError, match="expected them with the topic as base"):
        SemRankCrawler(
            semrank_web,
            log,
            ids=np.zeros(0, dtype=np.int64),
            urls=pa.array([], pa.string()),
            content_known=False,
            reading=reading(semrank_config("paper-2013", {"base": "topic"})),
        )
