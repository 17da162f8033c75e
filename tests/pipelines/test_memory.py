"""What must fit on a worker: the option, what is refused before and within a job, and formulas against memory."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import dataclass
from pathlib import Path

import apache_beam as beam
import pyarrow.parquet as pq
import pytest

from benchmarks.round_growth import write_round_input
from semrank.pipelines import memory, rank
from semrank.pipelines.cli import command_parser, main
from semrank.pipelines.config import round_config
from semrank.pipelines.memory import worker_memory
from semrank.pipelines.queue import queue_from_seeds
from semrank.pipelines.runtime import _user_error, beam_options
from semrank.schemas.errors import InputError
from semrank.transforms.columnar.worker_memory import OWN_BYTES
from semrank.transforms.crawls.memory import MOVES
from tests.pipelines.held_memory import peaks_of_round
from tests.support.apart import apart
from tests.support.stages import HELD, stages_of

GIB = 1 << 30


def limit(text: str | None, *options: str, workers: int | None = None) -> int | None:
    arguments = argparse.Namespace(worker_memory=text, workers=workers, temp=None)
    return worker_memory(arguments, beam_options(list(options)))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("200000000", 200_000_000),
        ("300M", 300 << 20),
        ("4g", 4 << 30),
        ("2GiB", 2 << 30),
        ("2tb", 2 << 40),
    ],
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert limit(text) == size
    assert limit(text, "--runner=PortableRunner", "--job_endpoint=host:1") == size


@pytest.mark.parametrize("text", ["", "4Q", "-1", "1.5G", "G", "4 G 5", "٤G"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"--worker-memory: found '.*', expected bytes, or a whole number with"):
        limit(text)


def test_less_than_a_worker_takes_by_itself_is_refused() -> None:
    with pytest.raises(InputError, match="found 64 MiB, expected more than the 140 MiB"):
        limit("64M")


@pytest.mark.parametrize(
    ("options", "share"),
    [
        (["--direct_num_workers=4"], 1),
        (["--direct_num_workers=4", "--direct_running_mode=multi_processing"], 4),
        (["--direct_num_workers=0", "--direct_running_mode=multi_threading"], 3),
    ],
)
def test_local_workers_share_the_machine(options: list[str], share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "machine_bytes", lambda: 12 * GIB)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert limit(None, *options) == 12 * GIB // share
    assert limit(None, workers=share) == 12 * GIB // share


@pytest.mark.parametrize("runner", [["--runner=PortableRunner", "--job_endpoint=host:1"], ["--runner=DataflowRunner"]])
def test_elsewhere_each_worker_looks_at_its_own_machine(runner: list[str]) -> None:
    assert limit(None, *runner) is None


@dataclass(frozen=True)
class Input:
    """A generated web of 10,000 pages, a queue of a fifth of them, and one of a hundredth."""

    snapshot: Path
    seeds: Path
    few: Path

    def arguments(self, output: Path, *options: str, few: bool = False) -> list[str]:
        given = ["--snapshot", str(self.snapshot), "--seeds", str(self.few if few else self.seeds)]
        return [*given, "--output", str(output), "--quiet", *options]

    def rank(self, output: Path, *options: str, few: bool = False) -> int:
        return main(["rank", *self.arguments(output, *options, few=few)])


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Input:
    folder = tmp_path_factory.mktemp("web")
    snapshot, few = write_round_input(folder, 10_000)
    urls = pq.read_table(folder / "generated" / "topics", columns=["url"])["url"].to_pylist()
    (folder / "many.txt").write_text("\n".join(urls[:2_000]), encoding="utf-8")
    return Input(snapshot, folder / "many.txt", few)


def said(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("semrank rank: error: --worker-memory: found ")
    assert "while running" not in line
    return line


def test_a_queue_that_does_not_fit_is_refused_before_anything_is_written(
    web: Input, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = queue_from_seeds(str(web.seeds))
    assert web.rank(tmp_path / "round", "--worker-memory", str(OWN_BYTES + 3 * queue.urls.nbytes)) == 2
    line = said(capsys)
    assert "'read words of pages' takes on a worker (harvest; its tables: current " in line
    assert "lower it by fewer seeds, or a smaller --max-urls or --budget of the rounds before" in line
    assert not (tmp_path / "round").exists()


@pytest.mark.parametrize("mode", [[], ["--direct_num_workers=1", "--direct_running_mode=multi_processing"]])
def test_relations_that_do_not_fit_leave_nothing(
    mode: list[str], web: Input, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where the stage runs in a process of its own, whose error comes as text."""
    output = tmp_path / "round"
    options = ["--profile=paper-2013", "--min-support=3", f"--worker-memory={OWN_BYTES + 13_000_000}"]
    assert web.rank(output, *options, *mode, few=True) == 2
    line = said(capsys)
    assert "'score current lattice' takes on a worker (base lattice and relations; its tables: " in line
    assert "a larger --min-relation-support" in line
    assert [path.name for path in output.iterdir() if not path.name.startswith(".")] == []


def test_lower_options_make_it_fit(web: Input, tmp_path: Path) -> None:
    output = tmp_path / "round"
    less = ["--min-relation-support=50", "--keywords-per-page=2", "--no-semrank-terms"]
    assert web.rank(output, "--worker-memory=145M", *less, "--ranker=breadth-first") == 0
    stages = json.loads((output / "manifest.json").read_text(encoding="utf-8"))["stages"]
    assert OWN_BYTES < max(stage["held_bytes"] for stage in stages.values()) <= 145 << 20


LARGE = 150_000
"""Bytes of tables from which small differences of a stage's fixed cost do not count."""

ABOVE, BELOW = 4.0, 1.05
"""A formula is at most four times what was held, and not below it by more than noise."""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--profile=paper-2013"], {"score current lattice", "write base concepts"}),
        (["--no-semrank-terms"], {"conclude: add features", "score by focused"}),
        (["--ranker=pagerank"], {"score by pagerank"}),
    ],
)
def test_formulas_tell_what_is_held(options: list[str], expected: set[str], web: Input, tmp_path: Path) -> None:
    # Workers elsewhere get copies of broadcast tables, which the local runner's stages share.
    arguments = web.arguments(tmp_path / "round", *options, "--runner=DirectRunner", few="paper-2013" in options[0])
    held = held_by_stages(arguments)
    assert expected <= set(held)
    for stage, (peak, formula) in held.items():
        assert peak <= BELOW * formula, stage
        assert formula <= ABOVE * peak, stage


def test_the_local_runner_holds_no_more(web: Input, tmp_path: Path) -> None:
    held = held_by_stages(web.arguments(tmp_path / "round", "--profile=paper-2013", "--workers=1", few=True))
    assert {"write base concepts", "score current lattice"} <= set(held)
    for stage, (peak, formula) in held.items():
        assert peak <= BELOW * formula, stage


def held_by_stages(arguments: list[str]) -> dict[str, tuple[int, int]]:
    """Bytes that each stage of large tables held at the most beside what any stage does, and those of its formula."""
    peaks = apart(peaks_of_round, arguments).value
    for stage, found in peaks.items():
        print(f"{stage}: {found['peak']:,} measured, {found['held']:,} by formula, tables {found['tables']}")
    fixed = min(found["peak"] for found in peaks.values())
    return {
        stage: (found["peak"] - fixed, found["held"])
        for stage, found in peaks.items()
        if sum(found["tables"].values()) >= LARGE
    }


ROUNDS = (
    ["--profile=paper-2013", "--mix=80:20", "--budget=10"],
    ["--semrank-terms", "--mix=80:20", "--budget=10"],
    ["--budget=10", "--host-quality=harmonic"],
    ["--ranker=pagerank"],
)


def built(web: Input, output: Path, *options: str) -> beam.Pipeline:
    parser = command_parser("rank", rank)
    given = ["--snapshot", str(web.snapshot), "--seeds", str(web.seeds), "--output", str(output)]
    pipeline = beam.Pipeline(options=beam_options([]))
    rank._build(
        pipeline,
        snapshot=rank._snapshot(str(web.snapshot)),
        queue=queue_from_seeds(str(web.seeds)),
        output=str(output),
        config=round_config(parser.parse_args([*given, *options])),
    )
    return pipeline


def test_every_state_is_held_by_a_stage(web: Input, tmp_path: Path) -> None:
    """And a formula names inputs that the stages which hold it have."""
    found: dict[str, set[str]] = {}
    for options in ROUNDS:
        for held, sides in stages_of(built(web, tmp_path, *options)).values():
            found.setdefault(held.state, set()).update(sides)
    for held in HELD:
        if held is MOVES:
            continue
        assert found.get(held.state), held.state
        assert {*held.factors, *held.working} <= found[held.state]


def test_a_refusal_on_a_cluster_is_told_as_one_here() -> None:
    """A runner hands a worker's error on as text, with the step and Java's part of the story around it."""
    refusal = "--worker-memory: found 145 MiB, expected 158 MiB, which 'write keywords' takes on a worker (vocabulary)"
    text = (
        "Pipeline job-7 failed in state FAILED: java.lang.RuntimeError: Error received from SDK harness for "
        'instruction 4: Traceback (most recent call last):\n  File "x.py", line 3, in check\n    raise InputError(\n'
        f"semrank.schemas.errors.InputError: {refusal} "
        "[while running 'write keywords/write/gather']\n\n"
        "\tat org.apache.beam"
    )
    error = _user_error(RuntimeError(text))
    assert error is not None
    assert str(error) == refusal
