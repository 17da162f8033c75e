"""Makes the drawing of a round's stages in the page on the architecture from the program itself.

`python -m docs.architecture` writes it into `docs/architecture.md`; a test fails where the page has another drawing.
"""

from __future__ import annotations

import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from semrank.pipelines.cli import main

PAGE = Path(__file__).with_name("architecture.md")

_START, _END = "```mermaid\n", "```\n"


def drawing(snapshot: str, seeds: str) -> str:
    """The stages of a first round with default options, for Mermaid."""
    printed = StringIO()
    round_options = ["--snapshot", snapshot, "--seeds", seeds, "--output", "round-0000"]
    with redirect_stdout(printed):
        status = main(["rank", *round_options, "--plan=mermaid", "--quiet"])
    if status != 0:
        raise RuntimeError(f"semrank rank --plan: found exit status {status}, expected 0")
    return printed.getvalue()


def with_drawing(page: str, drawn: str) -> str:
    """The page with another drawing in place of its own."""
    before, _, rest = page.partition(_START)
    return before + _START + drawn + _END + rest.partition(_END)[2]


def _sample_drawing() -> str:
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()):
        web, snapshot = f"{folder}/web", f"{folder}/snapshot"
        main(["sample", "--output", web])
        main(["ingest", "--warc", f"{web}/warc/*", "--clicks", f"{web}/clicks/*", "--output", snapshot, "--quiet"])
        return drawing(snapshot, f"{web}/seeds.txt")


if __name__ == "__main__":
    PAGE.write_text(with_drawing(PAGE.read_text(encoding="utf-8"), _sample_drawing()), encoding="utf-8")
