"""Schedules: rounds in order, missed nights caught up with, never two at once, old ones dropped."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest
import yaml

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "schedule"

COMMAND = """#!/usr/bin/env bash
echo "$@" >> {log}
while [ $# -gt 0 ]; do [ "$1" = --output ] && output=$2; shift; done
[ ! -e {folder}/fail ] || exit 1
mkdir -p "$output" && echo '{{}}' > "$output/manifest.json"
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for night in ("2026-01-01", "2026-01-02", "2026-01-03"):
        snapshot = tmp_path / "snapshots" / night
        snapshot.mkdir(parents=True)
        (snapshot / "manifest.json").write_text("{}", encoding="utf-8")
    (tmp_path / "seeds.txt").write_text("https://a.example/\n", encoding="utf-8")
    command = tmp_path / "semrank"
    command.write_text(COMMAND.format(log=tmp_path / "log", folder=tmp_path), encoding="utf-8")
    command.chmod(0o755)
    (tmp_path / "environment").write_text(f'SEMRANK={command}\nKEEP=2\nOPTIONS="--max-urls 5"\n', encoding="utf-8")
    return tmp_path


def run(place: Path) -> subprocess.CompletedProcess[str]:
    command = [str(FOLDER / "next_round.sh"), str(place), str(place / "environment")]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def calls(place: Path) -> list[str]:
    log = place / "log"
    return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


def test_missed_nights_are_caught_up_with_in_order(place: Path) -> None:
    (place / "snapshots" / "2026-01-03" / "manifest.json").unlink()
    assert run(place).returncode == 0
    first, second = calls(place)
    assert f"--seeds {place}/seeds.txt" in first
    assert f"--previous {place}/rounds/2026-01-01" in second
    assert "--max-urls 5" in second
    assert run(place).returncode == 0
    assert len(calls(place)) == 2
    (place / "snapshots" / "2026-01-03" / "manifest.json").write_text("{}", encoding="utf-8")
    assert run(place).returncode == 0
    assert f"--previous {place}/rounds/2026-01-02" in calls(place)[2]
    assert sorted(path.name for path in (place / "rounds").iterdir()) == ["2026-01-02", "2026-01-03"]
    assert sorted(path.name for path in (place / "snapshots").iterdir()) == ["2026-01-02", "2026-01-03"]


def test_a_failed_round_ends_the_run_and_is_tried_again(place: Path) -> None:
    (place / "fail").touch()
    assert run(place).returncode != 0
    assert len(calls(place)) == 1
    (place / "fail").unlink()
    assert run(place).returncode == 0
    assert len(calls(place)) == 4


def test_a_second_run_leaves_the_first_alone(place: Path) -> None:
    with subprocess.Popen(["flock", str(place / ".schedule.lock"), "sleep", "20"]) as holder:
        try:
            for _ in range(100):
                found = subprocess.run(
                    ["flock", "--nonblock", str(place / ".schedule.lock"), "true"], check=False, timeout=10
                )
                if found.returncode:
                    break
            done = run(place)
            assert done.returncode == 0
            assert "another run is at work" in done.stderr
            assert calls(place) == []
        finally:
            holder.terminate()


def test_the_other_schedules_are_well_formed() -> None:
    ast.parse((FOLDER / "airflow_rounds.py").read_text(encoding="utf-8"))
    workflow = yaml.safe_load((FOLDER / "cloud_scheduler.yaml").read_text(encoding="utf-8"))
    names = [name for step in workflow["main"]["steps"] for name in step]
    assert names.index("rank") < names.index("look") < names.index("finish")
