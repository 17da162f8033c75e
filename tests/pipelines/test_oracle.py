"""`semrank rank` against the definitions evaluated by brute force, and the definitions against P13's examples."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pipelines import rank
from pipelines.cli import main
from tests.oracle import Hierarchy, Oracle, concepts, rank_oracle, similarity
from tests.pipelines.test_rank import P13_CLICKS, P13_KEYWORDS, P13_LINKS, P13_PAGES, url
from tests.snapshots import read_rows, write_snapshot
from tests.strategies import WORDS, SmallSnapshot, small_snapshots

PROFILES: dict[str, dict[str, Any]] = {
    "paper-2013": {"weight": 0.4, "intension_norm": "min", "extension": "links"},
    "paper-2008": {"weight": None, "intension_norm": "min", "extension": "links"},
    "formica-2006": {"weight": 0.4, "intension_norm": "max", "extension": "objects"},
}

OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "min_support": st.sampled_from([1, 2, 3]),
        "min_relation_support": st.just(2),
        "max_keywords_per_url": st.sampled_from([1, 2]),
        "alpha": st.sampled_from([0.05, 0.5]),
        "top_probability": st.sampled_from(["min", 0.3, 1.0]),
        "smoothing": st.sampled_from([0.5, 2.0]),
        "user_groups": st.just("one"),
        "query": st.sampled_from(WORDS),
    },
)

SEARCH = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    # A run takes more than a second, so that shrinking would take minutes; the examples are small as they are.
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
)


def run_and_compare(
    snapshot: SmallSnapshot, profile: str, options: Mapping[str, Any], *, partitions: int = 1, weight: float | None = None
) -> Oracle:
    """Runs the pipeline in a folder of its own and holds what it wrote to the definitions."""
    settings_of_profile = {**PROFILES[profile], **({} if weight is None else {"weight": weight})}
    expected = rank_oracle(
        snapshot.pages, snapshot.links, snapshot.clicks, snapshot.seeds, **settings_of_profile, **options
    )
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(rank, "partition_count", lambda _: partitions):
        place = Path(folder)
        write_snapshot(
            place / "snapshot", snapshot.pages, snapshot.links, snapshot.clicks, files=2 if partitions > 1 else 1
        )
        (place / "seeds.txt").write_text("\n".join(snapshot.seeds), encoding="utf-8")
        arguments = ["--snapshot", str(place / "snapshot"), "--seeds", str(place / "seeds.txt"), "--quiet"]
        arguments += ["--output", str(place / "round"), "--profile", profile, "--write-lattices"]
        arguments += [] if weight is None else ["--weight", str(weight)]
        for name, value in options.items():
            arguments += [f"--{name.replace('_', '-')}", str(value)]
        assert main(["rank", *arguments]) == 0
        compare(place / "round", expected, settings_of_profile["intension_norm"])
    return expected


def compare(round_: Path, expected: Oracle, norm: str) -> None:
    """Everything that a round's tables say about scores, words, relations and concepts."""
    relations = {(row["relation"], row["source"], row["target"]): row["support"] for row in read_rows(round_ / "relations")}
    assert relations == expected.relations
    keywords = {row["keyword"]: row for row in read_rows(round_ / "keywords")}
    assert keywords.keys() == expected.keywords.keys()
    for word, (clicks, probability, layer, in_base, in_current) in expected.keywords.items():
        row = keywords[word]
        found = (row["clicks"], row["layer"], row["in_base"], row["in_current"])
        assert found == (clicks, layer, in_base, in_current), word
        assert row["probability"] == pytest.approx(probability, rel=1e-12, abs=0), word
    lattices = {}
    for name, lattice in (("base_concepts", expected.base), ("current_concepts", expected.current)):
        rows = read_rows(round_ / name)
        found_pairs = [(frozenset(row["extent"]), frozenset(row["intent"])) for row in rows]
        assert len(set(found_pairs)) == len(found_pairs), name
        assert set(found_pairs) == lattice, name
        lattices[name] = {row["concept"]: row for row in rows}
    frontier = {row["url"]: row for row in read_rows(round_ / "frontier")}
    assert frontier.keys() == expected.scores.keys()
    for address, (score, _, _) in expected.scores.items():
        row = frontier[address]
        assert row["score"] == pytest.approx(score, abs=1e-9), address
        reason = (row["extension"], row["intension"])
        assert any(reason == pytest.approx(pair, abs=1e-9) for pair in expected.reasons[address]), address
        base = lattices["base_concepts"][row["base_concept"]]
        current = lattices["current_concepts"][row["current_concept"]]
        assert address in current["extent"]
        size = (min if norm == "min" else max)(len(base["intent"]), len(current["intent"]))
        assert sum(match["ics"] for match in row["matches"]) == pytest.approx(size * row["intension"], abs=1e-9)
        for match in row["matches"]:
            assert match["ics"] == pytest.approx(expected.hierarchy.ics(match["base"], match["current"]), abs=1e-9)
            assert match["base"] in base["intent"]
            assert match["current"] in current["intent"]


@pytest.mark.parametrize("profile", PROFILES)
@SEARCH
@given(small_snapshots(), OPTIONS, st.sampled_from([1, 2, 7]))
def test_rounds_equal_the_definitions(
    profile: str, snapshot: SmallSnapshot, options: dict[str, Any], partitions: int
) -> None:
    run_and_compare(snapshot, profile, options, partitions=partitions)
