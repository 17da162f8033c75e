"""Paths that may be local or remote, through Beam's filesystems.

A path is a path, whichever runner or command uses it.
"""

from __future__ import annotations

import errno
import json
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
from apache_beam.io.filesystem import BeamIOError, CompressionTypes, FileMetadata
from apache_beam.io.filesystems import FileSystems

from semrank.schemas.errors import InputError
from semrank.transforms.columnar.objects import create_object

MANIFEST = "manifest.json"

_NOT_WRITABLE = frozenset({errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR})
"""Errors of a place that can't be written whatever is tried."""

_NAMES_IN_FOLDER = re.compile(r"/?(?:[\w .,=+@%-]+/)+[\w .,=+@%-]*\*[\w .,=+@%-]*")
"""A local glob whose only special character is one `*` in the name of the file: `snapshot/pages/*.parquet`."""

_BRACKETED = re.compile(r"[^*?]*\[[^*?]*")
_ANY_FOLDERS = "/**/"

_ANY_NAME = r"[^/\\]*"  # as `*` is defined for Beam's file systems

MAX_TEXT_BYTES = 256 << 20
"""Largest file of seeds, rules or a manifest: millions of URLs."""


def is_local(path: str) -> bool:
    """Whether a path names the local file system."""
    return "://" not in path


def join(folder: str, *names: str) -> str:
    """A path below a folder."""
    return str(FileSystems.join(folder, *names))


def match(pattern: str) -> list[FileMetadata]:
    """Files that a path or glob names, sorted by path; empty where there is none.

    As in shells, `/**/` stands for any number of folders, also for none, and brackets are themselves in the name of a
    file that exists.
    """
    if is_local(pattern) and _BRACKETED.fullmatch(pattern) and Path(pattern).is_file():
        status = Path(pattern).stat()
        return [FileMetadata(pattern, status.st_size, status.st_mtime)]
    if _ANY_FOLDERS in f"/{pattern}":
        shallow = {str(file.path): file for file in match(f"/{pattern}".replace(_ANY_FOLDERS, "/", 1)[1:])}
        deep = {str(file.path): file for file in _match(pattern)}
        return [file for _, file in sorted({**shallow, **deep}.items())]
    return _match(pattern)


def _match(pattern: str) -> list[FileMetadata]:
    if _NAMES_IN_FOLDER.fullmatch(pattern):
        return _match_names(*pattern.rsplit("/", 1))
    # A glob without a folder finds nothing in Beam's local file system.
    here = "./" if is_local(pattern) and ("/" not in pattern or pattern.startswith(_ANY_FOLDERS[1:])) else ""
    try:
        result = FileSystems.match([here + pattern])[0].metadata_list
    except (BeamIOError, ValueError) as cause:
        raise InputError(f"{pattern}: can't be listed: {_reason(cause)}") from cause
    for file in result:
        file.path = str(file.path).removeprefix(here)
    return sorted(result, key=lambda file: str(file.path))


def _match_names(folder: str, glob: str) -> list[FileMetadata]:
    """Files of one local folder. Beam would compile a pattern for each call and descend into all folders below."""
    names = re.compile(_ANY_NAME.join(map(re.escape, glob.split("*"))))
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if names.fullmatch(entry.name) and not entry.is_dir():
                with suppress(OSError):  # it vanished
                    status = entry.stat()
                    found.append(FileMetadata(f"{folder}/{entry.name}", status.st_size, status.st_mtime))
    return sorted(found, key=lambda file: str(file.path))


def exists(path: str) -> bool:
    """Whether a file or folder exists."""
    if is_local(path):
        return Path(path).exists()
    return bool(FileSystems.exists(path)) or bool(match(path.rstrip("/") + "/*"))


@contextmanager
def open_binary(path: str) -> Iterator[BinaryIO]:
    """A file opened for reading, as its bytes stand (nothing is decompressed).

    Raises:
        InputError: it can't be opened.
    """
    try:
        stream = _open(path)
    except (OSError, BeamIOError, ValueError) as cause:
        raise InputError(f"{path}: can't be read: {_reason(cause)}") from cause
    with stream:
        yield stream


def read_bounded(path: str, most: int = MAX_TEXT_BYTES) -> bytes:
    """The bytes of a file that a user writes or that describes others.

    Raises:
        InputError: it can't be read, or has more than `most` bytes, as a device that never ends has.
    """
    with open_binary(path) as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise InputError(f"{path}: is larger than {most:,} bytes")
    return content


def _open(path: str) -> BinaryIO:
    if is_local(path):
        return Path(path).open("rb")
    return FileSystems.open(path, "application/octet-stream", compression_type=CompressionTypes.UNCOMPRESSED)


def write_bytes(path: str, content: bytes | pa.Buffer) -> None:
    """Writes a file so that no reader ever sees a part of it: under another name first, then renamed.

    Raises:
        InputError: the folder is read-only.
        OSError: the disk is full, or fails; the error names the folder, or the file if it is in the working folder.
    """
    if is_local(path):
        target = Path(path)
        # The name of the working folder means nothing to users.
        place = target.parent if target.parent.name else target
        try:
            _write_local(target, content)
        except OSError as cause:
            if cause.errno in _NOT_WRITABLE:
                raise InputError(f"{place}: can't be written: {cause.strerror}") from cause
            raise OSError(cause.errno, cause.strerror, str(place)) from cause
        return
    # Object stores show an object only when its upload is complete.
    with FileSystems.create(path, "application/octet-stream", compression_type=CompressionTypes.UNCOMPRESSED) as stream:
        stream.write(content)


def _write_local(target: Path, content: bytes | pa.Buffer) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        draft.write_bytes(content)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def delete(path: str) -> None:
    """Deletes a file or a folder with all that is in it; nothing happens where there is none."""
    if is_local(path):
        if exists(path):
            FileSystems.delete([path])
        return
    # Object stores have no folders: what a folder holds are the objects with its prefix.
    found = [str(file.path) for pattern in (path, path.rstrip("/") + "/**") for file in match(pattern)]
    if found:
        FileSystems.delete(found)


def write_manifest(folder: str, manifest: dict[str, Any]) -> None:
    """Writes a folder's manifest, which marks it as finished.

    Raises:
        InputError: in a bucket, another run has written one since the folder was claimed.
    """
    path = join(folder, MANIFEST)
    if is_local(path):
        write_bytes(path, _json(manifest))
    elif not create_object(path, _json(manifest)):
        raise InputError(f"{path}: another run has finished there meanwhile, expected a folder that no other run uses")


def write_json(path: str, value: dict[str, Any]) -> None:
    """Writes a JSON file so that no reader ever sees a part of it."""
    write_bytes(path, _json(value))


def _json(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode(
        "utf-8", "backslashreplace"
    )


def read_manifest(folder: str, kind: str) -> dict[str, Any]:
    """The manifest of a finished folder.

    Args:
        folder: path of a snapshot or round.
        kind: what the folder should be (`snapshot`, `round`), for messages.

    Raises:
        InputError: the folder is not there, not finished, or of another kind.
    """
    path = join(folder, MANIFEST)
    if not exists(folder):
        raise InputError(f"{folder}: no such folder, expected a {kind}")
    if not exists(path):
        raise InputError(
            f"{folder}: has no {MANIFEST}, so it is not a {kind}, or an unfinished one; expected a finished {kind}"
        )
    manifest = read_json(path)
    if manifest.get("kind") != kind:
        raise InputError(f"{path}: found the manifest of kind {manifest.get('kind')!r}, expected kind '{kind}'")
    return manifest


def read_json(path: str) -> dict[str, Any]:
    """The JSON object that a file holds.

    Raises:
        InputError: the file can't be read or holds something else.
    """
    content = read_bounded(path)
    try:
        value = json.loads(content)
        # Half of a surrogate pair can stand in JSON, but in no text that is written.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as cause:
        raise InputError(f"{path}: is not JSON: {cause}") from cause
    if not isinstance(value, dict):
        raise InputError(f"{path}: found a {type(value).__name__}, expected a JSON object")
    return value


def _reason(cause: BaseException) -> str:
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return str(cause).splitlines()[0] if str(cause) else type(cause).__name__
