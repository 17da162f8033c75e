"""The README's chart has the figures of the evaluations that it is drawn from."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from semrank.schemas.tables import SUMMARY

pytest.importorskip("matplotlib", reason="Matplotlib draws the chart (extra: benchmarks)")

from benchmarks import harvest_chart

FIGURES = {"focused": 0.3, "cosine": 0.2, "omniscient": 0.5}


def evaluation(folder: Path) -> Path:
    (folder / "summary").mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"kind": "evaluation"}), encoding="utf-8")
    rows = [
        {"ranker": ranker, "mode": mode, "measure": measure, "pages": 100, "topics": 7, "mean": mean, "low": mean - 0.1}
        | {"high": mean + 0.1}
        for ranker, mean in FIGURES.items()
        for mode in ("frontier", "content")
        for measure in ("harvest", "recall")
    ]
    pq.write_table(pa.Table.from_pylist(rows, SUMMARY.schema), folder / "summary" / "part-00000.parquet")
    return folder


def test_the_chart_shows_what_was_measured(tmp_path: Path) -> None:
    folder = evaluation(tmp_path / "evaluation")
    found = harvest_chart.rates(str(folder), "frontier")
    assert {ranker: row["mean"] for ranker, row in found.items()} == FIGURES
    output = tmp_path / "images" / "harvest.svg"
    command = ["--evaluation", f"Web={folder}", "--evaluation", f"Other={folder}", "--output", str(output)]
    assert harvest_chart.main(command) == 0
    drawn = output.read_bytes()
    for text in ("Web, 7 topics", "Other, 7 topics", "focused", "cosine", "0.30", "0.20", "knows the labels"):
        assert f"<!-- {text} -->".encode() in drawn
    assert b"breadth-first" not in drawn
    assert harvest_chart.main(command) == 0
    assert output.read_bytes() == drawn
