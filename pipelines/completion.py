"""Prints a script that lets a shell complete commands, options and the values of options.

bash looks for the script in ~/.local/share/bash-completion/completions, zsh in the folders of $fpath.
"""

from __future__ import annotations

import argparse
import importlib
from dataclasses import dataclass

import shtab

from semrank.pipelines.answers import answer
from semrank.pipelines.cli import COMMANDS, command_parser
from semrank.pipelines.options import read_options, required

EXAMPLES = """\
examples:
  semrank completion bash | install -D /dev/stdin ~/.local/share/bash-completion/completions/semrank
  semrank completion zsh | install -D /dev/stdin ~/.zfunc/_semrank
"""

_FOLDERS = {"DIR", "FOLDER", "ROUND", "SNAPSHOT"}
_FILES = {"FILE", "GLOB"}
"""How the values of options are called that name folders, and files."""


@dataclass(frozen=True)
class CompletionOptions:
    """The shell."""

    shell: str = required("the shell", metavar="SHELL", choices=tuple(shtab.SUPPORTED_SHELLS), positional=True)


OPTIONS = (CompletionOptions,)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    shell = read_options(CompletionOptions, arguments).shell
    parser = argparse.ArgumentParser(prog="semrank", allow_abbrev=False)
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers()
    for name, help_text in COMMANDS.items():
        own = command_parser(name, importlib.import_module(f"semrank.pipelines.{name}"))
        for action in own._actions:
            _complete_values(action)
        commands.add_parser(name, help=help_text, parents=[own], add_help=False, conflict_handler="resolve")
    script = shtab.complete(parser, shell)
    answer(arguments, script, {"shell": shell, "script": script})
    return 0


def _complete_values(action: argparse.Action) -> None:
    """Sets what a shell may offer as values of an option."""
    if action.metavar in _FOLDERS:
        action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    elif action.metavar in _FILES:
        action.complete = shtab.FILE  # type: ignore[attr-defined]


if __name__ == "__main__":
    from semrank.pipelines.cli import command_main, leave

    leave(command_main("completion"))
