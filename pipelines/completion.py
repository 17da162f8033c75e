"""Prints a shell's completion of commands and options.

semrank completion bash > ~/.local/share/bash-completion/completions/semrank
semrank completion zsh > ~/.zfunc/_semrank
"""

from __future__ import annotations

import argparse
import importlib

import shtab

from pipelines.cli import COMMANDS, command_parser
from schemas.errors import InputError

EXAMPLES = """\
example:
  semrank completion bash > ~/.local/share/bash-completion/completions/semrank
"""


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
        own = command_parser(name, importlib.import_module(f"pipelines.{name}"))
        commands.add_parser(name, help=help_text, parents=[own], add_help=False, conflict_handler="resolve")
    print(shtab.complete(parser, arguments.shell))
    return 0


if __name__ == "__main__":
    from pipelines.cli import command_main, leave

    leave(command_main("completion"))
