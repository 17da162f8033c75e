"""Reads crawls and click logs into a snapshot: pages/, links/, clicks/, aliases/, history/, rejects/, manifest.json.

Of several records of a page the newest counts; links and clicks to an address that moved count for the new one. Nothing
is lost without a reason: the manifest tells for every input file how many records were read, used, rejected and left
aside, and why.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from zoneinfo import available_timezones

import apache_beam as beam
import pyarrow.parquet as pq

from semrank.pipelines import folders
from semrank.pipelines.cluster import path_for_workers
from semrank.pipelines.memory import add_worker_arguments, worker_memory
from semrank.pipelines.plan import add_plan_argument, shown_plan
from semrank.pipelines.runtime import RunMetrics, beam_options, run_pipeline, stage_rows, versions
from semrank.schemas.errors import InputError
from semrank.schemas.tables import ALIASES, CLICKS, HISTORY, LINKS, PAGES, REJECTS
from semrank.transforms.columnar import files
from semrank.transforms.columnar.arrays import partition_count
from semrank.transforms.columnar.beam import NAMESPACE
from semrank.transforms.crawls import formats
from semrank.transforms.crawls.beam import BALANCE_FOLDER, SourceRange, WriteSnapshot
from semrank.transforms.crawls.pages import CrawlLimits
from semrank.transforms.logs.formats import FORMATS as LOG_FORMATS
from semrank.transforms.logs.formats import log_argument
from semrank.transforms.logs.options import MAX_SALT_BYTES, LogOptions, parse_columns
from semrank.transforms.streams.batch import SourceBatch
from semrank.transforms.streams.download import Policy, shown_url
from semrank.transforms.streams.lines import is_compressed, line_range
from semrank.transforms.streams.parameters import ParameterRules, urls_that_lost_parameters, use_parameters

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's options."""
    for name, source_format in formats.FORMATS.items():
        parser.add_argument(f"--{name}", action="append", default=[], metavar="GLOB", help=source_format.help)
    parser.add_argument(
        "--log",
        action="append",
        default=[],
        metavar="FORMAT=GLOB",
        help=f"a click or access log; formats: {', '.join(LOG_FORMATS)}",
    )
    parser.add_argument("--output", required=True, metavar="SNAPSHOT", help="folder of the snapshot, new or empty")
    parser.add_argument("--overwrite", action="store_true", help="replace a finished snapshot that is in the folder")
    add_worker_arguments(parser)
    add_plan_argument(parser)
    parser.add_argument(
        "--path-list",
        action="store_true",
        help="the files that the globs name list paths, one a line; they are read instead",
    )
    parser.add_argument("--base-url", metavar="URL", help="what stands before each path of a list")
    salt = parser.add_mutually_exclusive_group()
    salt.add_argument(
        "--user-salt-file",
        metavar="FILE",
        help=f"file with the secret that users' addresses are hashed with (default: the variable {SALT_VARIABLE})",
    )
    salt.add_argument("--user-salt", metavar="TEXT", help="the secret itself, which the list of processes shows")
    parser.add_argument("--log-site", metavar="URL", help="scheme and host of logs that record only paths")
    parser.add_argument(
        "--site-search", action="append", default=[], metavar="NAME", help="query parameter of the site's own search"
    )
    parser.add_argument("--log-columns", metavar="TEXT", help="columns of --log table: user=..,query=..,time=..,url=..")
    parser.add_argument("--spam-domain", action="append", default=[], metavar="HOST", help="a domain of referrer spam")
    parser.add_argument(
        "--nutch-zone",
        metavar="ZONE",
        help="zone of the machine that dumped Nutch's CrawlDb, such as Asia/Shanghai, for times in CST, PST or IST",
    )
    parser.add_argument(
        "--redirect-host",
        action="append",
        default=[],
        metavar="HOST",
        help="a further host that http(s) inputs may be redirected to, such as a server of mirrors",
    )
    limits = CrawlLimits()
    parser.add_argument(
        "--max-record-bytes",
        type=int,
        default=limits.max_record_bytes,
        metavar="N",
        help=f"largest record that is read (default {limits.max_record_bytes})",
    )
    parser.add_argument(
        "--max-links",
        type=int,
        default=limits.max_links,
        metavar="N",
        help=f"links taken from one page (default {limits.max_links})",
    )
    parser.add_argument(
        "--record-seconds",
        type=float,
        default=limits.record_seconds,
        metavar="S",
        help=f"processor time that one record may take before it is rejected (default {limits.record_seconds:g})",
    )
    parser.add_argument(
        "--robots-name", metavar="NAME", help="the crawler's name, whose robots directives count as those for all do"
    )
    parser.add_argument(
        "--keep-parameters",
        action="append",
        default=[],
        metavar="NAME[,NAME]",
        help="query parameters that stay in URLs although they are named like those of tracking or sessions",
    )
    parser.add_argument(
        "--drop-parameters",
        action="append",
        default=[],
        metavar="NAME[,NAME]",
        help="further query parameters that are taken out of URLs",
    )


@dataclass(frozen=True)
class _Reading:
    """How ranges are read; handed to workers."""

    limits: CrawlLimits
    logs: LogOptions
    downloads: Policy
    parameters: ParameterRules = field(default_factory=ParameterRules)

    def __call__(self, source: SourceRange) -> Iterator[SourceBatch]:
        use_parameters(self.parameters)
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
    """Runs the command; gives the exit status."""
    options = beam_options(beam_arguments)
    memory = worker_memory(arguments, options)
    reading = _reading(arguments)
    sources = _sources(arguments, reading)
    if not sources:
        names = ", ".join(f"--{name}" for name in (*formats.FORMATS, "log"))
        raise InputError(f"nothing to read: expected at least one of {names}")
    output = path_for_workers(options, arguments.output)
    ranges = [part for path, name in sources for part in _ranges(path_for_workers(options, path), name, reading.logs)]
    if arguments.plan:
        print(shown_plan(partial(_build, ranges=ranges, reading=reading, output=output, partitions=1), arguments.plan))
        return 0
    inputs = [path for path, _ in sources]
    folders.claim_folder("--output", output, parts=PARTS, overwrite=arguments.overwrite, inputs=inputs)
    rules = reading.parameters
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
    log.info(
        "reading %d files in %d parts, %s bytes", len({source.path for source in ranges}), len(ranges), f"{size:,}"
    )
    partitions = partition_count(size * _EXPANSION)
    work = folders.work_folder(output)
    build = partial(_build, ranges=ranges, reading=reading, output=work, partitions=partitions)
    metrics = run_pipeline(options, build, worker_memory=memory)
    if metrics is None:
        raise InputError(
            "--template_location: found with ingest, expected with rank: inputs are listed when a job starts"
        )
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
    return _summary(output, manifest, metrics)


def _build(
    pipeline: beam.Pipeline, *, ranges: Sequence[SourceRange], reading: Any, output: str, partitions: int
) -> None:
    pipeline | WriteSnapshot(ranges, reading, output, partitions=partitions)


def _names(option: str, lists: Sequence[str]) -> list[str]:
    """Names in lists that commas part."""
    names = [name.strip() for listed in lists for name in listed.split(",")]
    if not all(names) or any(character in name for name in names for character in "&=?# "):
        raise InputError(f"{option}: found {','.join(lists)!r}, expected names of parameters parted by commas")
    return names


def _robots_name(name: str | None) -> str | None:
    if name is not None and re.fullmatch("[A-Za-z0-9_.-]+", name) is None:
        raise InputError(f"--robots-name: found {name!r}, expected letters, digits, '-', '_' and '.'")
    return name


def _reading(arguments: argparse.Namespace) -> _Reading:
    for name in ("max_record_bytes", "max_links"):
        if getattr(arguments, name) < 1:
            raise InputError(f"--{name.replace('_', '-')}: found {getattr(arguments, name)}, expected at least 1")
    if not 0 < arguments.record_seconds < float("inf"):
        raise InputError(f"--record-seconds: found {arguments.record_seconds:g}, expected a number above 0")
    return _Reading(
        CrawlLimits(
            arguments.max_record_bytes,
            arguments.max_links,
            _zone(arguments.nutch_zone),
            arguments.record_seconds,
            _robots_name(arguments.robots_name),
        ),
        LogOptions(
            user_salt=_user_salt(arguments),
            site=arguments.log_site,
            site_search=tuple(arguments.site_search),
            columns=parse_columns(arguments.log_columns) if arguments.log_columns else {},
            spam_domains=tuple(arguments.spam_domain),
        ),
        Policy(redirect_hosts=frozenset(arguments.redirect_host)),
        ParameterRules.of(
            _names("--keep-parameters", arguments.keep_parameters),
            _names("--drop-parameters", arguments.drop_parameters),
        ),
    )


def _user_salt(arguments: argparse.Namespace) -> str | None:
    """The secret that users are hashed with: of the command line, a file, or the environment."""
    if arguments.user_salt is not None:
        return str(arguments.user_salt)
    if arguments.user_salt_file is None:
        return os.environ.get(SALT_VARIABLE)
    with files.open_binary(arguments.user_salt_file) as stream:
        # One byte more than may be, so that a longer one is found out; a line end is of the editor's.
        content = stream.read(MAX_SALT_BYTES + len("\r\n") + 1)
    return content.decode("utf-8", "surrogateescape").removesuffix("\n").removesuffix("\r")


def _zone(name: str | None) -> str | None:
    if name is not None and name not in available_timezones():
        raise InputError(f"--nutch-zone: found {name!r}, expected a zone of the tz database such as Asia/Shanghai")
    return name


def _sources(arguments: argparse.Namespace, reading: _Reading) -> list[tuple[str, str]]:
    """(path, format) of every input file, in the order of the options, each checked to be readable."""
    asked: list[tuple[str, str, str]] = []
    for name in formats.FORMATS:
        asked += [(f"--{name}", name, pattern) for pattern in getattr(arguments, name.replace("-", "_"))]
    for text in arguments.log:
        name, pattern = log_argument(text)
        LOG_FORMATS[name].check(reading.logs)
        asked.append(("--log", name, pattern))
    found: list[tuple[str, str]] = []
    for option, name, pattern in asked:
        paths = formats.expand(option, pattern)
        if arguments.path_list:
            paths = [path for listing in paths for path in _listed(listing, arguments, reading)]
        for path in paths:
            if name in formats.FORMATS:
                formats.FORMATS[name].check(path)
            else:
                formats.check_readable(path)
            found.append((path, name))
    return list(dict.fromkeys(found))


def _listed(listing: str, arguments: argparse.Namespace, reading: _Reading) -> list[str]:
    return formats.listed_paths(listing, arguments.base_url, reading.downloads)


def _ranges(path: str, name: str, logs: LogOptions) -> list[SourceRange]:
    size = formats.size_of(path)
    if size is None or size <= RANGE_BYTES:
        return [SourceRange(path, name, 0, -1)]
    if name in LOG_FORMATS:
        with formats.open_source(path) as stream:
            splittable = LOG_FORMATS[name].splittable(logs) and not is_compressed(stream.read(16))
    else:
        splittable = formats.FORMATS[name].splittable(path)
    if not splittable:
        return [SourceRange(path, name, 0, -1)]
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


def _summary(output: str, manifest: dict[str, Any], metrics: RunMetrics) -> str:
    lines = [f"{'records':>12} {'used':>12} {'rejected':>10} {'ignored':>10}  file"]
    for entry in manifest["sources"]:
        lines += _balance_lines(entry, f"{entry['path']} ({entry['format']})")
        ambiguous = entry["counters"].get("zone-ambiguous", 0)
        if ambiguous:
            lines.append(
                f"{'':>49}{ambiguous:,} times in a zone of several meanings left out; --nutch-zone settles them"
            )
        if sum(entry["rejected"].values()) == entry["records"] > 0:
            lines.append(f"{'':>49}nothing of it could be used; was it to be read as {entry['format']}?")
    if manifest["sessions"]["records"]:
        lines += _balance_lines(manifest["sessions"], "views in access logs, as clicks after a search")
    rows = manifest["rows"]
    lines.append("")
    lines.append(
        f"{output}: {rows['pages']:,} pages, {rows['links']:,} links, {rows['clicks']:,} clicks, "
        f"{rows['aliases']:,} aliases, {rows['rejects']:,} rejects, in {metrics.seconds:.1f} s"
    )
    outdated = manifest["outdated"][LINKS.name]
    if outdated:
        lines.append(f"{outdated:,} links of outdated captures are left out")
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
