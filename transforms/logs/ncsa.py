r"""The Common Log Format of the NCSA server and what Apache and nginx made of it.

    [host[:port]] client[, client ...] ident account [time] "request" status bytes ["referrer" "user agent" [more ...]]

A third quoted field after the size, as in nginx's packaged layout `main`, has the clients from proxy headers, if it
holds addresses.

One reader for the formats `common`, `combined` and `vhost-combined`, since files mix layouts: each line is read by
what it has. Well-formed lines are split by array arithmetic; the few with escapes, quotes in the wrong place or
spaces in a name go through one regular expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.columnar.arrays import Bools, Int32s, Int64s
from semrank.transforms.logs.access import AccessReader, Requests, read_access_log, split_requests, unescaped
from semrank.transforms.logs.options import LogOptions
from semrank.transforms.logs.rejections import Balance, truths
from semrank.transforms.logs.users import address_of
from semrank.transforms.logs.visits import LogBatch
from semrank.transforms.streams.quotes import quote_line
from semrank.transforms.streams.spans import BACKSLASH, QUOTE, SPACE, Bytes, Lines, Spans, slices, value_spans, window
from semrank.transforms.streams.times import apache_times, written_times

_OPENING, _CLOSING, _DASH, _ZERO, _NINE = ord("["), ord("]"), ord("-"), ord("0"), ord("9")
_COMMA, _PARENTHESIS, _COLON = ord(","), ord("("), ord(":")
_WHO = pa.struct([(name, pa.binary()) for name in ("host", "client", "account")])

_COMMON_QUOTES, _COMBINED_QUOTES, _MAIN_QUOTES = 2, 6, 8
_TIME_BYTES = len("10/Feb/2012:16:42:07 -0500")

_NAMES_BYTES = 64
"""Bytes in which spaces between host, client, ident and account are looked for; few lines need more, and these are
read by the expressions."""

_NUMBERS_BYTES = 24
"""The same for status and bytes."""

_LINE = (
    r"(?s)^(?P<names>.*?) \[(?P<time>[^ ]*(?: [^ ]*)?)\] "
    r'"(?P<request>.*?)" (?P<status>[0-9-][^ "]*) [0-9-][^ "]*'
    r'(?P<tail> "(?P<referrer>(?:[^"\\]|\\.)*)" "(?P<agent>(?:[^"\\]|\\.)*)"(?: "(?P<forwarded>[^"\\]*)")?(?: .*)?'
    r'| "(?P<loose_referrer>.*?)" "(?P<loose_agent>.*)"(?: [^"]*)?)?\s*$'
)
_NAMED_PORT = re.compile(rb"(?=[^:]*[A-Za-z][^:]*:)[A-Za-z0-9_.-]+:[0-9]{1,5}")


def read(
    stream: BinaryIO,
    *,
    source: str,  # noqa: ARG001
    options: LogOptions,
    name: str,
    with_host: bool,
) -> Iterator[LogBatch]:
    """Page views of a log in one of the formats; lines in its sister formats are read too.

    See `formats.Read`; in lines of the format `name` the host asked may stand first, if `with_host`.
    """
    return read_access_log(stream, name, options, NcsaReader(with_host=with_host))


@dataclass(frozen=True)
class NcsaReader:
    """Reads lines of this family.

    Attributes:
        with_host: whether the layout of the log puts the host's name first; lines in other layouts are read all the
            same.
    """

    with_host: bool

    def __call__(self, lines: Lines, reader: AccessReader, balance: Balance) -> None:
        """Splits lines, passes their requests on and counts the lines in no known layout."""
        odd = np.ones(len(lines), dtype=np.bool_)
        for chosen, requests in _usual_requests(lines, self.with_host):
            odd[chosen] = False
            reader.add(requests, balance)
        if odd.any():
            self._read_odd(lines.take(odd), reader, balance)

    def _read_odd(self, lines: Lines, reader: AccessReader, balance: Balance) -> None:
        values = lines.values()
        found = pc.extract_regex(values, _LINE)
        names = _who(unescaped(pc.struct_field(found, "names").fill_null(b"")), self.with_host)
        fits = pc.and_(found.is_valid(), names.is_valid())
        if pc.any(fits).as_py():
            reader.add(_matched(found.filter(fits), names.filter(fits), values.filter(fits)), balance)
        for line in values.filter(pc.invert(fits)).to_pylist():
            balance.reject_line(quote_line(line))


def _who(names: pa.BinaryArray, with_host: bool) -> pa.StructArray:
    """Host, client and account of what stands before the time, null where it is in no known layout."""
    encoded = names.dictionary_encode()
    known = pa.array([_split_names(value, with_host) for value in encoded.dictionary.to_pylist()], _WHO)
    return known.take(encoded.indices)


def _split_names(names: bytes, with_host: bool) -> dict[str, bytes] | None:
    """Splits `[host] client ident account`, where the client may be a list and the account may have blanks in it.

    A word counts as the host if it stands where the log's layout has the host and is not the only address, or if it is
    a name with a port in front of an address, which only Apache's `%v:%p` writes. Any other word in front of an address
    may be a client's name and does not get into a URL.
    """
    words = names.split(b" ")
    host = b""
    if _begins_with_host(words, with_host):
        host, *words = words
    count = 1
    while count < len(words) and _goes_on(words[count - 1], words[count]):
        count += 1
    listed = words[:count]
    rest = words[count:]
    if len(rest) < 2 or not all((listed[0], rest[0])):
        return None
    begin = 1
    while begin < len(rest) - 1 and rest[begin] in (b"", b"-"):  # surplus dashes are not an account
        begin += 1
    return {"host": host, "client": b" ".join(listed), "account": b" ".join(rest[begin:])}


def _begins_with_host(words: list[bytes], with_host: bool) -> bool:
    if len(words) < 4 or words[0].endswith(b",") or words[1].startswith((b",", b"(")):
        return False
    if words[1] == b"-" and address_of(words[2]) is None:  # then it is the ident, and the account has a blank in it
        return False
    if address_of(words[0]) == words[0]:  # a site asked for by its address has a port behind it
        return False
    return with_host or (_NAMED_PORT.fullmatch(words[0]) is not None and address_of(words[1].strip(b",")) is not None)


def _goes_on(before: bytes, word: bytes) -> bool:
    """Whether a word continues the list of clients that the word before it belongs to."""
    return before.endswith(b",") or word.startswith(b",") or address_of(word.strip(b'(),;"')) is not None


def _usual_requests(lines: Lines, with_host: bool) -> Iterator[tuple[Int64s, Requests]]:
    """Requests of the lines whose quotes and spaces leave no doubt which field is which, with those lines' numbers.

    The time has a fixed length and ends just before the first quote. So spaces are only searched for in the few bytes
    before it and between request and referrer; most of a line is quoted fields, whose spaces separate nothing.
    """
    content = lines.content
    quotes = np.flatnonzero(content == QUOTE).astype(np.int32)
    first = np.searchsorted(quotes, lines.starts)
    count = np.searchsorted(quotes, lines.ends) - first
    plain = ~lines.holding(BACKSLASH)
    for number in (_COMBINED_QUOTES, _COMMON_QUOTES, _MAIN_QUOTES):
        chosen = np.flatnonzero(plain & (count == number))
        if len(chosen):
            places = quotes[first[chosen][:, None] + np.arange(number)]
            for hosted in (True, False) if with_host else (False,):
                kept, requests = _usual(lines.take(chosen), places, hosted)
                if requests is not None:
                    yield chosen[kept], requests


def _usual(lines: Lines, quotes: Int32s, hosted: bool) -> tuple[Bools, Requests | None]:
    """Which of some lines have the usual layout, with or without a host, and their requests.

    Args:
        lines: lines without backslashes.
        quotes: where their quotes are, int32[n, 2, 6 or 8].
        hosted: whether a host stands before the client.
    """
    content, one = lines.content, np.int32(1)
    combined = quotes.shape[1] >= _COMBINED_QUOTES
    names = 3 if hosted else 2
    times = quotes[:, 0] - np.int32(_TIME_BYTES + 2)
    before = _spaces(content, lines.starts, times - np.int32(2), names, _NAMES_BYTES)
    stops = quotes[:, 2] - one if combined else lines.ends
    after = _spaces(content, quotes[:, 1] + np.int32(2), stops, 1, _NUMBERS_BYTES)
    fits = (before[:, 0] >= 0) & (after[:, 0] >= 0)

    def has(byte: int, places: Int32s) -> None:
        np.logical_and(fits, content[np.clip(places, 0, len(content) - 1)] == byte, out=fits)

    for byte, place in ((SPACE, -2), (_OPENING, -1), (_CLOSING, _TIME_BYTES), (SPACE, _TIME_BYTES + 1)):
        has(byte, times + np.int32(place))
    has(SPACE, quotes[:, 1] + one)
    if combined:
        has(SPACE, stops)
        for closing in range(3, quotes.shape[1] - 1, 2):
            has(SPACE, quotes[:, closing] + one)
            fits &= quotes[:, closing + 1] - quotes[:, closing] == 2
        end = quotes[:, -1] + one
        fits &= (end == lines.ends) | (content[np.minimum(end, len(content) - 1)] == SPACE)
    fits &= _are_numbers(content, quotes[:, 1] + np.int32(2), after[:, 0])
    fits &= _are_numbers(content, after[:, 0] + one, stops)
    bounds = np.concatenate([lines.starts[:, None] - one, before], axis=1)
    fits &= _names_fit(content, bounds, hosted)
    when = apache_times(slices(lines.data, np.where(fits, times, 0), np.where(fits, times + np.int32(_TIME_BYTES), 0)))
    fits &= truths(when.is_valid())
    if not fits.any():
        return fits, None
    lines, quotes, bounds, times = lines.take(fits), quotes[fits], bounds[fits], times[fits]
    client = names - 2

    def between(start: Int32s, stop: Int32s) -> Spans:
        return Spans(lines.data, start, stop)

    account = between(bounds[:, -1] + one, times - np.int32(2))
    method, target = split_requests(lines.data, quotes[:, 0] + one, quotes[:, 1])
    return fits, Requests(
        client=between(bounds[:, client] + one, bounds[:, client + 1]),
        account=None if account.are_all(_DASH) else account,
        times=when.filter(pa.array(fits)),
        method=method,
        target=target,
        host=between(bounds[:, 0] + one, bounds[:, 1]) if hosted else None,
        status=slices(lines.data, quotes[:, 1] + np.int32(2), after[fits, 0]),
        referrer=between(quotes[:, 2] + one, quotes[:, 3]) if combined else None,
        agent=slices(lines.data, quotes[:, 4] + one, quotes[:, 5]) if combined else None,
        quote=lambda record: quote_line(lines.text(record)),
        forwarded=between(quotes[:, 6] + one, quotes[:, 7]) if quotes.shape[1] == _MAIN_QUOTES else None,
    )


def _are_numbers(content: Bytes, starts: Int32s, stops: Int32s) -> Bools:
    """Which of the words [starts[i], stops[i]) begin as a number, or are a dash."""
    figure = content[np.clip(starts, 0, len(content) - 1)]
    found: Bools = (stops > starts) & ((figure == _DASH) | ((figure >= _ZERO) & (figure <= _NINE)))
    return found


def _names_fit(content: Bytes, bounds: Int32s, hosted: bool) -> Bools:
    """Whether the names before the time are a client and its account, behind a host where lines have one.

    Args:
        content: bytes of the lines.
        bounds: places before and behind each name, int32[n, names + 1].
        hosted: whether the first name has to be a host.
    """
    one = np.int32(1)
    fits: Bools = content[np.maximum(bounds[:, 1] - one, 0)] != _COMMA  # a list of clients with blanks in it
    fits &= content[np.clip(bounds[:, 1] + one, 0, len(content) - 1)] != _PARENTHESIS
    fits &= (np.diff(bounds, axis=1) > 1).all(axis=1)
    if hosted:
        fits &= ~_begin_with_address(content, bounds[:, 0] + one, bounds[:, 1])
        fits &= (content[np.maximum(bounds[:, 1] + one, 0)] != _DASH) | (bounds[:, 2] - bounds[:, 1] > 2)
    return fits


def _begin_with_address(content: Bytes, starts: Int32s, ends: Int32s) -> Bools:
    """Which of the words [starts[i], ends[i]) may be an address without a port, and so more likely a client."""
    head = window(content, starts, _NAMES_BYTES)
    inside = np.arange(_NAMES_BYTES) < (ends - starts)[:, None]
    colons = np.count_nonzero((head == _COLON) & inside, axis=1)
    first, last = head[:, 0], content[np.maximum(ends - np.int32(1), 0)]
    digits = (first - _ZERO < 10) & (last - _ZERO < 10)  # unsigned bytes wrap around below 0
    found: Bools = (digits & (colons == 0)) | ((colons > 1) & (first != _OPENING))
    return found


def _spaces(content: Bytes, starts: Int32s, stops: Int32s, count: int, width: int) -> Int32s:
    """Where the spaces of [starts[i], stops[i]) are that have exactly `count` and at most `width` bytes.

    Returns:
        int32[n, count]; -1 for all others.
    """
    lengths = stops - starts
    inside = np.tri(width + 1, width, -1, dtype=np.bool_)  # row k: the first k bytes
    spaces = (window(content, starts, width) == SPACE) & inside[np.clip(lengths, 0, width)]
    found = np.flatnonzero(spaces)
    rows, columns = np.divmod(found, width)
    counts = np.bincount(rows, minlength=len(starts))
    exact = np.flatnonzero((counts == count) & (lengths <= width))
    first = np.cumsum(counts) - counts
    places = np.full((len(starts), count), -1, dtype=np.int32)
    places[exact] = columns[first[exact][:, None] + np.arange(count)] + starts[exact][:, None]
    return places


def _matched(found: pa.StructArray, names: pa.StructArray, lines: pa.BinaryArray) -> Requests:
    """Requests of lines that a regular expression has taken apart; some have the browser's fields, some do not."""

    def group(name: str) -> pa.BinaryArray:
        return unescaped(pc.struct_field(found, name))

    has_tail = pc.greater(pc.binary_length(pc.struct_field(found, "tail")), 0)
    method, target = split_requests(*value_spans(group("request")))
    return Requests(
        client=pc.struct_field(names, "client"),
        account=pc.struct_field(names, "account"),
        times=written_times(group("time")),
        method=method,
        target=target,
        host=pc.struct_field(names, "host"),
        status=group("status"),
        referrer=pc.if_else(has_tail, _either(group("referrer"), group("loose_referrer")), None),
        agent=pc.if_else(has_tail, _either(group("agent"), group("loose_agent")), None),
        quote=lambda record: quote_line(lines[record].as_py()),
        forwarded=group("forwarded"),
    )


def _either(first: pa.BinaryArray, second: pa.BinaryArray) -> pa.BinaryArray:
    """Whichever of an expression's two alternatives matched; the other one is empty."""
    return pc.binary_join_element_wise(first, second, pa.scalar(b"", pa.binary()))
