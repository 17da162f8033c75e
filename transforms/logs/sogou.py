"""SogouQ, the query log of the search engine Sogou, in the layouts of 2008 and 2012.

    2008:  time (HH:MM:SS) · user · [query] · rank and order, a space between them · url without scheme
    2012:  time (14 digits) · user · query · rank · order · url

Fields are separated by tabs, the text is GBK (or, in copies, UTF-8; detected line by line, see `chinese`). The
layout of 2008 gives only the time of day: the date comes from eight digits in the file's name, as in
`access_log.20060801.decode.filter`, and is the first of January 1970 without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.logs.clicks import ClickReader, Rows
from semrank.transforms.logs.options import LogOptions
from semrank.transforms.logs.records import read_blocks
from semrank.transforms.logs.rejections import Balance
from semrank.transforms.logs.users import subject_ids
from semrank.transforms.logs.visits import LogBatch
from semrank.transforms.streams.quotes import quote_click_line
from semrank.transforms.streams.spans import TAB, Fields, Lines, separate
from semrank.transforms.streams.texts import chinese, decode
from semrank.transforms.streams.times import date_in_name, dense_times, spaced_times

FORMAT = "sogou"

_TIME, _USER, _QUERY, _RANK = range(4)
_FIELDS_2008, _FIELDS_2012 = 5, 6


def read(stream: BinaryIO, *, source: str, options: LogOptions) -> Iterator[LogBatch]:
    """Clicks of the log; see `formats.Read`. With a key, the set's own user ids are hashed."""
    reader = ClickReader(options.rules)
    date = date_in_name(source)

    def read_lines(lines: Lines, balance: Balance) -> None:
        separated = separate(lines, TAB, quoted=False)
        known = np.zeros(len(lines), dtype=np.bool_)
        for count in (_FIELDS_2008, _FIELDS_2012):
            chosen = np.flatnonzero(separated.counts == count)
            if len(chosen):
                known[chosen] = True
                reader.add(_rows(separated.fields(chosen, count), count, date, options.salt), balance)
        for line in lines.take(~known).texts():
            balance.reject_line(quote_click_line(line))

    return read_blocks(stream, FORMAT, read_lines, quote_click_line)


def _rows(fields: Fields, count: int, date: str, salt: bytes) -> Rows:
    time = fields.column(_TIME)
    clock = pc.binary_join_element_wise(pa.scalar(date.encode(), pa.binary()), time, pa.scalar(b" ", pa.binary()))
    query = decode(fields.column(_QUERY), chinese)
    return Rows(
        user_id=subject_ids(FORMAT, decode(fields.column(_USER)), salt),
        query=pc.replace_substring_regex(query, r"^\s*\[(.*)\]\s*$", r"\1"),
        times=pc.coalesce(dense_times(time), spaced_times(clock)),
        url=fields.column(count - 1),
        position=pc.replace_substring_regex(fields.column(_RANK), r"^ *(-?[0-9]+)(?: .*)?$", r"\1"),
        quote=lambda record: quote_click_line(fields.lines.text(record)),
    )
