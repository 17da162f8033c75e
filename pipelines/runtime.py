"""Runs a pipeline on the chosen runner, and reads its metrics."""

from __future__ import annotations

import argparse
import copy
import functools
import logging
import platform
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.metrics.metric import MetricsFilter
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions, StandardOptions

from semrank.pipelines import __version__
from semrank.pipelines.cluster import ClusterCheck
from semrank.pipelines.local.runner import LocalRunner
from semrank.pipelines.options import expected_one
from semrank.schemas.errors import InputError
from semrank.transforms.columnar.beam import (
    GROUP_BYTES,
    HELD_BYTES,
    MILLISECONDS,
    NAMESPACE,
    RECORD_BYTES,
    ROWS_IN,
    ROWS_OUT,
    limit_memory,
)
from semrank.transforms.columnar.ids import IdCollisionError

DEFAULT_RUNNER = f"{LocalRunner.__module__}.{LocalRunner.__qualname__}"
"""The default runner."""

EMBEDDED_RUNNER = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"
"""Beam's own runner in one process. Beam's DirectRunner would first try to download another one."""

_RUNNERS = {
    None: DEFAULT_RUNNER,
    "LocalRunner": DEFAULT_RUNNER,
    "DirectRunner": EMBEDDED_RUNNER,
    "FnApiRunner": EMBEDDED_RUNNER,
}
"""Names of runners, and the runners that are used for them."""

View = TypeVar("View", bound=PipelineOptions)

log = logging.getLogger(NAMESPACE)

_check_cluster = ClusterCheck()


@dataclass(frozen=True)
class StageMetrics:
    """The metrics of a stage.

    Attributes:
        rows_in: input rows.
        rows_out: output rows.
        seconds: time spent in its own function, summed over workers.
        largest_record: bytes of the largest table that it sent through a shuffle.
        largest_group: bytes of the largest group that it received.
        shuffled: bytes of all tables that it sent through a shuffle.
        held: bytes on a worker of the tables that it holds whole, as estimated by `worker_memory`; 0 if there are none.
    """

    rows_in: int
    rows_out: int
    seconds: float
    largest_record: int
    largest_group: int
    shuffled: int
    held: int


@dataclass(frozen=True)
class RunMetrics:
    """Stages by name, and further counters of stages."""

    stages: dict[str, StageMetrics]
    counters: dict[str, int]
    seconds: float


class BuildOptions(PipelineOptions):
    """Beam's options with cached views: each transform uses several, and each parses all flags."""

    _flags: list[str]

    def view_as(self, cls: type[View]) -> View:
        """The options of a class; all views share their values."""
        views: dict[type[PipelineOptions], Any] = self.__dict__.setdefault("_views", {})
        if cls not in views:
            views[cls] = self._view(cls)
        view: View = views[cls]
        return view

    def _view(self, cls: type[View]) -> View:
        key: tuple[Any, ...] = (cls, tuple(self._flags))
        parsed, names = _parsed(*key)
        view = _bare(cls, self._flags, parsed, self._all_options)
        for name in names:
            if name not in self._all_options:
                self._all_options[name] = copy.deepcopy(getattr(parsed, name))
        # Beam collects and sorts the names at each access to an option.
        view.__dict__["_visible_option_list"] = partial(list, names)
        return view

    def __deepcopy__(self, memo: dict[int, Any]) -> BuildOptions:
        """The same options without the views: Beam parses all flags once more for each view that it copies."""
        return _bare(BuildOptions, self._flags, self._visible_options, copy.deepcopy(self._all_options, memo))


def _bare(cls: type[View], flags: list[str], parsed: argparse.Namespace, values: dict[str, Any]) -> View:
    """Options of a class whose flags have been parsed, with the values that all views share."""
    view = cls.__new__(cls)
    view._flags, view._visible_options, view._all_options = flags, parsed, values
    return view


@functools.cache
def _parsed(cls: type[PipelineOptions], flags: Sequence[str]) -> tuple[argparse.Namespace, Sequence[str]]:
    """The options of a class that some flags give, and their names; a process parses them once for all pipelines."""
    options = cls(flags)
    return options._visible_options, options._visible_option_list()


def beam_options(beam_arguments: Sequence[str]) -> PipelineOptions:
    """Beam's options of a command line, with the local runner as default.

    Raises:
        InputError: an option that neither the command nor Beam knows.
    """
    classes: list[Any] = [PipelineOptions, *_subclasses(PipelineOptions)]
    parser = _beam_parser(*classes)
    try:
        parsed, unknown = parser.parse_known_args(list(beam_arguments))
    except (SystemExit, argparse.ArgumentError) as cause:
        raise InputError(f"options {' '.join(beam_arguments)}: not understood by Apache Beam") from cause
    if unknown:
        word = "option" if unknown[0].startswith("-") else "argument"
        quotes = "; a pattern such as *.gz must be in quotes" if Path(unknown[0]).exists() else ""
        raise InputError(
            f"{unknown[0]}: unknown {word}; `--help` lists the command's own, others must be Apache Beam's{quotes}"
        )
    runner = getattr(parsed, "runner", None)
    if runner is None and any(argument.startswith("--direct_") for argument in beam_arguments):
        runner = "DirectRunner"
    arguments = list(beam_arguments)
    if runner in _RUNNERS:
        arguments = [*_without_runner(arguments), f"--runner={_RUNNERS[runner]}"]
    if _RUNNERS.get(runner) == DEFAULT_RUNNER:
        # Types decide on coders, which this runner does without.
        arguments.append("--no_pipeline_type_check")
    return BuildOptions(arguments)


@functools.cache
def _beam_parser(*classes: Any) -> argparse.ArgumentParser:
    """A parser of the options of some of Beam's option classes."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for options in classes:
        if "_add_argparse_args" in options.__dict__:
            options._add_argparse_args(_Lenient(parser))
    return parser


def _subclasses(cls: type[Any]) -> list[type[Any]]:
    children: list[type[Any]] = cls.__subclasses__()
    return [nested for child in children for nested in (child, *_subclasses(child))]


class _Lenient:
    """Adds options to a parser once: several option classes of Beam declare the same ones."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._parser = parser

    def add_argument(self, *names: str, **options: Any) -> None:
        known = self._parser._option_string_actions
        fresh = [name for name in names if name not in known]
        if fresh:
            self._parser.add_argument(*fresh, **{key: value for key, value in options.items() if key != "required"})

    def add_value_provider_argument(self, *names: str, **options: Any) -> None:
        self.add_argument(*names, **options)

    def add_mutually_exclusive_group(self, **_: Any) -> _Lenient:
        return self

    def add_argument_group(self, *_: Any, **__: Any) -> _Lenient:
        return self


def _without_runner(arguments: Sequence[str]) -> list[str]:
    kept: list[str] = []
    skip = False
    for argument in arguments:
        if skip:
            skip = False
        elif argument == "--runner":
            skip = True
        elif not argument.startswith("--runner="):
            kept.append(argument)
    return kept


def run_pipeline(
    options: PipelineOptions, build: Callable[[beam.Pipeline], object], *, worker_memory: int | None = None
) -> RunMetrics | None:
    """Builds and runs a pipeline to its end.

    Args:
        options: Beam's options.
        build: builds the pipeline.
        worker_memory: bytes that a worker process has, or None for all that its machine has.

    Returns:
        Its metrics, or None if it was only submitted: a template's job runs after the end of the program.

    Raises:
        InputError: a stage found an input unusable, the runner can't be used, or the cluster does not answer.
        IdCollisionError: URLs share an id.
        RuntimeError: the run failed.
    """
    begin = time.monotonic()
    _check_cluster(options)
    # Runners change their options, which later pipelines use, too.
    options = copy.deepcopy(options)
    try:
        pipeline = beam.Pipeline(options=options)
    except (ValueError, ImportError) as cause:
        runner = options.view_as(StandardOptions).runner
        known = ["LocalRunner", *StandardOptions.KNOWN_RUNNER_NAMES]
        if "." not in runner and runner not in known:
            raise InputError(f"--runner: {expected_one(runner, known)}, or the full name of a class") from cause
        raise InputError(f"--runner {runner}: can't be used: {' '.join(str(cause).split())}") from cause
    build(pipeline)
    limit_memory(pipeline, worker_memory)
    try:
        result = pipeline.run()
        if options.view_as(GoogleCloudOptions).template_location:
            return None
        state = result.wait_until_finish()
    except Exception as cause:
        raise _user_error(cause) or _collision(cause) or RuntimeError(_worker_error(cause)) from cause
    if state not in (None, "DONE"):
        raise RuntimeError(f"the runner ended the job in state {state}, expected DONE")
    metrics = _metrics(result, time.monotonic() - begin)
    log.debug("%d stages in %.1f s", len(metrics.stages), metrics.seconds)
    return metrics


def _user_error(cause: BaseException) -> InputError | None:
    """The InputError inside a worker's error, which a runner passes on as text."""
    chained: BaseException | None = cause
    while chained is not None:
        if isinstance(chained, InputError):
            return InputError(_without_step(str(chained)))
        chained = chained.__cause__ or chained.__context__
    found = re.search(r"schemas\.(?:errors\.InputError|tables\.\w+): (.+)", str(cause))
    return InputError(_without_step(found.group(1))) if found else None


def _collision(cause: BaseException) -> IdCollisionError | None:
    """The IdCollisionError inside a worker's error."""
    ids = IdCollisionError.ids_of_message(f"{cause} {cause.__cause__ or cause.__context__}").tolist()
    return IdCollisionError(ids) if ids else None


def _without_step(text: str) -> str:
    """An error's message without the step that Beam adds, which users don't know."""
    return re.sub(r" \[while running .*", "", text, flags=re.DOTALL)


def _worker_error(cause: BaseException) -> str:
    """The line that names the error inside a runner's message, with the step that raised it."""
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    if not lines:
        return type(cause).__name__
    lost = re.search(r'of RPC that terminated with:.*?details = "([^"]*)"', str(cause), re.DOTALL)
    if lost:
        return f"the job server is lost: {lost[1]}"
    named = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Invalid)\b", line)]
    step = re.search(r"\[while running '([^']*)'\]", "\n".join([str(cause), *getattr(cause, "__notes__", ())]))
    text = (named or lines)[0].split(" [while running")[0]
    return f"{text} (in '{step.group(1)}')" if step else text


def _metrics(result: Any, seconds: float) -> RunMetrics:
    query = result.metrics().query(MetricsFilter().with_namespace(NAMESPACE))
    counters: dict[str, int] = {}
    for counter in query["counters"]:
        name = counter.key.metric.name
        counters[name] = counters.get(name, 0) + (_measured(counter) or 0)
    largest: dict[str, int] = {}
    total: dict[str, int] = {}
    for distribution in query["distributions"]:
        name = distribution.key.metric.name
        measured = _measured(distribution)
        if measured is not None:
            largest[name] = max(largest.get(name, 0), measured.max or 0)
            total[name] = total.get(name, 0) + (measured.sum or 0)
    names = sorted({name.rsplit("/", 1)[0] for name in counters if name.endswith(f"/{ROWS_IN}")})
    stages = {
        name: StageMetrics(
            counters.get(f"{name}/{ROWS_IN}", 0),
            counters.get(f"{name}/{ROWS_OUT}", 0),
            counters.get(f"{name}/{MILLISECONDS}", 0) / 1000,
            largest.get(f"{name}/{RECORD_BYTES}", 0),
            largest.get(f"{name}/{GROUP_BYTES}", 0),
            total.get(f"{name}/{RECORD_BYTES}", 0),
            largest.get(f"{name}/{HELD_BYTES}", 0),
        )
        for name in names
    }
    # A stage without input rows has a time as well.
    own = (ROWS_IN, ROWS_OUT, MILLISECONDS)
    kept = {name: count for name, count in sorted(counters.items()) if name.rsplit("/", 1)[-1] not in own}
    return RunMetrics(stages, kept, seconds)


def _measured(result: Any) -> Any:
    """A metric's value: not every runner reports committed values, and a metric without a value was never counted."""
    return result.attempted if result.committed is None else result.committed


def versions() -> dict[str, str]:
    """Versions that a result depends on, for manifests."""
    return {
        "semrank": __version__,
        "python": platform.python_version(),
        "apache-beam": beam.__version__,
        "pyarrow": pa.__version__,
        "numpy": np.__version__,
    }


def stage_rows(metrics: RunMetrics) -> dict[str, dict[str, float]]:
    """The stages of a run for its manifest."""
    return {
        name: {
            "rows_in": stage.rows_in,
            "rows_out": stage.rows_out,
            "seconds": round(stage.seconds, 3),
            "largest_record_bytes": stage.largest_record,
            "largest_group_bytes": stage.largest_group,
            "shuffled_bytes": stage.shuffled,
            "held_bytes": stage.held,
        }
        for name, stage in metrics.stages.items()
    }
