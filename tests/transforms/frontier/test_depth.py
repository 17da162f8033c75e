"""Depth from the seeds against networkx's shortest paths, and in a round."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semrank.pipelines.cli import main
from semrank.transforms.frontier import depth
from tests.support.snapshots import read_rows, write_snapshot

COUNT = 9


def url(number: int) -> str:
    return f"https://example.org/{number}"


def within(links: set[tuple[int, int]], chosen: set[int], seeds: set[int], most: int) -> set[int]:
    """The URLs within a depth by shortest paths whose inner pages were chosen."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(COUNT))
    graph.add_edges_from((source, target) for source, target in links if source in chosen)
    return set(nx.multi_source_dijkstra_path_length(graph, seeds, cutoff=most))


def ranked(folder: Path, links: set[tuple[int, int]], options: list[str]) -> dict[int, Any]:
    """What holds each URL of a round back that goes on from a first one without a bound."""
    rows = [{"source_url": url(source), "target_url": url(target)} for source, target in sorted(links)]
    pages = [{"url": url(number), "title": f"page {number}"} for number in range(COUNT)]
    snapshot = write_snapshot(folder / "snapshot", pages, rows, [], files=2)
    (folder / "seeds.txt").write_text("".join(f"{url(number)}\n" for number in (0, 1)), encoding="utf-8")
    common = ["rank", "--snapshot", str(snapshot), "--ranker", "pagerank", "--quiet"]
    seeds = ["--seeds", str(folder / "seeds.txt"), "--max-urls", str(COUNT)]
    assert main([*common, *seeds, "--output", str(folder / "first")]) == 0
    previous = ["--previous", str(folder / "first"), "--max-urls", str(COUNT)]
    assert main([*common, *previous, *options, "--output", str(folder / "second")]) == 0
    return {int(row["url"].rsplit("/", 1)[1]): row["held_back"] for row in read_rows(folder / "second" / "frontier")}


EDGES = st.sets(st.tuples(st.integers(0, COUNT - 1), st.integers(0, COUNT - 1)), min_size=8, max_size=20)


@given(EDGES, st.sets(st.integers(0, COUNT - 1)), st.integers(1, COUNT))
def test_steps_are_those_of_shortest_paths(links: set[tuple[int, int]], chosen: set[int], most: int) -> None:
    seeds = {0, 1}
    pages = sorted(chosen | seeds)
    harvested = pa.table({"url_id": pa.array(pages, pa.int64()), "seed": [page in seeds for page in pages]})
    rows = sorted(links)
    table = pa.table({"source_id": [source for source, _ in rows], "target_id": [target for _, target in rows]})
    parts = dict(depth.links_of_chosen(table, depth.chosen_ids(harvested)))
    reached = depth.seeds_reached(harvested)
    for number in range(1, most):
        reached = depth.with_found(reached, depth.found_next(parts["main"], reached, depth=number), depth=number)
    near = set(reached["url_id"].to_pylist())
    for part in parts.values():
        near |= set(depth.targets_of_reached(part, reached)["url_id"].to_pylist())
    assert near == within(links, chosen | seeds, seeds, most)


@given(EDGES.filter(lambda edges: any(source < 2 <= target for source, target in edges)), st.integers(1, 3))
@settings(max_examples=4, deadline=None)
def test_urls_beyond_the_depth_are_held_back(links: set[tuple[int, int]], most: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        held = ranked(Path(name), links, ["--max-depth", str(most)])
    chosen = {0, 1} | {target for source, target in links if source < 2}
    near = within(links, chosen, {0, 1}, most)
    assert held == {number: None if number in near else "filter:max-depth" for number in held}
    assert set(held) == {target for source, target in links if source in chosen} - chosen


@pytest.mark.parametrize("runner", ["DirectRunner", "LocalRunner"])
def test_a_chain_is_cut_at_the_depth(runner: str, tmp_path: Path) -> None:
    held = ranked(tmp_path, {(0, 2), (2, 3), (1, 4), (4, 0), (3, 5)}, ["--max-depth", "1", "--runner", runner])
    assert held == {3: "filter:max-depth"}
