"""ORCAS, clicks for TREC's deep learning track (Craswell et al., CIKM 2020): qid, query, did, url; no header.

The set names no users and no times. So that its rows count rather than being lost: each row is a user of its own, named
after its query and document, and happened at the beginning of 1970 (UTC). Users without a group form one group, so the
relations between words come out; no order of clicks is claimed, so there are no click sequences.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.schemas.tables import TIMESTAMP
from semrank.transforms.logs.clicks import ClickReader, Rows, fields_of
from semrank.transforms.logs.options import LogOptions
from semrank.transforms.logs.records import read_blocks
from semrank.transforms.logs.rejections import Balance
from semrank.transforms.logs.users import subject_ids
from semrank.transforms.logs.visits import LogBatch
from semrank.transforms.streams.quotes import quote_click_line
from semrank.transforms.streams.spans import TAB, Fields, Lines
from semrank.transforms.streams.texts import decode

FORMAT = "orcas"

_HEADER = b"qid\tquery\tdid\turl"  # the set has none, but copies with column names do

_QUERY_ID, _QUERY, _DOCUMENT_ID, _URL = range(4)


def read(stream: BinaryIO, *, source: str, options: LogOptions) -> Iterator[LogBatch]:  # noqa: ARG001
    """Clicks of the set; see `formats.Read`. With a key, the ids made here are hashed."""
    reader = ClickReader(options.rules)

    def read_lines(lines: Lines, balance: Balance) -> None:
        header = lines.ends - lines.starts == len(_HEADER)
        header[header] = [lines.text(line).lower() == _HEADER for line in np.flatnonzero(header).tolist()]
        balance.ignore("header", int(header.sum()))
        fields = fields_of(lines.take(~header), TAB, _URL + 1, balance, quote_click_line)
        if fields is not None:
            reader.add(_rows(fields, options.salt), balance)

    return read_blocks(stream, FORMAT, read_lines, quote_click_line)


def _rows(fields: Fields, salt: bytes) -> Rows:
    query_id, document = decode(fields.column(_QUERY_ID)), decode(fields.column(_DOCUMENT_ID))
    return Rows(
        user_id=subject_ids(FORMAT, pc.binary_join_element_wise(query_id, document, "-"), salt),
        query=decode(fields.column(_QUERY)),
        times=pa.repeat(pa.scalar(0, TIMESTAMP), len(fields)),
        url=fields.column(_URL),
        quote=lambda record: quote_click_line(fields.lines.text(record)),
    )
