"""Checks, before a job is handed to a cluster, what would leave it waiting without a word."""

from __future__ import annotations

import copy
import json
import socket
import time
import urllib.request
from pathlib import Path
from typing import Any

import apache_beam as beam
import grpc  # type: ignore[import-untyped]
from apache_beam.options.pipeline_options import FlinkRunnerOptions, PipelineOptions, PortableOptions, StandardOptions
from apache_beam.portability.api import beam_job_api_pb2, beam_job_api_pb2_grpc

from semrank.pipelines import __version__
from semrank.schemas.errors import InputError
from semrank.transforms.columnar import files

CONNECT_SECONDS = 5.0
"""How long an address may take to answer."""

JOB_SERVER_SECONDS = 20.0
"""How long a job server may take to list its jobs: a second if nothing else runs."""

SLOT_SECONDS = 10.0
"""How long to wait for slots that another job is about to leave."""

WORKER_SECONDS = 55.0
"""How long a first worker may take to answer, the submission of its job included: 15 s if nothing else runs."""

_EMBEDDED = ("embed", "[local]", "[auto]", "[collection]")
"""What stands instead of an address where Beam starts a server of its own."""


def is_remote(options: PipelineOptions) -> bool:
    """Whether workers are processes that a job server starts: in other folders, or on other machines."""
    return _job_endpoint(options) is not None or _flink_master(options) is not None


def path_for_workers(options: PipelineOptions, path: str) -> str:
    """A path that means the same to the command and to its workers, which have another working folder."""
    return str(Path(path).absolute()) if is_remote(options) and files.is_local(path) else path


class ClusterCheck:
    """The clusters that a process uses; each worker pool is tried once."""

    def __init__(self) -> None:
        self._tried: set[str] = set()

    def __call__(self, options: PipelineOptions) -> None:
        """Looks for the job server, for Flink and its slots, and lets one worker answer; nothing where none is used.

        Raises:
            InputError: an address is missing, nothing or another program listens there, or Flink has fewer slots than
                requested.
            RuntimeError: the slots are taken, or no worker answers.
        """
        master, endpoint = _flink_master(options), _job_endpoint(options)
        portable = options.view_as(PortableOptions).job_endpoint is not None
        if options.view_as(StandardOptions).runner == "PortableRunner" and not portable:
            raise InputError(
                "--runner PortableRunner: found no --job_endpoint, expected HOST:PORT of a Beam job server"
            )
        if endpoint is not None:
            _check_answers("--job_endpoint", endpoint, "a Beam job server")
            _check_job_server(endpoint)
        if master is not None:
            _check_slots(master, options.view_as(FlinkRunnerOptions).parallelism or 1)
        if endpoint is not None and endpoint not in self._tried:
            _check_worker(options, endpoint)
            self._tried.add(endpoint)


def _job_endpoint(options: PipelineOptions) -> str | None:
    endpoint: str | None = options.view_as(PortableOptions).job_endpoint
    return None if endpoint in _EMBEDDED else endpoint


def _flink_master(options: PipelineOptions) -> str | None:
    master: str | None = options.view_as(FlinkRunnerOptions).flink_master
    return None if master in _EMBEDDED else master


def _check_answers(option: str, address: str, expected: str) -> None:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise InputError(f"{option}: found '{address}', expected HOST:PORT of {expected}")
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
    except OSError as cause:
        reason = cause.strerror or str(cause) or type(cause).__name__
        raise InputError(f"{option} {address}: no answer ({reason}), expected {expected}") from cause


def _check_job_server(endpoint: str) -> None:
    """Asks for the jobs: Beam itself would wait for the answer of whatever program listens there."""
    with grpc.insecure_channel(endpoint) as channel:
        server = beam_job_api_pb2_grpc.JobServiceStub(channel)
        try:
            server.GetJobs(beam_job_api_pb2.GetJobsRequest(), timeout=JOB_SERVER_SECONDS)
        except grpc.RpcError as cause:
            # A job server need not know this call.
            if cause.code() is not grpc.StatusCode.UNIMPLEMENTED:
                raise InputError(
                    f"--job_endpoint {endpoint}: does not answer as a Beam job server does ({cause.details()})"
                ) from cause


def _check_slots(master: str, parallelism: int) -> None:
    """Waits until the given number of slots is free."""
    url = (master if "://" in master else f"http://{master}").rstrip("/") + "/overview"
    deadline = time.monotonic() + SLOT_SECONDS
    while True:
        try:
            with urllib.request.urlopen(url, timeout=CONNECT_SECONDS) as answer:
                overview = json.load(answer)
            total, free = int(overview["slots-total"]), int(overview["slots-available"])
        except (OSError, ValueError, KeyError, TypeError) as cause:
            raise InputError(
                f"--flink_master {master}: {url} can't be read ({cause}), expected Flink's REST address"
            ) from cause
        if total < parallelism:
            raise InputError(
                f"--parallelism {parallelism}: found {total} slots at {master}, expected at least {parallelism}"
            )
        if free >= parallelism:
            return
        if time.monotonic() > deadline:
            raise RuntimeError(
                f"{free} of the {total} slots at {master} are free after {SLOT_SECONDS:.0f} s, expected {parallelism}: "
                "other jobs are running; wait for them, or use a smaller --parallelism"
            )
        time.sleep(1)


def _check_worker(options: PipelineOptions, endpoint: str) -> None:
    """Runs a job of one element: a missing answer is the only sign of a worker that can't start."""
    config = options.view_as(PortableOptions).environment_config
    one_task = copy.deepcopy(options)
    one_task.view_as(FlinkRunnerOptions).parallelism = 1
    pipeline = beam.Pipeline(options=one_task)
    pipeline | "ask" >> beam.Create([__version__]) | "answer" >> beam.Map(_answer).with_output_types(str)
    try:
        result: Any = pipeline.run()
        state = result.wait_until_finish(duration=int(WORKER_SECONDS * 1000))
    except Exception as cause:
        lines = [line.strip() for line in str(cause).splitlines() if line.strip()] or [type(cause).__name__]
        named = [line for line in lines if "Error: " in line or "Exception: " in line]
        raise RuntimeError(
            f"the workers of {endpoint} (--environment_config {config}) can't be used: {(named or lines)[0]}"
        ) from cause
    if state != "DONE":
        result.cancel()
        raise RuntimeError(
            f"no worker of {endpoint} answered within {WORKER_SECONDS:.0f} s; expected workers at --environment_config "
            f"{config} that can import semrank {__version__}: see the log of the worker pool"
        )


def _answer(version: str) -> str:
    if version != __version__:
        raise RuntimeError(f"found semrank {__version__} on a worker, expected {version}")
    return version
