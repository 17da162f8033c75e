"""What precision a calibrated threshold really has: crawls of labelled topics, judged by the labels.

    python -m benchmarks.calibration --snapshot SNAPSHOT     # of `semrank dataset wikispeedia`, with topics.parquet

Crawls by `focused` are replayed as `semrank evaluate` does it, in mode frontier, over the held-out topics of
`benchmarks.ranking`. Before each batch the threshold is calibrated on the harvest, as `semrank rank` does it without
`--threshold`, `--max-urls` and `--budget`, and the candidates above it are counted, and those that the topic's labels
call relevant. For each size of the harvest and each `--precision` a line is printed for the topics whose harvest
reaches the precision, since nothing is selected of others: means over topics, the counts of a topic's crawls being
added up first.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.contest import Place
from benchmarks.ranking import HALVES, topic_halves
from semrank.pipelines.evaluation_config import FRONTIER, EvaluationConfig
from semrank.pipelines.evaluation_crawls import facts_makers, replay_topics
from semrank.transforms.ranking import focused
from semrank.transforms.ranking.calibration import calibrated_threshold
from semrank.transforms.ranking.facts import Facts

PRECISIONS = (0.5, 0.7, 0.9)
"""Values of `--precision`."""

HARVESTS = (24, 44, 104, 184)
"""Sizes of the harvest at which thresholds are judged: four seeds, and 1, 2, 5 and 9 batches of 20 pages."""


@dataclass
class Recorder:
    """Ranks as `focused` does, and keeps what each threshold selects.

    Attributes:
        chosen: (size of the harvest, precision, threshold, ids of the candidates above it) of the rankings so far
            whose harvest reached the precision.
        candidates: size of the harvest -> ids of all candidates.
    """

    chosen: list[tuple[int, float, float, pa.Array]] = field(default_factory=list)
    candidates: dict[int, pa.Array] = field(default_factory=dict)

    def __call__(self, facts: Facts) -> pa.Table:
        """The scores of the candidates."""
        part, model = focused.learned(facts)
        scored = focused.score_part(part, model, facts.words)
        size = part.known.harvested_count
        if size in HARVESTS:
            bins = focused.harvest_scores(part, model)
            self.candidates[size] = scored["url_id"].combine_chunks()
            for precision in PRECISIONS:
                threshold, share = calibrated_threshold(bins, precision)
                if threshold is not None and share is not None and share >= precision:
                    above = scored.filter(pc.greater(scored["score"], threshold))["url_id"].combine_chunks()
                    self.chosen.append((size, precision, threshold, above))
        return scored


@dataclass
class Counts:
    """Candidates of one topic's crawls at one size of the harvest."""

    selected: int = 0
    relevant: int = 0
    all_relevant: int = 0
    thresholds: list[float] = field(default_factory=list)


Key: TypeAlias = tuple[int, float]
"""Size of the harvest, precision."""


def judged(place: Place, config: EvaluationConfig) -> dict[Key, list[Counts]]:
    """The counts of each topic by key."""
    ground, recorder = place.ground(), Recorder()
    makers = partial(facts_makers, rankers={"focused": recorder})
    found: dict[Key, dict[str, Counts]] = defaultdict(lambda: defaultdict(Counts))
    for replayed in replay_topics(ground, place.planned(config), config, makers):
        topic = replayed.setting.topic
        labels = pa.array(ground.ids[topic.pages])
        for size, precision, threshold, above in recorder.chosen:
            counts = found[size, precision][topic.name]
            counts.selected += len(above)
            counts.relevant += _members(above, labels)
            counts.all_relevant += _members(recorder.candidates[size], labels)
            counts.thresholds.append(threshold)
        recorder.chosen.clear()
    return {key: list(topics.values()) for key, topics in sorted(found.items())}


def _members(ids: pa.Array, labels: pa.Array) -> int:
    return int(pc.sum(pc.is_in(ids, value_set=labels)).as_py() or 0)


def lines(found: dict[Key, list[Counts]]) -> Iterator[str]:
    """The counts as a table in Markdown."""
    yield "| harvest | `--precision` | topics | threshold | selected | precision by labels | recall of the candidates |"
    yield "|---|---|---|---|---|---|---|"
    for (size, precision), topics in found.items():
        thresholds = np.mean([np.mean(topic.thresholds) for topic in topics])
        selected = np.mean([topic.selected / len(topic.thresholds) for topic in topics])
        right = [topic.relevant / topic.selected for topic in topics if topic.selected]
        share = [topic.relevant / topic.all_relevant for topic in topics if topic.all_relevant]
        cells = [str(size), str(precision), str(len(topics)), f"{thresholds:.2f}", f"{selected:.0f}"]
        cells += [f"{np.mean(values):.2f}" if values else "none" for values in (right, share)]
        yield "| " + " | ".join(cells) + " |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Judges the thresholds; gives the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.calibration", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--snapshot", required=True, type=Path, metavar="SNAPSHOT", help="snapshot with topics.parquet")
    parser.add_argument("--half", choices=HALVES, default=HALVES[1], help="topics to replay (default held-out)")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="replay every Nth topic by name (default 1)")
    parser.add_argument("--seed-sets", type=int, default=3, metavar="N", help="crawls for each topic (default 3)")
    parser.add_argument(
        "--output", required=True, type=Path, metavar="FILE", help="file of the topics that are replayed"
    )
    parsed = parser.parse_args(arguments)
    topics = topic_halves(pq.read_table(parsed.snapshot / "topics.parquet"))[parsed.half]
    names = sorted(set(topics["topic"].to_pylist()))[:: parsed.every]
    pq.write_table(topics.filter(pc.is_in(topics["topic"], pa.array(names))), parsed.output)
    place = Place(parsed.snapshot, parsed.output, parsed.output.parent)
    config = EvaluationConfig(("focused",), mode=FRONTIER, seed_sets=parsed.seed_sets)
    for line in lines(judged(place, config)):
        print(line)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
