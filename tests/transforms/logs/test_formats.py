"""What holds for every format: any bytes are accounted for, whatever the compression and the byte ranges."""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import json
import random
import struct
from collections.abc import Callable
from typing import Any
from unittest import mock

import orjson
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semrank.schemas.errors import InputError
from semrank.transforms.logs import matomo, ncsa, nginx_json
from semrank.transforms.logs.formats import FORMATS, log_argument
from semrank.transforms.logs.options import LogOptions
from semrank.transforms.streams import lines as lines_module
from semrank.transforms.streams.lines import is_compressed, line_range
from tests.support.log_samples import SAMPLES, sample
from tests.support.logs import BROWSER, OPTIONS, Outcome, read_all

LINE_FORMATS = sorted(set(FORMATS) - {"matomo"})


def same(one: Outcome, other: Outcome) -> bool:
    return one.sorted_rows() == other.sorted_rows() and (one.records, one.used, one.rejected, one.ignored) == (
        other.records,
        other.used,
        other.rejected,
        other.ignored,
    )


def test_each_format_has_a_sample_that_is_used() -> None:
    assert set(SAMPLES) == set(FORMATS)
    for name in LINE_FORMATS:
        outcome = read_all(name, sample(name))
        assert outcome.used > 0
        assert bool(outcome.visits) != bool(outcome.clicks)


def dirty_logs(name: str) -> st.SearchStrategy[bytes]:
    """Lines of the sample, some of them damaged, among noise; by a seed, which is drawn at once."""
    lines = sample(name).splitlines()
    return st.integers(0, (1 << 64) - 1).map(lambda seed: dirty_log(lines, random.Random(seed)))


def dirty_log(lines: list[bytes], chance: random.Random) -> bytes:
    out = bytearray()
    for _ in range(chance.randint(0, 6)):
        line = bytearray(chance.choice(lines))
        for _ in range(chance.randint(0, 3)):
            place = chance.randint(0, len(line))
            kind = chance.choice(["cut", "insert", "drop"])
            if kind == "cut":
                del line[place:]
            elif kind == "drop":
                del line[place : place + chance.randint(1, 20)]
            else:
                line[place:place] = chance.choice([b'"', b"\\", b"\t", b" ", b"\xff", b"\0", b"[", b"{", b"\r", b"%"])
        out += line if chance.random() < 0.5 else chance.randbytes(chance.randint(0, 60))
        out += chance.choice([b"\n", b"\r\n", b"\n\n"])
    return bytes(out + chance.randbytes(chance.randint(0, 8)))


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_any_bytes_are_accounted_for(name: str) -> None:
    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(content=st.one_of(st.binary(max_size=300), dirty_logs(name)), columns=st.booleans())
    def check(content: bytes, columns: bool) -> None:
        named = {"user": "ann", "query": "moon", "time": "2024-01-01 00:00:00", "url": "https://a.example/"}
        options = LogOptions(
            user_salt=OPTIONS.user_salt,
            site=OPTIONS.site if columns else None,
            site_search=("q",),
            columns=OPTIONS.columns if columns else named,
        )
        outcome = read_all(name, content, options)
        if name in LINE_FORMATS and not is_compressed(content):
            end = b"\n" if b"\n" in content else b"\r"
            assert outcome.records == sum(
                1 for line in content.removeprefix(b"\xef\xbb\xbf").split(end) if line.removesuffix(b"\r")
            )

    check()


def parallel_zstd(content: bytes) -> bytes:
    """As pzstd writes it: before each frame one without content that has its size (RFC 8878, 3.1.2)."""
    frame = zstandard.compress(content)
    return b"\x50\x2a\x4d\x18" + struct.pack("<II", 4, len(frame)) + frame


@pytest.mark.parametrize("name", sorted(FORMATS))
@pytest.mark.parametrize(
    "compress", [gzip.compress, bz2.compress, zstandard.compress, parallel_zstd], ids=["gzip", "bzip2", "zstd", "pzstd"]
)
def test_compressed_logs_are_read_and_may_be_cut_off(name: str, compress: Callable[[bytes], bytes]) -> None:
    content = sample(name, 20)
    plain = read_all(name, content)
    assert same(read_all(name, compress(content)), plain)
    half = len(content) // 2
    half = content.rfind(b"\n", 0, half) + 1
    members = compress(content[:half]) + compress(content[half:])
    assert same(read_all(name, members), plain)
    cut = read_all(name, members[:-5])
    assert cut.rejected["record-truncated"] == 1
    assert cut.used <= plain.used


def test_padding_after_compressed_data_is_no_damage() -> None:
    assert same(
        read_all("combined", gzip.compress(sample("combined")) + b"\0" * 512), read_all("combined", sample("combined"))
    )
    garbage = read_all("combined", gzip.compress(sample("combined")) + b"garbage")
    assert garbage.rejected["record-truncated"] == 1
    assert garbage.used == 3


@pytest.mark.parametrize("name", [name for name in LINE_FORMATS if FORMATS[name].splittable(OPTIONS)])
def test_byte_ranges_give_each_record_once(name: str) -> None:
    content = sample(name, 4)
    whole = read_all(name, content)

    @settings(max_examples=25, deadline=None)
    @given(cuts=st.lists(st.integers(0, len(content)), max_size=5))
    def check(cuts: list[int]) -> None:
        bounds = [0, *sorted(cuts), len(content)]
        total = Outcome()
        for start, stop in itertools.pairwise(bounds):
            with line_range(io.BytesIO(content), start, stop, record_start=FORMATS[name].record_start) as section:
                part = read_all(name, section.read())
            total.records += part.records
            total.used += part.used
            total.rejected += part.rejected
            total.ignored += part.ignored
            total.visits += part.visits
            total.clicks += part.clicks
            total.rejects += part.rejects
        assert same(total, whole)

    check()


@pytest.mark.parametrize("name", sorted(FORMATS))
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_byte_order_mark_is_no_part_of_the_first_line(name: str, compress: Callable[[bytes], bytes]) -> None:
    content = sample(name)
    assert same(read_all(name, compress(b"\xef\xbb\xbf" + content)), read_all(name, content))
    assert read_all(name, b"\xef\xbb\xbf").records == 0


@pytest.mark.parametrize("name", LINE_FORMATS)
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
@pytest.mark.parametrize("end", [b"\r", b"\r\n"])
def test_lines_may_end_in_carriage_returns(name: str, compress: Callable[[bytes], bytes], end: bytes) -> None:
    content = sample(name)
    assert same(read_all(name, compress(content.replace(b"\n", end))), read_all(name, content))


@pytest.mark.parametrize("name", LINE_FORMATS)
def test_lines_that_end_in_carriage_returns_are_read_up_to_the_damage(name: str) -> None:
    content = gzip.compress(sample(name, 2).replace(b"\n", b"\r") + bytes(range(32, 127)) * 9)
    outcome = read_all(name, content[:-20])
    assert outcome.used
    assert outcome.rejected["record-truncated"] == 1


@pytest.mark.parametrize("name", sorted(FORMATS))
@pytest.mark.parametrize("block_bytes", [1, 100, 1000])
def test_blocks_make_no_difference(name: str, block_bytes: int) -> None:
    content = sample(name, 5)
    whole = read_all(name, content)
    with (
        mock.patch.dict(lines_module.blocks.__kwdefaults__, block_bytes=block_bytes),
        mock.patch.object(lines_module, "_READ_BYTES", 7),
    ):
        assert same(read_all(name, content), whole)


@pytest.mark.parametrize("name", LINE_FORMATS)
def test_lines_without_end_are_bounded(name: str) -> None:
    long = b"x" * ((1 << 20) + 1)
    for content in (long, long + b"\n" + sample(name), sample(name) + long):
        outcome = read_all(name, content)
        assert outcome.rejected["record-too-large"] == 1
        assert max(len(row["record"]) for row in outcome.rejects) <= 2_000
    with mock.patch.dict(lines_module.blocks.__kwdefaults__, block_bytes=1 << 10):
        outcome = read_all(name, long * 2 + b"\n" + sample(name))
        assert outcome.rejected["record-too-large"] == 1
        assert outcome.used == read_all(name, sample(name)).used


def test_a_stream_that_fails_is_a_damaged_tail() -> None:
    class Broken(io.RawIOBase):
        def __init__(self) -> None:
            self._pieces = [sample("combined"), b"half a li"]

        def read(self, _size: int = -1) -> bytes:
            if not self._pieces:
                raise OSError("connection reset")
            return self._pieces.pop(0)

    batches = list(FORMATS["combined"].read(Broken(), source="x", options=OPTIONS))  # type: ignore[arg-type]
    assert sum(batch.used for batch in batches) == 3
    assert batches[-1].rejected == {"record-truncated": 1}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("combined", LogOptions(site="https://a.example"), "--log combined: --user-salt is missing"),
        ("combined", LogOptions(user_salt="12345678"), "--log combined: --log-site is missing"),
        ("table", LogOptions(user_salt="12345678"), "--log table: --log-columns is missing"),
    ],
)
def test_missing_options_are_named(name: str, options: LogOptions, message: str) -> None:
    with pytest.raises(InputError, match=message):
        FORMATS[name].check(options)
    FORMATS[name].check(OPTIONS)


def test_data_sets_need_no_options() -> None:
    for name in ("aol", "orcas", "sogou", "wikipedia-clickstream", "yandex"):
        FORMATS[name].check(LogOptions())


def test_log_arguments() -> None:
    assert log_argument("combined=logs/*=x.gz") == ("combined", "logs/*=x.gz")
    for text in ("combined", "combined=", "other=x", "=x"):
        with pytest.raises(InputError, match=r"--log: found .* expected FORMAT=GLOB with a format of alb, aol"):
            log_argument(text)


@pytest.mark.parametrize("name", ["common", "combined", "vhost-combined"])
def test_array_arithmetic_and_regular_expression_agree(name: str) -> None:
    @settings(max_examples=60, deadline=None)
    @given(content=dirty_logs(name))
    def check(content: bytes) -> None:
        quick = read_all(name, content)
        with mock.patch.object(ncsa, "_usual_requests", return_value=()):
            assert same(read_all(name, content), quick)

    check()


JSON_VALUES = st.one_of(
    *(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(),
        st.text(max_size=6),
        st.lists(st.none(), max_size=2),
    ),
    st.sampled_from(["203.0.113.7", "GET /a?q=moon HTTP/1.1", "/b", 200, "200", 1_577_836_800, 1_577_836_800.25]),
    st.sampled_from(["https://www.bing.com/search?q=moon", "2020-01-01T00:00:00Z", BROWSER, "\udc41", "www.a.example"]),
)
JSON_NAMES = st.sampled_from([*(name for names in nginx_json.NAMES.values() for name in names), "IP", "Time", "x"])


@given(
    entries=st.lists(st.dictionaries(JSON_NAMES, JSON_VALUES, max_size=8), max_size=6),
    usual=st.lists(st.booleans(), min_size=6, max_size=6),
    dirt=dirty_logs("nginx-json"),
)
@settings(max_examples=150, deadline=None)
def test_the_fast_and_the_lenient_parser_agree(entries: list[dict[str, Any]], usual: list[bool], dirt: bytes) -> None:
    base = {"ip": "203.0.113.7", "path": "/a", "time": "2020-01-01T00:00:00Z", "status": 200}
    objects = [{**base, **entry} if whole else entry for entry, whole in zip(entries, usual, strict=False)]
    content = b"".join(json.dumps(entry).encode() + b"\n" for entry in objects) + dirt
    quick = read_all("nginx-json", content)
    with mock.patch("orjson.loads", side_effect=orjson.JSONDecodeError("", "", 0)):
        assert same(read_all("nginx-json", content), quick)


OBJECT_SIGNS = st.lists(st.sampled_from([*'"{}\\[], x', '{"a":1}', '{"a":"}{"}', '{"\\\\":"\\""}']), max_size=14)


@given(signs=OBJECT_SIGNS, sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4))
@settings(max_examples=300)
def test_outermost_objects_are_found_whatever_the_pieces(signs: list[str], sizes: list[int]) -> None:
    text = "".join(signs).encode()
    expected: list[tuple[str | None, bytes]] = []
    begin, depth, quoted, place = 0, 0, False, 0
    while place < len(text):
        byte = text[place : place + 1]
        if byte == b"\\":
            place += 1
        elif quoted:
            quoted = byte != b'"'
        elif byte == b'"':
            quoted = depth > 0
        elif byte == b"{":
            if not depth:
                between, begin = text[begin:place], place
                expected += [("json-invalid", between)] if between.strip(b" ,[]") else []
            depth += 1
        elif byte == b"}" and depth:
            depth -= 1
            if not depth:
                expected.append((None, text[begin : place + 1]))
                begin = place + 1
        place += 1
    splitter, start = matomo._Splitter(), 0
    found: list[tuple[str | None, bytes]] = []
    for size in itertools.cycle(sizes):
        if start >= len(text):
            break
        found += splitter.split(text[start : start + size])
        start += size
    assert found == expected
    assert splitter.rest() == text[begin:].strip(b" ,[]")
