"""Replays crawls over a labelled snapshot, each ranker from the same seeds, and compares what they harvest.

The output folder holds curve/ (measures after each page of each crawl), summary/ (means over topics with bootstrap
intervals), sweep/ (what each threshold selects), rejects/, plots/ and manifest.json, which is written last. The
snapshot is held in memory. See docs/evaluation.md for what is measured and how.
"""

from __future__ import annotations

import argparse
import logging
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from semrank.pipelines import evaluation_plots, folders
from semrank.pipelines.collisions import collision_rejects, url_chunks
from semrank.pipelines.config import RANKER_OPTIONS, SEMRANK_OPTIONS, RoundConfig
from semrank.pipelines.evaluation_config import EvaluationConfig, known_rankers
from semrank.pipelines.evaluation_crawls import fact_rankers, named_makers, replay_topics
from semrank.pipelines.evaluation_ground import Ground
from semrank.pipelines.evaluation_results import Results, summary_text
from semrank.pipelines.evaluation_topics import Labels, Plan, Topic, plan_topics, read_topics
from semrank.pipelines.manifest import parameter_rules
from semrank.pipelines.options import add_options, given_options, option, read_options, required
from semrank.pipelines.runtime import versions
from semrank.schemas.errors import InputError
from semrank.schemas.tables import CLICKS, LINKS, PAGES
from semrank.transforms.columnar import files
from semrank.transforms.columnar.arrays import Int64s, concatenate
from semrank.transforms.columnar.beam import without_urls
from semrank.transforms.columnar.ids import surplus_strings
from semrank.transforms.columnar.parquet import part_name, write_parquet
from semrank.transforms.context.nouns import check_tagger

EXAMPLES = """\
example:
  semrank evaluate --snapshot snapshot --topics web/topics.parquet --rankers focused,cosine --budget 40 \\
      --output evaluation
"""

PARTS = ("curve", "summary", "sweep", "rejects", "plots")

log = logging.getLogger("semrank")


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """What is compared, and where the result goes; `EvaluationConfig` has how."""

    snapshot: str = required("snapshot that `semrank ingest` wrote", metavar="SNAPSHOT")
    topics: str = required("table of topics, Parquet or JSON Lines", metavar="FILE")
    rankers: str = required(
        f"rankers to compare; each is compared with the first: {', '.join(known_rankers())}", metavar="A,B"
    )
    output: str = required("folder of the evaluation, new or empty", metavar="DIR")
    overwrite: bool = option(False, "replace a finished evaluation in the folder", plain=True)


def _add_ranker_options(parser: argparse.ArgumentParser) -> None:
    add_options(parser, RoundConfig, {}, names=(*SEMRANK_OPTIONS, *RANKER_OPTIONS))


OPTIONS = (EvaluateOptions, EvaluationConfig, _add_ranker_options)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    own = read_options(EvaluateOptions, arguments)
    given = given_options(RoundConfig, arguments)
    options = {name: given[name] for name in (*SEMRANK_OPTIONS, *RANKER_OPTIONS) if name in given}
    rankers = tuple(name.strip() for name in own.rankers.split(","))
    config = EvaluationConfig(rankers, **given_options(EvaluationConfig, arguments), options=options)
    print(evaluate(own.snapshot, own.topics, own.output, config, overwrite=own.overwrite))
    return 0


def evaluate(snapshot: str, topics: str, output: str, config: EvaluationConfig, *, overwrite: bool = False) -> str:
    """Compares rankers and writes the evaluation's folder.

    Returns:
        A summary for people.

    Raises:
        InputError: the snapshot, the topics or the output folder is unusable.
    """
    begin = time.time()
    if config.words.nouns:
        check_tagger(config.words.language)
    by_facts = fact_rankers(config)
    with folders.unchanged(snapshot, "snapshot") as read:
        tables = [concatenate(folders.read_parts(snapshot, table), table.schema) for table in (PAGES, LINKS, CLICKS)]
    labels = read_topics(topics, parameter_rules(snapshot))
    surplus = surplus_strings(pa.chunked_array([chunk for table in tables for chunk in url_chunks(table)]))
    tables = [without_urls(table, surplus) for table in tables]
    ground = Ground.of(*tables, language=config.words.language, nouns=config.words.nouns)
    planned = plan_topics(labels, ground, config)
    if not planned.topics:
        raise InputError(_no_topics(labels, planned, topics, snapshot))
    folders.claim_folder("--output", output, parts=PARTS, overwrite=overwrite, inputs=[snapshot, topics])
    work = folders.work_folder(output)
    log.info("%d pages, %d topics, %d rankers", len(ground), len(planned.topics), len(config.rankers))
    makers = partial(named_makers, config=config, by_facts=by_facts)
    results = Results.of(replay_topics(ground, planned.topics, config, makers), config.rankers, config)
    written = {
        "curve": results.curve,
        "summary": results.summary,
        "sweep": results.sweep,
        "rejects": pa.concat_tables([labels.rejects, planned.rejects, collision_rejects(surplus)]),
    }
    for name, table in written.items():
        write_parquet(files.join(work, name, part_name(0)), table)
    plots = evaluation_plots.write_plots(files.join(work, "plots"), results.curve, results.sweep, config.budget)
    folders.publish(
        output,
        {
            "kind": "evaluation",
            "parameters": config.as_dict(),
            "inputs": {"snapshot": read, "topics": {"path": topics}},
            "topics": [_topic_entry(topic, ground) for topic in planned.topics],
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


def _no_topics(labels: Labels, planned: Plan, topics: str, snapshot: str) -> str:
    """What is wrong with topics none of which can be replayed."""
    reasons = ", ".join(f"{count} {reason}" for reason, count in _counts(planned.rejects).items())
    return (
        f"--topics {topics}: none of its {len(labels.table['topic'].unique())} topics can be replayed on {snapshot} "
        f"({reasons or 'it has no rows'}), expected one with more pages there than it has seeds"
    )


def _topic_entry(topic: Topic, ground: Ground) -> dict[str, Any]:
    """A topic as the manifest has it."""
    seeds = [_urls(ground, numbers) for numbers in topic.seeds]
    return {"topic": topic.name, "relevant": int(topic.pages.size), "seeds": seeds}


def _urls(ground: Ground, numbers: Int64s) -> list[str]:
    urls: list[str] = ground.urls.take(pa.array(numbers)).to_pylist()
    return urls


def _counts(rejects: pa.Table) -> dict[str, int]:
    return {item["values"]: item["counts"] for item in pc.value_counts(rejects["reason"]).to_pylist()}


if __name__ == "__main__":
    from semrank.pipelines.cli import command_main, leave

    leave(command_main("evaluate"))
