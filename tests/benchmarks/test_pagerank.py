"""All sides of the benchmark of PageRank have the same values, and a difference does not go unseen."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from benchmarks import pagerank

EDGES = 3_000
NODES = EDGES // pagerank.DEGREE


@pytest.mark.parametrize("fetched", [0.8, 1.0])
def test_edges_are_as_described(fetched: float, tmp_path: Path) -> None:
    pagerank.write_edges(tmp_path, EDGES, fetched)
    source, target = np.load(tmp_path / "source.npy"), np.load(tmp_path / "target.npy")
    assert len(source) == len(target) == EDGES
    assert (source != target).all()
    assert min(source.min(), target.min()) >= 0
    assert max(source.max(), target.max()) < NODES
    assert len(np.unique(source)) / NODES == pytest.approx(fetched, abs=0.07)
    within = (source // pagerank.HOST == target // pagerank.HOST).mean()
    assert within > pagerank.OWN_HOST - 0.05
    pagerank.write_edges(tmp_path, EDGES, fetched)
    assert (np.load(tmp_path / "target.npy") == target).all()


def test_all_have_the_values_of_the_definition(tmp_path: Path) -> None:
    pagerank.write_edges(tmp_path, EDGES, pagerank.FETCHED)
    web = nx.DiGraph(
        zip(np.load(tmp_path / "source.npy").tolist(), np.load(tmp_path / "target.npy").tolist(), strict=True)
    )
    web.add_nodes_from(range(NODES))
    expected = nx.pagerank(web, tol=1e-13, max_iter=2000)
    np.save(tmp_path / "expected.npy", np.array([expected[node] for node in range(NODES)]))
    for number, side in enumerate((pagerank.ours, pagerank.with_scipy, pagerank.with_networkx)):
        side(tmp_path, tmp_path / f"{number}.npy")()
        pagerank.check_equal(tmp_path / f"{number}.npy", tmp_path / "expected.npy")
    assert int((tmp_path / "0.steps").read_text()) > 20


def test_scikit_network_agrees_where_all_nodes_link(tmp_path: Path) -> None:
    pytest.importorskip("sknetwork")
    pagerank.write_edges(tmp_path, EDGES, 1.0)
    pagerank.ours(tmp_path, tmp_path / "ours.npy")()
    pagerank.with_scikit_network(tmp_path, tmp_path / "peer.npy")()
    pagerank.check_equal(tmp_path / "ours.npy", tmp_path / "peer.npy")


def test_other_values_are_seen(tmp_path: Path) -> None:
    np.save(tmp_path / "ours.npy", np.array([0.5, 0.5]))
    np.save(tmp_path / "peer.npy", np.array([0.5 - 1e-7, 0.5 + 1e-7]))
    with pytest.raises(RuntimeError, match="the values differ by 2e-07 in all, expected at most 1"):
        pagerank.check_equal(tmp_path / "ours.npy", tmp_path / "peer.npy")


def test_a_peer_that_is_not_there_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    found = pagerank.run(quick=True)
    assert [result["peer"] for result in found] == ["SciPy", "scikit-network", "networkx"]
    assert all(result["met"] is None and "is not installed" in result["note"] for result in found)
