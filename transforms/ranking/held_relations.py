"""The relations as workers hold them to score concepts: without what the similarity of words does not ask for.

ISA is kept between a word of the base and one of the current context, since these are compared. Part-Of is reduced to
few pairs with the same paths (`similarity.reduction`), part by part and then all parts together. Supports are left out.

A query's only word may be Top, which depends on all of its ISA pairs: they are kept. Its Part-Of pairs drop out if it
is Top; they are kept apart, so that no path through it replaces others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semrank.transforms.columnar.arrays import MAIN, Bools, Int32s, fold_tables, int64s
from semrank.transforms.similarity.reduction import reduced_pairs

TOP = "top"

HELD_SCHEMA = pa.schema([pa.field("source", pa.int32()), pa.field("target", pa.int32())])
"""Numbers of two related words."""

PATH_SCHEMA = pa.schema([*HELD_SCHEMA, pa.field(TOP, pa.bool_())])
"""Part-Of pairs on their way, and whether one of the words may be Top."""

FOLDED_ROWS = 1 << 23
"""Part-Of pairs reduced at a time: 64 MiB."""


class HierarchyWords(NamedTuple):
    """Which words relations are held of.

    Attributes:
        in_base: whether each word occurs in the base context, bool[n].
        in_current: likewise in the current context.
        top: the query's only word, which may be Top, or -1.
    """

    in_base: Bools
    in_current: Bools
    top: int

    @staticmethod
    def of(vocabulary: pa.Table | None, *, query: Sequence[str]) -> HierarchyWords:
        """The words of a vocabulary in word order."""
        if vocabulary is None:
            nothing = np.zeros(0, dtype=np.bool_)
            return HierarchyWords(nothing, nothing, -1)
        base, current = (int64s(vocabulary[name]) > 0 for name in ("base_support", "current_support"))
        return HierarchyWords(base, current, only_word(vocabulary, query))

    def may_be_top(self, pairs: pa.Table) -> Bools:
        """Whether one of the words of each pair may be Top."""
        return np.asarray((int64s(pairs["source"]) == self.top) | (int64s(pairs["target"]) == self.top))


def only_word(vocabulary: pa.Table, query: Sequence[str]) -> int:
    """Number of the query's only word, -1 if the query has several or the word is no keyword."""
    return int(pc.index(vocabulary["word"], query[0]).as_py()) if len(query) == 1 else -1


def held_isa(isa: pa.Table, words: HierarchyWords) -> Iterator[tuple[str, pa.Table]]:
    """(tag, `HELD_SCHEMA`) of ISA pairs: `main` those that scoring asks for, `top` those that decide on Top."""
    source, target = int64s(isa["source"]), int64s(isa["target"])
    compared = (words.in_base[source] & words.in_current[target]) | (words.in_base[target] & words.in_current[source])
    top = words.may_be_top(isa)
    for tag, chosen in ((MAIN, compared | top), (TOP, top)):
        yield tag, isa.select(HELD_SCHEMA.names).filter(pa.array(chosen)).cast(HELD_SCHEMA)


def paths(part_of: pa.Table, words: HierarchyWords) -> pa.Table:
    """Part-Of pairs to be reduced, a table of `PATH_SCHEMA`."""
    pairs = part_of.select(HELD_SCHEMA.names).cast(HELD_SCHEMA)
    return pairs.append_column(PATH_SCHEMA.field(TOP), pa.array(words.may_be_top(pairs)))


def reduced_paths(pairs: pa.Table) -> pa.Table:
    """Few pairs with the same paths, whether or not a word is Top; a table of `PATH_SCHEMA`."""
    others = pairs.filter(pc.invert(pairs[TOP]))
    wholes, parts = reduced_pairs((_int32s(others["source"]), _int32s(others["target"])))
    reduced = pa.table([wholes, parts, np.zeros(len(wholes), dtype=np.bool_)], schema=PATH_SCHEMA)
    return pa.concat_tables([reduced, pairs.filter(pairs[TOP])])


def joined_paths(part_of: Iterable[pa.Table]) -> pa.Table:
    """Pairs of parts that were reduced, reduced together; a table of `HELD_SCHEMA`."""
    return fold_tables(part_of, reduced_paths, PATH_SCHEMA, FOLDED_ROWS).select(HELD_SCHEMA.names)


def _int32s(column: pa.ChunkedArray) -> Int32s:
    return np.asarray(column.to_numpy(), dtype=np.int32)
