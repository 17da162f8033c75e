"""The command `semrank evaluate`: on a small web by hand, and on the sample."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from semrank.pipelines import evaluation_plots, evaluation_topics
from semrank.pipelines.cli import main
from semrank.schemas.tables import CURVE, SUMMARY, SWEEP, TOPICS
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.ranking import registry
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.ranking.scores import SCORED_SCHEMA
from tests.support.hostile_inputs import damaged_group
from tests.support.plots import without_plots
from tests.support.sample import ingest_sample
from tests.support.snapshots import read_rows, table_of, write_snapshot

Rows = list[dict[str, Any]]

START = datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC)


def url(name: str) -> str:
    return f"https://a.example/{name}"


def by_url(score: Callable[[str], float], names: str) -> registry.Rank:
    """A ranker that scores by the URL's name."""
    known = dict(zip(text_ids(pa.array([url(name) for name in names])).tolist(), names, strict=True))

    def rank(facts: Facts) -> pa.Table:
        ids = facts.descriptions.url[facts.current]
        scores = [score(known[number]) for number in ids.tolist()]
        return pa.table([ids, scores, [[]] * len(ids)], schema=SCORED_SCHEMA)

    return rank


NAMES = "abcdefgh"
LINKS = [
    ("a", "b"),
    ("a", "c"),
    ("a", "d"),
    ("b", "e"),
    ("b", "f"),
    ("c", "g"),
    ("d", "h"),
    ("h", "a"),
    ("z", "b"),
    ("a", "z"),
]


@pytest.fixture
def small(tmp_path: Path) -> list[str]:
    """Arguments for a web of eight pages: the topic's are a, d and h, and z is linked to but no page."""
    snapshot = write_snapshot(
        tmp_path / "snapshot",
        [{"url": url(name), "title": name} for name in NAMES],
        [{"source_url": url(a), "target_url": url(b)} for a, b in LINKS],
        [],
    )
    topics = [{"topic": "t", "url": url(name), "is_seed": name == "a"} for name in "adhz"]
    pq.write_table(table_of(topics, TOPICS), tmp_path / "topics.parquet")
    return ["--snapshot", str(snapshot), "--topics", str(tmp_path / "topics.parquet"), "--quiet"]


def use(monkeypatch: pytest.MonkeyPatch, **rankers: registry.Rank) -> None:
    """Puts rankers of a test in place of the product's."""
    monkeypatch.setattr(registry, "RANKERS", (*rankers, registry.SEMRANK))
    monkeypatch.setattr(registry, "ranker", rankers.__getitem__)


def run(arguments: list[str], output: Path, *more: str) -> None:
    assert main(["evaluate", *arguments, "--output", str(output), *more]) == 0


def test_a_small_web_by_hand(small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    knowing, blind = by_url(lambda name: float(name in "dh"), NAMES), by_url(lambda _: 0.5, NAMES)
    use(monkeypatch, knowing=knowing, blind=blind)
    output = tmp_path / "evaluation"
    options = ["--rankers", "knowing,blind", "--mode", "content", "--marked-seeds", "--budget", "5", "--batch", "1"]
    run(small, output, *options)

    curve = read_rows(output / "curve")
    assert [(row["ranker"], row["pages"]) for row in curve] == [
        (r, n) for r in ("knowing", "blind") for n in range(1, 6)
    ]
    assert {(row["mode"], row["topic"], row["seed_set"]) for row in curve} == {("content", "t", 0)}
    # knowing: d h, then b c e by number; blind: b c d e f.
    assert [row["relevant"] for row in curve] == [1, 2, 2, 2, 2, 0, 0, 1, 1, 1]
    assert [row["recall"] for row in curve[:5]] == [0.5, 1, 1, 1, 1]
    np.testing.assert_allclose([row["harvest"] for row in curve[5:]], [0, 0, 1 / 3, 1 / 4, 1 / 5])
    np.testing.assert_allclose([row["f_measure"] for row in curve[:3]], [2 / 3, 1, 4 / 5])

    summary = {(row["ranker"], row["measure"]): row for row in read_rows(output / "summary")}
    assert summary["knowing", "harvest"]["mean"] == pytest.approx(2 / 5)
    assert summary["blind", "recall"]["mean"] == pytest.approx(1 / 2)
    assert summary["blind", "recall"]["difference"] == pytest.approx(-1 / 2)
    assert summary["knowing", "recall"]["difference"] is None
    assert summary["knowing", "harvest_area"]["mean"] == pytest.approx((1 + 1 + 2 / 3 + 2 / 4 + 2 / 5) / 5)
    assert {row["topics"] for row in summary.values()} == {1}
    assert {row["pages"] for row in summary.values()} == {5}

    sweep = {(row["ranker"], row["threshold"]): row for row in read_rows(output / "sweep")}
    best = sweep["knowing", 0.5]
    assert (best["selected"], best["relevant"], best["precision"], best["recall"]) == (2, 2, 1.0, 1.0)
    assert (sweep["blind", 0.5]["selected"], sweep["blind", 0.5]["precision"]) == (0, None)
    # All URLs that were ranked count, whether they were fetched or not: g and h were not.
    assert (sweep["blind", 0.45]["selected"], sweep["blind", 0.45]["relevant"]) == (7, 2)

    rejects = read_rows(output / "rejects")
    assert rejects == [{"stage": "topics", "reason": "not-in-snapshot", "record": f"t\t{url('z')}"}]
    manifest = json.loads((output / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["kind"] == "evaluation"
    assert manifest["topics"] == [{"topic": "t", "relevant": 3, "seeds": [[url("a")]]}]
    assert manifest["rejected"] == {"not-in-snapshot": 1}


def test_only_scores_between_0_and_1_are_swept(
    small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, wide=by_url(lambda name: 2.0 * (name == "b"), NAMES), narrow=by_url(lambda _: 1.0, NAMES))
    run(small, tmp_path / "evaluation", "--rankers", "wide,narrow", "--marked-seeds")
    assert {row["ranker"] for row in read_rows(tmp_path / "evaluation" / "sweep")} == {"narrow"}


def test_crawls_of_all_modes_and_seed_sets(small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known: list[tuple[bool, tuple[int, ...]]] = []

    def rank(facts: Facts) -> pa.Table:
        described = facts.descriptions.described[facts.current]
        known.append((bool(described.any()), tuple(facts.descriptions.url[facts.descriptions.seed].tolist())))
        return SCORED_SCHEMA.empty_table()

    use(monkeypatch, silent=rank)
    run(small, tmp_path / "evaluation", "--rankers", "silent", "--seeds-per-topic", "1", "--seed-sets", "4")
    rows = read_rows(tmp_path / "evaluation" / "curve")
    topic = text_ids(pa.array([url(name) for name in "adh"])).tolist()
    assert {seeds for _, seeds in known} <= {(number,) for number in topic}
    assert len({seeds for _, seeds in known}) > 1
    assert {described for described, _ in known} == {True, False}
    assert {(row["mode"], row["seed_set"]) for row in rows} <= {
        (m, s) for m in ("frontier", "content") for s in range(4)
    }
    assert {row["mode"] for row in rows} == {"frontier", "content"}
    # Without any score, the order is that of the URLs.
    manifest = json.loads((tmp_path / "evaluation" / "manifest.json").read_text(encoding="utf-8"))
    assert [len(seeds) for seeds in manifest["topics"][0]["seeds"]] == [1] * 4


def test_crawls_that_expand(small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages b, c and d are fetched for the seed a; then what the best of them links to, whether it scores or not."""
    use(monkeypatch, last=by_url(ord, NAMES), first=by_url(lambda name: -ord(name), NAMES))
    output, rankers = tmp_path / "evaluation", ["last", "first", "omniscient"]
    options = ["--mode", "expand", "--marked-seeds", "--budget", "5"]
    run(small, output, "--rankers", ",".join(rankers), *options)
    relevant = {
        name: [row["relevant"] for row in read_rows(output / "curve") if row["ranker"] == name] for name in rankers
    }
    # last: d to h, then c to g; first: b to e and f; whoever knows the labels expands d.
    assert relevant == {"last": [0, 0, 1, 2, 2], "first": [0, 0, 1, 1, 1], "omniscient": [0, 0, 1, 2, 2]}
    assert {row["mode"] for row in read_rows(output / "summary")} == {"expand"}


def test_all_modes_and_who_knows_the_labels(small: list[str], tmp_path: Path) -> None:
    output = tmp_path / "evaluation"
    run(small, output, "--rankers", "breadth-first,omniscient", "--mode", "all", "--marked-seeds", "--budget", "5")
    rows = {(row["mode"], row["ranker"], row["measure"]): row["mean"] for row in read_rows(output / "summary")}
    assert {mode for mode, _, _ in rows} == {"frontier", "content", "expand"}
    for mode in ("frontier", "content", "expand"):
        for measure in ("harvest_area", "recall"):
            assert rows[mode, "omniscient", measure] >= rows[mode, "breadth-first", measure]


def test_clicks_are_held_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session that looks for a page of the topic is unknown to the ranker, others are not."""
    clicks = [
        {"user_id": "u", "query": "d", "clicked_at": START, "url": url("b")},
        {"user_id": "v", "query": "c", "clicked_at": START, "url": url("d")},
        {"user_id": "w", "query": "c", "clicked_at": START, "url": url("b")},
    ]
    snapshot = write_snapshot(
        tmp_path / "snapshot",
        [{"url": url(name), "title": name} for name in NAMES],
        [{"source_url": url(a), "target_url": url(b)} for a, b in LINKS],
        [{**click, "keywords": ["asked"]} for click in clicks],
    )
    topics = [{"topic": "t", "url": url(name), "is_seed": name == "a"} for name in "adh"]
    (tmp_path / "topics.jsonl").write_text("\n".join(map(json.dumps, topics)), encoding="utf-8")
    seen: list[int] = []

    def rank(facts: Facts) -> pa.Table:
        seen.append(int(facts.descriptions.query.sum()))
        return SCORED_SCHEMA.empty_table()

    use(monkeypatch, counting=rank)
    arguments = ["--snapshot", str(snapshot), "--topics", str(tmp_path / "topics.jsonl"), "--quiet", "--marked-seeds"]
    options = ["--rankers", "counting", "--mode", "frontier", "--budget", "1"]
    run(arguments, tmp_path / "held", *options)
    run(arguments, tmp_path / "whole", *options, "--no-holdout-clicks")
    assert seen == [2, 3]


@pytest.fixture(autouse=True)
def plots(request: pytest.FixtureRequest) -> Iterator[None]:
    """Only one test draws plots."""
    with nullcontext() if request.function is test_the_sample else without_plots():
        yield


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Arguments for the sample, with two of its topics."""
    folder = tmp_path_factory.mktemp("sample")
    snapshot = ingest_sample(folder)
    topics = pq.read_table(folder / "web" / "topics.parquet")
    few = topics.filter(pa.compute.is_in(topics["topic"], pa.array(["birds", "sailing"])))
    pq.write_table(few, folder / "topics.parquet")
    return ["--snapshot", str(snapshot), "--topics", str(folder / "topics.parquet"), "--budget", "30", "--batch", "10"]


def test_the_sample(
    sample: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each kind of plot is drawn in `test_evaluation_plots`; all of them take longer than the crawls.
    monkeypatch.setattr(evaluation_plots, "PLOTS", evaluation_plots.PLOTS[:1])
    rankers = ["cosine", "keyword", "semrank"]
    output = tmp_path / "evaluation"
    run(sample, output, "--rankers", ",".join(rankers))
    shown = capsys.readouterr()
    for name in rankers:
        assert sum(line.startswith(name) for line in shown.out.splitlines()) == 2
    assert shown.err == "155 pages, 2 topics, 3 rankers\n"  # progress is for terminals
    curve, summary, sweep = (pq.read_table(output / name) for name in ("curve", "summary", "sweep"))
    assert curve.schema == CURVE.schema
    assert summary.schema == SUMMARY.schema
    assert sweep.schema == SWEEP.schema
    rows = {(row["ranker"], row["mode"], row["measure"]): row for row in summary.to_pylist()}
    for name in rankers:
        # The texts tell more than what is said about a page, and anything more than half of what there is to find.
        assert 0.3 < rows[name, "frontier", "harvest"]["mean"] <= rows[name, "content", "harvest"]["mean"] + 0.1
        row = rows[name, "content", "recall"]
        assert 0.5 < row["low"] <= row["mean"] <= row["high"] <= 1
    if evaluation_plots.available():
        assert (output / "plots" / "harvest.png").read_bytes().startswith(b"\x89PNG")
        assert b"</svg>" in (output / "plots" / "threshold.svg").read_bytes()


def test_the_same_twice(sample: list[str], tmp_path: Path) -> None:
    for name in ("one", "two"):
        run(
            sample, tmp_path / name, "--rankers", "semrank, cosine", "--mode", "frontier", "--seed-sets", "1", "--quiet"
        )
    for table in ("curve", "summary", "sweep"):
        first, second = (pq.read_table(tmp_path / name / table).to_pylist() for name in ("one", "two"))
        if table != "sweep":
            first, second = (_without_times(rows) for rows in (first, second))
        assert first == second


def _without_times(rows: Rows) -> Rows:
    return [
        {name: value for name, value in row.items() if name != "seconds"}
        for row in rows
        if row.get("measure") != "seconds"
    ]


def test_readings_of_semrank(sample: list[str], tmp_path: Path) -> None:
    """All profiles of the papers are rankers, and a round's options are those of the evaluation."""
    rankers = "semrank,paper-2013,paper-2008,formica-2006"
    common = ["--rankers", rankers, "--mode", "expand", "--seed-sets", "1", "--quiet"]
    run(sample, tmp_path / "paper", *common)
    run(
        sample, tmp_path / "seeds", *common, "--base", "seeds", "--log-scope", "topic", "--isa-needs-word", "--weight=0"
    )
    sweeps = {name: read_rows(tmp_path / name / "sweep") for name in ("paper", "seeds")}
    scores = {
        (name, ranker): [(row["threshold"], row["selected"]) for row in rows if row["ranker"] == ranker]
        for name, rows in sweeps.items()
        for ranker in rankers.split(",")
    }
    assert scores["paper", "semrank"] == scores["seeds", "semrank"]
    assert len({str(found) for found in scores.values()}) > 4
    # Without the extension the two papers say the same.
    assert scores["seeds", "paper-2013"] == scores["seeds", "paper-2008"]
    manifest = json.loads((tmp_path / "seeds" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["parameters"]["options"] == {
        "base": "seeds",
        "log_scope": "topic",
        "isa_needs_word": True,
        "weight": 0.0,
    }


def test_another_number_draws_other_seeds(sample: list[str], tmp_path: Path) -> None:
    seeds = []
    for number in ("0", "1"):
        options = ["--rankers", "keyword", "--mode", "frontier", "--random-seed", number, "--quiet", "--budget", "5"]
        run(sample, tmp_path / number, *options)
        manifest = json.loads((tmp_path / number / "manifest.json").read_text(encoding="utf-8"))
        seeds.append([topic["seeds"] for topic in manifest["topics"]])
    assert seeds[0] != seeds[1]
    assert all(len(found) == 4 for topics in seeds for sets in topics for found in sets)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--rankers", "cosine,nothing"], "--rankers: found 'nothing', expected one of focused, semrank"),
        (["--rankers", "cosine,cosine"], "--rankers: found cosine,cosine, expected each ranker once"),
        (["--rankers", "cosine,"], "--rankers: found an empty name, expected names separated by commas"),
        (["--rankers", "cosine", "--budget", "0"], "--budget: found 0, expected a whole number of at least 1"),
        (["--rankers", "cosine", "--batch", "-1"], "--batch: found -1, expected a whole number of at least 1"),
        (["--rankers", "cosine", "--seeds-per-topic", "0"], "--seeds-per-topic: found 0, expected"),
        (["--rankers", "cosine", "--seed-sets", "0"], "--seed-sets: found 0, expected a whole number of at least 1"),
        (
            ["--rankers", "cosine", "--random-seed", "-1"],
            "--random-seed: found -1, expected a whole number of at least 0",
        ),
        (
            ["--rankers", "cosine", "--mode", "both ways"],
            "--mode: found 'both ways', expected one of frontier, content",
        ),
        (["--rankers", "cosine", "--topics", "/nowhere/topics"], "/nowhere/topics: can't be read: No such file"),
        (["--rankers", "cosine", "--snapshot", "/nowhere"], "/nowhere: no such folder, expected a snapshot"),
        (["--rankers", "cosine", "--seeds-per-topic", "9"], "can be replayed on"),
        (["--rankers", "semrank", "--alpha", "0"], "--alpha: found 0.0, expected a number above 0"),
        (["--rankers", "semrank", "--base", "first"], "--base"),
        (["--rankers", "cosine", "--keywords", "nouns", "--language", "fr"], "found --language fr, expected one that"),
        (["--rankers", "ontology", "--topic", "Nothing"], "found the topic 'Nothing', expected one of its classes"),
        (["--rankers", "ontology", "--ontology", "/nowhere.ttl"], "/nowhere.ttl: can't be read"),
        (["--rankers", "cosine", "--speed", "9"], "--speed: unknown option"),
    ],
)
def test_bad_arguments(
    small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], change: list[str], message: str
) -> None:
    output = tmp_path / "evaluation"
    try:
        status = main(["evaluate", *small, "--output", str(output), *change])
    except SystemExit as end:
        status = int(end.code or 0)
    assert status == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert message in lines[0]
    assert not output.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"topic,url\n", "begins with 'topic,url"),
        (b"PAR1 and nothing more", "is not a readable Parquet file"),
        (b"", "none of its 0 topics can be replayed"),
    ],
)
def test_bad_topics(
    small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, message: str
) -> None:
    path = tmp_path / "bad"
    path.write_bytes(content)
    arguments = ["evaluate", *small, "--topics", str(path), "--rankers", "cosine", "--output", str(tmp_path / "out")]
    assert main(arguments) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert message in lines[0]


def test_a_topics_table_without_urls(small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(pa.table({"topic": ["t"]}), tmp_path / "bad.parquet")
    arguments = ["--topics", str(tmp_path / "bad.parquet"), "--rankers", "cosine", "--output", str(tmp_path / "out")]
    assert main(["evaluate", *small, *arguments]) == 2
    assert "column 'url' is missing" in capsys.readouterr().err


def test_topics_that_are_no_utf_8_are_rejects(tmp_path: Path) -> None:
    texts = pa.array([b"http://a.example/", b"http://a.example/\xff", b"http://b.example/"], pa.binary())
    urls = pa.Array.from_buffers(pa.string(), 3, texts.buffers())
    pq.write_table(pa.table({"topic": ["t", "t", None], "url": urls}), tmp_path / "topics.parquet")
    labels = evaluation_topics.read_topics(str(tmp_path / "topics.parquet"))
    assert labels.table["url"].to_pylist() == ["http://a.example/"]
    assert labels.rejects.select(["reason", "record"]).to_pylist() == [
        {"reason": "url-undecodable", "record": "t\thttp://a.example/\N{REPLACEMENT CHARACTER}"},
        {"reason": "topic-missing", "record": "\thttp://b.example/"},
    ]


def test_a_damaged_row_group_of_topics_is_a_reject(tmp_path: Path) -> None:
    table = pa.table({"topic": ["t"] * 9, "url": [f"http://a.example/{row}" for row in range(9)]})
    path = tmp_path / "topics.parquet"
    path.write_bytes(damaged_group(table, 1))
    labels = evaluation_topics.read_topics(str(path))
    assert labels.table["url"].to_pylist() == [f"http://a.example/{row}" for row in (0, 1, 2, 6, 7, 8)]
    assert labels.rejects.to_pylist() == [
        {"stage": "topics", "reason": "row-group-damaged", "record": f"--topics {path} row group 1, from row 0"}
    ]


def test_rows_of_topics_that_are_no_use(tmp_path: Path) -> None:
    path = tmp_path / "topics.jsonl"
    rows = [
        '{"topic": "t", "url": "HTTPS://A.example/x#y"}',
        "nonsense",
        "[1]",
        '{"topic": 3, "url": "https://b.example/"}',
    ]
    rows += ['{"url": "https://b.example/"}', '{"topic": "t", "url": "mailto:a@b.example"}', '{"topic": "t"}']
    path.write_text("\n".join(rows), encoding="utf-8")
    labels = evaluation_topics.read_topics(str(path))
    assert labels.table.to_pylist() == [{"topic": "t", "url": "https://a.example/x", "is_seed": None}]
    reasons = labels.rejects["reason"].to_pylist()
    assert len(reasons) == 6
    assert reasons[:3] == ["json-invalid", "not-an-object", "value-invalid"]
    assert "topic-missing" in reasons


def test_topics_that_cannot_be_replayed(small: list[str], tmp_path: Path) -> None:
    """A topic without marked seeds, and one whose only page is its seed."""
    rows = [("t", "a", True), ("t", "d", None), ("unmarked", "b", False), ("alone", "c", True), ("t", "d", True)]
    topics = [{"topic": topic, "url": url(name), "is_seed": mark} for topic, name, mark in rows[:-1]]
    pq.write_table(table_of([*topics, topics[1]], TOPICS), tmp_path / "topics.parquet")
    output = tmp_path / "evaluation"
    run(small, output, "--rankers", "keyword", "--marked-seeds")
    assert {(row["reason"], row["record"]) for row in read_rows(output / "rejects")} == {
        ("no-marked-seeds", "unmarked"),
        ("too-few-pages", "alone"),
    }
    manifest = json.loads((output / "manifest.json").read_text(encoding="utf-8"))
    assert [(topic["topic"], topic["relevant"]) for topic in manifest["topics"]] == [("t", 2)]


def test_a_finished_evaluation_stays(small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*small, "--rankers", "keyword", "--marked-seeds"]
    run(arguments, tmp_path / "evaluation")
    assert main(["evaluate", *arguments, "--output", str(tmp_path / "evaluation")]) == 2
    assert "--overwrite replaces it" in capsys.readouterr().err
    run(arguments, tmp_path / "evaluation", "--overwrite")


def test_without_a_plotting_library(small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [option for option in small if option != "--quiet"]
    run([*arguments, "--rankers", "keyword", "--marked-seeds"], tmp_path / "evaluation")
    assert capsys.readouterr().out.splitlines()[-1] == evaluation_plots.MISSING
    assert not (tmp_path / "evaluation" / "plots").exists()
    assert pq.read_table(tmp_path / "evaluation" / "curve").num_rows
