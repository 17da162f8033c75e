"""Reads crawls and click logs into a snapshot: pages/, links/, clicks/, aliases/, history/, rejects/, manifest.json.

Of several records of a page the newest counts; links and clicks to a URL that moved count for the new URL. For every
input file, the manifest lists how many records were read, used, rejected and ignored, and why.
"""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, make_dataclass, replace
from functools import partial
from typing import Any
from zoneinfo import available_timezones

import apache_beam as beam
import pyarrow.parquet as pq

from semrank.pipelines import folders
from semrank.pipelines.answers import counted
from semrank.pipelines.cluster import path_for_workers
from semrank.pipelines.memory import WorkerOptions, worker_memory
from semrank.pipelines.options import expected_one, given_options, meant, option, read_options, required
from semrank.pipelines.plan import PlanOptions, shown_plan
from semrank.pipelines.runtime import RunMetrics, beam_options, run_pipeline, stage_rows, versions
from semrank.schemas.errors import InputError
from semrank.schemas.tables import ALIASES, CLICKS, HISTORY, LINKS, PAGES, REJECTS
from semrank.transforms.columnar import files
from semrank.transforms.columnar.arrays import partition_count
from semrank.transforms.columnar.beam import NAMESPACE
from semrank.transforms.crawls import formats
from semrank.transforms.crawls.beam import BALANCE_FOLDER, SourceRange, WriteSnapshot
from semrank.transforms.crawls.pages import DEFAULT_LIMITS, CrawlLimits
from semrank.transforms.logs.formats import FORMATS as LOG_FORMATS
from semrank.transforms.logs.formats import log_argument
from semrank.transforms.logs.options import MAX_SALT_BYTES, LogOptions, parse_columns
from semrank.transforms.streams.batch import SourceBatch
from semrank.transforms.streams.download import Policy, shown_url
from semrank.transforms.streams.lines import is_compressed, line_range
from semrank.transforms.streams.parameters import ParameterRules, urls_that_lost_parameters

EXAMPLES = """\
examples:
  semrank ingest --warc 'crawl/*.warc.gz' --clicks clicks.parquet --output snapshot
  semrank ingest --pages pages.parquet --links links.jsonl --log combined='logs/access.log*' \\
      --log-site https://www.example.com --user-salt-file salt.txt --output tables
"""

TABLES = (PAGES, LINKS, CLICKS, ALIASES, HISTORY, REJECTS)
PARTS = (*(table.name for table in TABLES), BALANCE_FOLDER)

SALT_VARIABLE = "SEMRANK_USER_SALT"
"""Environment variable that holds the secret that users are hashed with."""

LOST_PARAMETERS = "urls-without-parameters"
"""Counter of URLs that lost a parameter of tracking or of a session."""

RANGE_BYTES = 64 << 20
"""Bytes of an input that one task reads: some seconds of parsing, so that workers stay evenly busy."""

_EXPANSION = 4
"""How many times larger the rows are than their compressed sources, about."""

log = logging.getLogger(NAMESPACE)


_INPUTS, _LOGS, _LIMITS, _URLS = "inputs", "logs", "limits", "URLs"
"""Titles of groups of options."""

_PARAMETERS = {
    "metavar": "NAME[,NAME]",
    "pattern": "[^&=?# ,]+(, *[^&=?# ,]+)*",
    "example": "names of parameters separated by commas",
}

Inputs = make_dataclass(
    "Inputs",
    [
        (name.replace("-", "_"), tuple[str, ...], option((), source_format.help, _INPUTS, metavar="GLOB"))
        for name, source_format in formats.FORMATS.items()
    ],
    frozen=True,
)
"""The files to read, by format; an option for each of `formats.FORMATS`."""


@dataclass(frozen=True, kw_only=True)
class IngestOptions:
    """How the files of `Inputs` and of logs are read, and where the snapshot is written."""

    log: tuple[str, ...] = option(
        (), f"a click or access log; formats: {', '.join(LOG_FORMATS)}", _INPUTS, metavar="FORMAT=GLOB"
    )
    path_list: bool = option(
        False, "the globs name lists of paths, one path a line; the files in the lists are read", _INPUTS, plain=True
    )
    base_url: str | None = option(None, "URL that is put before each path of a list", _INPUTS, metavar="URL")
    redirect_host: tuple[str, ...] = option(
        (), "a further host that http(s) inputs may be redirected to, such as a mirror", _INPUTS, metavar="HOST"
    )
    output: str = required("folder of the snapshot, new or empty", metavar="SNAPSHOT")
    overwrite: bool = option(False, "replace a finished snapshot in the folder", plain=True)
    user_salt_file: str | None = option(
        None,
        f"file with the secret that users' addresses are hashed with (default: the variable {SALT_VARIABLE})",
        _LOGS,
        metavar="FILE",
        exclusive="salt",
    )
    user_salt: str | None = option(
        None,
        "the secret itself; other users of the machine can see it in the list of processes",
        _LOGS,
        metavar="TEXT",
        exclusive="salt",
    )
    log_site: str | None = option(None, "scheme and host of logs that record only paths", _LOGS, metavar="URL")
    site_search: tuple[str, ...] = option((), "query parameter of the site's own search", _LOGS, metavar="NAME")
    log_columns: str | None = option(
        None, "columns of --log table: user=..,query=..,time=..,url=..", _LOGS, metavar="TEXT"
    )
    spam_domain: tuple[str, ...] = option((), "a domain of referrer spam", _LOGS, metavar="HOST")
    nutch_zone: str | None = option(
        None,
        "time zone of the machine that dumped Nutch's CrawlDb, such as Asia/Shanghai, for times in CST, PST or IST",
        _INPUTS,
        metavar="ZONE",
    )
    max_record_bytes: int = option(
        DEFAULT_LIMITS.max_record_bytes, "bytes of the largest record that is read", _LIMITS, metavar="N", low=1
    )
    max_links: int = option(DEFAULT_LIMITS.max_links, "links taken from one page", _LIMITS, metavar="N", low=1)
    record_seconds: float = option(
        DEFAULT_LIMITS.record_seconds,
        "processor time that one record may take before it is rejected, in seconds",
        _LIMITS,
        metavar="S",
        low=0,
        above=True,
    )
    robots_name: str | None = option(
        None,
        "the crawler's name; robots directives for this name count like those for all crawlers",
        _INPUTS,
        metavar="NAME",
        pattern="[A-Za-z0-9_.-]+",
        example="letters, digits, '-', '_' and '.'",
    )
    keep_parameters: tuple[str, ...] = option(
        (), "query parameters that stay in URLs although they look like tracking or sessions", _URLS, **_PARAMETERS
    )
    drop_parameters: tuple[str, ...] = option((), "further query parameters to remove from URLs", _URLS, **_PARAMETERS)


OPTIONS = (Inputs, IngestOptions, WorkerOptions, PlanOptions)


@dataclass(frozen=True)
class _Reading:
    """How ranges are read; handed to workers."""

    limits: CrawlLimits
    logs: LogOptions
    downloads: Policy

    def __call__(self, source: SourceRange) -> Iterator[SourceBatch]:
        before = urls_that_lost_parameters()
        for batch in self._batches(source):
            lost, before = urls_that_lost_parameters() - before, urls_that_lost_parameters()
            yield replace(batch, counters={**batch.counters, LOST_PARAMETERS: lost}) if lost else batch

    def _batches(self, source: SourceRange) -> Iterator[SourceBatch]:
        name = shown_url(source.path)
        with formats.open_source(source.path, self.downloads) as stream:
            log_format = LOG_FORMATS.get(source.format)
            stop = None if source.stop < 0 else source.stop
            if log_format is None:
                yield from formats.FORMATS[source.format].read(
                    stream, source=name, start=source.start, end=stop, limits=self.limits
                )
            elif stop is None:
                yield from log_format.read(stream, source=name, options=self.logs)
            else:
                lines = line_range(stream, source.start, stop, record_start=log_format.record_start)
                yield from log_format.read(lines, source=name, options=self.logs)


def run(arguments: argparse.Namespace, beam_arguments: list[str]) -> int:
    """Runs the command; returns the exit status."""
    own, options = read_options(IngestOptions, arguments), beam_options(beam_arguments)
    memory = worker_memory(arguments, options)
    reading = _reading(own)
    sources = _sources(given_options(Inputs, arguments), own, reading)
    if not sources:
        names = ", ".join(f"--{name}" for name in (*formats.FORMATS, "log"))
        raise InputError(f"nothing to read: expected at least one of {names}")
    output = path_for_workers(options, own.output)
    ranges = [part for path, name in sources for part in _ranges(path_for_workers(options, path), name, reading.logs)]
    if form := read_options(PlanOptions, arguments).plan:
        print(shown_plan(partial(_build, ranges=ranges, reading=reading, output=output, partitions=1), form))
        return 0
    inputs = [path for path, _ in sources]
    folders.claim_folder("--output", output, parts=PARTS, overwrite=own.overwrite, inputs=inputs)
    rules = reading.limits.rules
    extra = {"url_parameters": {"keep": sorted(rules.keep), "drop": sorted(rules.drop)}}
    print(ingest(ranges, reading, output, options, extra, memory=memory))
    return 0


def ingest(
    ranges: Sequence[SourceRange],
    reading: Any,
    output: str,
    options: Any,
    extra: dict[str, Any] | None = None,
    *,
    memory: int | None = None,
) -> str:
    """Reads ranges of sources and writes a snapshot into a claimed folder.

    Args:
        ranges: what to read.
        reading: reads a range.
        output: the snapshot's folder.
        options: Beam's options.
        extra: further entries of the manifest.
        memory: bytes that a worker process has, or None for all that its machine has.

    Returns:
        A summary for people.
    """
    begin = time.time()
    size = sum(max(0, _size(source)) for source in ranges)
    log.info("reading %s, %s", counted(len({source.path for source in ranges}), "file"), counted(size, "byte"))
    partitions = partition_count(size * _EXPANSION)
    work = folders.work_folder(output)
    build = partial(_build, ranges=ranges, reading=reading, output=work, partitions=partitions)
    metrics = run_pipeline(options, build, worker_memory=memory)
    if metrics is None:
        raise InputError("--template_location: can be used with rank only: ingest lists its inputs when a job starts")
    folders.complete_parts(work, {table.name: table.schema for table in TABLES})
    balance = _balance(work)
    files.delete(files.join(work, BALANCE_FOLDER))
    rows = {table.name: folders.row_count(work, table.name) for table in TABLES}
    sources = _source_rows(ranges, balance)
    manifest = {
        "kind": "snapshot",
        "sources": sources,
        "sessions": _entry(balance, "", "sessions"),
        "moved": {row["name"]: row["count"] for row in balance if row["kind"] == "moved"},
        "borrowed": {PAGES.name: sum(row["count"] for row in balance if row["kind"] == "borrowed")},
        **_left_out(sources, balance, rows),
        "rows": rows,
        "rejected": folders.rejects_by_reason(work),
        "stages": stage_rows(metrics),
        "counters": metrics.counters,
        "seconds": round(time.time() - begin, 3),
        "versions": versions(),
        **(extra or {}),
    }
    folders.publish(output, manifest)
    for line in _warnings(manifest):
        log.warning("%s", line)
    return _summary(output, manifest, metrics)


def _build(
    pipeline: beam.Pipeline, *, ranges: Sequence[SourceRange], reading: Any, output: str, partitions: int
) -> None:
    pipeline | WriteSnapshot(ranges, reading, output, partitions=partitions)


def _names(lists: Sequence[str]) -> list[str]:
    """Names in lists that are separated by commas."""
    return [name.strip() for listed in lists for name in listed.split(",")]


def _reading(own: IngestOptions) -> _Reading:
    rules = ParameterRules.of(_names(own.keep_parameters), _names(own.drop_parameters))
    return _Reading(
        CrawlLimits(
            own.max_record_bytes, own.max_links, _zone(own.nutch_zone), own.record_seconds, own.robots_name, rules
        ),
        LogOptions(
            user_salt=_user_salt(own),
            site=own.log_site,
            site_search=own.site_search,
            columns=parse_columns(own.log_columns) if own.log_columns else {},
            spam_domains=own.spam_domain,
            rules=rules,
        ),
        Policy(redirect_hosts=frozenset(own.redirect_host)),
    )


def _user_salt(own: IngestOptions) -> str | None:
    """The secret that users are hashed with: of the command line, a file, or the environment."""
    if own.user_salt is not None:
        return own.user_salt
    if own.user_salt_file is None:
        return os.environ.get(SALT_VARIABLE)
    with files.open_binary(own.user_salt_file) as stream:
        # One byte more than may be, so that a longer one is found out; a line end is of the editor's.
        content = stream.read(MAX_SALT_BYTES + len("\r\n") + 1)
    return content.decode("utf-8", "surrogateescape").removesuffix("\n").removesuffix("\r")


def _zone(name: str | None) -> str | None:
    if name is not None and name not in (known := available_timezones()):
        raise InputError(
            f"--nutch-zone: found '{name}'{meant(name, known)}, expected a zone of the tz database such as "
            "Asia/Shanghai"
        )
    return name


def _sources(inputs: Mapping[str, Sequence[str]], own: IngestOptions, reading: _Reading) -> list[tuple[str, str]]:
    """(path, format) of every input file, in the order of the options, each checked to be readable."""
    asked: list[tuple[str, str, str]] = []
    for name in formats.FORMATS:
        asked += [(f"--{name}", name, pattern) for pattern in inputs.get(name.replace("-", "_"), ())]
    for text in own.log:
        name, pattern = _log(text)
        LOG_FORMATS[name].check(reading.logs)
        asked.append(("--log", name, pattern))
    found: list[tuple[str, str]] = []
    for option_given, name, pattern in asked:
        paths = formats.expand(option_given, pattern)
        if own.path_list:
            paths = [
                path for listing in paths for path in formats.listed_paths(listing, own.base_url, reading.downloads)
            ]
        for path in paths:
            if name in formats.FORMATS:
                formats.FORMATS[name].check(path)
            else:
                formats.check_readable(path)
            found.append((path, name))
    return list(dict.fromkeys(found))


def _log(text: str) -> tuple[str, str]:
    """Format and glob of `--log FORMAT=GLOB`."""
    name, equals, _ = text.partition("=")
    if equals and name not in LOG_FORMATS:
        raise InputError(f"--log: {expected_one(name, LOG_FORMATS)}")
    return log_argument(text)


def _ranges(path: str, name: str, logs: LogOptions) -> list[SourceRange]:
    size = formats.size_of(path)
    if size is None or size <= RANGE_BYTES:
        return [SourceRange(path, name, 0, -1, size or 0)]
    if name in LOG_FORMATS:
        with formats.open_source(path) as stream:
            splittable = LOG_FORMATS[name].splittable(logs) and not is_compressed(stream.read(16))
    else:
        splittable = formats.FORMATS[name].splittable(path)
    if not splittable:
        return [SourceRange(path, name, 0, -1, size)]
    return [SourceRange(path, name, start, min(start + RANGE_BYTES, size)) for start in range(0, size, RANGE_BYTES)]


def _size(source: SourceRange) -> int:
    if source.stop >= 0:
        return source.stop - source.start
    return formats.size_of(source.path) or 0


def _balance(output: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for path in folders.table_files(output, BALANCE_FOLDER):
        with files.open_binary(path) as stream:
            rows += pq.read_table(stream).to_pylist()
    return rows


def _entry(balance: Sequence[dict[str, Any]], path: str, name: str) -> dict[str, Any]:
    own = [row for row in balance if row["path"] == path and row["format"] == name]
    single = {row["kind"]: row["count"] for row in own if row["kind"] in ("records", "used")}
    grouped: dict[str, dict[str, int]] = {kind: {} for kind in ("rejected", "ignored", "rows", "counters")}
    for row in own:
        if row["kind"] in grouped:
            grouped[row["kind"]][row["name"]] = row["count"]
    return {"records": single.get("records", 0), "used": single.get("used", 0), **grouped}


def _source_rows(ranges: Sequence[SourceRange], balance: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    named = dict.fromkeys((shown_url(source.path), source.format) for source in ranges)
    entries = [{"path": path, "format": name, **_entry(balance, path, name)} for path, name in named]
    for entry in entries:
        accounted = entry["used"] + sum(entry["rejected"].values()) + sum(entry["ignored"].values())
        if entry["records"] != accounted:
            raise RuntimeError(f"{entry['path']}: {entry['records']} records read, but {accounted} accounted for")
    return entries


def _left_out(
    sources: Sequence[dict[str, Any]], balance: Sequence[dict[str, Any]], rows: dict[str, int]
) -> dict[str, dict[str, int]]:
    """Rows of links that the files gave and the snapshot does not have: of outdated captures, and repetitions."""
    given = sum(entry["rows"].get(LINKS.name, 0) for entry in sources)
    outdated = sum(row["count"] for row in balance if (row["kind"], row["name"]) == ("outdated", LINKS.name))
    repeated = given - outdated - rows[LINKS.name]
    if repeated < 0:
        raise RuntimeError(f"{given} links read and {outdated} outdated, but {rows[LINKS.name]} written")
    return {"outdated": {LINKS.name: outdated}, "repeated": {LINKS.name: repeated}}


def _warnings(manifest: dict[str, Any]) -> list[str]:
    """What a user may have overlooked: inputs of which nothing could be used, and a snapshot that nothing ranks."""
    lines = [
        f"{entry['path']}: no record could be used; is {entry['format']} the right format?"
        for entry in manifest["sources"]
        if sum(entry["rejected"].values()) == entry["records"] > 0
        # A WAT or WET file read as the other, or a WARC file as either, has records that are all ignored.
        or (entry["format"] in ("wat", "wet") and entry["used"] == 0 < entry["records"])
    ]
    if not manifest["rows"][PAGES.name] and not manifest["rows"][LINKS.name]:
        lines.append("the snapshot has no pages and no links, so no round can be ranked from it")
    return lines


def _summary(output: str, manifest: dict[str, Any], metrics: RunMetrics) -> str:
    lines = [f"{'records':>12} {'used':>12} {'rejected':>10} {'ignored':>10}  file"]
    for entry in manifest["sources"]:
        lines += _balance_lines(entry, f"{entry['path']} ({entry['format']})")
        ambiguous = entry["counters"].get("zone-ambiguous", 0)
        if ambiguous:
            lines.append(
                f"{'':>49}{ambiguous:,} times left out because their time zone is ambiguous; name it with --nutch-zone"
            )
    if manifest["sessions"]["records"]:
        lines += _balance_lines(manifest["sessions"], "page views in access logs, read as clicks after a search")
    rows = manifest["rows"]
    lines.append("")
    lines.append(
        f"{output}: {counted(rows['pages'], 'page')}, {counted(rows['links'], 'link')}, "
        f"{counted(rows['clicks'], 'click')}, {counted(rows['aliases'], 'alias', 'aliases')}, "
        f"{counted(rows['rejects'], 'reject')}, in {metrics.seconds:.1f} s"
    )
    outdated = manifest["outdated"][LINKS.name]
    if outdated:
        lines.append(f"{counted(outdated, 'link')} of older captures left out")
    return "\n".join(lines)


def _balance_lines(entry: dict[str, Any], name: str) -> list[str]:
    """What became of records: their numbers, and the reasons where there are any."""
    rejected, ignored = sum(entry["rejected"].values()), sum(entry["ignored"].values())
    lines = [f"{entry['records']:>12,} {entry['used']:>12,} {rejected:>10,} {ignored:>10,}  {name}"]
    for kind in ("rejected", "ignored"):
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(entry[kind].items()))
        if reasons:
            lines.append(f"{'':>49}{kind}: {reasons}")
    return lines


if __name__ == "__main__":
    from semrank.pipelines.cli import command_main, leave

    leave(command_main("ingest"))
