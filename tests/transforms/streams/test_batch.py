from __future__ import annotations

import pyarrow as pa
import pytest

from semrank.schemas.tables import LINKS, PAGES
from semrank.transforms.streams.batch import CAPTURES, MAX_REJECT_CHARS, BatchBuilder, Capture, SourceBatch
from semrank.transforms.streams.texts import well_formed


def test_a_batch_that_does_not_balance_is_an_error() -> None:
    with pytest.raises(ValueError, match="found 3 records, expected 2: used 1"):
        SourceBatch(tables={}, records=3, used=1, rejected={"x": 1}, ignored={})


def test_a_table_that_sources_do_not_fill_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"found tables \['frontier'\]"):
        SourceBatch(tables={"frontier": pa.table({})}, records=0, used=0, rejected={}, ignored={})


def test_builder_conforms_rows_and_keeps_the_balance() -> None:
    builder = BatchBuilder("warc")
    builder.append("pages", ("http://a/", 1, 200, "t", "x", None, "en", None))
    builder.use()
    builder.extend("links", (["http://a/"] * 2, ["http://b/", "http://c/"], [None, "c"], [False, True]))
    builder.add("links", pa.table({"source_url": ["http://d/"], "target_url": ["http://e/"]}))
    builder.reject("url-invalid", "r" * 5_000)
    builder.ignore("not-html", 3)
    builder.note("host-missing", "http://", stage="links")
    builder.count("links-over-cap", 7)
    (batch,) = builder.drain(last=True)
    assert (batch.records, batch.used, batch.rejected, batch.ignored) == (5, 1, {"url-invalid": 1}, {"not-html": 3})
    assert batch.counters == {"links-over-cap": 7}
    assert batch.tables["pages"].schema == PAGES.schema
    assert batch.tables["links"].schema == LINKS.schema
    assert batch.tables["links"].num_rows == 3
    rejects = batch.tables["rejects"].to_pylist()
    assert [(row["stage"], row["reason"]) for row in rejects] == [("warc", "url-invalid"), ("links", "host-missing")]
    assert len(rejects[0]["record"]) == MAX_REJECT_CHARS


def test_links_know_the_capture_that_they_were_read_from() -> None:
    builder = BatchBuilder("warc")
    builder.append("links", ("http://a/", "http://b/", None, None))
    builder.extend_links(
        (["http://c/"] * 2, ["http://d/", "http://e/"], [None, None], [False, False]), Capture(5, "d1", None)
    )
    builder.add("links", pa.table({"source_url": ["http://f/"], "target_url": ["http://g/"]}))
    builder.extend_links((["http://h/"], ["http://i/"], [None], [False]), Capture(None, None, 7))
    (batch,) = builder.drain(last=True)
    assert batch.captures is not None
    assert batch.captures.schema == CAPTURES.schema
    captures = batch.captures.set_column(1, "captured_at", batch.captures["captured_at"].cast(pa.int64()))
    rows = [tuple(row.values()) for row in captures.to_pylist()]
    assert dict(zip(batch.tables["links"]["target_url"].to_pylist(), rows, strict=True)) == {
        "http://b/": (False, None, None, None),
        "http://d/": (True, 5, "d1", None),
        "http://e/": (True, 5, "d1", None),
        "http://g/": (False, None, None, None),
        "http://i/": (True, None, None, 7),
    }
    builder.append("links", ("http://a/", "http://b/", None, None))
    (batch,) = builder.drain(last=True)
    assert batch.captures is None


def test_captures_are_one_for_each_link() -> None:
    with pytest.raises(ValueError, match="found 0 captures, expected one for each of 1 links"):
        SourceBatch(
            tables={"links": pa.table([["http://a/"], ["http://b/"], [None], [None]], schema=LINKS.schema)},
            records=0,
            used=0,
            rejected={},
            ignored={},
            captures=CAPTURES.empty(),
        )


def test_batches_are_cut_by_size_and_nothing_is_lost_between_them() -> None:
    builder = BatchBuilder("warc", max_bytes=1_000)
    batches: list[SourceBatch] = []
    for number in range(100):
        builder.append("pages", (f"http://a/{number}", None, None, None, "x" * 90, None, None, None))
        builder.use()
        batches += builder.drain()
    batches += builder.drain(last=True)
    assert len(batches) > 5
    assert sum(batch.used for batch in batches) == 100
    urls = [url for batch in batches for url in batch.tables["pages"]["url"].to_pylist()]
    assert urls == [f"http://a/{number}" for number in range(100)]
    assert max(batch.tables["pages"].num_rows for batch in batches) <= 10


def test_nothing_comes_of_nothing() -> None:
    assert list(BatchBuilder("warc").drain(last=True)) == []


def test_halves_of_surrogate_pairs_become_replacement_characters() -> None:
    builder = BatchBuilder("scrapy")
    builder.append("pages", ("http://a/", None, None, "a\ud800b", None, ["\udc00"], None, None))
    builder.use()
    (batch,) = builder.drain(last=True)
    (row,) = batch.tables["pages"].to_pylist()
    assert (row["title"], row["keywords"]) == ("a�b", ["�"])
    assert well_formed("\ud83d\ude00") == "\U0001f600"
