"""Says why a URL has its rank in a finished round, term by term."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.folders import table_files
from schemas.errors import InputError
from transforms.columnar import files
from transforms.sources.urls import canonical_url

EXAMPLES = """\
example:
  semrank explain --round round-0000 https://en.wikipedia.org/wiki/Penguin
"""

_PARAMETERS = (
    *("profile", "ranker", "level", "weight", "threshold", "intension_norm"),
    *("max_urls", "max_per_host", "max_per_domain", "budget", "mix"),
)

SHOWN_URLS = 8
"""How many URLs of an extent the text shows."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's options."""
    parser.add_argument("--round", required=True, metavar="ROUND", help="a finished round")
    parser.add_argument("url", metavar="URL", help="a URL of its frontier")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace, beam_arguments: list[str]) -> int:
    """Runs the command; gives the exit status."""
    if beam_arguments:
        raise InputError(f"{beam_arguments[0]}: unknown option")
    facts = explanation(arguments.round, arguments.url)
    if arguments.json:
        json.dump(facts, sys.stdout, indent=2, default=str, ensure_ascii=False)
        print()
    else:
        print(_text(facts))
    return 0


def explanation(folder: str, url: str) -> dict[str, Any]:
    """What made a URL's score.

    Raises:
        InputError: the round is unfinished, or the URL is not in its frontier.
    """
    manifest = files.read_manifest(folder, "round")
    canonical = canonical_url(url)
    if canonical.url is None:
        raise InputError(f"{url}: is no URL ({canonical.reason}), expected a URL of the frontier")
    row = _find(folder, "frontier", "url", canonical.url)
    if row is None:
        raise InputError(f"{canonical.url}: is not in the frontier of {folder} ({manifest['rows']['frontier']:,} URLs)")
    parameters = manifest["parameters"]
    base = None if row["base_concept"] is None else _find(folder, "base_concepts", "concept", row["base_concept"])
    words = sorted({match[side] for match in row["matches"] for side in ("base", "current")})
    return {
        "frontier": row,
        "ranked": manifest["rows"]["frontier"],
        "parameters": {name: value for name, value in parameters.items() if name in _PARAMETERS},
        "base_concept": base,
        "keywords": _rows(folder, "keywords", "keyword", words),
        "relations": [
            relation
            for relation in _rows(folder, "relations", "source", words)
            if relation["target"] in words and relation["source"] != relation["target"]
        ],
    }


def _find(folder: str, table: str, column: str, value: Any) -> dict[str, Any] | None:
    for path in table_files(folder, table):
        with files.open_binary(path) as stream:
            found = pq.read_table(stream, filters=[(column, "=", value)])
        if found.num_rows:
            return dict(found.slice(0, 1).to_pylist()[0])
    return None


def _rows(folder: str, table: str, column: str, values: list[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for path in table_files(folder, table):
        with files.open_binary(path) as stream:
            found = pq.read_table(stream)
        rows += found.filter(pc.is_in(found[column], value_set=pa.array(values, pa.string()))).to_pylist()
    return rows


def _text(facts: dict[str, Any]) -> str:
    row, parameters = facts["frontier"], facts["parameters"]
    lines = [
        row["url"],
        f"rank {row['rank']:,} of {facts['ranked']:,}, score {row['score']:.6f}, "
        + ("selected" if row["selected"] else f"not selected: {_held_back(row, parameters)}"),
    ]
    if parameters["ranker"] == "semrank":
        lines.append(f"profile {parameters['profile']}: score = " + _similarity_formula(parameters["weight"]))
    else:
        level = "" if parameters["level"] == "page" else f" of {parameters['level']}s"
        lines.append(f"profile {parameters['profile']}, ranker {parameters['ranker']}{level}:")
        lines += [_reason(reason) for reason in row["reasons"]] or ["  nothing is known that tells for or against it"]
    if parameters["ranker"] == "semrank" or facts["base_concept"] is not None:
        lines += _semrank_lines(facts)
    lines += [
        f"links between this URL and the queue: {row['base_links']:,}, click edges: {row['base_clicks']:,}",
        f"fetched {row['last_fetched_at'] or 'at an unknown time'}" if row["fetched"] else "not fetched yet",
    ]
    if row["change_probability"] is not None:
        lines.append(f"changed since then with probability {row['change_probability']:.4f}, which multiplies the score")
    return "\n".join(lines)


def _held_back(row: dict[str, Any], parameters: dict[str, Any]) -> str:
    """What kept a URL out of the selection."""
    limits = {
        name.replace("_", "-"): parameters[name] for name in ("max_urls", "max_per_host", "max_per_domain", "budget")
    }
    reason = row["held_back"]
    if reason == "threshold":
        return f"the score is not above gamma {parameters['threshold']}"
    if reason == "gone":
        return f"the page is gone, status {row['status']}"
    return f"--{reason} {limits[reason]} went to better URLs"


def _similarity_formula(weight: float | None) -> str:
    if weight is None:
        return "(extension^2 + intension^2) / (extension + intension)"
    return f"{weight} x extension + {1 - weight:g} x intension"


def _reason(reason: dict[str, Any]) -> str:
    weight = "" if reason["weight"] is None else f" x weight {reason['weight']:g}"
    detail = "" if reason["detail"] is None else f"  ({reason['detail']})"
    return f"  {reason['term']}: {reason['value']:.6g}{weight}{detail}"


def _semrank_lines(facts: dict[str, Any]) -> list[str]:
    row, base, parameters = facts["frontier"], facts["base_concept"], facts["parameters"]
    lines = [] if parameters["ranker"] == "semrank" else ["SemRank's terms, which count nothing in this score:"]
    lines += [
        f"  extension {row['extension']:.6f}: links and clicks between the two concepts' URLs",
        f"  intension {row['intension']:.6f}: similarity of the two concepts' keywords",
    ]
    if base is None:
        lines.append("no concept of the queue is similar to one of this URL's")
    else:
        extent = base["extent"]
        lines.append(f"best concept of the queue: {', '.join(base['intent']) or '(no keyword in common)'}")
        lines += [f"    {url}" for url in extent[:SHOWN_URLS]]
        if len(extent) > SHOWN_URLS:
            lines.append(f"    and {len(extent) - SHOWN_URLS:,} more")
    known = {keyword["keyword"]: keyword for keyword in facts["keywords"]}
    if row["matches"]:
        lines.append("matched keywords (queue ~ this URL):")
    for match in row["matches"]:
        lines.append(f"    {match['base']} ~ {match['current']}: ics {match['ics']:.4f}" + _why(match, known, facts))
    return lines


def _why(match: dict[str, Any], known: dict[str, Any], facts: dict[str, Any]) -> str:
    pair = {match["base"], match["current"]}
    if len(pair) == 1:
        return ", the same word"
    for relation in facts["relations"]:
        if {relation["source"], relation["target"]} == pair:
            name = "ISA" if relation["relation"] == "ISA" else f"{relation['source']} has part {relation['target']}"
            return f", {name}, support {relation['support']}"
    layers = ", ".join(f"{word} in layer {known[word]['layer']}" for word in sorted(pair) if word in known)
    return f", {layers}"


if __name__ == "__main__":
    from pipelines.cli import command_main, leave

    leave(command_main("explain"))
