"""All sides of the benchmark of click counts count the same, and a difference does not go unseen."""

from __future__ import annotations

import datetime
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow.parquet as pq
import pytest
from apache_beam.testing.util import assert_that, equal_to

from benchmarks import click_counts
from benchmarks.generate import ClickLog
from semrank.pipelines.runtime import beam_options, run_pipeline
from semrank.schemas.tables import CLICKS

ROWS = 2_000
HALF_AN_HOUR = datetime.timedelta(minutes=30)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log")
    click_counts.write_log(folder, ClickLog(clicks=ROWS))
    return folder


def by_hand(log: Path) -> dict[str, Counter[Any]]:
    counts: dict[str, Counter[Any]] = {name: Counter() for name in click_counts.KEYS}
    sequences: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
    for row in pq.read_table(log / "clicks").to_pylist():
        for word in set(row["query"].split()):
            counts[click_counts.WORDS][word] += 1
            counts[click_counts.URL_WORDS][row["url"], word] += 1
        key = (row["user_id"], row["session_id"], row["query"])
        sequences.setdefault(key, []).append((row["clicked_at"], row["position"], row["url"]))
    for clicks in sequences.values():
        for (before, _, source), (after, _, target) in pairwise(sorted(clicks)):
            if source != target and after - before <= HALF_AN_HOUR:
                counts[click_counts.EDGES][source, target] += 1
    return counts


def test_the_log_gives_its_queries_as_keywords(log: Path) -> None:
    table = pq.read_table(log / "clicks")
    assert table.schema.equals(CLICKS.schema)
    assert table.num_rows == ROWS
    assert all(row["keywords"] == row["query"].split(" ") for row in table.to_pylist())


def test_beam_row_by_row_counts_as_by_hand(log: Path) -> None:
    expected = by_hand(log)

    def build(pipeline: beam.Pipeline) -> None:
        for name, counts in click_counts.row_counts(pipeline, log).items():
            assert_that(counts, equal_to(list(expected[name].items())), label=f"check {name}")

    run_pipeline(beam_options(["--runner=DirectRunner"]), build)


def test_duckdb_counts_as_by_hand_and_ours_the_same(log: Path, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    expected = by_hand(log)
    click_counts.count_with_duckdb(log, tmp_path / "other")()
    for name, (first, *more) in click_counts.KEYS.items():
        rows = pq.read_table(tmp_path / "other" / f"{name}.parquet").to_pylist()
        assert {(row[first], row[more[0]]) if more else row[first]: row["clicks"] for row in rows} == expected[name]
    click_counts.count_clicks(log, tmp_path / "found")
    sizes = click_counts.check_equal(tmp_path / "found", tmp_path / "other")
    assert sizes == {name: len(counts) for name, counts in expected.items()}

    edges = tmp_path / "other" / f"{click_counts.EDGES}.parquet"
    pq.write_table(pq.read_table(edges).slice(1), edges)
    with pytest.raises(RuntimeError, match="click_edges: found"):
        click_counts.check_equal(tmp_path / "found", tmp_path / "other")


def test_what_spark_lacks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: object())
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert click_counts._spark_lacks() == "Spark needs Java, and there is no `java`"
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert click_counts._spark_lacks() == "pyspark is not installed"


@pytest.mark.usefixtures("forked_runs")
def test_a_run_compares_with_all_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("duckdb")
    monkeypatch.setattr(click_counts, "QUICK_ROWS", ROWS)
    monkeypatch.setattr(click_counts, "QUICK_PER_ROW_ROWS", ROWS // 2)
    duckdb, spark, *two_workers, by_row = click_counts.run(quick=True)
    assert (duckdb["peer"], duckdb["aim"]) == ("DuckDB, one thread", 2.5)
    assert (spark["peer"], spark["aim"], spark["met"]) == ("Spark local[2]", 0.2, None)
    assert (by_row["peer"], by_row["aim"]) == ("Beam row by row", 1 / 12)
    assert set(duckdb["counts"]) == set(click_counts.KEYS)
    assert "extrapolated" in by_row["note"]
    assert [(result["name"], result["aim"]) for result in two_workers] == [
        ("click_counts: 2 workers", 1.0),
        ("click_counts: 2 workers", 1 / 3),
    ]
    for result in (duckdb, two_workers[0], by_row):
        assert result["ratio"] is not None
        assert result["met"] == (result["ratio"] <= (result["aim"] or 0))
