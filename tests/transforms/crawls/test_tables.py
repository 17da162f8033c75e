from __future__ import annotations

import gzip
import io
import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semrank.schemas.errors import InputError
from semrank.transforms.crawls.tables import (
    JSON_LINES,
    MAX_KEYWORD_CHARS,
    MAX_KEYWORDS,
    PARQUET,
    check_parquet,
    read_json_lines,
    read_parquet,
    table_format,
)
from semrank.transforms.streams.json_lines import read_lines
from semrank.transforms.streams.parquet import groups_in_range
from tests.support.crawls import stream, together

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


def parquet(columns: dict[str, Any], **options: Any) -> io.BytesIO:
    content = io.BytesIO()
    pq.write_table(pa.table(columns), content, **options)
    content.seek(0)
    return content


def from_parquet(table: str, columns: dict[str, Any]) -> dict[str, Any]:
    return together(read_parquet(parquet(columns), table=table, source="f"))


def from_json(table: str, *lines: Any) -> dict[str, Any]:
    content = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines).encode()
    return together(read_json_lines(stream(content), table=table, source="f"))


CLICK = {"user_id": "u", "query": "red apples", "clicked_at": "2024-03-01T12:00:00Z", "url": "http://example.com/a#x"}


def test_clicks_from_both_formats() -> None:
    columns = {name: [value] for name, value in CLICK.items()}
    for found in (from_json("clicks", CLICK), from_parquet("clicks", columns)):
        (row,) = found["clicks"]
        assert row == {
            **dict.fromkeys(("user_group", "session_id", "keywords", "position")),
            "user_id": "u",
            "query": "red apples",
            "clicked_at": NOON,
            "url": "http://example.com/a",
        }


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"user_id": None}, "user-id-missing"),
        ({"user_id": " "}, "user-id-missing"),
        ({"user_id": 7}, "user-id-invalid"),
        ({"query": ""}, "query-missing"),
        ({"query": None}, "query-missing"),
        ({"query": "", "keywords": []}, "query-missing"),
        ({"clicked_at": None}, "clicked-at-missing"),
        ({"clicked_at": "noon"}, "clicked-at-invalid"),
        ({"clicked_at": [1]}, "clicked-at-invalid"),
        ({"clicked_at": True}, "clicked-at-invalid"),
        ({"position": "first"}, "position-invalid"),
        ({"position": 1.5}, "position-invalid"),
        ({"position": 1 << 40}, "position-invalid"),
        ({"position": 1 << 70}, "position-invalid"),
        ({"keywords": "red"}, "keywords-invalid"),
        ({"keywords": [1]}, "keywords-invalid"),
        ({"url": None}, "url-missing"),
        ({"url": "/a"}, "scheme-missing"),
        ({"url": "http://a..b/"}, "host-invalid"),
    ],
)
def test_bad_rows_are_rejected_and_good_ones_beside_them_used(change: dict[str, Any], reason: str) -> None:
    found = from_json("clicks", CLICK, {**CLICK, **change}, CLICK)
    assert (found["records"], found["used"], found["rejected"]) == (3, 2, {reason: 1})
    (reject,) = found["rejects"]
    assert (reject["stage"], reject["reason"]) == ("clicks", reason)
    url = str(change.get("url", "http://example.com/a"))
    quoted = [CLICK["clicked_at"] if "clicked_at" not in change else "", url if url.startswith("http:") else ""]
    assert reject["record"].partition("(")[0].split() == list(filter(None, quoted))


BLANKS = {"position": "", "keywords": " ", "user_group": "", "session_id": " ", "query": "red apples"}


def test_blank_texts_are_missing_values() -> None:
    """Exports of tables as JSON or CSV write null so."""
    texts = {"user_group": [""], "session_id": [" "]}
    columns = {**{name: [value] for name, value in CLICK.items()}, **texts}
    for found in (from_json("clicks", {**CLICK, **BLANKS}), from_parquet("clicks", columns)):
        (row,) = found["clicks"]
        assert [row[name] for name in ("position", "keywords", "user_group", "session_id")] == [None] * 4
    page = {"url": "http://example.com/a", "fetched_at": " ", "status": "", "content_digest": ""}
    columns = {"url": [page["url"]], "fetched_at": pa.array([" "]).dictionary_encode(), "content_digest": [""]}
    for found in (from_json("pages", page), from_parquet("pages", columns)):
        (row,) = found["pages"]
        assert [row[name] for name in ("fetched_at", "status", "content_digest")] == [None] * 3
    link = {"source_url": page["url"], "target_url": page["url"], "nofollow": ""}
    assert [row["nofollow"] for row in from_json("links", link)["links"]] == [None]
    assert from_json("clicks", {**CLICK, "clicked_at": ""})["rejected"] == {"clicked-at-missing": 1}


def test_keywords_stand_in_for_the_query() -> None:
    found = from_json(
        "clicks", {**CLICK, "query": "", "keywords": ["red"]}, {**CLICK, "query": None, "keywords": ["x"]}
    )
    assert [(row["query"], row["keywords"]) for row in found["clicks"]] == [("", ["red"]), ("", ["x"])]


@pytest.mark.parametrize(
    "at", ["2024-03-01 12:00:00", "2024-03-01T13:00:00+01:00", 1709294400, 1709294400.0, "1709294400"]
)
def test_times_in_json(at: Any) -> None:
    assert from_json("clicks", {**CLICK, "clicked_at": at})["clicks"][0]["clicked_at"] == NOON


@pytest.mark.parametrize(
    "values",
    [
        pa.array([NOON], pa.timestamp("ns", "Europe/Berlin")),
        pa.array([datetime(2024, 3, 1, 12)], pa.timestamp("ms")),
        pa.array(["2024-03-01T12:00:00"]).dictionary_encode(),
        pa.array(["2024-03-01T12:00:00Z"], pa.large_string()),
        pa.array([b"2024-03-01T12:00:00Z"], pa.binary()),
        pa.array([1709294400], pa.int64()),
        pa.array([1709294400.0], pa.float64()),
        pa.array([1709294400000], pa.uint64()),
        pa.array([1709294400000000], pa.int64()),
        pa.array([Decimal(1709294400)], pa.decimal128(12, 0)),
        pa.array([1709294400000000000.0, None], pa.float64())[:1],
        pa.array([Decimal(1709294400000000000)], pa.decimal128(19, 0)),
    ],
)
def test_times_in_parquet(values: pa.Array) -> None:
    columns = {**{name: [value] for name, value in CLICK.items()}, "clicked_at": values}
    assert from_parquet("clicks", columns)["clicks"][0]["clicked_at"] == NOON


def test_columns_of_nulls_alone() -> None:
    """Arrow infers the type null for them (pyarrow docs, `pa.array`), and data frames write it to Parquet."""
    names = ("fetched_at", "status", "title", "text", "keywords", "language", "content_digest")
    (page,) = from_parquet("pages", {"url": ["http://example.com/"], **dict.fromkeys(names, pa.nulls(1))})["pages"]
    assert page == {"url": "http://example.com/", **dict.fromkeys(names)}
    clicks = from_parquet("clicks", {name: [value] for name, value in CLICK.items()} | {"clicked_at": pa.nulls(1)})
    assert [row["reason"] for row in clicks["rejects"]] == ["clicked-at-missing"]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1 << 62], pa.timestamp("us")),
        pa.array([1 << 50], pa.timestamp("s", "UTC")),
        pa.array([-(1 << 62)], pa.timestamp("ms")),
        pa.array([(1 << 31) - 1], pa.date32()),
        pa.array([1 << 55], pa.int64()),
    ],
)
def test_times_that_no_calendar_has_are_rejected(values: pa.Array) -> None:
    columns = {**{name: [value] for name, value in CLICK.items()}, "clicked_at": values}
    assert from_parquet("clicks", columns)["rejected"] == {"clicked-at-invalid": 1}


def test_rejects_quote_times_in_nanoseconds() -> None:
    times = pa.array([1709294400_123456789], pa.timestamp("ns", "UTC"))
    found = from_parquet(
        "clicks", {**{name: [value] for name, value in CLICK.items()}, "query": [""], "clicked_at": times}
    )
    assert found["rejected"] == {"query-missing": 1}
    assert found["rejects"][0]["record"] in (
        f"{time} http://example.com/a" for time in ("1709294400123456789", "2024-03-01 12:00:00.123456789+00:00")
    )


def test_dates_and_numbers_of_data_frames() -> None:
    found = from_parquet(
        "pages",
        {
            "url": ["http://a/", "http://b/", "http://c/", "http://d/"],
            "status": [200.0, float("nan"), 200.5, 1e9],
            "fetched_at": [date(2024, 3, 1)] * 4,
            "keywords": [["x", None], None, [], None],
        },
    )
    assert [(row["status"], row["keywords"]) for row in found["pages"]] == [(200, ["x"]), (None, None)]
    assert found["pages"][0]["fetched_at"] == datetime(2024, 3, 1, tzinfo=UTC)
    assert found["rejected"] == {"status-invalid": 2}
    assert [reject["record"] for reject in found["rejects"]] == ["http://c/", "http://d/"]


@pytest.mark.parametrize("kind", [pa.list_(pa.binary()), pa.large_list(pa.large_binary())])
def test_keywords_may_be_bytes(kind: pa.DataType) -> None:
    words = pa.array([["rouge", "été".encode()], [b"\xff"], None, [None, b"bleu"]], kind)
    found = from_parquet("pages", {"url": [f"http://{host}/" for host in "abcd"], "keywords": words})
    assert [row["keywords"] for row in found["pages"]] == [["rouge", "été"], None, ["bleu"]]
    assert found["rejected"] == {"keywords-undecodable": 1}


NUMBERS = [
    (3, 3, None),
    (3.0, 3, None),
    (-0.0, None, None),
    (0, None, None),
    (-1, None, None),
    (-1.0, None, None),
    (float("nan"), None, None),
    (3.5, None, "position-invalid"),
    (2.0**40, None, "position-invalid"),
    (2.0**60, None, "position-invalid"),
    (float("inf"), None, "position-invalid"),
]


@pytest.mark.parametrize(("value", "position", "reason"), NUMBERS)
def test_numbers_are_the_same_in_json_and_parquet(value: float, position: int | None, reason: str | None) -> None:
    columns = {**{name: [text] for name, text in CLICK.items()}, "position": [value]}
    for found in (from_json("clicks", {**CLICK, "position": value}), from_parquet("clicks", columns)):
        assert found["rejected"] == ({} if reason is None else {reason: 1})
        assert [row["position"] for row in found["clicks"]] == ([] if reason else [position])
        assert found["counters"] == ({"position-below-one": 1} if value < 1 else {})


def test_whole_floats_in_pages_of_both_formats() -> None:
    row = {"url": "http://a/", "status": 200.0, "fetched_at": 1709294400.0}
    for found in (from_json("pages", row), from_parquet("pages", {name: [value] for name, value in row.items()})):
        assert [(page["status"], page["fetched_at"]) for page in found["pages"]] == [(200, NOON)]


def test_decimals_bytes_and_repeated_columns() -> None:
    values = [pa.array([text]) for text in CLICK.values()]
    bad = pa.array(["nonsense"])
    positions = pa.array([Decimal(3)], pa.decimal128(10, 0))
    table = pa.table(
        [*values[:3], values[3].cast(pa.binary()), positions, bad],
        names=["user_id", "query", "clicked_at", "url", "position", "url"],
    )
    content = io.BytesIO()
    pq.write_table(table, content)
    (row,) = together(read_parquet(content, table="clicks", source="f"))["clicks"]
    assert (row["url"], row["position"]) == ("http://example.com/a", 3)
    broken = {**{name: [text] for name, text in CLICK.items()}, "query": pa.array([b"caf\xe9"], pa.binary())}
    assert from_parquet("clicks", broken)["rejected"] == {"query-undecodable": 1}


def test_links_name_the_end_that_is_bad() -> None:
    found = from_json(
        "links",
        {"source_url": "http://a/", "target_url": "http://b/", "anchor_text": "b", "nofollow": True},
        {"source_url": "a", "target_url": "http://b/"},
        {"source_url": "http://a/", "target_url": "mailto:b"},
        {"source_url": "http://a/"},
        {"source_url": "http://a/", "target_url": "http://b/", "nofollow": "yes"},
    )
    assert found["links"] == [
        {"source_url": "http://a/", "target_url": "http://b/", "anchor_text": "b", "nofollow": True}
    ]
    assert found["rejected"] == {
        "source-scheme-missing": 1,
        "target-scheme-unsupported": 1,
        "target-url-missing": 1,
        "nofollow-invalid": 1,
    }


def test_lines_that_are_no_objects() -> None:
    found = from_json("pages", "not json", "[1]", "null", '{"url": "http://a/"', {"url": "http://b/"}, "", "  ")
    assert (found["used"], found["rejected"]) == (1, {"json-invalid": 2, "not-an-object": 2})


def test_text_in_other_encodings_and_half_characters() -> None:
    found = from_json("pages", '{"url": "http://a/", "title": "x\\ud800"}')
    assert found["pages"][0]["title"] == "x�"
    found = together(read_json_lines(stream(b'{"url":"http://a/","title":"\xff"}\n'), table="pages", source="f"))
    assert found["rejected"] == {"json-invalid": 1}


def test_further_columns_and_repeated_names() -> None:
    found = from_json(
        "pages", {"url": "http://a/", "depth": 3, "meta": {"x": [1]}}, '{"url":"http://b/","url":"http://c/"}'
    )
    assert [row["url"] for row in found["pages"]] in (["http://a/", "http://b/"], ["http://a/", "http://c/"])
    assert len(from_parquet("pages", {"url": ["http://a/"], "depth": [3]})["pages"]) == 1


def test_compressed_and_damaged_lines() -> None:
    content = b"".join(json.dumps({"url": f"http://a/{number}"}).encode() + b"\n" for number in range(2_000))
    whole = together(read_json_lines(stream(gzip.compress(content)), table="pages", source="f"))
    assert whole["used"] == 2_000
    cut = together(read_json_lines(stream(gzip.compress(content)[:-3_000]), table="pages", source="f"))
    assert cut["rejected"] == {"record-truncated": 1}
    assert [row["url"] for row in cut["pages"]] == [f"http://a/{number}" for number in range(cut["used"])]


def test_lines_over_the_cap() -> None:
    lines = list(read_lines(stream(b"short\n" + b"x" * 500_000 + b"\nlast"), max_line_bytes=100))
    assert [(line.data[:5], line.problem) for line in lines] == [
        (b"short", None),
        (b"xxxxx", "record-too-large"),
        (b"last", None),
    ]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x": [1]}, "column 'url' is missing; found columns \\['x'\\]"),
        ({"url": [1]}, "column 'url' has type int64, expected string"),
        ({"url": ["http://a/"], "fetched_at": [True]}, "'fetched_at' has type bool"),
        ({"url": ["http://a/"], "fetched_at": [time(12)]}, "'fetched_at' has type time64"),
        ({"url": ["http://a/"], "status": ["200"]}, "'status' has type string, expected int16"),
        ({"url": ["http://a/"], "keywords": ["a"]}, "'keywords' has type string"),
        ({"url": ["http://a/"], "keywords": [[1]]}, "'keywords' has type list"),
    ],
)
def test_files_with_other_columns_are_the_users_error(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"^f: .*{message}"):
        list(read_parquet(parquet(columns), table="pages", source="f"))
    with pytest.raises(InputError, match=message):
        check_parquet(parquet(columns), table="pages", source="f")


def test_unreadable_files_are_the_users_error() -> None:
    whole = parquet({"url": [f"http://a/{number}" for number in range(5_000)]}).getvalue()
    for content in (b"PAR1", b"PAR1" + b"x" * 100, whole[:-1]):
        with pytest.raises(InputError, match=r"^f: is not a readable Parquet file: "):
            list(read_parquet(stream(content), table="pages", source="f"))
    found = together(read_parquet(stream(whole[:100] + b"\xff" * 2_000 + whole[2_100:]), table="pages", source="f"))
    assert found["rejected"] == {"row-group-damaged": 1}
    assert found["records"] == found["used"] + 1


def test_formats_by_their_first_bytes() -> None:
    assert table_format(b"PAR1\x15", "f") == PARQUET
    for head in (b"{}", b"\xef\xbb\xbf \n{", b"", gzip.compress(b"{}")):
        assert table_format(head, "f") == JSON_LINES
    with pytest.raises(InputError, match=r"^f: begins with 'url,title'"):
        table_format(b"url,title", "f")


def test_row_groups_belong_to_one_range_each() -> None:
    content = parquet({"url": [f"http://a/{number}" for number in range(1_000)]}, row_group_size=70)
    size = len(content.getvalue())
    for step in (100, 999, size):
        groups = [
            group for start in range(0, size, step) for group in groups_in_range(content, "f", start, start + step)
        ]
        assert groups == list(range(15))
    assert groups_in_range(content, "f", 0, None) == list(range(15))
    found = together(read_parquet(content, table="pages", source="f", groups=[2]))
    assert found["pages"][0]["url"] == "http://a/140"
    assert together(read_parquet(content, table="pages", source="f", groups=[]))["records"] == 0


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=3), inner, max_size=2)),
    max_leaves=4,
)
names = st.sampled_from(
    ["url", "title", "status", "fetched_at", "keywords", "source_url", "user_id", "clicked_at", "query"]
)
odd_lines = st.one_of(
    st.binary(max_size=30),
    st.dictionaries(names, json_values, max_size=4).map(lambda row: json.dumps(row).encode()),
    st.just(json.dumps({**CLICK, "source_url": "http://a/", "target_url": "http://b/"}).encode()),
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["pages", "links", "clicks"]), st.lists(odd_lines, max_size=6))
def test_any_lines_balance(table: str, lines: list[bytes]) -> None:
    content = b"\n".join(lines)
    found = together(read_json_lines(stream(content), table=table, source="f"))
    if not content.startswith((b"\x1f\x8b", b"BZh", b"\x28\xb5")):
        end = b"\n" if b"\n" in content else b"\r"
        assert found["records"] == sum(1 for line in content.removeprefix(b"\xef\xbb\xbf").split(end) if line.strip())
    assert len(found["rejects"]) == sum(found["rejected"].values())


def test_keywords_are_bounded_and_counted() -> None:
    words = [*(str(number) for number in range(MAX_KEYWORDS - 1)), "x" * (MAX_KEYWORD_CHARS + 1), None, "last", "more"]
    rows = [
        {"url": "http://a.example/", "keywords": ["one", "two"]},
        {"url": "http://b.example/", "keywords": words},
        {"url": "http://c.example/", "keywords": None},
    ]
    table = pa.Table.from_pylist(rows)
    sink = io.BytesIO()
    pq.write_table(table, sink)
    found = together(read_parquet(sink, table="pages", source="f"))
    lists = {row["url"]: row["keywords"] for row in found["pages"]}
    assert lists["http://a.example/"] == ["one", "two"]
    assert lists["http://b.example/"] == words[: MAX_KEYWORDS - 1]
    assert lists["http://c.example/"] is None
    assert found["counters"] == {"keywords-cut": 3}


@pytest.mark.parametrize(
    ("values", "position", "reason"),
    [
        (pa.array([3.0], pa.float32()).cast(pa.float16()), 3, None),
        (pa.array([2.5], pa.float32()).cast(pa.float16()), None, "position-invalid"),
        (pa.array([3], pa.uint64()), 3, None),
        (pa.array([2**63], pa.uint64()), None, "position-invalid"),
        (pa.array([2**64 - 1], pa.uint64()).dictionary_encode(), None, "position-invalid"),
        (pa.array([-(2**63)]), None, "position-invalid"),
    ],
)
def test_numbers_of_every_width(values: pa.Array, position: int | None, reason: str | None) -> None:
    columns = {name: [value] for name, value in CLICK.items()}
    found = from_parquet("clicks", {**columns, "position": values})
    assert [row["position"] for row in found["clicks"]] == ([position] if reason is None else [])
    assert list(found["rejected"]) == ([] if reason is None else [reason])


def test_bytes_of_one_length_are_texts() -> None:
    url = pa.array([b"http://example.com/a"], pa.binary(20))
    assert from_parquet("pages", {"url": url, "keywords": pa.array([[b"a"]], pa.list_(pa.binary(1)))})["pages"][0][
        "url"
    ]
