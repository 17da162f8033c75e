"""The command `semrank sample`."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from pipelines import sample
from schemas.errors import InputError
from transforms.sources.sample_web import sample_files


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    sample.add_arguments(parser)
    return sample.run(parser.parse_args(words), [])


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_writes_the_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "a" / "sample"
    assert run("--output", str(output)) == 0
    assert content(output) == dict(sample_files())
    assert str(output) in capsys.readouterr().out


def test_an_empty_folder_is_fresh(tmp_path: Path) -> None:
    assert run("--output", str(tmp_path)) == 0
    assert (tmp_path / "seeds.txt").is_file()


def test_a_folder_with_content_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match=r"not empty, expected a new or empty folder"):
        run("--output", str(tmp_path))
    assert content(tmp_path) == {"mine.txt": b"mine"}


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(InputError, match="is a file, expected a folder"):
        run("--output", str(tmp_path / "mine"), "--overwrite")


def test_overwrite_replaces_the_sample_and_nothing_else(tmp_path: Path) -> None:
    run("--output", str(tmp_path))
    (tmp_path / "warc" / "mine.warc.gz").write_bytes(b"mine")
    (tmp_path / "warc" / "sample-20200101-00000.warc.gz").write_bytes(b"an older version's")
    (tmp_path / "seeds.txt").write_text("changed")
    assert run("--output", str(tmp_path), "--overwrite") == 0
    assert content(tmp_path) == {**dict(sample_files()), "warc/mine.warc.gz": b"mine"}


def test_a_misspelt_option_is_refused(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    sample.add_arguments(parser)
    parsed, others = parser.parse_known_args(["--output", str(tmp_path / "sample"), "--overwirte"])
    with pytest.raises(InputError, match="--overwirte: unknown option"):
        sample.run(parsed, others)
    assert not (tmp_path / "sample").exists()
