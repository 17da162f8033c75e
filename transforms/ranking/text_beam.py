"""Beam steps of the rankers that compare a URL's words with the topic's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import apache_beam as beam
import pyarrow as pa

from semrank.transforms.columnar.arrays import MAIN
from semrank.transforms.columnar.beam import Collection, MapTables, MergePartitions
from semrank.transforms.context.descriptions import Descriptions
from semrank.transforms.ranking import topic_words
from semrank.transforms.ranking.registry import Making, function
from semrank.transforms.ranking.topic_words import Topic, Vocabulary

_SIZES = "sizes"

Tables: TypeAlias = Mapping[str, "pa.Table | None"]
"""Broadcast tables by name; None for one without rows."""


class Widths(NamedTuple):
    """Numbers of words and of harvested URLs: how wide the matrices of descriptions are."""

    words: int
    harvested: int

    @staticmethod
    def of(vocabulary: pa.Table | None, harvested: pa.Table | None) -> Widths:
        """The widths, from the two broadcast tables."""
        return Widths(*(0 if table is None else int(table.num_rows) for table in (vocabulary, harvested)))

    def read(self, table: pa.Table) -> Descriptions:
        """The descriptions of a table of `DESCRIPTION_SCHEMA`."""
        return Descriptions.of_table(table, words=self.words, harvested=self.harvested)


class _Prepared(NamedTuple):
    widths: Widths
    model: Any

    @staticmethod
    def of(*, make: Callable[[Tables], Any] | None, **tables: pa.Table | None) -> _Prepared:
        widths = Widths.of(tables["vocabulary"], tables["harvested"])
        return _Prepared(widths, None if make is None else make(tables))


def map_descriptions(
    inputs: Mapping[str, Collection],
    stage: str,
    function: Callable[..., Any],
    *,
    model: Callable[[Tables], Any] | None = None,
    sides: Mapping[str, Collection] | None = None,
    tags: Sequence[str] = (),
) -> Any:
    """Applies `function(descriptions, model)` to the descriptions of each part, or `function(descriptions)`.

    Args:
        inputs: a dict with `descriptions`, `vocabulary` and `harvested`.
        stage: the stage's name.
        function: returns the same as the function of `MapTables`.
        model: makes the model of the broadcast tables by name, `vocabulary` and `harvested` among them, or None.
        sides: further broadcast collections by name.
        tags: names of the outputs, as for `MapTables`.
    """
    known = {name: inputs[name] for name in ("vocabulary", "harvested")}
    return inputs["descriptions"] | MapTables(
        stage,
        partial(_of_part, function=function, has_model=model is not None),
        sides={**known, **(sides or {})},
        prepare=partial(_Prepared.of, make=model),
        tags=tags,
    )


def _of_part(table: pa.Table, prepared: _Prepared, *, function: Callable[..., Any], has_model: bool) -> Any:
    descriptions = prepared.widths.read(table)
    return function(descriptions, prepared.model) if has_model else function(descriptions)


def count_topic(inputs: Mapping[str, Collection], partitions: int) -> dict[str, Collection]:
    """The collections that `topic_of` takes beside the words: `counts` of the seeds' words, and `sizes`.

    Args:
        inputs: a dict with `descriptions`, `vocabulary` and `harvested`.
        partitions: number of partitions of words.
    """
    counted = map_descriptions(inputs, "count topic's words", _count, tags=(MAIN, _SIZES))
    counts = {"counts": counted[MAIN]} | MergePartitions(
        "add topic's words", topic_words.added_words, partitions=partitions, key="word"
    )
    return {"counts": counts, "sizes": counted[_SIZES]}


class RankByTopic(beam.PTransform[Any, Any]):
    """Scores the current URLs by a function of their descriptions and the topic; returns tables of `SCORED_SCHEMA`.

    The input is a dict with `descriptions`, `vocabulary` and `harvested`.

    Args:
        name: the ranker.
        scores: returns the scores of a part's current URLs from its descriptions and the topic.
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
        return map_descriptions(  # type: ignore[no-any-return]
            inputs,
            "score by topic's words",
            self._scores,
            model=partial(topic_of, query=self._query),
            sides=count_topic(inputs, self._partitions),
        )


def make_step(ranker: str, making: Making) -> RankByTopic:
    """The step of a ranker whose module has `scores(descriptions, topic)`; see `registry.step`."""
    scores = function(ranker, "scores", making.options)
    return RankByTopic(ranker, scores, query=list(making.query), partitions=making.partitions)


def _count(descriptions: Descriptions) -> Iterator[tuple[str, pa.Table]]:
    yield MAIN, topic_words.seed_words(descriptions)
    yield _SIZES, topic_words.collection_size(descriptions)


def topic_of(tables: Tables, *, query: list[str]) -> Topic:
    """The topic from the broadcast tables `vocabulary`, `counts` and `sizes`."""
    words = Vocabulary.of_table(tables["vocabulary"])
    return Topic.of_parts(words, words.numbers(query), tables["counts"], tables["sizes"])
