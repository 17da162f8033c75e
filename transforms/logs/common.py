"""The Common Log Format: client, ident, account, time, request, status, bytes; no referrer, no browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from semrank.transforms.logs.access import read_access_log
from semrank.transforms.logs.ncsa import NcsaReader
from semrank.transforms.logs.options import LogOptions
from semrank.transforms.logs.visits import LogBatch

FORMAT = "common"


def read(stream: BinaryIO, *, source: str, options: LogOptions) -> Iterator[LogBatch]:  # noqa: ARG001
    """Page views of a log in this format; lines in its sister formats are read too.

    Args:
        stream: whole lines, perhaps compressed.
        source: path of the file.
        options: the key of user ids, the site and the site's search parameters.
    """
    return read_access_log(stream, FORMAT, options, NcsaReader(with_host=False))
