"""Ends an interrupted command soon, also while it is inside a long call of a library that no exception can leave."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from semrank.transforms.columnar.threads import INTERRUPTS

GRACE_SECONDS = 0.6
"""How long the command may take to end by itself."""


@contextmanager
def ending_soon(last: Callable[[], None], status: int) -> Iterator[None]:
    """Ends the process some time after SIGINT, unless the block has ended by then.

    Only the main thread handles signals; called by another one this does nothing.

    Args:
        last: called before the process ends.
        status: its exit status.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    ended = threading.Event()

    def watch() -> None:
        while (code := os.read(reader, 1)) and code[0] != signal.SIGINT:
            pass
        if code and not ended.wait(GRACE_SECONDS):
            last()
            os._exit(status)

    thread = threading.Thread(target=watch, name=INTERRUPTS, daemon=True)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(before)
        os.close(writer)
        thread.join()
        os.close(reader)
