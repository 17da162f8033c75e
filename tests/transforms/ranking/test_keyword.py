"""The keyword ranker by hand and word by word."""

from __future__ import annotations

import math
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.transforms.ranking import keyword
from semrank.transforms.ranking.scores import SCORED_SCHEMA
from tests.support.small_crawls import Crawl, Page, crawls


def oracle_keywords(crawl: Crawl, count: int) -> set[str]:
    weights = {}
    for word in crawl.words:
        occurrences = sum(crawl.pages[url].words[word] for url in crawl.seeds)
        weights[word] = occurrences * max(0.0, math.log(len(crawl.pages) / max(crawl.documents(word), 1)))
    best = sorted((word for word in weights if weights[word] > 0), key=lambda word: (-weights[word], word))
    return {*best[:count], *(word for word in crawl.query if word in crawl.words)}


def ranked(crawl: Crawl, count: int) -> pa.Table:
    with patch.object(keyword, "SEED_WORDS", count):
        return keyword.rank(crawl.facts())


def test_share_by_hand() -> None:
    """Topic words: lattice (asked), hawk (3 ln 4) and bird (2 ln 2); crawl (4 ln 4/4 = 0) is everywhere."""
    crawl = Crawl(
        pages={
            1: Page(seed=True, harvested=True, described=True, text={"hawk": 3, "bird": 2, "crawl": 4, "nest": 1}),
            2: Page(described=True, text={"bird": 40, "crawl": 1, "nest": 1}),
            3: Page(anchor={"crawl": 1}, query={"hawk": 7, "lattice": 2}),
            4: Page(described=True, text={"crawl": 1}, anchor={"bird": 1}),
        },
        links=[],
        query=("lattice", "zebra"),
    )
    table = ranked(crawl, 2)
    assert table.schema == SCORED_SCHEMA
    assert table["url_id"].to_pylist() == [2, 3, 4]
    assert table["score"].to_pylist() == pytest.approx([1 / 3, 2 / 3, 0.0], abs=1e-12)
    details = [reasons[0]["detail"] for reasons in table["reasons"].to_pylist()]
    assert details == ["bird", "lattice, hawk", None]


@given(crawl=crawls(), count=st.integers(0, 6))
def test_equals_the_definition(crawl: Crawl, count: int) -> None:
    table = ranked(crawl, count)
    keywords = oracle_keywords(crawl, count)
    expected = [len(keywords & set(crawl.pages[url].words)) / max(len(keywords), 1) for url in crawl.current]
    assert table["url_id"].to_pylist() == crawl.current
    assert table["score"].to_pylist() == pytest.approx(expected, abs=1e-12)
