"""The attributes of URLs against the definition evaluated word by word, however the tables are cut."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from semrank.schemas.tables import LINKS, PAGES, conform
from semrank.transforms.columnar.arrays import MAIN, Int64s, int64s, split_by_partition
from semrank.transforms.columnar.idfilter import MIN_BITS, IdFilter
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.context import pages
from semrank.transforms.context.evidence import Evidence
from semrank.transforms.context.links import DISCOVERED_SCHEMA, ID_SCHEMA, anchor_rows, read_links
from semrank.transforms.context.objects import BASE, Corpus, ObjectSettings, make_objects
from semrank.transforms.weblog.clicks import WORD_SCHEMA
from tests.support.strategies import choices

LANGUAGE = "xx"
"""Has neither stop words nor lemmas, so that a text's words are plain to see."""

VOCABULARY = ["crawl", "spider", "lattice", "concept", "frontier", "harvest"]


@dataclass(frozen=True)
class Page:
    """What is known about a URL; `described` pages were fetched."""

    address: tuple[str, ...]
    fetched: bool
    in_queue: bool
    title: str | None
    text: str | None
    keywords: tuple[str | None, ...] | None
    anchors: tuple[tuple[str | None, bool | None], ...]
    clicks: tuple[int, ...]


_TEXTS = st.one_of(st.none(), choices(VOCABULARY, 0, 9).map(" ".join))
_PAGES = st.builds(
    Page,
    address=choices(VOCABULARY, 0, 3).map(tuple),
    fetched=st.booleans(),
    in_queue=st.booleans(),
    title=_TEXTS,
    text=_TEXTS,
    keywords=st.one_of(st.none(), st.none(), choices([None, "Web page", *VOCABULARY], 0, 5).map(tuple)),
    anchors=st.lists(st.tuples(_TEXTS, st.sampled_from([None, False, True])), max_size=3).map(tuple),
    clicks=choices(range(5), len(VOCABULARY), len(VOCABULARY)).map(tuple),
)
_SETTINGS = st.builds(
    ObjectSettings,
    keywords_per_page=st.integers(1, 4),
    min_clicks=st.integers(1, 3),
    max_keywords_per_url=st.integers(1, 3),
    language=st.just(LANGUAGE),
    count_every_click=st.just(False),
)


def url_of(number: int, page: Page) -> str:
    return f"https://host{number}.example/" + "/".join(page.address)


def expected_words(known: list[Page], options: ObjectSettings) -> dict[str, set[str]]:
    ids = dict(zip(VOCABULARY, text_ids(pa.array(VOCABULARY)).tolist(), strict=True))
    texts = {
        number: Counter(f"{page.title or ''} {page.text or ''}".split())
        for number, page in enumerate(known)
        if page.fetched and page.keywords is None and (page.title is not None or page.text is not None)
    }
    documents = Counter(word for counts in texts.values() for word in counts)

    def best(counts: Counter[str]) -> set[str]:
        scores = {word: n * float(np.log((len(texts) + 1) / max(documents[word], 1))) for word, n in counts.items()}
        return set(sorted(scores, key=lambda word: (-scores[word], ids[word]))[: options.keywords_per_page])

    words = {}
    for number, page in enumerate(known):
        if page.fetched and page.keywords is not None:
            chosen = {word for word in page.keywords if word is not None}
        elif number in texts:
            chosen = best(texts[number])
        else:
            heard = Counter(page.address)
            for anchor, nofollow in page.anchors:
                heard.update((anchor or "").split() if not nofollow else [])
            often = {word: n for word, n in zip(VOCABULARY, page.clicks, strict=True) if n >= options.min_clicks}
            clicked = sorted(often, key=lambda word: (-often[word], ids[word]))[: options.max_keywords_per_url]
            chosen = best(heard) | set(clicked)
        words[url_of(number, page)] = chosen
    return words


def computed_words(known: list[Page], options: ObjectSettings, tables: int, partitions: int) -> dict[str, set[str]]:
    urls = [url_of(number, page) for number, page in enumerate(known)]
    ids = text_ids(pa.array(urls, pa.string()))
    queue = np.sort(ids[[page.in_queue for page in known]])
    wanted = pages.Wanted(np.sort(ids), IdFilter.from_segments(None, MIN_BITS))
    rows: dict[str, list[pa.Table]] = {}

    def add(kind: str, table: pa.Table) -> None:
        rows.setdefault(kind, []).append(table)

    fetched = [number for number, page in enumerate(known) if page.fetched]
    for part in (fetched[start::tables] for start in range(tables)):
        table = pa.table(
            {
                "url": pa.array([urls[number] for number in part], pa.string()),
                "title": pa.array([known[number].title for number in part], pa.string()),
                "text": pa.array([known[number].text for number in part], pa.string()),
                "keywords": pa.array([known[number].keywords for number in part], pa.list_(pa.string())),
                "language": pa.array([LANGUAGE] * len(part), pa.string()),
            }
        )
        for kind, said in pages.read_pages(conform(table, PAGES), wanted, LANGUAGE, every=True, lead=False):
            add(kind, said)
    links = [(url, *anchor) for url, page in zip(urls, known, strict=True) for anchor in page.anchors]
    for part_of_links in (links[start::tables] for start in range(tables)):
        columns = list(zip(*part_of_links, strict=True)) or [(), (), ()]
        table = conform(
            pa.table(
                {
                    "source_url": pa.array(["https://source.example/"] * len(columns[0]), pa.string()),
                    "target_url": pa.array(columns[0], pa.string()),
                    "anchor_text": pa.array(columns[1], pa.string()),
                    "nofollow": pa.array(columns[2], pa.bool_()),
                }
            ),
            LINKS,
        )
        every = np.ones(table.num_rows, dtype=np.bool_)
        counts, words = pages.text_words(*anchor_rows(table, every, read_links(table)), LANGUAGE)
        add("anchors", counts)
        add(pages.WORDS, words)

    word_ids = text_ids(pa.array(VOCABULARY))
    clicks = np.array([page.clicks for page in known], dtype=np.int64)
    add(
        "clicked",
        pa.table(
            [np.repeat(ids, len(VOCABULARY)), np.tile(word_ids, len(known)), clicks.ravel()], schema=pages.TERM_SCHEMA
        ).filter(pa.array(clicks.ravel() > 0)),
    )
    add(pages.WORDS, pa.table([word_ids, word_ids, pa.array(VOCABULARY)], schema=WORD_SCHEMA))
    add("known", pa.table([queue], schema=ID_SCHEMA))
    current = [number for number, page in enumerate(known) if not page.in_queue]
    add("discovered", pa.table([ids[current], [urls[number] for number in current]], schema=DISCOVERED_SCHEMA))

    frequencies = pages.frequent_words(pa.concat_tables(rows[pages.FREQUENCIES]))
    queued = [number for number, page in enumerate(known) if page.in_queue]
    add("queue", pa.table([ids[queued], [urls[number] for number in queued]], schema=DISCOVERED_SCHEMA))
    addresses, words = pages.address_words(*_distinct(ids, urls), LANGUAGE)
    add("addresses", addresses)
    add(pages.WORDS, words)
    corpus = Corpus(
        queue_ids=queue,
        frequent_ids=int64s(frequencies["word_id"]),
        frequencies=int64s(frequencies["documents"]),
        documents=sum(table["documents"][0].as_py() for table in rows[pages.DOCUMENTS]),
    )
    kinds = ("queue", "discovered", "known", "addresses", "fetched", "terms", "given", "anchors", "clicked")
    split = {kind: _split(pa.concat_tables(rows[kind]), partitions) for kind in kinds if kind in rows}
    made: list[pa.Table] = []
    for partition in range(partitions):
        evidence = Evidence(**{kind: parts[partition] for kind, parts in split.items() if partition in parts})
        for kind, table in make_objects(evidence, corpus, options):
            if kind in (BASE, MAIN):
                made.append(table)
    named = pa.concat_tables(rows[pages.WORDS])
    names = dict(zip(named["word_id"].to_pylist(), named["word"].to_pylist(), strict=True))
    found = [row for table in made for row in table.select(["url", "words"]).to_pylist()]
    assert len(found) == len({row["url"] for row in found})
    assert all(len(row["words"]) == len(set(row["words"])) for row in found)
    return {row["url"]: {names[word] for word in row["words"]} for row in found}


def _distinct(ids: Int64s, urls: list[str]) -> tuple[Int64s, pa.Array]:
    distinct, first = np.unique(ids, return_index=True)
    return distinct, pa.array([urls[number] for number in first], pa.string())


def _split(table: pa.Table, partitions: int) -> dict[int, pa.Table]:
    ids: Int64s = int64s(table["url_id"])
    return dict(split_by_partition(table, ids, partitions))


@settings(max_examples=150, deadline=None)
@given(
    known=st.lists(_PAGES, min_size=1, max_size=7),
    options=_SETTINGS,
    tables=st.integers(1, 3),
    partitions=st.sampled_from([1, 2, 7]),
)
def test_attributes_are_those_of_the_definition(
    known: list[Page], options: ObjectSettings, tables: int, partitions: int
) -> None:
    assert computed_words(known, options, tables, partitions) == expected_words(known, options)
