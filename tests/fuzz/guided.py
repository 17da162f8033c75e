"""One target under atheris, the coverage-guided fuzzer: `python -m tests.fuzz.guided TARGET [OPTION OF LIBFUZZER ...]`.

This project's code is instrumented, and the parsers of RDF, which are in Python as well; what libraries in C and Rust
do is seen by its effects.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from typing import Any

RDF_PARSERS = [f"rdflib.plugins.parsers.{name}" for name in ("jsonld", "notation3", "ntriples", "rdfxml")]
"""rdflib imports them when they are needed, which would be too late."""

INSTRUMENTED = [
    *(f"semrank.transforms.{room}" for room in ("streams", "logs", "crawls", "samples")),
    *("semrank.transforms.ranking.ontology_formats", "semrank.transforms.ranking.ontology_database"),
    *RDF_PARSERS,
    *("semrank.pipelines.config", "semrank.pipelines.manifest", "semrank.pipelines.queue", "semrank.schemas"),
]
"""Packages and modules whose branches guide the fuzzer."""


def main() -> None:
    """Fuzzes until libFuzzer ends the process."""
    atheris: Any = importlib.import_module("atheris")  # it has no types
    name, *options = sys.argv[1:]
    with atheris.instrument_imports(include=INSTRUMENTED):
        from tests.fuzz.targets import TARGETS

        for module in RDF_PARSERS:
            importlib.import_module(module)

    def watched(data: bytes) -> None:
        try:
            TARGETS[name](data)
        except Exception:
            # Left to itself, the interpreter may end before libFuzzer has written the input down.
            traceback.print_exc()
            sys.stderr.flush()
            os.abort()

    atheris.Setup([sys.argv[0], *options], watched)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
