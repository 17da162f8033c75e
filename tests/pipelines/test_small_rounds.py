"""Rounds drawn by hypothesis against the definitions: odd links, gaps around 30 minutes, circles of Part-Of."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from semrank.pipelines import rank
from semrank.pipelines.cli import main
from semrank.transforms.lattice import mining
from tests.support.definitions import Hierarchy, Options, Oracle, rank_oracle
from tests.support.p13_web import P13_CLICKS, P13_LINKS, P13_PAGES, url
from tests.support.snapshots import read_rows, write_snapshot
from tests.support.strategies import HOST, START, WORDS, SmallSnapshot, small_snapshots

PROFILES: dict[str, dict[str, Any]] = {
    "paper-2013": {},
    "paper-2008": {"weight": None},
    "formica-2006": {"intension_norm": "max", "extension": "objects"},
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


def run_and_compare(
    snapshot: SmallSnapshot, profile: str, given_options: Mapping[str, Any], partitions: int = 1, held: int = 100
) -> Oracle:
    """Runs a round in a folder of its own and holds all that it wrote to the definitions.

    The base context is exchanged where it has more than `held` URLs.
    """
    options = Options(**PROFILES[profile], **given_options)
    expected = rank_oracle(snapshot.pages, snapshot.links, snapshot.clicks, snapshot.seeds, options)
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(rank, "partition_count", return_value=partitions),
        mock.patch.object(mining, "HELD_OBJECTS", held),
    ):
        place = Path(folder)
        files = 2 if partitions > 1 else 1
        write_snapshot(place / "snapshot", snapshot.pages, snapshot.links, snapshot.clicks, files=files)
        (place / "seeds.txt").write_text("\n".join(snapshot.seeds), encoding="utf-8")
        arguments = ["--snapshot", str(place / "snapshot"), "--seeds", str(place / "seeds.txt"), "--quiet"]
        arguments += ["--output", str(place / "round"), "--profile", profile, "--write-lattices"]
        arguments += [f"--{name.replace('_', '-')}={value}" for name, value in given_options.items()]
        assert main(["rank", *arguments]) == 0
        _compare(place / "round", expected, options)
    return expected


def _compare(folder: Path, expected: Oracle, options: Options) -> None:
    found = {(row["relation"], row["source"], row["target"]): row["support"] for row in read_rows(folder / "relations")}
    assert found == expected.relations
    keywords = {row["keyword"]: row for row in read_rows(folder / "keywords")}
    assert keywords.keys() == expected.layer.keys()
    for word, row in keywords.items():
        facts = (row["clicks"], row["layer"], row["in_base"], row["in_current"])
        in_contexts = (word in expected.base_words, word in expected.current_words)
        assert facts == (expected.clicks[word], expected.layer[word], *in_contexts), word
        assert row["probability"] == pytest.approx(expected.probability[word], rel=1e-12, abs=0), word
    lattices = []
    for name, concepts in (("base_concepts", expected.base), ("current_concepts", expected.current)):
        rows = read_rows(folder / name)
        assert sorted((sorted(row["extent"]), sorted(row["intent"])) for row in rows) == sorted(
            (sorted(extent), sorted(intent)) for extent, intent in concepts
        )
        lattices.append({row["concept"]: row for row in rows})
    hierarchy = Hierarchy(set(expected.layer), expected.clicks, expected.relations, options)
    frontier = {row["url"]: row for row in read_rows(folder / "frontier")}
    assert frontier.keys() == expected.pairs.keys()
    for address, pairs in expected.pairs.items():
        row = frontier[address]
        best = max(pair[0] for pair in pairs)
        assert row["score"] == pytest.approx(best, abs=1e-9), address
        # The two concepts that are named are a pair that reaches the best value, with the terms that are given.
        base, current = lattices[0][row["base_concept"]], lattices[1][row["current_concept"]]
        named = (frozenset(base["extent"]), frozenset(current["extent"]))
        score, extension, intension = next(pair[:3] for pair in pairs if (pair[3][0], pair[4][0]) == named)
        assert score == pytest.approx(best, abs=1e-9), address
        assert (row["extension"], row["intension"]) == pytest.approx((extension, intension), abs=1e-9), address
        size = (min if options.intension_norm == "min" else max)(len(base["intent"]), len(current["intent"]))
        assert sum(match["ics"] for match in row["matches"]) == pytest.approx(size * intension, abs=1e-9)
        for match in row["matches"]:
            assert match["ics"] == pytest.approx(hierarchy.ics(match["base"], match["current"]), abs=1e-9)
            assert match["base"] in base["intent"]
            assert match["current"] in current["intent"]


@pytest.mark.parametrize("profile", PROFILES)
@settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    # A run takes more than a second: shrinking would take minutes, and the examples are small as they are.
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
)
@given(
    snapshot=small_snapshots(), options=OPTIONS, partitions=st.sampled_from([1, 2, 7]), held=st.sampled_from([0, 100])
)
def test_small_rounds_equal_the_definitions(
    profile: str, snapshot: SmallSnapshot, options: dict[str, Any], partitions: int, held: int
) -> None:
    run_and_compare(snapshot, profile, options, partitions, held)


@pytest.mark.parametrize("held", [0, 100])
@pytest.mark.parametrize(("profile", "partitions"), zip(PROFILES, (1, 2, 7), strict=True))
def test_p13_example_5(profile: str, partitions: int, held: int) -> None:
    snapshot = SmallSnapshot(P13_PAGES, P13_LINKS, P13_CLICKS, [url(1), url(2), url(3)])
    run_and_compare(snapshot, profile, {}, partitions, held)


def circle() -> SmallSnapshot:
    """Part-Of leads from internet over lattice and network back to internet, and from network on to ontology.

    Each group clicks the first page of the link for the one word and the second for the other. Nobody asks for zebra.
    """
    whole, part, other = (f"{HOST}/{name}" for name in ("q0", "c0", "c1"))
    shared = ["internet", "lattice", "network"]
    pages = [
        {"url": whole, "keywords": [*shared, "zebra"]},
        {"url": part, "keywords": ["lattice", "ontology", "network", "internet"]},
        {"url": other, "keywords": ["ontology"]},
    ]
    links: list[dict[str, Any]] = [
        {"source_url": whole, "target_url": part},
        {"source_url": whole, "target_url": other, "nofollow": True},
    ]
    steps = [("internet", "lattice"), ("lattice", "network"), ("network", "internet"), ("network", "ontology")]
    clicks = []
    for number, words in enumerate(steps):
        for word, address in zip(words, (whole, part), strict=True):
            # The more often a word is asked for, the less its information content: all of them differ.
            for user in range(1 + WORDS.index(word)):
                who = {"user_id": f"user {number} {user}", "user_group": f"group {number}"}
                clicks.append({**who, "query": word, "keywords": [word], "clicked_at": START, "url": address})
    return SmallSnapshot(pages, links, clicks, [whole])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"min_support": 2, "top_probability": "min"},
        {"smoothing": 0.5, "top_probability": 0.9},
        {"query": "ontology"},
        {"query": "network"},
    ],
    ids=str,
)
def test_circles_of_part_of(options: dict[str, Any]) -> None:
    layers = run_and_compare(circle(), "paper-2013", options).layer
    query = options.get("query")
    if query == "network":
        assert layers["network"] == 0
    else:
        assert [layers[word] for word in ("internet", "lattice", "network")] == [1, 1, 1]
        assert layers["ontology"] == (0 if query else 2)
