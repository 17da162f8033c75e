"""How a whole run grows from 10^4 to 10^6 pages, here and on Flink, and what a billion pages would take.

    python -m benchmarks.scale --pages 10000 100000 --output measured.json     # local
    python -m benchmarks.scale --pages 10000 100000 --flink                    # on a cluster of its own on this machine
    python -m benchmarks.scale --plan 1e9 --measured measured.json             # a plan from stored figures

Each command is a process of its own, watched while it runs: what it and its processes hold in memory, and which stage
had begun last. Stages tell their seconds, what they send through shuffles and what they hold whole in the manifest.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from benchmarks.harness import Result, compare
from benchmarks.round_growth import EXPONENT_AIM, GROWTH, PAGES_PER_QUEUE_URL, write_web_and_seeds
from benchmarks.watch import Watch
from semrank.transforms.columnar.idfilter import MAX_BITS
from semrank.transforms.columnar.worker_memory import OTHER, OWN_BYTES, Held, shown_bytes
from semrank.transforms.context.memory import HARVEST
from semrank.transforms.lattice.memory import CONTEXT
from semrank.transforms.lattice.mining import BROADCAST_BYTES
from semrank.transforms.ranking.focused import PASSES
from semrank.transforms.ranking.memory import HIERARCHY, LATTICE, NAMED_LATTICE, PATHS

SIZES = (10_000, 100_000)
QUICK_SIZES = (1_000, 10_000)
PROFILE = "paper-2013"
INGEST, RANKED, DEFAULT_ROUND = "ingest", "rank", "rank focused"
COMMANDS = (INGEST, RANKED)
"""What plans are made of; rounds are of `PROFILE`, whose lattices take the most."""

ROUNDS = {RANKED: f"profile {PROFILE}", DEFAULT_ROUND: "the default profile"}
"""What is measured as a round -> what it is of."""

MEASURED = Path(__file__).with_name("scale.jsonl")
"""Figures that the plan starts from where no others are named."""

SHOWN_STAGES = 12

CLUSTER = Path(__file__).resolve().parents[1] / "deploy" / "flink" / "cluster.py"
KINDS = {"taskmanager": "TaskManagers", "jobmanager": "JobManager", "jobserver": "job server", "workerpool": "workers"}
"""Process of a cluster -> what it is called here; workers are children of the pool."""

SURE_SECONDS = 5.0
"""Seconds of a stage below which its growth is taken from its bytes: other work of the machine changes shorter ones."""

SERIAL = frozenset(
    {
        *("number words", "reduce Part-Of of all parts", "plan base lattice", "plan current lattice"),
        *("write keywords", "write base concepts", "write rejects", "find unknown queue URLs"),
        *("follow aliases", "gather wanted content", "cut order", "number ranges", "begin model"),
        *(f"conclude: {step.stage}" for step in PASSES if not step.by_all),
    }
)
"""Stages that one worker does alone."""


@dataclass(frozen=True)
class Stage:
    """What a stage took in one run.

    Attributes:
        seconds: time in its own function, added over workers.
        shuffled_bytes: bytes sent through shuffles.
        held_bytes: bytes that a worker holds for it, as `worker_memory` counts them; 0 where it holds nothing whole.
        largest_group_bytes: bytes of the largest group of a shuffle.
        peak_bytes: the largest memory of all processes while it was the stage that had begun last; local runs only.
    """

    seconds: float
    shuffled_bytes: int = 0
    held_bytes: int = 0
    largest_group_bytes: int = 0
    peak_bytes: int = 0


@dataclass(frozen=True)
class Run:
    """One command on a web of one size.

    Attributes:
        command: which command.
        runner: `local` or `flink`.
        pages: pages of the web.
        queue: URLs of the round's queue; 0 of other commands.
        wall_s: seconds by the clock.
        cpu_s: processor seconds of the command's process.
        peak_bytes: the largest memory by kind of process.
        rows: rows of the tables that it wrote.
        stages: by name.
    """

    command: str
    runner: str
    pages: int
    queue: int
    wall_s: float
    cpu_s: float
    peak_bytes: Mapping[str, int]
    rows: Mapping[str, int]
    stages: Mapping[str, Stage]

    @property
    def stage_seconds(self) -> float:
        """Seconds of all stages."""
        return sum(stage.seconds for stage in self.stages.values())

    def cpu_of(self, name: str) -> float:
        """Processor seconds of a stage: its part of the command's, start and runner shared out by stages' seconds.

        A stage's own seconds are by the clock, and longer where the machine has other work.
        """
        return self.stages[name].seconds / self.stage_seconds * self.cpu_s if name in self.stages else 0.0

    @property
    def shuffled_bytes(self) -> int:
        """Bytes through shuffles."""
        return sum(stage.shuffled_bytes for stage in self.stages.values())

    @property
    def memory_bytes(self) -> int:
        """Largest memory of all processes, which are not at their largest together."""
        return sum(self.peak_bytes.values())

    @classmethod
    def of_dict(cls, content: Mapping[str, Any]) -> Run:
        """A run as `asdict` told it."""
        stages = {name: Stage(**stage) for name, stage in content["stages"].items()}
        return cls(**{**content, "stages": stages})


@dataclass(frozen=True)
class Place:
    """Where commands run.

    Attributes:
        name: `local` or `flink`.
        options: options of the runner.
        cluster: the processes of a cluster by kind.
    """

    name: str
    options: tuple[str, ...] = ()
    cluster: Mapping[str, list[int]] = field(default_factory=dict)


@contextmanager
def flink_cluster(folder: Path) -> Iterator[Place]:
    """A Flink cluster of its own; ended afterwards."""
    command = [sys.executable, str(CLUSTER)]
    up = subprocess.run([*command, "up", "--state", str(folder)], check=True, stdout=subprocess.PIPE, text=True)
    try:
        processes = json.loads((folder / "cluster.json").read_text(encoding="utf-8"))["processes"]
        kinds: dict[str, list[int]] = {}
        for name, process in processes.items():
            kinds.setdefault(KINDS[name.partition("-")[0]], []).append(int(process["pid"]))
        yield Place("flink", tuple(up.stdout.splitlines()[-1].split()), kinds)
    finally:
        subprocess.run([*command, "down", "--state", str(folder)], check=True, stdout=subprocess.DEVNULL)


def measured_run(command: str, arguments: Sequence[str], output: Path, pages: int, queue: int, place: Place) -> Run:
    """Runs a command and tells what it took.

    Args:
        command: which command; a second word tells runs of one command apart.
        arguments: its arguments, but for the output and the runner's.
        output: its output folder.
        pages: pages of the web.
        queue: URLs of the queue.
        place: where it runs.

    Raises:
        RuntimeError: it failed.
    """
    words = [
        sys.executable,
        "-m",
        "semrank.pipelines",
        command.split()[0],
        *arguments,
        "--output",
        str(output),
        *place.options,
    ]
    begin = time.perf_counter()
    with subprocess.Popen(
        [*words, "--verbose"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as process:
        watch = Watch(lambda: {"command": [process.pid], **place.cluster})
        watch.start()
        try:
            last = _followed(process.stderr, watch)
            _, status, usage = os.wait4(process.pid, 0)
            # It is waited for; Popen would do so again.
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:
            watch.end()
    wall_s = time.perf_counter() - begin
    if process.returncode:
        raise RuntimeError(f"semrank {command} ended with status {process.returncode}, expected 0: {last}")
    manifest = json.loads((output / "manifest.json").read_text(encoding="utf-8"))
    stages = {
        name: Stage(
            stage["seconds"],
            stage["shuffled_bytes"],
            stage["held_bytes"],
            stage["largest_group_bytes"],
            0 if place.cluster else watch.stage_peaks.get(name, 0),
        )
        for name, stage in manifest["stages"].items()
    }
    cpu_s = usage.ru_utime + usage.ru_stime
    return Run(
        command, place.name, pages, queue, round(wall_s, 3), round(cpu_s, 3), watch.peaks, manifest["rows"], stages
    )


def _followed(stream: IO[str] | None, watch: Watch) -> str:
    """Follows a command's messages to their end, and tells the watch which stage has begun; gives the last line."""
    last = ""
    for line in stream or ():
        last = line.strip()
        begun = re.fullmatch(r"(.+): started", last)
        if begun:
            watch.stage = begun[1]
    return last


def measured_web(
    folder: Path,
    pages: int,
    place: Place,
    *,
    profile: str = PROFILE,
    queue: int | None = None,
    commands: Sequence[str] = (*COMMANDS, DEFAULT_ROUND),
) -> list[Run]:
    """Generates a web, ingests and ranks it.

    Args:
        folder: where to; a web that is there is used again.
        pages: size of the web.
        place: where the commands run.
        profile: of the round.
        queue: URLs of the queue, or None for its share of the web.
        commands: what is measured; a round alone ranks the snapshot that is there.
    """
    web = folder / str(pages)
    inputs, seeds = web / "inputs.json", web / "seeds.txt"
    if not inputs.exists():
        web.mkdir(parents=True, exist_ok=True)
        words, seeds = write_web_and_seeds(web, pages)
        inputs.write_text(json.dumps(words), encoding="utf-8")
    urls = seeds.read_text(encoding="utf-8").splitlines()
    chosen = web / f"seeds-{queue or len(urls)}.txt"
    chosen.write_text("".join(f"{url}\n" for url in urls[:queue]), encoding="utf-8")
    size = min(queue or len(urls), len(urls))
    snapshot = web / f"snapshot-{place.name}"
    read = [*json.loads(inputs.read_text(encoding="utf-8")), "--overwrite"]
    ranked = ["--snapshot", str(snapshot), "--seeds", str(chosen), "--overwrite"]
    output = web / f"round-{place.name}"
    made = {
        "ingest": lambda: measured_run("ingest", read, snapshot, pages, 0, place),
        "rank": lambda: measured_run("rank", [*ranked, "--profile", profile], output, pages, size, place),
        DEFAULT_ROUND: lambda: measured_run(DEFAULT_ROUND, ranked, output, pages, size, place),
    }
    return [made[command]() for command in commands]


def exponent(before: float, after: float, growth: float) -> float:
    """The e of values that grow as size^e; 0 where nothing was there before."""
    return math.log(after / before) / math.log(growth) if before > 0 and after > 0 else 0.0


def series_of(runs: Sequence[Run], command: str, runner: str, queue: int | None) -> list[Run]:
    """Runs of a command that can be compared, by size.

    Args:
        runs: all runs.
        command: which command.
        runner: where it ran.
        queue: size of the queue, or None for those whose queue is its share of the web.
    """
    chosen = [run for run in runs if (run.command, run.runner) == (command, runner)]
    if command != "ingest":
        chosen = [run for run in chosen if run.queue == (run.pages // PAGES_PER_QUEUE_URL if queue is None else queue)]
    return sorted(chosen, key=lambda run: run.pages)


def growth_lines(runs: Sequence[Run]) -> Iterator[str]:
    """What every run took and how that grew; then the stages of the largest."""
    for runner in dict.fromkeys(run.runner for run in runs):
        shared = [
            (f"{command}, {runner}", series_of(runs, command, runner, None)) for command in (*COMMANDS, DEFAULT_ROUND)
        ]
        queues = {run.queue for run in runs if run.command == "rank"}
        fixed = sorted(queues - {run.queue for run in shared[1][1]})
        shared += [(f"rank, {runner}, {queue:,} queue URLs", series_of(runs, "rank", runner, queue)) for queue in fixed]
        for name, series in shared:
            if series:
                yield f"{name}:"
                yield from _series_lines(series)


def _series_lines(series: Sequence[Run]) -> Iterator[str]:
    for run in series:
        peaks = ", ".join(f"{kind} {shown_bytes(size)}" for kind, size in run.peak_bytes.items())
        yield (
            f"  {run.pages:>11,} pages: {run.wall_s:,.1f} s by the clock, {run.cpu_s:,.1f} s of the command's "
            f"processor time, {run.stage_seconds:,.1f} s in stages, {shown_bytes(run.shuffled_bytes)} shuffled; "
            f"at most {peaks}"
        )
    for before, after in itertools.pairwise(series):
        yield f"  {before.pages:,} to {after.pages:,} pages: {_growth(before, after)}"
    yield from _stage_lines(series)


def _growth(before: Run, after: Run) -> str:
    pairs = (
        ("clock", before.wall_s, after.wall_s),
        ("processor", before.cpu_s, after.cpu_s),
        ("stages", before.stage_seconds, after.stage_seconds),
        ("shuffled", before.shuffled_bytes, after.shuffled_bytes),
        ("memory", before.memory_bytes, after.memory_bytes),
    )
    growth = after.pages / before.pages
    return ", ".join(f"{name} as pages^{exponent(was, now, growth):.2f}" for name, was, now in pairs)


def _stage_lines(series: Sequence[Run]) -> Iterator[str]:
    last = series[-1]
    before = series[-2] if len(series) > 1 else None
    yield f"  {'stage':<34} {'s':>8} {'shuffled':>10} {'held':>10} {'peak':>10}  exponents of s, shuffled, held"
    longest = sorted(last.stages.items(), key=lambda item: -item[1].seconds)[:SHOWN_STAGES]
    for name, stage in longest:
        sizes = " ".join(
            f"{shown_bytes(size) if size else '-':>10}"
            for size in (stage.shuffled_bytes, stage.held_bytes, stage.peak_bytes)
        )
        grown = ""
        if before is not None and name in before.stages:
            was, growth = before.stages[name], last.pages / before.pages
            grown = ", ".join(
                f"{exponent(was_size, size, growth):.2f}"
                for was_size, size in (
                    (was.seconds, stage.seconds),
                    (was.shuffled_bytes, stage.shuffled_bytes),
                    (_tables(name, was), _tables(name, stage)),
                )
            )
        yield f"  {name:<34} {stage.seconds:>8.2f} {sizes}  {grown}"


def _filtering(held: Held) -> Held:
    """A state with a filter of ids, which has a largest size."""
    return replace(held, most_working=round(held.factor * MAX_BITS / 8))


_CONTEXTS = ("plan base lattice", "mine base lattice", "plan current lattice")
"""Stages that hold a context; a context above `BROADCAST_BYTES` is exchanged instead."""

_STATES = {
    "write keywords": HIERARCHY,
    "write base concepts": NAMED_LATTICE,
    **dict.fromkeys(_CONTEXTS, CONTEXT),
    "reduce Part-Of of all parts": PATHS,
    **dict.fromkeys(("score current lattice", "score conditional databases"), LATTICE),
    **dict.fromkeys(("read words of pages", "choose click edges", "choose clicked words"), _filtering(HARVEST)),
    **{"read words of anchors": _filtering(HARVEST), "choose clicked links": _filtering(OTHER)},
}
"""Stage -> what it holds, for those that hold most."""


def _held_by(name: str) -> Held:
    return _STATES.get(name, OTHER)


def _tables(name: str, stage: Stage) -> int:
    """What a stage holds, without the memory of its work, or its filter, where that is at its most."""
    held = max(0, stage.held_bytes - OWN_BYTES)
    most = _held_by(name).most_working
    return held - most if held > most else held


@dataclass(frozen=True)
class Assumptions:
    """What a plan supposes.

    Attributes:
        hours: how long a run may take.
        cpus: processors of a machine, each with one worker process of one thread.
        machine_bytes: memory of a machine.
        efficiency: part of a worker's time that is processor time as a local run takes it; the rest is the runner's,
            start and waiting.
        speed: how much faster a processor is than the one that was measured.
        least_exponent: of a stage's seconds and shuffled bytes, since a small run's fixed costs hide growth.
        cpu_price: dollars for a processor and hour.
        memory_price: dollars for 10^9 bytes of memory and an hour.
        shuffle_price: dollars for 10^9 bytes through a shuffle.
        prices_from: where the prices are from.
    """

    hours: float = 8.0
    cpus: int = 8
    machine_bytes: int = 32 << 30
    efficiency: float = 0.5
    speed: float = 1.0
    least_exponent: float = 1.0
    cpu_price: float = 0.056
    memory_price: float = 0.003557
    shuffle_price: float = 0.011
    prices_from: str = "Dataflow's list prices for batch jobs in us-central1, cloud.google.com/dataflow/pricing"

    @property
    def worker_bytes(self) -> int:
        """Memory of a worker process."""
        return self.machine_bytes // self.cpus

    @property
    def machine_price(self) -> float:
        """Dollars for a machine and an hour."""
        return self.cpus * self.cpu_price + self.machine_bytes / 1e9 * self.memory_price


@dataclass(frozen=True)
class Plan:
    """What a run of one size would take.

    Attributes:
        name: how the run is laid out.
        pages: size of the web.
        machines: machines of the assumed kind.
        hours: how long it takes on them.
        serial_hours: hours in which one worker works alone, part of these.
        cpu_hours: processor hours.
        shuffled_bytes: bytes through shuffles.
        held_bytes: the most that a worker holds.
        too_large: stages that need more than a worker has -> bytes.
        dollars: cost; while one worker works alone, of one machine.
    """

    name: str
    pages: int
    machines: int
    hours: float
    serial_hours: float
    cpu_hours: float
    shuffled_bytes: float
    held_bytes: float
    too_large: Mapping[str, float]
    dollars: float


def one_round(
    runs: Sequence[Run], pages: int, assumed: Assumptions, *, queue: int | None = None, ranked: str = RANKED
) -> Plan:
    """One ingest and one round over a web.

    Each stage goes on to grow as it did between the two largest webs.

    Args:
        runs: local runs of at least two sizes.
        pages: size of the web.
        assumed: what is supposed.
        queue: size of the queue, or None for the same share of the web as in the runs.
        ranked: which round.

    Raises:
        ValueError: there are no such runs.
    """
    stages = dict(_grown_stages(runs, pages, assumed, queue, ranked))
    seconds = sum(stage.seconds for stage in stages.values())
    alone = sum(stage.seconds for name, stage in stages.items() if name.partition(": ")[2] in SERIAL)
    cpu_hours = (seconds - alone) / assumed.speed / assumed.efficiency / 3600
    serial_hours = alone / assumed.speed / 3600
    room = max(assumed.hours - serial_hours, assumed.hours / 10)
    machines = max(1, math.ceil(cpu_hours / room / assumed.cpus))
    hours = cpu_hours / machines / assumed.cpus + serial_hours
    shuffled = float(sum(stage.shuffled_bytes for stage in stages.values()))
    held = {name.partition(": ")[2]: float(stage.held_bytes) for name, stage in stages.items()}
    return Plan(
        f"one round, a queue of {queue or pages // PAGES_PER_QUEUE_URL:,} URLs, {ROUNDS[ranked]}",
        pages,
        machines,
        hours,
        serial_hours,
        cpu_hours + serial_hours,
        shuffled,
        max(held.values(), default=0.0),
        {name: size for name, size in sorted(held.items(), key=lambda item: -item[1]) if size > assumed.worker_bytes},
        (cpu_hours / assumed.cpus + serial_hours) * assumed.machine_price + shuffled / 1e9 * assumed.shuffle_price,
    )


def many_rounds(runs: Sequence[Run], pages: int, assumed: Assumptions) -> Plan:
    """The web cut by topic into crawls as large as the largest one that was measured, each ranked by itself.

    Each crawl is ingested and ranked by local processes, as it was measured: with its start, with what it exchanges
    kept in memory, and nothing sent to another machine.
    """
    series = [{run.pages: run for run in series_of(runs, command, "local", None)} for command in COMMANDS]
    size = max(set.intersection(*map(set, series)))
    last = [found[size] for found in series]
    count = math.ceil(pages / size)
    cpu_hours = count * sum(run.cpu_s for run in last) / assumed.speed / 3600
    held = max(run.memory_bytes for run in last)
    at_once = min(assumed.cpus, max(1, assumed.machine_bytes // held))
    machines = max(1, math.ceil(cpu_hours / assumed.hours / at_once))
    hours = cpu_hours / machines / at_once
    return Plan(
        f"{count:,} rounds of {size:,} pages, one a topic, {at_once} at a time on a machine",
        pages,
        machines,
        hours,
        0.0,
        cpu_hours,
        0.0,
        float(held),
        {"a process": float(held)} if held > assumed.machine_bytes else {},
        machines * hours * assumed.machine_price,
    )


def _grown_stages(
    runs: Sequence[Run], pages: int, assumed: Assumptions, queue: int | None, ranked: str
) -> Iterator[tuple[str, Stage]]:
    """Stages of both commands on a web of so many pages."""
    for command in (INGEST, ranked):
        series = series_of(runs, command, "local", queue)[-2:]
        if len(series) < 2:
            raise ValueError(f"found {len(series)} local runs of {command}, expected at least two sizes")
        before, last = series
        growth, factor = last.pages / before.pages, pages / last.pages

        for name, stage in last.stages.items():
            was = before.stages.get(name, Stage(0.0))
            held = _held_exponent(name, was, stage, growth)
            shuffled = exponent(was.shuffled_bytes, stage.shuffled_bytes, growth)
            by_bytes = max(assumed.least_exponent, shuffled, held)
            by_time = max(assumed.least_exponent, exponent(before.cpu_of(name), last.cpu_of(name), growth))
            held_bytes = stage.held_bytes + round(_tables(name, stage) * (factor**held - 1))
            if name in _CONTEXTS:
                held_bytes = min(held_bytes, OWN_BYTES + round(CONTEXT.factor * BROADCAST_BYTES))
            yield (
                f"{command}: {name}",
                Stage(
                    last.cpu_of(name) * factor ** (by_time if stage.seconds >= SURE_SECONDS else by_bytes),
                    round(stage.shuffled_bytes * factor ** max(assumed.least_exponent, shuffled)),
                    held_bytes,
                ),
            )


def _held_exponent(name: str, was: Stage, stage: Stage, growth: float) -> float:
    """Growth of what a stage holds; in proportion to the web where the memory of its work hides it."""
    if 0 < min(was.held_bytes, stage.held_bytes) < OWN_BYTES + _held_by(name).most_working:
        return 1.0
    return exponent(_tables(name, was), _tables(name, stage), growth)


def plan_lines(plan: Plan, assumed: Assumptions) -> Iterator[str]:
    """A plan for people."""
    yield f"{plan.pages:,} pages: {plan.name}"
    yield (
        f"  {plan.machines:,} machines of {assumed.cpus} processors and {shown_bytes(assumed.machine_bytes)}, "
        f"{plan.hours:,.1f} h, of which {plan.serial_hours:,.1f} h on one worker; {plan.cpu_hours:,.0f} processor hours"
    )
    yield f"  {plan.shuffled_bytes / 1e12:,.3g} TB through shuffles; {plan.dollars:,.0f} dollars"
    yield f"  a worker holds at most {shown_bytes(plan.held_bytes)} of {shown_bytes(assumed.worker_bytes)}"
    for name, size in plan.too_large.items():
        yield f"  does not fit: {name}, {shown_bytes(size)}; lower it by {_held_by(name).lower}"


def assumption_lines(runs: Sequence[Run], assumed: Assumptions) -> Iterator[str]:
    """What a plan supposes, for people."""
    sizes = "; ".join(
        f"{command} {' and '.join(f'{run.pages:,}' for run in series_of(runs, command, 'local', None)[-2:])} pages"
        for command in COMMANDS
    )
    yield (
        f"assumed: growth as between the two largest webs ({sizes}), at least pages^{assumed.least_exponent:g}; "
        f"stages of less than {SURE_SECONDS:g} s as bytes; workers busy for {assumed.efficiency:.0%} of the time; "
        f"{assumed.hours:g} h wanted; {assumed.cpu_price:g} dollars a processor hour, {assumed.memory_price:g} a GB "
        f"hour, {assumed.shuffle_price:g} a GB shuffled ({assumed.prices_from})"
    )


def run(*, quick: bool = False, pages: int | None = None) -> list[Result]:
    """Results of the benchmark: one for each command and step from a web to the next larger one, on this machine.

    Args:
        quick: two small webs.
        pages: pages of the largest web; the others have a tenth each.
    """
    sizes = list(QUICK_SIZES if quick else SIZES)
    if pages is not None:
        sizes = [pages // GROWTH, pages]
    with tempfile.TemporaryDirectory() as folder:
        runs = [run for size in sizes for run in measured_web(Path(folder), size, Place("local"))]
    results = []
    for command in dict.fromkeys(run.command for run in runs):
        series = [run for run in runs if run.command == command]
        results += [_step(before, after) for before, after in itertools.pairwise(series)]
    return results


def _step(before: Run, after: Run) -> Result:
    largest, stage = max(after.stages.items(), key=lambda item: item[1].held_bytes)
    note = (
        f"{after.cpu_s:.1f} s CPU, {after.stage_seconds:.1f} s in stages, {shown_bytes(after.memory_bytes)} at most, "
        f"{shown_bytes(after.shuffled_bytes)} shuffled, {shown_bytes(stage.held_bytes)} held by '{largest}'; grew: "
        f"{_growth(before, after)}"
    )
    return compare(
        f"scale: {after.command}, {after.pages:,} pages",
        "a tenth of the pages",
        after.wall_s,
        before.wall_s,
        (after.pages / before.pages) ** EXPONENT_AIM,
        note,
        cpu_ratio=after.cpu_s / before.cpu_s,
        counts={name: count for name, count in after.rows.items() if count},
    )


_CHOSEN = ("hours", "cpus", "machine_bytes", "efficiency", "speed", "cpu_price", "memory_price", "shuffle_price")
"""Assumptions that are options."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, nargs="+", metavar="N", help="sizes of webs to measure")
    parser.add_argument("--flink", action="store_true", help="measure on a Flink cluster that is started for it")
    parser.add_argument("--profile", default=PROFILE, help=f"profile of `rank` (default {PROFILE})")
    parser.add_argument("--queue", type=int, metavar="N", help="URLs of the queue (default: a hundredth of the pages)")
    parser.add_argument(
        "--only", choices=(*COMMANDS, DEFAULT_ROUND), help="measure one command; rank takes the snapshot of --folder"
    )
    parser.add_argument("--folder", type=Path, metavar="DIR", help="keep webs and outputs there, and use them again")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the figures there, beside those it has")
    parser.add_argument("--measured", type=Path, default=MEASURED, metavar="FILE", help="figures for --plan")
    parser.add_argument("--plan", type=float, metavar="N", help="what N pages would take")
    for each in _CHOSEN:
        value = getattr(Assumptions(), each)
        option = f"--{each.replace('_', '-')}"
        parser.add_argument(option, type=type(value), default=value, metavar="X", help=f"assumed: {value:g}")
    return parser


def _stored(path: Path) -> list[Run]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [Run.of_dict(json.loads(line)) for line in lines]


def _store(path: Path, runs: Sequence[Run]) -> None:
    """Writes runs, a line each, in place of those of the same command, runner and size."""
    kept = {(run.command, run.runner, run.pages, run.queue): run for run in (*_stored(path), *runs)}
    lines = [json.dumps(asdict(kept[key])) + "\n" for key in sorted(kept)]
    path.write_text("".join(lines), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: measures, plans, or both; gives the exit status."""
    parsed = _parser().parse_args(arguments)
    runs: list[Run] = []
    if parsed.pages:
        with tempfile.TemporaryDirectory() as temporary:
            where = flink_cluster(Path(temporary) / "flink") if parsed.flink else nullcontext(Place("local"))
            with where as place:
                for size in parsed.pages:
                    runs += measured_web(
                        parsed.folder or Path(temporary),
                        size,
                        place,
                        profile=parsed.profile,
                        queue=parsed.queue,
                        commands=[parsed.only] if parsed.only else (*COMMANDS, DEFAULT_ROUND),
                    )
                    if parsed.output is not None:
                        _store(parsed.output, runs)
        print(*growth_lines(runs), sep="\n")
    if parsed.plan:
        known = [run for run in (runs or _stored(parsed.measured)) if run.runner == "local"]
        assumed = Assumptions(**{name: getattr(parsed, name) for name in _CHOSEN})
        print(*assumption_lines(known, assumed), sep="\n")
        for plan in plans(known, int(parsed.plan), assumed):
            print(*plan_lines(plan, assumed), sep="\n")
    return 0


def plans(runs: Sequence[Run], pages: int, assumed: Assumptions) -> Iterator[Plan]:
    """All plans for which there are runs."""
    yield one_round(runs, pages, assumed)
    if len(series_of(runs, DEFAULT_ROUND, "local", None)) > 1:
        yield one_round(runs, pages, assumed, ranked=DEFAULT_ROUND)
    for queue in sorted({run.queue for run in runs if run.queue}):
        if len(series_of(runs, "rank", "local", queue)) > 1:
            yield one_round(runs, pages, assumed, queue=queue)
    yield many_rounds(runs, pages, assumed)


if __name__ == "__main__":
    raise SystemExit(main())
