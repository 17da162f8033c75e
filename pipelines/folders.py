"""Folders that commands write: fresh when a run starts, finished when their manifest is there."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from semrank.pipelines.locks import LOCK, lock_folder
from semrank.schemas.errors import InputError
from semrank.schemas.tables import REJECTS, TableSchema
from semrank.transforms.columnar import files
from semrank.transforms.columnar.parquet import find_stored, open_stored, part_name, read_stored, write_parquet


def claim_folder(option: str, folder: str, *, parts: Sequence[str], overwrite: bool) -> None:
    """Makes a folder ready to be written.

    What an unfinished run left is removed; a finished result only with `overwrite`; anything else is left alone. A
    local folder is locked until the command ends.

    Args:
        option: the option that names the folder, for messages.
        folder: path of the folder.
        parts: names that the command writes below it.
        overwrite: whether a finished result may be replaced.

    Raises:
        InputError: the folder holds a finished result, or something else, or can't be written.
    """
    if not files.is_local(folder):
        _claim_remote(option, folder, parts=parts, overwrite=overwrite)
        return
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise InputError(f"{option} {folder}: is a file, expected a folder")
    if path.is_dir():
        _check_found(option, folder, _names(path), parts=parts, overwrite=overwrite)
    try:
        path.mkdir(parents=True, exist_ok=True)
        locked = lock_folder(folder)
    except OSError as cause:
        raise InputError(f"{option} {folder}: can't be written: {cause.strerror}") from cause
    if not locked:
        raise InputError(f"{option} {folder}: another run writes into it, expected a folder of its own")
    # Another run may have finished between the look and the lock.
    found = _names(path)
    linked = [name for name in found if (path / name).is_symlink()]
    if linked:
        raise InputError(f"{option} {folder}: holds a symbolic link '{linked[0]}', expected a new or empty folder")
    _check_found(option, folder, found, parts=parts, overwrite=overwrite)
    # The manifest goes first: without it nobody takes what is left for a finished result.
    for name in sorted(found, key=lambda name: name != files.MANIFEST):
        files.delete(str(path / name))


def _names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir() if entry.name != LOCK)


def _claim_remote(option: str, folder: str, *, parts: Sequence[str], overwrite: bool) -> None:
    prefix = folder.rstrip("/") + "/"
    found = sorted({file.path[len(prefix) :].split("/")[0] for file in files.match(prefix + "**")})
    _check_found(option, folder, found, parts=parts, overwrite=overwrite)
    for name in sorted(found, key=lambda name: name != files.MANIFEST):
        files.delete(files.join(folder, name))


def _check_found(option: str, folder: str, found: Sequence[str], *, parts: Sequence[str], overwrite: bool) -> None:
    foreign = [name for name in found if name not in {*parts, files.MANIFEST} and not name.startswith(".")]
    if foreign:
        raise InputError(f"{option} {folder}: holds '{foreign[0]}', expected a new or empty folder")
    if files.MANIFEST in found and not overwrite:
        raise InputError(f"{option} {folder}: holds a finished result; --overwrite replaces it")


def complete_parts(folder: str, schemas: dict[str, pa.Schema]) -> None:
    """Writes an empty file of the right schema where a table has no rows, so that readers find every table."""
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
    """The first row of a table that has a value in a column, or None; raises as `read_parts`."""
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
    """Number of rejects by reason, by reason's name.

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
    """A value as JSON can hold it: times as text, numbers that are not finite as null, mappings and lists likewise."""
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [plain(member) for member in value]
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def fingerprint(manifest: dict[str, Any], path: str) -> dict[str, str]:
    """What identifies an input: its path and the hash of its manifest."""
    with files.open_binary(files.join(path, files.MANIFEST)) as stream:
        digest = hashlib.sha256(stream.read()).hexdigest()
    return {"path": path, "kind": str(manifest["kind"]), "sha256": digest}
