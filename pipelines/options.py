"""Options, declared once: parsers, checks, completion, the reference and the template are made from one declaration.

An option is a field of a frozen dataclass, made by `option` or `required`. Its type follows from the field's
annotation; `tuple[str, ...]` is an option that may be given more than once.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from semrank.schemas.errors import InputError

_KEY = "option"

_CLOSE = 0.75
"""How alike two names are, from 0 to 1, for one to be taken for a slip of the pen: one letter of four is another."""

GENERAL = "options"
"""Title of the group of options that belong to no other group; argparse has one of this title."""

BEAM_GROUP = "Beam"
"""Title of the group of options about how pipelines are run."""

Owner = TypeVar("Owner")
"""A dataclass whose fields are options."""

WHOLE_PATTERN = r"^[1-9][0-9]*$"
NUMBER_PATTERN = r"^[0-9]+(\.[0-9]+)?$"


@dataclass(frozen=True)
class Option:
    """What is known of an option besides its name, type and default.

    Attributes:
        text: its help.
        group: title of its group in a command's help.
        metavar: how its value is called in help.
        choices: the values that it can have, if it is one of a few.
        low: smallest number.
        high: largest number.
        above: whether the number is above `low` and never equal to it.
        pattern: regular expression that the whole text matches.
        example: what the pattern expects, for messages.
        rankers: rankers that use it, or None if every one does.
        plain: whether a switch has no `--no-` form.
        positional: whether it is given by its place and not by its name.
        exclusive: name of a set of options of which at most one may be given, or None.
        needed: whether one of that set has to be given.
        implied: value of an option that is given without one, or None if it needs a value.
    """

    text: str
    group: str
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    pattern: str | None = None
    example: str = ""
    rankers: frozenset[str] | None = None
    plain: bool = False
    positional: bool = False
    exclusive: str | None = None
    needed: bool = False
    implied: str | None = None

    def check(self, name: str, value: Any, *, whole: bool = False) -> None:
        """Raises an InputError that names the option if it can't have this value; None is always accepted.

        Args:
            name: how the message calls the option.
            value: its value.
            whole: whether its numbers are whole ones.
        """
        if value is None or isinstance(value, bool):
            return
        if isinstance(value, tuple):
            for member in value:
                self.check(name, member)
        elif isinstance(value, int | float):
            if not self._holds(value):
                raise InputError(f"{name}: found {value}, expected {self._range(whole=whole)}")
        elif self.pattern is not None and not re.fullmatch(self.pattern, value):
            raise InputError(f"{name}: found '{value}', expected {self.example}")
        elif self.choices and value not in self.choices:
            raise InputError(f"{name}: {expected_one(value, (*self.choices, *self.numbers()))}")

    def _holds(self, value: float) -> bool:
        return math.isfinite(value) and (value > self.low if self.above else value >= self.low) and value <= self.high

    def numbers(self) -> tuple[str, ...]:
        """The range of numbers that the option takes, in words, or nothing."""
        return () if math.isinf(self.low) else (self._range(whole=False),)

    def _range(self, *, whole: bool) -> str:
        kind = "a whole number" if whole else "a number"
        low, high = f"{self.low:.15g}", f"{self.high:.15g}"
        if self.above:
            return f"{kind} above {low}" + ("" if math.isinf(self.high) else f" and at most {high}")
        return f"{kind} of at least {low}" if math.isinf(self.high) else f"{kind} from {low} to {high}"


def option(default: Any, text: str, group: str = GENERAL, **further: Any) -> Any:
    """A dataclass field that is an option; see `Option` for what may be given."""
    return dataclasses.field(default=default, metadata={_KEY: Option(text, group, **further)})


def required(text: str, group: str = GENERAL, **further: Any) -> Any:
    """A dataclass field that is an option without a default; see `Option` for what may be given."""
    return dataclasses.field(metadata={_KEY: Option(text, group, **further)})


Declared = Mapping[str, tuple[Option, tuple[type, ...]]]

_known: dict[type[Any], Declared] = {}


def declared(owner: type[Any]) -> Declared:
    """Field -> its option and its types without None, of a dataclass; fields that are no options are left out.

    The type of an option that may be given more than once is `tuple`.
    """
    if owner not in _known:
        _known[owner] = _declared(owner)
    return _known[owner]


def _declared(owner: type[Any]) -> Declared:
    hints = get_type_hints(owner)
    found = {}
    for field in dataclasses.fields(owner):
        if _KEY in field.metadata:
            hint = hints[field.name]
            kinds = (tuple,) if get_origin(hint) is tuple else get_args(hint) or (hint,)
            found[field.name] = field.metadata[_KEY], tuple(kind for kind in kinds if kind is not NoneType)
    return found


def check_options(owner: Any) -> None:
    """Checks every option of a dataclass; raises an InputError that names the first that is outside its range."""
    for name, (what, kinds) in declared(type(owner)).items():
        called = what.metavar or name if what.positional else option_name(name)
        what.check(called, getattr(owner, name), whole=kinds == (int,))


def given_options(owner: type[Any], arguments: argparse.Namespace) -> dict[str, Any]:
    """Field -> value of the options of a dataclass that were given."""
    given = {name: getattr(arguments, name, None) for name in declared(owner)}
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in given.items() if value is not None
    }


def read_options(owner: type[Owner], arguments: argparse.Namespace) -> Owner:
    """The options of a dataclass as they were given, the others with their defaults.

    Raises:
        InputError: a value is outside its range; the message names the option.
    """
    options = owner(**given_options(owner, arguments))
    check_options(options)
    return options


def option_name(field: str) -> str:
    """The option of a field: `max_urls` is `--max-urls`."""
    return f"--{field.replace('_', '-')}"


def add_options(
    parser: argparse.ArgumentParser,
    owner: type[Any],
    shown: Mapping[str, Any] | None = None,
    *,
    names: Iterable[str] | None = None,
) -> None:
    """Declares the options of a dataclass to a parser; one that is not given is None.

    Args:
        parser: takes the options, each in its group.
        owner: the dataclass.
        shown: field -> the default that its help shows, if these are not the fields' own; None, empty and absent
            ones are not shown, nor those of plain switches.
        names: fields whose options are declared, or None for all.
    """
    own = {field.name: field.default for field in dataclasses.fields(owner)}
    defaults = {name: default for name, default in own.items() if default != dataclasses.MISSING}
    sets: dict[str, Any] = {}
    for name, (what, kinds) in declared(owner).items():
        if names is not None and name not in names:
            continue
        place: Any = parser if what.positional else help_group(parser, what.group)
        if what.exclusive is not None:
            if what.exclusive not in sets:
                sets[what.exclusive] = place.add_mutually_exclusive_group(required=what.needed)
            place = sets[what.exclusive]
        text = _help(what, (defaults if shown is None else shown).get(name))
        further = _parsing(what, kinds) | {"help": text}
        if not what.positional:
            further |= {"default": None, "dest": name, "required": name not in defaults}
        action = place.add_argument(name if what.positional else option_name(name), **further)
        action.pattern = _pattern(what, kinds)


def _help(what: Option, default: Any) -> str:
    text = what.text if not what.choices else f"{what.text}: {', '.join((*what.choices, *what.numbers()))}"
    if isinstance(default, bool):
        return text if what.plain else f"{text} (default {'on' if default else 'off'})"
    if default is None or default == ():
        return text
    return f"{text} (default {f'{default:g}' if isinstance(default, float) else default})"


def _parsing(what: Option, kinds: tuple[type, ...]) -> dict[str, Any]:
    """How argparse reads an option: what `add_argument` takes besides its name, help and default."""
    if kinds == (bool,):
        return {"action": "store_true" if what.plain else argparse.BooleanOptionalAction}
    further: dict[str, Any] = {"type": _reader(kinds), "metavar": what.metavar}
    if kinds == (tuple,):
        further["action"] = "append"
    if what.implied is not None:
        further |= {"nargs": "?", "const": what.implied}
    if what.choices and kinds == (str,):
        further["choices"] = what.choices
    return further


def help_group(parser: argparse.ArgumentParser, title: str) -> argparse._ArgumentGroup:
    """The parser's group of a title, made if it is not there yet."""
    found = next((group for group in parser._action_groups if group.title == title), None)
    return found or parser.add_argument_group(title)


def _pattern(what: Option, kinds: tuple[type, ...]) -> str | None:
    """A regular expression of the values, as forms of services take them."""
    if what.pattern is not None:
        return f"^{what.pattern}$"
    if kinds == (int,):
        return WHOLE_PATTERN
    numbers = [NUMBER_PATTERN.strip("^$")] if float in kinds else []
    accepted = [*map(re.escape, what.choices), *numbers]
    return f"^({'|'.join(accepted)})$" if accepted else None


def _reader(kinds: tuple[type, ...]) -> Callable[[str], Any]:
    """What turns an option's text into its value."""
    if kinds == (int,):
        return whole
    if kinds == (float,):
        return number
    return str if float not in kinds else _word_or_number


def number(text: str) -> float:
    """A number, as argparse takes a type."""
    try:
        return float(text)
    except ValueError as cause:
        raise argparse.ArgumentTypeError(f"found '{text}', expected a number") from cause


def whole(text: str) -> int:
    """A whole number, as argparse takes a type."""
    try:
        return int(text)
    except ValueError as cause:
        raise argparse.ArgumentTypeError(f"found '{text}', expected a whole number") from cause


def _word_or_number(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def expected_one(found: str, expected: Iterable[str]) -> str:
    """What is wrong with a value that is none of those expected, with the one that was probably meant."""
    names = list(expected)
    return f"found '{found}'{meant(found, names)}, expected one of {', '.join(names)}"


def meant(found: str, expected: Iterable[str]) -> str:
    """A question after the name that was probably meant, or nothing."""
    close = difflib.get_close_matches(found, list(expected), 1, _CLOSE)
    return f" (did you mean {close[0]}?)" if close and close[0] != found else ""
