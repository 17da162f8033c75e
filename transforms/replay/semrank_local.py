"""SemRank in memory, for replays: the rounds that a crawl would compute one after another, by the same kernels.

A round knows what the crawl has at that moment: the texts and links of some pages, and the whole click log. The base
lattice is that of the batch fetched last, at first of the seeds, and the current lattice that of the URLs which this
batch links to and which were not fetched. Candidates that only earlier batches link to keep their score, and a URL that
several batches link to keeps its best one, as in a crawler's queue. Where the base is another one, all that the fetched
pages link to is ranked in every round. A round has the result of `semrank rank` on a snapshot of the same pages and
links.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.columnar.arrays import (
    MAIN,
    Bools,
    Float64s,
    Int64s,
    bools,
    column_array,
    concatenate,
    int64s,
    members,
    positions,
)
from semrank.transforms.columnar.idfilter import IdFilter
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.context import pages as context_pages
from semrank.transforms.context.evidence import Evidence
from semrank.transforms.context.links import (
    ID_SCHEMA,
    LINK_SCHEMA,
    Links,
    anchor_rows,
    click_edges_of_queue,
    discovered_urls,
    link_edges,
    read_links,
)
from semrank.transforms.context.objects import (
    BASE,
    OBJECT_SCHEMA,
    SUPPORTS,
    VOCABULARY_SCHEMA,
    Corpus,
    ObjectSettings,
    keywords,
    make_objects,
    number_words,
    object_words,
    with_clicks,
)
from semrank.transforms.context.pages import FETCHED_SCHEMA, TERM_SCHEMA, WORDS, address_words, text_words
from semrank.transforms.context.words import DEFAULT_LANGUAGE, lemmas_of
from semrank.transforms.lattice.mining import LATTICE_SCHEMA, MiningContext, bundle_rows, lattice_table, mine_bundle
from semrank.transforms.ranking.semrank import SCORE_SCHEMA, Judge, Scoring, join_scores
from semrank.transforms.ranking.topic_lattice import nearest_of_facts
from semrank.transforms.replay.replay import Moment, candidate_scores
from semrank.transforms.replay.web import Web
from semrank.transforms.similarity.settings import SimilaritySettings
from semrank.transforms.weblog import relations
from semrank.transforms.weblog.clicks import COLUMNS as CLICK_COLUMNS
from semrank.transforms.weblog.clicks import WORD_SCHEMA, Clicks, read_clicks, url_word_clicks, word_clicks
from semrank.transforms.weblog.groups import minhash_groups, user_groups, user_words, users_of_several_groups
from semrank.transforms.weblog.relations import RelationSettings
from semrank.transforms.weblog.sequences import click_edges, sequence_rows

LAST, SEEDS, TOPIC = "last", "seeds", "topic"
"""Pages that the base lattice is of: those fetched last, the seeds, or these and the fetched pages nearest to them."""


@dataclass(frozen=True)
class Reading:
    """How SemRank is computed.

    Attributes:
        objects: how attributes are chosen.
        similarity: how similarities are computed.
        relations: how relations are learned.
        min_support: smallest number of URLs of a concept.
        base: `LAST`, `SEEDS` or `TOPIC`; with the latter two all candidates are ranked in every round.
    """

    objects: ObjectSettings
    similarity: SimilaritySettings
    relations: RelationSettings
    min_support: int
    base: str


PAPER = Reading(
    ObjectSettings(
        keywords_per_page=12, min_clicks=1, max_keywords_per_url=50, language=DEFAULT_LANGUAGE, count_every_click=False
    ),
    SimilaritySettings(),
    RelationSettings(),
    min_support=1,
    base=LAST,
)
"""As P13 does: the defaults of a round with the profile `paper-2013`."""


_NO_BITS = 64
"""Size of an id filter that nothing is in."""


@dataclass(frozen=True, eq=False)
class SemRankWeb:
    """A snapshot's pages and links in the form that rounds take.

    Attributes:
        fetched: all pages (`FETCHED_SCHEMA`).
        terms: words of their texts (`TERM_SCHEMA`).
        given: their given keywords (`TERM_SCHEMA`).
        texts: ids of the pages with text, ascending.
        link_table: the rows of the links table.
        links: the same as ids.
        anchors: words of each link's anchor (`TERM_SCHEMA`, with the link's row in place of the URL id).
        words: names of the words of pages and anchors (`WORD_SCHEMA`), ascending by word id, each once.
    """

    fetched: pa.Table
    terms: pa.Table
    given: pa.Table
    texts: Int64s
    link_table: pa.Table
    links: Links
    anchors: pa.Table
    words: pa.Table

    @classmethod
    def of(
        cls, pages: pa.Table, links: pa.Table, *, language: str = DEFAULT_LANGUAGE, nouns: bool = False
    ) -> SemRankWeb:
        """From conformed tables.

        Args:
            pages: the pages.
            links: the links.
            language: language of anchors and of pages without one.
            nouns: whether only nouns are words.
        """
        found: dict[str, list[pa.Table]] = {}
        # Words of all pages are read once, and chosen by round afterwards.
        wanted = context_pages.Wanted(np.sort(text_ids(pages["url"])), IdFilter.from_segments(None, _NO_BITS))
        for kind, table in context_pages.read_pages(pages, wanted, language, every=True, lead=False, nouns=nouns):
            found.setdefault(kind, []).append(table)
        ids = read_links(links)
        rows, anchors = _anchor_texts(links, ids)
        anchor_words, named = text_words(rows, anchors, language, nouns=nouns)
        return cls(
            concatenate(found[context_pages.FETCHED], FETCHED_SCHEMA),
            concatenate(found[context_pages.TERMS], TERM_SCHEMA),
            concatenate(found[context_pages.GIVEN], TERM_SCHEMA),
            np.sort(text_ids(pages["url"].filter(pa.array(_with_text(pages))))),
            links,
            ids,
            anchor_words,
            _distinct_words([*found[WORDS], named]),
        )


def _anchor_texts(table: pa.Table, links: Links) -> tuple[Int64s, pa.Array]:
    """(row, anchor text) of each followed link that has one."""
    numbered = Links(links.source, np.arange(table.num_rows, dtype=np.int64), links.followed, links.digests)
    return anchor_rows(table, np.ones(table.num_rows, dtype=np.bool_), numbered)


def _with_text(pages: pa.Table) -> Bools:
    """Whether each page's text counts in the words' document frequencies: it has one, and no given keywords."""
    text = pc.or_(pc.is_valid(column_array(pages["title"])), pc.is_valid(column_array(pages["text"])))
    counted = pc.and_(text, pc.is_null(column_array(pages["keywords"])))
    return bools(counted)


def _distinct_words(tables: list[pa.Table]) -> pa.Table:
    words = concatenate(tables, WORD_SCHEMA)
    _, first = np.unique(int64s(words["word_id"]), return_index=True)
    return words.take(pa.array(first)).combine_chunks()


@dataclass(frozen=True, eq=False)
class ClickLog:
    """A click log in the form that rounds take.

    Attributes:
        edges: distinct c-edges.
        url_clicks: clicks by (URL, word) (`TERM_SCHEMA`).
        word_ids: ids of the words of queries, ascending, int64.
        word_clicks: f(n) of each, int64.
        scopes: who clicked what after which of these words (`relations.SCOPE_SCHEMA`).
        clicked: ids of the clicked URLs, ascending, int64.
        words: their names (`WORD_SCHEMA`), ascending by word id.
        read: the clicks.
        users: users of several groups, and the groups that replace the log's; see `relations.scope_rows`.
    """

    edges: pa.Table
    url_clicks: pa.Table
    word_ids: Int64s
    word_clicks: Int64s
    scopes: pa.Table
    clicked: Int64s
    words: pa.Table
    read: Clicks
    users: tuple[pa.Table | None, pa.Table | None]

    @classmethod
    def of(
        cls, clicks: pa.Table, *, groups: str = "given", language: str = DEFAULT_LANGUAGE, nouns: bool = False
    ) -> ClickLog:
        """From a conformed clicks table.

        Args:
            clicks: the table.
            groups: where groups of users come from: `given`, `one` or `minhash`.
            language: language of queries.
            nouns: whether only nouns are words.
        """
        read: Clicks = read_clicks(clicks.select(CLICK_COLUMNS), partial(lemmas_of, fallback=language, nouns=nouns))
        word_ids, counts = np.unique(read.word, return_counts=True)
        if groups == "one":
            read, users = read.in_one_group(), (None, None)
        elif groups == "minhash":
            users = (None, minhash_groups(user_words(read)))
        else:
            users = (users_of_several_groups(user_groups(read)), None)
        return cls(
            click_edges(sequence_rows(read)),
            url_word_clicks(read).rename_columns(TERM_SCHEMA.names),
            word_ids,
            counts.astype(np.int64),
            relations.scope_rows(read, word_ids, *users),
            np.unique(read.url),
            _distinct_words([read.words]),
            read,
            users,
        )

    def about(self, words: Int64s) -> tuple[pa.Table, pa.Table]:
        """`scopes`, and f(n) by word, of the clicks after queries with one of some words, whose ids are ascending."""
        chosen = self.read.about(words)
        return relations.scope_rows(chosen, self.word_ids, *self.users), word_clicks(chosen)


@dataclass(frozen=True, eq=False)
class Round:
    """The contexts of one round, before anything is compared.

    Attributes:
        base: objects of the queue (`OBJECT_SCHEMA`), words by number.
        current: objects of the URLs to rank, likewise.
        vocabulary: the keywords in the order of their names: word, word_id, clicks, base_support, current_support.
        links: followed links between clicked pages that the round knows (`LINK_SCHEMA`).
    """

    base: pa.Table
    current: pa.Table
    vocabulary: pa.Table
    links: pa.Table


def make_round(
    web: SemRankWeb,
    log: ClickLog,
    *,
    known: Int64s,
    queue: pa.Table,
    harvested: Int64s,
    reading: Reading = PAPER,
) -> Round:
    """The contexts of a round.

    Args:
        web: all pages and links.
        log: the clicks.
        known: ids of the pages whose text and links the crawl has, ascending.
        queue: `url_id` and `url` of the URLs that the base lattice is of, ascending by id.
        harvested: ids of all URLs fetched so far, the queue's among them, ascending; they are not ranked again.
        reading: how SemRank is computed.
    """
    queue_ids = int64s(queue["url_id"])
    rows = np.flatnonzero(members(known, web.links.source))
    table = web.link_table.take(pa.array(rows))
    links = Links(web.links.source[rows], web.links.target[rows], web.links.followed[rows], web.links.digests)
    sources = queue_ids if reading.base == LAST else harvested
    discovered = discovered_urls(links, table, sources, harvested)
    wanted = np.sort(np.concatenate([queue_ids, int64s(discovered["url_id"])]))
    edges = pa.concat_tables([link_edges(links, queue_ids), click_edges_of_queue(log.edges, queue_ids)])
    addresses, address_names = _addresses(web, queue, discovered, known, reading.objects)
    evidence = Evidence(
        queue=queue,
        discovered=discovered,
        known=pa.table([queue_ids], schema=ID_SCHEMA),
        edges=edges,
        fetched=_rows_of(web.fetched, known[members(wanted, known)]),
        terms=_rows_of(web.terms, known[members(wanted, known)]),
        given=_rows_of(web.given, known[members(wanted, known)]),
        anchors=_anchors(web, rows[members(wanted, links.target)]),
        addresses=addresses,
        clicked=_rows_of(log.url_clicks, wanted),
    )
    results = dict(make_objects(evidence, _corpus(web, queue, known), reading.objects))
    words = pa.concat_tables([web.words, log.words, address_names])
    vocabulary = _vocabulary(results.get(SUPPORTS), words, log)
    ids = int64s(vocabulary["word_id"])
    base, current = (number_words(results.get(kind, OBJECT_SCHEMA.empty_table()), ids) for kind in (BASE, MAIN))
    clicked = members(log.clicked, links.source) & members(log.clicked, links.target) & links.followed
    return Round(
        base,
        current,
        vocabulary,
        pa.table([links.source[clicked], links.target[clicked]], schema=LINK_SCHEMA),
    )


def _addresses(
    web: SemRankWeb, queue: pa.Table, discovered: pa.Table, known: Int64s, settings: ObjectSettings
) -> tuple[pa.Table, pa.Table]:
    """Words of the addresses of the URLs whose own content is not known."""
    urls = pa.concat_tables([queue.select(discovered.column_names), discovered])
    pages = web.fetched.filter(web.fetched["described"])
    described = np.intersect1d(int64s(pages["url_id"]), known)
    urls = urls.filter(pa.array(~members(described, int64s(urls["url_id"]))))
    return address_words(int64s(urls["url_id"]), column_array(urls["url"]), settings.language, nouns=settings.nouns)


def _rows_of(table: pa.Table, ids: Int64s) -> pa.Table:
    return table.filter(pa.array(members(ids, int64s(table["url_id"]))))


def _anchors(web: SemRankWeb, rows: Int64s) -> pa.Table:
    """Anchor words of some links by the URLs that they lead to."""
    chosen = _rows_of(web.anchors, rows)
    return chosen.set_column(0, TERM_SCHEMA.field(0), pa.array(web.links.target[int64s(chosen["url_id"])]))


def _corpus(web: SemRankWeb, queue: pa.Table, known: Int64s) -> Corpus:
    """Document frequencies over the pages whose text the crawl has."""
    texts = web.texts[members(known, web.texts)]
    words = int64s(web.terms["word_id"])[members(texts, int64s(web.terms["url_id"]))]
    frequent, documents = np.unique(words, return_counts=True)
    several = documents > 1
    return Corpus(
        int64s(queue["url_id"]),
        frequent[several],
        documents[several].astype(np.int64),
        len(texts),
    )


def _vocabulary(supports: pa.Table | None, words: pa.Table, log: ClickLog) -> pa.Table:
    """The keywords of the two contexts in the order of their names."""
    if supports is None:
        return VOCABULARY_SCHEMA.empty_table()
    clicks = pa.table({"word_id": log.word_ids, "clicks": log.word_clicks})
    return keywords(words, supports, clicks).sort_by("word").combine_chunks()


def score_round(contexts: Round, log: ClickLog, reading: Reading = PAPER) -> pa.Table:
    """The round's URLs with their scores, a table of `RANKED_SCHEMA`."""
    scopes = log.scopes
    if reading.relations.topic_log:
        ids, in_base = int64s(contexts.vocabulary["word_id"]), int64s(contexts.vocabulary["base_support"]) > 0
        scopes, counts = log.about(reading.relations.topic_words(ids, in_base))
        contexts = replace(contexts, vocabulary=with_clicks(contexts.vocabulary, counts))
    isa, part_of = _relations(contexts, log, scopes, reading.relations)
    base = MiningContext.of(contexts.base, contexts.vocabulary, min_support=reading.min_support)
    lattice = concatenate(_lattice(base), LATTICE_SCHEMA)
    judge = Judge.of(lattice, contexts.vocabulary, isa, part_of, settings=reading.similarity, query=[])
    current = MiningContext.of(contexts.current, contexts.vocabulary, min_support=reading.min_support)
    return join_scores(contexts.current, concatenate(_scores(judge, current), SCORE_SCHEMA), contexts.vocabulary, None)


def _lattice(context: MiningContext | None) -> Iterator[pa.Table]:
    if context is None or not context.objects.num_rows:
        return
    ranked = context.ranked()
    queue = int64s(context.objects["queue"]).astype(np.int32)
    for row in bundle_rows(context):
        for concepts in mine_bundle(row, context, ranked):
            in_queue = replace(concepts, extent_indices=queue[concepts.extent_indices])
            yield lattice_table(in_queue, context.concept_ids(concepts))


def _scores(judge: Judge, context: MiningContext | None) -> Iterator[pa.Table]:
    if context is None or not context.objects.num_rows:
        return
    scoring = Scoring.of(judge, context)
    for row in bundle_rows(context):
        yield from (table for _, table in scoring.score_bundle(row, write=False))


def _relations(
    contexts: Round, log: ClickLog, scopes: pa.Table, settings: RelationSettings
) -> tuple[pa.Table, pa.Table]:
    """(ISA pairs, Part-Of pairs) between the round's keywords, by number."""
    vocabulary = contexts.vocabulary
    count = vocabulary.num_rows
    number = np.full(len(log.word_ids), -1, dtype=np.int64)
    place = positions(log.word_ids, int64s(vocabulary["word_id"]))
    number[place[place >= 0]] = np.flatnonzero(place >= 0)
    word = number[int64s(scopes["word"])]
    rows = scopes.set_column(scopes.schema.get_field_index("word"), "word", pa.array(word))
    rows = rows.filter(pa.array(word >= 0))
    if settings.needs_word:
        rows = relations.contained_words(rows, _own_words(contexts))
    leading = relations.leading_words(rows, settings.max_words)
    in_base, in_current = (int64s(vocabulary[name]) > 0 for name in ("base_support", "current_support"))
    isa = relations.merge_pairs(relations.isa_pairs(leading, count))
    witnesses = concatenate(relations.link_witnesses(contexts.links, leading, in_base), relations.WITNESS_SCHEMA)
    part_of = relations.merge_pairs(relations.part_of_pairs(witnesses, leading, in_current))
    return relations.settle_relations(isa, part_of, settings.min_support)


def _own_words(contexts: Round) -> pa.Table:
    """Keywords of the pages of both contexts by number (`relations.OWN_WORD_SCHEMA`)."""
    return pa.concat_tables(map(object_words, (contexts.base, contexts.current))).cast(relations.OWN_WORD_SCHEMA)


class SemRankCrawler:
    """SemRank in one crawl; see the module's description.

    Args:
        web: all pages and links.
        log: the clicks.
        ids: id of each URL number, int64[n].
        urls: URL of each number, string[n].
        content_known: whether the candidates' texts and links are known before they are fetched.
        reading: how it is computed.
        facts: the same web as facts are made from it, which tell the nearest pages; needed where the base is `TOPIC`.

    Raises:
        ValueError: the base is `TOPIC`, and there is no such web.
    """

    def __init__(
        self,
        web: SemRankWeb,
        log: ClickLog,
        *,
        ids: Int64s,
        urls: pa.Array,
        content_known: bool,
        reading: Reading = PAPER,
        facts: Web | None = None,
    ) -> None:
        if reading.base == TOPIC and facts is None:
            raise ValueError("found no facts to choose the base pages by, expected them with the topic as base")
        self._web, self._log, self._ids, self._urls, self._content_known = web, log, ids, urls, content_known
        self._reading, self._facts, self._best = reading, facts, np.zeros(len(ids))

    def look(self, moment: Moment) -> tuple[Round, Int64s]:
        """The contexts of the round, and the candidates."""
        known = [moment.harvested, *([moment.candidates] if self._content_known else [])]
        base = self._base(moment)
        ids = self._ids[base]
        order = np.argsort(ids)
        queue = pa.table({"url_id": ids[order], "url": self._urls.take(pa.array(base[order]))})
        contexts = make_round(
            self._web,
            self._log,
            known=np.sort(self._ids[np.concatenate(known)]),
            queue=queue,
            harvested=np.sort(self._ids[moment.harvested]),
            reading=self._reading,
        )
        return contexts, moment.candidates

    def _base(self, moment: Moment) -> Int64s:
        """The pages that the base lattice is of."""
        if self._reading.base == LAST:
            return moment.batch
        if self._reading.base == SEEDS or self._facts is None:
            return moment.seeds
        harvested = self._ids[moment.harvested]
        known = self._facts.facts(
            seeds=self._ids[moment.seeds],
            harvested=harvested,
            current=self._ids[moment.candidates],
            content_known=self._content_known,
        )
        near = moment.harvested[members(nearest_of_facts(known), harvested)]
        return np.union1d(moment.seeds, near)

    def scores(self, known: tuple[Round, Int64s]) -> Float64s:
        """The best score of each candidate in this round and, where the base is the last batch, in earlier ones."""
        contexts, candidates = known
        fresh = candidate_scores(score_round(contexts, self._log, self._reading), self._ids[candidates])
        earlier = self._best[candidates] if self._reading.base == LAST else 0.0
        self._best[candidates] = np.maximum(earlier, fresh)
        return self._best[candidates]
