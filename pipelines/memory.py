"""How much memory a worker has: what the user says, or what this machine has for each local worker."""

from __future__ import annotations

import argparse
import os
import re

from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions

from semrank.pipelines.local.options import EXCHANGE_SHARE, LocalOptions, local_settings
from semrank.pipelines.options import BEAM_GROUP, help_group, whole
from semrank.pipelines.runtime import DEFAULT_RUNNER, EMBEDDED_RUNNER
from semrank.schemas.errors import InputError
from semrank.transforms.columnar.worker_memory import OPTION, OWN_BYTES, machine_bytes, shown_bytes

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def add_worker_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    group = help_group(parser, BEAM_GROUP)
    group.add_argument(
        "--workers",
        type=whole,
        metavar="N",
        help="worker processes of a local run; the result does not depend on it (default: the processors that the "
        "command may use)",
    )
    group.add_argument(
        "--temp",
        metavar="DIR",
        help="folder for what a local run's stages exchange beyond a quarter of --worker-memory (default: the system's "
        "folder for temporary files)",
    )
    action = group.add_argument(
        OPTION,
        metavar="SIZE",
        help="memory that one worker process has, as in 4G or 800M: what a stage must hold whole and does not fit is "
        "refused (default: a local worker's share of the machine or container; elsewhere all of the worker's machine)",
    )
    action.pattern = r"^[0-9]+[KMGTkmgt]?(i?[Bb])?$"  # type: ignore[attr-defined]


def worker_memory(arguments: argparse.Namespace, options: PipelineOptions) -> int | None:
    """Hands the options of local workers on to the runner.

    Returns:
        Bytes that a worker process has; None where only the workers can tell, which look at their own machines.

    Raises:
        InputError: the memory is no size, or less than a worker takes without any data; or the other options are
            unusable.
    """
    runner = options.view_as(StandardOptions).runner
    local = options.view_as(LocalOptions)
    local.workers, local.temp = arguments.workers, arguments.temp
    if runner != DEFAULT_RUNNER and (arguments.workers or arguments.temp):
        option = "--workers" if arguments.workers else "--temp"
        raise InputError(f"{option}: found with --runner {runner.rpartition('.')[2]}, expected a local run")
    given: str | None = arguments.worker_memory
    if given is not None:
        size = _size(given)
        local.exchange_bytes = int(size * EXCHANGE_SHARE)
        return size
    if runner == DEFAULT_RUNNER:
        return machine_bytes() // local_settings(options).workers
    return machine_bytes() // _local_workers(options.view_as(DirectOptions)) if runner == EMBEDDED_RUNNER else None


def _size(text: str) -> int:
    found = re.fullmatch(r"([0-9]{1,15})([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if found is None:
        raise InputError(f"{OPTION}: found '{text}', expected bytes, or a whole number with K, M, G or T (1024 each)")
    size = int(found[1]) * _UNITS[found[2].upper()]
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
