"""Vectors of pages: the weights of their words, with rows of length 1."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from semrank.transforms.columnar.arrays import Float64s, Int64s, entry_rows

LEAD_WEIGHT = 3
"""What an occurrence among the first words counts beside itself."""

GRADE_BITS = 40
"""Binary places of the products that pages are sorted by: below lies rounding, which must not break ties."""


def word_vectors(counts: sparse.csr_array, idf: Float64s) -> sparse.csr_array:
    """(1 + ln n) idf of each word with n > 0 occurrences, rows of length 1, CSR float64[n, v]."""
    counts.sort_indices()
    # Most counts are small and repeat often: their logarithms are looked up.
    logarithms = 1.0 + np.log(np.maximum(np.arange(int(counts.data.max(initial=0)) + 1), 1))
    return unit_rows(counts, logarithms[counts.data] * idf[counts.indices])


def with_data(matrix: sparse.csr_array, data: Float64s | Int64s) -> sparse.csr_array:
    """A matrix with other values at the same places."""
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def weighted(matrix: sparse.csr_array, weights: Float64s) -> sparse.csr_array:
    """Parts of columns in a product with a vector, CSR float64[n, v]."""
    return with_data(matrix, matrix.data * weights[matrix.indices])


def row_sums(matrix: sparse.csr_array, data: Float64s) -> Float64s:
    """Sums of rows, added from left to right, float64[n]."""
    rows = entry_rows(matrix.indptr)
    return np.asarray(np.bincount(rows, weights=data, minlength=matrix.shape[0]), dtype=np.float64)


def divided(matrix: sparse.csr_array, data: Float64s, squares: Float64s) -> sparse.csr_array:
    """Rows divided by the roots of some numbers, where these are not 0."""
    length = np.sqrt(squares)
    length[length == 0] = 1.0
    return with_data(matrix, data / np.repeat(length, np.diff(matrix.indptr)))


def unit_rows(matrix: sparse.csr_array, data: Float64s) -> sparse.csr_array:
    """Rows with other values, divided by their lengths."""
    return divided(matrix, data, row_sums(matrix, data * data))


def unit(vector: npt.NDArray[np.floating]) -> Float64s:
    """A vector divided by its length, if that is not 0."""
    # NumPy adds by halves, whatever the number of threads.
    length = float(np.sqrt((vector * vector).sum()))
    return np.asarray(vector / length if length > 0 else vector, dtype=np.float64)
