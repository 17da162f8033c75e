"""Command line of the benchmarks."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

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
    """Runs benchmarks; gives 0, 1 where one of them failed, or 2 where there is none of that name."""
    known = benchmark_names()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measures semrank against its peers.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"benchmarks to run: {', '.join(known)} (default: all)"
    )
    parser.add_argument("--output", type=Path, metavar="DIR", help="write DIR/results.json and DIR/results.png")
    parser.add_argument("--quick", action="store_true", help="small sizes: whether it runs, not how fast")
    parsed = parser.parse_args(arguments)
    unknown = sorted(set(parsed.names) - set(known))
    if unknown:
        sys.stderr.write(f"{unknown[0]}: no such benchmark, expected one of {', '.join(known)}\n")
        return 2
    for line in machine_lines():
        print(line)
    results: list[Result] = []
    failed = False
    for name in parsed.names or known:
        print(f"running {name} ...", file=sys.stderr, flush=True)
        try:
            results += run_benchmark(name, quick=parsed.quick)
        except Exception as error:  # one benchmark's fault leaves the others their results
            traceback.print_exc()
            failed = True
            results.append(without_peer(name, "", None, f"failed: {type(error).__name__}: {error}"))
    print(*table_lines(results), sep="\n")
    if parsed.output is not None:
        write_results(parsed.output, results)
        chart = parsed.output / "results.png"
        written = [parsed.output / "results.json", *([chart] if draw_results(chart, results) else [])]
        print("written:", *written)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
