"""Ranks several rounds, each from the pages that the last one selected: DIR/round-0000, DIR/round-0001, ...

The rounds replay a crawl over one snapshot: pages of the snapshot can be selected until the crawl has chosen them, as
with `rank --recrawl`. A run that was interrupted continues after its last finished round. It stops early if a round
selects nothing.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow.compute as pc

from semrank.pipelines import folders
from semrank.pipelines.cluster import path_for_workers
from semrank.pipelines.config import QUEUE_GROUP, add_round_arguments
from semrank.pipelines.manifest import Manifest, parameter_rules
from semrank.pipelines.memory import WorkerOptions, worker_memory
from semrank.pipelines.options import option, read_options, required
from semrank.pipelines.plan import PlanOptions
from semrank.pipelines.queue import Queue, queue_from_round, queue_from_seeds
from semrank.pipelines.rank import SummaryOptions, checked_config, round_plan, run_round
from semrank.pipelines.runtime import beam_options
from semrank.schemas.errors import InputError
from semrank.schemas.tables import HARVEST
from semrank.transforms.columnar import files
from semrank.transforms.columnar.arrays import column_array
from semrank.transforms.columnar.beam import NAMESPACE

EXAMPLES = """\
example:
  semrank rounds --snapshot snapshot --seeds seeds.txt --rounds 3 --output rounds
"""

log = logging.getLogger(NAMESPACE)


@dataclass(frozen=True, kw_only=True)
class RoundsOptions(SummaryOptions):
    """What several rounds read and write; `RoundConfig` has how each is computed."""

    snapshot: str = required("snapshot that `semrank ingest` wrote", QUEUE_GROUP, metavar="SNAPSHOT")
    seeds: str = required(
        "queue of the first round: a file with one URL a line, alone or as `semrank export` writes it; # starts a "
        "comment",
        QUEUE_GROUP,
        metavar="FILE",
    )
    rounds: int = required("number of rounds", QUEUE_GROUP, metavar="N", low=1)
    output: str = required("folder of the rounds' folders", QUEUE_GROUP, metavar="DIR")
    overwrite: bool = option(
        False, "replace finished rounds instead of continuing after the last one", QUEUE_GROUP, plain=True
    )


OPTIONS = (RoundsOptions, add_round_arguments, WorkerOptions, PlanOptions)


def run(arguments: argparse.Namespace, beam_arguments: list[str]) -> int:
    """Runs the command; returns the exit status."""
    for text in rank_rounds(arguments, beam_arguments):
        print(text)
    return 0


def rank_rounds(arguments: argparse.Namespace, beam_arguments: list[str], seeds: Queue | None = None) -> Iterator[str]:
    """Ranks the rounds that parsed options describe; yields lines and summaries for people as they come.

    Args:
        arguments: parsed options of the command.
        beam_arguments: options of Beam.
        seeds: the queue of the first round, if it comes from the caller and not from `--seeds`.
    """
    own = read_options(RoundsOptions, arguments)
    # What the crawl of these rounds has not chosen yet is new to it, whenever the snapshot's pages were fetched.
    config = replace(checked_config(arguments), recrawl=True)
    options = beam_options(beam_arguments)
    memory = worker_memory(arguments, options)
    if seeds is None:
        seeds = queue_from_seeds(own.seeds, parameter_rules(own.snapshot))
    snapshot, output = (path_for_workers(options, path) for path in (own.snapshot, own.output))
    if form := read_options(PlanOptions, arguments).plan:
        yield round_plan(snapshot, seeds, output, config, form)
        return
    rounds = [round_folder(output, number) for number in range(own.rounds)]
    for number, folder in enumerate(rounds):
        try:
            queue = seeds if number == 0 else queue_from_round(rounds[number - 1])
        except InputError as nothing_selected:
            log.warning("round %d: not run: %s", number, nothing_selected)
            return
        if not own.overwrite and files.exists(files.join(folder, files.MANIFEST)):
            _check_same_run(folder, config.as_dict(), snapshot, queue)
            log.info("round %d: already finished, %s", number, folder)
            continue
        yield f"round {number}"
        yield run_round(snapshot, queue, folder, config, options, overwrite=own.overwrite, memory=memory, top=own.top)


def round_folder(output: str, number: int) -> str:
    """Folder of a round, counted from 0."""
    return files.join(output, f"round-{number:04d}")


def _check_same_run(folder: str, parameters: dict[str, object], snapshot: str, queue: Queue) -> None:
    """A finished round is gone on from only if it was made of the same snapshot and URLs with the same options."""
    manifest = Manifest.of(folder, "round")
    found = {**manifest.members("parameters"), "snapshot": manifest.text("inputs", "snapshot", "path")}
    expected = {**parameters, "snapshot": snapshot}
    for name, value in expected.items():
        if found.get(name) != value:
            raise InputError(
                f"--output: {folder} was made with {name} {found.get(name)!r}, expected {value!r}; "
                "--overwrite replaces it"
            )
    if manifest.text("inputs", "snapshot", "sha256") != folders.fingerprint(snapshot, "snapshot")["sha256"]:
        raise InputError(f"--output: {folder} was made before {snapshot} was replaced; --overwrite replaces it")
    harvested = column_array(folders.read_table(folder, HARVEST.columns("url"))["url"])
    chosen = column_array(queue.harvest["url"])
    if len(harvested) != len(chosen) or not pc.all(pc.is_in(harvested, value_set=chosen)).as_py():
        raise InputError(
            f"--output: {folder} was made from other URLs than those of {queue.source}; --overwrite replaces it"
        )


if __name__ == "__main__":
    from semrank.pipelines.cli import command_main, leave

    leave(command_main("rounds"))
