"""PageRank of a generated web to 1e-9, against power iteration in SciPy, scikit-network and networkx.

All begin with files of the edges' ends as integers and end with the values; making the matrix, or the graph, counts.
Most links stay within a host, those of some hosts all do, and in-degrees follow the web's power law: without hosts a
generated graph would mix in a dozen steps. All stop when the values change by less than 1e-9 in all, and their values
have to be ours. A fifth of the nodes, which nobody fetched, link nowhere, but not for scikit-network: such nodes have a
larger chance of a restart there, where the definition spreads their mass evenly. networkx, which keeps a dictionary for
each node, gets a graph of a tenth of the size, and so does ours in that comparison.
"""

from __future__ import annotations

import importlib
import importlib.util
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.generate import POPULARITY
from benchmarks.harness import Measurement, Prepared, Result, interleaved, without_peer
from semrank.transforms.columnar.arrays import Float64s, Int64s
from semrank.transforms.ranking import graph, pagerank

EDGES = 10_000_000
SMALL_EDGES = 1_000_000
QUICK_EDGES = 50_000
DEGREE = 10
HOST = 100
"""Nodes of a host."""

OWN_HOST = 0.7
"""Share of links that stay within their host."""

CLOSED = 0.05
"""Share of hosts that link to no other."""

FETCHED = 0.8
"""Share of nodes that link anywhere."""

TOLERANCE = 1e-9
MAX_ITERATIONS = 1_000
REPEATS = 3
QUICK_RUNS = 5
AIM = 3.0
NETWORKX_AIM = 1 / 10

Side = Callable[[Path, Path], Callable[[], None]]


def write_edges(folder: Path, count: int, fetched: float) -> None:
    """Writes the ends of some edges as `source.npy` and `target.npy`, int64[count], the same each time.

    Args:
        folder: where to.
        count: number of edges, some of them loops and repetitions.
        fetched: share of the nodes that link anywhere.
    """
    random = np.random.default_rng(1998)
    nodes = count // DEGREE
    # By inversion: ranks from 1 to n by the density rank ^ -exponent.
    power = 1 - POPULARITY
    rank = (((nodes**power - 1) * random.random(count) + 1) ** (1 / power)).astype(np.int64) - 1
    linking = np.flatnonzero(random.random(nodes) < fetched)
    source, target = random.choice(linking, count), random.permutation(nodes)[np.minimum(rank, nodes - 1)]
    source[: len(linking)] = linking
    stays = (random.random(count) < OWN_HOST) | (random.random(-(-nodes // HOST)) < CLOSED)[source // HOST]
    # Never the page itself, so that every page with links has one that counts.
    beside = (
        source - source % HOST + (source % HOST + 1 + (HOST - 1) * random.random(count) ** 2).astype(np.int64) % HOST
    )
    target = np.where(stays | (target == source), beside, target)
    np.save(folder / "source.npy", source)
    np.save(folder / "target.npy", target)


def _read_edges(folder: Path) -> tuple[Int64s, Int64s, int]:
    source, target = np.load(folder / "source.npy"), np.load(folder / "target.npy")
    return source, target, len(source) // DEGREE


def ours(folder: Path, kept: Path) -> Callable[[], None]:
    """Ours; gives a function that keeps the values."""
    edges = graph.adjacency(*_read_edges(folder))
    state = pagerank.PageRank(graph.Iteration(TOLERANCE, MAX_ITERATIONS)).solve(edges)
    return partial(_keep, kept, pagerank.values_of(state), state.convergence.iterations)


def _keep(path: Path, values: Float64s, iterations: int) -> None:
    np.save(path, values)
    path.with_suffix(".steps").write_text(str(iterations), encoding="ascii")


def _simple_matrix(folder: Path) -> sparse.csr_array:
    """The edges but loops, each once."""
    source, target, nodes = _read_edges(folder)
    other = source != target
    matrix = sparse.csr_array((np.ones(int(other.sum())), (source[other], target[other])), shape=(nodes, nodes))
    matrix.data[:] = 1.0
    return matrix


def with_scipy(folder: Path, kept: Path) -> Callable[[], None]:
    """Power iteration as one would write it with SciPy."""
    matrix = _simple_matrix(folder)
    nodes = matrix.shape[0]
    degree = np.diff(matrix.indptr)
    dangling = np.flatnonzero(degree == 0)
    steps = sparse.csr_array((sparse.diags_array(1 / np.maximum(degree, 1)) @ matrix).T)
    values = np.full(nodes, 1 / nodes)
    for _ in range(MAX_ITERATIONS):
        before = values
        values = pagerank.DAMPING * (steps @ before + before[dangling].sum() / nodes) + (1 - pagerank.DAMPING) / nodes
        if np.abs(values - before).sum() < TOLERANCE:
            return partial(np.save, kept, values)
    raise RuntimeError(f"no convergence in {MAX_ITERATIONS} steps")


def with_scikit_network(folder: Path, kept: Path) -> Callable[[], None]:
    """scikit-network's power iteration."""
    ranking = importlib.import_module("sknetwork.ranking")
    matrix = sparse.csr_matrix(_simple_matrix(folder))
    ranker = ranking.PageRank(
        damping_factor=pagerank.DAMPING, solver="piteration", n_iter=MAX_ITERATIONS, tol=TOLERANCE
    )
    return partial(np.save, kept, ranker.fit_predict(matrix))


def with_networkx(folder: Path, kept: Path) -> Callable[[], None]:
    """The function of networkx, on a graph of its own."""
    networkx = importlib.import_module("networkx")
    source, target, nodes = _read_edges(folder)
    web = networkx.DiGraph()
    web.add_nodes_from(range(nodes))
    web.add_edges_from(zip(source.tolist(), target.tolist(), strict=True))
    web.remove_edges_from(list(networkx.selfloop_edges(web)))
    # Its tolerance is one for each node.
    found = networkx.pagerank(web, alpha=pagerank.DAMPING, tol=TOLERANCE / nodes, max_iter=MAX_ITERATIONS)
    return partial(np.save, kept, np.array([found[node] for node in range(nodes)]))


def check_equal(found: Path, expected: Path) -> None:
    """Compares kept values.

    Raises:
        RuntimeError: they differ by more than two iterations that stop at the tolerance can.
    """
    difference = float(np.abs(np.load(found) - np.load(expected)).sum())
    most = 2 * TOLERANCE * pagerank.DAMPING / (1 - pagerank.DAMPING)
    if difference > most:
        raise RuntimeError(f"the values differ by {difference:.3g} in all, expected at most {most:.3g}")


def measured(folder: Path, peer: Side, *, quick: bool) -> list[Measurement]:
    """Medians of ours and of a peer, whose values have to be equal.

    Quick runs take less time than importing a peer, so they are measured after one that isn't.
    """
    kept = [folder / "ours.npy", folder / "peer.npy"]
    sides = [
        Prepared(partial(partial, side, folder, path), QUICK_RUNS if quick else 1, warm=quick)
        for side, path in zip((ours, peer), kept, strict=True)
    ]
    medians = interleaved(sides, 1 if quick else REPEATS)
    check_equal(*kept)
    return medians


def run(*, quick: bool = False) -> list[Result]:
    """Runs the comparisons.

    Raises:
        RuntimeError: a peer finds other values.
    """
    large, small = (QUICK_EDGES, QUICK_EDGES) if quick else (EDGES, SMALL_EDGES)
    comparisons: list[tuple[str, Side, int, float, float]] = [
        ("SciPy", with_scipy, large, FETCHED, AIM),
        ("scikit-network", with_scikit_network, large, 1.0, AIM),
        ("networkx", with_networkx, small, FETCHED, NETWORKX_AIM),
    ]
    modules = {"SciPy": "scipy", "scikit-network": "sknetwork", "networkx": "networkx"}
    results = []
    for name, side, count, fetched, aim in comparisons:
        size = f"{count:,} edges of {count // DEGREE:,} nodes to {TOLERANCE:g}"
        if importlib.util.find_spec(modules[name]) is None:
            results.append(without_peer("pagerank", name, aim, f"{name} is not installed"))
            continue
        with tempfile.TemporaryDirectory() as folder:
            write_edges(Path(folder), count, fetched)
            mine, peer = measured(Path(folder), side, quick=quick)
            steps = (Path(folder) / "ours.steps").read_text(encoding="ascii")
        results.append(mine.against(peer, "pagerank", name, aim, f"{size}, {steps} steps", {}))
    return results
