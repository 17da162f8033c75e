"""What is fuzzed: one function a parser, which takes any bytes and fails where the parser breaks its promise.

The promise of readers of records: nothing is raised (but `InputError` where a whole file can't be one of its format),
records = used + rejected + ignored, a reject row for each rejected record, and tables that hold what their schemas say.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from semrank.pipelines import cli, config_file, evaluation_topics, export, ingest, queue, rounds
from semrank.pipelines.config import ScopeOptions, round_config
from semrank.pipelines.options import read_options
from semrank.pipelines.runtime import beam_options
from semrank.schemas.errors import InputError
from semrank.schemas.tables import REJECTS, TOPICS, conform
from semrank.transforms.columnar import files
from semrank.transforms.crawls.documents import document_title
from semrank.transforms.crawls.formats import FORMATS, listed_paths
from semrank.transforms.crawls.html import MAX_TEXT_CHARS, MAX_TITLE_CHARS, read_html
from semrank.transforms.crawls.media import PDF
from semrank.transforms.crawls.pages import CrawlLimits
from semrank.transforms.crawls.payload import decode_body, parse_http
from semrank.transforms.logs.formats import FORMATS as LOG_FORMATS
from semrank.transforms.logs.options import LogOptions
from semrank.transforms.logs.visits import VISITS, LogBatch
from semrank.transforms.ranking.ontology_database import learn_from_database
from semrank.transforms.ranking.ontology_formats import FORMATS as ONTOLOGY_FORMATS
from semrank.transforms.ranking.ontology_formats import format_ontology, parse_ontology
from semrank.transforms.ranking.ontology_model import LARGEST_SIGMA, Ontology, OntologyClass
from semrank.transforms.samples import wikispeedia
from semrank.transforms.streams.batch import MAX_REJECT_CHARS, TABLES, SourceBatch
from semrank.transforms.streams.lines import is_compressed
from semrank.transforms.streams.urls import MAX_URL_CHARS, canonical_url, host_of, url_words

Target = Callable[[bytes], None]

BASE = "https://example.org/folder/page?x=1"
LIMITS = CrawlLimits(max_record_bytes=1 << 16, max_links=50)
LOG_OPTIONS = (
    LogOptions(
        user_salt="a test's own key",
        site="https://www.example.com",
        site_search=("q",),
        columns={"user": "0", "query": "1", "time": "2", "url": "3"},
        spam_domains=("spam.example",),
    ),
    LogOptions(
        user_salt="a test's own key",
        site="https://www.example.com",
        columns={"user": "uid", "query": "words", "time": "when", "url": "page", "position": "rank"},
    ),
)
MAX_BODY_BYTES = 1 << 16

BINARY = frozenset({"cc-index"})
"""Formats whose files are no lines."""

_REASONS = frozenset(
    {
        *("url-missing", "url-invalid", "url-too-long"),
        *("scheme-missing", "scheme-unsupported", "host-missing", "host-invalid"),
    }
)


def lines_in(data: bytes) -> int:
    """Records of a file of JSON lines: its lines that are not empty."""
    return sum(1 for line in split_lines(data) if line.strip())


def log_lines_in(data: bytes) -> int:
    """Records of a log: its lines that are not empty."""
    return sum(1 for line in split_lines(data) if line.removesuffix(b"\r"))


def split_lines(data: bytes) -> list[bytes]:
    """Lines of a file, which end in CR alone where there is no LF."""
    return data.removeprefix(b"\xef\xbb\xbf").split(b"\n" if b"\n" in data else b"\r")


def check_batches(batches: Iterable[SourceBatch], stage: str) -> int:
    """Hold batches to their promise; gives the number of records."""
    records = 0
    for batch in batches:
        accounted = batch.used + sum(batch.rejected.values()) + sum(batch.ignored.values())
        assert batch.records == accounted, f"{batch.records} records, but {accounted} accounted for"
        assert min([batch.used, *batch.rejected.values(), *batch.ignored.values()]) >= 0
        rejected: Counter[str] = Counter()
        for name, table in batch.tables.items():
            conform(table, TABLES[name], check_nulls=True)
            table.validate(full=True)
        if isinstance(batch, LogBatch):
            conform(batch.visits, VISITS, check_nulls=True)
        for row in batch.tables["rejects"].to_pylist() if "rejects" in batch.tables else []:
            assert len(row["record"]) <= MAX_REJECT_CHARS
            rejected[row["reason"]] += row["stage"] == stage
        lost = Counter(batch.rejected) - rejected
        assert not lost, f"rejected without a row: {dict(lost)}"
        records += batch.records
    return records


def crawl_format(data: bytes, *, name: str) -> None:
    """A crawl format or table as `ingest` reads it."""
    try:
        records = check_batches(
            FORMATS[name].read(io.BytesIO(data), source="file", start=0, end=None, limits=LIMITS), name
        )
    except InputError:
        return
    by_lines = name in ("nutch", "heritrix", "scrapy", "pages", "links", "clicks") and not data.startswith(b"PAR1")
    if by_lines and not is_compressed(data):
        assert records == lines_in(data)


def log_format(data: bytes, *, name: str) -> None:
    """A log under options that name columns by number, and by the header."""
    for options in LOG_OPTIONS if name == "table" else LOG_OPTIONS[:1]:
        records = check_batches(LOG_FORMATS[name].read(io.BytesIO(data), source="file", options=options), name)
        if name != "matomo" and not is_compressed(data):
            assert records == log_lines_in(data)


def url(data: bytes) -> None:
    """A URL: one spelling a page, or a reason."""
    text = data.decode("utf-8", "surrogateescape")
    canonical: list[str] = []
    for base in (None, BASE):
        found = canonical_url(text, base)
        assert (found.url is None) != (found.reason is None)
        if found.url is None:
            assert found.reason in _REASONS
            continue
        assert len(found.url) <= MAX_URL_CHARS
        assert found.url.startswith(("http://", "https://"))
        assert canonical_url(found.url) == found, "canonicalising twice gives something else"
        canonical.append(found.url)
    # Together: Arrow compiles its expressions in each call, which takes a hundred times as long as all else.
    column = pa.array(canonical, pa.string())
    assert all(host_of(column).to_pylist())
    url_words(column).validate(full=True)


def html(data: bytes) -> None:
    """A page: any bytes give one."""
    page = read_html(data, url=BASE, max_links=LIMITS.max_links)
    assert len(page.text or "") <= MAX_TEXT_CHARS
    assert len(page.title or "") <= MAX_TITLE_CHARS
    links = page.links
    assert len(links.targets) == len(links.anchors) == len(links.nofollows) <= LIMITS.max_links
    for target in links.targets:
        assert canonical_url(target).url == target


def http(data: bytes) -> None:
    """A stored response with its encodings."""
    message = parse_http(data)
    if message is not None:
        assert len(decode_body(message, MAX_BODY_BYTES).content) <= MAX_BODY_BYTES


def document(data: bytes) -> None:
    """A document's title; the first byte says of which kind."""
    title = document_title(PDF if data[:1] == b"%" else "application/xml", data)
    assert title is None or 0 < len(title) <= MAX_TITLE_CHARS


def wikispeedia_rows(data: bytes) -> None:
    """The files of the data set."""
    stage = "wikispeedia"
    listed, batches = wikispeedia.read_articles(io.BytesIO(data))
    check_batches(batches, stage)
    check_batches(wikispeedia.read_categories(io.BytesIO(data), listed).batches, stage)
    check_batches(wikispeedia.read_links(io.BytesIO(data), listed), stage)
    for finished in (False, True):
        check_batches(wikispeedia.read_paths(io.BytesIO(data), finished=finished), stage)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for targets that read files by name; it goes with the process."""
    return tempfile.TemporaryDirectory(prefix="fuzz-")


def _written(data: bytes, name: str) -> Path:
    path = Path(_folder().name) / name
    path.write_bytes(data)
    return path


def seeds_file(data: bytes) -> None:
    """A file of seeds: each line that holds something is a URL or a reject."""
    path = _written(data, "seeds.txt")
    try:
        found = queue.queue_from_seeds(str(path))
    except InputError:
        return
    assert found.urls.num_rows
    assert found.harvest.num_rows == found.urls.num_rows


def path_list(data: bytes) -> None:
    """A list of paths."""
    try:
        paths = listed_paths(str(_written(data, "paths")), "https://data.example/")
    except InputError:
        return
    assert paths
    assert all("://" in path for path in paths)


def manifest(data: bytes) -> None:
    """A manifest that somebody else wrote, and who reads on in it."""
    folder = _written(data, files.MANIFEST).parent
    for kind in ("snapshot", "round", "evaluation"):
        with contextlib.suppress(InputError):
            files.read_manifest(str(folder), kind)
    with contextlib.suppress(InputError):
        rounds._check_same_run(str(folder), {"weight": 0.4}, "snapshot", queue.queue_from_urls([BASE], "seeds"))


def topics(data: bytes) -> None:
    """A table of topics, as `evaluate` reads it: each row is one of a topic or a reject."""
    try:
        found = evaluation_topics.read_topics(str(_written(data, "topics")))
    except InputError:
        return
    conform(found.table, TOPICS, check_nulls=True)
    conform(found.rejects, REJECTS, check_nulls=True)
    for table in (found.table, found.rejects):
        table.validate(full=True)
    if not data.startswith(b"PAR1") and not is_compressed(data):
        assert found.table.num_rows + found.rejects.num_rows == lines_in(data)


@cache
def _parser(name: str) -> argparse.ArgumentParser:
    return cli.command_parser(name, importlib.import_module(f"semrank.pipelines.{name}"))


def _check_rank(parsed: argparse.Namespace) -> None:
    round_config(parsed)


def _check_ingest(parsed: argparse.Namespace) -> None:
    own = read_options(ingest.IngestOptions, parsed)
    logs = ingest._reading(own).logs
    for text in own.log:
        LOG_FORMATS[ingest._log(text)[0]].check(logs)


def _check_export(parsed: argparse.Namespace) -> None:
    if files.is_local(parsed.output):  # of others it is asked whether they are there
        export._check(read_options(export.ExportOptions, parsed), read_options(ScopeOptions, parsed))


_OPTION_CHECKS = {"rank": _check_rank, "rounds": _check_rank, "ingest": _check_ingest, "export": _check_export}
"""What commands look at in their options before they touch anything."""


def options(data: bytes) -> None:
    """Options, one a line, of a command in the first line; without one, of `rank` and of `ingest`.

    A user's mistake is an exit with status 2 or an `InputError`.
    """
    arguments = data.decode("utf-8", "surrogateescape").split("\n")
    commands = [arguments.pop(0)] if arguments[0] in cli.COMMANDS else ["rank", "ingest"]
    for name in commands:
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            contextlib.suppress(InputError, OSError),  # such as names that are too long, reported in one line
        ):
            try:
                parsed, rest = _parser(name).parse_known_args(arguments)
            except SystemExit as left:
                if left.code not in (0, 2):
                    raise
                continue
            if name in _OPTION_CHECKS:
                _OPTION_CHECKS[name](parsed)
            beam_options(rest)


def option_file(data: bytes) -> None:
    """A file of options, which becomes arguments of `rank`."""
    path = _written(data, "semrank.toml")
    with contextlib.suppress(InputError):
        _, arguments = config_file.file_arguments(
            _parser("rank"), "rank", [f"--config={path}"], cli.COMMANDS, beam=True
        )
        assert all(argument.startswith("--") for argument in arguments)


_watched = threading.local()


@cache
def _watch() -> None:
    """Notes requests for the network; a hook can't be taken away, so there is one for the process."""

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if event in ("socket.connect", "socket.getaddrinfo", "urllib.Request"):
            getattr(_watched, "requests", []).append((event, str(arguments)))

    sys.addaudithook(note)


def _check_ontology(ontology: Ontology) -> None:
    """What an ontology promises, and that it is the same one when it is written and read again."""
    assert ontology.topic in ontology.classes
    for name, known in ontology.classes.items():
        assert known.name == name
        assert known.parents | known.wholes | known.related <= set(ontology.classes)
        assert 0 <= known.sigma <= LARGEST_SIGMA
    assert np.isfinite(ontology.weights()).all()
    words = ontology.word_table("en")
    again = parse_ontology(format_ontology(ontology), "turtle", "written")
    # A label is among the words that stand for a class, whether or not it is stated.
    assert {name: _relations(known) for name, known in again.classes.items()} == {
        name: _relations(known) for name, known in ontology.classes.items()
    }
    assert again.topic == ontology.topic
    assert again.word_table("en").equals(words)


def _relations(known: OntologyClass) -> tuple[object, ...]:
    return known.label, known.words | {known.label}, known.parents, known.wholes, known.related, known.sigma


def ontology_file(data: bytes, *, kind: str) -> None:
    """An ontology in one of the formats of RDF: nothing else is asked for while it is read."""
    _watch()
    requests: list[tuple[str, str]] = []
    _watched.requests = requests
    with contextlib.suppress(InputError):
        _check_ontology(parse_ontology(data, kind, "file"))
    assert not requests, requests


def ontology_database(data: bytes) -> None:
    """A file of SQLite, which somebody else wrote."""
    with contextlib.suppress(InputError):
        _check_ontology(learn_from_database(f"sqlite:///{_written(data, 'shop.db')}"))


TARGETS: Mapping[str, Target] = {
    **{name: partial(crawl_format, name=name) for name in FORMATS},
    **{f"log-{name}": partial(log_format, name=name) for name in LOG_FORMATS},
    **{f"ontology-{kind}": partial(ontology_file, kind=kind) for kind in sorted(set(ONTOLOGY_FORMATS.values()))},
    **{
        "ontology-sqlite": ontology_database,
        "url": url,
        "html": html,
        "http": http,
        "document": document,
        "wikispeedia": wikispeedia_rows,
        "seeds": seeds_file,
        "topics": topics,
        "path-list": path_list,
        "manifest": manifest,
        "options": options,
        "option-file": option_file,
    },
}
"""All targets by name."""
