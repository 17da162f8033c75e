"""The ontology ranker (Huang et al., "Semantic focused crawling for retrieving e-commerce information", EC).

A page's content score S_pc adds up the weights of the classes whose words stand on it (Eq. 2), W = sigma n^d (Eq. 1,
4); here it is divided by the largest weight and by the page's words, so that it lies in [0, 1]. sigma of a class is
learned from the harvested pages: sigma = (n_to Nc) / (n_o Nt), the lift of the class on pages that hit the topic
(Eq. 3 is printed upside down, which `as-printed` gives). A harvested page hits the topic if its S_pc with the
ontology's own weights is at least the mean of all and above 0.

The link score S_pl (Eq. 6) is PR(u) plus the mean of lambda(d) PRS(d) over the pages d that link to u and whose PRS
is above `PRS_THRESHOLD`. PRS(d) is the cosine of the page's words and the topic's, which are the seeds' words by tf
idf (Eq. 7; the lexicon's idf where no seed has words); PR(u) is the same of the words of u's anchors. lambda(d) =
(t+ + theta) / (t + theta) with t the harvested children of d and t+ those of them that hit the topic (Eq. 8 takes t
for another number; a share it is with this one). S_pl / 2 lies in [0, 1], and S_p = r1 S_pc + r2 S_pl / 2 (Eq. 9)
with r1 = r2 = 1/2, divided by r1 + r2 if that is above 1. EC's other way, the sum of the weighted logarithms, orders
URLs as S_pc^r1 (S_pl / 2)^r2 does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from scipy import sparse

from semrank.schemas.tables import CLASSES
from semrank.transforms.columnar.arrays import Float64s, Int64s, int64s, sum_rows
from semrank.transforms.context.descriptions import Descriptions
from semrank.transforms.context.words import DEFAULT_LANGUAGE
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.ranking.ontology_formats import shipped_ontology
from semrank.transforms.ranking.ontology_model import DISCOUNT, LARGEST_SIGMA, Ontology
from semrank.transforms.ranking.reasons import Term, best_words, reason_lists
from semrank.transforms.ranking.scores import SCORE_DECIMALS, SCORED_SCHEMA
from semrank.transforms.ranking.topic_words import Topic, page_words, row_sums

PRS_THRESHOLD = 0.1
"""Linking pages count if their relevance is above this."""

THETA = 0.5
"""theta of EC Eq. 8."""

CONTENT_WEIGHT, LINK_WEIGHT = 0.5, 0.5
"""r1 and r2 of EC Eq. 9."""

SUM, LOGARITHMS = "sum", "logarithms"
"""How the two scores are combined: as their weighted sum, or as the sum of their weighted logarithms (EC 3.4)."""

UNITS = 2.0**30
"""Steps in 1 of what is added over pages, so that sums do not depend on their order."""

SUM_SCHEMA = pa.schema([pa.field("name", pa.string()), pa.field("number", pa.int64()), pa.field("value", pa.int64())])
"""A part's summand of the entry `number` of a vector."""

_BY_PLACE = ("children", "hit children", "prs")

Sums: TypeAlias = Mapping[str, tuple[Int64s, Int64s]]


@dataclass(frozen=True)
class OntologySettings:
    """How the ontology's weights are used.

    Attributes:
        sigma: `lift`, or `as-printed` for the other way up of EC Eq. 3.
        discount: n of EC Eq. 1, in (0, 1].
        theta: theta of EC Eq. 8, above 0.
        content_weight: r1 of EC Eq. 9, at least 0.
        link_weight: r2 of EC Eq. 9, at least 0.
        combine: `SUM`, or `LOGARITHMS` for the product of the scores to the powers r1 and r2.
    """

    sigma: Literal["lift", "as-printed"] = "lift"
    discount: float = DISCOUNT
    theta: float = THETA
    content_weight: float = CONTENT_WEIGHT
    link_weight: float = LINK_WEIGHT
    combine: str = SUM

    @property
    def _divisor(self) -> float:
        """What the weighted sum is divided by, so that it is at most 1."""
        return max(1.0, self.content_weight + self.link_weight)

    def weights(self, weight: float, rows: int) -> Float64s | None:
        """The weight of a term of the score for each row; terms of a product have none."""
        return np.full(rows, weight / self._divisor) if self.combine == SUM else None

    def combined(self, content: Float64s, link: Float64s) -> Float64s:
        """S_p of content scores and link scores in [0, 1].

        Weighted logarithms are given as the product whose logarithm they are, so the score is 0 where one of the two is
        0 and has a weight.
        """
        if self.combine == SUM:
            return (self.content_weight * content + self.link_weight * link) / self._divisor
        return np.asarray(content**self.content_weight * link**self.link_weight, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Lexicon:
    """The ontology over a vocabulary of v words, and the topic's words.

    Attributes:
        classes: 1 where a word stands for a class, CSR float64[v, k].
        weights: W of each class before anything is learned, float64[k].
        labels: what the classes are called, string[k].
        topic: weight of each word of the topic, float64[v].
        words: the vocabulary, string[v].
    """

    classes: sparse.csr_array
    weights: Float64s
    labels: pa.Array
    topic: Float64s
    words: pa.Array

    @classmethod
    def of(cls, ontology: Ontology, topic: Topic, settings: OntologySettings, language: str) -> Lexicon:
        """From an ontology and the words of the seeds and the query."""
        table = ontology.word_table(language)
        words = topic.vocabulary.words
        number = pa.compute.index_in(table["word"], value_set=words)
        known = table.append_column("number", number).filter(pa.compute.is_valid(number))
        rows, columns = (int64s(known[name].cast(pa.int64())) for name in ("number", "class"))
        shape = (len(words), len(ontology.names))
        classes = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
        idf = np.log((topic.urls + 1) / (topic.vocabulary.documents + 0.5))
        weight = np.asarray(topic.counts * idf, dtype=np.float64)
        if not weight.any():
            weight[np.unique(rows)] = idf[np.unique(rows)]
        labels = pa.array([ontology.classes[name].label for name in ontology.names], pa.string())
        return cls(classes, ontology.weights(settings.discount), labels, weight, words)

    def frequencies(self, counts: sparse.csr_array) -> sparse.csr_array:
        """F of each class on each page (EC Def. 3), CSR float64[n, k]."""
        return sparse.csr_array(counts.astype(np.float64) @ self.classes)

    def content(self, counts: sparse.csr_array, weights: Float64s) -> Float64s:
        """S_pc (EC Eq. 2) a word and unit of weight, float64[n] in [0, 1]."""
        total = row_sums(counts)
        largest = float(weights.max(initial=0.0))
        if largest <= 0:
            return np.zeros(counts.shape[0])
        score = np.asarray(self.frequencies(counts) @ (weights / largest), dtype=np.float64)
        return np.asarray(np.clip(score / np.maximum(total, 1.0), 0.0, 1.0))

    def relevance(self, counts: sparse.csr_array) -> Float64s:
        """PRS (EC Eq. 7): the cosine with the topic's words, float64[n] in [0, 1]."""
        squares = sparse.csr_array((counts.data.astype(np.float64) ** 2, counts.indices, counts.indptr), counts.shape)
        length = np.sqrt(row_sums(squares)) * float(np.sqrt((self.topic * self.topic).sum()))
        product = np.asarray(counts.astype(np.float64) @ self.topic, dtype=np.float64)
        return np.asarray(np.clip(product / np.where(length > 0, length, 1.0), 0.0, 1.0))


def _harvested(rows: Descriptions) -> Descriptions:
    return rows.select(rows.harvested & rows.described)


def mean_sums(rows: Descriptions, lexicon: Lexicon) -> pa.Table:
    """Number of harvested pages of a part and sum of their S_pc, a table of `SUM_SCHEMA`."""
    pages = _harvested(rows)
    content = lexicon.content(page_words(pages), lexicon.weights)
    return _table({"pages": _single(len(pages)), "content": _single(int(np.rint(content * UNITS).sum()))})


def learning_sums(rows: Descriptions, lexicon: Lexicon, mean: float) -> pa.Table:
    """What the harvested pages of a part teach, a table of `SUM_SCHEMA`.

    Args:
        rows: a part of the known URLs.
        lexicon: the ontology.
        mean: mean S_pc of all harvested pages.
    """
    pages = _harvested(rows)
    counts = page_words(pages)
    content = np.rint(lexicon.content(counts, lexicon.weights) * UNITS) / UNITS
    hit = (content >= mean) & (content > 0)
    present = lexicon.frequencies(counts)
    present.data[:] = 1.0
    linkers = pages.linkers
    hits = np.repeat(hit, np.diff(linkers.indptr)).astype(np.int64)
    relevance = np.rint(lexicon.relevance(counts) * UNITS).astype(np.int64)
    return _table(
        {
            "Nc": _single(len(pages)),
            "Nt": _single(int(hit.sum())),
            "no": _summed(present, np.ones(present.nnz, dtype=np.int64)),
            "nto": _summed(present, np.repeat(hit, np.diff(present.indptr)).astype(np.int64)),
            "children": _summed(linkers, np.ones(linkers.nnz, dtype=np.int64)),
            "hit children": _summed(linkers, hits),
            "prs": (pages.place, relevance),
        }
    )


def _single(value: int) -> tuple[Int64s, Int64s]:
    return np.zeros(1, dtype=np.int64), np.array([value], dtype=np.int64)


def _summed(matrix: sparse.csr_array, values: Int64s) -> tuple[Int64s, Int64s]:
    """The columns of a matrix's entries, and the sum of the values of each column's entries."""
    columns, sums = sum_rows([matrix.indices.astype(np.int64)], values)
    return columns, sums


def _table(sums: Sums) -> pa.Table:
    owner = np.repeat(np.arange(len(sums)), [len(numbers) for numbers, _ in sums.values()])
    names = pa.array(list(sums), pa.string()).take(pa.array(owner))
    columns = [np.concatenate([pair[side] for pair in sums.values()]) for side in (0, 1)]
    return pa.table([names, *columns], schema=SUM_SCHEMA)


def added(sums: pa.Table) -> pa.Table:
    """Summands of one entry added up, a table of `SUM_SCHEMA`; exchange them by `number`."""
    return sums.group_by(["name", "number"]).aggregate([("value", "sum")]).rename_columns(SUM_SCHEMA.names)


def vector(sums: pa.Table | None, name: str, size: int) -> Int64s:
    """A vector from its summands, int64[size]."""
    values = np.zeros(size, dtype=np.int64)
    if sums is not None:
        rows = sums.filter(pa.compute.equal(sums["name"], name))
        np.add.at(values, int64s(rows["number"]), int64s(rows["value"]))
    return values


def mean_content(sums: pa.Table | None) -> float:
    """The mean S_pc of the harvested pages, 0 without any."""
    pages = int(vector(sums, "pages", 1)[0])
    return int(vector(sums, "content", 1)[0]) / UNITS / pages if pages else 0.0


@dataclass(frozen=True, eq=False)
class Learned:
    """What the harvest taught.

    Attributes:
        sigma: factor of each class's weight, float64[k]; 1 where no harvested page has the class or none hits, and, as
            printed, where none that has the class hits.
        pages: n_o of each class, int64[k].
        hits: n_to of each class, int64[k].
        linking: lambda PRS of each harvested page, 0 where its PRS is too low, float64[h].
    """

    sigma: Float64s
    pages: Int64s
    hits: Int64s
    linking: Float64s

    @classmethod
    def of_sums(cls, sums: pa.Table | None, classes: int, harvested: int, settings: OntologySettings) -> Learned:
        """From the summands of all parts (`learning_sums`)."""
        crawled, hit = (int(vector(sums, name, 1)[0]) for name in ("Nc", "Nt"))
        pages, hits = (vector(sums, name, classes) for name in ("no", "nto"))
        lift = hits * crawled / np.where(pages * hit > 0, pages * hit, 1)
        sigma = np.where(pages * hit > 0, lift, 1.0)
        if settings.sigma == "as-printed":
            sigma = np.where(sigma > 0, 1.0 / np.where(sigma > 0, sigma, 1.0), 1.0)
        children, hit_children, steps = (
            vector(sums, name, harvested) if harvested else np.zeros(0, dtype=np.int64) for name in _BY_PLACE
        )
        relevance = steps / UNITS
        linking = np.where(
            relevance > PRS_THRESHOLD, relevance * (hit_children + settings.theta) / (children + settings.theta), 0.0
        )
        return cls(np.asarray(sigma, dtype=np.float64), pages, hits, np.asarray(linking, dtype=np.float64))


def class_rows(ontology: Ontology, sums: pa.Table | None, settings: OntologySettings) -> pa.Table:
    """What was learned of the classes, a table of `CLASSES` in the order of their names."""
    names = ontology.names
    learned = Learned.of_sums(sums, len(names), 0, settings)
    weights = ontology.weights(settings.discount) * learned.sigma
    labels = [ontology.classes[name].label for name in names]
    columns = [names, labels, weights, learned.sigma, learned.pages, learned.hits]
    return pa.table(columns, schema=CLASSES.schema)


def with_learned(ontology: Ontology, classes: pa.Table) -> Ontology:
    """An ontology whose classes have the learned factors in addition to their own (EC Eq. 4)."""
    sigma = dict(zip(classes["name"].to_pylist(), classes["sigma"].to_pylist(), strict=True))
    known = {
        name: replace(old, sigma=min(old.sigma * sigma.get(name, 1.0), LARGEST_SIGMA))
        for name, old in ontology.classes.items()
    }
    return replace(ontology, classes=known)


def scores(rows: Descriptions, lexicon: Lexicon, learned: Learned, settings: OntologySettings) -> pa.Table:
    """S_p of the current URLs of a part, a table of `SCORED_SCHEMA`."""
    urls = rows.select(rows.current)
    counts = page_words(urls)
    weights = lexicon.weights * learned.sigma
    content = lexicon.content(counts, weights)
    anchors = lexicon.relevance(urls.anchor)
    relevant = sparse.csr_array(
        ((learned.linking[urls.linkers.indices] > 0).astype(np.float64), urls.linkers.indices, urls.linkers.indptr),
        shape=urls.linkers.shape,
    )
    parents = row_sums(relevant)
    linked = np.asarray(relevant @ learned.linking, dtype=np.float64) / np.maximum(parents, 1.0)
    score = settings.combined(content, (anchors + linked) / 2)
    found = lexicon.frequencies(counts)
    weighed = sparse.csr_array((found.data * weights[found.indices], found.indices, found.indptr), shape=found.shape)
    topical = sparse.csr_array(
        (urls.anchor.data * lexicon.topic[urls.anchor.indices], urls.anchor.indices, urls.anchor.indptr),
        shape=urls.anchor.shape,
    )
    pages = pa.compute.if_else(pa.array(parents == 1), "relevant linking page", "relevant linking pages")
    linkers = pa.compute.binary_join_element_wise(pa.array(parents.astype(np.int64)).cast(pa.string()), pages, " ")
    terms = [
        Term(
            "content",
            content,
            settings.weights(settings.content_weight, len(urls)),
            best_words(weighed, lexicon.labels),
        ),
        Term(
            "anchors",
            anchors,
            settings.weights(settings.link_weight / 2, len(urls)),
            best_words(topical, lexicon.words),
        ),
        Term("parents", linked, settings.weights(settings.link_weight / 2, len(urls)), linkers),
    ]
    columns = [urls.url, np.round(score, SCORE_DECIMALS), reason_lists(terms, len(urls))]
    return pa.table(columns, schema=SCORED_SCHEMA)


def learned_in_memory(
    facts: Facts, ontology: Ontology, settings: OntologySettings, language: str = DEFAULT_LANGUAGE
) -> tuple[Lexicon, Learned]:
    """The lexicon of a crawl in memory, and what its harvest taught."""
    rows = facts.descriptions
    lexicon = Lexicon.of(ontology, Topic.of_facts(facts), settings, language)
    mean = mean_content(mean_sums(rows, lexicon))
    sums = learning_sums(rows, lexicon, mean)
    return lexicon, Learned.of_sums(sums, len(lexicon.weights), rows.harvested_count, settings)


def rank(facts: Facts, ontology: Ontology | None = None, settings: OntologySettings | None = None) -> pa.Table:
    """Scores of the current URLs of a crawl in memory, a table of `SCORED_SCHEMA`.

    Args:
        facts: the facts of the crawl.
        ontology: the ontology; the shipped one for e-commerce if None.
        settings: how it is used.
    """
    if ontology is None:
        ontology = shipped_ontology("e-commerce")
    settings = settings or OntologySettings()
    lexicon, learned = learned_in_memory(facts, ontology, settings)
    return scores(facts.descriptions, lexicon, learned, settings)


def settings_of(options: Mapping[str, Any]) -> OntologySettings:
    """The settings from a round's options of the same names."""
    return OntologySettings(
        sigma="as-printed" if options["sigma"] == "as-printed" else "lift",
        discount=options["ontology_n"],
        theta=options["ontology_theta"],
        content_weight=options["ontology_r1"],
        link_weight=options["ontology_r2"],
        combine=options["ontology_combine"],
    )
