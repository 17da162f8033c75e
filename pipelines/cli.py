"""The `semrank` command: imports a command's module, parses its options, turns errors into exit statuses.

Exit status: 0 done, 1 the run failed, 2 the arguments or inputs are unusable (one line on standard error).
"""

from __future__ import annotations

import argparse
import atexit
import errno
import gc
import importlib
import io
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, NoReturn

from semrank.pipelines import __version__
from semrank.pipelines.config_file import ConfigOptions, file_arguments
from semrank.pipelines.interrupt import ending_soon
from semrank.pipelines.local.progress import PROGRESS
from semrank.pipelines.options import BEAM_GROUP, add_options, declared, expected_one, help_group, meant, option
from semrank.pipelines.terminal import clear_line, visible, visible_output
from semrank.schemas.errors import InputError

COMMANDS = {
    "ingest": "read crawls and click logs into a snapshot",
    "rank": "rank the URLs that a queue of pages links to: one round",
    "rounds": "rank several rounds, each from the pages that the last one selected",
    "evaluate": "replay crawls over a labelled snapshot and compare rankers",
    "finish": "finish a round whose job was submitted to a service",
    "ls": "list the rounds of a crawl",
    "report": "write a round, a crawl or an evaluation as one HTML page",
    "export": "write the selected URLs of a round as a file for a crawler",
    "ontology": "write an ontology, with the weights that a round learned",
    "explain": "explain the rank of a URL, term by term",
    "completion": "print a completion script for a shell",
    "sample": "write a small artificial web: WARC files, a click log, seeds, topics",
    "dataset": "convert a published data set to a snapshot",
}
"""Command -> what it does. A command's module is `pipelines.<command>`; it is imported on demand."""

MANIFESTS = {
    **dict.fromkeys(("ingest", "rank", "rounds", "evaluate", "dataset"), "output"),
    "finish": "round",
}
"""Commands that write folders with a manifest, and the option that names the folder."""

_DISK_FAILURES = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""Errors of the operating system for a full or broken disk."""

_UNUSED = ("bson", "apache_beam.io.gcp.bigquery")
"""Optional imports of Beam, the clients of MongoDB and BigQuery, which take a third of its import time."""

INTERRUPTED = 130
"""Exit status of an interrupted command, as in shells."""

_INTERRUPTED = "interrupted; the result is unfinished"

BEAM = ("ingest", "rank", "rounds", "dataset")
"""Commands that run a pipeline and pass Beam's options on."""

BEAM_HELP = (
    "Other options are passed to Apache Beam (--runner, --job_endpoint, --project, ...). "
    "Without --runner, the run is local."
)


@dataclass(frozen=True)
class GeneralOptions(ConfigOptions):
    """Options of every command; `metrics` of those that write a folder with a manifest."""

    json: bool = option(False, "print JSON instead of the summary: the manifest, if the command writes one", plain=True)
    metrics: str | None = option(
        None, "write figures of the run to a file in the text format of Prometheus", metavar="FILE"
    )
    quiet: bool = option(
        False,
        "print only warnings, errors, and what was asked for: no progress, no summary",
        plain=True,
        exclusive="verbosity",
    )
    verbose: bool = option(
        False, "print when each stage starts and ends, and more about errors", plain=True, exclusive="verbosity"
    )


class _Parser(argparse.ArgumentParser):
    """Prints errors as one line, without a usage block, and names the file that an option came from."""

    file = ""
    from_file: Set[str] = frozenset()

    def origin(self, message: str) -> str:
        """The origin of the option at the start of a message, if it is not the command line."""
        return f" (from {self.file})" if re.split(r"[:\s]", message, maxsplit=1)[0] in self.from_file else ""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        self._given = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        if message.startswith("the following arguments are required"):
            # A required option may have been misspelled.
            given = [word.split("=")[0] for word in self._given if word.startswith("--")]
            hints = [(name, meant(name, self._option_string_actions)) for name in given]
            sets = (group for group in self._mutually_exclusive_groups if group.required)
            choices = ([action.option_strings[0] for action in group._group_actions] for group in sets)
            message += "".join(f", one of {' '.join(names)}" for names in choices if not set(names) & set(given))
            message += "".join(f"; found {name}{hint}" for name, hint in hints if hint)
        plain = plain_message(message)
        self.exit(2, visible(f"{self.prog}: error: {plain}{self.origin(plain)}\n"))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, expected_one(str(value), map(str, action.choices)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command that the arguments name (of the process if None); returns the exit status."""
    own_process = arguments is None
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    parser = _Parser(
        prog="semrank",
        description="Ranks the URLs that a crawler should fetch next, from a crawl snapshot and a click log.",
        epilog=_overview(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    parser.add_argument("command", nargs="?", metavar="COMMAND", help="one of the commands below")
    head = next((index for index, text in enumerate(arguments) if not text.startswith("-")), len(arguments))
    parsed, unknown = parser.parse_known_args(arguments[: head + 1])
    if unknown:
        parser.error(f"{unknown[0]}: unknown option, expected a command first: its options follow its name")
    if parsed.version:
        return _print_version()
    if parsed.command is None:
        parser.print_help()
        return 2
    if parsed.command not in COMMANDS:
        hint = meant(parsed.command, COMMANDS)
        parser.error(f"unknown command '{parsed.command}'{hint}, expected one of {', '.join(COMMANDS)}")
    return command_main(parsed.command, arguments[head + 1 :], own_process=own_process)


def console() -> NoReturn:
    """The installed command."""
    leave(main())


def _overview() -> str:
    return "\n".join(
        [
            "commands:",
            *(f"  {name:<10}  {text}" for name, text in COMMANDS.items()),
            "",
            "`semrank COMMAND --help` shows the options of a command.",
            "",
            "example:",
            "  semrank sample --output web",
            "  semrank ingest --warc 'web/warc/*' --clicks 'web/clicks/*' --output snapshot",
            "  semrank rank --snapshot snapshot --seeds web/seeds.txt --output round",
        ]
    )


def command_main(command: str, arguments: Sequence[str] | None = None, *, own_process: bool = False) -> int:
    """Runs one command with its own arguments (of the process if None); returns the exit status.

    A process that does nothing else never searches for garbage in what it has imported.
    """
    interrupted = partial(_complain, f"semrank {command}: {_INTERRUPTED}")
    with visible_output():
        try:
            # A library may swallow an interrupt while it is imported.
            with ending_soon(interrupted, INTERRUPTED):
                module = _imported(command)
            if own_process or arguments is None:
                gc.freeze()
            return _run_command(command, module, arguments)
        except KeyboardInterrupt:
            interrupted()
            return INTERRUPTED


def _imported(command: str) -> ModuleType:
    # Beam logs messages about optional packages while it is imported, which are irrelevant to users.
    logging.getLogger().setLevel(logging.ERROR)
    with _imports_kept_small():
        return importlib.import_module(f"semrank.pipelines.{command}")


@contextmanager
def _imports_kept_small() -> Iterator[None]:
    """Skips modules that no command uses, and garbage collection, while modules are imported."""
    held_back = [name for name in _UNUSED if name not in sys.modules]
    sys.modules.update(dict.fromkeys(held_back))  # type: ignore[arg-type]
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
        for name in held_back:
            del sys.modules[name]


def _run_command(command: str, module: ModuleType, arguments: Sequence[str] | None) -> int:
    from semrank.pipelines.folders import release_all
    from semrank.transforms.columnar.objects import use_options

    parser = command_parser(command, module)
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        parsed, beam_arguments = _parsed(parser, command, given)
        _set_up_logging(parsed)
        if command in MANIFESTS and parsed.metrics is not None:
            _check_metrics(parsed.metrics)
        use_options(beam_arguments)
        run = partial(module.run, parsed, *([beam_arguments] if command in BEAM else []))
        with ending_soon(partial(_interrupted, command), INTERRUPTED) if command in MANIFESTS else nullcontext():
            if command in MANIFESTS and parsed.json:
                status = _run_for_machines(run, getattr(parsed, MANIFESTS[command]))
            elif parsed.quiet and not parsed.json and _prints_a_summary(command, parsed, beam_arguments):
                with redirect_stdout(io.StringIO()):
                    status = run()
            else:
                status = run()
        if command in MANIFESTS and parsed.metrics is not None and status == 0:
            _write_metrics(parsed.metrics, getattr(parsed, MANIFESTS[command]))
    except InputError as error:
        text = one_line(error)
        _complain(f"semrank {command}: error: {text}{meant_option(text, parser)}{parser.origin(text)}")
        return 2
    except KeyboardInterrupt:
        _interrupted(command)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe (e.g. `head`).
        sys.stderr.close()
        return 0
    except OSError as error:
        logging.getLogger("semrank").debug("the run failed", exc_info=True)
        # The system's error for a full disk does not name a file.
        where = error.filename or (not _output_is_full() and getattr(parsed, "output", None)) or "standard output"
        _complain(f"semrank {command}: error: {where}: {error.strerror or one_line(error)}")
        # An unusable path is an invalid argument, unlike a full or broken disk.
        return 2 if error.filename is not None and error.errno not in _DISK_FAILURES else 1
    except Exception as error:
        logging.getLogger("semrank").debug("the run failed", exc_info=True)
        _complain(f"semrank {command}: failed: {type(error).__name__}: {first_line(error)}")
        return 1
    finally:
        release_all()
    return int(status)


def _interrupted(command: str) -> None:
    from semrank.pipelines.locks import release_all

    _complain(f"semrank {command}: {_INTERRUPTED}")
    release_all()


def _parsed(parser: _Parser, command: str, given: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Options of the command line and the configuration file, and options of Beam."""
    if not {"-h", "--help"} & set(given):
        path, further = file_arguments(parser, command, given, COMMANDS, beam=command in BEAM)
        if further:
            parser.file, parser.from_file = path, {argument.partition("=")[0] for argument in further}
            given = [*further, *given]
    parsed, others = parser.parse_known_args(given)
    if others and command not in BEAM:
        word = "option" if others[0].startswith("-") else "argument"
        raise InputError(f"{others[0]}: unknown {word}")
    return parsed, others


def _prints_a_summary(command: str, parsed: argparse.Namespace, beam_arguments: Sequence[str]) -> bool:
    """Whether a command prints a summary of what it wrote, not a plan or a note about a submitted job."""
    writes = command in MANIFESTS or getattr(parsed, "output", None) is not None
    submits = any(argument.startswith("--template_location") for argument in beam_arguments)
    return writes and not submits and not getattr(parsed, "plan", None)


def _run_for_machines(run: Callable[[], int], folder: str) -> int:
    """Runs a command and prints its manifests instead of its summary, one JSON object a line."""
    from semrank.pipelines.folders import manifests

    with redirect_stdout(io.StringIO()):
        status = run()
    for manifest in manifests(folder):
        sys.stdout.write(json.dumps(manifest, ensure_ascii=False, sort_keys=True) + "\n")
    return status


def _check_metrics(path: str) -> None:
    from semrank.pipelines.prometheus import check_metrics

    check_metrics(path)


def _write_metrics(path: str, folder: str) -> None:
    from semrank.pipelines.folders import manifests
    from semrank.pipelines.prometheus import write_metrics

    write_metrics(path, sorted(manifests(folder), key=lambda manifest: str(manifest["folder"])))


def leave(status: int) -> NoReturn:
    """Ends the process with an exit status, without finalising the interpreter.

    Threads of Beam's local runner may still be inside Arrow, where finalisation would abort the process after the
    result is complete. Exit handlers are run.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


def command_parser(command: str, module: ModuleType) -> _Parser:
    """The parser of a command's own options."""
    description = (module.__doc__ or COMMANDS[command]).strip()
    parser = _Parser(
        prog=f"semrank {command}",
        description=description,
        epilog=getattr(module, "EXAMPLES", "").strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for owner in module.OPTIONS:
        if isinstance(owner, type):
            add_options(parser, owner)
        else:
            owner(parser)
    if command in BEAM:
        help_group(parser, BEAM_GROUP).description = BEAM_HELP
    names = [name for name in declared(GeneralOptions) if name != "metrics" or command in MANIFESTS]
    add_options(parser, GeneralOptions, names=names)
    return parser


def plain_message(message: str) -> str:
    """A message of argparse in the wording of the other messages."""
    plain = re.sub(r"^argument ", "", message)
    plain = re.sub(r": not allowed with argument (.*)", r": found together with \1, expected one of them", plain)
    needed = re.fullmatch(r"one of the arguments (.*) is required", plain)
    plain = f"expected one of {', '.join(needed[1].split())}" if needed else plain
    return re.sub(r": invalid int value: (.*)", r": found \1, expected a whole number", plain)


def meant_option(message: str, parser: argparse.ArgumentParser) -> str:
    """A hint at the probably meant option if a message is about an unknown one, or an empty string."""
    unknown = re.match(r"(--[\w-]+)\S*: unknown option", message)
    return meant(unknown[1], parser._option_string_actions) if unknown else ""


def _output_is_full() -> bool:
    """Whether standard output can't be written; failed output is still buffered."""
    try:
        sys.stdout.flush()
    except OSError:
        return True
    return False


def _complain(text: str) -> None:
    """Writes a line to standard error in place of the progress line."""
    clear_line()
    sys.stderr.write(f"{text}\n")


def one_line(error: BaseException) -> str:
    """An error's message as one line."""
    return " ".join(str(error).split()) or type(error).__name__


def first_line(error: BaseException) -> str:
    """The first line of an error's message; runners add details for developers below."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no message")


def _print_version() -> int:
    sys.stdout.write(f"semrank {__version__}\n")
    return 0


class _TerminalHandler(logging.Handler):
    """Shows messages as lines; on a terminal the current activity is one line that the next message replaces.

    Messages go to the current standard error, which a calling program may have replaced. Once the progress of a run is
    reported, messages of its single steps are shown only with --verbose.
    """

    def __init__(self, *, verbose: bool) -> None:
        super().__init__()
        self._verbose, self._progress = verbose, False

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        transient = record.levelno < logging.INFO
        self._progress = self._progress or record.name == PROGRESS
        if transient and self._progress and not self._verbose and record.name != PROGRESS:
            return
        if sys.stderr.isatty():
            clear_line()
            sys.stderr.write(text + ("" if transient else "\n"))
        elif not transient or self.level <= logging.DEBUG:
            sys.stderr.write(text + "\n")
        sys.stderr.flush()


def _set_up_logging(parsed: argparse.Namespace) -> None:
    # Beam's messages are for its developers; its errors are shown in the command's error line.
    logging.getLogger().setLevel(logging.WARNING if parsed.verbose else logging.CRITICAL)
    logger = logging.getLogger("semrank")
    logger.handlers = [_TerminalHandler(verbose=parsed.verbose)]
    logger.propagate = False
    on_terminal = sys.stderr.isatty()
    level = logging.DEBUG if parsed.verbose else logging.WARNING if parsed.quiet else logging.INFO
    logger.setLevel(logging.DEBUG if on_terminal and not parsed.quiet else level)
    logger.handlers[0].setLevel(logger.level if not on_terminal else logging.DEBUG)


if __name__ == "__main__":
    leave(main())
