"""A frontier in few numbers, for reports: its top, a sample of the rest, its scores, hosts, and what changed.

The parts of a frontier are read one after the other and never held together, so that a report of ten million URLs takes
as much memory as one of a thousand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transforms.columnar.arrays import column_array
from transforms.columnar.ids import mix_bits, text_ids

TOP_ROWS = 1_000
"""URLs of the top that are shown."""

SAMPLE_ROWS = 1_000
"""URLs that are drawn from the others by the hash of their address."""

BINS = 40
"""Bars of the score distribution."""

SHOWN_HOSTS = 200
"""Hosts that are listed, those with the most selected URLs first."""

SHOWN_MOVES = 50
"""URLs that are listed of those that came, went, rose and fell."""

COLUMNS = (
    *("rank", "url", "host", "score", "selected", "extension", "intension", "base_links", "base_clicks", "fetched"),
    *("last_fetched_at", "change_probability", "held_back", "matches", "reasons"),
)


@dataclass
class Overview:
    """What a report shows of a frontier.

    Attributes:
        rows: number of URLs.
        selected: number of selected ones.
        top: the best `TOP_ROWS`, tables of `COLUMNS`.
        sample: `SAMPLE_ROWS` of the others, in rank order.
        bins: URLs and selected URLs by score, int64[2, BINS]; bins divide [0, 1] evenly.
        hosts: host -> [URLs, selected URLs, sum of scores].
        held: reason -> URLs.
    """

    rows: int = 0
    selected: int = 0
    top: list[dict[str, Any]] = field(default_factory=list)
    sample: list[dict[str, Any]] = field(default_factory=list)
    bins: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros((2, BINS), dtype=np.int64))
    hosts: dict[str, list[float]] = field(default_factory=dict)
    held: Counter[str] = field(default_factory=Counter)


def overview(parts: Iterable[pa.Table]) -> Overview:
    """The overview of a frontier's parts in rank order, tables of `COLUMNS`."""
    found = Overview()
    drawn: list[tuple[int, dict[str, Any]]] = []
    for part in parts:
        selected = np.asarray(column_array(part["selected"]).to_numpy(zero_copy_only=False), dtype=np.bool_)
        score = np.asarray(part["score"].to_numpy(), dtype=np.float64)
        found.rows += part.num_rows
        found.selected += int(selected.sum())
        place = np.clip((score * BINS).astype(np.int64), 0, BINS - 1)
        found.bins[0] += np.bincount(place, minlength=BINS)
        found.bins[1] += np.bincount(place[selected], minlength=BINS)
        _add_hosts(found.hosts, part, selected, score)
        for entry in pc.value_counts(part["held_back"].combine_chunks()):
            found.held[entry["values"].as_py() or ""] += entry["counts"].as_py()
        head = min(part.num_rows, TOP_ROWS - len(found.top))
        found.top += part.slice(0, head).to_pylist()
        drawn = _draw(drawn, part.slice(head))
    found.held.pop("", None)
    found.sample = sorted((row for _, row in drawn), key=lambda row: row["rank"])
    return found


def _add_hosts(
    hosts: dict[str, list[float]], part: pa.Table, selected: npt.NDArray[np.bool_], score: npt.NDArray[np.float64]
) -> None:
    encoded = column_array(part["host"]).dictionary_encode()
    number = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
    size = len(encoded.dictionary)
    sums = [np.bincount(number, weights=weight, minlength=size) for weight in (None, selected, score)]
    for host, *values in zip(encoded.dictionary.to_pylist(), *(column.tolist() for column in sums), strict=True):
        known = hosts.setdefault(host, [0, 0, 0.0])
        for index, value in enumerate(values):
            known[index] += value


def _draw(drawn: list[tuple[int, dict[str, Any]]], rows: pa.Table) -> list[tuple[int, dict[str, Any]]]:
    """The `SAMPLE_ROWS` rows with the lowest draws of those before and of these."""
    draws = mix_bits(text_ids(rows["url"]).view(np.uint64))
    lowest = np.argsort(draws, kind="stable")[:SAMPLE_ROWS]
    new = zip(draws[lowest].tolist(), rows.take(pa.array(lowest)).to_pylist(), strict=True)
    return sorted([*drawn, *new], key=lambda entry: entry[0])[:SAMPLE_ROWS]


def top_hosts(hosts: dict[str, list[float]]) -> list[dict[str, Any]]:
    """The hosts with the most selected URLs: host, urls, selected and mean score."""
    best = sorted(hosts.items(), key=lambda item: (-item[1][1], -item[1][0], item[0]))[:SHOWN_HOSTS]
    return [
        {"host": host, "urls": int(urls), "selected": int(selected), "score": total / urls}
        for host, (urls, selected, total) in best
    ]


def changes(now: list[dict[str, Any]], before: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """What moved between the tops of two rounds: URLs that came, went, rose and fell, the largest moves first.

    Args:
        now: rows with url and rank, best first.
        before: the same of the round before.
    """
    here = {row["url"]: row["rank"] for row in now}
    there = {row["url"]: row["rank"] for row in before}
    moved = [
        {"url": url, "rank": rank, "before": there[url]} for url, rank in here.items() if there.get(url, rank) != rank
    ]
    return {
        "came": [{"url": url, "rank": rank} for url, rank in here.items() if url not in there][:SHOWN_MOVES],
        "went": [{"url": url, "before": rank} for url, rank in there.items() if url not in here][:SHOWN_MOVES],
        "rose": sorted(
            (row for row in moved if row["rank"] < row["before"]),
            key=lambda row: (row["rank"] - row["before"], row["url"]),
        )[:SHOWN_MOVES],
        "fell": sorted(
            (row for row in moved if row["rank"] > row["before"]),
            key=lambda row: (row["before"] - row["rank"], row["url"]),
        )[:SHOWN_MOVES],
    }
