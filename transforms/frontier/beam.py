"""Beam steps of the frontier."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from semrank.transforms.columnar.arrays import MAIN, distinct_rows, int64s
from semrank.transforms.columnar.beam import (
    Collection,
    GatherTables,
    MapTables,
    MergePartitions,
    ReadParquet,
    WritePartitions,
)
from semrank.transforms.columnar.idfilter import IdFilter
from semrank.transforms.context.memory import HARVEST
from semrank.transforms.frontier import budgets, depth, order, recrawl
from semrank.transforms.frontier.budgets import Limits


class WeighChanges(beam.PTransform[Any, Any]):
    """Gives fetched URLs the probability that their page changed since it was fetched.

    The input is a collection of tables of `RANKED_SCHEMA`, the result likewise, with `change_probability`.

    Args:
        page_paths: Parquet files of the pages table.
        history_paths: Parquet files of the history table.
        current: segments of an id filter of the URLs.
        bits: size of the filter.
        partitions: number of partitions of URLs.
        as_of: the moment that counts as now, microseconds since 1970 in UTC, or None for the newest capture.
    """

    def __init__(
        self,
        page_paths: Sequence[str],
        history_paths: Sequence[str],
        *,
        current: Collection,
        bits: int,
        partitions: int,
        as_of: int | None,
    ) -> None:
        super().__init__("weigh changes")
        self._paths, self._current, self._bits = {"pages": page_paths, "history": history_paths}, current, bits
        self._partitions, self._as_of = partitions, as_of

    def expand(self, rows: Collection) -> Collection:
        """Applies the steps."""
        captures = []
        newest = []
        for name, paths in self._paths.items():
            read = rows.pipeline | ReadParquet(f"read captures of {name}", paths, recrawl.COLUMNS)
            captures.append(
                read
                | MapTables(
                    f"choose captures of {name}",
                    recrawl.captures,
                    sides={"segments": self._current},
                    prepare=partial(IdFilter.from_segments, bits=self._bits),
                )
            )
            newest.append(read | MapTables(f"newest capture of {name}", recrawl.newest_capture))
        known = captures | "all captures" >> beam.Flatten()
        ids = rows | MapTables("list URLs", _url_ids)
        counted = {"captures": known, "urls": ids} | MergePartitions(
            "count changes", _change_counts, partitions=self._partitions, key="url_id"
        )
        pooled = {"counts": counted} | GatherTables("add changes", recrawl.pooled_counts)
        now = {"newest": newest | "newest captures" >> beam.Flatten()} | GatherTables(
            "find now", partial(recrawl.moment, as_of=self._as_of)
        )
        return {"rows": rows, "counts": counted} | MergePartitions(  # type: ignore[no-any-return]
            "weigh changes",
            _weighed,
            partitions=self._partitions,
            key="url_id",
            sides={"pooled": pooled, "now": now},
        )


def _url_ids(rows: pa.Table) -> pa.Table:
    return rows.select(["url_id"])


def _change_counts(captures: pa.Table | None, urls: pa.Table | None) -> Iterator[pa.Table]:
    if captures is not None and urls is not None:
        yield recrawl.change_counts(captures, np.sort(int64s(urls["url_id"])))


def _weighed(
    rows: pa.Table | None, counts: pa.Table | None, pooled: pa.Table | None, now: pa.Table | None
) -> Iterator[pa.Table]:
    if rows is not None:
        yield recrawl.with_change_probability(rows, counts, pooled, now)


class HoldToDepth(beam.PTransform[Any, Any]):
    """Marks the rows that are within a depth from the seeds; see `transforms.frontier.depth`.

    The input is a dict with `rows` (`RANKED_SCHEMA`), `links` (all followed links) and `harvested` (the pages that the
    crawl chose, to be broadcast); the result is the rows with a column `depth.WITHIN`.

    Args:
        most: the largest depth.
        partitions: number of partitions of URLs.
    """

    def __init__(self, most: int, *, partitions: int) -> None:
        super().__init__("hold to depth")
        self._most, self._partitions = most, partitions

    def expand(self, inputs: dict[str, Collection]) -> Collection:
        """Applies the steps."""
        reached = inputs["harvested"] | MapTables("start from seeds", depth.seeds_reached)
        links = inputs["links"] | MapTables(
            "choose links of harvest",
            depth.links_of_chosen,
            sides={"harvested": inputs["harvested"]},
            prepare=depth.chosen_ids,
            tags=(MAIN, depth.OUTER),
            holds=HARVEST,
        )
        # The side input of a pass depends on the pass before: Beam's runner in one process would fuse them.
        inner = links[MAIN] | "spread links of harvest" >> beam.Reshuffle()
        for number in range(1, self._most):
            found = inner | MapTables(
                f"follow links to depth {number}",
                partial(depth.found_next, depth=number),
                sides={"reached": reached},
                holds=HARVEST,
            )
            reached = {"reached": reached, "found": found} | GatherTables(
                f"reach depth {number}", partial(depth.with_found, depth=number), holds=HARVEST
            )
        targets = (inner, links[depth.OUTER]) | "all links of harvest" >> beam.Flatten()
        near = (
            reached | MapTables("list reached", depth.reached_ids),
            targets | MapTables("list targets", depth.targets_of_reached, sides={"reached": reached}, holds=HARVEST),
        ) | "all near URLs" >> beam.Flatten()
        return {"rows": inputs["rows"], "near": near} | MergePartitions(  # type: ignore[no-any-return]
            "mark depth", _with_depth, partitions=self._partitions, key="url_id", combine={"near": distinct_rows}
        )


def _with_depth(rows: pa.Table | None, near: pa.Table | None) -> Iterator[pa.Table]:
    if rows is not None:
        yield depth.with_depth(rows, near)


class WriteFrontier(beam.PTransform[Any, Any]):
    """Orders scored URLs, selects within the limits and writes the frontier's files.

    The input is a collection of tables of `RANKED_SCHEMA`; the result is one row a written file.

    Args:
        folder: folder of the frontier's files.
        partitions: number of partitions of the scored URLs.
        limits: what may be selected.
        quality: quality of hosts (`QUALITY_SCHEMA`), which a budget is shared by, or None for equal shares.
        calibrated: a threshold that replaces that of the limits (`CALIBRATED_SCHEMA`), or None.
    """

    def __init__(
        self,
        folder: str,
        *,
        partitions: int,
        limits: Limits,
        quality: Collection | None = None,
        calibrated: Collection | None = None,
    ) -> None:
        super().__init__("order and write frontier")
        self._folder, self._partitions, self._limits, self._quality = folder, partitions, limits, quality
        self._sides = {} if calibrated is None else {"calibrated": calibrated}

    def expand(self, rows: Collection) -> Collection:
        """Applies the steps."""
        rows = self._held_to_caps(rows)
        sample = rows | MapTables("draw from order", order.order_sample, combine=order.order_sample)
        sizes = rows | MapTables("measure frontier", order.frontier_size)
        cuts = {"sample": sample, "sizes": sizes} | GatherTables("cut order", order.range_cuts)
        ranged = rows | MapTables("place in order", order.with_ranges, sides={"cuts": cuts})
        counts = ranged | MapTables("count ranges", order.count_ranges)
        offsets = {"counts": counts} | GatherTables("number ranges", order.range_offsets)
        return {"rows": ranged} | WritePartitions(  # type: ignore[no-any-return]
            "write frontier",
            self._folder,
            partial(order.ranked_rows, limits=self._limits),
            partitions=None,
            key="range",
            sides={"offsets": offsets},
        )

    def _held_to_caps(self, rows: Collection) -> Collection:
        """Rows with `held_back`; see `transforms.frontier.budgets`."""
        limits = self._limits
        if not limits.caps:
            return rows | MapTables(  # type: ignore[no-any-return]
                "mark ineligible", partial(_mark_ineligible, limits=limits), sides=self._sides
            )
        stages: dict[str, Collection] = {}
        left = rows | MapTables(
            "pick eligible",
            partial(_picks, limits=limits),
            sides=self._sides,
        )
        for reason, column, most in (
            (budgets.PER_HOST, "host_id", limits.max_per_host),
            (budgets.PER_DOMAIN, "domain_id", limits.max_per_domain),
        ):
            if most is not None:
                left = stages[reason] = self._best(left, reason, column, most)
        if limits.budget is not None:
            stages[budgets.BUDGET] = self._within_budget(left, limits.budget)
        names = {f"stage{number}": reason for number, reason in enumerate(stages)}
        inputs = {name: stages[reason] for name, reason in names.items()}
        return {"rows": rows, **inputs} | MergePartitions(  # type: ignore[no-any-return]
            "mark held back",
            partial(_mark_held, limits=limits, names=names),
            partitions=self._partitions,
            key="url_id",
            sides=self._sides,
        )

    def _best(self, rows: Collection, reason: str, column: str, most: int) -> Collection:
        best = rows | MapTables(f"best in part for {reason}", partial(_best_rows, column=column, most=most))
        return {"rows": best} | MergePartitions(  # type: ignore[no-any-return]
            f"hold to {reason}",
            partial(_best_rows, column=column, most=most),
            partitions=self._partitions,
            key=column,
        )

    def _within_budget(self, rows: Collection, budget: int) -> Collection:
        counts = rows | MapTables("count eligible of hosts", budgets.pool_counts)
        gathered = {"counts": counts} if self._quality is None else {"counts": counts, "quality": self._quality}
        share = gathered | GatherTables(
            "share budget", partial(budgets.shares, budget=budget, refresh_share=self._limits.refresh_share)
        )
        # No host gets more than the whole budget, so a part need not send more rows of a host.
        best = rows | MapTables("best in part for budget", partial(_best_of_pools, most=budget))
        return {"rows": best} | MergePartitions(  # type: ignore[no-any-return]
            "hold to budget",
            budgets.within_shares,
            partitions=self._partitions,
            key="host_id",
            sides={"share": share},
        )


def _best_rows(rows: pa.Table, *, column: str, most: int) -> pa.Table:
    return budgets.best_of_groups(rows, int64s(rows[column]), most)


def _best_of_pools(rows: pa.Table, *, most: int) -> Iterator[pa.Table]:
    for _, part in _pools(rows):
        yield budgets.best_of_groups(part, int64s(part["host_id"]), most)


def _pools(rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    pool = int64s(rows["pool"])
    for number in (budgets.DISCOVER, budgets.REFRESH):
        yield number, rows.filter(pa.array(pool == number))


def _picks(rows: pa.Table, calibrated: pa.Table | None = None, *, limits: Limits) -> pa.Table:
    return budgets.picks(rows, limits.at(calibrated), domains=limits.max_per_domain is not None)


def _mark_ineligible(rows: pa.Table, calibrated: pa.Table | None = None, *, limits: Limits) -> pa.Table:
    return budgets.mark_held(rows, limits.at(calibrated), {})


def _mark_held(
    rows: pa.Table | None,
    *,
    limits: Limits,
    names: dict[str, str],
    calibrated: pa.Table | None = None,
    **left: pa.Table | None,
) -> Iterator[pa.Table]:
    if rows is not None:
        yield budgets.mark_held(rows, limits.at(calibrated), {reason: left[name] for name, reason in names.items()})
