"""The topics of an evaluation: what is relevant, and where each crawl begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.pipelines.evaluation_config import EvaluationConfig
from semrank.pipelines.evaluation_ground import Ground
from semrank.schemas.errors import InputError
from semrank.schemas.tables import REJECTS, TOPICS, conform
from semrank.transforms.columnar import files
from semrank.transforms.columnar.arrays import Int64s, bools, column_array, int64s, positions
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.crawls.tables import PARQUET, table_format
from semrank.transforms.replay.replay import drawn_seeds
from semrank.transforms.streams.json_lines import parse_object, read_lines
from semrank.transforms.streams.parameters import NO_RULES, ParameterRules
from semrank.transforms.streams.parquet import read_batches, read_schema
from semrank.transforms.streams.quotes import quote_page_line
from semrank.transforms.streams.urls import canonicalize

STAGE = "topics"
_NOT_IN_SNAPSHOT, _TOO_FEW_PAGES, _NO_MARKED_SEEDS = "not-in-snapshot", "too-few-pages", "no-marked-seeds"


@dataclass(frozen=True, eq=False)
class Labels:
    """The topics table.

    Attributes:
        table: its rows with canonical URLs (`TOPICS`).
        rejects: rows that can't be used (`REJECTS`).
    """

    table: pa.Table
    rejects: pa.Table


def read_topics(path: str, rules: ParameterRules = NO_RULES) -> Labels:
    """The topics of a Parquet or JSON Lines file, their URLs by the snapshot's rules for parameters.

    Raises:
        InputError: the file can't be read or is no table of topics.
    """
    source = f"--topics {path}"
    with files.open_binary(path) as stream:
        table, rejects = _raw_topics(stream, source)
    canonical = canonicalize(column_array(table["url"]), rules)
    bad = pc.or_(pc.is_null(canonical.urls), pc.is_null(column_array(table["topic"])))
    reasons = pc.fill_null(canonical.reasons.cast(pa.string()).filter(bad), "topic-missing")
    rejects += _rejected(reasons, table.filter(bad))
    used = table.set_column(table.schema.get_field_index("url"), "url", canonical.urls).filter(pc.invert(bad))
    return Labels(conform(used, TOPICS), _reject_table(rejects))


def _raw_topics(stream: Any, source: str) -> tuple[pa.Table, list[tuple[str, str, str]]]:
    """The table with nulls where a row lacks something, and rejects of lines that are no rows."""
    head = stream.read(512)
    stream.seek(0)
    if table_format(head, source) == PARQUET:
        return _parquet_topics(stream, source)
    rows: list[dict[str, Any]] = []
    rejects: list[tuple[str, str, str]] = []
    for line in read_lines(stream):
        row = line.problem or parse_object(line.data)
        if isinstance(row, dict):
            values = {name: row.get(name) for name in TOPICS.schema.names}
            fits = all(
                value is None or isinstance(value, bool if name == "is_seed" else str) for name, value in values.items()
            )
            row = values if fits else "value-invalid"
        if isinstance(row, dict):
            rows.append(row)
        else:
            rejects.append((STAGE, row, quote_page_line(line.data)))
    schema = pa.schema([field.with_nullable(True) for field in TOPICS.schema])
    return pa.Table.from_pylist(rows, schema=schema), rejects


def _parquet_topics(stream: Any, source: str) -> tuple[pa.Table, list[tuple[str, str, str]]]:
    def conformed(table: pa.Table) -> pa.Table:
        try:
            return conform(table, TOPICS, check_nulls=False)
        except InputError as cause:
            raise InputError(f"{source}: {cause}") from cause

    # Without rows there still have to be the columns.
    parts = [conformed(read_schema(stream, source).empty_table())]
    rejects: list[tuple[str, str, str]] = []

    def reject(reason: str, record: str) -> None:
        rejects.append((STAGE, reason, record))

    for rows in read_batches(stream, source, columns=TOPICS.schema.names, reject=reject):
        table, bad = conformed(rows.table), pc.is_valid(rows.reasons)
        rejects += _rejected(rows.reasons.filter(bad), table.filter(bad))
        parts.append(table.filter(pc.invert(bad)))
    return pa.concat_tables(parts), rejects


def _rejected(reasons: pa.Array, rows: pa.Table) -> list[tuple[str, str, str]]:
    """Rejects of rows, which have a reason each."""
    records = pc.binary_join_element_wise(
        *(pc.fill_null(column_array(rows[name]), "") for name in ("topic", "url")), "\t"
    )
    return [(STAGE, reason, record) for reason, record in zip(reasons.to_pylist(), records.to_pylist(), strict=True)]


def _reject_table(rows: Sequence[tuple[str, str, str]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.table([pa.array(column, pa.string()) for column in columns], schema=REJECTS.schema)


@dataclass(frozen=True, eq=False)
class Topic:
    """A topic to crawl for.

    Attributes:
        name: its name.
        pages: numbers of its pages, ascending, int64.
        seeds: numbers of the seeds of each set, ascending.
    """

    name: str
    pages: Int64s
    seeds: tuple[Int64s, ...]


@dataclass(frozen=True, eq=False)
class Plan:
    """The topics to crawl for in the order of their names, and what was left out (`REJECTS`)."""

    topics: list[Topic]
    rejects: pa.Table


def plan_topics(labels: Labels, ground: Ground, config: EvaluationConfig) -> Plan:
    """Which topics are crawled for, from which seeds.

    A page that the snapshot has no copy of can't be replayed and is rejected; so is a topic that would have no page
    left to find besides its seeds, or whose seeds are wanted but not marked.
    """
    number = positions(ground.ids[ground.order], text_ids(labels.table["url"]))
    missing = labels.table.filter(pa.array(number < 0))
    rejects = [(STAGE, _NOT_IN_SNAPSHOT, f"{row['topic']}\t{row['url']}") for row in missing.to_pylist()]
    number = np.where(number >= 0, ground.order[number], -1) if len(ground) else number
    marked = bools(pc.fill_null(labels.table["is_seed"], False))
    names = labels.table["topic"].combine_chunks().dictionary_encode()
    codes = int64s(column_array(names).indices)
    topics = []
    for code, name in sorted(enumerate(column_array(names).dictionary.to_pylist()), key=lambda item: item[1]):
        rows = (codes == code) & (number >= 0)
        pages = np.unique(number[rows])
        if config.marked_seeds:
            seeds = [np.unique(number[rows & marked.astype(np.bool_)])]
        else:
            urls = ground.urls.take(pa.array(pages))
            seeds = [
                pages[
                    drawn_seeds(
                        name,
                        urls,
                        count=config.seeds_per_topic,
                        seed_set=seed_set,
                        random_seed=config.random_seed,
                    )
                ]
                for seed_set in range(config.seed_sets)
            ]
        if config.marked_seeds and not len(seeds[0]):
            rejects.append((STAGE, _NO_MARKED_SEEDS, name))
        elif len(pages) <= max(len(found) for found in seeds):
            rejects.append((STAGE, _TOO_FEW_PAGES, name))
        else:
            topics.append(Topic(name, pages, tuple(seeds)))
    return Plan(topics, _reject_table(rejects))
