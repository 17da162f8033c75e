from __future__ import annotations

import pyarrow as pa
import pytest

from schemas.tables import LINKS, PAGES
from transforms.sources.batch import MAX_REJECT_CHARS, BatchBuilder, SourceBatch, well_formed


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
