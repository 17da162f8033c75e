"""The crawls of an evaluation: their settings and rankers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from semrank.pipelines.config import PAPER_PROFILES, ranker_options
from semrank.pipelines.evaluation_config import EXPAND, FRONTIER, OMNISCIENT, EvaluationConfig
from semrank.pipelines.evaluation_ground import Ground
from semrank.pipelines.evaluation_topics import Topic
from semrank.pipelines.local.progress import PROGRESS
from semrank.transforms.columnar.arrays import Bools, Int64s
from semrank.transforms.ranking import registry
from semrank.transforms.ranking.ontology_beam import named_ontology
from semrank.transforms.replay.replay import Crawl, Crawler, FactsCrawler, Omniscient, replay, replay_expansion
from semrank.transforms.replay.semrank_local import TOPIC, ClickLog, Reading, SemRankCrawler
from semrank.transforms.replay.web import Web

log = logging.getLogger(PROGRESS)


@dataclass(frozen=True, eq=False)
class Setting:
    """The topic, seeds and mode of a crawl.

    Attributes:
        topic: its topic.
        seed_set: number of the set of seeds.
        mode: what is known of candidates, and what is fetched.
    """

    topic: Topic
    seed_set: int
    mode: str

    @property
    def seeds(self) -> Int64s:
        """Numbers of the seeds, ascending."""
        return self.topic.seeds[self.seed_set]

    @property
    def content_known(self) -> bool:
        """Whether the candidates' texts and links are known."""
        return self.mode != FRONTIER

    def relevant(self, pages: int) -> Bools:
        """Whether each page is relevant: one of the topic and not a seed, bool[pages]."""
        relevant = np.zeros(pages, dtype=np.bool_)
        relevant[self.topic.pages] = True
        relevant[self.seeds] = False
        return relevant


@dataclass(frozen=True, eq=False)
class Replayed:
    """A crawl with its ranker and setting."""

    ranker: str
    setting: Setting
    crawl: Crawl


Makers: TypeAlias = dict[str, Callable[[Setting], Crawler]]
"""A factory of crawlers for each ranker."""


def replay_topics(
    ground: Ground, topics: Sequence[Topic], config: EvaluationConfig, makers: Callable[[Ground, pa.Table], Makers]
) -> Iterator[Replayed]:
    """Replays all crawls, topic by topic.

    Args:
        ground: the snapshot.
        topics: the topics.
        config: modes, budget, batch and whether clicks are held out.
        makers: returns the factories for the remaining clicks, a table of `CLICKS`.
    """
    begin = time.time()
    for number, topic in enumerate(topics, start=1):
        clicks = ground.clicks_table
        if config.holdout_clicks:
            clicks = clicks.filter(pa.array(~ground.targets.held_out(np.sort(ground.ids[topic.pages]))))
        for ranker, make in makers(ground, clicks).items():
            for mode in config.modes:
                for seed_set in range(len(topic.seeds)):
                    setting = Setting(topic, seed_set, mode)
                    yield Replayed(ranker, setting, _replayed(make(setting), ground, setting, config))
        log.debug("topic %d of %d: %s, %.1f s so far", number, len(topics), topic.name, time.time() - begin)


def _replayed(crawler: Crawler, ground: Ground, setting: Setting, config: EvaluationConfig) -> Crawl:
    if setting.mode == EXPAND:
        return replay_expansion(crawler, ground.links, setting.seeds, budget=config.budget)
    return replay(crawler, ground.links, setting.seeds, budget=config.budget, batch=config.batch)


def fact_rankers(config: EvaluationConfig) -> dict[str, registry.Rank]:
    """The rankers of an evaluation that score by facts, with their options.

    Raises:
        InputError: the ontology that an option names can't be read, or has no such topic.
    """
    others = [name for name in config.rankers if name not in (*PAPER_PROFILES, OMNISCIENT)]
    return {name: _fact_ranker(name, config) for name in others}


def named_makers(
    ground: Ground, clicks: pa.Table, config: EvaluationConfig, by_facts: Mapping[str, registry.Rank]
) -> Makers:
    """The rankers of the product by name; `by_facts` are those of `fact_rankers`."""
    scoring = facts_makers(ground, clicks, by_facts) if by_facts else {}
    makers: Makers = {}
    for name in config.rankers:
        if name == OMNISCIENT:
            makers[name] = _omniscient_maker(ground)
        elif name in PAPER_PROFILES:
            makers[name] = semrank_maker(ground, clicks, config.reading(name))
        else:
            makers[name] = scoring[name]
    return makers


def _fact_ranker(name: str, config: EvaluationConfig) -> registry.Rank:
    own = ranker_options(name, config.options)
    if own is None:
        return registry.ranker(name)
    rank: Callable[..., pa.Table] = registry.ranker(name, own)
    return partial(rank, ontology=named_ontology(own["ontology"], own["topic"])) if "ontology" in own else rank


def facts_makers(ground: Ground, clicks: pa.Table, rankers: Mapping[str, registry.Rank]) -> Makers:
    """Rankers that score by facts."""
    web = ground.web.with_clicks(clicks)
    return {name: _facts_maker(web, rank, ground.ids) for name, rank in rankers.items()}


def semrank_maker(ground: Ground, clicks: pa.Table, reading: Reading) -> Callable[[Setting], Crawler]:
    """SemRank with the given settings."""
    log = ClickLog.of(clicks, groups=reading.relations.groups, language=ground.language, nouns=ground.nouns)
    web = ground.semrank_web
    facts = ground.web.with_clicks(clicks) if reading.base == TOPIC else None

    def make(setting: Setting) -> Crawler:
        return SemRankCrawler(
            web,
            log,
            ids=ground.ids,
            urls=ground.urls,
            content_known=setting.content_known,
            reading=reading,
            facts=facts,
        )

    return make


def _facts_maker(web: Web, rank: registry.Rank, ids: Int64s) -> Callable[[Setting], Crawler]:
    def make(setting: Setting) -> Crawler:
        return FactsCrawler(web, rank, ids=ids, content_known=setting.content_known)

    return make


def _omniscient_maker(ground: Ground) -> Callable[[Setting], Crawler]:
    def make(setting: Setting) -> Crawler:
        return Omniscient(setting.relevant(len(ground)), ground.links if setting.mode == EXPAND else None)

    return make
