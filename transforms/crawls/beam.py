"""Beam steps that read sources into a snapshot's tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc

from semrank.schemas.tables import ALIASES, CLICKS, HISTORY, LINKS, PAGES, REJECTS
from semrank.transforms.columnar import files
from semrank.transforms.columnar.arrays import MAIN, bounded_slices
from semrank.transforms.columnar.beam import (
    Collection,
    GatherTables,
    MapTables,
    MergePartitions,
    WriteOne,
    WritePartitions,
)
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.crawls import borrowed, snapshot
from semrank.transforms.crawls.memory import MOVES
from semrank.transforms.crawls.traps import trap_candidates, trap_marks
from semrank.transforms.logs.sessions import click_sequences
from semrank.transforms.streams.batch import BORROWED, TABLES, SourceBatch
from semrank.transforms.streams.download import shown_url

BALANCE, VISITS = snapshot.BALANCE, "visits"
CAPTURED = "captured"
"""Links read from captures of their pages."""
SESSIONS = "sessions"

BALANCE_FOLDER = "balance"
"""Folder below the snapshot in which the balance waits for the manifest."""


READING_COST = 64
"""Estimated time to read a byte of a source, such as compressed HTML, in times of processing one of a table."""


class SourceRange(NamedTuple):
    """A part of an input file.

    Attributes:
        path: the file.
        format: name of its format, for the balance.
        start: first byte.
        stop: first byte after the part, or -1 for the end of the file.
        file_size: bytes of the file, or 0 if they are unknown.
    """

    path: str
    format: str
    start: int
    stop: int
    file_size: int = 0

    @property
    def nbytes(self) -> int | None:
        """Bytes of tables that take as long to process as the part takes to read, or None if its size is unknown."""
        size = self.file_size if self.stop < 0 else self.stop - self.start
        return READING_COST * size or None


ReadRange = Callable[[SourceRange], Iterator[SourceBatch]]
"""Reads a part of a file; an importable function or a `functools.partial` of one."""


class WriteSnapshot(beam.PTransform[Any, Any]):
    """Reads ranges of sources and writes a snapshot's tables and its balance.

    Args:
        ranges: what to read.
        read: reads a range.
        folder: the snapshot's folder.
        partitions: number of partitions, which is the largest number of files of a table.
    """

    def __init__(self, ranges: Sequence[SourceRange], read: ReadRange, folder: str, *, partitions: int) -> None:
        super().__init__("read sources and write snapshot")
        self._ranges, self._read, self._folder, self._partitions = list(ranges), read, folder, partitions

    def expand(self, pipeline: beam.Pipeline) -> Collection:
        """Applies the steps; returns the rows of the written balance file."""
        read = (
            pipeline
            | "ranges" >> beam.Create(self._ranges)
            | "spread" >> beam.Reshuffle()
            | MapTables(
                "read sources",
                partial(_read_range, read=self._read),
                tags=(*TABLES, CAPTURED, BORROWED.name, VISITS, BALANCE),
            )
        )
        visits = read[VISITS] | MapTables("key visits", partial(snapshot.with_id, column="user_id"))
        sessions = {"visits": visits} | MergePartitions(
            "make click sequences", _click_sequences, partitions=self._partitions, key="url_id", tags=(MAIN, BALANCE)
        )
        clicks = (read[CLICKS.name], sessions[MAIN]) | "all clicks" >> beam.Flatten()
        newest, content = self._newest_pages(read)
        moves = {"aliases": newest[ALIASES.name]} | GatherTables("follow aliases", snapshot.moves, holds=MOVES)
        sides: dict[str, Any] = {
            "sides": {"moves": moves},
            "prepare": snapshot.Moves.of,
            "tags": (MAIN, BALANCE),
            "holds": MOVES,
        }
        all_links = (read[LINKS.name], newest[LINKS.name]) | "all links" >> beam.Flatten()
        links = all_links | MapTables("move links", snapshot.moved_links, **sides)
        moved_clicks = clicks | MapTables("move clicks", snapshot.moved_clicks, **sides)
        self._write(LINKS.name, links[MAIN], snapshot.link_rows, "source_id")
        self._write(CLICKS.name, moved_clicks[MAIN], snapshot.click_rows, "user")
        for name in (PAGES.name, ALIASES.name, HISTORY.name):
            keyed = newest[name] | MapTables(f"key written {name}", snapshot.with_id)
            further = {"content": content[MAIN]} if name == PAGES.name else {}
            self._write(name, keyed, partial(_same_rows, name=name), "url_id", **further)
        self._write_rejects(read[REJECTS.name], all_links)
        every = tuple(part[BALANCE] for part in (read, sessions, newest, content, links, moved_clicks))
        return {"balance": every | "all balances" >> beam.Flatten()} | WriteOne(  # type: ignore[no-any-return]
            "write balance", files.join(self._folder, BALANCE_FOLDER), snapshot.summed_balance
        )

    def _newest_pages(self, read: Any) -> tuple[Any, Any]:
        """The newest capture of each URL, and the content that pages borrow from other URLs, both by tag."""
        by_url = {
            name: read[name] | MapTables(f"key {name}", snapshot.with_id)
            for name in (PAGES.name, ALIASES.name, HISTORY.name)
        }
        by_url[CAPTURED] = read[CAPTURED] | MapTables(
            "key captured links", partial(snapshot.with_id, column="source_url")
        )
        requests = read[BORROWED.name] | MapTables("key borrowed content", borrowed.keyed_requests)
        wanted = requests | MapTables("list wanted content", borrowed.wanted_rows, combine=borrowed.wanted_content)
        all_wanted = {"wanted": wanted} | GatherTables("gather wanted content", borrowed.wanted_content)
        by_url[snapshot.REQUESTS] = requests
        newest = by_url | MergePartitions(
            "choose newest pages",
            _page_partition,
            partitions=self._partitions,
            key="url_id",
            sides={"wanted": all_wanted},
            tags=(PAGES.name, ALIASES.name, HISTORY.name, LINKS.name, snapshot.LENT, snapshot.REQUESTS, BALANCE),
        )
        answers = {name: newest[name] for name in (snapshot.LENT, snapshot.REQUESTS)} | MergePartitions(
            "lend content", _answered_requests, partitions=self._partitions, key="request"
        )
        content = {"content": answers} | MergePartitions(
            "choose content", _chosen_content, partitions=self._partitions, key="url_id", tags=(MAIN, BALANCE)
        )
        return newest, content

    def _write_rejects(self, rejects: Collection, links: Collection) -> None:
        """Writes the rejects with the marks of traps, which are found by the links to them."""
        candidates = links | MapTables("find traps", trap_candidates)
        traps = {"candidates": candidates} | MergePartitions(
            "mark traps", trap_marks, partitions=self._partitions, key="family_id"
        )
        every = (rejects, traps) | "all rejects" >> beam.Flatten()
        keyed = every | MapTables("key rejects", _keyed_rejects)
        self._write(REJECTS.name, keyed, snapshot.reject_rows, "record_id")

    def _write(
        self, name: str, rows: Collection, finish: Callable[..., pa.Table], key: str, **further: Collection
    ) -> None:
        {"rows": rows, **further} | WritePartitions(
            f"write {name}", files.join(self._folder, name), finish, partitions=self._partitions, key=key
        )


def _read_range(source: SourceRange, *, read: ReadRange) -> Iterator[tuple[str, pa.Table]]:
    for batch in read(SourceRange(*source)):
        for name, table in _tables(batch):
            for piece in bounded_slices(table):
                yield name, piece
        if batch.borrowed is not None:
            yield BORROWED.name, batch.borrowed
        visits = getattr(batch, "visits", None)
        if visits is not None:
            for piece in bounded_slices(visits):
                yield VISITS, piece
        yield BALANCE, _balance(source, batch)


def _tables(batch: SourceBatch) -> Iterator[tuple[str, pa.Table]]:
    """The tables of a batch, links of captures by themselves."""
    for name, table in batch.tables.items():
        if name != LINKS.name or batch.captures is None:
            yield name, table
            continue
        captures = batch.captures
        schema = pa.schema([*table.schema, *captures.schema])
        yield CAPTURED, pa.table([*table.columns, *captures.columns], schema=schema).filter(captures["is_capture"])
        yield name, table.filter(pc.invert(captures["is_capture"]))


def _balance(source: SourceRange, batch: SourceBatch) -> pa.Table:
    counts: list[tuple[str, str, int]] = [("records", "", batch.records), ("used", "", batch.used)]
    counts += [("rejected", reason, count) for reason, count in batch.rejected.items()]
    counts += [("ignored", reason, count) for reason, count in batch.ignored.items()]
    counts += [("counters", name, count) for name, count in batch.counters.items()]
    counts += [("rows", name, table.num_rows) for name, table in batch.tables.items()]
    kinds, names, numbers = zip(*counts, strict=True)
    return pa.table(
        [[shown_url(source.path)] * len(counts), [source.format] * len(counts), kinds, names, numbers],
        schema=snapshot.BALANCE_SCHEMA,
    )


def _click_sequences(visits: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    sequences = click_sequences(visits.drop_columns(["url_id"]))
    for piece in bounded_slices(sequences.clicks):
        yield MAIN, piece
    counts = [("records", "", sequences.visits), ("used", "", sequences.used)]
    counts += [("ignored", reason, count) for reason, count in sequences.ignored.items()]
    kinds, names, numbers = zip(*counts, strict=True)
    yield (
        BALANCE,
        pa.table([[""] * len(counts), [SESSIONS] * len(counts), kinds, names, numbers], schema=snapshot.BALANCE_SCHEMA),
    )


def _page_partition(
    pages: pa.Table | None,
    aliases: pa.Table | None,
    history: pa.Table | None,
    captured: pa.Table | None,
    requests: pa.Table | None,
    wanted: pa.Table | None,
) -> Iterator[tuple[str, pa.Table]]:
    for name, table in snapshot.page_partition(pages, aliases, history, captured, requests, wanted):
        for piece in bounded_slices(table):
            yield name, piece


def _answered_requests(lent: pa.Table | None, requests: pa.Table | None) -> Iterator[pa.Table]:
    for content in borrowed.borrowed_content(requests, lent):
        yield from bounded_slices(content)


def _chosen_content(content: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    for name, table in snapshot.chosen_content(content):
        for piece in bounded_slices(table):
            yield name, piece


def _same_rows(rows: pa.Table, content: pa.Table | None = None, *, name: str) -> pa.Table:
    """Rows of one partition, in their order again after the exchange, pages with the content that they borrow."""
    rows = borrowed.with_borrowed(rows, content)
    schema = {PAGES.name: PAGES, ALIASES.name: ALIASES, HISTORY.name: HISTORY}[name].schema
    plain = [field.name for field in schema if not pa.types.is_list(field.type)]
    return rows.select(schema.names).sort_by([(column, "ascending") for column in plain]).combine_chunks().cast(schema)


def _keyed_rejects(rejects: pa.Table) -> pa.Table:
    return rejects.append_column("record_id", pa.array(text_ids(rejects["record"])))
