"""The `semrank` command: finds the command's module, parses its options, turns errors into exit statuses.

Exit status: 0 done, 1 the run failed, 2 the arguments or inputs are unusable (one line on standard error).
"""

from __future__ import annotations

import argparse
import atexit
import difflib
import importlib
import io
import json
import logging
import os
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout, suppress
from types import ModuleType
from typing import Any, NoReturn

from semrank.pipelines import __version__
from semrank.schemas.errors import InputError

COMMANDS = {
    "ingest": "read crawls and click logs into a snapshot",
    "rank": "rank the URLs that a queue of pages links to: one round",
    "rounds": "rank several rounds, each from the pages that the last one selected",
    "evaluate": "replay crawls over a labelled snapshot and compare rankers",
    "finish": "finish a round whose job was handed over to a service",
    "report": "write a round or an evaluation as one HTML page",
    "export": "write a round's selected URLs as a file that a crawler takes",
    "ontology": "write an ontology that was read or learned",
    "explain": "say why a URL has its rank, term by term",
    "completion": "print a shell's completion of commands and options",
    "sample": "write a small web of its own making: WARC files, a click log, seeds, topics",
    "dataset": "turn a published data set into a snapshot",
}
"""Command -> what it does. A command's module is `pipelines.<command>`; it is imported only when it is asked for."""

MANIFESTS = ("ingest", "rank", "rounds", "evaluate", "dataset")
"""Commands whose output is a folder with a manifest, or several."""

INTERRUPTED = 130
"""Exit status of an interrupted command, as shells give it."""

_CLOSE = 0.75
"""How alike two names are, from 0 to 1, for one to be taken for a slip of the pen: one letter of four is another."""

BEAM_HELP = (
    "Options of Apache Beam are passed on (--runner, --job_endpoint, --project, ...).\n"
    "Without --runner the run is local."
)


class _Parser(argparse.ArgumentParser):
    """Prints errors as one line, without the usage block before it."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        self._given = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        if message.startswith("the following arguments are required"):
            # What is missing may be there under a name that is not quite its own.
            names = (word.split("=")[0] for word in self._given if word.startswith("--"))
            hints = [(name, _meant(name, self._option_string_actions)) for name in names]
            message += "".join(f"; found {name}{hint}" for name, hint in hints if hint)
        told = re.sub(r"^argument ([^:]+): invalid int value: (.*)", r"\1: found \2, expected a whole number", message)
        self.exit(2, f"{self.prog}: error: {told}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command that the arguments name; gives the exit status."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    parser = _Parser(
        prog="semrank",
        description="Batch recrawl ranking: a crawl snapshot and a click log in, a ranked frontier out.",
        epilog=_overview(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version and end")
    parser.add_argument("command", nargs="?", metavar="COMMAND", help="one of the commands below")
    head = next((index for index, text in enumerate(arguments) if not text.startswith("-")), len(arguments))
    parsed = parser.parse_args(arguments[: head + 1])
    if parsed.version:
        return _print_version()
    if parsed.command is None:
        parser.print_help()
        return 2
    if parsed.command not in COMMANDS:
        hint = _meant(parsed.command, COMMANDS)
        parser.error(f"unknown command '{parsed.command}'{hint}, expected one of {', '.join(COMMANDS)}")
    return command_main(parsed.command, arguments[head + 1 :])


def console() -> NoReturn:
    """The installed command."""
    leave(main())


def _overview() -> str:
    return "\n".join(
        [
            "commands:",
            *(f"  {name:<10} {text}" for name, text in COMMANDS.items()),
            "",
            "`semrank COMMAND --help` tells a command's options.",
            "",
            "example:",
            "  semrank sample --output web",
            "  semrank ingest --warc 'web/warc/*' --clicks 'web/clicks/*' --output snapshot",
            "  semrank rank --snapshot snapshot --seeds web/seeds.txt --output round",
        ]
    )


def command_main(command: str, arguments: Sequence[str] | None = None) -> int:
    """Runs one command with its own arguments (of the process if None); gives the exit status."""
    # Beam speaks of optional packages while it is imported; that is nothing for the user of a command.
    logging.getLogger().setLevel(logging.ERROR)
    from semrank.pipelines.folders import release_all
    from semrank.transforms.columnar.objects import use_options

    module = importlib.import_module(f"semrank.pipelines.{command}")
    parser = command_parser(command, module)
    parsed, beam_arguments = parser.parse_known_args(sys.argv[1:] if arguments is None else list(arguments))
    _set_up_logging(parsed)
    use_options(beam_arguments)
    try:
        if command in MANIFESTS and parsed.json:
            status = _run_for_machines(module, parsed, beam_arguments)
        else:
            status = module.run(parsed, beam_arguments)
    except InputError as error:
        text = one_line(error)
        unknown = re.match(r"(--[\w-]+)\S*: unknown option", text)
        hint = _meant(unknown[1], parser._option_string_actions) if unknown else ""
        _complain(f"semrank {command}: error: {text}{hint}")
        return 2
    except KeyboardInterrupt:
        _complain(f"semrank {command}: interrupted; nothing unfinished counts as finished")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output, `head` for one, has seen enough.
        sys.stderr.close()
        return 0
    except Exception as error:
        logging.getLogger("semrank").debug("the run failed", exc_info=True)
        _complain(f"semrank {command}: failed: {type(error).__name__}: {first_line(error)}")
        return 1
    finally:
        release_all()
    return int(status)


def _run_for_machines(module: ModuleType, parsed: argparse.Namespace, beam_arguments: list[str]) -> int:
    """Runs a command and prints, in place of its summary, the manifests that it left, a JSON object a line."""
    from semrank.pipelines.folders import manifests

    with redirect_stdout(io.StringIO()):
        status = int(module.run(parsed, beam_arguments))
    for manifest in manifests(parsed.output):
        sys.stdout.write(json.dumps(manifest, ensure_ascii=False, sort_keys=True) + "\n")
    return status


def leave(status: int) -> NoReturn:
    """Ends the process with an exit status, without taking the interpreter apart.

    Threads of Beam's local runner may still be inside Arrow then; to be ended there would abort the process, long after
    the result is complete. What was registered to be done at the end is done.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


def command_parser(command: str, module: ModuleType) -> argparse.ArgumentParser:
    """The parser of a command's own options."""
    description = (module.__doc__ or COMMANDS[command]).strip()
    parser = _Parser(
        prog=f"semrank {command}",
        description=description,
        epilog=f"{getattr(module, 'EXAMPLES', '')}\n{BEAM_HELP}".strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    if parser.prog.split()[-1] in MANIFESTS:
        parser.add_argument(
            "--json", action="store_true", help="print the manifest, a JSON object a line, not a summary"
        )
    verbosity = parser.add_mutually_exclusive_group()
    verbosity.add_argument("--quiet", action="store_true", help="say nothing but errors and the result")
    verbosity.add_argument("--verbose", action="store_true", help="say also when stages start, and more on errors")
    return parser


def _meant(found: str, expected: Iterable[str]) -> str:
    """A question after what was probably meant, or nothing."""
    close = difflib.get_close_matches(found, list(expected), 1, _CLOSE)
    return f" (did you mean {close[0]}?)" if close and close[0] != found else ""


def _complain(text: str) -> None:
    """Writes a line of its own, in place of what a terminal shows of the progress."""
    sys.stderr.write(f"\r\x1b[K{text}\n" if sys.stderr.isatty() else f"{text}\n")


def one_line(error: BaseException) -> str:
    """An error's message as one line."""
    return " ".join(str(error).split()) or type(error).__name__


def first_line(error: BaseException) -> str:
    """The first line of an error's message; what a runner adds below is for its developers."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no message")


def _print_version() -> int:
    sys.stdout.write(f"semrank {__version__}\n")
    return 0


class _TerminalHandler(logging.Handler):
    """Shows messages as lines; on a terminal a stage's start stands in one line that the next message replaces.

    They go to whatever standard error is at the moment, which a program that calls a command may have replaced since.
    """

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        transient = record.levelno < logging.INFO
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{text}" + ("" if transient else "\n"))
        elif not transient or self.level <= logging.DEBUG:
            sys.stderr.write(text + "\n")
        sys.stderr.flush()


def _set_up_logging(parsed: argparse.Namespace) -> None:
    # Beam's own messages are for its developers; its errors reach the user through the command's error line.
    logging.getLogger().setLevel(logging.WARNING if parsed.verbose else logging.CRITICAL)
    logger = logging.getLogger("semrank")
    logger.handlers = [_TerminalHandler()]
    logger.propagate = False
    on_terminal = sys.stderr.isatty()
    level = logging.DEBUG if parsed.verbose else logging.ERROR if parsed.quiet else logging.INFO
    logger.setLevel(logging.DEBUG if on_terminal and not parsed.quiet else level)
    logger.handlers[0].setLevel(logger.level if not on_terminal else logging.DEBUG)


if __name__ == "__main__":
    leave(main())
