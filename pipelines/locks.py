"""Locks of local folders, so that two runs never write into one.

The operating system releases a lock when the process ends, however it ends, so a killed run blocks no other one. The
lock is held on a file in the folder. The file is deleted at the end of the run, unless the run left an unfinished
result: then it marks the other files in the folder as written by a run.
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
    """Locks a folder until `release`; returns False if another run holds it.

    Raises:
        InputError: its file system does not support locks, like some network file systems.
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
        # The previous run may have deleted the file between opening and locking it; then the lock is on a deleted file.
        if path.exists() and os.fstat(descriptor).st_ino == path.stat().st_ino:
            _held[str(path)] = (descriptor, path)
            return True
        os.close(descriptor)


def release(folder: str) -> None:
    """Releases the lock of a folder, if this process holds it."""
    _release(str(Path(folder).resolve() / LOCK))


def release_all() -> None:
    """Releases all locks of this process."""
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
