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
from tests.oracle import Hierarchy, Oracle, click_edges, concepts, extension_similarity, rank_oracle, similarity
from tests.pipelines.test_rank import P13_CLICKS, P13_KEYWORDS, P13_LINKS, P13_PAGES, url
from tests.snapshots import read_rows, write_snapshot
from tests.strategies import HOST, START, WORDS, SmallSnapshot, small_snapshots

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


@pytest.mark.parametrize("partitions", [1, 2, 7])
@pytest.mark.parametrize("profile", PROFILES)
def test_p13_example_5(profile: str, partitions: int) -> None:
    snapshot = SmallSnapshot(P13_PAGES, P13_LINKS, P13_CLICKS, [url(1), url(2), url(3)])
    run_and_compare(snapshot, profile, {}, partitions=partitions)


def _cycle() -> SmallSnapshot:
    """Part-Of leads from internet over lattice and network back to internet, and from network on to ontology.

    Each group clicks the first page of the link for the one word and the second for the other. Nobody asks for zebra.
    """
    whole, part, other = (f"{HOST}/{name}" for name in ("q0", "c0", "c1"))
    shared = ["internet", "lattice", "network"]
    pages = [
        {"url": whole, "keywords": [*shared, "zebra"]},
        {"url": part, "keywords": [*shared, "ontology", "zebra"]},
        {"url": other, "keywords": []},
    ]
    links = [{"source_url": whole, "target_url": part}, {"source_url": whole, "target_url": other, "nofollow": True}]
    steps = [("internet", "lattice"), ("lattice", "network"), ("network", "internet"), ("network", "ontology")]
    clicks = []
    for number, words in enumerate(steps):
        for word, address in zip(words, (whole, part), strict=True):
            who = {"user_id": f"user {number}", "user_group": f"group {number}"}
            # The more often a word is asked for, the less its information content: all four differ.
            times = 1 + WORDS.index(word)
            clicks += [{**who, "query": word, "keywords": [word], "clicked_at": START, "url": address}] * times
    return SmallSnapshot(pages, links, clicks, [whole])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"min_support": 2, "top_probability": "min"},
        {"smoothing": 0.5, "top_probability": 0.9},
        {"query": "ontology"},
        {"query": "network"},
        {"query": "zebra"},
    ],
    ids=str,
)
def test_cycles_of_part_of(options: dict[str, Any]) -> None:
    expected = run_and_compare(_cycle(), "paper-2013", options, weight=0.1)
    query = options.get("query")
    if query != "network":
        assert expected.hierarchy.above["lattice"] == {"internet", "lattice", "network"}
        assert [expected.keywords[word][2] for word in ("internet", "lattice", "network")] == [1, 1, 1]
    if query is None:
        assert expected.keywords["ontology"][2] == 2
    else:
        assert expected.keywords[query][2] == 0


def test_p13_example_5_has_18_and_4_concepts() -> None:
    contexts = [
        {url(number): frozenset(words) for number, words in P13_KEYWORDS.items() if number in numbers}
        for numbers in (range(1, 4), range(4, 9))
    ]
    base, current = (concepts(context, 1) for context in contexts)
    assert len(base) == 4
    # The bottom concept, all words of no URL, is the eighteenth.
    assert len(current) == 17
    assert (frozenset(map(url, (4, 5, 7, 8))), frozenset({"spider"})) in current


def test_p13_examples_16_and_19() -> None:
    probability = {"internet": 0.00372, "web page": 0.01484, "spider": 0.001, "whole": 0.001}
    isa = {frozenset(("internet", "spider"))}
    fig4 = Hierarchy(probability, {("whole", "web page")}, isa, 0.2, None, 0.01484)
    assert fig4.layers == {"internet": 1, "web page": 2, "spider": 1, "whole": 1}
    assert fig4.ics("internet", "web page") == pytest.approx(0.8351, abs=5e-5)
    assert fig4.ics("spider", "spider") == fig4.ics("internet", "spider") == 1

    probability = {"internet": 0.00372, "technology": 0.00281, "network": 0.00502}
    parts = {("internet", "technology"), ("internet", "network")}
    below_internet = Hierarchy(probability, parts, set(), 0.2, None, 0.01484)
    assert below_internet.ics("technology", "network") == pytest.approx(0.7778, abs=5e-5)

    links = {(row["source_url"], row["target_url"]) for row in P13_LINKS}
    extension = extension_similarity(
        frozenset(map(url, (1, 3))), frozenset(map(url, (4, 5, 8))), [links, click_edges(P13_CLICKS)]
    )
    assert extension == pytest.approx(0.3333, abs=5e-5)
    intension = fig4.intension(frozenset({"internet", "spider"}), frozenset({"web page", "spider"}))
    assert intension == pytest.approx(0.91755, abs=5e-5)
    assert similarity(extension, intension, 0.4) == pytest.approx(0.68385, abs=5e-5)
    assert similarity(extension, intension, None) == pytest.approx(
        (extension**2 + intension**2) / (extension + intension)
    )
