"""Ranks the URLs that a queue of pages links to, and writes them as a frontier: one round.

The round's folder holds frontier/, keywords/, relations/, base_concepts/, rejects/ and manifest.json. The manifest is
written last: a folder without it is an unfinished round.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.options.pipeline_options import GoogleCloudOptions

from semrank.pipelines import folders
from semrank.pipelines.answers import counted
from semrank.pipelines.cluster import path_for_workers
from semrank.pipelines.collisions import shared_url_ids, surplus_urls
from semrank.pipelines.config import QUEUE_GROUP, RoundConfig, add_round_arguments, round_config, unused_options
from semrank.pipelines.manifest import Manifest, parameter_rules
from semrank.pipelines.memory import WorkerOptions, worker_memory
from semrank.pipelines.options import option, read_options, required
from semrank.pipelines.plan import PlanOptions, shown_plan
from semrank.pipelines.queue import (
    NOT_IN_SNAPSHOT,
    STAGE,
    Queue,
    queue_from_round,
    queue_from_seeds,
    snapshot_knows_any,
)
from semrank.pipelines.round_summary import round_scale, round_summary
from semrank.pipelines.runtime import RunMetrics, beam_options, run_pipeline, stage_rows, versions
from semrank.pipelines.scope import scope_rules
from semrank.pipelines.semrank_settings import object_settings, query_words, relation_settings, similarity_settings
from semrank.pipelines.topic import scattered_warning, topic_of, topic_rows
from semrank.schemas.errors import InputError
from semrank.schemas.tables import (
    CLASSES,
    CONCEPTS,
    FRONTIER,
    HARVEST,
    KEYWORDS,
    LINKS,
    REJECTS,
    RELATIONS,
    SCALE,
    TOPIC,
    conform,
)
from semrank.transforms.columnar import files
from semrank.transforms.columnar.arrays import MAIN, Int64s, column_array, partition_count
from semrank.transforms.columnar.beam import (
    NAMESPACE,
    Collection,
    FilterIds,
    GatherTables,
    MapTables,
    MergePartitions,
    ReadParquet,
    WriteOne,
    leave_out,
)
from semrank.transforms.columnar.idfilter import IdFilter, filter_bits
from semrank.transforms.columnar.ids import IdCollisionError, digest_table, text_digests
from semrank.transforms.columnar.parquet import part_name, write_parquet
from semrank.transforms.columnar.worker_memory import check_held
from semrank.transforms.context.beam import (
    DIGESTS,
    HARVEST_SCHEMA,
    HARVESTED,
    HARVESTED_SCHEMA,
    DescribeUrls,
    Harvest,
    Partitions,
    Request,
    UrlFacts,
)
from semrank.transforms.context.links import clicked_links
from semrank.transforms.context.memory import HARVEST as HELD_HARVEST
from semrank.transforms.context.nouns import check_tagger
from semrank.transforms.context.objects import VOCABULARY_SCHEMA, object_words, with_clicks
from semrank.transforms.context.words import lemmas_of
from semrank.transforms.frontier.beam import HoldToDepth, WeighChanges, WriteFrontier
from semrank.transforms.frontier.budgets import Limits
from semrank.transforms.frontier.rules import EVERYWHERE, Rules
from semrank.transforms.ranking import registry
from semrank.transforms.ranking.beam import (
    HoldRelations,
    RankBySemRank,
    WriteConcepts,
    WriteRelations,
    base_concept_rows,
    keyword_rows,
)
from semrank.transforms.ranking.graph_beam import RateHosts
from semrank.transforms.ranking.memory import HIERARCHY, NAMED_LATTICE, TOPIC_LATTICE
from semrank.transforms.ranking.ontology_beam import named_ontology
from semrank.transforms.ranking.scores import unscored_rows, with_scores
from semrank.transforms.ranking.semrank import NAMED_SCHEMA, concept_rows
from semrank.transforms.ranking.topic_beam import CONCEPTS as TOPIC_CONCEPTS
from semrank.transforms.ranking.topic_beam import MakeTopicLattice, RankByTopicLattice, RelateWords, WeighWords
from semrank.transforms.weblog.beam import ClickFacts, LearnRelations, ReadClickFacts
from semrank.transforms.weblog.clicks import WordsOf
from semrank.transforms.weblog.memory import VOCABULARY

EXAMPLES = """\
examples:
  semrank rank --snapshot snapshot --seeds seeds.txt --output round-0000
  semrank rank --snapshot snapshot --previous round-0000 --output round-0001 --max-urls 1000 --max-per-host 50
"""

PENDING = "pending.json"
"""File of a round whose job was submitted, with what `finish` needs."""

_TABLES = {
    **{table.name: table.schema for table in (FRONTIER, HARVEST, KEYWORDS, RELATIONS, REJECTS, SCALE, TOPIC)},
    "base_concepts": CONCEPTS.schema,
}
_FURTHER = {"classes": CLASSES.schema, "current_concepts": CONCEPTS.schema}
"""Tables of every round, and of some."""

PARTS = (PENDING, *_TABLES, *_FURTHER)
"""Files and folders of a round."""

HARVEST_ROWS = 1 << 20
"""URLs in a file of the harvest."""

SHOWN_URLS = 10
"""Number of the best URLs that a summary shows."""

_COMPRESSION = 4
"""Estimated ratio of the size of a table in memory to that of its zstd-compressed Parquet files."""

HARVESTED_BYTES = 8
"""Bytes of a harvested URL in the broadcast harvest, without its flags: an id."""

_ROW_BYTES = 100
"""Estimated minimum bytes of a row in memory: addresses of one site are compressed to a tenth of it in files."""

log = logging.getLogger(NAMESPACE)


@dataclass(frozen=True)
class SummaryOptions:
    """Options of a round's summary."""

    top: int = option(SHOWN_URLS, "show the N best selected URLs in the summary", metavar="N", low=0)


@dataclass(frozen=True, kw_only=True)
class RankOptions(SummaryOptions):
    """Input and output of a round; `RoundConfig` has the other options."""

    snapshot: str = required("snapshot that `semrank ingest` wrote", QUEUE_GROUP, metavar="SNAPSHOT")
    seeds: str | None = option(
        None,
        "the queue: a file with one URL a line, alone or as `semrank export` writes it; # starts a comment",
        QUEUE_GROUP,
        metavar="FILE",
        exclusive="queue",
        needed=True,
    )
    previous: str | None = option(
        None,
        "the queue: what this finished round selected",
        QUEUE_GROUP,
        metavar="ROUND",
        exclusive="queue",
        needed=True,
    )
    output: str = required("folder of the round, new or empty", QUEUE_GROUP, metavar="ROUND")
    overwrite: bool = option(False, "replace a finished round in the folder", QUEUE_GROUP, plain=True)


OPTIONS = (RankOptions, add_round_arguments, WorkerOptions, PlanOptions)


def checked_config(arguments: argparse.Namespace) -> RoundConfig:
    """The configuration from the options; warns about options without effect."""
    config = round_config(arguments)
    for line in unused_options(arguments, config):
        log.warning("%s", line)
    return config


def run(arguments: argparse.Namespace, beam_arguments: list[str]) -> int:
    """Runs the command; returns the exit status."""
    print(rank_urls(arguments, beam_arguments))
    return 0


def rank_urls(arguments: argparse.Namespace, beam_arguments: list[str], seeds: Queue | None = None) -> str:
    """Ranks the round that parsed options describe and returns a summary for people.

    Args:
        arguments: parsed options of the command.
        beam_arguments: options of Beam.
        seeds: the queue, if it comes from the caller and not from `--seeds` or `--previous`.
    """
    own, config = read_options(RankOptions, arguments), checked_config(arguments)
    options = beam_options(beam_arguments)
    memory = worker_memory(arguments, options)
    if seeds is not None:
        queue = seeds
    elif own.seeds:
        queue = queue_from_seeds(own.seeds, parameter_rules(own.snapshot))
    else:
        queue = queue_from_round(own.previous or "")
    snapshot, output = (path_for_workers(options, path) for path in (own.snapshot, own.output))
    if form := read_options(PlanOptions, arguments).plan:
        return round_plan(snapshot, queue, output, config, form)
    return run_round(snapshot, queue, output, config, options, overwrite=own.overwrite, memory=memory, top=own.top)


def round_plan(snapshot: str, queue: Queue, output: str, config: RoundConfig, form: str) -> str:
    """The stages of a round, as `shown_plan` writes them."""
    build = partial(_build, snapshot=_snapshot(snapshot), queue=queue, output=output, config=config)
    return shown_plan(build, form)


@dataclass(frozen=True)
class _Snapshot:
    path: str
    manifest: Manifest
    pages: list[str]
    links: list[str]
    clicks: list[str]
    history: list[str]
    partitions: Partitions

    @property
    def paths(self) -> list[str]:
        """The files with URLs."""
        return [*self.pages, *self.links, *self.clicks]


def _snapshot(path: str) -> _Snapshot:
    manifest = Manifest.of(path, "snapshot")
    tables = {name: folders.table_files(path, name) for name in ("pages", "links", "clicks")}
    for name, found in tables.items():
        if not found:
            raise InputError(f"--snapshot {path}: its {name} table has no files, expected {name}/*.parquet")
    rows = {name: _row_count(manifest, path, name) for name in tables}
    sizes = {name: max(folders.table_bytes(path, name) * _COMPRESSION, rows[name] * _ROW_BYTES) for name in tables}
    counts = {name: partition_count(size) for name, size in sizes.items()}
    # Few links of a web come from the queue.
    bits = filter_bits(sizes["links"] // _ROW_BYTES)
    return _Snapshot(
        path,
        manifest,
        **tables,
        history=folders.table_files(path, "history"),
        partitions=Partitions(counts["pages"], counts["links"], counts["clicks"], bits, rows["pages"]),
    )


def _row_count(manifest: Manifest, path: str, name: str) -> int:
    """Number of rows of a table; counted if the manifest of another program lacks it."""
    return manifest.whole("rows", name) if "rows" in manifest.entries else folders.row_count(path, name)


@dataclass(frozen=True)
class RoundJob:
    """A round that is ready to run: its folder is claimed and holds the harvest.

    Attributes:
        output: the round's folder.
        config: its configuration.
        inputs: its inputs, for the manifest.
        snapshot: its snapshot.
        queue: its queue.
        begin: when it was prepared, seconds since 1970.
        left_out: URLs of the snapshot and the queue that share an id with others, string[n].
        rules: the scope of the crawl.
    """

    output: str
    config: RoundConfig
    inputs: dict[str, Any]
    snapshot: _Snapshot
    queue: Queue
    begin: float
    left_out: pa.Array
    rules: Rules

    def build(self, pipeline: beam.Pipeline) -> Collection:
        """Builds the pipeline; returns one row per file of the frontier (`WRITTEN_SCHEMA`)."""
        work = folders.work_folder(self.output)
        written = _build(
            pipeline, snapshot=self.snapshot, queue=self.queue, output=work, config=self.config, rules=self.rules
        )
        leave_out(pipeline, self.left_out)
        return written

    def without_any_collision(self) -> RoundJob:
        """The same round without URLs that share an id, for a job that can't be repeated."""
        ids = shared_url_ids(self.snapshot.paths, column_array(self.queue.harvest["url"]))
        return self.without_collisions(ids) if len(ids) else self

    def without_collisions(self, ids: Int64s) -> RoundJob:
        """The same round for another run, without URLs that share one of the ids with others."""
        surplus = surplus_urls(self.snapshot.paths, column_array(self.queue.harvest["url"]), ids)
        if not len(surplus):
            raise RuntimeError(f"URLs share the ids {ids.tolist()}, but none of them was found")
        log.warning(
            "%d URLs are left out because other URLs have the same ids; the first is %s", len(surplus), surplus[0]
        )
        _delete_parts(self.output, kept=HARVEST.name)
        left_out = pa.concat_arrays([self.left_out, surplus])
        return replace(self, queue=self.queue.without(surplus), left_out=left_out)

    def hand_over(self) -> None:
        """Writes what `semrank finish` needs to write the manifest when the job is done."""
        pending = {"parameters": self.config.as_dict(), "inputs": self.inputs, "started": self.begin}
        files.write_json(files.join(self.output, PENDING), pending)


def run_round(
    snapshot_path: str,
    queue: Queue,
    output: str,
    config: RoundConfig,
    options: Any,
    *,
    overwrite: bool = False,
    memory: int | None = None,
    top: int = SHOWN_URLS,
) -> str:
    """Ranks one round and writes its folder.

    Args:
        snapshot_path: folder of the snapshot.
        queue: the round's queue.
        output: the round's folder.
        config: its configuration.
        options: Beam's options.
        overwrite: whether a finished round in the folder is replaced.
        memory: bytes that a worker process has, or None for all that its machine has.
        top: how many URLs the summary shows.

    Returns:
        A summary for people.

    Raises:
        InputError: the snapshot, the queue or the output folder is unusable, or a worker's memory is too small;
            nothing is left of the round then.
        RuntimeError: the run failed; the folder has no manifest then.
    """
    # A submitted job writes after the end of this command, which then can't swap the old result for the new one.
    kept = options.view_as(GoogleCloudOptions).template_location is None
    job = prepare_round(snapshot_path, queue, output, config, overwrite=overwrite, memory=memory, keep_old=kept)
    if not kept:
        job = job.without_any_collision()
    try:
        metrics = _run_checked(job, options, memory)
    except InputError:
        _delete_parts(output)
        raise
    if metrics is None:
        job.hand_over()
        return (
            f"{output}: the job was submitted; when it is done, `semrank finish --round {output}` checks what it "
            "wrote and writes the manifest"
        )
    return conclude(output, config, job.inputs, metrics, job.begin, top=top)


def _run_checked(job: RoundJob, options: Any, memory: int | None) -> RunMetrics | None:
    try:
        metrics = _run_without_collisions(job, options, memory)
    except (InputError, RuntimeError):
        # Files disappear when a snapshot is replaced.
        folders.check_unchanged(job.inputs["snapshot"])
        raise
    if metrics is not None:
        folders.check_unchanged(job.inputs["snapshot"])
    return metrics


def _run_without_collisions(job: RoundJob, options: Any, memory: int | None) -> RunMetrics | None:
    """Runs a round; if URLs turn out to share an id, runs it again without them."""
    while True:
        try:
            return run_pipeline(options, job.build, worker_memory=memory)
        except IdCollisionError as found:
            job = job.without_collisions(IdCollisionError.ids_of_message(str(found)))


def _delete_parts(output: str, kept: str = "") -> None:
    for name in PARTS:
        if name != kept:
            files.delete(files.join(folders.work_folder(output), name))


def prepare_round(
    snapshot_path: str,
    queue: Queue,
    output: str,
    config: RoundConfig,
    *,
    overwrite: bool = False,
    memory: int | None = None,
    keep_old: bool = False,
) -> RoundJob:
    """Checks the inputs of a round and claims its folder; arguments and errors as for `run_round`.

    With `keep_old`, a finished round in the folder is kept until the new one is finished in the same process.
    """
    begin = time.time()
    read = folders.fingerprint(snapshot_path, "snapshot")
    snapshot = _snapshot(snapshot_path)
    queue = _known_queue(snapshot, queue, config)
    if config.nouns_only:
        check_tagger(config.language)
    if config.ranker == "ontology":
        # Fail on an unreadable ontology before anything is written.
        named_ontology(config.ontology, config.topic)
    rules = scope_rules(config)
    _check_queue_fits(queue, snapshot, memory)
    inputs = [snapshot_path, queue.source, *config.files, *([config.ontology] if config.ontology else [])]
    folders.claim_folder("--output", output, parts=PARTS, overwrite=overwrite, inputs=inputs, keep_old=keep_old)
    work = folders.work_folder(output)
    _write_harvest(work, queue)
    log.info("ranking: queue %s (%s), snapshot %s", queue.source, counted(queue.urls.num_rows, "URL"), snapshot_path)
    sources = {
        "snapshot": read,
        "queue": {"path": queue.source, "urls": queue.urls.num_rows},
    }
    return RoundJob(output, config, sources, snapshot, queue, begin, pa.array([], pa.string()), rules)


def _known_queue(snapshot: _Snapshot, queue: Queue, config: RoundConfig) -> Queue:
    """The queue; for SemRank all URLs chosen so far, if no URL of the queue is in the snapshot yet.

    Raises:
        InputError: none of these URLs is in the snapshot.
    """
    if not snapshot_knows_any(queue.harvest, snapshot.pages, snapshot.links):
        first = queue.harvest["url"][0].as_py()
        whose = "its" if queue.urls.num_rows == queue.harvest.num_rows else "the crawl's chosen"
        raise InputError(
            f"{queue.option} {queue.source}: none of {whose} URLs is in the snapshot {snapshot.path} "
            f"({counted(queue.harvest.num_rows, 'URL')}, first: {first}), expected at least one"
        )
    if not _by_rounds(config) or snapshot_knows_any(queue.urls, snapshot.pages, snapshot.links):
        return queue
    log.warning(
        "none of the %d URLs of %s is in the snapshot yet: the round starts from all %d that the crawl chose so far",
        queue.urls.num_rows,
        queue.source,
        queue.harvest.num_rows,
    )
    return replace(queue, urls=queue.harvest.select(queue.urls.column_names))


def _check_queue_fits(queue: Queue, snapshot: _Snapshot, memory: int | None) -> None:
    """Refuses a queue that is too large for later stages before anything is written."""
    harvest = queue.harvest.num_rows * HARVESTED_BYTES
    held = {"harvest": harvest, "current": snapshot.partitions.filter_bits // 8}
    check_held("read words of pages", HELD_HARVEST, held, memory)


def conclude(
    output: str,
    config: RoundConfig,
    inputs: dict[str, Any],
    metrics: RunMetrics,
    begin: float,
    *,
    top: int = SHOWN_URLS,
) -> str:
    """Completes a round's folder when its job is done, and writes the manifest last.

    Args:
        output: the round's folder.
        config: its configuration.
        inputs: its inputs, for the manifest.
        metrics: metrics of the job.
        begin: when it began, seconds since 1970.
        top: how many URLs the summary shows.

    Returns:
        A summary for people.
    """
    is_written = {"classes": config.ranker == "ontology", "current_concepts": config.write_lattices}
    schemas = _TABLES | {name: schema for name, schema in _FURTHER.items() if is_written[name]}
    work = folders.work_folder(output)
    folders.complete_parts(work, schemas)
    rows = {name: folders.row_count(work, name) for name in schemas}
    rejected = folders.rejects_by_reason(work)
    topic, scale = topic_of(folders.read_table(work, TOPIC)), round_scale(work)
    warning = scattered_warning(topic) if topic else None
    if warning and pc.all(folders.read_table(work, HARVEST.columns("seed"))["seed"]).as_py():
        log.warning("%s", warning)
    manifest = {
        "kind": "round",
        "parameters": config.as_dict(),
        "inputs": {"topic": topic, **inputs},
        "rows": rows,
        "rejected": rejected,
        "counters": metrics.counters,
        "stages": stage_rows(metrics),
        "threshold": scale.get("threshold", config.least_score),
        "seconds": round(time.time() - begin, 3),
        "versions": versions(),
    }
    folders.publish(output, manifest)
    return round_summary(output, config, manifest, scale, seconds=metrics.seconds, top=top)


def _build(
    pipeline: beam.Pipeline,
    *,
    snapshot: _Snapshot,
    queue: Queue,
    output: str,
    config: RoundConfig,
    rules: Rules = EVERYWHERE,
) -> Collection:
    partitions = snapshot.partitions
    harvest, clicks, urls = _described(pipeline, snapshot, output, config)
    scores, calibrated = None, None
    terms: dict[str, Collection] = {}
    lattice = _topic_lattice(snapshot, harvest[HARVESTED], urls, config)
    if config.ranker != registry.SEMRANK:
        step = _ranker_step(snapshot, config, output)
        scores = _facts(harvest[HARVESTED], clicks, urls, lattice, config) | step
        calibrated = getattr(step, "calibrated", None)
    if _by_topic(config):
        ranked = {"descriptions": urls.descriptions, **lattice} | RankByTopicLattice(query=query_words(config))
        _write_topic_concepts(ranked[TOPIC_CONCEPTS], harvest[MAIN], output)
        if scores is None:
            scores = ranked[MAIN]
        else:
            terms["terms"] = ranked[MAIN]
    if urls.vocabulary is not None:
        named = _relations(snapshot, clicks, urls, config)
        rows = _ranked_by_concepts(urls, named, scores, output, config, partitions.urls, _base_urls(queue, config))
    else:
        rows = {"objects": urls.current, "scores": scores, **terms} | MergePartitions(
            "join scores", _with_scores, partitions=partitions.urls, key="url_id"
        )
    rows = _weighed_changes(rows, snapshot, urls, config)
    if config.max_depth is not None:
        rows = {"rows": rows, "links": urls.links, "harvested": harvest[HARVESTED]} | HoldToDepth(
            config.max_depth, partitions=partitions.urls
        )
    written = rows | WriteFrontier(
        files.join(output, "frontier"),
        partitions=partitions.urls,
        limits=_limits(config, rules),
        quality=_host_quality(snapshot, urls, config),
        calibrated=calibrated,
    )
    if urls.drawn is not None:
        about = partial(topic_rows, query=query_words(config), language=config.language, nouns=config.nouns_only)
        {"drawn": urls.drawn} | WriteOne("write topic", files.join(output, TOPIC.name), about)
    rejects = pipeline | "queue rejects" >> beam.Create([queue.rejects]).with_output_types(pa.Table)
    {"rejects": rejects, "unknown": urls.unknown} | WriteOne(
        "write rejects", files.join(output, "rejects"), _reject_rows
    )
    return written  # type: ignore[no-any-return]


def _topic_lattice(
    snapshot: _Snapshot, harvested: Collection, urls: UrlFacts, config: RoundConfig
) -> dict[str, Collection]:
    """The topic's lattice, with relatives of its words where they are wanted; nothing where no ranker needs it."""
    if not (_by_topic(config) or registry.TOPIC_LATTICE in registry.RANKERS[config.ranker].needs):
        return {}
    partitions, query = snapshot.partitions, query_words(config)
    make = MakeTopicLattice(query=query, partitions=partitions.urls)
    lattice: dict[str, Collection] = _lattice_facts(harvested, urls) | make
    if not config.relates_topic_words:
        return lattice
    links = {"links": urls.links} if config.relates_by_links else {}
    relatives = {"descriptions": urls.descriptions, **links, **lattice} | RelateWords(
        snapshot.clicks,
        which=config.topic_relations,
        words_of=_words_of(config),
        query=query,
        partitions=partitions.clicks,
        link_partitions=max(partitions.links, partitions.clicks),
    )
    return {**lattice, "relatives": relatives}


def _weighed_changes(rows: Collection, snapshot: _Snapshot, urls: UrlFacts, config: RoundConfig) -> Collection:
    """The scored URLs, with the probability of a change if pages are refreshed."""
    if config.mix is None:
        return rows
    return rows | WeighChanges(  # type: ignore[no-any-return]
        snapshot.pages,
        snapshot.history,
        current=urls.current_ids,
        bits=snapshot.partitions.filter_bits,
        partitions=snapshot.partitions.urls,
        as_of=config.now,
    )


def _described(
    pipeline: beam.Pipeline, snapshot: _Snapshot, output: str, config: RoundConfig
) -> tuple[Mapping[str, Collection], ClickFacts, UrlFacts]:
    """The harvested URLs by tag, and the facts from clicks, pages and links."""
    partitions = snapshot.partitions
    # The queue is read from its file: a job's graph can't hold millions of URLs.
    harvest: Mapping[str, Collection] = (
        pipeline
        | ReadParquet("read harvest", folders.table_files(output, HARVEST.name), HARVEST.schema.names)
        | MapTables("identify harvest", partial(_identified, base=config.base), tags=(MAIN, HARVESTED, DIGESTS))
    )
    request = _request(config)
    clicks = pipeline | ReadClickFacts(
        snapshot.clicks,
        partitions=partitions.clicks,
        words_of=_words_of(config) if request.words else None,
        groups=config.user_groups if request.contexts else None,
        bits=partitions.filter_bits,
    )
    describe = partial(
        DescribeUrls,
        snapshot.pages,
        snapshot.links,
        clicks=clicks,
        partitions=partitions,
        settings=object_settings(config),
    )
    if request.contexts and config.base == "topic":
        of_topic = describe(harvest=_harvest_of(harvest), request=Request(descriptions=True))
        harvest = _with_nearest(harvest, pipeline | "describe URLs to choose base" >> of_topic, config, partitions)
    urls = pipeline | describe(
        harvest=_harvest_of(harvest),
        # P13 ranks the URLs that its base links to; another base or ranker ranks all known URLs.
        from_queue=_by_rounds(config) and config.base == "last",
        refresh=config.mix is not None,
        request=request,
    )
    return harvest, clicks, urls


def _harvest_of(harvest: Mapping[str, Collection]) -> Harvest:
    return Harvest(harvest[MAIN], harvest[HARVESTED], harvest[DIGESTS])


def _with_nearest(
    harvest: Mapping[str, Collection], urls: UrlFacts, config: RoundConfig, partitions: Partitions
) -> dict[str, Collection]:
    """The harvested URLs by tag, the queue being the seeds and the pages that are nearest to their lattice."""
    make = "choose base" >> MakeTopicLattice(query=query_words(config), partitions=partitions.urls)
    near = (_lattice_facts(harvest[HARVESTED], urls) | make)["near"]
    queued = {
        name: harvest[name]
        | MapTables(f"queue nearest pages of {name}", _queued_with, sides={"near": near}, holds=TOPIC_LATTICE)
        for name in (MAIN, HARVESTED)
    }
    return {**queued, DIGESTS: harvest[DIGESTS]}


def _words_of(config: RoundConfig) -> WordsOf:
    return partial(lemmas_of, fallback=config.language, nouns=config.nouns_only)


def _limits(config: RoundConfig, rules: Rules) -> Limits:
    return Limits(
        threshold=config.least_score,
        max_urls=config.max_urls,
        max_per_host=config.max_per_host,
        max_per_domain=config.max_per_domain,
        budget=config.budget,
        refresh_share=config.refresh_share,
        known=config.recrawl or config.mix is not None,
        private=config.allow_private,
        rules=rules,
    )


def _by_rounds(config: RoundConfig) -> bool:
    """Whether the score is SemRank as in the papers, by the lattices of rounds."""
    return config.ranker == registry.SEMRANK and config.compares_rounds


def _by_topic(config: RoundConfig) -> bool:
    """Whether SemRank by the topic's lattice is the score or is written beside it."""
    return not config.compares_rounds and (config.ranker == registry.SEMRANK or config.semrank_terms)


def _request(config: RoundConfig) -> Request:
    """The facts about URLs that the ranker, SemRank's terms and the quality of hosts need."""
    needs = registry.RANKERS[config.ranker].needed(_own_options(config))
    hosts = _rates_hosts(config)
    contexts = config.compares_rounds and (registry.CONTEXTS in needs or config.semrank_terms)
    return Request(
        contexts=contexts,
        descriptions=_by_topic(config) or (registry.DESCRIPTIONS in needs and not _by_rounds(config)),
        nodes=hosts or registry.NODES in needs,
        links=hosts or registry.LINKS in needs or contexts or config.relates_by_links or config.max_depth is not None,
    )


def _base_urls(queue: Queue, config: RoundConfig) -> int:
    """About how many URLs the base lattice is of."""
    return queue.urls.num_rows if config.base == "last" else pc.sum(queue.harvest["seed"]).as_py() or 0


def _ranked_by_concepts(
    urls: UrlFacts,
    named: dict[str, Collection],
    scores: Collection | None,
    output: str,
    config: RoundConfig,
    partitions: int,
    base_urls: int,
) -> Collection:
    """The URLs with SemRank's terms and its score, or another ranker's; writes relations, keywords and concepts."""
    settings, query = similarity_settings(config), query_words(config)
    ranker = {} if scores is None else {"ranker": scores}
    held = named | HoldRelations(query)
    known = {"vocabulary": named["vocabulary"], "part_of": held.part_of}
    ranked = {"base": urls.base, "current": urls.current, **known, "isa": held.isa, **ranker} | RankBySemRank(
        settings,
        query=query,
        min_support=config.min_support,
        partitions=partitions,
        base_urls=base_urls,
        write_lattices=config.write_lattices,
    )
    named | WriteRelations(files.join(output, "relations"))
    {**known, "isa": held.top_isa} | WriteOne(
        "write keywords",
        files.join(output, "keywords"),
        partial(keyword_rows, settings=settings, query=query),
        holds=HIERARCHY,
    )
    # Workers have held this lattice before, so it fits; as a group of an exchange it would have to be one record.
    {"lattice": ranked.lattice, "objects": ranked.addresses, "vocabulary": named["vocabulary"]} | WriteOne(
        "write base concepts", files.join(output, "base_concepts"), base_concept_rows, holds=NAMED_LATTICE
    )
    if config.write_lattices:
        ranked.current_concepts | WriteConcepts(files.join(output, "current_concepts"), "current", partitions)
    return ranked.rows  # type: ignore[no-any-return]


def _facts(
    harvested: Collection, clicks: ClickFacts, urls: UrlFacts, lattice: dict[str, Collection], config: RoundConfig
) -> dict[str, Collection | None]:
    """The facts that the ranker needs."""
    needs = registry.RANKERS[config.ranker].needed(_own_options(config))
    topic: dict[str, Collection | None] = {}
    if registry.TOPIC_LATTICE in needs:
        topic = {"word_weights": lattice | WeighWords(query=query_words(config)), "sizes": lattice["sizes"]}
    known: dict[str, dict[str, Collection | None]] = {
        registry.DESCRIPTIONS: _lattice_facts(harvested, urls),
        registry.NODES: {"nodes": urls.nodes},
        registry.LINKS: {"links": urls.links},
        registry.CLICK_EDGES: {"click_edges": clicks.edges},
        registry.TOPIC_LATTICE: topic,
    }
    return {name: table for fact, tables in known.items() if fact in needs for name, table in tables.items()}


def _lattice_facts(harvested: Collection, urls: UrlFacts) -> dict[str, Collection | None]:
    """Descriptions with their vocabulary and the harvested URLs."""
    return {"descriptions": urls.descriptions, "vocabulary": urls.described_words, "harvested": harvested}


def _write_topic_concepts(extents: Collection, harvest: Collection, output: str) -> None:
    """Writes the base concepts of the topic's lattice with the URLs of their objects."""
    urls = harvest | MapTables("name base objects", _object_urls, sides={"extents": extents}, holds=NAMED_LATTICE)
    {"extents": extents, "urls": urls} | WriteOne(
        "write base concepts", files.join(output, "base_concepts"), _topic_concept_rows, holds=NAMED_LATTICE
    )


def _object_urls(harvest: pa.Table, extents: pa.Table | None) -> pa.Table:
    urls = harvest.select(["url_id", "url"])
    if extents is None:
        return urls.slice(0, 0)
    return urls.filter(pc.is_in(urls["url_id"], value_set=column_array(extents["url_id"])))


def _topic_concept_rows(extents: pa.Table | None, urls: pa.Table | None) -> pa.Table:
    if extents is None or urls is None:
        return CONCEPTS.schema.empty_table()
    place = pc.index_in(extents["url_id"], value_set=column_array(urls["url_id"]))
    named = [extents["concept"], urls["url"].take(place), extents["intent"]]
    return concept_rows(pa.table(named, schema=NAMED_SCHEMA))


def _ranker_step(snapshot: _Snapshot, config: RoundConfig, output: str) -> Any:
    making = registry.Making(
        query=query_words(config),
        partitions=snapshot.partitions.urls,
        links=_link_count(snapshot),
        language=config.language,
        output=output,
        options=_own_options(config),
        precision=config.precision if config.calibrates else None,
    )
    return registry.step(config.ranker, making)


def _own_options(config: RoundConfig) -> dict[str, Any]:
    """Values of the ranker's own options."""
    return {name: getattr(config, name) for name in registry.RANKERS[config.ranker].options}


def _rates_hosts(config: RoundConfig) -> bool:
    return config.budget is not None and config.host_quality != "equal"


def _host_quality(snapshot: _Snapshot, urls: UrlFacts, config: RoundConfig) -> Collection | None:
    if not _rates_hosts(config):
        return None
    graph = {"nodes": urls.nodes, "links": urls.links}
    return graph | RateHosts(config.host_quality, links=_link_count(snapshot))  # type: ignore[no-any-return]


def _link_count(snapshot: _Snapshot) -> int:
    return _row_count(snapshot.manifest, snapshot.path, LINKS.name)


def _with_scores(
    objects: pa.Table | None, scores: pa.Table | None, terms: pa.Table | None = None
) -> Iterator[pa.Table]:
    if objects is not None:
        yield with_scores(with_scores(unscored_rows(objects), terms), scores)


def _relations(snapshot: _Snapshot, clicks: ClickFacts, urls: UrlFacts, config: RoundConfig) -> dict[str, Collection]:
    """The vocabulary with the clicks that count, and ISA and Part-Of relations between its words."""
    vocabulary = urls.vocabulary
    settings = relation_settings(config)
    clicked = {"positions": clicks.clicked} | FilterIds("filter clicked")
    # Without an exchange in between, Beam's runner in one process fuses this step with the one that reads links. That
    # one would wait for the clicked URLs, while the one that reads clicks waits for the targets of links.
    links = (urls.links | "spread links" >> beam.Reshuffle()) | MapTables(
        "choose clicked links",
        clicked_links,
        sides={"segments": clicked},
        prepare=partial(IdFilter.from_segments, bits=snapshot.partitions.filter_bits),
    )
    own = None
    if settings.needs_word:
        objects = (urls.base, urls.current) | "all objects" >> beam.Flatten()
        own = objects | MapTables("list keywords of pages", object_words)
    learned = vocabulary | LearnRelations(
        snapshot.clicks,
        links=links,
        users=clicks.users,
        partitions=snapshot.partitions.clicks,
        link_partitions=max(snapshot.partitions.links, snapshot.partitions.clicks),
        words_of=_words_of(config),
        own_words=own,
        settings=settings,
    )
    if settings.topic_log:
        vocabulary = {"vocabulary": vocabulary, "clicks": learned.word_clicks} | GatherTables(
            "count clicks of topic", _counted_vocabulary, holds=VOCABULARY
        )
    return {"vocabulary": vocabulary, "isa": learned.isa, "part_of": learned.part_of}


def _counted_vocabulary(vocabulary: pa.Table | None, clicks: pa.Table | None) -> pa.Table:
    return VOCABULARY_SCHEMA.empty_table() if vocabulary is None else with_clicks(vocabulary, clicks)


def _write_harvest(output: str, queue: Queue) -> None:
    """Writes the URLs that the crawl chose so far, which the job reads."""
    queued = pc.is_in(queue.harvest["url"], value_set=column_array(queue.urls["url"]))
    table = conform(queue.harvest.append_column("queued", queued).sort_by("url"), HARVEST)
    for number, start in enumerate(range(0, table.num_rows, HARVEST_ROWS)):
        write_parquet(files.join(output, HARVEST.name, part_name(number)), table.slice(start, HARVEST_ROWS))


def _identified(harvest: pa.Table, *, base: str) -> Iterator[tuple[str, pa.Table]]:
    digests = text_digests(harvest["url"])
    yield DIGESTS, digest_table(digests)
    harvest = harvest.add_column(0, "url_id", pa.array(digests[:, 0]))
    if base != "last":
        harvest = harvest.set_column(harvest.schema.get_field_index("queued"), "queued", harvest["seed"])
    yield MAIN, harvest.select(HARVEST_SCHEMA.names).cast(HARVEST_SCHEMA)
    yield HARVESTED, harvest.select(HARVESTED_SCHEMA.names).cast(HARVESTED_SCHEMA)


def _queued_with(harvest: pa.Table, near: pa.Table | None) -> pa.Table:
    """Harvested URLs, the nearest pages being of the queue."""
    if near is None:
        return harvest
    queued = pc.or_(harvest["queued"], pc.is_in(harvest["url_id"], value_set=column_array(near["url_id"])))
    return harvest.set_column(harvest.schema.get_field_index("queued"), "queued", queued)


def _reject_rows(rejects: pa.Table | None, unknown: pa.Table | None) -> pa.Table:
    rows = [REJECTS.empty(), *([rejects] if rejects is not None else [])]
    if unknown is not None:
        count = unknown.num_rows
        rows.append(pa.table([[STAGE] * count, [NOT_IN_SNAPSHOT] * count, unknown["url"]], schema=REJECTS.schema))
    return pa.concat_tables(rows).sort_by([(name, "ascending") for name in REJECTS.schema.names])


if __name__ == "__main__":
    from semrank.pipelines.cli import command_main, leave

    leave(command_main("rank"))
