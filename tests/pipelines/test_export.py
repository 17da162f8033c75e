"""The command `semrank export`."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from semrank.pipelines.cli import main
from semrank.transforms.frontier.exports.targets import HERITRIX_ENDINGS, TARGETS
from tests.support.frontiers import frontier, write_round
from tests.transforms.frontier.exports import readers

COUNT = 400

NOBODY = 65_534
"""Id of the user without rights of its own."""


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Every third URL is not selected."""
    urls = [f"https://host{place % 7}.example/page,{place}?q='é'" for place in range(COUNT)]
    scores = [1 - place / COUNT for place in range(COUNT)]
    return frontier(urls, scores, selected=[place % 3 != 2 for place in range(COUNT)])


@pytest.fixture(scope="module")
def ranked(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_round(tmp_path_factory.mktemp("ranked") / "round", table)


def selected(table: pa.Table) -> list[str]:
    return [str(url) for url in table.filter(table["selected"])["url"].to_pylist()]


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def output(capsys: pytest.CaptureFixture[str]) -> str:
    found = capsys.readouterr()
    assert found.err == ""
    return found.out.strip()


def error(capsys: pytest.CaptureFixture[str]) -> str:
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.count("\n") == 1
    return found.err.strip()


def test_only_what_is_selected_in_the_order_of_rank(
    ranked: str, table: pa.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a" / "urls.txt"
    assert main(["export", "--round", ranked, "--format", "urls", "--output", str(path)]) == 0
    assert path.read_text(encoding="utf-8").splitlines() == selected(table)
    count = len(selected(table))
    assert output(capsys) == f"{path}: {count} of {count} selected URLs"
    record = path.parent / ".semrank" / "urls.txt"
    assert contents(path.parent).keys() == {path, record}
    assert record.read_text() == hashlib.sha256(path.read_bytes()).hexdigest() + "\n"


def test_most_urls(ranked: str, table: pa.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for most in (1, 100, 101, 200, 10_000):
        path = tmp_path / f"{most}.txt"
        arguments = ["--format", "urls", "--max-urls", str(most), "--output", str(path)]
        assert main(["export", "--round", ranked, *arguments]) == 0
        assert path.read_text(encoding="utf-8").splitlines() == selected(table)[:most]
        assert output(capsys).startswith(
            f"{path}: {min(most, len(selected(table)))} of {len(selected(table))} selected"
        )


@pytest.mark.parametrize(
    ("form", "ending"),
    [(name, ".txt") for name in TARGETS if name != "heritrix"] + [("heritrix", ending) for ending in HERITRIX_ENDINGS],
)
def test_the_same_bytes_again_and_whatever_the_files(form: str, ending: str, table: pa.Table, tmp_path: Path) -> None:
    table, contents = table.slice(0, 60), []
    for number, rows in enumerate((25, 25, 7, 60)):
        folder = write_round(tmp_path / f"round-{number}", table, rows=rows)
        path = tmp_path / f"frontier-{number}{ending}"
        for name in (path, Path(f"{path}.gz")):
            assert main(["export", "--round", folder, "--format", form, "--output", str(name)]) == 0
        packed = Path(f"{path}.gz").read_bytes()
        assert gzip.decompress(packed) == path.read_bytes()
        assert packed[3:8] == bytes(5), "neither a name nor a time (RFC 1952)"
        contents.append((packed, path.read_bytes()))
    assert contents[0][1].count(b"\n") == len(selected(table))
    assert contents == [contents[0]] * 4


def test_what_would_be_misread_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    urls = [
        "https://a.example/\t b\x00",
        "https://a.example/1",
        'ftp://a.example/"',
        "https://a.example/2",
        "https://a.example/\t",
    ]
    folder = write_round(tmp_path / "round", frontier(urls, selected=[True, True, True, True, False]))
    path = tmp_path / "list.tsv"
    arguments = ["export", "--round", folder, "--format", "nutch", "--output", str(path)]
    assert main(arguments) == 0
    assert [row.url for row in readers.nutch(path.read_text())] == [urls[1], urls[3]]
    rejects = Path(f"{path}.rejects.jsonl")
    assert output(capsys) == (
        f"{path}: 2 of 4 selected URLs for nutch; 2 left out (1 url-not-http, 1 url-with-space), listed in {rejects}"
    )
    assert [json.loads(line) for line in rejects.read_text().splitlines()] == [
        {"stage": "export", "reason": "url-with-space", "record": urls[0]},
        {"stage": "export", "reason": "url-not-http", "record": urls[2]},
    ]
    # What is rejected takes no place from what is not.
    assert main([*arguments, "--overwrite", "--max-urls", "1"]) == 0
    assert [row.url for row in readers.nutch(path.read_text())] == [urls[1]]
    assert len(rejects.read_text().splitlines()) == 1
    # Rejects of an earlier file do not stay beside a new one.
    clean = write_round(tmp_path / "clean", frontier(["https://a.example/"]))
    assert main(["export", "--round", clean, "--format", "nutch", "--output", str(path), "--overwrite"]) == 0
    assert not rejects.exists()


def test_fetch_interval_is_nutchs(ranked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["export", "--round", ranked, "--max-urls", "1"]
    for interval, found in (([], 2_592_000), (["--fetch-interval", "60"], 60)):
        path = tmp_path / f"{found}.tsv"
        assert main([*arguments, "--format", "nutch", "--output", str(path), *interval]) == 0
        assert [row.interval for row in readers.nutch(path.read_text())] == [found]
    capsys.readouterr()
    other = ["--format", "urls", "--output", str(tmp_path / "urls.txt"), "--fetch-interval", "60"]
    assert main([*arguments, *other]) == 2
    assert "--fetch-interval: found --format urls, expected nutch" in error(capsys)
    for wrong in ("0", str(2**31)):
        nutch = ["--format", "nutch", "--output", str(tmp_path / "list.tsv"), "--fetch-interval", wrong]
        assert main([*arguments, *nutch]) == 2
        assert f"found {wrong}, expected a whole number from 1 to 2147483647" in error(capsys)


def test_a_file_is_not_overwritten(ranked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "list.txt"
    arguments = ["export", "--round", ranked, "--format", "urls", "--output", str(path)]
    for present in (path, Path(f"{path}.rejects.jsonl")):
        present.write_text("mine")
        assert main(arguments) == 2
        assert error(capsys) == (
            f"semrank export: error: --output {present}: already exists, expected a new file or --overwrite"
        )
        assert present.read_text() == "mine"
        assert [entry.name for entry in tmp_path.iterdir()] == [present.name]
        present.unlink()
    assert main(arguments) == 0
    assert main([*arguments, "--overwrite"]) == 0
    assert output(capsys)
    for present in (path, Path(f"{path}.rejects.jsonl")):
        # The last ones look like exports, but another wrote them, or changed them.
        for content in ("mine", "# mine\nhttps://a.example/\n", "https://a.example/\n", '{"stage": "mine"}\n'):
            present.write_text(content)
            assert main([*arguments, "--overwrite"]) == 2
            assert f"--output {present}: is not as semrank export wrote it" in error(capsys)
            assert present.read_text() == content
        present.unlink()


@pytest.mark.parametrize(
    ("name", "file"),
    [(name, f"list{end}") for name in TARGETS for end in (HERITRIX_ENDINGS if name == "heritrix" else ("", ".gz"))],
)
def test_an_export_of_any_format_is_overwritten(name: str, file: str, ranked: str, tmp_path: Path) -> None:
    arguments = ["export", "--round", ranked, "--format", name, "--output", str(tmp_path / file)]
    assert main(arguments) == 0
    assert main(arguments) == 2
    assert main([*arguments, "--overwrite"]) == 0


@pytest.mark.parametrize("option", ["--include", "--exclude", "--only-hosts", "--only-domains"])
def test_a_file_of_rules_is_not_overwritten(
    option: str, ranked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rules.txt"
    path.write_text("# mine\n")
    arguments = ["export", "--round", ranked, "--format", "urls", "--output", str(path), "--overwrite"]
    assert main([*arguments, option, str(path)]) == 2
    assert f"belongs to the input {path}, expected another file" in error(capsys)
    assert path.read_text() == "# mine\n"


def test_only_a_file_that_excludes_may_have_no_rule(
    ranked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rules.txt").write_text("# none yet\n")
    (tmp_path / "empty.txt").touch()
    export = ["export", "--round", ranked, "--format", "urls", "--output"]
    assert main([*export, str(tmp_path / "all.txt")]) == 0
    for name in ("rules.txt", "empty.txt"):
        kept = tmp_path / f"of-{name}"
        assert main([*export, str(kept), "--exclude", str(tmp_path / name)]) == 0
        assert output(capsys)
        assert kept.read_bytes() == (tmp_path / "all.txt").read_bytes()
        assert main([*export, str(tmp_path / "no.txt"), "--include", str(tmp_path / name)]) == 2
        assert "holds no rule, expected" in error(capsys)


@pytest.mark.parametrize("option", ["--only-hosts", "--only-domains"])
def test_names_of_hosts_are_no_patterns(
    option: str, ranked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "names.txt").write_text("a.example\n*.b.example\n")
    arguments = ["export", "--round", ranked, "--format", "urls", "--output", str(tmp_path / "list.txt")]
    assert main([*arguments, option, str(tmp_path / "names.txt")]) == 2
    assert "line 2: found '*.b.example', expected the name of a host; --only-domains also keeps" in error(capsys)


def test_a_failure_leaves_what_was_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Half of a frontier under the name of a whole one would be crawled as one."""
    broken = frontier([f"https://a.example/{place}" for place in range(20)])
    folder = write_round(tmp_path / "round", pa.concat_tables([broken, broken]), rows=10)
    path = tmp_path / "out" / "list.txt"
    path.parent.mkdir()
    earlier = write_round(tmp_path / "earlier", frontier(["https://before.example/"]))
    assert main(["export", "--round", earlier, "--format", "urls", "--output", str(path)]) == 0
    assert output(capsys)
    before = contents(path.parent)
    assert main(["export", "--round", folder, "--format", "urls", "--output", str(path), "--overwrite"]) == 2
    assert "not in the order of rank: found rank 1 after 20" in error(capsys)
    assert contents(path.parent) == before


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--format", "urls", "--max-urls", "0"], "--max-urls: found 0, expected a whole number of at least 1"),
        (
            ["--format", "heritrix"],
            "found list.txt, expected a name for Heritrix that ends in one of .seeds, .schedule",
        ),
        (["--format", "urls", "--runner", "X"], "--runner: unknown option"),
    ],
)
def test_unusable_options(
    more: list[str], told: str, ranked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "--round", ranked, "--output", str(tmp_path / "list.txt"), *more]) == 2
    assert told in error(capsys)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_format_is_refused(ranked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["export", "--round", ranked, "--format", "httrack", "--output", str(tmp_path / "list")])
    assert "--format: found 'httrack', expected one of nutch" in error(capsys)


def test_unusable_rounds(table: pa.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unfinished = write_round(tmp_path / "unfinished", table, finished=False)
    path = str(tmp_path / "list.txt")
    assert main(["export", "--round", unfinished, "--format", "urls", "--output", path]) == 2
    assert "so it is not a round, or an unfinished one; expected a finished round" in error(capsys)
    assert main(["export", "--round", str(tmp_path / "none"), "--format", "urls", "--output", path]) == 2
    assert "no such folder, expected a round" in error(capsys)
    assert not Path(path).exists()


@contextmanager
def another_user() -> Iterator[None]:
    """A block that is run as a user other than root, who may write everything."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_a_folder_that_can_not_be_written(table: pa.Table, capsys: pytest.CaptureFixture[str]) -> None:
    with tempfile.TemporaryDirectory() as name:  # the folders of pytest are closed to other users
        folder = Path(name)
        folder.chmod(0o755)
        ranked = write_round(folder / "round", table)
        (folder / "closed").mkdir(mode=0o555)
        with another_user():
            output = str(folder / "closed" / "list")
            assert main(["export", "--round", ranked, "--format", "urls", "--output", output]) == 2
    assert "can't be written: Permission denied" in error(capsys)


def test_outputs_that_are_no_files(ranked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["export", "--round", ranked, "--format", "urls", "--overwrite"]
    assert main([*arguments, "--output", str(tmp_path)]) == 2
    assert f"--output {tmp_path}: is a folder, expected a file" in error(capsys)
    (tmp_path / "file").write_text("mine")
    assert main([*arguments, "--output", str(tmp_path / "file" / "list.txt")]) == 2
    assert "can't be written: " in error(capsys)


def test_nothing_selected_is_an_empty_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, table in (("none", frontier(["https://a.example/"], selected=[False])), ("empty", frontier([]))):
        folder = write_round(tmp_path / name, table)
        path = tmp_path / f"{name}.schedule.gz"
        assert main(["export", "--round", folder, "--format", "heritrix", "--output", str(path)]) == 0
        assert gzip.decompress(path.read_bytes()) == b""
        assert output(capsys) == f"{path}: 0 of 0 selected URLs for heritrix"


def test_rounds_of_earlier_versions(tmp_path: Path, table: pa.Table) -> None:
    """They have no probability of a change."""
    folder = write_round(tmp_path / "round", table.drop_columns(["change_probability"]))
    path = tmp_path / "list.tsv"
    assert main(["export", "--round", folder, "--format", "nutch", "--output", str(path)]) == 0
    assert len(readers.nutch(path.read_text(encoding="utf-8"))) == pc.sum(table["selected"]).as_py()
