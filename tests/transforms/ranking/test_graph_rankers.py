"""PageRank, HITS and harmonic centrality against networkx, breadth-first by definition; one worker and many parts."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import apache_beam as beam
import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from semrank.pipelines.runtime import beam_options, run_pipeline
from semrank.schemas.errors import InputError
from semrank.transforms.columnar.beam import WriteOne
from semrank.transforms.context.links import LINK_SCHEMA
from semrank.transforms.context.objects import NODE_SCHEMA
from semrank.transforms.ranking import breadth_first, graph, graph_beam, harmonic, hits, induced, pagerank
from semrank.transforms.ranking.graph import Direction, Graph, Grid, Iteration, Method
from semrank.transforms.ranking.graph_beam import RankByGraph, RateHosts, needs_blocks
from semrank.transforms.ranking.induced_beam import RankByInducedGraph
from semrank.transforms.ranking.registry import NODES, RANKERS, module
from semrank.transforms.ranking.scores import SCORED_SCHEMA
from tests.support.small_crawls import Crawl, Page, crawls, random_crawl
from tests.support.strategies import choices

GRAPH_RANKERS = [name for name, ranker in RANKERS.items() if NODES in ranker.needs]


@st.composite
def edges_of(draw: st.DrawFn) -> sparse.csr_array:
    count = draw(st.integers(1, 12))
    matrix = np.zeros((count, count))
    for source, target in draw(choices([(a, b) for a in range(count) for b in range(count)], 0, 30)):
        matrix[source, target] = float(source != target)
    return sparse.csr_array(matrix)


def pagerank_of(edges: sparse.csr_array, iteration: Iteration = pagerank.ON_WORKER, **further: Any) -> tuple[Any, Any]:
    state = pagerank.PageRank(iteration, **further).solve(edges)
    return pagerank.values_of(state), state.convergence


def hits_of(edges: sparse.csr_array, iteration: Iteration = hits.ON_WORKER) -> tuple[Any, Any, Any]:
    state = hits.Hits(iteration).solve(edges)
    authorities, hubs = (hits._unit(state.vectors[name]) for name in ("authority", "hub"))
    return authorities, hubs, state.convergence


def harmonic_of(edges: sparse.csr_array) -> Any:
    return harmonic.values_of(harmonic.HyperBall().on_worker(edges, graph.Surroundings.of_edges(edges)))


def estimated_harmonic(edges: sparse.csr_array, bits: int = harmonic.REGISTER_BITS) -> Any:
    return harmonic.values_of(harmonic.HyperBall(register_bits=bits).solve(edges))


def networkx_of(edges: sparse.csr_array) -> Any:
    return nx.from_scipy_sparse_array(edges, create_using=nx.DiGraph)


@settings(max_examples=200, deadline=None)
@given(edges_of())
def test_pagerank_is_networkx(edges: sparse.csr_array) -> None:
    found, convergence = pagerank_of(edges)
    expected = nx.pagerank(networkx_of(edges), alpha=0.85, tol=1e-14, max_iter=1000)
    assert found == pytest.approx([expected[node] for node in range(edges.shape[0])], abs=1e-10)
    assert convergence.converged
    assert found.sum() == pytest.approx(1.0, abs=1e-12)


@settings(max_examples=200, deadline=None)
@given(edges_of())
def test_hits_is_the_first_singular_vector(edges: sparse.csr_array) -> None:
    found, hubs, convergence = hits_of(edges)
    dense = edges.toarray()
    if not dense.any():
        assert not found.any()
        return
    # The iteration ends in the eigenspace of the largest value, at the projection of what one step makes of all ones.
    values, vectors = np.linalg.eigh(dense.T @ dense)
    space = vectors[:, values > values.max() * (1 - 1e-9)]
    expected = space @ (space.T @ (dense.T @ np.ones(len(dense))))
    expected /= np.linalg.norm(expected)
    if convergence.converged:
        assert found == pytest.approx(expected, abs=1e-5)
    assert np.linalg.norm(found) == pytest.approx(1.0)
    assert np.linalg.norm(hubs) == pytest.approx(1.0)


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 9).flatmap(
        lambda n: st.tuples(st.just(n), choices([(a, b) for a in range(n) for b in range(n)], 0, 40))
    )
)
def test_repeated_edges_count_once_and_loops_not(drawn: tuple[int, list[tuple[int, int]]]) -> None:
    count, pairs = drawn
    source, target = (np.array([pair[end] for pair in pairs], dtype=np.int64) for end in (0, 1))
    edges = graph.adjacency(source, target, count)
    web = nx.DiGraph([pair for pair in pairs if pair[0] != pair[1]])
    web.add_nodes_from(range(count))
    assert sorted(zip(*(ends.tolist() for ends in edges.nonzero()), strict=True)) == sorted(web.edges)
    expected = nx.pagerank(web, tol=1e-14, max_iter=1000)
    assert pagerank_of(edges)[0] == pytest.approx([expected[node] for node in range(count)], abs=1e-10)
    assert harmonic_of(edges) * max(1, count - 1) == pytest.approx(
        [nx.harmonic_centrality(web)[node] for node in range(count)]
    )


def test_pagerank_solves_its_linear_equations() -> None:
    web = nx.fast_gnp_random_graph(300, 0.01, seed=9, directed=True)
    edges = sparse.csr_array(nx.to_scipy_sparse_array(web, dtype=float))
    degree = np.asarray(edges.sum(axis=1)).ravel()
    assert (degree == 0).any()
    steps = edges.toarray() / np.maximum(degree, 1)[:, None] + np.outer(degree == 0, np.full(300, 1 / 300))
    for damping in (0.5, 0.85, 0.99):
        expected = np.linalg.solve(np.eye(300) - damping * steps.T, np.full(300, (1 - damping) / 300))
        found, convergence = pagerank_of(edges, Iteration(1e-12, 5000), damping=damping)
        assert convergence.converged
        assert found == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_graphs_without_edges(count: int) -> None:
    edges = sparse.csr_array((count, count))
    assert pagerank_of(edges)[0] == pytest.approx([1 / count] * count if count else [])
    authorities, hubs, convergence = hits_of(edges)
    assert authorities.tolist() == hubs.tolist() == [0.0] * count
    assert convergence.converged
    assert harmonic.distance_sums(edges).tolist() == estimated_harmonic(edges).tolist() == [0.0] * count


def test_the_tolerance_and_the_cap_end_an_iteration() -> None:
    web = nx.fast_gnp_random_graph(60, 0.1, seed=4, directed=True)
    edges = sparse.csr_array(nx.to_scipy_sparse_array(web, dtype=float))
    for method in (pagerank_of, hits_of):
        *_, ended = method(edges, Iteration(1e-3, 200))
        assert ended.converged
        assert 0 < ended.residual <= 1e-3
        *_, longer = method(edges, Iteration(1e-6, 200))
        assert longer.iterations > ended.iterations
        *_, cut = method(edges, Iteration(1e-6, 3))
        assert (cut.iterations, cut.converged) == (3, False)
        assert cut.residual > 1e-6


@pytest.mark.parametrize(
    ("tolerance", "most", "message"),
    [
        (-1.0, 5, "tolerance: found -1.0, expected a number of at least 0"),
        (float("nan"), 5, "tolerance: found nan, expected a number of at least 0"),
        (1e-3, 0, "max_iterations: found 0, expected at least 1"),
    ],
)
def test_impossible_settings_are_refused(tolerance: float, most: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Iteration(tolerance, most)


def test_hits_is_networkx() -> None:
    web = nx.fast_gnp_random_graph(60, 0.1, seed=4, directed=True)
    found, hubs, _ = hits_of(sparse.csr_array(nx.to_scipy_sparse_array(web, dtype=float)))
    hub, authority = nx.hits(web, max_iter=2000, tol=1e-12)
    for ours, theirs in ((found, authority), (hubs, hub)):
        expected = np.array([theirs[node] for node in web])
        assert ours == pytest.approx(expected / np.linalg.norm(expected), abs=1e-7)


@settings(max_examples=60, deadline=None)
@given(edges_of(), st.data())
def test_a_topic_induces_kleinbergs_subgraph(edges: sparse.csr_array, data: st.DataObject) -> None:
    count = edges.shape[0]
    nodes = list(range(count))
    seed = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)), dtype=np.bool_)
    near = {node: data.draw(st.sampled_from([0.0, 0.25, 0.5])) for node in nodes if not seed[node]}
    urls, nothing = 10 * np.arange(count), np.zeros(count, dtype=np.int64)
    web = Graph(urls, urls, np.arange(count), seed, ~seed, nothing, edges)
    scored = pa.table({"url_id": [10 * node for node in near], "score": pa.array(near.values(), pa.float64())})
    with patch.multiple(induced, ROOT_URLS=2, LINKING_URLS=1):
        found = induced.induced(web, scored)
    best = sorted((node for node in near if near[node] > 0), key=lambda node: (-near[node], node))[:2]
    root = {*best, *np.flatnonzero(seed).tolist()}
    base = set(root)
    for page in root:
        base |= {node for node in nodes if edges[page, node]}
        base |= set([node for node in nodes if edges[node, page] and node not in root][:1])
    dense = edges.toarray()
    outside = [node for node in nodes if node not in base]
    dense[outside] = dense[:, outside] = 0
    assert (found.edges.toarray() == dense).all()


@settings(max_examples=200, deadline=None)
@given(edges_of())
def test_harmonic_is_networkx(edges: sparse.csr_array) -> None:
    expected = nx.harmonic_centrality(networkx_of(edges))
    count = edges.shape[0]
    assert harmonic_of(edges) == pytest.approx([expected[node] / max(1, count - 1) for node in range(count)])


def test_estimated_harmonic_is_near_the_exact_one() -> None:
    web = nx.fast_gnp_random_graph(2000, 0.002, seed=7, directed=True)
    edges = sparse.csr_array(nx.to_scipy_sparse_array(web, dtype=float))
    exact, estimated = harmonic.distance_sums(edges) / 1999, estimated_harmonic(edges)
    error = np.abs(estimated - exact) / np.maximum(exact, 1e-9)
    assert np.median(error) < 0.065
    assert error[exact > 0].max() < 0.35
    assert (estimated_harmonic(edges) == estimated).all()


@pytest.mark.parametrize("bits", [6, 8])
def test_the_error_of_estimates_is_within_its_bound(bits: int) -> None:
    """Over many hashes: each copy of a graph has numbers, and so hashes, of its own."""
    copies, count = 20, 400
    web = nx.fast_gnp_random_graph(count, 0.006, seed=1, directed=True)
    edges = sparse.csr_array(nx.to_scipy_sparse_array(web, dtype=float))
    many = sparse.csr_array(sparse.block_diag([edges] * copies))
    exact = harmonic.distance_sums(edges) + 1
    estimated = estimated_harmonic(many, bits).reshape(copies, count) * (copies * count - 1) + 1
    assert np.sqrt(np.mean(np.square(estimated / exact - 1))) < 1.04 / np.sqrt(1 << bits)


def test_walks_of_more_sources_than_one_pass_has(monkeypatch: pytest.MonkeyPatch) -> None:
    web = nx.fast_gnp_random_graph(300, 0.01, seed=3, directed=True)
    edges = sparse.csr_array(nx.to_scipy_sparse_array(web, dtype=float))
    expected = nx.harmonic_centrality(web)
    monkeypatch.setattr(harmonic, "SOURCE_WORDS", 2)
    monkeypatch.setattr(graph, "REDUCED_EDGES", 50)
    assert harmonic.distance_sums(edges) == pytest.approx([expected[node] for node in range(300)])


def test_breadth_first_by_definition() -> None:
    crawl = random_crawl(5)
    facts = crawl.facts()
    web = networkx_of(Graph.of_facts(facts).edges)
    number = {url: place for place, url in enumerate(crawl.ids)}
    seeds = {number[url] for url in crawl.seeds}
    distance = nx.multi_source_dijkstra_path_length(web, seeds, weight=None)
    value = nx.pagerank(web, tol=1e-14, max_iter=1000)
    expected = sorted(
        crawl.current,
        key=lambda url: (distance.get(number[url], 10**9), -round(value[number[url]], 11), url),
    )
    table = breadth_first.rank(facts)
    score = dict(zip(table["url_id"].to_pylist(), table["score"].to_pylist(), strict=True))
    assert sorted(score, key=lambda url: -score[url]) == expected
    assert max(score.values()) == 1.0


@settings(max_examples=100, deadline=None)
@given(crawls(), st.sampled_from(GRAPH_RANKERS))
def test_any_crawl_has_scores_between_0_and_1(crawl: Crawl, ranker: str) -> None:
    table = module(ranker).rank(crawl.facts())
    assert table.schema == SCORED_SCHEMA
    assert table["url_id"].to_pylist() == crawl.current
    score = table["score"].to_numpy()
    assert np.isfinite(score).all()
    assert ((score >= 0) & (score <= 1)).all()


def nodes_of(crawl: Crawl, hosts: dict[int, int]) -> pa.Table:
    rows = [(url, hosts.get(url, url), crawl.pages[url].seed, not crawl.pages[url].harvested) for url in crawl.ids]
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=NODE_SCHEMA)


def distributed(
    crawl: Crawl,
    ranker: str,
    level: str,
    parts: int,
    folder: Path,
    hosts: dict[int, int],
    links_known: int | None = None,
) -> list[Any]:
    chance = random.Random(parts)
    links = crawl.tables(parts, chance)["links"]
    nodes = nodes_of(crawl, hosts)
    tables = [nodes.slice(start, 9) for start in range(0, nodes.num_rows, 9)]
    # A URL can be listed as harvested and as current.
    tables.append(nodes.slice(0, 3))
    made = {"nodes": chance.sample(tables, len(tables)), "links": links}
    rows, counters = ran(made, RankByGraph(ranker, level=level, links=links_known), folder)
    if links_known is None:
        assert counters[f"{ranker}/converged"] == 1
    assert f"{ranker}/iterations" in counters
    return rows


def ran(
    tables: dict[str, list[pa.Table]], step: beam.PTransform[Any, Any], folder: Path
) -> tuple[list[Any], dict[str, int]]:
    """What a step gives of tables in parts, by URL, and its counters."""

    def build(pipeline: beam.Pipeline) -> None:
        inputs = {
            name: pipeline | name >> beam.Create(parts).with_output_types(pa.Table) for name, parts in tables.items()
        }
        {"rows": inputs | step} | WriteOne("write scores", str(folder), _whole)

    metrics = run_pipeline(beam_options([]), build)
    assert metrics is not None
    return list(pq.read_table(folder).sort_by("url_id").to_pylist()), dict(metrics.counters)


def _whole(rows: pa.Table | None) -> pa.Table:
    return SCORED_SCHEMA.empty_table() if rows is None else rows


@pytest.mark.parametrize("ranker", GRAPH_RANKERS)
@pytest.mark.parametrize("parts", [1, 2, 7])
def test_many_parts_give_what_one_does(ranker: str, parts: int, tmp_path: Path) -> None:
    crawl = random_crawl(parts)
    assert distributed(crawl, ranker, "page", parts, tmp_path, {}) == module(ranker).rank(crawl.facts()).to_pylist()


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_an_induced_subgraph_in_parts(parts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(induced, "ROOT_URLS", 4)
    monkeypatch.setattr(induced, "LINKING_URLS", 1)
    crawl = random_crawl(parts)
    tables = {**crawl.tables(parts, random.Random(parts)), "nodes": [nodes_of(crawl, {})]}
    step = RankByInducedGraph(RankByGraph("hits", level="page"), query=list(crawl.query), partitions=parts)
    found, _ = ran(tables, step, tmp_path)
    assert found == hits.rank(crawl.facts(), settings=hits.TOPIC).to_pylist()
    assert found != hits.rank(crawl.facts()).to_pylist()


def in_memory(ranker: str, crawl: Crawl) -> list[Any]:
    """By the methods and settings of blocks, over all edges at once."""
    web = Graph.of_facts(crawl.facts())
    states = tuple(method.solve(web.edges, web.surroundings) for method in module(ranker).methods(blocks=True))
    return list(module(ranker).table(web, states).to_pylist())


@pytest.mark.parametrize("ranker", GRAPH_RANKERS)
@pytest.mark.parametrize("parts", [1, 2, 7])
def test_blocks_give_what_memory_does(ranker: str, parts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl = random_crawl(parts)
    # 1, 2, and 8 blocks.
    monkeypatch.setattr(graph, "WORKER_BYTES", 0)
    monkeypatch.setattr("semrank.transforms.ranking.graph_beam.partition_count", lambda _: {1: 1, 2: 2, 7: 8}[parts])
    # Some methods end before these many steps, some have to be ended.
    monkeypatch.setattr(breadth_first, "IN_BLOCKS", Iteration(0.0, 12))
    monkeypatch.setattr(pagerank, "IN_BLOCKS", Iteration(1e-3, 20))
    for own in (hits, harmonic):
        monkeypatch.setattr(own, "IN_BLOCKS", Iteration(1e-2, 12))
    found = distributed(crawl, ranker, "page", parts, tmp_path, {}, links_known=1)
    assert found == in_memory(ranker, crawl)


def test_blocks_of_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl = random_crawl(5)
    hosts = {url: url % 7 for url in crawl.ids}
    for setting in ("ON_WORKER", "IN_BLOCKS"):
        monkeypatch.setattr(pagerank, setting, Iteration(1e-4, 40))
    expected = distributed(crawl, "pagerank", "host", 2, tmp_path / "one", hosts)
    monkeypatch.setattr(graph, "WORKER_BYTES", 0)
    monkeypatch.setattr("semrank.transforms.ranking.graph_beam.partition_count", lambda _: 4)
    found = distributed(crawl, "pagerank", "host", 3, tmp_path / "blocks", hosts, links_known=1)
    assert found == expected
    assert len({row["score"] for row in found}) <= 7


@pytest.mark.parametrize("ranker", GRAPH_RANKERS)
def test_blocks_of_nothing(ranker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "WORKER_BYTES", 0)
    for own in (breadth_first, pagerank, hits, harmonic):
        monkeypatch.setattr(own, "IN_BLOCKS", Iteration(1e-3, 3))
    crawl = Crawl(pages={1: Page(seed=True, harvested=True), 2: Page(), 3: Page()}, links=[(2, 2), (9, 3)])
    found = distributed(crawl, ranker, "page", 1, tmp_path, {}, links_known=2)
    assert found == module(ranker).rank(crawl.facts()).to_pylist()


def test_only_more_links_than_a_worker_takes_need_blocks() -> None:
    most = graph.WORKER_BYTES // graph.EDGE_BYTES
    assert [needs_blocks(links) for links in (None, 0, most, most + 1)] == [False, False, False, True]


@pytest.mark.parametrize("blocks", [1, 2, 4, 8, 32])
def test_blocks_are_ranges_of_both_ends(blocks: int) -> None:
    grid = Grid.of(blocks)
    assert grid.targets * grid.sources == blocks
    source, target = (ends.ravel() for ends in np.meshgrid(np.arange(40), np.arange(40)))
    found = grid.blocks(source, target, 40)
    assert set(found.tolist()) == set(range(blocks))
    for block in range(blocks):
        rows, columns = np.unique(target[found == block]), np.unique(source[found == block])
        assert (np.diff(rows) == 1).all()
        assert (np.diff(columns) == 1).all()
        assert (found == block).sum() == len(rows) * len(columns)


@settings(max_examples=100, deadline=None)
@given(edges_of(), st.sampled_from([1, 2, 4, 8]), st.randoms(use_true_random=False))
def test_products_of_blocks_add_up_to_the_same_bits(
    edges: sparse.csr_array, blocks: int, chance: random.Random
) -> None:
    count = edges.shape[0]
    source, target = (ends.astype(np.int64) for ends in edges.nonzero())
    values = np.array([chance.random() for _ in range(count)])
    counters = np.array([[chance.randint(0, 60) for _ in range(4)] for _ in range(count)], dtype=np.uint8)
    numbers = Grid.of(blocks).blocks(source, target, count)
    sides: list[tuple[Direction, sparse.csr_array]] = [("in", sparse.csr_array(edges.T)), ("out", edges)]
    factors: list[tuple[Literal["sum", "max"], Any]] = [
        ("sum", graph.exact_terms(values / count**2)),
        ("max", counters),
    ]
    for direction, side in sides:
        for join, factor in factors:
            parts = []
            for block in set(numbers.tolist()):
                kept = numbers == block
                keyed = pa.table([numbers[kept], source[kept], target[kept]], schema=graph.KEYED_SCHEMA)
                parts.append(graph.block_products(graph.block_edges(keyed, direction), factor, join))
            chance.shuffle(parts)
            rows = np.concatenate([np.zeros(0, dtype=np.int64), *(part[0] for part in parts)])
            given_values = np.concatenate([factor[:0], *(part[1] for part in parts)])
            found = graph.joined_products(rows, given_values, factor.shape, join)
            expected = side @ factor if join == "sum" else graph.joined_rows(side, factor, np.maximum)
            assert (found == expected).all()


def test_urls_of_a_host_have_its_value(tmp_path: Path) -> None:
    crawl = Crawl(
        pages={url: Page(seed=url == 1, harvested=url == 1) for url in range(1, 7)},
        links=[(1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (2, 3)],
    )
    hosts = {1: 10, 2: 20, 3: 20, 4: 30, 5: 30, 6: 40}
    found = {row["url_id"]: row["score"] for row in distributed(crawl, "pagerank", "host", 2, tmp_path, hosts)}
    web = nx.DiGraph([(10, 20), (20, 30)])
    web.add_node(40)
    expected = nx.pagerank(web, tol=1e-14)
    for url, host in hosts.items():
        if url in found:
            assert found[url] == pytest.approx(expected[host] / max(expected.values()), abs=1e-9)
    assert found[2] == found[3]


def test_too_many_links_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "MAX_EDGE_BYTES", 32)
    edges = pa.table([[1, 2, 3], [2, 3, 1]], schema=LINK_SCHEMA)
    with pytest.raises(InputError, match="found 3 links between known URLs, expected at most 2"):
        Graph.of_tables(None, edges, level="page")


@pytest.mark.parametrize("by", ["pagerank", "harmonic"])
def test_quality_of_hosts_is_that_of_their_graph(by: str) -> None:
    nodes = pa.table([[1, 2, 3, 4], [10, 20, 20, 30], [False] * 4, [True] * 4], schema=NODE_SCHEMA)
    edges = pa.table([[1, 2, 3, 2], [2, 3, 4, 4]], schema=LINK_SCHEMA)
    web = nx.DiGraph([(10, 20), (20, 30)])
    expected = nx.pagerank(web, tol=1e-14) if by == "pagerank" else nx.harmonic_centrality(web)
    found = _host_quality(nodes, edges, by)
    assert found["host_id"] == [10, 20, 30]
    values = [expected[host] if by == "pagerank" else expected[host] / 2 + 1 / 3 for host in (10, 20, 30)]
    assert found["quality"] == pytest.approx(values, abs=1e-9)
    assert _host_quality(None, None, by)["host_id"] == []


def _host_quality(nodes: pa.Table | None, edges: pa.Table | None, by: str) -> dict[str, list[Any]]:
    rate = partial(graph_beam._quality, by=by)
    found: dict[str, list[Any]] = graph_beam._on_worker(
        nodes, edges, ranker=by, level="host", function=rate
    ).to_pydict()
    return found


@pytest.mark.parametrize("by", ["pagerank", "harmonic"])
def test_blocks_rate_hosts(by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl = random_crawl(6)
    nodes = nodes_of(crawl, {url: url % 9 for url in crawl.ids})
    links = crawl.tables(3, random.Random(1))["links"]
    method: tuple[Method, ...] = (
        (pagerank.PageRank(Iteration(1e-5, 60)),) if by == "pagerank" else (harmonic.HyperBall(Iteration(0, 9), 6),)
    )
    monkeypatch.setattr(graph, "WORKER_BYTES", 0)
    monkeypatch.setattr(module(by), "methods", lambda *_, **__: method)

    def build(pipeline: beam.Pipeline) -> None:
        inputs = {
            name: pipeline | name >> beam.Create(value).with_output_types(pa.Table)
            for name, value in (("nodes", [nodes]), ("links", links))
        }
        {"rows": inputs | RateHosts(by, links=5)} | WriteOne("write", str(tmp_path), _whole_quality)

    run_pipeline(beam_options([]), build)
    hosts = Graph.of_tables(nodes, pa.concat_tables(links), level="host")
    values = module(by).values_of(method[0].solve(hosts.edges))
    if by == "harmonic":
        values = values + 1 / len(hosts)
    found = pq.read_table(tmp_path).to_pydict()
    assert found["host_id"] == sorted(set(nodes["host_id"].to_pylist()))
    assert found["quality"] == np.round(values, 15).tolist()


def _whole_quality(rows: pa.Table) -> pa.Table:
    return rows.sort_by("host_id")
