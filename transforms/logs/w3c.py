"""The log of IIS: the W3C's extended format, separated by spaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from semrank.transforms.logs.extended import Dialect, read_extended
from semrank.transforms.logs.options import LogOptions
from semrank.transforms.logs.visits import LogBatch
from semrank.transforms.streams.spans import SPACE

FORMAT = "w3c"


def read(stream: BinaryIO, *, source: str, options: LogOptions) -> Iterator[LogBatch]:  # noqa: ARG001
    """Page views of a log in this format.

    Args:
        stream: whole lines from the file's beginning, perhaps compressed.
        source: path of the file.
        options: the key of user ids, the site and the site's search parameters.
    """
    return read_extended(stream, FORMAT, options, Dialect(SPACE, plus_is_space=True, percent=False))
