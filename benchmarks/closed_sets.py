"""Enumerating the concepts of a context, with their extents, against miners of closed sets and FCA libraries.

The peers get their own input form ready made; ours begins with the context's arrays. Pyfim's eclat counts objects and
does not list them. The FCA libraries list extents, and are slow enough to be given only a context's first objects.
All are called once before the clock starts, so that nothing is compiled or loaded within, but the FCA libraries.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks.harness import Prepared, Result, interleaved, without_peer
from semrank.transforms.columnar.arrays import pointers
from semrank.transforms.lattice.closed_sets import closed_sets
from semrank.transforms.lattice.context import FormalContext

REPEATS = 3
RUNS, QUICK_RUNS = 3, 15
"""Runs in each process, of which the median counts; small contexts take milliseconds."""
FCA_AIM = 1e-3
"""Share of the time of the libraries for formal concept analysis that are written in Python."""
COMPILED_FCA_AIM = 0.25
"""Share of the time of the one that is written in C++."""


Kernel = Literal["numba", "numpy"]
Source = Callable[[], FormalContext]
"""Gives a context; importable, as each side gets its own in a process of its own."""


@dataclass(frozen=True)
class Case:
    """A context, and the largest share of eclat's time that each kernel may take.

    Attributes:
        name: of the stored context.
        min_support: least number of objects of a concept.
        aims: by kernel.
        make: gives a context of like shape, for where the stored one is absent.
        quick: gives a smaller one.
    """

    name: str
    min_support: int
    aims: dict[Kernel, float]
    make: Source
    quick: Source


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
    Case(
        "A",
        1,
        {"numba": 0.25, "numpy": 0.6},
        partial(keyword_context, 4_600, 12, seed=1),
        partial(keyword_context, 2_000, 12, seed=1),
    ),
    Case(
        "C",
        1,
        {"numba": 0.25, "numpy": 1.0},
        partial(keyword_context, 4_600, 50, seed=2),
        partial(keyword_context, 500, 50, seed=2),
    ),
    Case(
        "R",
        1,
        {"numba": 1.0},
        partial(random_context, 500, 60, 0.3, seed=3),
        partial(random_context, 200, 50, 0.3, seed=3),
    ),
    Case(
        "Z",
        20,
        {"numba": 1.5},
        partial(zipf_context, 200_000, 5_000, 15, seed=4),
        partial(zipf_context, 20_000, 2_000, 15, seed=4),
    ),
)


def run(*, quick: bool = False, contexts: Path | None = None) -> list[Result]:
    """Results of the benchmark: one for each context, peer and kernel.

    Args:
        quick: use small contexts, and run each side once.
        contexts: folder with stored contexts (`A.npz`, ...: indptr, indices, attributes); contexts of like shape are
            generated where one is absent.
    """
    results = []
    for case in CASES:
        path = None if contexts is None else contexts / f"{case.name}.npz"
        stored = path is not None and path.is_file()
        source = partial(read_context, path) if path is not None and stored else case.quick if quick else case.make
        origin = "stored" if stored else "generated"
        results += list(_against_eclat(case, source, origin, *((1, QUICK_RUNS) if quick else (REPEATS, RUNS))))
        if case.name == "A":
            results += list(_against_fca(source, origin, quick=quick))
    return results


def read_context(path: Path) -> FormalContext:
    """A stored context."""
    with np.load(path) as arrays:
        return FormalContext(arrays["indptr"], arrays["indices"], int(arrays["attributes"]))


def _against_eclat(case: Case, source: Source, origin: str, repeats: int, runs: int) -> Iterator[Result]:
    label = f"{origin} context {case.name} ({_shape(source())}), support >= {case.min_support}"
    peer = "pyfim eclat"
    kernels = {kernel: aim for kernel, aim in case.aims.items() if kernel == "numpy" or _installed("numba")}
    sides = [Prepared(partial(prepare_ours, source, case.min_support, kernel), runs) for kernel in kernels]
    if _installed("fim"):
        sides.append(Prepared(partial(prepare_eclat, source, case.min_support), runs))
    measured = interleaved(sides, repeats)
    for (kernel, aim), ours in zip(kernels.items(), measured, strict=False):
        name = f"closed_sets {case.name} {kernel}"
        note = (
            f"{label}, {ours.value['concepts']:,} concepts, ours with {ours.value['extent entries']:,} extent entries"
        )
        if len(measured) == len(kernels):
            note = f"{note}; ours {ours}; pyfim is not installed"
            yield without_peer(name, peer, aim, note, ours.wall_s, counts=ours.value)
            continue
        found = measured[-1].value["concepts"]
        if found != ours.value["concepts"]:
            raise RuntimeError(f"{label}: found {ours.value['concepts']:,} concepts, eclat {found:,}")
        yield ours.against(measured[-1], name, peer, aim, note, ours.value)
    for kernel, aim in case.aims.items():
        if kernel not in kernels:
            yield without_peer(f"closed_sets {case.name} {kernel}", peer, aim, f"{label}; Numba is not installed")


def _against_fca(source: Source, origin: str, *, quick: bool) -> Iterator[Result]:
    for peer, (module, objects, few, _, aim) in FCA_PEERS.items():
        part = partial(first_objects, source, few if quick else objects)
        label = f"first {part().object_count} objects of the {origin} context A ({_shape(part())})"
        name = "closed_sets A numpy"
        if not _installed(module):
            yield without_peer(name, peer, aim, f"{label}; {module} is not installed")
            continue
        sides = [
            Prepared(partial(prepare_ours, part, 1, "numpy"), RUNS),
            Prepared(partial(prepare_fca, peer, part), warm=False),
        ]
        ours, theirs = interleaved(sides, 1)
        found = theirs.value["concepts"]
        note = f"{label}, {ours.value['concepts']:,} concepts; the peer, which counts top and bottom too, {found:,}"
        yield ours.against(theirs, name, peer, aim, note, ours.value)


def prepare_ours(source: Source, min_support: int, kernel: Kernel) -> Callable[[], dict[str, int]]:
    """Our enumeration; gives the numbers of concepts and of entries of their extents."""
    context = source()

    def enumerate_concepts() -> dict[str, int]:
        concepts = entries = 0
        for batch in closed_sets(context, min_support=min_support, kernel=kernel):
            concepts += len(batch)
            entries += len(batch.extent_indices)
        return {"concepts": concepts, "extent entries": entries}

    return enumerate_concepts


def prepare_eclat(source: Source, min_support: int) -> Callable[[], dict[str, int]]:
    """Eclat's enumeration; gives the number of concepts."""
    context, fim = source(), importlib.import_module("fim")
    rows = [context.row(number).tolist() for number in range(context.object_count)]
    return lambda: {"concepts": len(fim.eclat(rows, target="c", supp=-min_support, zmin=1))}


def prepare_fca(peer: str, source: Source) -> Callable[[], dict[str, int]]:
    """The enumeration by one of `FCA_PEERS`; gives the number of concepts."""
    count = FCA_PEERS[peer][3](source())
    return lambda: {"concepts": count()}


def first_objects(source: Source, objects: int) -> FormalContext:
    """A context's first objects with the attributes that any of them holds: the peers would carry the others along."""
    context = source()
    part = context.select_rows(np.arange(min(objects, context.object_count)))
    used = part.supports() > 0
    numbers = np.cumsum(used) - 1
    return FormalContext(part.indptr, numbers[part.indices].astype(np.int32), int(used.sum()))


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
    table = np.array(_table(part))
    rows, columns = (
        list(to_bits([np.flatnonzero(row).tolist() for row in side], side.shape[1])) for side in (table, table.T)
    )
    return lambda: len(mining.list_intents_via_Lindig(rows, columns))


def _fca_algorithms_cpp(part: FormalContext) -> Callable[[], int]:
    inclose = importlib.import_module("fca_algorithms_cpp").inclose
    table = [[int(held) for held in row] for row in _table(part)]
    objects = [str(number) for number in range(part.object_count)]
    attributes = [str(number) for number in range(part.attribute_count)]
    return lambda: len(inclose(objects, attributes, table))


FCA_PEERS: dict[str, tuple[str, int, int, Callable[[FormalContext], Callable[[], int]], float]] = {
    "concepts": ("concepts", 400, 100, _concepts, FCA_AIM),
    "fcapy Lindig": ("fcapy", 400, 100, _fcapy, FCA_AIM),
    "caspailleur Lindig": ("caspailleur", 150, 60, _caspailleur, FCA_AIM),
    "fca_algorithms_cpp In-Close": ("fca_algorithms_cpp", 1_200, 300, _fca_algorithms_cpp, COMPILED_FCA_AIM),
}
"""Peer: (module, objects it finishes within seconds, and within one second, its call, aim)."""


def _table(part: FormalContext) -> list[list[bool]]:
    table = np.zeros((part.object_count, part.attribute_count), dtype=np.bool_)
    table[np.repeat(np.arange(part.object_count), np.diff(part.indptr)), part.indices] = True
    rows: list[list[bool]] = table.tolist()
    return rows


def _shape(context: FormalContext) -> str:
    return f"{context.object_count:,} x {context.attribute_count:,}, {len(context.indices):,} incidences"


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None
