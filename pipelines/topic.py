"""Finds out what a round's seeds are about before it runs, from a bounded number of the snapshot's pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.pipelines.manifest import Manifest
from semrank.pipelines.queue import Queue
from semrank.schemas.errors import InputError
from semrank.schemas.tables import PAGES
from semrank.transforms.columnar.arrays import Int64s, column_array, int64s, members, positions
from semrank.transforms.columnar.ids import mix_bits, text_ids
from semrank.transforms.columnar.parquet import read_stored
from semrank.transforms.context.pages import title_and_text
from semrank.transforms.context.words import lemma_counts
from semrank.transforms.ranking.seed_topic import SeedTopic, seed_topic

SEEDS, OTHERS, BATCH, RANDOM = 100, 100, 100, 100
"""Most seeds, other harvested pages, pages of the last batch and random pages that are read; more change little and
take time."""

_READ = PAGES.columns("url", "title", "text", "keywords", "language")


def topic_of(
    pages: Sequence[str], queue: Queue, *, query: Sequence[str], language: str, nouns: bool = False
) -> SeedTopic:
    """The topic of a crawl so far.

    Pages are drawn by a hash of their ids, so the result does not depend on how the snapshot is divided into files.

    Args:
        pages: files of the pages table.
        queue: what the round starts from; its harvest tells the seeds.
        query: words of the query.
        language: language of pages whose language is not known.
        nouns: whether only nouns are words.
    """
    ids = _known_ids(pages)
    harvest, seed = int64s(queue.harvest["url_id"]), np.asarray(queue.harvest["seed"].to_numpy(), dtype=np.bool_)
    seeds = _drawn(harvest[seed][members(ids, harvest[seed])], SEEDS)
    others = _drawn(harvest[~seed][members(ids, harvest[~seed])], OTHERS)
    queued = int64s(queue.urls["url_id"])
    batch = _drawn(queued[members(ids, queued) & ~members(np.sort(harvest[seed]), queued)], BATCH)
    random = _drawn(ids, RANDOM)
    chosen = np.unique(np.concatenate([seeds, others, batch, random]))
    parts = [_read_chosen(path, chosen) for path in pages]
    rows = pa.concat_tables([_read_chosen_none(), *parts]).sort_by("url_id")
    texts = pc.coalesce(pc.binary_join(rows["keywords"], "\n").cast(pa.large_string()), title_and_text(rows))
    counts = lemma_counts(texts, rows["language"], fallback=language, nouns=nouns)
    found = int64s(rows["url_id"])
    return seed_topic(
        counts,
        seeds=_places(found, seeds),
        others=_places(found, others),
        batch=_places(found, batch),
        random=_places(found, random),
        query=query,
    )


def _known_ids(pages: Sequence[str]) -> Int64s:
    """Ids of all pages, ascending and distinct, int64[n]."""
    url = PAGES.columns("url")
    parts = [text_ids(column_array(table["url"])) for path in pages for table in read_stored(path, url)]
    return np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *parts]))


def _drawn(ids: Int64s, most: int) -> Int64s:
    """At most so many of some distinct ids, those with the lowest hashes, ascending."""
    return np.sort(ids[np.argsort(mix_bits(ids.view(np.uint64)), kind="stable")[:most]])


def _read_chosen(path: str, chosen: Int64s) -> pa.Table:
    parts = [_read_chosen_none()]
    for table in read_stored(path, _READ):
        own = text_ids(column_array(table["url"]))
        kept = pa.array(members(chosen, own))
        parts.append(table.append_column("url_id", pa.array(own)).filter(kept))
    return pa.concat_tables(parts)


def _read_chosen_none() -> pa.Table:
    return _READ.empty().append_column("url_id", pa.array([], pa.int64()))


def _places(found: Int64s, ids: Int64s) -> Int64s:
    """Where ids stand among those found; those that are not there are left out."""
    places = positions(found, ids)
    return np.asarray(places[places >= 0], dtype=np.int64)


def stored_topic(manifest: Manifest) -> dict[str, Any] | None:
    """The topic that a round's manifest has, as `SeedTopic.as_dict` gave it; None if its ranker looked at no texts.

    Raises:
        InputError: it is there and is something else.
    """
    if manifest.members("inputs").get("topic") is None:
        return None
    topic = manifest.members("inputs", "topic")
    words = topic.get("words")
    pairs = words if isinstance(words, list) else [None]
    if not all(_is_weighted(pair) for pair in pairs):
        raise InputError(f"{manifest.path}: inputs.topic.words is {words!r:.60}, expected words with weights")
    numbers = {
        name: None if topic.get(name) is None else manifest.number("inputs", "topic", name)
        for name in ("cohesion", "random_cohesion", "relevance")
    }
    return {"words": pairs, "seeds": manifest.whole("inputs", "topic", "seeds"), **numbers}


def _is_weighted(pair: object) -> bool:
    return (
        isinstance(pair, list)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and isinstance(pair[1], int | float)
        and math.isfinite(pair[1])
    )


def topic_lines(topic: Mapping[str, Any]) -> list[str]:
    """What a summary says of a topic, which is that of `SeedTopic.as_dict`."""
    if not topic["words"]:
        return ["topic: unknown, the content of no seed is known"]
    words = ", ".join(f"{word} {weight:.2f}" for word, weight in topic["words"])
    return [f"topic: {words}", f"seeds: {topic['seeds']:,} with known content{_cohesion(topic)}"]


def _cohesion(topic: Mapping[str, Any]) -> str:
    if topic["cohesion"] is None or topic["random_cohesion"] is None:
        return ""
    return f", cohesion {topic['cohesion']:.3f} (mean cosine of two; {topic['random_cohesion']:.3f} for random pages)"


def scattered_warning(topic: SeedTopic) -> str:
    """The warning about seeds that have no topic in common."""
    return (
        f"the seeds have little in common: the mean cosine of two is {topic.cohesion:.3f}, that of random pages "
        f"{topic.random_cohesion:.3f}; the crawl may have no single topic"
    )
