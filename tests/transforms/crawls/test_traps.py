from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.schemas.tables import REJECTS
from semrank.transforms.crawls.traps import (
    DEEP,
    ENDLESS,
    FACETS,
    MAX_RUN,
    MIN_FAMILY,
    REPEATING,
    REPETITIONS,
    SAMPLE,
    repeated_run,
    trap_candidates,
    trap_marks,
)


def marks(urls: list[str], parts: int = 1) -> list[tuple[str, str]]:
    tables = [
        trap_candidates(pa.table({"target_url": pa.array(urls[part::parts], pa.string())})) for part in range(parts)
    ]
    found = trap_marks(pa.concat_tables(tables))
    assert found.schema == REJECTS.schema
    assert set(found["stage"].to_pylist()) <= {"trap"}
    return list(zip(found["reason"].to_pylist(), found["record"].to_pylist(), strict=True))


def test_repeating_paths() -> None:
    urls = [
        "http://h/a/b/a/b/a/b",
        "http://h/x/a/b/a/b/a/b/a/b?q=1",
        "http://h/c/c/c",
        "http://h/d/d",
        "http://i/e/f/e",
    ]
    assert marks(urls) == [
        (REPEATING, "http://h/**/a/b/** (2 addresses)"),
        (REPEATING, "http://h/**/c/** (1 addresses)"),
    ]


def test_deep_paths() -> None:
    deep = "http://h/" + "/".join(f"s{number}" for number in range(40))
    assert marks([deep, deep + "/x"]) == [(DEEP, "http://h/** (2 addresses)")]


def test_calendars() -> None:
    calendar = [f"http://h2/cal?year={year}&month={month}" for year in range(1900, 2200) for month in range(1, 13)]
    threads = [f"http://h/thread.php?t={number}" for number in range(5_000)]
    short = [f"http://h/year/{year}" for year in range(1990, 2030)]
    ((reason, record),) = marks(calendar + threads + short)
    assert reason == ENDLESS
    assert record.startswith("http://h2/cal?year={n}&month={n} (about ")
    size = int(record.split("about ")[1].split()[0])
    assert size == pytest.approx(len(calendar), rel=0.15)
    assert size % SAMPLE == 0


def test_facets() -> None:
    names = ["color", "size", "brand", "sort", "page"]
    shop = [
        "http://h/shop?" + "&".join(f"{name}={number}" for place, name in enumerate(names) if mask >> place & 1)
        for mask in range(1 << len(names))
        for number in range(200)
    ]
    plain = [f"http://h/list?a={number}&b=1&c=2" for number in range(5_000)]
    ((reason, record),) = marks(shop + plain)
    assert (reason, record.split(" (")[0]) == (FACETS, "http://h/shop?*")


def test_marks_do_not_depend_on_partitions_or_repetitions() -> None:
    urls = [f"http://h/week/{number}/a/a/a" for number in range(2 * MIN_FAMILY)]
    expected = marks(urls)
    assert {reason for reason, _ in expected} == {REPEATING, ENDLESS}
    assert marks(urls[::-1], parts=7) == expected
    assert marks(urls + urls[:500], parts=3) == expected
    assert marks([]) == []


def brute_force(segments: list[str]) -> bool:
    return any(
        any(run := segments[at : at + size]) and segments[at : at + REPETITIONS * size] == run * REPETITIONS
        for size in range(1, MAX_RUN + 1)
        for at in range(len(segments) - REPETITIONS * size + 1)
    )


@given(st.lists(st.sampled_from(["a", "b", ""]), max_size=16))
def test_repeated_runs_against_brute_force(segments: list[str]) -> None:
    run = repeated_run(segments)
    assert (run is not None) == brute_force(segments)
    if run is not None:
        text = "/".join(["", *segments, ""])
        assert "/".join(["", *run * REPETITIONS, ""]) in text
