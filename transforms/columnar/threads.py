"""Whether a process runs threads that limits or locks of the main thread would meet."""

import threading

INTERRUPTS = "semrank: interrupts"
"""Name of the thread that waits for signals; it holds no lock and takes no memory."""


def is_alone() -> bool:
    """Whether the main thread runs alone, but for the one that waits for signals."""
    return {thread.name for thread in threading.enumerate()} <= {threading.main_thread().name, INTERRUPTS}
