"""Access logs of nginx, Caddy, Traefik and other servers with one JSON object a line.

Names of fields differ, so each field is looked up under its usual names: nginx's own variables first, then Caddy's (an
object `request` with the client, the headers and the URI), Traefik's (`ClientHost`, `RequestPath`, ...), and those of
the Elastic Common Schema (`source.ip`, `url.original`, ..., as objects or as names with dots). Only the address of the
client, the time and the requested URL are required; the method defaults to GET. An object without any of the names of a
time and a request is rejected as "fields-unknown". An array with an object a line is read as well.

The requested URL is `$request_uri` or in the request line. If neither is logged it is `$uri`, which nginx may have
rewritten, with the arguments of `$args`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.logs.access import (
    AccessReader,
    Requests,
    are_secure,
    known_hosts,
    lowered,
    read_access_log,
    split_requests,
    with_query,
    without_none,
)
from semrank.transforms.logs.options import LogOptions
from semrank.transforms.logs.rejections import Balance, truths
from semrank.transforms.logs.visits import LogBatch
from semrank.transforms.streams.json_lines import BRACKETS, JSON_INVALID, parse_object, whole_number, without_comma
from semrank.transforms.streams.quotes import quote_line, quote_request
from semrank.transforms.streams.spans import Lines, value_spans
from semrank.transforms.streams.times import written_times

FORMAT = "nginx-json"

NAMES: Mapping[str, tuple[str, ...]] = {
    "client": (
        *("remote_addr", "realip_remote_addr", "ip", "client_ip", "clientip", "client", "remote_ip", "remoteip"),
        *("request.client_ip", "request.remote_ip", "request.remote_addr", "clienthost", "clientaddr"),
        *("source.ip", "client.ip", "source.address", "client.address"),
    ),
    "forwarded": (
        *("http_x_forwarded_for", "x_forwarded_for", "x-forwarded-for", "request.headers.x-forwarded-for"),
        *("x_forward_for", "x-forward-for", "xff"),
        *("request_x-forwarded-for", "forwarded_for", "http_x_real_ip", "x_real_ip", "request_x-real-ip"),
        *("http_cf_connecting_ip", "http_true_client_ip", "http_forwarded", "request.headers.forwarded"),
    ),
    "account": ("remote_user", "user", "auth", "user_id", "clientusername", "user.name"),
    "time": (
        *("time_iso8601", "time_local", "msec", "@timestamp", "timestamp", "date", "startutc", "startlocal", "ts"),
        *("time", "datetime"),
    ),
    "request": ("request", "request_line"),
    "method": (
        "request_method",
        "method",
        "verb",
        "http_method",
        "request.method",
        "requestmethod",
        "http.request.method",
    ),
    "target": ("request_uri", "request.uri", "requestpath", "url.original", "url.full"),
    "rewritten": ("path", "uri", "document_uri", "url", "url.path"),
    "arguments": ("args", "query_string", "query", "querystring", "request_query", "url.query"),
    "host": (
        *("http_x_forwarded_host", "x_forwarded_host", "request.headers.x-forwarded-host"),
        *("http_host", "domain", "url.domain", "host", "server_name", "vhost", "request.host", "requesthost"),
    ),
    "scheme": (
        *("http_x_forwarded_proto", "x_forwarded_proto", "request.headers.x-forwarded-proto"),
        *("scheme", "protocol", "request_scheme", "requestscheme", "request.tls", "url.scheme", "https"),
    ),
    "port": ("http_x_forwarded_port", "x_forwarded_port", "server_port", "requestport", "url.port"),
    "status": ("status", "response", "status_code", "downstreamstatus", "originstatus", "http.response.status_code"),
    "referrer": (
        *("http_referer", "http_referrer", "referer", "referrer", "request.headers.referer", "request_referer"),
        "http.request.referrer",
    ),
    "agent": (
        *("http_user_agent", "user_agent", "useragent", "agent", "request.headers.user-agent", "request_user-agent"),
        "user_agent.original",
    ),
    "purpose": (
        *("http_sec_purpose", "http_purpose", "http_x_purpose", "http_x_moz", "sec_purpose"),
        *("request.headers.sec-purpose", "request.headers.purpose", "request_sec-purpose"),
    ),
}
"""Names of each value, the best first, in lower case; a dot separates the names of nested objects."""

_OBJECTS = ("request", "http", "url", "source", "client", "user", "user_agent")
_MAX_DEPTH = 3  # of the objects whose members have names in `NAMES`
_SCHEMES = pa.array([b"http", b"https"], pa.binary())
_OFTEN_NONE = frozenset({"client", "forwarded", "time", "request", "target", "rewritten"})
"""Columns for which the next name is tried if the value is empty or a dash."""

_LISTED = frozenset({"host", "scheme", "port"})
_QUOTED = frozenset({"referrer", "agent"})
_ADDRESSES = frozenset({"request", "target", "rewritten", "arguments", "referrer"})
_DAY_AND_CLOCK = "^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}"  # where each has a member of its own
_HEX_ESCAPE = re.compile(rb"\\x([0-9A-Fa-f]{2})")


def read(stream: BinaryIO, *, source: str, options: LogOptions) -> Iterator[LogBatch]:  # noqa: ARG001
    """Page views of a log in this format; see `formats.Read`."""
    return read_access_log(stream, FORMAT, options, _read_lines)


def _read_lines(lines: Lines, reader: AccessReader, balance: Balance) -> None:
    """Passes on lines that are objects, rejects the others; lines with the same fields are read together."""
    layouts: dict[tuple[str, ...], list[tuple[bytes, dict[str, Any]]]] = {}
    for line in lines.texts():
        entry = _parsed(line)
        if entry == JSON_INVALID and line.strip() in BRACKETS:
            balance.ignore("bracket", 1)
        elif isinstance(entry, str):
            balance.reject_line(quote_line(line), entry)
        else:
            layouts.setdefault(tuple(entry), []).append((line, entry))
    kept: list[bytes] = []
    parts: list[dict[str, pa.BinaryArray]] = []
    for names, group in layouts.items():
        kept += [line for line, _ in group]
        parts.append(_columns(names, [entry for _, entry in group]))
    if not parts:
        return
    columns = {name: pa.concat_arrays([part[name] for part in parts]) for name in NAMES}
    named = pc.or_(columns["time"].is_valid(), pc.or_(columns["request"].is_valid(), columns["target"].is_valid()))
    named = pc.or_(named, columns["rewritten"].is_valid())
    if not pc.all(named).as_py():
        known = truths(named).tolist()
        for line, is_known in zip(kept, known, strict=True):
            if not is_known:
                balance.reject("fields-unknown", quote_line(line))
        kept = [line for line, is_known in zip(kept, known, strict=True) if is_known]
        columns = {name: column.filter(named) for name, column in columns.items()}
    if kept:
        reader.add(_requests(columns, kept), balance)


def _parsed(line: bytes) -> dict[str, Any] | str:
    """The object of a line, or the reason of its reject, as from `parse_object`."""
    entry = parse_object(line)
    if entry == JSON_INVALID:
        bare = without_comma(line)
        for text in (bare, _HEX_ESCAPE.sub(_unhexed, bare)):
            entry = parse_object(text.decode("utf-8", "surrogateescape"))
            if entry != JSON_INVALID:
                break
    if isinstance(entry, str):
        return entry
    if dict not in map(type, entry.values()):
        return entry
    for name in _OBJECTS:
        if isinstance(entry.get(name), dict):
            entry = {**entry, **_flattened(entry[name], f"{name}.", _MAX_DEPTH)}
    return entry


def _unhexed(match: re.Match[bytes]) -> bytes:
    """The byte of nginx's hexadecimal escape (without `escape=json`); ASCII characters are escaped as in JSON."""
    byte = _byte(match)
    return rb"\u00" + match[1] if byte.isascii() else byte


def _byte(match: re.Match[bytes]) -> bytes:
    return bytes.fromhex(match[1].decode())


def _flattened(entry: Mapping[str, Any], prefix: str, depth: int) -> dict[str, Any]:
    """The members of an object, and of those in it, behind a prefix; of a list the first value."""
    flat: dict[str, Any] = {}
    for name, value in entry.items():
        if name == "tls":
            flat[prefix + name] = "https" if value else None
        elif isinstance(value, dict) and depth > 1:
            flat |= _flattened(value, f"{prefix}{name}.", depth - 1)
        else:
            flat[prefix + name] = value
    return {name: value[0] if isinstance(value, list) and value else value for name, value in flat.items()}


def _columns(names: Sequence[str], entries: Sequence[Mapping[str, Any]]) -> dict[str, pa.BinaryArray]:
    """The columns of `NAMES`, binary, one value an entry.

    Args:
        names: the members of each entry.
        entries: objects.
    """
    spelt = {name.lower(): name for name in names}
    columns: dict[str, pa.BinaryArray] = {}
    for column, candidates in NAMES.items():
        found = [_values(column, [entry[spelt[name]] for entry in entries]) for name in candidates if name in spelt]
        columns[column] = pc.coalesce(*found) if found else pa.nulls(len(entries), pa.binary())
    if {"date", "time"} <= spelt.keys():
        day, clock = (_values("time", [entry[spelt[name]] for entry in entries]) for name in ("date", "time"))
        both = pc.binary_join_element_wise(day, clock, pa.scalar(b" ", pa.binary()))
        apart = pc.and_(pc.equal(columns["time"], day), pc.match_substring_regex(both, _DAY_AND_CLOCK))
        columns["time"] = pc.if_else(apart.fill_null(False), both, columns["time"])
    return columns


def _values(column: str, values: list[Any]) -> pa.BinaryArray:
    """Values of a member as bytes; null if a value is not valid for the column."""
    if set(map(type, values)) == {str}:
        try:
            texts = pa.array(values, pa.string()).cast(pa.binary())
        except UnicodeEncodeError:  # half a surrogate pair from an escape
            texts = pa.array([_bytes(value) for value in values], pa.binary())
    else:
        texts = pa.array([_bytes(value) for value in values], pa.binary())
    if column == "status":  # a value that is neither text nor number is an unreadable status, not a missing one
        texts = pc.if_else(pa.array([value is not None for value in values]), texts.fill_null(b""), None)
    if column in _LISTED and pc.any(pc.match_substring(texts, b",")).as_py():  # of a list of proxies the client's
        texts = pc.replace_substring_regex(texts, r"(?s)[ \t]*,.*", "")
    if column == "host":
        return known_hosts(texts)
    if column == "time":  # Apache's %t has brackets
        texts = pc.replace_substring_regex(texts, r"^\[(.*)\]$", r"\1")
    if column in _QUOTED and pc.any(pc.starts_with(texts, b'"')).as_py():  # Logstash keeps Apache's quotes
        texts = pc.replace_substring_regex(texts, '(?s)^"(.*)"$', r"\1")
    if column in _ADDRESSES and pc.any(pc.match_substring(texts, rb"\x")).as_py():
        # Shippers make JSON of lines in which the server had escaped bytes.
        texts = pa.array([text and _HEX_ESCAPE.sub(_byte, text) for text in texts.to_pylist()], pa.binary())
    if column in _OFTEN_NONE:
        return without_none(texts)
    if column == "scheme":
        lower = pc.replace_substring_regex(lowered(texts), "^on$", "https")  # nginx's $https
        return pc.if_else(pc.is_in(lower, _SCHEMES), lower, None)
    return texts


def _bytes(value: Any) -> bytes | None:
    """A text or number, or the first of a list, as bytes; None for anything else."""
    if isinstance(value, list) and value and not isinstance(value[0], list):
        return _bytes(value[0])
    if isinstance(value, str):
        try:
            return value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:  # half a surrogate pair from an escape
            return value.encode("utf-8", "replace")
    number = whole_number(value)
    if number is not None:
        return str(number).encode()
    return repr(value).encode() if isinstance(value, float) else None


def _upper(methods: pa.BinaryArray) -> pa.BinaryArray:
    """Methods in upper case: the Elastic Common Schema had them in lower case."""
    encoded = methods.dictionary_encode()
    upper = pc.ascii_upper(encoded.dictionary.cast(pa.string(), safe=False))
    return upper.cast(pa.binary()).take(encoded.indices)


def _requests(columns: Mapping[str, pa.BinaryArray], lines: Sequence[bytes]) -> Requests:
    method = columns["method"]
    request = columns["request"].fill_null(b"")
    is_path = pc.match_substring_regex(request, "^/[^ ]*$")
    path = pc.coalesce(columns["rewritten"], pc.if_else(is_path, request, None))
    rewritten = with_query(path, columns["arguments"])
    target = columns["target"]
    if pc.any(pc.greater(pc.binary_length(request), 0)).as_py():
        said_method, said_target = split_requests(*value_spans(request))
        has_line = pc.and_(pc.greater(pc.binary_length(request), 0), pc.invert(is_path))
        method = pc.coalesce(method, pc.if_else(has_line, said_method, None))
        target = pc.coalesce(target, pc.if_else(has_line, said_target, None))
    # A whole URL has the host, if no other field does.
    whole = pc.and_(columns["host"].is_null(), pc.match_substring_regex(rewritten.fill_null(b""), "^https?://"))
    target = pc.coalesce(pc.if_else(whole, rewritten, target), rewritten)
    method, target = _upper(method.fill_null(b"GET")), target.fill_null(b"")
    times, status = columns["time"], columns["status"]

    def quote(record: int) -> str:
        time, asked, wanted, answer = (column[record].as_py() for column in (times, method, target, status))
        return quote_request(time, asked, wanted, answer, len(lines[record]))

    return Requests(
        client=columns["client"].fill_null(b"-"),
        account=columns["account"],
        times=written_times(times),
        method=method,
        target=target,
        host=columns["host"],
        secure=are_secure(columns["scheme"], columns["port"], len(lines)),
        status=status,
        referrer=columns["referrer"],
        agent=columns["agent"],
        quote=quote,
        forwarded=columns["forwarded"],
        purpose=columns["purpose"],
    )
