"""Lines, fields, times, users, robots, referrers: each against a plain Python reading of the same."""

from __future__ import annotations

import bz2
import datetime
import gzip
import hashlib
import re

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from crawleruseragents import CRAWLER_USER_AGENTS_DATA, is_crawler
from hypothesis import given, settings
from hypothesis import strategies as st

from semrank.transforms.logs.access import split_requests
from semrank.transforms.logs.options import LogOptions
from semrank.transforms.logs.robots import are_robots
from semrank.transforms.logs.searches import NO_REFERRER, ReferrerReader, engine_parameters, search_engines
from semrank.transforms.logs.users import hashed_ids, subject_ids, visitor_ids
from semrank.transforms.streams.inflate import MAGIC_BYTES
from semrank.transforms.streams.lines import is_compressed
from semrank.transforms.streams.quotes import without_addresses
from semrank.transforms.streams.spans import Spans, find_lines, separate, slices, value_spans
from semrank.transforms.streams.texts import Memo, chinese, decode
from semrank.transforms.streams.times import (
    apache_times,
    date_in_name,
    dense_times,
    spaced_times,
    written_time,
    written_times,
)
from semrank.transforms.streams.urls import host_of
from tests.support.logs import BROWSER, combined_line, read_all

UTC = datetime.UTC
LOGLIKE = st.binary(max_size=120).map(lambda text: text.translate(bytes.maketrans(b"abcdefgh", b'  ""\n\n\r\\')))


def binary(*values: bytes | None) -> pa.BinaryArray:
    return pa.array(values, pa.binary())


@given(content=LOGLIKE)
def test_lines_are_those_that_are_not_blank(content: bytes) -> None:
    lines = find_lines(content)
    expected = [line.removesuffix(b"\r") for line in content.split(b"\n")]
    assert lines.texts() == lines.values().to_pylist() == [line for line in expected if line]


def split_by_hand(line: bytes, quoted: bool) -> list[bytes]:
    fields, inside = [bytearray()], False
    for byte in line:
        inside ^= quoted and byte == ord('"')
        if byte == ord(" ") and not inside:
            fields.append(bytearray())
        else:
            fields[-1].append(byte)
    return [bytes(field) for field in fields]


@given(content=LOGLIKE, quoted=st.booleans(), kept=st.lists(st.booleans(), min_size=130, max_size=130))
def test_fields_are_split_outside_quotes(content: bytes, quoted: bool, kept: list[bool]) -> None:
    lines = find_lines(content)
    lines = lines.take(np.array(kept[: len(lines)], dtype=np.bool_))
    separated = separate(lines, ord(" "), quoted=quoted)
    expected = [split_by_hand(line, quoted) for line in lines.texts()]
    assert separated.counts.tolist() == [len(fields) for fields in expected]
    for count in range(1, 4):
        chosen = np.flatnonzero(separated.counts >= count)
        fields = separated.fields(chosen, count)
        for place in range(count):
            assert fields.column(place).to_pylist() == [expected[line][place] for line in chosen]


@given(content=LOGLIKE, byte=st.sampled_from(b'" \\[a\n'), kept=st.lists(st.booleans(), min_size=130, max_size=130))
def test_lines_say_which_of_them_hold_a_byte(content: bytes, byte: int, kept: list[bool]) -> None:
    lines = find_lines(content)
    lines = lines.take(np.array(kept[: len(lines)], dtype=np.bool_))
    assert lines.holding(byte).tolist() == [byte in line for line in lines.texts()]


@given(content=st.binary(max_size=40), data=st.data())
def test_spans_give_the_bytes_between_their_ends(content: bytes, data: st.DataObject) -> None:
    place = st.integers(0, len(content))
    pairs = [sorted(pair) for pair in data.draw(st.lists(st.tuples(place, place), max_size=6))]
    starts, ends = np.array(pairs, dtype=np.int32).reshape(-1, 2).T
    rows = data.draw(st.lists(st.integers(0, len(pairs) - 1), max_size=6) if pairs else st.just([]))
    spans = Spans(content, starts, ends)
    assert spans.take(pa.array(rows, pa.int64())).to_pylist() == [content[slice(*pairs[row])] for row in rows]
    assert spans.are_all(ord("-")) == all(content[start:end] == b"-" for start, end in pairs)


@given(values=st.lists(st.one_of(st.none(), st.binary(max_size=30)), max_size=8), offset=st.integers(0, 3))
def test_slices_give_back_what_spans_take(values: list[bytes | None], offset: int) -> None:
    array = pa.array(values, pa.binary()).slice(offset)
    rebuilt = slices(*value_spans(array))
    rebuilt.validate(full=True)
    assert rebuilt.to_pylist() == [value or b"" for value in values[offset:]]


@given(requests=st.lists(st.binary(max_size=40) | st.from_regex(rb"[A-Z]{1,9} [ /a]{0,9}( HTTP/[0-9](\.[0-9])?)?\Z")))
def test_requests_are_split_at_method_and_protocol(requests: list[bytes]) -> None:
    method, target = split_requests(*value_spans(pa.array(requests, pa.binary())))
    for request, found in zip(requests, zip(method.to_pylist(), target.to_pylist(), strict=True), strict=True):
        verb, space, _ = request.partition(b" ")
        if not space or len(verb) > 20:
            verb = b""
        protocol = re.search(rb" HTTP/[0-9](\.[0-9])?\Z", request[len(verb) :])
        end = len(request) - (len(protocol[0]) if protocol else 0)
        assert found == (verb, request[len(verb) + 1 if verb else 0 : end])


MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)
MOMENTS = st.datetimes(datetime.datetime(1970, 1, 2), datetime.datetime(2261, 1, 1))


@given(moment=MOMENTS, zone=st.integers(-14 * 60, 14 * 60))
def test_times_are_what_the_calendar_says(moment: datetime.datetime, zone: int) -> None:
    aware = moment.replace(microsecond=0, tzinfo=datetime.timezone(datetime.timedelta(minutes=zone)))
    text = aware.strftime("%d/@/%Y:%H:%M:%S %z").replace("@", MONTHS[moment.month - 1])
    text = re.sub(r"/(\d+):", lambda match: f"/{int(match[1]):04}:", text, count=1)
    utc = moment.replace(microsecond=0, tzinfo=UTC)
    assert apache_times(binary(text.encode())).to_pylist() == [aware]
    assert spaced_times(binary(f"{moment:%Y-%m-%d %H:%M:%S}".encode())).to_pylist() == [utc]
    assert dense_times(binary(f"{moment:%Y%m%d%H%M%S}".encode())).to_pylist() == [utc]
    exact = moment.replace(tzinfo=aware.tzinfo)
    values = [text, exact.isoformat(), f"{moment:%Y%m%d%H%M%S}", f"{moment:%Y-%m-%d %H:%M:%S}", moment.isoformat()]
    written = [aware, exact, utc, utc, moment.replace(tzinfo=UTC)]
    assert written_times(binary(*(value.encode() for value in values))).to_pylist() == written
    assert [written_time(value.encode()) for value in values] == [
        (time - EPOCH) // datetime.timedelta(microseconds=1) for time in written
    ]


def test_fractions_of_a_second_in_the_common_log_format() -> None:
    """Apache's mod_log_config, `%{format}t`: times to the millisecond and microsecond are put together of several."""
    written = (
        "07 -0500",
        "07.123 -0500",
        "07.123456 -0500",
        "07,5 -0500",
        "07.123456789 -0500",
        "07. -0500",
        "07.x -0500",
    )
    values = [f"10/Feb/2012:16:42:{text}".encode() for text in written]
    expected = [
        None if micros is None else datetime.datetime(2012, 2, 10, 21, 42, 7, micros, tzinfo=UTC)
        for micros in (0, 123_000, 123_456, 500_000, 123_456, None, None)
    ]
    assert apache_times(binary(*values)).to_pylist() == expected
    assert written_times(binary(*values)).to_pylist() == expected
    assert [written_time(value) is None for value in values] == [moment is None for moment in expected]
    line = combined_line(time="10/Feb/2012:16:42:07.123456 -0500")
    assert [visit["visited_at"] for visit in read_all("combined", line.encode()).visits] == expected[2:3]


@pytest.mark.parametrize(
    "text",
    [
        *("30/Feb/2012:00:00:00 +0000", "29/Feb/2011:00:00:00 +0000", "00/Jan/2012:00:00:00 +0000"),
        *("10/feb/2012:00:00:00 +0000", "10/Feb/2012:24:00:00 +0000", "10/Feb/2012:00:60:00 +0000"),
        *("10/Feb/2012:00:00:61 +0000", "10/Feb/2012:00:00:00 *0000", "10/Feb/2012:00:00:00 +1500"),
        *("10/Feb/1969:00:00:00 +0000", "10/Feb/2012:00:00:00 +0060", "10/Feb/2012 00:00:00 +0000", ""),
        *("20111330000000", "20111232000000", "201112300000", "2011-13-01 00:00:00", "2011-01-01 25:00:00"),
        *("now", "1e9", "-5", "123", "99999999999999", "0001-01-01T00:00:00", "9999-12-31T23:59:59", "\x00"),
    ],
)
def test_what_is_no_time_is_null(text: str) -> None:
    value = binary(text.encode(), None)
    for parse in (apache_times, dense_times, spaced_times, written_times):
        assert parse(value).to_pylist() == [None, None]
    assert written_time(text.encode()) is None


def test_times_may_be_numbers() -> None:
    moment = datetime.datetime(2013, 10, 10, 14, 52, 0, 250_000, tzinfo=UTC)
    assert written_times(binary(b"1381416720.25", b"1381416720250")).to_pylist() == [moment, moment]
    assert written_time(b"1381416720.25") == written_time(b"1381416720250") == 1_381_416_720_250_000
    walls = (b"2013/10/10 14:52:00.25", b"2013/10/10 14:52:00.250000000")  # Caddy's docs, `time_format`: in UTC
    assert written_times(binary(*walls, b"2013/10/10")).to_pylist() == [
        moment,
        moment,
        moment.replace(hour=0, minute=0, microsecond=0),
    ]
    spelt = (b"2013-10-10 14:52:00.25 UTC", b"2013-10-10 14:52:00.250000 UTC")  # BigQuery's exports
    assert written_times(binary(*spelt)).to_pylist() == [moment, moment]
    assert written_times(binary(b"31/Dec/2016:23:59:60 +0000")).to_pylist() == [
        datetime.datetime(2017, 1, 1, tzinfo=UTC)
    ]


@pytest.mark.parametrize(
    ("name", "date"),
    [
        ("logs/20240101/access_log.20060801.decode", "2006-08-01"),
        ("clickstream-enwiki-2018-12.tsv.gz", "2018-12-01"),
        ("x-2018-12-24.log", "2018-12-24"),
        ("20069901-20060802", "2006-08-02"),
        ("123456789012", "1970-01-01"),
        ("plain.log", "1970-01-01"),
    ],
)
def test_dates_in_names(name: str, date: str) -> None:
    assert date_in_name(name) == date


def test_users_are_keyed_hashes() -> None:
    expected = hashlib.blake2b(b"client\0a\0b", digest_size=16, key=b"key").hexdigest()
    client, agent = binary(b"a", b"a", b"c", None), binary(b"b", b"b", b"b", b"b")
    ids = visitor_ids(client, binary(None, b"", b"jane", None), agent, b"key").to_pylist()
    assert ids[0] == ids[1] == expected
    assert ids[2] == hashlib.blake2b(b"account\0jane", digest_size=16, key=b"key").hexdigest()
    assert ids[3] == hashlib.blake2b(b"client\0\0b", digest_size=16, key=b"key").hexdigest()
    assert hashed_ids([b"client\0a\0b"], b"other") != [expected]
    subjects = pa.array(["1", "", None])
    assert subject_ids("aol", subjects, b"").to_pylist() == ["aol-1", None, None]
    assert subject_ids("aol", subjects, b"key").to_pylist() == [*hashed_ids([b"aol-1"], b"key"), None, None]


@pytest.mark.parametrize(
    ("record", "masked"),
    [
        ("from 203.0.113.7 on", "from <address> on"),
        ("2001:db8::1 and ::1 and fe80::1%eth0", "<address> and <address> and <address>"),
        ("10/Feb/2012:16:42:07 -0500", "10/Feb/2012:16:42:07 -0500"),
        ("version 1.2.3, 16:42:07", "version 1.2.3, 16:42:07"),
    ],
)
def test_addresses_are_masked(record: str, masked: str) -> None:
    assert without_addresses(record) == masked


def test_robots_are_those_of_the_list() -> None:
    agents = [instance for entry in CRAWLER_USER_AGENTS_DATA for instance in entry["instances"]][::7]
    found = are_robots(pa.array([agent.encode() for agent in agents], pa.binary())).to_pylist()
    for agent, robot in zip(agents, found, strict=True):
        assert robot >= is_crawler(agent), agent
    people = [
        BROWSER,
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148 Safari/604.1",
    ]
    assert are_robots(binary(*(agent.encode() for agent in people))).to_pylist() == [False, False]


REFERRERS = [
    ("https://www.google.com/search?q=a+b&ie=UTF-8", "a b", None),
    ("https://www.google.de/url?sa=t&q=f%FCr+elise&cd=3", "für elise", 3),
    ("https://www.google.com/url?q=https://www.example.com/a&sa=D&source=docs", None, None),
    ("https://www.google.com/url?q=http%3A%2F%2Fwww.example.com%2Fa&usg=AO", None, None),
    ("https://www.google.com/search?q=https://www.example.com/", "https://www.example.com/", None),
    ("http://www.google.com/#q=behind+hash", "behind hash", None),
    ("https://www.google.com/", None, None),
    ("https://www.google.com/search?q=+", None, None),
    ("http://www.baidu.com/s?wd=%CC%EC%C6%F8", "天气", None),
    ("http://www.baidu.com/s?ie=gb2312&wd=%CC%EC", "天", None),
    ("https://www.baidu.com/s?ie=utf-8&wd=%E5%A4%A9", "天", None),
    # Google's search parameter `ie` names the encoding to interpret the words with; these are UTF-8 by chance.
    ("http://www.baidu.com/s?wd=%C9%BD&ie=gb2312", "山", None),
    ("http://www.google.com.tw/search?ie=Big5&q=%C4%B5", "警", None),
    ("http://search.yahoo.co.jp/search?p=%C4%A9&ei=EUC-JP", "挑", None),
    # Matomo's list of search engines.
    ("https://www.sogou.com/web?query=%E5%B1%B1", "山", None),
    ("http://tw.search.yahoo.com/search?p=%A4%D1%AE%F0", "天氣", None),
    ("https://yandex.ru/search/?text=%EF%EE%E3%EE%E4%E0", "погода", None),
    ("https://search.naver.com/search.naver?query=%C7%D1", "한", None),
    ("https://duckduckgo.com/?q=privacy&t=h_", "privacy", None),
    ("https://maps.google.com/?q=berlin", None, None),
    ("https://mail.google.com/mail?q=x", None, None),
    ("https://www.example.com/?q=own", None, None),
]


@pytest.mark.parametrize(("url", "query", "position"), REFERRERS)
def test_referrers_tell_the_words(url: str, query: str | None, position: int | None) -> None:
    referrer = ReferrerReader(LogOptions())(url.encode())
    assert (referrer.query, referrer.position, referrer.is_spam) == (query, position, False)


@pytest.mark.parametrize(
    "value", [b"", b"-", b"android-app://com.google", b"about:blank", b"\xff\xfe", b"http://", b"x"]
)
def test_what_is_no_page_is_no_referrer(value: bytes) -> None:
    assert ReferrerReader(LogOptions())(value) == NO_REFERRER


@given(
    value=st.binary(max_size=60) | st.binary(max_size=40).map(lambda tail: b"https://www.google.com/search?q=" + tail)
)
def test_any_referrer_is_read(value: bytes) -> None:
    referrer = ReferrerReader(LogOptions(site_search=("q",)))(value)
    assert referrer.query is None or referrer.query == " ".join(referrer.query.split())
    assert bool(referrer.url) == bool(referrer.host)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        (b"http://WWW.a.example:8080/x?q=1#y", "www.a.example"),
        (b"https://user:secret@a.example", "a.example"),
        (b"http://[2001:db8::1]:81/", "[2001:db8::1]"),
    ],
)
def test_hosts_of_referrers_are_those_of_pages(url: bytes, host: str) -> None:
    referrer = ReferrerReader(LogOptions())(url)
    assert referrer.host == host == host_of(pa.array([referrer.url]))[0].as_py()


def test_the_list_of_engines_is_there() -> None:
    assert len(search_engines()) > 1_000
    assert engine_parameters("www.bing.com", "/search") is not None
    assert engine_parameters("www.example.com", "/") is None


@given(text=st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5), min_size=1, max_size=6))
def test_chinese_utf8_is_never_taken_for_gbk(text: str) -> None:
    assert chinese(text.encode()) == text


@pytest.mark.parametrize("text", ["联通", "奇艺高清", "a1b2", "天", "360安全卫士", "百度"])
def test_chinese_gbk_is_read(text: str) -> None:
    assert chinese(text.encode("gbk")) == text


@given(values=st.lists(st.binary(max_size=8), max_size=6))
def test_any_bytes_become_text(values: list[bytes]) -> None:
    array = pa.array(values, pa.binary())
    for decoder in (chinese, lambda value: value.decode("latin-1")):
        assert decode(array, decoder).to_pylist() == [decoder(value) for value in values]


@settings(max_examples=50)
@given(rounds=st.lists(st.lists(st.sampled_from([b"", b"a", b"b", b"c", b"d"]), max_size=6), max_size=6))
def test_a_memo_works_once_on_a_value_until_it_forgets(rounds: list[list[bytes]]) -> None:
    worked: list[bytes] = []

    def sizes(values: pa.BinaryArray) -> pa.Table:
        worked.extend(values.to_pylist())
        return pa.table({"twice": pa.array([value * 2 for value in values.to_pylist()], pa.binary())})

    memo = Memo(sizes)
    for values in rounds:
        assert memo.rows(pa.array(values, pa.binary()))["twice"].to_pylist() == [value * 2 for value in values]
    assert len(worked) == len({value for values in rounds for value in values})


def test_compressed_files_are_known_by_their_first_bytes() -> None:
    for compress in (gzip.compress, bz2.compress, zstandard.compress):
        for content in (b"", b"text"):
            assert is_compressed(compress(content)[:MAGIC_BYTES])
    assert not is_compressed(b"BZhost.example - -")
    assert not is_compressed(b"1.2.")
