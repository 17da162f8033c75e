"""Turns a published data set into a snapshot, with its topics and their seeds.

wikispeedia: articles, links and texts of a selection of Wikipedia, and the paths of people who looked for an article
by following links. The snapshot holds, besides what `semrank ingest` writes, topics.parquet (every category and its
ancestors) and seeds/TOPIC.txt.
"""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import InputError
from transforms.sources import wikispeedia
from transforms.sources.batch import SourceBatch
from transforms.sources.download import download

EXAMPLES = """\
examples:
  semrank dataset wikispeedia --source downloads --output snapshot
  semrank dataset wikispeedia --source https://snap.stanford.edu/data/wikispeedia --output snapshot
"""

_REPORT_SECONDS = 5.0  # time between two messages about a download's progress

log = logging.getLogger("semrank")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("name", choices=["wikispeedia"], help="the data set")
    parser.add_argument(
        "--source",
        required=True,
        metavar="DIR|URL",
        help=f"folder with {' and '.join(wikispeedia.ARCHIVES)} (or what they hold, unpacked), or the URL they lie below",
    )
    parser.add_argument("--output", required=True, metavar="SNAPSHOT", help="folder of the snapshot, new or empty")
    parser.add_argument("--topics", metavar="FILE", help="where the topics go (default SNAPSHOT/topics.parquet)")
    parser.add_argument(
        "--downloads",
        metavar="DIR",
        type=Path,
        help="where downloaded archives are kept; a broken download continues there (default: the user's cache)",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace a finished snapshot that is in the folder")


def locate_source(source: str, downloads: Path | None) -> Path:
    """The folder with the data set's files, which are fetched first if the source is a URL.

    Raises:
        InputError: the source is no folder and no http(s) URL of one.
    """
    if "://" not in source:
        if not Path(source).is_dir():
            raise InputError(f"--source {source}: no such folder, expected one with {', '.join(wikispeedia.ARCHIVES)}")
        return Path(source)
    parts = urlsplit(source)
    if parts.scheme not in ("http", "https") or parts.query or parts.fragment:
        raise InputError(
            f"--source {source}: expected a folder, or an http(s) URL below which {', '.join(wikispeedia.ARCHIVES)} lie"
        )
    folder = _cache_folder() if downloads is None else downloads
    report = _ProgressReport()
    for name in wikispeedia.ARCHIVES:
        download(f"{source.rstrip('/')}/{name}", folder, report=report)
    return folder


def _cache_folder() -> Path:
    """Where downloads are kept by convention (XDG Base Directory Specification)."""
    named = os.environ.get("XDG_CACHE_HOME")
    return (Path(named) if named else Path.home() / ".cache") / "semrank" / "wikispeedia"


class _ProgressReport:
    """Says now and then how far a download has come, and always when it is complete."""

    def __init__(self) -> None:
        self._last = 0.0

    def __call__(self, name: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        if done == total or now - self._last >= _REPORT_SECONDS:
            self._last = now
            of = "" if total is None else f" of {total / 1e6:.1f}"
            log.info("%s: %.1f%s MB", name, done / 1e6, of)


@dataclass
class FileBalance:
    """What became of one file's records; records == used + sum of rejected + sum of ignored.

    Attributes:
        path: where the file was found.
        records: records read.
        used: records that yielded rows.
        rejected: records that could not be used, by reason.
        ignored: records left aside on purpose, by reason.
        rows: rows made, by table.
    """

    path: str
    records: int = 0
    used: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    ignored: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)

    def add(self, batch: SourceBatch) -> None:
        """Count a batch's records and rows."""
        self.records += batch.records
        self.used += batch.used
        self.rejected.update(batch.rejected)
        self.ignored.update(batch.ignored)
        self.rows.update({name: table.num_rows for name, table in batch.tables.items()})

    def as_dict(self) -> dict[str, Any]:
        """The balance as a snapshot's manifest tells it."""
        return {
            "path": self.path,
            "format": "wikispeedia",
            "records": self.records,
            "used": self.used,
            "rejected": dict(self.rejected),
            "ignored": dict(self.ignored),
            "rows": dict(self.rows),
        }


@dataclass(frozen=True)
class WrittenTables:
    """What `write_tables` made of a data set.

    Attributes:
        topics: schema TOPICS.
        seeds: URLs by topic, for topics that have seeds.
        balances: one balance for each file of the set; the texts, which lie in files of their own, share one.
    """

    topics: pa.Table
    seeds: Mapping[str, list[str]]
    balances: list[FileBalance]


def write_tables(source: Path, folder: Path) -> WrittenTables:
    """Converts the Wikispeedia set to tables.

    Args:
        source: folder with the set's archives or what they hold.
        folder: where pages/, links/, clicks/ and rejects/ are written, one Parquet file for each file of the set
            that fills the table.

    Raises:
        InputError: files are missing or damaged.
    """
    graph = wikispeedia.graph_files(source)
    listed, article_batches = wikispeedia.read_articles(graph["articles.tsv"].open())
    categories = wikispeedia.read_categories(graph["categories.tsv"].open(), listed)
    texts = wikispeedia.read_texts(wikispeedia.text_files(source), listed)
    read: list[tuple[str, str, Iterable[SourceBatch]]] = [
        ("articles", graph["articles.tsv"].path, article_batches),
        ("categories", graph["categories.tsv"].path, categories.batches),
        ("texts", wikispeedia.texts_path(source), texts),
        ("links", graph["links.tsv"].path, wikispeedia.read_links(graph["links.tsv"].open(), listed)),
    ]
    for name, finished in (("paths_unfinished", False), ("paths_finished", True)):
        file = graph.get(f"{name}.tsv")
        if file is not None:
            read.append((name, file.path, wikispeedia.read_paths(file.open(), finished=finished)))
    balances = [_write_batches(folder, name, path, batches) for name, path, batches in read]
    return WrittenTables(categories.topics, categories.seeds(), balances)


def _write_batches(folder: Path, name: str, path: str, batches: Iterable[SourceBatch]) -> FileBalance:
    """Writes one file's rows as `<table>/<name>.parquet`."""
    balance = FileBalance(path)
    with ExitStack() as stack:
        writers: dict[str, pq.ParquetWriter] = {}
        for batch in batches:
            balance.add(batch)
            for table, rows in batch.tables.items():
                if table not in writers:
                    (folder / table).mkdir(parents=True, exist_ok=True)
                    target = folder / table / f"{name}.parquet"
                    writers[table] = stack.enter_context(pq.ParquetWriter(target, rows.schema, compression="zstd"))
                writers[table].write_table(rows)
    log.info("%s: %s of %s records used", path, f"{balance.used:,}", f"{balance.records:,}")
    return balance
