"""The flex template's parameters are the command's options, and its entry understands what a template passes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from deploy.dataflow.main import command_arguments
from deploy.dataflow.template import metadata, name_of, options
from semrank.pipelines import rank
from semrank.pipelines.cli import command_parser

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "dataflow"
VALUES = {
    "snapshot": "gs://bucket/snapshot",
    "seeds": "gs://bucket/seeds.txt",
    "previous": "gs://bucket/round",
    "output": "gs://bucket/next",
    "profile": "paper-2013",
    "ranker": "link-context",
    "level": "host",
    "base": "last",
    "log-scope": "topic",
    "topic-relations": "both",
    "ontology-combine": "sum",
    "weight": "0.4",
    "threshold": "0.45",
    "alpha": "0.2",
    "smoothing": "0",
    "intension-norm": "max",
    "top-probability": "0.5",
    "c-edges": "clicks",
    "user-groups": "minhash",
    "language": "en",
    "keywords": "nouns",
    "hits-graph": "topic",
    "mix": "80:20",
    "as-of": "2026-01-31T06:00:00Z",
    "query": "hawks and falcons",
    "ontology": "e-commerce",
    "topic": "Product",
    "sigma": "lift",
    "worker-memory": "4G",
    "host-quality": "equal",
}


def test_the_metadata_file_is_up_to_date() -> None:
    assert json.loads((FOLDER / "metadata.json").read_text(encoding="utf-8")) == metadata()


def test_every_option_has_help_and_a_pattern_that_takes_its_values() -> None:
    told = {entry["name"]: entry for entry in metadata()["parameters"]}
    assert set(told) == {name_of(action) for action in options()}
    assert len(told) > 25
    for action in options():
        entry = told[name_of(action)]
        assert entry["helpText"]
        assert re.fullmatch(r"[a-zA-Z][-_a-zA-Z0-9]*", entry["name"])
        value = VALUES.get(entry["name"], "true" if action.nargs == 0 else "7")
        for pattern in entry.get("regexes", []):
            assert re.match(pattern, value), entry
            assert not re.match(pattern, "no value\n; rm")


def test_the_entry_makes_the_commands_arguments() -> None:
    passed = ["--snapshot=gs://b/s", "--query=red kites", "--max-urls=10", "--seeds=", "--write-lattices=true"]
    passed += ["--overwrite=false", "--semrank-terms=false", "--runner=DataflowRunner", "--setup_file=/x"]
    arguments = command_arguments(passed)
    assert arguments == [
        *("--snapshot=gs://b/s", "--query=red kites", "--max-urls=10", "--write-lattices", "--no-semrank-terms"),
        *("--runner=DataflowRunner", "--setup_file=/x"),
    ]
    full = [*arguments, "--seeds=gs://b/seeds", "--output=gs://b/o"]
    parsed, further = command_parser("rank", rank).parse_known_args(full)
    assert (parsed.query, parsed.max_urls, parsed.write_lattices, parsed.semrank_terms) == (
        "red kites",
        10,
        True,
        False,
    )
    assert further == ["--runner=DataflowRunner", "--setup_file=/x"]


@pytest.mark.parametrize("line", ["COPY setup.py", "COPY schemas", "COPY transforms", "COPY pipelines", "main.py"])
def test_the_image_holds_what_the_entry_needs(line: str) -> None:
    assert line in (FOLDER / "Dockerfile").read_text(encoding="utf-8")
