"""What runs in processes of their own; each is forked from one that has imported all of this."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from pathlib import Path

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from semrank.pipelines.interrupt import ending_soon
from semrank.pipelines.local import runner
from semrank.pipelines.local.options import check_workers


def workers_beside_threads() -> tuple[int, int, int]:
    """The number of workers by default, beside another thread, and beside it where it is given."""
    with ending_soon(lambda: None, 130):
        alone = check_workers(None)
        ended = threading.Event()
        threading.Thread(target=ended.wait).start()
        found = alone, check_workers(None), check_workers(3)
        ended.set()
    return found


def sleep_in_a_step(marks: Path, workers: int, temp: Path) -> None:
    """A run that sleeps inside its step; each process that does so leaves a file with its number."""
    runner.SHARED_BYTES = 0
    options = PipelineOptions([f"--workers={workers}", f"--temp={temp}"])
    # The test may have been started where interrupts are ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with ending_soon(lambda: None, 130), beam.Pipeline(runner=runner.LocalRunner(), options=options) as pipeline:
            pipeline | beam.Create([1, 2]) | beam.Map(_sleep, marks)
    except KeyboardInterrupt:
        # As an interpreter ends itself; multiprocessing would end with status 1.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)


def _sleep(_: int, marks: Path) -> None:
    (marks / str(os.getpid())).touch()
    left = 60
    while left:  # inside a library, which no exception of this process can end
        left = ctypes.CDLL(None).sleep(left)
