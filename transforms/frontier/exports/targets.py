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
"""Turns tables of `EXPORTED` into arrays of lines."""

FORMATS = ("nutch", "stormcrawler", "urlfrontier", "heritrix", "scrapy", "urls")
"""Names of the targets."""

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


def target(name: str, file_name: str, *, total: int, fetch_interval: int = nutch.FETCH_INTERVAL) -> Target:
    """The target of a name.

    Args:
        name: one of `FORMATS`.
        file_name: name of the file to write, which tells Heritrix what it is; `.gz` at its end does not count.
        total: number of rows to write, or a bound of it.
        fetch_interval: seconds until Nutch fetches a page again.

    Raises:
        InputError: there is no such target, or the file's name does not fit it.
    """
    if name == "heritrix":
        return Target(_heritrix_lines(file_name, total), heritrix.FAULTS)
    plain: dict[str, Lines] = {
        "nutch": partial(nutch.lines, fetch_interval=fetch_interval),
        "stormcrawler": stormcrawler.lines,
        "urlfrontier": urlfrontier.lines,
        "scrapy": scrapy.lines,
        "urls": urls.lines,
    }
    if name not in plain:
        raise InputError(f"--format: found {name}, expected one of {', '.join(FORMATS)}")
    return Target(plain[name])


def _heritrix_lines(file_name: str, total: int) -> Lines:
    ending = "." + file_name.removesuffix(".gz").rpartition(".")[2]
    if ending == ".seeds":
        return heritrix.seeds
    if ending in {".schedule", ".force"}:
        return heritrix.schedule
    if ending == ".precedence":
        return partial(heritrix.precedence, total=total)
    expected = ", ".join(HERITRIX_ENDINGS)
    raise InputError(f"--output: found {file_name}, expected a name for Heritrix that ends in one of {expected} (.gz)")
