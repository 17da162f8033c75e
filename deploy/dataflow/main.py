"""Entry of the flex template: starts `semrank rank` with the template's parameters.

A template passes every parameter as `--name=value`. Switches of the command take no value, so `true` becomes the bare
switch and `false` its negation where it has one; an empty value is a parameter that was not given.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from semrank.pipelines import rank
from semrank.pipelines.cli import command_main, command_parser, leave


def command_arguments(parameters: Sequence[str]) -> list[str]:
    """The arguments of `semrank rank` for parameters as a template passes them."""
    switches = {
        option: action
        for action in command_parser("rank", rank)._actions
        for option in action.option_strings
        if action.nargs == 0
    }
    arguments = []
    for parameter in parameters:
        name, found, value = parameter.partition("=")
        if not found:
            arguments.append(parameter)
        elif name not in switches:
            arguments += [parameter] if value else []
        elif value == "true":
            arguments.append(name)
        elif isinstance(switches[name], argparse.BooleanOptionalAction) and value == "false":
            arguments.append("--no-" + name.removeprefix("--"))
    return arguments


if __name__ == "__main__":
    leave(command_main("rank", command_arguments(sys.argv[1:])))
