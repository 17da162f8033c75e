"""Beam steps of the click log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from semrank.transforms.columnar.arrays import MAIN, Int64s, bounded_slices, int64s
from semrank.transforms.columnar.ids import digest_table
from semrank.transforms.columnar.steps import Collection, GatherTables, MapTables, MergePartitions, ReadParquet
from semrank.transforms.weblog import relations, sequences
from semrank.transforms.weblog.clicks import COLUMNS, WordsOf, read_clicks, url_word_clicks, word_clicks
from semrank.transforms.weblog.groups import minhash_groups, user_groups, user_words, users_of_several_groups
from semrank.transforms.weblog.memory import RELATIONS, VOCABULARY

SEQUENCES, WORD_CLICKS, URL_CLICKS, WORDS, DIGESTS = "sequences", "word_clicks", "url_clicks", "words", "digests"
USERS, WITNESSES = "users", "witnesses"


class ClickFacts(NamedTuple):
    """What the first pass over the click log gives.

    Attributes:
        edges: distinct c-edges (`sequences.CLICK_EDGE_SCHEMA`).
        word_clicks: f(n) in parts (`clicks.WORD_CLICKS_SCHEMA`).
        url_clicks: clicks by (URL, word) in parts (`clicks.URL_WORD_CLICKS_SCHEMA`).
        words: words that queries hold (`clicks.WORDS_SCHEMA`).
        digests: ids of clicked URLs with their check values.
        users: what groups of users are made from; see `GroupUsers`.
    """

    edges: Collection
    word_clicks: Collection
    url_clicks: Collection
    words: Collection
    digests: Collection
    users: Collection


class ReadClickFacts(beam.PTransform[Any, Any]):
    """Reads the click log once and gives `ClickFacts`.

    Args:
        paths: Parquet files of the clicks table.
        partitions: number of partitions of its rows.
        words_of: gives the words of queries.
        minhash: whether groups of users are made from their words.
    """

    def __init__(self, paths: Sequence[str], *, partitions: int, words_of: WordsOf, minhash: bool) -> None:
        super().__init__("read click facts")
        self._paths, self._partitions, self._words_of, self._minhash = paths, partitions, words_of, minhash

    def expand(self, pipeline: beam.Pipeline) -> ClickFacts:
        """Applies the steps."""
        facts = (
            pipeline
            | ReadParquet("read clicks", self._paths, COLUMNS)
            | MapTables(
                "count clicks",
                partial(click_facts, words_of=self._words_of, minhash=self._minhash),
                tags=(SEQUENCES, WORD_CLICKS, URL_CLICKS, WORDS, DIGESTS, USERS),
            )
        )
        edges = {"rows": facts[SEQUENCES]} | MergePartitions(
            "link clicks", _click_edges, partitions=self._partitions, key="user"
        )
        merged = {"edges": edges} | MergePartitions(
            "merge click edges", _merge_click_edges, partitions=self._partitions, key="target"
        )
        return ClickFacts(merged, facts[WORD_CLICKS], facts[URL_CLICKS], facts[WORDS], facts[DIGESTS], facts[USERS])


def click_facts(table: pa.Table, *, words_of: WordsOf, minhash: bool) -> Iterator[tuple[str, pa.Table]]:
    """(kind, table) of what a part of the click log says."""
    clicks = read_clicks(table, words_of)
    yield SEQUENCES, sequences.sequence_rows(clicks)
    yield WORD_CLICKS, word_clicks(clicks)
    yield URL_CLICKS, url_word_clicks(clicks)
    yield WORDS, clicks.words
    yield DIGESTS, digest_table(clicks.url_digests)
    yield USERS, user_words(clicks) if minhash else user_groups(clicks)


def _click_edges(rows: pa.Table) -> pa.Table:
    return sequences.click_edges(rows)


def _merge_click_edges(edges: pa.Table) -> pa.Table:
    return sequences.count_edges(*(int64s(edges[name]) for name in ("source", "target", "clicks")))


class LearnRelations(beam.PTransform[Any, Any]):
    """Reads the click log and the links once more and gives the relations' supports.

    Args:
        click_paths: Parquet files of the clicks table.
        link_parts: followed links by id (`source_id`, `target_id`).
        users: `ClickFacts.users`.
        partitions: number of partitions of clicks.
        link_partitions: number of partitions of links.
        words_of: gives the words of queries.
        groups: `given`, `one` or `minhash`.
        max_words: best clicked words of a URL that take part.
        min_support: smallest support of a relation.

    The input is the vocabulary: tables with `word_id`, `base_support` and `current_support` in word order. Gives tables
    with source, target and support: the first output ISA, the second Part-Of; words are numbers in the vocabulary.
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
        groups: str,
        max_words: int,
        min_support: int,
    ) -> None:
        super().__init__("learn relations")
        self._click_paths, self._links, self._users = click_paths, links, users
        self._partitions, self._link_partitions, self._words_of = partitions, link_partitions, words_of
        self._groups, self._max_words, self._min_support = groups, max_words, min_support

    def expand(self, vocabulary: Collection) -> tuple[Collection, Collection]:
        """Applies the steps."""
        sides = {"vocabulary": vocabulary, **self._user_sides()}
        rows = (
            vocabulary.pipeline
            | ReadParquet("read clicks again", self._click_paths, COLUMNS)
            | MapTables(
                "place clicks in scopes",
                partial(_scope_rows, words_of=self._words_of, one=self._groups == "one"),
                sides=sides,
                prepare=partial(_prepare_scopes, minhash=self._groups == "minhash"),
                holds=VOCABULARY,
            )
        )
        # All that needs a page's own words is made where they are found, so that they travel once.
        partitions = max(self._partitions, self._link_partitions)
        known = {"vocabulary": vocabulary}
        places = {"rows": rows, "links": self._links | MapTables("key links by source", _links_by_source)}
        found = places | MergePartitions(
            "pair words of pages",
            partial(_page_facts, most=self._max_words),
            partitions=partitions,
            key="url_id",
            sides=known,
            prepare=_Contexts.of,
            tags=(MAIN, relations.ISA, WITNESSES),
            holds=VOCABULARY,
        )
        along = found[WITNESSES] | MapTables("key words by target", _witnesses_by_target)
        part_of = {"rows": found[MAIN], "witnesses": along} | MergePartitions(
            "pair words of links",
            _part_of_pairs,
            partitions=partitions,
            key="url_id",
            sides=known,
            prepare=_Contexts.of,
            holds=VOCABULARY,
        )
        isa = found[relations.ISA]
        return self._summed("ISA", isa), self._summed("Part-Of", part_of)

    def _user_sides(self) -> dict[str, Collection]:
        if self._groups == "one":
            return {}
        function = _minhash_groups if self._groups == "minhash" else _several_groups
        users = {"users": self._users} | MergePartitions(
            "group users", function, partitions=self._partitions, key="user"
        )
        return {"users": users}

    def _summed(self, name: str, pairs: Collection) -> Collection:
        keyed = pairs | MapTables(f"key {name}", _keyed_pairs)
        return {"pairs": keyed} | MergePartitions(  # type: ignore[no-any-return]
            f"count {name}", partial(_sum_pairs, least=self._min_support), partitions=self._partitions, key="pair"
        )


class SettleRelations(beam.PTransform[Any, Any]):
    """Decides between opposite and competing relations; gives ISA and Part-Of as `LearnRelations` does.

    The input is a dict with `isa`, `part_of` and `vocabulary`.
    """

    def __init__(self, min_support: int) -> None:
        super().__init__("settle all relations")
        self._min_support = min_support

    def expand(self, inputs: dict[str, Collection]) -> Any:
        """Applies the step."""
        return inputs | GatherTables(
            "settle relations",
            partial(_settle, min_support=self._min_support),
            tags=(relations.ISA, relations.PART_OF),
            holds=RELATIONS,
        )


class _Scopes(NamedTuple):
    """The vocabulary's ids, sorted, with the word number of each; users' groups."""

    ids: Int64s
    numbers: Int64s
    several: pa.Table | None
    groups: pa.Table | None


def _prepare_scopes(vocabulary: pa.Table | None, users: pa.Table | None = None, *, minhash: bool) -> _Scopes:
    ids = np.zeros(0, dtype=np.int64) if vocabulary is None else int64s(vocabulary["word_id"])
    order = np.argsort(ids)
    return _Scopes(ids[order], order.astype(np.int64), None if minhash else users, users if minhash else None)


def _scope_rows(table: pa.Table, prepared: _Scopes, *, words_of: WordsOf, one: bool) -> pa.Table:
    clicks = read_clicks(table, words_of)
    if one:
        clicks = clicks.in_one_group()
    rows = relations.scope_rows(clicks, prepared.ids, prepared.several, prepared.groups)
    numbers = prepared.numbers[int64s(rows["word"])]
    return rows.set_column(rows.schema.get_field_index("word"), "word", pa.array(numbers))


def _several_groups(users: pa.Table) -> pa.Table:
    return users_of_several_groups(users)


def _minhash_groups(users: pa.Table) -> pa.Table:
    return minhash_groups(users)


class _Contexts(NamedTuple):
    """Which words occur in the base and in the current context, bool[word count] each."""

    in_base: npt.NDArray[np.bool_]
    in_current: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, vocabulary: pa.Table | None) -> _Contexts:
        if vocabulary is None:
            nothing = np.zeros(0, dtype=np.bool_)
            return cls(nothing, nothing)
        return cls(int64s(vocabulary["base_support"]) > 0, int64s(vocabulary["current_support"]) > 0)


def _page_facts(
    rows: pa.Table | None, links: pa.Table | None, prepared: _Contexts, *, most: int
) -> Iterator[tuple[str, pa.Table]]:
    """The leading words of pages, their ISA pairs, and the words that are sent along links."""
    if rows is None:
        return
    leading = relations.leading_words(rows, most)
    for part in bounded_slices(leading):
        yield MAIN, part
    for part in bounded_slices(relations.merge_pairs(relations.isa_pairs(leading, len(prepared.in_base)))):
        yield relations.ISA, part
    if links is not None:
        for part in relations.link_witnesses(links, leading, prepared.in_base):
            yield WITNESSES, part


def _links_by_source(links: pa.Table) -> pa.Table:
    return links.append_column("url_id", links["source_id"])


def _witnesses_by_target(witnesses: pa.Table) -> pa.Table:
    return witnesses.append_column("url_id", witnesses["target_id"])


def _part_of_pairs(rows: pa.Table | None, witnesses: pa.Table | None, prepared: _Contexts) -> Iterator[pa.Table]:
    if rows is not None and witnesses is not None:
        pairs = relations.part_of_pairs(witnesses, rows, prepared.in_current)
        yield from bounded_slices(relations.merge_pairs(pairs))


def _keyed_pairs(pairs: pa.Table) -> pa.Table:
    # A pair's number needs no hash of its own: partitions mix the bits of their key.
    key = (int64s(pairs["source"]) << 32) | int64s(pairs["target"])
    return pairs.append_column("pair", pa.array(key))


def _sum_pairs(pairs: pa.Table, *, least: int) -> pa.Table:
    summed = relations.merge_pairs([pairs.select(relations.PAIR_SCHEMA.names)])
    return summed.filter(pa.array(int64s(summed["support"]) >= least))


def _settle(
    isa: pa.Table | None, part_of: pa.Table | None, vocabulary: pa.Table | None, *, min_support: int
) -> Iterator[tuple[str, pa.Table]]:
    empty = relations.PAIR_SCHEMA.empty_table()
    count = 0 if vocabulary is None else vocabulary.num_rows
    settled = relations.settle_relations(
        empty if isa is None else isa, empty if part_of is None else part_of, min_support, count
    )
    yield from zip((relations.ISA, relations.PART_OF), settled, strict=True)
