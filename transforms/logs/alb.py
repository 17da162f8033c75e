"""Access logs of Amazon's load balancers: the application load balancer, and the classic one.

Fields, separated by spaces, some in quotes: type, time, load balancer, client:port, target:port, three durations,
status of the load balancer, status of the target, bytes received, bytes sent, "request", "user agent", cipher,
protocol, and more that are not read. Lines of a classic load balancer begin with the time; before 2014 they ended with
the request. The request holds the whole URL. There is no referrer, so words come from the site's own search alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import pyarrow.compute as pc

from semrank.transforms.logs.access import AccessReader, Requests, read_access_log, split_requests, unescaped
from semrank.transforms.logs.options import LogOptions
from semrank.transforms.logs.rejections import Balance
from semrank.transforms.logs.visits import LogBatch
from semrank.transforms.streams.quotes import quote_line
from semrank.transforms.streams.spans import QUOTE, SPACE, Fields, Lines, separate, value_spans
from semrank.transforms.streams.times import written_times

FORMAT = "alb"

_TIME, _CLIENT, _STATUS, _REQUEST, _AGENT = 1, 3, 8, 12, 13
_ZERO, _NINE = ord("0"), ord("9")


def read(stream: BinaryIO, *, source: str, options: LogOptions) -> Iterator[LogBatch]:  # noqa: ARG001
    """Page views of a log in this format; see `formats.Read`."""
    return read_access_log(stream, FORMAT, options, _read_lines)


def _read_lines(lines: Lines, reader: AccessReader, balance: Balance) -> None:
    separated = separate(lines, SPACE, quoted=True)
    first = lines.content[lines.starts]
    classic = (first >= _ZERO) & (first <= _NINE)
    agentless = classic & (separated.counts == _REQUEST)
    fits = np.zeros(len(lines), dtype=np.bool_)
    # Lines of a classic load balancer have the same fields but for the type.
    for places, shift, last in ((~classic, 0, _AGENT), (classic & ~agentless, 1, _AGENT), (agentless, 1, _REQUEST)):
        count = last + 1 - shift
        chosen = np.flatnonzero(places & (separated.counts >= count))
        if not len(chosen):
            continue
        fields = separated.fields(chosen, count)
        whole = np.ones(len(chosen), dtype=np.bool_)
        for quoted in range(_REQUEST, last + 1):
            whole &= fields.is_wrapped(quoted - shift, QUOTE, QUOTE)
        fits[chosen[whole]] = True
        if whole.any():
            reader.add(_requests(separated.fields(chosen[whole], count), shift, with_agent=last == _AGENT), balance)
    for line in lines.take(~fits).texts():
        balance.reject_line(quote_line(line))


def _requests(fields: Fields, shift: int, *, with_agent: bool) -> Requests:
    method, target = split_requests(*value_spans(unescaped(fields.inside(_REQUEST - shift))))
    return Requests(
        client=pc.replace_substring_regex(fields.column(_CLIENT - shift), r":[0-9]+$", ""),
        times=written_times(fields.column(_TIME - shift)),
        method=method,
        target=target,
        status=fields.column(_STATUS - shift),
        agent=unescaped(fields.inside(_AGENT - shift)) if with_agent else None,
        quote=lambda record: quote_line(fields.lines.text(record)),
    )
