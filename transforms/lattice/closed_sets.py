"""Exact enumeration of the formal concepts of a context.

Every concept belongs to the rarest attribute of its intent (ties by attribute number), so the lattice is a disjoint
union over attributes, and what belongs to one attribute can be found from the rows of the objects that hold it. The
search itself is in `closed_sets_numpy` and, compiled, in `closed_sets_numba`.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Iterator
from typing import Literal, get_args

import numpy as np

from semrank.transforms.columnar.arrays import Int64s
from semrank.transforms.lattice import closed_sets_numpy
from semrank.transforms.lattice.attributes import AttributeOrder
from semrank.transforms.lattice.bundles import Bundle
from semrank.transforms.lattice.context import Concepts, FormalContext
from semrank.transforms.lattice.search_space import RankedConcepts, RankedContext, RankedRows, SearchSpace

Kernel = Literal["auto", "numpy", "numba"]

BATCH_SIZE = 1 << 14
"""Concepts of a batch unless the caller wants another number."""

BATCH_ENTRIES = 1 << 20
"""A batch ends when its extents have so many entries (4 MiB)."""

COMPILED_WORK = 30e6
"""Predicted work from which the compiled kernel pays: NumPy takes some 3 s for it, importing Numba and reading machine
code from the disk 1 s; compiling for the first time 6 s."""

LOADED_WORK = 1e5
"""The same where the compiled kernel is loaded already."""

MATRIX_WORDS = 1 << 23
"""Words (64 MiB) up to which the columns of one rank are searched as a whole; beyond, pairs of ranks are."""

_COMPILED_MODULE = "semrank.transforms.lattice.closed_sets_numba"


def closed_sets(
    context: FormalContext | RankedContext,
    *,
    min_support: int | None = None,
    order: AttributeOrder | None = None,
    bundle: Bundle | None = None,
    kernel: Kernel = "auto",
    batch_size: int = BATCH_SIZE,
) -> Iterator[Concepts]:
    """All concepts with a non-empty intent and at least `min_support` objects, each once.

    The top concept is among them if some attribute is held by all objects (`enumeration_yields_top`); otherwise its
    intent is empty. A bottom concept without objects never is.

    Args:
        context: the context, or the part of it that the bundle needs (`conditional_rows`); as a `RankedContext` it is
            prepared once for many bundles, and holds its order.
        min_support: least number of objects of a concept; that of the order, or 1, when not given.
        order: order of the whole context; needed whenever `context` is a part. Made from the context when not given.
        bundle: which concepts; all when not given.
        kernel: "numpy", "numba" (needs the optional dependency), or "auto": the one predicted to be faster.
        batch_size: largest number of concepts of a batch.

    Yields:
        Batches in no promised order; the union is the same for both kernels and any partition into bundles.

    Raises:
        ValueError: an argument is out of range, or contradicts the order.
        ModuleNotFoundError: the compiled kernel is demanded and Numba is not installed.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}, expected at least 1")
    if kernel not in get_args(Kernel):
        raise ValueError(f"kernel is {kernel!r}, expected one of {', '.join(get_args(Kernel))}")
    ranked = _ranked(context, min_support, order)
    if bundle is None:
        bundle = Bundle((), 0, len(ranked.order))
    if bundle.stop > len(ranked.order):
        raise ValueError(f"{bundle} reaches beyond the {len(ranked.order)} ranks of the order")
    # The choice is for the whole context: after one bundle of it others are usually mined too.
    chosen = choose_kernel(ranked.predicted_work) if kernel == "auto" else kernel
    yield from _rebatched(_mine(ranked, bundle, chosen == "numba", batch_size), batch_size)


def _ranked(
    context: FormalContext | RankedContext, min_support: int | None, order: AttributeOrder | None
) -> RankedContext:
    """The context with its order, once all arguments agree."""
    if isinstance(context, RankedContext):
        if order is not None and order is not context.order:
            raise ValueError("an order found besides that of the prepared context, expected only the latter")
        order = context.order
    elif order is None:
        order = AttributeOrder.of(context.supports(), 1 if min_support is None else min_support)
    if min_support is not None and min_support != order.min_support:
        raise ValueError(f"min_support is {min_support}, the order's is {order.min_support}; expected the same")
    return context if isinstance(context, RankedContext) else RankedContext.of(context, order)


def choose_kernel(work: float) -> Literal["numpy", "numba"]:
    """The kernel that should be faster for all the work of a process, see `predicted_work`."""
    if importlib.util.find_spec("numba") is None:
        return "numpy"
    return "numba" if work >= (LOADED_WORK if _COMPILED_MODULE in sys.modules else COMPILED_WORK) else "numpy"


def _mine(ranked: RankedContext, bundle: Bundle, compiled: bool, batch_size: int) -> Iterator[Concepts]:
    """The concepts of a bundle; ranks with columns too large are split by pairs, with a stack of prefixes."""
    unmined = [bundle]
    while unmined:
        part = unmined.pop()
        rows, row_numbers = ranked.rows.condition(part.prefix) if part.prefix else (ranked.rows, None)
        if part.owns_prefix:
            yield from (ranked.concepts(found, row_numbers, part.prefix) for found in _prefix_concept(rows))
        start = part.start
        for heavy in [*_heavy_ranks(rows, part, compiled).tolist(), part.stop]:
            for found in _closed_sets_of_rows(rows, start, heavy, compiled, batch_size):
                yield ranked.concepts(found, row_numbers, part.prefix)
            start = heavy + 1
            if heavy < part.stop:
                unmined.append(Bundle((*part.prefix, heavy), heavy + 1, len(ranked.order)))


def _prefix_concept(rows: RankedRows) -> Iterator[RankedConcepts]:
    """The concept of all rows if they have no rank in common, all of them holding the prefix."""
    in_all = np.diff(rows.columns[0]) == rows.row_count
    if rows.row_count and rows.weights.sum() >= rows.min_support and not in_all.any():
        everything = np.arange(rows.row_count, dtype=np.int32)
        yield RankedConcepts(_span(rows.row_count), everything, _span(0), np.zeros(0, dtype=np.int32))


def _closed_sets_of_rows(
    rows: RankedRows, start: int, stop: int, compiled: bool, batch_size: int
) -> Iterator[RankedConcepts]:
    """The concepts whose least rank is in [start, stop)."""
    lone = rows.lone_rows(start, stop)
    for first in range(0, len(lone), batch_size):
        chosen = rows.select(lone[first : first + batch_size])
        one_each = np.arange(chosen.row_count + 1, dtype=np.int64)
        rows_found = lone[first : first + batch_size].astype(np.int32)
        yield RankedConcepts(one_each, rows_found, chosen.indptr, chosen.ranks)
    if start < stop:
        yield from _search(rows.search_space, start, stop, compiled, batch_size)


def _search(space: SearchSpace, start: int, stop: int, compiled: bool, batch_size: int) -> Iterator[RankedConcepts]:
    if not compiled:
        return closed_sets_numpy.closed_sets(space, start, stop)
    # Numba is optional, and its import takes half a second.
    from semrank.transforms.lattice import closed_sets_numba

    return closed_sets_numba.closed_sets(space, start, stop, min(batch_size, BATCH_ENTRIES))


def _heavy_ranks(rows: RankedRows, part: Bundle, compiled: bool) -> Int64s:
    """Ranks of a bundle whose columns might take more than `MATRIX_WORDS`."""
    every_item, items_above = rows.column_words
    # Only the compiled kernel leaves out columns.
    words = np.where(rows.sparse, items_above, every_item) if compiled else every_item
    return part.start + np.flatnonzero(words[part.start : part.stop] > MATRIX_WORDS)


def _rebatched(batches: Iterable[Concepts], batch_size: int) -> Iterator[Concepts]:
    """The same concepts in batches that are neither tiny nor larger than wanted."""
    gathered: list[Concepts] = []
    concepts = entries = 0
    for batch in batches:
        for piece in _pieces(batch, batch_size):
            if gathered and (concepts + len(piece) > batch_size or entries + len(piece.extent_indices) > BATCH_ENTRIES):
                yield Concepts.concatenate(gathered)
                gathered, concepts, entries = [], 0, 0
            gathered.append(piece)
            concepts += len(piece)
            entries += len(piece.extent_indices)
    if gathered:
        yield Concepts.concatenate(gathered)


def _pieces(batch: Concepts, batch_size: int) -> Iterator[Concepts]:
    """Slices of a batch within the limits; a concept whose extent alone is beyond them is a slice of its own."""
    start = 0
    while start < len(batch):
        within = int(np.searchsorted(batch.extent_indptr, batch.extent_indptr[start] + BATCH_ENTRIES, side="right")) - 1
        stop = min(max(start + 1, within), start + batch_size, len(batch))
        yield batch.slice(start, stop)
        start = stop


def _span(length: int) -> Int64s:
    """Pointers of one row."""
    return np.array([0, length], dtype=np.int64)
