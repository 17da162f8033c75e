"""Beam steps of the rankers that compare a URL's words with the topic's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa

from semrank.transforms.columnar.arrays import MAIN
from semrank.transforms.columnar.beam import Collection, MapTables, MergePartitions
from semrank.transforms.context.descriptions import Descriptions
from semrank.transforms.ranking import topic_words
from semrank.transforms.ranking.registry import Making, function
from semrank.transforms.ranking.topic_words import Topic, Vocabulary

_SIZES = "sizes"


class RankByTopic(beam.PTransform[Any, Any]):
    """Scores the current URLs by a function of their descriptions and the topic; gives tables of `SCORED_SCHEMA`.

    The input is a dict with `descriptions`, `vocabulary` and `harvested`.

    Args:
        name: the ranker.
        scores: gives descriptions of a part and the topic the scores of the part's current URLs.
        query: words of the query.
        partitions: number of partitions of words.
    """

    def __init__(
        self, name: str, scores: Callable[[Descriptions, Topic], pa.Table], *, query: list[str], partitions: int
    ) -> None:
        super().__init__(f"rank by {name}")
        self._scores, self._query, self._partitions = scores, query, partitions

    def expand(self, inputs: dict[str, Collection]) -> Collection:
        """Applies the steps."""
        known = {"vocabulary": inputs["vocabulary"], "harvested": inputs["harvested"]}
        counted = inputs["descriptions"] | MapTables(
            "count topic's words", _count, sides=known, prepare=Widths.of, tags=(MAIN, _SIZES)
        )
        counts = {"counts": counted[MAIN]} | MergePartitions(
            "add topic's words", _add_words, partitions=self._partitions, key="word"
        )
        return inputs["descriptions"] | MapTables(  # type: ignore[no-any-return]
            "score by topic's words",
            partial(_score, scores=self._scores),
            sides={**known, "counts": counts, "sizes": counted[_SIZES]},
            prepare=partial(_topic, query=self._query),
        )


def make_step(ranker: str, making: Making) -> RankByTopic:
    """The step of a ranker whose module has `scores(descriptions, topic)`; see `registry.step`."""
    scores = function(ranker, "scores", making.options)
    return RankByTopic(ranker, scores, query=list(making.query), partitions=making.partitions)


class Widths(NamedTuple):
    """Numbers of words and of harvested URLs: how wide the matrices of descriptions are."""

    words: int
    harvested: int

    @classmethod
    def of(cls, vocabulary: pa.Table | None, harvested: pa.Table | None) -> Widths:
        """The widths, from the two broadcast tables."""
        return cls(*(0 if table is None else int(table.num_rows) for table in (vocabulary, harvested)))

    def read(self, table: pa.Table) -> Descriptions:
        """The descriptions of a table of `DESCRIPTION_SCHEMA`."""
        return Descriptions.of_table(table, words=self.words, harvested=self.harvested)


class _Prepared(NamedTuple):
    topic: Topic
    widths: Widths


def _count(table: pa.Table, prepared: Widths) -> Iterator[tuple[str, pa.Table]]:
    descriptions = prepared.read(table)
    yield MAIN, topic_words.seed_words(descriptions)
    yield _SIZES, topic_words.collection_size(descriptions)


def _add_words(counts: pa.Table) -> pa.Table:
    return topic_words.added_words(counts)


def _topic(
    vocabulary: pa.Table | None,
    harvested: pa.Table | None,
    counts: pa.Table | None,
    sizes: pa.Table | None,
    *,
    query: list[str],
) -> _Prepared:
    words = Vocabulary.of_table(vocabulary)
    return _Prepared(Topic.of_parts(words, words.numbers(query), counts, sizes), Widths.of(vocabulary, harvested))


def _score(table: pa.Table, prepared: _Prepared, *, scores: Callable[[Descriptions, Topic], pa.Table]) -> pa.Table:
    return scores(prepared.widths.read(table), prepared.topic)
