"""Relations by evidence against their definition, evaluated page by page, and the distributed ones against that."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterable
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
from semrank.transforms.columnar.arrays import MAIN, concatenate
from semrank.transforms.columnar.beam import WriteOne
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.context.links import LINK_SCHEMA
from semrank.transforms.ranking import topic_lattice, topic_part_of, topic_relations
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.ranking.topic_beam import MakeTopicLattice, RankByTopicLattice, RelateWords
from semrank.transforms.ranking.topic_lattice import TopicSettings
from semrank.transforms.ranking.topic_relations import WANTED
from tests.support.small_crawls import Crawl, Page, random_crawl

Asked = dict[int, dict[int, int]]
"""Page -> word -> sessions."""

Links = set[tuple[int, int]]


def relatives_by_definition(
    asked: Asked, base: set[int], links: Links, which: str = "both"
) -> dict[tuple[int, int], float]:
    """Similarity of each pair of a base word and one of its relatives."""
    pages = {}
    for page, counts in asked.items():
        leading = sorted(counts, key=lambda word: (-counts[word], word))[: topic_relations.MOST_WORDS]
        if base & set(leading):
            pages[page] = {word: counts[word] for word in leading}
    known = sorted((u, v) for u, v in links if u != v and u in pages and v in pages)
    words = {word for page in pages.values() for word in page}
    isa = {page: [(page, page)] for page in pages}
    part_of = {page: [(u, v) for u, v in known if u == page] for page in pages}
    similar: dict[int, tuple[dict[int, float], dict[int, float]]] = defaultdict(lambda: ({}, {}))
    for a in base & words:
        for b in words - {a}:
            if ics := _evidence(pages, isa, a, b)[1]:
                similar[a][0][b] = ics
                continue
            (to, to_ics), (back, back_ics) = (_evidence(pages, part_of, *ends) for ends in ((a, b), (b, a)))
            if ics := to_ics if to > back else back_ics if back > to else 0.0:
                similar[a][1][b] = ics
    return {
        (a, b): ics
        for a, found in similar.items()
        for relation, by_relation in zip(("isa", "part-of"), found, strict=True)
        if which in (relation, "both")
        for b, ics in sorted(by_relation.items(), key=lambda item: (-round(item[1], 9), item[0]))[
            : topic_relations.MOST_RELATIVES
        ]
    }


def _evidence(pages: Asked, places: dict[int, list[tuple[int, int]]], a: int, b: int) -> tuple[int, float]:
    """s(a, b) and ics(a, b) by the places of each page: pairs of pages, clicked for a and for b."""
    shared = [sum(min(pages[u].get(a, 0), pages[v].get(b, 0)) for u, v in own) for own in places.values()]
    every = [place for own in places.values() for place in own]
    first, second = sum(pages[u].get(a, 0) for u, _ in every), sum(pages[v].get(b, 0) for _, v in every)
    total = sum(max(*pages[u].values(), *pages[v].values()) for u, v in every)
    least = sum(shared) - max(shared, default=0) - topic_relations.DEVIATIONS * math.sqrt(sum(shared))
    if least <= 0 or least * total <= first * second:
        return sum(shared), 0.0
    return sum(shared), math.log(least * total / (first * second)) / math.log(total / least)


def table_of(asked: Asked) -> pa.Table:
    rows = [(page, word, sessions) for page, counts in asked.items() for word, sessions in counts.items()]
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.table([pa.array(column, pa.int64()) for column in columns], schema=topic_relations.ASKED_SCHEMA)


def link_table(links: Iterable[tuple[int, int]]) -> pa.Table:
    columns = list(zip(*links, strict=True)) or [(), ()]
    return pa.table([pa.array(column, pa.int64()) for column in columns], schema=LINK_SCHEMA)


def found_relatives(
    asked: Asked, base: set[int], links: Links, parts: int = 1, which: str = "both"
) -> dict[tuple[int, int], float]:
    base_words = np.array(sorted(base), dtype=np.int64)
    cut = [{page: counts for page, counts in asked.items() if page % parts == part} for part in range(parts)]
    leading = [topic_relations.leading_words(table_of(part), base_words) for part in cut]
    to_part = [link_table(link for link in sorted(links) if link[1] % parts == part) for part in range(parts)]
    sent = [rows for own, ends in zip(leading, to_part, strict=True) for rows in topic_part_of.sent_words(own, ends)]
    every = concatenate(sent, topic_part_of.SENT_SCHEMA)
    evidence = [topic_relations.page_evidence(own) for own in leading]
    evidence += [topic_part_of.link_evidence(own, every) for own in leading]
    pairs = topic_relations.added_pairs(pa.concat_tables([pairs for pairs, _ in evidence]))
    rows = topic_relations.relatives(pairs, pa.concat_tables([words for _, words in evidence]), which).to_pylist()
    assert rows == sorted(rows, key=lambda row: (row["source"], row["target"]))
    return {(row["source"], row["target"]): row["ics"] for row in rows}


askings = st.dictionaries(
    st.integers(0, 9), st.dictionaries(st.integers(0, 7), st.integers(1, 60), max_size=6), max_size=9
)
linkings = st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30)


@settings(max_examples=200, deadline=None)
@given(askings, st.sets(st.integers(0, 8), max_size=4), linkings, st.integers(1, 3), st.sampled_from(sorted(WANTED)))
def test_relatives_are_the_definition(asked: Asked, base: set[int], links: Links, parts: int, which: str) -> None:
    found = found_relatives(asked, base, links, parts, which)
    assert found == pytest.approx(relatives_by_definition(asked, base, links, which), abs=1e-9)
    assert all(0 < ics <= 1 and source in base for (source, _), ics in found.items())


@pytest.mark.parametrize("which", WANTED)
@pytest.mark.parametrize("number", range(6))
def test_relatives_are_the_definition_in_large(number: int, which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_relations, "MOST_WORDS", 6)
    monkeypatch.setattr(topic_part_of, "ROWS_AT_ONCE", 100)
    chance = random.Random(number)
    asked = {
        page: {word: chance.randint(1, 200) for word in chance.sample(range(30), chance.randint(0, 12))}
        for page in range(60)
    }
    links = {(chance.randrange(60), chance.randrange(60)) for _ in range(200)}
    base = set(chance.sample(range(30), 10))
    expected = relatives_by_definition(asked, base, links, which)
    assert expected
    assert found_relatives(asked, base, links, 3, which) == pytest.approx(expected, abs=1e-9)


def test_one_page_makes_no_relation() -> None:
    """One page clicked for two words does not make them alike, however often it was clicked."""
    others = {page: {page: 50} for page in range(10, 30)}
    base = {1, *others}
    assert found_relatives({1: {1: 500, 2: 500}, **others}, base, set()) == {}
    several = {page: {1: 50, 2: 50} for page in range(1, 5)}
    assert list(found_relatives({**several, **others}, base, set())) == [(1, 2)]


def test_links_of_several_pages_make_part_of() -> None:
    """Links of one page alone, however many, relate no words; nor do as many links back."""
    # Each page has a base word of its own.
    wholes: Asked = {page: {page: 1, 1: 50} for page in range(10, 15)}
    parts: Asked = {page: {page: 1, 2: 50} for page in range(15, 20)}
    others: Asked = {page: {page: 50} for page in range(20, 40)}
    asked, own = {**wholes, **parts, **others}, set(range(10, 40))
    between = {(page, page + 1) for page in range(20, 39)}
    assert found_relatives(asked, own | {1, 2}, {(10, page) for page in parts} | between) == {}
    forward = set(zip(wholes, parts, strict=True))
    backward = {(target, source) for source, target in forward}
    assert list(found_relatives(asked, own | {1}, forward | between)) == [(1, 2)]
    assert list(found_relatives(asked, own | {1}, backward | between)) == [(1, 2)]
    assert list(found_relatives(asked, own | {2}, forward | between)) == [(2, 1)]
    assert found_relatives(asked, own | {1}, forward | backward | between) == {}


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
    links = [(ids.get(a, a), ids.get(b, b)) for a, b in crawl.links]
    odd, even = ([page for page in pages if page % 2 == rest] for rest in (1, 0))
    links += [(source, target) for source in odd for target in chance.sample(even, 5)]
    crawl = replace(crawl, pages=pages, links=links, clicks={})
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


@pytest.mark.parametrize(("partitions", "which"), [(1, "both"), (2, "both"), (7, "both"), (2, "isa"), (2, "part-of")])
def test_distributed_scores_are_those_in_memory(partitions: int, which: str, tmp_path: Path) -> None:
    crawl, clicks, sessions = crawl_and_clicks(partitions)
    facts = facts_with_sessions(crawl, sessions)
    expected = topic_lattice.rank(facts, TopicSettings(which))
    lattice = topic_lattice.lattice_of_facts(facts, TopicSettings(which))
    assert lattice.related.nnz
    assert not expected.equals(topic_lattice.rank(facts))
    without_links = replace(facts, links=sparse.csr_array(facts.links.shape, dtype=np.int64))
    assert expected.equals(topic_lattice.rank(without_links, TopicSettings(which))) == (which == "isa")

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
        names = ("descriptions", "vocabulary", "harvested", "links")
        inputs = {name: pipeline | name >> beam.Create(tables[name]).with_output_types(pa.Table) for name in names}
        query = list(crawl.query)
        lattice = {name: inputs[name] for name in names if name != "links"} | MakeTopicLattice(
            query=query, partitions=partitions
        )
        relate = RelateWords(
            paths,
            which=which,
            words_of=_no_words,
            query=query,
            partitions=partitions,
            link_partitions=partitions,
        )
        known = {"descriptions": inputs["descriptions"], **lattice}
        known["relatives"] = {**known, "links": inputs["links"]} | relate
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
    rows = {row["url_id"]: row for row in topic_lattice.rank(facts, TopicSettings("both")).to_pylist()}
    assert [(match["base"], match["current"]) for match in rows[2]["matches"]] == [("bird", "hawk")]
    assert 0 < rows[2]["matches"][0]["ics"] < 1
    assert rows[3]["matches"] == []
    assert [(match["base"], match["current"]) for match in rows[4]["matches"]] == [("bird", "bird"), ("bird", "hawk")]
    assert rows[2]["score"] > rows[3]["score"]


def test_relations_need_sessions() -> None:
    facts = Crawl({1: Page(True, True, True, text={"bird": 1})}, []).facts()
    with pytest.raises(ValueError, match="no sessions"):
        topic_lattice.rank(facts, TopicSettings("both"))
