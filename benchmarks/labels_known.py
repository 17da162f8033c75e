"""What a crawl would harvest that is told which of the pages it has fetched are relevant: a bound on learning.

`omniscient` knows the labels of all pages, the rankers know none. Between them is a crawl in which somebody labels each
page as it is fetched. Before the fetch `focused` takes these labels for its grades; where contents are known, logistic
regression learns them from the fetched pages' vectors, the relevant ones together counting as much as the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from sklearn.linear_model import LogisticRegression

from benchmarks.contest import Contestant, Place
from semrank.pipelines.evaluation_config import EXPAND, EvaluationConfig
from semrank.pipelines.evaluation_crawls import Makers, Setting
from semrank.pipelines.evaluation_ground import Ground
from semrank.transforms.columnar.arrays import Int64s, members
from semrank.transforms.ranking import focused
from semrank.transforms.ranking.facts import Facts, inverse_document_frequency
from semrank.transforms.replay.replay import Crawler, FactsCrawler

NAME = "labels known"

GRADES = "grade pages"
"""Pass of `focused` that grades the harvested pages."""

REGULARISATION, ITERATIONS = 10.0, 300
"""Inverse strength of the regularisation, and the largest number of iterations, of logistic regression."""


def bounds(place: Place, config: EvaluationConfig) -> dict[tuple[str, str], dict[str, Any]]:
    """What `focused` harvests, and what a crawl with the labels of its pages does, in the form of `contest.contest`.

    There is nothing to bound in an expanding crawl, which chooses among pages that it has fetched.
    """
    modes = [mode for mode in config.modes if mode != EXPAND]
    ranker = Contestant("focused", "focused")
    own = {(ranker.name, mode): place.done(ranker, mode, config) for mode in modes}
    return own | {(NAME, mode): place.crawled(NAME, NAME, labelled_makers, mode, config) for mode in modes}


def labelled_makers(ground: Ground, clicks: pa.Table) -> Makers:
    """The crawl of each setting that knows the labels of what it has fetched."""
    web = ground.web.with_clicks(clicks)

    def make(setting: Setting) -> Crawler:
        relevant = np.union1d(ground.ids[setting.topic.pages], ground.ids[setting.seeds])
        rank: Callable[..., pa.Table] = rank_by_text if setting.content_known else rank_by_grades
        return FactsCrawler(web, partial(rank, relevant=relevant), ids=ground.ids, content_known=setting.content_known)

    return {NAME: make}


def rank_by_grades(facts: Facts, *, relevant: Int64s) -> pa.Table:
    """Scores by `focused` with a grade of 1 for relevant harvested pages and 0 for the others.

    Args:
        facts: the crawl.
        relevant: ids of the relevant pages, ascending.
    """
    known = facts.descriptions
    harvested = known.harvested & known.described
    grade = np.zeros(known.harvested_count)
    grade[known.place[harvested]] = members(relevant, known.url[harvested])
    passes = tuple(
        replace(step, conclude=lambda *_: {"grade": grade}) if step.stage == GRADES else step for step in focused.PASSES
    )
    with patch.object(focused, "PASSES", passes):
        return focused.rank(facts)


def rank_by_text(facts: Facts, *, relevant: Int64s) -> pa.Table:
    """Scores of URLs with known contents by a classifier of the harvested pages; `focused` while they are all alike.

    Args:
        facts: the crawl.
        relevant: ids of the relevant pages, ascending.
    """
    known = facts.descriptions
    harvested = np.flatnonzero(known.harvested & known.described)
    labels = members(relevant, known.url[harvested])
    if labels.all() or not labels.any():
        return focused.rank(facts)
    pages = focused.Part(known, inverse_document_frequency(facts.document_counts, len(known))).pages
    classifier = LogisticRegression(C=REGULARISATION, class_weight="balanced", max_iter=ITERATIONS)
    classifier.fit(pages[harvested], labels)
    current = facts.current
    return pa.table({"url_id": known.url[current], "score": classifier.decision_function(pages[current])})
