from __future__ import annotations

from pathlib import Path

import pytest

from semrank.transforms.columnar import files


@pytest.mark.parametrize("prefix", ["", "./", "inner/", "inner/../"])
def test_globs_find_files_of_any_folder(prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in (tmp_path, tmp_path / "inner"):
        folder.mkdir(exist_ok=True)
        for name in ("a-1.gz", "a-2.gz", "b.gz"):
            (folder / name).touch()
    assert [file.path for file in files.match(f"{prefix}a-*.gz")] == [f"{prefix}a-1.gz", f"{prefix}a-2.gz"]
    assert [file.path for file in files.match(f"{prefix}b.gz")] == [f"{prefix}b.gz"]
    assert files.match(f"{prefix}c*") == []
