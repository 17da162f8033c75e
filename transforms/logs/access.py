"""Turns the requests of access logs into page views of people, for all formats of web servers.

A request is rejected (it is invalid) or ignored (it is not a person's view of a page) for these reasons, in this order:

| reason | kind | meaning |
|---|---|---|
| time-invalid | rejected | no point in time |
| status-invalid | rejected | no HTTP status |
| status-error | ignored | status 400 or more |
| redirect | ignored | status 1xx or 3xx except 304: the browser requests the target next |
| request-empty, request-invalid | rejected | no request line (`""`, `-`), or not HTTP: bytes of TLS, of a port scan |
| not-get | ignored | a method other than GET |
| robot | ignored | by its user agent |
| prefetch | ignored | the browser fetched the page before anybody asked for it (Sec-Purpose, Purpose, X-Moz) |
| static-asset | ignored | by the extension of its path: style, script, image, font, sound, film, data |
| referrer-spam | ignored | the referrer is a known spammer's |
| host-missing, url-... | rejected | the page has no usable address |
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.columnar.arrays import Bools, Int32s, column_array
from semrank.transforms.logs.clicks import canonical_rows
from semrank.transforms.logs.options import LogOptions
from semrank.transforms.logs.records import read_blocks
from semrank.transforms.logs.rejections import Balance, Quote, Rejections, truths
from semrank.transforms.logs.robots import are_robots
from semrank.transforms.logs.searches import ReferrerReader, site_query
from semrank.transforms.logs.syslog import without_carriers
from semrank.transforms.logs.users import forwarded_clients, visitor_ids
from semrank.transforms.logs.visits import VISITS, LogBatch
from semrank.transforms.streams.parameters import ParameterRules
from semrank.transforms.streams.quotes import quote_line
from semrank.transforms.streams.spans import Bytes, Lines, Spans, numbers_at, slices, value_spans, window
from semrank.transforms.streams.texts import Memo
from semrank.transforms.streams.urls import MAX_PLAIN_CHARS, PLAIN_PATH, host_of

ASSET_EXTENSIONS = (
    *("css", "less", "scss", "js", "mjs", "map", "wasm", "json", "xml", "rss", "atom", "webmanifest", "txt"),
    *("gif", "png", "jpg", "jpeg", "jpe", "jfif", "webp", "avif", "apng", "svg", "svgz", "ico", "cur", "bmp", "tif"),
    *("tiff", "heic", "heif", "psd", "eps", "woff", "woff2", "ttf", "otf", "eot", "swf", "flv", "class", "jar", "cab"),
    *("mp3", "m4a", "aac", "ogg", "oga", "opus", "wav", "wma", "flac", "mid", "midi", "mp4", "m4v", "webm", "ogv"),
    *("mov", "avi", "wmv", "mpg", "mpeg", "mkv", "ts", "m3u8", "mpd", "vtt", "srt"),
    *("zip", "gz", "tgz", "bz2", "xz", "zst", "7z", "rar", "tar", "exe", "msi", "dmg", "iso", "apk", "deb", "rpm"),
)
"""Extensions of parts of pages and of downloads. Documents (pdf, doc, ...) are pages."""

DEFAULT_SCHEME = "https"
"""Scheme of pages if neither the log nor `--log-site` has one."""

_ASSET_PATTERN = rf"(?i)^[^?#]*\.(?:{'|'.join(ASSET_EXTENSIONS)})(?:[?#;]|$)"
_METHOD = r"^[A-Z][A-Z_-]{2,19}$"
_METHOD_BYTES = 21
_GET = b"GET "
_HTTP_N_N, _HTTP_N = b" HTTP/0.0", b" HTTP/0"  # 0 is any digit
_PREFETCH = r"(?i)prefetch|prerender|preview"
_NONE = pa.array([b"", b"-"], pa.binary())
_NO_ACCOUNT = pa.array([b"", b"-", b'""'], pa.binary())
_ESCAPE = re.compile(rb"\\(x[0-9A-Fa-f]{2}|.)", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"b": b"\b", b"v": b"\v", b"f": b"\f"}
_NO_HOST = r"(?s)^(?:|[-_]|.*[*~^$()\\ /?#@<>\"].*)$"

_SEARCHES = pa.schema([("query", pa.string())])
_REFERRERS = pa.schema(
    [
        ("url", pa.string()),
        ("host", pa.string()),
        ("query", pa.string()),
        ("position", pa.int32()),
        ("site_query", pa.string()),
        ("is_spam", pa.bool_()),
    ]
)

_FIRST_SUCCESS, _FIRST_REDIRECT, _NOT_MODIFIED, _FIRST_ERROR = 200, 300, 304, 400


@dataclass(frozen=True)
class Requests:
    """Requests of a block as logged, before filtering.

    All columns have length n. Columns that are None and values that are null were not recorded and exclude no request.

    Attributes:
        client: address or host name that the connection came from, binary.
        times: timestamp[us, UTC], null if missing or unreadable.
        target: path and query, or an absolute URL, binary.
        quote: text of record i for a reject row, without what could identify the visitor.
        forwarded: the clients as reported by proxies (X-Forwarded-For), binary.
        account: name of the logged-in user, binary; empty or `-` if there is none.
        method: binary.
        host: name (and perhaps port) of the requested host, binary; empty or `-` if there is none.
        secure: whether the request used TLS, bool; null if unknown.
        status: binary.
        referrer: binary; empty or `-` if there was none.
        agent: binary.
        purpose: the header Sec-Purpose or one like it, binary.
    """

    client: pa.BinaryArray | Spans
    times: pa.TimestampArray
    target: pa.BinaryArray
    quote: Quote
    forwarded: pa.BinaryArray | Spans | None = None
    account: pa.BinaryArray | Spans | None = None
    method: pa.BinaryArray | None = None
    host: pa.BinaryArray | Spans | None = None
    secure: pa.BooleanArray | None = None
    status: pa.BinaryArray | None = None
    referrer: pa.BinaryArray | Spans | None = None
    agent: pa.BinaryArray | None = None
    purpose: pa.BinaryArray | None = None


def read_access_log(stream: BinaryIO, stage: str, options: LogOptions, read_lines: RequestLines) -> Iterator[LogBatch]:
    """Batches of page views of a log whose records are lines.

    Args:
        stream: whole lines, perhaps compressed.
        stage: name of the format, for reject rows.
        options: see `LogOptions`.
        read_lines: passes the requests of lines to the reader, counts header lines and lines of unknown layout.
    """
    reader = AccessReader(options)

    def read(lines: Lines, balance: Balance) -> None:
        read_lines(without_carriers(lines), reader, balance)

    return read_blocks(stream, stage, read, quote_line)


def split_requests(data: bytes | pa.Buffer, starts: Int32s, ends: Int32s) -> tuple[pa.BinaryArray, pa.BinaryArray]:
    """Method and target of the request lines [starts[i], ends[i]) in `data`, binary[n] each.

    The method ends at the first space; the protocol at the end is removed if there is one (HTTP/0.9 has none), so
    spaces inside a target, which clients should have escaped, are kept. The method is empty if there is no space within
    `_METHOD_BYTES`.
    """
    if not len(starts) or not len(data):
        nothing = pa.array([b""] * len(starts), pa.binary())
        return nothing, nothing
    content = np.frombuffer(data, dtype=np.uint8)
    length = _method_lengths(content, starts, ends)
    room = ends - starts - length
    stops = ends.copy()
    version = (room >= len(_HTTP_N_N)) & _are_digits(content, ends - 3) & _are_digits(content, ends - 1)
    version &= (content[np.maximum(ends - 2, 0)] == ord(".")) & _say_http(content, ends - len(_HTTP_N_N))
    stops[version] -= len(_HTTP_N_N)
    short = np.flatnonzero(~version)
    if len(short):
        end = ends[short]
        bare = (room[short] >= len(_HTTP_N)) & _are_digits(content, end - 1) & _say_http(content, end - len(_HTTP_N))
        stops[short[bare]] -= len(_HTTP_N)
    targets = slices(data, np.where(length > 0, starts + length + 1, starts).astype(np.int32), stops)
    return slices(data, starts, starts + length), targets


def _method_lengths(content: Bytes, starts: Int32s, ends: Int32s) -> Int32s:
    """Length of the method at the start of each request line, 0 if there is none."""
    lengths = np.full(len(starts), len(_GET) - 1, dtype=np.int32)
    inside = np.maximum(np.minimum(starts, len(content) - len(_GET)), 0)
    if len(content) >= len(_GET):
        get = (inside == starts) & (numbers_at(content, inside, np.dtype(np.int32)) == _number(_GET))
    else:
        get = np.zeros(len(starts), dtype=np.bool_)
    other = np.flatnonzero(~get)
    if len(other):
        head = window(content, starts[other], _METHOD_BYTES) == ord(" ")
        lengths[other] = np.where(head.any(axis=1), head.argmax(axis=1), 0)
    lengths[starts + lengths >= ends] = 0
    return lengths


def _are_digits(content: Bytes, places: Int32s) -> Bools:
    digits: Bools = content[np.maximum(places, 0)] - ord("0") < 10
    return digits


def _say_http(content: Bytes, places: Int32s) -> Bools:
    """Whether ` HTTP/` is at each position."""
    form = _HTTP_N[:-1]
    if len(content) < len(form):
        return np.zeros(len(places), dtype=np.bool_)
    inside = np.maximum(np.minimum(places, len(content) - len(form)), 0)
    word, rest = np.dtype(np.int32), np.dtype(np.int16)
    found: Bools = (inside == places) & (numbers_at(content, inside, word) == _number(form[: word.itemsize]))
    found &= numbers_at(content, inside + np.int32(word.itemsize), rest) == _number(form[word.itemsize :])
    return found


def _number(text: bytes) -> int:
    return int.from_bytes(text, sys.byteorder, signed=True)


RequestLines = Callable[[Lines, "AccessReader", Balance], None]


class AccessReader:
    """Filters requests and makes page views of them; caches results for URLs, agents and referrers."""

    def __init__(self, options: LogOptions) -> None:
        self._options = options
        self._site = (options.site or "").encode()
        self._scheme = (options.site or DEFAULT_SCHEME).partition(":")[0].encode()
        read_referrer = ReferrerReader(options)
        self._urls = Memo(partial(_pages, rules=options.rules))
        self._agents = Memo(lambda agents: pa.table({"is_robot": are_robots(agents)}))
        self._referrers = Memo(lambda values: _rows(map(read_referrer, values.to_pylist()), _REFERRERS))
        self._searches = Memo(
            lambda urls: _rows(
                ((site_query(url.decode(), options.site_search),) for url in urls.to_pylist()), _SEARCHES
            )
        )

    def add(self, requests: Requests, balance: Balance) -> None:
        """Filters requests, counts the rejected ones and adds the page views."""
        rejections = Rejections(len(requests.target))
        rejections.reject("time-invalid", truths(requests.times.is_null()))
        if requests.status is not None:
            _judge_status(requests.status, rejections)
        _judge_request(requests.method, requests.target, rejections)
        if requests.agent is not None:
            agents = self._agents.rows(requests.agent.fill_null(b""))
            recorded = requests.agent.is_valid()
            rejections.ignore("robot", truths(pc.and_(recorded, column_array(agents["is_robot"]))))
        if requests.purpose is not None and requests.purpose.null_count < len(requests.purpose):
            rejections.ignore("prefetch", truths(pc.match_substring_regex(requests.purpose, _PREFETCH)))
        asset = np.zeros(len(rejections.alive), dtype=np.bool_)
        asset[rejections.alive] = truths(
            pc.match_substring_regex(requests.target.filter(pa.array(rejections.alive)), _ASSET_PATTERN)
        )
        rejections.ignore("static-asset", asset)
        self._add_views(requests, rejections, balance)
        balance.settle(rejections, requests.quote)

    def _add_views(self, requests: Requests, rejections: Rejections, balance: Balance) -> None:
        referrers = None
        if requests.referrer is not None:
            referrers = self._read_referrers(requests.referrer.take(pa.array(np.flatnonzero(rejections.alive))))
            spam = np.zeros(len(rejections.alive), dtype=np.bool_)
            spam[rejections.alive] = truths(column_array(referrers["is_spam"]))
            rejections.ignore("referrer-spam", spam)
            referrers = referrers.filter(pc.invert(column_array(referrers["is_spam"])))
        alive = pa.array(np.flatnonzero(rejections.alive))
        pages = self._canonical_targets(
            requests.target.take(alive),
            None if requests.host is None else requests.host.take(alive),
            None if requests.secure is None else requests.secure.take(alive),
        )
        unusable = pa.nulls(len(rejections.alive), pa.string())
        unusable = pc.replace_with_mask(unusable, pa.array(rejections.alive), column_array(pages["reason"]))
        usable = pages["url"].is_valid()
        rejections.reject_each(unusable)
        rows = alive.filter(column_array(usable))
        if len(rows):
            known = None if referrers is None else referrers.filter(usable)
            balance.add_visits(self._visits(requests, rows, pages.filter(usable), known))

    def _visits(self, requests: Requests, rows: pa.Array, pages: pa.Table, referrers: pa.Table | None) -> pa.Table:
        urls = column_array(pages["url"])
        account = None if requests.account is None else _account_names(requests.account.take(rows))
        agent = None if requests.agent is None else requests.agent.take(rows)
        client = requests.client.take(rows)
        if requests.forwarded is not None:
            client = forwarded_clients(client, requests.forwarded.take(rows))
        users = visitor_ids(client, account, agent, self._options.salt)
        count = len(rows)
        asked = self._asked(urls)
        if referrers is None:
            referrer_url, query, position = (pa.nulls(count, kind) for kind in (pa.string(), pa.string(), pa.int32()))
        else:
            referrer_url = column_array(referrers["url"])
            own = pc.equal(column_array(referrers["host"]), column_array(pages["host"])).fill_null(False)
            site = pc.if_else(own, column_array(referrers["site_query"]), None)
            engine = pc.if_else(own, None, column_array(referrers["query"]))
            query = pc.coalesce(site, engine)
            position = pc.if_else(pc.is_valid(engine), column_array(referrers["position"]), None)
        is_search = asked.is_valid()
        return pa.table(
            {
                "user_id": users,
                "visited_at": requests.times.take(rows),
                "url": urls,
                "referrer_url": referrer_url,
                "query": pc.coalesce(asked, query),
                "position": pc.if_else(is_search, None, position),
                "is_search": is_search,
            },
            schema=VISITS.schema,
        )

    def _asked(self, urls: pa.StringArray) -> pa.StringArray:
        """The query of each page of the site's own search; null for other pages."""
        if not self._options.site_search:
            return pa.nulls(len(urls), pa.string())
        asking = pc.match_substring(urls, "?")
        asked = self._searches.rows(urls.filter(asking).cast(pa.binary()))
        return pc.replace_with_mask(pa.nulls(len(urls), pa.string()), asking, column_array(asked["query"]))

    def _read_referrers(self, values: pa.BinaryArray) -> pa.Table:
        """Parsed referrers, a table of `_REFERRERS`; the URL is null if none is recorded."""
        read = self._referrers.rows(values.fill_null(b""))
        if not values.null_count:
            return read
        url = pc.if_else(values.is_valid(), column_array(read["url"]), None)
        return read.set_column(0, _REFERRERS.field(0), url)

    def _canonical_targets(
        self, targets: pa.BinaryArray, hosts: pa.BinaryArray | None, secure: pa.BooleanArray | None
    ) -> pa.Table:
        """Canonical URLs and hosts of targets, or the reasons for rejects: columns url, host, reason."""
        origins = self._origins(len(targets), hosts, secure)
        plain = truths(
            pc.and_(
                pc.match_substring_regex(targets, f"^{PLAIN_PATH}$"),
                pc.less(pc.binary_length(targets), MAX_PLAIN_CHARS),
            )
        )
        roots = self._roots(origins, same=hosts is None)
        homeless = pc.equal(pc.binary_length(origins), 0)
        simple, other = pa.array(plain), pa.array(~plain)
        data, starts, ends = value_spans(targets.filter(simple))
        paths = slices(data, starts + np.int32(1), ends).cast(pa.string())
        simple_roots = column_array(roots["url"].filter(simple))
        found = self._other_targets(targets.filter(other), origins.filter(other))
        nothing = pa.nulls(len(targets), pa.string())

        def merged(simply: pa.StringArray, otherwise: pa.StringArray) -> pa.StringArray:
            return pc.replace_with_mask(pc.replace_with_mask(nothing, simple, simply), other, otherwise)

        urls = merged(pc.binary_join_element_wise(simple_roots, paths, ""), column_array(found["url"]))
        reasons = merged(column_array(roots["reason"].filter(simple)), column_array(found["reason"]))
        hosts_found = merged(column_array(roots["host"].filter(simple)), column_array(found["host"]))
        relative = pc.starts_with(targets, b"/")
        lost = pc.and_(homeless, relative)
        return pa.table(
            {
                "url": pc.if_else(lost, None, urls),
                "host": hosts_found,
                "reason": pc.if_else(lost, "host-missing", reasons),
            }
        )

    def _roots(self, origins: pa.BinaryArray, *, same: bool) -> pa.Table:
        """Canonical addresses of the hosts' home pages, rows of the memo; `same` if all have one origin."""
        few = origins.slice(0, 1) if same else origins
        roots = self._urls.rows(pc.binary_join_element_wise(few, pa.scalar(b"/", pa.binary()), b""))
        return roots.take(pa.array(np.zeros(len(origins), dtype=np.int64))) if same and len(origins) else roots

    def _other_targets(self, targets: pa.BinaryArray, origins: pa.BinaryArray) -> pa.Table:
        whole = pc.if_else(pc.starts_with(targets, b"/"), pc.binary_join_element_wise(origins, targets, b""), targets)
        return self._urls.rows(whole)

    def _origins(self, count: int, hosts: pa.BinaryArray | None, secure: pa.BooleanArray | None) -> pa.BinaryArray:
        """Scheme and host of each request; empty if neither the log nor the options have the host."""
        site = pa.repeat(pa.scalar(self._site, pa.binary()), count)
        if hosts is None:
            return site
        named = known_hosts(hosts).fill_null(b"")
        tls = pa.nulls(count, pa.bool_()) if secure is None else secure
        tls = pc.if_else(pc.match_substring_regex(named, ":443$"), True, tls)
        tls = pc.if_else(pc.match_substring_regex(named, ":80$"), False, tls)
        unknown = pa.scalar(self._scheme, pa.binary())
        schemes = pc.coalesce(
            pc.if_else(tls, pa.scalar(b"https", pa.binary()), pa.scalar(b"http", pa.binary())), unknown
        )
        origins = pc.binary_join_element_wise(schemes, named, b"://")
        return pc.if_else(pc.equal(pc.binary_length(named), 0), site, origins)


def _rows(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table([pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)], schema=schema)


def _pages(values: pa.BinaryArray, rules: ParameterRules) -> pa.Table:
    rows = canonical_rows(values, rules)
    return rows.append_column("host", host_of(rows["url"]))


def without_none(values: pa.BinaryArray) -> pa.BinaryArray:
    """The values with null in place of empty ones and dashes."""
    return pc.if_else(pc.is_in(values, _NONE), None, values)


def known_hosts(values: pa.BinaryArray) -> pa.BinaryArray:
    """Names of hosts, null for dashes, nginx's catch-all `_`, wildcards, regular expressions and URLs."""
    encoded = values.dictionary_encode()
    known = encoded.dictionary
    return pc.if_else(pc.match_substring_regex(known, _NO_HOST), None, known).take(encoded.indices)


def unescaped(values: pa.BinaryArray) -> pa.BinaryArray:
    """The values with the servers' escapes of quotes, backslashes and control characters undone."""
    escapes = pc.match_substring(values, b"\\")
    if not pc.any(escapes).as_py():
        return values
    plain = [_ESCAPE.sub(_unescape, value) for value in values.filter(escapes).to_pylist()]
    return pc.replace_with_mask(values, escapes, pa.array(plain, pa.binary()))


def _unescape(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code[1:], 16)]) if len(code) > 1 else _ESCAPED.get(code, code)


def lowered(values: pa.BinaryArray) -> pa.BinaryArray:
    """The values with ASCII letters in lower case."""
    return pc.ascii_lower(values.cast(pa.string(), safe=False)).cast(pa.binary())


def are_secure(scheme: pa.BinaryArray | None, port: pa.BinaryArray | None, count: int) -> pa.BooleanArray:
    """Whether requests came over TLS, by their scheme, else by the port; null if neither is known."""
    secure = pa.nulls(count, pa.bool_())
    for column, tls, plain in ((scheme, (b"https", b"wss"), (b"http", b"ws")), (port, (b"443",), (b"80",))):
        if column is not None:
            word = lowered(column)
            known = pc.is_in(word, pa.array([*tls, *plain], pa.binary()))
            found = pc.if_else(known, pc.is_in(word, pa.array(tls, pa.binary())), None)
            secure = pc.coalesce(secure, found)
    return secure


def with_query(paths: pa.BinaryArray, queries: pa.BinaryArray) -> pa.BinaryArray:
    """Paths with separately logged query strings, unless they have one already."""
    asked = pc.and_(without_none(queries).is_valid(), pc.invert(pc.match_substring(paths.fill_null(b""), b"?")))
    bare = pc.replace_substring_regex(queries, r"^\?", "")
    return pc.if_else(asked, pc.binary_join_element_wise(paths, bare, pa.scalar(b"?", pa.binary())), paths)


def _account_names(values: pa.BinaryArray) -> pa.BinaryArray:
    """The names of accounts; empty for dashes and `""`, which Apache writes for an empty name."""
    filled = values.fill_null(b"")
    return pc.if_else(pc.is_in(filled, _NO_ACCOUNT), pa.scalar(b"", pa.binary()), filled)


def _judge_status(status: pa.BinaryArray, rejections: Rejections) -> None:
    recorded = truths(status.is_valid())
    encoded = status.fill_null(b"").dictionary_encode()
    known = np.array([_status_number(value) for value in encoded.dictionary.to_pylist()], dtype=np.int64)
    numbers = known[encoded.indices.to_numpy()]
    rejections.reject("status-invalid", recorded & (numbers == 0))
    rejections.ignore("status-error", numbers >= _FIRST_ERROR)
    unserved = (numbers < _FIRST_SUCCESS) | (numbers >= _FIRST_REDIRECT)
    rejections.ignore("redirect", recorded & unserved & (numbers != _NOT_MODIFIED))


def _status_number(value: bytes) -> int:
    """An HTTP status; 0 if it is invalid."""
    return int(value) if len(value) == 3 and value.isdigit() and value >= b"100" else 0


def _judge_request(method: pa.BinaryArray | None, target: pa.BinaryArray, rejections: Rejections) -> None:
    rejections.reject("request-empty", truths(pc.is_in(target.fill_null(b""), _NONE)))
    if method is None:
        return
    encoded = method.fill_null(b"").dictionary_encode()
    known = encoded.dictionary

    def each(answer: pa.BooleanArray) -> Bools:
        answers: Bools = truths(answer)[encoded.indices.to_numpy()]
        return answers

    rejections.reject("request-invalid", ~each(pc.match_substring_regex(known, _METHOD)))
    rejections.ignore("not-get", ~each(pc.equal(known, pa.scalar(b"GET", pa.binary()))))
