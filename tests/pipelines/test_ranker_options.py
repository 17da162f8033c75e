"""Options of single rankers: a round has the scores that the functions in memory give with the same settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from semrank.pipelines.cli import main
from semrank.pipelines.config import ranker_options
from semrank.schemas.tables import CLICKS, LINKS, PAGES
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.ranking import registry
from semrank.transforms.replay.web import Web
from tests.support.plots import without_plots
from tests.support.sample import ingest_sample
from tests.support.snapshots import read_rows

OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("cosine", {"cosine_k": 0.0, "cosine_b": 0.0}),
    ("relevancy-context", {"rcg_alpha": 0.9}),
    ("ontology", {"ontology_r1": 2.0, "ontology_r2": 0.25, "ontology_n": 0.9, "ontology_theta": 3.0}),
    ("ontology", {"ontology_combine": "logarithms", "sigma": "as-printed"}),
    ("cosine", {"keywords": "nouns"}),
]


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ingest_sample(tmp_path_factory.mktemp("sample"))


@pytest.mark.parametrize(("ranker", "options"), OPTIONS)
def test_a_round_and_memory_agree(ranker: str, options: dict[str, Any], snapshot: Path, tmp_path: Path) -> None:
    seeds = snapshot.parent / "web" / "seeds.txt"
    given = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    start = ["rank", "--snapshot", str(snapshot), "--seeds", str(seeds), "--ranker", ranker, "--quiet"]
    assert main([*start, "--output", str(tmp_path / "round"), *given]) == 0
    found = {row["url"]: row["score"] for row in read_rows(tmp_path / "round" / "frontier")}
    tables = [pq.read_table(snapshot / schema.name, schema=schema.schema) for schema in (PAGES, LINKS, CLICKS)]
    harvest = [row["url"] for row in read_rows(tmp_path / "round" / "harvest")]
    known = text_ids(pa.array(harvest, pa.string()))
    urls = pa.array(sorted(found), pa.string())
    ids = text_ids(urls)
    scores = {}
    for name, chosen in (("default", {}), ("given", options)):
        web = Web.of_tables(*tables, nouns="keywords" in chosen)
        facts = web.facts(seeds=known, harvested=known, current=ids, content_known=True)
        table = registry.ranker(ranker, ranker_options(ranker, chosen))(facts)
        by_id = dict(zip(table["url_id"].to_pylist(), table["score"].to_pylist(), strict=True))
        scores[name] = {
            url: by_id[number] for url, number in zip(urls.to_pylist(), text_ids(urls).tolist(), strict=True)
        }
    assert found == pytest.approx(scores["given"], abs=1e-6)
    assert found != pytest.approx(scores["default"], abs=1e-6)


def test_an_evaluation_takes_them(snapshot: Path, tmp_path: Path) -> None:
    topics = snapshot.parent / "web" / "topics.parquet"
    start = ["evaluate", "--snapshot", str(snapshot), "--topics", str(topics), "--rankers", "cosine", "--quiet"]
    sweeps = []
    for name, more in (
        ("default", []),
        ("given", ["--cosine-k", "0", "--cosine-b", "0"]),
        ("nouns", ["--keywords", "nouns"]),
    ):
        crawls = ["--mode", "content", "--budget", "20", "--seed-sets", "1", "--output", str(tmp_path / name)]
        with without_plots():
            assert main([*start, *crawls, *more]) == 0
        sweeps.append(read_rows(tmp_path / name / "sweep"))
    assert sweeps[0] != sweeps[1]
    assert sweeps[0] != sweeps[2]
    manifest = json.loads((tmp_path / "given" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["parameters"]["options"] == {"cosine_k": 0.0, "cosine_b": 0.0}
