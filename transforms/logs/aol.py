"""The query log that AOL published in 2006: AnonID, Query, QueryTime, ItemRank, ClickURL, with a header line.

Times are taken as UTC. A query without a click (the last two fields empty or absent) is ignored; a query taken out by
the publisher (`-`) as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from semrank.transforms.logs.clicks import ClickReader, Rows, fields_of
from semrank.transforms.logs.options import LogOptions
from semrank.transforms.logs.records import read_blocks
from semrank.transforms.logs.rejections import Balance
from semrank.transforms.logs.users import subject_ids
from semrank.transforms.logs.visits import LogBatch
from semrank.transforms.streams.quotes import quote_click_line
from semrank.transforms.streams.spans import TAB, Fields, Lines, separate
from semrank.transforms.streams.texts import decode
from semrank.transforms.streams.times import spaced_times

FORMAT = "aol"
HEADER = b"AnonID\t"

_USER, _QUERY, _TIME, _RANK, _URL = range(5)
_FIELDS, _FIELDS_WITHOUT_CLICK = 5, 3


def read(stream: BinaryIO, *, source: str, options: LogOptions) -> Iterator[LogBatch]:  # noqa: ARG001
    """Clicks of the log; see `formats.Read`. With a key, the set's own user numbers are hashed."""
    reader = ClickReader(options.rules)

    def read_lines(lines: Lines, balance: Balance) -> None:
        separated = separate(lines, TAB, quoted=False)
        header = np.array([lines.data.startswith(HEADER, start) for start in lines.starts.tolist()], dtype=np.bool_)
        short = (separated.counts == _FIELDS_WITHOUT_CLICK) & ~header
        balance.ignore("header", int(header.sum()))
        balance.ignore("no-click", int(short.sum()))
        fields = fields_of(lines.take(~(header | short)), TAB, _FIELDS, balance, quote_click_line)
        if fields is not None:
            reader.add(_rows(fields, options.salt), balance)

    return read_blocks(stream, FORMAT, read_lines, quote_click_line)


def _rows(fields: Fields, salt: bytes) -> Rows:
    return Rows(
        user_id=subject_ids(FORMAT, decode(fields.column(_USER)), salt),
        query=decode(fields.column(_QUERY)),
        times=spaced_times(fields.column(_TIME)),
        url=fields.column(_URL),
        position=fields.column(_RANK),
        quote=lambda record: quote_click_line(fields.lines.text(record)),
    )
