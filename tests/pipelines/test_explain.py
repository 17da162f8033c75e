"""`semrank explain`: what it lists is what counted, for every ranker, and what it says where a URL is not there."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from semrank.pipelines import explanation as module
from semrank.pipelines import folders
from semrank.pipelines.cli import main
from semrank.pipelines.config import RoundConfig, stored_config
from semrank.pipelines.explain import explanation
from semrank.schemas.tables import FRONTIER, HARVEST, KEYWORDS, LINKS, RELATIONS
from tests.support.sample import ingest_sample
from tests.support.similarities import ics

NUMBER = r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
RANKERS = (
    "semrank",
    "paper-2013",
    "cosine",
    "relevancy-context",
    "breadth-first",
    "focused",
    "pagerank",
    "keyword",
    "link-context",
    "hmm",
    "ontology",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A first round of the sample web, and one by SemRank of P13."""
    folder = tmp_path_factory.mktemp("explain")
    web, snapshot = f"{folder}/web", str(ingest_sample(folder))
    seeds = ["--seeds", f"{web}/seeds.txt", "--ranker", "cosine", "--max-urls", "12", "--recrawl"]
    assert main(["rank", "--snapshot", snapshot, *seeds, "--output", f"{folder}/first", "--quiet"]) == 0
    rank(folder, "paper-2013", "--write-lattices", "--max-per-host", "3")
    return folder


def rank(folder: Path, ranker: str, *options: str) -> str:
    output = folder / ranker
    if not output.exists():
        # The papers start from pages that are known, and the first round chose new ones.
        begin = ["--previous", f"{folder}/first", "--ranker", ranker]
        if ranker == "paper-2013":
            begin = ["--seeds", f"{folder}/web/seeds.txt", "--profile", ranker]
        start = ["rank", "--snapshot", f"{folder}/snapshot", *begin]
        assert main([*start, *options, "--output", str(output), "--quiet"]) == 0
    return str(output)


def rows_of(folder: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = folders.read_table(folder, FRONTIER).to_pylist()
    return rows


def config_of(folder: str) -> RoundConfig:
    return stored_config(json.loads((Path(folder) / "manifest.json").read_text())["parameters"], folder)


def test_the_links_and_clicks_listed_are_those_counted(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = rank(place, "paper-2013")
    clicked = 0
    for row in rows_of(folder)[::3]:
        facts = explanation(folder, row["url"])
        assert len(facts["links"]) == row["base_links"]
        assert len(facts["clicks"]) == row["base_clicks"]
        for edge in (*facts["links"], *facts["clicks"]):
            assert row["url"] in (edge["source"], edge["target"])
        clicked += len(facts["clicks"])
    assert clicked
    most = max(rows_of(folder), key=lambda row: row["base_clicks"])
    assert main(["explain", "--round", folder, most["url"]]) == 0
    text = capsys.readouterr().out
    assert f"clicks directly from the queue to this URL or back: {most['base_clicks']} pairs of pages\n" in text


def test_the_hierarchy_explained_is_the_one_that_ranked(place: Path) -> None:
    folder = rank(place, "paper-2013")
    keywords = folders.read_table(folder, KEYWORDS)
    words = keywords["keyword"].combine_chunks()
    number = {word: index for index, word in enumerate(words.to_pylist())}
    relations = folders.read_table(folder, RELATIONS)
    hierarchy = module._hierarchy(keywords, relations, words, config_of(folder))
    matches = [match for row in rows_of(folder) for match in row["matches"]]
    for match in matches:
        assert ics(hierarchy, number[match["base"]], number[match["current"]]) == match["ics"]
    told = module.matched_pairs(folder, config_of(folder), matches)
    assert {"same", "ISA", "ancestor"} <= {pair["why"] for pair in told}
    parts = {(row["source"], row["target"]) for row in relations.to_pylist() if row["relation"] == "PART_OF"}
    for pair in told:
        if pair["why"] == "ancestor":
            for side in ("base", "current"):
                way = pair[f"{side}_path"]
                assert (way[0], way[-1]) == ("Top", pair[side])
                assert len(way) - 1 == keywords["layer"][number[pair[side]]].as_py()
    assert parts


def test_a_word_that_the_round_does_not_know_is_said_to_be_so(place: Path) -> None:
    folder = rank(place, "paper-2013")
    pair = {"base": "heron", "current": "no-such-word", "ics": 0.5}
    assert module.matched_pairs(folder, config_of(folder), [pair]) == [{**pair, "why": "unknown"}]


def test_what_the_caps_did(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = rank(place, "paper-2013")
    rows = rows_of(folder)
    row = next(row for row in rows if row["held_back"] == "max-per-host")
    own = [other for other in rows if other["host"] == row["host"]]
    assert main(["explain", "--round", folder, row["url"]]) == 0
    text = capsys.readouterr().out
    last = max(other["rank"] for other in own if other["selected"])
    assert f"--max-per-host 3: 3 URLs of {row['host']} are already selected, down to rank {last}" in text
    selected = sum(other["selected"] for other in rows)
    assert f"selected: {selected} of {len(rows)} in all, 3 of {len(own)} of {row['host']}" in text


def test_both_concepts(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = rank(place, "paper-2013")
    row = rows_of(folder)[0]
    facts = explanation(folder, row["url"], brief=True)
    assert facts["base_concept"]["concept"] == row["base_concept"]
    assert row["url"] in facts["current_concept"]["extent"]
    assert {match["current"] for match in row["matches"]} <= set(facts["current_concept"]["intent"])
    assert facts["links"] is None
    assert main(["explain", "--round", folder, row["url"], "--brief"]) == 0
    text = capsys.readouterr().out
    assert "the queue's concept: " in text
    assert "this URL's concept: " in text


def check_sum(text: str, score: float) -> None:
    """The contributions that are printed add up to the total, and the score follows from it as it is said."""
    table = text.split("contribution  words or pages\n")[1]
    lines = [line for line in table.splitlines() if re.match(rf"  [\w-]+ +{NUMBER} +{NUMBER} +{NUMBER}", line)]
    parts = [re.match(rf"  [\w-]+ +({NUMBER}) +({NUMBER}) +({NUMBER})", line) for line in lines]
    numbers = [tuple(map(float, part.groups())) for part in parts if part]
    total = float(re.search(rf"\n  total +({NUMBER})\n", table)[1])  # type: ignore[index]
    assert numbers
    for value, weight, contribution in numbers:
        assert value * weight == pytest.approx(contribution, abs=2e-6 * (1 + abs(value)))
    assert sum(number[2] for number in numbers) == pytest.approx(total, abs=1e-5)
    round_line = re.search(rf"the round: mean ({NUMBER}), spread ({NUMBER})", table)
    if "The base pages themselves have 1 on average" in table:
        assert 1 / (1 + math.exp(1 - total)) == pytest.approx(score, abs=1e-5)
        return
    if round_line is None:
        assert total == pytest.approx(score, abs=1e-5)
        return
    mean, spread = map(float, round_line.groups())
    assert 1 / (1 + math.exp((mean - total) / spread)) == pytest.approx(score, abs=1e-4)
    above = re.search(rf"({NUMBER}) spreads (above|below) the mean: score = .* = ({NUMBER})", table)
    assert above is not None
    assert float(above[1]) == pytest.approx(abs(total - mean) / spread, abs=1e-3)
    assert float(above[3]) == pytest.approx(score, abs=1e-6)


@pytest.mark.parametrize("ranker", RANKERS)
def test_every_ranker_tells_its_terms(ranker: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = rank(place, ranker)
    for row in rows_of(folder)[::15]:
        assert main(["explain", "--round", folder, row["url"]]) == 0
        text = capsys.readouterr().out
        assert f"rank {row['rank']} of " in text
        assert f"ranker {'semrank' if ranker == 'paper-2013' else ranker}" in text
        for reason in row["reasons"]:
            assert f"  {reason['term']} " in text
        if ranker != "breadth-first":
            check_sum(text, row["score"])
        assert main(["explain", "--round", folder, row["url"], "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["frontier"]["reasons"] == row["reasons"]


MEANINGS = {
    "ontology": (
        "    content: classes of the ontology in the words of the page",
        "    anchors: words of links to the URL, compared with the topic's",
        "    parents: words of pages that link to the URL, compared with the topic's",
    ),
    "hmm": ("    layer-N: ", "    linkers: number of pages"),
    "semrank": ("    text: words of the page, or about it if it is not fetched",),
    "pagerank": ("\nranker pagerank:\n",),
}


@pytest.mark.parametrize("ranker", MEANINGS)
def test_terms_mean_what_the_docs_say(ranker: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = rank(place, ranker)
    assert main(["explain", "--round", folder, rows_of(folder)[0]["url"], "--brief"]) == 0
    text = capsys.readouterr().out
    assert [meaning for meaning in MEANINGS[ranker] if meaning not in text] == []
    assert " 1 relevant linking pages" not in text


def test_the_depth_of_a_url_is_told_beside_the_limit(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = f"{place}/shallow"
    start = ["rank", "--snapshot", f"{place}/snapshot", "--previous", f"{place}/first", "--ranker", "cosine"]
    assert main([*start, "--max-depth", "1", "--output", folder, "--quiet"]) == 0
    harvest = folders.read_table(folder, HARVEST).to_pylist()
    chosen = {row["url"] for row in harvest}
    graph = nx.DiGraph([("start", row["url"]) for row in harvest if row["seed"]])
    links = folders.read_table(f"{place}/snapshot", LINKS).to_pylist()
    graph.add_edges_from(
        (link["source_url"], link["target_url"])
        for link in links
        if link["source_url"] in chosen and not link["nofollow"]
    )
    deep = [row for row in rows_of(folder) if row["held_back"] == "filter:max-depth"]
    assert deep
    depths = nx.single_source_shortest_path_length(graph, "start")
    assert any(row["url"] in depths for row in deep)
    for row in deep[::10]:
        told = f"{depths[row['url']] - 1} links" if row["url"] in depths else "more than 1 link"
        capsys.readouterr()
        assert main(["explain", "--round", folder, row["url"]]) == 0
        assert f"--max-depth 1: it is {told} away from the nearest seed" in capsys.readouterr().out


def test_links_marked_nofollow_are_listed_apart(place: Path) -> None:
    links = folders.read_table(f"{place}/snapshot", LINKS).to_pylist()
    marked = next(link for link in links if link["nofollow"])
    ends = {"url": marked["target_url"], "queue": pa.array([marked["source_url"]])}
    own = [link for link in links if link["target_url"] == ends["url"] and link["source_url"] == marked["source_url"]]
    counted, found = module.links_with(f"{place}/snapshot", ends["url"], ends["queue"], ends["queue"])
    assert [link["source"] for link in found] == [marked["source_url"]]
    assert bool(counted) == any(not link["nofollow"] for link in own)


def test_links_marked_nofollow_come_from_all_chosen_pages(place: Path) -> None:
    """The frontier holds what any chosen page links to, not only what the queue links to."""
    folder = rank(place, "cosine")
    harvest = folders.read_table(folder, HARVEST).to_pylist()
    chosen, queue = {row["url"] for row in harvest}, {row["url"] for row in harvest if row["queued"]}
    links = [link for link in folders.read_table(f"{place}/snapshot", LINKS).to_pylist() if link["nofollow"]]
    ranked = {row["url"] for row in rows_of(folder)}
    targets = {link["target_url"] for link in links if link["source_url"] in chosen - queue} & ranked
    assert targets
    for url in sorted(targets):
        expected = {link["source_url"] for link in links if link["target_url"] == url} & chosen
        found = explanation(folder, url)["nofollow_links"]
        assert {link["source"] for link in found if link["target"] == url} == expected


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["explain", *arguments]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    return told.err


def test_addresses_that_are_not_there(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = rank(place, "cosine")
    url = next(row["url"] for row in rows_of(folder) if row["url"].startswith("https://birds.example/raptors/r"))
    assert "did you mean https://birds.example?" in refused(capsys, "--round", folder, "birds.example")
    for meant in (url.replace("https://", "http://www."), url.removesuffix(".html"), url + "/"):
        assert f"similar URLs: {url}" in refused(capsys, "--round", folder, meant)
    assert "its host has no similar URL" in refused(capsys, "--round", folder, "https://nowhere.example/")
    seed = (place / "web" / "seeds.txt").read_text().splitlines()[-1]
    assert "it is one of the crawl's seeds" in refused(capsys, "--round", folder, seed)
    chosen = next(row["url"] for row in rows_of(str(place / "first")) if row["selected"])
    assert "the round starts from it" in refused(capsys, "--round", folder, chosen)
    # Other spellings of the same address are the same URL.
    assert main(["explain", "--round", folder, url.replace("https://birds", "HTTPS://Birds") + "#top"]) == 0


def test_snapshots_that_are_elsewhere(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, moved = rank(place, "paper-2013"), tmp_path / "moved"
    row = next(row for row in rows_of(folder) if row["base_links"])
    (place / "snapshot").rename(moved)
    try:
        assert main(["explain", "--round", folder, row["url"]]) == 0
        assert "/snapshot is missing; give its new place with --snapshot" in capsys.readouterr().out
        assert len(explanation(folder, row["url"], snapshot=str(moved))["links"]) == row["base_links"]
        shutil.copytree(moved, place / "snapshot")
        (place / "snapshot" / "manifest.json").write_text('{"kind": "snapshot"}')
        assert main(["explain", "--round", folder, row["url"]]) == 0
        assert "/snapshot was replaced; give the original" in capsys.readouterr().out
        other = str(place / "snapshot")
        assert "is not the snapshot that the round" in refused(
            capsys, "--round", folder, row["url"], "--snapshot", other
        )
    finally:
        shutil.rmtree(place / "snapshot", ignore_errors=True)
        moved.rename(place / "snapshot")


def test_numbers_that_json_can_not_hold(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "round"
    shutil.copytree(rank(place, "paper-2013"), folder)
    (path,) = (folder / "frontier").glob("*.parquet")
    table = pq.read_table(path)
    scores = pa.array([float("nan")] * table.num_rows)
    pq.write_table(table.set_column(table.schema.get_field_index("score"), table.schema.field("score"), scores), path)
    url = table["url"][0].as_py()
    assert main(["explain", "--round", str(folder), url]) == 0
    assert "score no number" in capsys.readouterr().out
    assert main(["explain", "--round", str(folder), url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["frontier"]["score"] is None


def test_a_url_is_found_as_the_snapshot_has_it(tmp_path: Path) -> None:
    """Parameters that `ingest` was told to take out, or to keep, are taken out or kept here, too."""
    told, shown = "https://a.example/p?ref=1&utm_source=x", "https://a.example/p?utm_source=x"
    (tmp_path / "links.jsonl").write_text(json.dumps({"source_url": "https://a.example/", "target_url": told}) + "\n")
    (tmp_path / "seeds.txt").write_text("https://a.example/\n")
    snapshot, output = f"{tmp_path}/snapshot", f"{tmp_path}/round"
    options = ["--drop-parameters", "ref", "--keep-parameters", "utm_source"]
    assert main(["ingest", "--links", f"{tmp_path}/links.jsonl", *options, "--output", snapshot, "--quiet"]) == 0
    seeds = ["--seeds", f"{tmp_path}/seeds.txt", "--ranker", "pagerank"]
    assert main(["rank", "--snapshot", snapshot, *seeds, "--output", output, "--quiet"]) == 0
    assert explanation(output, told)["frontier"]["url"] == shown
    Path(snapshot).rename(tmp_path / "moved")
    assert explanation(output, told, snapshot=f"{tmp_path}/moved")["frontier"]["url"] == shown
