"""Options of the local runner."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions

from semrank.pipelines.local.workers import CAN_FORK
from semrank.schemas.errors import InputError
from semrank.transforms.columnar.threads import is_alone
from semrank.transforms.columnar.worker_memory import machine_bytes

EXCHANGE_SHARE = 0.25
"""Share of a worker's memory for tables that wait for a later stage."""


class LocalOptions(PipelineOptions):
    """Options of the local runner, for programs that make their own pipelines."""

    @classmethod
    def _add_argparse_args(cls, parser: Any) -> None:
        parser.add_argument("--workers", type=int, default=None, help="processes of the local runner")
        parser.add_argument("--temp", default=None, help="folder of the local runner's temporary files")
        parser.add_argument("--exchange_bytes", type=int, default=None, help="bytes that may wait in memory")


@dataclass(frozen=True)
class LocalSettings:
    """How the local runner works.

    Attributes:
        workers: number of processes.
        folder: folder of its temporary files.
        exchange_bytes: bytes of tables that may wait in memory.
    """

    workers: int
    folder: str
    exchange_bytes: int


def local_settings(options: PipelineOptions) -> LocalSettings:
    """The settings that options ask for, or the defaults.

    Raises:
        InputError: there is no such folder, or no such number of workers.
    """
    given = options.view_as(LocalOptions)
    workers = check_workers(given.workers)
    if given.exchange_bytes is None:
        exchange_bytes = int(machine_bytes() // workers * EXCHANGE_SHARE)
    else:
        exchange_bytes = given.exchange_bytes
    return LocalSettings(workers, _folder(given.temp), exchange_bytes)


def check_workers(given: int | None) -> int:
    """The number of workers: as given, or the processors that this process may use.

    By default there is one where other threads run, whose locks a forked process would inherit as they are.

    Raises:
        InputError: the number is below 1.
    """
    if given is None:
        return len(os.sched_getaffinity(0)) if CAN_FORK and is_alone() else 1
    if given < 1:
        raise InputError(f"--workers: found {given}, expected a whole number of at least 1")
    return given if CAN_FORK else 1


def _folder(given: str | None) -> str:
    folder = given or tempfile.gettempdir()
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as cause:
        raise InputError(
            f"--temp {folder}: no file can be made there ({cause.strerror}), expected a folder for temporary files"
        ) from cause
    return folder
