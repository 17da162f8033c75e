"""The session log of Yandex's personalised search challenge (2014): rows M, Q, T and C.

    M: session · M · day · user                             a session begins
    Q: session · time · Q · result page · query · words (with commas) · page,domain · page,domain ...    (T: the same, a test query)
    C: session · time · C · result page · page              a click

All are numbers: pages become `https://DOMAIN.yandex.invalid/PAGE` (RFC 6761 reserves `.invalid`), words stay the numbers they are and
are given as keywords, the rank is the place in the query's results. The set does not say how long a unit of time is
nor when day 0 was: a unit counts as a second, day 0 is 1970-01-01, and `session_id` keeps sessions of a day apart.
M, Q and T rows are used when a click refers to them, else ignored ("no-click").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transforms.columnar.arrays import list_parts
from transforms.sources.logs.clicks import ClickReader, Rows, quote_without
from transforms.sources.logs.fates import LAYOUT_UNKNOWN, RECORD_TRUNCATED, Tally
from transforms.sources.logs.lines import MAX_LINE_BYTES, Block, blocks
from transforms.sources.logs.options import LogOptions
from transforms.sources.logs.spans import TAB, Fields, Lines, Separated, find_lines, separate
from transforms.sources.logs.texts import decode
from transforms.sources.logs.times import MICROSECONDS, timestamps
from transforms.sources.logs.users import subject_ids
from transforms.sources.logs.visits import LogBatch

FORMAT = "yandex"
RECORD_START = rb"[0-9]+\tM\t"
"""First line of a session: sessions are not torn apart by byte ranges."""

MAX_SESSION_BYTES = 8 << 20
"""Bytes of a session; a longer run of lines without an M row is cut, and clicks behind the cut are rejected."""

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_M_FIELDS, _Q_FIELDS, _C_FIELDS = 4, 6, 5
_SECONDS_A_DAY = 86_400
_NUMBER = r"^[0-9]{1,18}$"
_LAST_SESSION = re.compile(rb"(?:^|\n)([0-9]+\tM\t)")


def read(stream: BinaryIO, *, source: str, options: LogOptions) -> Iterator[LogBatch]:  # noqa: ARG001
    """Clicks of the log.

    Args:
        stream: whole sessions, perhaps compressed.
        source: path of the file.
        options: with a key, the set's own user numbers are hashed.
    """
    reader = ClickReader()
    carried = b""
    for block in blocks(stream):
        data = carried + block.data
        cut = 0 if block.unterminated else _last_session(data)
        carried, data = (data[cut:], data[:cut]) if cut or not block.unterminated else (b"", data)
        if len(carried) > MAX_SESSION_BYTES:
            carried, data = b"", data + carried
        yield _read(Block(data, block.damaged, block.unterminated), reader, options.salt)
    if carried:
        yield _read(Block(carried, (), unterminated=False), reader, options.salt)
