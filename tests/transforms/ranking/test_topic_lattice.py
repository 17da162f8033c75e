"""SemRank's profile `topic` against its definition, evaluated set by set, and the distributed one against that."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.testing.test_pipeline import TestPipeline
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from semrank.pipelines.runtime import DEFAULT_RUNNER, EMBEDDED_RUNNER, BuildOptions
from semrank.transforms.columnar.arrays import MAIN
from semrank.transforms.columnar.beam import WriteOne
from semrank.transforms.context.descriptions import BLOCKS, Descriptions
from semrank.transforms.ranking import topic_lattice
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.ranking.topic_beam import CONCEPTS, MakeTopicLattice, RankByTopicLattice
from semrank.transforms.ranking.topic_words import Vocabulary
from tests.support.description_tables import description_table
from tests.support.small_crawls import Crawl, Page, crawls, random_crawl

Words = dict[int, float]


def facts_with_leads(crawl: Crawl) -> Facts:
    facts = crawl.facts()
    known = facts.descriptions
    return replace(facts, descriptions=replace(known, lead=sparse.csr_array(known.text.toarray() // 2)))


# The oracle: vectors are dicts, extents and intents are sets.


def unit(vector: Words) -> Words:
    length = math.sqrt(math.fsum(value * value for value in vector.values()))
    return {word: value / length for word, value in vector.items()} if length else {}


def dot(one: Words, other: Words) -> float:
    return math.fsum(value * other.get(word, 0.0) for word, value in one.items())


def added(vectors: list[tuple[float, Words]]) -> Words:
    words = {word for _, vector in vectors for word in vector}
    return {word: math.fsum(factor * vector.get(word, 0.0) for factor, vector in vectors) for word in words}


def dict_rows(matrix: sparse.csr_array) -> list[dict[int, int]]:
    """The entries of each row, without zeros."""
    return [{key: value for key, value in enumerate(row) if value} for row in matrix.toarray().tolist()]


class Oracle:
    """The scores of a crawl, and the concepts of the lattice of texts."""

    def __init__(self, facts: Facts, query: tuple[str, ...], keywords: int = 30) -> None:
        self.known, self.keywords = facts.descriptions, keywords
        self.rows = {name: dict_rows(getattr(self.known, name)) for name in BLOCKS}
        self.urls = range(len(self.known))
        names = facts.words.to_pylist()
        self.asked = {names.index(word) for word in query if word in names}
        documents = Counter(word for url in self.urls for word in self._document(url))
        self.idf = {word: math.log((len(self.known) + 1) / (documents[word] + 0.5)) for word in range(len(names))}
        by_id = sorted(self.urls, key=lambda url: int(self.known.url[url]))
        seeds = [url for url in by_id if self.known.seed[url]]
        others = [url for url in by_id if self.known.harvested[url] and self.known.described[url]]
        others = [url for url in others if url not in seeds]
        first = self._centre(seeds, [], self.read)
        likeness = {url: round(dot(self.degrees(self.read(url)), first) * 2**40) for url in others}
        nearest = sorted(others, key=lambda url: (-likeness[url], int(self.known.url[url])))
        near = sorted(nearest[: min(40, int(0.3 * len(others)))])
        self.objects = [*seeds, *near]

        text, told = self._centre(seeds, near, self.read), self._centre(seeds, near, self.told)
        current = [url for url in self.urls if self.known.current[url]]
        plain = [self.degrees(self.told(url)) for url in current if not self.known.described[url]]
        everywhere = unit(added([(1.0, vector) for vector in plain]))
        weights = added([(1.0, text), (1.0, told), (-0.9, everywhere)])
        own = [dot(self._object(url, self.read), text) for url in self.objects]
        own_told = [dot(self._object(url, self.told), weights) for url in self.objects]
        described_size = math.fsum(own) / max(len(own), 1)
        plain_size = math.fsum(own_told) / max(len(own_told), 1)
        self.scores = {}
        self.sizes = [described_size, plain_size]
        for url in current:
            seen = bool(self.known.described[url])
            value = dot(self.degrees(self.read(url)), text if seen else weights)
            size = plain_size if plain_size > 0 and not seen else described_size
            score = 1 / (1 + math.exp(1 - value / size)) if size > 0 else 0.0
            self.scores[int(self.known.url[url])] = score
        self.concepts = self._closed_sets([self._keywords(self._object(url, self.read)) for url in self.objects])

    def _row(self, name: str, url: int) -> Counter[int]:
        return Counter(self.rows[name][url])

    def _document(self, url: int) -> set[int]:
        if self.known.described[url]:
            return set(self._row("text", url))
        return set(self._row("anchor", url)) | set(self._row("around", url))

    def told(self, url: int) -> Counter[int]:
        return self._row("anchor", url) + self._row("around", url) + Counter(set(self._row("query", url)))

    def read(self, url: int) -> Counter[int]:
        if not self.known.described[url]:
            return self.told(url)
        lead = self._row("lead", url)
        return self._row("text", url) + lead + lead + lead

    def degrees(self, counts: Counter[int]) -> Words:
        return unit({word: (1 + math.log(count)) * self.idf[word] for word, count in counts.items()})

    def _object(self, url: int, words: Any) -> Words:
        return self.degrees(words(url) + Counter(self.asked if self.known.seed[url] else ()))

    def _keywords(self, vector: Words) -> frozenset[int]:
        return frozenset(sorted(vector, key=lambda word: (-vector[word], word))[: self.keywords])

    def _closed_sets(self, rows: list[frozenset[int]]) -> dict[frozenset[int], list[int]]:
        intents = set(rows)
        while True:
            more = {one & other for one in intents for other in intents} - intents
            if not more:
                break
            intents |= more
        return {y: [number for number, row in enumerate(rows) if y <= row] for y in intents if y}

    def _lattice_centre(self, objects: list[int], words: Any) -> Words:
        vectors = [self._object(url, words) for url in objects]
        concepts = self._closed_sets([self._keywords(vector) for vector in vectors])
        total = sum(len(extent) for extent in concepts.values())
        graded = []
        for extent in concepts.values():
            mean = added([(1 / len(extent), vectors[number]) for number in extent])
            share = {word: sum(word in vectors[number] for number in extent) / len(extent) for word in mean}
            graded.append((len(extent) / total, unit({word: mean[word] * share[word] for word in mean})))
        return added(graded)

    def _centre(self, seeds: list[int], near: list[int], words: Any) -> Words:
        centre = self._lattice_centre(seeds, words)
        if near:
            centre = added([(1 / 1.7, centre), (0.7 / 1.7, self._lattice_centre([*seeds, *near], words))])
        return unit(centre)


def scores_of(table: pa.Table) -> dict[int, float]:
    return dict(zip(table["url_id"].to_pylist(), table["score"].to_pylist(), strict=True))


def assert_scores(crawl: Crawl, keywords: int = 30) -> None:
    facts = facts_with_leads(crawl)
    assert_definition(topic_lattice.rank(facts), Oracle(facts, crawl.query, keywords))


def assert_definition(ranked: pa.Table, oracle: Oracle) -> None:
    # Where the sizes that scores are divided by are what rounding leaves, there is nothing to compare.
    if any(0 < abs(size) < 1e-6 for size in oracle.sizes):
        return
    assert ranked.schema == topic_lattice.TOPIC_SCHEMA
    assert scores_of(ranked) == pytest.approx(oracle.scores, abs=1e-6)
    assert all(0 <= score <= 1 for score in ranked["score"].to_pylist())


@settings(max_examples=150, deadline=None)
@given(crawls(), st.integers(2, 5), st.randoms())
def test_scores_are_the_definition_in_small_and_those_of_parts(crawl: Crawl, parts: int, chance: random.Random) -> None:
    facts = facts_with_leads(crawl)
    ranked = topic_lattice.rank(facts)
    assert_definition(ranked, Oracle(facts, crawl.query))
    # The steps over parts in any order give the very tables that one part gives.
    part = np.array([chance.randrange(parts) for _ in range(len(facts.descriptions))])
    cut = [facts.descriptions.select(part == number) for number in chance.sample(range(parts), parts)]
    assert rank_in_parts(facts, crawl.query, cut).equals(ranked)


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("keywords", [3, 30])
def test_scores_are_the_definition_in_large(number: int, keywords: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_lattice, "KEYWORDS", keywords)
    assert_scores(random_crawl(number, urls=80), keywords)


@pytest.mark.parametrize("keywords", [3, 30])
def test_concepts_are_all_closed_sets(keywords: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_lattice, "KEYWORDS", keywords)
    crawl = random_crawl(3, urls=80)
    facts = facts_with_leads(crawl)
    lattice = topic_lattice.lattice_of_facts(facts)
    found: dict[frozenset[str], set[int]] = {}
    for row in lattice.concept_extents().to_pylist():
        found.setdefault(frozenset(row["intent"]), set()).add(row["url_id"])
    oracle = Oracle(facts, crawl.query, keywords)
    names = facts.words.to_pylist()
    expected = {
        frozenset(names[word] for word in intent): {int(oracle.known.url[oracle.objects[number]]) for number in extent}
        for intent, extent in oracle.concepts.items()
    }
    assert found == expected


def test_reasons_and_matches_name_words_that_both_have() -> None:
    bird, spider = {"bird": 3, "eagle": 2, "wing": 1}, {"crawl": 3, "spider": 2}
    pages = {1: Page(True, True, True, text=bird, anchor={"eagle": 2}), 2: Page(False, True, True, text=spider)}
    pages |= {
        3: Page(anchor={"eagle": 1, "nest": 1}),
        4: Page(anchor={"spider": 1}),
        5: Page(described=True, text=bird),
    }
    rows = topic_lattice.rank(Crawl(pages, []).facts()).to_pylist()
    assert [row["url_id"] for row in rows] == [3, 4, 5]
    assert rows[0]["score"] > rows[1]["score"]
    assert rows[2]["score"] == pytest.approx(0.5)
    assert [match["current"] for match in rows[0]["matches"]] == ["eagle"]
    assert rows[1]["matches"] == []
    assert rows[1]["base_concept"] is None
    assert [match["base"] for match in rows[2]["matches"]] == ["bird", "eagle", "wing"]
    assert all(match["ics"] == 1 for row in rows for match in row["matches"])
    assert rows[2]["reasons"][0]["term"] == "text"
    for row in rows:
        total = math.fsum(reason["value"] * reason["weight"] for reason in row["reasons"])
        assert row["score"] == pytest.approx(1 / (1 + math.exp(1 - total)))


def test_without_seeds_nothing_has_a_score() -> None:
    pages = {1: Page(False, True, True, text={"bird": 1}), 2: Page(anchor={"bird": 1})}
    assert topic_lattice.rank(Crawl(pages, []).facts())["score"].to_pylist() == [0.0]


def test_of_many_seeds_those_with_the_smallest_ids_are_objects() -> None:
    pages = {url: Page(True, True, True, text={"bird": url}) for url in range(1, 300)}
    facts = Crawl(pages, []).facts()
    cut = [facts.descriptions.select(np.arange(299) % 2 == half) for half in (1, 0)]
    seeds = topic_lattice.first_seeds(pa.concat_tables(map(topic_lattice.seed_objects, cut)))
    assert seeds["url_id"].to_pylist() == list(range(1, topic_lattice.MOST_SEEDS + 1))


# Distributed


def distributed(facts: Facts, crawl: Crawl, partitions: int, folder: Path, runner: str) -> tuple[pa.Table, pa.Table]:
    tables = crawl.tables(partitions, random.Random(partitions))
    tables["descriptions"] = [
        description_table(facts.descriptions.select(np.isin(facts.descriptions.url, part["url_id"].to_numpy())))
        for part in tables["descriptions"]
    ]
    names = ("descriptions", "vocabulary", "harvested")
    with TestPipeline(runner=runner, options=BuildOptions([])) as pipeline:
        inputs = {name: pipeline | name >> beam.Create(tables[name]).with_output_types(pa.Table) for name in names}
        lattice = inputs | MakeTopicLattice(query=list(crawl.query), partitions=partitions)
        ranked = {"descriptions": inputs["descriptions"], **lattice} | RankByTopicLattice(query=list(crawl.query))
        for name, order in ((MAIN, ["url_id"]), (CONCEPTS, ["concept", "url_id"])):
            {"rows": ranked[name]} | WriteOne(f"write {name}", str(folder / name), _Sorted(order))
    return pq.read_table(folder / MAIN), pq.read_table(folder / CONCEPTS)


class _Sorted:
    def __init__(self, columns: list[str]) -> None:
        self._order = [(column, "ascending") for column in columns]

    def __call__(self, rows: pa.Table) -> pa.Table:
        return rows.sort_by(self._order)


@pytest.mark.parametrize(("partitions", "runner"), [(1, DEFAULT_RUNNER), (2, EMBEDDED_RUNNER), (7, DEFAULT_RUNNER)])
def test_distributed_scores_are_those_in_memory(partitions: int, runner: str, tmp_path: Path) -> None:
    crawl = random_crawl(partitions, urls=120)
    facts = facts_with_leads(crawl)
    rows, concepts = distributed(facts, crawl, partitions, tmp_path, runner)
    assert rows.equals(topic_lattice.rank(facts))
    expected = topic_lattice.lattice_of_facts(facts).concept_extents()
    assert concepts.equals(expected.sort_by([("concept", "ascending"), ("url_id", "ascending")]))


def rank_in_parts(facts: Facts, query: tuple[str, ...], cut: list[Descriptions]) -> pa.Table:
    """What a cluster computes with the URLs of each part."""
    sizes = pa.concat_tables(map(topic_lattice.part_size, cut))
    vocabulary = Vocabulary.of_facts(facts)
    collection = topic_lattice.Collection.of_parts(vocabulary, query, sizes)
    seeds = topic_lattice.first_seeds(pa.concat_tables(map(topic_lattice.seed_objects, cut)))
    first = topic_lattice.TopicLattice(collection, seeds)
    found = pa.concat_tables([topic_lattice.near_objects(known, first) for known in cut])
    near = topic_lattice.nearest_pages(found, collection.nearest)
    told = pa.concat_tables([topic_lattice.mention_sums(known, collection) for known in cut])
    lattice = topic_lattice.TopicLattice(collection, seeds, near, told)
    ranked = pa.concat_tables([topic_lattice.scores(known, lattice) for known in cut])
    return ranked.sort_by("url_id")
