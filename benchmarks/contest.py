"""Rankers, and readings of them, replayed on the topics of a web; what is done is kept, so that a stop costs little."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from semrank.pipelines.evaluation_config import MODES, OMNISCIENT, EvaluationConfig, known_rankers
from semrank.pipelines.evaluation_crawls import Makers, fact_rankers, facts_makers, named_makers, replay_topics
from semrank.pipelines.evaluation_ground import Ground
from semrank.pipelines.evaluation_results import THRESHOLDS, Results, Values, summary_rows
from semrank.pipelines.evaluation_topics import Topic, plan_topics, read_topics
from semrank.schemas.tables import CLICKS, LINKS, PAGES
from semrank.transforms.ranking import registry

TABLES = (PAGES, LINKS, CLICKS)

TOPIC_LOG = {"log_scope": "topic"}
TOPIC_READING = {"base": "seeds", "log_scope": "topic", "isa_needs_word": True}
"""P13's lattice of the topic: its own queries alone, words that the clicked page has, the seeds as base."""


@dataclass(frozen=True)
class Contestant:
    """A ranker with some options.

    Attributes:
        name: what it is called in tables.
        ranker: one of `known_rankers`.
        options: options of a round.
    """

    name: str
    ranker: str
    options: Mapping[str, Any] = field(default_factory=dict)


READINGS = (
    Contestant("paper-2013, topic's log", "paper-2013", TOPIC_LOG),
    Contestant("paper-2013, topic's log, base and witnesses", "paper-2013", TOPIC_READING),
    Contestant("the same, nouns only", "paper-2013", {**TOPIC_READING, "keywords": "nouns"}),
    Contestant("the same, nearest pages in the base", "paper-2013", {**TOPIC_READING, "base": "topic"}),
    Contestant("hits, topic's subgraph", "hits", {"hits_graph": "topic"}),
)
"""Readings of the papers that the profiles leave open."""

CONTESTANTS = (*(Contestant(name, name) for name in known_rankers()), *READINGS)


class Place:
    """A web and some of its topics.

    Args:
        snapshot: folder of the web.
        topics: file of the topics.
        kept: folder of what is done.
    """

    def __init__(self, snapshot: Path, topics: Path, kept: Path) -> None:
        self._snapshot, self._topics, self._kept = snapshot, topics, kept
        self._grounds: dict[bool, Ground] = {}

    def ground(self, *, nouns: bool = False) -> Ground:
        """The web in memory, read once."""
        if nouns not in self._grounds:
            tables = [pq.read_table(self._snapshot / table.name, schema=table.schema) for table in TABLES]
            self._grounds[nouns] = Ground.of(*tables, nouns=nouns)
        return self._grounds[nouns]

    def planned(self, config: EvaluationConfig) -> list[Topic]:
        """The topics with their seeds."""
        return plan_topics(read_topics(str(self._topics)), self.ground(), config).topics

    def done(self, contestant: Contestant, mode: str, config: EvaluationConfig) -> dict[str, Any]:
        """What a contestant's crawls of one mode were: `values` and the mean F of each threshold, `sweep`.

        Args:
            contestant: the ranker.
            mode: the mode.
            config: budget, batch and seeds.
        """
        config = replace(config, rankers=(contestant.ranker,), mode=mode, options=dict(contestant.options))
        return self._remembered(contestant.name, config, partial(self._contested, config))

    def part(self, ranker: str, name: str, rank: registry.Rank, mode: str, config: EvaluationConfig) -> dict[str, Any]:
        """What the crawls of a ranker's variant were, in the form of `done`.

        Args:
            ranker: the name of the ranker.
            name: that of the variant; rankers can have variants of the same name.
            rank: the variant.
            mode: the mode.
            config: budget, batch and seeds.
        """
        return self.crawled(f"{ranker}/{name}", name, partial(facts_makers, rankers={name: rank}), mode, config)

    def crawled(
        self,
        key: str,
        name: str,
        makers: Callable[[Ground, pa.Table], Makers],
        mode: str,
        config: EvaluationConfig,
    ) -> dict[str, Any]:
        """What the crawls of a ranker by some makers were, in the form of `done`.

        Args:
            key: what they are kept by.
            name: the name that the makers give the ranker.
            makers: makes the crawls.
            mode: the mode.
            config: budget, batch and seeds.
        """
        config = replace(config, mode=mode)
        return self._remembered(key, config, partial(self._replayed, name, makers, config))

    def _remembered(
        self, name: str, config: EvaluationConfig, replayed: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        path = self._kept / f"{name.replace(' ', '_')}.{config.mode}.json"
        names = pc.unique(read_topics(str(self._topics)).table["topic"]).sort().to_pylist()
        asked = json.loads(json.dumps({**config.as_dict(), "topics": names}))
        if path.exists():
            known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if known["asked"] == asked:
                return known
        begin = time.process_time()
        found = {"asked": asked, **replayed(), "seconds": round(time.process_time() - begin, 1)}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found), encoding="utf-8")
        return found

    def _contested(self, config: EvaluationConfig) -> dict[str, Any]:
        makers = partial(named_makers, config=config, by_facts=fact_rankers(config))
        return self._replayed(config.rankers[0], makers, config)

    def _replayed(
        self, name: str, makers: Callable[[Ground, pa.Table], Makers], config: EvaluationConfig
    ) -> dict[str, Any]:
        ground = self.ground(nouns=config.words.nouns)
        results = Results.of(replay_topics(ground, self.planned(config), config, makers), [name], config)
        return {"values": next(iter(results.values.values())), "sweep": mean_sweep(results.sweep)}


def mean_sweep(sweep: pa.Table) -> dict[str, float]:
    """The mean F over topics of each threshold, a topic's crawls averaged first; nothing where scores have no scale."""
    means = sweep.group_by(["threshold", "topic"]).aggregate([("f_measure", "mean")])
    rows = means.group_by("threshold").aggregate([("f_measure_mean", "mean")]).to_pylist()
    return {f"{row['threshold']:.2f}": row["f_measure_mean_mean"] for row in rows}


Found: TypeAlias = Mapping[tuple[str, str], Mapping[str, Any]]
"""(contestant, mode) -> what `Place.done` gives."""


def compared(found: Found, config: EvaluationConfig) -> pa.Table:
    """Means with intervals, and differences to the first contestant (`schemas.tables.SUMMARY`)."""
    values: Values = {key: done["values"] for key, done in found.items()}
    return summary_rows(list(values), values, config)


def contest(
    place: Place, contestants: Sequence[Contestant], modes: Sequence[str], config: EvaluationConfig
) -> dict[tuple[str, str], dict[str, Any]]:
    """What all contestants did in all modes, mode by mode; the modes are in the order of `MODES`."""
    return {
        (contestant.name, mode): place.done(contestant, mode, config)
        for mode in MODES
        if mode in modes
        for contestant in contestants
    }


def parts_of(
    place: Place, ranks: Mapping[str, registry.Rank], modes: Sequence[str], config: EvaluationConfig
) -> dict[tuple[str, str], dict[str, Any]]:
    """What a ranker's crawls, the first ones, and those of its variants were in all modes, in the form of `contest`."""
    first = next(iter(ranks))
    return {(name, mode): place.part(first, name, rank, mode, config) for mode in modes for name, rank in ranks.items()}


def threshold_lines(found: Found) -> Iterator[str]:
    """Mean F by threshold as a table in Markdown, for contestants whose scores have a scale."""
    grid = [f"{gamma:.2f}" for gamma in THRESHOLDS if 0 < gamma < 1]
    yield "| ranker | mode | " + " | ".join(grid) + " |"
    yield "|---|---|" + "---|" * len(grid)
    for (name, mode), done in found.items():
        sweep = done["sweep"]
        if sweep and name != OMNISCIENT:
            best = max(sweep.values())
            cells = [f"**{sweep[gamma]:.3f}**" if sweep[gamma] == best else f"{sweep[gamma]:.3f}" for gamma in grid]
            yield f"| {name} | {mode} | " + " | ".join(cells) + " |"


def claim_lines(found: Found) -> Iterator[str]:
    """Mean F after the budget, and seconds of ranking, of each contestant and mode, as a table in Markdown."""
    yield "| ranker | mode | F | seconds |"
    yield "|---|---|---|---|"
    for (name, mode), done in found.items():
        means = [
            np.mean([np.mean([crawl[measure] for crawl in crawls]) for crawls in done["values"].values()])
            for measure in ("f_measure", "seconds")
        ]
        yield f"| {name} | {mode} | {means[0]:.3f} | {means[1]:.3f} |"
