"""Hidden Markov model of browsing: the expected distance of a URL to a target (Liu, Janssen and Milios 2006, P13 1.3).

Hidden states are the layers of back links around the seeds, and "other"; a state emits a page's words as the naive
Bayes model of its layer predicts. Transitions are learned from c-edges between pages whose state is known. A URL is
judged by one step of the forward recursion: the states of the harvested pages that link to it, as predicted from their
words, are multiplied by the transitions, then by the likelihood of its own words:

    P(s' | linkers, d) ~ P(d | s') sum over s of mean over linkers u of P(s | u) T(s, s')

The paper learns states by clustering; layers are what it means by distance, and need no iteration.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from scipy import sparse

from semrank.transforms.columnar.arrays import (
    Bools,
    Float64s,
    Int64s,
    int64s,
    list_column,
    list_parts,
    pointers,
    positions,
    sum_by_key,
)
from semrank.transforms.context.descriptions import Descriptions
from semrank.transforms.ranking import layers
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.ranking.layer_words import (
    LayerWords,
    LayerWordSettings,
    expected_value,
    layer_word_counts,
    state_terms,
)
from semrank.transforms.ranking.naive_bayes import posteriors
from semrank.transforms.ranking.reasons import Term, reason_lists
from semrank.transforms.ranking.topic_words import known_words, page_words, row_sums, scored

EDGE_SCHEMA = pa.schema(
    [pa.field("url_id", pa.int64()), pa.field("target", pa.int64()), pa.field("clicks", pa.int64())]
)
"""A c-edge, to be exchanged by its source."""

HALF_SCHEMA = pa.schema(
    [pa.field("url_id", pa.int64()), pa.field("source", pa.int64()), pa.field("clicks", pa.int64())]
)
"""A c-edge with its source's state, to be exchanged by its target."""

STEP_SCHEMA = pa.schema(
    [pa.field("source", pa.int64()), pa.field("target", pa.int64()), pa.field("clicks", pa.int64())]
)
"""Clicks that lead from one state to another."""

POSTERIOR_SCHEMA = pa.schema([pa.field("place", pa.int64()), pa.field("posterior", pa.list_(pa.float64()))])
"""Posterior of the states of a harvested page, given its words."""


@dataclass(frozen=True)
class HmmSettings:
    """How browsing is learned.

    Attributes:
        smoothing: clicks that lead from each state to each other beforehand.
        words: how layers and their words are found.
    """

    smoothing: float = 1.0
    words: LayerWordSettings = field(default_factory=LayerWordSettings)

    @property
    def values(self) -> list[float]:
        """1 - distance / L of each state: layer i is i links away from a target, other pages count as L away."""
        count = self.words.layers.count
        return [1 - distance / count for distance in range(count + 1)]


def keyed_edges(edges: pa.Table) -> pa.Table:
    """C-edges (`source`, `target`, `clicks`) by source, a table of `EDGE_SCHEMA`."""
    return pa.table([edges["source"], edges["target"], edges["clicks"]], schema=EDGE_SCHEMA)


def edges_from_states(edges: pa.Table | None, states: pa.Table | None) -> pa.Table:
    """The c-edges of a partition of sources whose state is known, a table of `HALF_SCHEMA`.

    Args:
        edges: rows of `EDGE_SCHEMA`.
        states: rows of `layers.STATE_SCHEMA`.
    """
    if edges is None or states is None:
        return HALF_SCHEMA.empty_table()
    known, state = _known_states(edges, states)
    return pa.table(
        [edges["target"].filter(pa.array(known)), state, edges["clicks"].filter(pa.array(known))], schema=HALF_SCHEMA
    )


def state_steps(halves: pa.Table | None, states: pa.Table | None) -> pa.Table:
    """Clicks between states of a partition of targets, a table of `STEP_SCHEMA`; parts are added.

    Args:
        halves: rows of `HALF_SCHEMA`.
        states: rows of `layers.STATE_SCHEMA`.
    """
    if halves is None or states is None:
        return STEP_SCHEMA.empty_table()
    known, state = _known_states(halves, states)
    kept = halves.filter(pa.array(known))
    return sum_by_key(pa.table([kept["source"], state, kept["clicks"]], schema=STEP_SCHEMA), "clicks")


def _known_states(edges: pa.Table, states: pa.Table) -> tuple[Bools, Int64s]:
    ordered = states.sort_by("url_id")
    place = positions(int64s(ordered["url_id"]), int64s(edges["url_id"]))
    known = place >= 0
    return known, int64s(ordered["state"])[place[known]]


def transition_matrix(steps: pa.Table | None, states: int, smoothing: float) -> Float64s:
    """T(s, s'), the share of clicks from s that lead to s', smoothed; float64[states, states], rows sum to 1.

    Args:
        steps: rows of `STEP_SCHEMA`, in any order; equal steps are added.
        states: number of states.
        smoothing: clicks of each step beforehand.
    """
    clicks = np.zeros((states, states), dtype=np.int64)
    if steps is not None:
        np.add.at(clicks, (int64s(steps["source"]), int64s(steps["target"])), int64s(steps["clicks"]))
    return np.asarray((clicks + smoothing) / (clicks.sum(axis=1, keepdims=True) + smoothing * states))


def harvested_states(descriptions: Descriptions, model: LayerWords) -> pa.Table:
    """Posteriors of the states of the harvested pages of a part, given their words, a table of `POSTERIOR_SCHEMA`."""
    harvested = descriptions.select(descriptions.place >= 0)
    posterior = posteriors(model.bayes.log_likelihoods(page_words(harvested)))
    lengths = np.full(len(harvested), posterior.shape[1], dtype=np.int64)
    lists = list_column(pa.array(posterior.ravel()), pointers(lengths))
    return pa.table([pa.array(harvested.place), lists], schema=POSTERIOR_SCHEMA)


@dataclass(frozen=True, eq=False)
class BrowsingModel:
    """A hidden Markov model of k states, and where the harvested pages are.

    Attributes:
        words: what the states emit.
        transitions: T(s, s'), float64[k, k].
        linkers: P(s | u) of each harvested page, by place, float64[h, k].
    """

    words: LayerWords
    transitions: Float64s
    linkers: Float64s

    @classmethod
    def of_parts(
        cls,
        words: LayerWords,
        steps: pa.Table | None,
        linkers: pa.Table | None,
        *,
        harvested: int,
        settings: HmmSettings,
    ) -> BrowsingModel:
        """The model from what the parts counted.

        Args:
            words: what the states emit.
            steps: rows of `STEP_SCHEMA` of all parts, in any order.
            linkers: rows of `POSTERIOR_SCHEMA` of all parts, in any order.
            harvested: h; a harvested page that no part describes may be in any state.
            settings: smoothing and number of layers.
        """
        states = settings.words.states
        posterior = np.tile(first_states(words), (harvested, 1))
        if linkers is not None:
            values = np.asarray(list_parts(linkers["posterior"])[1].to_numpy())
            posterior[int64s(linkers["place"])] = values.reshape(-1, states)
        return cls(words, transition_matrix(steps, states, settings.smoothing), posterior)

    @classmethod
    def of_facts(cls, facts: Facts, settings: HmmSettings) -> BrowsingModel:
        """The model of a crawl in memory."""
        descriptions, count = facts.descriptions, settings.words.layers.count
        found = layers.layers_of_facts(facts, settings.words.layers)
        counts = layer_word_counts(descriptions, found, settings.words)
        words = LayerWords.of_counts(counts, np.unique(facts.query), facts.words, settings.words)
        edges = _edges_of_facts(facts)
        states = layers.state_table(descriptions, found, count)
        steps = state_steps(edges_from_states(edges, states), states)
        linkers = harvested_states(descriptions, words)
        return cls.of_parts(words, steps, linkers, harvested=descriptions.harvested_count, settings=settings)

    def predicted(self, linkers: sparse.csr_array) -> Float64s:
        """P(s) of URLs before their words are looked at, float64[n, k].

        Args:
            linkers: 1 where a harvested page links to a URL, int64[n, h]; a URL without any may be in any state.
        """
        number = row_sums(linkers)
        mean = np.asarray(linkers.astype(np.float64) @ self.linkers) / np.maximum(number, 1.0)[:, np.newaxis]
        states = len(self.transitions)
        # Not a matrix product: how a library adds may depend on the number of rows.
        moved = np.zeros((len(number), states))
        for state in range(states):
            moved += mean[:, state, np.newaxis] * self.transitions[state]
        return np.where(number[:, np.newaxis] > 0, moved, first_states(self.words))

    def forward(self, linkers: sparse.csr_array, words: sparse.csr_array) -> Float64s:
        """P(s | linkers, words) of URLs, float64[n, k]; zeros where no state has words.

        Args:
            linkers: see `predicted`.
            words: occurrences of words, int64[n, v].
        """
        with np.errstate(divide="ignore"):
            log_predicted = np.log(self.predicted(linkers))
        return posteriors(log_predicted + self.words.bayes.log_likelihoods(words))


def _edges_of_facts(facts: Facts) -> pa.Table:
    clicks = facts.clicks.tocoo()
    source, target = (facts.descriptions.url[ends] for ends in clicks.coords)
    return pa.table([source, target, clicks.data.astype(np.int64)], schema=EDGE_SCHEMA)


def first_states(words: LayerWords) -> Float64s:
    """P(s) of a page of which nothing is known: equal for all states that have words, float64[k]."""
    learned = words.bayes.learned
    return learned / max(int(learned.sum()), 1)


def scores(descriptions: Descriptions, model: BrowsingModel, settings: HmmSettings) -> pa.Table:
    """Scores of the current URLs of a part, 1 - expected distance / L in [0, 1], a table of `SCORED_SCHEMA`.

    0 where no state has words.
    """
    current = descriptions.select(descriptions.current)
    words = page_words(current)
    posterior = model.forward(current.linkers, words)
    terms = [
        *state_terms(posterior, settings.values, words, model.words),
        Term("linkers", row_sums(current.linkers)),
        known_words(current, words),
    ]
    score = expected_value(posterior, settings.values)
    return scored(current.url, score, reason_lists(terms, len(current)))


def rank(facts: Facts, settings: HmmSettings | None = None) -> pa.Table:
    """Scores of the current URLs of a crawl in memory, a table of `SCORED_SCHEMA`."""
    settings = settings or HmmSettings()
    return scores(facts.descriptions, BrowsingModel.of_facts(facts, settings), settings)
