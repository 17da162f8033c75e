"""Layers around the seeds against shortest paths, however the links are cut, and the cap's effect."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semrank.schemas.errors import InputError
from semrank.transforms.columnar.arrays import MAIN, int64s, split_by_partition
from semrank.transforms.ranking import layers
from semrank.transforms.ranking.layers import BUCKETS, LayerSettings
from tests.support.small_crawls import Crawl, Page, crawls, random_crawl
from tests.transforms.ranking.layer_oracle import oracle


def found(table: pa.Table) -> dict[int, int]:
    urls = table["url_id"].to_pylist()
    assert len(set(urls)) == len(urls)
    return dict(zip(urls, table["layer"].to_pylist(), strict=True))


@given(crawl=crawls(), count=st.integers(1, 5))
def test_layers_are_steps_to_a_seed(crawl: Crawl, count: int) -> None:
    assert found(layers.layers_of_facts(crawl.facts(), LayerSettings(count))) == oracle(crawl, count)


@pytest.mark.parametrize("number", range(3))
def test_layers_of_larger_crawls(number: int) -> None:
    crawl = random_crawl(number, urls=300)
    expected = oracle(crawl, 4)
    assert set(expected.values()) == {0, 1, 2, 3}
    assert found(layers.layers_of_facts(crawl.facts(), LayerSettings(4))) == expected


def test_lowest_ids_stay_under_the_cap() -> None:
    """Seed 0; -4, 2, 9 link to it; 5 to 2 and 7 to 9, which is left out; 9 links to 2, too, so it is found again."""
    page = Page(described=True)
    pages = {0: Page(seed=True, harvested=True), **dict.fromkeys((-4, 2, 5, 7, 9), page)}
    crawl = Crawl(pages, [(-4, 0), (2, 0), (9, 0), (5, 2), (7, 9), (9, 2)])
    table = layers.layers_of_facts(crawl.facts(), LayerSettings(count=4, max_urls=2))
    assert found(table) == {0: 0, -4: 1, 2: 1, 5: 2, 9: 2, 7: 3}


@given(
    ids=st.lists(st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-3, 60), max_size=40, unique=True),
    cap=st.integers(1, 45),
    parts=st.sampled_from([1, 2, 7]),
    order=st.randoms(use_true_random=False),
)
def test_cap_takes_the_lowest_and_counts_the_rest(ids: list[int], cap: int, parts: int, order: random.Random) -> None:
    array = np.array(ids, dtype=np.int64)
    tables = [
        dict(layers.counted_urls(int64s(part["url_id"])))
        for _, part in split_by_partition(pa.table({"url_id": array}), array, parts)
    ]
    order.shuffle(tables)
    if not tables:
        assert layers.cut_of(None, max_urls=cap).num_rows == 0
        return
    cut = layers.cut_of(pa.concat_tables([table[BUCKETS] for table in tables]), max_urls=cap)
    kept = pa.concat_tables([layers.ids_below_cut(table[MAIN], cut) for table in tables])
    table = layers.layer_of(kept, layer=3, max_urls=cap)
    assert table["url_id"].to_pylist() == sorted(ids)[:cap]
    assert set(table["layer"].to_pylist()) == {3}
    assert cut["left_out"].to_pylist() == [max(0, len(ids) - cap)]


def test_cut_spares_the_ids_far_above_it() -> None:
    """What is gathered exceeds the cap by one bucket at most."""
    ids = np.sort(np.random.default_rng(1).integers(-(1 << 63), (1 << 63) - 1, 100_000))
    counted = dict(layers.counted_urls(ids))
    kept = layers.ids_below_cut(counted[MAIN], layers.cut_of(counted[BUCKETS], max_urls=1000))
    assert 1000 <= kept.num_rows <= 1000 + 2 * 100_000 / (1 << layers.BUCKET_BITS)


def test_states() -> None:
    pages = {
        1: Page(seed=True, harvested=True),
        2: Page(described=True),
        3: Page(described=True),
        4: Page(),
    }
    facts = Crawl(pages, [(2, 1), (4, 1)]).facts()
    found_layers = layers.layers_of_facts(facts, LayerSettings(3))
    assert layers.states(facts.descriptions, found_layers, 3).tolist() == [0, 1, 3, layers.NO_STATE]
    assert layers.states(facts.descriptions, None, 3).tolist() == [-1, 3, 3, -1]
    assert layers.state_table(facts.descriptions, found_layers, 3).to_pydict() == {
        "url_id": [1, 2, 3],
        "state": [0, 1, 3],
    }


def test_settings_out_of_range() -> None:
    with pytest.raises(InputError, match="count of layers: found 0, expected a number >= 1"):
        LayerSettings(count=0)
    with pytest.raises(InputError, match="max_urls of layers: found 0, expected a number >= 1"):
        LayerSettings(max_urls=0)
