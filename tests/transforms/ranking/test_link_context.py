"""The link context graph against its definition, page by page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.transforms.ranking import link_context
from semrank.transforms.ranking.layer_words import LayerWordSettings
from semrank.transforms.ranking.layers import LayerSettings
from semrank.transforms.ranking.link_context import LinkContextSettings
from semrank.transforms.ranking.naive_bayes import NaiveBayesSettings
from semrank.transforms.ranking.scores import SCORED_SCHEMA
from tests.support.small_crawls import Crawl, Page, crawls
from tests.transforms.ranking.layer_oracle import likelihoods, normalised


def oracle(crawl: Crawl, url: int, settings: LinkContextSettings) -> tuple[int | None, float]:
    """(layer or None for other, posterior) of a URL."""
    words = crawl.pages[url].words
    posterior = normalised(likelihoods(crawl, words, settings.words)[:-1])
    if not words or not any(posterior):
        return None, 0.0
    best = max(posterior)
    return (posterior.index(best) if best >= settings.threshold else None), best


def test_nearest_layer_first() -> None:
    """Seeds have birds, pages that link to them nests, and pages that link to those spiders."""
    crawl = Crawl(
        pages={
            1: Page(seed=True, harvested=True, described=True, text={"bird": 9}),
            2: Page(harvested=True, described=True, text={"nest": 9}),
            3: Page(harvested=True, described=True, text={"spider": 9}),
            4: Page(anchor={"spider": 3}),
            5: Page(anchor={"bird": 2}),
            6: Page(anchor={"nest": 2}),
            7: Page(anchor={"bird": 3}),
            8: Page(anchor={"bird": 1, "nest": 1}),
            9: Page(),
            10: Page(anchor={"hawk": 2}),
        },
        links=[(2, 1), (3, 2)],
    )
    settings = LinkContextSettings(0.6, LayerWordSettings(LayerSettings(3)))
    table = link_context.rank(crawl.facts(), settings)
    assert table.schema == SCORED_SCHEMA
    scores = dict(zip(table["url_id"].to_pylist(), table["score"].to_pylist(), strict=True))
    assert sorted(scores, key=scores.__getitem__, reverse=True) == [7, 5, 6, 4, 8, 10, 9]
    assert scores[5] > 3 / 4 >= scores[6] > 2 / 4 >= scores[4] > 1 / 4 >= scores[8]
    assert scores[9] == 0
    # P(bird | layer) = 10/17, 1/17, 1/17.
    assert scores[5] == pytest.approx((3 + 100 / 102) / 4, abs=1e-12)
    reasons = dict(zip(table["url_id"].to_pylist(), table["reasons"].to_pylist(), strict=True))
    assert [term["term"] for term in reasons[5]] == ["layer-nearness", "posterior", "words"]
    assert [term["detail"] for term in reasons[5][:2]] == ["layer 0 of 0 to 2", "bird"]
    assert next(term for term in reasons[8] if term["term"] == "layer-nearness")["detail"] == "other"


@given(
    crawl=crawls(),
    threshold=st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0]),
    count=st.integers(1, 4),
    smoothing=st.sampled_from([0.1, 1.0]),
)
def test_equals_the_definition(crawl: Crawl, threshold: float, count: int, smoothing: float) -> None:
    words = LayerWordSettings(LayerSettings(count), NaiveBayesSettings(smoothing, most_words=10))
    settings = LinkContextSettings(threshold, words)
    table = link_context.rank(crawl.facts(), settings)
    assert table["url_id"].to_pylist() == crawl.current
    for url, score, terms in zip(crawl.current, table["score"].to_pylist(), table["reasons"].to_pylist(), strict=True):
        assert 0 <= score <= 1
        explained = sum(term["value"] * term["weight"] for term in terms if term["weight"] is not None)
        assert score == pytest.approx(explained, abs=1e-9)
        layer, best = oracle(crawl, url, settings)
        values = {(count - layer if layer is not None else 0) + best}
        rivals = normalised(likelihoods(crawl, crawl.pages[url].words, words)[:-1])
        # Where layers tie, or the threshold is met exactly, the last digits of floats decide.
        tied = [place for place, value in enumerate(rivals) if best and abs(value - best) < 1e-9]
        values |= {count - place + best for place in tied if best > threshold - 1e-9}
        values |= {best} if abs(best - threshold) < 1e-9 else set()
        assert any(score == pytest.approx(value / (count + 1), abs=1e-9) for value in values)
