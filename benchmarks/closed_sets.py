"""Enumerating the concepts of a context, with their extents, against miners of closed sets and FCA libraries.

The peers get their own input form ready made; ours begins with the context's arrays. Pyfim's eclat counts objects and
does not list them. The FCA libraries list extents, and are slow enough to be given only a context's first objects.
"""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from transforms.columnar.arrays import pointers
from transforms.lattice.closed_sets import closed_sets
from transforms.lattice.context import FormalContext

REPEATS = 3
FCA_AIM = 1e-3
"""Share of the time of the libraries for formal concept analysis that are written in Python."""
COMPILED_FCA_AIM = 0.25
"""Share of the time of the one that is written in C++."""


@dataclass(frozen=True)
class Case:
    """A context, and the largest share of eclat's time that each kernel may take.

    Attributes:
        name: of the stored context.
        min_support: least number of objects of a concept.
        aims: by kernel.
        make: a context of like shape, for where the stored one is absent.
    """

    name: str
    min_support: int
    aims: dict[Literal["numba", "numpy"], float]
    make: Callable[[], FormalContext]


def keyword_context(objects: int, keywords: int, seed: int) -> FormalContext:
    """Pages with their best keywords: half from the page's topic, half from everywhere, both by a power law."""
    random = np.random.default_rng(seed)
    shape = (objects, keywords)
    topical = random.integers(0, 150, (objects, 1)) * 200 + 200 * random.random(shape) ** 2
    general = 30_000 + 6_000 * random.random(shape) ** 4
    return _context(np.where(random.random(shape) < 0.5, topical, general).astype(np.int64), 36_000)


def random_context(objects: int, attributes: int, density: float, seed: int) -> FormalContext:
    """Every object holds every attribute with the same probability."""
    table = np.random.default_rng(seed).random((objects, attributes)) < density
    owner, attribute = np.nonzero(table)
    indptr = pointers(np.bincount(owner, minlength=objects))
    return FormalContext(indptr, attribute.astype(np.int32), attributes)


def zipf_context(objects: int, attributes: int, each: int, seed: int) -> FormalContext:
    """Every object holds so many independent attributes, the k-th with weight 1/k."""
    weights = np.cumsum(1 / np.arange(1, attributes + 1))
    draws = np.random.default_rng(seed).random((objects, each)) * weights[-1]
    return _context(np.searchsorted(weights, draws), attributes)


def _context(attributes: np.ndarray[Any, np.dtype[np.int64]], attribute_count: int) -> FormalContext:
    """A context from drawn attributes int64[objects, draws]; what was drawn twice counts once."""
    rows = np.sort(attributes, axis=1)
    kept = np.ones(rows.shape, dtype=np.bool_)
    kept[:, 1:] = rows[:, 1:] != rows[:, :-1]
    return FormalContext(pointers(kept.sum(axis=1)), rows[kept].astype(np.int32), attribute_count)


CASES = (
    Case("A", 1, {"numba": 0.25, "numpy": 0.6}, lambda: keyword_context(4_600, 12, seed=1)),
    Case("C", 1, {"numba": 0.25, "numpy": 1.0}, lambda: keyword_context(4_600, 50, seed=2)),
    Case("R", 1, {"numba": 1.0}, lambda: random_context(500, 60, 0.3, seed=3)),
    Case("Z", 20, {"numba": 1.5}, lambda: zipf_context(200_000, 5_000, 15, seed=4)),
)


def run(contexts: Path | None = None) -> list[dict[str, Any]]:
    """Results of the benchmark: one object for each context, peer and kernel.

    Args:
        contexts: folder with stored contexts (`A.npz`, ...: indptr, indices, attributes); contexts of like shape are
            generated where one is absent.
    """
    results = []
    for case in CASES:
        path = None if contexts is None else contexts / f"{case.name}.npz"
        stored = path is not None and path.is_file()
        context = read_context(path) if path is not None and stored else case.make()
        results += list(_against_eclat(case, context, "stored" if stored else "generated"))
        if case.name == "A":
            results += list(_against_fca(context, "stored" if stored else "generated"))
    return results


def read_context(path: Path) -> FormalContext:
    """A stored context."""
    with np.load(path) as arrays:
        return FormalContext(arrays["indptr"], arrays["indices"], int(arrays["attributes"]))


def _against_eclat(case: Case, context: FormalContext, origin: str) -> Iterator[dict[str, Any]]:
    label = f"{origin} context {case.name} ({_shape(context)}), support >= {case.min_support}"
    fim = _imported("fim")
    rows = [context.row(number).tolist() for number in range(context.object_count)]
    for kernel, aim in case.aims.items():
        if kernel == "numba" and _imported("numba") is None:
            yield _result(case.name, "pyfim eclat", kernel, None, None, aim, f"{label}; Numba is not installed")
            continue
        ours = _Mining(context, case.min_support, kernel)
        peer = None if fim is None else lambda: len(fim.eclat(rows, target="c", supp=-case.min_support, zmin=1))
        ours_s, peer_s, counts = _interleaved(ours, peer, REPEATS)
        note = f"{label}, {counts[0]:,} concepts, ours with {ours.entries:,} extent entries"
        if peer is None:
            note += "; pyfim is not installed"
        elif counts[1] != counts[0]:
            note += f"; the peer found {counts[1]:,}"
        yield _result(case.name, "pyfim eclat", kernel, ours_s, peer_s, aim, note)


def _against_fca(context: FormalContext, origin: str) -> Iterator[dict[str, Any]]:
    for peer, (module, objects, prepare, aim) in FCA_PEERS.items():
        part = context.select_rows(np.arange(min(objects, context.object_count)))
        part = _used_attributes(part)
        label = f"first {part.object_count} objects of the {origin} context A ({_shape(part)})"
        ours = _Mining(part, 1, "numpy")
        if _imported(module) is None:
            yield _result("A", peer, "numpy", None, None, aim, f"{label}; {module} is not installed")
            continue
        ours_s, peer_s, counts = _interleaved(ours, prepare(part), 1)
        ours_s = statistics.median(_timed(ours)[0] for _ in range(REPEATS))
        note = f"{label}, {counts[0]:,} concepts; the peer, which counts top and bottom too, {counts[1]:,}"
        yield _result("A", peer, "numpy", ours_s, peer_s, aim, note)


class _Mining:
    """Our enumeration as a function that returns the number of concepts; keeps that of the extents' entries."""

    def __init__(self, context: FormalContext, min_support: int, kernel: Literal["numba", "numpy"]) -> None:
        self.context, self.min_support = context, min_support
        self.kernel: Literal["numba", "numpy"] = kernel
        self.entries = 0

    def __call__(self) -> int:
        concepts = self.entries = 0
        for batch in closed_sets(self.context, min_support=self.min_support, kernel=self.kernel):
            concepts += len(batch)
            self.entries += len(batch.extent_indices)
        return concepts


def _concepts(part: FormalContext) -> Callable[[], int]:
    context = importlib.import_module("concepts").Context
    table = [tuple(row) for row in _table(part)]
    objects = [f"object {number}" for number in range(part.object_count)]
    attributes = [f"attribute {number}" for number in range(part.attribute_count)]
    return lambda: len(context(objects, attributes, table).lattice)


def _fcapy(part: FormalContext) -> Callable[[], int]:
    construction = importlib.import_module("fcapy.algorithms.concept_construction")
    context = importlib.import_module("fcapy.context").FormalContext(data=_table(part))
    return lambda: len(list(construction.lindig_algorithm(context)))


def _caspailleur(part: FormalContext) -> Callable[[], int]:
    to_bits = importlib.import_module("caspailleur.io").isets2bas
    mining = importlib.import_module("caspailleur.mine_equivalence_classes")
    dual = part.transpose()
    rows, columns = (
        list(to_bits([side.row(number).tolist() for number in range(side.object_count)], side.attribute_count))
        for side in (part, dual)
    )
    return lambda: len(mining.list_intents_via_Lindig(rows, columns))


def _fca_algorithms_cpp(part: FormalContext) -> Callable[[], int]:
    inclose = importlib.import_module("fca_algorithms_cpp").inclose
    table = [[int(held) for held in row] for row in _table(part)]
    objects = [str(number) for number in range(part.object_count)]
    attributes = [str(number) for number in range(part.attribute_count)]
    return lambda: len(inclose(objects, attributes, table))


FCA_PEERS: dict[str, tuple[str, int, Callable[[FormalContext], Callable[[], int]], float]] = {
    "concepts": ("concepts", 400, _concepts, FCA_AIM),
    "fcapy Lindig": ("fcapy", 400, _fcapy, FCA_AIM),
    "caspailleur Lindig": ("caspailleur", 150, _caspailleur, FCA_AIM),
    "fca_algorithms_cpp In-Close": ("fca_algorithms_cpp", 1_200, _fca_algorithms_cpp, COMPILED_FCA_AIM),
}
"""Peer: (module, objects it finishes within seconds, its call, aim)."""


def _used_attributes(part: FormalContext) -> FormalContext:
    """The same objects without the attributes that none of them holds: the peers would carry them along."""
    used = part.supports() > 0
    numbers = np.cumsum(used) - 1
    return FormalContext(part.indptr, numbers[part.indices].astype(np.int32), int(used.sum()))


def _table(part: FormalContext) -> list[list[bool]]:
    table = np.zeros((part.object_count, part.attribute_count), dtype=np.bool_)
    table[np.repeat(np.arange(part.object_count), np.diff(part.indptr)), part.indices] = True
    rows: list[list[bool]] = table.tolist()
    return rows


def _shape(context: FormalContext) -> str:
    return f"{context.object_count:,} x {context.attribute_count:,}, {context.incidence_count:,} incidences"


def _imported(module: str) -> Any | None:
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


def _timed(action: Callable[[], int]) -> tuple[float, int]:
    begin = time.perf_counter()
    count = action()
    return time.perf_counter() - begin, count


def _interleaved(
    ours: Callable[[], int], peer: Callable[[], int] | None, repeats: int
) -> tuple[float, float | None, list[int]]:
    """Median seconds of both, run by turns after one run of ours to warm up, and what each counted."""
    ours()
    seconds: list[list[float]] = [[], []]
    counts = [0, 0]
    for _ in range(repeats):
        for side, action in enumerate((ours, peer)):
            if action is not None:
                took, counts[side] = _timed(action)
                seconds[side].append(took)
    peer_s = statistics.median(seconds[1]) if seconds[1] else None
    return statistics.median(seconds[0]), peer_s, counts


def _result(
    name: str, peer: str, kernel: str, ours_s: float | None, peer_s: float | None, aim: float, note: str
) -> dict[str, Any]:
    ratio = None if ours_s is None or peer_s is None else ours_s / peer_s
    return {
        "name": f"closed_sets {name} {kernel}",
        "peer": peer,
        "ours_s": ours_s,
        "peer_s": peer_s,
        "ratio": ratio,
        "aim": aim,
        "met": None if ratio is None else ratio <= aim,
        "note": note,
    }
