"""Finds and runs benchmarks, measures one side of a comparison in a process of its own, and shows results."""

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
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypedDict

import benchmarks

_SUPPORT = {"generate", "harness"}
"""Modules of the package that are no benchmarks."""

_OWN = {"benchmarks", "pipelines", "schemas", "transforms"}
"""Packages whose absence is a fault and no missing peer."""

_DISTRIBUTIONS = (
    *("apache-beam", "numpy", "pyarrow", "scipy", "numba", "fastwarc", "resiliparse", "simplemma", "icu4py"),
    *("duckdb", "pyfim", "concepts", "fcapy", "caspailleur", "fca_algorithms_cpp"),
)
"""Distributions whose versions decide a time, ours and the peers'."""


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
    """

    name: str
    peer: str
    ours_s: float | None
    peer_s: float | None
    ratio: float | None
    aim: float | None
    met: bool | None
    note: str


def compare(name: str, peer: str, ours_s: float, peer_s: float, aim: float, note: str) -> Result:
    """The result of a comparison in which both sides ran."""
    ratio = ours_s / peer_s
    return Result(name=name, peer=peer, ours_s=ours_s, peer_s=peer_s, ratio=ratio, aim=aim, met=ratio <= aim, note=note)


def without_peer(name: str, peer: str, aim: float | None, note: str, ours_s: float | None = None) -> Result:
    """The result of a comparison that could not be made; `note` says why."""
    return Result(name=name, peer=peer, ours_s=ours_s, peer_s=None, ratio=None, aim=aim, met=None, note=note)


@dataclass(frozen=True)
class Measurement:
    """What a side of a comparison took.

    Attributes:
        wall_s: seconds by the clock.
        cpu_s: processor seconds of all its threads and processes.
        peak_bytes: the largest memory that its process held, imports included.
    """

    wall_s: float
    cpu_s: float
    peak_bytes: int

    def __str__(self) -> str:
        """For notes."""
        return f"{self.wall_s:.1f} s, {self.cpu_s:.1f} s CPU, {self.peak_bytes / 1e9:.2f} GB"


def interleaved(sides: Sequence[Callable[[], object]], repeats: int) -> list[Measurement]:
    """Medians of each side's runs.

    The sides take turns, so that a busy moment of the machine meets them all, and each run has a fresh process, so that
    no side profits from another's memory or inherits its peak.

    Args:
        sides: importable functions, or partials of them. A side that returns a function has that called when the
            clock has stopped: for keeping what the side made.
        repeats: runs of each side.

    Raises:
        RuntimeError: a run failed.
    """
    runs: list[list[Measurement]] = [[] for _ in sides]
    for _ in range(repeats):
        for side, measured in zip(sides, runs, strict=True):
            measured.append(_measured_apart(side))
    return [
        Measurement(
            statistics.median(run.wall_s for run in measured),
            statistics.median(run.cpu_s for run in measured),
            round(statistics.median(run.peak_bytes for run in measured)),
        )
        for measured in runs
    ]


def _measured_apart(side: Callable[[], object]) -> Measurement:
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(side, sender))
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


def _measure(side: Callable[[], object], sender: Connection) -> None:
    try:
        cpu, begin = _cpu_seconds(), time.perf_counter()
        keep = side()
        wall_s, cpu_s, peak = time.perf_counter() - begin, _cpu_seconds() - cpu, _peak_bytes()
        if callable(keep):
            keep()
        sender.send(Measurement(wall_s, cpu_s, peak))
    except Exception:
        sender.send(traceback.format_exc())


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _peak_bytes() -> int:
    status = Path("/proc/self/status")
    if status.exists():
        # Unlike getrusage, this does not begin with what the parent held.
        peak = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM:"))
        return int(peak.split()[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def benchmark_names() -> list[str]:
    """Names of all benchmarks."""
    modules = (module.name for module in pkgutil.iter_modules(benchmarks.__path__))
    return sorted(name for name in modules if not name.startswith("_") and name not in _SUPPORT)


def run_benchmark(name: str, *, quick: bool) -> list[Result]:
    """Results of one benchmark; one without times where a distribution that it needs is not installed.

    Args:
        name: one of `benchmark_names()`.
        quick: run it at its small size; a benchmark that has none is left out, which its result says.
    """
    try:
        run = importlib.import_module(f"benchmarks.{name}").run
        sized = "quick" in inspect.signature(run).parameters
        if quick and not sized:
            return [without_peer(name, "", None, "left out: it has no quick size")]
        results: list[Result] = run(quick=quick) if sized else run()
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
    head = ("benchmark", "peer", "ours s", "peer s", "ratio", "aim", "met")
    met = {True: "yes", False: "NO", None: "-"}
    rows = [
        (
            result["name"],
            result["peer"],
            *(_number(result[key]) for key in ("ours_s", "peer_s", "ratio", "aim")),
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
