"""Hostile inputs are measured apart, and one that is not held to its bound fails the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import hostile
from tests.faults.hostile import HARM, INPUTS, Hostile, Outcome
from tests.support.apart import MEBIBYTE

SHARE = 1 / 1_000


def test_a_small_one_is_read_and_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostile, "QUICK_SHARE", SHARE)
    assert hostile.main(["line-log", "--quick"]) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head == hostile.HEAD
    assert line.startswith("a line of 1 GiB in an access log")
    assert "records 2" in line


ELSEWHERE = {"users", "users-paper", "one-word", "links-wat", "full-disk", "two-at-once", "interrupt", "null-words"}
"""What other tests do as well, and a small record of WAT or list of nulls, which are no different from others."""


@pytest.mark.parametrize("name", sorted(set(INPUTS) - ELSEWHERE))
def test_each_can_be_made_and_read(name: str, tmp_path: Path) -> None:
    counts = INPUTS[name].prepare(SHARE, tmp_path)()
    assert counts
    assert all(count >= 0 for count in counts.values())
    assert sum(counts.values()) > 0
    assert not counts.get(HARM)


def test_one_that_is_not_held_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    known = INPUTS["links"]
    within = Outcome("links", 1.0, known.bound_bytes, {"links": 2_000})
    for outcome, held in (
        (within, True),
        (Outcome("links", 1.0, known.bound_bytes + 1, {}), False),
        (Outcome("links", 1.0, 0, {HARM: 1}), False),
        (Outcome("links", 0.0, 0, {}, "the process died with status -9"), False),
    ):
        monkeypatch.setattr(hostile, "measure", lambda *_, outcome=outcome: outcome)
        assert outcome.held == held
        assert hostile.main(["links"]) == int(not held)
    told = capsys.readouterr().out
    assert "links 2,000" in told
    assert "the process died with status -9" in told


def _dies(share: float, folder: Path) -> hostile.Read:
    raise SystemExit(f"{share} {folder.name}")


def test_what_goes_wrong_is_told_not_raised(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Outcome] = []

    class Sender:
        send = staticmethod(sent.append)

    monkeypatch.setitem(INPUTS, "dies", Hostile("what dies", MEBIBYTE, _dies))
    hostile._measure("dies", 0.5, "/tmp/here", Sender())  # type: ignore[arg-type]
    assert sent == [Outcome("dies", 0.0, 0, {}, "SystemExit: 0.5 here")]
    assert "SystemExit" in capfd.readouterr().err


def test_an_input_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert hostile.main(["zip"]) == 2
    assert capsys.readouterr().err.startswith("zip: no such input, expected some of ")
