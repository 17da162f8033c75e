"""Options: declared once, checked by their declaration, and read from a file."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import re
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.pipelines import rank
from semrank.pipelines.cli import COMMANDS, command_parser, main
from semrank.pipelines.config import RoundConfig, round_config, unused_options
from semrank.pipelines.config_file import MAX_BYTES, file_arguments
from semrank.pipelines.options import declared, option_name
from semrank.schemas.errors import InputError
from tests.support.sample import ingest_sample

OPTIONS = declared(RoundConfig)


def parsed(*words: str) -> argparse.Namespace:
    return command_parser("rank", rank).parse_args(["--snapshot", "s", "--seeds", "f", "--output", "o", *words])


def test_every_field_but_one_is_an_option_of_its_type() -> None:
    assert {field.name for field in dataclasses.fields(RoundConfig)} - set(OPTIONS) == {"extension"}
    actions = command_parser("rank", rank)._option_string_actions
    for name, (option, _) in OPTIONS.items():
        action = actions[option_name(name)]
        assert action.help is not None
        assert action.help.startswith(option.text)
        assert set(action.choices or ()) <= set(option.choices)


@given(st.sampled_from([name for name, (what, _) in OPTIONS.items() if math.isfinite(what.low)]), st.floats(-2, 3))
def test_a_number_is_taken_if_it_is_in_the_range(name: str, value: float) -> None:
    """The ranges that the options' help tells."""
    ranges = {
        "weight": (0, 1),
        "alpha": (0, 0.5),
        "top_probability": (0, 1),
        "smoothing": (0, 1e9),
        "threshold": (0, 1),
        "precision": (0, 1),
        **dict.fromkeys(("ontology_r1", "ontology_r2", "ontology_theta", "cosine_k"), (0, 1e9)),
        **dict.fromkeys(("ontology_n", "rcg_alpha", "cosine_b"), (0, 1)),
    }
    above = ("alpha", "top_probability", "ontology_n", "ontology_theta")
    low, high = ranges.get(name, (1, math.inf))
    right = (low < value if name in above else low <= value) and value <= high
    values: dict[str, Any] = {name: value}
    if right:
        RoundConfig(**values)
        return
    with pytest.raises(InputError, match=rf"^{option_name(name)}: found {re.escape(str(value))}, expected a"):
        RoundConfig(**values)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--ranker", "pagerank", "--weight", "0.3"], ["--weight: has no effect with --ranker pagerank"]),
        (["--ranker", "pagerank", "--query", "owls"], ["--query: has no effect with --ranker pagerank"]),
        (["--profile", "paper-2013", "--weight", "0.3", "--query", "owls"], []),
        (
            ["--ranker", "semrank", "--weight", "0.3", "--query", "owls"],
            ["--weight: has no effect with --ranker semrank"],
        ),
        (["--precision", "0.3"], []),
        (["--precision", "0.3", "--ranker", "cosine"], ["--precision: has no effect with --ranker cosine"]),
        (["--precision", "0.3", "--threshold", "0.4"], ["--precision: has no effect with --threshold"]),
        (["--precision", "0.3", "--max-urls", "9"], ["--precision: has no effect with --max-urls"]),
        (["--precision", "0.3", "--budget", "9"], ["--precision: has no effect with --budget"]),
        (["--weight", "0.3"], ["--weight: has no effect with --ranker focused"]),
        (["--profile", "paper-2008", "--ranker", "cosine", "--semrank-terms", "--alpha", "0.3", "--max-urls", "9"], []),
    ],
)
def test_options_that_the_ranker_does_not_use_are_named(words: list[str], expected: list[str]) -> None:
    arguments = parsed(*words)
    assert unused_options(arguments, round_config(arguments)) == expected


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_file_gives_options_and_the_command_line_goes_before(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = ingest_sample(tmp_path_factory.mktemp("sample"))
    seeds = snapshot.parent / "web" / "seeds.txt"
    capsys.readouterr()
    (folder / "semrank.toml").write_text(
        f"""
snapshot = "{snapshot}"
overwrite = true
max_urls = 3
[rank]
seeds = "{seeds}"
ranker = "cosine"
max-per-host = 1
[export]
max-urls = 2
[beam]
job_name = "nightly"
""",
        encoding="utf-8",
    )
    assert main(["rank", "--output", "round", "--max-per-host", "2", "--quiet", "--json"]) == 0
    parameters = json.loads(capsys.readouterr().out)["parameters"]
    assert [parameters[name] for name in ("ranker", "max_urls", "max_per_host")] == ["cosine", 3, 2]
    assert main(["rank", "--previous", "round", "--output", "next", "--top", "1"]) == 0
    assert len(re.findall(r"^ +\d+  0\.", capsys.readouterr().out, re.MULTILINE)) == 1
    assert main(["export", "--round", "round", "--format", "urls", "--output", "urls", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "file": "urls", "format": "urls", "rejected": {}, "selected": 3, "written": 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "max-ruls = 3",
            "--config semrank.toml: found 'max-ruls', expected an option of semrank (did you mean --max-urls?)",
        ),
        ("[rnak]", "found the table [rnak] (did you mean rank?), expected one of ingest"),
        ("max-urls = true", "max-urls is True, expected a string or a number"),
        ("max-urls = 0", "--max-urls: found 0, expected a whole number of at least 1 (from semrank.toml)"),
        ("max-urls = 'x'", "--max-urls: found 'x', expected a whole number (from semrank.toml)"),
        ("ranker = 'cosin'", "--ranker: found 'cosin' (did you mean cosine?), expected one of"),
        ("max-urls = ", "--config semrank.toml: is not TOML: "),
        pytest.param("max-urls = " + "1" * 5_000, "--config semrank.toml: is not TOML: Exceeds", id="digits"),
        pytest.param("max-urls = 0x" + "f" * 5_000, "--config semrank.toml: is not TOML: Exceeds", id="hexadecimal"),
        ("#" * (MAX_BYTES + 1), f"--config semrank.toml: is larger than {MAX_BYTES:,} bytes"),
        ("overwrite = 1", "overwrite is 1, expected true or false"),
        ("[rank]\nwarc = 'x'", "found 'warc', expected an option of semrank"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(
    folder: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "semrank.toml").write_text(text, encoding="utf-8")
    try:
        status: object = main(["rank", "--snapshot", "s", "--seeds", "f", "--output", "o"])
    except SystemExit as ended:
        status = ended.code
    printed = capsys.readouterr().err
    assert (status, printed.count("\n")) == (2, 1)
    assert message in printed


NAMES = "a name of more than 64 parts"


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        pytest.param("top = 1\n" + "a." * 500_000 + "a = 1", 2, NAMES, id="words"),
        pytest.param("''.\t" * 200_000 + "a = 1", 1, NAMES, id="quoted"),
        pytest.param(r'"\" ". ' * 100_000 + "a = 1", 1, NAMES, id="escapes"),
        pytest.param(f"\r\n\r\n[{'a . ' * 200_000}a]", 3, NAMES, id="header of a table"),
        pytest.param("[[" + "a." * 64 + "a]]", 1, NAMES, id="header of an array of tables"),
        pytest.param("x = {" + "a." * 64 + "a = 1}", 1, NAMES, id="inline table"),
        pytest.param('x = """\n" """"" # "\n' + "a." * 64 + "a = 1", 3, NAMES, id="after a string of lines"),
        pytest.param("x = [\n" * 60 + "[" * 100_000, 61, "arrays and tables more than 64 deep", id="arrays"),
        pytest.param("x = " + "{a = " * 65, 1, "arrays and tables more than 64 deep", id="inline tables"),
        pytest.param("a.a.a = 1\n" * 1_001, 1_001, "more than 1,000 names of several parts", id="many names"),
    ],
)
def test_keys_that_take_long_to_parse_are_refused_at_once(
    folder: Path, text: str, line: int, found: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "semrank.toml").write_text(text, encoding="utf-8", newline="")
    before = time.process_time()
    assert main(["sample", "--output", "web"]) == 2
    assert time.process_time() - before < 2
    message = f"--config semrank.toml: line {line}: found {found}, expected options of semrank"
    assert capsys.readouterr().err == f"semrank sample: error: {message}\n"


@pytest.mark.parametrize(
    "text",
    [
        "[" + "a." * 63 + "a]",
        "x = [" + "{}, [], " * 100 + "[" * 63 + "]" * 64,
        "# " + "a." * 65 + "a = 1\nx = 1",
        'x = """\n' + "a." * 65 + 'a = [[[ \\""" \n"""',
        "x = '''\n" + "''.'' " + "a." * 65 + "a = 1\n'''''",
        'x = "' + "a." * 65 + '[" # "' + "a." * 65,
        "x = '" + "a." * 65 + "\"\\'",
        "x = ['" + "', 'a.b', '".join("ab" * 600) + "']",
        '"' + "a." * 65 + '" = 1',
    ],
)
def test_strings_and_comments_are_not_keys(folder: Path, text: str) -> None:
    """What is refused otherwise is the name of the option or table, after the file was parsed."""
    tomllib.loads(text)
    (folder / "semrank.toml").write_text(text, encoding="utf-8")
    found = "|".join([r"the table \[a\]", "'x'", "'[a.]{130}'"])
    with pytest.raises(InputError, match=rf"^--config semrank.toml: found ({found})"):
        file_arguments(argparse.ArgumentParser(), "rank", [], COMMANDS, beam=False)


def test_the_slowest_keys_that_are_allowed_take_bounded_time(folder: Path) -> None:
    keys = "".join(f"k{number}.{'a.' * 62}a = 1\n" for number in range(999))
    (folder / "semrank.toml").write_text(f"[{'a.' * 63}a]\n{keys}", encoding="utf-8")
    before = time.process_time()
    with pytest.raises(InputError, match=r"^--config semrank.toml: found the table \[a\]"):
        file_arguments(argparse.ArgumentParser(), "rank", [], COMMANDS, beam=False)
    assert time.process_time() - before < 5


def test_options_of_other_commands_are_left_to_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "own.toml").write_text("max-per-host = 1\nwarc = ['a', 'b']\n", encoding="utf-8")
    assert main(["sample", "--output", "web", "--config", "own.toml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["folder"] == "web"
    assert main(["sample", "--output", "web", "--config", os.devnull]) == 2
    assert "not empty" in capsys.readouterr().err
    assert main(["sample", "--output", "web", "--config", "nothing.toml"]) == 2
    assert "--config nothing.toml: can't be read: No such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_prints_json_and_only_pipelines_name_beam(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    printed = capsys.readouterr().out
    assert "--json" in printed
    assert ("Apache Beam" in printed) == (command in {"ingest", "rank", "rounds", "dataset"})
