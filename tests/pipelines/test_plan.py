"""`--plan` of the commands that run pipelines: its stages in an order that can run, and nothing is written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from semrank.pipelines.cli import main
from tests.support.sample import ingest_sample

STAGE = re.compile(r" *(\d+)\. (.+)")
READ = re.compile(r" +(?:read|exchange|broadcast): (.+)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    ingest_sample(folder)
    return folder


def plan(folder: Path, capsys: pytest.CaptureFixture[str], command: str, *options: str) -> list[str]:
    """The lines that a command prints; it may not write anything."""
    output = folder / "output"
    sources = ["--warc", f"{folder}/web/warc/*"]
    snapshot = ["--snapshot", f"{folder}/snapshot", "--seeds", f"{folder}/web/seeds.txt"]
    given = {"ingest": sources, "rank": snapshot, "rounds": [*snapshot, "--rounds", "2"]}[command]
    capsys.readouterr()
    assert main([command, *given, "--output", str(output), *options]) == 0
    assert not output.exists()
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("command", ["ingest", "rank", "rounds"])
def test_stages_read_what_is_made_before(command: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head, *lines = plan(folder, capsys, command, "--plan")
    stage = 0
    for line in lines:
        if found := STAGE.fullmatch(line):
            assert int(found[1]) == stage + 1
            stage += 1
        else:
            read = READ.fullmatch(line)
            assert read is not None, line
            assert all(int(number) < stage for number in re.findall(r"\d+", read[1]))
    assert head.startswith(f"{stage} stages, ")
    assert stage > 10


def test_a_plan_names_the_steps(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(plan(folder, capsys, "rank", "--ranker", "pagerank", "--plan", "text"))
    assert "write frontier" in text
    assert "score by pagerank" in text


def test_mermaid_has_the_same_stages(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, (head, *lines) = plan(folder, capsys, "ingest", "--plan"), plan(folder, capsys, "ingest", "--plan=mermaid")
    assert head == "flowchart TD"
    nodes = [line for line in lines if re.fullmatch(r'  s\d+\["[^"]+"\]', line)]
    edges = [line for line in lines if re.fullmatch(r"  s\d+ (-->|==>\|exchange\||-\.->) s\d+", line)]
    assert len(nodes) + len(edges) == len(lines)
    assert text[0].startswith(f"{len(nodes)} stages")


def test_other_forms_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["rank", "--snapshot", f"{folder}/snapshot", "--seeds", "s", "--output", "o", "--plan", "svg"])
    assert "--plan: found 'svg', expected one of text, mermaid" in capsys.readouterr().err
