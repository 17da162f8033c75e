"""The evaluation's topics, its ablation, and its quick run."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks import ranking
from semrank.schemas.tables import CLICKS, SUMMARY, TOPICS
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.ranking import focused, topic_lattice
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.replay.web import Web
from tests.support.small_crawls import WORDS, Crawl, Page
from tests.support.snapshots import table_of

article_web = cache(ranking.article_web)
"""Articles are generated once: their vocabulary is that of a dictionary of English."""


def test_topics_are_leaves_of_a_fitting_size_in_turn() -> None:
    sizes = {"a": 200, "a.b": 40, "a.c": 200, "b": 39, "c": 201, "d": 100, "d-e": 41, "e.f": 60}
    rows = [{"topic": topic, "url": f"https://x.example/{n}"} for topic, size in sizes.items() for n in range(size)]
    halves = ranking.topic_halves(table_of(rows, TOPICS))
    assert {half: sorted(set(table["topic"].to_pylist())) for half, table in halves.items()} == {
        "tuning": ["a.b", "d", "e.f"],
        "held-out": ["a.c", "d-e"],
    }
    assert halves["tuning"].num_rows == 40 + 100 + 60


def test_sections_are_the_lowest_of_a_fitting_size() -> None:
    sizes = {"m": 300, "m.a": 120, "m.a.x": 39, "m.b": 150, "m.b.x": 60, "m.b.y": 41, "m.bc": 80, "n": 200, "o": 20}
    assert ranking.lowest_sections(sizes) == ["m.a", "m.b.x", "m.b.y", "m.bc", "n"]


def test_an_evaluation_as_a_table() -> None:
    rows = [
        (ranker, mode, measure, 100, topics, mean, *ends, None, None, None)
        for ranker, means in {"cosine": (0.125, 0.25), "omniscient": (0.5, 0.75)}.items()
        for mode, topics, ends in (("frontier", 2, (0.1, 0.9)), ("expand", 1, (None, None)))
        for measure, mean in zip(("harvest", "recall"), means, strict=True)
    ]
    columns = zip(*rows, strict=True)
    table = pa.table([pa.array(c, f.type) for c, f in zip(columns, SUMMARY.schema, strict=True)], schema=SUMMARY.schema)
    assert list(ranking.table_lines(table)) == [
        "| ranker | frontier | expand |",
        "|---|---|---|",
        "| cosine | 0.125 [0.100, 0.900] / 0.250 [0.100, 0.900] (25%, 33%) | 0.125 / 0.250 (25%, 33%) |",
        "| omniscient | 0.500 [0.100, 0.900] / 0.750 [0.100, 0.900] | 0.500 / 0.750 |",
    ]


@pytest.fixture(scope="module")
def facts() -> Facts:
    """The facts of a few articles; nobody clicks in them, and no text of a candidate is known."""
    pages, links = article_web(ranking.QUICK_ARTICLES)
    ids = text_ids(pages["url"])
    web = Web.of_tables(pages, links, CLICKS.empty())
    return web.facts(seeds=ids[:4], harvested=ids[:50], current=ids[50:], content_known=False)


def test_variants_lack_one_part_each_and_leave_no_trace(facts: Facts) -> None:
    found = ranking.variants()
    assert next(iter(found)) == "focused"
    assert {f"- {term}" for term in focused.WEIGHTS} < set(found)
    scores = {name: rank(facts)["score"].to_pylist() for name, rank in found.items()}
    assert scores["focused"] == focused.rank(facts)["score"].to_pylist()
    different = {name for name, values in scores.items() if values != scores["focused"]}
    assert set(found) - different == {"focused", "- query", "- clicked-near", "- both click terms", "- background"}


def test_variants_of_the_topic_lattice(facts: Facts) -> None:
    found = ranking.topic_variants()
    scores = {name: rank(facts)["score"].to_pylist() for name, rank in found.items()}
    assert scores["semrank"] == topic_lattice.rank(facts)["score"].to_pylist()
    assert [name for name, values in scores.items() if values == scores["semrank"]] == ["semrank"]


def test_variants_of_relations() -> None:
    """Words share pages, links and sessions in such a way that every choice matters."""
    found = ranking.relation_variants()
    pages = {1: Page(True, True, True, text={"bird": 3, "wing": 2}), 2: Page(anchor=dict.fromkeys(WORDS[1:4], 1))}
    # "bird" agrees with "hawk" on three pages, with "eagle" on two, with "crawl" on one.
    shared = {"hawk": (3, 4, 5), "eagle": (6, 7), "crawl": (8,)}
    for word, urls in shared.items():
        for url in urls:
            pages[url] = Page(described=True, text={"bird": 1, word: 1}, query={"bird": 5, word: 5})
    pages |= {url: Page(described=True, text={"wing": 1}, query={"wing": 40}) for url in range(20, 40)}
    # All pages of "bird" link to all pages of "nest", and those of "wing" to each other.
    nests = range(40, 45)
    pages |= {url: Page(described=True, text={"wing": 1, "nest": 1}, query={"wing": 1, "nest": 20}) for url in nests}
    links = [(source, target) for urls in shared.values() for source in urls for target in nests]
    crawl = Crawl(pages, links + [(url, url + 1) for url in range(20, 39)])
    facts = replace(crawl.facts(), asked=crawl.descriptions().query)
    scores = {name: rank(facts)["score"].to_pylist() for name, rank in found.items()}
    assert scores["semrank"] == topic_lattice.rank(facts)["score"].to_pylist()
    related = {name: values for name, values in scores.items() if name != "semrank"}
    assert scores["semrank"] not in related.values()
    different = {name for name, values in related.items() if values != related["+ relations"]}
    assert set(related) - different == {"+ relations", "+ relations, 20 relatives of each kind"}
    assert related["+ relations, isa alone"] != related["+ relations, part-of alone"]


def test_some_parts_alone() -> None:
    ranks = ranking.variants()
    assert list(ranking._parts(ranks, ["- semrank", "- query"])) == ["focused", "- query", "- semrank"]
    assert list(ranking._parts(ranks, None)) == list(ranks)


def summary(**changes: float) -> pa.Table:
    rows: list[tuple[Any, ...]] = []
    for name, change in {"focused": None, **changes}.items():
        ends = (None, None, None) if change is None else (change, change - 0.125, change + 0.125)
        mean = 0.25 + (change or 0.0)
        rows += [(name, "frontier", measure, 100, 5, mean, 0.2, 0.3, *ends) for measure in ("harvest", "recall")]
    columns = zip(*rows, strict=True)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SUMMARY.schema, strict=True)], schema=SUMMARY.schema)


def test_the_ablation_shows_changes() -> None:
    changes = {"tuning": summary(less=-0.25), "held-out": summary(less=0.125)}
    lines = list(ranking.ablation_lines(changes))
    assert len(lines) == 4
    assert lines[0] == "| mode | variant | tuning: harvest | recall | held-out: harvest | recall |"
    assert lines[2] == "| frontier | focused | 0.250 | 0.250 | 0.250 | 0.250 |"
    tuning, held = "-0.250 [-0.375, -0.125]", "+0.125 [+0.000, +0.250]"
    assert lines[3] == f"| frontier | less | {tuning} | {tuning} | {held} | {held} |"


def test_parts_that_change_nothing_have_no_row() -> None:
    nothing = summary(idle=0.0).to_pylist()
    rows = [{**row, "difference_low": row["difference"], "difference_high": row["difference"]} for row in nothing]
    table = pa.Table.from_pylist(rows, schema=SUMMARY.schema)
    assert len(list(ranking.ablation_lines({"tuning": table}))) == 3
    assert len(list(ranking.ablation_lines({"tuning": table, "held-out": summary(idle=0.25)}))) == 4


def test_generated_articles_link_to_each_other() -> None:
    pages, links = article_web(ranking.QUICK_ARTICLES)
    assert pages.num_rows == ranking.QUICK_ARTICLES
    known = set(pages["url"].to_pylist())
    assert set(links["source_url"].to_pylist()) == known
    assert set(links["target_url"].to_pylist()) <= known


def test_a_ranking_is_timed_in_both_modes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "article_web", article_web)
    monkeypatch.setattr(ranking, "REPEATS", 1)
    results = ranking.run(quick=True)
    assert [result["note"].split()[0] for result in results] == ["frontier", "content"]
    assert all(result["ours_s"] and result["peer_s"] for result in results)


def test_the_quick_evaluation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    only = [
        word for name in ("focused", "keyword", "omniscient", "hits, topic's subgraph") for word in ("--only", name)
    ]
    # Some parts of each ranker; the tests of variants run them all.
    few = {name: rank for name, rank in ranking.variants().items() if name in ("focused", "- anchor", "- anchor-topic")}
    monkeypatch.setattr(ranking, "variants", lambda: few)
    assert ranking.main(["--quick", "--part", "an", "--output", str(tmp_path), *only]) == 0
    shown = capsys.readouterr().out
    assert "sample topics" in shown
    assert "| frontier | focused |" in shown
    assert "| content | focused |" in shown
    for ranker in ("focused", "semrank", "semrank with relations"):
        assert f"what each term of `{ranker}` is worth" in shown
    # What is known before a fetch counts where the text is not known.
    assert "| frontier | - anchor-topic |" in shown
    assert "| content | - anchor-topic |" not in shown
    assert "| ranker | frontier | content | expand |" in shown
    assert "| minus focused | frontier | content | expand |" in shown
    assert "| focused | content | 0." in shown
    assert "| **0." in shown
    assert "| labels known | +0." in shown.partition("| minus focused | frontier | content |\n")[2]
    kept = sorted((tmp_path / "sample" / "sample").glob("*.json"))
    assert {path.name for path in kept} >= {"labels_known.frontier.json", "labels_known.content.json"}
    assert len(kept) == 4 * 3 + 2
    parts = sorted((tmp_path / "sample" / "sample").glob("*/*.json"))
    assert {path.parent.name for path in parts} == {"focused", "semrank"}
    kept += parts
    changed = [path.stat().st_mtime_ns for path in kept]
    assert ranking.main(["--quick", "--no-ablation", "--first", "keyword", "--output", str(tmp_path), *only]) == 0
    assert "| minus keyword | frontier | content | expand |\n|---|---|---|---|\n| focused |" in capsys.readouterr().out
    assert ranking.main(["--quick", "--part", "an", "--output", str(tmp_path), *only]) == 0
    again = capsys.readouterr().out.partition("sample topics")[2]
    assert again
    assert again in shown
    assert [path.stat().st_mtime_ns for path in kept] == changed
