"""Ontologies in files, local or remote; see `ontology_formats` for what is read of them."""

from __future__ import annotations

from pathlib import PurePosixPath

from semrank.schemas.errors import InputError
from semrank.transforms.columnar import files
from semrank.transforms.ranking.ontology_formats import (
    FORMATS,
    SHIPPED,
    format_ontology,
    parse_ontology,
    shipped_ontology,
)
from semrank.transforms.ranking.ontology_model import Ontology

MAX_BYTES = 64 << 20
"""Bytes of a file that are read: the largest published domain ontologies have some ten million."""


def read_ontology(name: str, topic: str | None = None) -> Ontology:
    """An ontology by the name of a shipped one, or from a file.

    Args:
        name: one of `SHIPPED`, or a path.
        topic: name of the topic's class, in place of the one in the file.

    Raises:
        InputError: rdflib is not installed, or the file can't be read, is damaged, or describes no ontology.
    """
    if name in SHIPPED:
        return shipped_ontology(name, topic)
    ending = PurePosixPath(name).suffix.lower()
    if ending not in FORMATS:
        raise InputError(
            f"--ontology {name}: found the ending '{ending}', expected one of {', '.join(FORMATS)}, "
            f"or the name of a built-in ontology ({', '.join(SHIPPED)})"
        )
    with files.open_binary(name) as stream:
        content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise InputError(f"--ontology {name}: found more than {MAX_BYTES:,} bytes, expected at most so many")
    return parse_ontology(content, FORMATS[ending], name, topic)


def write_ontology(ontology: Ontology, path: str) -> None:
    """Writes an ontology as Turtle."""
    files.write_bytes(path, format_ontology(ontology))
