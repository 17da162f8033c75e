"""Finishes a round whose job was submitted to a service: checks what it wrote and writes the manifest.

A job that is started from a template runs after the command that described it has ended, so the command can't write the
manifest, and the round counts as unfinished. Run this command when the service reports that the job is done.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from semrank.pipelines import folders
from semrank.pipelines.config import stored_config
from semrank.pipelines.locks import lock_folder
from semrank.pipelines.manifest import Manifest
from semrank.pipelines.options import read_options, required
from semrank.pipelines.rank import PENDING, conclude
from semrank.pipelines.runtime import RunMetrics
from semrank.pipelines.topic import stored_topic
from semrank.schemas.errors import InputError
from semrank.transforms.columnar import files

EXAMPLES = """\
example:
  semrank finish --round gs://bucket/rounds/round-0001
"""


@dataclass(frozen=True)
class FinishOptions:
    """The round to finish."""

    round: str = required("a round whose job is done", metavar="ROUND")


OPTIONS = (FinishOptions,)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    print(finish_round(read_options(FinishOptions, arguments).round))
    return 0


def finish_round(folder: str) -> str:
    """Checks what a round's job wrote and writes the manifest; returns a summary for people.

    Raises:
        InputError: no job was handed over for this folder, or it wrote no frontier.
    """
    if files.exists(files.join(folder, files.MANIFEST)):
        files.read_manifest(folder, "round")
        return f"{folder} is already finished"
    pending = files.join(folder, PENDING)
    if not files.exists(pending):
        raise InputError(f"--round {folder}: has no {PENDING}, expected a round whose job was submitted")
    if files.is_local(folder) and not lock_folder(folder):
        raise InputError(f"--round {folder}: another run is writing to it, expected a round whose job was submitted")
    stored = Manifest(pending, files.read_json(pending))
    config = stored_config(stored.members("parameters"), pending)
    begin, inputs = stored.number("started"), stored.members("inputs")
    if (topic := stored_topic(stored)) is not None:
        inputs = {**inputs, "topic": topic}
    # The order is cut last of all, so a job that ended early has written no frontier.
    if not folders.table_files(folder, "frontier"):
        raise InputError(f"--round {folder}: has no frontier, expected one: its job has failed or is still running")
    nothing = RunMetrics(stages={}, counters={}, seconds=0.0)
    summary = conclude(folder, config, inputs, nothing, begin)
    files.delete(pending)
    return summary


if __name__ == "__main__":
    from semrank.pipelines.cli import command_main, leave

    leave(command_main("finish"))
