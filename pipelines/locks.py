"""Locks of local folders, so that two runs never write into one.

A lock is the system's: it ends with the process, however that ends. It is held on a file in the folder, which is taken
away when the run is over; one that a killed run left locks nobody out.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

LOCK = ".lock"
"""Name of the file in a folder."""

_held: dict[str, tuple[int, Path]] = {}


def lock_folder(folder: str) -> bool:
    """Locks a folder until `release_all`; false where another run holds it.

    Raises:
        OSError: the folder is not there or can't be written.
    """
    path = Path(folder).resolve() / LOCK
    if str(path) in _held:
        return True
    while True:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        # The run before may have taken the file away between opening and locking it; then the lock is on nothing.
        if path.exists() and os.fstat(descriptor).st_ino == path.stat().st_ino:
            _held[str(path)] = (descriptor, path)
            return True
        os.close(descriptor)


def release_all() -> None:
    """Gives back all locks of this process."""
    while _held:
        descriptor, path = _held.popitem()[1]
        path.unlink(missing_ok=True)
        os.close(descriptor)
