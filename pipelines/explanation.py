"""Explains the rank of a URL in a finished round: paths in the hierarchy, links, clicks, competing URLs."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.pipelines import folders
from semrank.pipelines.config import RoundConfig
from semrank.pipelines.semrank_settings import query_words, similarity_settings
from semrank.schemas.tables import CLICKS, FRONTIER, HARVEST, KEYWORDS, LINKS, RELATIONS
from semrank.transforms.columnar.arrays import column_array, int64s, positions
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.frontier.budgets import domains_of
from semrank.transforms.ranking.semrank import word_hierarchy
from semrank.transforms.similarity.hierarchy import TOP, WeightedHierarchy, common_ancestor, path_from_top
from semrank.transforms.weblog.clicks import read_clicks
from semrank.transforms.weblog.relations import ISA, PART_OF
from semrank.transforms.weblog.sequences import click_edges, sequence_rows

TOP_NAME = "Top"
"""Name of the root of the hierarchy, unless the query is a single word."""

COMPARED_URLS = 2_000
"""Number of the best URLs of a host among which similar addresses are searched."""

ALIKE = 3
"""Maximum number of similar addresses that are suggested."""


def matched_pairs(folder: str, config: RoundConfig, matches: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Matched keywords with what makes them similar.

    Args:
        folder: the round's folder.
        config: its configuration.
        matches: pairs with the names `base`, `current` and `ics`, as the frontier has them.

    Returns:
        The pairs with `why`: `same`; `ISA` with its `support`; `ancestor` with the name of the common `ancestor` and
        both words' longest paths from Top, `base_path` and `current_path`; or `unknown` if the round's keywords lack a
        word.
    """
    if not matches:
        return []
    keywords = folders.read_table(folder, KEYWORDS)
    relations = folders.read_table(folder, RELATIONS)
    words = column_array(keywords["keyword"])
    number = {word: place for place, word in enumerate(words.to_pylist())}
    supports = _isa_supports(relations, {match["base"] for match in matches} | {match["current"] for match in matches})
    hierarchy = _hierarchy(keywords, relations, words, config)
    explained = []
    for match in matches:
        base, current = match["base"], match["current"]
        pair = tuple(sorted((base, current)))
        if base == current:
            explained.append({**match, "why": "same"})
        elif pair in supports:
            explained.append({**match, "why": "ISA", "support": supports[pair]})
        elif base in number and current in number:
            ancestor = common_ancestor(hierarchy, number[base], number[current])
            explained.append(
                {
                    **match,
                    "why": "ancestor",
                    "ancestor": TOP_NAME if ancestor == TOP else words[ancestor].as_py(),
                    "base_path": _named_path(hierarchy, words, number[base]),
                    "current_path": _named_path(hierarchy, words, number[current]),
                }
            )
        else:
            explained.append({**match, "why": "unknown"})
    return explained


def _isa_supports(relations: pa.Table, words: set[str]) -> dict[tuple[str, ...], int]:
    known = pa.array(sorted(words), pa.string())
    own = relations.filter(
        pc.and_(
            pc.equal(relations["relation"], ISA),
            pc.and_(pc.is_in(relations["source"], known), pc.is_in(relations["target"], known)),
        )
    )
    return {tuple(sorted((row["source"], row["target"]))): row["support"] for row in own.to_pylist()}


def _hierarchy(keywords: pa.Table, relations: pa.Table, words: pa.Array, config: RoundConfig) -> WeightedHierarchy:
    def pairs(kind: str) -> pa.Table:
        rows = relations.filter(pc.equal(relations["relation"], kind))
        numbers = pa.table({name: pc.index_in(rows[name], value_set=words) for name in ("source", "target")})
        return numbers.filter(pc.and_(pc.is_valid(numbers["source"]), pc.is_valid(numbers["target"])))

    vocabulary = pa.table(
        {
            "word": words,
            "clicks": keywords["clicks"],
            "base_support": keywords["in_base"].cast(pa.int64()),
            "current_support": keywords["in_current"].cast(pa.int64()),
        }
    )
    settings, query = similarity_settings(config), query_words(config)
    return word_hierarchy(vocabulary, pairs(ISA), pairs(PART_OF), settings=settings, query=query)


def _named_path(hierarchy: WeightedHierarchy, words: pa.Array, word: int) -> list[str]:
    path = [words[place].as_py() for place in path_from_top(hierarchy, word)]
    return path if hierarchy.top_word != TOP else [TOP_NAME, *path]


def chosen_urls(folder: str) -> tuple[pa.Array, pa.Array]:
    """The URLs that a round started from, and all URLs that the crawl has chosen so far, including these."""
    chosen = folders.read_table(folder, HARVEST.columns("url", "queued"))
    return column_array(chosen.filter(chosen["queued"])["url"]), column_array(chosen["url"])


def links_with(
    snapshot: str, url: str, queue: pa.Array, chosen: pa.Array
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Links between a URL and others: source, target and an anchor text, each once, by source and target.

    Args:
        snapshot: folder of the snapshot.
        url: a URL that the crawl has not chosen.
        queue: URLs that the round started from, string[n].
        chosen: all URLs that the crawl chose, string[m].

    Returns:
        (the links that count, with the queue; those marked nofollow, with any chosen URL).
    """
    found: tuple[dict[tuple[str, str], str | None], ...] = ({}, {})
    for part in folders.read_parts(snapshot, LINKS):
        source, target = part["source_url"], part["target_url"]
        near = part.filter(pc.or_(pc.equal(source, url), pc.equal(target, url)))
        other = pc.if_else(pc.equal(near["source_url"], url), near["target_url"], near["source_url"])
        marked = pc.fill_null(near["nofollow"], False)
        listed = pc.if_else(marked, pc.is_in(other, chosen), pc.is_in(other, queue))
        for row in near.filter(listed).to_pylist():
            links, ends = found[bool(row["nofollow"])], (row["source_url"], row["target_url"])
            links[ends] = links.get(ends) or row["anchor_text"]
    followed, nofollow = (
        [{"source": source, "target": target, "anchor_text": text} for (source, target), text in sorted(links.items())]
        for links in found
    )
    return followed, nofollow


def depth_of(snapshot: str, folder: str, url: str) -> int | None:
    """Number of links between the nearest seed and a URL, over pages that the crawl chose; None if there is no path.

    Args:
        snapshot: folder of the snapshot.
        folder: the round's folder.
        url: a URL that the crawl has not chosen.
    """
    harvest = folders.read_table(folder, HARVEST.columns("url", "seed"))
    chosen, ends = column_array(harvest["url"]), [LINKS.empty().select(["source_url", "target_url"])]
    inside = pa.concat_arrays([chosen, pa.array([url], chosen.type)])
    for part in folders.read_parts(snapshot, LINKS.columns("source_url", "target_url", "nofollow")):
        within = pc.and_(pc.is_in(part["source_url"], value_set=chosen), pc.is_in(part["target_url"], value_set=inside))
        followed = pc.invert(pc.fill_null(part["nofollow"], False))
        ends.append(part.filter(pc.and_(within, followed)).select(ends[0].column_names))
    links = pa.concat_tables(ends)
    last = seen = column_array(harvest.filter(harvest["seed"])["url"])
    depth = 0
    while len(last):
        depth += 1
        found = pc.unique(links.filter(pc.is_in(links["source_url"], value_set=last))["target_url"])
        if pc.index(found, url).as_py() >= 0:
            return depth
        last = found.filter(pc.invert(pc.is_in(found, value_set=seen)))
        seen = pa.concat_arrays([seen, last])
    return None


def queue_clicks(snapshot: str, url: str, queue: pa.Array) -> list[dict[str, Any]]:
    """Click edges between a URL and the queue: source, target and number of consecutive clicks.

    Args:
        snapshot: folder of the snapshot.
        url: a URL outside the queue.
        queue: the queue's URLs, string[n].
    """
    users = pa.array([], pa.string())
    for part in folders.read_parts(snapshot, CLICKS.columns("user_id", "url")):
        own = part.filter(pc.equal(part["url"], url))
        users = pc.unique(pa.concat_arrays([users, column_array(own["user_id"])]))
    if not len(users):
        return []
    rows = pa.concat_tables(
        [
            CLICKS.empty(),
            *(part.filter(pc.is_in(part["user_id"], value_set=users)) for part in folders.read_parts(snapshot, CLICKS)),
        ]
    )
    edges = click_edges(sequence_rows(read_clicks(rows, _no_words)))
    source, target = int64s(edges["source"]), int64s(edges["target"])
    ids = np.sort(text_ids(queue))
    own_id = text_ids(pa.array([url]))[0]
    leaves = (source == own_id) & (positions(ids, target) >= 0)
    enters = (target == own_id) & (positions(ids, source) >= 0)
    clicked = pc.unique(column_array(rows["url"]))
    names = dict(zip(text_ids(clicked).tolist(), clicked.to_pylist(), strict=True))
    counted = [
        {"source": names[edge["source"]], "target": names[edge["target"]], "clicks": edge["clicks"]}
        for edge in edges.filter(pa.array(leaves | enters)).to_pylist()
    ]
    return sorted(counted, key=lambda edge: (-edge["clicks"], edge["source"], edge["target"]))


def _no_words(texts: pa.Array) -> pa.ListArray:
    """Sequences of clicks do not depend on the words of queries."""
    return pa.array([[]] * len(texts), pa.list_(pa.string()))


def selection_around(folder: str, row: dict[str, Any], config: RoundConfig) -> dict[str, Any]:
    """Numbers of URLs that compete with one of the frontier, and of selected ones among them.

    Args:
        folder: the round's folder.
        row: the URL's row of the frontier.
        config: the round's configuration.

    Returns:
        Under `all`, `host`, with a cap of domains `domain`, and with parts for new and known pages `part`: a `name`,
        the number of `urls` and of `selected` ones, and `last_rank`, the worst rank of a selected one (or null).
    """
    domain = domains_of(pa.array([row["host"]]))[0].as_py()
    groups = {"all": "", "host": row["host"]}
    if config.max_per_domain is not None:
        groups["domain"] = domain
    if config.mix is not None:
        groups["part"] = "known pages" if row["fetched"] else "new pages"
    counts: dict[str, dict[str, Any]] = {
        kind: {"name": name, "urls": 0, "selected": 0, "last_rank": None} for kind, name in groups.items()
    }
    for part in folders.read_parts(folder, FRONTIER.columns("rank", "host", "selected", "fetched")):
        for kind, count in counts.items():
            inside = part.filter(_members(part, kind, row, domain))
            ranks = inside.filter(inside["selected"])["rank"]
            count["urls"] += inside.num_rows
            count["selected"] += len(ranks)
            count["last_rank"] = pc.max(ranks).as_py() or count["last_rank"]
    return counts


def _members(part: pa.Table, kind: str, row: dict[str, Any], domain: str) -> pa.Array:
    if kind == "host":
        return pc.equal(part["host"], row["host"])
    if kind == "domain":
        return pc.equal(domains_of(column_array(part["host"])), domain)
    if kind == "part":
        return pc.equal(part["fetched"], row["fetched"])
    return pa.repeat(True, part.num_rows)


def urls_alike(folder: str, url: str) -> list[str]:
    """Similar URLs of the frontier: of the same host, or with another scheme or `www`; best first."""
    host = _bare(url).split("/")[0]
    near: list[str] = []
    for urls in _urls_of_host(folder, host):
        near += urls
        if len(near) >= COMPARED_URLS:
            break
    by_rest: dict[str, str] = {}
    for found in near[:COMPARED_URLS]:
        by_rest.setdefault(_bare(found), found)
    return [by_rest[rest] for rest in difflib.get_close_matches(_bare(url), by_rest, n=ALIKE, cutoff=0.6)]


def _bare(url: str) -> str:
    """A URL without scheme, `www` and final slash."""
    return url.split("://", 1)[-1].removeprefix("www.").rstrip("/")


def _urls_of_host(folder: str, host: str) -> Iterator[list[str]]:
    names = pa.array([host, f"www.{host}"])
    for part in folders.read_parts(folder, FRONTIER.columns("url", "host")):
        yield part.filter(pc.is_in(part["host"], value_set=names))["url"].to_pylist()


def place_in_harvest(folder: str, url: str) -> str | None:
    """Why a chosen URL is not in the frontier: `queued`, `seed` or `chosen`; None if it was not chosen.

    `queued` URLs are those that the round starts from, seeds or not.
    """
    for part in folders.read_parts(folder, HARVEST):
        place = pc.index(part["url"], url).as_py()
        if place >= 0:
            queued, seed = (part[name][place].as_py() for name in ("queued", "seed"))
            return "queued" if queued else "seed" if seed else "chosen"
    return None
