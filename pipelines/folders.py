"""Folders that commands write: empty when a run starts, finished once they have a manifest."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from semrank.pipelines import locks
from semrank.pipelines.locks import LOCK, lock_folder
from semrank.schemas.errors import InputError
from semrank.schemas.tables import REJECTS, TableSchema
from semrank.transforms.columnar import files
from semrank.transforms.columnar.parquet import find_stored, open_stored, part_name, read_stored, write_parquet

DRAFT, READY, REPLACED = ".semrank-new", ".semrank-ready", ".semrank-old"
"""Folders in an output: a new result that is being written, one that is being moved in, and the old one."""

WHOLE_TABLES = 4
"""Number of a command's tables from which on an unmarked folder counts as a result whose manifest was deleted."""

_OWN_NAMES = frozenset({LOCK, DRAFT, READY, REPLACED})

_TABLE_FILE = re.compile(r"part-[0-9]{5,}\.parquet")
_DRAFT_NAME = re.compile(r"\.[^/]+\.(?:parquet|json|txt|png|svg)\.[0-9a-f]{32}")
"""Temporary files that are renamed when they are complete; a killed run leaves them."""

_SUFFIXES = {"seeds": frozenset({".txt"}), "plots": frozenset({".png", ".svg"})}
"""Endings of files that are not tables, by folder."""

_KINDS = frozenset({"snapshot", "round", "evaluation"})
"""Kinds of manifests."""

_drafts: dict[Path, Path] = {}
"""Folders of this process whose new result is written beside the old one, and where."""


def claim_folder(
    option: str,
    folder: str,
    *,
    parts: Sequence[str],
    overwrite: bool,
    inputs: Iterable[str] = (),
    keep_old: bool = True,
) -> None:
    """Prepares a folder for writing.

    The files of an unfinished run are deleted. A finished result is kept until the new one, which is written in
    `work_folder`, takes its place in `publish`; in a bucket, or without `keep_old`, it is deleted at once. Nothing else
    is ever deleted. A local folder is locked until `publish`, or the end of the command.

    Args:
        option: the option that names the folder, for messages.
        folder: path of the folder.
        parts: names that the command writes below it.
        overwrite: whether a finished result may be replaced.
        inputs: files and folders that the command reads.
        keep_old: whether a finished result stays until `publish`.

    Raises:
        InputError: the folder holds a finished result, an input, or something else, or can't be written.
    """
    _check_apart(option, folder, inputs)
    if not files.is_local(folder):
        _claim_remote(option, folder, parts=parts, overwrite=overwrite)
        return
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise InputError(f"{option} {folder}: is a file, expected a folder")
    try:
        if path.is_dir():
            _check_local(option, folder, parts=parts, overwrite=overwrite)
        path.mkdir(parents=True, exist_ok=True)
        if not lock_folder(folder):
            raise InputError(
                f"{option} {folder}: another run is writing to it, expected a folder that no other run uses"
            )
        finish_swap(path)
        # Another run may have finished between the check and the lock.
        _check_local(option, folder, parts=parts, overwrite=overwrite)
        if keep_old and (path / files.MANIFEST).exists():
            draft = path / DRAFT
            draft.mkdir()
            _drafts[path.resolve()] = draft
        else:
            # The manifest is removed first: a folder without it does not count as finished.
            for name in sorted(_names(path), key=lambda name: name != files.MANIFEST):
                files.delete(str(path / name))
    except OSError as cause:
        raise InputError(f"{option} {folder}: can't be written: {cause.strerror}") from cause


def work_folder(folder: str) -> str:
    """The folder in which the new content of a claimed folder is written until `publish`."""
    if not files.is_local(folder):
        return folder
    draft = _drafts.get(Path(folder).resolve())
    return folder if draft is None else str(draft)


def publish(folder: str, manifest: dict[str, Any]) -> None:
    """Writes the manifest, which finishes a claimed folder; only now a replaced result is deleted.

    Raises:
        InputError: in a bucket, another run has written one since the folder was claimed.
    """
    work = work_folder(folder)
    files.write_manifest(work, manifest)
    if work != folder:
        path = Path(folder)
        (path / REPLACED).mkdir()
        _move(path, path / REPLACED, _names(path), first=files.MANIFEST)
        Path(work).rename(path / READY)
        finish_swap(path)
        del _drafts[path.resolve()]
    if files.is_local(folder):
        locks.release(folder)


def finish_swap(path: Path) -> None:
    """Completes or undoes an interrupted swap in a locked folder, so that it has either the old result or the new one.

    The old manifest is the first to be moved out and the new one the last to be moved in. The draft is renamed between
    the two phases, so its name shows which phase was interrupted.
    """
    ready, replaced = path / READY, path / REPLACED
    source = ready if ready.is_dir() else replaced
    if source.is_dir() and not (path / files.MANIFEST).exists():
        _move(source, path, _names(source), last=files.MANIFEST)
    for name in (READY, REPLACED, DRAFT):
        files.delete(str(path / name))


def _move(source: Path, target: Path, names: Iterable[str], *, first: str = "", last: str = "") -> None:
    for name in sorted(names, key=lambda name: (name == last, name != first, name)):
        (source / name).rename(target / name)


def release_all() -> None:
    """Deletes the unpublished drafts of this process and releases its locks."""
    while _drafts:
        finish_swap(_drafts.popitem()[0])
    locks.release_all()


def check_file(option: str, path: str, *, overwrite: bool, inputs: Iterable[str] = ()) -> None:
    """Checks that writing a file destroys nothing.

    Args:
        option: the option that names the file, for messages.
        path: path of the file.
        overwrite: whether a file that is there may be replaced.
        inputs: files and folders that the command reads.

    Raises:
        InputError: the file exists and may not be replaced, is a folder, or is part of an input.
    """
    if files.is_local(path) and Path(path).is_dir():
        raise InputError(f"{option} {path}: is a folder, expected a file")
    if files.is_local(path) and Path(path).exists() and not Path(path).is_file():
        raise InputError(f"{option} {path}: is a device or a pipe, expected a file")
    for given in inputs:
        inner = _path_below(path, given)
        if inner is not None and (len(inner.parts) != 1 or inner.name in (files.MANIFEST, LOCK)):
            raise InputError(f"{option} {path}: belongs to the input {given}, expected another file")
    if files.exists(path) and not overwrite:
        raise InputError(f"{option} {path}: already exists, expected a new file or --overwrite")


def _check_apart(option: str, folder: str, inputs: Iterable[str]) -> None:
    for given in inputs:
        if _path_below(given, folder) is not None:
            raise InputError(f"{option} {folder}: contains the input {given}, expected another folder")


def _path_below(path: str, folder: str) -> PurePosixPath | None:
    """A path relative to a folder that contains it, `.` for the folder itself; None if it is elsewhere."""
    if not (files.is_local(path) and files.is_local(folder)):
        inner = PurePosixPath(path)
        return inner.relative_to(folder) if inner.is_relative_to(folder) else None
    outer = Path(folder)
    if not outer.exists():
        return None
    resolved = Path(path).resolve()
    # Folders can have several names (case, mounts), so they are compared by device and inode.
    for ancestor in (resolved, *resolved.parents):
        if ancestor.exists() and ancestor.samefile(outer):
            return PurePosixPath(resolved.relative_to(ancestor))
    return None


def _names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir() if entry.name not in _OWN_NAMES)


def _check_local(option: str, folder: str, *, parts: Sequence[str], overwrite: bool) -> None:
    found: list[PurePosixPath] = []
    marked = (Path(folder) / LOCK).exists()
    for entry in sorted(Path(folder).iterdir()):
        inner = sorted(entry.iterdir()) if entry.is_dir() and not entry.is_symlink() else []
        for path in (entry, *inner):
            if path.is_symlink():
                raise InputError(
                    f"{option} {folder}: holds a symbolic link '{path.name}', expected a new or empty folder"
                )
        if not marked or entry.name not in _OWN_NAMES:
            found += [PurePosixPath(entry.name, path.name) for path in inner] or [PurePosixPath(entry.name)]
    manifest = Path(folder) / files.MANIFEST
    if manifest.is_file() and files.read_json(str(manifest)).get("kind") not in _KINDS:
        raise InputError(
            f"{option} {folder}: holds a {files.MANIFEST} that semrank did not write, expected a new or empty folder"
        )
    _check_found(option, folder, found, parts=parts, overwrite=overwrite, marked=marked)


def _claim_remote(option: str, folder: str, *, parts: Sequence[str], overwrite: bool) -> None:
    prefix = folder.rstrip("/") + "/"
    found = [PurePosixPath(file.path[len(prefix) :]) for file in files.match(prefix + "**")]
    _check_found(option, folder, found, parts=parts, overwrite=overwrite, marked=True)
    for name in sorted({path.parts[0] for path in found}, key=lambda name: name != files.MANIFEST):
        files.delete(files.join(folder, name))


def _check_found(
    option: str, folder: str, found: Sequence[PurePosixPath], *, parts: Sequence[str], overwrite: bool, marked: bool
) -> None:
    """Refuses files that semrank did not write, and a finished result.

    `marked` is whether the folder is known to be written by a run. In other folders, files of the same names belong to
    the user, unless there are so many tables that only a run can have written them and its manifest was deleted.
    """
    finished = PurePosixPath(files.MANIFEST) in found
    marked = marked or len({path.parts[0] for path in found if _is_own(path, parts)} & set(parts)) >= WHOLE_TABLES
    for path in found:
        if str(path) != files.MANIFEST and not ((marked or finished) and _is_own(path, parts)):
            raise InputError(f"{option} {folder}: holds '{path}', expected a new or empty folder")
    if finished and not overwrite:
        raise InputError(f"{option} {folder}: holds a finished result; --overwrite replaces it")


def _is_own(path: PurePosixPath, parts: Sequence[str]) -> bool:
    """Whether a command that writes `parts` gives this path below its output to a file."""
    if path.parts[0] not in parts:
        return bool(_DRAFT_NAME.fullmatch(path.name)) and len(path.parts) == 1
    return len(path.parts) == 1 or (
        len(path.parts) == 2
        and bool(
            _TABLE_FILE.fullmatch(path.name)
            or _DRAFT_NAME.fullmatch(path.name)
            or path.suffix in _SUFFIXES.get(path.parts[0], ())
        )
    )


def complete_parts(folder: str, schemas: dict[str, pa.Schema]) -> None:
    """Writes an empty file for each table without rows, so that readers find every table."""
    for name, schema in schemas.items():
        if not files.match(files.join(folder, name, "*.parquet")):
            write_parquet(files.join(folder, name, part_name(0)), schema.empty_table())


def table_files(folder: str, name: str) -> list[str]:
    """Paths of a table's files."""
    return [str(file.path) for file in files.match(files.join(folder, name, "*.parquet"))]


def table_bytes(folder: str, name: str) -> int:
    """Size of a table's files in bytes."""
    return sum(int(file.size_in_bytes) for file in files.match(files.join(folder, name, "*.parquet")))


def read_parts(folder: str, expected: TableSchema) -> Iterator[pa.Table]:
    """The rows of a finished folder's table in the order of its files, in pieces of bounded size.

    Args:
        folder: path of the folder.
        expected: name of the table and the columns to read.

    Raises:
        InputError: the table has no files, or one is damaged or lacks a column.
    """
    for path in _present_files(folder, expected.name):
        yield from read_stored(path, expected)


def _present_files(folder: str, name: str) -> list[str]:
    paths = table_files(folder, name)
    if not paths:
        raise InputError(f"{folder}: its {name} table has no files, expected {files.join(name, '*.parquet')}")
    return paths


def find_row(folder: str, expected: TableSchema, column: str, value: Any) -> dict[str, Any] | None:
    """The first row of a table with a value in a column, or None; raises like `read_parts`."""
    for path in _present_files(folder, expected.name):
        found = find_stored(path, expected, column, value)
        if found.num_rows:
            return dict(found.to_pylist()[0])
    return None


def read_table(folder: str, expected: TableSchema) -> pa.Table:
    """The whole table of a finished folder; see `read_parts`."""
    return pa.concat_tables([expected.empty(), *read_parts(folder, expected)])


def row_count(folder: str, name: str) -> int:
    """Number of rows of a table.

    Raises:
        InputError: a file can't be read.
    """
    total = 0
    for path in table_files(folder, name):
        with open_stored(path) as file:
            total += file.metadata.num_rows
    return total


def rejects_by_reason(folder: str) -> dict[str, int]:
    """Number of rejects by reason, sorted by reason.

    Raises:
        InputError: a file can't be read.
    """
    counts: dict[str, int] = {}
    for path in table_files(folder, REJECTS.name):
        for part in read_stored(path, REJECTS.columns("reason")):
            for item in pc.value_counts(part["reason"]).to_pylist():
                counts[item["values"]] = counts.get(item["values"], 0) + item["counts"]
    return dict(sorted(counts.items()))


def manifests(folder: str) -> list[dict[str, Any]]:
    """The manifests of a folder and of the folders in it, each with its folder's path."""
    found = []
    for pattern in (files.join(folder, files.MANIFEST), files.join(folder, "*", files.MANIFEST)):
        for file in files.match(pattern):
            path = str(file.path)
            found.append({"folder": path.removesuffix("/" + files.MANIFEST), **files.read_json(path)})
    return found


def plain(value: Any) -> Any:
    """A value as JSON can represent it: times as text, non-finite numbers as null, also within mappings and lists."""
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [plain(member) for member in value]
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def fingerprint(path: str, kind: str) -> dict[str, str]:
    """The identity of an input: its path and the hash of its manifest; raises like `files.read_manifest`."""
    before = _manifest_digest(path)
    files.read_manifest(path, kind)
    found = {"path": path, "kind": kind, "sha256": before or ""}
    check_unchanged(found)
    return found


def check_unchanged(found: dict[str, str]) -> None:
    """Checks that an input still has the `fingerprint` that was taken.

    Raises:
        InputError: its manifest was deleted or replaced.
    """
    if _manifest_digest(found["path"]) != found["sha256"]:
        raise InputError(f"{found['path']}: was replaced while it was read; run the command again")


def _manifest_digest(path: str) -> str | None:
    name = files.join(path, files.MANIFEST)
    if not files.exists(name):
        return None
    return hashlib.sha256(files.read_bounded(name)).hexdigest()


@contextmanager
def unchanged(path: str, kind: str) -> Iterator[dict[str, str]]:
    """The fingerprint of a finished folder, which must not change until the end of the block.

    Raises:
        InputError: the folder is missing, unfinished, of another kind, or was replaced; the latter also if reading
            failed, since files disappear when a folder is replaced.
    """
    found = fingerprint(path, kind)
    try:
        yield found
    except InputError:
        check_unchanged(found)
        raise
    check_unchanged(found)
