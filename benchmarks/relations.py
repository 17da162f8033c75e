"""Supports of ISA and Part-Of relations, learned from a click log and links, against the same in DuckDB's SQL.

Both begin with Parquet files, know the vocabulary with its numbers, and end with merged supports. Ours runs as the
pipelines run it and writes Parquet; DuckDB, with one thread as a worker, keeps its results in memory. It names URLs and
scopes by its own 64-bit hash, which makes it twice as fast as strings do. The results have to be equal.
"""

from __future__ import annotations

import importlib
import importlib.util
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.click_counts import COMPRESSION, write_log
from benchmarks.generate import ClickLog, Web, write_links
from benchmarks.harness import Result, interleaved, without_peer
from semrank.pipelines.folders import table_bytes, table_files
from semrank.pipelines.runtime import beam_options, run_pipeline
from semrank.schemas.tables import CLICKS, LINKS
from semrank.transforms.columnar.arrays import Int64s, column_array, distinct_rows, int64s, partition_count
from semrank.transforms.columnar.beam import FilterIds, MapTables, ReadParquet, WritePartitions
from semrank.transforms.columnar.idfilter import IdFilter, filter_bits, filter_positions
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.context.links import COLUMNS as LINK_COLUMNS
from semrank.transforms.context.links import clicked_links, followed_links, read_links
from semrank.transforms.context.objects import VOCABULARY_SCHEMA
from semrank.transforms.context.words import lemmas_of
from semrank.transforms.weblog.beam import LearnRelations
from semrank.transforms.weblog.clicks import NO_GROUP
from semrank.transforms.weblog.groups import USER_GROUP_SCHEMA
from semrank.transforms.weblog.relations import ISA, OWN_WORD_SCHEMA, PART_OF, RelationSettings, merge_pairs

CLICKS_ROWS = 20_000_000
QUICK_CLICKS_ROWS = 200_000
CLICKS_PER_PAGE = 10
"""20 million clicks go with 2 million pages; half of them are fetched, and have 10 links each."""
CLICKS_PER_USER = 100
MAX_WORDS = 50
BASE_EVERY = 10
"""Every tenth word occurs in the base context, as a queue is a small part of a web; all occur in the current one."""
REPEATS = 3
AIM = 2.5
PEER = "DuckDB, one thread"

USERS, URLS = "users", "urls"

QUERIES = {
    "several": "SELECT user_id FROM log GROUP BY user_id HAVING count(DISTINCT coalesce(user_group, '')) > 1",
    "scopes": "SELECT url, scope, number, sum(clicks) AS clicks FROM ("
    "SELECT hash(url) AS url, hash('group', user_group) AS scope, unnest(list_distinct(keywords)) AS word, 1 AS clicks "
    "FROM log UNION ALL "
    "SELECT hash(url), hash('user', user_id), unnest(list_distinct(keywords)), 0 FROM log SEMI JOIN several "
    "USING (user_id)) JOIN vocabulary USING (word) GROUP BY ALL",
    "leading_words": "SELECT url, scope, number, in_base FROM scopes SEMI JOIN (SELECT url, number FROM scopes "
    "GROUP BY url, number QUALIFY row_number() OVER (PARTITION BY url ORDER BY sum(clicks) DESC, number) <= {most}) "
    "USING (url, number) JOIN vocabulary USING (number)",
    ISA: "SELECT source, target, count(*) AS support FROM (SELECT DISTINCT a.number AS source, b.number AS target, url "
    "FROM leading_words a JOIN leading_words b USING (url, scope) WHERE a.number < b.number) GROUP BY source, target",
    "followed": "SELECT DISTINCT hash(source_url) AS source_url, hash(target_url) AS target_url FROM links "
    "WHERE NOT nofollow AND source_url <> target_url",
    "directed": "SELECT source, target, count(*) AS support FROM (SELECT DISTINCT a.number AS source, "
    "b.number AS target, source_url, target_url FROM followed JOIN leading_words a ON a.url = source_url "
    "JOIN leading_words b ON b.url = target_url AND b.scope = a.scope WHERE a.in_base AND a.number <> b.number) "
    "GROUP BY source, target",
    PART_OF: "SELECT p.* FROM directed p LEFT JOIN directed o ON o.source = p.target "
    f"AND o.target = p.source ANTI JOIN {ISA} i ON i.source = least(p.source, p.target) "
    "AND i.target = greatest(p.source, p.target) WHERE p.support > coalesce(o.support, 0)",
}
"""What DuckDB is asked, in this order."""


def write_input(folder: Path, clicks: int) -> None:
    """Writes folder/{clicks,links,vocabulary.parquet}: generated tables, and all words of the log's queries."""
    pages = clicks // CLICKS_PER_PAGE
    write_log(folder, ClickLog(clicks=clicks, pages=pages, users=clicks // CLICKS_PER_USER))
    write_links(folder, Web(pages=pages))
    words: set[str] = set()
    for path in table_files(str(folder), CLICKS.name):
        words |= set(pc.unique(pc.list_flatten(pq.read_table(path, columns=["keywords"])["keywords"])).to_pylist())
    pq.write_table(vocabulary(sorted(words)), folder / "vocabulary.parquet")


def vocabulary(words: list[str]) -> pa.Table:
    """A vocabulary of these words, sorted, of which every `BASE_EVERY`-th occurs in the base context."""
    numbers = np.arange(len(words))
    in_base = (numbers % BASE_EVERY == 0).astype(np.int64)
    ones = np.ones(len(words), dtype=np.int64)
    column = pa.array(words, pa.string())
    return pa.table([column, pa.array(text_ids(column)), ones, in_base, ones], schema=VOCABULARY_SCHEMA)


def learn_relations(folder: Path, output: Path) -> None:
    """Ours: writes output/{ISA,PART_OF}."""
    run_pipeline(beam_options([]), partial(_build, folder=str(folder), output=output))


def _build(pipeline: beam.Pipeline, *, folder: str, output: Path) -> None:
    clicks, links = (partition_count(table_bytes(folder, table.name) * COMPRESSION) for table in (CLICKS, LINKS))
    bits = filter_bits(CLICKS_ROWS // CLICKS_PER_PAGE)
    words_of = partial(lemmas_of, fallback="en")
    read = (
        pipeline
        | ReadParquet("read users", table_files(folder, CLICKS.name), ("user_id", "user_group", "url"))
        | MapTables("list users", partial(_users_and_urls, bits=bits), tags=(USERS, URLS))
    )
    clicked = {"positions": read[URLS]} | FilterIds("filter clicked")
    followed = (
        pipeline
        | ReadParquet("read links", table_files(folder, LINKS.name), LINK_COLUMNS)
        | MapTables("follow links", _followed)
        | MapTables(
            "choose clicked links",
            clicked_links,
            sides={"segments": clicked},
            prepare=partial(IdFilter.from_segments, bits=bits),
        )
    )
    words = pipeline | ReadParquet("read vocabulary", [f"{folder}/vocabulary.parquet"], VOCABULARY_SCHEMA.names)
    learned = words | LearnRelations(
        table_files(folder, CLICKS.name),
        links=followed,
        users=read[USERS],
        partitions=clicks,
        link_partitions=max(clicks, links),
        words_of=words_of,
        own_words=pipeline | "no keywords" >> beam.Create([OWN_WORD_SCHEMA.empty_table()]).with_output_types(pa.Table),
        settings=RelationSettings(max_words=MAX_WORDS),
    )
    for name, pairs in ((ISA, learned.isa), (PART_OF, learned.part_of)):
        {"pairs": pairs} | WritePartitions(f"write {name}", str(output / name), _merged, partitions=1, key="source")


def _followed(table: pa.Table) -> pa.Table:
    return followed_links(read_links(table))


def _users_and_urls(table: pa.Table, *, bits: int) -> Iterator[tuple[str, pa.Table]]:
    """What `rank` has from its first pass over the log, where it counts clicks."""
    groups = column_array(table["user_group"])
    group = np.where(pc.is_null(groups).to_numpy(zero_copy_only=False), NO_GROUP, text_ids(pc.fill_null(groups, "")))
    users = pa.table([text_ids(table["user_id"]), group], schema=USER_GROUP_SCHEMA)
    yield USERS, distinct_rows(users)
    yield URLS, filter_positions(text_ids(table["url"]), bits)


def _merged(pairs: pa.Table) -> pa.Table:
    return merge_pairs([pairs])


def learn_with_duckdb(folder: Path, output: Path) -> Callable[[], None]:
    """DuckDB's supports as tables in memory; gives a function that writes them to output/NAME.parquet."""
    connection = importlib.import_module("duckdb").connect(config={"threads": 1})
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"CREATE VIEW log AS FROM read_parquet('{folder / CLICKS.name}/*.parquet')")
    connection.execute(f"CREATE VIEW links AS FROM read_parquet('{folder / LINKS.name}/*.parquet')")
    connection.execute(
        "CREATE TABLE vocabulary AS SELECT word, file_row_number AS number, base_support > 0 AS in_base "
        f"FROM read_parquet('{folder}/vocabulary.parquet', file_row_number = true)"
    )
    for name, query in QUERIES.items():
        connection.execute(f"CREATE TABLE {name} AS {query.format(most=MAX_WORDS)}")

    def keep() -> None:
        output.mkdir(exist_ok=True)
        for name in (ISA, PART_OF):
            connection.execute(f"COPY {name} TO '{output / name}.parquet' (FORMAT parquet)")

    return keep


def check_equal(ours: Path, peer: Path) -> dict[str, int]:
    """Holds our supports against DuckDB's; gives the number of relations of each kind.

    Raises:
        RuntimeError: they differ.
    """
    counts = {}
    for name in (ISA, PART_OF):
        found, expected = _sorted(pq.read_table(ours / name)), _sorted(pq.read_table(peer / f"{name}.parquet"))
        if not np.array_equal(found, expected):
            raise RuntimeError(f"{name}: found {found.shape[1]:,} relations, and DuckDB {expected.shape[1]:,} others")
        counts[name] = found.shape[1]
    return counts


def _sorted(pairs: pa.Table) -> Int64s:
    columns = np.stack([int64s(pairs[name]) for name in ("source", "target", "support")])
    return columns[:, np.lexsort(columns[::-1])]


def run(*, quick: bool = False) -> list[Result]:
    """Result of the benchmark.

    Raises:
        RuntimeError: ours and DuckDB differ.
    """
    rows, repeats = (QUICK_CLICKS_ROWS, 1) if quick else (CLICKS_ROWS, REPEATS)
    has_duckdb = importlib.util.find_spec("duckdb") is not None
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        write_input(base, rows)
        links = sum(pq.read_metadata(path).num_rows for path in table_files(folder, LINKS.name))
        found, other = base / "found", base / "other"
        sides: list[Callable[[], object]] = [partial(learn_relations, base, found)]
        if has_duckdb:
            sides.append(partial(learn_with_duckdb, base, other))
        ours, *peers = interleaved(sides, repeats)
        label = f"{rows:,} clicks, {links:,} links"
        if not peers:
            note = f"{label}; ours {ours}; duckdb is not installed"
            return [without_peer("relations", PEER, AIM, note, ours.wall_s)]
        counts = check_equal(found, other)
    note = f"{label}; equal: " + ", ".join(f"{count:,} {name}" for name, count in counts.items())
    return [ours.against(peers[0], "relations", PEER, AIM, note, counts)]
