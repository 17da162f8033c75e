"""The API of `import semrank`: rounds as functions, rounds as tables, and a round as a PTransform.

Options are those of the commands, with `_` for `-` in their names.
"""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, NoReturn, TypeAlias

import apache_beam as beam
import pyarrow as pa
from apache_beam.pvalue import PBegin, PCollection

from semrank.pipelines import cli, explain, folders, rank
from semrank.pipelines import rounds as rounds_command
from semrank.pipelines.config import round_config
from semrank.pipelines.finish import finish_round
from semrank.pipelines.manifest import parameter_rules
from semrank.pipelines.options import read_options
from semrank.pipelines.queue import Queue, is_web_address, queue_from_round, queue_from_seeds, queue_from_urls
from semrank.pipelines.runtime import beam_options
from semrank.schemas.errors import InputError
from semrank.schemas.tables import CONCEPTS, FRONTIER, HARVEST, KEYWORDS, REJECTS, RELATIONS, TableSchema
from semrank.transforms.columnar import files
from semrank.transforms.columnar.beam import MapTables
from semrank.transforms.columnar.parquet import read_stored

Path: TypeAlias = str | os.PathLike[str]
"""A local path or the URL of an object store's folder."""

Seeds: TypeAlias = Path | Iterable[str]
"""Path of a seeds file, or the URLs themselves: a sequence, or a single one as a string."""

_IN_MEMORY = "(URLs of the caller)"
"""Source of a queue that was not read from a file."""


class Round:
    """A finished round.

    It is also an Arrow stream of its frontier (`__arrow_c_stream__`), which `pyarrow.table`, `polars.DataFrame` and
    others accept.

    Attributes:
        path: its folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = os.fspath(path)
        self._manifest = files.read_manifest(self.path, "round")

    def __repr__(self) -> str:
        return f"Round({self.path!r})"

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.frontier.__arrow_c_stream__(requested_schema)

    @property
    def manifest(self) -> dict[str, Any]:
        """Parameters, inputs, counts, stages and versions."""
        return self._manifest

    @cached_property
    def frontier(self) -> pa.Table:
        """The ranked URLs, rank 1 first (`frontier/`)."""
        return self._table(FRONTIER)

    @property
    def selected(self) -> pa.Table:
        """The selected rows of the frontier."""
        return self.frontier.filter(self.frontier["selected"])

    @cached_property
    def harvest(self) -> pa.Table:
        """The URLs that the crawl chose so far (`harvest/`)."""
        return self._table(HARVEST)

    @cached_property
    def keywords(self) -> pa.Table:
        """Keywords with clicks, probability and layer (`keywords/`)."""
        return self._table(KEYWORDS)

    @cached_property
    def relations(self) -> pa.Table:
        """ISA and Part-Of relations between keywords (`relations/`)."""
        return self._table(RELATIONS)

    @cached_property
    def base_concepts(self) -> pa.Table:
        """The base lattice's concepts (`base_concepts/`)."""
        return self._table(TableSchema("base_concepts", CONCEPTS.schema))

    @cached_property
    def rejects(self) -> pa.Table:
        """Unusable inputs, with reasons (`rejects/`)."""
        return self._table(REJECTS)

    def explain(self, url: str, *, snapshot: str | None = None, brief: bool = False) -> dict[str, Any]:
        """Why a URL has its rank, term by term: what `semrank explain --json` prints.

        Args:
            url: a URL of the frontier.
            snapshot: folder of the snapshot, if it was moved.
            brief: whether links and clicks, which are read from the snapshot, are left out.

        Raises:
            InputError: the URL is not in the frontier.
        """
        return explain.explanation(self.path, url, snapshot=snapshot, brief=brief)

    def _table(self, table: TableSchema) -> pa.Table:
        return folders.read_table(self.path, table)


def read_round(path: Path) -> Round:
    """A finished round.

    Raises:
        InputError: the folder is not a finished round.
    """
    return Round(path)


def rank_round(
    snapshot: Path, output: Path, *, seeds: Seeds | None = None, previous: Path | Round | None = None, **options: Any
) -> Round:
    """Ranks one round and writes its folder, as `semrank rank` does.

    Args:
        snapshot: folder of a snapshot.
        output: the round's folder, new or empty.
        seeds: the queue: path of a seeds file, or URLs.
        previous: the queue: what this finished round selected.
        options: options of `semrank rank` and of Beam, as in `max_urls=100, semrank_terms=False`.

    Returns:
        The finished round.

    Raises:
        InputError: an option or an input is unusable.
        RuntimeError: the run failed.
    """
    if (seeds is None) == (previous is None):
        raise InputError("seeds, previous: expected exactly one of them")
    given = {"snapshot": snapshot, "output": output, **options}
    given |= {"previous": _folder(previous)} if seeds is None else {"seeds": _IN_MEMORY}
    arguments, further = _parsed("rank", given)
    try:
        rank.rank_urls(arguments, further, None if seeds is None else _queue(seeds, arguments.snapshot))
    finally:
        folders.release_all()
    return Round(output)


def rank_rounds(snapshot: Path, output: Path, *, seeds: Seeds, rounds: int, **options: Any) -> list[Round]:
    """Ranks several rounds, each from the selection of the one before, as `semrank rounds` does.

    Args:
        snapshot: folder of a snapshot.
        output: folder of the rounds' folders.
        seeds: the first queue: path of a seeds file, or URLs.
        rounds: number of rounds.
        options: options of `semrank rounds` and of Beam.

    Returns:
        The finished rounds in order; fewer if a round selects nothing.

    Raises:
        InputError: an option or an input is unusable.
        RuntimeError: a run failed.
    """
    arguments, further = _parsed(
        "rounds", {"snapshot": snapshot, "output": output, "seeds": _IN_MEMORY, "rounds": rounds, **options}
    )
    try:
        for _ in rounds_command.rank_rounds(arguments, further, _queue(seeds, arguments.snapshot)):
            pass
    finally:
        folders.release_all()
    paths = (rounds_command.round_folder(os.fspath(output), number) for number in range(rounds))
    return [Round(path) for path in paths if files.exists(files.join(path, files.MANIFEST))]


class RankUrls(beam.PTransform[PBegin, PCollection[pa.Table]]):
    """A round as a part of another pipeline.

    `pipeline | RankUrls(...)` writes the round's folder while the pipeline runs, and returns the frontier's rows as
    Arrow tables, in no guaranteed order. `finish_round(output)` checks the folder and writes its manifest after the
    pipeline is done.

    Args:
        snapshot: folder of a snapshot.
        output: the round's folder, new or empty.
        seeds: the queue: path of a seeds file, or URLs.
        previous: the queue: what this finished round selected.
        options: options of `semrank rank`, as in `max_urls=100`. Options of Beam belong to the pipeline.

    Raises:
        InputError: an option is unusable, or an input when the transform is applied.
    """

    def __init__(
        self,
        snapshot: Path,
        output: Path,
        *,
        seeds: Seeds | None = None,
        previous: Path | Round | None = None,
        **options: Any,
    ) -> None:
        super().__init__("rank URLs")
        if (seeds is None) == (previous is None):
            raise InputError("seeds, previous: expected exactly one of them")
        given = {"snapshot": snapshot, "output": output, "seeds": _IN_MEMORY, **options}
        self._arguments, further = _parsed("rank", given)
        if further:
            raise InputError(f"{further[0]}: expected an option of `semrank rank`; Beam's options are the pipeline's")
        self._config = round_config(self._arguments)
        if seeds is None:
            self._queue = queue_from_round(_folder(previous))
        else:
            self._queue = _queue(seeds, self._arguments.snapshot)

    def expand(self, begin: PBegin) -> PCollection[pa.Table]:
        """Claims the folder and applies the stages of the round."""
        own = read_options(rank.RankOptions, self._arguments)
        job = rank.prepare_round(
            own.snapshot, self._queue, own.output, self._config, overwrite=own.overwrite
        ).without_any_collision()
        written = job.build(begin.pipeline)
        job.hand_over()
        return written | MapTables("read frontier", read_written)  # type: ignore[no-any-return]


def read_written(written: pa.Table) -> Iterator[pa.Table]:
    """The rows of a frontier's files, whose paths are in the column `path`."""
    for path in written["path"].to_pylist():
        yield from read_stored(path, FRONTIER)


def _queue(seeds: Seeds, snapshot: str) -> Queue:
    rules = parameter_rules(snapshot)
    if isinstance(seeds, str) and is_web_address(seeds):
        return queue_from_urls([seeds], _IN_MEMORY, rules)
    if isinstance(seeds, str | os.PathLike):
        return queue_from_seeds(os.fspath(seeds), rules)
    return queue_from_urls(list(seeds), _IN_MEMORY, rules)


def _folder(previous: Path | Round | None) -> str:
    return previous.path if isinstance(previous, Round) else os.fspath(previous or "")


def _parsed(command: str, options: dict[str, Any]) -> tuple[argparse.Namespace, list[str]]:
    """The options of a command, and the remaining ones for Beam, from keyword arguments."""
    parser = cli.command_parser(command, importlib.import_module(f"semrank.pipelines.{command}"))
    parser.error = _refuse  # type: ignore[method-assign]
    parsed, further = parser.parse_known_args(list(_words(options)))
    try:
        beam_options(further)
    except InputError as unknown:
        raise InputError(f"{unknown}{cli.meant_option(str(unknown), parser)}") from unknown
    return parsed, further


def _refuse(message: str) -> NoReturn:
    raise InputError(cli.plain_message(message))


def _words(options: dict[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is None:
            continue
        if value is True:
            yield option
        elif value is False:
            yield option.replace("--", "--no-", 1)
        elif isinstance(value, list | tuple):
            yield from (f"{option}={item}" for item in value)
        else:
            yield f"{option}={value}"


__all__ = ["InputError", "RankUrls", "Round", "finish_round", "rank_round", "rank_rounds", "read_round"]
