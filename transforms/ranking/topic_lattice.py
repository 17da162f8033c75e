"""SemRank by the topic's lattice: the profile `topic`.

P13 compares each round's URLs with the lattice of the round before, so the crawl soon looks for what its last batch
was about. Here the base lattice is the topic's in every round: its objects are the seeds, and the harvested pages that
are nearest to the seeds by SemRank itself. The current URLs are all that the harvest links to.

Attributes are graded: the degree x_u(n) to which URL u has word n is (1 + ln count) idf(n), rows of length 1, so that
rare words count more (`vectors.word_vectors`). The closed sets are all those of each object's `KEYWORDS` words of the
highest degree. A base concept B = (X, Y) has the graded intent

    g_B(n) = mean of x(n) over X * share of X that has n,          length 1

which is largest on the words of Y, and its evidence p_B is its support as a share of all supports. With

    intension(B, u) = sum over words n of g_B(n) x_u(n)
    intension(u)    = sum over B of p_B intension(B, u)

so several concepts that agree count more than one does, whereas P13 takes the maximum. The seeds' own lattice has the
weight 1, the one with the nearest pages `FEEDBACK`. The resulting word weights are divided by their length, so that
the intension is a cosine, however many concepts the lattices have.

The words about a URL (of its anchors, around them, of its address, of queries that led to clicks on it) are others than
those of its text. So the objects have two contexts, `text` and `mentions`, the latter of the words about them, and

    SemRank(u) = text(u)                                                            where the content of u is known
               = text(u) + MENTION_WEIGHT (mentions(u) - CONTRAST everywhere(u))    elsewhere

with text(u) and mentions(u) the intensions by the lattices of the two contexts, where x_u is of the text of u, or else
of the words about u. everywhere(u) is the intension of the current context's top concept, whose graded intent is the
mean of the words about the URLs to rank, of length 1: words about all of them are not specific to the topic. In
tables the term mentions(u) is named `told`.

The score is the logistic function of SemRank(u) / s - 1, with s the mean SemRank of the base objects, each as a URL of
the same kind: 0.5 for a URL that is as similar to the lattices as their own objects are on average.

Where relations are learned (`topic_relations`), a base word also matches its relatives, as far as they are similar: of
the word weights that follow from lattices, c(n) becomes c(n) + `RELATED` (sum of c(a) ics(a, n)), of length 1.

A URL's reason is the base concept whose own keywords contribute most, with the keywords that the URL has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse
from scipy.special import expit

from semrank.schemas.tables import MATCH
from semrank.transforms.columnar.arrays import (
    Bools,
    Float64s,
    Int64s,
    bools,
    concatenate,
    entry_rows,
    int64s,
    list_column,
    list_parts,
    members,
    ragged,
    row_pointers,
    sum_rows,
)
from semrank.transforms.columnar.ids import set_id, text_ids
from semrank.transforms.context.descriptions import Descriptions
from semrank.transforms.lattice.closed_sets import closed_sets
from semrank.transforms.lattice.context import Concepts, FormalContext
from semrank.transforms.ranking import topic_part_of, topic_relations
from semrank.transforms.ranking.exact_sums import SUM_SCHEMA, fixed, sum_bits
from semrank.transforms.ranking.facts import Facts, inverse_document_frequency
from semrank.transforms.ranking.reasons import Term, best_words, reason_lists
from semrank.transforms.ranking.scores import SCORE_DECIMALS, SCORED_SCHEMA
from semrank.transforms.ranking.topic_words import Vocabulary, page_words, words_of_others
from semrank.transforms.ranking.vectors import (
    GRADE_BITS,
    LEAD_WEIGHT,
    unit,
    unit_rows,
    weighted,
    with_data,
    word_vectors,
)

KEYWORDS = 30
"""Number of words of an object that its concepts are made of."""

MOST_SEEDS = 100
"""Largest number of seeds in the base lattice: those with the smallest ids, which are a random sample."""

FEEDBACK_PAGES, FEEDBACK_SHARE = 40, 0.3
"""Largest number of harvested pages in the base lattice, and their largest share of the harvest, against drift."""

FEEDBACK = 0.7
"""Weight of the lattice with the nearest pages, where the lattice of the seeds alone has 1."""

MENTION_WEIGHT, CONTRAST = 1.0, 0.9
"""Weights of the context `mentions`, where `text` has 1, and of `everywhere`, which is subtracted from it."""

RELATED = 0.5
"""Weight of a word's relatives, where the word itself has 1."""

TEXT, MENTIONS = "text", "mentions"
"""The contexts of the base objects: the words of their texts, and the words about them."""

OBJECT_SCHEMA = pa.schema(
    [
        pa.field("url_id", pa.int64()),
        pa.field("seed", pa.bool_()),
        pa.field("likeness", pa.int64()),
        *(
            pa.field(f"{context}{suffix}", pa.list_(pa.int64()))
            for context in (TEXT, MENTIONS)
            for suffix in ("", "_counts")
        ),
    ]
)
"""A base object: numbers and counts of the words of its text and of those about it. `likeness` is its intension by the
seeds' lattice in multiples of 2^-`GRADE_BITS`, 0 for a seed."""

SIZE_SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("urls", "others", "plain")])
"""Numbers of known URLs of a part, of its harvested pages with known content besides the seeds, and of its URLs to rank
whose content is not known; parts are added."""

WEIGHT_SCHEMA = pa.schema([pa.field("slot", pa.int64()), pa.field("weight", pa.float64())])
"""A word, by its number, and its weight."""

EXTENT_SCHEMA = pa.schema(
    [pa.field("url_id", pa.int64()), pa.field("concept", pa.int64()), pa.field("intent", pa.list_(pa.string()))]
)
"""An object of a base concept with the concept's keywords."""

TOPIC_SCHEMA = pa.schema(
    [
        *SCORED_SCHEMA,
        pa.field("intension", pa.float64()),
        pa.field("base_concept", pa.int64()),
        pa.field("matches", pa.list_(MATCH)),
    ]
)
"""A URL's score and reasons with its terms of SemRank."""


@dataclass(frozen=True)
class TopicSettings:
    """How SemRank by the topic's lattice is computed.

    Attributes:
        relations: by which relations that the click log gives words match others (`topic_relations.WANTED`), if any.
    """

    relations: str | None = None


def counted_words(known: Descriptions) -> sparse.csr_array:
    """Occurrences of the words that a URL is compared by, those in the lead weighted, CSR int64[n, v]."""
    counts = sparse.csr_array(page_words(known) + LEAD_WEIGHT * known.lead)
    counts.sort_indices()
    return counts


def part_size(known: Descriptions) -> pa.Table:
    """Size of a part of the known URLs, a table of `SIZE_SCHEMA` with one row."""
    return size_by_flags(seed=known.seed, harvested=known.harvested, described=known.described, current=known.current)


def size_by_flags(*, seed: Bools, harvested: Bools, described: Bools, current: Bools) -> pa.Table:
    """`part_size` of URLs of which only the flags are known, bool[n] each."""
    counts = len(seed), int((harvested & described & ~seed).sum()), int((current & ~described).sum())
    return pa.table([[count] for count in counts], schema=SIZE_SCHEMA)


def _harvested(known: Descriptions) -> Bools:
    """Pages that may join the seeds: harvested ones with known content."""
    return known.harvested & known.described & ~known.seed


def _plain(known: Descriptions) -> Bools:
    """URLs to rank whose content is not known."""
    return known.current & ~known.described


@dataclass(frozen=True)
class Collection:
    """The known URLs as a whole.

    Attributes:
        vocabulary: the words.
        query: numbers of the query's words, each of which is added to every seed once.
        urls: number of known URLs.
        others: number of harvested pages with known content besides the seeds.
        plain: number of URLs to rank whose content is not known.
    """

    vocabulary: Vocabulary
    query: Int64s
    urls: int
    others: int
    plain: int

    @classmethod
    def of_parts(cls, vocabulary: Vocabulary, query: Sequence[str], sizes: pa.Table | None) -> Collection:
        """From the sizes of all parts (`SIZE_SCHEMA`), in any order."""
        counted = SIZE_SCHEMA.empty_table() if sizes is None else sizes
        counts = {name: int(int64s(counted[name]).sum()) for name in SIZE_SCHEMA.names}
        return cls(vocabulary, vocabulary.numbers(query), **counts)

    @cached_property
    def idf(self) -> Float64s:
        """Inverse document frequency of each word, float64[v]."""
        return inverse_document_frequency(self.vocabulary.documents, self.urls)

    @property
    def nearest(self) -> int:
        """How many harvested pages join the seeds."""
        return min(FEEDBACK_PAGES, int(FEEDBACK_SHARE * self.others))


def seed_objects(known: Descriptions) -> pa.Table:
    """The seeds of a part that may be objects of the base lattice, a table of `OBJECT_SCHEMA`."""
    rows = known.select(np.flatnonzero(known.seed)[:MOST_SEEDS])
    return _object_table(rows, np.zeros(len(rows), dtype=np.int64))


def near_objects(known: Descriptions, lattice: TopicLattice) -> pa.Table:
    """The harvested pages of a part that are nearest to the seeds' lattice, a table of `OBJECT_SCHEMA`.

    There are at most `nearest` of them; ties are broken by id, ascending.
    """
    rows = known.select(_harvested(known))
    values = word_vectors(counted_words(rows), lattice.known.idf)
    likeness = fixed(np.asarray(values @ lattice.text.centre, dtype=np.float64), GRADE_BITS)
    best = np.sort(np.lexsort((rows.url, -likeness))[: lattice.known.nearest])
    return _object_table(rows.select(best), likeness[best])


def mention_sums(known: Descriptions, collection: Collection) -> pa.Table:
    """Sums over the URLs to rank of a part for `everywhere`, a table of `SUM_SCHEMA`: a slot is a word."""
    values = word_vectors(words_of_others(known.select(_plain(known))), collection.idf)
    summands = fixed(values.data, sum_bits(collection.plain))
    return pa.table(sum_rows([values.indices.astype(np.int64)], summands), schema=SUM_SCHEMA)


def word_weights(lattice: TopicLattice) -> pa.Table:
    """Weights of words in SemRank of URLs whose content is not known, a table of `WEIGHT_SCHEMA` without zeros."""
    weights = lattice.plain_centre
    words = np.flatnonzero(weights)
    return pa.table([words.astype(np.int64), weights[words]], schema=WEIGHT_SCHEMA)


def _object_table(rows: Descriptions, likeness: Int64s) -> pa.Table:
    contexts = [
        list_column(pa.array(values.astype(np.int64)), counts.indptr.astype(np.int64))
        for counts in (counted_words(rows), words_of_others(rows))
        for values in (counts.indices, counts.data)
    ]
    return pa.table([pa.array(rows.url), pa.array(rows.seed), pa.array(likeness), *contexts], schema=OBJECT_SCHEMA)


def first_seeds(objects: pa.Table | None) -> pa.Table:
    """The seeds that become objects, from those of all parts, a table of `OBJECT_SCHEMA` ascending by id."""
    if objects is None:
        return OBJECT_SCHEMA.empty_table()
    return objects.sort_by("url_id").slice(0, MOST_SEEDS).combine_chunks()


def nearest_pages(objects: pa.Table | None, nearest: int) -> pa.Table:
    """The nearest pages among those of all parts, a table of `OBJECT_SCHEMA` ascending by id."""
    if objects is None:
        return OBJECT_SCHEMA.empty_table()
    by_likeness = objects.sort_by([("likeness", "descending"), ("url_id", "ascending")])
    return by_likeness.slice(0, nearest).sort_by("url_id").combine_chunks()


def _object_counts(objects: pa.Table, context: str, known: Collection) -> sparse.csr_array:
    """Counts of the words of objects in a context, including the query's for seeds, CSR int64[objects, v]."""
    indptr, words = list_parts(objects[context])
    counts = int64s(list_parts(objects[f"{context}_counts"])[1])
    shape = (objects.num_rows, len(known.vocabulary.documents))
    own = sparse.csr_array((counts, int64s(words), indptr), shape=shape)
    seeds = np.flatnonzero(bools(objects["seed"]))
    asked = (np.repeat(seeds, len(known.query)), np.tile(known.query, len(seeds)))
    together = sparse.csr_array(own + sparse.csr_array((np.ones(len(asked[0]), dtype=np.int64), asked), shape=shape))
    together.sort_indices()
    return together


def strongest(matrix: sparse.csr_array, count: int) -> sparse.csr_array:
    """The `count` largest values of each row, ties broken by column, ascending, CSR float64[n, v]."""
    row = entry_rows(matrix.indptr)
    order = np.lexsort((matrix.indices, -matrix.data, row))
    place = np.arange(len(order), dtype=np.int64) - matrix.indptr[row[order]]
    kept = np.sort(order[place < count])
    indptr = row_pointers(row[kept], matrix.shape[0])
    return sparse.csr_array((matrix.data[kept], matrix.indices[kept], indptr), shape=matrix.shape)


class ObjectLattice:
    """The closed sets of some objects.

    Args:
        values: degrees of the objects' words, CSR float64[objects, v].
        words: ids of the words, int64[v].

    Attributes:
        ids: id of each concept, made of its words, ascending, int64[c].
        extents: which objects each has, CSR float64[c, objects].
        intents: which keywords each has, CSR float64[c, v].
        evidence: support of each as a share of all supports, float64[c].
        graded: graded intent of each, CSR float64[c, v].
    """

    def __init__(self, values: sparse.csr_array, words: Int64s) -> None:
        keywords = strongest(values, KEYWORDS)
        context = FormalContext(keywords.indptr.astype(np.int64), keywords.indices.astype(np.int32), len(words))
        found = Concepts.concatenate([Concepts.empty(), *closed_sets(context)])
        ids = set_id(words[found.intent_indices], found.intent_indptr)
        # The intent of objects without a common word is empty, which is no evidence.
        shared = np.flatnonzero(np.diff(found.intent_indptr) > 0)
        order = shared[np.argsort(ids[shared])]
        self.ids: Int64s = ids[order]
        self.extents = _incidence(found.extent_indptr, found.extent_indices, values.shape[0])[order]
        self.intents = _incidence(found.intent_indptr, found.intent_indices, len(words))[order]
        support = np.diff(self.extents.indptr).astype(np.float64)
        self.evidence: Float64s = support / max(support.sum(), 1.0)
        self.graded = _graded_intents(self.extents, values)

    @property
    def centre(self) -> Float64s:
        """The sum of p_B g_B, float64[v]."""
        return np.asarray(self.graded.T @ self.evidence, dtype=np.float64)


def _incidence(indptr: Int64s, indices: np.ndarray, width: int) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(len(indptr) - 1, width))


def _graded_intents(extents: sparse.csr_array, values: sparse.csr_array) -> sparse.csr_array:
    """g_B of each concept, CSR float64[c, v] with rows of length 1."""
    sums = sparse.csr_array(extents @ values)
    holders = sparse.csr_array(extents @ with_data(values, np.ones(values.nnz)))
    sums.sort_indices()
    holders.sort_indices()
    # Both have the same non-zero entries. Divisions by the support cancel when rows get the length 1.
    return unit_rows(sums, sums.data * holders.data)


class ContextLattices:
    """The lattices of the base objects in one of their contexts.

    Args:
        known: the collection.
        objects: the objects (`OBJECT_SCHEMA`), the seeds first.
        context: `TEXT` or `MENTIONS`.
        related: similarity of words to others, CSR float64[v, v].

    Attributes:
        used: numbers of the objects' words, ascending, int64[w].
        values: degrees of the objects' words, CSR float64[objects, w].
        lattice: the closed sets of all objects.
        centre: weight of each word in an intension, float64[v].
    """

    def __init__(self, known: Collection, objects: pa.Table, context: str, related: sparse.csr_array) -> None:
        counts = _object_counts(objects, context, known)
        used, number = np.unique(counts.indices, return_inverse=True)
        counts = sparse.csr_array((counts.data, number, counts.indptr), shape=(counts.shape[0], len(used)))
        self.used: Int64s = used.astype(np.int64)
        self.values = word_vectors(counts, known.idf[used])
        words = text_ids(known.vocabulary.words.take(pa.array(self.used)))
        self.lattice = ObjectLattice(self.values, words)
        centre = self.lattice.centre
        seeds = int(bools(objects["seed"]).sum())
        if objects.num_rows > seeds:
            own = ObjectLattice(self.values[:seeds], words)
            centre = (own.centre + FEEDBACK * centre) / (1.0 + FEEDBACK)
        self.centre: Float64s = np.zeros(len(known.vocabulary.documents))
        self.centre[used] = unit(centre)
        if related.nnz:
            self.centre = unit(self.centre + RELATED * np.asarray(related.T @ self.centre))

    @property
    def keywords(self) -> Int64s:
        """Numbers of the words of the intents, ascending."""
        return self.used[np.unique(self.lattice.intents.indices)]

    @property
    def own(self) -> sparse.csr_array:
        """Degrees of the objects' words, CSR float64[objects, v]."""
        return self.widened(self.values)

    def widened(self, matrix: sparse.csr_array) -> sparse.csr_array:
        """A matrix over the objects' words as one over the vocabulary."""
        shape = (matrix.shape[0], len(self.centre))
        return sparse.csr_array((matrix.data, self.used[matrix.indices], matrix.indptr), shape=shape)


class TopicLattice:
    """The base lattices of a round; each worker holds them.

    Args:
        known: the collection.
        seeds: the seeds that are objects (`OBJECT_SCHEMA`).
        near: the harvested pages that joined them (`OBJECT_SCHEMA`), or None before they are known.
        mentions: sums of `mention_sums` of all parts (`SUM_SCHEMA`), or None before they are known.
        relatives: relatives of words (`topic_relations.RELATIVE_SCHEMA`), or None where or before there are none.

    Attributes:
        known: the collection.
        objects: ids of the objects, int64[b].
        related: similarity of words to others, CSR float64[v, v].
        text: the lattices of the texts.
        everywhere: graded intent of the current context's top concept, float64[v].
    """

    def __init__(
        self,
        known: Collection,
        seeds: pa.Table,
        near: pa.Table | None = None,
        mentions: pa.Table | None = None,
        relatives: pa.Table | None = None,
    ) -> None:
        self.known = known
        objects = concatenate([seeds] if near is None else [seeds, near], OBJECT_SCHEMA)
        self.objects: Int64s = int64s(objects["url_id"])
        self.related = related_words(relatives, len(known.vocabulary.documents))
        self.text = ContextLattices(known, objects, TEXT, self.related)
        self._objects = objects
        everywhere = np.zeros(len(known.vocabulary.documents))
        if mentions is not None:
            np.add.at(everywhere, int64s(mentions["slot"]), int64s(mentions["value"]))
        self.everywhere: Float64s = unit(everywhere)

    @cached_property
    def mentions(self) -> ContextLattices:
        """The lattices of the words about the objects."""
        return ContextLattices(self.known, self._objects, MENTIONS, self.related)

    @property
    def keywords(self) -> Int64s:
        """Numbers of the words of the intents of both contexts, ascending."""
        return np.union1d(self.text.keywords, self.mentions.keywords)

    @cached_property
    def plain_centre(self) -> Float64s:
        """Weight of each word in SemRank of a URL whose content is not known, float64[v]."""
        return self.text.centre + MENTION_WEIGHT * (self.mentions.centre - CONTRAST * self.everywhere)

    @cached_property
    def typical(self) -> tuple[float, float]:
        """The mean s for URLs whose content is not known, and for those whose content is known; 0 without objects."""
        described = _mean(self.text.own @ self.text.centre)
        plain = _mean(self.mentions.own @ self.plain_centre)
        return plain if plain > 0 else described, described

    @cached_property
    def _keyword_parts(self) -> sparse.csr_array:
        """p_B g_B of each concept's own keywords in the lattice of texts, with their relatives, CSR float64[c, v]."""
        lattice = self.text.lattice
        own = sparse.csr_array(lattice.graded.multiply(lattice.intents))
        own.data = own.data * np.repeat(lattice.evidence, np.diff(own.indptr))
        wide = self.text.widened(own)
        return sparse.csr_array(wide + RELATED * (wide @ self.related)) if self.related.nnz else wide

    @cached_property
    def _pairs(self) -> sparse.csr_array:
        """Similarity of each word to itself and to its relatives, CSR float64[v, v] with ascending columns."""
        pairs = sparse.csr_array(sparse.eye_array(*self.related.shape, format="csr") + self.related)
        pairs.sort_indices()
        return pairs

    def best_concepts(self, values: sparse.csr_array) -> Int64s:
        """Number of the concept whose keywords contribute most to each URL, -1 where none does, int64[n].

        Ties, to `SCORE_DECIMALS`, are broken by the concept's id, ascending.
        """
        parts = sparse.csr_array(values @ self._keyword_parts.T)
        row = entry_rows(parts.indptr)
        size = np.round(parts.data, SCORE_DECIMALS)
        order = np.lexsort((parts.indices, -size, row))
        rows, first = np.unique(row[order], return_index=True)
        positive = size[order[first]] > 0
        best = np.full(values.shape[0], -1, dtype=np.int64)
        best[rows[positive]] = parts.indices[order[first[positive]]]
        return best

    def matches(self, values: sparse.csr_array, best: Int64s) -> pa.ListArray:
        """The keywords of the best concept that a URL has, itself or by relatives, a list array of `MATCH`."""
        rows = np.flatnonzero(best >= 0)
        intents = self.text.widened(self.text.lattice.intents)[best[rows]]
        intents.sort_indices()
        keyword = intents.indices.astype(np.int64)
        owner, place = ragged(
            self._pairs.indptr.astype(np.int64)[keyword], np.diff(self._pairs.indptr).astype(np.int64)[keyword]
        )
        row = rows[entry_rows(intents.indptr)][owner]
        held = np.sort(entry_rows(values.indptr) * values.shape[1] + values.indices)
        found = members(held, row * values.shape[1] + self._pairs.indices[place])
        row, owner, place = row[found], owner[found], place[found]
        words = self.known.vocabulary.words
        base, current = (words.take(pa.array(numbers)) for numbers in (keyword[owner], self._pairs.indices[place]))
        ics = pa.array(np.round(self._pairs.data[place], SCORE_DECIMALS))
        pairs = pa.StructArray.from_arrays([base, current, ics], fields=list(MATCH))
        return list_column(pairs, row_pointers(row, len(best)))

    def concept_ids(self, best: Int64s) -> pa.Array:
        """Ids of concepts by number, null for -1, int64[n]."""
        return pa.array(np.append(self.text.lattice.ids, 0)[best], mask=best < 0)

    def concept_extents(self) -> pa.Table:
        """The objects of each base concept of the texts, a table of `EXTENT_SCHEMA`."""
        lattice = self.text.lattice
        concept = entry_rows(lattice.extents.indptr)
        words = self.known.vocabulary.words.take(pa.array(self.text.used[lattice.intents.indices]))
        intents = list_column(words, lattice.intents.indptr.astype(np.int64))
        columns = [self.objects[lattice.extents.indices], lattice.ids[concept], intents.take(pa.array(concept))]
        return pa.table(columns, schema=EXTENT_SCHEMA)


def related_words(relatives: pa.Table | None, words: int) -> sparse.csr_array:
    """Similarity of words to their relatives, CSR float64[words, words], of a table of `RELATIVE_SCHEMA`."""
    if relatives is None:
        return sparse.csr_array((words, words))
    ends = int64s(relatives["source"]), int64s(relatives["target"])
    return sparse.csr_array((relatives["ics"].to_numpy(), ends), shape=(words, words))


def _mean(values: Float64s) -> float:
    return float(values.mean()) if len(values) else 0.0


def scores(known: Descriptions, lattice: TopicLattice) -> pa.Table:
    """Scores of the current URLs of a part, a table of `TOPIC_SCHEMA`."""
    current = known.select(known.current)
    values = word_vectors(counted_words(current), lattice.known.idf)
    seen = current.described
    text, mentions, everywhere = (
        np.asarray(values @ weights, dtype=np.float64)
        for weights in (lattice.text.centre, lattice.mentions.centre, lattice.everywhere)
    )
    total = text + np.where(seen, 0.0, MENTION_WEIGHT * (mentions - CONTRAST * everywhere))
    typical = np.array(lattice.typical)[seen.astype(np.int64)]
    share = np.divide(total, typical, out=np.zeros(len(total)), where=typical > 0)
    score = np.where(typical > 0, expit(share - 1.0), 0.0)

    each = np.divide(1.0, typical, out=np.zeros(len(total)), where=typical > 0)
    words = lattice.known.vocabulary.words
    names = [best_words(weighted(values, weights), words) for weights in (lattice.text.centre, lattice.mentions.centre)]
    terms = [
        Term("text", text, each, names[0]),
        Term("told", mentions, MENTION_WEIGHT * each, names[1], ~seen),
        Term("everywhere", everywhere, -MENTION_WEIGHT * CONTRAST * each, shown=~seen),
    ]
    best = lattice.best_concepts(values)
    columns = [
        pa.array(current.url),
        pa.array(np.round(score, SCORE_DECIMALS)),
        reason_lists(terms, len(total)),
        pa.array(np.round(total, SCORE_DECIMALS)),
        lattice.concept_ids(best),
        lattice.matches(values, best),
    ]
    return pa.table(columns, schema=TOPIC_SCHEMA)


def _base_objects(facts: Facts) -> tuple[Collection, pa.Table, pa.Table]:
    """The collection of a crawl in memory, and its seeds and nearest pages that are base objects (`OBJECT_SCHEMA`)."""
    known = facts.descriptions
    query = facts.words.take(pa.array(facts.query)).to_pylist()
    collection = Collection.of_parts(Vocabulary.of_facts(facts), query, part_size(known))
    seeds = first_seeds(seed_objects(known))
    near = nearest_pages(near_objects(known, TopicLattice(collection, seeds)), collection.nearest)
    return collection, seeds, near


def nearest_of_facts(facts: Facts) -> Int64s:
    """Ids of the harvested pages that join the seeds in a crawl in memory, ascending."""
    return int64s(_base_objects(facts)[2]["url_id"])


def lattice_of_facts(facts: Facts, settings: TopicSettings | None = None) -> TopicLattice:
    """The base lattices of a crawl in memory.

    Raises:
        ValueError: relations are wanted, but sessions were not counted.
    """
    known = facts.descriptions
    collection, seeds, near = _base_objects(facts)
    mentions = mention_sums(known, collection)
    lattice = TopicLattice(collection, seeds, near, mentions)
    if settings is None or settings.relations is None:
        return lattice
    if facts.asked is None:
        raise ValueError("found no sessions by word, expected facts with them to learn relations")
    asked = topic_relations.asked_words(known, facts.asked)
    related = topic_part_of.learned_relatives(asked, facts.links, lattice.keywords, known.url, settings.relations)
    return TopicLattice(collection, seeds, near, mentions, related)


def settings_of(options: Mapping[str, Any]) -> TopicSettings:
    """The settings from a round's option `topic_relations`."""
    which = options["topic_relations"]
    return TopicSettings(which if which in topic_relations.WANTED else None)


def rank(facts: Facts, settings: TopicSettings | None = None) -> pa.Table:
    """Scores of the current URLs of a crawl in memory, a table of `TOPIC_SCHEMA`."""
    return scores(facts.descriptions, lattice_of_facts(facts, settings))
