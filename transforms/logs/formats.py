"""The log formats by name, what each needs, and how a command names them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO, Protocol

from semrank.schemas.errors import InputError
from semrank.transforms.logs import (
    alb,
    aol,
    extended,
    matomo,
    ncsa,
    nginx_json,
    orcas,
    sogou,
    table,
    wikipedia_clickstream,
    yandex,
)
from semrank.transforms.logs.options import LogOptions, require
from semrank.transforms.logs.visits import LogBatch


class Read(Protocol):
    """Reads a log."""

    def __call__(self, stream: BinaryIO, *, source: str, options: LogOptions) -> Iterator[LogBatch]:
        """Batches of a stream.

        Args:
            stream: whole records, perhaps compressed.
            source: path of the file, whose name may hold a date or a wiki.
            options: the user's options of logs.
        """


def _always(_options: LogOptions) -> bool:
    return True


def _never(_options: LogOptions) -> bool:
    return False


@dataclass(frozen=True)
class LogFormat:
    """One format.

    Attributes:
        name: as in `--log NAME=GLOB`.
        read: its reader.
        splittable: whether byte ranges of an uncompressed file can be read on their own under these options.
        record_start: regular expression of the first line of a record of several lines, for `line_range`.
        needs_salt: whether it holds addresses or names, so that `--user-salt` is required.
        needs_site: whether it records only paths, so that `--log-site` is required.
        needs_columns: whether `--log-columns` is required.
    """

    name: str
    read: Read
    splittable: Callable[[LogOptions], bool] = _always
    record_start: bytes | None = None
    needs_salt: bool = False
    needs_site: bool = False
    needs_columns: bool = False

    def check(self, options: LogOptions) -> None:
        """Check that all this format needs was given.

        Raises:
            InputError: something is missing; the message names the option.
        """
        require(options, self.name, salt=self.needs_salt, site=self.needs_site)
        if self.needs_columns and not options.columns:
            raise InputError(
                f"--log {self.name}: --log-columns is missing, expected such as user=uid,query=words,time=when,url=page"
            )


def _ncsa(name: str, *, with_host: bool) -> LogFormat:
    read = partial(ncsa.read, name=name, with_host=with_host)
    return LogFormat(name, read, needs_salt=True, needs_site=not with_host)


def _extended(name: str, dialect: extended.Dialect) -> LogFormat:
    read = partial(extended.read, name=name, dialect=dialect)
    return LogFormat(name, read, splittable=_never, needs_salt=True)


FORMATS: Mapping[str, LogFormat] = {
    log_format.name: log_format
    for log_format in (
        LogFormat(alb.FORMAT, alb.read, needs_salt=True),
        LogFormat(aol.FORMAT, aol.read),
        _extended("cloudfront", extended.CLOUDFRONT),
        _ncsa("combined", with_host=False),
        _ncsa("common", with_host=False),
        LogFormat(matomo.FORMAT, matomo.read, splittable=_never, needs_salt=True),
        LogFormat(nginx_json.FORMAT, nginx_json.read, needs_salt=True),
        LogFormat(orcas.FORMAT, orcas.read),
        LogFormat(sogou.FORMAT, sogou.read),
        LogFormat(
            table.FORMAT,
            table.read,
            splittable=lambda options: not table.has_header(options),
            needs_salt=True,
            needs_columns=True,
        ),
        _ncsa("vhost-combined", with_host=True),
        _extended("w3c", extended.IIS),
        LogFormat(wikipedia_clickstream.FORMAT, wikipedia_clickstream.read),
        LogFormat(yandex.FORMAT, yandex.read, record_start=yandex.RECORD_START),
    )
}
"""All formats by name."""


def log_argument(text: str) -> tuple[str, str]:
    """Format and glob of `--log FORMAT=GLOB`.

    Raises:
        InputError: the text has no `=`, or names no known format.
    """
    name, equals, pattern = text.partition("=")
    if not equals or not pattern or name not in FORMATS:
        raise InputError(f"--log: found {text!r}, expected FORMAT=GLOB with a format of {', '.join(FORMATS)}")
    return name, pattern
