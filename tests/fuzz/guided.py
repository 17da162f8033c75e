"""One target under atheris, the coverage-guided fuzzer: `python -m tests.fuzz.guided TARGET [OPTION OF LIBFUZZER ...]`.

Only this project's code is instrumented; what libraries in C and Rust do is seen by its effects.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any


def main() -> None:
    """Fuzzes until libFuzzer ends the process."""
    atheris: Any = importlib.import_module("atheris")  # it has no types
    name, *options = sys.argv[1:]
    with atheris.instrument_imports(include=["transforms.sources", "pipelines.config", "pipelines.queue", "schemas"]):
        from tests.fuzz.targets import TARGETS
    atheris.Setup([sys.argv[0], *options], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
