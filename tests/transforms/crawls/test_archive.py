from __future__ import annotations

import gzip
import time
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from semrank.transforms.crawls.archive import ARC_TYPE, Record, may_be_archive, read_records
from tests.support.crawls import arc, http, members, stream, warc

RECORDS = [
    warc(b"software: x\r\n", None, kind="warcinfo", content_type="application/warc-fields"),
    *(
        warc(http(b"<p>page %d</p>" % number * (1 + 40 * number)), f"http://example.com/{number}")
        for number in range(6)
    ),
    warc(b"", kind="metadata"),
]
PLAIN = b"".join(RECORDS)
PACKED = members(RECORDS)
ONE_MEMBER = gzip.compress(PLAIN, mtime=0)
SPLIT_MEMBERS = b"".join(gzip.compress(PLAIN[at : at + 777], mtime=0) for at in range(0, len(PLAIN), 777)) + PACKED
DICTIONARY = zstandard.train_dictionary(
    4_096, [http(b"<p>page %d</p>" % number) * 9 for number in range(200)]
).as_bytes()
ZSTD = b"".join(zstandard.ZstdCompressor().compress(record) for record in RECORDS)
WITH_DICTIONARY = (
    b"\x5d\x2a\x4d\x18"
    + len(DICTIONARY).to_bytes(4, "little")
    + DICTIONARY
    + b"".join(
        zstandard.ZstdCompressor(dict_data=zstandard.ZstdCompressionDict(DICTIONARY)).compress(record)
        for record in RECORDS
    )
)
ARC = arc(
    b"1 0 test\nURL IP-address Archive-date Content-type Archive-length\n", "filedesc://x.arc", "text/plain"
) + b"".join(arc(http(b"<p>page %d</p>" % number), f"http://example.com/{number}") for number in range(4))
DAMAGED = PACKED[: len(PACKED) // 2] + b"\x00\x01\x02\x03" + PACKED[len(PACKED) // 2 + 4 :]
GARBAGE = RECORDS[0] + b"garbage line\nmore\n" + b"".join(RECORDS[1:4]) + b"junk\n" * 50 + RECORDS[4]


def read(content: bytes, start: int = 0, end: int | None = None, cap: int = 1 << 20) -> list[Record]:
    return list(read_records(stream(content), start=start, end=end, max_record_bytes=cap))


def blocks(records: list[Record]) -> list[bytes]:
    return [record.block for record in records if record.problem is None]


EXPECTED = blocks(read(PLAIN))


def test_plain_records() -> None:
    records = read(PLAIN)
    assert len(records) == len(RECORDS)
    assert all(record.problem is None for record in records)
    assert [record.kind for record in records] == ["warcinfo", *["response"] * 6, "metadata"]
    assert records[2].headers["warc-target-uri"] == "http://example.com/1"
    assert [record.position for record in records] == [len(b"".join(RECORDS[:n])) for n in range(len(RECORDS))]
    assert records[1].block == http(b"<p>page 0</p>")


@pytest.mark.parametrize(
    "content", [PACKED, ONE_MEMBER, ZSTD, WITH_DICTIONARY], ids=["members", "one member", "zstd", "dictionary"]
)
def test_compression_changes_nothing(content: bytes) -> None:
    assert blocks(read(content)) == EXPECTED


def test_members_that_cut_records_are_read_through() -> None:
    assert blocks(read(SPLIT_MEMBERS)) == EXPECTED * 2


@pytest.mark.parametrize("version", ["0.17", "0.18", "1.0", "1.1"])
def test_versions(version: str) -> None:
    (record,) = read(warc(b"abc", version=version))
    assert (record.block, record.problem) == (b"abc", None)


def test_arc_records() -> None:
    records = read(ARC)
    assert [record.kind for record in records] == ["warcinfo", *["response"] * 4]
    assert records[1].headers["warc-date"] == "20240301120000"
    assert records[1].block == http(b"<p>page 0</p>")
    assert blocks(read(gzip.compress(ARC))) == blocks(records)


def test_arc_records_of_version_two() -> None:
    block = http()
    line = f"http://example.com/a b 192.0.2.1 20240301120000 text/html 200 ABC - 123 file.arc {len(block)}\n".encode()
    (record,) = read(line + block)
    assert (record.headers["warc-target-uri"], record.block) == ("http://example.com/a b", block)


@pytest.mark.parametrize("record", [RECORDS[1], arc(b"abc")])
@pytest.mark.parametrize("packed", [False, True])
def test_a_byte_order_mark_is_no_part_of_the_first_record(record: bytes, packed: bool) -> None:
    content = b"\xef\xbb\xbf" + record
    content = gzip.compress(content) if packed else content
    assert may_be_archive(content[:512])
    assert [found.problem for found in read(content + content)] == [None, None]


HTML_BLOCK = http(b"<p>an ARC record</p>")
AT_A, WHEN = "http://a.example/", "192.0.2.1 20040925001013"


@pytest.mark.parametrize(
    ("fields", "url", "content_type", "date"),
    [
        (f"{AT_A} {WHEN} text/html", AT_A, "text/html", "20040925001013"),
        (f"{AT_A}b c?d=e f {WHEN} text/html", f"{AT_A}b c?d=e f", "text/html", None),
        (f"{AT_A} {WHEN} text/html; charset=x", None, "text/html; charset=x", None),
        (f"{AT_A} {WHEN} text/html, a/b", None, "text/html, a/b", None),
        (f"{AT_A} {WHEN}123 text/html", None, None, "20040925001013123"),
        (f"{AT_A} 192.0.2.1 200409250010 text/html", None, None, "200409250010"),
        (f"{AT_A} 2001:db8::1 20040925001013 no-type", None, "no-type", None),
        (f"{AT_A} - 20040925001013 -", None, "-", None),
        (f"{AT_A} {WHEN} ", None, "", None),
        (f"{AT_A} {WHEN}", None, "", None),
        (f"{AT_A} host.a.example 20040925001013 text/html", None, "text/html", None),
        (f"{AT_A}b 12345678 c {WHEN} a/b", f"{AT_A}b 12345678 c", "a/b", None),
        (f"{AT_A} {WHEN} a/b; c 200 ABC - 123 f.arc", None, "a/b; c", None),
        (f"{AT_A} {WHEN} a/b - - http://b.example/ 0 f.arc", None, "a/b", None),
    ],
)
@pytest.mark.parametrize("end", ["\n", " \r\n"])
def test_fields_of_arc_headers(
    fields: str, url: str | None, content_type: str | None, date: str | None, end: str
) -> None:
    line = f"{fields} {len(HTML_BLOCK)}{end}".encode()
    first, second = read(line + HTML_BLOCK + b"\n" + line + HTML_BLOCK)
    assert first.headers == second.headers
    assert (first.problem, first.block, second.block) == (None, HTML_BLOCK, HTML_BLOCK)
    assert first.headers["warc-target-uri"] == (url or AT_A)
    assert content_type is None or first.headers[ARC_TYPE] == content_type
    assert date is None or first.headers["warc-date"] == date


def arc_of_length(length: int, number: int) -> bytes:
    return f"{AT_A}{number} {WHEN} text/html {length}\n".encode() + HTML_BLOCK + b"\n"


@pytest.mark.parametrize(
    ("length", "problems"),
    [
        (len(HTML_BLOCK), [None, None, None]),
        (-1, [None, "record-header-invalid", None]),
        (len(HTML_BLOCK) - 5, [None, None, "record-misplaced", None]),
        (len(HTML_BLOCK) + 1, [None, None, None]),
        (len(HTML_BLOCK) + 9, [None, None, None]),
        (len(HTML_BLOCK) * 9, [None, None, None]),
        (10**15, [None, None, None]),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_wrong_lengths_in_arc_files_cost_no_other_record(length: int, problems: list[str | None], packed: bool) -> None:
    content = arc_of_length(len(HTML_BLOCK), 0) + arc_of_length(length, 1) + arc_of_length(len(HTML_BLOCK), 2)
    records = read(gzip.compress(content) if packed else content)
    assert [record.problem for record in records] == problems
    assert records[0].block == records[-1].block == HTML_BLOCK
    urls = [record.headers["warc-target-uri"] for record in records if record.headers]
    assert urls == [f"{AT_A}{number}" for number in range(3)]
    if not packed:
        for cut in range(1, len(content), 7):
            assert read(content, 0, cut) + read(content, cut) == records


@pytest.mark.parametrize("more", [1, 9, 100, 1_000, 100_000])
@pytest.mark.parametrize("pack", [b"".join, members, lambda records: gzip.compress(b"".join(records))])
@pytest.mark.parametrize("size", [10, 200_000])
def test_too_large_lengths_in_warc_files_cost_no_other_record(
    more: int, pack: Callable[[list[bytes]], bytes], size: int
) -> None:
    """ISO 28500, annex D: a record compressed on its own ends with its member; warcio reads the next one there."""
    texts = [http(letter * size) for letter in (b"a", b"b", b"c")]
    first, second, third = (warc(text, f"http://h/{number}") for number, text in enumerate(texts))
    wrong = second.replace(b"Content-Length: %d" % len(texts[1]), b"Content-Length: %d" % (len(texts[1]) + more), 1)
    content = pack([first, wrong, third])
    records = read(content)
    assert [(record.headers["warc-target-uri"], record.problem) for record in records] == [
        (f"http://h/{number}", None) for number in range(3)
    ]
    assert [record.block.rstrip() for record in records] == texts
    for cut in range(1, len(content), len(content) // 20):
        assert read(content, 0, cut) + read(content, cut) == records


@pytest.mark.parametrize("pack", [b"".join, members])
@pytest.mark.parametrize(("size", "cap"), [(10, 100_000), (200_000, 500_000), (200_000, 1_000)])
def test_lengths_over_the_cap_that_can_not_be_right_cost_no_other_record(
    pack: Callable[[list[bytes]], bytes], size: int, cap: int
) -> None:
    """The end of the file, or a member that begins with a record, shows that a length is wrong."""
    texts = [http(letter * length) for letter, length in ((b"a", 10), (b"b", size), (b"c", 10))]
    first, second, third = (warc(text, f"http://h/{number}") for number, text in enumerate(texts))
    wrong = second.replace(b"Content-Length: %d" % len(texts[1]), b"Content-Length: 5000000000", 1)
    content = pack([first, wrong, third])
    records = read(content, cap=cap)
    problem = None if size < cap else "record-truncated"
    assert [(record.headers["warc-target-uri"], record.problem) for record in records] == [
        ("http://h/0", None),
        ("http://h/1", problem),
        ("http://h/2", None),
    ]
    assert problem is not None or records[1].block.rstrip() == texts[1]
    for cut in range(1, len(content), max(1, len(content) // 20)):
        assert read(content, 0, cut, cap=cap) + read(content, cut, cap=cap) == records


def test_films_that_hold_archives_are_one_record() -> None:
    film = warc(RECORDS[1] * 20 + bytes(5_000), "http://h/film")
    for content in (film + RECORDS[2], members([film, RECORDS[2]])):
        assert [record.problem for record in read(content, cap=1_000)] == ["record-too-large", None]


def test_header_odds_and_ends() -> None:
    content = (
        b"\r\n\r\nWARC/1.0 \r\nwarc-type:response\r\nWARC-Target-URI: <http://example.com/>\r\nX: a\r\n  b\r\n"
        b"nonsense\r\nWARC-Type: request\r\nContent-Length: 2\r\n\r\nab"
    )
    (record,) = read(content)
    assert record.problem is None
    assert (record.kind, record.block) == ("response", b"ab")
    assert record.headers["warc-target-uri"] == "http://example.com/"
    assert record.headers["x"] == "a b"


@pytest.mark.parametrize(
    ("content", "problems"),
    [
        (b"", []),
        (b"\r\n\n", []),
        (b"no archive at all\n" * 3, ["record-misplaced"]),
        (PLAIN[:-20], [None] * 7 + ["record-truncated"]),
        (RECORDS[1] + b"WARC/1.0\r\nWARC-Type: response", [None, "record-truncated"]),
        (warc(b"x", length=99), ["record-truncated"]),
        (RECORDS[1].replace(b"Content-Length: ", b"Content-Length: x") + RECORDS[2], ["record-header-invalid", None]),
        (RECORDS[1].replace(b"Content-Length: ", b"Content-Length: -") + RECORDS[2], ["record-header-invalid", None]),
        (RECORDS[1].replace(b"Content-Length: ", b"X: ") + RECORDS[2], ["record-header-invalid", None]),
        (GARBAGE, [None, "record-misplaced", None, None, None, "record-misplaced", None]),
        (PACKED[:-9], [None] * 7 + ["frame-truncated"]),
        (PACKED + b"\x00" * 700, [None] * 8),
        (PACKED + b"trailing junk", [None] * 8 + ["frame-damaged"]),
        (ZSTD[: len(ZSTD) - 5], [None] * 7 + ["frame-truncated"]),
    ],
)
def test_damage(content: bytes, problems: list[str | None]) -> None:
    assert [record.problem for record in read(content)] == problems


def test_a_broken_member_costs_one_record() -> None:
    records = read(DAMAGED)
    assert sum(record.problem is not None for record in records) == 1
    assert len(records) == len(RECORDS)


def test_records_over_the_cap_are_passed_over() -> None:
    records = read(RECORDS[1] + warc(b"x" * 5_000) + RECORDS[2], cap=1_000)
    assert [record.problem for record in records] == [None, "record-too-large", None]
    assert len(records[1].block) == 1_000


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        PACKED,
        ONE_MEMBER,
        SPLIT_MEMBERS,
        ZSTD,
        WITH_DICTIONARY,
        ARC,
        gzip.compress(ARC),
        DAMAGED,
        GARBAGE,
        PLAIN[:-40],
        PACKED[:-30],
    ],
    ids=[
        "plain",
        "members",
        "one",
        "cut",
        "zstd",
        "dictionary",
        "arc",
        "arc.gz",
        "damaged",
        "garbage",
        "short",
        "short.gz",
    ],
)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_each_record_belongs_to_one_range(content: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(content)), max_size=4)))
    bounds = [0, *cuts, len(content)]
    parts = [record for start, end in pairwise(bounds) for record in read(content, start, end)]
    assert parts == read(content)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([PLAIN, PACKED, ARC, ZSTD]),
    st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 12), st.binary(max_size=12)), max_size=4),
)
def test_no_damage_raises_and_most_records_survive(content: bytes, edits: list[tuple[int, int, bytes]]) -> None:
    for at, removed, inserted in edits:
        at %= len(content)
        content = content[:at] + inserted + content[at + removed :]
    records = read(content)
    assert all(record.problem or record.headers for record in records)
    if len(edits) <= 1 and content[:4] in (b"\x1f\x8b\x08\x00", b"\x28\xb5\x2f\xfd"):
        assert len(set(blocks(records)) & set(EXPECTED)) >= len(set(EXPECTED)) - 2


def test_what_may_be_an_archive() -> None:
    damaged_arcs = (b"filedesc://x.arc\n\x00\x01", gzip.compress(b"\nfiledesc:// of nothing"))
    for content in (PLAIN, PACKED, ZSTD, ARC, DAMAGED, GARBAGE, b"", b"\x1f\x8b\x08broken", *damaged_arcs):
        assert may_be_archive(content[:4096])
    for content in (b"%PDF-1.4", b'{"url": 1}', gzip.compress(b"127.0.0.1 - - [x] GET")):
        assert not may_be_archive(content)


def test_records_of_published_files(shared_data: Path) -> None:
    counts = {}
    for path in sorted((shared_data / "warc").iterdir()):
        with path.open("rb") as opened:
            counts[path.name] = [record.problem for record in read_records(opened)]
    assert counts["example.warc"] == [None] * 6
    assert counts["example.warc.gz"] == [None] * 6
    assert counts["example.arc.gz"] == [None] * 2
    assert counts["example-bad.warc.gz.bad"] == [None] * 6
    assert counts["example-trunc.warc"] == [None, None, None, "record-misplaced", None]
    assert counts["iana.warc.gz"] == [None] * 343


def test_wrong_lengths_of_arc_records_take_time_in_proportion_to_their_number() -> None:
    for pack in (bytes, gzip.compress):
        wrong = b"dns:a.example 192.0.2.1 20240301120000 text/dns 20000000\nx\n"
        content = arc(b"", "filedesc://x", "text/plain") + b"".join([pack(wrong)] * 20_000)
        if pack is gzip.compress:
            content = pack(arc(b"", "filedesc://x", "text/plain")) + b"".join([pack(wrong)] * 5_000)
        begin = time.process_time()
        records = list(read_records(stream(content)))
        assert len(records) in (20_001, 5_001)
        assert {record.block for record in records[1:-1]} == {b"x\n"}
        assert time.process_time() - begin < 7.5  # with a copy of the rest for each: 10 s for two thirds of the records


@pytest.mark.parametrize("make", [lambda: warc(http(b"x" * 200_000)), lambda: arc(http(b"x" * 200_000))])
def test_what_was_read_is_not_kept(make: Callable[[], bytes]) -> None:
    """Chunks of a file of 20 MB are let go, also where the length of ARC records is checked."""
    content = stream(make() * 100)
    tracemalloc.start()
    assert sum(1 for _ in read_records(content)) == 100
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()
