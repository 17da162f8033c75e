"""Beam steps of the frontier."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import apache_beam as beam
import pyarrow as pa

from transforms.columnar.steps import Collection, GatherTables, MapTables, MergePartitions, WritePartitions
from transforms.frontier import order


class WriteFrontier(beam.PTransform[Any, Any]):
    """Orders scored URLs, selects within the budgets and writes the frontier's files.

    The input is a collection of tables of `RANKED_SCHEMA`; the result is one row a written file.

    Args:
        folder: folder of the frontier's files.
        partitions: number of partitions of the scored URLs.
        threshold: gamma; only a score above it is selected.
        max_urls: most URLs that are selected, or None.
        max_per_host: most URLs of one host that are selected, or None.
    """

    def __init__(
        self, folder: str, *, partitions: int, threshold: float, max_urls: int | None, max_per_host: int | None
    ) -> None:
        super().__init__("order and write frontier")
        self._folder, self._partitions, self._threshold = folder, partitions, threshold
        self._max_urls, self._max_per_host = max_urls, max_per_host

    def expand(self, rows: Collection) -> Collection:
        """Applies the steps."""
        if self._max_per_host is not None:
            rows = self._within_host_budgets(rows, self._max_per_host)
        sample = rows | MapTables("draw from order", order.order_sample)
        sizes = rows | MapTables("measure frontier", order.frontier_size)
        cuts = {"sample": sample, "sizes": sizes} | GatherTables("cut order", order.range_cuts)
        ranged = rows | MapTables("place in order", order.with_ranges, sides={"cuts": cuts})
        counts = ranged | MapTables("count ranges", partial(order.count_ranges, threshold=self._threshold))
        offsets = {"counts": counts} | GatherTables("number ranges", order.range_offsets)
        return {"rows": ranged} | WritePartitions(  # type: ignore[no-any-return]
            "write frontier",
            self._folder,
            partial(order.ranked_rows, threshold=self._threshold, max_urls=self._max_urls),
            partitions=None,
            key="range",
            sides={"offsets": offsets},
        )

    def _within_host_budgets(self, rows: Collection, max_per_host: int) -> Collection:
        best = rows | MapTables(
            "best of hosts in part",
            partial(order.host_budget_rows, threshold=self._threshold, max_per_host=max_per_host),
        )
        allowed = {"rows": best} | MergePartitions(
            "best of hosts",
            partial(_best_of_hosts, max_per_host=max_per_host),
            partitions=self._partitions,
            key="host_id",
        )
        inputs: Mapping[str, Collection] = {"rows": rows, "allowed": allowed}
        return inputs | MergePartitions(  # type: ignore[no-any-return]
            "mark host budgets", _mark_budget, partitions=self._partitions, key="url_id"
        )


def _best_of_hosts(_: int, rows: pa.Table, *, max_per_host: int) -> pa.Table:
    return order.best_of_hosts(rows, max_per_host)


def _mark_budget(_: int, rows: pa.Table | None, allowed: pa.Table | None) -> pa.Table:
    return order.mark_budget(rows, allowed)
