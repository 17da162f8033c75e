"""The commands that the documentation and the commands' help show, with the output that they tell."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from semrank.pipelines import cli

ROOT = Path(__file__).resolve().parents[2]

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "examples/scrapy_project/README.md"])

_FENCE = re.compile(
    r"(?:<!-- (?P<marker>\S+) -->\n)?```sh\n(?P<script>.*?)^```$(?:\n+```text\n(?P<output>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)
_OPENERS = re.compile(r"^(for|while|until|if|case)\b")
_CLOSERS = re.compile(r"\b(done|fi|esac)\b")
_HERE = re.compile(r"<<-?\s*'?(\w+)'?")


@dataclass(frozen=True)
class Block:
    """Commands that stand together.

    Attributes:
        page: where they stand: a file's name, or `help COMMAND`.
        section: the heading above them.
        line: first line of the script in that file, from 1.
        marker: name in the comment before the block, or empty.
        script: the commands.
        output: what they print as it is told, or None.
    """

    page: str
    section: str
    line: int
    marker: str
    script: str
    output: str | None

    @property
    def statements(self) -> list[str]:
        """The script cut into whole statements: lines that go on, loops and here-documents stay together."""
        found: list[str] = []
        held: list[str] = []
        depth, until = 0, ""
        for line in self.script.splitlines():
            held.append(line)
            if until:
                until = "" if line.strip() == until else until
            else:
                here = _HERE.search(line)
                until = here[1] if here else ""
                depth += bool(_OPENERS.match(line.strip())) - len(_CLOSERS.findall(line))
            if not until and depth <= 0 and not line.endswith("\\"):
                found.append("\n".join(held))
                held, depth = [], 0
        return [statement for statement in [*found, "\n".join(held)] if statement.strip()]


def page_name(path: Path) -> str:
    """How a file is called here."""
    return path.relative_to(ROOT).as_posix()


def blocks_of(path: Path) -> list[Block]:
    """The blocks of a file."""
    text = path.read_text(encoding="utf-8")
    return [
        Block(
            page_name(path),
            (re.findall(r"^## (.+)$", text[: found.start()], re.MULTILINE) or [""])[-1],
            text.count("\n", 0, found.start("script")) + 1,
            found["marker"] or "",
            found["script"],
            found["output"],
        )
        for found in _FENCE.finditer(text)
    ]


def help_blocks() -> Iterator[Block]:
    """The examples of every command's help, and of the program's own."""
    own = cli._overview().split("example:\n")[1]
    yield Block("help", "", 1, "", _dedented(own), None)
    for name in cli.COMMANDS:
        examples = importlib.import_module(f"semrank.pipelines.{name}").EXAMPLES
        yield Block(f"help {name}", "", 1, "", _dedented(examples.split(":\n", 1)[1]), None)


def _dedented(text: str) -> str:
    return "".join(line.removeprefix("  ") + "\n" for line in text.splitlines())


def all_blocks() -> list[Block]:
    """Every block of every page, the pages in the order of their names, then the help."""
    return [*(block for path in PAGES for block in blocks_of(path)), *help_blocks()]


def run_script(
    script: str, folder: Path, environment: dict[str, str], seconds: float
) -> subprocess.CompletedProcess[str]:
    """What became of a script in bash, which ends with the first statement that fails."""
    bash = shutil.which("bash")
    assert bash is not None
    process = subprocess.Popen(
        [bash, "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        printed, complaints = process.communicate(timeout=seconds)
    finally:
        # What it left in the background goes with it, also where it did not come to its end.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return subprocess.CompletedProcess(process.args, process.returncode, printed, complaints)
