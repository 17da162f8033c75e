"""Disks that are full and folders that are read-only: one line that names the folder."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest

from semrank.pipelines import report
from semrank.pipelines.cli import main
from semrank.transforms.columnar.parquet import write_parquet

COMMANDS = {
    "sample": ["sample", "--output", "out/web"],
    "ontology": ["ontology", "--ontology", "e-commerce", "--output", "out/shop.ttl"],
    "report": ["report", "--round", "round", "--output", "out/page.html"],
}
"""Commands that write files without a pipeline; the others are tested by kills and disks of their own."""


STATUSES = {errno.ENOSPC: 1, errno.EDQUOT: 1, errno.EROFS: 2, errno.EACCES: 2}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(
    ("number", "status"), [(errno.ENOSPC, 1), (errno.EDQUOT, 1), (errno.EROFS, 2), (errno.EACCES, 2)]
)
def test_the_folder_is_named(
    name: str,
    number: int,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refuse(*_: Any) -> NoReturn:
        # The system's error for a full disk names no file.
        raise OSError(number, os.strerror(number))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(report, "_round_facts", lambda *_: ("", "", {}))
    monkeypatch.setattr(Path, "write_bytes", refuse)
    assert main(COMMANDS[name]) == status
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "out" in error
    assert os.strerror(number) in error


def test_errors_of_workers_name_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(OSError, match=f"No space left on device: '{tmp_path}/frontier'"):
        write_parquet(f"{tmp_path}/frontier/part-00000.parquet", pa.table({"x": [1]}))
