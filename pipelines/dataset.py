"""Converts a published data set to a snapshot, with topics and seeds.

wikispeedia: articles, links and texts of a selection of Wikipedia, and the paths of players who searched for an article
by following links; the topics are the categories and their ancestors.

manuals: HTML manuals in a folder, for example unpacked packages of a distribution (linux-doc, apache2-doc), without a
click log; URLs are numbers, and the topics are the sections of the manuals.

The snapshot holds, besides what `semrank ingest` writes, topics.parquet and seeds/TOPIC.txt.
"""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa

from semrank.pipelines import folders
from semrank.pipelines.cluster import path_for_workers
from semrank.pipelines.ingest import PARTS, ingest
from semrank.pipelines.options import option, read_options, required
from semrank.pipelines.runtime import beam_options
from semrank.schemas.errors import InputError
from semrank.transforms.columnar import files
from semrank.transforms.columnar.parquet import write_parquet
from semrank.transforms.crawls.beam import SourceRange
from semrank.transforms.samples import wikispeedia
from semrank.transforms.samples.manuals import ManualFiles, read_manual
from semrank.transforms.samples.topics import topic_seeds
from semrank.transforms.streams.batch import SourceBatch
from semrank.transforms.streams.download import Policy, download

EXAMPLES = """\
examples:
  semrank dataset wikispeedia --source downloads --output snapshot
  semrank dataset wikispeedia --source https://snap.stanford.edu/data/wikispeedia --output snapshot
  semrank dataset manuals --source unpacked --output snapshot
"""

WIKISPEEDIA, MANUALS = "wikispeedia", "manuals"

_TOPICS, _SEEDS, _TEXTS = "topics.parquet", "seeds", "texts"
_GRAPH_FILES = ("articles.tsv", "categories.tsv", "links.tsv", "paths_unfinished.tsv", "paths_finished.tsv")

_REPORT_SECONDS = 5.0  # time between two messages about a download's progress

log = logging.getLogger("semrank")


@dataclass(frozen=True, kw_only=True)
class DatasetOptions:
    """Which data set is read, and where the snapshot is written."""

    name: str = required("the data set", metavar="NAME", choices=(WIKISPEEDIA, MANUALS), positional=True)
    source: str = required(
        f"wikispeedia: folder with {' and '.join(wikispeedia.ARCHIVES)} or their content, or the URL of such a folder; "
        "manuals: folder with unpacked HTML manuals",
        metavar="DIR|URL",
    )
    output: str = required("folder of the snapshot, new or empty", metavar="SNAPSHOT")
    topics: str | None = option(
        None, "file that the topics are written to (default SNAPSHOT/topics.parquet)", metavar="FILE"
    )
    downloads: str | None = option(
        None,
        "folder that keeps downloaded archives; an interrupted download continues there (default: the user's cache)",
        metavar="DIR",
    )
    redirect_host: tuple[str, ...] = option((), "a further host that downloads may be redirected to", metavar="HOST")
    overwrite: bool = option(False, "replace a finished snapshot in the folder", plain=True)


OPTIONS = (DatasetOptions,)


def locate_source(source: str, downloads: Path | None, policy: Policy | None = None) -> Path:
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
            f"--source {source}: expected a folder, or the http(s) URL of one, with {', '.join(wikispeedia.ARCHIVES)}"
        )
    folder = _cache_folder() if downloads is None else downloads
    report = _ProgressReport()
    for name in wikispeedia.ARCHIVES:
        download(f"{source.rstrip('/')}/{name}", folder, policy=policy, report=report)
    return folder


def _cache_folder() -> Path:
    """Where downloads are kept by convention (XDG Base Directory Specification)."""
    named = os.environ.get("XDG_CACHE_HOME")
    return (Path(named) if named else Path.home() / ".cache") / "semrank" / "wikispeedia"


class _ProgressReport:
    """Logs the progress of a download now and then, and always when it is complete."""

    def __init__(self) -> None:
        self._last = 0.0

    def __call__(self, name: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        if done == total or now - self._last >= _REPORT_SECONDS:
            self._last = now
            of = "" if total is None else f" of {total / 1e6:.1f}"
            log.info("%s: %.1f%s MB", name, done / 1e6, of)


@dataclass(frozen=True)
class _Wikispeedia:
    """Reads one file of the set in a folder; a range's format names which."""

    source: Path

    def ranges(self) -> list[SourceRange]:
        """The files of the set."""
        graph = wikispeedia.graph_files(self.source)
        missing = [name for name in _GRAPH_FILES if name not in graph]
        if missing:
            log.warning(
                "%s: found no %s; the snapshot gets no clicks from there", self.source, " and no ".join(missing)
            )
        parts = [(graph[name].path, name) for name in _GRAPH_FILES if name in graph]
        parts.append((wikispeedia.texts_path(self.source), _TEXTS))
        return [SourceRange(path, f"{WIKISPEEDIA}/{name}", 0, -1) for path, name in parts]

    def __call__(self, part: SourceRange) -> Iterator[SourceBatch]:
        graph = wikispeedia.graph_files(self.source)
        listed, batches = wikispeedia.read_articles(graph["articles.tsv"].open())
        name = part.format.removeprefix(f"{WIKISPEEDIA}/")
        if name == "articles.tsv":
            yield from batches
        elif name == "categories.tsv":
            yield from wikispeedia.read_categories(graph[name].open(), listed).batches
        elif name == "links.tsv":
            yield from wikispeedia.read_links(graph[name].open(), listed)
        elif name == _TEXTS:
            yield from wikispeedia.read_texts(wikispeedia.text_files(self.source), listed)
        else:
            yield from wikispeedia.read_paths(graph[name].open(), finished=name == "paths_finished.tsv")

    def topics(self) -> pa.Table:
        """The set's categories as topics (`TOPICS`)."""
        graph = wikispeedia.graph_files(self.source)
        listed, _ = wikispeedia.read_articles(graph["articles.tsv"].open())
        return wikispeedia.read_categories(graph["categories.tsv"].open(), listed).topics


@dataclass(frozen=True)
class _Manuals:
    """Reads one of the manuals in a folder; a range's path is that of the manual's own folder."""

    source: Path

    @cached_property
    def _files(self) -> ManualFiles:
        return ManualFiles.of(self.source)

    def ranges(self) -> list[SourceRange]:
        """The manuals, each as long as its files are together."""
        return [
            SourceRange(str(self.source / manual), MANUALS, 0, sum(self._files.sizes[number] for number in numbers))
            for manual, numbers in self._files.manuals.items()
        ]

    def __call__(self, part: SourceRange) -> Iterator[SourceBatch]:
        manual = "" if Path(part.path) == self.source else Path(part.path).name
        yield from read_manual(self._files, manual)

    def topics(self) -> pa.Table:
        """The manuals' sections as topics (`TOPICS`)."""
        return self._files.topics()


def run(arguments: argparse.Namespace, beam_arguments: list[str]) -> int:
    """Runs the command; returns the exit status."""
    own, options = read_options(DatasetOptions, arguments), beam_options(beam_arguments)
    output = path_for_workers(options, own.output)
    reading: _Wikispeedia | _Manuals
    if own.name == MANUALS:
        reading = _Manuals(Path(path_for_workers(options, own.source)))
    else:
        policy = Policy(redirect_hosts=frozenset(own.redirect_host))
        source = locate_source(own.source, None if own.downloads is None else Path(own.downloads), policy)
        reading = _Wikispeedia(Path(path_for_workers(options, str(source))))
    ranges, topics = reading.ranges(), reading.topics()
    parts = (*PARTS, _TOPICS, _SEEDS)
    inputs = [str(reading.source), *(path.path for path in ranges)]
    if own.topics is not None:
        folders.check_file("--topics", own.topics, overwrite=own.overwrite, inputs=inputs)
    folders.claim_folder("--output", output, parts=parts, overwrite=own.overwrite, inputs=inputs)
    work = folders.work_folder(output)
    write_parquet(own.topics or files.join(work, _TOPICS), topics)
    for topic, seeds in topic_seeds(topics).items():
        files.write_bytes(files.join(work, _SEEDS, f"{topic}.txt"), "".join(f"{url}\n" for url in seeds).encode())
    print(ingest(ranges, reading, output, options, {"dataset": own.name}))
    return 0


if __name__ == "__main__":
    from semrank.pipelines.cli import command_main, leave

    leave(command_main("dataset"))
