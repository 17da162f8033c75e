"""The crawl formats and tables by the name of their option, and the files that an option's globs name."""

from __future__ import annotations

import codecs
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, Protocol

from semrank.schemas.errors import InputError
from semrank.transforms.columnar import files
from semrank.transforms.crawls import cc_index, heritrix, nutch, scrapy, tables, warc, wat, wet
from semrank.transforms.crawls.archive import may_be_archive
from semrank.transforms.crawls.pages import CrawlLimits
from semrank.transforms.streams.batch import SourceBatch
from semrank.transforms.streams.download import Policy, download
from semrank.transforms.streams.lines import DamagedStreamError, decompressed, is_compressed, line_range
from semrank.transforms.streams.parquet import groups_in_range
from semrank.transforms.streams.quotes import quote_head

MAX_LISTING_BYTES = 64 << 20
"""Bytes of a list of paths, decompressed: four times the longest list of Common Crawl's crawls."""

_HEAD_BYTES = 4096


class Read(Protocol):
    """Reads a file."""

    def __call__(
        self, stream: BinaryIO, *, source: str, start: int, end: int | None, limits: CrawlLimits
    ) -> Iterator[SourceBatch]:
        """Batches of the records that begin in bytes [start, end).

        Args:
            stream: the file, perhaps compressed; readers of lines get the lines of the range.
            source: name of the file, for reject rows.
            start: first byte of the range.
            end: first byte after the range, None for the end of the file.
            limits: limits on what is read, and what the user knows about the crawl.
        """


@dataclass(frozen=True)
class SourceFormat:
    """A format.

    Attributes:
        help: what its option reads.
        read: its reader.
        check: raises InputError where a file can't be of the format.
        splittable: whether byte ranges of a file can be read on their own.
    """

    help: str
    read: Read
    check: Callable[[str], None]
    splittable: Callable[[str], bool]


def expand(option: str, pattern: str) -> list[str]:
    """Files that a path, glob or URL names; a folder stands for the files in it.

    Raises:
        InputError: there is none.
    """
    if _is_http(pattern):
        return [pattern]
    if files.is_local(pattern) and Path(pattern).is_dir():
        pattern = files.join(pattern, "*")
    found = [str(file.path) for file in files.match(pattern)]
    if not found:
        raise InputError(f"{option} {pattern}: names no file, expected at least one")
    for path in filter(files.is_local, found):
        if Path(path).is_fifo():  # checks, ranges and workers open an input anew, and read it from the middle
            raise InputError(f"{option} {path}: is a pipe, expected a file")
    return found


def listed_paths(listing: str, base_url: str | None, policy: Policy | None = None) -> list[str]:
    """Paths that a list names, one a line, each behind the base unless it is a whole URL.

    The list may be compressed, as lists of Common Crawl are.

    Raises:
        InputError: the list can't be read or is empty.
    """
    pieces: list[bytes] = []
    size = 0
    with open_source(listing, policy) as stream:
        try:
            for piece in decompressed(stream):
                pieces.append(piece)
                size += len(piece)
                if size > MAX_LISTING_BYTES:
                    raise InputError(f"{listing}: lists paths in more than {MAX_LISTING_BYTES:,} bytes, expected less")
        except DamagedStreamError as cause:
            raise InputError(f"{listing}: can't be read: {cause}") from cause
    content = b"".join(pieces)
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(f"{listing}: is UTF-16, expected UTF-8 text with one path a line")
    paths = [line.strip() for line in content.decode("utf-8-sig", "replace").splitlines() if line.strip()]
    if not paths:
        raise InputError(f"{listing}: lists no path, expected one a line")
    if base_url is None:
        return paths
    return [path if "://" in path else f"{base_url.rstrip('/')}/{path.lstrip('/')}" for path in paths]


@contextmanager
def open_source(path: str, policy: Policy | None = None) -> Iterator[BinaryIO]:
    """A source opened for reading, seekable; one behind http(s) is fetched into a temporary file first.

    Args:
        path: the source.
        policy: how it is fetched.

    Raises:
        InputError: it can't be read.
    """
    if not _is_http(path):
        with files.open_binary(path) as stream:
            yield stream
        return
    with tempfile.TemporaryDirectory(prefix="semrank-") as folder:
        fetched = download(path, Path(folder), policy=policy)
        with fetched.open("rb") as stream:
            yield stream


def size_of(path: str) -> int | None:
    """Bytes of a file; None if its size is unknown before it is fetched."""
    if _is_http(path):
        return None
    found = files.match(path)
    return int(found[0].size_in_bytes) if found else None


def _is_http(path: str) -> bool:
    return path.startswith(("http://", "https://"))


def check_readable(path: str) -> None:
    """Checks that a file is there and can be read; one behind http(s) is only looked at when it is fetched.

    Raises:
        InputError: it can't be read.
    """
    if not _is_http(path):
        with files.open_binary(path) as stream:
            _head(stream, path)


def _head(stream: BinaryIO, path: str) -> bytes:
    try:
        head = stream.read(_HEAD_BYTES)
    except OSError as cause:
        raise InputError(f"{path}: can't be read: {cause.strerror}") from cause
    stream.seek(0)
    return head


def _check_archive(path: str) -> None:
    if _is_http(path):
        return
    with files.open_binary(path) as stream:
        head = _head(stream, path)
    if not may_be_archive(head):
        raise InputError(f"{path}: begins with {quote_head(head)}, expected a WARC or ARC file")


def _check_table(path: str, *, table: str) -> None:
    if _is_http(path):
        return
    with files.open_binary(path) as stream:
        if tables.table_format(_head(stream, path), path) == tables.PARQUET:
            tables.check_parquet(stream, table=table, source=path)


def _check_index(path: str) -> None:
    if not _is_http(path):
        with files.open_binary(path) as stream:
            cc_index.check(stream, source=path)


def _read_table(
    stream: BinaryIO, *, source: str, start: int, end: int | None, limits: CrawlLimits, table: str
) -> Iterator[SourceBatch]:
    if tables.table_format(_head(stream, source), source) == tables.PARQUET:
        groups = groups_in_range(stream, source, start, end)
        yield from tables.read_parquet(stream, table=table, source=source, groups=groups, limits=limits)
    else:
        yield from tables.read_json_lines(_lines(stream, start, end), table=table, source=source, limits=limits)


def _read_index(
    stream: BinaryIO, *, source: str, start: int, end: int | None, limits: CrawlLimits
) -> Iterator[SourceBatch]:
    return cc_index.read(stream, source=source, groups=groups_in_range(stream, source, start, end), limits=limits)


class _ReadLines(Protocol):
    def __call__(self, stream: BinaryIO, *, source: str, limits: CrawlLimits) -> Iterator[SourceBatch]: ...


def _read_text(
    stream: BinaryIO, *, source: str, start: int, end: int | None, limits: CrawlLimits, read: _ReadLines
) -> Iterator[SourceBatch]:
    return read(_lines(stream, start, end), source=source, limits=limits)


def _lines(stream: BinaryIO, start: int, end: int | None) -> BinaryIO:
    """The lines that begin in bytes [start, end), or the stream as it is where that is all of it."""
    return stream if end is None else line_range(stream, start, end)


def _lines_split(path: str) -> bool:
    with files.open_binary(path) as stream:
        return not is_compressed(_head(stream, path))


def _always(_: str) -> bool:
    return True


def _archive(text: str, read: Read) -> SourceFormat:
    return SourceFormat(f"{text} files, plain, gzip or zstd", read, _check_archive, _always)


def _table(name: str) -> SourceFormat:
    return SourceFormat(
        f"a {name} table, Parquet or JSON Lines",
        partial(_read_table, table=name),
        partial(_check_table, table=name),
        _lines_split,
    )


def _text(text: str, read: _ReadLines) -> SourceFormat:
    return SourceFormat(text, partial(_read_text, read=read), check_readable, _lines_split)


FORMATS: Mapping[str, SourceFormat] = {
    "warc": _archive("WARC or ARC", warc.read),
    "wat": _archive("Common Crawl's WAT", wat.read),
    "wet": _archive("Common Crawl's WET", wet.read),
    "cc-index": SourceFormat("Common Crawl's columnar index, Parquet", _read_index, _check_index, _always),
    "nutch": _text("a dump of Nutch's CrawlDb, CSV or JSON", nutch.read),
    "heritrix": _text("Heritrix's crawl.log", heritrix.read),
    "scrapy": _text("items of Scrapy, JSON Lines or JSON", scrapy.read),
    "pages": _table("pages"),
    "links": _table("links"),
    "clicks": _table("clicks"),
}
"""All formats by the name of their option."""
