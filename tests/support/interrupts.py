"""Processes that can be interrupted wherever the tests run."""

from __future__ import annotations

import sys

_START = (
    "import os, signal, sys;"
    "signal.signal(signal.SIGINT, signal.SIG_DFL);"
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)


def interruptible(*arguments: str) -> list[str]:
    """Words that run Python with some arguments, interruptible also where the tests were started without interrupts.

    Code of Popen's `preexec_fn` would do that in a fork of the tests, whose gRPC then writes on standard error.
    """
    return [sys.executable, "-c", _START, *arguments]
