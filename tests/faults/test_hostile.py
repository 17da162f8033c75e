"""Input that means harm: it costs bounded memory and time, is counted, and touches nothing outside its folder."""

from __future__ import annotations

import ast
import bz2
import errno
import gzip
import io
import itertools
import json
import random
import struct
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from semrank.pipelines.cli import main
from semrank.pipelines.locks import LOCK
from semrank.schemas.errors import InputError
from semrank.transforms.columnar.files import read_json
from semrank.transforms.crawls.html import MAX_HTML_BYTES, MAX_TEXT_CHARS
from semrank.transforms.crawls.links import DEFAULT_MAX_LINKS
from semrank.transforms.crawls.payload import MAX_ENCODINGS
from semrank.transforms.logs.formats import FORMATS as LOG_FORMATS
from semrank.transforms.samples import wikispeedia
from semrank.transforms.samples.topics import topic_seeds
from semrank.transforms.streams import parquet as parquet_module
from semrank.transforms.streams.batch import MAX_REJECT_CHARS
from tests.support.apart import MEBIBYTE, Outcome, Repeated, apart
from tests.support.crawls import http, warc
from tests.support.hostile_inputs import (
    BOMB_BYTES,
    GIBIBYTE,
    LARGE_BOMB_BYTES,
    LOG_MEMORY,
    MEMORY,
    RECORD_BYTES,
    URL,
    damaged_footers,
    damaged_group,
    list_paths,
    null_words,
    one_click_users,
    one_text,
    one_word_pages,
    page,
    parquet,
    parquet_rows,
    rank,
    read,
    read_archive,
    read_endless,
    read_log,
    read_stream,
    texts_apart,
    zeros,
)
from tests.support.sources import modules
from tests.support.strategies import HOST

WORDS = pa.list_(pa.string())


def check(outcome: Outcome, bound: int = MEMORY, seconds: float = 30.0) -> Any:
    assert outcome.grown_bytes <= bound, f"{outcome.grown_bytes / MEBIBYTE:.0f} MiB"
    assert outcome.seconds <= seconds
    return outcome.value


# Bombs


def test_a_record_that_unpacks_to_too_much() -> None:
    head = warc(b"", length=BOMB_BYTES)[:-4]
    # The record's header and the zeros share a member: a stored head, then the run.
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH) + zeros(BOMB_BYTES, -15) + bytes(8)
    assert len(bomb) < 2 * MEBIBYTE
    records, counts, _ = check(apart(read, "warc", bomb + gzip.compress(warc(http()))))
    assert counts["record-too-large"] + counts["frame-damaged"] >= 1
    assert records == sum(counts[name] for name in ("used", "record-too-large", "frame-damaged"))
    assert counts["used"] == 1


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
def test_a_body_that_unpacks_to_too_much(encoding: str) -> None:
    packed = {
        "gzip": lambda: zeros(BOMB_BYTES),
        "deflate": lambda: zeros(BOMB_BYTES, -15),
        "zstd": lambda: zstandard.compress(bytes(BOMB_BYTES // 4)) * 4,
    }[encoding]()
    _, counts, rows = check(apart(read, "warc", warc(http(packed, Content_Encoding=encoding))))
    assert counts["body-too-large"] == 1
    assert rows["pages"] == 1


def test_gzip_in_gzip() -> None:
    bomb = gzip.compress(zeros(BOMB_BYTES), mtime=0)
    assert len(bomb) < 20_000
    _, counts, _ = check(apart(read, "warc", warc(http(bomb, Content_Encoding="gzip, gzip"))))
    assert counts["body-too-large"] == 1
    many = ", ".join(["gzip"] * (MAX_ENCODINGS + 1))
    _, counts, _ = read("warc", warc(http(bomb, Content_Encoding=many)))
    assert counts["body-undecodable"] == 1
    # Of a file in gzip twice only the outer layer is undone: what is inside is no record.
    _, counts, _ = check(apart(read, "warc", gzip.compress(zeros(BOMB_BYTES))))
    assert counts["used"] == 0


@pytest.mark.parametrize("window_log", [27, 31])
def test_a_huge_window(window_log: int) -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(1, window_log=window_log, write_content_size=False)
    record = warc(http())
    packed = zstandard.ZstdCompressor(compression_params=parameters)
    frame = packed.compressobj()
    bomb = frame.compress(record) + frame.flush()
    _, counts, _ = check(apart(read, "warc", bomb))
    assert counts["used"] + counts["frame-damaged"] == 1
    records, counts, _ = check(apart(read_log, "aol", bomb), LOG_MEMORY)
    assert records == sum(counts.values())
    _, counts, _ = check(apart(read, "warc", warc(http(bomb, Content_Encoding="zstd"))))
    assert counts["used"] + counts["body-undecodable"] == 1


@pytest.mark.parametrize("name", ["combined", "matomo"])
@pytest.mark.parametrize("packed", ["gzip", "bzip2", "zstd"])
def test_a_log_that_unpacks_to_too_much(name: str, packed: str) -> None:
    bomb = {
        "gzip": lambda: zeros(LARGE_BOMB_BYTES),
        "bzip2": lambda: bz2.compress(bytes(LARGE_BOMB_BYTES // 32)) * 32,
        "zstd": lambda: zstandard.compress(bytes(LARGE_BOMB_BYTES // 4)) * 4,
    }[packed]()
    records, counts, _ = check(apart(read_log, name, bomb), LOG_MEMORY)
    assert records == sum(counts.values())
    assert counts["used"] == 0


@pytest.mark.parametrize("name", ["nutch", "links"])
def test_lines_that_unpack_to_too_much(name: str) -> None:
    _, counts, _ = check(apart(read, name, zeros(BOMB_BYTES)))
    assert counts == {"used": 0, "record-too-large": 1}


def test_a_path_list_that_unpacks_to_too_much(tmp_path: Path) -> None:
    listing = tmp_path / "paths.gz"
    listing.write_bytes(zeros(LARGE_BOMB_BYTES))
    assert "expected less" in check(apart(list_paths, str(listing)), 2 * MEMORY)


def tar_gz(*headers: bytes, count: int = 1) -> bytes:
    """An archive whose members' heads are followed by as many zeros as they say, `count` times."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    parts = []
    for _ in range(count):
        for header in headers:
            parts.append(packer.compress(header))
            left = -(-int(header[124:135], 8) // 512) * 512
            while left:
                parts.append(packer.compress(bytes(min(left, MEBIBYTE))))
                left -= min(left, MEBIBYTE)
    return b"".join([*parts, packer.compress(bytes(1024)), packer.flush()])


def tar_header(kind: bytes, size: int) -> bytes:
    member = tarfile.TarInfo("plaintext_articles/x.txt")
    member.type, member.size = kind, size
    return member.tobuf(tarfile.USTAR_FORMAT)


@pytest.mark.parametrize(
    ("content", "found", "bound"),
    [
        (lambda: tar_gz(tar_header(tarfile.GNUTYPE_LONGNAME, BOMB_BYTES)), "extension headers", MEMORY),
        (lambda: tar_gz(tar_header(tarfile.XHDTYPE, BOMB_BYTES)), "extension headers", MEMORY),
        (lambda: tar_gz(tar_header(tarfile.XGLTYPE, BOMB_BYTES)), "extension headers", MEMORY),
        (
            lambda: tar_gz(tar_header(tarfile.GNUTYPE_LONGLINK, 1 << 19), count=BOMB_BYTES >> 19),
            "extension headers",
            MEMORY,
        ),
        (lambda: tar_gz(tar_header(tarfile.GNUTYPE_LONGNAME, 512), count=20_000), "is damaged", MEMORY),
        (lambda: tar_gz(tar_header(tarfile.GNUTYPE_SPARSE, 512)), "sparse", MEMORY),
        # A member that is kept takes a kilobyte.
        (lambda: tar_gz(tar_header(tarfile.REGTYPE, 0), count=20_000), "20000", 10 * MEBIBYTE),
    ],
    ids=["long name", "attributes", "global attributes", "long links", "chain", "sparse", "members"],
)
def test_headers_of_archives(content: Callable[[], bytes], found: str, bound: int, tmp_path: Path) -> None:
    archive = tmp_path / "a.tar.gz"
    archive.write_bytes(content())
    assert archive.stat().st_size < 8 * MEBIBYTE
    assert found in check(apart(read_archive, str(archive)), bound, 60)


def test_files_that_never_end(tmp_path: Path) -> None:
    packed = tmp_path / "seeds.gz"
    packed.write_bytes(zeros(LARGE_BOMB_BYTES))
    for path, count in (("/dev/zero", 3), (str(packed), 1)):
        errors = check(apart(read_endless, path), 8 * MEMORY, 60)
        assert len([error for error in errors if "than 268,435,456 bytes" in error]) == count


# Parquet and Arrow


def test_a_dictionary_that_stands_for_a_gigabyte() -> None:
    content = one_text(MEBIBYTE, 1_000, "title")
    assert len(content) < 100_000
    _, counts, rows = check(apart(parquet_rows, content), 4 * MEMORY)
    assert counts["used"] == rows["pages"] == 1_000


def test_a_cell_larger_than_a_record() -> None:
    content = one_text(RECORD_BYTES + 1, 300)
    _, counts, rows = check(apart(parquet_rows, content), 2 * MEMORY)
    assert counts == {"used": 0, "record-too-large": 300}
    assert rows == {"rejects": 300}


def test_lists_of_words_that_stand_for_a_gigabyte() -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000, pa.int32()), pa.array(["k" * MEBIBYTE]))
    lists = pa.ListArray.from_arrays(pa.array(range(1_001), pa.int32()), words)
    table = pa.table({"url": [f"{HOST}/{row}" for row in range(1_000)], "keywords": lists})
    content = parquet(table, row_group_size=1_000)
    assert len(content) < 100_000
    _, counts, _ = check(apart(parquet_rows, content), 4 * MEMORY)
    assert counts == {"used": 1_000, "keywords-cut": 1_000}


def test_a_list_larger_than_a_record() -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([0] * 66, pa.int32()), pa.array(["k" * MEBIBYTE]))
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 1, 66], pa.int32()), words)
    table = pa.table({"url": [f"{HOST}/{row}" for row in range(3)], "keywords": lists})
    _, counts, rows = check(apart(parquet_rows, parquet(table)), 4 * MEMORY)
    assert counts["record-too-large"] == 1
    assert rows["rejects"] >= 1


@pytest.mark.parametrize("name", ["text", "keywords"])
def test_pages_without_a_dictionary_that_stand_for_much_more(name: str) -> None:
    content = texts_apart(20, 17, name)
    assert len(content) < 200_000
    _, counts, _ = check(apart(parquet_rows, content), 2 * MEMORY)
    assert counts["used"] == 340


def test_a_list_of_nothing_but_nulls() -> None:
    """The file has its length in a few bytes, which stand for almost a gigabyte when they are worked on."""
    content = null_words(20_000_000)
    assert len(content) < 100_000
    # The bound of memory is on what is read, whatever else holds memory in the process.
    _, counts, rows = apart(parquet_rows, content).value
    assert counts == {"used": 0, "row-group-too-large": 1}
    assert rows == {"rejects": 1}


def test_a_command_with_one_worker_is_bounded_as_well(tmp_path: Path) -> None:
    """It reads in the main process, beside the thread that waits for interrupts."""
    (tmp_path / "large.parquet").write_bytes(null_words(70_000_000))
    arguments = ["ingest", "--pages", str(tmp_path / "large.parquet"), "--output", str(tmp_path / "snapshot")]
    outcome = apart(main, [*arguments, "--workers", "1", "--quiet"])
    assert check(outcome, 8 * MEMORY) == 0


ROWS = [f"{HOST}/{row}" for row in range(9)]
MOMENTS = pa.array(range(9), pa.timestamp("us"))
USERS_TABLES = {
    "pages": {"url": ROWS, "text": ["words"] * 9, "keywords": [["owl"]] * 9},
    "links": {"source_url": ROWS, "target_url": [HOST] * 9},
    "clicks": {"user_id": ROWS, "query": ["owl"] * 9, "clicked_at": MOMENTS, "url": ROWS},
    "cc-index": {"url": ROWS, "fetch_time": MOMENTS, "fetch_status": [404] * 9},
}


@pytest.mark.parametrize("name", USERS_TABLES)
@pytest.mark.parametrize("encoded", [True, False])
def test_a_damaged_row_group_is_one_reject(name: str, encoded: bool) -> None:
    for group in range(3):
        content = damaged_group(pa.table(USERS_TABLES[name]), group, use_dictionary=encoded)
        records, counts, rows = read(name, content)
        assert (records, counts) == (7, {"used": 6, "row-group-damaged": 1})
        assert rows["rejects"] == 1


@pytest.mark.parametrize("name", USERS_TABLES)
def test_a_file_whose_middle_is_missing(name: str) -> None:
    """What follows is not where the end of the file says that it is."""
    content = parquet(pa.table(USERS_TABLES[name]), row_group_size=3)
    begin = pq.read_metadata(io.BytesIO(content)).row_group(1).column(0)
    cut = begin.dictionary_page_offset or begin.data_page_offset
    records, counts, _ = read(name, content[:cut] + content[cut + 20 :])
    assert (records, counts) == (5, {"used": 3, "row-group-damaged": 2})


@pytest.mark.parametrize("name", USERS_TABLES)
def test_damaged_data_are_counted(name: str) -> None:
    """Some of it may still be read; nothing is raised, and no record lost."""
    content = parquet(pa.table(USERS_TABLES[name]), row_group_size=3, store_schema=False)
    data = len(content) - 8 - struct.unpack("<I", content[-8:-4])[0]
    draw = random.Random(name)
    damaged = 0
    for _ in range(200):
        changed = bytearray(content)
        for _ in range(draw.randint(1, 4)):
            changed[draw.randrange(4, data)] = draw.randrange(256)
        records, counts, _ = read(name, bytes(changed))
        assert records == sum(counts.values()) - counts["keywords-cut"] - counts["position-below-one"]
        damaged += counts["row-group-damaged"]
    assert damaged > 50


def test_a_file_of_parquet_that_vanishes_is_an_error() -> None:
    """Unlike damage: the run would leave rows out that are there."""

    class Vanishing(io.BytesIO):
        reads = 0

        def read(self, size: int | None = -1) -> bytes:
            self.reads += 1
            if self.reads > 6:
                raise OSError(errno.ESTALE, "Stale file handle")
            return super().read(size)

    content = parquet(pa.table(USERS_TABLES["links"]), row_group_size=1)
    with pytest.raises(InputError, match=r"file: .*Stale file handle"):
        read_stream("links", Vanishing(content))


def test_ingest_goes_on_after_damaged_files(tmp_path: Path) -> None:
    """With the other row groups, and the other files."""
    words = pa.array([["owl"]] * 9)
    content = damaged_group(pa.table({"url": ROWS, "keywords": words}), 1)
    (tmp_path / "damaged.parquet").write_bytes(content)
    (tmp_path / "large.parquet").write_bytes(null_words(20_000_000))
    (tmp_path / "whole.parquet").write_bytes(parquet(pa.table({"url": [f"{HOST}/a"], "keywords": [["owl"]]})))
    output = tmp_path / "snapshot"
    arguments = ["ingest", "--pages", str(tmp_path / "*.parquet"), "--output", str(output)]
    assert apart(main, [*arguments, "--workers", "1", "--quiet"]).value == 0
    sources = {Path(source["path"]).name: source for source in read_json(str(output / "manifest.json"))["sources"]}
    assert sources["damaged.parquet"]["rejected"] == {"row-group-damaged": 1}
    assert sources["large.parquet"]["rejected"] == {"row-group-too-large": 1}
    assert [sources[name]["used"] for name in sorted(sources)] == [6, 0, 1]
    rejects = pa.concat_tables([pq.read_table(path) for path in (output / "rejects").glob("*.parquet")])
    assert sorted(rejects["record"].to_pylist()) == [
        f"{tmp_path}/damaged.parquet row group 1, from row 0",
        f"{tmp_path}/large.parquet row group 0, from row 0",
    ]


def test_lists_whose_words_are_in_dictionaries_of_several_groups() -> None:
    """Arrow's writer notes that they were dictionaries, and its reader makes them so again."""
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1], pa.int32()), pa.array(["owl", "bird"]))
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), words)
    content = parquet(pa.table({"url": [f"{HOST}/1", f"{HOST}/2"], "keywords": lists}), row_group_size=1)
    _, counts, rows = read("pages", content)
    assert (counts["used"], rows["pages"]) == (2, 2)


def test_footers_that_lie() -> None:
    table = pa.table({"source_url": [f"{HOST}/{row}" for row in range(999)], "target_url": [HOST] * 999})
    content = parquet(table, row_group_size=100, store_schema=False)
    readable, refused = check(apart(damaged_footers, content, 1), 4 * MEMORY, 60)
    assert readable
    assert refused
    for length in (0, 7, 1 << 30, (1 << 32) - 1):
        with pytest.raises(InputError, match="not a readable Parquet file"):
            read("links", content[:-8] + struct.pack("<I", length) + b"PAR1")


TEXTS = st.one_of(st.none(), st.text(max_size=3), st.sampled_from(["x" * 3_000, "y" * 40_000]))


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(TEXTS, st.one_of(st.none(), st.lists(TEXTS, max_size=3))), max_size=30),
    row_bytes=st.sampled_from([10, 3_500, 1 << 30]),
    piece_bytes=st.sampled_from([1, 5_000, 1 << 30]),
    encoded=st.booleans(),
)
def test_bounded_reading_gives_the_rows(
    rows: list[tuple[str | None, list[str | None] | None]], row_bytes: int, piece_bytes: int, encoded: bool
) -> None:
    """However the rows are cut, and however skewed the dictionary is, they are those of the file."""
    texts = [text for text, _ in rows]
    rejected = mock.Mock()
    table = pa.table({"url": pa.array(texts, pa.string()), "words": pa.array([words for _, words in rows], WORDS)})
    with (
        mock.patch.object(parquet_module, "MAX_ROW_BYTES", row_bytes),
        mock.patch.object(parquet_module, "READ_BYTES", piece_bytes),
        mock.patch.object(parquet_module, "_SKEW", 0 if encoded else 4),
    ):
        content = io.BytesIO(parquet(table, use_dictionary=encoded, row_group_size=7))
        columns = ["url", "words", "absent"]
        found = list(parquet_module.read_batches(content, "file", columns=columns, reject=rejected))
    rejected.assert_not_called()
    large = [len(text or "") > row_bytes for text in texts]
    shown = [
        None if over and len(text or "") > MAX_REJECT_CHARS else text for text, over in zip(texts, large, strict=True)
    ]
    assert [text for piece in found for text in piece.table["url"].to_pylist()] == shown
    assert [words for piece in found for words in piece.table["words"].to_pylist()] == table["words"].to_pylist()
    reasons = [reason for piece in found for reason in piece.reasons.to_pylist()]
    assert reasons == ["record-too-large" if over else None for over in large]
    for piece in found:
        piece.table.validate(full=True)
        assert piece.table.num_rows == 1 or piece.table["url"].nbytes <= piece_bytes + 40_000 + 8 * 31


def undecodable(values: list[bytes]) -> pa.Array:
    """An array of texts that are none."""
    return pa.Array.from_buffers(pa.string(), len(values), pa.array(values, pa.binary()).buffers())


def test_texts_that_are_no_utf_8() -> None:
    bad = undecodable([b"http://a.example/\xff", b"http://b.example/", b"\xc3"])
    words = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), bad)
    good = pa.array(["http://a.example/"] * 3)
    moments = pa.array([1, 2, 3], pa.timestamp("us"))
    for name, columns, reason in [
        ("pages", {"url": bad}, "url-undecodable"),
        ("pages", {"url": good, "title": bad}, "title-undecodable"),
        ("pages", {"url": good, "keywords": words}, "keywords-undecodable"),
        ("links", {"source_url": good, "target_url": bad}, "target-url-undecodable"),
        ("clicks", {"user_id": bad, "query": good, "clicked_at": moments, "url": good}, "user-id-undecodable"),
        ("cc-index", {"url": bad, "fetch_time": moments, "fetch_status": pa.array([200] * 3)}, "url-undecodable"),
    ]:
        for encoded in (True, False):
            records, counts, _ = read(name, parquet(pa.table(columns), use_dictionary=encoded))
            assert records == 3
            assert counts == {"used": 1, reason: 2}, name


def test_arrow_files_are_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No command reads Arrow's IPC from a path, whose offsets are taken on trust: the file is refused by its head."""
    offsets = pa.py_buffer(np.array([0, 1 << 30, 5], dtype=np.int32).tobytes())
    lying = pa.StringArray.from_buffers(2, offsets, pa.py_buffer(b"short"))
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, pa.schema([("url", pa.string())])) as writer:
        writer.write_table(pa.table({"url": lying}))
    path = tmp_path / "pages.arrow"
    path.write_bytes(sink.getvalue())
    assert main(["ingest", "--pages", str(path), "--output", str(tmp_path / "snapshot"), "--quiet"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "expected a Parquet file or JSON Lines" in error


# Pages


def test_a_million_links_on_a_page() -> None:
    body = Repeated(b"", b"<a href=/x>", 1_000_000)
    links, _, counters = check(apart(page, body), 6 * MEMORY)
    assert links == DEFAULT_MAX_LINKS
    assert counters["links-over-cap"] > 100_000
    refreshes = b"<meta http-equiv=refresh content='99; url=/x'>" * 10_000
    links, _, counters = check(apart(page, refreshes), 6 * MEMORY)
    assert links == DEFAULT_MAX_LINKS
    assert counters["links-over-cap"] == 10_000 - DEFAULT_MAX_LINKS


@pytest.mark.parametrize("tag", ["div", "b", "a href=x", "table", "svg", "li", "font", "template", "select"])
def test_deep_nesting(tag: str) -> None:
    check(apart(page, f"<{tag}>".encode() * 100_000 + b"words"), 6 * MEMORY)


@pytest.mark.parametrize("attribute", ["href", "alt", "content", "rel"])
def test_an_attribute_of_a_hundred_megabytes(attribute: str) -> None:
    body = Repeated(b"<body><a href=/y>on</a><a " + attribute.encode() + b'="', b"x ", 50 * MEBIBYTE, b'">')
    check(apart(page, body), 2 * MEMORY)


def test_a_huge_base() -> None:
    """Each link of the page would have to carry it."""
    body = b"<base href='/" + b"x" * (3 * MEBIBYTE) + b"/'>" + b"".join(b"<a href=%d>" % n for n in range(2_000))
    links, _, counters = check(apart(page, body), 2 * MEMORY, 10)
    assert links == 2_000
    assert counters["base-invalid"] == 1


def test_a_page_that_is_one_word_is_ranked(tmp_path: Path) -> None:
    snapshot = one_word_pages(tmp_path, 3)
    outcome = apart(rank, str(snapshot), str(tmp_path / "seeds.txt"), str(tmp_path / "round"))
    assert check(outcome, 4 * MEMORY, 60) == 0


def test_many_users_of_one_click(tmp_path: Path) -> None:
    snapshot = one_click_users(tmp_path, 100_000)
    arguments = (str(snapshot), str(tmp_path / "seeds.txt"), str(tmp_path / "round"), "--profile", "paper-2013")
    assert check(apart(rank, *arguments), 8 * MEMORY, 90) == 0


# Lines and documents of odd shapes


@pytest.mark.parametrize("name", sorted(LOG_FORMATS))
def test_a_line_of_a_hundred_megabytes(name: str) -> None:
    line = Repeated(b'{"a":"' if name in ("matomo", "nginx-json") else b"a\tb ", b"x", 100 * MEBIBYTE)
    records, counts, _ = check(apart(read_log, name, line), LOG_MEMORY)
    assert records == sum(counts.values())
    assert counts["record-too-large"] >= 1


@pytest.mark.parametrize("name", ["nutch", "heritrix", "scrapy", "pages", "links", "clicks"])
def test_a_record_of_a_hundred_megabytes(name: str) -> None:
    lines = Repeated(b'{"url":"', b"x", 100 * MEBIBYTE, b'"}\n{}\n')
    _, counts, _ = check(apart(read, name, lines))
    assert counts["record-too-large"] == 1
    assert sum(counts.values()) == 2


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
@pytest.mark.parametrize("name", ["wat", "scrapy", "pages", "nutch"])
def test_deep_json(name: str, opening: bytes) -> None:
    deep = (b"" if opening != b"[" else b'{"url":') + opening * 200_000
    content = warc(deep, kind="metadata", content_type="application/json") if name == "wat" else deep + b"\n"
    _, counts, _ = check(apart(read, name, content))
    assert counts == {"used": 0, "json-invalid": 1}


@pytest.mark.parametrize("name", ["matomo", "nginx-json"])
def test_deep_json_in_logs(name: str) -> None:
    records, counts, _ = check(apart(read_log, name, b'{"a":' * 200_000 + b"1" + b"}" * 200_000 + b"\n"), LOG_MEMORY)
    assert records == sum(counts.values())
    assert counts["used"] == 0


def test_null_bytes(tmp_path: Path) -> None:
    nulls = "a\0b"
    rows = [{"url": f"{HOST}/{nulls}", "title": nulls, "text": nulls, "keywords": [nulls]}, {"url": f"http://{nulls}/"}]
    pages = "".join(json.dumps(row) + "\n" for row in rows).encode()
    _, counts, _ = read("pages", pages)
    assert counts == {"used": 1, "host-invalid": 1} or counts == {"used": 1, "url-invalid": 1}
    _, counts, rows_found = read("warc", warc(http(b"<title>a\0b</title><a href='/\0x'>\0</a>" + bytes(1000))))
    assert counts["used"] == rows_found["pages"] == 1
    for name in LOG_FORMATS:
        records, counts, _ = read_log(name, bytes(100_000) + b"\n" + bytes(10))
        assert records == sum(counts.values()), name
    (tmp_path / "seeds.txt").write_bytes(b"http://exa\0mple.org/\n\0\n")
    assert rank(str(tmp_path), str(tmp_path / "seeds.txt"), str(tmp_path / "round")) == 2


# Names that lead elsewhere


def archive(folder: Path, *members: tuple[str, bytes, bytes]) -> Path:
    """The archive of the data set's graph with members of (name, type, link's target)."""
    path = folder / wikispeedia.GRAPH_ARCHIVE
    with tarfile.open(path, "w:gz") as tar:
        for name, kind, target in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target.decode()
            info.size = 4 if kind == tarfile.REGTYPE else 0
            tar.addfile(info, io.BytesIO(b"Moon"))
    return path


@pytest.mark.parametrize(
    "member",
    [
        ("../../outside.tsv", tarfile.REGTYPE, b""),
        ("/tmp/outside.tsv", tarfile.REGTYPE, b""),
        (f"{wikispeedia.GRAPH}/../../articles.tsv", tarfile.REGTYPE, b""),
        (f"{wikispeedia.GRAPH}/articles.tsv", tarfile.SYMTYPE, b"/etc/passwd"),
        (f"{wikispeedia.GRAPH}/articles.tsv", tarfile.LNKTYPE, b"../../../etc/passwd"),
        (f"{wikispeedia.GRAPH}/articles.tsv", tarfile.CHRTYPE, b""),
    ],
    ids=lambda member: f"{member[0]}-{member[1].decode()}",
)
def test_members_that_lead_out_of_an_archive(
    member: tuple[str, bytes, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, output = tmp_path / "source", tmp_path / "deep" / "er" / "snapshot"
    source.mkdir()
    archive(source, member)
    before = sorted(path for path in tmp_path.rglob("*") if path != output.parent)
    assert main(["dataset", "wikispeedia", "--source", str(source), "--output", str(output), "--quiet"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert sorted(path for path in tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "category", ["subject.../../../outside", "subject./etc/x", "subject.a/b", "subject.\0", "..", "subject.-"]
)
def test_topics_that_lead_out_of_the_folder(category: str) -> None:
    """Topics become names of files."""
    listed, _ = wikispeedia.read_articles(io.BytesIO(b"Moon\n"))
    rows = wikispeedia.read_categories(io.BytesIO(f"Moon\t{category}\n".encode()), listed)
    assert not topic_seeds(rows.topics)
    assert sum(sum(batch.rejected.values()) for batch in rows.batches) == 1


def test_urls_name_no_files(tmp_path: Path) -> None:
    """URLs are values in tables: no name below the output comes from one."""
    odd = [f"{HOST}/../../../outside", f"{HOST}/%2e%2e%2f%2e%2e%2foutside", "file:///etc/passwd", f"{HOST}/a\\..\\b"]
    pages = tmp_path / "pages.jsonl"
    pages.write_text("".join(json.dumps({"url": url, "text": "lattice"}) + "\n" for url in odd))
    links = tmp_path / "links.jsonl"
    links.write_text("".join(json.dumps({"source_url": odd[0], "target_url": url}) + "\n" for url in odd[1:]))
    snapshot = tmp_path / "out" / "snapshot"
    inputs = ["--pages", str(pages), "--links", str(links)]
    assert main(["ingest", *inputs, "--output", str(snapshot), "--quiet"]) == 0
    (tmp_path / "seeds.txt").write_text(odd[0] + "\n")
    assert rank(str(snapshot), str(tmp_path / "seeds.txt"), str(tmp_path / "out" / "round")) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"pages.jsonl", "links.jsonl", "seeds.txt", "out"}
    names = {path.name for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert all(name == "manifest.json" or name.startswith("part-") for name in names)


@pytest.mark.parametrize("name", ["pages", "manifest.json", LOCK])
@pytest.mark.parametrize("overwrite", [False, True])
def test_symbolic_links_in_the_output(
    name: str, overwrite: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are not followed, and what they lead to is left alone."""
    treasure = tmp_path / "treasure"
    treasure.mkdir()
    (treasure / "kept").write_text("gold")
    dangling = tmp_path / "nowhere"
    pages = tmp_path / "pages.jsonl"
    pages.write_text(json.dumps({"url": HOST}) + "\n")
    for target in (treasure, treasure / "kept", dangling):
        output = tmp_path / f"snapshot-{target.name}"
        output.mkdir()
        (output / name).symlink_to(target)
        arguments = ["--pages", str(pages), "--output", str(output), *(["--overwrite"] if overwrite else [])]
        assert main(["ingest", *arguments, "--quiet"]) == 2
        assert capsys.readouterr().err.count("\n") == 1
        assert (treasure / "kept").read_text() == "gold"
        assert not dangling.exists()
        assert {path.name for path in treasure.iterdir()} == {"kept"}


UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib", "jsonpickle", "torch"}
UNSAFE_CALLS = {
    "eval",
    "exec",
    "compile",
    "read_pickle",
    "unsafe_load",
    "full_load",
    "deserialize_pandas",
    "extractall",
}
LOADERS = {"CSafeLoader", "SafeLoader"}


def unsafe(tree: ast.Module) -> list[str]:
    """What a module does that would run code, or write files, as an input says."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in UNSAFE_MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in UNSAFE_MODULES:
            found.append(node.module or "")
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name != "load" and name not in UNSAFE_CALLS:
                continue
            owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
            if name in UNSAFE_CALLS and owner != "re":
                found.append(name)
            if name == "load" and owner in ("np", "numpy") and "allow_pickle=False" not in ast.unparse(node):
                found.append("numpy.load")
            if name == "load" and owner == "yaml" and not any(loader in ast.unparse(node) for loader in LOADERS):
                found.append("yaml.load")
    return found


OF_OUR_OWN = {
    # The parent reads from a pipe what the child that it forked wrote there; no input takes that way.
    "pipelines/local/workers.py": {"pickle"},
    # A function of the pipeline is copied inside of its process.
    "pipelines/local/execution.py": {"pickle"},
}
"""Module -> what it may do because no input takes part in it."""


def test_no_input_is_run() -> None:
    """Nothing that a user names is unpickled, evaluated, or unpacked to wherever it says."""
    own = modules()
    assert len(own) > 100
    for path, tree in own.items():
        assert set(unsafe(tree)) == OF_OUR_OWN.get(path, set()), path
    for text in (
        "import pickle",
        "from dill import loads",
        "np.load(path)",
        "yaml.load(text, yaml.Loader)",
        "eval('1')",
        "tar.extractall(path)",
    ):
        assert unsafe(ast.parse(text)), text
    assert not unsafe(ast.parse("re.compile('x'); np.load(path, allow_pickle=False); yaml.load(text, yaml.SafeLoader)"))


def test_the_cap_of_html_is_larger_than_that_of_its_text() -> None:
    assert MAX_TEXT_CHARS <= MAX_HTML_BYTES <= RECORD_BYTES


def test_wat_records_with_a_million_links() -> None:
    links = ",".join(['{"path":"A@/href","url":"/x"}'] * 500_000)
    html = f'{{"Links":[{links}]}}'
    envelope = (
        f'{{"Envelope":{{"WARC-Header-Metadata":{{"WARC-Type":"response","WARC-Target-URI":"{URL}"}},'
        f'"Payload-Metadata":{{"HTTP-Response-Metadata":{{"HTML-Metadata":{html}}}}}}}}}'
    ).encode()
    assert len(envelope) < RECORD_BYTES
    content = warc(envelope, kind="metadata", content_type="application/json")
    _, counts, rows = check(apart(read, "wat", content), 3 * MEMORY)
    assert rows["links"] == DEFAULT_MAX_LINKS
    assert counts["links-over-cap"] == 500_000 - DEFAULT_MAX_LINKS


def test_the_hard_limit_of_these_tests_holds() -> None:
    with pytest.raises(MemoryError):
        apart(bytearray, 8 * GIBIBYTE)
    assert apart(sum, [1, 2]).value == 3
    assert apart(len, list(itertools.repeat(0, 10))).grown_bytes < 50 * MEBIBYTE
