"""Replayed crawls against a loop over sets, and by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from semrank.transforms.columnar.arrays import Float64s
from semrank.transforms.replay.replay import Moment, Omniscient, candidate_scores, drawn_seeds, replay, replay_expansion

Edges = list[tuple[int, int]]


class ByNumber:
    """Scores each candidate by a number of its own; notes the moments."""

    def __init__(self, scores: list[float]) -> None:
        self.own, self.moments = np.array(scores), list[Moment]()

    def look(self, moment: Moment) -> Moment:
        self.moments.append(moment)
        return moment

    def scores(self, known: Moment) -> Float64s:
        return self.own[known.candidates]


def web(edges: Edges, count: int) -> sparse.csr_array:
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return sparse.csr_array((np.ones(len(ends), dtype=np.int64), (ends[:, 0], ends[:, 1])), shape=(count, count))


def naive_crawl(score: Callable[[int], float], edges: Edges, seeds: set[int], budget: int, batch: int) -> list[int]:
    fetched, order = set(seeds), list[int]()
    while len(order) < budget:
        candidates = {target for source, target in edges if source in fetched} - fetched
        if not candidates:
            break
        best = sorted(candidates, key=lambda page: (-score(page), page))[: min(batch, budget - len(order))]
        order += best
        fetched |= set(best)
    return order


def naive_expansion(score: Callable[[int], float], edges: Edges, seeds: set[int], budget: int) -> list[int]:
    """P13 section 4: fetch the children of the running pages, rank the waiting pages, run the best."""
    fetched, expanded, order, running = set(seeds), set[int](), list[int](), sorted(seeds)
    while running:
        for page in running:
            expanded.add(page)
            children = sorted({target for source, target in edges if source == page} - fetched)
            order += children
            fetched |= set(children)
        running = sorted(fetched - expanded, key=lambda page: (-score(page), page))[:1]
        if len(order) >= budget:
            break
    return order[:budget]


CHAIN: Edges = [(0, 1), (0, 2), (1, 3), (2, 4), (4, 5), (3, 0)]


def test_best_first_then_smaller_number() -> None:
    crawl = replay(ByNumber([0, 1, 1, 9, 5, 7]), web(CHAIN, 6), np.array([0]), budget=10, batch=1)
    assert crawl.order.tolist() == [1, 3, 2, 4, 5]


def test_a_batch_is_chosen_at_once() -> None:
    crawl = replay(ByNumber([0, 1, 1, 9, 5, 7]), web(CHAIN, 6), np.array([0]), budget=3, batch=2)
    assert crawl.order.tolist() == [1, 2, 3]


def test_what_a_crawl_knows() -> None:
    crawler = ByNumber([0, 1, 2, 9, 5, 7])
    replay(crawler, web([*CHAIN, (0, 5)], 6), np.array([4, 0, 4]), budget=2, batch=1)
    first, second = crawler.moments
    assert [first.seeds.tolist(), first.harvested.tolist(), first.batch.tolist()] == [[0, 4]] * 3
    assert first.candidates.tolist() == [1, 2, 5]
    assert first.discovery.tolist() == [0, 4, 1, 2, 5]
    assert second.seeds.tolist() == [0, 4]
    assert second.harvested.tolist() == [0, 4, 5]
    assert second.batch.tolist() == [5]
    assert second.candidates.tolist() == [1, 2]


def test_discovery_follows_the_order_of_fetching() -> None:
    crawler = ByNumber([0, 0, 9, 9, 8, 0, 0])
    edges = [(0, 2), (0, 4), (4, 1), (2, 6), (2, 5), (1, 3)]
    replay(crawler, web(edges, 7), np.array([0]), budget=4, batch=2)
    # Page 2 is fetched before page 4, so what it links to comes first.
    assert crawler.moments[1].discovery.tolist() == [0, 2, 4, 5, 6, 1]


def test_scores_and_seconds_of_a_crawl() -> None:
    crawler = ByNumber([0.0, 0.25, 0.5, 1.0, -2.0, 0.125])
    crawl = replay(crawler, web(CHAIN, 6), np.array([0]), budget=2, batch=1)
    assert crawl.order.tolist() == [2, 1]
    np.testing.assert_array_equal(crawl.scores, [np.nan, 0.25, 0.5, np.nan, -2.0, np.nan])
    assert (crawl.lowest, crawl.highest) == (-2.0, 0.5)
    assert 0 <= crawl.seconds[0] <= crawl.seconds[1]


def test_seeds_without_links() -> None:
    crawl = replay(ByNumber([0, 0]), web([(1, 0)], 2), np.array([0]), budget=5, batch=2)
    assert len(crawl.order) == len(crawl.seconds) == 0
    assert np.isnan(crawl.scores).all()


def test_differences_below_the_rounding_are_ties() -> None:
    crawl = replay(ByNumber([0, 0.1, 0.1 + 1e-15]), web([(0, 1), (0, 2)], 3), np.array([0]), budget=1, batch=1)
    assert crawl.order.tolist() == [1]


@pytest.mark.parametrize("wrong", [[1.0], [1.0, np.nan], [1.0, np.inf]])
def test_wrong_scores_are_an_error(wrong: list[float]) -> None:
    class Wrong(ByNumber):
        def scores(self, known: Moment) -> Float64s:
            assert len(known.candidates) == 2
            return np.array(wrong)

    with pytest.raises(ValueError, match="expected 2 finite numbers"):
        replay(Wrong([]), web([(0, 1), (0, 2)], 3), np.array([0]), budget=1, batch=1)


@given(
    edges=st.lists(
        st.tuples(st.integers(0, 11), st.integers(0, 11)).filter(lambda edge: edge[0] != edge[1]), max_size=40
    ),
    scores=st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=12, max_size=12),
    seeds=st.sets(st.integers(0, 11), min_size=1, max_size=3),
    budget=st.integers(1, 14),
    batch=st.integers(1, 5),
)
@settings(max_examples=60, deadline=None)
def test_crawls_equal_the_naive_ones(
    edges: Edges, scores: list[float], seeds: set[int], budget: int, batch: int
) -> None:
    links = web(sorted(set(edges)), 12)
    crawl = replay(ByNumber(scores), links, np.array(sorted(seeds)), budget=budget, batch=batch)
    assert crawl.order.tolist() == naive_crawl(lambda page: scores[page], edges, seeds, budget, batch)


def test_candidates_without_a_row_have_score_0() -> None:
    table = pa.table({"url_id": [7, -3], "score": [0.5, 2.0]})
    assert candidate_scores(table, np.array([-3, 1, 7])).tolist() == [2.0, 0.0, 0.5]
    assert candidate_scores(table.slice(0, 0), np.array([1])).tolist() == [0.0]


URLS = [f"https://a.example/{number}" for number in range(50)]


def chosen(urls: list[str], **changes: Any) -> list[str]:
    options: dict[str, Any] = {"topic": "t", "count": 4, "seed_set": 0, "random_seed": 0, **changes}
    array = pa.array(urls, pa.string())
    found: list[str] = array.take(pa.array(drawn_seeds(options.pop("topic"), array, **options))).to_pylist()
    return found


def test_seeds_do_not_depend_on_the_order_of_the_pages() -> None:
    assert sorted(chosen(URLS)) == sorted(chosen(URLS[::-1])) == sorted(set(chosen(URLS)))
    assert len(chosen(URLS)) == 4


def test_seeds_are_the_smallest_by_hash() -> None:
    def key(url: str) -> int:
        return int.from_bytes(xxhash.xxh3_128_digest(f"5|2|birds|{url}".encode())[8:], "big", signed=True)

    assert sorted(chosen(URLS, topic="birds", seed_set=2, random_seed=5)) == sorted(sorted(URLS, key=key)[:4])


def test_seeds_differ_by_set_topic_and_seed_number() -> None:
    draws = [chosen(URLS, **change) for change in ({}, {"seed_set": 1}, {"topic": "u"}, {"random_seed": 1})]
    assert len({tuple(draw) for draw in draws}) == 4


def test_all_pages_of_a_small_topic_are_seeds() -> None:
    assert chosen(URLS[:3]) == URLS[:3]


def test_every_page_can_be_drawn() -> None:
    drawn = {url for number in range(200) for url in chosen(URLS, seed_set=number)}
    assert drawn == set(URLS)


@given(
    edges=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=40),
    scores=st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=12, max_size=12),
    seeds=st.sets(st.integers(0, 11), min_size=1, max_size=3),
    budget=st.integers(1, 12),
)
@settings(max_examples=200)
def test_expansions_equal_a_loop_over_sets(edges: Edges, scores: list[float], seeds: set[int], budget: int) -> None:
    crawler = ByNumber(scores)
    crawl = replay_expansion(crawler, web(edges, 12), np.array(sorted(seeds)), budget=budget)
    assert crawl.order.tolist() == naive_expansion(scores.__getitem__, edges, seeds, budget)
    assert (np.diff(crawl.seconds) >= 0).all()
    for moment in crawler.moments:
        # Whatever is known was fetched: it is expanded or it waits.
        known = np.concatenate([moment.harvested, moment.candidates])
        assert sorted(known.tolist()) == sorted(moment.discovery.tolist())
        assert set(moment.batch.tolist()) <= set(moment.harvested.tolist())


def test_an_expansion_by_hand() -> None:
    crawler = ByNumber([0, 1, 2, 9, 5, 7])
    crawl = replay_expansion(crawler, web(CHAIN, 6), np.array([0]), budget=10)
    # 1 and 2 are fetched for the seed; 2 is expanded to 4, 4 to 5, 5 to nothing, 1 to 3, and 3 to nothing more.
    assert crawl.order.tolist() == [1, 2, 4, 5, 3]
    assert [moment.batch.tolist() for moment in crawler.moments] == [[0], [2], [4], [5], [1]]
    assert crawl.seconds[:2].tolist() == [0, 0]


def test_whoever_knows_the_labels() -> None:
    relevant = np.array([False, False, False, True, False, True])
    graph = web([(0, 1), (0, 2), (1, 3), (2, 4), (2, 5), (3, 5)], 6)
    assert replay(Omniscient(relevant, None), graph, np.array([0]), budget=4, batch=1).order.tolist() == [1, 3, 5, 2]
    # 1 leads to nothing but the relevant 3; half of what 2 leads to is relevant; then 3 leads to 5.
    assert replay_expansion(Omniscient(relevant, graph), graph, np.array([0]), budget=4).order.tolist() == [1, 2, 3, 5]
