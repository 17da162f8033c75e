"""Generated webs and click logs of any size, as the Parquet tables that semrank reads.

The shapes are those that make web data hard: links to a page and clicks on it follow a power law, most links stay
within a topic, a few words stand on very many pages, part of the linked pages were never fetched. Tables are
made and written in pieces, each from a generator of its own, so that memory does not grow with the size.

    python -m benchmarks.generate web --pages 100000 --output web
    python -m benchmarks.generate clicks --clicks 20000000 --output log
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from semrank.schemas.errors import InputError
from semrank.schemas.tables import CLICKS, LINKS, PAGES, TOPICS, TableSchema
from semrank.transforms.columnar.arrays import Float64s, Int64s, mix_bits

PIECE_PAGES = 1 << 15
"""Pages made at a time; with 10 links and 120 words each some 50 MB. Part of what the numbers determine."""

PIECE_SESSIONS = 1 << 18
"""Sessions made at a time, about three clicks each. Part of what the numbers determine."""

FILES = 8
"""Files of a table, so that readers can share the work."""

POPULARITY = 0.9
"""Exponent of pages' popularity by rank: in-degrees then have the exponent 1 + 1/0.9 = 2.1 that was measured on the
web (Broder et al., Graph structure in the Web, 2000)."""

WORD_EXPONENT = 1.0
"""Exponent of words' frequency by rank (Zipf)."""

OWN_TOPIC = 0.7
"""Share of links and of words that stay within a page's topic."""

FETCHED = 0.5
"""Share of pages that were fetched; the others are known by links and clicks."""

KEYWORDS_PER_PAGE = 15
TEXT_WORDS = 120
TOPIC_WORDS = 400
"""Words that a topic has beside the common ones; no other topic has them up to `APART_TOPICS` topics."""

APART_TOPICS = 50
VOCABULARY_EXPONENT = 0.6
"""More topics share words: their vocabulary grows as topics^0.6, as that of English texts does with their length
(Heaps' law, 0.4 to 0.6; Baeza-Yates, Ribeiro-Neto, Modern Information Retrieval, 1999)."""

COMMON_WORDS = 20_000
"""Words that all topics share."""

_WORDS_PER_SENTENCE = 12
_SYLLABLES = np.array([first + second for first in "bdfgklmnprstvz" for second in "aeiou"])
_MEAN_SESSION = 3.0
_SESSION_GAP_SECONDS = 600  # the longest time between two clicks of a session, well below the 30 minutes that end one
_LOG_BEGIN = 1_704_067_200  # 2024-01-01, seconds since 1970
_LOG_SECONDS = 28 * 86_400
_MICROSECONDS = 1_000_000
_USERS_PER_GROUP = 50
_GROUPED = 0.8  # share of users that belong to a group


@dataclass(frozen=True)
class Web:
    """What a generated web looks like.

    Attributes:
        pages: number of URLs; about the share `FETCHED` of them has content and links.
        seed: everything random follows from it.
        content: whether pages carry keywords or text.
        links_per_page: mean number of links of a fetched page (a power law too, up to 500).
        topics: number of topics.
        hosts: number of hosts; page p lies on host p modulo `hosts`.

    Raises:
        InputError: a number is too small for the others.
    """

    pages: int
    seed: int = 1
    content: Literal["keywords", "text"] = "keywords"
    links_per_page: float = 10.0
    topics: int = 50
    hosts: int = 1_000

    def __post_init__(self) -> None:
        """Hold the numbers to each other."""
        if self.topics < 1 or self.pages < 2 * self.topics:
            raise InputError(f"found {self.pages} pages in {self.topics} topics, expected at least two pages a topic")
        if self.hosts < 1 or self.links_per_page < 1:
            raise InputError(
                f"found {self.hosts} hosts and {self.links_per_page} links a page, expected at least 1 of each"
            )


@dataclass(frozen=True)
class ClickLog:
    """What a generated click log looks like.

    Attributes:
        clicks: number of clicks.
        pages: number of URLs that are clicked on, those of `Web(pages=...)`.
        seed: everything random follows from it.
        users: number of users.
        topics: number of topics, as in `Web`.
        hosts: number of hosts, as in `Web`.
        queries_per_topic: different queries of a topic; their popularity follows a power law.

    Raises:
        InputError: a number is too small for the others.
    """

    clicks: int
    pages: int = 1_000_000
    seed: int = 1
    users: int = 200_000
    topics: int = 50
    hosts: int = 1_000
    queries_per_topic: int = 2_000

    def __post_init__(self) -> None:
        """Hold the numbers to each other."""
        smallest = min(self.clicks, self.users, self.topics, self.hosts, self.queries_per_topic)
        if smallest < 1 or self.pages < 2 * self.topics:
            raise InputError(f"found {self}, expected numbers of at least 1 and at least two pages a topic")


def _generator(seed: int, *purpose: int) -> np.random.Generator:
    """A generator of its own for each piece of each table."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *purpose])))


_LINKS, _CONTENT, _SESSIONS, _QUERIES, _FETCH = range(5)


def power_law_ranks(random: Float64s, count: Int64s | int, exponent: float) -> Int64s:
    """Ranks from 0 to count - 1 whose frequency falls as (rank + 1)^-exponent, by inversion of the continuous law.

    Args:
        random: uniform numbers in [0, 1), float64[n].
        count: number of ranks, one for all or int64[n].
        exponent: of the law, 0 <= exponent.
    """
    last = np.asarray(count, dtype=np.float64) + 1.0
    if exponent == 1.0:
        drawn = last**random
    else:
        power = 1.0 - exponent
        drawn = (1.0 + random * (last**power - 1.0)) ** (1.0 / power)
    return np.minimum(drawn.astype(np.int64) - 1, np.asarray(count, dtype=np.int64) - 1)


def page_urls(pages: Int64s, hosts: int) -> pa.Array:
    """URLs of pages, string[n], in canonical form."""
    numbers = pa.array(pages)
    host = pc.cast(pa.array(pages % hosts), pa.string())
    return pc.binary_join_element_wise("https://h", host, ".bench.example/p", pc.cast(numbers, pa.string()), "")


def words(numbers: Int64s) -> pa.Array:
    """Pronounceable words for numbers below 24 million, different for different numbers, string[n].

    The last syllable counts fastest, so words of neighbouring numbers share their beginnings as real words do.
    """
    base = len(_SYLLABLES)
    syllables = [pa.array(_SYLLABLES).take(pa.array(numbers // base**power % base)) for power in (3, 2, 1, 0)]
    return pc.binary_join_element_wise(*syllables, "")


def _topical_words(topics: int) -> int:
    """Number of words that the topics have together."""
    return int(TOPIC_WORDS * min(topics, APART_TOPICS * (topics / APART_TOPICS) ** VOCABULARY_EXPONENT))


def _word_of_topic(topic: Int64s, rank: Int64s, topics: int) -> Int64s:
    """Number of the word with a rank in each topic, below `_topical_words`."""
    numbers = topic * TOPIC_WORDS + rank
    if topics <= APART_TOPICS:
        return numbers
    return (mix_bits(numbers.astype(np.uint64)) % np.uint64(_topical_words(topics))).astype(np.int64)


def _vocabulary(topics: int) -> pa.Array:
    """All words: those of topics, then the common ones."""
    return words(np.arange(_topical_words(topics) + COMMON_WORDS, dtype=np.int64))


def page_topics(pages: Int64s, topics: int) -> Int64s:
    """Topic of each page: neighbouring pages have different ones, int64[n]."""
    return pages % topics


def _pages_of_topic(topic: Int64s, pages: int, topics: int) -> Int64s:
    """Number of pages of each topic."""
    return (pages - topic - 1) // topics + 1


def popular_pages(rng: np.random.Generator, topic: Int64s, pages: int, topics: int) -> Int64s:
    """One page a row: of the given topic with probability `OWN_TOPIC`, else of any; low numbers are popular."""
    own = rng.random(len(topic)) < OWN_TOPIC
    random = rng.random(len(topic))
    count = np.where(own, _pages_of_topic(topic, pages, topics), pages)
    rank = power_law_ranks(random, count, POPULARITY)
    return np.where(own, rank * topics + topic, rank)


def _drawn_words(rng: np.random.Generator, topic: Int64s, topics: int) -> Int64s:
    """One word number a row: of the topic's own words with probability `OWN_TOPIC`, else a common one."""
    own = rng.random(len(topic)) < OWN_TOPIC
    random = rng.random(len(topic))
    rank = power_law_ranks(random, np.where(own, TOPIC_WORDS, COMMON_WORDS), WORD_EXPONENT)
    return np.where(own, _word_of_topic(topic, rank, topics), _topical_words(topics) + rank)


def fetched_pages(web: Web, first: int, last: int) -> Int64s:
    """Those of the pages from `first` to `last` - 1, a whole piece, that were fetched."""
    rng = _generator(web.seed, _FETCH, first // PIECE_PAGES)
    return np.flatnonzero(rng.random(last - first) < FETCHED).astype(np.int64) + first


def pages_piece(web: Web, first: int, last: int) -> pa.Table:
    """Fetched pages of one piece, schema PAGES."""
    pages = fetched_pages(web, first, last)
    rng = _generator(web.seed, _CONTENT, first // PIECE_PAGES)
    per_page = KEYWORDS_PER_PAGE if web.content == "keywords" else TEXT_WORDS
    topic = np.repeat(page_topics(pages, web.topics), per_page)
    drawn = _drawn_words(rng, topic, web.topics)
    vocabulary = _vocabulary(web.topics)
    if web.content == "keywords":
        keywords, text = _keyword_lists(drawn.reshape(-1, per_page), vocabulary), pa.nulls(len(pages), pa.string())
    else:
        keywords = pa.nulls(len(pages), PAGES.schema.field("keywords").type)
        text = _texts(drawn.reshape(-1, per_page), vocabulary)
    fetched_at = (_LOG_BEGIN + pages % _LOG_SECONDS) * _MICROSECONDS
    columns = {
        "url": page_urls(pages, web.hosts),
        "fetched_at": pa.array(fetched_at).cast(PAGES.schema.field("fetched_at").type),
        "status": pa.array(np.full(len(pages), 200, dtype=np.int16)),
        "title": vocabulary.take(pa.array(drawn.reshape(-1, per_page)[:, 0])),
        "text": text,
        "keywords": keywords,
        "language": pa.array(np.full(len(pages), "en")),
        "content_digest": pa.nulls(len(pages), pa.string()),
    }
    return pa.table(columns, schema=PAGES.schema)


def _keyword_lists(drawn: Int64s, vocabulary: pa.Array) -> pa.ListArray:
    """The different words of each row, in the order of their numbers."""
    ordered = np.sort(drawn, axis=1)
    fresh = np.ones(ordered.shape, dtype=np.bool_)
    fresh[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    offsets = np.concatenate([[0], np.cumsum(fresh.sum(axis=1))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), vocabulary.take(pa.array(ordered[fresh])))


def _texts(drawn: Int64s, vocabulary: pa.Array) -> pa.Array:
    """Each row's words as sentences."""
    rows, count = drawn.shape
    ends = np.arange(count) % _WORDS_PER_SENTENCE == _WORDS_PER_SENTENCE - 1
    both = pa.concat_arrays([vocabulary, pc.binary_join_element_wise(vocabulary, "", ".")])
    shifted = drawn + np.where(ends, len(vocabulary), 0)
    offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * count)
    return pc.binary_join(pa.ListArray.from_arrays(offsets, both.take(pa.array(shifted.ravel()))), " ")


def links_piece(web: Web, first: int, last: int) -> pa.Table:
    """Links of one piece's fetched pages, schema LINKS; the anchor is a word of the target's topic."""
    pages = fetched_pages(web, first, last)
    rng = _generator(web.seed, _LINKS, first // PIECE_PAGES)
    # Pareto with exponent 2.5 has the mean 5/3 of its minimum.
    drawn = 0.6 * web.links_per_page * (1.0 - rng.random(len(pages))) ** (-1 / 2.5)
    degree = np.minimum(np.floor(drawn + rng.random(len(pages))), 500).astype(np.int64)
    source = np.repeat(pages, degree)
    target = popular_pages(rng, page_topics(source, web.topics), web.pages, web.topics)
    rank = power_law_ranks(rng.random(len(target)), TOPIC_WORDS, WORD_EXPONENT)
    anchor = _word_of_topic(page_topics(target, web.topics), rank, web.topics)
    columns = {
        "source_url": page_urls(source, web.hosts),
        "target_url": page_urls(target, web.hosts),
        "anchor_text": _vocabulary(web.topics).take(pa.array(anchor)),
        "nofollow": pa.array(rng.random(len(target)) < 0.02),
    }
    return pa.table(columns, schema=LINKS.schema)


def topics_piece(web: Web, first: int, last: int) -> pa.Table:
    """All pages of one piece with their topics, schema TOPICS; each topic's five most popular pages are its seeds."""
    pages = np.arange(first, last, dtype=np.int64)
    name = pc.binary_join_element_wise("topic", pc.cast(pa.array(page_topics(pages, web.topics)), pa.string()), "")
    seeds = pa.array(pages < 5 * web.topics)
    return pa.table([name, page_urls(pages, web.hosts), seeds], schema=TOPICS.schema)


def _queries(log: ClickLog) -> pa.Array:
    """All queries, one to three words of their topic; query q of topic t stands at t * queries_per_topic + q."""
    count = log.topics * log.queries_per_topic
    rng = _generator(log.seed, _QUERIES)
    topic = np.repeat(np.arange(log.topics, dtype=np.int64), log.queries_per_topic)
    lengths = rng.integers(1, 4, count)
    rank = power_law_ranks(rng.random(int(lengths.sum())), TOPIC_WORDS, WORD_EXPONENT)
    numbers = _word_of_topic(np.repeat(topic, lengths), rank, log.topics)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    return pc.binary_join(pa.ListArray.from_arrays(offsets, words(numbers)), " ")


def clicks_piece(log: ClickLog, piece: int, queries: pa.Array) -> pa.Table:
    """`PIECE_SESSIONS` sessions, schema CLICKS.

    A session belongs to one user, is after one query of the user's own topic (seldom of another one), and has a
    geometric number of clicks on popular pages, ten minutes apart at most.
    """
    rng = _generator(log.seed, _SESSIONS, piece)
    count = PIECE_SESSIONS
    user = power_law_ranks(rng.random(count), log.users, 0.5)
    topic = np.where(rng.random(count) < OWN_TOPIC, user % log.topics, rng.integers(0, log.topics, count))
    query = topic * log.queries_per_topic + power_law_ranks(rng.random(count), log.queries_per_topic, POPULARITY)
    start = (_LOG_BEGIN + rng.random(count) * _LOG_SECONDS) * _MICROSECONDS
    length = rng.geometric(1 / _MEAN_SESSION, count)
    owner = np.repeat(np.arange(count, dtype=np.int64), length)
    begins = np.cumsum(length) - length
    step = np.arange(len(owner), dtype=np.int64) - begins[owner]
    gaps = rng.integers(5 * _MICROSECONDS, _SESSION_GAP_SECONDS * _MICROSECONDS, len(owner))
    passed = np.cumsum(gaps)
    clicked_at = start.astype(np.int64)[owner] + passed - passed[begins][owner]
    user_id = pc.binary_join_element_wise("u", pc.cast(pa.array(user), pa.string()), "")
    # Users of a group share a topic, since a user's topic is its number modulo the topics.
    group = (user // (log.topics * _USERS_PER_GROUP)) * log.topics + user % log.topics
    group_name = pc.binary_join_element_wise("g", pc.cast(pa.array(group), pa.string()), "")
    grouped = pa.array(group % 10 < 10 * _GROUPED)
    session = np.arange(count, dtype=np.int64) + piece * PIECE_SESSIONS
    rows = pa.array(owner)
    columns = {
        "user_id": user_id.take(rows),
        "user_group": pc.if_else(grouped, group_name, pa.scalar(None, pa.string())).take(rows),
        "session_id": pc.binary_join_element_wise("s", pc.cast(pa.array(session), pa.string()), "").take(rows),
        "query": queries.take(pa.array(query[owner])),
        "keywords": pa.nulls(len(owner), CLICKS.schema.field("keywords").type),
        "clicked_at": pa.array(clicked_at).cast(CLICKS.schema.field("clicked_at").type),
        "position": pa.array((step + rng.integers(1, 4, count)[owner]).astype(np.int32)),
        "url": page_urls(popular_pages(rng, topic[owner], log.pages, log.topics), log.hosts),
    }
    return pa.table(columns, schema=CLICKS.schema)


class _Writer:
    """A table's files, which take pieces in turn."""

    def __init__(self, folder: Path, schema: TableSchema) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.rows = 0
        self._files = [
            pq.ParquetWriter(
                folder / f"part-{number:05d}.parquet", schema.schema, compression="zstd", compression_level=1
            )
            for number in range(FILES)
        ]

    def write(self, piece: int, table: pa.Table) -> None:
        self._files[piece % FILES].write_table(table)
        self.rows += table.num_rows

    def close(self) -> None:
        for file in self._files:
            file.close()


def _write(folder: Path, schema: TableSchema, pieces: int, make: Callable[[int], pa.Table]) -> int:
    writer = _Writer(folder, schema)
    try:
        for piece in range(pieces):
            writer.write(piece, make(piece))
    finally:
        writer.close()
    return writer.rows


def write_web(folder: Path, web: Web) -> dict[str, int]:
    """Writes folder/{pages,links,topics}; gives the rows of each table."""
    makers = ((PAGES, pages_piece), (LINKS, links_piece), (TOPICS, topics_piece))
    return {schema.name: _write_web_table(folder, web, schema, make) for schema, make in makers}


def write_links(folder: Path, web: Web) -> int:
    """Writes folder/links alone; gives its rows."""
    return _write_web_table(folder, web, LINKS, links_piece)


def _write_web_table(folder: Path, web: Web, schema: TableSchema, make: Callable[[Web, int, int], pa.Table]) -> int:
    def piece(number: int) -> pa.Table:
        return make(web, number * PIECE_PAGES, min(web.pages, (number + 1) * PIECE_PAGES))

    return _write(folder / schema.name, schema, -(-web.pages // PIECE_PAGES), piece)


def write_clicks(folder: Path, log: ClickLog) -> dict[str, int]:
    """Writes folder/clicks with exactly `log.clicks` rows; gives the rows of the table."""
    queries = _queries(log)
    writer = _Writer(folder / CLICKS.name, CLICKS)
    try:
        piece = 0
        while writer.rows < log.clicks:
            writer.write(piece, clicks_piece(log, piece, queries).slice(0, log.clicks - writer.rows))
            piece += 1
    finally:
        writer.close()
    return {CLICKS.name: writer.rows}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generate", description=__doc__.partition("\n")[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    web = kinds.add_parser("web", help="pages, links and topics")
    web.add_argument("--pages", type=int, required=True)
    web.add_argument("--content", choices=("keywords", "text"), default="keywords")
    web.add_argument("--links-per-page", type=float, default=10.0)
    log = kinds.add_parser("clicks", help="a click log")
    log.add_argument("--clicks", type=int, required=True)
    log.add_argument("--pages", type=int, default=1_000_000, help="as many as the web has")
    log.add_argument("--users", type=int, default=200_000)
    for kind in (web, log):
        kind.add_argument("--topics", type=int, default=50)
        kind.add_argument("--hosts", type=int, default=1_000)
        kind.add_argument("--seed", type=int, default=1)
        kind.add_argument("--output", type=Path, required=True)
    return parser


def main() -> int:
    """Runs the command line; gives the exit status."""
    arguments = vars(_parser().parse_args())
    kind, output = arguments.pop("kind"), arguments.pop("output")
    try:
        rows = write_web(output, Web(**arguments)) if kind == "web" else write_clicks(output, ClickLog(**arguments))
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(", ".join(f"{count:,} {name}" for name, count in rows.items()) + f" in {output}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
