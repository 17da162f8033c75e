"""Fuzzing for long: what is found is counted, kept and fails the command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.fuzz import campaign

DONE = "Done 30 runs in 2 second(s)\nstat::number_of_executed_units: 30\nstat::peak_rss_mb:           44\n"
ENDED = "==1== libFuzzer: deadly signal\nstat::number_of_executed_units: 7\nstat::peak_rss_mb:           55\n"


@pytest.fixture
def by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "engine", lambda: "mutation")


@pytest.mark.usefixtures("by_chance")
def test_the_command_fuzzes_what_it_is_asked_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign.main(["url", "seeds", "--seconds", "0.1", "--findings", str(tmp_path)]) == 0
    engine, head, *lines, last = capsys.readouterr().out.splitlines()
    assert engine == "engine: mutation, 0.1 s a target"
    assert head == campaign.HEAD
    assert [line.split()[0] for line in lines] == ["url", "seeds"]
    inputs, crashes, hangs, peak = (int(word.replace(",", "")) for word in last.split()[1:])
    assert inputs == sum(int(line.split()[1].replace(",", "")) for line in lines) > 4
    assert (crashes, hangs) == (0, 0)
    assert 50 < peak < 1_000
    assert list(tmp_path.iterdir()) == []


def test_the_fastest_targets_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = {"url": 100, "seeds": 10, "html": 30}
    seeds: list[tuple[str, int]] = []

    def tried(target: str, _seconds: float, _findings: Path, seed: int) -> campaign.Fuzzed:
        seeds.append((target, seed))
        return campaign.Fuzzed(target, rates[target], 0, 0, 60 + seed)

    monkeypatch.setattr(campaign, "fuzz", tried)
    monkeypatch.setattr(campaign, "FASTEST", 2)
    assert campaign.main([*rates, "--inputs", "300", "--findings", str(tmp_path)]) == 0
    assert seeds == [("url", 0), ("seeds", 0), ("html", 0), ("url", 1), ("html", 1), ("url", 2)]
    *_, of_urls, of_html, last = capsys.readouterr().out.splitlines()
    assert of_urls.split() == ["url,", "all", "300", "0", "0", "62"]
    assert of_html.split() == ["html,", "all", "60", "0", "0", "61"]
    assert last.split() == ["all", "370", "0", "0", "62"]


def test_a_target_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign.main(["url", "telegram"]) == 2
    assert capsys.readouterr().err.startswith("telegram: no such target, expected some of ")


@pytest.fixture
def guided(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """What libFuzzer is called with; it finds an input that crashes, one that hangs, then nothing."""
    calls: list[list[str]] = []

    def output(program: Sequence[str], seconds: float) -> str:
        assert seconds > 0
        calls.append(list(program))
        found = {1: "url-crash-1", 2: "url-timeout-2"}.get(len(calls))
        if found is None:
            return DONE
        (tmp_path / found).write_bytes(b"x")
        return ENDED

    monkeypatch.setattr(campaign, "engine", lambda: "atheris")
    monkeypatch.setattr(campaign, "_output", output)
    return calls


def test_what_is_found_is_counted_and_fails_the_command(
    guided: list[list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "url-crash-0").write_bytes(b"found earlier")
    assert campaign.main(["url", "--seconds", "8", "--findings", str(tmp_path)]) == 1
    assert capsys.readouterr().out.splitlines()[-1].split() == ["all", "44", "1", "1", "55"]
    assert len(guided) == 3
    for call, seconds in zip(guided, (8, 4, 2), strict=True):
        assert f"-max_total_time={seconds}" in call
        assert f"-rss_limit_mb={campaign.MEMORY_MIB}" in call
        assert "url" in call


def test_an_engine_that_does_not_begin_is_no_success(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(campaign, "engine", lambda: "atheris")
    monkeypatch.setattr(campaign, "_output", lambda *_: "ImportError: no module named atheris\n")
    with pytest.raises(RuntimeError, match="url is not fuzzed: ImportError"):
        campaign.fuzz("url", 1, tmp_path)


def test_a_process_that_dies_by_chance_is_a_crash(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(campaign, "engine", lambda: "mutation")
    monkeypatch.setattr(campaign, "_output", lambda *_: "Segmentation fault\n")
    assert campaign.fuzz("url", 1, tmp_path) == campaign.Fuzzed("url", 0, 1, 0, 0)
