"""The loop of every format whose records are lines, and what the data sets among them share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO

import numpy as np

from semrank.transforms.logs.rejections import Balance
from semrank.transforms.logs.visits import LogBatch
from semrank.transforms.streams.lines import RECORD_TOO_LARGE, blocks
from semrank.transforms.streams.spans import Lines, find_lines

ReadLines = Callable[[Lines, Balance], None]
"""Reads some lines of a log in their order; each gets exactly one outcome in the balance."""


def read_blocks(
    stream: BinaryIO, stage: str, read_lines: ReadLines, quote: Callable[[bytes], str]
) -> Iterator[LogBatch]:
    """Batches of a log, one a block of lines.

    Args:
        stream: whole lines, perhaps compressed.
        stage: name of the format, for reject rows.
        read_lines: the format.
        quote: a line as a reject row may quote it.
    """
    for block in blocks(stream):
        balance = Balance(stage)
        for reason, piece in block.damaged:
            balance.reject(reason, quote(piece))
        lines = find_lines(block.data)
        long = lines.too_long
        for line in lines.take(long).texts():
            balance.reject(RECORD_TOO_LARGE, quote(line))
        whole = ~long
        if block.unterminated and len(lines):
            whole[-1] = False
        _read(lines.take(whole), balance, read_lines)
        if block.unterminated and len(lines) and not long[-1]:
            balance.torn = True
            _read(lines.take(np.array([len(lines) - 1])), balance, read_lines)
            balance.torn = False
        yield balance.batch()


def _read(lines: Lines, balance: Balance, read_lines: ReadLines) -> None:
    if len(lines):
        read_lines(lines, balance)
