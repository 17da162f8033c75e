"""Beam steps of SemRank's profile `topic`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.columnar.arrays import MAIN, Int64s, bools, bounded_slices, distinct_rows, int64s, positions
from semrank.transforms.columnar.beam import Collection, GatherTables, MapTables, MergePartitions, ReadParquet
from semrank.transforms.context.describe import WordNumbers
from semrank.transforms.context.descriptions import Descriptions
from semrank.transforms.context.memory import DESCRIBED
from semrank.transforms.ranking import exact_sums, topic_lattice, topic_part_of, topic_relations
from semrank.transforms.ranking.memory import TOPIC_LATTICE
from semrank.transforms.ranking.text_beam import Widths
from semrank.transforms.ranking.topic_words import Vocabulary
from semrank.transforms.weblog.clicks import COLUMNS, WordsOf, read_clicks, session_counts, url_word_sessions

CONCEPTS = "concepts"
_SIZES, _WORDS, _LEADING = "sizes", "words", "leading"
_FLAGS = ("seed", "harvested", "described", "current")


class MakeTopicLattice(beam.PTransform[Any, Any]):
    """The base lattices (see `topic_lattice`), as the tables that a worker makes them of.

    The input is a dict with `descriptions`, `vocabulary` and `harvested`; the result one of the sides that the steps by
    the lattice take.

    Args:
        query: words of the query.
        partitions: number of partitions of words.
    """

    def __init__(self, *, query: list[str], partitions: int) -> None:
        super().__init__("make topic's lattice")
        self._query, self._partitions = query, partitions

    def expand(self, inputs: dict[str, Collection]) -> dict[str, Collection]:
        """Applies the steps."""
        widths = {"vocabulary": inputs["vocabulary"], "harvested": inputs["harvested"]}
        begun = inputs["descriptions"] | MapTables(
            "list seeds", _seeds, sides=widths, prepare=_Seeds.of, tags=(MAIN, _SIZES), holds=DESCRIBED
        )
        known = {**widths, "sizes": begun[_SIZES], "seeds": begun[MAIN]}
        lattice = partial(_prepared, query=self._query)
        compared = inputs["descriptions"] | MapTables(
            "compare harvested pages",
            _near,
            sides=known,
            prepare=lattice,
            combine=partial(topic_lattice.nearest_pages, nearest=topic_lattice.FEEDBACK_PAGES),
            holds=TOPIC_LATTICE,
        )
        near = {"objects": compared, "sizes": begun[_SIZES]} | GatherTables("choose base pages", _nearest)
        sums = inputs["descriptions"] | MapTables(
            "count words about URLs", _mention_sums, sides=known, prepare=lattice, holds=TOPIC_LATTICE
        )
        mentions = {"rows": sums} | MergePartitions(
            "add words about URLs",
            exact_sums.added_sums,
            partitions=self._partitions,
            key="slot",
            combine={"rows": exact_sums.added_sums},
        )
        return {**known, "near": near, "mentions": mentions}


class RelateWords(beam.PTransform[Any, Any]):
    """Relatives of the base words by the click log (see `topic_relations`), tables of `RELATIVE_SCHEMA`.

    The input is a dict with `descriptions`, the result of `MakeTopicLattice`, and, where Part-Of is wanted, the
    followed links (`links.LINK_SCHEMA`) as `links`.

    Args:
        click_paths: Parquet files of the clicks table.
        which: the relations, one of `topic_relations.WANTED`.
        words_of: returns the words of queries.
        query: words of the query.
        partitions: number of partitions of clicks.
        link_partitions: number of partitions of links.
    """

    def __init__(
        self,
        click_paths: Sequence[str],
        *,
        which: str,
        words_of: WordsOf,
        query: list[str],
        partitions: int,
        link_partitions: int,
    ) -> None:
        super().__init__("relate words")
        self._which, self._click_paths, self._partitions, self._link_partitions = (
            which,
            click_paths,
            partitions,
            link_partitions,
        )
        self._sessions, self._base_words = partial(_sessions, words_of=words_of), partial(_base_words, query=query)

    def expand(self, inputs: dict[str, Collection]) -> Collection:
        """Applies the steps."""
        found = self._by_pages(inputs)
        if topic_relations.TO in topic_relations.WANTED[self._which]:
            linked = self._by_links(found[_LEADING], inputs["links"])
            found = {tag: (found[tag], linked[tag]) | f"all {tag}" >> beam.Flatten() for tag in (MAIN, _WORDS)}
        words = {"rows": found[_WORDS]} | MergePartitions(
            "add sessions of words",
            topic_relations.added_words,
            partitions=self._partitions,
            key="word",
            combine={"rows": topic_relations.added_words},
        )
        return {"pairs": found[MAIN]} | MergePartitions(  # type: ignore[no-any-return]
            "choose relatives",
            partial(_relatives, which=self._which),
            partitions=self._partitions,
            key="source",
            combine={"pairs": topic_relations.added_pairs},
            sides={"words": words},
            holds=DESCRIBED,
        )

    def _by_links(self, leading: Collection, links: Collection) -> dict[str, Collection]:
        """Evidence for Part-Of."""
        sent = {"leading": leading, "links": links} | MergePartitions(
            "send words along links",
            _sent_words,
            partitions=self._link_partitions,
            key={"leading": "url_id", "links": "target_id"},
            holds=DESCRIBED,
        )
        return {"leading": leading, "sent": sent} | MergePartitions(  # type: ignore[no-any-return]
            "relate words of links",
            _link_evidence,
            partitions=self._link_partitions,
            key="url_id",
            combine={"sent": topic_part_of.added_sent},
            tags=(MAIN, _WORDS),
            holds=DESCRIBED,
        )

    def _by_pages(self, inputs: dict[str, Collection]) -> dict[str, Collection]:
        """Evidence for ISA, and the words of pages that links relate."""
        lattice = {name: table for name, table in inputs.items() if name not in ("descriptions", "links")}
        own = inputs["descriptions"] | MapTables(
            "list asked words of URLs",
            _contained,
            sides={name: lattice[name] for name in ("vocabulary", "harvested")},
            prepare=Widths.of,
            holds=DESCRIBED,
        )
        sessions = (
            own.pipeline
            | ReadParquet("read clicks of sessions", self._click_paths, COLUMNS)
            | MapTables(
                "list sessions of words",
                self._sessions,
                sides={"vocabulary": lattice["vocabulary"]},
                prepare=WordNumbers.of,
                holds=DESCRIBED,
            )
        )
        return {"own": own, "sessions": sessions} | MergePartitions(  # type: ignore[no-any-return]
            "relate words of pages",
            _page_evidence,
            partitions=self._partitions,
            key="url_id",
            combine={"sessions": distinct_rows},
            sides=lattice,
            prepare=self._base_words,
            tags=(MAIN, _WORDS, _LEADING),
            holds=TOPIC_LATTICE,
        )


class RankByTopicLattice(beam.PTransform[Any, Any]):
    """SemRank by the topic's lattice (see `topic_lattice`).

    The input is a dict with `descriptions` and the result of `MakeTopicLattice`; the result one with `main`, tables of
    `topic_lattice.TOPIC_SCHEMA`, and `concepts`, one table of `topic_lattice.EXTENT_SCHEMA`.

    Args:
        query: words of the query.
    """

    def __init__(self, *, query: list[str]) -> None:
        super().__init__("rank by topic's lattice")
        self._lattice, self._concepts = partial(_prepared, query=query), partial(_concepts, query=query)

    def expand(self, inputs: dict[str, Collection]) -> dict[str, Collection]:
        """Applies the steps."""
        known = {name: table for name, table in inputs.items() if name != "descriptions"}
        rows = inputs["descriptions"] | MapTables(
            "score by topic's lattice", _score, sides=known, prepare=self._lattice, holds=TOPIC_LATTICE
        )
        concepts = known | GatherTables("list base concepts", self._concepts, holds=TOPIC_LATTICE)
        return {MAIN: rows, CONCEPTS: concepts}


class WeighWords(beam.PTransform[Any, Any]):
    """Weights of words in SemRank of URLs whose content is not known, one table of `topic_lattice.WEIGHT_SCHEMA`.

    The input is the result of `MakeTopicLattice`.

    Args:
        query: words of the query.
    """

    def __init__(self, *, query: list[str]) -> None:
        super().__init__("weigh words by topic's lattice")
        self._weights = partial(_word_weights, query=query)

    def expand(self, lattice: dict[str, Collection]) -> Collection:
        """Applies the step."""
        return lattice | GatherTables("weigh words", self._weights, holds=TOPIC_LATTICE)  # type: ignore[no-any-return]


class _Prepared(NamedTuple):
    lattice: topic_lattice.TopicLattice
    widths: Widths


def _prepared(
    vocabulary: pa.Table | None,
    harvested: pa.Table | None,
    sizes: pa.Table | None,
    seeds: pa.Table | None,
    near: pa.Table | None = None,
    mentions: pa.Table | None = None,
    relatives: pa.Table | None = None,
    *,
    query: list[str],
) -> _Prepared:
    known = topic_lattice.Collection.of_parts(Vocabulary.of_table(vocabulary), query, sizes)
    objects = topic_lattice.first_seeds(seeds)
    return _Prepared(
        topic_lattice.TopicLattice(known, objects, near, mentions, relatives), Widths.of(vocabulary, harvested)
    )


class _Seeds(NamedTuple):
    """The seeds that are objects: the smallest ids are known before any seed's words are read."""

    widths: Widths
    ids: pa.Array

    @staticmethod
    def of(vocabulary: pa.Table | None, harvested: pa.Table | None) -> _Seeds:
        seeds = np.zeros(0, dtype=np.int64)
        if harvested is not None:
            seeds = np.sort(int64s(harvested.filter(harvested["seed"])["url_id"]))
        return _Seeds(Widths.of(vocabulary, harvested), pa.array(seeds[: topic_lattice.MOST_SEEDS]))


def _seeds(table: pa.Table, prepared: _Seeds) -> Iterator[tuple[str, pa.Table]]:
    chosen = table.filter(pc.is_in(table["url_id"], value_set=prepared.ids))
    yield MAIN, topic_lattice.seed_objects(prepared.widths.read(chosen))
    yield _SIZES, topic_lattice.size_by_flags(**{name: bools(table[name]) for name in _FLAGS})


def _read(table: pa.Table, prepared: _Prepared) -> Descriptions:
    return prepared.widths.read(table)


def _mention_sums(table: pa.Table, prepared: _Prepared) -> pa.Table:
    plain = pc.and_not(table["current"], table["described"])
    return topic_lattice.mention_sums(_read(table.filter(plain), prepared), prepared.lattice.known)


def _near(table: pa.Table, prepared: _Prepared) -> pa.Table:
    pages = pc.and_(table["harvested"], table["described"])
    return topic_lattice.near_objects(_read(table.filter(pages), prepared), prepared.lattice)


def _nearest(objects: pa.Table | None, sizes: pa.Table | None) -> pa.Table:
    nothing = Vocabulary.of_table(None)
    return topic_lattice.nearest_pages(objects, topic_lattice.Collection.of_parts(nothing, (), sizes).nearest)


def _score(table: pa.Table, prepared: _Prepared) -> pa.Table:
    return topic_lattice.scores(_read(table, prepared), prepared.lattice)


def _contained(table: pa.Table, prepared: Widths) -> pa.Table:
    known = prepared.read(table)
    row, word = topic_relations.contained_words(known)
    return pa.table([known.url[row], word], names=["url_id", "word"])


def _sessions(table: pa.Table, prepared: WordNumbers, *, words_of: WordsOf) -> pa.Table:
    rows = url_word_sessions(read_clicks(table, words_of))
    place = positions(prepared.ids, int64s(rows["word_id"]))
    known = place >= 0
    words = prepared.numbers[place[known]]
    rows = rows.filter(pa.array(known))
    return pa.table([rows["url_id"], words, rows["session"]], names=["url_id", "word", "session"])


def _base_words(*, query: list[str], **tables: pa.Table | None) -> Int64s:
    return _prepared(**tables, query=query).lattice.keywords


def _page_evidence(own: pa.Table | None, sessions: pa.Table | None, prepared: Int64s) -> Iterator[tuple[str, pa.Table]]:
    if own is None or sessions is None:
        return
    counted = session_counts(distinct_rows(sessions))
    asked = counted.join(own, keys=["url_id", "word"], join_type="left semi")
    leading = topic_relations.leading_words(asked, prepared)
    pairs, words = topic_relations.page_evidence(leading)
    yield MAIN, pairs
    yield _WORDS, words
    yield _LEADING, leading


def _sent_words(leading: pa.Table | None, links: pa.Table | None) -> Iterator[pa.Table]:
    if leading is not None and links is not None:
        for part in topic_part_of.sent_words(leading, links):
            yield from bounded_slices(part)


def _link_evidence(leading: pa.Table | None, sent: pa.Table | None) -> Iterator[tuple[str, pa.Table]]:
    if leading is not None and sent is not None:
        pairs, words = topic_part_of.link_evidence(leading, sent)
        yield MAIN, pairs
        yield _WORDS, words


def _relatives(pairs: pa.Table | None, words: pa.Table | None, *, which: str) -> Iterator[pa.Table]:
    if pairs is not None and words is not None:
        yield topic_relations.relatives(topic_relations.added_pairs(pairs), words, which)


def _word_weights(*, query: list[str], **tables: pa.Table | None) -> pa.Table:
    return topic_lattice.word_weights(_prepared(**tables, query=query).lattice)


def _concepts(*, query: list[str], **tables: pa.Table | None) -> pa.Table:
    return _prepared(**tables, query=query).lattice.concept_extents()
