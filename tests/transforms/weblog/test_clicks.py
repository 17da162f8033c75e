"""The click log's rows as ids, against counting by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from semrank.schemas.tables import CLICKS
from semrank.transforms.columnar.arrays import int64s
from semrank.transforms.weblog.clicks import NO_GROUP, Clicks, read_clicks, url_word_clicks, word_clicks
from tests.support.clicks import WORDS, number, split_words
from tests.support.snapshots import table_of
from tests.support.strategies import START


@st.composite
def rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    keywords = st.none() | st.lists(st.sampled_from(WORDS), max_size=3)
    row = st.fixed_dictionaries(
        {
            "user_id": st.sampled_from(["u", "v"]),
            "user_group": st.sampled_from([None, "g", "h"]),
            "session_id": st.sampled_from([None, "s"]),
            "query": st.text("abc x", max_size=4),
            "keywords": keywords,
            "clicked_at": st.just(START),
            "position": st.sampled_from([None, 0, 3]),
            "url": st.sampled_from(["https://a.example/", "https://b.example/", "https://c.example/"]),
        }
    )
    return draw(st.lists(row, max_size=12))


def words_of(row: dict[str, Any]) -> set[str]:
    return set(row["query"]) & set(WORDS) if row["keywords"] is None else set(row["keywords"])


def read(clicks: list[dict[str, Any]]) -> Clicks:
    return read_clicks(table_of(clicks, CLICKS), split_words)


@given(rows())
def test_every_click_keeps_its_words_once(log: list[dict[str, Any]]) -> None:
    clicks = read(log)
    assert len(clicks) == len(log)
    for place, row in enumerate(log):
        words = clicks.word[clicks.word_indptr[place] : clicks.word_indptr[place + 1]].tolist()
        assert sorted(words) == sorted(map(number, words_of(row)))
    known = dict(zip(clicks.words["word_id"].to_pylist(), clicks.words["word"].to_pylist(), strict=True))
    assert all(number(word) == word_id for word_id, word in known.items())
    assert known.keys() >= set(clicks.word.tolist())


@given(rows())
def test_the_other_columns_are_ids(log: list[dict[str, Any]]) -> None:
    clicks = read(log)
    for place, row in enumerate(log):
        assert clicks.user[place] == number(row["user_id"])
        assert clicks.group[place] == (NO_GROUP if row["user_group"] is None else number(row["user_group"]))
        assert clicks.session[place] == (0 if row["session_id"] is None else number(row["session_id"]))
        assert clicks.query[place] == number(row["query"])
        assert clicks.position[place] == (-1 if row["position"] is None else row["position"])
        assert clicks.time[place] == int(row["clicked_at"].timestamp()) * 1_000_000
        assert clicks.url[place] == number(row["url"])
    assert set(clicks.url_digests[:, 0].tolist()) == {number(row["url"]) for row in log}
    assert not clicks.in_one_group().group.any()


@given(rows())
def test_counts_of_words(log: list[dict[str, Any]]) -> None:
    clicks = read(log)
    table = word_clicks(clicks)
    found = dict(zip(table["word_id"].to_pylist(), table["clicks"].to_pylist(), strict=True))
    assert len(found) == table.num_rows
    assert found == Counter(number(word) for row in log for word in words_of(row))

    table = url_word_clicks(clicks)
    pairs = zip(table["url_id"].to_pylist(), table["word_id"].to_pylist(), strict=True)
    by_url = dict(zip(pairs, table["clicks"].to_pylist(), strict=True))
    assert len(by_url) == table.num_rows
    assert by_url == Counter((number(row["url"]), number(word)) for row in log for word in words_of(row))


def test_a_slice_of_a_chunked_log_is_read_like_its_rows() -> None:
    log = [
        {"user_id": "u", "query": text, "keywords": words, "clicked_at": START, "url": f"https://{text}.example/"}
        for text, words in (("a", None), ("b", ["c", "c"]), ("c", []), ("ab", None))
    ]
    table = pa.concat_tables([table_of(log[:3], CLICKS), table_of(log[3:], CLICKS)]).slice(1)
    clicks = read_clicks(table, split_words)
    np.testing.assert_array_equal(clicks.word_indptr, [0, 1, 1, 3])
    assert int64s(word_clicks(clicks)["clicks"]).tolist() == [1, 1, 1]
