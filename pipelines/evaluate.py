"""Replays crawls over a labelled snapshot, each ranker from the same seeds, and compares what they harvest.

The output folder holds curve/ (measures after each page of each crawl), summary/ (means over topics with bootstrap
intervals), sweep/ (what each threshold selects), rejects/, plots/ and manifest.json, which is written last. The
snapshot is held in memory. See docs/evaluation.md for what is measured and how.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from semrank.pipelines import evaluation_plots, folders
from semrank.pipelines.runtime import versions
from semrank.schemas.errors import InputError
from semrank.schemas.tables import CLICKS, CURVE, LINKS, PAGES, REJECTS, SUMMARY, SWEEP, TOPICS, conform
from semrank.transforms.columnar import files
from semrank.transforms.columnar.arrays import Int64s, column_array, concatenate, int64s, positions
from semrank.transforms.columnar.ids import check_collisions, digest_table, text_digests, text_ids
from semrank.transforms.columnar.parquet import part_name, write_parquet
from semrank.transforms.ranking import measures, registry
from semrank.transforms.ranking.holdout import ClickTargets
from semrank.transforms.ranking.replay import Crawl, Crawler, FactsCrawler, drawn_seeds, replay
from semrank.transforms.ranking.semrank_local import ClickLog, SemRankCrawler, SemRankWeb
from semrank.transforms.ranking.web import Web
from semrank.transforms.sources.json_lines import parse_object, quote, read_lines
from semrank.transforms.sources.parquet import open_parquet, read_batches
from semrank.transforms.sources.tables import PARQUET, table_format
from semrank.transforms.sources.urls import canonicalize

EXAMPLES = """\
example:
  semrank evaluate --snapshot snapshot --topics web/topics.parquet --rankers focused,cosine --budget 40 \\
      --output evaluation
"""

FRONTIER, CONTENT, BOTH = "frontier", "content", "both"

HARVEST_PAGES = 100
"""Pages after which the summary tells the harvest rate, or the budget where that is smaller."""

THRESHOLDS = np.round(np.linspace(0, 1, 21), 2)
"""Gammas of the sweep; P13 tries every other one."""

PARTS = ("curve", "summary", "sweep", "rejects", "plots")

MEASURES = ("harvest", "recall", "f_measure", "harvest_area", "seconds")

STAGE = "topics"
_NOT_IN_SNAPSHOT, _TOO_FEW_PAGES, _NO_MARKED_SEEDS = "not-in-snapshot", "too-few-pages", "no-marked-seeds"

log = logging.getLogger("semrank")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's options."""
    known = ", ".join(registry.RANKERS)
    parser.add_argument("--snapshot", required=True, metavar="FOLDER", help="snapshot that `semrank ingest` wrote")
    parser.add_argument("--topics", required=True, metavar="FILE", help="table of topics, Parquet or JSON Lines")
    parser.add_argument(
        "--rankers", required=True, metavar="A,B", help=f"whom to compare, the others with the first: {known}"
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="folder of the evaluation, new or empty")
    parser.add_argument("--overwrite", action="store_true", help="replace a finished evaluation that is in the folder")
    parser.add_argument(
        "--mode",
        choices=[FRONTIER, CONTENT, BOTH],
        default=BOTH,
        help="frontier: candidates are not fetched; content: their text is known (default both)",
    )
    for option, default, text in (
        ("--budget", 200, "pages of a crawl, without the seeds"),
        ("--batch", 20, "pages between two rankings"),
        ("--seeds-per-topic", 4, "seeds of a crawl"),
        ("--seed-sets", 3, "crawls a topic, each with seeds of its own"),
        ("--random-seed", 0, "number that the seeds are drawn by"),
    ):
        parser.add_argument(option, type=int, default=default, metavar="N", help=f"{text} (default {default})")
    parser.add_argument(
        "--marked-seeds",
        action="store_true",
        help="begin at the pages that the topics table marks as seeds, in one crawl a topic, instead of drawn ones",
    )
    parser.add_argument(
        "--holdout-clicks",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="leave out, for each topic, the clicks of sessions that look for a page of it (default)",
    )


@dataclass(frozen=True)
class EvaluationConfig:
    """How rankers are compared; every field is an option of the same name.

    Raises:
        InputError: a value is outside its range; the message names the option.
    """

    rankers: tuple[str, ...]
    mode: str = BOTH
    budget: int = 200
    batch: int = 20
    seeds_per_topic: int = 4
    seed_sets: int = 3
    random_seed: int = 0
    marked_seeds: bool = False
    holdout_clicks: bool = True

    def __post_init__(self) -> None:
        if not self.rankers or "" in self.rankers:
            raise InputError("--rankers: found an empty name, expected names separated by commas")
        for name in self.rankers:
            if name not in registry.RANKERS:
                raise InputError(f"--rankers: found '{name}', expected some of {', '.join(registry.RANKERS)}")
        if len(set(self.rankers)) < len(self.rankers):
            raise InputError(f"--rankers: found {','.join(self.rankers)}, expected each ranker once")
        for name in ("budget", "batch", "seeds_per_topic", "seed_sets"):
            if getattr(self, name) < 1:
                option = name.replace("_", "-")
                raise InputError(f"--{option}: found {getattr(self, name)}, expected a whole number of at least 1")
        if self.random_seed < 0:
            raise InputError(f"--random-seed: found {self.random_seed}, expected a whole number of at least 0")

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes to replay."""
        return (FRONTIER, CONTENT) if self.mode == BOTH else (self.mode,)


def run(arguments: argparse.Namespace, beam_arguments: list[str]) -> int:
    """Runs the command; gives the exit status."""
    if beam_arguments:
        raise InputError(f"{beam_arguments[0]}: unknown option")
    config = EvaluationConfig(
        rankers=tuple(arguments.rankers.split(",")),
        mode=arguments.mode,
        budget=arguments.budget,
        batch=arguments.batch,
        seeds_per_topic=arguments.seeds_per_topic,
        seed_sets=arguments.seed_sets,
        random_seed=arguments.random_seed,
        marked_seeds=arguments.marked_seeds,
        holdout_clicks=arguments.holdout_clicks,
    )
    print(evaluate(arguments.snapshot, arguments.topics, arguments.output, config, overwrite=arguments.overwrite))
    return 0


def evaluate(snapshot: str, topics: str, output: str, config: EvaluationConfig, *, overwrite: bool = False) -> str:
    """Compares rankers and writes the evaluation's folder.

    Returns:
        A summary for people.

    Raises:
        InputError: the snapshot, the topics or the output folder is unusable.
    """
    begin = time.time()
    manifest = files.read_manifest(snapshot, "snapshot")
    tables = {
        table.name: concatenate(folders.read_parts(snapshot, table), table.schema) for table in (PAGES, LINKS, CLICKS)
    }
    labels = read_topics(topics)
    ground = Ground.of(tables["pages"], tables["links"], tables["clicks"])
    planned = plan_topics(labels, ground, config)
    if not planned.topics:
        reasons = ", ".join(f"{count} {reason}" for reason, count in _counts(planned.rejects).items())
        count = len(labels.table["topic"].unique())
        raise InputError(
            f"--topics {topics}: none of its {count} topics can be replayed on {snapshot} "
            f"({reasons or 'it has no rows'}), expected one with more pages there than it has seeds"
        )
    folders.claim_folder("--output", output, parts=PARTS, overwrite=overwrite)
    log.info("%d pages, %d topics, %d rankers", len(ground), len(planned.topics), len(config.rankers))
    makers = partial(named_makers, rankers=config.rankers)
    results = Results.of(replay_topics(ground, planned.topics, config, makers), config.rankers, config)
    written = {
        "curve": results.curve,
        "summary": results.summary,
        "sweep": results.sweep,
        "rejects": pa.concat_tables([labels.rejects, planned.rejects]),
    }
    for name, table in written.items():
        write_parquet(files.join(output, name, part_name(0)), table)
    plots = evaluation_plots.write_plots(files.join(output, "plots"), results.curve, results.sweep, config.budget)
    files.write_manifest(
        output,
        {
            "kind": "evaluation",
            "parameters": asdict(config),
            "inputs": {"snapshot": folders.fingerprint(manifest, snapshot), "topics": {"path": topics}},
            "topics": [
                {
                    "topic": topic.name,
                    "relevant": int(topic.pages.size),
                    "seeds": [_urls(ground, s) for s in topic.seeds],
                }
                for topic in planned.topics
            ],
            "rows": {name: table.num_rows for name, table in written.items()},
            "rejected": _counts(written["rejects"]),
            "plots": plots,
            "seconds": round(time.time() - begin, 3),
            "versions": versions(),
        },
    )
    lines = [
        summary_text(results.summary, config.rankers, config),
        f"{output}: {len(planned.topics)} topics in {time.time() - begin:.0f} s",
    ]
    if not plots:
        lines.append(evaluation_plots.MISSING)
    return "\n".join(lines)


def _urls(ground: Ground, numbers: Int64s) -> list[str]:
    urls: list[str] = ground.urls.take(pa.array(numbers)).to_pylist()
    return urls


def _counts(rejects: pa.Table) -> dict[str, int]:
    return {item["values"]: item["counts"] for item in pc.value_counts(rejects["reason"]).to_pylist()}


# --- the topics ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Labels:
    """The topics table.

    Attributes:
        table: its rows with canonical URLs (`TOPICS`).
        rejects: rows that can't be used (`REJECTS`).
    """

    table: pa.Table
    rejects: pa.Table


def read_topics(path: str) -> Labels:
    """The topics of a Parquet or JSON Lines file.

    Raises:
        InputError: the file can't be read or is no table of topics.
    """
    source = f"--topics {path}"
    with files.open_binary(path) as stream:
        table, rejects = _raw_topics(stream, source)
    canonical = canonicalize(column_array(table["url"]))
    bad = pc.or_(pc.is_null(canonical.urls), pc.is_null(column_array(table["topic"])))
    reasons = pc.fill_null(canonical.reasons.cast(pa.string()).filter(bad), "topic-missing")
    rejects += _rejected(reasons, table.filter(bad))
    used = table.set_column(table.schema.get_field_index("url"), "url", canonical.urls).filter(pc.invert(bad))
    return Labels(conform(used, TOPICS), _reject_table(rejects))


def _raw_topics(stream: Any, source: str) -> tuple[pa.Table, list[tuple[str, str, str]]]:
    """The table with nulls where a row lacks something, and rejects of lines that are no rows."""
    head = stream.read(512)
    stream.seek(0)
    if table_format(head, source) == PARQUET:
        return _parquet_topics(stream, source)
    rows: list[dict[str, Any]] = []
    rejects: list[tuple[str, str, str]] = []
    for line in read_lines(stream):
        row = line.problem or parse_object(line.data)
        if isinstance(row, dict):
            values = {name: row.get(name) for name in TOPICS.schema.names}
            fits = all(
                value is None or isinstance(value, bool if name == "is_seed" else str) for name, value in values.items()
            )
            row = values if fits else "value-invalid"
        if isinstance(row, dict):
            rows.append(row)
        else:
            rejects.append((STAGE, row, quote(line.data)))
    schema = pa.schema([field.with_nullable(True) for field in TOPICS.schema])
    return pa.Table.from_pylist(rows, schema=schema), rejects


def _parquet_topics(stream: Any, source: str) -> tuple[pa.Table, list[tuple[str, str, str]]]:
    def conformed(table: pa.Table) -> pa.Table:
        try:
            return conform(table, TOPICS, check_nulls=False)
        except InputError as cause:
            raise InputError(f"{source}: {cause}") from cause

    # Without rows there still have to be the columns.
    parts = [conformed(open_parquet(stream, source).schema_arrow.empty_table())]
    rejects: list[tuple[str, str, str]] = []
    for rows in read_batches(stream, source, columns=TOPICS.schema.names):
        table, bad = conformed(rows.table), pc.is_valid(rows.reasons)
        rejects += _rejected(rows.reasons.filter(bad), table.filter(bad))
        parts.append(table.filter(pc.invert(bad)))
    return pa.concat_tables(parts), rejects


def _rejected(reasons: pa.Array, rows: pa.Table) -> list[tuple[str, str, str]]:
    """Rejects of rows, which have a reason each."""
    records = pc.binary_join_element_wise(
        *(pc.fill_null(column_array(rows[name]), "") for name in ("topic", "url")), "\t"
    )
    return [(STAGE, reason, record) for reason, record in zip(reasons.to_pylist(), records.to_pylist(), strict=True)]


def _reject_table(rows: Sequence[tuple[str, str, str]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.table([pa.array(column, pa.string()) for column in columns], schema=REJECTS.schema)


@dataclass(frozen=True, eq=False)
class Topic:
    """A topic to crawl for.

    Attributes:
        name: its name.
        pages: numbers of its pages, ascending, int64.
        seeds: numbers of the seeds of each set, ascending.
    """

    name: str
    pages: Int64s
    seeds: tuple[Int64s, ...]


@dataclass(frozen=True, eq=False)
class Plan:
    """The topics to crawl for in the order of their names, and what was left out (`REJECTS`)."""

    topics: list[Topic]
    rejects: pa.Table


def plan_topics(labels: Labels, ground: Ground, config: EvaluationConfig) -> Plan:
    """Which topics are crawled for, from which seeds.

    A page that the snapshot has no copy of can't be replayed and is rejected; so is a topic that would have no page
    left to find besides its seeds, or whose seeds are wanted but not marked.
    """
    number = positions(ground.ids[ground.order], text_ids(labels.table["url"]))
    missing = labels.table.filter(pa.array(number < 0))
    rejects = [(STAGE, _NOT_IN_SNAPSHOT, f"{row['topic']}\t{row['url']}") for row in missing.to_pylist()]
    number = np.where(number >= 0, ground.order[number], -1) if len(ground) else number
    marked = np.asarray(pc.fill_null(column_array(labels.table["is_seed"]), False).to_numpy(zero_copy_only=False))
    names = labels.table["topic"].combine_chunks().dictionary_encode()
    codes = int64s(column_array(names).indices)
    topics = []
    for code, name in sorted(enumerate(column_array(names).dictionary.to_pylist()), key=lambda item: item[1]):
        rows = (codes == code) & (number >= 0)
        pages = np.unique(number[rows])
        if config.marked_seeds:
            seeds = [np.unique(number[rows & marked.astype(np.bool_)])]
        else:
            urls = ground.urls.take(pa.array(pages))
            seeds = [
                pages[
                    drawn_seeds(
                        name,
                        urls,
                        count=config.seeds_per_topic,
                        seed_set=seed_set,
                        random_seed=config.random_seed,
                    )
                ]
                for seed_set in range(config.seed_sets)
            ]
        if config.marked_seeds and not len(seeds[0]):
            rejects.append((STAGE, _NO_MARKED_SEEDS, name))
        elif len(pages) <= max(len(found) for found in seeds):
            rejects.append((STAGE, _TOO_FEW_PAGES, name))
        else:
            topics.append(Topic(name, pages, tuple(seeds)))
    return Plan(topics, _reject_table(rejects))


# --- the crawls ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Ground:
    """What crawls are replayed on: the pages of a snapshot, numbered in the order of their URLs.

    Attributes:
        urls: the pages' URLs, ascending, string[n].
        ids: id of each, int64[n].
        order: numbers in the order of the ids, int64[n].
        links: which pages each page links to, CSR int64[n, n].
        pages_table: the snapshot's pages (`PAGES`).
        links_table: its links (`LINKS`).
        clicks_table: its clicks (`CLICKS`).
    """

    urls: pa.Array
    ids: Int64s
    order: Int64s
    links: sparse.csr_array
    pages_table: pa.Table
    links_table: pa.Table
    clicks_table: pa.Table

    @classmethod
    def of(cls, pages: pa.Table, links: pa.Table, clicks: pa.Table) -> Ground:
        """From conformed tables."""
        urls = column_array(pc.unique(pages["url"]).sort())
        digests = text_digests(urls)
        check_collisions([digest_table(digests)])
        ids = np.ascontiguousarray(digests[:, 0])
        order = np.argsort(ids)
        source, target = (positions(ids[order], text_ids(links[name])) for name in ("source_url", "target_url"))
        inside = (source >= 0) & (target >= 0) & (source != target)
        ends = (order[source[inside]], order[target[inside]]) if len(ids) else (source[:0], target[:0])
        found = sparse.csr_array((np.ones(len(ends[0]), dtype=np.int64), ends), shape=(len(ids), len(ids)))
        found.sum_duplicates()
        return cls(urls, ids, order, found, pages, links, clicks)

    def __len__(self) -> int:
        return len(self.urls)

    @cached_property
    def targets(self) -> ClickTargets:
        """What each session of the click log was looking for."""
        return ClickTargets.of(self.clicks_table, self.pages_table)

    @cached_property
    def web(self) -> Web:
        """The snapshot as facts are made from it, with all clicks."""
        return Web.of_tables(self.pages_table, self.links_table, self.clicks_table)

    @cached_property
    def semrank_web(self) -> SemRankWeb:
        """The snapshot as SemRank's rounds are made from it."""
        return SemRankWeb.of(self.pages_table, self.links_table)


@dataclass(frozen=True, eq=False)
class Replayed:
    """A crawl and what it was."""

    ranker: str
    mode: str
    topic: Topic
    seed_set: int
    crawl: Crawl


Makers: TypeAlias = dict[str, Callable[[bool], Crawler]]
"""What makes a crawler for each ranker, given whether the candidates' content is known."""


def replay_topics(
    ground: Ground, topics: Sequence[Topic], config: EvaluationConfig, makers: Callable[[Ground, pa.Table], Makers]
) -> Iterator[Replayed]:
    """Replays all crawls, topic by topic.

    Args:
        ground: what they are replayed on.
        topics: what they look for.
        config: modes, budget, batch and whether clicks are held out.
        makers: gives the rankers for the clicks that are left, a table of `CLICKS`.
    """
    begin = time.time()
    for number, topic in enumerate(topics, start=1):
        clicks = ground.clicks_table
        if config.holdout_clicks:
            clicks = clicks.filter(pa.array(~ground.targets.held_out(np.sort(ground.ids[topic.pages]))))
        for ranker, make in makers(ground, clicks).items():
            for mode in config.modes:
                for seed_set, seeds in enumerate(topic.seeds):
                    crawler = make(mode == CONTENT)
                    crawl = replay(crawler, ground.links, seeds, budget=config.budget, batch=config.batch)
                    yield Replayed(ranker, mode, topic, seed_set, crawl)
        log.info("topic %d of %d: %s, %.1f s so far", number, len(topics), topic.name, time.time() - begin)


def named_makers(ground: Ground, clicks: pa.Table, rankers: Sequence[str]) -> Makers:
    """The rankers of the product by name."""
    made: Makers = {}
    others = [name for name in rankers if name != registry.SEMRANK]
    by_facts = facts_makers(ground, clicks, {name: registry.ranker(name) for name in others}) if others else {}
    for name in rankers:
        made[name] = by_facts[name] if name in by_facts else _semrank_maker(ground, ClickLog.of(clicks))
    return made


def facts_makers(ground: Ground, clicks: pa.Table, rankers: Mapping[str, registry.Rank]) -> Makers:
    """Rankers that score by facts."""
    web = ground.web.with_clicks(clicks)
    return {name: _facts_maker(web, rank, ground.ids) for name, rank in rankers.items()}


def _semrank_maker(ground: Ground, clicks: ClickLog) -> Callable[[bool], Crawler]:
    def make(content_known: bool) -> Crawler:
        return SemRankCrawler(ground.semrank_web, clicks, ids=ground.ids, urls=ground.urls, content_known=content_known)

    return make


def _facts_maker(web: Web, rank: registry.Rank, ids: Int64s) -> Callable[[bool], Crawler]:
    def make(content_known: bool) -> Crawler:
        return FactsCrawler(web, rank, ids=ids, content_known=content_known)

    return make


# --- the results -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Results:
    """The tables of an evaluation (`CURVE`, `SUMMARY`, `SWEEP`)."""

    curve: pa.Table
    summary: pa.Table
    sweep: pa.Table

    @classmethod
    def of(cls, crawls: Iterable[Replayed], rankers: Sequence[str], config: EvaluationConfig) -> Results:
        """Measures all crawls; the others are compared with the first ranker."""
        curves: dict[tuple[str, str], list[pa.Table]] = {}
        sweeps: dict[tuple[str, str], list[pa.Table]] = {}
        values: dict[tuple[str, str], dict[str, list[dict[str, float]]]] = {}
        bounded: dict[tuple[str, str], bool] = {}
        for done in crawls:
            key = (done.ranker, done.mode)
            relevant = _relevance(done)
            curves.setdefault(key, []).append(_curve_rows(done, relevant))
            sweeps.setdefault(key, []).append(_sweep_rows(done, relevant))
            values.setdefault(key, {}).setdefault(done.topic.name, []).append(_measured(done, relevant, config.budget))
            inside = done.crawl.lowest >= 0 and done.crawl.highest <= 1
            bounded[key] = bounded.get(key, True) and inside
        keys = [(ranker, mode) for ranker in rankers for mode in config.modes]
        return cls(
            concatenate((table for key in keys for table in curves[key]), CURVE.schema),
            _summary_rows(keys, values, config),
            concatenate((table for key in keys if bounded[key] for table in sweeps[key]), SWEEP.schema),
        )


def _relevance(done: Replayed) -> npt.NDArray[np.bool_]:
    """Whether each page counts: it is the topic's and no seed."""
    relevant = np.zeros(len(done.crawl.scores), dtype=np.bool_)
    relevant[done.topic.pages] = True
    relevant[done.topic.seeds[done.seed_set]] = False
    return relevant


def _curve_rows(done: Replayed, relevant: npt.NDArray[np.bool_]) -> pa.Table:
    curve = measures.crawl_curve(relevant[done.crawl.order], int(relevant.sum()))
    numbers = [curve.pages, curve.relevant, curve.harvest, curve.precision, curve.recall, curve.f_measure]
    return _rows_of(done, [*numbers, done.crawl.seconds], CURVE.schema)


def _sweep_rows(done: Replayed, relevant: npt.NDArray[np.bool_]) -> pa.Table:
    ranked = np.isfinite(done.crawl.scores)
    found = measures.threshold_sweep(done.crawl.scores[ranked], relevant[ranked], int(relevant.sum()), THRESHOLDS)
    precision = pa.array(found.precision, from_pandas=True)
    numbers = [THRESHOLDS, found.selected, found.relevant, precision, found.recall, found.f_measure]
    return _rows_of(done, numbers, SWEEP.schema)


def _rows_of(done: Replayed, numbers: Sequence[Any], schema: pa.Schema) -> pa.Table:
    count = len(numbers[0])
    names = [pa.array([value] * count, pa.string()) for value in (done.ranker, done.mode, done.topic.name)]
    seed_set = pa.array(np.full(count, done.seed_set, dtype=np.int32))
    return pa.table([*names, seed_set, *(pa.array(values) for values in numbers)], schema=schema)


def _measured(done: Replayed, relevant: npt.NDArray[np.bool_], budget: int) -> dict[str, float]:
    """The measures of one crawl; one that ran out of candidates counts as if irrelevant pages had followed."""
    hits = measures.padded_hits(relevant[done.crawl.order], budget)
    curve = measures.crawl_curve(hits, int(relevant.sum()))
    return {
        "harvest": float(curve.harvest[_harvest_pages(budget) - 1]),
        "recall": float(curve.recall[-1]),
        "f_measure": float(curve.f_measure[-1]),
        "harvest_area": measures.harvest_area(hits, budget),
        "seconds": float(done.crawl.seconds[-1]) if len(done.crawl.seconds) else 0.0,
    }


def _harvest_pages(budget: int) -> int:
    return min(HARVEST_PAGES, budget)


def _summary_rows(
    keys: Sequence[tuple[str, str]],
    values: dict[tuple[str, str], dict[str, list[dict[str, float]]]],
    config: EvaluationConfig,
) -> pa.Table:
    topics = sorted(values[keys[0]])
    draws = measures.resamples(len(topics), config.random_seed)
    rows: list[tuple[Any, ...]] = []
    for ranker, mode in keys:
        for measure in MEASURES:
            own, first = (
                np.array([np.mean([crawl[measure] for crawl in values[name, mode][topic]]) for topic in topics])
                for name in (ranker, keys[0][0])
            )
            other = (None, None, None) if ranker == keys[0][0] else measures.interval(own - first, draws)
            pages = _harvest_pages(config.budget) if measure == "harvest" else config.budget
            rows.append((ranker, mode, measure, pages, len(topics), *measures.interval(own, draws), *other))
    columns = list(zip(*rows, strict=True))
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SUMMARY.schema, strict=True)], schema=SUMMARY.schema)


def summary_text(summary: pa.Table, rankers: Sequence[str], config: EvaluationConfig) -> str:
    """The means as a table for people, with their intervals."""
    found = {(row["ranker"], row["mode"], row["measure"]): row for row in summary.to_pylist()}
    heads = [
        f"harvest@{_harvest_pages(config.budget)}",
        f"recall@{config.budget}",
        f"F@{config.budget}",
        "area",
        "seconds",
    ]
    lines: list[str] = []
    for mode in config.modes:
        cells = [["mode " + mode, *heads]]
        for ranker in rankers:
            rows = [found[ranker, mode, measure] for measure in MEASURES]
            cells.append([ranker, *map(_with_interval, rows[:-1]), f"{rows[-1]['mean']:.3f}"])
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines += [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
        ]
        lines.append("")
    return "\n".join(lines).rstrip()


def _with_interval(row: dict[str, Any]) -> str:
    return f"{row['mean']:.3f}" + ("" if row["low"] is None else f" [{row['low']:.3f}, {row['high']:.3f}]")


if __name__ == "__main__":
    from semrank.pipelines.cli import command_main, leave

    leave(command_main("evaluate"))
