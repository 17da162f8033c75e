"""The objects of the two formal contexts: URLs with their words and their edges to the queue (SPEC: words, contexts).

A URL's attributes are the words of its own content where that is known: the given keywords as they are, or the K words
of title and text with the highest TF-IDF. Else they are the K best words of anchors and address, and the words after
which it was clicked often enough. TF-IDF is count * ln((N + 1) / df) with N pages and df pages that have the word.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from semrank.schemas.tables import TIMESTAMP
from semrank.transforms.columnar.arrays import (
    MAIN,
    Bools,
    Float64s,
    Int64s,
    bools,
    column_array,
    entry_rows,
    group_starts,
    group_sums,
    int64s,
    is_new_row,
    list_column,
    list_parts,
    members,
    places_in_groups,
    positions,
    row_keys,
    row_pointers,
    sum_rows,
)
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.context.evidence import Evidence
from semrank.transforms.context.links import CLICK_IN, CLICK_OUT
from semrank.transforms.context.pages import named_words
from semrank.transforms.streams.urls import host_of

OBJECT_SCHEMA = pa.schema(
    [
        pa.field("url_id", pa.int64()),
        pa.field("queue", pa.int64()),
        pa.field("url", pa.string()),
        pa.field("host", pa.string()),
        pa.field("fetched", pa.bool_()),
        pa.field("last_fetched_at", TIMESTAMP),
        pa.field("status", pa.int16()),
        pa.field("words", pa.list_(pa.int64())),
        pa.field("neighbours", pa.list_(pa.int64())),
        pa.field("edges", pa.list_(pa.int64())),
        pa.field("base_links", pa.int64()),
        pa.field("base_clicks", pa.int64()),
    ]
)
"""A URL of a context: `queue` is its position in the queue or -1; `edges[i]` counts the links and c-edges, both ways,
between it and the queue URL at position `neighbours[i]`."""

NODE_SCHEMA = pa.schema(
    [
        pa.field("url_id", pa.int64()),
        pa.field("host_id", pa.int64()),
        pa.field("seed", pa.bool_()),
        pa.field("current", pa.bool_()),
    ]
)
"""A known URL as the node of a graph."""

SUPPORT_SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("word_id", "base", "current")])
VOCABULARY_SCHEMA = pa.schema(
    [
        pa.field("word", pa.string()),
        pa.field("word_id", pa.int64()),
        pa.field("clicks", pa.int64()),
        pa.field("base_support", pa.int64()),
        pa.field("current_support", pa.int64()),
    ]
)
"""A keyword of the contexts; a word's number is its place in the order of the words."""

OBJECT_WORD_SCHEMA = pa.schema([pa.field("url_id", pa.int64()), pa.field("word", pa.int64())])

BASE, SUPPORTS = "base", "supports"


@dataclass(frozen=True)
class ObjectSettings:
    """How attributes are chosen; see `RoundConfig` for the meaning of the fields."""

    keywords_per_page: int
    min_clicks: int
    max_keywords_per_url: int
    language: str
    count_every_click: bool
    query_words: bool = True
    nouns: bool = False


@dataclass(frozen=True)
class Corpus:
    """What all workers know: the queue and the words' document frequencies.

    Attributes:
        queue_ids: ids of the queue URLs, sorted, int64[q].
        frequent_ids: sorted ids of words that stand on several pages, int64[v].
        frequencies: on how many, int64[v].
        documents: number of pages with text.
    """

    queue_ids: Int64s
    frequent_ids: Int64s
    frequencies: Int64s
    documents: int

    def idf(self, words: Int64s) -> Float64s:
        """ln((N + 1) / df) of word ids, float64[n]."""
        place = positions(self.frequent_ids, words)
        frequency = np.where(place >= 0, self.frequencies[place], 1) if len(self.frequencies) else np.ones(len(words))
        return np.asarray(np.log((self.documents + 1) / frequency), dtype=np.float64)


def make_objects(evidence: Evidence, corpus: Corpus, settings: ObjectSettings) -> Iterator[tuple[str, pa.Table]]:
    """The objects of one partition of URLs.

    Yields:
        (kind, table): `base` and `main` (current) objects of `OBJECT_SCHEMA`, sorted by URL id; `supports`, the number
        of objects of each word in each context (`SUPPORT_SCHEMA`).
    """
    ids, urls, queue = _urls(evidence, corpus)
    if not len(ids):
        return
    described, fetched, fetched_at, status = _fetch_state(evidence.fetched, ids)
    owner, word = _attributes(evidence, ids, described, corpus, settings)
    neighbours = _neighbours(evidence.edges, ids, queue < 0, settings.count_every_click)
    objects = pa.table(
        [
            pa.array(ids),
            pa.array(queue),
            urls,
            host_of(urls),
            pa.array(fetched),
            fetched_at,
            status,
            list_column(pa.array(word), row_pointers(owner, len(ids))),
            *neighbours,
        ],
        schema=OBJECT_SCHEMA,
    )
    yield BASE, objects.filter(pa.array(queue >= 0))
    yield MAIN, objects.filter(pa.array(queue < 0))
    yield SUPPORTS, _supports(word, queue[owner] >= 0)


def number_words(objects: pa.Table, vocabulary_ids: Int64s) -> pa.Table:
    """Objects with word numbers, ascending, in place of word ids.

    Args:
        objects: a table of `OBJECT_SCHEMA`.
        vocabulary_ids: word id of each word number, int64[v].
    """
    order = np.argsort(vocabulary_ids)
    indptr, words = list_parts(objects["words"])
    numbers = order[positions(vocabulary_ids[order], int64s(words))]
    owner = entry_rows(indptr)
    numbers = numbers[np.argsort(row_keys(owner, numbers))]
    return objects.set_column(
        objects.schema.get_field_index("words"), OBJECT_SCHEMA.field("words"), list_column(pa.array(numbers), indptr)
    )


def object_words(objects: pa.Table) -> pa.Table:
    """The keywords of objects, a row for each (`OBJECT_WORD_SCHEMA`), by id or number as in `objects`."""
    indptr, words = list_parts(objects["words"])
    owner = np.repeat(int64s(objects["url_id"]), np.diff(indptr))
    return pa.table([owner, int64s(words)], schema=OBJECT_WORD_SCHEMA)


def keywords(words: pa.Table, supports: pa.Table, clicks: pa.Table | None) -> pa.Table:
    """The keywords of contexts, a table of `VOCABULARY_SCHEMA` ascending by word id.

    Args:
        words: names of these and other words (`clicks.WORD_SCHEMA`), may repeat.
        supports: results of `make_objects` (`SUPPORT_SCHEMA`); a word may repeat.
        clicks: clicks by `word_id`, in parts.
    """
    summed = supports.group_by("word_id").aggregate([("base", "sum"), ("current", "sum")]).sort_by("word_id")
    named = named_words(words, int64s(summed["word_id"]))
    nothing = np.zeros(named.num_rows, dtype=np.int64)
    columns = [named["word"], named["word_id"], nothing, summed["base_sum"], summed["current_sum"]]
    return with_clicks(pa.table(columns, schema=VOCABULARY_SCHEMA), clicks)


def with_clicks(vocabulary: pa.Table, clicks: pa.Table | None) -> pa.Table:
    """A vocabulary with other numbers of clicks.

    Args:
        vocabulary: keywords with columns `word_id` and `clicks`.
        clicks: clicks by `word_id`, in parts; a word that it does not name has none.
    """
    ids = int64s(vocabulary["word_id"])
    counts = np.zeros(len(ids), dtype=np.int64)
    if clicks is not None and len(ids):
        order = np.argsort(ids)
        place = positions(ids[order], int64s(clicks["word_id"]))
        np.add.at(counts, order[place[place >= 0]], int64s(clicks["clicks"])[place >= 0])
    return vocabulary.set_column(vocabulary.schema.get_field_index("clicks"), "clicks", pa.array(counts))


def graph_nodes(current: pa.Table | None, harvest: pa.Table) -> pa.Table:
    """Known URLs as nodes, a table of `NODE_SCHEMA`.

    Args:
        current: URLs to rank (`OBJECT_SCHEMA`).
        harvest: harvested URLs: `url_id`, `url` and `seed`.
    """
    hosts = text_ids(host_of(column_array(harvest["url"])))
    nobody = np.zeros(harvest.num_rows, dtype=np.bool_)
    nodes = [pa.table([harvest["url_id"], hosts, harvest["seed"], nobody], schema=NODE_SCHEMA)]
    if current is not None:
        flags = [np.full(current.num_rows, flag) for flag in (False, True)]
        nodes.append(pa.table([current["url_id"], text_ids(current["host"]), *flags], schema=NODE_SCHEMA))
    return pa.concat_tables(nodes)


def _urls(evidence: Evidence, corpus: Corpus) -> tuple[Int64s, pa.Array, Int64s]:
    """Ids, addresses and queue positions of the partition's URLs, sorted by id."""
    seen = [int64s(table["url_id"]) for table in (evidence.known, evidence.fetched) if table is not None]
    mentioned = np.unique(np.concatenate(seen)) if seen else np.zeros(0, dtype=np.int64)
    queued = mentioned[members(corpus.queue_ids, mentioned)]
    queue = positions(corpus.queue_ids, queued)
    ids, addresses = queued, pa.array([], pa.string())
    if evidence.queue is not None:
        rows = evidence.queue.sort_by("url_id")
        addresses = column_array(rows["url"]).take(pa.array(positions(int64s(rows["url_id"]), queued)))
    if evidence.discovered is not None:
        found, first = np.unique(int64s(evidence.discovered["url_id"]), return_index=True)
        addresses = pa.concat_arrays(
            [addresses.cast(pa.string()), evidence.discovered["url"].combine_chunks().take(pa.array(first))]
        )
        ids = np.concatenate([ids, found])
        queue = np.concatenate([queue, np.full(len(found), -1, dtype=np.int64)])
    order = np.argsort(ids)
    return ids[order], addresses.take(pa.array(order)), queue[order]


def _fetch_state(fetched: pa.Table | None, ids: Int64s) -> tuple[Bools, Bools, pa.Array, pa.Array]:
    """Whether each URL's own content is known, whether it was fetched, when, and with what status."""
    if fetched is None or not fetched.num_rows:
        nothing = np.zeros(len(ids), dtype=np.bool_)
        return nothing, nothing, pa.nulls(len(ids), TIMESTAMP), pa.nulls(len(ids), pa.int16())
    order = np.argsort(int64s(fetched["url_id"]), kind="stable")
    fetched = fetched.take(pa.array(order)).combine_chunks()
    place = positions(int64s(fetched["url_id"]), ids)
    found = place >= 0
    described = bools(fetched["described"])
    indices = pa.array(np.where(found, place, 0), mask=~found)
    times, statuses = (column_array(fetched[name]).take(indices) for name in ("fetched_at", "status"))
    return found & described[np.where(found, place, 0)], found, times, statuses


def _attributes(
    evidence: Evidence,
    ids: Int64s,
    described: Bools,
    corpus: Corpus,
    settings: ObjectSettings,
) -> tuple[Int64s, Int64s]:
    """(URL number, word id) pairs, sorted, each once."""
    pairs: list[tuple[Int64s, Int64s]] = []
    owner, word, _ = _rows(evidence.given, ids, described)
    pairs.append((owner, word))
    owner, word, count = _rows(evidence.terms, ids, described)
    pairs.append(_best(owner, word, count * corpus.idf(word), settings.keywords_per_page))
    hearsay = [table for table in (evidence.anchors, evidence.addresses) if table is not None]
    owner, word, count = _rows(pa.concat_tables(hearsay) if hearsay else None, ids, ~described)
    pairs.append(_best(owner, word, count * corpus.idf(word), settings.keywords_per_page))
    owner, word, count = _rows(evidence.clicked if settings.query_words else None, ids, ~described)
    often = count >= settings.min_clicks
    pairs.append(_best(owner[often], word[often], count[often].astype(np.float64), settings.max_keywords_per_url))
    owner, word = (np.concatenate(columns) for columns in zip(*pairs, strict=True))
    order = np.lexsort((word, owner))
    owner, word = owner[order], word[order]
    new = is_new_row(owner, word)
    return owner[new], word[new]


def _rows(table: pa.Table | None, ids: Int64s, wanted: Bools) -> tuple[Int64s, Int64s, Int64s]:
    """(URL number, word id, count) of the rows about wanted URLs, counts added."""
    if table is None:
        empty = np.zeros(0, dtype=np.int64)
        return empty, empty, empty
    place = positions(ids, int64s(table["url_id"]))
    kept = (place >= 0) & wanted[np.maximum(place, 0)]
    number, word, count = sum_rows((place[kept], int64s(table["word_id"])[kept]), int64s(table["count"])[kept])
    return number, word, count


def _best(owner: Int64s, word: Int64s, score: Float64s, most: int) -> tuple[Int64s, Int64s]:
    """The `most` rows of each owner with the highest scores, ties by word id."""
    order = np.lexsort((word, -score, owner))
    starts = group_starts(owner[order])
    kept = order[places_in_groups(starts, len(order)) < most]
    return owner[kept], word[kept]


def _neighbours(edges: pa.Table | None, ids: Int64s, current: Bools, count_every_click: bool) -> list[pa.Array]:
    """Columns `neighbours`, `edges`, `base_links` and `base_clicks`."""
    empty = np.zeros(0, dtype=np.int64)
    owner, queue, kind, times = empty, empty, empty, empty
    if edges is not None:
        place = positions(ids, int64s(edges["url_id"]))
        kept = (place >= 0) & current[np.maximum(place, 0)]
        keys = (place[kept], int64s(edges["queue"])[kept], int64s(edges["kind"])[kept])
        owner, queue, kind, times = sum_rows(keys, int64s(edges["times"])[kept])
    clicked = (kind == CLICK_OUT) | (kind == CLICK_IN)
    weight = np.where(clicked & count_every_click, times, 1)
    starts = group_starts(owner, queue)
    sums = group_sums(weight, starts)
    indptr = row_pointers(owner[starts], len(ids))
    links = np.bincount(owner, weights=np.where(clicked, 0, weight), minlength=len(ids)).astype(np.int64)
    clicks = np.bincount(owner, weights=np.where(clicked, weight, 0), minlength=len(ids)).astype(np.int64)
    return [
        list_column(pa.array(queue[starts]), indptr),
        list_column(pa.array(sums), indptr),
        pa.array(links),
        pa.array(clicks),
    ]


def _supports(word: Int64s, in_base: Bools) -> pa.Table:
    return pa.table(sum_rows([word], in_base.astype(np.int64), (~in_base).astype(np.int64)), schema=SUPPORT_SCHEMA)
