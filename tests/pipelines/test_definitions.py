"""Rounds of random small webs against the definitions, for all profiles and several numbers of partitions."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from semrank.pipelines import rank
from semrank.pipelines.cli import main
from tests.support.definitions import Hierarchy, Options, concepts, intension, rank_oracle
from tests.support.p13_web import P13_KEYWORDS, random_web, url
from tests.support.snapshots import read_rows, write_snapshot

PROFILES = {
    "paper-2013": Options(),
    "paper-2008": Options(weight=None),
    "formica-2006": Options(intension_norm="max", extension="objects"),
}


def options_of(seed: int, options: Options) -> tuple[Options, list[str]]:
    """Options varied by the seed, and how the command says them."""
    draw = random.Random(seed)
    changed = {
        "min_support": draw.choice([1, 1, 2]),
        "alpha": draw.choice([0.2, 0.5]),
        "min_relation_support": draw.choice([1, 1, 2]),
        "max_keywords_per_url": draw.choice([50, 2]),
        "top_probability": draw.choice(["max", "min", 0.4]),
        "smoothing": draw.choice([0.0, 0.0, 1.0]),
        "user_groups": draw.choice(["given", "given", "one"]),
        "query": draw.choice([None, "bee", "ant cat"]),
        "log_scope": draw.choice(["all", "topic"]),
        "isa_needs_word": draw.choice([False, True]),
    }
    said = [
        f"--{name.replace('_', '-')}={value}" for name, value in changed.items() if not isinstance(value, bool | None)
    ]
    said += [f"--{name.replace('_', '-')}" for name, value in changed.items() if value is True]
    return Options(**{**vars(options), **changed}), said


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("seed", range(8))
def test_round_equals_the_definitions(profile: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages, links, clicks, queue = random_web(seed)
    options, said = options_of(seed + 100, PROFILES[profile])
    expected = rank_oracle(pages, links, clicks, queue, options)
    snapshot = write_snapshot(tmp_path / "snapshot", pages, links, clicks, files=2)
    (tmp_path / "seeds.txt").write_text("\n".join(queue), encoding="utf-8")
    monkeypatch.setattr(rank, "partition_count", lambda _: (1, 2, 7)[seed % 3])
    arguments = ["--snapshot", str(snapshot), "--seeds", str(tmp_path / "seeds.txt")]
    output = tmp_path / "round"
    assert main(["rank", *arguments, "--output", str(output), "--profile", profile, "--quiet", *said]) == 0

    frontier = {row["url"]: row for row in read_rows(output / "frontier")}
    assert set(frontier) == set(expected.pairs)
    for page, entries in expected.pairs.items():
        row = frontier[page]
        best = max(entry[0] for entry in entries)
        assert row["score"] == pytest.approx(best, abs=1e-9), page
        reasons = [(entry[1], entry[2]) for entry in entries if entry[0] >= best - 1e-9]
        assert any(
            row["extension"] == pytest.approx(extension, abs=1e-9)
            and row["intension"] == pytest.approx(inner, abs=1e-9)
            for extension, inner in reasons
        ), page

    keywords = {row["keyword"]: row for row in read_rows(output / "keywords")}
    assert set(keywords) == expected.base_words | expected.current_words
    for word, row in keywords.items():
        assert row["clicks"] == expected.clicks[word]
        assert row["probability"] == pytest.approx(expected.probability[word], abs=1e-12)
        assert row["layer"] == expected.layer[word], word
        assert row["in_base"] == (word in expected.base_words)
        assert row["in_current"] == (word in expected.current_words)
    relations = read_rows(output / "relations")
    assert {(row["relation"], row["source"], row["target"]): row["support"] for row in relations} == expected.relations
    base = {(frozenset(row["extent"]), frozenset(row["intent"])) for row in read_rows(output / "base_concepts")}
    assert base == expected.base


@pytest.mark.parametrize("seed", range(2))
def test_round_with_the_seeds_as_base(seed: int, tmp_path: Path) -> None:
    """The second round compares with the seeds again, whatever the first one selected, and ranks all that is known."""
    pages, links, clicks, queue = random_web(seed)
    write_snapshot(tmp_path / "snapshot", pages, links, clicks)
    (tmp_path / "seeds.txt").write_text("\n".join(queue), encoding="utf-8")
    options = ["--profile", "paper-2013", "--base", "seeds", "--threshold", "0", "--max-urls", "1", "--quiet"]
    start = ["rank", "--snapshot", str(tmp_path / "snapshot")]
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    assert main([*start, "--seeds", str(tmp_path / "seeds.txt"), "--output", first, *options]) == 0
    assert main([*start, "--previous", first, "--output", second, *options]) == 0
    chosen = [row["url"] for row in read_rows(tmp_path / "first" / "frontier") if row["selected"]]
    assert len(chosen) == 1
    expected = rank_oracle(pages, links, clicks, queue, Options(), harvested=chosen)
    frontier = {row["url"]: row["score"] for row in read_rows(tmp_path / "second" / "frontier")}
    assert frontier
    assert set(frontier) == set(expected.pairs)
    for page, entries in expected.pairs.items():
        assert frontier[page] == pytest.approx(max(entry[0] for entry in entries), abs=1e-9), page
    base = {
        (frozenset(row["extent"]), frozenset(row["intent"])) for row in read_rows(tmp_path / "second/base_concepts")
    }
    assert base == expected.base


def test_webs_cover_the_odd_cases() -> None:
    """The random webs hold what the comparison is for."""
    webs = [random_web(seed) for seed in range(8)]
    options = [options_of(seed + 100, PROFILES["paper-2013"])[0] for seed in range(8)]
    rounds = [rank_oracle(*web, chosen) for web, chosen in zip(webs, options, strict=True)]
    assert any(len(web[3]) == 1 for web in webs)
    assert any(not page["keywords"] for web in webs for page in web[0])
    assert any(0 in found.clicks.values() or set(found.layer) - set(found.clicks) for found in rounds)
    assert any(key[0] == "PART_OF" for found in rounds for key in found.relations)
    assert any(key[0] == "ISA" for found in rounds for key in found.relations)
    scopes = {(chosen.log_scope, chosen.isa_needs_word) for chosen in options}
    assert len(scopes) > 2
    assert any(max(found.layer.values(), default=0) > 1 for found in rounds)


def test_examples_of_p13() -> None:
    """Examples 5, 16 and 19, as they follow from the definitions."""
    context = {url(number): frozenset(words) for number, words in P13_KEYWORDS.items()}
    queue = {page: words for page, words in context.items() if page in {url(1), url(2), url(3)}}
    current = {page: words for page, words in context.items() if page not in queue}
    assert len(concepts(queue, 1)) == 4
    # With the bottom, whose extent is empty, there are 18.
    assert len(concepts(current, 1)) == 17

    hierarchy = Hierarchy.__new__(Hierarchy)
    hierarchy.isa, hierarchy.top, hierarchy.p_top = set(), None, 0.01484
    # The example matches Spider with itself; without clicks of its own it is similar to nothing else.
    hierarchy.p = {"internet": 0.00372, "web page": 0.01484, "technology": 0.00281, "network": 0.00502, "spider": 0.0}
    hierarchy.w = {**dict.fromkeys(hierarchy.p, 1 / 1.2 + 1 / 2.2), "internet": 1 / 1.2}
    hierarchy.ancestors = {word: {word} for word in hierarchy.p}
    assert hierarchy.ics("internet", "web page") == pytest.approx(0.8351, abs=2e-4)
    hierarchy.ancestors |= {word: {word, "internet"} for word in ("technology", "network")}
    assert hierarchy.ics("technology", "network") == pytest.approx(0.7778, abs=1e-4)
    inner = intension(frozenset({"internet", "spider"}), frozenset({"web page", "spider"}), hierarchy, "min")
    assert inner == pytest.approx(0.91755, abs=1e-4)
    assert 0.4 * 4 / 12 + 0.6 * inner == pytest.approx(0.68385, abs=1e-4)
