"""Benchmarks are found, run, measured and told in the agreed form."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks.harness import (
    Command,
    Measurement,
    Prepared,
    Result,
    benchmark_names,
    compare,
    interleaved,
    run_benchmark,
    table_lines,
    without_peer,
)
from tests.support.benchmarks import install

MEGABYTE = 1 << 20


BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def spend(seconds: float, size: int = 0) -> None:
    """Keeps a processor busy, and so many bytes in use."""
    held = b"x" * size
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    del held


def leave(path: Path, content: str) -> partial[int]:
    return partial(write_after, path, content)


def write_after(path: Path, content: str) -> int:
    time.sleep(0.5)
    return path.write_text(content, encoding="utf-8")


def prepare_spending(seconds: float, size: int) -> Callable[[], int]:
    """Preparing takes time and memory, which are nobody's; each call takes some more time than the one before."""
    spend(0.3, size)
    calls = iter(range(1, 100))

    def action() -> int:
        call = next(calls)
        spend(seconds * call)
        return call

    return action


def wait_for_child() -> None:
    """A child that lives on after the work, as a virtual machine does."""
    work = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    child = subprocess.Popen([sys.executable, "-c", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()


def fail() -> None:
    raise ValueError("expected a peach")


def test_each_side_is_measured_in_a_process_of_its_own() -> None:
    small, large = interleaved([partial(spend, 0.05), partial(spend, 0.3, 200 * MEGABYTE)], 1)
    assert small.cpu_s >= 0.05
    assert large.cpu_s >= 0.3
    assert large.wall_s >= 0.2
    assert large.peak_bytes - small.peak_bytes > 150 * MEGABYTE


def test_keeping_results_takes_no_time(tmp_path: Path) -> None:
    (measured,) = interleaved([partial(leave, tmp_path / "kept", "pear")], 1)
    assert (tmp_path / "kept").read_text(encoding="utf-8") == "pear"
    assert measured.wall_s < 0.5


def test_preparing_counts_for_nothing() -> None:
    side = Prepared(partial(prepare_spending, 0.02, 300 * MEGABYTE), runs=3)
    prepared, plain = interleaved([side, partial(spend, 0.05)], 1)
    # The first of four calls warms up; the median of the others is the third.
    assert 0.06 <= prepared.cpu_s < 0.25
    assert prepared.value == 4
    assert abs(prepared.peak_bytes - plain.peak_bytes) < 150 * MEGABYTE
    (cold,) = interleaved([Prepared(partial(prepare_spending, 0.02, 0), warm=False)], 1)
    assert cold.value == 1


def test_a_living_childs_time_counts() -> None:
    if not Path("/proc/self/stat").exists():
        pytest.skip("the system does not tell of processes")
    (measured,) = interleaved([wait_for_child], 1)
    assert measured.cpu_s >= 0.25


def test_a_command_is_measured_as_a_process() -> None:
    (measured,) = interleaved([Command((sys.executable, "-c", "held = b'x' * (200 << 20)"))], 1)
    assert measured.peak_bytes > 200 * MEGABYTE
    assert measured.cpu_s > 0
    with pytest.raises(RuntimeError, match=r"found exit status 3, expected 0: no peach"):
        interleaved([Command((sys.executable, "-c", "import sys; sys.stderr.write('no peach'); sys.exit(3)"))], 1)


def test_a_comparison_tells_both_sides() -> None:
    result = Measurement(1.0, 0.5, 1_000_000_000).against(
        Measurement(4.0, 5.0, 2_000_000_000), "fruit", "pear", 0.5, "halves", {"seeds": 7}
    )
    assert (result["ratio"], result["cpu_ratio"], result["met"]) == (0.25, 0.1, True)
    assert result["counts"] == {"seeds": 7}
    assert result["note"] == "halves; ours 1 s, 0.5 s CPU, 1.00 GB; peer 4 s, 5 s CPU, 2.00 GB"


def test_a_failed_run_tells_why() -> None:
    with pytest.raises(RuntimeError, match="expected a peach"):
        interleaved([fail], 1)


def test_all_benchmarks_are_found() -> None:
    expected = {"click_counts", "closed_sets", "relations", "round_growth", "similarity", "startup", "warc_ingest"}
    assert expected <= set(benchmark_names())
    assert not {"generate", "guard", "harness", "__main__"} & set(benchmark_names())
    for name in benchmark_names():
        assert "\ndef run(" in (BENCHMARKS / f"{name}.py").read_text(encoding="utf-8"), name


@pytest.mark.parametrize(("ours", "peer", "met"), [(1.0, 4.0, True), (2.0, 4.0, True), (3.0, 4.0, False)])
def test_a_ratio_is_held_to_its_aim(ours: float, peer: float, met: bool) -> None:
    result = compare("fruit", "pear", ours, peer, 0.5, "")
    assert (result["ratio"], result["met"]) == (ours / peer, met)


def test_quick_is_given_to_those_who_know_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def sized(*, quick: bool) -> list[Result]:
        return [without_peer("fruit", "", None, f"quick: {quick}")]

    install(monkeypatch, "fruit", sized)
    assert [run_benchmark("fruit", quick=quick)[0]["note"] for quick in (True, False)] == [
        "quick: True",
        "quick: False",
    ]
    install(monkeypatch, "fruit", lambda: [compare("fruit", "pear", 1, 2, 1, "")])
    assert run_benchmark("fruit", quick=False)[0]["met"] is True
    (left_out,) = run_benchmark("fruit", quick=True)
    assert (left_out["met"], left_out["note"]) == (None, "left out: it has no quick size")


def test_options_are_given_to_those_who_know_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def knowing(*, quick: bool, pages: int = 7) -> list[Result]:
        return [without_peer("fruit", "", None, f"{quick} {pages}")]

    install(monkeypatch, "fruit", knowing)
    given = {"pages": 9, "contexts": Path("none")}
    assert run_benchmark("fruit", quick=True, options=given)[0]["note"] == "True 9"
    assert run_benchmark("fruit", quick=True)[0]["note"] == "True 7"


def test_a_missing_peer_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> list[Result]:
        raise ModuleNotFoundError("No module named 'peach.stone'", name="peach.stone")

    install(monkeypatch, "fruit", missing)
    (result,) = run_benchmark("fruit", quick=False)
    assert (result["met"], result["note"]) == (None, "peach.stone is not installed")


def test_a_missing_module_of_our_own_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> list[Result]:
        raise ModuleNotFoundError("No module named 'semrank.transforms.fruit'", name="semrank.transforms.fruit")

    install(monkeypatch, "fruit", missing)
    with pytest.raises(ModuleNotFoundError):
        run_benchmark("fruit", quick=False)


def test_the_table_has_all_results() -> None:
    results = [compare("fruit", "pear", 1.0, 250.0, 0.1, "250 to 1"), without_peer("nut", "almond", 2.0, "none here")]
    head, fruit, fruit_note, nut, nut_note = table_lines(results)
    assert head.split() == ["benchmark", "peer", "ours", "s", "peer", "s", "ratio", "CPU", "aim", "met"]
    assert fruit.split() == ["fruit", "pear", "1", "250", "0.004", "-", "0.1", "yes"]
    assert nut.split() == ["nut", "almond", "-", "-", "-", "-", "2", "-"]
    assert (fruit_note.strip(), nut_note.strip()) == ("250 to 1", "none here")


def test_command_writes_results_and_a_chart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = [compare("fruit", "pear", 1.0, 4.0, 0.5, "halves"), without_peer("fruit", "peach", 1.0, "out of season")]
    install(monkeypatch, "fruit", lambda: results)
    assert command.main(["fruit", "--output", str(tmp_path / "out")]) == 0
    assert json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8")) == results
    assert "out of season" in capsys.readouterr().out
    pytest.importorskip("matplotlib")
    assert (tmp_path / "out" / "results.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_there_is_no_chart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    install(monkeypatch, "fruit", lambda: [compare("fruit", "pear", 1.0, 4.0, 0.5, "halves")])
    assert command.main(["--output", str(tmp_path)]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


def test_one_failure_leaves_the_others_their_results(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, "nut", fail)
    install(monkeypatch, "pear", lambda: [compare("pear", "peach", 1.0, 4.0, 0.5, "")])
    monkeypatch.setattr(command, "benchmark_names", lambda: ["nut", "pear"])
    assert command.main(["--output", str(tmp_path)]) == 1
    written = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert [(result["name"], result["met"]) for result in written] == [("nut", None), ("pear", True)]
    assert "expected a peach" in written[0]["note"]
    assert "ValueError" in capsys.readouterr().err


def test_an_unknown_name_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["peach"]) == 2
    assert capsys.readouterr().err.startswith("peach: no such benchmark, expected one of click_counts, closed_sets")
