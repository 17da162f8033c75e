"""Writes a round or an evaluation as one HTML page that needs nothing else: no server, no request to anywhere.

A round's page has the top of the frontier with filters, a sample of the rest, scores and gamma, hosts, what changed
since the round before, the keyword hierarchy and the queue's concepts as drawings, rejects, and stages. An evaluation's
page has its means and curves. The frontier is read file by file, so that its size does not matter.
"""

from __future__ import annotations

import argparse
import html
import json
import string
from collections import defaultdict
from collections.abc import Iterator
from importlib import resources
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines import folders
from schemas.errors import InputError
from transforms.columnar import files
from transforms.frontier import overview
from transforms.lattice.hasse import covers, levels

EXAMPLES = """\
examples:
  semrank report --round round-0000 --output round.html
  semrank report --evaluation evaluation --output evaluation.html
"""

SHOWN_KEYWORDS = 60
"""Keywords of the drawing: those with the most clicks."""

SHOWN_CONCEPTS = 48
"""Concepts of the drawing: those with the most URLs."""

SHOWN_EXTENT = 8
"""URLs of a concept that the drawing names."""

CHARTS = (
    ("pages", "harvest", "pages crawled", "harvest rate"),
    ("recall", "precision", "recall", "precision"),
    ("pages", "f_measure", "pages crawled", "F-measure"),
    ("seconds", "recall", "seconds spent ranking", "recall"),
)
"""Curves of an evaluation (P13 Figs. 5 to 9): columns and names of the two axes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's options."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--round", metavar="ROUND", help="a finished round")
    what.add_argument("--evaluation", metavar="DIR", help="a finished evaluation")
    parser.add_argument("--output", required=True, metavar="FILE", help="the page to write, .html")
    parser.add_argument(
        "--previous", metavar="ROUND", help="round to compare with; the one that the round went on from, if it did"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the page if it is there")


def run(arguments: argparse.Namespace, beam_arguments: list[str]) -> int:
    """Runs the command; gives the exit status."""
    if beam_arguments:
        raise InputError(f"{beam_arguments[0]}: unknown option")
    if not arguments.output.endswith((".html", ".htm")):
        raise InputError(f"--output: found {arguments.output}, expected a name that ends in .html")
    if files.exists(arguments.output) and not arguments.overwrite:
        raise InputError(f"--output {arguments.output}: is there already, expected a new file or --overwrite")
    if arguments.round is not None:
        title, subtitle, facts = _round_facts(arguments.round, arguments.previous)
    elif arguments.previous is not None:
        raise InputError(f"--previous {arguments.previous}: found --evaluation, expected --round")
    else:
        title, subtitle, facts = _evaluation_facts(arguments.evaluation)
    page = _page(title, subtitle, facts)
    files.write_bytes(arguments.output, page.encode("utf-8"))
    print(f"{arguments.output}: {len(page) / 1e6:.1f} MB")
    return 0


def _page(title: str, subtitle: str, facts: dict[str, Any]) -> str:
    parts = resources.files("pipelines").joinpath("pages")
    read = {name: parts.joinpath(f"report.{name}").read_text(encoding="utf-8") for name in ("html", "css", "js")}
    # In a script element only "<" could end the data early.
    data = json.dumps(facts, default=str, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return string.Template(read["html"]).substitute(
        title=html.escape(title), subtitle=html.escape(subtitle), style=read["css"], script=read["js"], data=data
    )


def _tables(folder: str, name: str, columns: list[str] | None = None) -> Iterator[pa.Table]:
    for path in folders.table_files(folder, name):
        with files.open_binary(path) as stream:
            yield pq.read_table(stream, columns=columns)


def _table(folder: str, name: str) -> pa.Table:
    return pa.concat_tables(_tables(folder, name)).combine_chunks()


def _round_facts(folder: str, previous: str | None) -> tuple[str, str, dict[str, Any]]:
    manifest = files.read_manifest(folder, "round")
    seen = overview.overview(_tables(folder, "frontier", list(overview.COLUMNS)))
    parameters = manifest["parameters"]
    queue = manifest["inputs"]["queue"]
    before = previous if previous is not None else _earlier_round(queue["path"])
    facts = {
        "cards": [
            ["URLs ranked", f"{seen.rows:,}"],
            ["selected", f"{seen.selected:,}"],
            ["hosts", f"{len(seen.hosts):,}"],
            ["URLs in the queue", f"{queue['urls']:,}"],
            ["keywords", f"{manifest['rows']['keywords']:,}"],
            ["concepts of the queue", f"{manifest['rows']['base_concepts']:,}"],
            ["seconds", f"{manifest['seconds']:,}"],
        ],
        "top": [_shown(row) for row in seen.top],
        "top_note": f"The best {len(seen.top):,} of {seen.rows:,} URLs. A row opens to say why.",
        "sample": [_shown(row) for row in seen.sample],
        "sample_note": f"{len(seen.sample):,} of the other {seen.rows - len(seen.top):,} URLs, drawn by their address.",
        "bins": seen.bins.tolist(),
        "gamma": parameters["threshold"],
        "held": [{"reason": reason, "count": count} for reason, count in sorted(seen.held.items())],
        "hosts": overview.top_hosts(seen.hosts),
        "hosts_note": f"The first {overview.SHOWN_HOSTS:,} of {len(seen.hosts):,} hosts, by selected URLs."
        if len(seen.hosts) > overview.SHOWN_HOSTS
        else "",
        "changes": None,
        "keywords": _keywords(folder),
        "lattice": _lattice(folder),
        "rejects": [{"reason": reason, "count": count} for reason, count in manifest["rejected"].items()],
        "stages": _stages(manifest),
        "parameters": [
            {"name": name, "value": "" if value is None else str(value)} for name, value in parameters.items()
        ],
    }
    if before is not None:
        files.read_manifest(before, "round")
        facts["changes"] = overview.changes(seen.top, _top(before))
        facts["changes_note"] = f"The tops of {overview.TOP_ROWS:,} URLs of this round and of {before}."
    name = PurePosixPath(folder.rstrip("/")).name
    version = manifest["versions"].get("semrank", "")
    subtitle = (
        f"semrank {version}, profile {parameters['profile']}, ranker {parameters['ranker']}; queue {queue['path']}"
    )
    return f"Round {name}", subtitle, {"round": facts}


def _earlier_round(path: str) -> str | None:
    """The round that a queue came from, if it came from one that is still there."""
    return path if files.exists(files.join(path, files.MANIFEST)) else None


def _top(folder: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for part in _tables(folder, "frontier", ["rank", "url"]):
        rows += part.slice(0, overview.TOP_ROWS - len(rows)).to_pylist()
        if len(rows) >= overview.TOP_ROWS:
            break
    return rows


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    fetched = row["last_fetched_at"]
    return {**row, "last_fetched_at": None if fetched is None else fetched.isoformat(" ", "seconds")}


def _stages(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    rows = [{"stage": name, **measured} for name, measured in manifest["stages"].items()]
    return sorted(rows, key=lambda row: (-row["seconds"], row["stage"]))


def _keywords(folder: str) -> dict[str, Any]:
    keywords, relations = _table(folder, "keywords"), _table(folder, "relations")
    order = pc.sort_indices(keywords, sort_keys=[("clicks", "descending"), ("keyword", "ascending")])
    rows = keywords.take(order.slice(0, SHOWN_KEYWORDS)).to_pylist() if relations.num_rows else []
    number = {row["keyword"]: index for index, row in enumerate(rows)}
    known = pa.array(list(number), pa.string())
    inside = relations.filter(pc.and_(pc.is_in(relations["source"], known), pc.is_in(relations["target"], known)))
    parts: dict[str, list[str]] = defaultdict(list)
    related: dict[str, list[str]] = defaultdict(list)
    edges = []
    for relation in inside.to_pylist():
        source, target = relation["source"], relation["target"]
        if source == target:
            continue
        if relation["relation"] == "ISA":
            related[source].append(target)
            related[target].append(source)
            continue
        parts[source].append(target)
        # A part in the same or a higher layer closes a circle; the hierarchy leaves such steps out, and so do drawings.
        if rows[number[source]]["layer"] < rows[number[target]]["layer"]:
            edges.append([number[source], number[target]])
    most = max((row["clicks"] for row in rows), default=1) or 1
    layers = {layer: index for index, layer in enumerate(sorted({row["layer"] for row in rows}))}
    nodes = [
        {
            "name": row["keyword"],
            "level": layers[row["layer"]],
            "size": 5 + 9 * (row["clicks"] / most) ** 0.5,
            "layer": row["layer"],
            "clicks": row["clicks"],
            "probability": row["probability"],
            "related": sorted(related[row["keyword"]])[:12],
            "parts": sorted(parts[row["keyword"]])[:12],
        }
        for row in rows
    ]
    note = (
        f"The {len(rows):,} most clicked of {keywords.num_rows:,} keywords by layer; a line leads from a word to its "
        "part."
    )
    return {"nodes": nodes, "edges": edges, "note": note}


def _lattice(folder: str) -> dict[str, Any]:
    concepts = _table(folder, "base_concepts")
    order = pc.sort_indices(concepts, sort_keys=[("support", "descending"), ("concept", "ascending")])
    rows = concepts.take(order.slice(0, SHOWN_CONCEPTS)).to_pylist()
    edges = covers([row["intent"] for row in rows])
    most = max((row["support"] for row in rows), default=1)
    nodes = [
        {
            "name": ", ".join(row["intent"]) or "(all)",
            "level": level,
            "size": 5 + 9 * (row["support"] / most) ** 0.5,
            "support": row["support"],
            "intent": row["intent"],
            "extent": row["extent"][:SHOWN_EXTENT],
        }
        for row, level in zip(rows, levels(len(rows), edges), strict=True)
    ]
    note = (
        f"The {len(rows):,} largest of {concepts.num_rows:,} concepts of the queue as a Hasse diagram: a concept below "
        "another has its keywords and more, and fewer URLs."
    )
    return {"nodes": nodes, "edges": [list(edge) for edge in edges], "note": note}


def _evaluation_facts(folder: str) -> tuple[str, str, dict[str, Any]]:
    manifest = files.read_manifest(folder, "evaluation")
    summary, curve = _table(folder, "summary"), _table(folder, "curve")
    modes = []
    for mode in sorted(set(curve["mode"].to_pylist())):
        rows = curve.filter(pc.equal(curve["mode"], mode))
        means = rows.group_by(["ranker", "pages"], use_threads=False).aggregate(
            [(name, "mean") for name in ("harvest", "precision", "recall", "f_measure", "seconds")]
        )
        means = means.sort_by([("ranker", "ascending"), ("pages", "ascending")])
        charts = []
        for x, y, x_name, y_name in CHARTS:
            columns = ["pages" if name == "pages" else f"{name}_mean" for name in (x, y)]
            lines = []
            for ranker in dict.fromkeys(means["ranker"].to_pylist()):
                own = means.filter(pc.equal(means["ranker"], ranker))
                points = list(zip(*(own[name].to_pylist() for name in columns), strict=True))
                lines.append({"name": ranker, "points": [[round(value, 6) for value in point] for point in points]})
            charts.append({"x": x_name, "y": y_name, "lines": lines})
        modes.append({"name": mode, "charts": charts})
    facts = {
        "cards": [
            ["rankers", f"{len(set(curve['ranker'].to_pylist())):,}"],
            ["topics", f"{len(set(curve['topic'].to_pylist())):,}"],
            ["pages a crawl", f"{pc.max(curve['pages']).as_py() or 0:,}"],
        ],
        "note": "Means over topics with bootstrap intervals; differences are paired, to the first ranker.",
        "columns": summary.schema.names,
        "summary": summary.to_pylist(),
        "modes": modes,
    }
    name = PurePosixPath(folder.rstrip("/")).name
    return f"Evaluation {name}", f"semrank {manifest['versions'].get('semrank', '')}", {"evaluation": facts}


if __name__ == "__main__":
    from pipelines.cli import command_main, leave

    leave(command_main("report"))
