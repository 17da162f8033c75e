"""What got worse since the stored results: ratios, never times, and counts.

A ratio of processor times stands less under the machine's other work than one of times by the clock, so it is the one
that is stored where both were measured.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from benchmarks.harness import Result

STORED = Path(__file__).with_name("expected.json")

SLACK = 2.0
"""How many times larger than the stored one a ratio may be: small runs on a busy machine vary by less."""

_DIGITS = 3


class Expected(TypedDict):
    """What is stored of a result.

    Attributes:
        ratio: of processor times where both sides' were measured, else of times; None where the peer did not run.
        counts: as in `Result`.
    """

    ratio: float | None
    counts: dict[str, int]


def keys(results: Sequence[Result]) -> list[str]:
    """Names of results, which are different: benchmark and peer, and a number where these two are the same again."""
    seen: Counter[str] = Counter()
    found = []
    for result in results:
        key = f"{result['name']} / {result['peer']}"
        seen[key] += 1
        found.append(key if seen[key] == 1 else f"{key} #{seen[key]}")
    return found


def read_expected(path: Path, size: str) -> dict[str, Expected]:
    """What is stored for `quick` or `full`; nothing where there is no file."""
    if not path.is_file():
        return {}
    expected: dict[str, Expected] = json.loads(path.read_text(encoding="utf-8")).get(size, {})
    return expected


def store(path: Path, size: str, results: Sequence[Result]) -> None:
    """Stores results; those of other benchmarks and of the other size stay."""
    content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    entries = content.get(size, {})
    for key, result in zip(keys(results), results, strict=True):
        ratio = _guarded(result)
        if ratio is not None or result["counts"]:
            rounded = None if ratio is None else float(f"{ratio:.{_DIGITS}g}")
            entries[key] = Expected(ratio=rounded, counts=result["counts"])
    content[size] = dict(sorted(entries.items()))
    text = json.dumps(dict(sorted(content.items())), indent=2, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8")


def worse(results: Sequence[Result], expected: Mapping[str, Expected]) -> Iterator[str]:
    """A line for each ratio that is more than `SLACK` times the stored one, and for each count that differs."""
    for key, result in zip(keys(results), results, strict=True):
        stored = expected.get(key)
        if stored is None:
            continue
        ratio = _guarded(result)
        if ratio is not None and stored["ratio"] is not None and ratio > SLACK * stored["ratio"]:
            yield f"{key}: found the ratio {ratio:.3g}, expected at most {SLACK:g} times {stored['ratio']:.3g}"
        for name, count in result["counts"].items():
            before = stored["counts"].get(name)
            if before is not None and count != before:
                yield f"{key}: found {count:,} {name}, expected {before:,}"


def uncompared(results: Sequence[Result], expected: Mapping[str, Expected]) -> list[str]:
    """Names of results of which nothing is stored."""
    return [key for key in keys(results) if key not in expected]


def _guarded(result: Result) -> float | None:
    return result["ratio"] if result["cpu_ratio"] is None else result["cpu_ratio"]
