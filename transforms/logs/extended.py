"""The extended log file format of the W3C (working draft WD-logfile-960323): `#Fields:` names the columns that follow.

Shared by `w3c` (separated by spaces or tabs, strings in double quotes; IIS writes `+` for a space inside a value) and
`cloudfront` (tabs, values percent-encoded). Dates and times are in UTC; where no column has the date, the last `#Date:`
does. Not all servers write another one at midnight, so a line that is more than an hour earlier than the one before it
is of the next day. Directives are records too and ignored as "header". Rejected are lines before any `#Fields:`
("columns-unknown"), lines with another number of fields, and those below a new header in a file that has `_MAX_HEADERS`
("headers-too-many").
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

from semrank.transforms.columnar.arrays import Bools, Int64s
from semrank.transforms.logs.access import AccessReader, Requests, are_secure, read_access_log, with_query, without_none
from semrank.transforms.logs.options import LogOptions
from semrank.transforms.logs.rejections import Balance, truths
from semrank.transforms.logs.visits import LogBatch
from semrank.transforms.streams.dates import microseconds
from semrank.transforms.streams.quotes import quote_line
from semrank.transforms.streams.spans import QUOTE, SPACE, TAB, Fields, Lines, separate
from semrank.transforms.streams.times import MAX_MOMENT, MICROSECONDS, timestamps, written_times

_DIRECTIVE = ord("#")
_FIELDS = b"#fields:"
_DATE = b"#date:"
_ISO_DATE = re.compile(rb"\s*+([0-9]{4}-[0-9]{2}-[0-9]{2})(\s++[0-9]{2}:[0-9]{2}:[0-9]{2})?+")
_MAX_HEADERS = 4096
"""Headers of a file: a new one takes 3 ms, whatever stands below it. Eleven years have so many days."""

_DAY = 86_400 * MICROSECONDS
_OUT_OF_ORDER = 3_600 * MICROSECONDS
"""By how much a line may be earlier than the one before it; a response is logged when it has ended."""

Header = tuple[tuple[str, ...], bytes | None]
"""Names of the columns, and the date of lines without a column for it."""

_CLIENT = ("c-ip", "c-dns")
_FORWARDED = ("x-forwarded-for", "cs(x-forwarded-for)", "x-real-ip", "cs(x-real-ip)", "originalip", "true-client-ip")
_HOST = ("cs(x-forwarded-host)", "x-host-header", "cs-host", "cs(host)")
_REFERRER = ("cs(referer)", "cs(referrer)")
_AGENT = ("cs(user-agent)",)
_PURPOSE = ("cs(sec-purpose)", "cs(purpose)", "cs(x-purpose)", "cs(x-moz)")
_ACCOUNT = ("cs-username",)
_STATUS = ("sc-status",)
_METHOD = ("cs-method",)
_SCHEME = ("cs(x-forwarded-proto)", "cs-protocol", "cs-uri-scheme")
_URI, _STEM, _QUERY = ("cs-uri",), ("cs-uri-stem",), ("cs-uri-query",)


@dataclass(frozen=True)
class Dialect:
    """How a server writes the format.

    Attributes:
        separations: byte between fields, and whether it counts between double quotes; a line is read by the first that
            gives it as many fields as there are columns.
        plus_is_space: `+` stands for a space in the user agent.
        percent: referrer and user agent are percent-encoded once more than they came.
    """

    separations: tuple[tuple[int, bool], ...]
    plus_is_space: bool
    percent: bool


IIS = Dialect(((SPACE, False), (TAB, False), (SPACE, True)), plus_is_space=True, percent=False)
CLOUDFRONT = Dialect(((TAB, False),), plus_is_space=False, percent=True)


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
        self._names: tuple[str, ...] = ()
        self._date: bytes | None = None
        self._moment: int | None = None  # time of the line or directive before, for lines without a date, in us
        self._headers: set[int] = set()

    def __call__(self, lines: Lines, reader: AccessReader, balance: Balance) -> None:
        directives = np.flatnonzero(lines.content[lines.starts] == _DIRECTIVE)
        balance.ignore("header", len(directives))
        begin = 0
        runs: dict[Header, list[Int64s]] = {}
        moments: dict[Header, int | None] = {}
        for place in [*directives.tolist(), len(lines)]:
            if place > begin:
                header = self._names, self._date
                runs.setdefault(header, []).append(np.arange(begin, place))
                moments.setdefault(header, self._moment)
            if place < len(lines):
                self._obey(lines.text(place))
            begin = place + 1
        for header, places in runs.items():
            moment = self._read_run(lines.take(np.concatenate(places)), header, moments[header], reader, balance)
            if header == (self._names, self._date):
                self._moment = moment

    def _obey(self, directive: bytes) -> None:
        if directive[: len(_FIELDS)].lower() == _FIELDS:
            self._names = tuple(name.decode("latin-1").lower() for name in directive[len(_FIELDS) :].split())
        elif directive[: len(_DATE)].lower() == _DATE:
            dated = _ISO_DATE.match(directive, len(_DATE))
            self._date = None if dated is None else dated[1]  # a date that can't be read is not the one before
            self._moment = microseconds(dated[0].decode("ascii")) if dated is not None and dated[2] else None

    def _read_run(
        self, lines: Lines, header: Header, moment: int | None, reader: AccessReader, balance: Balance
    ) -> int | None:
        """Reads the lines below a header; returns the time of the last one if none of them has a date."""
        names, date = header
        if len(self._headers) < _MAX_HEADERS:
            self._headers.add(hash(header))
        reason = "headers-too-many" if hash(header) not in self._headers else None if names else "columns-unknown"
        if reason is not None:
            for line in lines.texts():
                balance.reject(reason, quote_line(line))
            return moment
        fields, fits = _fields(lines, len(names), self._dialect)
        for line in lines.take(~fits).texts():
            balance.reject_line(quote_line(line))
        if not len(fields):
            return moment
        times, moment = _times(fields, names, date, moment)
        reader.add(self._requests(fields, names, times), balance)
        return moment

    def _requests(self, fields: Fields, names: tuple[str, ...], times: pa.TimestampArray) -> Requests:
        columns = {name: number for number, name in reversed(list(enumerate(names)))}

        def first(*names: str) -> pa.BinaryArray | None:
            known = [columns[name] for name in names if name in columns]
            return _value(fields, known[0]) if known else None

        def first_value(*names: str) -> pa.BinaryArray | None:
            """Of each line the first of these columns that has a value."""
            known = [without_none(_value(fields, columns[name])) for name in names if name in columns]
            return pc.coalesce(*known) if known else None

        def visitors(*names: str) -> pa.BinaryArray | None:
            """The same, and of a list of proxies the first."""
            values = first_value(*names)
            return None if values is None else pc.replace_substring_regex(values, r"(?s)[ +]*,.*", "")

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
            times=times,
            method=first(*_METHOD),
            target=target,
            host=visitors(*_HOST),
            secure=are_secure(visitors(*_SCHEME), first("s-port"), count),
            status=first(*_STATUS),
            referrer=referrer,
            agent=agent,
            quote=lambda record: quote_line(fields.lines.text(record)),
            forwarded=first_value(*_FORWARDED),
            purpose=first(*_PURPOSE),
        )


def _fields(lines: Lines, count: int, dialect: Dialect) -> tuple[Fields, Bools]:
    """The fields of the lines that have `count` of them, in the order of the lines, and which lines these are."""
    fits = np.zeros(len(lines), dtype=np.bool_)
    bounds = np.empty((len(lines), count + 1), dtype=np.int32)
    for separator, quoted in dialect.separations:
        left = np.flatnonzero(~fits)
        if not len(left):
            break
        separated = separate(lines.take(left), separator, quoted=quoted)
        chosen = np.flatnonzero(separated.counts == count)
        bounds[left[chosen]] = separated.fields(chosen, count).bounds
        fits[left[chosen]] = True
    return Fields(lines.take(fits), bounds[fits]), fits


def _value(fields: Fields, number: int) -> pa.BinaryArray:
    """A field; of a string, in which a quote is written twice, what stands between its quotes."""
    values = fields.column(number)
    wrapped = fields.is_wrapped(number, QUOTE, QUOTE)
    if not wrapped.any():
        return values
    return pc.if_else(pa.array(wrapped), pc.replace_substring(fields.inside(number), b'""', b'"'), values)


def _times(
    fields: Fields, names: tuple[str, ...], logged: bytes | None, moment: int | None
) -> tuple[pa.TimestampArray, int | None]:
    """Times of lines, and the last of them if it may decide on the day of the next line."""
    count = len(fields)
    if "time" not in names or ("date" not in names and logged is None):
        return written_times(pa.nulls(count, pa.binary())), moment
    clock = _value(fields, names.index("time"))
    dated = "date" in names
    date = _value(fields, names.index("date")) if dated else pa.repeat(pa.scalar(logged, pa.binary()), count)
    times = written_times(pc.binary_join_element_wise(date, clock, pa.scalar(b" ", pa.binary())))
    return (times, moment) if dated else _past_midnight(times, moment)


def _past_midnight(times: pa.TimestampArray, moment: int | None) -> tuple[pa.TimestampArray, int | None]:
    """Times of one day, in the order of the log, on the days that they were on, and the last of them."""
    valid = truths(times.is_valid())
    if not valid.any():
        return times, moment
    written = np.array(times.cast(pa.int64()).fill_null(0))
    first = int(written[valid][0]) if moment is None else moment
    steps = (np.diff(written[valid], prepend=first) + _OUT_OF_ORDER) % _DAY - _OUT_OF_ORDER
    written[valid] = first + np.cumsum(steps)
    return timestamps(written, valid & (written <= MAX_MOMENT)), int(written[valid][-1])


def _unquoted(values: pa.BinaryArray) -> pa.BinaryArray:
    encoded = pc.match_substring(values, b"%")
    if not pc.any(encoded).as_py():
        return values
    distinct = values.filter(encoded).dictionary_encode()
    plain = pa.array([unquote_to_bytes(value) for value in distinct.dictionary.to_pylist()], pa.binary())
    return pc.replace_with_mask(values, encoded, plain.take(distinct.indices))
