"""Outputs: what a command deletes and replaces, and what it refuses to touch."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from semrank.pipelines import folders
from semrank.pipelines.cli import main
from semrank.pipelines.locks import LOCK
from semrank.schemas.errors import InputError
from semrank.transforms.columnar.files import MANIFEST
from semrank.transforms.columnar.parquet import part_name

PARTS = ("pages", "links", "topics.parquet", "seeds", "pending.json")


class Killed(BaseException):
    """Stands for a kill: nobody catches it."""


@pytest.fixture(autouse=True)
def released() -> Iterator[None]:
    yield
    folders.release_all()


def fill(folder: Path, text: str, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def result(folder: Path, text: str, *more: str) -> None:
    fill(folder, text, f"pages/{part_name(0)}", f"links/{part_name(0)}", *more)
    fill(folder, f'{{"kind": "round", "text": "{text}"}}', MANIFEST)


def content(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def claim(folder: Path, *, overwrite: bool = True, **options: Any) -> Path:
    folders.claim_folder("--output", str(folder), parts=PARTS, overwrite=overwrite, **options)
    return Path(folders.work_folder(str(folder)))


@pytest.mark.parametrize(
    "name",
    [
        *(
            ".env",
            ".git/HEAD",
            ".semrank-new/notes",
            ".semrank-old/notes",
            ".semrank-ready/notes",
            ".ssh/id",
            ".lock",
            "notes.txt",
            "pages/index.html",
            "pages/.env",
            "pages/part-0.parquet",
        ),
        *(
            "pages/part-00000.parquet",
            "pages/sub/part-00000.parquet",
            "seeds/mine.txt",
            "topics.parquet",
            "pending.json",
            ".x.json.backup",
        ),
    ],
)
def test_what_no_run_wrote_is_left_alone(name: str, tmp_path: Path) -> None:
    fill(tmp_path, "kept", name)
    with pytest.raises(InputError, match="expected a new or empty folder"):
        claim(tmp_path)
    folders.release_all()
    assert content(tmp_path) == {name: "kept"}


@pytest.mark.parametrize(
    "name",
    [
        *(".env", ".git/HEAD", "notes.txt", "pages/index.html", "pages/sub/part-00000.parquet"),
        *("pages/thesis.txt", "links/photo.png", "seeds/photo.png", "seeds/sub/mine.txt"),
    ],
)
def test_beside_a_finished_result_it_is_left_alone_too(name: str, tmp_path: Path) -> None:
    result(tmp_path, "old", name)
    before = content(tmp_path)
    with pytest.raises(InputError, match="expected a new or empty folder"):
        claim(tmp_path)
    folders.release_all()
    assert content(tmp_path) == before


@pytest.mark.parametrize("text", ['{"name": "app"}', '{"kind": "Pod"}', "[]", "no JSON"])
def test_a_manifest_of_another_program_is_left_alone(text: str, tmp_path: Path) -> None:
    fill(tmp_path, text, MANIFEST)
    with pytest.raises(InputError, match=r"manifest\.json"):
        claim(tmp_path)
    folders.release_all()
    assert content(tmp_path) == {MANIFEST: text}


def test_what_an_unfinished_run_left_is_deleted(tmp_path: Path) -> None:
    work = claim(tmp_path)
    assert work == tmp_path
    draft = f"links/.{part_name(1)}.{'0' * 32}"
    fill(work, "half", f"pages/{part_name(0)}", draft, "seeds/birds.txt", "topics.parquet", "pending.json")
    (work / "seeds").mkdir(exist_ok=True)
    folders.release_all()
    claim(tmp_path, overwrite=False)
    assert set(content(tmp_path)) == {LOCK}
    folders.release_all()
    assert content(tmp_path) == {}


def test_a_new_result_replaces_the_old_one_when_it_is_finished(tmp_path: Path) -> None:
    result(tmp_path, "old", "seeds/birds.txt")
    work = claim(tmp_path)
    result(work, "new", "topics.parquet")
    (work / MANIFEST).unlink()
    assert "old" in content(tmp_path)[MANIFEST]
    folders.publish(str(tmp_path), {"kind": "round", "text": "new"})
    folders.release_all()
    found = content(tmp_path)
    assert set(found) == {f"pages/{part_name(0)}", f"links/{part_name(0)}", "topics.parquet", MANIFEST}
    assert all("new" in text for text in found.values())


def test_the_old_result_survives_a_failure(tmp_path: Path) -> None:
    result(tmp_path, "old")
    before = content(tmp_path)
    fill(claim(tmp_path), "new", f"pages/{part_name(0)}")
    folders.release_all()
    assert content(tmp_path) == before


@pytest.mark.parametrize("event", ["killed", "failed"])
def test_a_swap_that_is_interrupted_gives_the_old_result_or_the_new_one(event: str, tmp_path: Path) -> None:
    """At each of its steps; a result is never a mixture, and never lost."""
    rename = Path.rename
    outcomes = []
    for step in range(20):
        folder = tmp_path / str(step)
        result(folder, "old", "seeds/birds.txt")
        old = content(folder)
        work = claim(folder)
        result(work, "new", "topics.parquet")
        (work / MANIFEST).unlink()
        left = step

        def stop(self: Path, target: Path) -> Path:
            nonlocal left
            left -= 1
            if left == -1 or (event == "killed" and left < 0):
                raise Killed
            return rename(self, target)

        with mock.patch.object(Path, "rename", stop):
            try:
                folders.publish(str(folder), {"kind": "round", "text": "new"})
            except Killed:
                outcomes.append("stopped")
            else:
                outcomes.append("finished")
        if event == "killed":
            folders._drafts.clear()
            with pytest.raises(InputError, match="--overwrite replaces it"):
                claim(folder, overwrite=False)
            claim(folder)
        folders.release_all()
        found = content(folder)
        assert found == old or all("new" in text for text in found.values())
        assert (folder / "topics.parquet").exists() == (found != old)
        if outcomes[-1] == "finished":
            break
    assert outcomes == ["stopped"] * 9 + ["finished"]


@pytest.mark.parametrize("inner", ["", "pages", "pages/part-00000.parquet"])
@pytest.mark.parametrize("spelled", ["plain", "link", "dots"])
def test_an_input_in_the_output_is_refused(inner: str, spelled: str, tmp_path: Path) -> None:
    folder = tmp_path / "snapshot"
    result(folder, "old")
    before = content(folder)
    link = tmp_path / "link"
    link.symlink_to(folder)
    named = {"plain": folder, "link": link, "dots": folder / ".." / "snapshot"}[spelled]
    with pytest.raises(InputError, match="contains the input"):
        claim(folder, inputs=[str(named / inner)])
    with pytest.raises(InputError, match="contains the input"):
        claim(named, inputs=[str(folder / inner)])
    assert content(folder) == before
    claim(folder, inputs=[str(tmp_path), str(tmp_path / "snapshot-2"), "https://a.example/x", "gs://b/snapshot"])


def test_inputs_in_buckets() -> None:
    with pytest.raises(InputError, match="contains the input gs://b/x/pages"):
        folders.claim_folder("--output", "gs://b/x", parts=PARTS, overwrite=True, inputs=["gs://b/x/pages"])


@pytest.mark.parametrize("name", [folders.DRAFT, folders.READY, folders.REPLACED, LOCK])
def test_links_of_the_products_own_names_are_not_followed(name: str, tmp_path: Path) -> None:
    treasure = tmp_path / "treasure"
    result(treasure, "gold")
    folder = tmp_path / "output"
    folder.mkdir()
    (folder / name).symlink_to(treasure)
    with pytest.raises(InputError, match="symbolic link"):
        claim(folder)
    folders.release_all()
    assert "gold" in content(treasure)[MANIFEST]


def test_commands_do_not_replace_their_own_sources(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    round_folder = tmp_path / "round"
    result(round_folder, "round", "report.html")
    before = content(round_folder)
    inner = f"{round_folder}/pages/{part_name(0)}"
    for arguments in (
        ["export", "--round", str(round_folder), "--format", "urls", "--output", f"{round_folder}/{MANIFEST}"],
        ["export", "--round", str(round_folder), "--format", "urls", "--output", inner],
        ["report", "--round", str(round_folder), "--output", f"{round_folder}/pages/x.html"],
    ):
        assert main([*arguments, "--overwrite"]) == 2
        assert "belongs to the input" in capsys.readouterr().err
    assert content(round_folder) == before


def replace_while_read(folder: Path, manifest: str | None) -> None:
    with folders.unchanged(str(folder), "snapshot"):
        (folder / MANIFEST).unlink()
        if manifest is None:
            raise InputError("pages/part-00000.parquet: can't be read: No such file")
        fill(folder, manifest, MANIFEST)


def test_a_snapshot_that_is_replaced_while_it_is_read_is_refused(tmp_path: Path) -> None:
    for replaced in ('{"kind": "snapshot", "seconds": 2}', None):
        fill(tmp_path, '{"kind": "snapshot", "seconds": 1}', MANIFEST)
        with pytest.raises(InputError, match="was replaced while it was read"):
            replace_while_read(tmp_path, replaced)
    fill(tmp_path, '{"kind": "snapshot", "seconds": 1}', MANIFEST)
    with folders.unchanged(str(tmp_path), "snapshot") as found:
        fill(tmp_path, '{"kind": "snapshot", "seconds": 1}', MANIFEST)
    assert found["path"] == str(tmp_path)
    assert len(found["sha256"]) == 64


def test_a_sample_is_told_from_other_files_of_its_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path, "mine", "seeds.txt", "topics.parquet")
    assert main(["sample", "--output", str(tmp_path), "--overwrite"]) == 2
    assert "the folder is not empty" in capsys.readouterr().err
    assert content(tmp_path) == {"seeds.txt": "mine", "topics.parquet": "mine"}


@pytest.mark.parametrize("tables", [1, folders.WHOLE_TABLES - 1, folders.WHOLE_TABLES])
def test_a_result_whose_manifest_was_deleted_is_replaced(tables: int, tmp_path: Path) -> None:
    """Few tables of the same names may be somebody's own; as many as a result has are a result's."""
    parts = ["pages", "links", "clicks", "aliases", "rejects"]
    fill(tmp_path, "old", *(f"{name}/{part_name(0)}" for name in parts[:tables]))
    claimed = tables >= folders.WHOLE_TABLES
    with nullcontext() if claimed else pytest.raises(InputError, match="expected a new or empty folder"):
        folders.claim_folder("--output", str(tmp_path), parts=parts, overwrite=False)
    folders.release_all()
    assert bool(content(tmp_path)) != claimed


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS])
@pytest.mark.parametrize("marked", [True, False])
def test_a_file_system_without_locks(
    number: int, marked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused in one line that names the folder, and nothing is left in it that was not there."""

    def refuse(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    output = tmp_path / "output"
    output.mkdir()
    if marked:
        (output / LOCK).touch()
    with pytest.raises(InputError) as raised:
        claim(output)
    assert str(raised.value) == (
        f"{output}: can't be locked: {os.strerror(number)}; expected a folder on a file system that supports locks"
    )
    assert [path.name for path in output.iterdir()] == [LOCK] * marked
