"""A round makes only the facts that its ranker needs, in few stages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.internal.cloudpickle import cloudpickle
from apache_beam.pipeline import AppliedPTransform, PipelineVisitor

from semrank.pipelines import rank
from semrank.pipelines.cli import command_parser
from semrank.pipelines.config import PROFILES, round_config
from semrank.pipelines.queue import queue_from_seeds
from semrank.pipelines.runtime import beam_options
from semrank.transforms.columnar.beam import ReadParquet
from semrank.transforms.ranking import registry
from tests.support.snapshots import write_snapshot
from tests.support.stages import stages_of

MOST_STAGES, MOST_EXCHANGES = 60, 15
"""Of a round of a profile; each is a start of workers, and a wait, on Flink and Dataflow."""

PAGES = [{"url": f"https://example.org/{name}", "text": "ant bee"} for name in "ab"]
LINKS = [{"source_url": "https://example.org/a", "target_url": "https://example.org/b"}]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("stages")
    snapshot = write_snapshot(folder / "snapshot", PAGES, LINKS, [])
    (folder / "seeds.txt").write_text("https://example.org/a\n", encoding="utf-8")
    return ["--snapshot", str(snapshot), "--seeds", str(folder / "seeds.txt"), "--output", str(folder / "round")]


class Plan(PipelineVisitor):
    """The stages of a round, its exchanges, how often it reads each table, and steps whose code is pickled, too."""

    def __init__(self, inputs: list[str], *options: str) -> None:
        arguments = command_parser("rank", rank).parse_args([*inputs, *options])
        pipeline = beam.Pipeline(options=beam_options([]))
        rank._build(
            pipeline,
            snapshot=rank._snapshot(arguments.snapshot),
            queue=queue_from_seeds(arguments.seeds),
            output=arguments.output,
            config=round_config(arguments),
        )
        self.stages = set(stages_of(pipeline))
        self.exchanges = 0
        self.reads: dict[str, int] = {}
        self.by_value: list[str] = []
        pipeline.visit(self)

    def enter_composite_transform(self, transform_node: AppliedPTransform) -> None:
        step: Any = transform_node.transform
        if isinstance(step, ReadParquet):
            for table in {Path(path).parent.name for path in step._paths}:
                self.reads[table] = self.reads.get(table, 0) + 1
        if transform_node.full_label.endswith("/exchange"):
            self.exchanges += 1

    def visit_transform(self, transform_node: AppliedPTransform) -> None:
        step: Any = transform_node.transform
        if isinstance(step, beam.ParDo) and b"_make_function" in cloudpickle.dumps(step.fn):
            self.by_value.append(transform_node.full_label)
        if transform_node.full_label.endswith("/exchange"):
            self.exchanges += 1


@pytest.mark.parametrize("profile", PROFILES)
def test_rounds_have_few_stages(profile: str, inputs: list[str]) -> None:
    plan = Plan(inputs, f"--profile={profile}")
    assert 30 < len(plan.stages) <= MOST_STAGES
    assert 5 < plan.exchanges <= MOST_EXCHANGES


RELATIONS = ["--ranker=semrank", "--topic-relations=both"]


@pytest.mark.parametrize("options", [[], ["--profile=paper-2013"], ["--ranker=pagerank"], ["--budget=1"], RELATIONS])
def test_pages_and_links_are_read_once(options: list[str], inputs: list[str]) -> None:
    reads = Plan(inputs, *options).reads
    assert reads["pages"] == reads["links"] == 1


@pytest.mark.parametrize("ranker", [name for name in registry.RANKERS if name != "ontology"])
def test_functions_of_steps_are_importable(ranker: str, inputs: list[str]) -> None:
    """Others, and methods of classes, are pickled with their code, which takes longer than all else of a step."""
    assert Plan(inputs, f"--ranker={ranker}", "--semrank-terms").by_value == []
    assert Plan(inputs, f"--ranker={ranker}", "--profile=paper-2013", "--budget=2").by_value == []


def test_words_are_related_by_pages_and_links(inputs: list[str]) -> None:
    pages, links = {"relate words of pages"}, {"send words along links", "relate words of links"}
    plan = Plan(inputs, *RELATIONS)
    assert pages | links <= plan.stages
    assert plan.by_value == []
    assert Plan(inputs, "--ranker=semrank", "--topic-relations=isa").stages & (pages | links) == pages
    assert not Plan(inputs, "--ranker=semrank").stages & (pages | links)


CONTEXTS = {"read words of anchors", "count documents of words", "place clicks in scopes", "number words of URLs"}
DESCRIPTIONS = {"read words around anchors", "number descriptions"}


def needed(inputs: list[str], *options: str) -> Iterator[bool]:
    """Whether all, or none, of the stages that make contexts and descriptions are there."""
    stages = Plan(inputs, *options).stages
    for made in (CONTEXTS, DESCRIPTIONS):
        assert made <= stages or not made & stages
        yield made <= stages


@pytest.mark.parametrize(
    ("options", "contexts", "descriptions"),
    [
        ([], False, True),
        (["--no-semrank-terms"], False, True),
        (["--ranker=pagerank", "--no-semrank-terms"], False, False),
        (["--ranker=pagerank", "--semrank-terms"], False, True),
        (["--ranker=semrank"], False, True),
        (["--profile=paper-2013", "--ranker=pagerank", "--semrank-terms"], True, False),
        (["--ranker=hmm"], False, True),
        (["--profile=paper-2013"], True, False),
    ],
)
def test_only_the_facts_of_the_ranker_are_made(
    options: list[str], contexts: bool, descriptions: bool, inputs: list[str]
) -> None:
    assert tuple(needed(inputs, *options)) == (contexts, descriptions)
