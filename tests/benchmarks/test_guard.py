"""What is worse than stored is found, told, and fails the command; times alone never are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import guard
from benchmarks.harness import Result, benchmark_names, compare, without_peer
from tests.support.benchmarks import install


def fruit(ours: float, cpu_ratio: float | None = None, **counts: int) -> Result:
    return compare("fruit", "pear", ours, 1.0, 0.5, "", cpu_ratio=cpu_ratio, counts=counts)


def stored(path: Path, *results: Result) -> dict[str, guard.Expected]:
    guard.store(path, "quick", results)
    return guard.read_expected(path, "quick")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "expected.json"


def test_a_ratio_may_grow_by_the_slack_and_no_more(path: Path) -> None:
    expected = stored(path, fruit(0.4))
    assert list(guard.worse([fruit(0.8)], expected)) == []
    assert list(guard.worse([fruit(0.1)], expected)) == []
    (line,) = guard.worse([fruit(0.81)], expected)
    assert line == "fruit / pear: found the ratio 0.81, expected at most 2 times 0.4"


def test_a_ratio_of_processor_times_goes_before_one_of_times(path: Path) -> None:
    expected = stored(path, fruit(0.4, cpu_ratio=0.2))
    assert expected["fruit / pear"]["ratio"] == 0.2
    assert list(guard.worse([fruit(9.0, cpu_ratio=0.3)], expected)) == []
    assert len(list(guard.worse([fruit(0.4, cpu_ratio=0.5)], expected))) == 1


def test_slower_on_both_sides_is_not_worse(path: Path) -> None:
    expected = stored(path, fruit(0.4))
    slow = compare("fruit", "pear", 400.0, 1000.0, 0.5, "")
    assert list(guard.worse([slow], expected)) == []


def test_a_count_that_differs_is_worse_in_either_direction(path: Path) -> None:
    expected = stored(path, fruit(0.4, seeds=7))
    assert list(guard.worse([fruit(0.4, seeds=7)], expected)) == []
    for seeds in (6, 8):
        assert list(guard.worse([fruit(0.4, seeds=seeds)], expected)) == [
            f"fruit / pear: found {seeds} seeds, expected 7"
        ]


def test_a_count_is_compared_where_the_peer_is_absent(path: Path) -> None:
    expected = stored(path, fruit(0.4, seeds=7))
    lacking = without_peer("fruit", "pear", 0.5, "not installed", 0.4, counts={"seeds": 8})
    assert len(list(guard.worse([lacking], expected))) == 1


def test_results_of_one_name_and_peer_are_told_apart(path: Path) -> None:
    results = [fruit(0.1), fruit(0.4)]
    assert guard.keys(results) == ["fruit / pear", "fruit / pear #2"]
    assert [entry["ratio"] for entry in stored(path, *results).values()] == [0.1, 0.4]


def test_storing_keeps_what_was_not_measured(path: Path) -> None:
    guard.store(path, "full", [fruit(0.3)])
    guard.store(path, "quick", [fruit(0.2), without_peer("nut", "almond", 1.0, "none")])
    guard.store(path, "quick", [compare("nut", "almond", 1, 3, 1, "")])
    assert guard.read_expected(path, "full")["fruit / pear"]["ratio"] == 0.3
    quick = guard.read_expected(path, "quick")
    assert {key: entry["ratio"] for key, entry in quick.items()} == {"fruit / pear": 0.2, "nut / almond": 0.333}


def test_what_is_not_stored_is_not_worse_but_told(path: Path) -> None:
    assert guard.read_expected(path, "quick") == {}
    assert list(guard.worse([fruit(9.0)], {})) == []
    assert guard.uncompared([fruit(9.0)], {}) == ["fruit / pear"]


def test_the_command_fails_where_a_benchmark_is_worse_twice(
    monkeypatch: pytest.MonkeyPatch, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guard, "STORED", path)
    ratios = iter([0.4, 0.9, 0.9, 0.9, 0.5])

    def run(*, quick: bool) -> list[Result]:
        return [fruit(next(ratios), seeds=int(quick))]

    install(monkeypatch, "fruit", run)
    assert command.main(["--quick", "--store"]) == 0
    assert json.loads(path.read_text(encoding="utf-8")) == {
        "quick": {"fruit / pear": {"ratio": 0.4, "counts": {"seeds": 1}}}
    }
    assert command.main(["--quick", "--check"]) == 1
    shown = capsys.readouterr()
    assert "worse: fruit / pear: found the ratio 0.9" in shown.out
    assert "running fruit again" in shown.err
    # Worse in the first run and not in the second: the machine was busy.
    assert command.main(["--quick", "--check"]) == 0
    assert "0 worse than stored" in capsys.readouterr().out


def test_something_is_stored_for_every_benchmark() -> None:
    results = guard.read_expected(guard.STORED, "quick")
    assert results
    own = {key.split(" / ")[0].split(":")[0].split(" ")[0] for key in results}
    assert own <= set(benchmark_names())
    assert {"click_counts", "closed_sets", "relations", "round_growth", "similarity", "startup", "warc_ingest"} <= own
