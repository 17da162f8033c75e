"""Beam steps of the ranker by a hidden Markov model."""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from typing import Any

import apache_beam as beam

from semrank.transforms.columnar.beam import Collection, MapTables, MergePartitions
from semrank.transforms.ranking import hmm, layers
from semrank.transforms.ranking.layer_beam import LearnLayerWords, exchanged, layer_model
from semrank.transforms.ranking.registry import Making
from semrank.transforms.ranking.text_beam import Tables, map_descriptions


class RankByHmm(beam.PTransform[Any, Any]):
    """Expected distance to a target by a hidden Markov model (P13 1.3, see `hmm`); returns tables of `SCORED_SCHEMA`.

    The input is a dict with `descriptions`, `vocabulary`, `links`, `click_edges` and `harvested`.

    Args:
        settings: how browsing is learned, and how layers and their words are found.
        query: words of the query.
        partitions: number of partitions of URLs and of words.
    """

    def __init__(self, settings: hmm.HmmSettings, *, query: list[str], partitions: int) -> None:
        super().__init__("rank by hidden Markov model")
        self._settings, self._query, self._partitions = settings, query, partitions

    def expand(self, inputs: dict[str, Collection]) -> Collection:
        """Applies the steps."""
        words = self._settings.words
        parts = inputs | LearnLayerWords(words, partitions=self._partitions)
        states = map_descriptions(
            inputs,
            "list states of URLs",
            partial(layers.state_table, count=words.layers.count),
            model=itemgetter("layers"),
            sides={"layers": parts.layers},
        )
        states = exchanged(states, "states of URLs", self._partitions)
        halves = {
            "edges": inputs["click_edges"] | MapTables("key c-edges", hmm.keyed_edges),
            "states": states,
        } | MergePartitions("join states of sources", hmm.edges_from_states, partitions=self._partitions, key="url_id")
        steps = {"halves": halves, "states": states} | MergePartitions(
            "join states of targets", hmm.state_steps, partitions=self._partitions, key="url_id"
        )
        learned = {"counts": parts.counts}
        linkers = map_descriptions(
            inputs,
            "find states of harvested",
            hmm.harvested_states,
            model=partial(layer_model, query=self._query, settings=words),
            sides=learned,
        )
        return map_descriptions(  # type: ignore[no-any-return]
            inputs,
            "score by distance",
            partial(hmm.scores, settings=self._settings),
            model=partial(_browsing_model, query=self._query, settings=self._settings),
            sides={**learned, "steps": steps, "linkers": linkers},
        )


def make_step(_: str, making: Making) -> RankByHmm:
    """The ranker's step; see `registry.step`."""
    return RankByHmm(hmm.HmmSettings(), query=list(making.query), partitions=making.partitions)


def _browsing_model(tables: Tables, *, query: list[str], settings: hmm.HmmSettings) -> hmm.BrowsingModel:
    harvested = tables["harvested"]
    return hmm.BrowsingModel.of_parts(
        layer_model(tables, query=query, settings=settings.words),
        tables["steps"],
        tables["linkers"],
        harvested=0 if harvested is None else harvested.num_rows,
        settings=settings,
    )
