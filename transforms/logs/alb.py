"""Access logs of Amazon's Application Load Balancer.

Fields, separated by spaces, some in quotes: type, time, load balancer, client:port, target:port, three durations,
status of the load balancer, status of the target, bytes received, bytes sent, "request", "user agent", cipher,
protocol, and more that are not read. The request holds the whole URL. There is no referrer, so words come from the
site's own search alone.
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
_MIN_FIELDS = 14


def read(stream: BinaryIO, *, source: str, options: LogOptions) -> Iterator[LogBatch]:  # noqa: ARG001
    """Page views of a log in this format; see `formats.Read`."""
    return read_access_log(stream, FORMAT, options, _read_lines)


def _read_lines(lines: Lines, reader: AccessReader, balance: Balance) -> None:
    separated = separate(lines, SPACE, quoted=True)
    chosen = np.flatnonzero(separated.counts >= _MIN_FIELDS)
    fits = np.zeros(len(lines), dtype=np.bool_)
    if len(chosen):
        fields = separated.fields(chosen, _MIN_FIELDS)
        whole = fields.is_wrapped(_REQUEST, QUOTE, QUOTE) & fields.is_wrapped(_AGENT, QUOTE, QUOTE)
        fits[chosen[whole]] = True
        if whole.any():
            reader.add(_requests(separated.fields(chosen[whole], _MIN_FIELDS)), balance)
    for line in lines.take(~fits).texts():
        balance.reject_line(quote_line(line))


def _requests(fields: Fields) -> Requests:
    method, target = split_requests(*value_spans(unescaped(fields.inside(_REQUEST))))
    return Requests(
        client=pc.replace_substring_regex(fields.column(_CLIENT), r":[0-9]+$", ""),
        times=written_times(fields.column(_TIME)),
        method=method,
        target=target,
        status=fields.column(_STATUS),
        agent=unescaped(fields.inside(_AGENT)),
        quote=lambda record: quote_line(fields.lines.text(record)),
    )
