"""Growth is told by stage, and a plan follows from it by arithmetic that can be checked by hand."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks import scale, watch
from benchmarks.scale import Assumptions, Run, Stage
from semrank.transforms.columnar.worker_memory import OWN_BYTES
from semrank.transforms.lattice.mining import BROADCAST_BYTES

GIB = 1 << 30


BUSY = 3.0
"""How much longer stages take by the clock than the processor works for them."""


def a_run(command: str, pages: int, stages: Mapping[str, Stage], *, queue: int = 0) -> Run:
    peak, rows = {"command": GIB}, {"frontier": pages // 7, "empty": 0}
    cpu_s = sum(stage.seconds for stage in stages.values())
    slow = {name: replace(stage, seconds=BUSY * stage.seconds) for name, stage in stages.items()}
    return Run(command, "local", pages, queue, 12.0, cpu_s, peak, rows, slow)


def held(size: int) -> int:
    return OWN_BYTES + size


RUNS = [
    a_run("ingest", 1_000, {"read sources": Stage(1.0, 100)}),
    a_run("ingest", 10_000, {"read sources": Stage(10.0, 1_000)}),
    a_run("rank", 1_000, {"score": Stage(0.1), "write keywords": Stage(1.0, 0, held(1_000))}, queue=10),
    a_run("rank", 10_000, {"score": Stage(10.0), "write keywords": Stage(5.0, 0, held(20_000))}, queue=100),
    a_run("rank", 1_000, {"score": Stage(0.1), "write keywords": Stage(1.0, 0, held(1_000))}, queue=7),
    a_run("rank", 10_000, {"score": Stage(0.1), "write keywords": Stage(5.0, 0, held(1_000))}, queue=7),
]


@pytest.mark.parametrize(
    ("before", "after", "growth", "expected"),
    [(1, 100, 10, 2), (3, 3, 10, 0), (8, 1, 2, -3), (0, 5, 10, 0), (5, 0, 10, 0)],
)
def test_exponents(before: float, after: float, growth: float, expected: float) -> None:
    assert scale.exponent(before, after, growth) == pytest.approx(expected)


def test_a_plan_goes_on_as_the_runs_grew() -> None:
    """Scoring as pages^2, the rest as pages^1 though less was seen of settling; what is held as it was seen."""
    assumed = Assumptions(hours=10.0, cpus=4, machine_bytes=16 * GIB, efficiency=0.5, speed=2.0, cpu_price=1.0)
    plan = scale.one_round(RUNS, 1_000_000, assumed)
    read, scored, settled = 10.0 * 100, 10.0 * 100**2, 5.0 * 100
    assert plan.serial_hours == pytest.approx(settled / 2 / 3600)
    assert plan.cpu_hours == pytest.approx((read + scored) / 2 / 0.5 / 3600 + plan.serial_hours)
    assert plan.machines == 1
    assert plan.hours == pytest.approx((plan.cpu_hours - plan.serial_hours) / 4 + plan.serial_hours)
    assert plan.shuffled_bytes == 1_000 * 100
    growth = 20_000 / 1_000
    assert plan.held_bytes == pytest.approx(OWN_BYTES + 20_000 * growth**2, rel=1e-6)
    price = 4 * 1.0 + 16 * GIB / 1e9 * assumed.memory_price
    assert plan.dollars == pytest.approx(plan.hours * price + 1e5 / 1e9 * assumed.shuffle_price)
    assert plan.too_large == {}


def test_machines_are_as_many_as_the_hours_need() -> None:
    assumed = Assumptions(hours=5.0, cpus=2)
    plan = scale.one_round(RUNS, 10_000_000, assumed)
    assert plan.machines > 100
    assert plan.hours <= 5.0 * 1.001
    less = scale.one_round(RUNS, 10_000_000, Assumptions(hours=50.0, cpus=2))
    assert less.machines < plan.machines
    assert less.cpu_hours == plan.cpu_hours


def test_what_does_not_fit_is_told_with_what_lowers_it() -> None:
    assumed = Assumptions(machine_bytes=8 * GIB, cpus=8)
    plan = scale.one_round(RUNS, 10**9, assumed)
    assert list(plan.too_large) == ["write keywords"]
    assert plan.too_large["write keywords"] == plan.held_bytes > GIB
    text = "\n".join(scale.plan_lines(plan, assumed))
    assert "1,000,000,000 pages: one round, a queue of 10,000,000 URLs" in text
    assert "does not fit: write keywords" in text
    assert "lower it by a smaller --keywords-per-page" in text


def test_large_contexts_are_exchanged() -> None:
    runs = [
        replace(run, stages={"plan base lattice": Stage(1.0, 0, OWN_BYTES + run.pages), "score": Stage(1.0)})
        if run.command == "rank"
        else run
        for run in RUNS
    ]
    large, small = (scale.one_round(runs, pages, Assumptions()) for pages in (10**9, 10**8))
    assert large.held_bytes == OWN_BYTES + 4 * BROADCAST_BYTES
    assert small.held_bytes == pytest.approx(OWN_BYTES + 10**8, rel=1e-6)


def test_a_queue_of_fixed_size_has_runs_of_its_own() -> None:
    plan = scale.one_round(RUNS, 1_000_000, Assumptions(speed=1.0, efficiency=1.0), queue=7)
    assert plan.name == "one round, a queue of 7 URLs, profile paper-2013"
    assert plan.cpu_hours == pytest.approx((10.0 * 100 + 0.1 * 100 + 5.0 * 100) / 3600)
    assert plan.held_bytes == held(1_000)
    with pytest.raises(ValueError, match="found 0 local runs of rank, expected at least two sizes"):
        scale.one_round(RUNS, 1_000_000, Assumptions(), queue=8)


def test_a_round_by_the_default_profile_is_planned_from_its_own_runs() -> None:
    assumed = Assumptions()
    ranked = [replace(run, command=scale.DEFAULT_ROUND) for run in RUNS if run.command == "rank"]
    plan = scale.one_round([*RUNS, *ranked], 1_000_000, assumed, ranked=scale.DEFAULT_ROUND)
    assert plan.name == "one round, a queue of 10,000 URLs, the default profile"
    assert plan == replace(scale.one_round(RUNS, 1_000_000, assumed), name=plan.name)
    assert plan in list(scale.plans([*RUNS, *ranked], 1_000_000, assumed))


def test_a_web_cut_by_topic_takes_as_many_small_rounds() -> None:
    assumed = Assumptions(hours=1.0, cpus=8, machine_bytes=4 * GIB, speed=1.0)
    plan = scale.many_rounds(RUNS, 10**9, assumed)
    assert plan.name == "100,000 rounds of 10,000 pages, one a topic, 4 at a time on a machine"
    assert plan.cpu_hours == pytest.approx(100_000 * 25.0 / 3600)
    assert plan.machines == 174
    assert plan.hours == pytest.approx(plan.cpu_hours / 174 / 4)
    assert plan.held_bytes == GIB
    assert plan.too_large == {}


def test_plans_are_made_of_stored_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "measured.json"
    scale._store(path, RUNS[:3])
    scale._store(path, RUNS[2:])
    assert sorted(map(asdict, scale._stored(path)), key=str) == sorted(map(asdict, RUNS), key=str)
    assert scale.main(["--plan", "1e9", "--measured", str(path), "--hours", "4", "--cpu-price", "0.5"]) == 0
    text = capsys.readouterr().out
    assert "the two largest webs (ingest 1,000 and 10,000 pages; rank 1,000 and 10,000 pages), at least pages^1" in text
    assert "4 h wanted; 0.5 dollars a processor hour" in text
    assert text.count("1,000,000,000 pages: ") == 3


def test_the_repository_has_figures_to_plan_from() -> None:
    runs = scale._stored(scale.MEASURED)
    assert {run.runner for run in runs} == {"local", "flink"}
    for command in scale.COMMANDS:
        assert len(scale.series_of(runs, command, "local", None)) >= 2
    for plan in scale.plans([run for run in runs if run.runner == "local"], 10**9, Assumptions()):
        assert plan.hours > 0


def test_growth_is_told_by_run_and_stage() -> None:
    lines = list(scale.growth_lines(RUNS))
    assert "ingest, local:" in lines
    assert "rank, local, 7 queue URLs:" in lines
    (grown,) = [line for line in lines if "write keywords" in line and "1.30" in line]
    assert "0.70" in grown


def test_a_step_is_a_comparison() -> None:
    result = scale._step(RUNS[2], RUNS[3])
    assert result["name"] == "scale: rank, 10,000 pages"
    assert result["cpu_ratio"] == pytest.approx(15.0 / 1.1)
    assert result["aim"] == pytest.approx(10**1.1)
    assert result["counts"] == {"frontier": 10_000 // 7}
    assert "held by 'write keywords'" in result["note"]


def test_commands_are_watched(tmp_path: Path) -> None:
    runs = scale.measured_web(tmp_path, 400, scale.Place("local"), queue=3)
    assert [run.command for run in runs] == ["ingest", "rank", "rank focused"]
    for run in runs:
        assert run.peak_bytes["command"] > 50 << 20
        assert run.cpu_s > 0
        assert run.stage_seconds < run.wall_s
        assert run.shuffled_bytes > 10_000
        # A command also holds something before its first stage and after its last.
        peak = max(stage.peak_bytes for stage in run.stages.values())
        assert run.peak_bytes["command"] / 2 < peak <= run.peak_bytes["command"]
        assert json.loads(json.dumps(asdict(run))) == asdict(run)
    assert runs[1].queue == 3
    assert runs[1].stages["write keywords"].held_bytes > OWN_BYTES


def test_a_command_that_fails_is_told(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"semrank rank ended with status 2, expected 0: .*--seeds"):
        scale.measured_run("rank", ["--snapshot", "nothing"], tmp_path / "out", 1, 1, scale.Place("local"))


def test_a_family_is_a_process_with_its_descendants() -> None:
    children = {1: [2, 3], 3: [4], 9: [10]}
    assert sorted(watch.family([1], children)) == [1, 2, 3, 4]
    assert os.getpid() in [child for family in watch.children().values() for child in family]
    assert watch.resident_bytes(os.getpid()) > 10 << 20
    assert watch.resident_bytes(-1) == 0
