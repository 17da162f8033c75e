"""Lists the rounds of a crawl: what each ranked and selected, how long it took, and which are unfinished."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass

from semrank.pipelines.crawl import RoundFigures, folder_name, round_folders, rounds_figures
from semrank.pipelines.options import read_options, required
from semrank.schemas.errors import InputError
from semrank.schemas.tables import FRONTIER
from semrank.transforms.columnar import files

EXAMPLES = """\
example:
  semrank ls rounds
"""

_COLUMNS = (
    "round",
    "ranked",
    "selected",
    "new",
    "known",
    "hosts",
    "mean-selected",
    "harvest",
    "rejects",
    "seconds",
    "ranker",
)


@dataclass(frozen=True)
class LsOptions:
    """The crawl to list."""

    folder: str = required("folder of a crawl's rounds", metavar="DIR", positional=True)


OPTIONS = (LsOptions,)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    folder = read_options(LsOptions, arguments).folder
    finished, unfinished = round_folders(folder)
    if not files.exists(folder):
        raise InputError(f"{folder}: no such folder, expected one with rounds such as round-0000")
    if not finished and not unfinished:
        found = "is itself a round" if files.exists(files.join(folder, FRONTIER.name)) else "found no round"
        raise InputError(f"{folder}: {found}, expected the folder that rounds such as round-0000 are in")
    rounds = rounds_figures(finished)
    if arguments.json:
        for figures in rounds:
            print(json.dumps(figures.as_dict(), ensure_ascii=False, sort_keys=True))
        return 0
    if rounds:
        print("\n".join(_lines([_COLUMNS, *map(_cells, rounds)])))
    for path in unfinished:
        print(f"{folder_name(path)}: unfinished, without a manifest")
    return 0


def _cells(figures: RoundFigures) -> tuple[str, ...]:
    counts = (figures.ranked, figures.selected, figures.new, figures.known, figures.hosts)
    score = "" if figures.mean_score is None else f"{figures.mean_score:.3f}"
    further = (f"{figures.harvested:,}", f"{figures.rejected:,}", f"{figures.seconds:,.1f}", figures.ranker)
    return (folder_name(figures.folder), *(f"{count:,}" for count in counts), score, *further)


def _lines(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows as lines; the first and the last column are aligned left, numbers right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    last = len(widths) - 1
    return [
        "  ".join(
            text.ljust(width) if place in (0, last) else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


if __name__ == "__main__":
    from semrank.pipelines.cli import command_main, leave

    leave(command_main("ls"))
