"""Beam steps of the rankers that look at layers of pages around the seeds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.metrics.metric import Metrics

from semrank.transforms.columnar.arrays import MAIN, int64s
from semrank.transforms.columnar.beam import NAMESPACE, Collection, GatherTables, MapTables, MergePartitions
from semrank.transforms.ranking import hmm, layer_words, layers, link_context, naive_bayes, relevancy_context
from semrank.transforms.ranking.layer_words import LayerWords, LayerWordSettings
from semrank.transforms.ranking.layers import BUCKETS, LayerSettings
from semrank.transforms.ranking.registry import Making
from semrank.transforms.ranking.text_beam import Widths
from semrank.transforms.ranking.topic_words import Vocabulary

LEFT_OUT = "left_out"
"""Counter of the URLs that the cap leaves out of a layer, under the layer's stage."""


class FindLayers(beam.PTransform[Any, Any]):
    """Layers of pages around the seeds (see `layers`); gives one small collection of `layers.LAYER_SCHEMA`.

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
        described = inputs["descriptions"] | MapTables(
            "list described URLs", _described, sides=_widths(inputs), prepare=Widths.of
        )
        described = _exchanged(described, "described URLs", self._partitions)
        links = {
            "links": inputs["links"] | MapTables("key links", layers.keyed_links),
            "described": described,
        } | MergePartitions("choose links of described", _links_of, partitions=self._partitions, key="url_id")
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


class _LayerParts(NamedTuple):
    """Collections that the rankers by layers share: the layers, and the words of their pages."""

    layers: Collection
    counts: Collection


class LearnLayerWords(beam.PTransform[Any, Any]):
    """Layers and the words of their pages; gives `_LayerParts`.

    The input is a dict with `descriptions`, `vocabulary`, `links` and `harvested`.

    Args:
        settings: how layers and their words are found.
        partitions: number of partitions of URLs and of words.
    """

    def __init__(self, settings: LayerWordSettings, *, partitions: int) -> None:
        super().__init__("learn words of layers")
        self._settings, self._partitions = settings, partitions

    def expand(self, inputs: dict[str, Collection]) -> _LayerParts:
        """Applies the steps."""
        found = inputs | FindLayers(self._settings.layers, partitions=self._partitions)
        counted = inputs["descriptions"] | MapTables(
            "count words of layers",
            partial(_count_words, settings=self._settings),
            sides={**_widths(inputs), "layers": found},
            prepare=_Layered.of,
        )
        counts = {"counts": counted} | MergePartitions(
            "add words of layers", _add_words, partitions=self._partitions, key="word"
        )
        return _LayerParts(found, counts)


class RankByLinkContext(beam.PTransform[Any, Any]):
    """The layer that a URL's words speak for (P13 LCGCrawler, see `link_context`); gives tables of `SCORED_SCHEMA`.

    The input is a dict with `descriptions`, `vocabulary`, `links` and `harvested`.

    Args:
        settings: the threshold, and how layers and their words are found.
        query: words of the query.
        partitions: number of partitions of URLs and of words.
    """

    def __init__(self, settings: link_context.LinkContextSettings, *, query: list[str], partitions: int) -> None:
        super().__init__("rank by link context")
        self._settings, self._query, self._partitions = settings, query, partitions

    def expand(self, inputs: dict[str, Collection]) -> Collection:
        """Applies the steps."""
        parts = inputs | LearnLayerWords(self._settings.words, partitions=self._partitions)
        return inputs["descriptions"] | MapTables(  # type: ignore[no-any-return]
            "score by layer",
            partial(_score_link_context, settings=self._settings),
            sides={**_widths(inputs), "counts": parts.counts},
            prepare=partial(_layer_model, query=self._query, settings=self._settings.words),
        )


class RankByRelevancyContext(beam.PTransform[Any, Any]):
    """Expected worth of a URL's layer (P13 RCGCrawler, see `relevancy_context`); gives tables of `SCORED_SCHEMA`.

    The input is a dict with `descriptions`, `vocabulary`, `links` and `harvested`.

    Args:
        settings: what layers are worth, and how they and their words are found.
        query: words of the query.
        partitions: number of partitions of URLs and of words.
    """

    def __init__(
        self, settings: relevancy_context.RelevancyContextSettings, *, query: list[str], partitions: int
    ) -> None:
        super().__init__("rank by relevancy context")
        self._settings, self._query, self._partitions = settings, query, partitions

    def expand(self, inputs: dict[str, Collection]) -> Collection:
        """Applies the steps."""
        parts = inputs | LearnLayerWords(self._settings.words, partitions=self._partitions)
        return inputs["descriptions"] | MapTables(  # type: ignore[no-any-return]
            "score by worth of layers",
            partial(_score_relevancy_context, settings=self._settings),
            sides={**_widths(inputs), "counts": parts.counts},
            prepare=partial(_layer_model, query=self._query, settings=self._settings.words),
        )


class RankByHmm(beam.PTransform[Any, Any]):
    """Expected distance to a target by a hidden Markov model (P13 1.3, see `hmm`); gives tables of `SCORED_SCHEMA`.

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
        states = inputs["descriptions"] | MapTables(
            "list states of URLs",
            partial(_states, count=words.layers.count),
            sides={**_widths(inputs), "layers": parts.layers},
            prepare=_Layered.of,
        )
        states = _exchanged(states, "states of URLs", self._partitions)
        halves = {
            "edges": inputs["click_edges"] | MapTables("key c-edges", hmm.keyed_edges),
            "states": states,
        } | MergePartitions("join states of sources", _from_states, partitions=self._partitions, key="url_id")
        steps = {"halves": halves, "states": states} | MergePartitions(
            "join states of targets", _steps, partitions=self._partitions, key="url_id"
        )
        learned = {**_widths(inputs), "counts": parts.counts}
        linkers = inputs["descriptions"] | MapTables(
            "find states of harvested",
            _harvested_states,
            sides=learned,
            prepare=partial(_layer_model, query=self._query, settings=words),
        )
        return inputs["descriptions"] | MapTables(  # type: ignore[no-any-return]
            "score by distance",
            partial(_score_hmm, settings=self._settings),
            sides={**learned, "steps": steps, "linkers": linkers},
            prepare=partial(_browsing_model, query=self._query, settings=self._settings),
        )


def make_step(ranker: str, making: Making) -> RankByLinkContext | RankByRelevancyContext | RankByHmm:
    """A ranker's step; see `registry.step`."""
    by_words: dict[str, Any] = {"query": list(making.query), "partitions": making.partitions}
    if ranker == "link-context":
        return RankByLinkContext(link_context.LinkContextSettings(), **by_words)
    if ranker == "relevancy-context":
        return RankByRelevancyContext(relevancy_context.settings_of(making.options), **by_words)
    return RankByHmm(hmm.HmmSettings(), **by_words)


def _widths(inputs: dict[str, Collection]) -> dict[str, Collection]:
    return {"vocabulary": inputs["vocabulary"], "harvested": inputs["harvested"]}


def _exchanged(tables: Collection, name: str, partitions: int) -> Collection:
    """The same rows, after an exchange of their own.

    Beam's local runner lets an exchange of several inputs wait until all that read the same collection as one of its
    inputs are done. The step that scores reads the descriptions, too, and waits for what comes of the exchange: without
    an exchange in between both would wait for ever.
    """
    return {"rows": tables} | MergePartitions(  # type: ignore[no-any-return]
        f"exchange {name}", _same_rows, partitions=partitions, key="url_id"
    )


def _same_rows(rows: pa.Table) -> pa.Table:
    return rows


def _described(table: pa.Table, prepared: Widths) -> pa.Table:
    return layers.described_urls(prepared.read(table))


def _links_of(links: pa.Table | None, described: pa.Table | None) -> pa.Table:
    return layers.links_of(links, described)


def _seeds(harvested: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    yield from layers.counted_urls(np.unique(int64s(layers.seed_urls(harvested)["url_id"])))


class _Layered(NamedTuple):
    widths: Widths
    layers: pa.Table | None

    @classmethod
    def of(cls, vocabulary: pa.Table | None, harvested: pa.Table | None, layers: pa.Table | None) -> _Layered:
        return cls(Widths.of(vocabulary, harvested), layers)


def _count_words(table: pa.Table, prepared: _Layered, *, settings: LayerWordSettings) -> pa.Table:
    return layer_words.layer_word_counts(prepared.widths.read(table), prepared.layers, settings)


def _add_words(counts: pa.Table) -> pa.Table:
    return naive_bayes.added_counts(counts)


class _Learned(NamedTuple):
    widths: Widths
    words: LayerWords


def _layer_model(
    vocabulary: pa.Table | None,
    harvested: pa.Table | None,
    counts: pa.Table | None,
    *,
    query: list[str],
    settings: LayerWordSettings,
) -> _Learned:
    known = Vocabulary.of_table(vocabulary)
    words = LayerWords.of_counts(counts, known.numbers(query), known.words, settings)
    return _Learned(Widths.of(vocabulary, harvested), words)


def _score_link_context(table: pa.Table, prepared: _Learned, *, settings: link_context.LinkContextSettings) -> pa.Table:
    return link_context.scores(prepared.widths.read(table), prepared.words, settings)


def _score_relevancy_context(
    table: pa.Table, prepared: _Learned, *, settings: relevancy_context.RelevancyContextSettings
) -> pa.Table:
    return relevancy_context.scores(prepared.widths.read(table), prepared.words, settings)


def _states(table: pa.Table, prepared: _Layered, *, count: int) -> pa.Table:
    return layers.state_table(prepared.widths.read(table), prepared.layers, count)


def _from_states(edges: pa.Table | None, states: pa.Table | None) -> pa.Table:
    return hmm.edges_from_states(edges, states)


def _steps(halves: pa.Table | None, states: pa.Table | None) -> pa.Table:
    return hmm.state_steps(halves, states)


def _harvested_states(table: pa.Table, prepared: _Learned) -> pa.Table:
    return hmm.harvested_states(prepared.widths.read(table), prepared.words)


class _Browsing(NamedTuple):
    widths: Widths
    model: hmm.BrowsingModel


def _browsing_model(
    vocabulary: pa.Table | None,
    harvested: pa.Table | None,
    counts: pa.Table | None,
    steps: pa.Table | None,
    linkers: pa.Table | None,
    *,
    query: list[str],
    settings: hmm.HmmSettings,
) -> _Browsing:
    learned = _layer_model(vocabulary, harvested, counts, query=query, settings=settings.words)
    model = hmm.BrowsingModel.of_parts(
        learned.words, steps, linkers, harvested=learned.widths.harvested, settings=settings
    )
    return _Browsing(learned.widths, model)


def _score_hmm(table: pa.Table, prepared: _Browsing, *, settings: hmm.HmmSettings) -> pa.Table:
    return hmm.scores(prepared.widths.read(table), prepared.model, settings)
