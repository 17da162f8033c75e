"""Locks of local folders, so that two runs never write into one.

A lock is the system's: it ends with the process, however that ends, so one that a killed run left locks nobody out. It
is held on a file in the folder. The file is deleted when the run is over, except where the run left an unfinished
result: there it marks what else is in the folder as written by a run.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from semrank.schemas.errors import InputError
from semrank.transforms.columnar.files import MANIFEST

LOCK = ".semrank-lock"
"""Name of the file in a folder."""

_held: dict[str, tuple[int, Path]] = {}


def lock_folder(folder: str) -> bool:
    """Locks a folder until `release`; false where another run holds it.

    Raises:
        InputError: its file system has no locks, as some of networks.
        OSError: the folder is missing or can't be written.
    """
    path = Path(folder).resolve() / LOCK
    if str(path) in _held:
        return True
    marked = path.exists()
    while True:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except OSError as cause:
            os.close(descriptor)
            if not marked:
                path.unlink(missing_ok=True)
            raise InputError(
                f"{folder}: can't be locked: {cause.strerror}; expected a folder on a file system that supports locks"
            ) from cause
        # The run before may have deleted the file between opening and locking it; then the lock is on nothing.
        if path.exists() and os.fstat(descriptor).st_ino == path.stat().st_ino:
            _held[str(path)] = (descriptor, path)
            return True
        os.close(descriptor)


def release(folder: str) -> None:
    """Gives back the lock of a folder, if this process holds it."""
    _release(str(Path(folder).resolve() / LOCK))


def release_all() -> None:
    """Gives back all locks of this process."""
    for name in list(_held):
        _release(name)


def _release(name: str) -> None:
    if name not in _held:
        return
    descriptor, path = _held.pop(name)
    folder = path.parent
    if folder.is_dir() and ((folder / MANIFEST).exists() or not any(entry.name != LOCK for entry in folder.iterdir())):
        path.unlink(missing_ok=True)
    os.close(descriptor)
