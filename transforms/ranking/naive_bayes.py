"""Multinomial naive Bayes over words, one class a layer and one for other pages, with Laplace smoothing.

    log P(d | c) = sum over words t of tf(t, d) log P(t | c),   P(t | c) = (n(t, c) + s) / (n(c) + s v)

with n(t, c) the occurrences of t in the pages of class c, n(c) their sum, v words and s the smoothing. All classes
that have words are equally likely beforehand: their sizes depend on what was fetched, not on where a URL lies.

Words of a text are anything but independent, so posteriors of whole texts are 0 or 1, and pages could not be ordered
by them. So log P(d | c) of a page with more than `most_words` words is scaled down to that number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from scipy import sparse

from semrank.transforms.columnar.arrays import Bools, Float64s, Int64s, int64s, sum_by_key
from semrank.transforms.ranking.topic_words import row_sums

CLASS_COUNT_SCHEMA = pa.schema(
    [pa.field("word", pa.int64()), pa.field("class", pa.int64()), pa.field("count", pa.int64())]
)
"""How often a word, by its number, occurs in the pages of a class."""


@dataclass(frozen=True)
class NaiveBayesSettings:
    """How word models are learned and asked.

    Attributes:
        smoothing: occurrences that each word has in each class beforehand; 1 is Laplace's.
        most_words: words of a page that count at most; infinity for plain naive Bayes.
    """

    smoothing: float = 1.0
    most_words: float = 20.0


def class_counts(words: sparse.csr_array, classes: Int64s, count: int) -> pa.Table:
    """Words of the classes in a part of the pages, a table of `CLASS_COUNT_SCHEMA`; parts are added by `added_counts`.

    Args:
        words: occurrences of words, int64[n, v].
        classes: class of each page, int64[n], negative for pages to leave out.
        count: number of classes.
    """
    rows = np.flatnonzero(classes >= 0)
    chosen = sparse.csr_array(
        (np.ones(len(rows), dtype=np.int64), (classes[rows], rows)), shape=(count, words.shape[0])
    )
    summed = sparse.coo_array(chosen @ words)
    columns = [values.astype(np.int64) for values in (summed.col, summed.row, summed.data)]
    return pa.table(columns, schema=CLASS_COUNT_SCHEMA)


def added_counts(counts: pa.Table) -> pa.Table:
    """Word counts of several parts added up, a table of `CLASS_COUNT_SCHEMA`."""
    return sum_by_key(counts, "count")


def query_counts(query: Int64s) -> pa.Table:
    """The query's words, each once, as words of class 0, the targets' (`CLASS_COUNT_SCHEMA`)."""
    return pa.table(
        [query, np.zeros(len(query), dtype=np.int64), np.ones(len(query), dtype=np.int64)], schema=CLASS_COUNT_SCHEMA
    )


@dataclass(frozen=True, eq=False)
class NaiveBayes:
    """The word models of k classes over v words.

    Attributes:
        log_words: log P(t | c), 0 for classes without words, float64[v, k].
        learned: whether a class has words; others are impossible, bool[k].
        most_words: see `NaiveBayesSettings`.
    """

    log_words: Float64s
    learned: Bools
    most_words: float

    @classmethod
    def of_counts(
        cls, counts: pa.Table | None, *, classes: int, words: int, settings: NaiveBayesSettings
    ) -> NaiveBayes:
        """The models from word counts.

        Args:
            counts: rows of `CLASS_COUNT_SCHEMA`, in any order; equal words of a class are added.
            classes: k.
            words: v.
            settings: smoothing and `most_words`.
        """
        occurrences = np.zeros((words, classes), dtype=np.int64)
        if counts is not None:
            np.add.at(occurrences, (int64s(counts["word"]), int64s(counts["class"])), int64s(counts["count"]))
        totals = occurrences.sum(axis=0)
        learned = totals > 0
        log_words = np.log(occurrences + settings.smoothing) - np.log(totals + settings.smoothing * max(words, 1))
        return cls(np.where(learned, log_words, 0.0), learned, settings.most_words)

    def log_likelihoods(self, words: sparse.csr_array) -> Float64s:
        """Logarithms of P(d | c), scaled for pages of many words, -inf for classes without words, float64[n, k].

        Args:
            words: occurrences of words, int64[n, v].
        """
        length = row_sums(words)
        scale = self.most_words / np.maximum(length, self.most_words) if math.isfinite(self.most_words) else 1.0
        sums = np.asarray(words.astype(np.float64) @ self.log_words)
        return np.where(self.learned, sums * np.broadcast_to(scale, len(length))[:, np.newaxis], -np.inf)

    def evidence(self, words: sparse.csr_array, classes: Int64s) -> sparse.csr_array:
        """How much each word speaks for a class: tf (log P(t | c) - mean over the other classes), CSR float64[n, v].

        Args:
            words: occurrences of words, int64[n, v].
            classes: a class for each page, int64[n]; nothing speaks for one that isn't learned.
        """
        row = np.repeat(classes, np.diff(words.indptr))
        own = self.log_words[words.indices, row]
        others = max(int(self.learned.sum()) - 1, 1)
        mean = (self.log_words[words.indices].sum(axis=1) - own) / others
        data = words.data * np.where(self.learned[row], own - mean, 0.0)
        return sparse.csr_array((data, words.indices, words.indptr), shape=words.shape)


def posteriors(log_joint: Float64s) -> Float64s:
    """P(c | d) from log P(c, d) up to a constant, float64[n, k]; zeros where all classes are impossible."""
    best = np.max(log_joint, axis=1, keepdims=True, initial=-np.inf)
    shares = np.exp(log_joint - np.where(np.isfinite(best), best, 0.0))
    total = shares.sum(axis=1, keepdims=True)
    return np.asarray(shares / np.where(total > 0, total, 1.0))
