"""Beam steps of the rankers that look at layers of pages around the seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.metrics.metric import Metrics

from semrank.transforms.columnar.arrays import MAIN, int64s
from semrank.transforms.columnar.beam import NAMESPACE, Collection, GatherTables, MapTables, MergePartitions
from semrank.transforms.ranking import layer_words, layers, naive_bayes
from semrank.transforms.ranking.layer_words import LayerWords, LayerWordSettings
from semrank.transforms.ranking.layers import BUCKETS, LayerSettings
from semrank.transforms.ranking.registry import Making, function
from semrank.transforms.ranking.text_beam import Tables, map_descriptions
from semrank.transforms.ranking.topic_words import Vocabulary

LEFT_OUT = "left_out"
"""Counter of the URLs that the cap leaves out of a layer, under the layer's stage."""


class FindLayers(beam.PTransform[Any, Any]):
    """Layers of pages around the seeds (see `layers`); returns one small collection of `layers.LAYER_SCHEMA`.

    The input is a dict with `descriptions`, `vocabulary`, `links` and `harvested`. Counts what the cap leaves out as
    `find layer i/left_out`.

    Args:
        settings: how far layers reach.
        partitions: number of partitions of URLs.
    """

    def __init__(self, settings: LayerSettings, *, partitions: int) -> None:
        super().__init__("find layers")
        self._settings, self._partitions = settings, partitions

    def expand(self, inputs: dict[str, Collection]) -> Collection:
        """Applies the steps."""
        described = map_descriptions(inputs, "list described URLs", layers.described_urls)
        described = exchanged(described, "described URLs", self._partitions)
        links = {
            "links": inputs["links"] | MapTables("key links", layers.keyed_links),
            "described": described,
        } | MergePartitions("choose links of described", layers.links_of, partitions=self._partitions, key="url_id")
        seeds = inputs["harvested"] | MapTables("list seeds", _seeds, tags=(MAIN, BUCKETS))
        found = [self._capped(seeds, 0)]
        for layer in range(1, self._settings.count):
            so_far = found | f"layers before {layer}" >> beam.Flatten()
            urls = links | MapTables(
                f"find layer {layer}", layers.found_urls, sides={"layers": so_far}, tags=(MAIN, BUCKETS)
            )
            found.append(self._capped(urls, layer))
        return found | "all layers" >> beam.Flatten()  # type: ignore[no-any-return]

    def _capped(self, urls: Any, layer: int) -> Collection:
        cap = self._settings.max_urls
        cut = {"buckets": urls[BUCKETS]} | GatherTables(f"cut layer {layer}", partial(layers.cut_of, max_urls=cap))
        # Nothing follows from this step: it only counts.
        _ = cut | f"count layer {layer}" >> beam.ParDo(_CountLeftOut(f"find layer {layer}")).with_output_types(pa.Table)
        ids = urls[MAIN] | MapTables(f"choose URLs of layer {layer}", layers.ids_below_cut, sides={"cut": cut})
        return {"ids": ids} | GatherTables(  # type: ignore[no-any-return]
            f"make layer {layer}", partial(layers.layer_of, layer=layer, max_urls=cap)
        )


class _CountLeftOut(beam.DoFn):
    def __init__(self, stage: str) -> None:
        self._left_out = Metrics.counter(NAMESPACE, f"{stage}/{LEFT_OUT}")

    def process(self, cut: pa.Table) -> None:
        self._left_out.inc(int(int64s(cut["left_out"]).sum()))


class LayerParts(NamedTuple):
    """Collections that the rankers by layers share: the layers, and the words of their pages."""

    layers: Collection
    counts: Collection


class LearnLayerWords(beam.PTransform[Any, Any]):
    """Layers and the words of their pages; returns `LayerParts`.

    The input is a dict with `descriptions`, `vocabulary`, `links` and `harvested`.

    Args:
        settings: how layers and their words are found.
        partitions: number of partitions of URLs and of words.
    """

    def __init__(self, settings: LayerWordSettings, *, partitions: int) -> None:
        super().__init__("learn words of layers")
        self._settings, self._partitions = settings, partitions

    def expand(self, inputs: dict[str, Collection]) -> LayerParts:
        """Applies the steps."""
        found = inputs | FindLayers(self._settings.layers, partitions=self._partitions)
        counted = map_descriptions(
            inputs,
            "count words of layers",
            partial(layer_words.layer_word_counts, settings=self._settings),
            model=itemgetter("layers"),
            sides={"layers": found},
        )
        counts = {"counts": counted} | MergePartitions(
            "add words of layers", naive_bayes.added_counts, partitions=self._partitions, key="word"
        )
        return LayerParts(found, counts)


class RankByLayers(beam.PTransform[Any, Any]):
    """Scores the current URLs by the layers that their words are evidence for; returns tables of `SCORED_SCHEMA`.

    The input is a dict with `descriptions`, `vocabulary`, `links` and `harvested`.

    Args:
        name: the ranker.
        scores: returns the scores of a part's current URLs from descriptions, words of layers and settings.
        settings: the ranker's; `words` is how layers and their words are found.
        query: words of the query.
        partitions: number of partitions of URLs and of words.
    """

    def __init__(
        self, name: str, scores: Callable[..., pa.Table], settings: Any, *, query: list[str], partitions: int
    ) -> None:
        super().__init__(f"rank by {name}")
        self._scores, self._settings, self._query, self._partitions = scores, settings, query, partitions

    def expand(self, inputs: dict[str, Collection]) -> Collection:
        """Applies the steps."""
        words: LayerWordSettings = self._settings.words
        learned = inputs | LearnLayerWords(words, partitions=self._partitions)
        return map_descriptions(  # type: ignore[no-any-return]
            inputs,
            "score by layers",
            partial(self._scores, settings=self._settings),
            model=partial(layer_model, query=self._query, settings=words),
            sides={"counts": learned.counts},
        )


def make_step(ranker: str, making: Making) -> RankByLayers:
    """The step of a ranker whose module has `scores(descriptions, words, settings)`; see `registry.step`."""
    settings = function(ranker, "settings_of")(making.options)
    return RankByLayers(
        ranker, function(ranker, "scores"), settings, query=list(making.query), partitions=making.partitions
    )


def layer_model(tables: Tables, *, query: list[str], settings: LayerWordSettings) -> LayerWords:
    """The words of layers from the broadcast `vocabulary` and `counts`."""
    known = Vocabulary.of_table(tables["vocabulary"])
    return LayerWords.of_counts(tables["counts"], known.numbers(query), known.words, settings)


def exchanged(tables: Collection, name: str, partitions: int) -> Collection:
    """The same rows, after an exchange of their own.

    Beam's local runner lets an exchange of several inputs wait until all that read the same collection as one of its
    inputs are done. The step that scores reads the descriptions, too, and waits for what comes of the exchange: without
    an exchange in between both would wait forever.
    """
    return {"rows": tables} | MergePartitions(  # type: ignore[no-any-return]
        f"exchange {name}", _same_rows, partitions=partitions, key="url_id"
    )


def _same_rows(rows: pa.Table) -> pa.Table:
    return rows


def _seeds(harvested: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    yield from layers.counted_urls(np.unique(int64s(layers.seed_urls(harvested)["url_id"])))
