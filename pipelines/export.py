"""Writes the selected URLs of a finished round as a file that a crawler takes, best first.

What the crawler would misread is left out, counted, and written beside the file as FILE.rejects.jsonl. A name that
ends in .gz makes a compressed file. The same round gives the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from semrank.pipelines.answers import answer
from semrank.pipelines.folders import check_file, check_unchanged, fingerprint, read_parts
from semrank.pipelines.scope import add_scope_arguments, scope_rules
from semrank.schemas.errors import InputError
from semrank.transforms.columnar import files
from semrank.transforms.frontier.exports.nutch import FETCH_INTERVAL, MOST_INTERVAL
from semrank.transforms.frontier.exports.rows import EXPORTED, Selection, joined, json_text
from semrank.transforms.frontier.exports.targets import HERITRIX_ENDINGS, TARGETS, target

EXAMPLES = """\
examples:
  semrank export --round round-0000 --format scrapy --output frontier.jsonl
  semrank export --round round-0000 --format nutch --output urls/frontier.tsv.gz --max-urls 100000
  semrank export --round round-0000 --format heritrix --output frontier.schedule
"""

REJECTS_ENDING = ".rejects.jsonl"
"""What the name of the file of rejects ends in."""

COMPRESSION_LEVEL = 6
"""zlib's own default: beyond it, lists of URLs shrink by a few percent in several times the time."""

_COPY_BYTES = 1 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's options."""
    parser.add_argument("--round", required=True, metavar="ROUND", help="a finished round")
    parser.add_argument("--format", required=True, choices=tuple(TARGETS), help="the crawler that the file is for")
    parser.add_argument(
        "--output",
        required=True,
        metavar="FILE",
        help=f"the file to write, compressed if it ends in .gz; for heritrix one of {', '.join(HERITRIX_ENDINGS)}",
    )
    parser.add_argument("--max-urls", type=int, metavar="N", help="write at most the N best URLs")
    parser.add_argument(
        "--fetch-interval",
        type=int,
        metavar="SECONDS",
        help=f"for nutch: time until a page is fetched again (default {FETCH_INTERVAL}, 30 days)",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the file if it is there")
    add_scope_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; gives the exit status."""
    _check(arguments)
    read = fingerprint(arguments.round, "round")
    most = arguments.max_urls
    total = _selected_count(arguments.round)
    form = target(
        arguments.format,
        PurePosixPath(arguments.output).name,
        total=total if most is None else min(total, most),
        fetch_interval=FETCH_INTERVAL if arguments.fetch_interval is None else arguments.fetch_interval,
    )
    selection = Selection(form.faults, most, scope_rules(arguments))
    rejects_path = arguments.output + REJECTS_ENDING
    with _draft(arguments.output) as output, _draft(rejects_path) as rejects:
        with _compressed(output, arguments.output) as stream:
            for lines in form.lines(_taken(arguments.round, selection, rejects)):
                _write_lines(stream, lines)
        check_unchanged(read)
        # The rejects first: where the file is, its rejects are too.
        files.delete(rejects_path)
        if selection.rejected:
            _publish(rejects, rejects_path)
        _publish(output, arguments.output)
    facts = {"file": arguments.output, "format": arguments.format, "selected": total, "written": selection.taken}
    text = _summary(arguments.output, arguments.format, selection, total)
    answer(arguments, text, {**facts, "rejected": dict(selection.rejected)})
    return 0


def _check(arguments: argparse.Namespace) -> None:
    if arguments.max_urls is not None and arguments.max_urls < 1:
        raise InputError(f"--max-urls: found {arguments.max_urls}, expected at least 1")
    interval = arguments.fetch_interval
    if interval is not None and arguments.format != "nutch":
        raise InputError(f"--fetch-interval: found --format {arguments.format}, expected nutch")
    if interval is not None and not 1 <= interval <= MOST_INTERVAL:
        raise InputError(f"--fetch-interval: found {interval}, expected 1 to {MOST_INTERVAL} seconds")
    rules = (arguments.include, arguments.exclude, arguments.only_hosts, arguments.only_domains)
    inputs = [arguments.round, *(path for path in rules if path is not None)]
    for path in (arguments.output, arguments.output + REJECTS_ENDING):
        check_file("--output", path, overwrite=arguments.overwrite, inputs=inputs)


def _selected_count(folder: str) -> int:
    return sum(int(pc.sum(part["selected"]).as_py() or 0) for part in read_parts(folder, EXPORTED.columns("selected")))


def _taken(folder: str, selection: Selection, rejects: IO[bytes]) -> Iterator[pa.Table]:
    """The rows to write, table by table; rejects are written on the way."""
    for table in read_parts(folder, EXPORTED):
        if selection.full:
            return
        taken, rejected = selection.take(table)
        if rejected.num_rows:
            stage, reason, record = (json_text(rejected[name]) for name in ("stage", "reason", "record"))
            _write_lines(rejects, joined('{"stage":', stage, ',"reason":', reason, ',"record":', record, "}"))
        yield taken


def _write_lines(stream: IO[bytes], lines: pa.Array) -> None:
    if len(lines):
        # A string array holds its values one after the other, so with line ends they are the file's bytes.
        ended = joined(lines, "\n")
        _, offsets, values = ended.buffers()
        ends = np.frombuffer(offsets, dtype=np.int32)
        stream.write(memoryview(values)[ends[ended.offset] : ends[ended.offset + len(ended)]])


@contextmanager
def _compressed(stream: IO[bytes], path: str) -> Iterator[IO[bytes]]:
    if not path.endswith(".gz"):
        yield stream
        return
    # Neither a time nor a name stands in the file, so that the same lines are the same bytes.
    with gzip.GzipFile(filename="", mode="wb", compresslevel=COMPRESSION_LEVEL, fileobj=stream, mtime=0) as packed:
        yield packed  # type: ignore[misc]


@contextmanager
def _draft(path: str) -> Iterator[BinaryIO]:
    """A file to write on: beside a local target, among the system's temporary files for a remote one."""
    try:
        if files.is_local(path):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            name = Path(path).with_name(f".{Path(path).name}.{uuid.uuid4().hex}")
        else:
            name = Path(tempfile.gettempdir()) / f"semrank-export-{uuid.uuid4().hex}"
        stream = name.open("xb")
    except OSError as cause:
        raise InputError(f"--output {path}: can't be written: {cause.strerror}") from cause
    try:
        with stream:
            yield stream
    finally:
        name.unlink(missing_ok=True)


def _publish(draft: BinaryIO, path: str) -> None:
    """Gives a draft the name of its target, so that no reader ever sees a part of it."""
    draft.flush()
    if files.is_local(path):
        Path(draft.name).replace(path)
        return
    # Object stores show an object only when its upload is complete.
    with (
        Path(draft.name).open("rb") as source,
        FileSystems.create(path, "application/octet-stream", compression_type=CompressionTypes.UNCOMPRESSED) as stream,
    ):
        shutil.copyfileobj(source, stream, _COPY_BYTES)


def _summary(path: str, name: str, selection: Selection, selected: int) -> str:
    parts = [f"{selection.taken:,} of {selected:,} selected URLs for {name}"]
    if selection.rejected:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(selection.rejected.items()))
        parts.append(f"rejected {sum(selection.rejected.values()):,} ({reasons}), see {path}{REJECTS_ENDING}")
    return f"{path}: " + "; ".join(parts)


if __name__ == "__main__":
    from semrank.pipelines.cli import command_main, leave

    leave(command_main("export"))
