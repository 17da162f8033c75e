"""The relevancy context graph against its definition, page by page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.transforms.ranking import relevancy_context
from semrank.transforms.ranking.layer_words import LayerWordSettings
from semrank.transforms.ranking.layers import LayerSettings
from semrank.transforms.ranking.relevancy_context import RelevancyContextSettings
from semrank.transforms.ranking.scores import SCORED_SCHEMA
from tests.support.small_crawls import Crawl, Page, crawls
from tests.transforms.ranking.layer_oracle import likelihoods, normalised


def test_expected_worth_by_hand() -> None:
    """P(bird | layer 0) = 10/17, P(bird | layer 1) = P(bird | other) = 1/17; layer 2 has no page."""
    crawl = Crawl(
        pages={
            1: Page(seed=True, harvested=True, described=True, text={"bird": 9}),
            2: Page(harvested=True, described=True, text={"nest": 9}),
            3: Page(harvested=True, described=True, text={"spider": 9}),
            4: Page(anchor={"bird": 1}),
            5: Page(),
        },
        links=[(2, 1)],
    )
    settings = RelevancyContextSettings(0.5, LayerWordSettings(LayerSettings(3)))
    table = relevancy_context.rank(crawl.facts(), settings)
    assert table.schema == SCORED_SCHEMA
    assert table["score"].to_pylist() == pytest.approx([10 / 12 + 0.5 / 12, 1 / 3 + 0.5 / 3], abs=1e-12)
    terms = table["reasons"][0].as_py()
    assert [(term["term"], term["weight"], term["detail"]) for term in terms] == [
        ("layer-0", 1.0, "bird"),
        ("layer-1", 0.5, None),
        ("other", 0.0, None),
        ("words", None, "anchors, their surroundings, address and queries"),
    ]
    assert [term["value"] for term in terms[:3]] == pytest.approx([10 / 12, 1 / 12, 1 / 12], abs=1e-12)


@given(crawl=crawls(), decay=st.floats(0, 1), count=st.integers(1, 4))
def test_equals_the_definition(crawl: Crawl, decay: float, count: int) -> None:
    settings = RelevancyContextSettings(decay, LayerWordSettings(LayerSettings(count)))
    table = relevancy_context.rank(crawl.facts(), settings)
    assert table["url_id"].to_pylist() == crawl.current
    expected = []
    for url in crawl.current:
        posterior = normalised(likelihoods(crawl, crawl.pages[url].words, settings.words))
        expected.append(sum(share * decay**layer for layer, share in enumerate(posterior[:-1])))
    assert table["score"].to_pylist() == pytest.approx(expected, abs=1e-9)
    assert all(0 <= score <= 1 for score in table["score"].to_pylist())
