"""Writes an ontology as Turtle: the built-in one, one from a file, or one derived from the tables of a database.

With --round, the classes have the weights that this round learned from its harvest.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import pyarrow as pa

from semrank.pipelines import folders
from semrank.pipelines.answers import answer
from semrank.pipelines.options import option, read_options, required
from semrank.schemas.errors import InputError
from semrank.schemas.tables import CLASSES
from semrank.transforms.columnar import files
from semrank.transforms.ranking.ontology import with_learned
from semrank.transforms.ranking.ontology_beam import named_ontology
from semrank.transforms.ranking.ontology_files import write_ontology

EXAMPLES = """\
examples:
  semrank ontology --ontology sqlite:///shop.db --output shop.ttl
  semrank ontology --ontology shop.ttl --round round-0003 --output shop-learned.ttl
"""


@dataclass(frozen=True, kw_only=True)
class OntologyOptions:
    """What is written, and where to."""

    ontology: str = required("e-commerce, a file, or the URL of a database", metavar="NAME")
    topic: str | None = option(None, "class that is the topic, instead of the ontology's own", metavar="CLASS")
    round: str | None = option(
        None, "finished round of --ranker ontology whose learned weights are written", metavar="ROUND"
    )
    output: str = required("the file to write, .ttl", metavar="FILE")
    overwrite: bool = option(False, "replace the file if it exists", plain=True)


OPTIONS = (OntologyOptions,)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    own = read_options(OntologyOptions, arguments)
    if not own.output.endswith(".ttl"):
        raise InputError(f"--output: found {own.output}, expected a name that ends in .ttl")
    inputs = [own.ontology, *([own.round] if own.round else [])]
    folders.check_file("--output", own.output, overwrite=own.overwrite, inputs=inputs)
    ontology = named_ontology(own.ontology, own.topic)
    if own.round is not None:
        ontology = with_learned(ontology, _classes(own.round))
    write_ontology(ontology, own.output)
    text = f"{own.output}: {len(ontology.classes)} classes, topic {ontology.topic}"
    facts = {"file": own.output, "classes": len(ontology.classes), "topic": ontology.topic}
    answer(arguments, text, facts)
    return 0


def _classes(folder: str) -> pa.Table:
    files.read_manifest(folder, "round")
    if not folders.table_files(folder, CLASSES.name):
        raise InputError(f"--round {folder}: has no classes, expected a round of --ranker ontology")
    return folders.read_table(folder, CLASSES)


if __name__ == "__main__":
    from semrank.pipelines.cli import command_main, leave

    leave(command_main("ontology"))
