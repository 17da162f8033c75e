"""The profile `focused` against its formulas evaluated URL by URL, and the distributed one against that in memory."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.testing.test_pipeline import TestPipeline
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from semrank.pipelines.runtime import DEFAULT_RUNNER, EMBEDDED_RUNNER, BuildOptions
from semrank.transforms.columnar.arrays import split_by_partition
from semrank.transforms.columnar.beam import WriteOne
from semrank.transforms.context.descriptions import BLOCKS
from semrank.transforms.ranking import exact_sums, focused, topic_lattice
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.ranking.focused_beam import RankByFocused
from semrank.transforms.ranking.scores import SCORED_SCHEMA
from semrank.transforms.ranking.topic_beam import MakeTopicLattice, WeighWords
from tests.support.description_tables import description_table
from tests.support.small_crawls import Crawl, Page, crawls, facts_with_clicks, random_crawl, scores_of

Vector = Mapping[Any, float]


# The oracle: vectors are dicts, and everything is written as the formulas are.


def total(vectors: Iterable[Vector]) -> dict[Any, float]:
    result: dict[Any, float] = defaultdict(float)
    for vector in vectors:
        for key, value in vector.items():
            result[key] += value
    return result


def scaled(vector: Vector, factor: float) -> dict[Any, float]:
    return {key: value * factor for key, value in vector.items()}


def unit(vector: Vector) -> dict[Any, float]:
    length = math.sqrt(math.fsum(value * value for value in vector.values()))
    return scaled(vector, 1 / length) if length else dict(vector)


def dot(one: Vector, other: Vector) -> float:
    return math.fsum(value * other.get(key, 0.0) for key, value in one.items())


def mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return math.fsum(numbers) / len(numbers) if numbers else 0.0


def deviation(values: Iterable[float]) -> float:
    numbers = list(values)
    middle = mean(numbers)
    return math.sqrt(mean((number - middle) ** 2 for number in numbers))


def coarse(value: float) -> float:
    return round(value * 2**40) / 2**40


def dict_rows(matrix: sparse.csr_array) -> list[dict[int, int]]:
    """The entries of each row, without zeros."""
    return [{key: value for key, value in enumerate(row) if value} for row in matrix.toarray().tolist()]


class Oracle:
    """Raw terms, contents' scores and final scores of a crawl."""

    def __init__(self, facts: Facts, lattice: topic_lattice.TopicLattice) -> None:
        self.known = facts.descriptions
        self.rows = {name: dict_rows(getattr(self.known, name)) for name in (*BLOCKS, "linkers", "near")}
        self.urls = range(len(self.known))
        self.seeds = [url for url in self.urls if self.known.seed[url]]
        self.trained = [url for url in self.urls if self.known.harvested[url] and self.known.described[url]]
        self.others = [url for url in self.trained if url not in self.seeds]
        self.current = [url for url in self.urls if self.known.current[url]]
        self.url_of_place = {int(self.known.place[url]): url for url in self.urls if self.known.place[url] >= 0}
        documents = Counter(word for url in self.urls for word in self.told(url))
        self.idf = {
            word: math.log((len(self.known) + 1) / (documents[word] + 0.5)) for word in range(self.known.word_count)
        }
        self.x = {url: self.page(url) for url in self.urls}
        self.asked = unit({int(word): self.idf[int(word)] for word in facts.query})
        # What words weigh in SemRank by the topic's lattice has an oracle of its own.
        self.semrank = dict(enumerate(lattice.plain_centre.tolist()))
        self.content: dict[int, float] = {}
        self.raw: dict[str, dict[int, float]] = {}
        self.rank()

    def row(self, name: str, url: int) -> dict[int, int]:
        return self.rows[name][url]

    def told(self, url: int) -> Mapping[int, float]:
        if self.known.described[url]:
            return self.row("text", url)
        return total([self.row("anchor", url), self.row("around", url)])

    def told_and_asked(self, url: int) -> Mapping[int, float]:
        asked = dict.fromkeys(self.row("query", url), 1.0)
        return total([self.row("anchor", url), self.row("around", url), asked])

    def vector(self, counts: Mapping[int, float]) -> dict[Any, float]:
        return unit({word: (1 + math.log(count)) * self.idf[word] for word, count in counts.items()})

    def page(self, url: int) -> dict[Any, float]:
        return self.vector(total([self.row("text", url), scaled(self.row("lead", url), 3)]))

    def topic(self) -> dict[Any, float]:
        members = [self.x[url] if self.known.described[url] else self.vector(self.told(url)) for url in self.seeds]
        members = [member for member in [*members, self.asked] if member]
        holders = Counter(word for member in members for word in member)
        middle = scaled(total(members), 1 / max(len(members), 1))
        return unit({word: value * math.sqrt(holders[word] / len(members)) for word, value in middle.items()})

    def phi(self, url: int) -> dict[str, dict[Any, float]]:
        words = {
            "anchor": {word: count * self.idf[word] for word, count in self.row("anchor", url).items()},
            "around": {word: count * self.idf[word] for word, count in self.row("around", url).items()},
            "query": {word: math.log(1 + count) * self.idf[word] for word, count in self.row("query", url).items()},
        }
        features = {name: unit(vector) for name, vector in words.items()}
        for name in ("linkers", "near"):
            edges = {self.url_of_place[place]: math.log(1 + count) for place, count in self.row(name, url).items()}
            if name == "linkers":
                edges = dict.fromkeys(edges, 1.0)
            edges = {page: size for page, size in edges.items() if page in self.trained}
            one, two = sum(edges.values()), sum(size * size for size in edges.values())
            length = math.sqrt(two + 0.1 * (one * one - two)) or 1.0
            features[name] = dict(total(scaled(self.x[page], size / length) for page, size in edges.items()))
        return features

    def rank(self) -> None:
        t0 = self.topic()
        order = sorted(self.others, key=lambda url: (-coarse(dot(self.x[url], t0)), url))
        near, far = total(self.x[url] for url in order[:40]), order[len(order) // 2 :] if len(order) > 1 else []
        t = total([t0, scaled(unit(near), 0.7)])
        background = unit(total(self.x[url] for url in self.urls)) if self.others else {}
        w = total([t, scaled(background, -1.02)])
        self.content = {url: dot(self.x[url], w) for url in self.urls if self.known.described[url]}

        t = total([t, scaled(unit(total(self.x[url] for url in far)), -0.9)])
        relevance = {url: coarse(dot(self.x[url], t)) for url in self.trained}
        y = {url: self.grade(relevance, url) for url in self.trained}
        phi = {url: self.phi(url) for url in self.urls}
        for term, name in (("anchor", "anchor"), ("around", "around"), ("query", "query"), *_PAGE_TERMS):
            parts = [
                (1.0, total(scaled(phi[url][name], y[url]) for url in self.trained)),
                (-0.6, total(phi[url][name] for url in self.current)),
                (-0.3, total(phi[url][name] for url in self.trained)),
            ]
            centroid = total(scaled(unit(vector), factor) for factor, vector in parts)
            self.raw[term] = {url: dot(phi[url][name], centroid) for url in self.urls}
        for name in ("anchor", "around"):
            self.raw[f"{name}-topic"] = {url: dot(phi[url][name], t) for url in self.urls}
        self.raw["semrank"] = {url: dot(self.vector(self.told_and_asked(url)), self.semrank) for url in self.urls}
        average = mean(y.values())
        linkers = {
            url: {self.url_of_place[p] for p in self.row("linkers", url)} & set(self.trained) for url in self.urls
        }
        good = {
            page: math.fsum(y[url] - average for url in self.trained if page in linkers[url])
            / (sum(page in linkers[url] for url in self.trained) + 2)
            for page in self.trained
        }
        self.raw["cocitation"] = {
            url: math.fsum(good[page] for page in linkers[url]) / math.sqrt(len(linkers[url]) + 1) for url in self.urls
        }
        self.finish()

    def grade(self, relevance: dict[int, float], url: int) -> float:
        if len(relevance) == 1:
            return 1.0
        below = sum(value < relevance[url] for value in relevance.values())
        equal = sum(value == relevance[url] for value in relevance.values())
        return ((below + (equal - 1) / 2) / (len(relevance) - 1)) ** 2

    def finish(self) -> None:
        plain = [url for url in self.current if not self.known.described[url]]
        told: dict[int, float] = defaultdict(float)
        trust = len(self.others) / (len(self.others) + 20)
        for name, weight in _WEIGHTS.items():
            if not name.endswith("-topic"):
                weight *= trust
            size = deviation(self.raw[name][url] for url in self.current)
            middle = mean(self.raw[name][url] for url in self.current)
            for url in self.urls:
                if plain and size > 1e-9:
                    told[url] += weight * (self.raw[name][url] - middle) / size
        slope, shift = 1.0, 0.0
        ones, others = [told[url] for url in self.trained], [self.content[url] for url in self.trained]
        correlation = 0.3
        if deviation(ones) > 1e-9 and deviation(others) > 1e-9:
            together = mean((a - mean(ones)) * (b - mean(others)) for a, b in zip(ones, others, strict=True))
            correlation = min(1.0, max(0.3, together / (deviation(ones) * deviation(others))))
        if 0 < len(plain) < len(self.current):
            anchored = [told[url] for url in plain]
            read = [self.content[url] for url in self.current if url not in plain]
            if deviation(anchored) > 1e-9:
                slope = correlation * deviation(read) / deviation(anchored)
            shift = mean(read) - slope * mean(anchored)
        sums = {url: shift + slope * told[url] if url in plain else self.content[url] for url in self.current}
        size, middle = deviation(sums.values()), mean(sums.values())
        self.scores = {
            int(self.known.url[url]): 1 / (1 + math.exp(-(sums[url] - middle) / size)) if size > 1e-9 else 0.5
            for url in self.current
        }


_PAGE_TERMS = (("linkers", "linkers"), ("clicked-near", "near"))
_WEIGHTS = {
    "anchor": 1.0,
    "around": 1.0,
    "linkers": 0.75,
    "query": 0.75,
    "clicked-near": 0.5,
    "anchor-topic": 0.5,
    "around-topic": 0.5,
    "cocitation": 0.3,
    "semrank": 2.0,
}


def assert_scores(crawl: Crawl) -> None:
    facts = facts_with_clicks(crawl)
    assert_formulas(focused.rank(facts), crawl, Oracle(facts, topic_lattice.lattice_of_facts(facts)))


def assert_formulas(ranked: pa.Table, crawl: Crawl, oracle: Oracle) -> None:
    scores = scores_of(ranked)
    assert scores == pytest.approx(oracle.scores, abs=1e-6)
    assert list(scores) == crawl.current


@settings(max_examples=150, deadline=None)
@given(crawls(), st.integers(2, 5), st.randoms())
def test_scores_are_the_formulas_in_small_and_those_of_parts(crawl: Crawl, parts: int, chance: random.Random) -> None:
    facts = facts_with_clicks(crawl)
    lattice = topic_lattice.lattice_of_facts(facts)
    with mock.patch.object(topic_lattice, "lattice_of_facts", {facts: lattice}.__getitem__):
        ranked = focused.rank(facts)
    assert_formulas(ranked, crawl, Oracle(facts, lattice))
    # The passes over parts in any order give the very tables that one part gives.
    tables = tables_of(facts, parts, chance)["descriptions"]
    assert rank_in_parts(facts, lattice, [table["url_id"].to_numpy() for table in tables]).equals(ranked)


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("only", [None, True, False])
def test_scores_are_the_formulas_in_large(number: int, only: bool | None) -> None:
    """With URLs to rank whose contents are known, unknown, or some of both."""
    crawl = random_crawl(number, urls=160)
    if only is not None:
        pages = {
            url: page if page.harvested else replace(page, described=only, text=page.text if only else {})
            for url, page in crawl.pages.items()
        }
        crawl = replace(crawl, pages=pages)
    assert_scores(crawl)


def changed(crawl: Crawl, change: Callable[[Page], Page]) -> Crawl:
    return replace(crawl, pages={url: change(page) for url, page in crawl.pages.items()})


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda page: replace(page, harvested=page.seed), id="first round"),
        pytest.param(
            lambda page: replace(page, described=page.described and not page.seed, text={} if page.seed else page.text),
            id="no seed described",
        ),
        pytest.param(lambda page: replace(page, described=False, text={}), id="nothing described"),
        pytest.param(lambda page: replace(page, seed=False), id="no seeds"),
        pytest.param(lambda page: replace(page, anchor={}, around={}, query={}), id="nothing told"),
        pytest.param(lambda _: Page(), id="nothing known"),
    ],
)
@pytest.mark.parametrize("asked", [True, False])
def test_scores_are_defined_whatever_is_missing(change: Callable[[Page], Page], asked: bool) -> None:
    crawl = changed(random_crawl(5), change)
    assert_scores(crawl if asked else replace(crawl, query=(), clicks={}))


def test_one_candidate_and_none() -> None:
    harvested = Page(seed=True, harvested=True, described=True, text={"bird": 2})
    one = Crawl({1: harvested, 2: Page(anchor={"bird": 1})}, [(1, 2)])
    assert scores_of(focused.rank(facts_with_clicks(one))) == {2: 0.5}
    none = focused.rank(facts_with_clicks(Crawl({1: harvested}, [])))
    assert none.schema == SCORED_SCHEMA
    assert none.num_rows == 0


def test_equal_candidates_score_one_half() -> None:
    page = Page(seed=True, harvested=True, described=True, text={"bird": 2, "nest": 1})
    crawl = Crawl({1: page, **{url: Page(anchor={"bird": 1}) for url in (2, 3, 4)}}, [])
    assert set(scores_of(focused.rank(facts_with_clicks(crawl))).values()) == {0.5}


def test_words_of_the_topic_make_the_difference() -> None:
    bird, spider = {"bird": 3, "eagle": 2, "wing": 1}, {"crawl": 3, "spider": 2}
    pages = {1: Page(True, True, True, text=bird, anchor={"eagle": 2}, around={"bird": 1})}
    pages |= {2: Page(False, True, True, text=spider, anchor={"spider": 2}, around={"crawl": 1})}
    pages |= {3: Page(anchor={"eagle": 1}, around={"bird": 1}), 4: Page(anchor={"spider": 1}, around={"crawl": 1})}
    scored = focused.rank(facts_with_clicks(Crawl(pages, [(1, 3), (2, 4)])))
    scores = scores_of(scored)
    assert scores[3] > 0.5 > scores[4]
    reasons = {reason["term"]: reason for reason in scored["reasons"].to_pylist()[0]}
    assert reasons["anchor"]["detail"] == "eagle"
    assert reasons["around"]["detail"] == "bird"
    # One harvested page besides the seed: the learned terms have a 21st of their weight.
    assert reasons["anchor"]["weight"] == pytest.approx(1 / 21)
    assert reasons["anchor"]["value"] == pytest.approx(1.0)
    assert reasons["linkers"]["detail"] == "1 linking page"


def test_reasons_of_known_contents_name_their_words() -> None:
    text = {"bird": 3, "eagle": 2, "wing": 1}
    pages = {1: Page(seed=True, harvested=True, described=True, text=text)}
    pages |= {2: Page(described=True, text={"bird": 1, "spider": 1}), 3: Page(described=True, text={"spider": 2})}
    facts = facts_with_clicks(Crawl(pages, []), leads=False)
    scored = focused.rank(facts).to_pylist()
    assert [reason["term"] for row in scored for reason in row["reasons"]] == ["content", "content"]
    assert [row["reasons"][0]["detail"] for row in scored] == ["bird", None]
    oracle = Oracle(facts, topic_lattice.lattice_of_facts(facts))
    assert [row["reasons"][0]["value"] for row in scored] == pytest.approx([oracle.content[1], oracle.content[2]])


# Distributed


def tables_of(facts: Facts, parts: int, chance: random.Random) -> dict[str, list[pa.Table]]:
    known = description_table(facts.descriptions)
    described = [
        part.take(pa.array(chance.sample(range(part.num_rows), part.num_rows)))
        for _, part in split_by_partition(known, known["url_id"].to_numpy(), parts)
    ]
    count = len(facts.words)
    vocabulary = pa.table([facts.words, pa.array(range(count), pa.int64()), facts.document_counts], names=_VOCABULARY)
    harvested = known.filter(known["harvested"]).select(["url_id", "seed"])
    return {
        "descriptions": chance.sample(described, len(described)),
        "vocabulary": [vocabulary],
        "harvested": [harvested],
    }


_VOCABULARY = ("word", "word_id", "documents")


def distributed(facts: Facts, query: tuple[str, ...], partitions: int, folder: Path, runner: str) -> pa.Table:
    tables = tables_of(facts, partitions, random.Random(partitions))
    with TestPipeline(runner=runner, options=BuildOptions([])) as pipeline:
        inputs = {
            name: pipeline | name >> beam.Create(rows).with_output_types(pa.Table) for name, rows in tables.items()
        }
        lattice = inputs | MakeTopicLattice(query=list(query), partitions=partitions)
        inputs |= {"word_weights": lattice | WeighWords(query=list(query)), "sizes": lattice["sizes"]}
        scored = inputs | RankByFocused(query=list(query), partitions=partitions)
        {"rows": scored} | WriteOne("write", str(folder), _sorted)
    return pq.read_table(folder)


def _sorted(rows: pa.Table | None) -> pa.Table:
    return SCORED_SCHEMA.empty_table() if rows is None else rows.sort_by("url_id")


@pytest.mark.parametrize(("partitions", "runner"), [(1, DEFAULT_RUNNER), (2, EMBEDDED_RUNNER), (7, DEFAULT_RUNNER)])
def test_distributed_scores_are_those_in_memory(partitions: int, runner: str, tmp_path: Path) -> None:
    crawl = random_crawl(partitions, urls=120)
    facts = facts_with_clicks(crawl)
    expected = focused.rank(facts)
    assert 0.5 not in expected["score"].to_pylist()
    assert distributed(facts, crawl.query, partitions, tmp_path, runner).equals(expected)


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(crawl=crawls(), partitions=st.sampled_from([1, 3]))
def test_distributed_scores_are_those_in_memory_in_small(crawl: Crawl, partitions: int) -> None:
    facts = facts_with_clicks(crawl)
    with TemporaryDirectory() as folder:
        scored = distributed(facts, crawl.query, partitions, Path(folder), DEFAULT_RUNNER)
    assert scored.equals(focused.rank(facts))


def rank_in_parts(facts: Facts, lattice: topic_lattice.TopicLattice, parts: list[np.ndarray]) -> pa.Table:
    """What a cluster computes with the URLs of each part."""
    known = facts.descriptions
    cut = [known.select(np.isin(known.url, urls)) for urls in parts]
    model = focused.Model({}).having(focused.first_vectors(lattice.known, known.harvested_count))
    model = model.having({"semrank": lattice.plain_centre})
    made = [focused.Part(part, model["idf"]) for part in cut]
    for step in focused.PASSES:
        if step.applies(model):
            rows = [exact_sums.sum_rows(step.sums(part, model), step.lengths(model)) for part in made]
            added = exact_sums.added_sums(pa.concat_tables(rows))
            model = model.having(step.conclude(model, exact_sums.sum_vectors([added], step.lengths(model))))
    scored = [focused.score_part(part, model, facts.words) for part in made]
    return pa.concat_tables(scored).sort_by("url_id")
