"""Schedules: rounds in order, missed nights caught up with, never two at once, old ones dropped."""

from __future__ import annotations

import contextlib
import json
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from urllib.parse import unquote

import pytest
from apache_beam.options.pipeline_options import GoogleCloudOptions

from deploy.dataflow.main import command_arguments
from deploy.dataflow.template import name_of, options
from semrank.pipelines import rank as rank_command
from semrank.pipelines.cli import command_parser
from semrank.pipelines.config import round_config
from semrank.pipelines.runtime import beam_options
from tests.deploy.workflow import Connector, RaisedError, Workflow

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


def test_folders_and_environments_that_are_not_there(place: Path) -> None:
    script = str(FOLDER / "next_round.sh")
    for given, told in (
        (["nix", "nightly.env"], "nix: no such folder"),
        ([str(place), "nightly.env"], "nightly.env: can't be read"),
        ([str(place), "environment"], ""),
    ):
        done = subprocess.run([script, *given], cwd=place, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, told in done.stderr) == (2 if told else 0, True)
        assert len(done.stderr.splitlines()) == bool(told)


def test_missed_nights_are_caught_up_with_in_order(place: Path) -> None:
    (place / "snapshots" / "2026-01-03" / "manifest.json").unlink()
    assert run(place).returncode == 0
    first, second = calls(place)
    assert f"--seeds {place}/seeds.txt" in first
    assert f"--previous {place}/rounds/2026-01-01" in second
    assert "--max-urls 5" in second
    assert run(place).stderr.splitlines() == [
        f"{place}/snapshots/2026-01-03/ is unfinished; its round and later ones wait for it",
        f"no round is due in {place}",
    ]
    assert len(calls(place)) == 2
    (place / "snapshots" / "2026-01-03" / "manifest.json").write_text("{}", encoding="utf-8")
    assert run(place).returncode == 0
    assert f"--previous {place}/rounds/2026-01-02" in calls(place)[2]
    assert sorted(path.name for path in (place / "rounds").iterdir()) == ["2026-01-02", "2026-01-03"]
    assert sorted(path.name for path in (place / "snapshots").iterdir()) == ["2026-01-02", "2026-01-03"]
    done = run(place)
    assert (done.returncode, done.stderr) == (0, f"no round is due in {place}\n")


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
            assert "another run is already working in" in done.stderr
            assert calls(place) == []
        finally:
            holder.terminate()


class Cloud:
    """A bucket, Dataflow and Cloud Run, as far as the workflow calls them."""

    def __init__(self, objects: set[str], state: str = "JOB_STATE_DONE") -> None:
        self.objects = objects
        self.launched: list[dict[str, str]] = []
        self._states = ["JOB_STATE_RUNNING", state]
        self._polls = 0

    def connectors(self) -> dict[str, Connector]:
        return {
            "googleapis.storage.v1.objects.get": self.get,
            "googleapis.dataflow.v1b3.projects.locations.flexTemplates.launch": self.launch,
            "googleapis.dataflow.v1b3.projects.locations.jobs.get": self.job,
            "googleapis.run.v2.projects.locations.jobs.run": self.finish,
            "sys.sleep": self.sleep,
        }

    def get(self, bucket: str, object: str) -> None:  # noqa: A002
        assert bucket == "BUCKET"
        if unquote(object) not in self.objects:
            raise RaisedError(SimpleNamespace(tags=["HttpError"], code=404))

    def sleep(self, seconds: int) -> None:
        assert 0 < seconds <= 60

    def launch(self, body: dict[str, Any], **place: str) -> SimpleNamespace:
        assert place == {"projectId": "PROJECT", "location": "REGION"}
        parameters = body["launchParameter"]["parameters"]
        assert set(parameters) <= {name_of(action) for action in options()}
        assert re.fullmatch("[a-z]([-a-z0-9]*[a-z0-9])?", body["launchParameter"]["jobName"])
        self.launched.append(parameters)
        self._polls = 0
        return SimpleNamespace(job=SimpleNamespace(id="1"))

    def job(self, **place: str) -> SimpleNamespace:
        assert place == {"projectId": "PROJECT", "location": "REGION", "jobId": "1"}
        self._polls += 1
        return SimpleNamespace(currentState=self._states[min(self._polls, 2) - 1])

    def finish(self, name: str, body: dict[str, Any]) -> None:
        assert name == "projects/PROJECT/locations/REGION/jobs/semrank-finish"
        ((command, option, folder),) = [each["args"] for each in body["overrides"]["containerOverrides"]]
        assert (command, option) == ("finish", "--round")
        assert self._polls == 2, "the job was still running"
        self.objects.add(folder.removeprefix("gs://BUCKET/") + "/manifest.json")

    def run(self) -> Any:
        text = (FOLDER / "cloud_scheduler.yaml").read_text(encoding="utf-8")
        return Workflow(text, self.connectors(), datetime(2026, 1, 10, 2, tzinfo=UTC).timestamp()).run()


def manifests(kind: str, *days: int) -> set[str]:
    return {f"{kind}/2026-01-{day:02}/manifest.json" for day in days}


def test_the_workflow_catches_up_with_missed_nights_in_order() -> None:
    cloud = Cloud(manifests("snapshots", 5, 6, 7, 9, 10) | manifests("rounds", 5, 6))
    assert cloud.run() == "2026-01-10"
    assert [(each["previous"][-10:], each["snapshot"][-10:], each["output"]) for each in cloud.launched] == [
        ("2026-01-06", "2026-01-07", "gs://BUCKET/rounds/2026-01-07"),
        ("2026-01-07", "2026-01-09", "gs://BUCKET/rounds/2026-01-09"),
        ("2026-01-09", "2026-01-10", "gs://BUCKET/rounds/2026-01-10"),
    ]
    cloud.launched.clear()
    assert cloud.run() == "2026-01-10"
    assert cloud.launched == []


def test_the_workflow_ends_with_a_failed_job() -> None:
    cloud = Cloud(manifests("snapshots", 9, 10) | manifests("rounds", 8), state="JOB_STATE_FAILED")
    with pytest.raises(RaisedError, match="job 1 ended as JOB_STATE_FAILED"):
        cloud.run()
    assert len(cloud.launched) == 1


def test_the_workflow_wants_a_first_round() -> None:
    cloud = Cloud(manifests("snapshots", 10))
    with pytest.raises(RaisedError, match="no finished round within 14 nights"):
        cloud.run()


AIRFLOW = {
    "airflow.sdk": ("DAG", "Variable"),
    "airflow.providers.apache.beam.operators.beam": ("BeamRunPythonPipelineOperator",),
    "airflow.providers.google.cloud.sensors.gcs": ("GCSObjectExistenceSensor",),
}
"""Modules of Airflow 3 with its providers, and what the DAG takes from them."""

OPERATOR = {"py_file", "runner", "default_pipeline_options", "pipeline_options", "py_interpreter"}
SENSOR = {"bucket", "object", "mode"}
"""Parameters of both that the DAG uses, beside every task's own."""


class Task:
    """A task of a DAG, with what it was made with and the tasks that it waits for."""

    def __init__(self, task_id: str, **settings: Any) -> None:
        self.task_id, self.settings = task_id, settings
        self.upstream: list[str] = []

    def __rrshift__(self, others: list[Task]) -> Task:
        self.upstream = [other.task_id for other in others]
        return self


def airflow_dag(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> tuple[dict[str, Any], dict[str, Task]]:
    """Settings of the DAG, and its tasks by name, made by stand-ins for Airflow's classes."""
    tasks: dict[str, Task] = {}
    settings: dict[str, Any] = {}

    class Dag(contextlib.nullcontext[None]):
        def __init__(self, dag_id: str, **given: Any) -> None:
            super().__init__()
            settings.update(given, dag_id=dag_id)

    def task(known: set[str]) -> Callable[..., Task]:
        def make(*, task_id: str, **given: Any) -> Task:
            assert set(given) == known
            return tasks.setdefault(task_id, Task(task_id, **given))

        return make

    def variable(name: str, deserialize_json: bool = False) -> Any:
        return json.loads(variables[name]) if deserialize_json else variables[name]

    classes = {
        "DAG": Dag,
        "Variable": SimpleNamespace(get=variable),
        "BeamRunPythonPipelineOperator": task(OPERATOR),
        "GCSObjectExistenceSensor": task(SENSOR),
    }
    for module, names in AIRFLOW.items():
        stand_in = ModuleType(module)
        for name in names:
            setattr(stand_in, name, classes[name])
        monkeypatch.setitem(sys.modules, module, stand_in)
    runpy.run_path(str(FOLDER / "airflow_rounds.py"))
    return settings, tasks


def test_the_airflow_dag_ranks_each_night_from_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {
        "semrank_bucket": "bucket",
        "semrank_first_night": "2026-01-02",
        "semrank_runner": "DataflowRunner",
        "semrank_options": '{"project": "p", "region": "r", "temp_location": "gs://b/t", "save_main_session": false}',
        "semrank_home": str(FOLDER.parents[1]),
        "semrank_python": "python3",
    }
    settings, tasks = airflow_dag(monkeypatch, variables)
    assert (settings["catchup"], settings["max_active_runs"]) == (True, 1)
    assert settings["default_args"]["depends_on_past"] is True
    assert settings["start_date"] == datetime(2026, 1, 2, tzinfo=UTC)
    waiting = {name: task.settings["object"] for name, task in tasks.items() if name.startswith("wait")}
    assert set(tasks["rank"].upstream) == set(waiting)

    rank = tasks["rank"].settings
    assert Path(rank["py_file"]).is_file()
    # Beam's operator turns options into arguments so: false ones are left out, true ones are bare.
    given = {**rank["default_pipeline_options"], **rank["pipeline_options"], "labels": "airflow-version=v3-0-0"}
    passed = [
        f"--{name}" if value is True else f"--{name}={value}" for name, value in given.items() if value is not False
    ]
    arguments = command_arguments([f"--runner={rank['runner']}", *passed])
    parsed, beam_arguments = command_parser("rank", rank_command).parse_known_args(arguments)
    round_config(parsed)
    assert beam_options(beam_arguments).view_as(GoogleCloudOptions).project == "p"
    assert f"gs://bucket/{waiting['wait_for_snapshot']}" == f"{parsed.snapshot}/manifest.json"
    assert f"gs://bucket/{waiting['wait_for_last_round']}" == f"{parsed.previous}/manifest.json"
    assert parsed.output == "gs://bucket/rounds/{{ ds }}"
