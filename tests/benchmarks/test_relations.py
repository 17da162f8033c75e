"""Both sides of the benchmark of relations learn what their definition says, and a difference does not go unseen."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks import relations
from semrank.transforms.weblog.relations import ISA, PART_OF

CLICKS = 3_000


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("input")
    relations.write_input(folder, CLICKS)
    return folder


def by_hand(folder: Path, most: int) -> dict[str, Counter[tuple[int, int]]]:
    """Supports of the relations that hold, as the click log's section of the method defines them."""
    words = pq.read_table(folder / "vocabulary.parquet").to_pylist()
    numbers = {row["word"]: number for number, row in enumerate(words)}
    clicked: dict[str, Counter[int]] = defaultdict(Counter)
    scopes: dict[tuple[str, str | None], set[int]] = defaultdict(set)
    for row in pq.read_table(folder / "clicks").to_pylist():
        for word in {numbers[word] for word in row["keywords"]}:
            clicked[row["url"]][word] += 1
            scopes[row["url"], row["user_group"]].add(word)
    best = {
        url: set(sorted(counts, key=lambda word, counts=counts: (-counts[word], word))[:most])  # type: ignore[misc]
        for url, counts in clicked.items()
    }
    isa, part_of = set(), set()
    by_url: dict[str, dict[str | None, set[int]]] = defaultdict(dict)
    for (url, scope), found in scopes.items():
        by_url[url][scope] = found & best[url]
        isa |= {(a, b, url) for a in found & best[url] for b in found & best[url] if a < b}
    for link in pq.read_table(folder / "links").to_pylist():
        source, target = link["source_url"], link["target_url"]
        if link["nofollow"] or source == target:
            continue
        for scope in by_url[source].keys() & by_url[target].keys():
            part_of |= {
                (a, b, source, target)
                for a in by_url[source][scope]
                for b in by_url[target][scope]
                if words[a]["base_support"] and a != b
            }
    related = Counter((a, b) for a, b, _ in isa)
    parts = Counter((a, b) for a, b, _, _ in part_of)
    # ISA beats Part-Of; of two opposite Part-Of the better supported holds, on a tie neither.
    held = {
        (a, b): support
        for (a, b), support in parts.items()
        if (min(a, b), max(a, b)) not in related and support > parts[b, a]
    }
    return {ISA: related, PART_OF: Counter(held)}


@pytest.mark.parametrize("most", [2, 50])
def test_both_sides_learn_as_by_hand(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    pytest.importorskip("duckdb")
    monkeypatch.setattr(relations, "MAX_WORDS", most)
    expected = by_hand(written, most)
    assert min(map(len, expected.values())) > 20
    found, other = tmp_path / "found", tmp_path / "other"
    relations.learn_relations(written, found)
    relations.learn_with_duckdb(written, other)()
    for name, supports in expected.items():
        rows = pq.read_table(found / name).to_pylist()
        assert {(row["source"], row["target"]): row["support"] for row in rows} == supports
    assert relations.check_equal(found, other) == {name: len(supports) for name, supports in expected.items()}

    lacking = other / f"{ISA}.parquet"
    pq.write_table(pq.read_table(lacking).slice(1), lacking)
    with pytest.raises(RuntimeError, match="ISA: found"):
        relations.check_equal(found, other)


@pytest.mark.usefixtures("forked_runs")
def test_a_run_compares_with_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("duckdb")
    monkeypatch.setattr(relations, "QUICK_CLICKS_ROWS", CLICKS)
    (result,) = relations.run(quick=True)
    assert (result["peer"], result["aim"]) == ("DuckDB, one thread", 2.5)
    assert set(result["counts"]) == {"ISA", "PART_OF"}
    assert result["ratio"] is not None
    assert result["cpu_ratio"] is not None
    assert result["note"].startswith("3,000 clicks, ")


@pytest.mark.usefixtures("forked_runs")
def test_without_duckdb_ours_is_told_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relations, "QUICK_CLICKS_ROWS", CLICKS)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    (result,) = relations.run(quick=True)
    assert (result["met"], result["ratio"]) == (None, None)
    assert result["ours_s"] is not None
    assert result["note"].endswith("duckdb is not installed")
