"""PageRank, HITS and harmonic centrality against networkx, breadth-first by definition; one worker and many parts."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import apache_beam as beam
import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from pipelines.runtime import beam_options, run_pipeline
from schemas.errors import InputError
from tests.transforms.ranking.small_crawls import Crawl, Page, crawls, random_crawl
from transforms.columnar.steps import WriteOne
from transforms.ranking import breadth_first, graph, harmonic, hits, pagerank
from transforms.ranking.graph import Graph
from transforms.ranking.graph_steps import MODULES, RankByGraph, host_quality
from transforms.ranking.scores import SCORED_SCHEMA


@st.composite
def edges_of(draw: st.DrawFn) -> sparse.csr_array:
    count = draw(st.integers(1, 12))
    node = st.integers(0, count - 1)
    pairs = draw(st.sets(st.tuples(node, node).filter(lambda pair: pair[0] != pair[1]), max_size=30))
    matrix = np.zeros((count, count))
    for source, target in pairs:
        matrix[source, target] = 1.0
    return sparse.csr_array(matrix)


def networkx_of(edges: sparse.csr_array) -> Any:
    return nx.from_scipy_sparse_array(edges, create_using=nx.DiGraph)


@settings(max_examples=200, deadline=None)
@given(edges_of())
def test_pagerank_is_networkx(edges: sparse.csr_array) -> None:
    found, convergence = pagerank.pagerank(edges)
    expected = nx.pagerank(networkx_of(edges), alpha=0.85, tol=1e-14, max_iter=1000)
    assert found == pytest.approx([expected[node] for node in range(edges.shape[0])], abs=1e-10)
    assert convergence.converged
    assert found.sum() == pytest.approx(1.0, abs=1e-12)


@settings(max_examples=200, deadline=None)
@given(edges_of())
def test_hits_is_the_first_singular_vector(edges: sparse.csr_array) -> None:
    found, hubs, convergence = hits.hits(edges)
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


def test_hits_is_networkx() -> None:
    web = nx.gnp_random_graph(60, 0.1, seed=4, directed=True)
    found, hubs, _ = hits.hits(sparse.csr_array(nx.to_scipy_sparse_array(web, dtype=float)))
    hub, authority = nx.hits(web, max_iter=2000, tol=1e-12)
    for ours, theirs in ((found, authority), (hubs, hub)):
        expected = np.array([theirs[node] for node in web])
        assert ours == pytest.approx(expected / np.linalg.norm(expected), abs=1e-7)


@settings(max_examples=200, deadline=None)
@given(edges_of())
def test_harmonic_is_networkx(edges: sparse.csr_array) -> None:
    expected = nx.harmonic_centrality(networkx_of(edges))
    count = edges.shape[0]
    assert harmonic.harmonic(edges) == pytest.approx([expected[node] / max(1, count - 1) for node in range(count)])


def test_estimated_harmonic_is_near_the_exact_one() -> None:
    web = nx.gnp_random_graph(2000, 0.002, seed=7, directed=True)
    edges = sparse.csr_array(nx.to_scipy_sparse_array(web, dtype=float))
    exact, estimated = harmonic.exact_harmonic(edges), harmonic.estimated_harmonic(edges)
    error = np.abs(estimated - exact) / np.maximum(exact, 1e-9)
    assert np.median(error) < 0.065
    assert error[exact > 0].max() < 0.35
    assert (harmonic.estimated_harmonic(edges) == estimated).all()


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
@given(crawls(), st.sampled_from(sorted(MODULES)))
def test_any_crawl_has_scores_between_0_and_1(crawl: Crawl, ranker: str) -> None:
    table = MODULES[ranker].rank(crawl.facts())
    assert table.schema == SCORED_SCHEMA
    assert table["url_id"].to_pylist() == crawl.current
    score = table["score"].to_numpy()
    assert np.isfinite(score).all()
    assert ((score >= 0) & (score <= 1)).all()


def nodes_of(crawl: Crawl, hosts: dict[int, int]) -> pa.Table:
    rows = [(url, hosts.get(url, url), crawl.pages[url].seed, not crawl.pages[url].harvested) for url in crawl.ids]
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=graph.NODE_SCHEMA)


def distributed(crawl: Crawl, ranker: str, level: str, parts: int, folder: Path, hosts: dict[int, int]) -> list[Any]:
    chance = random.Random(parts)
    links = crawl.tables(parts, chance)["links"]
    nodes = nodes_of(crawl, hosts)
    tables = [nodes.slice(start, 9) for start in range(0, nodes.num_rows, 9)]
    # A URL can be listed as harvested and as current.
    tables.append(nodes.slice(0, 3))

    def build(pipeline: beam.Pipeline) -> None:
        made = {"nodes": chance.sample(tables, len(tables)), "links": links}
        inputs = {
            name: pipeline | name >> beam.Create(value).with_output_types(pa.Table) for name, value in made.items()
        }
        {"rows": inputs | RankByGraph(ranker, level=level)} | WriteOne("write scores", str(folder), _whole)

    metrics = run_pipeline(beam_options([]), build)
    assert metrics is not None
    assert metrics.counters[f"{ranker}/converged"] == 1
    return list(pq.read_table(folder).sort_by("url_id").to_pylist())


def _whole(rows: pa.Table | None) -> pa.Table:
    return SCORED_SCHEMA.empty_table() if rows is None else rows


@pytest.mark.parametrize("ranker", sorted(MODULES))
@pytest.mark.parametrize("parts", [1, 2, 7])
def test_many_parts_give_what_one_does(ranker: str, parts: int, tmp_path: Path) -> None:
    crawl = random_crawl(parts)
    assert distributed(crawl, ranker, "page", parts, tmp_path, {}) == MODULES[ranker].rank(crawl.facts()).to_pylist()


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
    edges = pa.table([[1, 2, 3], [2, 3, 1]], schema=graph.EDGE_SCHEMA)
    with pytest.raises(InputError, match="found 3 links between known URLs, expected at most 2"):
        Graph.of_tables(None, edges, level="page")


@pytest.mark.parametrize("by", ["pagerank", "harmonic"])
def test_quality_of_hosts_is_that_of_their_graph(by: str) -> None:
    nodes = pa.table([[1, 2, 3, 4], [10, 20, 20, 30], [False] * 4, [True] * 4], schema=graph.NODE_SCHEMA)
    edges = pa.table([[1, 2, 3, 2], [2, 3, 4, 4]], schema=graph.EDGE_SCHEMA)
    web = nx.DiGraph([(10, 20), (20, 30)])
    expected = nx.pagerank(web, tol=1e-14) if by == "pagerank" else nx.harmonic_centrality(web)
    found = host_quality(nodes, edges, by=by).to_pydict()
    assert found["host_id"] == [10, 20, 30]
    values = [expected[host] if by == "pagerank" else expected[host] / 2 + 1 / 3 for host in (10, 20, 30)]
    assert found["quality"] == pytest.approx(values, abs=1e-9)
    assert host_quality(None, None, by=by).num_rows == 0
