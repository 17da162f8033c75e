"""Which URLs a round selects: caps of hosts and domains, a budget shared among hosts, and among new and known pages.

A URL is eligible if it is on the public web and inside the scope (`rules`), its page is not gone, it is new or known
pages are allowed, and its score is above the threshold, if there is one. The caps apply to eligible URLs in this order:
the best of each host, of these the best of each registrable domain, of these each host's share of the budget. Best
means first in the frontier's order. Each cap is exact on a cluster: a part sends only its best rows of each group,
since no other row of it can be among the best of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from publicsuffixlist import PublicSuffixList

from semrank.schemas.tables import GONE_STATUSES
from semrank.transforms.columnar.arrays import (
    Float64s,
    Int64s,
    bools,
    column_array,
    group_starts,
    int64s,
    members,
    optional_int64s,
    places_in_groups,
    positions,
    row_keys,
    sum_rows,
)
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.frontier.depth import WITHIN
from semrank.transforms.frontier.private import PRIVATE_ADDRESS, private_urls
from semrank.transforms.frontier.rules import EVERYWHERE, FILTER, Rules

DISCOVER, REFRESH = 0, 1
"""Pools of a budget: pages that were never fetched, and those that were."""

THRESHOLD, GONE, KNOWN = "threshold", "gone", "known"
PER_HOST, PER_DOMAIN, BUDGET = "max-per-host", "max-per-domain", "budget"
DEEPER = f"{FILTER}:max-depth"
"""Why a URL is held back."""

PICK_SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.int64()) for name in ("host_id", "domain_id", "pool", "url_id")),
        pa.field("priority", pa.float64()),
        pa.field("url", pa.string()),
    ]
)
"""An eligible URL."""

POOL_SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("host_id", "pool", "urls")])
"""Number of a host's eligible URLs in a pool after the caps, or its share of the budget."""

"""Quality of hosts, above 0; shares of the budget are proportional to it."""


@dataclass(frozen=True)
class Limits:
    """What a round may select.

    Attributes:
        threshold: only scores above it are selected; None for no threshold.
        max_urls: largest number of URLs, or None.
        max_per_host: largest number of URLs of a host, or None.
        max_per_domain: largest number of URLs of a registrable domain, or None.
        budget: number of URLs to select, shared among hosts, or None.
        refresh_share: share of `budget` or `max_urls` for pages that were fetched before, or None to select by rank
            only; what one pool does not use is given to the other.
        known: whether pages with a known time of fetch may be selected.
        private: whether URLs of the crawler's own network may be selected.
        rules: the scope of the crawl.
    """

    threshold: float | None
    max_urls: int | None = None
    max_per_host: int | None = None
    max_per_domain: int | None = None
    budget: int | None = None
    refresh_share: float | None = None
    known: bool = True
    private: bool = True
    rules: Rules = EVERYWHERE

    def at(self, calibrated: pa.Table | None) -> Limits:
        """The limits with the threshold of a table of `CALIBRATED_SCHEMA`, if it has one."""
        threshold = None if calibrated is None else calibrated["threshold"][0].as_py()
        return self if threshold is None else replace(self, threshold=threshold)

    @property
    def caps(self) -> bool:
        """Whether URLs compete within hosts or domains."""
        return self.max_per_host is not None or self.max_per_domain is not None or self.budget is not None


def priority(rows: pa.Table) -> Float64s:
    """The key of the frontier's order: the score, for refreshes times the probability that the page changed."""
    return np.asarray(
        pc.multiply(rows["score"], pc.fill_null(rows["change_probability"], 1.0)).to_numpy(), dtype=np.float64
    )


def rank_order(value: Float64s, url: pa.Array | pa.ChunkedArray) -> Int64s:
    """Row numbers in rank order: highest value first, ties by URL ascending; int64[n]."""
    keys = pa.table({"value": value, "url": url})
    return int64s(pc.sort_indices(keys, sort_keys=[("value", "descending"), ("url", "ascending")]).cast(pa.int64()))


def pools(rows: pa.Table) -> Int64s:
    """`DISCOVER` or `REFRESH` of each row, int64[n]."""
    return bools(rows["fetched"]).astype(np.int64)


def is_dated(rows: pa.Table) -> pa.Array:
    """Whether the snapshot has the time when each page was fetched, bool[n].

    A page without a time comes from a collection. It is unknown whether the crawl has it, so it may be selected.
    """
    return column_array(pc.is_valid(rows["last_fetched_at"]))


def first_reasons(rows: pa.Table, limits: Limits) -> pa.Array:
    """Why a row is not eligible, string[n]; null if it is."""
    reasons = pa.nulls(rows.num_rows, pa.string())
    if limits.threshold is not None:
        reasons = pc.if_else(pc.less_equal(rows["score"], limits.threshold), THRESHOLD, reasons)
    if not limits.known:
        reasons = pc.if_else(is_dated(rows), KNOWN, reasons)
    gone = pc.is_in(rows["status"], value_set=pa.array(GONE_STATUSES, pa.int16()))
    outside: Any = limits.rules.reasons(rows["url"], rows["host"])
    if WITHIN in rows.column_names:
        outside = pc.coalesce(outside, pc.if_else(rows[WITHIN], None, DEEPER))
    reasons = pc.coalesce(column_array(outside), column_array(pc.if_else(gone, GONE, reasons)))
    if not limits.private:
        reasons = pc.if_else(private_urls(rows["url"]), PRIVATE_ADDRESS, reasons)
    return column_array(reasons)


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()


def domains_of(hosts: pa.Array) -> pa.Array:
    """The registrable domain of each host by the public suffix list, or the host itself if it has none, string[n]."""
    encoded = column_array(hosts).dictionary_encode()
    suffixes = _suffixes()
    names = [
        host if _is_address(host) else suffixes.privatesuffix(host) or host for host in encoded.dictionary.to_pylist()
    ]
    return pa.array(names, pa.string()).take(encoded.indices)


def _is_address(host: str) -> bool:
    """Whether a canonical host is an IP address: only those are in brackets or end in a number."""
    return host.startswith("[") or host[-1:].isdigit()


def picks(rows: pa.Table, limits: Limits, *, domains: bool) -> pa.Table:
    """The eligible rows of a part, a table of `PICK_SCHEMA`.

    Args:
        rows: a table of `RANKED_SCHEMA`, perhaps with `depth.WITHIN`.
        limits: what may be selected.
        domains: whether domains are wanted; else `domain_id` is the host's.
    """
    kept = rows.filter(pc.is_null(first_reasons(rows, limits)))
    hosts = column_array(kept["host"])
    host_ids = text_ids(hosts)
    domain_ids = text_ids(domains_of(hosts)) if domains else host_ids
    return pa.table(
        [host_ids, domain_ids, pools(kept), kept["url_id"], priority(kept), kept["url"]], schema=PICK_SCHEMA
    )


def best_of_groups(rows: pa.Table, group: Int64s, limit: int | Int64s) -> pa.Table:
    """The best rows of each group.

    Args:
        rows: a table of `PICK_SCHEMA`.
        group: group of each row, int64[n].
        limit: number of rows of a group, one for all groups or one for each row's group.
    """
    order = rank_order(rows["priority"].to_numpy(), rows["url"])
    order = order[np.argsort(group[order], kind="stable")]
    place = places_in_groups(group_starts(group[order]), len(order))
    return rows.take(pa.array(order[place < (limit if isinstance(limit, int) else limit[order])]))


def pool_counts(rows: pa.Table) -> pa.Table:
    """Eligible URLs of each host and pool, a table of `POOL_SCHEMA`; counts of parts add up."""
    ones = rows.select(["host_id", "pool"]).append_column("urls", pa.array(np.ones(rows.num_rows, dtype=np.int64)))
    return _added(ones)


def _added(counts: pa.Table) -> pa.Table:
    summed = counts.group_by(["host_id", "pool"]).aggregate([("urls", "sum")])
    return summed.rename_columns(POOL_SCHEMA.names).sort_by([("host_id", "ascending"), ("pool", "ascending")])


def shares(
    counts: pa.Table | None, quality: pa.Table | None = None, *, budget: int, refresh_share: float | None
) -> pa.Table:
    """The shares of each host and pool in the budget, a table of `POOL_SCHEMA`.

    A host's share of a pool is proportional to its quality, and at most its number of URLs; the rest is shared among
    the others in the same way. Shares are whole: the largest remainders are rounded up, ties by host id. They add up
    to the budget if there are enough eligible URLs.

    Args:
        counts: results of `pool_counts`.
        quality: quality of hosts (`QUALITY_SCHEMA`), or None if all are equal; missing hosts have the lowest.
        budget: number of URLs.
        refresh_share: see `Limits`; None for a single pool.
    """
    if counts is None:
        return POOL_SCHEMA.empty_table()
    counts = _added(counts)
    pool = int64s(counts["pool"])
    host, available = int64s(counts["host_id"]), int64s(counts["urls"])
    paid = np.zeros(len(host), dtype=np.int64)
    weight = _qualities(host, quality)
    if refresh_share is None:
        # The two pools of a host are one: the best URLs of either are taken.
        hosts, together = sum_rows([host], available)
        share = proportional_shares(together, _qualities(hosts, quality), budget)
        return pa.table([hosts, np.full(len(hosts), -1, dtype=np.int64), share], schema=POOL_SCHEMA)
    totals = np.bincount(pool, weights=available, minlength=2).astype(np.int64)
    quotas = pool_quotas(totals.tolist(), budget, refresh_share)
    for kind, quota in ((DISCOVER, quotas[0]), (REFRESH, quotas[1])):
        of_pool = pool == kind
        paid[of_pool] = proportional_shares(available[of_pool], weight[of_pool], quota)
    return pa.table([host, pool, paid], schema=POOL_SCHEMA)


def pool_quotas(available: list[int], budget: int, refresh_share: float) -> tuple[int, int]:
    """Numbers of URLs to discover and to refresh: the shares of a budget, with what the other pool can't use."""
    refresh = min(round(budget * refresh_share), available[REFRESH])
    discover = min(budget - refresh, available[DISCOVER])
    return discover, min(budget - discover, available[REFRESH])


def _qualities(host: Int64s, quality: pa.Table | None) -> Float64s:
    if quality is None or not quality.num_rows:
        return np.ones(len(host))
    quality = quality.sort_by("host_id").combine_chunks()
    values = np.asarray(quality["quality"].to_numpy(), dtype=np.float64)
    place = positions(int64s(quality["host_id"]), host)
    lowest = float(values.min())
    return np.where(place >= 0, values[np.maximum(place, 0)], lowest)


def proportional_shares(available: Int64s, weight: Float64s, budget: int) -> Int64s:
    """Whole shares of a budget in proportion to weights, none above what is available; int64[n].

    They add up to the smaller of the budget and all that is available.
    """
    if budget >= int(available.sum()):
        return available.copy()
    # Hosts are in the order in which they reach their limit as the level rises; the first ones are full.
    order = np.argsort(available / weight, kind="stable")
    full = np.concatenate([[0], np.cumsum(available[order])])[:-1]
    open_weight = np.cumsum(weight[order][::-1])[::-1]
    level = (budget - full) / open_weight
    fits = level * weight[order] < available[order]
    first = int(np.argmax(fits)) if fits.any() else len(order)
    exact = available.astype(np.float64)
    exact[order[first:]] = level[min(first, len(order) - 1)] * weight[order[first:]]
    share = np.minimum(np.floor(exact + 1e-9).astype(np.int64), available)
    missing = budget - int(share.sum())
    room = np.flatnonzero(share < available)
    remainder = exact[room] - share[room]
    share[room[np.argsort(-np.round(remainder, 9), kind="stable")[:missing]]] += 1
    return share


def within_shares(rows: pa.Table, share: pa.Table | None) -> pa.Table:
    """The rows within the budget, of all rows of the hosts that occur in it.

    Args:
        rows: a table of `PICK_SCHEMA`.
        share: result of `shares`.
    """
    if share is None or not share.num_rows:
        return PICK_SCHEMA.empty_table()
    host, pool = int64s(rows["host_id"]), int64s(rows["pool"])
    if int64s(share["pool"])[0] < 0:
        pool = np.full(len(pool), -1, dtype=np.int64)
    keys = row_keys(np.concatenate([int64s(share["host_id"]), host]), np.concatenate([int64s(share["pool"]), pool]))
    number = np.unique(keys, return_inverse=True)[1]
    paid = np.zeros(int(number.max()) + 1, dtype=np.int64)
    paid[number[: share.num_rows]] = int64s(share["urls"])
    group = number[share.num_rows :].astype(np.int64)
    return best_of_groups(rows, group, paid[group])


def mark_held(rows: pa.Table, limits: Limits, stages: Mapping[str, pa.Table | None]) -> pa.Table:
    """Rows with a column `held_back`: why a URL can't be selected, null if it can.

    Args:
        rows: rows of a partition by `url_id`, a table of `RANKED_SCHEMA`.
        limits: what may be selected.
        stages: reason -> the picks of the partition that its cap left, in the order of the caps.
    """
    reasons: Any = first_reasons(rows, limits)
    ids = int64s(rows["url_id"])
    for reason, left in stages.items():
        passed = np.sort(optional_int64s(left, "url_id"))
        dropped = pa.array(~members(passed, ids))
        reasons = pc.if_else(pc.and_(pc.is_null(reasons), dropped), reason, reasons)
    return rows.append_column("held_back", column_array(reasons).cast(pa.string()))
