"""Fuzzing for long: every parser of what others wrote, by coverage (atheris) or, where that is missing, by chance.

    python -m tests.fuzz.campaign [TARGET ...] [--seconds N] [--inputs N] [--seed N] [--findings DIR]

With `--inputs` the fastest targets go on, with other random numbers, until so many inputs were tried in all. Each
target has a process of its own, with bounds on time and memory for an input. What does harm is left in the folder of
findings; it goes into tests/fuzz/corpus/TARGET once it is mended.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import itertools
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from tests.fuzz.corpus import CORPUS
from tests.fuzz.mutation import HANG_SECONDS, MAX_INPUT_BYTES
from tests.fuzz.targets import TARGETS

SECONDS = 60.0
"""For each target: half an hour for all of them."""

MEMORY_MIB = 2_048
"""Memory of a fuzzing process above which an input counts as a crash; some 250 MiB are libraries."""

STARTING_SECONDS = 1_800.0
"""What a process may take beyond its time, to import, to read the corpus, to wait for a busy processor, and to end."""

_STATISTICS = {"inputs": r"stat::number_of_executed_units:\s+(\d+)", "peak_mib": r"stat::peak_rss_mb:\s+(\d+)"}
_HANGS = "timeout-"  # how libFuzzer names inputs that took too long


@dataclass(frozen=True)
class Fuzzed:
    """What came of fuzzing a target.

    Attributes:
        target: its name.
        inputs: inputs tried.
        crashes: inputs that raised what they must not, ended the process or took too much memory.
        hangs: inputs that took longer than `HANG_SECONDS`.
        peak_mib: the largest memory of the process, in MiB, libraries included.
    """

    target: str
    inputs: int
    crashes: int
    hangs: int
    peak_mib: int

    def __str__(self) -> str:
        """A line of the table."""
        return f"{self.target:<26} {self.inputs:>12,} {self.crashes:>8} {self.hangs:>6} {self.peak_mib:>9,}"


HEAD = f"{'target':<26} {'inputs':>12} {'crashes':>8} {'hangs':>6} {'peak MiB':>9}"


def engine() -> str:
    """The engine that is there: atheris, or changes by chance."""
    return "atheris" if importlib.util.find_spec("atheris") is not None else "mutation"


FASTEST = 6
"""Targets that go on until enough inputs were tried in all."""


def fuzz(target: str, seconds: float, findings: Path, seed: int = 0) -> Fuzzed:
    """Fuzzes a target in a process of its own; `seed` is of the random numbers where no coverage guides.

    Raises:
        RuntimeError: the engine did not begin.
    """
    findings.mkdir(parents=True, exist_ok=True)
    return _guided(target, seconds, findings) if engine() == "atheris" else _mutated(target, seconds, findings, seed)


def _guided(target: str, seconds: float, findings: Path) -> Fuzzed:
    """By coverage, anew after each finding until the time is up."""
    tried = peak = 0
    left = seconds
    with tempfile.TemporaryDirectory(prefix="fuzz-") as grown:
        before = {path.name for path in findings.iterdir()}
        for _ in range(5):
            limits = [
                f"-max_total_time={max(1, round(left))}",
                f"-timeout={HANG_SECONDS:g}",
                f"-max_len={MAX_INPUT_BYTES}",
            ]
            # What takes longer than a hang is one; libFuzzer would report it twice.
            limits += [
                "-report_slow_units=3600",
                f"-rss_limit_mb={MEMORY_MIB}",
                "-print_final_stats=1",
                f"-artifact_prefix={findings}/{target}-",
            ]
            program = [sys.executable, "-m", "tests.fuzz.guided", target, grown, str(CORPUS / target), *limits]
            log = _output(program, left)
            tried += _statistic("inputs", log)
            peak = max(peak, _statistic("peak_mib", log))
            spent = re.search(r"Done \d+ runs in (\d+) second", log)
            if spent is not None:
                break
            if not _statistic("inputs", log) and before == {path.name for path in findings.iterdir()}:
                messages = log.strip().splitlines() or ["no output"]
                raise RuntimeError(f"{target} is not fuzzed: {messages[-1]}")
            left /= 2
    found = sorted({path.name for path in findings.iterdir()} - before)
    hangs = sum(name.startswith(f"{target}-{_HANGS}") for name in found)
    return Fuzzed(target, tried, len(found) - hangs, hangs, peak)


def _output(program: Sequence[str], seconds: float) -> str:
    """What a process prints; nothing if it does not end, as where a library in C hangs."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        return subprocess.run(
            program,
            cwd=CORPUS.parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds + STARTING_SECONDS,
            check=False,
        ).stdout
    return ""


def _statistic(name: str, log: str) -> int:
    found = re.search(_STATISTICS[name], log)
    return int(found[1]) if found is not None else 0


def _mutated(target: str, seconds: float, findings: Path, seed: int) -> Fuzzed:
    """By chance; a process that dies leaves the input that it died of."""
    program = [
        sys.executable,
        "-m",
        "tests.fuzz.mutation",
        target,
        "--seconds",
        str(seconds),
        "--seed",
        str(seed),
        "--findings",
        str(findings),
    ]
    lines = [line for line in _output(program, seconds).splitlines() if line.startswith('{"target"')]
    if not lines:
        return Fuzzed(target, 0, 1, 0, 0)
    outcome = json.loads(lines[-1])
    return Fuzzed(target, outcome["inputs"], outcome["crashes"], outcome["hangs"], outcome["peak_mib"])


def fuzz_all(
    targets: Sequence[str], seconds: float, findings: Path, inputs: int = 0, first_seed: int = 0
) -> Iterator[Fuzzed]:
    """Fuzzes targets one after another, then the fastest ones again until `inputs` were tried in all."""
    tried: dict[str, int] = {}
    for seed in itertools.count(first_seed):
        for target in targets:
            outcome = fuzz(target, seconds, findings, seed)
            yield outcome
            tried[target] = tried.get(target, 0) + outcome.inputs
            if seed > first_seed and sum(tried.values()) >= inputs:
                return
        if sum(tried.values()) >= inputs:
            return
        targets = sorted(targets, key=tried.__getitem__, reverse=True)[:FASTEST]


def summed(outcomes: Sequence[Fuzzed], name: str) -> Fuzzed:
    """What came of several runs, under one name."""
    inputs, crashes, hangs = (sum(map(attrgetter(field), outcomes)) for field in ("inputs", "crashes", "hangs"))
    return Fuzzed(name, inputs, crashes, hangs, max((outcome.peak_mib for outcome in outcomes), default=0))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: a line for each target; 1 where something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.campaign", description="Fuzzes the parsers for long.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)} (default: all)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"for each target (default {SECONDS:g})")
    parser.add_argument("--inputs", type=int, default=0, help="the fastest targets go on until so many were tried")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers of the first pass (default 0)")
    parser.add_argument("--findings", type=Path, default=Path("findings"), help="folder for inputs that do harm")
    parsed = parser.parse_args(arguments)
    unknown = sorted(set(parsed.targets) - set(TARGETS))
    if unknown:
        sys.stderr.write(f"{unknown[0]}: no such target, expected some of {', '.join(TARGETS)}\n")
        return 2
    print(f"engine: {engine()}, {parsed.seconds:g} s a target\n{HEAD}")
    outcomes: list[Fuzzed] = []
    with contextlib.suppress(KeyboardInterrupt):  # what was tried so far counts
        targets = parsed.targets or list(TARGETS)
        for outcome in fuzz_all(targets, parsed.seconds, parsed.findings, parsed.inputs, parsed.seed):
            print(outcome, flush=True)
            outcomes.append(outcome)
    for name in dict.fromkeys(outcome.target for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.target == name]
        if len(own) > 1:
            print(summed(own, f"{name}, all"))
    whole = summed(outcomes, "all")
    print(whole)
    return int(whole.crashes + whole.hangs > 0)


if __name__ == "__main__":
    raise SystemExit(main())
