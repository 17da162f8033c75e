"""What all commands share: manifests for machines, completions, exit statuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pipelines.cli import COMMANDS, main


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


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completions_know_commands_and_options(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    printed = capsys.readouterr().out
    for known in ("rank", "evaluate", "max-per-domain", "snapshot"):
        assert known in printed


def test_an_unknown_shell_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "cmd"]) == 2
    assert "found 'cmd', expected one of bash" in capsys.readouterr().err


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert re.search(rf"examples?:\n +semrank {command} ", capsys.readouterr().out)
