"""Crawls small enough to rank by definition, as plain values, as facts in memory, and as the tables of a cluster."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from scipy import sparse

from semrank.transforms.columnar.arrays import split_by_partition
from semrank.transforms.context.descriptions import BLOCKS, Descriptions
from semrank.transforms.ranking.facts import Facts
from tests.support.description_tables import description_table
from tests.support.strategies import choices

WORDS = ("bird", "crawl", "eagle", "hawk", "lattice", "nest", "spider", "wing")
FOREIGN_WORD = "zebra"
"""A word of queries that no page has."""


@dataclass(frozen=True)
class Page:
    """A known URL; blocks hold how often words occur."""

    seed: bool = False
    harvested: bool = False
    described: bool = False
    text: dict[str, int] = field(default_factory=dict)
    anchor: dict[str, int] = field(default_factory=dict)
    around: dict[str, int] = field(default_factory=dict)
    query: dict[str, int] = field(default_factory=dict)

    @property
    def words(self) -> Counter[str]:
        """The words that rankers by content judge it by, from their definition."""
        if self.described:
            return Counter(self.text)
        return Counter(self.anchor) + Counter(self.around) + Counter(dict.fromkeys(self.query, 1))

    @property
    def told(self) -> set[str]:
        """The words that count in the document frequency."""
        return set(self.text) if self.described else set(self.anchor) | set(self.around)


@dataclass(frozen=True)
class Crawl:
    """Known URLs by id, followed links (ends may be unknown), clicks on c-edges between URLs, words of a query."""

    pages: dict[int, Page]
    links: list[tuple[int, int]]
    clicks: dict[tuple[int, int], int] = field(default_factory=dict)
    query: tuple[str, ...] = ()
    words: tuple[str, ...] = WORDS

    @property
    def ids(self) -> list[int]:
        return sorted(self.pages)

    @property
    def current(self) -> list[int]:
        return [url for url in self.ids if not self.pages[url].harvested]

    @property
    def harvested(self) -> list[int]:
        return [url for url in self.ids if self.pages[url].harvested]

    @property
    def seeds(self) -> list[int]:
        return [url for url in self.ids if self.pages[url].seed]

    def linkers(self, url: int) -> list[int]:
        """The harvested pages that link to a URL."""
        return sorted({source for source, target in self.links if target == url} & set(self.harvested) - {url})

    def documents(self, word: str) -> int:
        return sum(word in page.told for page in self.pages.values())

    def topic(self) -> Counter[str]:
        """Words of the seeds and of the query, those that are known."""
        words: Counter[str] = Counter({word: 1 for word in self.query if word in self.words})
        for url in self.seeds:
            words += self.pages[url].words
        return words

    def descriptions(self) -> Descriptions:
        pages = [self.pages[url] for url in self.ids]
        places = {url: place for place, url in enumerate(self.harvested)}
        blocks = {name: matrix([getattr(page, name, {}) for page in pages], self.words) for name in BLOCKS}
        linkers = np.zeros((len(pages), len(places)), dtype=np.int64)
        for row, url in enumerate(self.ids):
            linkers[row, [places[linker] for linker in self.linkers(url)]] = 1
        return Descriptions(
            url=np.array(self.ids, dtype=np.int64),
            seed=np.array([page.seed for page in pages], dtype=np.bool_),
            harvested=np.array([page.harvested for page in pages], dtype=np.bool_),
            current=np.array([not page.harvested for page in pages], dtype=np.bool_),
            fetched=np.array([page.described for page in pages], dtype=np.bool_),
            described=np.array([page.described for page in pages], dtype=np.bool_),
            place=np.array([places.get(url, -1) for url in self.ids], dtype=np.int64),
            **blocks,
            linkers=sparse.csr_array(linkers),
            near=sparse.csr_array(np.zeros_like(linkers)),
        )

    def facts(self) -> Facts:
        number = {url: row for row, url in enumerate(self.ids)}
        links, clicks = (np.zeros((len(number), len(number)), dtype=np.int64) for _ in range(2))
        for source, target in self.links:
            if source in number and target in number and source != target:
                links[number[source], number[target]] = 1
        for (source, target), times in self.clicks.items():
            if source in number and target in number:
                clicks[number[source], number[target]] = times
        return Facts(
            descriptions=self.descriptions(),
            links=sparse.csr_array(links),
            clicks=sparse.csr_array(clicks),
            discovery=np.zeros(len(number), dtype=np.int64),
            query=np.array([self.words.index(word) for word in self.query if word in self.words], dtype=np.int64),
            words=pa.array(self.words, pa.string()),
        )

    def tables(self, parts: int, chance: random.Random) -> dict[str, list[pa.Table]]:
        """The tables that a distributed ranker takes, in shuffled order: URLs in `parts` parts, links repeated."""
        table = description_table(self.descriptions())
        ids = table["url_id"].to_numpy()
        described = [_shuffled(part, chance) for _, part in split_by_partition(table, ids, parts)]
        repeated = self.links + chance.sample(self.links, len(self.links) // 2)
        links = pa.table(
            {name: pa.array([ends[end] for ends in repeated], pa.int64()) for end, name in enumerate(LINK_NAMES)}
        )
        edges = {
            "source": [source for source, _ in self.clicks],
            "target": [target for _, target in self.clicks],
            "clicks": list(self.clicks.values()),
        }
        vocabulary = {
            "word": pa.array(self.words, pa.string()),
            "word_id": pa.array([7 * number for number in range(len(self.words))], pa.int64()),
            "documents": pa.array([self.documents(word) for word in self.words], pa.int64()),
        }
        harvested = {
            "url_id": pa.array(self.harvested, pa.int64()),
            "seed": pa.array([self.pages[url].seed for url in self.harvested], pa.bool_()),
        }
        edge_table = pa.table({name: pa.array(values, pa.int64()) for name, values in edges.items()})
        cut = {
            "descriptions": described,
            "links": _cut(_shuffled(links, chance), parts),
            "click_edges": _cut(_shuffled(edge_table, chance), parts),
            "vocabulary": _cut(pa.table(vocabulary), 1),
            "harvested": _cut(pa.table(harvested), 1),
        }
        return {name: chance.sample(tables, len(tables)) for name, tables in cut.items()}


LINK_NAMES = ("source_id", "target_id")


def matrix(rows: list[dict[str, int]], words: tuple[str, ...]) -> sparse.csr_array:
    dense = np.zeros((len(rows), len(words)), dtype=np.int64)
    for row, counts in enumerate(rows):
        for word, count in counts.items():
            dense[row, words.index(word)] = count
    return sparse.csr_array(dense)


def _shuffled(table: pa.Table, chance: random.Random) -> pa.Table:
    return table.take(pa.array(chance.sample(range(table.num_rows), table.num_rows), pa.int64()))


def _cut(table: pa.Table, parts: int) -> list[pa.Table]:
    size = max(1, -(-table.num_rows // parts))
    return [table.slice(start, size) for start in range(0, table.num_rows, size)]


def random_crawl(number: int, urls: int = 60) -> Crawl:
    """A crawl of some size: two topics, links that lead to the seeds step by step, unknown link ends."""
    chance = random.Random(number)
    order = [chance.randint(-(1 << 63), (1 << 63) - 1) for _ in range(urls)]
    vocabulary = tuple(f"{word}{copy}" for word in WORDS for copy in range(6))

    def some(most: int) -> dict[str, int]:
        half = vocabulary[: len(vocabulary) // 2] if chance.random() < 0.5 else vocabulary
        return {chance.choice(half): chance.randint(1, 9) for _ in range(chance.randint(0, most))}

    pages = {}
    for place, url in enumerate(order):
        described = chance.random() < 0.7
        pages[url] = Page(
            seed=place < 3,
            harvested=place < urls // 3,
            described=described,
            text=some(15) if described else {},
            anchor=some(3),
            around=some(5),
            query=some(2),
        )
    unknown = [chance.randint(-(1 << 63), (1 << 63) - 1) for _ in range(4)]
    anybody = [*order, *unknown]
    links = [(chance.choice(anybody), chance.choice(anybody)) for _ in range(2 * urls)]
    links += [(order[place], order[place // 4]) for place in range(1, urls // 2)]
    clicks = {
        (source, target): chance.randint(1, 5)
        for source, target in ((chance.choice(anybody), chance.choice(anybody)) for _ in range(3 * urls))
        if source != target
    }
    query = (chance.choice(vocabulary), chance.choice(vocabulary), FOREIGN_WORD)
    return Crawl(pages, links, clicks, query, tuple(sorted(vocabulary)))


@st.composite
def crawls(draw: st.DrawFn) -> Crawl:
    """Crawls of up to 8 URLs with few words, among them ones without seeds, words, links or content."""
    ids = draw(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1, max_size=8, unique=True))
    counts = choices([(word, count) for word in WORDS for count in range(1, 31)], 0, 4).map(dict)

    def page() -> Page:
        seed, described, harvested = draw(choices([False, True], 3, 3))
        return Page(
            seed=seed,
            harvested=seed or harvested,
            described=described,
            text=draw(counts) if described else {},
            anchor=draw(counts),
            around=draw(counts),
            query=draw(counts),
        )

    pages = {url: page() for url in ids}
    ends = [(source, target) for source in (*ids, 17) for target in (*ids, 17)]
    links = draw(choices(ends, 0, 16))
    clicked = draw(choices([(source, target) for source, target in ends if source != target], 0, 8))
    clicks = dict(zip(clicked, draw(choices(range(1, 10), 8, 8)), strict=False)) if len(ids) > 1 else {}
    query = draw(choices([*WORDS, FOREIGN_WORD], 0, 3))
    return Crawl(pages, links, clicks, tuple(query))


def facts_with_clicks(crawl: Crawl, leads: bool = True) -> Facts:
    """The facts of a crawl, its clicks counted next to harvested pages, and half of each text's words in its lead."""
    facts = crawl.facts()
    known = facts.descriptions
    both = sparse.csr_array(facts.clicks + facts.clicks.T)
    near = sparse.csr_array(both[:, np.flatnonzero(known.harvested)])
    lead = sparse.csr_array(known.text.toarray() // 2 * leads)
    return replace(facts, descriptions=replace(known, near=near, lead=lead))


def scores_of(table: pa.Table) -> dict[int, float]:
    return dict(zip(table["url_id"].to_pylist(), table["score"].to_pylist(), strict=True))
