from __future__ import annotations

from pathlib import Path

import pytest
from apache_beam.io.filesystems import FileSystems

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


GLOBS = ("*", "*.parquet", "a*", "a.parquet*", ".*", "inner/*", "none/*", "a.parquet/*", "../it/*.parquet", "inner/*/*")


@pytest.mark.parametrize("glob", GLOBS)
def test_globs_find_what_beam_finds(glob: str, tmp_path: Path) -> None:
    folder = tmp_path / "it"
    for name in (
        "a.parquet",
        ".a.parquet",
        "a.parquet.tmp",
        "a\\.parquet",
        "a\n.parquet",
        "ä.parquet",
        "inner/x/y",
        "inner/z",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    for link, target in {"file": "a.parquet", "folder": "inner", "nothing": "none"}.items():
        (folder / f"{link}.parquet").symlink_to(target)
    (expected,) = FileSystems.match([f"{folder}/{glob}"])
    found = files.match(f"{folder}/{glob}")
    assert found == sorted(expected.metadata_list, key=lambda file: str(file.path))
    assert [file.size_in_bytes for file in found] == [Path(file.path).stat().st_size for file in found]
