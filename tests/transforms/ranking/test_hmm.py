"""The hidden Markov ranker against hmmlearn, and against its definition by sums over all paths."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hmmlearn.hmm import MultinomialHMM
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from semrank.transforms.ranking import hmm
from semrank.transforms.ranking.hmm import STEP_SCHEMA, BrowsingModel, HmmSettings, transition_matrix
from semrank.transforms.ranking.layer_words import LayerWords, LayerWordSettings
from semrank.transforms.ranking.layers import LayerSettings
from semrank.transforms.ranking.naive_bayes import NaiveBayes, NaiveBayesSettings, posteriors
from semrank.transforms.ranking.scores import SCORED_SCHEMA
from tests.support.small_crawls import Crawl, Page, crawls
from tests.transforms.ranking.layer_oracle import likelihoods, normalised, state_words, states_of


def oracle_transitions(crawl: Crawl, count: int, smoothing: float) -> list[list[float]]:
    states = {url: state for url, state in states_of(crawl, count).items() if url in crawl.pages}
    clicks = [[smoothing] * (count + 1) for _ in range(count + 1)]
    for (source, target), times in crawl.clicks.items():
        if source in states and target in states:
            clicks[states[source]][states[target]] += times
    return [[value / sum(row) for value in row] for row in clicks]


def oracle(crawl: Crawl, url: int, settings: HmmSettings) -> float:
    count = settings.words.layers.count
    learned = [1.0 if words else 0.0 for words in state_words(crawl, count)]
    transitions = oracle_transitions(crawl, count, settings.smoothing)
    own = likelihoods(crawl, crawl.pages[url].words, settings.words)
    linkers = crawl.linkers(url)
    joint = [0.0] * (count + 1)
    for linker in linkers:
        before = normalised(likelihoods(crawl, crawl.pages[linker].words, settings.words))
        for state, probability in enumerate(before):
            for after in range(count + 1):
                joint[after] += probability * transitions[state][after] * own[after] / len(linkers)
    if not linkers:
        joint = [first * emitted for first, emitted in zip(normalised(learned), own, strict=True)]
    return sum(share * (1 - distance / count) for distance, share in enumerate(normalised(joint)))


@given(
    crawl=crawls(),
    count=st.integers(1, 4),
    smoothing=st.sampled_from([0.05, 1.0, 20.0]),
)
def test_equals_the_definition(crawl: Crawl, count: int, smoothing: float) -> None:
    words = LayerWordSettings(LayerSettings(count), NaiveBayesSettings(most_words=10))
    settings = HmmSettings(smoothing, words)
    table = hmm.rank(crawl.facts(), settings)
    assert table.schema == SCORED_SCHEMA
    assert table["url_id"].to_pylist() == crawl.current
    scores = table["score"].to_pylist()
    assert scores == pytest.approx([oracle(crawl, url, settings) for url in crawl.current], abs=1e-9)
    assert all(0 <= score <= 1 for score in scores)


@pytest.mark.parametrize("number", range(5))
def test_forward_step_equals_hmmlearn(number: int) -> None:
    """Two pages of a session, 12 words each: the filtered state of the second, from equally likely first states."""
    chance = np.random.default_rng(number)
    states, words, length = 4, 6, 12
    log_words = np.log(chance.dirichlet(np.ones(words), states))
    transitions = chance.dirichlet(np.ones(states), states)
    pages = chance.multinomial(length, chance.dirichlet(np.ones(words), 2))

    peer = MultinomialHMM(n_components=states, n_trials=length)
    peer.n_features = words
    peer.startprob_ = np.full(states, 1 / states)
    peer.transmat_ = transitions
    peer.emissionprob_ = np.exp(log_words)
    expected = peer.predict_proba(pages)[1]

    bayes = NaiveBayes(np.ascontiguousarray(log_words.T), np.ones(states, dtype=np.bool_), math.inf)
    model = LayerWords(bayes, pa.array([str(word) for word in range(words)]))
    linkers = posteriors(bayes.log_likelihoods(sparse.csr_array(pages[:1])))
    browsing = BrowsingModel(model, transitions, linkers)
    found = browsing.forward(sparse.csr_array(np.ones((1, 1), dtype=np.int64)), sparse.csr_array(pages[1:]))
    np.testing.assert_allclose(found[0], expected, rtol=1e-9)


def test_transitions_by_hand() -> None:
    """Three clicks from state 0 to 1, in two parts, and one from 1 to 0, each step once beforehand."""
    steps = pa.table([[0, 1, 0], [1, 0, 1], [2, 1, 1]], schema=STEP_SCHEMA)
    assert transition_matrix(steps, 2, 1.0).tolist() == [[1 / 5, 4 / 5], [2 / 3, 1 / 3]]
    assert transition_matrix(None, 2, 0.5).tolist() == [[0.5, 0.5]] * 2


def test_browsing_decides_between_equal_words() -> None:
    """Readers go from pages with nests to seeds, from those with spiders to others: what nests link to is near."""
    crawl = Crawl(
        pages={
            1: Page(seed=True, harvested=True, described=True, text={"bird": 9}),
            2: Page(harvested=True, described=True, text={"nest": 9}),
            3: Page(harvested=True, described=True, text={"spider": 9}),
            4: Page(),
            5: Page(),
        },
        links=[(2, 1), (2, 4), (3, 5)],
        clicks={(2, 1): 20, (3, 2): 1, (1, 3): 1},
    )
    settings = HmmSettings(words=LayerWordSettings(LayerSettings(2)))
    table = hmm.rank(crawl.facts(), settings)
    near, far = table["score"].to_pylist()
    assert near > 0.75 > far
    terms = table["reasons"][0].as_py()
    assert [(term["term"], term["weight"]) for term in terms] == [
        ("layer-0", 1.0),
        ("layer-1", 0.5),
        ("other", 0.0),
        ("linkers", None),
        ("words", None),
    ]
    assert terms[3]["value"] == 1.0


def test_nothing_known() -> None:
    crawl = Crawl({1: Page(seed=True, harvested=True), 2: Page(anchor={"bird": 1})}, [(1, 2)])
    assert hmm.rank(crawl.facts())["score"].to_pylist() == [0.0]
