"""The rankers by content give on a cluster what they give in memory, however the tables are cut and shuffled."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.metrics.metric import MetricsFilter

from semrank.pipelines.runtime import DEFAULT_RUNNER, EMBEDDED_RUNNER, BuildOptions
from semrank.transforms.columnar.beam import NAMESPACE, WriteOne
from semrank.transforms.ranking import cosine, hmm, keyword, link_context, relevancy_context
from semrank.transforms.ranking.hmm_beam import RankByHmm
from semrank.transforms.ranking.layer_beam import LEFT_OUT, RankByLayers
from semrank.transforms.ranking.layer_words import LayerWordSettings
from semrank.transforms.ranking.layers import LayerSettings
from semrank.transforms.ranking.scores import SCORED_SCHEMA
from semrank.transforms.ranking.text_beam import RankByTopic
from tests.support.small_crawls import Crawl, Page, random_crawl

WORDS = LayerWordSettings(LayerSettings(3))
CAPPED = LayerWordSettings(LayerSettings(4, max_urls=5))


class Ranker(NamedTuple):
    """A ranker's two forms."""

    rank: Callable[..., pa.Table]
    step: Callable[..., beam.PTransform[Any, Any]]
    settings: Any


def by_topic(ranker: str, scores: Callable[..., pa.Table]) -> Callable[..., beam.PTransform[Any, Any]]:
    """Makes the step of a ranker by the topic's words from its settings."""
    return lambda settings, **options: RankByTopic(ranker, partial(scores, settings=settings), **options)


def by_layers(scores: Callable[..., pa.Table]) -> Callable[..., beam.PTransform[Any, Any]]:
    """Makes the step of a ranker by layers from its settings."""
    return partial(RankByLayers, scores.__module__, scores)


RANKERS = {
    "cosine": Ranker(cosine.rank, by_topic("cosine", cosine.scores), cosine.CosineSettings(1.2, 0.6)),
    "keyword": Ranker(
        lambda facts, _: keyword.rank(facts),
        lambda _, **further: RankByTopic("keyword", keyword.scores, **further),
        None,
    ),
    "link context": Ranker(
        link_context.rank, by_layers(link_context.scores), link_context.LinkContextSettings(0.6, WORDS)
    ),
    "relevancy context": Ranker(
        relevancy_context.rank,
        by_layers(relevancy_context.scores),
        relevancy_context.RelevancyContextSettings(0.7, CAPPED),
    ),
    "hmm": Ranker(hmm.rank, RankByHmm, hmm.HmmSettings(0.5, WORDS)),
}

BARE = Crawl(
    {1: Page(seed=True, harvested=True), 2: Page(), 3: Page(anchor={"bird": 1}, described=False)}, [(1, 2), (1, 3)]
)
"""Neither content nor clicks nor a query."""

SEEDLESS = replace(BARE, pages={url: replace(page, seed=False) for url, page in BARE.pages.items()}, links=[])


def created(pipeline: beam.Pipeline, tables: dict[str, list[pa.Table]]) -> dict[str, Any]:
    return {
        name: pipeline | f"create {name}" >> beam.Create(parts).with_output_types(pa.Table)
        for name, parts in tables.items()
    }


def whole(rows: pa.Table | None) -> pa.Table:
    """All rows in the order of URLs."""
    return SCORED_SCHEMA.empty_table() if rows is None else rows.sort_by("url_id")


def run(crawl: Crawl, parts: int, number: int, folder: Path, runner: str = DEFAULT_RUNNER) -> dict[str, int]:
    """Runs all rankers over a crawl in parts and compares the scores; gives the counters."""
    facts = crawl.facts()
    pipeline = beam.Pipeline(runner=runner, options=BuildOptions([]))
    inputs = created(pipeline, crawl.tables(parts, random.Random(number)))
    for name, ranker in RANKERS.items():
        step: Any = ranker.step
        result = inputs | step(ranker.settings, query=list(crawl.query), partitions=parts)
        {"rows": result} | WriteOne(f"write {name}", str(folder / name), whole)
    ran = pipeline.run()
    ran.wait_until_finish()
    for name, ranker in RANKERS.items():
        expected = ranker.rank(facts, ranker.settings).sort_by("url_id")
        assert pq.read_table(folder / name).to_pylist() == expected.to_pylist(), name
    counters = ran.metrics().query(MetricsFilter().with_namespace(NAMESPACE))["counters"]
    totals: dict[str, int] = {}
    for counter in counters:
        totals[counter.key.metric.name] = totals.get(counter.key.metric.name, 0) + counter.committed
    return totals


@pytest.mark.parametrize("parts", [1, 2, 7])
@pytest.mark.parametrize("number", [0, 1])
def test_distributed_equals_in_memory(number: int, parts: int, tmp_path: Path) -> None:
    runner = EMBEDDED_RUNNER if (number, parts) == (1, 2) else DEFAULT_RUNNER
    crawl = random_crawl(number)
    facts = crawl.facts()
    for ranker in RANKERS.values():
        scores = ranker.rank(facts, ranker.settings)["score"].to_pylist()
        assert len(set(scores)) > 5, "scores that are all alike would compare nothing"
    counters = run(crawl, parts, number, tmp_path, runner)
    # The seeds are fewer than the cap, so that it shows in layer 1 at the earliest.
    assert counters[f"find layer 0/{LEFT_OUT}"] == 0
    assert counters[f"find layer 1/{LEFT_OUT}"] > 0


@pytest.mark.parametrize("crawl", [BARE, SEEDLESS], ids=["bare", "seedless"])
def test_next_to_nothing(crawl: Crawl, tmp_path: Path) -> None:
    run(crawl, 2, 0, tmp_path)
