"""Caps and budgets against selections made URL by URL."""

from __future__ import annotations

import itertools
import tempfile
from collections import Counter
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from semrank.pipelines.runtime import beam_options
from semrank.schemas.tables import RANKED_SCHEMA
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.frontier import budgets
from semrank.transforms.frontier.beam import WriteFrontier
from semrank.transforms.frontier.budgets import Limits, proportional_shares
from semrank.transforms.ranking.scores import QUALITY_SCHEMA
from tests.support.strategies import choices

HOSTS = ("a.example.co.uk", "b.example.co.uk", "example.co.uk", "c.example", "192.0.2.1")
DOMAINS = {**dict.fromkeys(HOSTS[:3], "example.co.uk"), "c.example": "c.example", "192.0.2.1": "192.0.2.1"}
THRESHOLD = 0.4

SCORES = [0.0, 0.4, 0.5, 0.7, 1.0]
TIMES = [None, datetime(2024, 1, 1, tzinfo=UTC)]
FETCHED = list(itertools.product([None, 200, 404, 410], TIMES, [None, 0.0, 0.25, 1.0], [True]))
ROWS = list(itertools.product(HOSTS, SCORES))
UNFETCHED = (None, None, None, False)


@st.composite
def frontiers(draw: st.DrawFn) -> list[dict[str, Any]]:
    own = draw(choices(ROWS, 0, 30))
    # As many URLs are fetched as not.
    fetches = draw(choices([*FETCHED, *[UNFETCHED] * len(FETCHED)], len(own), len(own)))
    return [
        {
            "url": f"https://{host}/{number}",
            "host": host,
            "score": score,
            "fetched": fetched,
            "status": status,
            "last_fetched_at": time,
            "change_probability": chance,
        }
        for number, ((host, score), (status, time, chance, fetched)) in enumerate(zip(own, fetches, strict=True))
    ]


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    rest = {"extension": 0.0, "intension": 0.0, "base_links": 0, "base_clicks": 0, "matches": [], "reasons": []}
    ids = text_ids(pa.array([row["url"] for row in rows], pa.string())).tolist() if rows else []
    rows = [{**rest, **row, "url_id": number} for row, number in zip(rows, ids, strict=True)]
    return pa.Table.from_pylist(rows, schema=RANKED_SCHEMA)


def value(row: dict[str, Any]) -> float:
    return float(row["score"] * (1.0 if row["change_probability"] is None else row["change_probability"]))


def best_first(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (-value(row), row["url"]))


def held_to(rows: list[dict[str, Any]], key: Any, most: Any) -> list[dict[str, Any]]:
    taken: Counter[Any] = Counter()
    left = []
    for row in best_first(rows):
        limit = most[key(row)] if isinstance(most, dict) else most
        if taken[key(row)] < limit:
            taken[key(row)] += 1
            left.append(row)
    return left


def quotas(rows: list[dict[str, Any]], most: int, refresh_share: float) -> dict[bool, int]:
    known = sum(row["fetched"] for row in rows)
    refresh = min(round(most * refresh_share), known)
    discover = min(most - refresh, len(rows) - known)
    return {False: discover, True: min(most - discover, known)}


def selected_plainly(rows: list[dict[str, Any]], limits: Limits, quality: dict[str, float]) -> dict[str, str | None]:
    """Why each URL is held back."""
    held: dict[str, str | None] = {}
    left = []
    for row in rows:
        known = row["last_fetched_at"] is not None and not limits.known
        low = limits.threshold is not None and row["score"] <= limits.threshold
        gone = row["status"] in (404, 410)
        held[row["url"]] = "gone" if gone else "known" if known else "threshold" if low else None
        if held[row["url"]] is None:
            left.append(row)

    def hold(reason: str, kept: list[dict[str, Any]]) -> list[dict[str, Any]]:
        urls = {row["url"] for row in kept}
        for row in left:
            if row["url"] not in urls:
                held[row["url"]] = reason
        return kept

    if limits.max_per_host is not None:
        left = hold("max-per-host", held_to(left, lambda row: row["host"], limits.max_per_host))
    if limits.max_per_domain is not None:
        left = hold("max-per-domain", held_to(left, lambda row: DOMAINS[row["host"]], limits.max_per_domain))
    share = limits.refresh_share
    if limits.budget is not None:

        def pool(row: dict[str, Any]) -> bool | None:
            return None if share is None else row["fetched"]

        sizes = {None: limits.budget} if share is None else quotas(left, limits.budget, share)
        paid = {}
        for number, quota in sizes.items():
            available = Counter(row["host"] for row in left if pool(row) == number)
            for host, count in shares_plainly(available, quality, quota).items():
                paid[host, number] = count
        left = hold("budget", held_to(left, lambda row: (row["host"], pool(row)), paid))
    if limits.max_urls is not None:
        if share is None:
            left = hold("max-urls", best_first(left)[: limits.max_urls])
        else:
            left = hold("max-urls", held_to(left, lambda row: row["fetched"], quotas(left, limits.max_urls, share)))
    return held


def shares_plainly(available: dict[str, int], quality: dict[str, float], budget: int) -> dict[str, int]:
    """Shares by giving hosts their part until none is full any more, then the largest remainders, all in fractions."""
    exact: dict[str, Fraction] = {}
    open_hosts, rest = set(available), Fraction(min(budget, sum(available.values())))
    while open_hosts:
        total = sum(Fraction(quality[host]) for host in open_hosts)
        part = {host: rest * Fraction(quality[host]) / total for host in open_hosts}
        full = {host for host in open_hosts if part[host] >= available[host]}
        if not full:
            exact.update(part)
            break
        for host in full:
            exact[host] = Fraction(available[host])
            rest -= available[host]
        open_hosts -= full
    share = {host: int(part) for host, part in exact.items()}
    missing = min(budget, sum(available.values())) - sum(share.values())
    ids = (
        dict(zip(available, text_ids(pa.array(list(available), pa.string())).tolist(), strict=True))
        if available
        else {}
    )
    for host in sorted(share, key=lambda host: (-(exact[host] - share[host]), ids[host]))[:missing]:
        share[host] += 1
    return share


LIMIT = st.none() | st.integers(1, 8)
LIMITS = st.builds(
    Limits,
    st.sampled_from([THRESHOLD, None]),
    known=st.booleans(),
    max_per_host=LIMIT,
    max_per_domain=LIMIT,
    budget=LIMIT,
    refresh_share=st.none() | st.sampled_from([0.0, 0.3, 0.5, 1.0]),
) | st.builds(
    Limits,
    st.sampled_from([THRESHOLD, None]),
    known=st.booleans(),
    max_urls=LIMIT,
    max_per_host=LIMIT,
    max_per_domain=LIMIT,
    refresh_share=st.none() | st.sampled_from([0.0, 0.3, 0.5, 1.0]),
)
QUALITY = st.fixed_dictionaries({host: st.sampled_from([0.25, 0.5, 1.0, 3.0]) for host in HOSTS})


@settings(max_examples=60, deadline=None)
@given(frontiers(), LIMITS, QUALITY, st.sampled_from([1, 2, 7]))
def test_selection_equals_one_made_url_by_url(
    rows: list[dict[str, Any]], limits: Limits, quality: dict[str, float], partitions: int
) -> None:
    folder = tempfile.mkdtemp()
    weights = pa.table([text_ids(pa.array(list(quality))), list(quality.values())], schema=QUALITY_SCHEMA)
    parts = [table_of(rows[number::partitions]) for number in range(partitions)]
    with beam.Pipeline(options=beam_options([])) as pipeline:
        scored = pipeline | "rows" >> beam.Create(parts).with_output_types(pa.Table)
        hosts = pipeline | "quality" >> beam.Create([weights]).with_output_types(pa.Table)
        scored | WriteFrontier(folder, partitions=partitions, limits=limits, quality=hosts)
    tables = [pq.read_table(path) for path in sorted(Path(folder).glob("*.parquet"))]
    found = [row for table in tables for row in table.to_pylist()]
    assert [row["url"] for row in found] == [row["url"] for row in best_first(rows)]
    assert {row["url"]: row["held_back"] for row in found} == selected_plainly(rows, limits, quality)
    assert all(row["selected"] == (row["held_back"] is None) for row in found)


@given(st.lists(st.tuples(st.integers(0, 40), st.floats(1e-3, 1e3)), min_size=1, max_size=12), st.integers(0, 300))
def test_shares_add_up_and_are_fair(hosts: list[tuple[int, float]], budget: int) -> None:
    available = np.array([count for count, _ in hosts], dtype=np.int64)
    weight = np.array([quality for _, quality in hosts])
    share = proportional_shares(available, weight, budget)
    assert share.sum() == min(budget, available.sum())
    assert (share <= available).all()
    assert (share >= 0).all()
    open_hosts = share < available
    if open_hosts.any():
        # Nobody who could take more is further than one URL below the level of anybody else.
        level = (share[open_hosts] + 1) / weight[open_hosts]
        assert ((share - 1) / weight <= level.min() * (1 + 1e-9)).all()


def test_a_domain_is_what_somebody_registered() -> None:
    hosts = pa.array(["a.b.example.co.uk", "example.co.uk", "co.uk", "127.0.0.1", "localhost", ""])
    assert budgets.domains_of(hosts).to_pylist() == [
        "example.co.uk", "example.co.uk", "co.uk", "127.0.0.1", "localhost", ""
    ]  # fmt: skip
