"""Makes the reference page from the program itself: options, folders, tables, manifests.

`python -m docs.reference` writes `docs/reference.md`; a test fails where the page is not what this would write.
"""

from __future__ import annotations

import argparse
import importlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from semrank.pipelines.cli import COMMANDS, command_parser
from semrank.pipelines.config import PROFILES
from semrank.pipelines.rank import PENDING
from semrank.schemas.tables import (
    ALIASES,
    CLASSES,
    CLICKS,
    CONCEPTS,
    CURVE,
    FRONTIER,
    HARVEST,
    HISTORY,
    KEYWORDS,
    LINKS,
    PAGES,
    REJECTS,
    RELATIONS,
    SCALE,
    SUMMARY,
    SWEEP,
    TOPIC,
    TOPICS,
    TableSchema,
)
from semrank.transforms.ranking.registry import RANKERS

PAGE = Path(__file__).with_name("reference.md")

TABLES = (
    PAGES,
    LINKS,
    CLICKS,
    ALIASES,
    HISTORY,
    REJECTS,
    FRONTIER,
    HARVEST,
    KEYWORDS,
    RELATIONS,
    CONCEPTS,
    CLASSES,
    SCALE,
    TOPIC,
    TOPICS,
    CURVE,
    SUMMARY,
    SWEEP,
)

FOLDERS: dict[str, dict[str, TableSchema | str]] = {
    "snapshot": {table.name: table for table in (PAGES, LINKS, CLICKS, ALIASES, HISTORY, REJECTS)},
    "round": {
        "frontier": FRONTIER,
        "harvest": HARVEST,
        "keywords": KEYWORDS,
        "relations": RELATIONS,
        "base_concepts": CONCEPTS,
        "current_concepts": CONCEPTS,
        "classes": CLASSES,
        "scale": SCALE,
        "topic": TOPIC,
        "rejects": REJECTS,
        PENDING: "only of a round whose job was submitted to a service, until `semrank finish`",
    },
    "evaluation": {
        "curve": CURVE,
        "summary": SUMMARY,
        "sweep": SWEEP,
        "rejects": REJECTS,
        "plots": "drawings as PNG and SVG, with the extra `report`",
    },
}
"""Kind of a result -> what its folder holds besides the manifest."""

WHEN = {
    "current_concepts": "only with `--write-lattices`",
    "classes": "only with `--ranker ontology`",
    "topic": "empty with rankers that look at no words",
    "scale": "empty with other rankers than `focused`",
    "relations": "empty but with SemRank by a paper's profile",
    "base_concepts": "those of the base lattice; empty without SemRank",
}
"""What is to say of a part of a folder beside what it holds."""

_COMMON = {
    "kind": "`snapshot`, `round` or `evaluation`",
    "rows": "table -> number of its rows",
    "rejected": "reason -> number of rows of `rejects/`",
    "seconds": "how long the run took, by the clock",
    "versions": "of semrank, Python and the libraries that a result depends on",
}
_STAGES = {
    "stages.STAGE.rows_in": "rows that a stage took",
    "stages.STAGE.rows_out": "rows that it gave",
    "stages.STAGE.seconds": "time in its own code, summed over workers",
    "stages.STAGE.largest_record_bytes": "largest table that it sent through an exchange, in bytes",
    "stages.STAGE.largest_group_bytes": "largest group that it took from an exchange, in bytes",
    "stages.STAGE.shuffled_bytes": "all that it sent through an exchange, in bytes",
    "stages.STAGE.held_bytes": "what a worker holds for it as a whole, in bytes; 0 where that is nothing",
    "counters": "what stages count besides: name -> number",
}

MANIFESTS: dict[str, dict[str, str]] = {
    "snapshot": {
        **_COMMON,
        "sources.path": "an input file",
        "sources.format": "the format that it was read as",
        "sources.records": "records in it = used + rejected + ignored",
        "sources.used": "records that gave a row",
        "sources.rejected": "reason -> records that can't be used",
        "sources.ignored": "reason -> records that are not used on purpose",
        "sources.rows": "table -> rows that the file gave",
        "sources.counters": "what else its reader counts: caps that took effect, directives, traps",
        "sessions": "views of access logs as clicks of sessions; entries as of a source",
        "moved": "table -> rows whose address was moved along aliases",
        "url_parameters": "names of query parameters that were kept, or dropped, at the user's word",
        "borrowed": "table -> rows whose content is that of a capture of another URL",
        "outdated": "table -> rows left out as they stand in outdated captures",
        "repeated": "table -> rows left out as they repeat others",
        **_STAGES,
    },
    "round": {
        **_COMMON,
        "parameters": "every option of the round with the value that counted",
        "inputs.snapshot": "its path, its kind, and the SHA-256 of its manifest",
        "threshold": "the score above which URLs were selected, calibrated or given; null: none",
        "inputs.queue": "where the queue came from, and its number of URLs",
        "inputs.topic": "the seeds' strongest words, and their cohesion beside that of random pages",
        **_STAGES,
    },
    "evaluation": {
        **_COMMON,
        "parameters": "every option of the evaluation with the value that counted",
        "inputs.snapshot": "its path, its kind, and the SHA-256 of its manifest",
        "inputs.topics": "path of the topics",
        "topics.topic": "a topic that was crawled for",
        "topics.relevant": "number of its pages in the snapshot",
        "topics.seeds": "its sets of seeds",
        "plots": "names of the drawings",
    },
}
"""Kind of a result -> key of its manifest -> what stands there. `sources` and `topics` are lists of objects."""

_SHARED_OPTIONS = ("--help", "--json", "--config", "--quiet", "--verbose")
_GENERAL = ("positional arguments", "options")
"""Titles of argparse's own groups."""

_DEFAULT = re.compile(r" \(default:? ?(?P<value>[^()]*)\)$")


_INTRODUCTION = """\
# Reference

<!-- Made by `python -m docs.reference`; change the code or that module, not this page. -->

[Commands](#commands) · [rankers and profiles](#rankers-and-profiles) · [folders](#folders) · [tables](#tables) ·
[manifests](#manifests)

Wherever a path is taken it may be local, a glob where several files are read, or `gs://`; inputs of `ingest` may be
`http(s)://`. Every command takes these options:

| option | effect |
| --- | --- |
| `--help` | prints the command's options and examples |
| `--json` | prints JSON in place of the summary: where a folder is written its manifest, an object a line |
| `--config FILE` | reads options from a TOML file (default `semrank.toml` in the working folder, if it is there) |
| `--quiet` | prints only warnings, errors, and what was asked for: no progress, no summary |
| `--verbose` | every stage as it starts and ends, and where an error comes from |

Commands that run a pipeline (`ingest`, `rank`, `rounds`, `dataset`) pass on what they don't know to Apache Beam:
`--runner`, `--job_endpoint`, `--direct_num_workers`, `--project` ... An option that the chosen ranker does not use is
named on standard error.

In the file of `--config` a key is an option without its dashes. Keys at the top are for every command with such an
option, those of a table `[rank]` for this command alone, those of `[beam]` for Apache Beam. An option on the command
line replaces the one of the file.

```toml
max-per-host = 50
[rank]
ranker = "focused"
budget = 1000
[beam]
runner = "FlinkRunner"
```

| exit status | meaning |
| --- | --- |
| 0 | done |
| 1 | the run failed; nothing unfinished counts as finished |
| 2 | arguments or inputs are unusable: one line on standard error names the option or file |
| 130 | the run was interrupted; the result is unfinished |"""

_FOLDERS = """\
A part is a folder of Parquet files whose names sort in the order of their rows. `manifest.json` is written last: a
folder without it is an unfinished result, which readers refuse."""

_FILES = """\
`semrank sample` writes `warc/*.warc.gz`, `clicks/*.parquet`, `topics.parquet` and `seeds.txt`. A seeds file is one URL
a line; `#` starts a comment."""

_COLUMNS = """\
A column that is not required may be null; in a file that is read, it may also be absent. Readers take columns in any
order, convert types where nothing is lost, and ignore further columns. Times are in UTC."""

_KEYS = "`sources` and `topics` are lists of objects, `stages` and `inputs` objects; a point leads inside."


def reference() -> str:
    """The page."""
    sections = [
        _INTRODUCTION,
        "## Commands",
        *(_command(name) for name in COMMANDS),
        "## Rankers and profiles",
        _table(("`--ranker`", "score"), [(f"`{name}`", ranker.score) for name, ranker in RANKERS.items()]),
        _table(("`--profile`", "sets"), [(f"`{name}`", _settings(values)) for name, values in PROFILES.items()]),
        "Formulas: [method](method.md).",
        "## Folders",
        _FOLDERS,
        *(_folder(kind, parts) for kind, parts in FOLDERS.items()),
        _FILES,
        "## Tables",
        _COLUMNS,
        *(_columns(table) for table in TABLES),
        "## Manifests",
        _KEYS,
        *(_manifest(kind, keys) for kind, keys in MANIFESTS.items()),
    ]
    return "\n\n".join(sections) + "\n"


def _article(noun: str) -> str:
    return "an" if noun[0] in "aeiou" else "a"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def options_of(command: str) -> list[argparse.Action]:
    """The options and arguments of a command that not every command has."""
    parser = command_parser(command, importlib.import_module(f"semrank.pipelines.{command}"))
    return [action for action in parser._actions if not set(action.option_strings) & set(_SHARED_OPTIONS)]


def _command(name: str) -> str:
    module = importlib.import_module(f"semrank.pipelines.{name}")
    instead = {
        action.dest: " or ".join(f"`{other.option_strings[0]}`" for other in group._group_actions if other != action)
        for group in command_parser(name, module)._mutually_exclusive_groups
        if group.required
        for action in group._group_actions
    }
    own = options_of(name)
    note = ""
    if name == "rounds":
        known = {tuple(action.option_strings): action.help for action in options_of("rank")}
        own = [action for action in own if known.get(tuple(action.option_strings)) != action.help]
        note = "\n\nand, for every round, the options of `semrank rank` but `--previous`."
    summary = " ".join((module.__doc__ or "").strip().split("\n\n")[0].split())
    groups = [
        (group.title, [action for action in own if action.dest in {member.dest for member in group._group_actions}])
        for group in command_parser(name, module)._action_groups
    ]
    tables = [
        _table(
            ("option" if title in _GENERAL else f"option: {title}", "meaning", "default"),
            [_option(action, instead.get(action.dest)) for action in actions],
        )
        for title, actions in groups
        if actions
    ]
    return "\n\n".join([f"### semrank {name}", summary, *tables]) + note


def _option(action: argparse.Action, instead: str | None) -> tuple[str, str, str]:
    """Forms, meaning and default of an option; `instead` are the options that can stand for a required one."""
    text = action.help or ""
    found = _DEFAULT.search(text)
    if found is not None:
        text = text[: found.start()]
    if isinstance(action, argparse._AppendAction):
        text += "; may be given again"
    default = "none" if found is None else found["value"]
    if action.required or not action.option_strings:
        default = "required"
    elif instead is not None:
        default = f"required, or {instead}"
    elif isinstance(action, argparse._StoreTrueAction):
        default = "off"
    elif isinstance(action, argparse.BooleanOptionalAction) and action.default:
        default = "on"
    return " or ".join(f"`{form}`" for form in _forms(action)), text, default


def _forms(action: argparse.Action) -> list[str]:
    if not action.option_strings:
        return [str(action.metavar or action.dest)]
    if action.nargs == 0:
        return list(action.option_strings)
    choices = "" if action.choices is None else "{" + ",".join(map(str, action.choices)) + "}"
    return [f"{name} {action.metavar or choices}" for name in action.option_strings]


def _settings(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {'from the extension' if value is None else value}" for name, value in values.items())


def _folder(kind: str, parts: Mapping[str, TableSchema | str]) -> str:
    rows = []
    for name, part in parts.items():
        text = part if isinstance(part, str) else f"[{part.name}](#{part.name}): {part.row}"
        further = f"; {WHEN[name]}" if name in WHEN else ""
        rows.append((f"`{name}`" if "." in name else f"`{name}/`", text + further))
    return f"### Folder of {_article(kind)} {kind}\n\n" + _table(("part", "content"), rows)


def _manifest(kind: str, keys: Mapping[str, str]) -> str:
    rows = [(f"`{key}`", text) for key, text in keys.items()]
    return f"### Manifest of {_article(kind)} {kind}\n\n" + _table(("key", "value"), rows)


def _columns(table: TableSchema) -> str:
    rows = [
        (f"`{field.name}`", _type(field.type), "no" if field.nullable else "yes", meaning)
        for field, meaning in zip(table.schema, table.meanings, strict=True)
    ]
    head = ("column", "type", "required", "meaning")
    return f"### {table.name}\n\nA row is {table.row}.\n\n" + _table(head, rows)


def _type(dtype: pa.DataType) -> str:
    if pa.types.is_list(dtype):
        return f"list of {_type(dtype.value_type)}"
    if pa.types.is_struct(dtype):
        return "(" + ", ".join(f"{field.name} {_type(field.type)}" for field in dtype) + ")"
    if pa.types.is_timestamp(dtype):
        return "timestamp, microseconds"
    return {"bool": "boolean"}.get(str(dtype), str(dtype))


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
