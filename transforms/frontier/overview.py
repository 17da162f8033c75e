"""A frontier in few numbers, for reports: its top, a sample of the rest, its scores, hosts, and what changed.

The parts of a frontier are read one after the other and never held together, so that a report of ten million URLs takes
as much memory as one of a thousand, but for 24 bytes a host and what adding them up takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.schemas.errors import InputError
from semrank.transforms.columnar.arrays import (
    Bools,
    Float64s,
    Int64s,
    bools,
    column_array,
    group_starts,
    group_sums,
    int64s,
    mix_bits,
)
from semrank.transforms.columnar.ids import text_ids

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


PENDING_HOSTS = 1 << 20
"""Hosts of parts that wait to be added up: 32 MB."""


@dataclass(frozen=True)
class HostSums:
    """Sums by host, in the order of their ids; a million hosts take 32 MB, their names would take several times that.

    Attributes:
        host: id of the host, int64[k].
        urls: number of its URLs, int64[k].
        selected: number of selected ones, int64[k].
        score: sum of their scores, float64[k].
    """

    host: Int64s
    urls: Int64s
    selected: Int64s
    score: Float64s

    def __len__(self) -> int:
        return len(self.host)

    @classmethod
    def of(cls, names: pa.ChunkedArray, selected: Bools, score: Float64s) -> HostSums:
        """The sums of some URLs: their hosts, whether they are selected, and their scores."""
        encoded = column_array(names).dictionary_encode()
        number = int64s(encoded.indices)
        size = len(encoded.dictionary)
        urls, chosen, total = (np.bincount(number, weights, minlength=size) for weights in (None, selected, score))
        return cls(
            text_ids(encoded.dictionary), urls.astype(np.int64), chosen.astype(np.int64), total.astype(np.float64)
        )

    @classmethod
    def added(cls, parts: Sequence[HostSums]) -> HostSums:
        """The sums of parts together."""
        host = np.concatenate([part.host for part in parts])
        order = np.argsort(host, kind="stable")
        host = host[order]
        starts = group_starts(host)
        columns = [np.concatenate([getattr(part, name) for part in parts]) for name in ("urls", "selected", "score")]
        sums = [group_sums(column[order], starts) for column in columns]
        return cls(host[starts], *(total.astype(column.dtype) for total, column in zip(sums, columns, strict=True)))

    @classmethod
    def none(cls) -> HostSums:
        """No host."""
        return cls.of(pa.chunked_array([], pa.string()), np.zeros(0, np.bool_), np.zeros(0))


@dataclass
class Overview:
    """What a report shows of a frontier.

    Attributes:
        rows: number of URLs.
        selected: number of selected ones.
        top: the best `TOP_ROWS`, tables of `COLUMNS`.
        sample: `SAMPLE_ROWS` of the others, in rank order.
        bins: URLs and selected URLs by score, int64[2, BINS]; bins divide [0, 1] evenly.
        hosts: sums by host.
        held: reason -> URLs.
    """

    rows: int = 0
    selected: int = 0
    top: list[dict[str, Any]] = field(default_factory=list)
    sample: list[dict[str, Any]] = field(default_factory=list)
    bins: Int64s = field(default_factory=lambda: np.zeros((2, BINS), dtype=np.int64))
    hosts: HostSums = field(default_factory=HostSums.none)
    held: Counter[str] = field(default_factory=Counter)


def overview(parts: Iterable[pa.Table]) -> Overview:
    """The overview of a frontier's parts in rank order, tables of `COLUMNS`.

    Raises:
        InputError: a score is not finite.
    """
    found = Overview()
    drawn: list[tuple[int, dict[str, Any]]] = []
    pending: list[HostSums] = []
    for part in parts:
        selected = bools(part["selected"])
        score = np.asarray(part["score"].to_numpy(), dtype=np.float64)
        if not np.isfinite(score).all():
            raise InputError(f"the frontier has the score {score[~np.isfinite(score)][0]}, expected finite numbers")
        found.rows += part.num_rows
        found.selected += int(selected.sum())
        place = (np.clip(score, 0, 1) * BINS).astype(np.int64).clip(0, BINS - 1)
        found.bins[0] += np.bincount(place, minlength=BINS)
        found.bins[1] += np.bincount(place[selected], minlength=BINS)
        pending.append(HostSums.of(part["host"], selected, score))
        if sum(map(len, pending)) > PENDING_HOSTS:
            found.hosts, pending = HostSums.added([found.hosts, *pending]), []
        for entry in pc.value_counts(part["held_back"].combine_chunks()):
            found.held[entry["values"].as_py() or ""] += entry["counts"].as_py()
        head = min(part.num_rows, TOP_ROWS - len(found.top))
        found.top += part.slice(0, head).to_pylist()
        drawn = _draw(drawn, part.slice(head))
    found.hosts = HostSums.added([found.hosts, *pending])
    found.held.pop("", None)
    found.sample = sorted((row for _, row in drawn), key=lambda row: row["rank"])
    return found


def _draw(drawn: list[tuple[int, dict[str, Any]]], rows: pa.Table) -> list[tuple[int, dict[str, Any]]]:
    """The `SAMPLE_ROWS` rows with the lowest draws of those before and of these."""
    draws = mix_bits(text_ids(rows["url"]).view(np.uint64))
    lowest = np.argsort(draws, kind="stable")[:SAMPLE_ROWS]
    if len(drawn) == SAMPLE_ROWS:
        # Only few rows of a large frontier are better than what was drawn before; the others are never decoded.
        lowest = lowest[draws[lowest] < drawn[-1][0]]
    new = zip(draws[lowest].tolist(), rows.take(pa.array(lowest)).to_pylist(), strict=True)
    return sorted([*drawn, *new], key=lambda entry: entry[0])[:SAMPLE_ROWS]


def top_hosts(hosts: HostSums, names: Iterable[pa.ChunkedArray]) -> list[dict[str, Any]]:
    """The hosts with the most selected URLs: host, urls, selected, and mean score of all its URLs.

    Args:
        hosts: sums by host; of hosts with the same numbers those with the lowest ids are taken.
        names: the hosts' names, with repetitions, in parts; read until all that are shown are known.
    """
    best = np.lexsort((hosts.host, -hosts.urls, -hosts.selected))[:SHOWN_HOSTS]
    missing = {int(hosts.host[place]): int(place) for place in best}
    rows = []
    for part in names:
        if not missing:
            break
        distinct = pc.unique(part)
        for number, name in zip(text_ids(distinct).tolist(), distinct.to_pylist(), strict=True):
            place = missing.pop(number, None)
            if place is not None:
                urls, selected = int(hosts.urls[place]), int(hosts.selected[place])
                rows.append({"host": name, "urls": urls, "selected": selected, "score": hosts.score[place] / urls})
    return sorted(rows, key=lambda row: (-row["selected"], -row["urls"], row["host"]))


def changes(now: list[dict[str, Any]], before: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What moved between the tops of two rounds, the largest moves first.

    Args:
        now: rows with url and rank, best first.
        before: the same of the round before, with `selected`.

    Returns:
        For `came`, `rose`, `fell`, `went`, and `chosen`, those gone since the round before selected them, the `count`
        of URLs and the first `SHOWN_MOVES` `rows`: url, `rank` now and rank `before`, where it has them, and of those
        that rose or fell by how many places, up being positive. Places are counted among the URLs of both tops only:
        a URL does not rise since others left.
    """
    here = {row["url"]: row["rank"] for row in now}
    there = {row["url"]: row["rank"] for row in before}
    places = {url: place for place, url in enumerate(url for url in there if url in here)}
    both = [
        {"url": url, "rank": here[url], "before": there[url], "move": places[url] - place}
        for place, url in enumerate(url for url in here if url in there)
    ]
    gone = [row for row in before if row["url"] not in here]
    moves = {
        "came": [{"url": url, "rank": rank} for url, rank in here.items() if url not in there],
        "rose": sorted(
            (row for row in both if row["move"] > 0),
            key=lambda row: (-row["move"], row["url"]),
        ),
        "fell": sorted(
            (row for row in both if row["move"] < 0),
            key=lambda row: (row["move"], row["url"]),
        ),
        "chosen": [{"url": row["url"], "before": row["rank"]} for row in gone if row["selected"]],
        "went": [{"url": row["url"], "before": row["rank"]} for row in gone if not row["selected"]],
    }
    return {name: {"count": len(rows), "rows": rows[:SHOWN_MOVES]} for name, rows in moves.items()}
