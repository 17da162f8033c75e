"""Naive Bayes against scikit-learn's on the same counts, however they are cut."""

from __future__ import annotations

import math
import random

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse
from sklearn.naive_bayes import MultinomialNB

from semrank.transforms.columnar.arrays import Int64s
from semrank.transforms.ranking.naive_bayes import (
    NaiveBayes,
    NaiveBayesSettings,
    added_counts,
    class_counts,
    posteriors,
)


@st.composite
def labelled_counts(draw: st.DrawFn) -> tuple[Int64s, Int64s, Int64s]:
    """Occurrences in pages with a class, some in none, and in pages to judge; long pages among them."""
    words = draw(st.integers(1, 6))
    counts = st.integers(0, 5) | st.integers(0, 5000)
    seen, asked = (draw(arrays.arrays(np.int64, (draw(st.integers(1, 8)), words), elements=counts)) for _ in range(2))
    classes = draw(arrays.arrays(np.int64, len(seen), elements=st.integers(-1, 3)))
    return seen, classes, asked


def learned(
    seen: Int64s, classes: Int64s, settings: NaiveBayesSettings, *, parts: int, order: random.Random
) -> NaiveBayes:
    rows = order.sample(range(len(seen)), len(seen))
    tables = [
        class_counts(sparse.csr_array(seen[rows[part::parts]]), classes[rows[part::parts]], 4) for part in range(parts)
    ]
    counts = added_counts(pa.concat_tables(order.sample(tables, parts)))
    return NaiveBayes.of_counts(counts, classes=4, words=seen.shape[1], settings=settings)


@given(
    data=labelled_counts(),
    smoothing=st.floats(0.01, 5),
    parts=st.sampled_from([1, 2, 7]),
    order=st.randoms(use_true_random=False),
)
def test_posteriors_equal_scikit_learn(
    data: tuple[Int64s, Int64s, Int64s], smoothing: float, parts: int, order: random.Random
) -> None:
    seen, classes, asked = data
    model = learned(seen, classes, NaiveBayesSettings(smoothing, math.inf), parts=parts, order=order)
    told = (classes >= 0) & (seen.sum(axis=1) > 0)
    posterior = posteriors(model.log_likelihoods(sparse.csr_array(asked)))
    present = np.unique(classes[told])
    assert np.flatnonzero(model.learned).tolist() == present.tolist()
    absent = np.setdiff1d(np.arange(4), present)
    assert not posterior[:, absent].any()
    if not len(present):
        return
    peer = MultinomialNB(alpha=smoothing, fit_prior=False).fit(seen[told], classes[told])
    np.testing.assert_allclose(model.log_words[:, present].T, peer.feature_log_prob_, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(posterior[:, present], peer.predict_proba(asked), rtol=1e-6, atol=1e-9)


@given(data=labelled_counts(), most=st.floats(0.5, 100), order=st.randoms(use_true_random=False))
def test_long_pages_are_scaled_down(data: tuple[Int64s, Int64s, Int64s], most: float, order: random.Random) -> None:
    """As if each word had occurred in proportion, `most` words in all; scikit-learn takes fractions of occurrences."""
    seen, classes, asked = data
    told = (classes >= 0) & (seen.sum(axis=1) > 0)
    if not told.any():
        return
    model = learned(seen, classes, NaiveBayesSettings(1.0, most), parts=1, order=order)
    posterior = posteriors(model.log_likelihoods(sparse.csr_array(asked)))
    lengths = asked.sum(axis=1, keepdims=True)
    scaled = np.where(lengths > most, asked * most / np.maximum(lengths, 1), asked)
    peer = MultinomialNB(alpha=1.0, fit_prior=False).fit(seen[told], classes[told])
    np.testing.assert_allclose(posterior[:, peer.classes_], peer.predict_proba(scaled), rtol=1e-9, atol=1e-12)


def test_nothing_learned() -> None:
    model = NaiveBayes.of_counts(None, classes=3, words=2, settings=NaiveBayesSettings())
    posterior = posteriors(model.log_likelihoods(sparse.csr_array(np.array([[1, 0], [0, 0]]))))
    assert posterior.tolist() == [[0.0, 0.0, 0.0]] * 2


def test_no_words_at_all() -> None:
    model = NaiveBayes.of_counts(None, classes=2, words=0, settings=NaiveBayesSettings())
    assert posteriors(model.log_likelihoods(sparse.csr_array((3, 0), dtype=np.int64))).tolist() == [[0.0, 0.0]] * 3


def test_posteriors_of_very_small_likelihoods() -> None:
    log_joint = np.array([[-1e6, -1e6 - math.log(3), -np.inf], [-1e6, -np.inf, -2e6]])
    np.testing.assert_allclose(posteriors(log_joint), np.array([[0.75, 0.25, 0.0], [1.0, 0.0, 0.0]]), rtol=1e-9)


def test_evidence_by_hand() -> None:
    """P(t | 0) = 3/4, 1/4 and P(t | 1) = 1/4, 3/4: two of the first word speak for class 0 with 2 ln 3."""
    counts = class_counts(sparse.csr_array(np.array([[2, 0], [0, 2]])), np.array([0, 1]), 3)
    model = NaiveBayes.of_counts(counts, classes=3, words=2, settings=NaiveBayesSettings())
    pages = sparse.csr_array(np.array([[2, 1], [2, 1], [2, 1]]))
    evidence = model.evidence(pages, np.array([0, 1, 2])).toarray()
    gain = math.log(3)
    expected = np.array([[2 * gain, -gain], [-2 * gain, gain], [0.0, 0.0]])
    np.testing.assert_allclose(evidence, expected, atol=1e-12)
