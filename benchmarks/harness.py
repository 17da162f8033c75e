"""Finds and runs benchmarks, measures one side of a comparison in a process of its own, and shows results.

Processor time is measured beside the time by the clock: where the machine has other work to do, it is what tells two
sides of one thread each apart.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import inspect
import json
import multiprocessing
import os
import pkgutil
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn, TypedDict

import benchmarks
from benchmarks.watch import Watch

_SUPPORT = {"calibration", "contest", "generate", "guard", "harness", "harvest_chart", "labels_known", "watch"}
"""Modules of the package that are no benchmarks."""

_OWN = {"benchmarks", "semrank"}
"""Packages whose absence is a fault and no missing peer."""

_DISTRIBUTIONS = (
    *("apache-beam", "numpy", "pyarrow", "scipy", "numba", "fastwarc", "resiliparse", "simplemma", "icu4py"),
    *("duckdb", "pyspark", "networkx", "scikit-network", "pyfim"),
    *("concepts", "fcapy", "caspailleur", "fca_algorithms_cpp"),
)
"""Distributions whose versions decide a time, ours and the peers'."""


CONTEXT = multiprocessing.get_context("spawn")
"""How the processes of runs begin: as fresh interpreters."""

_PROCESSES = Path("/proc")


class Result(TypedDict):
    """One comparison.

    Attributes:
        name: of the benchmark.
        peer: what ours is compared with.
        ours_s: seconds that ours takes, None where it did not run.
        peer_s: seconds that the peer takes, None where it did not run.
        ratio: `ours_s` / `peer_s`, None where either did not run.
        aim: largest ratio that is good enough, None where the benchmark could not say.
        met: whether the aim is met, None where there is no ratio.
        note: sizes, and what else one has to know; why `ratio` is None.
        cpu_ratio: processor time of ours / that of the peer, None where it was not measured.
        counts: what was counted, the same on every machine and in every run.
    """

    name: str
    peer: str
    ours_s: float | None
    peer_s: float | None
    ratio: float | None
    aim: float | None
    met: bool | None
    note: str
    cpu_ratio: float | None
    counts: dict[str, int]


def compare(
    name: str,
    peer: str,
    ours_s: float,
    peer_s: float,
    aim: float,
    note: str,
    *,
    cpu_ratio: float | None = None,
    counts: Mapping[str, int] | None = None,
) -> Result:
    """The result of a comparison in which both sides ran."""
    ratio = ours_s / peer_s
    return Result(
        name=name,
        peer=peer,
        ours_s=ours_s,
        peer_s=peer_s,
        ratio=ratio,
        aim=aim,
        met=ratio <= aim,
        note=note,
        cpu_ratio=cpu_ratio,
        counts=dict(counts or {}),
    )


def without_peer(
    name: str,
    peer: str,
    aim: float | None,
    note: str,
    ours_s: float | None = None,
    *,
    counts: Mapping[str, int] | None = None,
) -> Result:
    """The result of a comparison that could not be made; `note` says why."""
    return Result(
        name=name,
        peer=peer,
        ours_s=ours_s,
        peer_s=None,
        ratio=None,
        aim=aim,
        met=None,
        note=note,
        cpu_ratio=None,
        counts=dict(counts or {}),
    )


@dataclass(frozen=True)
class Measurement:
    """What a side of a comparison took.

    Attributes:
        wall_s: seconds by the clock.
        cpu_s: processor seconds of all its threads and processes.
        peak_bytes: the largest memory that its process held, imports included; that of a command's processes together.
        value: what it returned, where that was no function.
    """

    wall_s: float
    cpu_s: float
    peak_bytes: int
    value: Any = None

    def __str__(self) -> str:
        """For notes."""
        return f"{self.wall_s:.3g} s, {self.cpu_s:.3g} s CPU, {self.peak_bytes / 1e9:.2f} GB"

    def against(
        self, peer: Measurement, name: str, peer_name: str, aim: float, note: str, counts: Mapping[str, int]
    ) -> Result:
        """The result of a comparison with a peer; both sides' figures are added to the note."""
        return compare(
            name,
            peer_name,
            self.wall_s,
            peer.wall_s,
            aim,
            f"{note}; ours {self}; peer {peer}",
            cpu_ratio=self.cpu_s / peer.cpu_s if peer.cpu_s else None,
            counts=counts,
        )


@dataclass(frozen=True)
class Prepared:
    """A side of a comparison whose input is made outside the clock, in the process that is measured.

    Attributes:
        prepare: makes the input and gives the function that is measured.
        runs: how often that is called; its median counts.
        warm: whether it is called once more before, for what is compiled or loaded by the first call.
    """

    prepare: Callable[[], Callable[[], object]]
    runs: int = 1
    warm: bool = True


@dataclass(frozen=True)
class Command:
    """A side that is a process, which begins with the interpreter's start.

    Attributes:
        words: program and arguments; it has to end with status 0.
    """

    words: tuple[str, ...]


Side = Callable[[], object] | Prepared | Command
"""What is measured; functions are importable, or partials of such."""


def interleaved(sides: Sequence[Side], repeats: int) -> list[Measurement]:
    """Medians of each side's runs.

    The sides take turns, so that a busy moment of the machine meets them all, and each run has a fresh process, so that
    no side profits from another's memory or inherits its peak.

    Args:
        sides: what to measure. A side that returns a function has that called when the clock has stopped: for keeping
            what the side made.
        repeats: runs of each side.

    Raises:
        RuntimeError: a run failed.
    """
    runs: list[list[Measurement]] = [[] for _ in sides]
    for _ in range(repeats):
        for side, measured in zip(sides, runs, strict=True):
            measured.append(_measured_apart(side))
    return [_median(measured) for measured in runs]


def _median(runs: Sequence[Measurement]) -> Measurement:
    return Measurement(
        statistics.median(run.wall_s for run in runs),
        statistics.median(run.cpu_s for run in runs),
        round(statistics.median(run.peak_bytes for run in runs)),
        runs[-1].value,
    )


def _measured_apart(side: Side) -> Measurement:
    receiver, sender = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_measure, args=(side, sender))
    process.start()
    sender.close()
    try:
        answer = receiver.recv()
    except EOFError:
        answer = None
    process.join()
    if isinstance(answer, Measurement):
        return answer
    # What came instead is the message of an error in the process.
    raise RuntimeError(answer or f"the process of a run ended with status {process.exitcode} and no result")


def _measure(side: Side, sender: Connection) -> None:
    try:
        if isinstance(side, Command):
            measurement = _measured_command(side.words)
        elif isinstance(side, Prepared):
            action = side.prepare()
            if side.warm:
                action()
            _forget_peak()
            measurement = _median([_timed(action) for _ in range(side.runs)])
        else:
            measurement = _timed(side)
        if callable(measurement.value):
            measurement.value()
            measurement = replace(measurement, value=None)
        sender.send(measurement)
    except Exception:
        sender.send(traceback.format_exc())


def _timed(action: Callable[[], object]) -> Measurement:
    cpu, begin = _cpu_seconds(), time.perf_counter()
    value = action()
    wall_s = time.perf_counter() - begin
    return Measurement(wall_s, _cpu_seconds() - cpu, _peak_bytes(), value)


def _cpu_seconds() -> float:
    """Of this process, its children that have ended, and its descendants that live: a virtual machine, for one."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    ticks = sum(sum(map(int, fields[11:15])) for _, fields in _living_descendants())
    return sum(usage.ru_utime + usage.ru_stime for usage in used) + ticks / os.sysconf("SC_CLK_TCK")


def _peak_bytes() -> int:
    if not _PROCESSES.is_dir():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Unlike getrusage, this does not begin with what the parent held.
    return sum(map(_peak_of, [os.getpid(), *(process for process, _ in _living_descendants())]))


def _peak_of(process: int) -> int:
    try:
        lines = (_PROCESSES / str(process) / "status").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # it has ended
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))


def _forget_peak() -> None:
    """Lets the peak begin with what is held now."""
    forget = _PROCESSES / "self" / "clear_refs"
    if forget.exists():
        forget.write_text("5", encoding="ascii")


def _living_descendants() -> Iterator[tuple[int, list[str]]]:
    """(process, fields of its `stat` from the third on), where the system tells them."""
    fields: dict[int, list[str]] = {}
    for path in _PROCESSES.glob("[0-9]*/stat"):
        try:
            # The second field, the program's name, may hold anything.
            fields[int(path.parent.name)] = (
                path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            )
        except OSError:  # it has ended
            continue
    family = {os.getpid()}
    while True:
        found = {process for process, stat in fields.items() if int(stat[1]) in family} - family
        if not found:
            return
        family |= found
        yield from ((process, fields[process]) for process in sorted(found))


def _measured_command(command: Sequence[str]) -> Measurement:
    """Measures a command with all processes that it starts.

    The peak of one that uses little memory is that of this process, whose copy it begins as.
    """
    with tempfile.TemporaryFile() as said:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        watch = Watch(lambda: {"command": [process.pid]})
        watch.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - begin
        watch.end()
        # It is waited for; Popen would do so again.
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            _failed(command, process.returncode, said.read().decode(errors="replace"))
    unit = 1 if sys.platform == "darwin" else 1024
    peak = max([usage.ru_maxrss * unit, *watch.peaks.values()])
    return Measurement(wall_s, usage.ru_utime + usage.ru_stime, peak)


def _failed(command: Sequence[str], status: int, said: str) -> NoReturn:
    lines = said.strip().splitlines()
    last = lines[-1] if lines else "it said nothing"
    raise RuntimeError(f"{' '.join(command)}: found exit status {status}, expected 0: {last}")


def benchmark_names() -> list[str]:
    """Names of all benchmarks."""
    modules = (module.name for module in pkgutil.iter_modules(benchmarks.__path__))
    return sorted(name for name in modules if not name.startswith("_") and name not in _SUPPORT)


def run_benchmark(name: str, *, quick: bool, options: Mapping[str, object] | None = None) -> list[Result]:
    """Results of one benchmark; one without times where a distribution that it needs is not installed.

    Args:
        name: one of `benchmark_names()`.
        quick: run it at its small size; a benchmark that has none is left out, which its result says.
        options: further arguments, each for the benchmarks that know it.
    """
    try:
        run = importlib.import_module(f"benchmarks.{name}").run
        known = inspect.signature(run).parameters
        if quick and "quick" not in known:
            return [without_peer(name, "", None, "left out: it has no quick size")]
        arguments = {key: value for key, value in {**(options or {}), "quick": quick}.items() if key in known}
        results: list[Result] = run(**arguments)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] in _OWN:
            raise
        return [without_peer(name, error.name, None, f"{error.name} is not installed")]
    return results


def machine_lines() -> Iterator[str]:
    """What the times depend on, besides the code."""
    yield f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} processors"
    installed = []
    for distribution in _DISTRIBUTIONS:
        try:
            installed.append(f"{distribution} {importlib.metadata.version(distribution)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    yield ", ".join(installed)


def table_lines(results: Sequence[Result]) -> Iterator[str]:
    """The results as a table, each with its note below."""
    head = ("benchmark", "peer", "ours s", "peer s", "ratio", "CPU", "aim", "met")
    met = {True: "yes", False: "NO", None: "-"}
    rows = [
        (
            result["name"],
            result["peer"],
            *(_number(result[key]) for key in ("ours_s", "peer_s", "ratio", "cpu_ratio", "aim")),
            met[result["met"]],
        )
        for result in results
    ]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    yield _aligned(head, widths)
    for row, result in zip(rows, results, strict=True):
        yield _aligned(row, widths)
        yield f"    {result['note']}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.ljust(width) if place < 2 else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells)


def write_results(folder: Path, results: Sequence[Result]) -> None:
    """Writes folder/results.json."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(results, indent=2, ensure_ascii=False)
    (folder / "results.json").write_text(f"{text}\n", encoding="utf-8")


def draw_results(path: Path, results: Sequence[Result]) -> bool:
    """Draws each ratio as a share of its aim, where Matplotlib is installed; says whether there was one to draw."""
    shares = [(result, result["ratio"] / result["aim"]) for result in results if result["ratio"] and result["aim"]]
    if not shares or importlib.util.find_spec("matplotlib") is None:
        return False
    figure_class: Any = importlib.import_module("matplotlib.figure").Figure
    figure = figure_class(figsize=(10, 1.2 + 0.32 * len(shares)), layout="constrained")
    axes = figure.subplots()
    labels = [f"{result['name']} / {result['peer']}" for result, _ in shares]
    places = range(len(shares))
    colours = ["tab:green" if result["met"] else "tab:red" for result, _ in shares]
    bars = axes.barh(places, [share for _, share in shares], color=colours)
    axes.bar_label(bars, [f"{result['ratio']:.3g} of {result['aim']:.3g}" for result, _ in shares], padding=3)
    axes.set_yticks(places, labels)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.margins(x=0.25)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel("our time / peer's time, as a share of the aim (left of the line: met)")
    figure.savefig(path, dpi=150)
    return True
