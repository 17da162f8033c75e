"""Counting a click log: f(n), clicks by (URL, word), and c-edges, against DuckDB, Spark, and Beam row by row.

All begin with Parquet files of the clicks table and end with merged counts. Ours runs as the pipelines run it and
writes Parquet, in ids, once with one worker and once with two; DuckDB keeps its results in memory, in strings; all have
to be equal. DuckDB gets one thread. Spark, with two threads, starts outside the clock and counts its results' rows,
which have to be as many. Beam row by row counts a smaller log, and its time for the whole is extrapolated.
"""

from __future__ import annotations

import datetime
import importlib
import importlib.util
import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from apache_beam.pvalue import PCollection

from benchmarks.generate import ClickLog, write_clicks
from benchmarks.harness import Measurement, Prepared, Result, Side, compare, interleaved, without_peer
from semrank.pipelines.folders import table_bytes, table_files
from semrank.pipelines.runtime import beam_options, run_pipeline
from semrank.schemas.tables import CLICKS
from semrank.transforms.columnar.arrays import Int64s, int64s, partition_count, sum_by_key
from semrank.transforms.columnar.beam import WritePartitions
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.columnar.parquet import ROW_GROUP_ROWS
from semrank.transforms.context.words import lemmas_of
from semrank.transforms.streams.dates import SESSION_GAP_SECONDS
from semrank.transforms.weblog.beam import ReadClickFacts

ROWS = 20_000_000
QUICK_ROWS = 200_000
PER_ROW_ROWS = 200_000
"""Clicks that Beam counts row by row."""
QUICK_PER_ROW_ROWS = 20_000
REPEATS = 3

DUCKDB_AIM = {1: 2.5, 2: 1.0}
SPARK_AIM = {1: 1 / 5, 2: 1 / 3}
"""Of the peer's time, by the number of our workers."""
PER_ROW_AIM = 1 / 12

COMPRESSION = 4
"""Bytes in memory of a byte in a compressed Parquet file, as `rank` reckons."""

WORDS, URL_WORDS, EDGES = "word_clicks", "url_word_clicks", "click_edges"
KEYS = {WORDS: ("word",), URL_WORDS: ("url", "word"), EDGES: ("source", "target")}
"""The three results and their keys; each has a column `clicks` besides."""

QUERIES = {
    URL_WORDS: "SELECT url, word, count(*) AS clicks "
    "FROM (SELECT url, unnest(list_distinct(keywords)) AS word FROM log) GROUP BY url, word",
    WORDS: f"SELECT word, sum(clicks)::BIGINT AS clicks FROM {URL_WORDS} GROUP BY word",
    EDGES: "SELECT source, target, count(*) AS clicks FROM (SELECT lag(url) OVER sequence AS source, url AS target, "
    "clicked_at - lag(clicked_at) OVER sequence AS pause FROM log "
    "WINDOW sequence AS (PARTITION BY user_id, session_id, query ORDER BY clicked_at, position, url)) "
    f"WHERE source <> target AND pause <= INTERVAL {SESSION_GAP_SECONDS} SECOND GROUP BY source, target",
}
"""What DuckDB is asked, in this order."""


def write_log(folder: Path, log: ClickLog) -> None:
    """Writes folder/clicks, a generated click log whose queries are given as keywords, too."""
    written = folder / "generated"
    write_clicks(written, log)
    place = CLICKS.schema.get_field_index("keywords")
    (folder / CLICKS.name).mkdir()
    for path in table_files(str(written), CLICKS.name):
        source = pq.ParquetFile(path)
        target = pq.ParquetWriter(folder / CLICKS.name / Path(path).name, CLICKS.schema, compression="zstd")
        with source, target:
            for batch in source.iter_batches(ROW_GROUP_ROWS):
                table = pa.Table.from_batches([batch])
                keywords = pc.split_pattern(table["query"], " ")
                target.write_table(table.set_column(place, CLICKS.schema.field(place), keywords))
        Path(path).unlink()


def count_clicks(log: Path, output: Path, workers: int = 1) -> None:
    """Ours: writes output/{word_clicks,url_word_clicks,click_edges}."""
    run_pipeline(beam_options([f"--workers={workers}"]), partial(_build, log=str(log), output=output))


def _build(pipeline: beam.Pipeline, *, log: str, output: Path) -> None:
    partitions = partition_count(table_bytes(log, CLICKS.name) * COMPRESSION)
    facts = pipeline | ReadClickFacts(
        table_files(log, CLICKS.name), partitions=partitions, words_of=partial(lemmas_of, fallback="en")
    )
    for name, parts, key in (
        (WORDS, facts.word_clicks, "word_id"),
        (URL_WORDS, facts.url_clicks, "url_id"),
        (EDGES, facts.edges, "source"),
    ):
        {"parts": parts} | WritePartitions(f"write {name}", str(output / name), _merged, partitions=partitions, key=key)


def _merged(parts: pa.Table) -> pa.Table:
    return sum_by_key(parts, "clicks")


def count_with_duckdb(log: Path, output: Path) -> Callable[[], None]:
    """DuckDB's results as tables in memory; gives a function that writes them to output/NAME.parquet."""
    connection = importlib.import_module("duckdb").connect(config={"threads": 1})
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"CREATE VIEW log AS FROM read_parquet('{log / CLICKS.name}/*.parquet')")
    for name, query in QUERIES.items():
        connection.execute(f"CREATE TABLE {name} AS {query}")

    def keep() -> None:
        output.mkdir(exist_ok=True)
        for name in QUERIES:
            connection.execute(f"COPY {name} TO '{output / name}.parquet' (FORMAT parquet)")

    return keep


def start_spark(log: Path) -> Callable[[], dict[str, int]]:
    """Starts Spark with two threads; gives a function that makes its results and counts their rows."""
    functions: Any = importlib.import_module("pyspark.sql.functions")
    builder: Any = importlib.import_module("pyspark.sql").SparkSession.builder
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": "16",
        "spark.log.level": "ERROR",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.master("local[2]").getOrCreate()

    def count() -> dict[str, int]:
        rows = session.read.parquet(f"{log / CLICKS.name}")
        words = rows.select("url", functions.explode(functions.array_distinct("keywords")).alias("word"))
        url_words = words.groupBy("url", "word").agg(functions.count("*").alias("clicks")).cache()
        window = importlib.import_module("pyspark.sql.window").Window
        sequence = window.partitionBy("user_id", "session_id", "query").orderBy("clicked_at", "position", "url")
        before, time = (functions.lag(name).over(sequence) for name in ("url", "clicked_at"))
        pause = functions.unix_micros("clicked_at") - functions.unix_micros(time)
        steps = rows.select(before.alias("source"), functions.col("url").alias("target"), pause.alias("pause"))
        walked = steps.where(f"source <> target AND pause <= {SESSION_GAP_SECONDS * 1_000_000}")
        results = {
            URL_WORDS: url_words,
            WORDS: url_words.groupBy("word").agg(functions.sum("clicks").alias("clicks")),
            EDGES: walked.groupBy("source", "target").agg(functions.count("*").alias("clicks")),
        }
        # A count alone would leave columns out; the sum of the clicks needs every group.
        counted = {name: table.agg({"clicks": "sum", "*": "count"}).collect()[0] for name, table in results.items()}
        return {name: int(row["count(1)"]) for name, row in counted.items()}

    return count


def count_by_row(log: Path) -> None:
    """Beam row by row: the same counts, which nobody keeps."""
    run_pipeline(beam_options(["--runner=DirectRunner"]), partial(_build_by_row, log=log))


def _build_by_row(pipeline: beam.Pipeline, *, log: Path) -> None:
    row_counts(pipeline, log)


def row_counts(pipeline: beam.Pipeline, log: Path) -> dict[str, PCollection[tuple[Any, int]]]:
    """The three results as collections of (key, clicks), one element a row, a word, a click of a sequence."""
    columns = ["user_id", "session_id", "query", "keywords", "clicked_at", "position", "url"]
    rows = pipeline | beam.io.ReadFromParquet(f"{log / CLICKS.name}/*.parquet", columns=columns)
    url_words = rows | "url words" >> beam.FlatMap(_url_words) | "count url words" >> beam.CombinePerKey(sum)
    words = url_words | "words" >> beam.MapTuple(_word) | "count words" >> beam.CombinePerKey(sum)
    edges = (
        rows
        | "key by sequence" >> beam.Map(_by_sequence)
        | "sequences" >> beam.GroupByKey()
        | "edges" >> beam.FlatMapTuple(_edges)
        | "count edges" >> beam.CombinePerKey(sum)
    )
    return {WORDS: words, URL_WORDS: url_words, EDGES: edges}


def _url_words(row: dict[str, Any]) -> Iterator[tuple[tuple[str, str], int]]:
    for word in set(row["keywords"]):
        yield (row["url"], word), 1


def _word(key: tuple[str, str], clicks: int) -> tuple[str, int]:
    return key[1], clicks


_Click = tuple[datetime.datetime, int, str]


def _by_sequence(row: dict[str, Any]) -> tuple[tuple[str, str, str], _Click]:
    return (row["user_id"], row["session_id"], row["query"]), (row["clicked_at"], row["position"], row["url"])


def _edges(_sequence: tuple[str, str, str], clicks: Iterable[_Click]) -> Iterator[tuple[tuple[str, str], int]]:
    ordered = sorted(clicks)
    for (before, _, source), (after, _, target) in itertools.pairwise(ordered):
        if source != target and (after - before).total_seconds() <= SESSION_GAP_SECONDS:
            yield (source, target), 1


def check_equal(ours: Path, peer: Path) -> dict[str, int]:
    """Holds our results against DuckDB's; gives the rows of each.

    Raises:
        RuntimeError: they differ.
    """
    rows = {}
    for name, keys in KEYS.items():
        found = pq.read_table(ours / name)
        expected = pq.read_table(peer / f"{name}.parquet")
        own_keys = [column for column in found.column_names if column != "clicks"]
        own = _sorted([int64s(found[column]) for column in own_keys], found)
        other = _sorted([text_ids(expected[column].combine_chunks()) for column in keys], expected)
        if not np.array_equal(own, other):
            raise RuntimeError(f"{name}: found {found.num_rows:,} rows, and DuckDB {expected.num_rows:,} others")
        rows[name] = found.num_rows
    return rows


def _sorted(keys: list[Int64s], counts: pa.Table) -> Int64s:
    order = np.lexsort(keys)
    return np.stack([*keys, int64s(counts["clicks"])])[:, order]


def run(*, quick: bool = False) -> list[Result]:
    """Results of the benchmark: one for each peer.

    Raises:
        RuntimeError: ours and a peer differ.
    """
    rows, few = (QUICK_ROWS, QUICK_PER_ROW_ROWS) if quick else (ROWS, PER_ROW_ROWS)
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        for name, count in (("log", rows), ("small", few)):
            (base / name).mkdir()
            write_log(base / name, ClickLog(clicks=count))
        found, other = base / "found", base / "other"
        sides: dict[str, Side] = {
            "1": partial(count_clicks, base / "log", found),
            "2": partial(count_clicks, base / "log", base / "found-2", 2),
            "by row": partial(count_by_row, base / "small"),
        }
        if importlib.util.find_spec("duckdb") is not None:
            sides["duckdb"] = partial(count_with_duckdb, base / "log", other)
        lacking = "left out: it takes longer to start than all else" if quick else _spark_lacks()
        if lacking is None:
            sides["spark"] = Prepared(partial(start_spark, base / "log"), warm=False)
        runs = interleaved(list(sides.values()), 1 if quick else REPEATS)
        measured = dict(zip(sides, runs, strict=True))
        counts = {name: sum(map(_rows, table_files(str(found), name))) for name in KEYS}
        if "duckdb" in measured:
            check_equal(found, other)
            check_equal(base / "found-2", other)
    ours, by_row = measured["1"], measured["by row"]
    sizes = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items())
    label = f"{rows:,} clicks; {sizes}"
    if "spark" in measured and measured["spark"].value != counts:
        raise RuntimeError(f"found {counts} rows, and Spark {measured['spark'].value}")
    results = [
        result for workers in (1, 2) for result in _against_peers(workers, measured, label, lacking or "", counts)
    ]
    note = f"{label}; ours {ours}; the peer took {by_row} for {few:,} clicks, extrapolated linearly"
    share = rows / few
    results.append(
        compare(
            "click_counts",
            "Beam row by row",
            ours.wall_s,
            by_row.wall_s * share,
            PER_ROW_AIM,
            note,
            cpu_ratio=ours.cpu_s / (by_row.cpu_s * share),
        )
    )
    return results


def _against_peers(
    workers: int, measured: Mapping[str, Measurement], label: str, no_spark: str, counts: Mapping[str, int]
) -> Iterator[Result]:
    """Ours with some workers against DuckDB and Spark; `no_spark` says why there is none."""
    ours = measured[str(workers)]
    name = "click_counts" if workers == 1 else f"click_counts: {workers} workers"
    for peer, shown, aim, lacking in (
        ("duckdb", "DuckDB, one thread", DUCKDB_AIM[workers], "duckdb is not installed"),
        ("spark", "Spark local[2]", SPARK_AIM[workers], no_spark),
    ):
        counted = counts if peer == "duckdb" else {}
        if peer in measured:
            yield ours.against(measured[peer], name, shown, aim, f"{label}; counts are equal", counted)
        else:
            note = f"{label}; ours {ours}; {lacking}"
            yield without_peer(name, shown, aim, note, ours.wall_s, counts=counted)


def _spark_lacks() -> str | None:
    """What Spark needs and does not find, or None."""
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed"
    return None if shutil.which("java") else "Spark needs Java, and there is no `java`"


def _rows(path: str) -> int:
    return int(pq.read_metadata(path).num_rows)
