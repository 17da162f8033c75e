"""Memory of a worker: the option's value, or this machine's share for each local worker."""

from __future__ import annotations

import argparse
import os
import re
from dataclasses import dataclass

from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions

from semrank.pipelines.local.options import EXCHANGE_SHARE, LocalOptions, local_settings
from semrank.pipelines.options import BEAM_GROUP, option, read_options
from semrank.pipelines.runtime import DEFAULT_RUNNER, EMBEDDED_RUNNER
from semrank.schemas.errors import InputError
from semrank.transforms.columnar.worker_memory import OPTION, OWN_BYTES, machine_bytes, shown_bytes

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True)
class WorkerOptions:
    """What local workers are given."""

    workers: int | None = option(
        None,
        "worker processes of a local run; the result does not depend on it (default: the processors that the command "
        "may use)",
        BEAM_GROUP,
        metavar="N",
        low=1,
    )
    temp: str | None = option(
        None,
        "folder for what a local run's stages exchange beyond a quarter of --worker-memory (default: the system's "
        "folder for temporary files)",
        BEAM_GROUP,
        metavar="DIR",
    )
    worker_memory: str | None = option(
        None,
        "memory of one worker process, as in 4G or 800M; a run that needs more of it is refused (default: a local "
        "worker's share of the machine or container; elsewhere all memory of the worker's machine)",
        BEAM_GROUP,
        metavar="SIZE",
        pattern="[0-9]{1,15}[KMGTkmgt]?(i?[Bb])?",
        example="bytes, or a whole number with K, M, G or T (1024 each)",
    )


def worker_memory(arguments: argparse.Namespace, options: PipelineOptions) -> int | None:
    """Hands the options of local workers on to the runner.

    Returns:
        Bytes that a worker process has; None if workers determine it on their own machines.

    Raises:
        InputError: the memory is no size, or less than a worker takes without any data; or the other options are
            unusable.
    """
    own = read_options(WorkerOptions, arguments)
    runner = options.view_as(StandardOptions).runner
    local = options.view_as(LocalOptions)
    local.workers, local.temp = own.workers, own.temp
    if runner != DEFAULT_RUNNER and (own.workers or own.temp):
        name = "--workers" if own.workers else "--temp"
        raise InputError(f"{name}: found with --runner {runner.rpartition('.')[2]}, expected a local run")
    if own.worker_memory is not None:
        size = _size(own.worker_memory)
        local.exchange_bytes = int(size * EXCHANGE_SHARE)
        return size
    if runner == DEFAULT_RUNNER:
        return machine_bytes() // local_settings(options).workers
    return machine_bytes() // _local_workers(options.view_as(DirectOptions)) if runner == EMBEDDED_RUNNER else None


def _size(text: str) -> int:
    number, unit = re.split(r"(?<=\d)(?!\d)", text.upper(), maxsplit=1)
    size = int(number) * _UNITS[unit[:1].strip("B")]
    if size <= OWN_BYTES:
        raise InputError(
            f"{OPTION}: found {shown_bytes(size)}, expected more than the {shown_bytes(OWN_BYTES)} that a worker "
            "takes without any data"
        )
    return size


def _local_workers(options: DirectOptions) -> int:
    """Workers that share this machine, threads or processes; 0 stands for one a processor, which Beam counts itself."""
    if options.direct_running_mode == "in_memory":
        return 1
    return int(options.direct_num_workers) or os.cpu_count() or 1
