"""Explains the rank of a URL in a finished round, term by term."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from semrank.pipelines import folders
from semrank.pipelines.answers import answer, counted
from semrank.pipelines.config import PAPER_PROFILES, RoundConfig, stored_config
from semrank.pipelines.explanation import (
    chosen_urls,
    depth_of,
    links_with,
    matched_pairs,
    place_in_harvest,
    queue_clicks,
    selection_around,
    urls_alike,
)
from semrank.pipelines.manifest import Manifest, parameter_rules
from semrank.pipelines.options import option, read_options, required
from semrank.pipelines.round_summary import round_scale
from semrank.pipelines.score_terms import LEGEND, named_ranker, score_facts, score_lines
from semrank.schemas.errors import InputError
from semrank.schemas.tables import CONCEPTS, FRONTIER, KEYWORDS, TableSchema
from semrank.transforms.columnar import files
from semrank.transforms.frontier.budgets import DEEPER, KNOWN
from semrank.transforms.frontier.private import PRIVATE_ADDRESS
from semrank.transforms.frontier.rules import FILTER
from semrank.transforms.ranking.registry import SEMRANK
from semrank.transforms.streams.urls import canonical_url

EXAMPLES = """\
examples:
  semrank explain --round round-0000 https://en.wikipedia.org/wiki/Penguin
  semrank explain --round round-0000 https://en.wikipedia.org/wiki/Penguin --json
"""

_PARAMETERS = (
    *("profile", "ranker", "level", "weight", "threshold", "intension_norm", "c_edges"),
    *("max_urls", "max_per_host", "max_per_domain", "budget", "host_quality", "mix", "max_depth"),
)

SHOWN = 8
"""Maximum URLs, links or clicks of a list in the text; JSON has all."""

_CURRENT_CONCEPTS = TableSchema("current_concepts", CONCEPTS.schema)
_BASE_CONCEPTS = TableSchema("base_concepts", CONCEPTS.schema)


@dataclass(frozen=True, kw_only=True)
class ExplainOptions:
    """The URL, the round and the snapshot."""

    round: str = required("a finished round", metavar="ROUND")
    url: str = required("a URL of its frontier", metavar="URL", positional=True)
    snapshot: str | None = option(
        None, "the round's snapshot, if it was moved; links and clicks are listed from it", metavar="SNAPSHOT"
    )
    brief: bool = option(False, "list no links and clicks, and do not read the snapshot", plain=True)


OPTIONS = (ExplainOptions,)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    own = read_options(ExplainOptions, arguments)
    facts = explanation(own.round, own.url, snapshot=own.snapshot, brief=own.brief)
    answer(arguments, "\n".join(_lines(facts)), facts)
    return 0


def explanation(folder: str, url: str, *, snapshot: str | None = None, brief: bool = False) -> dict[str, Any]:
    """The facts behind a URL's score and rank, as JSON values.

    Args:
        folder: the round's folder.
        url: the URL, canonical or not.
        snapshot: folder of the round's snapshot, or None for where it was when the round was made.
        brief: whether the snapshot is not read.

    Raises:
        InputError: the round is unfinished or damaged, the URL is not in its frontier, or `snapshot` is another one.
    """
    manifest = Manifest.of(folder, "round")
    config = stored_config(manifest.members("parameters"), manifest.path)
    rules = parameter_rules(manifest.text("inputs", "snapshot", "path") if snapshot is None else snapshot)
    canonical = canonical_url(url, rules=rules)
    if canonical.url is None:
        hint = f"; did you mean https://{url}?" if canonical.reason == "scheme-missing" else ""
        raise InputError(f"'{url}' is not a URL ({canonical.reason}), expected a URL of the frontier{hint}")
    row = folders.find_row(folder, FRONTIER, "url", canonical.url)
    if row is None:
        raise InputError(_absent(folder, canonical.url, config))
    written = bool(folders.table_files(folder, _CURRENT_CONCEPTS.name))
    words = sorted({match[side] for match in row["matches"] for side in ("base", "current")})
    facts = {
        "frontier": row,
        "ranked": manifest.whole("rows", FRONTIER.name),
        "parameters": {name: value for name, value in config.as_dict().items() if name in _PARAMETERS},
        "threshold": manifest.entries.get("threshold", config.least_score),
        "score_terms": score_facts(row, config.weight, config.ranker, round_scale(folder)),
        "selection": selection_around(folder, row, config),
        "base_concept": _concept(folder, _BASE_CONCEPTS, row["base_concept"]),
        "current_concept": _concept(folder, _CURRENT_CONCEPTS, row["current_concept"]) if written else None,
        "keywords": [folders.find_row(folder, KEYWORDS, "keyword", word) for word in words],
        "pairs": matched_pairs(folder, config, row["matches"]),
        "links": None,
        "nofollow_links": None,
        "depth": None,
        "clicks": None,
        "snapshot": None,
    }
    if not brief:
        facts.update(_from_snapshot(folder, manifest, row, snapshot))
    return dict(folders.plain(facts))


def _from_snapshot(folder: str, manifest: Manifest, row: dict[str, Any], snapshot: str | None) -> dict[str, Any]:
    """Links, clicks and the depth of a row's URL, if the round's snapshot still exists."""
    expected = manifest.text("inputs", "snapshot", "sha256")
    path = manifest.text("inputs", "snapshot", "path") if snapshot is None else snapshot
    if snapshot is None and not files.exists(files.join(path, files.MANIFEST)):
        return {
            "snapshot": f"the snapshot {path} is missing; give its new place with --snapshot to list links and clicks"
        }
    found = folders.fingerprint(path, "snapshot")["sha256"]
    if found != expected and snapshot is not None:
        raise InputError(f"--snapshot {path}: is not the snapshot that the round {folder} was made from")
    if found != expected:
        return {
            "snapshot": f"the snapshot {path} was replaced; give the original with --snapshot to list links and clicks"
        }
    (queue, chosen), url = chosen_urls(folder), row["url"]
    links, nofollow_links = links_with(path, url, queue, chosen)
    return {
        "depth": depth_of(path, folder, url) if row["held_back"] == DEEPER else None,
        "links": links,
        "nofollow_links": nofollow_links,
        "clicks": queue_clicks(path, url, queue),
        "snapshot": path,
    }


def _absent(folder: str, url: str, config: RoundConfig) -> str:
    """A message about why a URL is not in a frontier, with similar URLs."""
    place = place_in_harvest(folder, url)
    if place is not None:
        only_new = "" if config.mix is not None else ", and only rounds with --mix rank such pages again"
        reason = {
            "queued": "the round starts from it",
            "seed": f"it is one of the crawl's seeds{only_new}",
            "chosen": f"an earlier round chose it{only_new}",
        }[place]
        return f"{url}: is not in the frontier of {folder}: {reason}"
    alike = urls_alike(folder, url)
    hint = f"; similar URLs: {', '.join(alike)}" if alike else "; its host has no similar URL"
    return f"{url}: is not in the frontier of {folder}: no page that the crawl chose links to it{hint}"


def _concept(folder: str, table: TableSchema, concept: int | None) -> dict[str, Any] | None:
    return None if concept is None else folders.find_row(folder, table, "concept", concept)


def _lines(facts: dict[str, Any]) -> list[str]:
    row, parameters = facts["frontier"], facts["parameters"]
    score = "no number" if row["score"] is None else f"{row['score']:.6f}"
    lines = [
        row["url"],
        f"rank {row['rank']:,} of {facts['ranked']:,}, score {score}, "
        + ("selected" if row["selected"] else f"not selected: {_held_back(facts)}"),
        *_selection_lines(facts),
    ]
    by_papers = parameters["ranker"] == SEMRANK and parameters["profile"] in PAPER_PROFILES
    formula = f", score = {_similarity_formula(parameters['weight'])}" if by_papers else ""
    lines.append(f"{named_ranker(parameters)}{formula}:")
    if parameters["level"] != "page":
        lines.append(f"  a URL has the terms and the score of its {parameters['level']}, as a node of their graph")
    if facts["score_terms"]["terms"]:
        lines += score_lines(facts["score_terms"], row["score"])
    else:
        lines.append("  no evidence for or against it is known")
    if parameters["ranker"] == SEMRANK or row["base_concept"] is not None:
        lines += _semrank_lines(facts)
    lines += _edge_lines(facts)
    lines.append(f"fetched {row['last_fetched_at'] or 'at an unknown time'}" if row["fetched"] else "not fetched yet")
    if row["change_probability"] is not None:
        chance = row["change_probability"]
        lines.append(
            f"changed since then with probability {chance:.4f}: --mix orders fetched pages by score x probability, "
            f"here {row['score'] * chance:.6f}"
        )
    return lines


def _held_back(facts: dict[str, Any]) -> str:
    """Why a URL was not selected."""
    row, parameters, around = facts["frontier"], facts["parameters"], facts["selection"]
    reason = row["held_back"]
    if reason == "threshold":
        return f"the score is not above the threshold, {facts['threshold']}"
    if reason == KNOWN:
        return "the snapshot already has the page; --recrawl or --mix selects such pages"
    if reason == PRIVATE_ADDRESS:
        return "it leads to the crawler's own network; --allow-private selects such URLs"
    if reason == DEEPER:
        limit, depth = parameters["max_depth"], facts["depth"]
        found = f"more than {counted(limit, 'link')}" if depth is None else counted(depth, "link")
        return f"--max-depth {limit}: it is {found} away from the nearest seed, over pages that the crawl chose"
    if str(reason).startswith(f"{FILTER}:"):
        return f"it is outside the scope, rule {reason.partition(':')[2]}"
    if reason == "gone":
        return f"the page is gone, status {row['status']}"
    if reason == "budget":
        host = around["host"]
        urls = counted(host["selected"], "URL")
        share = f"the share of {host['name']} is {urls}, by {parameters['host_quality']} of hosts"
        return f"--budget {parameters['budget']}: {share}"
    group = {"max-per-host": "host", "max-per-domain": "domain"}.get(reason, "all")
    taken = around.get(group, around["all"])
    where = f" of {taken['name']}" if taken["name"] else ""
    last = "" if taken["last_rank"] is None else f", down to rank {taken['last_rank']:,}"
    limit = parameters.get(str(reason).replace("-", "_"))
    return f"--{reason} {limit}: {taken['selected']:,} URLs{where} are already selected{last}"


def _selection_lines(facts: dict[str, Any]) -> list[str]:
    around = facts["selection"]
    texts = [
        f"{group['selected']:,} of {group['urls']:,} {('of ' + group['name']) if kind != 'all' else 'in all'}"
        for kind, group in around.items()
    ]
    return ["selected: " + ", ".join(texts)]


def _similarity_formula(weight: float | None) -> str:
    if weight is None:
        return "(extension^2 + intension^2) / (extension + intension)"
    return f"{weight} x extension + {1 - weight:g} x intension"


def _semrank_lines(facts: dict[str, Any]) -> list[str]:
    row, parameters = facts["frontier"], facts["parameters"]
    lines = [] if parameters["ranker"] == SEMRANK else ["SemRank's terms, which are no part of this score:"]
    if facts["base_concept"] is None:
        return [*lines, "  no base concept is similar to this URL"]
    if parameters["profile"] not in PAPER_PROFILES:
        shared = ", ".join(match["base"] for match in row["matches"])
        return [
            *lines,
            *_concept_lines("the base concept whose keywords count most", facts["base_concept"]),
            f"  keywords of it that this URL has: {shared}",
        ]
    if parameters["ranker"] != SEMRANK:
        lines += [f"  {name} {row[name]:.6f}: {LEGEND[name]}" for name in ("extension", "intension")]
    lines += _concept_lines("the queue's concept", facts["base_concept"])
    if facts["current_concept"] is not None:
        lines += _concept_lines("this URL's concept", facts["current_concept"])
    if facts["pairs"]:
        lines.append("matched keywords (queue ~ this URL), with their paths in the hierarchy:")
    for pair in facts["pairs"]:
        lines += _pair_lines(pair)
    return lines


def _concept_lines(name: str, concept: dict[str, Any]) -> list[str]:
    words = ", ".join(concept["intent"]) or "no keyword in common"
    return [
        f"{name}: {words}; {counted(concept['support'], 'URL')}",
        *_some([f"    {url}" for url in concept["extent"]]),
    ]


def _pair_lines(pair: dict[str, Any]) -> list[str]:
    head = f"    {pair['base']} ~ {pair['current']}: ics {pair['ics']:.4f}"
    if pair["why"] == "same":
        return [f"{head}, the same word"]
    if pair["why"] == "ISA":
        return [f"{head}, ISA with support {pair['support']:,}"]
    if pair["why"] == "unknown":
        return [head]
    ways = [" > ".join(pair[side]) for side in ("base_path", "current_path")]
    return [f"{head}, nearest common ancestor {pair['ancestor']}", *(f"        {way}" for way in ways)]


def _edge_lines(facts: dict[str, Any]) -> list[str]:
    row, url = facts["frontier"], facts["frontier"]["url"]
    lines = [f"links between this URL and the queue: {row['base_links']:,}"]
    if facts["links"] is not None:
        lines += _some([_edge(link, url, _quoted(link["anchor_text"])) for link in facts["links"]])
    if facts["nofollow_links"]:
        lines.append("links marked nofollow between this URL and pages that the crawl chose, which only make it known:")
        lines += _some([_edge(link, url, _quoted(link["anchor_text"])) for link in facts["nofollow_links"]])
    clicks = row["base_clicks"]
    pairs = (
        f"{clicks:,}"
        if facts["parameters"]["c_edges"] == "clicks"
        else counted(clicks, "pair of pages", "pairs of pages")
    )
    lines.append(f"clicks directly from the queue to this URL or back: {pairs}")
    if facts["clicks"] is not None:
        counts = (", once" if edge["clicks"] == 1 else f", {edge['clicks']:,} times" for edge in facts["clicks"])
        lines += _some([_edge(edge, url, times) for edge, times in zip(facts["clicks"], counts, strict=True)])
    elif facts["snapshot"] is not None and (row["base_links"] or row["base_clicks"]):
        lines.append(f"    {facts['snapshot']}")
    return lines


def _edge(edge: dict[str, Any], url: str, note: str) -> str:
    return f"    to {edge['target']}{note}" if edge["source"] == url else f"    from {edge['source']}{note}"


def _quoted(anchor: str | None) -> str:
    return "" if anchor is None else f" ({anchor})"


def _some(lines: list[str]) -> list[str]:
    rest = len(lines) - SHOWN
    return [*lines[:SHOWN], f"    and {rest:,} more"] if rest > 0 else lines


if __name__ == "__main__":
    from semrank.pipelines.cli import command_main, leave

    leave(command_main("explain"))
