"""Lists every text that the product can print: help, messages, summaries, labels of reports, lines of scripts.

`python -m docs.sentences [FOLDER ...]` prints a line for each: its file, its line number and the text. Values that are
filled in stand in braces. Docstrings are left out, but for those of commands, which are their help.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]

FOLDERS = ("schemas", "transforms", "pipelines", "deploy")
"""Folders whose programs print."""

COMMANDS = "pipelines"
"""Folder of modules whose docstring is the help of a command, where they have `OPTIONS`."""

CONTENT = "sample_"
"""What the names of modules begin with whose texts are content of the sample web."""

_WORDS = re.compile(r"[A-Za-z}][A-Za-z}'’,.:;)]* [^ ]*[A-Za-z{(\d]")
"""What a text has at least: two words, one of which may be filled in."""

_QUOTED = re.compile(r"`(?:[^`\\]|\\.)*`|'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"", re.DOTALL)
"""A string of JavaScript."""

_ECHO = re.compile(r"^\s*(?:[^#]*\s)?(?:echo|printf)\s+(.*)$", re.MULTILINE)
"""What a shell script prints."""


class Sentence(NamedTuple):
    """A text that is printed, and where it stands."""

    path: str
    line: int
    text: str


def sentences(folders: tuple[str, ...] = FOLDERS) -> Iterator[Sentence]:
    """The texts of all programs below some folders, file by file."""
    readers = {".py": _of_python, ".js": _of_javascript, ".html": _of_html, ".sh": _of_shell}
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            read = readers.get(path.suffix)
            if read is None or not path.is_file() or path.name.startswith(CONTENT):
                continue
            found = read(path.read_text(encoding="utf-8"), path)
            name = path.relative_to(ROOT).as_posix()
            yield from (Sentence(name, line, text) for line, text in sorted(found) if _WORDS.search(text))


def _of_python(text: str, path: Path) -> Iterator[tuple[int, str]]:
    tree = ast.parse(text)
    parts = _parts_of_strings(tree)
    for node in ast.walk(tree):
        if id(node) in parts:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, " ".join(node.value.split())
        elif isinstance(node, ast.JoinedStr):
            yield node.lineno, " ".join(_filled(node).split())
    assigned = (target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets)
    is_command = any(isinstance(target, ast.Name) and target.id == "OPTIONS" for target in assigned)
    if path.parent.name == COMMANDS and is_command:
        yield 1, " ".join((ast.get_docstring(tree) or "").split())


def _parts_of_strings(tree: ast.AST) -> set[int]:
    """Constants that are docstrings, texts of attributes, or parts of f-strings."""
    parts = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            parts.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            parts |= {id(value) for value in node.values}
            specs = [value.format_spec for value in node.values if isinstance(value, ast.FormattedValue)]
            parts |= {id(inner) for spec in specs if spec is not None for inner in ast.walk(spec)}
    return parts


def _filled(node: ast.JoinedStr) -> str:
    """An f-string with the expressions of its values in braces."""
    return "".join(
        f"{{{ast.unparse(value.value)}}}" if isinstance(value, ast.FormattedValue) else str(getattr(value, "value", ""))
        for value in node.values
    )


def _of_javascript(text: str, _: Path) -> Iterator[tuple[int, str]]:
    code = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
    for found in _QUOTED.finditer(code):
        yield code.count("\n", 0, found.start()) + 1, " ".join(found[0][1:-1].split())


class _Text(HTMLParser):
    """Collects what a page shows, and its titles and labels."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[int, str]] = []

    def handle_data(self, data: str) -> None:
        self.found.append((self.getpos()[0], " ".join(data.split())))

    def handle_starttag(self, _: str, attrs: list[tuple[str, str | None]]) -> None:
        shown = (value for name, value in attrs if name in ("title", "aria-label", "placeholder") and value)
        self.found += [(self.getpos()[0], value) for value in shown]


def _of_html(text: str, _: Path) -> Iterator[tuple[int, str]]:
    parser = _Text()
    parser.feed(text)
    yield from parser.found


def _of_shell(text: str, _: Path) -> Iterator[tuple[int, str]]:
    for found in _ECHO.finditer(text):
        yield text.count("\n", 0, found.start(1)) + 1, found[1]


if __name__ == "__main__":
    for sentence in sentences(tuple(sys.argv[1:]) or FOLDERS):
        print(f"{sentence.path}:{sentence.line}: {sentence.text}")
