"""Crawls that know the labels of the pages they have fetched."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from benchmarks import labels_known
from semrank.schemas.tables import CLICKS, LINKS, PAGES
from semrank.transforms.columnar.arrays import int64s
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.ranking import focused
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.replay.web import Web
from tests.support.snapshots import table_of

HOST = "https://pages.example"
TEXTS = {
    "seed": "steam engine railway",
    "right": "locomotive valve boiler",
    "wrong": "railway engine poem",
    "locomotive": "locomotive boiler chimney",
    "poem": "poem verse rhyme",
    "opera": "opera singer music",
}
"""By its text the page `wrong` is more like the seed than `right` is."""

LINKED = (
    ("seed", "right", "locomotive"),
    ("seed", "wrong", "poem"),
    ("right", "locomotive", "locomotive"),
    ("wrong", "poem", "poem"),
    ("seed", "opera", "music"),
)
"""Source, target and anchor."""


def crawl(*, content_known: bool) -> tuple[Facts, dict[str, int]]:
    pages = [{"url": f"{HOST}/{name}", "text": text, "language": "en"} for name, text in TEXTS.items()]
    links = [
        {"source_url": f"{HOST}/{source}", "target_url": f"{HOST}/{target}", "anchor_text": anchor}
        for source, target, anchor in LINKED
    ]
    web = Web.of_tables(table_of(pages, PAGES), table_of(links, LINKS), CLICKS.empty())
    ids = dict(zip(TEXTS, text_ids(pa.array([f"{HOST}/{name}" for name in TEXTS])).tolist(), strict=True))
    harvested = np.array([ids["seed"], ids["right"], ids["wrong"]])
    current = np.array([ids[name] for name in ("locomotive", "poem", "opera")])
    facts = web.facts(seeds=harvested[:1], harvested=harvested, current=current, content_known=content_known)
    return facts, ids


def lead(table: pa.Table, ids: dict[str, int]) -> float:
    """By how much the locomotive's score is above the poem's."""
    scores = dict(zip(int64s(table["url_id"]).tolist(), table["score"].to_pylist(), strict=True))
    return float(scores[ids["locomotive"]] - scores[ids["poem"]])


@pytest.mark.parametrize("content_known", [True, False])
def test_labels_steer(content_known: bool) -> None:
    facts, ids = crawl(content_known=content_known)
    rank = labels_known.rank_by_text if content_known else labels_known.rank_by_grades
    steam, verse = (
        rank(facts, relevant=np.sort(np.array([ids["seed"], *(ids[name] for name in names)])))
        for names in (("right", "locomotive"), ("wrong", "poem"))
    )
    assert lead(steam, ids) > lead(verse, ids)
    # By the texts alone the page `wrong` counts as the more relevant one.
    assert lead(steam, ids) > lead(focused.rank(facts), ids)


def test_labels_that_are_all_alike_teach_nothing() -> None:
    facts, ids = crawl(content_known=True)
    everything = np.sort(np.array(list(ids.values())))
    assert labels_known.rank_by_text(facts, relevant=everything).equals(focused.rank(facts))
