"""What a terminal and a redirected run show of a run's progress."""

from __future__ import annotations

import io
import re
import sys
import time

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from semrank.pipelines.cli import _set_up_logging, command_parser
from semrank.pipelines.local import progress
from semrank.pipelines.local.runner import LocalRunner


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def slowly(number: int, seconds: float) -> tuple[int, int]:
    time.sleep(seconds)
    return number, 1


def run(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, *options: str, seconds: float = 0.0) -> str:
    """What a run of three stages writes on standard error; one of them takes so many seconds for each element."""
    import semrank.pipelines.rank as command

    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "TICK_SECONDS", 0.0)
    given = ["--snapshot", "s", "--seeds", "s", "--output", "o", *options]
    _set_up_logging(command_parser("rank", command).parse_args(given))
    with beam.Pipeline(runner=LocalRunner(), options=PipelineOptions(["--workers=1"])) as pipeline:
        numbers = pipeline | beam.Create([1, 2]) | "count" >> beam.Map(slowly, seconds)
        numbers | "group" >> beam.GroupByKey() | "sum" >> beam.MapTuple(lambda key, values: key + sum(values))
    return stream.getvalue()


def test_a_terminal_shows_one_line_that_rewrites_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    text = run(Terminal(), monkeypatch, seconds=0.6)
    first, *lines = text.split("\r\x1b[K")
    assert first == ""
    assert "\n" not in text
    assert lines[0] == "stage 1 of 2: count, 0 rows read"
    assert lines[-1].startswith("stage 2 of 2: sum, 0 rows read")
    assert any(re.fullmatch(r"stage 1 of 2: count, 0 rows read, about \d+ s left", line) for line in lines)


def test_redirected_and_quiet_runs_show_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(io.StringIO(), monkeypatch) == ""
    assert run(Terminal(), monkeypatch, "--quiet") == ""


def test_who_asks_for_more_gets_a_line_a_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = run(io.StringIO(), monkeypatch, "--verbose").splitlines()
    assert [line.split(",")[0] for line in lines] == ["stage 1 of 2: count", "stage 2 of 2: sum"]
