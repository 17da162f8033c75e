"""Rounds back to back: what they leave behind is found."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults import soak
from tests.faults.soak import State


@pytest.fixture
def one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "WARM_ROUNDS", 1)
    monkeypatch.setattr(soak, "FEWEST_ROUNDS", 1)
    monkeypatch.setattr(soak, "PROFILES", ("formica-2006",))


@pytest.mark.usefixtures("one_round")
def test_the_command_prints_both_states(capsys: pytest.CaptureFixture[str]) -> None:
    before = tempfile.gettempdir()
    status = soak.main(["--minutes", "0"])
    first, last, verdict = capsys.readouterr().out.splitlines()
    assert first.startswith("after     1 rounds: ")
    assert last.startswith("after     2 rounds: ")
    for line in (first, last):
        assert line.endswith(" 0 temporary files")
        assert " file handles, " in line
    assert (status, verdict) in ((0, "flat"), (1, "NOT FLAT"))  # one round more may still warm pools
    assert tempfile.gettempdir() == before


def test_whatever_is_left_behind_is_not_flat(monkeypatch: pytest.MonkeyPatch) -> None:
    first = State(rounds=3, memory_bytes=100, handles=5, threads=2, temporary=0)
    assert soak.is_flat(first, replace(first, rounds=90, memory_bytes=110))
    for change in ({"memory_bytes": 111}, {"handles": 6}, {"threads": 3}, {"temporary": 1}):
        last = replace(first, rounds=90, **change)
        assert not soak.is_flat(first, last)
        monkeypatch.setattr(soak, "soak", lambda _, states=(first, last): states)
        assert soak.main(["--quick"]) == 1


def test_what_is_open_and_lies_about_is_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = soak.state(1)
    with (tmp_path / "left").open("wb"):
        after = soak.state(2)
    assert (after.handles, after.temporary) == (before.handles + 1, before.temporary + 1)
    assert after.memory_bytes > 10_000_000


def test_a_round_that_fails_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "semrank", lambda _: 2)
    with pytest.raises(RuntimeError, match=r"semrank sample --output \S+ ended with status 2, expected 0"):
        soak.soak(0)
