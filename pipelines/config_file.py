"""Options from a TOML file: `semrank.toml` in the working folder, or the file that `--config` names.

A key is an option without its dashes. Keys at the top apply to every command with such an option, those of a table
`[COMMAND]` to this command only, and those of `[beam]` to Apache Beam. Options of the command line take precedence.
"""

from __future__ import annotations

import argparse
import importlib
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Any

from semrank.pipelines.options import add_options, meant, option, option_name
from semrank.schemas.errors import InputError

DEFAULT_FILE = "semrank.toml"
"""Read if it is in the working folder and `--config` names no other."""

MAX_BYTES = 1 << 20
"""Maximum bytes of the file."""

MAX_PARTS = 64
"""Maximum parts of a dotted key, and depth of arrays and tables; options need two. The time of tomllib grows with the
square of the parts of a key."""

MAX_DOTTED = 1_000
"""Maximum dotted keys of the file: those with most parts take tomllib a millisecond each."""

_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\[^\n])*+"?+|'[^'\n]*+'?+)"""
_NEXT = rf"[ \t]*+\.[ \t]*+{_PART}"
_TOKENS = re.compile(
    rf"""\"{{3}}(?:[^"\\]|\\.|"(?!""))*+"{{0,5}}+|'{{3}}(?:[^']|'(?!''))*+'{{0,5}}+|\#[^\n]*+
    |(?P<long>{_PART}(?:{_NEXT}){{{MAX_PARTS}}}+)|(?P<dotted>{_PART}(?:{_NEXT})++)|{_PART}
    |(?P<begin>[\[{{])|(?P<end>[\]}}])""",
    re.ASCII | re.DOTALL | re.VERBOSE,
)
"""Multi-line strings, comments, keys and other words with single-line strings, and brackets. Unclosed strings end with
the line or the file, where tomllib fails, so the time is linear."""

BEAM = "beam"
"""Table of Apache Beam's options."""


@dataclass(frozen=True)
class ConfigOptions:
    """The file."""

    config: str | None = option(
        None, f"TOML file of options (default {DEFAULT_FILE} in the working folder)", metavar="FILE"
    )


def file_arguments(
    parser: argparse.ArgumentParser, command: str, given: Sequence[str], commands: Iterable[str], *, beam: bool
) -> tuple[str, list[str]]:
    """The options of the file that the command line does not give, as arguments.

    Args:
        parser: the command's parser.
        command: its name.
        given: the command line.
        commands: names of all commands, which may have tables.
        beam: whether the command takes Beam's options.

    Returns:
        The file's path, and the arguments; none if there is no file.

    Raises:
        InputError: the file can't be read, or has an unknown key or an invalid value.
    """
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    add_options(finder, ConfigOptions)
    named = finder.parse_known_args(given)[0].config
    path = DEFAULT_FILE if named is None else named
    if named is None and not Path(path).is_file():
        return path, []
    shared, tables = _parts(path, commands)
    given_names = {argument.partition("=")[0] for argument in given if argument.startswith("--")}
    covered = _excluded(parser, given_names)
    arguments = []
    for name, value in _options_of(parser, command, shared, tables, path):
        if name not in covered:
            arguments += _as_arguments(parser._option_string_actions[name], name, value, path)
    if beam:
        passed = {f"--{key}": value for key, value in tables.get(BEAM, {}).items()}
        arguments += [f"{key}={value}" for key, value in passed.items() if key not in given_names]
    return path, arguments


def _parts(path: str, commands: Iterable[str]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Keys at the top, and tables by name."""
    try:
        with Path(path).open("rb") as stream:
            text = stream.read(MAX_BYTES + 1)
    except OSError as cause:
        raise InputError(f"--config {path}: can't be read: {cause.strerror}") from cause
    if len(text) > MAX_BYTES:
        raise InputError(f"--config {path}: is larger than {MAX_BYTES:,} bytes")
    _check_keys(text.decode("utf-8", "replace"), path)
    try:
        content = tomllib.loads(text.decode("utf-8"))
        str(content)  # fails for hexadecimal integers that have too many decimal digits
    except ValueError as cause:
        raise InputError(f"--config {path}: is not TOML: {cause}") from cause
    tables = {name: value for name, value in content.items() if isinstance(value, dict)}
    known = [*commands, BEAM]
    for name in tables:
        if name not in known:
            raise InputError(
                f"--config {path}: found the table [{name}]{meant(name, known)}, expected one of {', '.join(known)}"
            )
    return {name: value for name, value in content.items() if name not in tables}, tables


def _check_keys(text: str, path: str) -> None:
    """Refuses files that take tomllib too long.

    Raises:
        InputError: a key has too many parts, too many keys are dotted, or arrays and tables are nested too deeply.
    """
    depth = dotted = 0
    for token in _TOKENS.finditer(text):
        depth += (token.lastgroup == "begin") - (token.lastgroup == "end")
        dotted += token.lastgroup == "dotted"
        if token.lastgroup == "long":
            found = f"a name of more than {MAX_PARTS} parts"
        elif depth > MAX_PARTS:
            found = f"arrays and tables more than {MAX_PARTS} deep"
        elif dotted > MAX_DOTTED:
            found = f"more than {MAX_DOTTED:,} names of several parts"
        else:
            continue
        line = text.count("\n", 0, token.start()) + 1
        raise InputError(f"--config {path}: line {line}: found {found}, expected options of semrank")


def _excluded(parser: argparse.ArgumentParser, names: set[str]) -> set[str]:
    """Options on the command line, and those that they exclude."""
    actions = {parser._option_string_actions[name] for name in names if name in parser._option_string_actions}
    for group in parser._mutually_exclusive_groups:
        if actions & set(group._group_actions):
            actions |= set(group._group_actions)
    return {name for action in actions for name in action.option_strings}


def _options_of(
    parser: argparse.ArgumentParser,
    command: str,
    shared: Mapping[str, Any],
    tables: Mapping[str, Mapping[str, Any]],
    path: str,
) -> Iterable[tuple[str, Any]]:
    own = tables.get(command, {})
    for key, value in {**shared, **own}.items():
        name = option_name(key)
        if name in parser._option_string_actions:
            yield name, value
        elif key in own or name not in _all_options():
            hint = meant(name, _all_options() if key not in own else parser._option_string_actions)
            raise InputError(f"--config {path}: found '{key}', expected an option of semrank{hint}")


@cache
def _all_options() -> set[str]:
    from semrank.pipelines.cli import COMMANDS, command_parser

    return {
        name
        for command in COMMANDS
        for name in command_parser(
            command, importlib.import_module(f"semrank.pipelines.{command}")
        )._option_string_actions
    }


def _as_arguments(action: argparse.Action, name: str, value: Any, path: str) -> list[str]:
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise InputError(f"--config {path}: {name[2:]} is {value!r:.60}, expected true or false")
        negated = f"--no-{name[2:]}"
        return [name] if value else [negated] if negated in action.option_strings else []
    several = isinstance(action, argparse._AppendAction)
    if isinstance(value, list) and several:
        return [f"{name}={member}" for member in value]
    if isinstance(value, datetime | date):
        value = value.isoformat()
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        expected = "a string or a list of strings" if several else "a string or a number"
        raise InputError(f"--config {path}: {name[2:]} is {value!r:.60}, expected {expected}")
    return [f"{name}={value}"]
