"""Part-Of pairs reduced to few pairs with the same paths.

The hierarchy asks of Part-Of which words can be reached from which, and how long the longest path is when circles are
one component each. So much less than all pairs will do: one circle through the words of each strongly connected
component, one pair for all edges from one component to another, and none where a longer path leads the same way. Such
paths are looked for through one component, the hub: the one with the most parents times children. In click logs most
words with parents and children are one component, so that little is left but a pair or two for each word.

Reduced pairs have the same paths, so pairs can be reduced in parts, in any order, and the results together again.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from semrank.transforms.columnar.arrays import Bools, Int32s, Int64s, pointers, row_pointers

Pairs: TypeAlias = tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]


def condense(pairs: Pairs, word_count: int) -> tuple[Int32s, Int64s, Int32s]:
    """Strongly connected components and the edges between them.

    Args:
        pairs: (wholes, parts), word numbers below `word_count`.
        word_count: number of words, n.

    Returns:
        (component of each word int32[n], numbered by their smallest words; CSR pointers int64[c + 1] into the parents;
        components with an edge into each component, distinct and ascending, int32[]).
    """
    if not word_count:
        return np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32)
    wholes, parts = pairs
    graph = sparse.coo_array(
        (np.ones(len(wholes), dtype=np.int8), (wholes, parts)), shape=(word_count, word_count)
    ).tocsr()
    count, labels = sparse.csgraph.connected_components(graph, directed=True, connection="strong")
    # scipy's numbers depend on its traversal; the smallest word of a component names it for good.
    first_word = np.full(count, word_count, dtype=np.int64)
    np.minimum.at(first_word, labels, np.arange(word_count, dtype=np.int64))
    rank = np.empty(count, dtype=np.int32)
    rank[np.argsort(first_word)] = np.arange(count, dtype=np.int32)
    component = rank[labels]
    parent, child = component[wholes], component[parts]
    between = parent != child
    keys = np.unique(child[between].astype(np.int64) * count + parent[between])
    lengths = np.bincount(keys // count, minlength=count).astype(np.int64)
    return component, pointers(lengths), (keys % count).astype(np.int32)


def reduced_pairs(pairs: Pairs) -> tuple[Int32s, Int32s]:
    """Few pairs with the same paths between words, and so the same components and layers.

    Args:
        pairs: (wholes, parts), word numbers.

    Returns:
        (wholes, parts): a pair for each word of a component of several words, and one for each edge between
        components that no path through the hub replaces.
    """
    word_count = 1 + max(int(side.max(initial=-1)) for side in pairs)
    component, parent_pointers, parents = condense(pairs, word_count)
    count = len(parent_pointers) - 1
    words = np.argsort(component, kind="stable").astype(np.int32)
    starts = row_pointers(component, count)
    first = words[starts[:-1]]
    following = np.roll(words, -1)
    following[starts[1:] - 1] = first
    circle = following != words
    children = np.repeat(np.arange(count, dtype=np.int32), np.diff(parent_pointers))
    kept = ~_replaced(children, parents, count)
    return (
        np.concatenate([words[circle], first[parents[kept]]]),
        np.concatenate([following[circle], first[children[kept]]]),
    )


def _replaced(children: Int32s, parents: Int32s, count: int) -> Bools:
    """Whether a path through the hub leads from the parent to the child of each edge between components, bool[e]."""
    degrees = [np.bincount(ends, minlength=count).astype(np.int64) for ends in (children, parents)]
    if not len(parents):
        return np.zeros(0, dtype=np.bool_)
    hub = int((degrees[0] * degrees[1]).argmax())
    above, below = _reached(hub, children, parents, count), _reached(hub, parents, children, count)
    return above[parents] & below[children]


def _reached(hub: int, sources: Int32s, targets: Int32s, count: int) -> Bools:
    """Which components, the hub left out, can be reached from it along edges, bool[count]."""
    graph = sparse.coo_array((np.ones(len(sources), dtype=np.int8), (sources, targets)), shape=(count, count)).tocsr()
    reached = np.zeros(count, dtype=np.bool_)
    reached[sparse.csgraph.breadth_first_order(graph, hub, return_predecessors=False)] = True
    reached[hub] = False
    return reached
