"""Inputs that mean harm, of any size, and what reads them."""

from __future__ import annotations

import gc
import importlib
import io
import random
import struct
import zlib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from semrank.pipelines.cli import main
from semrank.pipelines.queue import queue_from_seeds
from semrank.schemas.errors import InputError
from semrank.transforms.columnar.files import read_bounded, read_json
from semrank.transforms.crawls.formats import FORMATS, listed_paths
from semrank.transforms.crawls.html import MAX_TEXT_CHARS, read_html
from semrank.transforms.crawls.pages import CrawlLimits
from semrank.transforms.logs.formats import FORMATS as LOG_FORMATS
from semrank.transforms.samples.wikispeedia import archive_files
from tests.support.apart import MEBIBYTE, Repeated
from tests.support.logs import OPTIONS as LOG_OPTIONS
from tests.support.snapshots import write_snapshot
from tests.support.strategies import HOST, START

for _command in ("ingest", "rank"):
    # Processes that are forked from one with this module need not import it again.
    importlib.import_module(f"semrank.pipelines.{_command}")
gc.freeze()  # nor copy the pages that a search for garbage would write to

GIBIBYTE = 1 << 30
RECORD_BYTES = CrawlLimits().max_record_bytes
URL = "https://example.org/page"

MEMORY = 160 * MEBIBYTE
"""What a reader may take beyond its start, whatever the input: eight times the largest record."""

LOG_MEMORY = 320 * MEBIBYTE
"""The same of readers of logs, which hold blocks of 8 MiB some ten times over, and lines of up to 16 MiB."""


BOMB_BYTES, LARGE_BOMB_BYTES = MEMORY + 32 * MEBIBYTE, LOG_MEMORY + 32 * MEBIBYTE
"""What bombs unpack to: more than these bounds, so that a reader that holds all of it is found."""


@cache
def zeros(size: int, wbits: int = 31) -> bytes:
    """A deflated run of NUL bytes: a thousandth of its size, made in an instant."""
    block = bytes(MEBIBYTE)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    repeats = size // MEBIBYTE
    body = packed * repeats + zlib.compressobj(9, zlib.DEFLATED, -15).flush()
    if wbits < 0:
        return body
    checksum = 0
    for _ in range(repeats):
        checksum = zlib.crc32(block, checksum)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + body + struct.pack("<II", checksum, size & 0xFFFFFFFF)


def read(name: str, content: bytes | Repeated) -> tuple[int, Counter[str], Counter[str]]:
    """Number of records, counts of what became of them, and rows, of a file of a crawl format."""
    return read_stream(name, _opened(content))


def _opened(content: bytes | Repeated) -> BinaryIO:
    return content.stream() if isinstance(content, Repeated) else io.BytesIO(content)


def read_stream(name: str, stream: BinaryIO) -> tuple[int, Counter[str], Counter[str]]:
    return _summed(FORMATS[name].read(stream, source="file", start=0, end=None, limits=CrawlLimits()))


def read_log(name: str, content: bytes | Repeated) -> tuple[int, Counter[str], Counter[str]]:
    return _summed(LOG_FORMATS[name].read(_opened(content), source="file", options=LOG_OPTIONS))


def _summed(batches: Any) -> tuple[int, Counter[str], Counter[str]]:
    records, counts, rows = 0, Counter[str](), Counter[str]()
    for batch in batches:
        records += batch.records
        counts.update({"used": batch.used})
        counts.update(batch.rejected)
        counts.update(batch.ignored)
        counts.update(batch.counters)
        rows.update({table: values.num_rows for table, values in batch.tables.items()})
    return records, counts, rows


def parquet(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", **options)
    return sink.getvalue()


def one_text(length: int, rows: int, name: str = "text") -> bytes:
    """Rows that all have one long text, which stands in the file once."""
    texts = pa.DictionaryArray.from_arrays(np.zeros(rows, dtype=np.int32), pa.array(["x" * length]))
    return parquet(pa.table({"url": [f"{HOST}/{row}" for row in range(rows)], name: texts}))


def texts_apart(rows: int, groups: int, name: str) -> bytes:
    """Texts of a megabyte that stand in the file one by one, without a dictionary, some rows a group."""
    sink = io.BytesIO()
    writer = None
    for group in np.arange(rows * groups).reshape(groups, rows):
        texts = pa.array([f"{'x' * MEBIBYTE}{number}" for number in group])
        column = texts if name == "text" else pa.ListArray.from_arrays(np.arange(rows + 1), texts)
        table = pa.table({"url": [f"{HOST}/{number}" for number in group], name: column})
        writer = writer or pq.ParquetWriter(sink, table.schema, compression="zstd", use_dictionary=False)
        writer.write_table(table)
    if writer is not None:
        writer.close()
    return sink.getvalue()


def null_words(count: int) -> bytes:
    """A row whose list of keywords is so many nulls."""
    words = pa.DictionaryArray.from_arrays(pa.nulls(count, pa.int8()), pa.array(["x"]))
    lists = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), words)
    return parquet(pa.table({"url": [HOST], "keywords": lists}), store_schema=False)


def damaged_group(table: pa.Table, group: int, **options: Any) -> bytes:
    """A file of row groups of three rows, all of whose data in one group are overwritten."""
    content = bytearray(parquet(table, row_group_size=3, **options))
    chunks = pq.read_metadata(io.BytesIO(content)).row_group(group)
    for chunk in (chunks.column(number) for number in range(chunks.num_columns)):
        begin = chunk.dictionary_page_offset or chunk.data_page_offset
        content[begin : begin + chunk.total_compressed_size] = b"\xa5" * chunk.total_compressed_size
    return bytes(content)


def parquet_rows(content: bytes) -> tuple[int, Counter[str], Counter[str]]:
    return read("pages", content)


def page(body: bytes | Repeated) -> tuple[int, int, dict[str, int]]:
    """Links and characters of text of a page, and what was counted."""
    found = read_html(bytes(body), url=URL)
    assert len(found.text or "") <= MAX_TEXT_CHARS
    return len(found.links.targets), len(found.text or ""), dict(found.links.counters)


def rank(snapshot: str, seeds: str, output: str, *options: str) -> int:
    return main(["rank", "--snapshot", snapshot, "--seeds", seeds, "--output", output, "--quiet", *options])


def one_click_users(folder: Path, users: int) -> Path:
    """A snapshot of two pages with a click each of so many users, and a file of seeds beside it, `seeds.txt`."""
    pages = [{"url": f"{HOST}/{name}", "keywords": ["lattice", "network"]} for name in ("q", "c")]
    links = [{"source_url": f"{HOST}/q", "target_url": f"{HOST}/c"}]
    snapshot = write_snapshot(folder / "snapshot", pages, links, [])
    clicks = pa.table(
        {
            "user_id": pa.array(np.arange(users)).cast(pa.string()),
            "user_group": pa.nulls(users, pa.string()),
            "session_id": pa.nulls(users, pa.string()),
            "query": ["lattice", "network"] * (users // 2),
            "keywords": pa.nulls(users, pa.list_(pa.string())),
            "clicked_at": pa.array([START] * users, pa.timestamp("us", "UTC")),
            "position": pa.nulls(users, pa.int32()),
            "url": [f"{HOST}/c", f"{HOST}/q"] * (users // 2),
        }
    )
    pq.write_table(clicks, snapshot / "clicks" / "part-00000.parquet")
    (folder / "seeds.txt").write_text(f"{HOST}/q\n")
    return snapshot


def one_word_pages(folder: Path, count: int) -> Path:
    """A snapshot of pages whose texts, as long as they may be, are one word, and a file of seeds beside it."""
    names = [f"{HOST}/{number}" for number in range(count)]
    words = "lattice " * (MAX_TEXT_CHARS // 8)
    pages = [{"url": name, "text": words, "language": "en"} for name in names]
    links = [{"source_url": names[0], "target_url": name, "anchor_text": "x " * 250} for name in names[1:]]
    snapshot = write_snapshot(folder / "snapshot", pages, links, [])
    (folder / "seeds.txt").write_text(f"{names[0]}\n")
    return snapshot


def list_paths(path: str) -> str:
    """The error of a list of paths."""
    try:
        listed_paths(path, None)
    except InputError as error:
        return str(error)
    raise AssertionError("it was read")


def read_archive(path: str) -> str:
    """Number of an archive's files, or why it is refused."""
    try:
        return str(sum(1 for _ in archive_files(Path(path))))
    except InputError as error:
        return str(error)


def read_endless(path: str) -> list[str]:
    """Why each reader of small files refuses one."""
    errors = []
    for read_one in (queue_from_seeds, read_json, read_bounded):
        try:
            read_one(path)
        except InputError as error:
            errors.append(str(error))
    return errors


def damaged_footers(content: bytes, seed: int) -> tuple[int, int]:
    """Reads files whose footers lie; gives how many could be read and how many were refused."""
    draw = random.Random(seed)
    size = struct.unpack("<I", content[-8:-4])[0]
    readable = refused = 0
    for _ in range(300):
        data = bytearray(content)
        for _ in range(draw.randint(1, 4)):
            at = len(data) - 1 - draw.randrange(8 + size)
            data[at] = draw.choice([0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)])
        for name in ("links", "cc-index"):
            try:
                read(name, bytes(data))
            except InputError:
                refused += 1
            else:
                readable += 1
    return readable, refused
