"""Writes a round, a crawl or an evaluation as one HTML page that needs no server and loads nothing from elsewhere.

A round's page has the top of the frontier with filters, a sample of the rest, the scores and the threshold, hosts, the
changes since the round before, the keyword hierarchy and the base concepts as drawings, rejects, and stages. A crawl's
page has the figures of its rounds as curves and as a list. An evaluation's page has its means and curves. The frontier
is read file by file, so it may have any size.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import html
import json
import string
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import PurePosixPath
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.pipelines import folders
from semrank.pipelines.answers import answer
from semrank.pipelines.config import round_config
from semrank.pipelines.crawl import RoundFigures, crawl_figures, folder_name
from semrank.pipelines.evaluation_config import MODES
from semrank.pipelines.evaluation_plots import mean_curves, mean_sweeps
from semrank.pipelines.evaluation_results import measure_heading
from semrank.pipelines.manifest import Manifest
from semrank.pipelines.options import option, read_options, required
from semrank.pipelines.score_terms import named_ranker
from semrank.pipelines.topic import stored_topic
from semrank.schemas.errors import InputError
from semrank.schemas.tables import (
    CONCEPTS,
    CURVE,
    FRONTIER,
    HARVEST,
    KEYWORDS,
    PAGES,
    RELATIONS,
    SUMMARY,
    SWEEP,
    TableSchema,
)
from semrank.transforms.columnar import files
from semrank.transforms.columnar.arrays import Float64s, column_array, int64s
from semrank.transforms.columnar.parquet import read_stored
from semrank.transforms.frontier import overview
from semrank.transforms.lattice.drawing import place_nodes
from semrank.transforms.lattice.hasse import covers, levels
from semrank.transforms.ranking.reasons import main_reason
from semrank.transforms.weblog.relations import ISA, PART_OF

EXAMPLES = """\
examples:
  semrank report --round round-0000 --output round.html
  semrank report --rounds rounds --output crawl.html
  semrank report --evaluation evaluation --output evaluation.html
"""

SHOWN_KEYWORDS = 40
"""Largest number of keywords in the drawing."""

MOST_STEPS = 4_000
"""Steps of the hierarchy to choose from, those with the largest support; only some of them are drawn."""

SHOWN_RELATIVES = 12
"""Relatives of a keyword that the drawing names."""

SHOWN_SEEDS = 20
"""Seeds that a round's page lists."""

SHOWN_CONCEPTS = 40
"""Concepts of the drawing: those with the most URLs."""

SHOWN_EXTENT = 8
"""URLs of a concept that the drawing names."""

_SEMRANK_CARDS = {"keywords": "keywords", "base_concepts": "base concepts"}

STAGE_COUNTS = ("rows_in", "rows_out", "largest_record_bytes", "largest_group_bytes")
"""The members of a manifest's stage besides its seconds."""

CHARTS = (
    ("pages", "harvest", "pages crawled", "harvest rate"),
    ("recall", "harvest", "recall", "precision"),
    ("pages", "f_measure", "pages crawled", "F-measure"),
    ("seconds", "recall", "seconds spent ranking", "recall"),
)
"""Curves of an evaluation (P13 Figs. 5 to 9): columns and names of the two axes."""


_HEAD_BYTES = 4096
"""Bytes at the beginning of a page that contain the round that it shows."""

CRAWL_CHARTS = (
    ("URLs", ("selected", "new", "known")),
    ("score and relevance", ("mean_score", "relevance")),
    ("hosts of the selected URLs", ("hosts",)),
    ("drift of the topic", ("drift",)),
    ("rejects", ("rejected",)),
    ("seconds", ("seconds",)),
)
"""Charts of a crawl: what is drawn, and its columns of `RoundFigures`."""


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What the page shows, and where it is written."""

    round: str | None = option(None, "a finished round", metavar="ROUND", exclusive="result", needed=True)
    rounds: str | None = option(
        None, "a crawl: folder of finished rounds", metavar="DIR", exclusive="result", needed=True
    )
    evaluation: str | None = option(None, "a finished evaluation", metavar="DIR", exclusive="result", needed=True)
    output: str = required("the page to write, .html", metavar="FILE")
    previous: str | None = option(
        None, "round to compare with (default: the round that this one continued)", metavar="ROUND"
    )
    overwrite: bool = option(False, "replace the page if it exists", plain=True)


OPTIONS = (ReportOptions,)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    own = read_options(ReportOptions, arguments)
    if not own.output.endswith((".html", ".htm")):
        raise InputError(f"--output: found {own.output}, expected a name that ends in .html")
    inputs = [own.round or own.rounds or own.evaluation or ""]
    folders.check_file("--output", own.output, overwrite=own.overwrite, inputs=inputs)
    if own.round is not None:
        title, subtitle, facts = _round_facts(own.round, own.previous)
    elif own.previous is not None:
        found = "--evaluation" if own.rounds is None else "--rounds"
        raise InputError(f"--previous {own.previous}: found {found}, expected --round")
    elif own.rounds is not None:
        title, subtitle, facts = _crawl_facts(own.rounds, own.output)
    else:
        title, subtitle, facts = _evaluation_facts(own.evaluation or "")
    page = _page(title, subtitle, facts, _manifest_digest(inputs[0]))
    files.write_bytes(own.output, page.encode("utf-8"))
    size = len(page.encode("utf-8"))
    shown = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"
    answer(arguments, f"{own.output}: {shown}", {"file": own.output, "bytes": size})
    return 0


def _manifest_digest(folder: str) -> str:
    """The digest of a folder's manifest, which identifies the folder's page; empty without a manifest."""
    path = files.join(folder, files.MANIFEST)
    return hashlib.sha256(files.read_bounded(path)).hexdigest() if files.exists(path) else ""


def _own_page(figures: RoundFigures, beside: str) -> str | None:
    """The name of a round's page in a folder; None if there is none, or it shows another round."""
    name = f"{folder_name(figures.folder)}.html"
    path = files.join(beside, name)
    if not files.exists(path):
        return None
    with files.open_binary(path) as stream:
        head = stream.read(_HEAD_BYTES)
    return name if f'"{_manifest_digest(figures.folder)}"'.encode() in head else None


def _page(title: str, subtitle: str, facts: dict[str, Any], digest: str) -> str:
    parts = resources.files("semrank.pipelines").joinpath("pages")
    read = {name: parts.joinpath(f"report.{name}").read_text(encoding="utf-8") for name in ("html", "css", "js")}
    # In a script element only "<" could end the data early.
    data = json.dumps(folders.plain(facts), ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace(
        "<", "\\u003c"
    )
    return string.Template(read["html"]).substitute(
        digest=digest,
        title=html.escape(title),
        subtitle=html.escape(subtitle),
        style=read["css"],
        script=read["js"],
        data=data,
        style_hash=_source_hash(read["css"]),
        script_hash=_source_hash(read["js"]),
    )


def _source_hash(text: str) -> str:
    """The hash by which a content security policy allows one inline style or script, and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _round_facts(folder: str, previous: str | None) -> tuple[str, str, dict[str, Any]]:
    manifest = Manifest.of(folder, "round")
    ranker = named_ranker({name: manifest.text("parameters", name) for name in ("profile", "ranker")})
    queue = manifest.text("inputs", "queue", "path")
    before = previous
    if before is None and files.exists(files.join(queue, files.MANIFEST)):
        before = queue
    seen = overview.overview(folders.read_parts(folder, FRONTIER.columns(*overview.COLUMNS)))
    hosts = len(seen.hosts)
    titles = _titles(manifest, [row["url"] for row in [*seen.top, *seen.sample]])
    defaults = round_config(argparse.Namespace()).as_dict()
    facts = {
        "cards": [
            ["URLs ranked", f"{seen.rows:,}"],
            ["selected", f"{seen.selected:,}"],
            ["hosts", f"{hosts:,}"],
            ["URLs in the queue", f"{manifest.whole('inputs', 'queue', 'urls'):,}"],
            *_counts(manifest),
            ["seconds", f"{manifest.number('seconds'):,.1f}"],
        ],
        "topic": stored_topic(manifest),
        "seeds": _seeds(folder),
        "top": _shown(seen.top, titles),
        "top_note": f"The best {len(seen.top):,} of {seen.rows:,} URLs. Open a row to see why.",
        "sample": _shown(seen.sample, titles),
        "sample_note": (
            f"{len(seen.sample):,} of the other {seen.rows - len(seen.top):,} URLs, drawn by the hash of their "
            "address. Scores, hosts and counts on this page are of all URLs."
        ),
        "bins": seen.bins.tolist(),
        "threshold": manifest.entries.get("threshold", manifest.entries["parameters"].get("threshold")),
        "held": [{"reason": reason, "count": count} for reason, count in sorted(seen.held.items())],
        "hosts": overview.top_hosts(
            seen.hosts, (part["host"] for part in folders.read_parts(folder, FRONTIER.columns("host")))
        ),
        "hosts_note": f"The first {overview.SHOWN_HOSTS:,} of {hosts:,} hosts, by selected URLs."
        if hosts > overview.SHOWN_HOSTS
        else "",
        "changes": None,
        "keywords": _keywords(folder),
        "lattice": _lattice(folder),
        "rejects": [
            {"reason": reason, "count": manifest.whole("rejected", reason)} for reason in manifest.members("rejected")
        ],
        "stages": _stages(manifest),
        "parameters": [
            {"name": name, "value": "" if value is None else str(value), "changed": value != defaults.get(name)}
            for name, value in manifest.members("parameters").items()
        ],
    }
    if before is not None:
        files.read_manifest(before, "round")
        facts["changes"] = overview.changes(seen.top, _top(before))
        facts["changes_note"] = f"The best {overview.TOP_ROWS:,} URLs of this round beside those of {before}."
    version = manifest.text("versions", "semrank")
    subtitle = f"semrank {version}, {ranker}; queue {queue}"
    return f"Round {folder_name(folder)}", subtitle, {"round": facts}


def _counts(manifest: Manifest) -> list[list[str]]:
    """Cards for the tables that only SemRank fills, as far as it did."""
    counts = {name: manifest.whole("rows", table) for table, name in _SEMRANK_CARDS.items()}
    return [[name, f"{count:,}"] for name, count in counts.items() if count]


def _seeds(folder: str) -> dict[str, Any]:
    """Number of the crawl's seeds, and the first of them."""
    count, first = 0, list[str]()
    for part in folders.read_parts(folder, HARVEST.columns("url", "seed")):
        urls = part.filter(part["seed"])["url"]
        count += len(urls)
        first += urls.slice(0, SHOWN_SEEDS - len(first)).to_pylist()
    return {"count": count, "urls": first}


def _shown(rows: list[dict[str, Any]], titles: Mapping[str, str]) -> list[dict[str, Any]]:
    """Rows of the frontier with the page's title, if it is known, and the term that counts most."""
    return [
        {**row, "title": titles.get(row["url"]), "why": main_reason(row["reasons"]) if row["reasons"] else None}
        for row in rows
    ]


def _titles(manifest: Manifest, urls: list[str]) -> dict[str, str]:
    """Titles of pages by URL; none if the snapshot is not where it was when the round was made."""
    folder = manifest.text("inputs", "snapshot", "path")
    wanted = pa.array(urls, pa.string())
    found: dict[str, str] = {}
    for path in folders.table_files(folder, PAGES.name):
        for part in read_stored(path, PAGES.columns("url", "title")):
            rows = part.filter(pc.is_in(part["url"], value_set=wanted)).to_pylist()
            found.update({row["url"]: row["title"] for row in rows if row["title"]})
    return found


def _top(folder: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for part in folders.read_parts(folder, FRONTIER.columns("rank", "url", "selected")):
        rows += part.slice(0, overview.TOP_ROWS - len(rows)).to_pylist()
        if len(rows) >= overview.TOP_ROWS:
            break
    return rows


def _stages(manifest: Manifest) -> list[dict[str, Any]]:
    rows = [
        {
            "stage": name,
            "seconds": manifest.number("stages", name, "seconds"),
            **{count: manifest.whole("stages", name, count) for count in STAGE_COUNTS},
        }
        for name in manifest.members("stages")
    ]
    return sorted(rows, key=lambda row: (-row["seconds"], row["stage"]))


def _keywords(folder: str) -> dict[str, Any]:
    """The words of the hierarchy's best supported steps, joined by these."""
    keywords, relations = folders.read_table(folder, KEYWORDS), folders.read_table(folder, RELATIONS)
    steps = _joining(_hierarchy_steps(keywords, relations))
    words = list(dict.fromkeys(word for step in steps for word in step))
    rows = keywords.take(pa.array(words, pa.int64())).to_pylist()
    number = {word: place for place, word in enumerate(words)}
    edges = [(number[source], number[target]) for source, target in steps]
    related, parts = _relatives(relations, [row["keyword"] for row in rows])
    most = max((row["clicks"] for row in rows), default=1) or 1
    nodes = [
        {
            "name": row["keyword"],
            "label": row["keyword"],
            "size": _size(row["clicks"] / most),
            "layer": row["layer"],
            "clicks": row["clicks"],
            "probability": row["probability"],
            "related": related[row["keyword"]],
            "parts": parts[row["keyword"]],
        }
        for row in rows
    ]
    note = (
        f"{len(rows):,} of {keywords.num_rows:,} keywords by layer, joined by the Part-Of relations with the largest "
        "support: a line leads down from a word to its part. Select a word to see its other parts and relatives."
    )
    return _drawn(nodes, [row["layer"] for row in rows], edges, note)


def _hierarchy_steps(keywords: pa.Table, relations: pa.Table) -> list[tuple[int, int]]:
    """Steps down from word to part, as row numbers of the keywords, the best supported first."""
    known = column_array(keywords["keyword"])
    own = relations.filter(pc.equal(relations["relation"], PART_OF))
    source, target = (pc.index_in(own[name], value_set=known) for name in ("source", "target"))
    layer, in_base, in_current = (keywords[name] for name in ("layer", "in_base", "in_current"))
    # A part in the same or a higher layer closes a cycle; like the hierarchy, the drawing leaves such steps out.
    down = pc.and_(
        pc.less(layer.take(source), layer.take(target)), pc.and_(in_base.take(source), in_current.take(target))
    )
    table = pa.table({"source": source, "target": target, "support": own["support"]}).filter(down)
    order = [("support", "descending"), ("source", "ascending"), ("target", "ascending")]
    table = table.sort_by(order).slice(0, MOST_STEPS)
    return list(zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True))


def _joining(steps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those steps, in order, that join words not yet joined, among the first `SHOWN_KEYWORDS` words."""
    words, joined = set[int](), nx.utils.UnionFind()
    taken = []
    for source, target in steps:
        if len(words | {source, target}) > SHOWN_KEYWORDS:
            continue
        words |= {source, target}
        if joined[source] != joined[target]:
            joined.union(source, target)
            taken.append((source, target))
    return taken


def _relatives(relations: pa.Table, words: list[str]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Each word's best supported ISA relatives and parts, at most `SHOWN_RELATIVES` of each."""
    known = pa.array(words, pa.string())
    near = relations.filter(pc.or_(pc.is_in(relations["source"], known), pc.is_in(relations["target"], known)))
    near = near.sort_by([("support", "descending"), ("source", "ascending"), ("target", "ascending")])
    found: dict[str, dict[str, list[str]]] = {kind: {word: [] for word in words} for kind in (ISA, PART_OF)}
    for source, target, kind in zip(
        *(near[name].to_pylist() for name in ("source", "target", "relation")), strict=True
    ):
        for word, other in ((source, target), (target, source)) if kind == ISA else ((source, target),):
            if word != other and kind in found and len(found[kind].get(word, [""] * SHOWN_RELATIVES)) < SHOWN_RELATIVES:
                found[kind][word].append(other)
    return found[ISA], found[PART_OF]


def _lattice(folder: str) -> dict[str, Any]:
    concepts = folders.read_table(folder, TableSchema("base_concepts", CONCEPTS.schema))
    order = pc.sort_indices(concepts, sort_keys=[("support", "descending"), ("concept", "ascending")])
    rows = concepts.take(order.slice(0, SHOWN_CONCEPTS)).to_pylist()
    edges = covers([row["intent"] for row in rows])
    above: dict[int, set[str]] = defaultdict(set)
    for upper, lower in edges:
        above[lower].update(rows[upper]["intent"])
    most = max((row["support"] for row in rows), default=1) or 1
    nodes = [
        {
            "name": ", ".join(row["intent"]) or "no keyword in common",
            # A concept is labelled by the keywords that it adds: the concepts above it show theirs already.
            "label": ", ".join(word for word in row["intent"] if word not in above[place]) if row["intent"] else "all",
            "size": _size(row["support"] / most),
            "support": row["support"],
            "extent": row["extent"][:SHOWN_EXTENT],
        }
        for place, row in enumerate(rows)
    ]
    note = (
        f"The {len(rows):,} largest of {concepts.num_rows:,} base concepts as a Hasse diagram: a concept below another "
        "has all its keywords and more, and fewer URLs. Each node shows only the keywords that it adds."
    )
    return _drawn(nodes, levels(len(rows), edges), edges, note)


def _size(share: float) -> float:
    """Radius of a node in pixels, its area in proportion to what it stands for."""
    return float(5 + 9 * max(0.0, share) ** 0.5)


def _drawn(
    nodes: list[dict[str, Any]], node_levels: list[int], edges: list[tuple[int, int]], note: str
) -> dict[str, Any]:
    placed = place_nodes(node_levels, edges)
    return {
        "nodes": [
            {**node, "x": round(x, 3), "y": round(y, 3)} for node, (x, y) in zip(nodes, placed.places, strict=True)
        ],
        "edges": [
            [*edge, [[round(x, 3), round(y, 3)] for x, y in bends]]
            for edge, bends in zip(edges, placed.bends, strict=True)
        ],
        "note": note,
    }


def _crawl_facts(folder: str, output: str) -> tuple[str, str, dict[str, Any]]:
    """Figures of a crawl's rounds, with links to those rounds' own pages that are in the folder of the output."""
    rounds = crawl_figures(folder)
    last = rounds[-1]
    beside = str(PurePosixPath(output).parent)
    rows = [
        {
            **figures.as_dict(),
            "round": folder_name(figures.folder),
            "page": _own_page(figures, beside),
            "words": ", ".join(figures.topic),
        }
        for figures in rounds
    ]
    charts = [
        {"x": "round", "y": name, "lines": lines}
        for name, columns in CRAWL_CHARTS
        if (lines := [line for column in columns if (line := _round_line(rounds, column))])
    ]
    facts = {
        "cards": [
            ["rounds", f"{len(rounds):,}"],
            ["URLs chosen so far", f"{last.harvested + last.selected:,}"],
            ["selected in the last round", f"{last.selected:,}"],
            ["new pages of these", f"{last.new:,}"],
            ["rejects", f"{sum(figures.rejected for figures in rounds):,}"],
            ["seconds", f"{sum(figures.seconds for figures in rounds):,.1f}"],
        ],
        "rounds": rows,
        "charts": charts,
    }
    return f"Crawl {folder_name(folder)}", f"ranker {last.ranker}; started from {rounds[0].queue}", {"crawl": facts}


def _round_line(rounds: Sequence[RoundFigures], column: str) -> dict[str, Any] | None:
    """A curve over the rounds with known values, or None if there are none."""
    known = [
        (number, value) for number, figures in enumerate(rounds) if (value := getattr(figures, column)) is not None
    ]
    if not known:
        return None
    return _line(column.replace("_", " "), *zip(*known, strict=True))


def _evaluation_facts(folder: str) -> tuple[str, str, dict[str, Any]]:
    manifest = Manifest.of(folder, "evaluation")
    summary = folders.read_table(folder, SUMMARY)
    curve = _complete(folder, CURVE, "ranker", "mode", "topic", "pages", "relevant", "recall", "seconds")
    sweep = _complete(folder, SWEEP, "ranker", "mode", "threshold", "f_measure")
    pages = _crawled(folder, curve)
    means, thresholds = mean_curves(curve, pages), mean_sweeps(sweep)
    modes = []
    for mode in sorted({mode for _, mode in means}, key=lambda name: [*MODES, name].index(name)):
        charts = [
            {
                "x": x_name,
                "y": y_name,
                "lines": [_curve(ranker, found, x, y) for (ranker, own), found in means.items() if own == mode],
            }
            for x, y, x_name, y_name in CHARTS
        ]
        lines = [_line(ranker, *found) for (ranker, own), found in thresholds.items() if own == mode]
        if lines:
            charts.append({"x": "threshold", "y": "F-measure of what is selected", "lines": lines})
        modes.append({"name": mode, "charts": charts})
    facts = {
        "cards": [
            ["rankers", f"{len(set(curve['ranker'].to_pylist())):,}"],
            ["topics", f"{len(set(curve['topic'].to_pylist())):,}"],
            ["pages per crawl", f"{pages:,}"],
        ],
        "note": "Means over topics with 95 % bootstrap intervals. Bold: the best of a column. \u25b2 and \u25bc: above "
        "or below the first ranker, the interval of the paired difference excluding 0. omniscient knows the labels "
        "and takes relevant pages first, but does not plan ahead: another ranker can be slightly better.",
        "curves_note": (
            "Means over all crawls. A crawl that ran out of candidates keeps its last values: its relevant pages, "
            "recall and seconds stay as they were, and its harvest rate is that of all pages that it was allowed."
        ),
        "pivots": _pivots(summary.to_pylist()),
        "modes": modes,
    }
    return f"Evaluation {folder_name(folder)}", f"semrank {manifest.text('versions', 'semrank')}", {"evaluation": facts}


def _pivots(summary: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Mode -> its measures, and a row for each ranker with the summary's row of each measure."""
    modes: dict[str, dict[str, dict[str, Any]]] = {}
    for row in summary:
        name = measure_heading(row["measure"], row["pages"])
        modes.setdefault(row["mode"], {}).setdefault(row["ranker"], {"ranker": row["ranker"]})[name] = row
    return {
        mode: {"measures": [name for name in next(iter(rows.values())) if name != "ranker"], "rows": [*rows.values()]}
        for mode, rows in modes.items()
    }


def _complete(folder: str, table: TableSchema, *columns: str) -> pa.Table:
    """Columns of a table that has all of them, without nulls."""
    required = pa.schema([field.with_nullable(False) for field in table.columns(*columns).schema])
    return folders.read_table(folder, TableSchema(table.name, required))


def _line(name: str, x: Iterable[float], y: Iterable[float]) -> dict[str, Any]:
    return {"name": name, "points": [[round(float(a), 6), round(float(b), 6)] for a, b in zip(x, y, strict=True)]}


def _curve(ranker: str, means: Mapping[str, Float64s], x: str, y: str) -> dict[str, Any]:
    """A mean curve, with a band of 1.96 standard errors where the horizontal axis is the same for all crawls."""
    line = _line(ranker, means[x], means[y])
    error = means.get(f"{y}_error")
    if x == "pages" and error is not None:
        edges = zip(means[x], means[y] - 1.96 * error, means[y] + 1.96 * error, strict=True)
        line["band"] = [[round(float(value), 6) for value in edge] for edge in edges]
    return line


def _crawled(folder: str, curve: pa.Table) -> int:
    """The pages of the longest crawl; raises InputError where crawls are not written page after page."""
    pages = int64s(curve["pages"])
    starts = pages == 1
    follows = np.concatenate([[False], pages[1:] == pages[:-1] + 1])[: len(pages)]
    if not (starts | follows).all():
        raise InputError(f"{folder}: its curve table does not list crawls page by page")
    return int(pages.max(initial=0))


if __name__ == "__main__":
    from semrank.pipelines.cli import command_main, leave

    leave(command_main("report"))
