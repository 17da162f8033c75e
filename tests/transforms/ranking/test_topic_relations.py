"""Relations by evidence against their definition, evaluated page by page, and the distributed ones against that."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.testing.test_pipeline import TestPipeline
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from semrank.pipelines.runtime import BuildOptions
from semrank.schemas.tables import CLICKS
from semrank.transforms.columnar.arrays import MAIN
from semrank.transforms.columnar.beam import WriteOne
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.ranking import topic_lattice, topic_relations
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.ranking.topic_beam import MakeTopicLattice, RankByTopicLattice, RelateWords
from semrank.transforms.ranking.topic_lattice import TopicSettings
from tests.support.small_crawls import Crawl, Page, random_crawl

Asked = dict[int, dict[int, int]]
"""Page -> word -> sessions."""


def relatives_by_definition(asked: Asked, base: set[int]) -> dict[tuple[int, int], float]:
    """Similarity of each pair of a base word and one of its relatives."""
    pages = []
    for counts in asked.values():
        leading = sorted(counts, key=lambda word: (-counts[word], word))[: topic_relations.MOST_WORDS]
        if base & set(leading):
            pages.append({word: counts[word] for word in leading})
    total = sum(max(page.values()) for page in pages)
    sessions = {word: sum(page.get(word, 0) for page in pages) for page in pages for word in page}
    similar: dict[int, dict[int, float]] = defaultdict(dict)
    for a in base & set(sessions):
        for b in set(sessions) - {a}:
            shared = [min(page[a], page[b]) for page in pages if a in page and b in page]
            if not shared:
                continue
            least = sum(shared) - max(shared) - topic_relations.DEVIATIONS * math.sqrt(sum(shared))
            if least > 0 and least * total > sessions[a] * sessions[b]:
                lift = math.log(least * total / (sessions[a] * sessions[b]))
                similar[a][b] = lift / math.log(total / least)
    return {
        (a, b): ics
        for a, found in similar.items()
        for b, ics in sorted(found.items(), key=lambda item: (-round(item[1], 9), item[0]))[
            : topic_relations.MOST_RELATIVES
        ]
    }


def table_of(asked: Asked) -> pa.Table:
    rows = [(page, word, sessions) for page, counts in asked.items() for word, sessions in counts.items()]
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.table([pa.array(column, pa.int64()) for column in columns], schema=topic_relations.ASKED_SCHEMA)


def found_relatives(asked: Asked, base: set[int], parts: int = 1) -> dict[tuple[int, int], float]:
    base_words = np.array(sorted(base), dtype=np.int64)
    cut = [{page: counts for page, counts in asked.items() if page % parts == part} for part in range(parts)]
    told = [topic_relations.page_evidence(table_of(part), base_words) for part in cut]
    pairs = topic_relations.added_pairs(pa.concat_tables([pair for pair, _ in told]))
    rows = topic_relations.relatives(pairs, pa.concat_tables([words for _, words in told])).to_pylist()
    assert rows == sorted(rows, key=lambda row: (row["source"], row["target"]))
    return {(row["source"], row["target"]): row["ics"] for row in rows}


askings = st.dictionaries(
    st.integers(0, 9), st.dictionaries(st.integers(0, 7), st.integers(1, 60), max_size=6), max_size=9
)


@settings(max_examples=200, deadline=None)
@given(askings, st.sets(st.integers(0, 8), max_size=4), st.integers(1, 3))
def test_relatives_are_the_definition(asked: Asked, base: set[int], parts: int) -> None:
    found = found_relatives(asked, base, parts)
    assert found == pytest.approx(relatives_by_definition(asked, base), abs=1e-9)
    assert all(0 < ics <= 1 and source in base for (source, _), ics in found.items())


@pytest.mark.parametrize("number", range(6))
def test_relatives_are_the_definition_in_large(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_relations, "MOST_WORDS", 6)
    chance = random.Random(number)
    asked = {
        page: {word: chance.randint(1, 200) for word in chance.sample(range(30), chance.randint(0, 12))}
        for page in range(60)
    }
    base = set(chance.sample(range(30), 10))
    expected = relatives_by_definition(asked, base)
    assert expected
    assert found_relatives(asked, base, 3) == pytest.approx(expected, abs=1e-9)


def test_one_page_makes_no_relation() -> None:
    """One page clicked for two words does not make them alike, however often it was clicked."""
    others = {page: {page: 50} for page in range(10, 30)}
    base = {1, *others}
    assert found_relatives({1: {1: 500, 2: 500}, **others}, base) == {}
    several = {page: {1: 50, 2: 50} for page in range(1, 5)}
    assert list(found_relatives({**several, **others}, base)) == [(1, 2)]


# With the lattice


def crawl_and_clicks(number: int, urls: int = 80) -> tuple[Crawl, pa.Table, dict[tuple[int, str], int]]:
    """A crawl whose URLs have ids of real addresses, a click log, and its sessions by URL and word."""
    crawl = random_crawl(number, urls=urls)
    chance = random.Random(number)
    addresses = [f"https://x.example/{number}" for number in range(len(crawl.pages))]
    ids = dict(zip(crawl.pages, text_ids(pa.array(addresses)).tolist(), strict=True))
    url = dict(zip(ids.values(), addresses, strict=True))
    rows, sessions = [], defaultdict(set)
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    words = sorted({word for page in crawl.seeds for word in crawl.pages[page].text})[:8]
    pages = {}
    for page, facts in crawl.pages.items():
        own = {word: 1 for word in words if chance.random() < 0.7}
        text = facts.text | own if facts.described else {}
        pages[ids[page]] = replace(facts, query={}, text=text, anchor=facts.anchor | own)
    for click in range(3000):
        page = chance.choice(list(pages))
        query = chance.sample(words[:4] if page % 2 else words[4:], 2)
        user, session = f"u{chance.randint(0, 40)}", chance.choice([None, "a", "b"])
        rows.append(
            {
                "user_id": user,
                "session_id": session,
                "query": " ".join(query),
                "keywords": query,
                "clicked_at": begin + timedelta(minutes=click),
                "url": url[page],
            }
        )
        for word in query:
            sessions[page, word].add((user, session))
            pages[page].query[word] = pages[page].query.get(word, 0) + 1
    crawl = replace(crawl, pages=pages, links=[(ids.get(a, a), ids.get(b, b)) for a, b in crawl.links], clicks={})
    clicks = pa.Table.from_pylist(rows, schema=CLICKS.schema)
    return crawl, clicks, {key: len(found) for key, found in sessions.items()}


def facts_with_sessions(crawl: Crawl, sessions: dict[tuple[int, str], int]) -> Facts:
    asked = np.zeros((len(crawl.ids), len(crawl.words)), dtype=np.int64)
    for (url, word), count in sessions.items():
        asked[crawl.ids.index(url), crawl.words.index(word)] = count
    return replace(crawl.facts(), asked=sparse.csr_array(asked))


def test_pages_count_for_words_that_they_have() -> None:
    crawl, _, sessions = crawl_and_clicks(2)
    facts = facts_with_sessions(crawl, sessions)
    assert facts.asked is not None
    rows = topic_relations.asked_words(facts.descriptions, facts.asked).to_pylist()
    expected = {
        (url, crawl.words.index(word)): count
        for (url, word), count in sessions.items()
        if word in crawl.pages[url].told
    }
    assert {(row["url_id"], row["word"]): row["sessions"] for row in rows} == expected


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_distributed_scores_are_those_in_memory(partitions: int, tmp_path: Path) -> None:
    crawl, clicks, sessions = crawl_and_clicks(partitions)
    facts = facts_with_sessions(crawl, sessions)
    expected = topic_lattice.rank(facts, TopicSettings(relations=True))
    lattice = topic_lattice.lattice_of_facts(facts, TopicSettings(relations=True))
    assert lattice.related.nnz
    assert not expected.equals(topic_lattice.rank(facts))

    folder = tmp_path / "clicks"
    folder.mkdir()
    for part in range(partitions):
        pq.write_table(clicks.slice(part * 3000 // partitions, 3000 // partitions + 1), folder / f"{part}.parquet")
    # The slices overlap by a row: a session counts once.
    paths = sorted(map(str, folder.iterdir()))
    tables = crawl.tables(partitions, random.Random(partitions))
    vocabulary = tables["vocabulary"][0]
    ids = pa.array(text_ids(vocabulary["word"]))
    tables["vocabulary"] = [vocabulary.set_column(1, "word_id", ids)]
    with TestPipeline(runner="FnApiRunner", options=BuildOptions([])) as pipeline:
        names = ("descriptions", "vocabulary", "harvested")
        inputs = {name: pipeline | name >> beam.Create(tables[name]).with_output_types(pa.Table) for name in names}
        query = list(crawl.query)
        known = {"descriptions": inputs["descriptions"]}
        known |= inputs | MakeTopicLattice(query=query, partitions=partitions)
        known["relatives"] = known | RelateWords(paths, words_of=_no_words, query=query, partitions=partitions)
        ranked = known | RankByTopicLattice(query=query)
        {"rows": ranked[MAIN]} | WriteOne("write", str(tmp_path / "rows"), _sorted)
    assert pq.read_table(tmp_path / "rows").equals(expected)


def _no_words(texts: pa.Array) -> pa.ListArray:
    return pa.array([[] for _ in texts], pa.list_(pa.string()))


def _sorted(rows: pa.Table) -> pa.Table:
    return rows.sort_by("url_id")


def test_matches_have_their_evidence() -> None:
    """A URL that has a relative of a keyword matches it, with the similarity that was found."""
    text = {"bird": 3, "wing": 2}
    pages = {1: Page(True, True, True, text=text), 2: Page(anchor={"hawk": 1}), 3: Page(anchor={"crawl": 1})}
    pages |= {url: Page(described=True, text={"bird": 1, "hawk": 1}, query={"bird": 9, "hawk": 9}) for url in (4, 5, 6)}
    pages |= {url: Page(described=True, text={"wing": 1}, query={"wing": 90}) for url in (7, 8)}
    crawl = Crawl(pages, [])
    sessions = {(url, word): count for url, page in pages.items() for word, count in page.query.items()}
    facts = facts_with_sessions(crawl, sessions)
    rows = {row["url_id"]: row for row in topic_lattice.rank(facts, TopicSettings(relations=True)).to_pylist()}
    assert [(match["base"], match["current"]) for match in rows[2]["matches"]] == [("bird", "hawk")]
    assert 0 < rows[2]["matches"][0]["ics"] < 1
    assert rows[3]["matches"] == []
    assert [(match["base"], match["current"]) for match in rows[4]["matches"]] == [("bird", "bird"), ("bird", "hawk")]
    assert rows[2]["score"] > rows[3]["score"]


def test_relations_need_sessions() -> None:
    facts = Crawl({1: Page(True, True, True, text={"bird": 1})}, []).facts()
    with pytest.raises(ValueError, match="no sessions"):
        topic_lattice.rank(facts, TopicSettings(relations=True))
