"""Printed output: control characters of crawled text are escaped, so that no terminal interprets them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line end, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks, embeddings, overrides and isolates of bidirectional text
    "\u2028\u2029\ud800-\udfff]"  # separators that end a line for some programs, halves of surrogate pairs
)


def visible(text: str) -> str:
    r"""A text with its control characters as escapes `\uXXXX`, which mean the same characters in JSON."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class _Visible:
    """A text stream that shows control characters as escapes."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(visible(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def visible_output() -> Iterator[None]:
    """Escapes control characters in everything that is printed to standard output and error within the block."""
    with redirect_stdout(_Visible(sys.stdout)), redirect_stderr(_Visible(sys.stderr)):
        yield


def clear_line() -> None:
    """Clears the line of a terminal that shows the progress; does nothing if standard error is not a terminal."""
    if sys.stderr.isatty():
        getattr(sys.stderr, "stream", sys.stderr).write("\r\x1b[K")
