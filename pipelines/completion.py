"""Prints a shell's completion of commands, options, and the values that an option can have.

bash looks for it in ~/.local/share/bash-completion/completions, zsh in the folders of $fpath.
"""

from __future__ import annotations

import argparse
import importlib

import shtab

from semrank.pipelines.cli import COMMANDS, command_parser
from semrank.pipelines.config import (
    C_EDGES,
    HOST_QUALITIES,
    INTENSION_NORMS,
    LEVELS,
    PROFILES,
    SIGMAS,
    USER_GROUPS,
)
from semrank.schemas.errors import InputError
from semrank.transforms.ranking.registry import RANKERS

EXAMPLES = """\
examples:
  semrank completion bash | install -D /dev/stdin ~/.local/share/bash-completion/completions/semrank
  semrank completion zsh | install -D /dev/stdin ~/.zfunc/_semrank
"""


_VALUES: dict[str, tuple[str, ...]] = {
    "profile": tuple(PROFILES),
    "ranker": tuple(RANKERS),
    "level": LEVELS,
    "host_quality": HOST_QUALITIES,
    "sigma": SIGMAS,
    "intension_norm": INTENSION_NORMS,
    "c_edges": C_EDGES,
    "user_groups": USER_GROUPS,
    "shell": tuple(shtab.SUPPORTED_SHELLS),
}
"""Option -> its values, of those that are checked when a round is put together."""

_FOLDERS = {"DIR", "FOLDER", "ROUND", "SNAPSHOT"}
_FILES = {"FILE", "GLOB"}
"""How the values of options are called that name folders, and files."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's options."""
    parser.add_argument("shell", metavar="SHELL", help=f"one of {', '.join(shtab.SUPPORTED_SHELLS)}")


def run(arguments: argparse.Namespace, beam_arguments: list[str]) -> int:
    """Runs the command; gives the exit status."""
    if beam_arguments:
        raise InputError(f"{beam_arguments[0]}: unknown option")
    if arguments.shell not in shtab.SUPPORTED_SHELLS:
        raise InputError(f"completion: found '{arguments.shell}', expected one of {', '.join(shtab.SUPPORTED_SHELLS)}")
    parser = argparse.ArgumentParser(prog="semrank", allow_abbrev=False)
    parser.add_argument("--version", action="store_true", help="print the version and end")
    commands = parser.add_subparsers()
    for name, help_text in COMMANDS.items():
        own = command_parser(name, importlib.import_module(f"semrank.pipelines.{name}"))
        for action in own._actions:
            _complete_values(action)
        commands.add_parser(name, help=help_text, parents=[own], add_help=False, conflict_handler="resolve")
    print(shtab.complete(parser, arguments.shell))
    return 0


def _complete_values(action: argparse.Action) -> None:
    """Says what a shell may offer as values of an option."""
    if action.dest in _VALUES:
        action.choices = _VALUES[action.dest]
    elif action.metavar in _FOLDERS:
        action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    elif action.metavar in _FILES:
        action.complete = shtab.FILE  # type: ignore[attr-defined]


if __name__ == "__main__":
    from semrank.pipelines.cli import command_main, leave

    leave(command_main("completion"))
