"""The list of printed texts has what commands, messages, pages and scripts print."""

from __future__ import annotations

import importlib
import re
from functools import cache

import pytest

from docs.sentences import Sentence, sentences
from semrank.pipelines.cli import COMMANDS, command_parser


@cache
def listed() -> tuple[Sentence, ...]:
    return tuple(sentences())


@cache
def patterns() -> tuple[re.Pattern[str], ...]:
    """The texts as expressions in which any value may stand for what is in braces."""
    return tuple(
        re.compile(re.sub(r"\\\{.*?\\\}", ".*", re.escape(sentence.text)))
        for sentence in listed()
        if sentence.path.startswith("pipelines/")
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_option_is_listed(command: str) -> None:
    parser = command_parser(command, importlib.import_module(f"semrank.pipelines.{command}"))
    known = patterns()
    for action in parser._actions:
        text = (action.help or "").partition(" (default")[0]
        own = text.partition(": ")[0]
        if action.dest != "help" and " " in own and action.metavar != "GLOB":
            assert any(pattern.match(own) or own in pattern.pattern.replace("\\", "") for pattern in known), text
    assert any(" ".join((parser.description or "").split()) == sentence.text for sentence in listed())


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pipelines/queue.py", "--previous {folder}: this round selected no URL, expected at least one"),
        ("pipelines/pages/report.js", "Top of the frontier"),
        ("pipelines/pages/report.html", "Skip to the content"),
        ("deploy/schedule/next_round.sh", '"no round is due in $folder" >&2'),
        ("transforms/ranking/registry.py", "order of discovery, ties by PageRank"),
        ("schemas/tables.py", "a known page; in a snapshot one row for each URL that a crawl fetched or found gone"),
    ],
)
def test_messages_labels_and_scripts_are_listed(path: str, text: str) -> None:
    assert text in {sentence.text for sentence in listed() if sentence.path == path}


def test_docstrings_and_content_are_not_listed() -> None:
    texts = {sentence.text for sentence in listed()}
    assert not any(text.startswith("The queue of a round: seeds from a file") for text in texts)
    assert not any(sentence.path.endswith("sample_web.py") for sentence in listed())
