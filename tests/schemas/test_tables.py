"""Tables held to their schemas: order, types, missing columns, nulls."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from semrank.schemas.errors import InputError
from semrank.schemas.tables import CLICKS, LINKS, PAGES, TIMESTAMP, SchemaMismatchError, conform

NOON = datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.UTC)
CLICK = {"user_id": ["u"], "query": ["q"], "url": ["https://a.example/"]}


def test_columns_are_ordered_completed_and_chosen() -> None:
    found = conform(pa.table({"odd": [1], "target_url": ["b"], "nofollow": [True], "source_url": ["a"]}), LINKS)
    assert found.schema == LINKS.schema
    assert found.to_pylist() == [{"source_url": "a", "target_url": "b", "anchor_text": None, "nofollow": True}]
    assert LINKS.required == ("source_url", "target_url")


@pytest.mark.parametrize(
    "moment",
    [
        pa.array([NOON]),
        pa.array([NOON.replace(tzinfo=None)], pa.timestamp("ns")),
        pa.array([NOON]).cast(pa.timestamp("s", "Europe/Berlin")),
        pa.array(["2020-01-01T12:00:00Z"]),
        pa.array(["2020-01-01T13:00:00+01:00"]).cast(pa.large_string()),
    ],
    ids=["as it is", "without zone", "other zone", "text", "text with offset"],
)
def test_times_become_utc(moment: pa.Array) -> None:
    found = conform(pa.table({**CLICK, "clicked_at": moment}), CLICKS)
    assert found.schema.field("clicked_at").type == TIMESTAMP
    assert found["clicked_at"].to_pylist() == [NOON]


def test_a_day_is_its_midnight() -> None:
    found = conform(pa.table({**CLICK, "clicked_at": pa.array([NOON.date()])}), CLICKS)
    assert found["clicked_at"].to_pylist() == [NOON.replace(hour=0)]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.table({"source_url": ["a"]}), "column 'target_url' is missing; found columns \\['source_url'\\]"),
        (pa.table({"source_url": ["a"], "target_url": [None]}), "'target_url' has 1 null values, expected none"),
        (pa.table({"source_url": ["a"], "target_url": [["b"]]}), "has type list<.*does not convert to the expected"),
        (pa.table({"source_url": ["a"], "target_url": ["b"], "nofollow": ["often"]}), "'nofollow' has type string"),
    ],
    ids=["missing", "null", "type", "value"],
)
def test_what_does_not_fit_is_named(table: pa.Table, message: str) -> None:
    with pytest.raises(SchemaMismatchError, match=message) as error:
        conform(table, LINKS)
    assert isinstance(error.value, InputError)


def test_nulls_may_be_left_to_the_reader() -> None:
    found = conform(pa.table({"url": ["a", None]}), PAGES, check_nulls=False)
    assert found["url"].to_pylist() == ["a", None]
    assert found.schema.field("url").nullable
    assert PAGES.empty().num_rows == 0
