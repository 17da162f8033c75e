"""Access logs of nginx (or of anything else) with one JSON object a line.

Everybody names the fields as they like, so each is looked for under the usual names, nginx's own variables first.
Only the address of the client, the time and what was asked for have to be there; a method that is not recorded is
taken as GET.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from transforms.sources.logs.access import AccessReader, Requests, quote_line, read_access_log, split_requests
from transforms.sources.logs.fates import Tally
from transforms.sources.logs.options import LogOptions
from transforms.sources.logs.spans import Lines, value_spans
from transforms.sources.logs.times import written_times
from transforms.sources.logs.visits import LogBatch

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
    kept: list[bytes] = []
    rows: list[dict[str, Any]] = []
    for line in lines.texts():
        entry = _parsed(line)
        if entry is None:
            tally.reject_line(quote_line(line))
        else:
            kept.append(line)
            rows.append(entry)
    if rows:
        reader.add(_requests(rows, kept), tally)


def _parsed(line: bytes) -> dict[str, Any] | None:
    """The object of a line with its names in lower case; None if the line is none."""
    for text in (line, _HEX_ESCAPE.sub(rb"\\u00\1", line)):  # nginx without escape=json writes a quote as \x22
        try:
            entry = json.loads(text.decode("utf-8", "surrogateescape"))
        except (ValueError, RecursionError):
            continue
        return {name.lower(): value for name, value in entry.items()} if isinstance(entry, dict) else None
    return None


def _requests(rows: Sequence[Mapping[str, Any]], lines: Sequence[bytes]) -> Requests:
    columns = {column: _column(rows, names) for column, names in NAMES.items()}
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
