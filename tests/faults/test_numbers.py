"""No NaN and no infinity reaches a frontier, and each number stays inside its formula's range."""

from __future__ import annotations

import importlib
import math
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from semrank.pipelines.cli import main
from semrank.pipelines.config import PROFILES
from semrank.transforms.columnar.arrays import sum_by_key, sum_rows
from semrank.transforms.crawls.html import MAX_TEXT_CHARS
from semrank.transforms.frontier.overview import HostSums
from semrank.transforms.ranking import registry
from tests.support.small_crawls import Crawl, crawls
from tests.support.snapshots import read_rows, write_snapshot
from tests.support.sources import paths
from tests.support.strategies import WORDS, SmallSnapshot, small_snapshots

WHOLE = ("semrank", "focused", "breadth-first", "pagerank", "hits", "harmonic", "cosine", "keyword", "ontology")
"""Rankers whose scores lie in [0, 1] by their definitions."""

OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "weight": st.sampled_from([0.0, 1.0, 5e-324, 1 - 2**-53]),
        "alpha": st.sampled_from([5e-324, 1e-300, 0.5]),
        "top_probability": st.sampled_from(["min", "max", 5e-324, 1.0]),
        "smoothing": st.sampled_from([0.0, 5e-324, 1e9]),
        "threshold": st.sampled_from([0.0, 5e-324, 1.0]),
        "min_support": st.sampled_from([1, 2**31]),
        "keywords_per_page": st.sampled_from([1, 2**31]),
        "max_urls": st.sampled_from([1, 2**62]),
        "query": st.sampled_from([*WORDS, "", "\0", "nothing known"]),
        "mix": st.sampled_from(["1:1", "0:1"]),
    },
)
"""Values at the ends of the options' ranges."""


def numbers(value: Any) -> list[float]:
    """All numbers in a row, inside lists and structs too."""
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, int | float):
        return [float(value)]
    if isinstance(value, dict):
        return [number for element in value.values() for number in numbers(element)]
    return [number for element in value for number in numbers(element)] if isinstance(value, list) else []


def check_round(folder: Path, ranker: str) -> None:
    for table in ("frontier", "keywords", "relations", "base_concepts", "harvest"):
        for row in read_rows(folder / table):
            assert all(map(math.isfinite, numbers(row))), (table, row)
    frontier = read_rows(folder / "frontier")
    assert [row["rank"] for row in frontier] == list(range(1, len(frontier) + 1))
    # A budget may put a lower score before a higher one, but none is used here.
    scores = [row["score"] for row in frontier]
    assert all(score >= 0 for score in scores)
    for row in frontier:
        assert 0 <= row["extension"] <= 1 + 1e-12, row
        assert 0 <= row["intension"] <= 1 + 1e-12, row
        assert min(row["base_links"], row["base_clicks"]) >= 0
        if ranker in WHOLE:
            assert row["score"] <= 1 + 1e-12, row
        for match in row["matches"] or []:
            assert 0 <= match["ics"] <= 1 + 1e-12, match
    keywords = read_rows(folder / "keywords")
    for row in keywords:
        assert 0 <= row["probability"] <= 1, row
        assert row["clicks"] >= 0
    for row in read_rows(folder / "relations"):
        assert row["support"] >= 1


def run(snapshot: SmallSnapshot, arguments: list[str], ranker: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_snapshot(place / "snapshot", snapshot.pages, snapshot.links, snapshot.clicks)
        (place / "seeds.txt").write_text("\n".join(snapshot.seeds), encoding="utf-8")
        named = ["--snapshot", str(place / "snapshot"), "--seeds", str(place / "seeds.txt"), "--quiet"]
        assert main(["rank", *named, "--output", str(place / "round"), *arguments]) == 0
        check_round(place / "round", ranker)


SETTINGS: dict[str, Any] = {
    "deadline": None,
    "derandomize": True,
    "phases": (Phase.explicit, Phase.generate),  # a run takes a second: shrinking would take minutes
    "suppress_health_check": (HealthCheck.too_slow, HealthCheck.data_too_large),
}


@pytest.mark.parametrize("profile", PROFILES)
@settings(max_examples=2, **SETTINGS)
@given(snapshot=small_snapshots(), options=OPTIONS)
def test_profiles(profile: str, snapshot: SmallSnapshot, options: dict[str, Any]) -> None:
    arguments = ["--profile", profile, *(f"--{name.replace('_', '-')}={value}" for name, value in options.items())]
    run(snapshot, arguments, PROFILES[profile].get("ranker", "semrank"))


@pytest.mark.parametrize("ranker", [ranker for ranker in registry.RANKERS if ranker not in ("semrank", "focused")])
@settings(max_examples=1, **SETTINGS)
@given(snapshot=small_snapshots(smallest_queue=2))
def test_rankers(ranker: str, snapshot: SmallSnapshot) -> None:
    run(snapshot, ["--ranker", ranker, "--query", "lattice network"], ranker)


MOST = MAX_TEXT_CHARS // 2
"""How often a word may occur on a page: it takes a character, and one between it and the next."""


@pytest.mark.parametrize("ranker", [ranker for ranker in registry.RANKERS if ranker != registry.SEMRANK])
@settings(max_examples=40, deadline=None)
@given(crawl=crawls(), factor=st.sampled_from([1, 1, MOST // 30]))
def test_scores_of_any_crawl(ranker: str, crawl: Crawl, factor: int) -> None:
    pages = {
        url: replace(page, text={word: count * factor for word, count in page.text.items()})
        for url, page in crawl.pages.items()
    }
    table = registry.ranker(ranker)(replace(crawl, pages=pages).facts())
    assert table["url_id"].to_pylist() == crawl.current
    for row in table.to_pylist():
        assert all(map(math.isfinite, numbers(row))), row
        assert 0 <= row["score"] <= (1 + 1e-12 if ranker in WHOLE else math.inf), row


@pytest.mark.parametrize("option", ["weight", "threshold", "alpha", "top-probability", "smoothing"])
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e400", "-1", "-5e-324"])
def test_options_that_are_no_numbers(
    option: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = ["--snapshot", str(tmp_path), "--seeds", str(tmp_path), "--output", str(tmp_path / "round")]
    assert main(["rank", *named, f"--{option}={value}"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"--{option}: found" in error


NO_COUNTS = {"extent", "intent", "source", "target", "layer", "base", "current", "position", "seed_set", "status"}
"""Columns of whole numbers that count nothing which grows with a crawl or a log."""


def whole_fields(kind: pa.DataType, name: str) -> Iterator[tuple[str, pa.DataType]]:
    if pa.types.is_list(kind):
        yield from whole_fields(kind.value_type, name)
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from whole_fields(field.type, field.name)
    elif pa.types.is_integer(kind):
        yield name, kind


def test_counts_have_64_bits() -> None:
    fields = set()
    for path in sorted({*paths()} - {"pipelines/__main__.py"}):
        module = importlib.import_module("semrank." + path.removesuffix(".py").replace("/", "."))
        for value in vars(module).values():
            schema = getattr(value, "schema", value)
            if isinstance(schema, pa.Schema):
                fields |= {found for field in schema for found in whole_fields(field.type, field.name)}
    assert {"clicks", "support", "base_clicks", "count", "times"} <= {name for name, _ in fields}
    assert {name for name, kind in fields if kind != pa.int64()} == NO_COUNTS


MANY = 3 * 10**9
"""More than 32 bits hold."""


def test_counts_of_a_thousand_million_clicks() -> None:
    one, counts = np.ones(3, dtype=np.int64), np.full(3, MANY)
    assert sum_rows((one, one + 1), counts)[-1].tolist() == [3 * MANY]
    summed = sum_by_key(pa.table({"word": one, "clicks": counts}), "clicks")
    assert summed["clicks"].to_pylist() == [3 * MANY]
    hosts = HostSums(np.array([7]), np.array([MANY]), np.array([MANY]), np.array([1.0]))
    added = HostSums.added([hosts] * 3)
    assert (added.urls.tolist(), added.selected.tolist()) == ([3 * MANY], [3 * MANY])


def test_numbers_are_found_inside_rows() -> None:
    row = pa.table({"a": [1.5], "b": [[{"c": math.inf}]], "d": [None], "e": [True]}).to_pylist()[0]
    assert numbers(row) == [1.5, math.inf]
