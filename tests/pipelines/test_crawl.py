"""A crawl over its rounds: `semrank ls`, `semrank report --rounds`, and `--metrics`."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from prometheus_client.parser import text_string_to_metric_families

from semrank.pipelines.cli import main
from semrank.pipelines.crawl import crawl_figures, round_figures
from semrank.schemas.errors import InputError
from tests.support.browser import data_of, in_browser
from tests.support.sample import ingest_sample

DASHBOARD = Path(__file__).resolve().parents[2] / "deploy" / "grafana" / "semrank.json"


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rounds of the sample web, an unfinished third, and a snapshot, all in one folder."""
    folder = tmp_path_factory.mktemp("crawl")
    snapshot = str(ingest_sample(folder))
    common = ["rounds", "--snapshot", snapshot, "--seeds", f"{folder}/web/seeds.txt", "--max-urls", "10", "--quiet"]
    metrics = ["--metrics", str(folder / "semrank.prom"), "--no-semrank-terms"]
    assert main([*common, "--rounds", "2", "--output", str(folder / "rounds"), *metrics]) == 0
    harvest = folder / "rounds" / "round-0002" / "harvest"
    harvest.mkdir(parents=True)
    (harvest / "part-00000.parquet").write_bytes(b"")
    return folder


def rows_of(folder: Path, table: str) -> list[dict[str, Any]]:
    return [row for path in sorted((folder / table).glob("*")) for row in pq.read_table(path).to_pylist()]


def test_figures_are_those_of_the_tables(crawl: Path) -> None:
    for number, figures in enumerate(crawl_figures(str(crawl / "rounds"))):
        folder = crawl / "rounds" / f"round-{number:04d}"
        frontier = rows_of(folder, "frontier")
        chosen = [row for row in frontier if row["selected"]]
        assert (figures.ranked, figures.selected) == (len(frontier), len(chosen))
        assert figures.new == sum(not row["fetched"] for row in chosen)
        assert figures.new + figures.known == figures.selected
        assert figures.hosts == len({row["host"] for row in chosen})
        assert figures.mean_score == pytest.approx(sum(row["score"] for row in chosen) / len(chosen))
        assert sum(figures.held_back.values()) == len(frontier) - len(chosen)
        assert figures.harvested == len(rows_of(folder, "harvest"))


def test_ls_in_a_process_of_its_own(crawl: Path) -> None:
    """The first file that a process reads is held to the same bounds of memory as later ones."""
    command = [sys.executable, "-m", "semrank.pipelines.ls", str(crawl / "rounds")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.startswith("round ")


def test_ls_lists_finished_and_unfinished_rounds(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ls", str(crawl / "rounds")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["round", "round-0000", "round-0001", "round-0002:"]
    assert "unfinished" in lines[-1]
    heads = lines[0].split()
    for line, figures in zip(lines[1:], crawl_figures(str(crawl / "rounds")), strict=False):
        cells = dict(zip(heads, line.split(), strict=True))
        assert cells["selected"] == str(figures.selected)
        assert cells["ranker"] == figures.ranker
    assert main(["ls", str(crawl / "rounds"), "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert found == [figures.as_dict() for figures in crawl_figures(str(crawl / "rounds"))]


@pytest.mark.parametrize("folder", ["snapshot", "web", "nothing", "rounds/round-0000"])
def test_a_folder_without_rounds_is_refused(crawl: Path, folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ls", str(crawl / folder)]) == 2
    assert main(["report", "--rounds", str(crawl / folder), "--output", str(crawl / "none.html")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert all("round-0000" in line for line in lines)
    assert ("is itself a round" in lines[0]) == (folder == "rounds/round-0000")
    assert not (crawl / "none.html").exists()


def test_the_page_of_a_crawl(crawl: Path, tmp_path: Path) -> None:
    output = crawl / "rounds" / "crawl.html"
    round_page = crawl / "rounds" / "round-0001.html"
    assert main(["report", "--round", str(crawl / "rounds" / "round-0001"), "--output", str(round_page)]) == 0
    assert main(["report", "--rounds", str(crawl / "rounds"), "--output", str(output)]) == 0
    page = output.read_text(encoding="utf-8")
    facts = data_of(page)["crawl"]
    assert [row["selected"] for row in facts["rounds"]] == [10, 10]
    assert [row["page"] for row in facts["rounds"]] == [None, "round-0001.html"]
    assert (
        main(["report", "--round", str(crawl / "rounds" / "round-0001"), "--output", f"{tmp_path}/round-0000.html"])
        == 0
    )
    assert main(["report", "--rounds", str(crawl / "rounds"), "--output", f"{tmp_path}/crawl.html"]) == 0
    beside = data_of((tmp_path / "crawl.html").read_text(encoding="utf-8"))["crawl"]["rounds"]
    assert [row["page"] for row in beside] == [None, None], "the page of another round is not linked"
    lines = {line["name"]: line["points"] for chart in facts["charts"] for line in chart["lines"]}
    assert lines["selected"] == [[0, 10], [1, 10]]
    shown = in_browser(page, "document.querySelectorAll('tr.row').forEach((row) => row.click());", tmp_path)
    assert re.search(r'<a href="round-0001\.html">round-0001</a>', shown)
    assert shown.count("<figure>") == len(facts["charts"])
    assert "continued from" in shown
    figures = {figure.partition("<b>")[2].partition("</b>")[0]: figure for figure in shown.split("<figure>")[1:]}
    assert "<circle" in figures["score and relevance"], "a line of one point is drawn as a point"
    counts = re.findall(r'text-anchor="end" class="soft">([^<]+)<', figures["hosts of the selected URLs"])
    assert counts
    assert all(text.isdigit() for text in counts), "hosts are counted in whole numbers"


def test_metrics_are_those_of_the_last_round(crawl: Path) -> None:
    text = (crawl / "semrank.prom").read_text(encoding="utf-8")
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    figures = round_figures(str(crawl / "rounds" / "round-0001"))
    assert found["semrank_urls_ranked",] == figures.ranked
    assert found["semrank_urls_selected", "new"] == figures.new
    assert found["semrank_urls_selected", "known"] == figures.known
    assert found["semrank_rows", "round", "frontier"] == figures.ranked
    assert found["semrank_urls_held_back", "max-urls"] == figures.held_back["max-urls"]


def test_metrics_of_a_snapshot(crawl: Path, tmp_path: Path) -> None:
    command = ["ingest", "--warc", f"{crawl}/web/warc/*", "--output", str(tmp_path / "snapshot"), "--quiet"]
    assert main([*command, "--metrics", str(tmp_path / "semrank.prom")]) == 0
    text = (tmp_path / "semrank.prom").read_text(encoding="utf-8")
    pages = json.loads((tmp_path / "snapshot" / "manifest.json").read_text())["rows"]["pages"]
    assert f'semrank_rows{{kind="snapshot",table="pages"}} {pages:.1f}\n' in text


def test_metrics_replace_nothing_else(crawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine", encoding="utf-8")
    command = ["ingest", "--warc", f"{crawl}/web/warc/*", "--output", str(tmp_path / "snapshot"), "--quiet"]
    assert main([*command, "--metrics", str(path)]) == 2
    assert f"--metrics {path}: begins with 'mine', expected a new file" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "snapshot").exists()


def test_metrics_that_cannot_be_written(crawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "missing" / "semrank.prom"
    command = ["ingest", "--warc", f"{crawl}/web/warc/*", "--output", str(tmp_path / "snapshot"), "--quiet"]
    assert main([*command, "--metrics", str(path)]) == 2
    assert f"--metrics {path}: its folder is missing" in capsys.readouterr().err
    assert not (tmp_path / "snapshot").exists()


def test_the_dashboard_asks_for_metrics_that_are_written(crawl: Path) -> None:
    written = set(re.findall(r"^# TYPE (semrank_\w+)", (crawl / "semrank.prom").read_text(), re.MULTILINE))
    asked = set(re.findall(r"semrank_\w+", " ".join(_expressions(json.loads(DASHBOARD.read_text())))))
    optional = {"semrank_harvest_relevance"}
    assert asked - optional <= written
    assert len(asked) > 8


def _expressions(dashboard: dict[str, Any]) -> list[str]:
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def test_an_unfinished_round_has_no_figures(crawl: Path) -> None:
    with pytest.raises(InputError):
        round_figures(str(crawl / "rounds" / "round-0002"))


def test_drift_is_measured_from_the_first_topic(crawl: Path, tmp_path: Path) -> None:
    """Orthogonal topics have drift 1, equal ones 0, (1, 1) and (1, 0) 1 - 1 / sqrt 2."""
    folder = tmp_path / "round-0000"
    shutil.copytree(crawl / "rounds" / "round-0000", folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["inputs"]["topic"] = {"words": [["heron", 1.0], ["tern", 1.0]], "seeds": 2}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    for first, drift in (({"heron": 2.0, "tern": 2.0}, 0), ({"owl": 1.0}, 1), ({"heron": 3.0}, 1 - 0.5**0.5)):
        assert round_figures(str(folder), first).drift == pytest.approx(drift)
