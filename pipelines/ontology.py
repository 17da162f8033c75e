"""Writes an ontology as Turtle: a shipped one, one of a file, or what a database's tables describe.

With a round that was ranked by it, the classes have the weights that its harvest taught.
"""

from __future__ import annotations

import argparse

import pyarrow as pa

from semrank.pipelines import folders
from semrank.pipelines.answers import answer
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's options."""
    parser.add_argument("--ontology", required=True, metavar="NAME", help="e-commerce, a file, or a database's URL")
    parser.add_argument("--topic", metavar="CLASS", help="class that is the topic, in place of what the ontology says")
    parser.add_argument("--round", metavar="ROUND", help="finished round of --ranker ontology, whose weights are taken")
    parser.add_argument("--output", required=True, metavar="FILE", help="the file to write, .ttl")
    parser.add_argument("--overwrite", action="store_true", help="replace the file if it is there")


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; gives the exit status."""
    if not arguments.output.endswith(".ttl"):
        raise InputError(f"--output: found {arguments.output}, expected a name that ends in .ttl")
    inputs = [arguments.ontology, *([arguments.round] if arguments.round else [])]
    folders.check_file("--output", arguments.output, overwrite=arguments.overwrite, inputs=inputs)
    ontology = named_ontology(arguments.ontology, arguments.topic)
    if arguments.round is not None:
        ontology = with_learned(ontology, _classes(arguments.round))
    write_ontology(ontology, arguments.output)
    text = f"{arguments.output}: {len(ontology.classes)} classes, topic {ontology.topic}"
    facts = {"file": arguments.output, "classes": len(ontology.classes), "topic": ontology.topic}
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
