"""Runs `semrank rank` and returns what each stage held at the most."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pyarrow as pa
import scipy.sparse.csgraph  # noqa: F401  imported before: a stage is not charged for modules that it imports first

from semrank.pipelines import rank, runtime  # noqa: F401  imported once for all processes that are forked from one
from semrank.pipelines.cli import main
from semrank.transforms.columnar import beam as columnar_beam

POOLS: list[pa.MemoryPool] = []
PEAKS: dict[str, dict[str, Any]] = {}


@contextmanager
def measuring(stage: Any, tables: dict[str, int]) -> Iterator[None]:
    """Notes what Arrow and Python (NumPy's arrays, bytes that were read) hold at the most within, and the formula."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    POOLS.append(pool)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        yield
    finally:
        peak = tracemalloc.get_traced_memory()[1] + (pool.max_memory() or 0)
        tracemalloc.stop()
        pa.set_memory_pool(before)
        name = stage._stage
        if name not in PEAKS or PEAKS[name]["peak"] < peak:
            PEAKS[name] = {"peak": peak, "tables": tables, "held": stage.holds.held_bytes(tables)}


def counted(parts: Iterable[pa.Table], name: str, tables: dict[str, int]) -> Iterator[pa.Table]:
    for part in parts:
        tables[name] = tables.get(name, 0) + part.nbytes
        yield part


_begin: Callable[..., Any] = columnar_beam._StageDoFn._begin
_gather: Callable[..., Any] = columnar_beam._GatherDoFn._results


def measured_begin(stage: Any, sides: Any) -> Any:
    """What a stage holds while it makes itself ready."""
    if stage._broadcast is not None or tracemalloc.is_tracing() or not stage._side_names:
        return _begin(stage, sides)
    tables: dict[str, int] = {}
    with measuring(stage, tables):
        named = zip(stage._side_names, sides, strict=True)
        return _begin(stage, [counted(side, name, tables) for name, side in named])


def measured_gather(stage: Any, element: int, sides: Any) -> Any:
    """What a stage that gathers holds until it is done."""
    tables: dict[str, int] = {}
    with measuring(stage, tables):
        named = zip(stage._side_names, sides, strict=True)
        return list(_gather(stage, element, [counted(side, name, tables) for name, side in named]))


def peaks_of_round(arguments: list[str]) -> dict[str, dict[str, Any]]:
    """Bytes that each stage of a round held at the most, and those of its formula.

    For a process of its own, since what Arrow gave out must not outlive the pools that counted it.
    """
    with (
        mock.patch.object(columnar_beam._StageDoFn, "_begin", measured_begin),
        mock.patch.object(columnar_beam._GatherDoFn, "_results", measured_gather),
    ):
        assert main(["rank", *arguments]) == 0
    return PEAKS
