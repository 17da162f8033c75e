"""Visits exported from Matomo (`Live.getLastVisitsDetails` as JSON): an array of visits, or one visit a line.

A visit is a record. Its words are the keyword that a search engine passed on, then, from each search on the site on, what was
searched for there; each page, download and outgoing link after words is a click. Matomo has formed the sessions and left the robots out
already. A visit without words is ignored ("no-query"), one whose clicks have no usable page at all is rejected.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import pyarrow as pa

from schemas.tables import CLICKS
from transforms.sources.logs.fates import RECORD_TRUNCATED, Tally
from transforms.sources.logs.lines import blocks
from transforms.sources.logs.options import LogOptions
from transforms.sources.logs.searches import query_text
from transforms.sources.logs.texts import quotable
from transforms.sources.logs.users import hashed_ids, without_addresses
from transforms.sources.logs.visits import LogBatch
from transforms.sources.urls import canonical_url

FORMAT = "matomo"

MAX_VISIT_BYTES = 16 << 20
"""Bytes of a visit; Matomo ends a visit after some hours, and thousands of actions fit."""

MAX_SECONDS = 9_000_000_000
"""Seconds since 1970 that a time stamp may have, the year 2255."""

_TOKEN = re.compile(rb'["{}\[\]]|\\.', re.DOTALL)
_CLICKED = frozenset({"action", "download", "outlink"})
_MICROSECONDS = 1_000_000


def read(stream: BinaryIO, *, source: str, options: LogOptions) -> Iterator[LogBatch]:  # noqa: ARG001
    """Clicks of the visits.

    Args:
        stream: the export from its beginning, perhaps compressed.
        source: path of the file.
        options: the key of user ids.
    """
    splitter = _Splitter()
    for block in blocks(stream):
        tally = Tally(FORMAT)
        for text in splitter.objects(block.data):
            _read_visit(text, options.salt, tally)
        for piece in splitter.garbage():
            tally.reject("visit-invalid", _quote(piece))
        for reason, piece in block.damaged:
            tally.reject(reason, _quote(piece))
        yield tally.batch()
    tally = Tally(FORMAT)
    rest = splitter.rest()
    if rest:
        tally.reject(RECORD_TRUNCATED, _quote(rest))
        yield tally.batch()
