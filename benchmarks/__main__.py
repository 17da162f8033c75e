"""Command line of the benchmarks."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import guard
from benchmarks.harness import (
    Result,
    benchmark_names,
    draw_results,
    machine_lines,
    run_benchmark,
    table_lines,
    without_peer,
    write_results,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs benchmarks.

    Returns:
        0, 1 where one of them failed or is worse than is stored, or 2 where the arguments are unusable.
    """
    known = benchmark_names()
    parsed = _parser(known).parse_args(arguments)
    unknown = sorted(set(parsed.names) - set(known))
    if unknown:
        sys.stderr.write(f"{unknown[0]}: no such benchmark, expected one of {', '.join(known)}\n")
        return 2
    for line in machine_lines():
        print(line)
    size = "quick" if parsed.quick else "full"
    options = {"contexts": parsed.contexts, "pages": parsed.pages, "earlier": parsed.earlier}
    given = {name: value for name, value in options.items() if value is not None}
    expected = guard.read_expected(guard.STORED, size) if parsed.check else {}
    results: list[Result] = []
    worse: list[str] = []
    failed = False
    for name in parsed.names or known:
        print(f"running {name} ...", file=sys.stderr, flush=True)
        try:
            found, lines = _checked(name, expected, quick=parsed.quick, options=given)
            results += found
            worse += lines
        except Exception as error:  # one benchmark's fault leaves the others their results
            traceback.print_exc()
            failed = True
            results.append(without_peer(name, "", None, f"failed: {type(error).__name__}: {error}"))
    print(*table_lines(results), sep="\n")
    if parsed.quick:
        print("these are small sizes; the aims are for the full ones")
    if parsed.output is not None:
        write_results(parsed.output, results)
        chart = parsed.output / "results.png"
        written = [parsed.output / "results.json", *([chart] if draw_results(chart, results) else [])]
        print("written:", *written)
    if parsed.store:
        guard.store(guard.STORED, size, results)
        print("stored:", guard.STORED)
    if parsed.check:
        for key in guard.uncompared(results, expected):
            print(f"not compared, as nothing is stored of it: {key}")
        print(*(f"worse: {line}" for line in worse), sep="\n", end="\n" if worse else "")
        print(f"{len(worse)} worse than stored")
    return int(failed or bool(worse))


def _parser(known: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measures semrank against its peers.")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"benchmarks to run: {', '.join(known)} (default: all)",
    )
    parser.add_argument("--output", type=Path, metavar="DIR", help="write DIR/results.json and DIR/results.png")
    parser.add_argument("--quick", action="store_true", help="small sizes: whether it runs, not how fast")
    parser.add_argument("--contexts", type=Path, metavar="DIR", help="stored contexts for closed_sets (A.npz, ...)")
    parser.add_argument("--pages", type=int, metavar="N", help="pages of the largest web that is measured")
    parser.add_argument("--earlier", metavar="COMMIT", help="commit that local_runner compares with")
    stored = parser.add_mutually_exclusive_group()
    stored.add_argument(
        "--check",
        action="store_true",
        help=f"fail where a ratio is more than {guard.SLACK:g} times the stored one, or a count differs",
    )
    stored.add_argument("--store", action="store_true", help="store the ratios and counts that are found")
    return parser


def _checked(
    name: str, expected: Mapping[str, guard.Expected], *, quick: bool, options: Mapping[str, object]
) -> tuple[list[Result], list[str]]:
    """A benchmark's results, and what is worse than expected in each of two runs, where it was worse in the first."""
    results = run_benchmark(name, quick=quick, options=options)
    lines = list(guard.worse(results, expected))
    if lines:
        print(f"{lines[0]}; running {name} again ...", file=sys.stderr, flush=True)
        results = run_benchmark(name, quick=quick, options=options)
        lines = list(guard.worse(results, expected))
    return results, lines


if __name__ == "__main__":
    raise SystemExit(main())
