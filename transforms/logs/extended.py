"""The extended log file format of the W3C (working draft WD-logfile-960323): `#Fields:` names the columns that follow.

Shared by `w3c` (IIS: separated by spaces, `+` for a space inside a value) and `cloudfront` (tabs, values
percent-encoded). Dates and times are in UTC; where no column has the date, the last `#Date:` does. Directives are
records too and ignored as "header"; lines before any `#Fields:` are rejected ("columns-unknown"), as are lines with
another number of fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO
from urllib.parse import unquote_to_bytes

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.logs.access import AccessReader, Requests, read_access_log, with_query
from semrank.transforms.logs.options import LogOptions
from semrank.transforms.logs.rejections import Balance
from semrank.transforms.logs.visits import LogBatch
from semrank.transforms.streams.quotes import quote_line
from semrank.transforms.streams.spans import SPACE, TAB, Fields, Lines, separate
from semrank.transforms.streams.times import written_times

_DIRECTIVE = ord("#")
_FIELDS = b"#fields:"
_DATE = re.compile(rb"#date:\s*+([0-9]{4}-[0-9]{2}-[0-9]{2})", re.IGNORECASE)

_CLIENT = ("c-ip", "c-dns")
_FORWARDED = ("x-forwarded-for", "cs(x-forwarded-for)", "x-real-ip", "cs(x-real-ip)", "originalip", "true-client-ip")
_HOST = ("x-host-header", "cs-host", "cs(host)")
_REFERRER = ("cs(referer)", "cs(referrer)")
_AGENT = ("cs(user-agent)",)
_ACCOUNT = ("cs-username",)
_STATUS = ("sc-status",)
_METHOD = ("cs-method",)
_SCHEME = ("cs-protocol", "cs-uri-scheme")
_URI, _STEM, _QUERY = ("cs-uri",), ("cs-uri-stem",), ("cs-uri-query",)
_HTTPS_PORT = b"443"


@dataclass(frozen=True)
class Dialect:
    """How a server writes the format.

    Attributes:
        separator: byte between fields.
        plus_is_space: `+` stands for a space in the user agent.
        percent: referrer and user agent are percent-encoded once more than they came.
    """

    separator: int
    plus_is_space: bool
    percent: bool


IIS = Dialect(SPACE, plus_is_space=True, percent=False)
CLOUDFRONT = Dialect(TAB, plus_is_space=False, percent=True)


def read(
    stream: BinaryIO,
    *,
    source: str,  # noqa: ARG001
    options: LogOptions,
    name: str,
    dialect: Dialect,
) -> Iterator[LogBatch]:
    """Page views of a log in this format.

    Args:
        stream: whole lines from the file's beginning, perhaps compressed.
        source: path of the file.
        options: the key of user ids, the site and the site's search parameters.
        name: name of the format, for rejects.
        dialect: how the server writes it.
    """
    return read_access_log(stream, name, options, _ExtendedReader(dialect))


class _ExtendedReader:
    """Remembers the columns from one block to the next."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._names: list[str] = []
        self._date: bytes | None = None

    def __call__(self, lines: Lines, reader: AccessReader, balance: Balance) -> None:
        directives = np.flatnonzero(lines.content[lines.starts] == _DIRECTIVE)
        balance.ignore("header", len(directives))
        begin = 0
        for place in [*directives.tolist(), len(lines)]:
            if place > begin:
                self._read_run(lines.take(np.arange(begin, place)), reader, balance)
            if place < len(lines):
                self._obey(lines.text(place))
            begin = place + 1

    def _obey(self, directive: bytes) -> None:
        if directive[: len(_FIELDS)].lower() == _FIELDS:
            self._names = directive[len(_FIELDS) :].decode("latin-1").lower().split()
        elif (dated := _DATE.match(directive)) is not None:
            self._date = dated[1]

    def _read_run(self, lines: Lines, reader: AccessReader, balance: Balance) -> None:
        if not self._names:
            for line in lines.texts():
                balance.reject("columns-unknown", quote_line(line))
            return
        separated = separate(lines, self._dialect.separator, quoted=False)
        fits = separated.counts == len(self._names)
        for line in lines.take(~fits).texts():
            balance.reject_line(quote_line(line))
        chosen = np.flatnonzero(fits)
        if len(chosen):
            reader.add(self._requests(separated.fields(chosen, len(self._names))), balance)

    def _requests(self, fields: Fields) -> Requests:
        columns = {name: number for number, name in enumerate(self._names)}

        def first(*names: str) -> pa.BinaryArray | None:
            known = [columns[name] for name in names if name in columns]
            return fields.column(known[0]) if known else None

        count = len(fields)
        dash = pa.repeat(pa.scalar(b"-", pa.binary()), count)
        whole, stem, query = first(*_URI), first(*_STEM), first(*_QUERY)
        target = dash if stem is None and whole is None else stem if stem is not None else whole
        if stem is not None and query is not None:
            target = with_query(stem, query)
        agent, referrer = first(*_AGENT), first(*_REFERRER)
        if agent is not None and self._dialect.plus_is_space:
            agent = pc.replace_substring(agent, b"+", b" ")
        if self._dialect.percent:
            agent = None if agent is None else _unquoted(agent)
            referrer = None if referrer is None else _unquoted(referrer)
        client = first(*_CLIENT)
        return Requests(
            client=dash if client is None else client,
            account=first(*_ACCOUNT),
            times=self._times(first("date"), first("time"), count),
            method=first(*_METHOD),
            target=target,
            host=first(*_HOST),
            secure=self._secure(first(*_SCHEME), first("s-port")),
            status=first(*_STATUS),
            referrer=referrer,
            agent=agent,
            quote=lambda record: quote_line(fields.lines.text(record)),
            forwarded=first(*_FORWARDED),
        )

    def _times(self, date: pa.BinaryArray | None, time: pa.BinaryArray | None, count: int) -> pa.TimestampArray:
        if date is None and self._date is not None:
            date = pa.repeat(pa.scalar(self._date, pa.binary()), count)
        if date is None or time is None:
            return written_times(pa.nulls(count, pa.binary()))
        return written_times(pc.binary_join_element_wise(date, time, pa.scalar(b" ", pa.binary())))

    def _secure(self, scheme: pa.BinaryArray | None, port: pa.BinaryArray | None) -> pa.BooleanArray | None:
        if scheme is not None:
            tls = pc.is_in(scheme, pa.array([b"https", b"wss"], pa.binary()))
            plain = pc.is_in(scheme, pa.array([b"http", b"ws"], pa.binary()))
        elif port is not None:
            tls = pc.equal(port, pa.scalar(_HTTPS_PORT, pa.binary()))
            plain = pc.equal(port, pa.scalar(b"80", pa.binary()))
        else:
            return None
        return pc.if_else(pc.or_(tls, plain), tls, None)


def _unquoted(values: pa.BinaryArray) -> pa.BinaryArray:
    encoded = pc.match_substring(values, b"%")
    if not pc.any(encoded).as_py():
        return values
    distinct = values.filter(encoded).dictionary_encode()
    plain = pa.array([unquote_to_bytes(value) for value in distinct.dictionary.to_pylist()], pa.binary())
    return pc.replace_with_mask(values, encoded, plain.take(distinct.indices))
