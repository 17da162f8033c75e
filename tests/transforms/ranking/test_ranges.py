"""Scores of every ranker that ranks by facts lie between 0 and 1, whatever its options are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semrank.pipelines.config import RANKER_OPTIONS, RoundConfig, ranker_options
from semrank.pipelines.options import declared
from semrank.transforms.ranking import registry
from tests.support.small_crawls import Crawl, crawls

BY_FACTS = [name for name, ranker in registry.RANKERS.items() if ranker.module is not None]
READ_FROM_FILES = ("ontology", "topic")
NEEDS_SESSIONS = "topic_relations"


def values_of(name: str) -> st.SearchStrategy[Any]:
    """Values that an option takes, its ends among them."""
    option = declared(RoundConfig)[name][0]
    if option.choices:
        return st.sampled_from(option.choices)
    return st.one_of(
        st.sampled_from([option.low, option.high]) if not option.above else st.just(option.high),
        st.floats(option.low, option.high, exclude_min=option.above),
    )


@pytest.mark.parametrize("ranker", BY_FACTS)
@settings(max_examples=20)
@given(crawl=crawls(), data=st.data())
def test_scores_lie_between_0_and_1(ranker: str, crawl: Crawl, data: st.DataObject) -> None:
    own = [
        name
        for name in RANKER_OPTIONS
        if ranker in registry.with_option(name) and name not in (*READ_FROM_FILES, NEEDS_SESSIONS)
    ]
    chosen = data.draw(st.fixed_dictionaries({}, optional={name: values_of(name) for name in own}))
    facts = crawl.facts()
    table = registry.ranker(ranker, ranker_options(ranker, chosen))(facts)
    assert sorted(table["url_id"].to_pylist()) == sorted(crawl.current)
    assert all(0 <= score <= 1 for score in table["score"].to_pylist())
