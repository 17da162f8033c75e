"""Finds out what a round's seeds are about, from a bounded number of the snapshot's pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from semrank.pipelines.manifest import Manifest
from semrank.schemas.errors import InputError
from semrank.schemas.tables import TOPIC, conform
from semrank.transforms.columnar.arrays import bools, column_array, int64s, members, positions
from semrank.transforms.context.pages import DRAWN_SCHEMA, lowest_ids
from semrank.transforms.context.words import lemma_counts
from semrank.transforms.ranking.seed_topic import scattered, seed_topic

DRAWN_PAGES = {"seed": 100, "other": 100, "batch": 100, "random": 100}
"""Kind of page -> how many are compared; more change little and take time."""

FIGURES = ("seeds", "cohesion", "random_cohesion", "relevance")


def topic_rows(drawn: pa.Table | None, *, query: Sequence[str], language: str, nouns: bool = False) -> pa.Table:
    """The topic of a crawl so far, a table of `TOPIC`.

    Pages are drawn by a hash of their ids, so the result does not depend on how the snapshot is divided into files.

    Args:
        drawn: pages to draw from (`pages.DRAWN_SCHEMA`), in any order.
        query: words of the query.
        language: language of pages whose language is not known.
        nouns: whether only nouns are words.
    """
    rows = DRAWN_SCHEMA.empty_table() if drawn is None else drawn
    ids = int64s(rows["url_id"])
    kinds = {name: ids[bools(rows[name])] for name in DRAWN_PAGES}
    kinds = {name: lowest_ids(np.unique(found), DRAWN_PAGES[name]) for name, found in kinds.items()}
    chosen = np.unique(np.concatenate(list(kinds.values())))
    first = np.unique(ids, return_index=True)[1]
    rows = rows.take(pa.array(first[members(chosen, ids[first])]))
    found = seed_topic(
        lemma_counts(column_array(rows["text"]), column_array(rows["language"]), fallback=language, nouns=nouns),
        seeds=positions(chosen, kinds["seed"]),
        others=positions(chosen, kinds["other"]),
        batch=positions(chosen, kinds["batch"]),
        random=positions(chosen, kinds["random"]),
        query=query,
    )
    topic = found.as_dict()
    figures = [(name, topic[name]) for name in FIGURES if topic[name] is not None]
    named = [*(("word", *pair) for pair in topic["words"]), *(("figure", *pair) for pair in figures)]
    return conform(pa.table([list(column) for column in zip(*named, strict=True)], names=TOPIC.schema.names), TOPIC)


def topic_of(rows: pa.Table) -> dict[str, Any] | None:
    """The manifest's entry on the topic, from a table of `TOPIC`; None without rows."""
    if not rows.num_rows:
        return None
    topic: dict[str, Any] = {"words": [], **dict.fromkeys(FIGURES)}
    for row in rows.to_pylist():
        if row["kind"] == "word":
            topic["words"].append([row["name"], row["value"]])
        else:
            topic[row["name"]] = row["value"]
    return {**topic, "seeds": int(topic["seeds"])}


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
    """The part of a summary about a topic, which is that of `SeedTopic.as_dict`."""
    if not topic["words"]:
        return ["topic: unknown, the content of no seed is known"]
    words = ", ".join(f"{word} {weight:.2f}" for word, weight in topic["words"])
    return [f"topic: {words}", f"seeds: {topic['seeds']:,} with known content{_cohesion(topic)}"]


def _cohesion(topic: Mapping[str, Any]) -> str:
    if topic["cohesion"] is None or topic["random_cohesion"] is None:
        return ""
    return f", cohesion {topic['cohesion']:.3f} (mean cosine of two; {topic['random_cohesion']:.3f} for random pages)"


def scattered_warning(topic: Mapping[str, Any]) -> str | None:
    """The warning about seeds without a common topic, from a manifest's entry; None if they have one."""
    if not scattered(topic["cohesion"], topic["random_cohesion"]):
        return None
    return (
        f"the seeds have little in common: the mean cosine of two is {topic['cohesion']:.3f}, that of random pages "
        f"{topic['random_cohesion']:.3f}; the crawl may have no single topic"
    )
