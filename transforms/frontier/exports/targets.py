"""The targets by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from semrank.schemas.errors import InputError
from semrank.transforms.frontier.exports import heritrix, nutch, scrapy, stormcrawler, urlfrontier, urls
from semrank.transforms.frontier.exports.rows import URL_FAULTS, Fault

Lines: TypeAlias = Callable[[Iterator[pa.Table]], Iterator[pa.Array]]
"""Turns tables of `EXPORTED` without faults, in the order of rank, into arrays of lines."""

HERITRIX_ENDINGS = (".seeds", ".schedule", ".force", ".precedence")
"""What a file for Heritrix is for stands in its name, for Heritrix too."""


@dataclass(frozen=True)
class Target:
    """How a target is written.

    Attributes:
        lines: turns rows into lines.
        faults: what it would misread.
    """

    lines: Lines
    faults: tuple[Fault, ...] = URL_FAULTS


@dataclass(frozen=True)
class Wanted:
    """What the lines of some targets depend on.

    Attributes:
        file_name: name of the file to write, which tells Heritrix its purpose; `.gz` at its end does not count.
        total: number of rows to write, or an upper bound of it.
        fetch_interval: seconds until Nutch fetches a page again.
    """

    file_name: str
    total: int
    fetch_interval: int


def _heritrix_lines(file_name: str, total: int) -> Lines:
    ending = "." + file_name.removesuffix(".gz").rpartition(".")[2]
    if ending == ".seeds":
        return urls.lines
    if ending in {".schedule", ".force"}:
        return heritrix.schedule
    if ending == ".precedence":
        return partial(heritrix.precedence, total=total)
    expected = ", ".join(HERITRIX_ENDINGS)
    raise InputError(f"--output: found {file_name}, expected a name for Heritrix that ends in one of {expected} (.gz)")


TARGETS: dict[str, Callable[[Wanted], Target]] = {
    "nutch": lambda wanted: Target(partial(nutch.lines, fetch_interval=wanted.fetch_interval)),
    "stormcrawler": lambda _: Target(stormcrawler.lines),
    "urlfrontier": lambda _: Target(urlfrontier.lines),
    "heritrix": lambda wanted: Target(_heritrix_lines(wanted.file_name, wanted.total), heritrix.FAULTS),
    "scrapy": lambda _: Target(scrapy.lines),
    "urls": lambda _: Target(urls.lines),
}
"""Name -> how the target is written."""


def target(name: str, file_name: str, *, total: int, fetch_interval: int = nutch.FETCH_INTERVAL) -> Target:
    """The target of a name; see `Wanted`.

    Raises:
        InputError: there is no such target, or the file's name does not fit it.
    """
    if name not in TARGETS:
        raise InputError(f"--format: found {name}, expected one of {', '.join(TARGETS)}")
    return TARGETS[name](Wanted(file_name, total, fetch_interval))
