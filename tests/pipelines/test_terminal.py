"""Control characters of crawled text: shown as escapes wherever a command prints."""

from __future__ import annotations

import json
import logging
import sys
import unicodedata
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.pipelines.cli import main
from semrank.pipelines.terminal import visible, visible_output

ATTACK = "owl \x1b[31mred\x1b]0;title\x07\x9b2J\u202egnp.exe\u2066 \x85 \r gone \x7f"
CONTROL = {"Cc", "Zl", "Zp", "Cs"}
BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def harmful(text: str) -> list[str]:
    """Characters of the categories Cc, Zl, Zp and Cs, and those that change the direction of text."""
    return [
        character
        for character in text
        if character not in "\n\t"
        and (unicodedata.category(character) in CONTROL or unicodedata.bidirectional(character) in BIDI)
    ]


@given(st.text())
def test_nothing_harmful_is_left_and_nothing_else_changes(text: str) -> None:
    shown = visible(text)
    assert harmful(shown) == []
    if not harmful(text) and not set(text) & set("\u061c\u200e\u200f"):
        assert shown == text


@given(st.text())
def test_json_stays_the_same_value(text: str) -> None:
    assert json.loads(visible(json.dumps(text, ensure_ascii=False))) == text


def test_everything_that_is_printed_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with visible_output():
        print(ATTACK)
        print(ATTACK, file=sys.stderr)
        logging.StreamHandler(sys.stderr).handle(logging.LogRecord("x", 20, "", 0, ATTACK, None, None))
        sys.stdout.writelines([ATTACK])
    for text in capsys.readouterr():
        assert len(text) > 2 * len(ATTACK)
        assert harmful(text) == []


def test_messages_of_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ["rank", "--snapshot", f"{tmp_path}/{ATTACK}", "--previous", f"x{ATTACK}", "--output", "y"],
        ["sample", "--output", "x", f"--{ATTACK}"],
        ["export", "--round", f"{tmp_path}/{ATTACK}", "--format", ATTACK, "--output", "y"],
        [ATTACK],
    ):
        with suppress(SystemExit):
            main(arguments)
        text = capsys.readouterr().err
        assert "\\u001b[31mred" in text
        assert harmful(text) == []
