"""What all commands share: manifests for machines, completions, exit statuses."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from semrank.pipelines.cli import COMMANDS, main
from tests.support.interrupts import interruptible


def test_a_command_prints_its_manifest_for_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    web = tmp_path / "web"
    assert main(["sample", "--output", str(web), "--quiet"]) == 0
    capsys.readouterr()
    sources = ["--warc", f"{web}/warc/*", "--clicks", f"{web}/clicks/*"]
    assert main(["ingest", *sources, "--output", str(tmp_path / "snapshot"), "--quiet", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["folder"] == str(tmp_path / "snapshot")
    assert told["rows"]["pages"] > 0
    seeds = ["--seeds", str(web / "seeds.txt"), "--profile", "paper-2013", "--max-urls", "5"]
    rounds = ["rounds", "--snapshot", str(tmp_path / "snapshot"), *seeds, "--rounds", "2"]
    assert main([*rounds, "--output", str(tmp_path / "rounds"), "--quiet", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["folder"][-10:] for line in lines] == ["round-0000", "round-0001"]


@pytest.mark.parametrize(
    ("option", "told", "untold"),
    [
        ("--quiet", [], ["reading", "stages in", "started", "1 page"]),
        (None, ["reading 1 file, "], ["stages in", "started", "rows in 0.0 s"]),
        ("--verbose", ["reading 1 file, ", "stages in", "read sources: started", "rows in 0.0 s"], []),
    ],
)
def test_how_much_is_said(
    option: str | None, told: list[str], untold: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = tmp_path / "pages.jsonl"
    pages.write_text('{"url": "https://a.example/", "title": "A"}\n', encoding="utf-8")
    arguments = ["ingest", "--pages", str(pages), "--output", str(tmp_path / "snapshot")]
    assert main([*arguments, *([option] if option else [])]) == 0
    printed = capsys.readouterr()
    assert ("1 page, 0 links, 0 clicks, " in printed.out) == (option != "--quiet")
    for text in told:
        assert text in printed.err
    for text in untold:
        assert text not in printed.err
    assert printed.err.count("\n") == {"--quiet": 0, None: 1}.get(option, printed.err.count("\n"))


def test_quiet_runs_print_warnings_and_what_was_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty, snapshot = tmp_path / "empty.warc", str(tmp_path / "snapshot")
    empty.touch()
    assert main(["ingest", "--warc", str(empty), "--output", snapshot, "--quiet"]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "the snapshot has no pages and no links, so no round can be ranked from it\n"
    assert main(["ingest", "--warc", str(empty), "--output", snapshot, "--quiet", "--plan"]) == 0
    assert "read sources" in capsys.readouterr().out
    assert main(["completion", "bash", "--quiet"]) == 0
    assert "semrank" in capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completions_know_commands_and_options(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    printed = capsys.readouterr().out
    for known in ("rank", "evaluate", "max-per-domain", "snapshot"):
        assert known in printed


OFFERED = [
    (["r"], {"rank", "report", "rounds"}),
    (["rank", "--max-per"], {"--max-per-domain", "--max-per-host"}),
    (["rank", "--ranker", "h"], {"harmonic", "hits", "hmm"}),
    (["rank", "--seeds", "se"], {"seeds.txt"}),
    (["rank", "--snapshot", "s"], {"snapshot"}),
    (["export", "--format", "u"], {"urlfrontier", "urls"}),
    (["completion", "b"], {"bash"}),
]


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_completes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What bash offers for words of which the last is not complete."""
    assert main(["completion", "bash"]) == 0
    (tmp_path / "completion.bash").write_text(capsys.readouterr().out, encoding="utf-8")
    (tmp_path / "seeds.txt").touch()
    (tmp_path / "snapshot").mkdir()
    for words, expected in OFFERED:
        script = (
            'source completion.bash; COMP_WORDS=(semrank "$@"); COMP_CWORD=$#; '
            'set -- $(complete -p semrank); while [ "$1" != -F ]; do shift; done; '
            '"$2" semrank "${COMP_WORDS[COMP_CWORD]}"; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(
            ["bash", "-c", script, "bash", *words], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
        )
        assert set(done.stdout.split()) == expected, words


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--quiet", "rank"], "--quiet: unknown option, expected a command first"),
        (["ranc"], "unknown command 'ranc' (did you mean rank?), expected one of ingest, rank"),
        (["ingest", "--wrac", "x", "--output", "y"], "--wrac: unknown option; `--help` lists"),
        (["ingest", "--wrac", "x", "--output", "y"], "(did you mean --warc?)"),
        (["ingest", "--warc=x", "--outptu=y"], "required: --output; found --outptu (did you mean --output?)"),
        (["ingest", "--warc=x"], "required: --output\n"),
        (["rank"], "required: --snapshot, --output, one of --seeds --previous\n"),
        (["rank", "--seeds=x"], "required: --snapshot, --output\n"),
        (
            ["rank", "--snapshot=a", "--output=c", "--seeds=x", "--previous=y"],
            "--previous: found together with --seeds, expected one of them\n",
        ),
        (["rank", "--snapshot=a", "--output=c"], "rank: error: expected one of --seeds, --previous\n"),
        (["ls", "a", "b"], "b: unknown argument\n"),
        (["rank", "--snapshot", "a", "--seeds", "b", "--output", "c", "--language", "klingon"], "--language: found"),
        (["rank", "--snapshot", "a", "--seeds", "b", "--output", "c", "more"], "more: unknown argument;"),
        (["ingest", "--warc", "a", __file__, "--output", "c"], "; a pattern such as *.gz must be in quotes\n"),
        (
            ["rank", "--snapshot", "a", "--seeds", "b", "--output", "c", "--ranker", "pagernk"],
            "(did you mean pagerank?)",
        ),
        (
            ["export", "--round", "a", "--output", "b", "--format", "nuth"],
            "found 'nuth' (did you mean nutch?), expected",
        ),
        (["explain", "--round", "a", "https://a.example/", "--runner", "x"], "--runner: unknown option"),
        (["rounds", "--snapshot", "a", "--seeds", "b", "--output", "c", "--rounds", "two"], "--rounds: found 'two'"),
    ],
)
def test_slips_of_the_pen(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status: object = main(arguments)
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    complaint = capsys.readouterr().err
    assert told in complaint
    assert complaint.count("\n") == 1


def test_an_unknown_shell_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["completion", "cmd"])
    assert ended.value.code == 2
    assert "found 'cmd', expected one of bash" in capsys.readouterr().err


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert re.search(rf"examples?:\n +semrank {command} ", capsys.readouterr().out)


@pytest.mark.parametrize(
    "arguments",
    [
        ["sample", "--output", "/proc/nothing/web"],
        ["ontology", "--ontology", "e-commerce", "--output", "/proc/nothing/shop.ttl"],
        ["ingest", "--pages", "pages.jsonl", "--output", "/proc/nothing/snapshot"],
    ],
)
def test_a_place_that_can_not_be_written_is_one_line(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pages.jsonl").write_text('{"url": "https://a.example/"}\n', encoding="utf-8")
    assert main(arguments) == 2
    printed = capsys.readouterr().err
    assert re.search(r"error: .*/proc/nothing.*: No such file or directory\n$", printed)
    assert "Errno" not in printed


def test_a_device_is_no_file_to_replace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["ontology", "--ontology", "e-commerce", "--output", str(tmp_path / "pipe.ttl"), "--overwrite"]
    os.mkfifo(tmp_path / "pipe.ttl")
    assert main(arguments) == 2
    assert "is a device or a pipe, expected a file" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["rank", "report"])
@pytest.mark.parametrize("drops", [False, True])
def test_an_interrupt_while_modules_are_imported_is_one_line(command: str, drops: bool) -> None:
    """The module stands for one that takes long to import; the library that it imports may drop the interrupt."""
    program = f"""
import sys, time, types
from semrank.pipelines import cli

def imported(name):
    print("importing", flush=True)
    try:
        time.sleep(30)
    except KeyboardInterrupt:
        if not {drops}:
            raise
    time.sleep(30)

cli.importlib = types.SimpleNamespace(import_module=imported)
cli.leave(cli.main([{command!r}]))
"""
    process = subprocess.Popen(
        interruptible("-c", program),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "importing\n"
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert time.monotonic() - begin < 5
    assert process.returncode == 130
    assert errors == f"semrank {command}: interrupted; the result is unfinished\n"
