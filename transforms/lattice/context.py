"""Formal contexts and batches of formal concepts as flat arrays, with the derivation operators (P13 Def. 1-5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.columnar.arrays import Int32s, Int64s, pointers, ragged

_Number = TypeVar("_Number", np.int64, np.int32)


@dataclass(frozen=True, eq=False)
class FormalContext:
    """A binary relation between objects 0..n-1 and attributes 0..m-1; the rows are the objects' attribute sets.

    Attributes:
        indptr: where each object's attributes begin and end, int64[n + 1].
        indices: attribute numbers of all objects one after another, int32[indptr[-1]]; strictly ascending within
            an object.
        attribute_count: m; attributes without an object are allowed.

    Raises:
        ValueError: the arrays do not describe such a relation.
    """

    indptr: Int64s
    indices: Int32s
    attribute_count: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "indptr", _frozen(self.indptr, np.int64, "indptr"))
        object.__setattr__(self, "indices", _frozen(self.indices, np.int32, "indices"))
        _check_indptr(self.indptr, len(self.indices), "indptr")
        if len(self.indices):
            low, high = int(self.indices.min()), int(self.indices.max())
            if low < 0 or high >= self.attribute_count:
                raise ValueError(
                    f"attribute numbers from {low} to {high} found, expected 0 to {self.attribute_count - 1}"
                )
            rising = self.indices[1:] > self.indices[:-1]
            boundaries = self.indptr[1:-1]
            rising[boundaries[(boundaries > 0) & (boundaries < len(self.indices))] - 1] = True
            if not rising.all():
                position = int(np.argmin(rising))
                row = int(np.searchsorted(self.indptr, position, side="right")) - 1
                raise ValueError(
                    f"object {row} holds attribute {int(self.indices[position + 1])} after "
                    f"{int(self.indices[position])}, expected strictly ascending attribute numbers"
                )

    @classmethod
    def from_rows(cls, rows: Iterable[Iterable[int]], attribute_count: int | None = None) -> FormalContext:
        """A context from each object's attributes in any order, repetitions allowed.

        Args:
            rows: attribute numbers of object 0, 1, ...
            attribute_count: number of attributes; one more than the largest number found when not given.
        """
        sets = [sorted(set(row)) for row in rows]
        indices = np.array([attribute for row in sets for attribute in row], dtype=np.int32)
        if attribute_count is None:
            attribute_count = int(indices.max()) + 1 if len(indices) else 0
        return cls(pointers(np.array([len(row) for row in sets], dtype=np.int64)), indices, attribute_count)

    @property
    def object_count(self) -> int:
        """Number of objects, n."""
        return len(self.indptr) - 1

    def row(self, number: int) -> Int32s:
        """Attribute numbers of one object, ascending."""
        return self.indices[self.indptr[number] : self.indptr[number + 1]]

    def supports(self) -> Int64s:
        """Number of objects of each attribute, int64[m]."""
        return np.bincount(self.indices, minlength=self.attribute_count).astype(np.int64)

    def select_rows(self, object_numbers: npt.ArrayLike) -> FormalContext:
        """The context of some objects, in the order given and numbered anew; all attributes stay."""
        numbers = np.asarray(object_numbers, dtype=np.int64)
        lengths = np.diff(self.indptr)[numbers]
        _, positions = ragged(self.indptr[numbers], lengths)
        return FormalContext(pointers(lengths), self.indices[positions], self.attribute_count)

    def common_attributes(self, object_numbers: npt.ArrayLike) -> Int32s:
        """Derivation X' of a set of objects: the attributes that all of them hold, ascending; all when X is empty."""
        chosen = self.select_rows(np.unique(np.asarray(object_numbers, dtype=np.int64)))
        return np.flatnonzero(chosen.supports() == chosen.object_count).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Concepts:
    """A batch of formal concepts: pairs (X, Y) of object and attribute sets with X' = Y and Y' = X.

    Attributes:
        extent_indptr: where each concept's objects begin and end, int64[n + 1].
        extent_indices: object numbers, int32[extent_indptr[-1]], ascending within a concept.
        intent_indptr: where each concept's attributes begin and end, int64[n + 1].
        intent_indices: attribute numbers, int32[intent_indptr[-1]], ascending within a concept.

    Raises:
        ValueError: the arrays do not describe the same number of concepts.
    """

    extent_indptr: Int64s
    extent_indices: Int32s
    intent_indptr: Int64s
    intent_indices: Int32s

    def __post_init__(self) -> None:
        for side in ("extent", "intent"):
            object.__setattr__(self, f"{side}_indptr", _frozen(getattr(self, f"{side}_indptr"), np.int64, side))
            object.__setattr__(self, f"{side}_indices", _frozen(getattr(self, f"{side}_indices"), np.int32, side))
            _check_indptr(getattr(self, f"{side}_indptr"), len(getattr(self, f"{side}_indices")), f"{side}_indptr")
        if len(self.extent_indptr) != len(self.intent_indptr):
            raise ValueError(
                f"{len(self.extent_indptr) - 1} extents and {len(self.intent_indptr) - 1} intents found, "
                "expected as many of the one as of the other"
            )

    @classmethod
    def of(cls, pairs: Sequence[tuple[Iterable[int], Iterable[int]]]) -> Concepts:
        """A batch from pairs (extent, intent) of numbers in any order."""
        extents = FormalContext.from_rows([extent for extent, _ in pairs])
        intents = FormalContext.from_rows([intent for _, intent in pairs])
        return cls(extents.indptr, extents.indices, intents.indptr, intents.indices)

    @classmethod
    def empty(cls) -> Concepts:
        """A batch without concepts."""
        return cls.of([])

    @classmethod
    def concatenate(cls, batches: Iterable[Concepts]) -> Concepts:
        """All batches' concepts one after another."""
        parts = list(batches)
        if len(parts) == 1:
            return parts[0]
        return cls(
            _stacked([part.extent_indptr for part in parts]),
            _joined([part.extent_indices for part in parts]),
            _stacked([part.intent_indptr for part in parts]),
            _joined([part.intent_indices for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.extent_indptr) - 1

    @property
    def support(self) -> Int64s:
        """Number of objects of each concept, int64[n]."""
        return np.diff(self.extent_indptr)

    def extent(self, number: int) -> Int32s:
        """Object numbers of one concept, ascending."""
        return self.extent_indices[self.extent_indptr[number] : self.extent_indptr[number + 1]]

    def intent(self, number: int) -> Int32s:
        """Attribute numbers of one concept, ascending."""
        return self.intent_indices[self.intent_indptr[number] : self.intent_indptr[number + 1]]

    def slice(self, start: int, stop: int) -> Concepts:
        """The concepts start..stop-1; the numbers are not copied."""
        extents, intents = self.extent_indptr[start : stop + 1], self.intent_indptr[start : stop + 1]
        return Concepts(
            extents - extents[0],
            self.extent_indices[extents[0] : extents[-1]],
            intents - intents[0],
            self.intent_indices[intents[0] : intents[-1]],
        )

    def select(self, numbers: npt.ArrayLike) -> Concepts:
        """Some of the concepts, in the order given."""
        chosen = np.asarray(numbers, dtype=np.int64)
        return Concepts(*self.extents(chosen), *self.intents(chosen))

    def extents(self, numbers: Int64s) -> tuple[Int64s, Int32s]:
        """CSR pointers and object numbers of some of the concepts, in the order given."""
        return _rows(self.extent_indptr, self.extent_indices, numbers)

    def intents(self, numbers: Int64s) -> tuple[Int64s, Int32s]:
        """CSR pointers and attribute numbers of some of the concepts, in the order given."""
        return _rows(self.intent_indptr, self.intent_indices, numbers)

    def sorted(self) -> Concepts:
        """The concepts in canonical order: intents compared lexicographically, a prefix before its extensions.

        The intents of a lattice are distinct, so the order does not depend on the order of enumeration.
        """
        # Big-endian bytes compare like the numbers they stand for.
        numbers = self.intent_indices.astype(">i4")
        buffers = [None, pa.py_buffer(self.intent_indptr * numbers.itemsize), pa.py_buffer(numbers)]
        keys = pa.Array.from_buffers(pa.large_binary(), len(self), buffers)
        return self.select(pc.array_sort_indices(keys).to_numpy().astype(np.int64))


def top_concept(context: FormalContext) -> Concepts:
    """The concept of all objects and the attributes that all of them hold, as a batch of one."""
    everything = np.arange(context.object_count, dtype=np.int32)
    intent = context.common_attributes(everything)
    return Concepts(
        np.array([0, len(everything)], dtype=np.int64),
        everything,
        np.array([0, len(intent)], dtype=np.int64),
        intent,
    )


def enumeration_yields_top(supports: Int64s, object_count: int) -> bool:
    """Whether the top concept is among the concepts with a non-empty intent.

    It is when some attribute is held by all objects; otherwise its intent is empty, `closed_sets` leaves it out and
    the caller adds `top_concept`.
    """
    return bool(object_count > 0 and (supports == object_count).any())


def _rows(indptr: Int64s, indices: Int32s, numbers: Int64s) -> tuple[Int64s, Int32s]:
    """CSR pointers and indices of some rows, in the order given."""
    starts = indptr[numbers]
    lengths = indptr[numbers + 1] - starts
    return pointers(lengths), indices[ragged(starts, lengths)[1]]


def _frozen(array: npt.NDArray[_Number], dtype: type[_Number], name: str) -> npt.NDArray[_Number]:
    """A read-only view of an array of the expected type."""
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
        found = f"{array.dtype}{list(array.shape)}" if isinstance(array, np.ndarray) else type(array).__name__
        raise ValueError(f"{name} is {found}, expected a one-dimensional {np.dtype(dtype)} array")
    view = array.view()
    view.flags.writeable = False
    return view


def _check_indptr(indptr: Int64s, total: int, name: str) -> None:
    if not len(indptr) or indptr[0] != 0 or indptr[-1] != total or (indptr[1:] < indptr[:-1]).any():
        found = f"{indptr[0]}..{indptr[-1]}" if len(indptr) else "nothing"
        raise ValueError(f"{name} of {len(indptr)} values runs {found}, expected an ascent from 0 to {total}")


def _stacked(parts: Sequence[Int64s]) -> Int64s:
    """CSR pointers of several CSR arrays put one after another."""
    return pointers(np.concatenate([np.zeros(0, dtype=np.int64), *(np.diff(part) for part in parts)]))


def _joined(parts: Sequence[Int32s]) -> Int32s:
    return np.concatenate([np.zeros(0, dtype=np.int32), *parts])
