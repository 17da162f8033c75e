"""The cosine ranker against P13 Eq. 2 by hand and word by word."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.transforms.ranking import cosine
from semrank.transforms.ranking.cosine import CosineSettings
from semrank.transforms.ranking.scores import SCORED_SCHEMA
from tests.support.small_crawls import Crawl, Page, crawls

SEED, NEAR, FAR, TOLD = 5, 6, 7, 8

EXAMPLE = Crawl(
    pages={
        SEED: Page(seed=True, harvested=True, described=True, text={"bird": 2, "hawk": 2}),
        NEAR: Page(described=True, text={"hawk": 1, "nest": 3}, anchor={"spider": 9}),
        FAR: Page(described=True, text={"spider": 4}),
        TOLD: Page(anchor={"bird": 1}, around={"bird": 1, "lattice": 1}, query={"nest": 50}),
    },
    links=[(SEED, NEAR), (SEED, FAR), (SEED, TOLD)],
)


def oracle_weights(counts: Counter[str], crawl: Crawl, k: float, b: float) -> dict[str, float]:
    mean = sum(page.words.total() for page in crawl.pages.values()) / len(crawl.pages) or 1.0
    damping = k * ((1 - b) + b * counts.total() / mean)
    weights = {}
    for word, tf in counts.items():
        cfw = max(0.0, math.log(len(crawl.pages) / max(crawl.documents(word), 1)))
        weights[word] = cfw * tf * (k + 1) / (damping + tf)
    return weights


def oracle(crawl: Crawl, k: float, b: float) -> list[float]:
    topic = oracle_weights(crawl.topic(), crawl, k, b)
    scores = []
    for url in crawl.current:
        weights = oracle_weights(crawl.pages[url].words, crawl, k, b)
        length = math.hypot(*weights.values()) * math.hypot(*topic.values())
        scores.append(sum(weights[word] * topic.get(word, 0) for word in weights) / length if length else 0.0)
    return scores


def test_equation_2_by_hand() -> None:
    """Lengths 4, 4, 4 and 4 (the clicked word once), so N(d) = 1; with k = 2 a weight is cfw tf 3 / (2 + tf)."""
    table = cosine.rank(EXAMPLE.facts(), CosineSettings(k=2.0, b=0.75))
    assert table.schema == SCORED_SCHEMA
    assert table["url_id"].to_pylist() == [NEAR, FAR, TOLD]
    # bird and hawk are in 2 of 4 URLs: cfw ln 2; the others in one, as clicked words don't count: cfw ln 4.
    rare, common = math.log(4), math.log(2)
    seed = math.hypot(common * 1.5, common * 1.5)
    near = common * 1.0 * common * 1.5 / (seed * math.hypot(common * 1.0, rare * 1.8))
    told = common * 1.5 * common * 1.5 / (seed * math.hypot(common * 1.5, rare * 1.0, rare * 1.0))
    assert table["score"].to_pylist() == pytest.approx([near, 0.0, told], abs=1e-12)
    terms = table["reasons"][0].as_py()
    assert [term["term"] for term in terms] == ["cosine", "words"]
    assert terms[0] == {"term": "cosine", "value": pytest.approx(near), "weight": 1.0, "detail": "hawk"}
    assert terms[1] == {"term": "words", "value": 4.0, "weight": None, "detail": "own text"}
    assert table["reasons"][1].as_py()[0]["detail"] is None
    assert table["reasons"][2].as_py()[1]["detail"] == "anchors, their surroundings, address and queries"


def test_query_without_seeds() -> None:
    crawl = Crawl(
        {1: Page(anchor={"bird": 1}), 2: Page(anchor={"hawk": 1}), 3: Page()}, links=[], query=("hawk", "zebra", "hawk")
    )
    assert cosine.rank(crawl.facts())["score"].to_pylist() == [0.0, 1.0, 0.0]


def test_no_current_url() -> None:
    assert cosine.rank(Crawl({1: Page(seed=True, harvested=True)}, []).facts()).num_rows == 0


@given(crawl=crawls(), k=st.floats(0, 50), b=st.floats(0, 1))
def test_equals_the_definition(crawl: Crawl, k: float, b: float) -> None:
    table = cosine.rank(crawl.facts(), CosineSettings(k, b))
    assert table["url_id"].to_pylist() == crawl.current
    score = table["score"].to_pylist()
    assert score == pytest.approx(oracle(crawl, k, b), abs=1e-9)
    assert all(0 <= value <= 1 for value in score)
