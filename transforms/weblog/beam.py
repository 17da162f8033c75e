"""Beam steps of the click log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa

from semrank.transforms.columnar.arrays import MAIN, Bools, Int64s, bounded_slices, distinct_rows, int64s, positions
from semrank.transforms.columnar.beam import Collection, MapTables, MergePartitions, ReadParquet
from semrank.transforms.columnar.idfilter import MIN_BITS, filter_positions
from semrank.transforms.columnar.ids import digest_table
from semrank.transforms.weblog import relations, sequences
from semrank.transforms.weblog.clicks import COLUMNS, WordsOf, no_words, read_clicks, url_word_clicks, word_clicks
from semrank.transforms.weblog.groups import minhash_groups, user_groups, user_words, users_of_several_groups
from semrank.transforms.weblog.memory import VOCABULARY

SEQUENCES, WORD_CLICKS, URL_CLICKS, WORDS, DIGESTS = "sequences", "word_clicks", "url_clicks", "words", "digests"
USERS, CLICKED, WITNESSES = "users", "clicked", "witnesses"


class ClickFacts(NamedTuple):
    """Results of the first pass over the click log; what was not requested is empty.

    Attributes:
        edges: c-edges in parts (`sequences.CLICK_EDGE_SCHEMA`), those of a user in one part.
        word_clicks: f(n) in parts (`clicks.WORD_CLICKS_SCHEMA`).
        url_clicks: clicks by (URL, word) in parts (`clicks.URL_WORD_CLICKS_SCHEMA`).
        words: words that queries hold (`clicks.WORD_SCHEMA`).
        digests: ids of clicked URLs with their check values.
        users: what groups of users are made from.
        clicked: positions of clicked URLs in a filter (`idfilter.POSITION_SCHEMA`).
    """

    edges: Collection
    word_clicks: Collection
    url_clicks: Collection
    words: Collection
    digests: Collection
    users: Collection
    clicked: Collection


class ReadClickFacts(beam.PTransform[Any, Any]):
    """Reads the click log once and returns `ClickFacts`.

    Args:
        paths: Parquet files of the clicks table.
        partitions: number of partitions of its rows.
        words_of: returns the words of queries; None where no words are wanted.
        groups: where groups of users come from, `given`, `one` or `minhash`; None where no relations are learned.
        bits: size of the filter of clicked URLs.
    """

    def __init__(
        self,
        paths: Sequence[str],
        *,
        partitions: int,
        words_of: WordsOf | None,
        groups: str | None = None,
        bits: int = MIN_BITS,
    ) -> None:
        super().__init__("read click facts")
        self._paths, self._partitions = paths, partitions
        self._facts = partial(click_facts, words_of=words_of, groups=groups, bits=bits)

    def expand(self, pipeline: beam.Pipeline) -> ClickFacts:
        """Applies the steps."""
        facts = (
            pipeline
            | ReadParquet("read clicks", self._paths, COLUMNS)
            | MapTables(
                "count clicks",
                self._facts,
                tags=(SEQUENCES, WORD_CLICKS, URL_CLICKS, WORDS, DIGESTS, USERS, CLICKED),
            )
        )
        edges = {"rows": facts[SEQUENCES]} | MergePartitions(
            "link clicks", sequences.click_edges, partitions=self._partitions, key="user"
        )
        kinds = (WORD_CLICKS, URL_CLICKS, WORDS, DIGESTS, USERS, CLICKED)
        return ClickFacts(edges, *(facts[kind] for kind in kinds))


def click_facts(
    table: pa.Table, *, words_of: WordsOf | None, groups: str | None = None, bits: int = MIN_BITS
) -> Iterator[tuple[str, pa.Table]]:
    """(kind, table) of the facts in a part of the click log; for arguments see `ReadClickFacts`."""
    clicks = read_clicks(table, no_words if words_of is None else words_of)
    yield SEQUENCES, sequences.sequence_rows(clicks)
    yield DIGESTS, digest_table(clicks.url_digests)
    if words_of is not None:
        yield WORD_CLICKS, word_clicks(clicks)
        yield URL_CLICKS, url_word_clicks(clicks)
        yield WORDS, clicks.words
    if groups is not None:
        yield USERS, user_words(clicks) if groups == "minhash" else user_groups(clicks)
        yield CLICKED, filter_positions(clicks.url_digests[:, 0], bits)


class LearnedRelations(NamedTuple):
    """Results of the second pass over the click log; words are numbers in the vocabulary.

    Attributes:
        isa: source, target and support of ISA (`relations.PAIR_SCHEMA`).
        part_of: the same of Part-Of.
        word_clicks: clicks that count, by word (`clicks.WORD_CLICKS_SCHEMA`), in parts; only where the
            log is the topic's.
    """

    isa: Collection
    part_of: Collection
    word_clicks: Collection


class LearnRelations(beam.PTransform[Any, Any]):
    """Reads the click log and the links once more and returns `LearnedRelations`.

    Args:
        click_paths: Parquet files of the clicks table.
        link_parts: followed links by id (`source_id`, `target_id`).
        users: `ClickFacts.users`.
        partitions: number of partitions of clicks.
        link_partitions: number of partitions of links.
        words_of: returns the words of queries.
        own_words: keywords of pages by word id (`relations.OWN_WORD_SCHEMA`), where a page needs the word, else None.
        settings: how they are learned.

    The input is the vocabulary: tables with `word_id`, `base_support` and `current_support` in word order.
    """

    def __init__(
        self,
        click_paths: Sequence[str],
        *,
        links: Collection,
        users: Collection,
        partitions: int,
        link_partitions: int,
        words_of: WordsOf,
        own_words: Collection | None,
        settings: relations.RelationSettings,
    ) -> None:
        super().__init__("learn relations")
        self._click_paths, self._links, self._users = click_paths, links, users
        self._partitions, self._link_partitions, self._words_of = partitions, link_partitions, words_of
        self._own_words, self._settings = own_words, settings

    def expand(self, vocabulary: Collection) -> LearnedRelations:
        """Applies the steps."""
        sides = {"vocabulary": vocabulary, **self._user_sides()}
        scoped = (
            vocabulary.pipeline
            | ReadParquet("read clicks again", self._click_paths, COLUMNS)
            | MapTables(
                "place clicks in scopes",
                partial(_scope_rows, words_of=self._words_of, settings=self._settings),
                sides=sides,
                prepare=partial(_prepare_scopes, settings=self._settings),
                tags=(MAIN, WORD_CLICKS),
                holds=VOCABULARY,
            )
        )
        # All that needs a page's own words is made where they are found, so that they travel once.
        partitions = max(self._partitions, self._link_partitions)
        known = {"vocabulary": vocabulary}
        places = {"rows": scoped[MAIN], "links": self._links}
        if self._own_words is not None:
            places["own"] = self._own_words
        found = places | MergePartitions(
            "pair words of pages",
            partial(_page_facts, settings=self._settings),
            partitions=partitions,
            key={"rows": "url_id", "links": "source_id", "own": "url_id"},
            sides=known,
            prepare=_Contexts.of,
            tags=(MAIN, relations.ISA, WITNESSES),
            holds=VOCABULARY,
        )
        part_of = {"rows": found[MAIN], "witnesses": found[WITNESSES]} | MergePartitions(
            "pair words of links",
            _part_of_pairs,
            partitions=partitions,
            key={"rows": "url_id", "witnesses": "target_id"},
            sides=known,
            prepare=_Contexts.of,
            holds=VOCABULARY,
        )
        settled = {"isa": found[relations.ISA], "part_of": part_of} | MergePartitions(
            "settle relations",
            partial(_settled_pairs, least=self._settings.min_support),
            partitions=self._partitions,
            key="pair",
            tags=(relations.ISA, relations.PART_OF),
        )
        return LearnedRelations(settled[relations.ISA], settled[relations.PART_OF], scoped[WORD_CLICKS])

    def _user_sides(self) -> dict[str, Collection]:
        if self._settings.groups == "one":
            return {}
        rows: str = "groups"
        function: Callable[..., pa.Table] = users_of_several_groups
        if self._settings.groups == "minhash":
            rows, function = "words", minhash_groups
        users = {rows: self._users} | MergePartitions(
            "group users",
            function,
            partitions=self._partitions,
            key="user",
            combine={rows: distinct_rows},
        )
        return {"users": users}


class _Scopes(NamedTuple):
    """The vocabulary's ids, sorted, with the word number of each; ids of the topic's words; users' groups."""

    ids: Int64s
    numbers: Int64s
    topic: Int64s
    several: pa.Table | None
    groups: pa.Table | None


def _prepare_scopes(
    vocabulary: pa.Table | None, users: pa.Table | None = None, *, settings: relations.RelationSettings
) -> _Scopes:
    contexts = _Contexts.of(vocabulary)
    order = np.argsort(contexts.word_ids)
    several, groups = (None, users) if settings.groups == "minhash" else (users, None)
    topic = settings.topic_words(contexts.word_ids, contexts.in_base)
    return _Scopes(contexts.word_ids[order], order.astype(np.int64), topic, several, groups)


def _scope_rows(
    table: pa.Table, prepared: _Scopes, *, words_of: WordsOf, settings: relations.RelationSettings
) -> Iterator[tuple[str, pa.Table]]:
    clicks = read_clicks(table, words_of)
    if settings.groups == "one":
        clicks = clicks.in_one_group()
    if settings.topic_log:
        clicks = clicks.about(prepared.topic)
    rows = relations.scope_rows(clicks, prepared.ids, prepared.several, prepared.groups)
    numbers = prepared.numbers[int64s(rows["word"])]
    yield MAIN, rows.set_column(rows.schema.get_field_index("word"), "word", pa.array(numbers))
    if settings.topic_log:
        yield WORD_CLICKS, word_clicks(clicks)


class _Contexts(NamedTuple):
    """Ids of the words, and which occur in the base and in the current context: int64 and bool[word count]."""

    word_ids: Int64s
    in_base: Bools
    in_current: Bools

    @staticmethod
    def of(vocabulary: pa.Table | None) -> _Contexts:
        if vocabulary is None:
            nothing = np.zeros(0, dtype=np.bool_)
            return _Contexts(np.zeros(0, dtype=np.int64), nothing, nothing)
        supports = (int64s(vocabulary[name]) > 0 for name in ("base_support", "current_support"))
        return _Contexts(int64s(vocabulary["word_id"]), *supports)


def _page_facts(
    rows: pa.Table | None,
    links: pa.Table | None,
    prepared: _Contexts,
    *,
    own: pa.Table | None = None,
    settings: relations.RelationSettings,
) -> Iterator[tuple[str, pa.Table]]:
    """The leading words of pages, their ISA pairs, and the words that are sent along links."""
    if rows is None:
        return
    if settings.needs_word:
        rows = relations.contained_words(rows, _numbered_words(own, prepared.word_ids))
    leading = relations.leading_words(rows, settings.max_words)
    for part in bounded_slices(leading):
        yield MAIN, part
    isa = relations.merge_pairs(relations.isa_pairs(leading, len(prepared.in_base)))
    for part in bounded_slices(_keyed_pairs(isa)):
        yield relations.ISA, part
    if links is not None:
        for part in relations.link_witnesses(links, leading, prepared.in_base):
            yield WITNESSES, part


def _numbered_words(own: pa.Table | None, word_ids: Int64s) -> pa.Table:
    """Keywords of pages by word number."""
    if own is None:
        return relations.OWN_WORD_SCHEMA.empty_table()
    order = np.argsort(word_ids)
    numbers = order[positions(word_ids[order], int64s(own["word"]))].astype(np.int64)
    return pa.table([own["url_id"], numbers], schema=relations.OWN_WORD_SCHEMA)


def _part_of_pairs(rows: pa.Table | None, witnesses: pa.Table | None, prepared: _Contexts) -> Iterator[pa.Table]:
    if rows is not None and witnesses is not None:
        pairs = relations.part_of_pairs(witnesses, rows, prepared.in_current)
        yield from bounded_slices(_keyed_pairs(relations.merge_pairs(pairs)))


def _keyed_pairs(pairs: pa.Table) -> pa.Table:
    # All that decides on a pair is about the same two words, so that both directions travel under one number. It needs
    # no hash of its own: partitions mix the bits of their key.
    source, target = int64s(pairs["source"]), int64s(pairs["target"])
    key = (np.minimum(source, target) << 32) | np.maximum(source, target)
    return pairs.append_column("pair", pa.array(key))


def _settled_pairs(isa: pa.Table | None, part_of: pa.Table | None, *, least: int) -> Iterator[tuple[str, pa.Table]]:
    """The relations that hold between the pairs of words of one partition."""
    counted_isa, counted_part_of = (
        relations.merge_pairs([] if pairs is None else [pairs.select(relations.PAIR_SCHEMA.names)])
        for pairs in (isa, part_of)
    )
    settled = relations.settle_relations(counted_isa, counted_part_of, least)
    for kind, pairs in zip((relations.ISA, relations.PART_OF), settled, strict=True):
        for part in bounded_slices(pairs):
            yield kind, part
