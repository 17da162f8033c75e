"""Weighted ISA and Part-Of hierarchy and the information content similarity of words (P13 Def. 13 and 15).

Part-Of edges form a directed graph below Top. Its strongly connected components are condensed and share a layer, the
length of the longest path from Top. With p(n) = f(n) / sum of f, the weight of a word sums its longest path,

    w(n) = sum for k = 1..layer(n) of 1 / (k + alpha),

and the similarity of two words is

    ics(a, b) = 1                                               if a = b or ISA(a, b)
              = 2 log p(s) / (log p(a) w(a) + log p(b) w(b))    otherwise, clamped to [0, 1]

where s is the common ancestor-or-self with the largest information content -log p(s), or Top if there is none.

Similarities are rounded to the grid of 2^-40 (1e-12). Sums of them are then exact in float64 whatever their order, so
an optimal matching has one value, equal matchings compare equal, and results don't depend on the batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from semrank.transforms.columnar.arrays import (
    Bools,
    Float64s,
    Int32s,
    Int64s,
    group_starts,
    pointers,
    ragged,
    row_pointers,
)
from semrank.transforms.similarity.reduction import Pairs, condense

TopProbability: TypeAlias = str | float

ICS_UNITS = 2.0**40
"""Steps of the grid of similarities in 1: fine enough for results to 1e-12, coarse enough that the sum of 2^12
similarities is exact in float64."""

TOP = -1
"""Number of Top where a word number is expected."""

SLAB = 1024
"""Largest number of columns of an ics block, and of parents of a component, that are processed at a time."""

FEW = 8
"""Number of components of a layer, those with the most parents, whose remaining parents are processed one component
at a time."""

SHARED_CELLS = 1 << 21
"""Target size of the matrix of the rows' ancestors and a slab's columns: 16 MB of float64. With many ancestors slabs
get narrower, but not below an eighth, since the columns' ancestors are found once a slab."""

TILE_CELLS = 1 << 16
"""Values of a block computed at a time: two arrays of 2^16 float64 are 1 MB, which fits a core's cache."""


@dataclass(frozen=True, eq=False)
class WeightedHierarchy:
    """Hierarchy over the n words of both contexts; words and components are numbers from 0.

    Attributes:
        probability: p(n), float64[n]; 0 for a word without clicks or in neither context.
        information: -log p(n), float64[n]; 0 where the probability is 0.
        weight: w(n), float64[n].
        layer: number of edges of the longest path from Top, int32[n]; 0 only for a word that is Top itself.
        component: strongly connected component of each word, int32[n], numbered by their smallest words.
        component_layer: layer of each component, int32[c].
        component_information: largest information content in each component, float64[c]; -inf where no word has clicks.
        component_word: the smallest word with that information content; without one, the smallest word, int32[c].
        parent_pointers: CSR pointers int64[c + 1] into `parents`.
        parents: components with an edge to each component, ascending, int32[]; Top and its edges are left out.
        relatives: pairs of words that are equal or ISA-related, symmetric CSR bool[n, n].
        top_word: the word that is Top, or `TOP` where Top is virtual.
        top_information: -log p(Top).
        alpha: adjustment of the edge weights.
    """

    probability: Float64s
    information: Float64s
    weight: Float64s
    layer: Int32s
    component: Int32s
    component_layer: Int32s
    component_information: Float64s
    component_word: Int32s
    parent_pointers: Int64s
    parents: Int32s
    relatives: sparse.csr_array
    top_word: int
    top_information: float
    alpha: float

    def __len__(self) -> int:
        return len(self.probability)


def build_hierarchy(
    clicks: Int64s,
    in_base: Bools,
    in_current: Bools,
    part_of: Pairs,
    isa: Pairs,
    *,
    alpha: float = 0.2,
    top_word: int | None = None,
    top_probability: TopProbability = "max",
    smoothing: float = 0.0,
) -> WeightedHierarchy:
    """The weighted ISA and Part-Of hierarchy of two contexts' words (P13 Def. 13).

    Args:
        clicks: f(n), clicks made after submitting each of n words, int64[n].
        in_base: whether a word occurs in the base context, bool[n].
        in_current: whether a word occurs in the current context, bool[n].
        part_of: (whole, part) word numbers of the Part-Of pairs. As Def. 13 has it, an edge joins a word of the base
            context to one of the current context; other pairs, and pairs of a word with itself, are ignored.
        isa: word numbers of the ISA pairs, in one direction or both.
        alpha: adjustment of the edge weights 1 / (k + alpha), 0 < alpha <= 0.5.
        top_word: the query's only keyword. Without an ISA relative it is Top itself: edges into it are dropped, and
            its own probability is p(Top). Otherwise, and without a `top_word`, Top is virtual.
        top_probability: p(Top) of a virtual Top: the largest or the smallest p(n) > 0, or a number.
        smoothing: added to f of every word of the two contexts. Words whose f is still 0 are similar to themselves and
            their ISA relatives only, and are not common ancestors.

    Raises:
        ValueError: arrays differ in length, or a number is not the number of a word.
    """
    edges, relatives, top = _checked_words(in_base, in_current, part_of, isa, top_word, len(clicks))
    component, parent_pointers, parents = condense(edges, len(clicks))
    component_layer = _layers(parent_pointers, parents)
    if top != TOP:
        component_layer[component[top]] = 0
    layer = component_layer[component]
    probability = _probabilities(clicks, in_base | in_current, smoothing)
    information = np.zeros(len(clicks), dtype=np.float64)
    information[probability > 0] = -np.log(probability[probability > 0])
    component_information, component_word = _most_informative(component, information, probability, len(component_layer))
    return WeightedHierarchy(
        probability,
        information,
        _path_weights(layer, alpha),
        layer,
        component,
        component_layer,
        component_information,
        component_word,
        parent_pointers,
        parents,
        relatives,
        top,
        top_information=float(-np.log(_top_probability(probability, top, top_probability))),
        alpha=alpha,
    )


def _checked_words(
    in_base: Bools, in_current: Bools, part_of: Pairs, isa: Pairs, top_word: int | None, word_count: int
) -> tuple[Pairs, sparse.csr_array, int]:
    """The edges (wholes, parts) of the hierarchy, the relatives, and the word that is Top, or `TOP`."""
    for name, array in (("in_base", in_base), ("in_current", in_current)):
        if len(array) != word_count:
            raise ValueError(f"{name}: found {len(array)} values, expected one for each of {word_count} words")
    wholes, parts = _word_pairs("part_of", part_of, word_count)
    relatives = _relatives(*_word_pairs("isa", isa, word_count), word_count)
    if top_word is not None and not 0 <= top_word < word_count:
        raise ValueError(f"top_word: found {top_word}, expected a word number below {word_count}")
    top = TOP if top_word is None or relatives.indptr[top_word + 1] - relatives.indptr[top_word] > 1 else top_word
    # Top has no parent, and each word is below it without an edge.
    real = in_base[wholes] & in_current[parts] & (wholes != parts) & (wholes != top) & (parts != top)
    return (wholes[real], parts[real]), relatives, top


def _word_pairs(name: str, pairs: Pairs, word_count: int) -> Pairs:
    first, second = pairs
    if len(first) != len(second):
        raise ValueError(f"{name}: found {len(first)} and {len(second)} words, expected pairs")
    for side in (first, second):
        if len(side) and (side.min() < 0 or side.max() >= word_count):
            raise ValueError(
                f"{name}: found word numbers {side.min()}..{side.max()}, expected numbers from 0 to {word_count - 1}"
            )
    return first, second


def _relatives(left: npt.NDArray[np.integer], right: npt.NDArray[np.integer], word_count: int) -> sparse.csr_array:
    """Identity and ISA, symmetric, as bool[n, n] with ascending columns."""
    own = np.arange(word_count, dtype=np.int32)
    rows, columns = np.concatenate([own, left, right]), np.concatenate([own, right, left])
    # The sum of booleans is their disjunction, so a repeated pair is one entry.
    return sparse.coo_array(
        (np.ones(len(rows), dtype=np.bool_), (rows, columns)), shape=(word_count, word_count)
    ).tocsr()


def _layers(parent_pointers: Int64s, parents: Int32s) -> Int32s:
    """Layer of each component, in topological order: a component is processed right after the last of its parents."""
    count = len(parent_pointers) - 1
    waiting = np.diff(parent_pointers)
    child = np.repeat(np.arange(count, dtype=np.int64), waiting)
    order = np.argsort(parents, kind="stable")
    children, degrees = child[order], np.bincount(parents, minlength=count).astype(np.int64)
    starts = pointers(degrees)
    layers = np.zeros(count, dtype=np.int32)
    ready = np.flatnonzero(waiting == 0)
    layer = 1
    while len(ready):
        layers[ready] = layer
        _, positions = ragged(starts[ready], degrees[ready])
        reached, edges = np.unique(children[positions], return_counts=True)
        waiting[reached] -= edges
        ready = reached[waiting[reached] == 0]
        layer += 1
    return layers


def _probabilities(clicks: Int64s, in_contexts: Bools, smoothing: float) -> Float64s:
    counts = np.where(in_contexts, clicks + smoothing, 0.0).astype(np.float64)
    total = counts.sum()
    return counts / total if total > 0 else counts


def _path_weights(layer: Int32s, alpha: float) -> Float64s:
    """w(n) of words by their layers."""
    steps = np.arange(1, int(layer.max(initial=0)) + 1, dtype=np.float64)
    weights = np.concatenate([[0.0], np.cumsum(1.0 / (steps + alpha))])
    return np.asarray(weights[layer])


def _top_probability(probability: Float64s, top: int, top_probability: TopProbability) -> float:
    if top != TOP and probability[top] > 0:
        return float(probability[top])
    if not isinstance(top_probability, str):
        return float(top_probability)
    positive = probability[probability > 0]
    if not len(positive):
        return 1.0  # words are similar by ISA only, so p(Top) is not used
    return float(positive.max() if top_probability == "max" else positive.min())


def _most_informative(
    component: Int32s, information: Float64s, probability: Float64s, count: int
) -> tuple[Float64s, Int32s]:
    known = np.where(probability > 0, information, -np.inf)
    words = np.lexsort((np.arange(len(component)), -known, component)).astype(np.int32)
    first = row_pointers(component, count)[:-1]
    best = words[first]
    return known[best], best


def common_ancestor(hierarchy: WeightedHierarchy, a: int, b: int) -> int:
    """The word s of Def. 15: the common ancestor-or-self of two words with the largest information content.

    Returns:
        A word number, the smallest one on a tie, or `TOP` if the words share no other ancestor.
    """
    shared = _ancestors(hierarchy, a) & _ancestors(hierarchy, b)
    words = [
        int(hierarchy.component_word[component])
        for component in shared
        if hierarchy.component_information[component] > -np.inf
    ]
    return min(words, key=lambda word: (-hierarchy.information[word], word), default=TOP)


def _ancestors(hierarchy: WeightedHierarchy, word: int) -> set[int]:
    """Components from which a word can be reached, including its own; none for a word that is Top itself."""
    if word == hierarchy.top_word:
        return set()
    found = {int(hierarchy.component[word])}
    waiting = list(found)
    while waiting:
        child = waiting.pop()
        for parent in _parents(hierarchy, child):
            if parent not in found:
                found.add(parent)
                waiting.append(parent)
    return found


def _parents(hierarchy: WeightedHierarchy, component: int) -> list[int]:
    start, end = hierarchy.parent_pointers[component : component + 2]
    return [int(parent) for parent in hierarchy.parents[start:end]]


def path_from_top(hierarchy: WeightedHierarchy, word: int) -> list[int]:
    """The longest path that gives a word its layer, for explanations.

    Returns:
        Word numbers from layer 1 down to the word itself, one per layer; before them the word that is Top, if any. A
        component is represented by its most informative word. Of several parents the smallest component is taken.
    """
    path = [word]
    component = int(hierarchy.component[word])
    for layer in range(int(hierarchy.layer[word]) - 1, 0, -1):
        component = min(p for p in _parents(hierarchy, component) if hierarchy.component_layer[p] == layer)
        path.append(int(hierarchy.component_word[component]))
    if hierarchy.top_word not in (TOP, word):
        path.append(hierarchy.top_word)
    return path[::-1]


def clicked_first(hierarchy: WeightedHierarchy, words: npt.NDArray[np.integer]) -> Int64s:
    """Positions that sort words so that those with clicks come first; stable."""
    return np.argsort(hierarchy.probability[words] == 0, kind="stable").astype(np.int64)


@dataclass(frozen=True, eq=False)
class IcsRows:
    """The rows of ics blocks, prepared for any number of columns.

    The information content that a component shares with a column is the largest that one of its parents shares with
    it, or its own for the columns below it. One pass over the ancestors of the rows, layer by layer, computes all of
    them. Words without clicks are left out, as they are similar to their relatives only.

    Attributes:
        hierarchy: the hierarchy of n words.
        words: the rows' words.
        clicked: the rows whose words have clicks, int64.
        above: the ancestors of their components.
        places: position of the component of each of these rows in `above`, int64.
    """

    hierarchy: WeightedHierarchy
    words: npt.NDArray[np.integer]
    clicked: Int64s
    above: _Above
    places: Int64s

    @classmethod
    def of(cls, hierarchy: WeightedHierarchy, words: npt.NDArray[np.integer]) -> IcsRows:
        """Rows of these words, numbers below n; a word may be repeated."""
        clicked = np.flatnonzero(hierarchy.probability[words] > 0).astype(np.int64)
        components, place = np.unique(hierarchy.component[words[clicked]].astype(np.int64), return_inverse=True)
        above = _Above.of(hierarchy, components)
        return cls(hierarchy, words, clicked, above, above.places[place])

    def write(self, columns: npt.NDArray[np.integer], block: Float64s) -> None:
        """Writes the similarities with the words of some columns.

        Args:
            columns: word numbers in the order of `clicked_first`.
            block: float64[len(rows), len(columns)], written.
        """
        hierarchy, row_shares = self.hierarchy, word_shares(self.hierarchy, self.words[self.clicked])
        clicked = columns[: np.count_nonzero(hierarchy.probability[columns])]
        block[:, len(clicked) :] = 0.0
        if len(self.clicked) < len(self.words):
            block[np.flatnonzero(hierarchy.probability[self.words] == 0)] = 0.0
        width = min(max(SHARED_CELLS // max(1, len(self.above.components)), SLAB // 8), SLAB)
        buffer = np.empty((len(self.above.components), min(width, len(clicked))))
        for start in range(0, len(clicked), width):
            words = clicked[start : start + width]
            components, column_places = np.unique(hierarchy.component[words].astype(np.int64), return_inverse=True)
            shared = buffer[:, : len(components)]
            _write_shared_information(hierarchy, self.above, components, shared)
            _write_ics(
                (row_shares, word_shares(hierarchy, words)),
                shared,
                (self.places, column_places),
                hierarchy.top_information,
                block[:, start : start + len(words)],
                self.clicked,
            )
        related = hierarchy.relatives[self.words][:, columns].tocoo()
        block[related.row, related.col] = 1.0


@dataclass(frozen=True, eq=False)
class _Above:
    """Ancestors of some components, themselves included, in an order where parents come before their children.

    Attributes:
        components: the ancestors, int64[m].
        places: position in `components` of each of the given components, int64.
        steps: (first position, number of ancestors, positions of parents): one parent of each of these consecutive
            ancestors, or several parents of one ancestor. Steps of deeper layers come later.
    """

    components: Int64s
    places: Int64s
    steps: list[tuple[int, int, Int64s]]

    @classmethod
    def of(cls, hierarchy: WeightedHierarchy, components: Int64s) -> _Above:
        ancestors, child, parent = _upward_edges(hierarchy, components)
        degrees = np.bincount(child, minlength=len(ancestors))
        layers = hierarchy.component_layer[ancestors]
        order = np.lexsort((ancestors, -degrees, layers))
        position = np.empty(len(order), dtype=np.int64)
        position[order] = np.arange(len(order))
        by_child = np.argsort(position[child], kind="stable")
        parents, starts = position[parent[by_child]], pointers(degrees[order].astype(np.int64))
        steps: list[tuple[int, int, Int64s]] = []
        for start, end in runs(layers[order]):
            degree = degrees[order[start:end]]
            together = int(degree[FEW]) if len(degree) > FEW else 0
            for number in range(together):
                count = int(np.count_nonzero(degree > number))
                steps.append((start, count, parents[starts[start : start + count] + number]))
            for one in range(start, start + np.count_nonzero(degree > together)):
                first, last = int(starts[one]) + together, int(starts[one + 1])
                steps += [(one, 1, parents[i : min(i + SLAB, last)]) for i in range(first, last, SLAB)]
        return cls(ancestors[order], position[np.searchsorted(ancestors, components)], steps)


def _write_shared_information(hierarchy: WeightedHierarchy, above: _Above, columns: Int64s, shared: Float64s) -> None:
    """Writes the largest information content of a common ancestor of components, -inf without one.

    Args:
        hierarchy: the hierarchy.
        above: m components.
        columns: other components, int64[n].
        shared: float64[m, n], written.
    """
    shared[:] = -np.inf
    ancestors, below = _closure(hierarchy, columns)
    order = np.argsort(above.components)
    _, own, at = np.intersect1d(above.components[order], ancestors, assume_unique=True, return_indices=True)
    row, column = np.nonzero(np.unpackbits(below[at], axis=1, count=len(columns)))
    row = order[own][row]
    shared[row, column] = hierarchy.component_information[above.components[row]]
    for start, count, parents in above.steps:
        part = shared[start : start + count]
        np.maximum(part, shared[parents] if count > 1 else shared[parents].max(axis=0), out=part)


def _closure(hierarchy: WeightedHierarchy, components: Int64s) -> tuple[Int64s, npt.NDArray[np.uint8]]:
    """All ancestors of some components, themselves included, and bit sets of the components below each.

    Bit sets cost a few machine words per edge whatever the shape of the graph; lists of ancestors grow with the square
    of a deep graph's size.

    Returns:
        (ancestors int64[m] ascending, uint8[m, ceil(len(components) / 8)]: the components that each is or is above).
    """
    ancestors, child, parent = _upward_edges(hierarchy, components)
    below = np.zeros((len(ancestors), -(-len(components) // 8)), dtype=np.uint8)
    below[np.searchsorted(ancestors, components)] = np.packbits(np.eye(len(components), dtype=np.bool_), axis=1)
    # A parent's layer is above its child's, so a component is complete when the deeper layers are.
    for start, end in runs(hierarchy.component_layer[ancestors[parent]]):
        targets, sources = parent[start:end], child[start:end]
        first = group_starts(targets)
        below[targets[first]] |= np.bitwise_or.reduceat(below[sources], first, axis=0)
    return ancestors, below


def _upward_edges(hierarchy: WeightedHierarchy, components: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Ancestors-or-self of components, ascending, and all edges (child, parent) between them as positions there.

    Edges are in descending order of the parent's layer, then in order of the parent.
    """
    seen = np.zeros(len(hierarchy.component_layer), dtype=np.bool_)
    seen[components] = True
    front = components
    while len(front):
        _, positions = ragged(hierarchy.parent_pointers[front], np.diff(hierarchy.parent_pointers)[front])
        reached = np.unique(hierarchy.parents[positions].astype(np.int64))
        front = reached[~seen[reached]]
        seen[front] = True
    ancestors = np.flatnonzero(seen)
    child, positions = ragged(hierarchy.parent_pointers[ancestors], np.diff(hierarchy.parent_pointers)[ancestors])
    parent = np.searchsorted(ancestors, hierarchy.parents[positions])
    order = np.lexsort((child, parent, -hierarchy.component_layer[ancestors[parent]]))
    return ancestors, child[order], parent[order]


def runs(values: Int32s) -> Iterator[tuple[int, int]]:
    """(start, end) of the runs of equal neighbours."""
    if len(values):
        cuts = np.flatnonzero(values[1:] != values[:-1]) + 1
        yield from zip([0, *cuts.tolist()], [*cuts.tolist(), len(values)], strict=True)


def word_shares(hierarchy: WeightedHierarchy, words: npt.NDArray[np.integer]) -> Float64s:
    """Summand of each word in the denominator, -log p(n) w(n); inf for words without clicks, so that ics is 0."""
    share: Float64s = hierarchy.information[words] * hierarchy.weight[words]
    share[hierarchy.probability[words] == 0] = np.inf
    return share


def _write_ics(
    shares: tuple[Float64s, Float64s],
    shared: Float64s,
    places: tuple[Int64s, Int64s],
    top_information: float,
    values: Float64s,
    targets: Int64s,
) -> None:
    """Writes similarities of words that are neither equal nor ISA-related.

    Args:
        shares: `word_shares` of the rows' and of the columns' words.
        shared: information contents of common ancestors, float64[m, components]; -inf for Top.
        places: the row of `shared` of each row's word, and the column of each column's word.
        top_information: -log p(Top).
        values: float64[r, columns], of which the rows `targets` are written.
        targets: int64[rows].
    """
    (row_share, column_share), (row_places, column_places) = shares, places
    in_order = np.array_equal(column_places, np.arange(shared.shape[1]))
    zero_rows, zero_columns = row_share == 0, np.flatnonzero(column_share == 0)
    step = max(1, TILE_CELLS // max(1, len(column_share)))
    for start in range(0, len(row_share), step):
        rows = slice(start, start + step)
        tile = shared[row_places[rows]]
        tile = tile if in_order else np.take(tile, column_places, axis=1)
        np.copyto(tile, top_information, where=tile < 0)
        own = np.add.outer(row_share[rows], column_share)
        # Where probability 1 or weight 0 makes the denominator 0, x/0 is 1 and 0/0 is 0.
        undefined = np.ix_(np.flatnonzero(zero_rows[rows]), zero_columns)
        tile[undefined], own[undefined] = tile[undefined] > 0, 1.0
        np.divide(tile, own, out=tile)
        tile *= 2 * ICS_UNITS
        np.minimum(tile, ICS_UNITS, out=tile)
        np.rint(tile, out=tile)
        tile *= 1 / ICS_UNITS
        values[targets[rows]] = tile
