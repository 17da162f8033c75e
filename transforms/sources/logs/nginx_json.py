"""Access logs of nginx (or of anything else) with one JSON object a line.

Everybody names the fields as they like, so each is looked for under the usual names, nginx's own variables first.
Only the address of the client, the time and what was asked for have to be there; a method that is not recorded is
taken as GET.

Lines in the usual form are parsed together by Arrow, the others one by one, with the same result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from semrank.transforms.columnar.arrays import column_array
from semrank.transforms.sources.logs.access import AccessReader, Requests, quote_line, read_access_log, split_requests
from semrank.transforms.sources.logs.fates import Bools, Tally, truths
from semrank.transforms.sources.logs.options import LogOptions
from semrank.transforms.sources.logs.spans import Lines, value_spans
from semrank.transforms.sources.logs.times import written_times
from semrank.transforms.sources.logs.visits import LogBatch

FORMAT = "nginx-json"

NAMES: Mapping[str, tuple[str, ...]] = {
    "client": ("remote_addr", "realip_remote_addr", "ip", "client_ip", "clientip", "client", "remote_ip"),
    "account": ("remote_user", "user", "auth"),
    "time": ("time_iso8601", "time_local", "msec", "@timestamp", "timestamp", "date", "time", "datetime"),
    "request": ("request", "request_line"),
    "method": ("request_method", "method", "verb"),
    "target": ("request_uri", "path", "uri", "url"),
    "host": ("host", "http_host", "server_name", "vhost"),
    "scheme": ("scheme", "protocol"),
    "status": ("status", "response", "status_code"),
    "referrer": ("http_referer", "http_referrer", "referer", "referrer"),
    "agent": ("http_user_agent", "user_agent", "useragent", "agent"),
}
"""Names under which a value is looked for, the best first, in lower case."""

_PLAIN_NESTING = 100
"""Objects and arrays that a line opens; Python's parser gives up at some depth, which Arrow's does not."""

_NOT_PLAIN = (
    r"\\x"  # an escape of nginx that JSON does not have
    r"|\\u[dD][89a-fA-F]"  # half a character
    r"|[:,\[]\s*-?[NI]"  # no finite number, which the parsers spell differently
    r"|[{,]\s*\"[a-z0-9_@.:$ -]*[^a-z0-9_@.:$ \"-]"  # a name that may be another in lower case
)
"""What makes a line one to be parsed by itself; harmless lines that have it only cost time."""

_FEW_LINES = 16
"""Lines up to which one parse of all costs more than one of each."""

_HEX_ESCAPE = re.compile(rb"\\x([0-9A-Fa-f]{2})")


def read(stream: BinaryIO, *, source: str, options: LogOptions) -> Iterator[LogBatch]:  # noqa: ARG001
    """Page views of a log in this format.

    Args:
        stream: whole lines, perhaps compressed.
        source: path of the file.
        options: the key of user ids, the site and the site's search parameters.
    """
    return read_access_log(stream, FORMAT, options, _read_lines)


def _read_lines(lines: Lines, reader: AccessReader, tally: Tally) -> None:
    plain = _are_plain(lines)
    parts: list[_Part] = []
    _parse_together(lines.take(plain).texts(), parts, tally)
    _parse_one_by_one(lines.take(~plain).texts(), parts, tally)
    if parts:
        kept = [line for part in parts for line in part.lines]
        columns = {name: pa.concat_arrays([part.columns[name] for part in parts]) for name in NAMES}
        reader.add(_requests(columns, kept), tally)


class _Part(NamedTuple):
    """Lines and what they say: the columns of `NAMES`, binary, one value a line."""

    lines: list[bytes]
    columns: dict[str, pa.BinaryArray]


def _are_plain(lines: Lines) -> Bools:
    """Which lines Arrow's parser reads as Python's does, if it reads them."""
    content = lines.content
    values = lines.values()
    plain: Bools = (content[lines.starts] == ord("{")) & (content[lines.ends - 1] == ord("}"))
    nesting = pc.add(pc.count_substring(values, b"{"), pc.count_substring(values, b"["))
    plain &= truths(pc.less_equal(nesting, _PLAIN_NESTING))
    return plain & ~truths(pc.match_substring_regex(values, _NOT_PLAIN))


def _parse_together(lines: list[bytes], parts: list[_Part], tally: Tally) -> None:
    """Adds what plain lines say; the halves of a run with a line unlike the others are tried by themselves."""
    if len(lines) <= _FEW_LINES:
        _parse_one_by_one(lines, parts, tally)
    elif (columns := _columns_together(lines)) is not None:
        parts.append(_Part(lines, columns))
    else:
        middle = len(lines) // 2
        _parse_together(lines[:middle], parts, tally)
        _parse_together(lines[middle:], parts, tally)


def _columns_together(lines: list[bytes]) -> dict[str, pa.BinaryArray] | None:
    """The columns of `NAMES` by Arrow's parser; None where not all lines are objects with values of the same kinds."""
    first = _parsed(lines[0])
    if first is None:
        return None
    kinds = {name: _kind(name, first.get(name)) for names in NAMES.values() for name in names}
    if None in kinds.values():
        return None
    content = b"\n".join(lines)
    try:
        content.decode()
        table = pyarrow.json.read_json(
            pa.BufferReader(content),
            read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(content) + 1),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=pa.schema(list(kinds.items())), unexpected_field_behavior="ignore"
            ),
        )
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    # Each line is at least one object, so that as many objects as lines are one a line.
    if table.num_rows != len(lines):
        return None
    return {
        column: pc.coalesce(*(_text_column(column_array(table[name])) for name in names))
        for column, names in NAMES.items()
    }


def _kind(name: str, value: Any) -> pa.DataType | None:
    """The type of a column with such values; None where Arrow has none that keeps how they are written."""
    if value is None or isinstance(value, str):
        return pa.string()
    if isinstance(value, float):
        # Of a number of seconds it does not matter whether it is written with a fraction of zero.
        return pa.float64() if name in NAMES["time"] else None
    return pa.int64() if isinstance(value, int) and not isinstance(value, bool) else None


def _text_column(values: pa.Array) -> pa.BinaryArray:
    if pa.types.is_floating(values.type):
        return pa.array([None if value is None else repr(value).encode() for value in values.to_pylist()], pa.binary())
    return values.cast(pa.string()).cast(pa.binary())


def _parse_one_by_one(lines: list[bytes], parts: list[_Part], tally: Tally) -> None:
    """Adds what lines say that are objects, rejects the others."""
    kept: list[bytes] = []
    rows: list[dict[str, Any]] = []
    for line in lines:
        entry = _parsed(line)
        if entry is None:
            tally.reject_line(quote_line(line))
        else:
            kept.append(line)
            rows.append(entry)
    if rows:
        parts.append(_Part(kept, {column: _column(rows, names) for column, names in NAMES.items()}))


def _parsed(line: bytes) -> dict[str, Any] | None:
    """The object of a line with its names in lower case; None if the line is none."""
    for text in (line, _HEX_ESCAPE.sub(rb"\\u00\1", line)):  # nginx without escape=json writes a quote as \x22
        try:
            entry = json.loads(text.decode("utf-8", "surrogateescape"))
        except (ValueError, RecursionError):
            continue
        return {name.lower(): value for name, value in entry.items()} if isinstance(entry, dict) else None
    return None


def _requests(columns: Mapping[str, pa.BinaryArray], lines: Sequence[bytes]) -> Requests:
    method, target = columns["method"], columns["target"]
    request = columns["request"].fill_null(b"")
    if pc.any(pc.greater(pc.binary_length(request), 0)).as_py():
        said_method, said_target = split_requests(*value_spans(request))
        has_line = pc.greater(pc.binary_length(request), 0)
        method = pc.coalesce(method, pc.if_else(has_line, said_method, None))
        target = pc.coalesce(target, pc.if_else(has_line, said_target, None))
    scheme = columns["scheme"]
    return Requests(
        client=columns["client"].fill_null(b"-"),
        account=columns["account"],
        times=written_times(columns["time"]),
        method=method.fill_null(b"GET"),
        target=target.fill_null(b""),
        host=columns["host"],
        secure=pc.equal(scheme, pa.scalar(b"https", pa.binary())),
        status=columns["status"],
        referrer=columns["referrer"],
        agent=columns["agent"],
        quote=lambda record: quote_line(lines[record]),
    )


def _column(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> pa.BinaryArray:
    values = (next((row[name] for name in names if row.get(name) is not None), None) for row in rows)
    return pa.array([_bytes(value) for value in values], pa.binary())


def _bytes(value: Any) -> bytes | None:
    """A text or number as bytes; None for anything else."""
    if isinstance(value, str):
        try:
            return value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:  # half a surrogate pair from an escape
            return value.encode("utf-8", "replace")
    return repr(value).encode() if isinstance(value, (int, float)) and not isinstance(value, bool) else None
