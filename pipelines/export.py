"""Writes the selected URLs of a finished round as a file for a crawler, best first.

URLs that the crawler would misread are left out, counted, and listed in FILE.rejects.jsonl. The file is compressed if
its name ends in .gz. The same round always gives the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from semrank.pipelines.answers import answer, counted
from semrank.pipelines.config import ScopeOptions
from semrank.pipelines.folders import check_file, check_unchanged, fingerprint, read_parts
from semrank.pipelines.options import option, read_options, required
from semrank.pipelines.scope import scope_rules
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
"""Ending of the name of the file of rejects."""

RECORDS = ".semrank"
"""Name of the hidden folder with the files by which `--overwrite` recognises exports."""

COMPRESSION_LEVEL = 6
"""zlib's default: higher levels save a few percent and take several times as long."""

_COPY_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """What is written for which crawler; `ScopeOptions` exclude URLs."""

    round: str = required("a finished round", metavar="ROUND")
    format: str = required("the crawler that the file is for", metavar="FORMAT", choices=tuple(TARGETS))
    output: str = required(
        f"the file to write, compressed if its name ends in .gz; for heritrix one of {', '.join(HERITRIX_ENDINGS)}",
        metavar="FILE",
    )
    max_urls: int | None = option(None, "write at most the N best URLs", metavar="N", low=1)
    fetch_interval: int | None = option(
        None,
        f"for nutch: time until a page is fetched again (default {FETCH_INTERVAL}, 30 days)",
        metavar="SECONDS",
        low=1,
        high=MOST_INTERVAL,
    )
    overwrite: bool = option(False, "replace the file if it is an unchanged export", plain=True)


OPTIONS = (ExportOptions, ScopeOptions)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    own, scope = read_options(ExportOptions, arguments), read_options(ScopeOptions, arguments)
    present = _check(own, scope)
    read = fingerprint(own.round, "round")
    marks = (part["selected"] for part in read_parts(own.round, EXPORTED.columns("selected")))
    total = sum(int(pc.sum(mark).as_py() or 0) for mark in marks)
    form = target(
        own.format,
        PurePosixPath(own.output).name,
        total=total if own.max_urls is None else min(total, own.max_urls),
        fetch_interval=FETCH_INTERVAL if own.fetch_interval is None else own.fetch_interval,
    )
    selection = Selection(form.faults, own.max_urls, scope_rules(scope))
    rejects_path = own.output + REJECTS_ENDING
    with _draft(own.output) as output, _draft(rejects_path) as rejects:
        with _compressed(output, own.output) as stream:
            for lines in form.lines(_taken(own.round, selection, rejects)):
                _write_lines(stream, lines)
        check_unchanged(read)
        # The old sums are kept beside the new ones, so that a run that is killed after this can be repeated.
        written = [output, rejects] if selection.rejected else [output]
        sums = present.union(_checksum(_flushed(draft)) for draft in written)
        files.write_bytes(_record(own.output), "".join(f"{value}\n" for value in sorted(sums)).encode())
        # The rejects first: if the file exists, its rejects do, too.
        files.delete(rejects_path)
        if selection.rejected:
            _publish(rejects, rejects_path)
        _publish(output, own.output)
    facts = {"file": own.output, "format": own.format, "selected": total, "written": selection.taken}
    text = _summary(own.output, own.format, selection, total)
    answer(arguments, text, {**facts, "rejected": dict(selection.rejected)})
    return 0


def _check(own: ExportOptions, scope: ScopeOptions) -> set[str]:
    """Checks the options and that only exports are replaced; returns the SHA-256 sums of existing files."""
    if own.fetch_interval is not None and own.format != "nutch":
        raise InputError(f"--fetch-interval: found --format {own.format}, expected nutch")
    inputs = [own.round, *scope.files]
    record = _record(own.output)
    known = files.read_bounded(record).decode("ascii", "replace").split() if files.exists(record) else []
    present = set()
    for path in (own.output, own.output + REJECTS_ENDING):
        check_file("--output", path, overwrite=own.overwrite, inputs=inputs)
        if files.exists(path):
            present.add(_checksum(path))
            if not present.issubset(known):
                raise InputError(
                    f"--output {path}: is not as semrank export wrote it, expected an unchanged export or a new file"
                )
    return present


def _record(path: str) -> str:
    """The file with the SHA-256 sums of replaceable files.

    It is in a folder beside the export: Nutch reads all files of a folder, also hidden ones, but no folders in it.
    """
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{RECORDS}/{name}"


def _checksum(path: str) -> str:
    found = hashlib.sha256()
    with files.open_binary(path) as stream:
        while block := stream.read(_COPY_BYTES):
            found.update(block)
    return found.hexdigest()


def _taken(folder: str, selection: Selection, rejects: IO[bytes]) -> Iterator[pa.Table]:
    """The rows to write, table by table; also writes the rejects."""
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
        # A string array stores its values contiguously, so with line ends they are the bytes of the file.
        ended = joined(lines, "\n")
        _, offsets, values = ended.buffers()
        ends = np.frombuffer(offsets, dtype=np.int32)
        stream.write(memoryview(values)[ends[ended.offset] : ends[ended.offset + len(ended)]])


@contextmanager
def _compressed(stream: IO[bytes], path: str) -> Iterator[IO[bytes]]:
    if not path.endswith(".gz"):
        yield stream
        return
    # The file has neither a time nor a name, so that the same lines give the same bytes.
    with gzip.GzipFile(filename="", mode="wb", compresslevel=COMPRESSION_LEVEL, fileobj=stream, mtime=0) as packed:
        yield packed  # type: ignore[misc]


@contextmanager
def _draft(path: str) -> Iterator[BinaryIO]:
    """A temporary file: beside a local target, in the system's temporary folder for a remote one."""
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


def _flushed(draft: BinaryIO) -> str:
    draft.flush()
    return draft.name


def _publish(draft: BinaryIO, path: str) -> None:
    """Renames a draft to its target, so that no reader ever sees an incomplete file."""
    name = _flushed(draft)
    if files.is_local(path):
        Path(name).replace(path)
        return
    # Object stores show an object only when its upload is complete.
    with (
        Path(name).open("rb") as source,
        FileSystems.create(path, "application/octet-stream", compression_type=CompressionTypes.UNCOMPRESSED) as stream,
    ):
        shutil.copyfileobj(source, stream, _COPY_BYTES)


def _summary(path: str, name: str, selection: Selection, selected: int) -> str:
    crawler = "" if name == "urls" else f" for {name}"
    parts = [f"{selection.taken:,} of {counted(selected, 'selected URL')}{crawler}"]
    if selection.rejected:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(selection.rejected.items()))
        parts.append(f"{sum(selection.rejected.values()):,} left out ({reasons}), listed in {path}{REJECTS_ENDING}")
    return f"{path}: " + "; ".join(parts)


if __name__ == "__main__":
    from semrank.pipelines.cli import command_main, leave

    leave(command_main("export"))
