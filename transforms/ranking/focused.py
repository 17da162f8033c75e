"""The profile `focused`: ranks URLs by their similarity to the relevant pages that the crawl has found so far.

Everything is a sum over pages, words or links, without iterations. A page's vector x has (1 + ln n) idf for a word
that occurs n times in it, each occurrence among its first words counted `LEAD_WEIGHT` times more, and length 1.

Topic: t0 is the mean of the seeds' vectors, each word times the root of the share of seeds that have it, length 1; the
query counts as one more seed, and a seed with unknown content has the words of its links and queries. t is the sum of
t0 and the mean of the `FEEDBACK_PAGES` harvested pages most similar to it (pseudo-relevance feedback, Rocchio 1971).

A URL with known content scores x . (t - 1.02 m), m being the mean of all known pages: words that all pages of the
crawl share are not specific to the topic. There is no m while only seeds are harvested.

Any other URL scores the sum of nine terms, each standardised over the URLs to rank, times `WEIGHTS`, of which the
learned ones grow with the harvest. Harvested pages are graded by their rank in x . (t - 0.9 mean of the half less like
the seeds), squared. Features that are known before a URL is fetched are vectors of length 1: words of anchors and
address, words around the anchors, queries that led to clicks, the vectors of the harvested pages that link to it
(linkers), and of those clicked next to it (clicked-near). A term is the product of a feature and a centroid: the mean
of the graded pages' features, less 0.6 times that of the URLs to rank and 0.3 times that of all harvested pages, each
of length 1. `anchor-topic` and `around-topic` compare words with what pages are graded by, and `cocitation` asks how
well the other pages are graded that the linkers link to. `semrank` is SemRank by the topic's lattice (`topic_lattice`),
whose objects are the seeds and the harvested pages nearest to them.
Linkers' vectors are never added up: the product is a sum of numbers along links, and the length of the sum is assumed
to be that of vectors with the cosine `LINKER_COSINE` to one another.

Where there are URLs of both kinds, the second score is brought to the mean of the first, and to its deviation times the
correlation of the two among the harvested pages, of which both are known. The result is the logistic function of the
standardised score.

The computation is divided into `PASSES`, each of sums over the URLs (`exact_sums`) and a conclusion from the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import sparse
from scipy.special import expit

from semrank.schemas.tables import SCALE
from semrank.transforms.columnar.arrays import Bools, Float64s, Int64s
from semrank.transforms.context.descriptions import Descriptions
from semrank.transforms.ranking import topic_lattice
from semrank.transforms.ranking.calibration import BIN_SCHEMA, score_bins
from semrank.transforms.ranking.exact_sums import (
    Entries,
    Moments,
    entries,
    fixed,
    product_limbs,
    sum_bits,
    sum_rows,
    sum_vectors,
)
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.ranking.reasons import Term, best_words, reason_lists
from semrank.transforms.ranking.scores import SCORE_DECIMALS, SCORED_SCHEMA
from semrank.transforms.ranking.topic_words import words_of_others
from semrank.transforms.ranking.vectors import (
    GRADE_BITS,
    LEAD_WEIGHT,
    divided,
    row_sums,
    unit,
    unit_rows,
    weighted,
    with_data,
    word_vectors,
)

CONSENSUS = 0.5
"""Exponent of the share of seeds that have a word."""

FEEDBACK, FEEDBACK_PAGES = 0.7, 40
"""Weight in the topic of the harvested pages most similar to the seeds, and their number."""

FAR = 0.9
"""Weight that is subtracted for the harvested pages least similar to the seeds when pages are graded."""

BACKGROUND = 1.02
"""Weight of the mean of all known pages that is subtracted from the topic."""

SHARPNESS = 2.0
"""Exponent of a page's rank in its grade."""

CONTRAST_CURRENT, CONTRAST_HARVESTED = 0.6, 0.3
"""Weights of the mean features of the URLs to rank and of the harvested pages, subtracted from a centroid."""

LIKE_SEEDS = 0.5
"""Share of the seeds' mean likeness to the topic from which on a harvested page counts as relevant."""

LINKER_COSINE = 0.1
"""Assumed cosine of two pages that link to the same URL: about the average of pages of a web."""

COCITATION_PRIOR = 2.0
"""Number of links of average grade that are added to those of a linking page."""

WEIGHTS: Mapping[str, float] = {
    "anchor": 1.0,
    "around": 1.0,
    "linkers": 0.75,
    "query": 0.75,
    "clicked-near": 0.5,
    "anchor-topic": 0.5,
    "around-topic": 0.5,
    "cocitation": 0.3,
    "semrank": 2.0,
}
"""Weights of the standardised terms."""

LEAST_DEVIATION = 1e-9
"""Standard deviations below it are rounding errors of equal numbers."""

LEAST_SHARE = 1e-8
"""Variances below this share of their summands are rounding errors of summands that cancel out."""

LEARNED = ("anchor", "around", "linkers", "query", "clicked-near", "cocitation", "semrank")
"""Terms that are learned from harvested pages; the others compare words with the topic."""

LEARNING_PAGES = 20.0
"""Harvested pages besides the seeds after which the learned terms have half of their weight: few pages teach noise."""

LEAST_CORRELATION = 0.3
"""Lower bound of the correlation of the two scores, which few harvested pages estimate badly."""

_WORD_BLOCKS = ("anchor", "around", "query")
_PAGE_BLOCKS = ("linkers", "clicked-near")
_GROUPS = ("graded", "current", "trained")
_TERMS = tuple(WEIGHTS)
_WORDS, _HARVESTED = -1, -2
_LIMBED, _MEAN_LIMBED = (len(product_limbs(np.zeros((0, values)))) for values in (len(_TERMS) + 1, 1))

Sums: TypeAlias = dict[str, Int64s]
Parts: TypeAlias = dict[str, Entries]
Vectors: TypeAlias = Mapping[str, Float64s | float]


@dataclass(frozen=True, eq=False)
class Model:
    """The results of the passes so far, as vectors by name, float64 each.

    Over the v words: `idf`, `topic` (what pages are graded by), `content` (weights of the words of known contents),
    `semrank`, and for each block of words those of its centroid. Over the h harvested URLs: `trained` (1 if the content
    is known), and the value of a link from each for the terms by links. The others are the query's word numbers, single
    numbers and the constants of the nine terms. A worker has only the vectors that a stage needs.
    """

    vectors: Mapping[str, Float64s]

    def __getitem__(self, name: str) -> Float64s:
        return self.vectors[name]

    def number(self, name: str) -> float:
        """The value of a vector of length 1."""
        return float(self.vectors[name][0])

    def having(self, vectors: Vectors) -> Model:
        """The model with further vectors, which replace those of the same name."""
        return Model({**self.vectors, **float_vectors(vectors)})

    @property
    def widths(self) -> tuple[int, int]:
        """Numbers of words and of harvested URLs."""
        return len(self["idf"]), int(self.number("harvested"))


def float_vectors(vectors: Vectors) -> dict[str, Float64s]:
    """Vectors and single numbers as vectors, float64 each."""
    return {name: np.atleast_1d(np.asarray(vector, dtype=np.float64)) for name, vector in vectors.items()}


class Part:
    """Some of the known URLs with their vectors, computed on demand.

    Args:
        descriptions: n URLs.
        idf: inverse document frequency of each word, float64[v].
    """

    def __init__(self, descriptions: Descriptions, idf: Float64s) -> None:
        self.known = descriptions
        self._idf = idf
        self.trained: Bools = descriptions.harvested & descriptions.described
        self.places: Int64s = descriptions.place[self.trained]

    @cached_property
    def pages(self) -> sparse.csr_array:
        """Vectors of the URLs' own contents, CSR float64[n, v]; empty if unknown."""
        return word_vectors(sparse.csr_array(self.known.text + LEAD_WEIGHT * self.known.lead), self._idf)

    @cached_property
    def trained_pages(self) -> sparse.csr_array:
        """Vectors of the harvested pages with known content, in the order of `places`."""
        return self.pages[np.flatnonzero(self.trained)]

    @cached_property
    def mentions(self) -> sparse.csr_array:
        """Vectors of the words of links to the URLs and of queries, CSR float64[n, v]."""
        return word_vectors(words_of_others(self.known), self._idf)

    @cached_property
    def features(self) -> dict[str, sparse.csr_array]:
        """Features over words, CSR float64[n, v] with rows of length 1."""
        counts = {"anchor": self.known.anchor, "around": self.known.around, "query": self.known.query}
        found = {}
        for name, matrix in counts.items():
            size = matrix.data.astype(np.float64)
            weight = np.log1p(size) if name == "query" else size
            found[name] = unit_rows(matrix, weight * self._idf[matrix.indices])
        return found

    def edges(self, trained: Float64s) -> dict[str, sparse.csr_array]:
        """Features over harvested pages, CSR float64[n, h]; a row is divided by the length of the sum of its vectors.

        Args:
            trained: 1 for each harvested page whose content is known, float64[h].
        """
        linkers = trained[self.known.linkers.indices]
        near = np.log1p(self.known.near.data) * trained[self.known.near.indices]
        return {
            "linkers": _sum_rows_of_length_one(self.known.linkers, linkers),
            "clicked-near": _sum_rows_of_length_one(self.known.near, near),
        }


def _trained_only(pages: sparse.csr_array, trained: Float64s) -> sparse.csr_array:
    """1 for each harvested page of a row whose content is known, CSR float64[n, h]."""
    return with_data(pages, trained[pages.indices])


def _sum_rows_of_length_one(matrix: sparse.csr_array, data: Float64s) -> sparse.csr_array:
    sums, squares = row_sums(matrix, data), row_sums(matrix, data * data)
    return divided(matrix, data, squares + LINKER_COSINE * (sums * sums - squares))


def _average_ranks(values: Int64s) -> Float64s:
    """Rank of each value from 1, for equal ones the mean of their ranks, float64[n]."""
    _, number, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2.0)[number], dtype=np.float64)


def _column_sums(matrix: sparse.csr_array, groups: Sequence[Float64s | Bools], bits: int) -> Iterator[Entries]:
    """Sums of the columns of weighted rows in multiples of 2^-bits, for several weights of the rows."""
    columns = np.arange(matrix.shape[1], dtype=np.int64)
    number: npt.NDArray[np.signedinteger[Any]] = matrix.indices
    if matrix.nnz < len(columns):
        # A part of a large web has few of its words.
        found, number = np.unique(number, return_inverse=True)
        columns = found.astype(np.int64)
    shape = (matrix.shape[0], len(columns))
    for rows in groups:
        if rows.dtype == np.bool_:
            data, each = fixed(matrix.data, bits), rows.astype(np.int64)
        else:
            data = fixed(matrix.data * np.repeat(rows, np.diff(matrix.indptr)), bits)
            each = np.ones(matrix.shape[0], dtype=np.int64)
        yield columns, np.asarray(sparse.csr_array((data, number, matrix.indptr), shape=shape).T @ each)


def _count(rows: Bools) -> Entries:
    return entries(np.array([int(rows.sum())], dtype=np.int64))


def _both(one: Entries, other: Entries) -> Entries:
    return np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]])


def first_vectors(known: topic_lattice.Collection, harvested: int) -> Vectors:
    """The model before the first pass.

    Args:
        known: the known URLs as a whole.
        harvested: h, the number of harvested URLs.
    """
    numbers = {"urls": known.urls, "others": known.others, "plain": known.plain, "harvested": harvested}
    return {"idf": known.idf, "query": known.query.astype(np.float64), **numbers}


def _seed_sums(part: Part, model: Model) -> Parts:
    known, bits = part.known, sum_bits(int(model.number("urls")))
    unseen = known.select(known.seed & ~known.described)
    mentions = word_vectors(sparse.csr_array(unseen.anchor + unseen.around), model["idf"])
    seeds = known.seed & known.described
    everybody = np.ones(len(unseen), dtype=np.bool_)
    held = with_data(part.pages, np.ones(part.pages.nnz)), with_data(mentions, np.ones(mentions.nnz))
    seed_pages, pages = _column_sums(part.pages, [seeds, known.described], bits)
    return {
        "seeds": _both(seed_pages, *_column_sums(mentions, [everybody], bits)),
        "holders": _both(*_column_sums(held[0], [seeds], 0), *_column_sums(held[1], [everybody], 0)),
        "members": _both(_count((np.diff(part.pages.indptr) > 0) & seeds), _count(np.diff(mentions.indptr) > 0)),
        "known": pages,
    }


def _after_seeds(model: Model, sums: Sums) -> Vectors:
    scale = 2.0 ** -sum_bits(int(model.number("urls")))
    asked = np.zeros(len(model["idf"]))
    query = model["query"].astype(np.int64)
    asked[query] = model["idf"][query]
    asked = unit(asked)
    members = float(sums["members"][0]) + float(asked.any())
    share = (sums["holders"] + (asked > 0)) / max(members, 1.0)
    topic = unit((sums["seeds"] * scale + asked) * share**CONSENSUS)
    return {"topic": topic, "mean": unit(sums["known"] * scale) * float(model.number("others") > 0)}


def _likeness_sums(part: Part, model: Model) -> Parts:
    other = ~part.known.seed[part.trained]
    return {
        "trained": (part.places, np.ones(len(part.places), dtype=np.int64)),
        "others": (part.places, other.astype(np.int64)),
        "likeness": (part.places, fixed(part.trained_pages @ model["topic"], GRADE_BITS)),
    }


def _after_likeness(_: Model, sums: Sums) -> Vectors:
    others = np.flatnonzero(sums["others"])
    order = others[np.argsort(-sums["likeness"][others], kind="stable")]
    nearest, farthest = np.zeros(len(sums["others"])), np.zeros(len(sums["others"]))
    nearest[order[:FEEDBACK_PAGES]] = 1.0
    if len(order) > 1:
        farthest[order[len(order) // 2 :]] = 1.0
    return {"trained": sums["trained"].astype(np.float64), "nearest": nearest, "farthest": farthest}


def _feedback_sums(part: Part, model: Model) -> Parts:
    names = ("nearest", "farthest")
    groups = [model[name][part.places] > 0 for name in names]
    return dict(zip(names, _column_sums(part.trained_pages, groups, sum_bits(part.known.harvested_count)), strict=True))


def _after_feedback(model: Model, sums: Sums) -> Vectors:
    topic = model["topic"] + FEEDBACK * unit(sums["nearest"].astype(np.float64))
    grading = topic - FAR * unit(sums["farthest"].astype(np.float64))
    return {"content": topic - BACKGROUND * model["mean"], "topic": grading}


def _relevance_sums(part: Part, model: Model) -> Parts:
    return {"relevance": (part.places, fixed(part.trained_pages @ model["topic"], GRADE_BITS))}


def _after_relevance(model: Model, sums: Sums) -> Vectors:
    trained = np.flatnonzero(model["trained"])
    grade = np.zeros(len(model["trained"]))
    # A single page has the highest grade.
    ranks = _average_ranks(sums["relevance"][trained]) - 1 if len(trained) > 1 else np.ones(len(trained))
    grade[trained] = (ranks / max(len(trained) - 1, 1)) ** SHARPNESS
    return {"grade": grade}


def _feature_sums(part: Part, model: Model) -> Parts:
    known, bits = part.known, sum_bits(int(model.number("urls")))
    grades = np.zeros(len(known))
    grades[part.trained] = model["grade"][part.places]
    groups: dict[str, Float64s | Bools] = {"graded": grades, "current": known.current, "trained": part.trained}
    features = {**part.features, **part.edges(model["trained"])}
    sums = {
        f"{name}-{group}": found
        for name in (*_WORD_BLOCKS, *_PAGE_BLOCKS)
        for group, found in zip(groups, _column_sums(features[name], [*groups.values()], bits), strict=True)
    }
    links = _trained_only(known.linkers, model["trained"])
    (cited,), (cites,) = _column_sums(links, [grades], bits), _column_sums(links, [part.trained], 0)
    return {**sums, "cited": cited, "cites": cites}


def _after_features(model: Model, sums: Sums) -> Vectors:
    vectors: dict[str, Float64s | float] = {name: _contrast(sums, name) for name in _WORD_BLOCKS}
    for name in _PAGE_BLOCKS:
        for group in _GROUPS:
            shares = sums[f"{name}-{group}"].astype(np.float64)
            # Only directions matter; a largest share of 1 bounds the sums to come.
            vectors[f"{name}-{group}"] = shares / max(float(shares.max(initial=0.0)), 1.0)
    cited = sums["cited"] * 2.0 ** -sum_bits(int(model.number("urls")))
    average = model["grade"].sum() / max(model["trained"].sum(), 1.0)
    vectors["cocitation"] = (cited - sums["cites"] * average) / (sums["cites"] + COCITATION_PRIOR)
    return vectors


def _contrast(sums: Sums, name: str) -> Float64s:
    graded, current, trained = (unit(sums[f"{name}-{group}"].astype(np.float64)) for group in _GROUPS)
    return graded - CONTRAST_CURRENT * current - CONTRAST_HARVESTED * trained


def _linked_sums(part: Part, model: Model) -> Parts:
    names = [f"{block}-{group}" for block in _PAGE_BLOCKS for group in _GROUPS]
    groups = [model[name][part.places] for name in names]
    return dict(zip(names, _column_sums(part.trained_pages, groups, sum_bits(part.known.harvested_count)), strict=True))


def _after_linked(_: Model, sums: Sums) -> Vectors:
    return {name: _contrast(sums, name) for name in _PAGE_BLOCKS}


def _guide_sums(part: Part, model: Model) -> Parts:
    return {name: (part.places, fixed(part.trained_pages @ model[name], GRADE_BITS)) for name in _PAGE_BLOCKS}


def _after_guides(_: Model, sums: Sums) -> Vectors:
    # From here on a block's vector has the worth of each harvested page in place of the weights of words.
    return {name: np.ldexp(sums[name].astype(np.float64), -GRADE_BITS) for name in _PAGE_BLOCKS}


def _moment_sums(part: Part, model: Model) -> Parts:
    known = part.known
    content = part.pages @ model["content"]
    values = np.column_stack([raw_terms(part, model), content])
    plain, seen = known.current & ~known.described, known.current & known.described
    groups = {"trained": part.trained, "plain": plain, "seen": seen}
    limbs = {name: product_limbs(values[rows]) for name, rows in groups.items()}
    limbs["seeds"] = product_limbs(content[known.seed & part.trained, None])
    return {name: entries(found) for name, found in limbs.items()}


def raw_terms(part: Part, model: Model) -> Float64s:
    """The nine terms before they are standardised, float64[n, 9]; 0 if no URL to rank needs them."""
    raw = np.zeros((len(part.known), len(_TERMS)))
    if not model.number("plain"):
        return raw
    edges, links = part.edges(model["trained"]), _trained_only(part.known.linkers, model["trained"])
    found = {name: part.features[name] @ model[name] for name in _WORD_BLOCKS}
    found |= {f"{name}-topic": part.features[name] @ model["topic"] for name in ("anchor", "around")}
    found |= {name: edges[name] @ model[name] for name in _PAGE_BLOCKS}
    found["semrank"] = part.mentions @ model["semrank"]
    found["cocitation"] = (links @ model["cocitation"]) / np.sqrt(row_sums(links, links.data) + 1.0)
    for column, name in enumerate(_TERMS):
        raw[:, column] = found[name]
    return raw


def term_weights(model: Model) -> Float64s:
    """Weights of the standardised terms, float64[9]: the learned ones grow with the number of harvested pages."""
    others = model.number("others")
    trust = others / (others + LEARNING_PAGES)
    return np.array([weight * (trust if name in LEARNED else 1.0) for name, weight in WEIGHTS.items()])


def _after_moments(model: Model, sums: Sums) -> Vectors:
    count = len(_TERMS)
    trained, plain, seen = (Moments(sums[name], count + 1) for name in ("trained", "plain", "seen"))
    current = Moments(sums["plain"] + sums["seen"], count + 1)
    deviation = np.sqrt(np.diag(current.covariances)[:count])
    varies = deviation > LEAST_DEVIATION
    weights = term_weights(model) * varies / np.where(varies, deviation, 1.0)
    centre = current.means[:count]

    slope, shift = _scale(trained, plain, seen, weights, centre) if plain.count and seen.count else (1.0, 0.0)
    plain_mean = shift + slope * float(((plain.means[:count] - centre) * weights).sum())
    plain_variance = slope**2 * _variance(plain, weights)
    seen_mean, seen_variance = float(seen.means[count]), float(seen.covariances[count, count])
    several = max(current.count, 1)
    mean = (plain.count * plain_mean + seen.count * seen_mean) / several
    variance = plain.count * (plain_variance + (plain_mean - mean) ** 2)
    variance += seen.count * (seen_variance + (seen_mean - mean) ** 2)
    spread = float(np.sqrt(max(variance, 0.0) / several))
    return {
        "centre": centre,
        "weights": weights,
        "slope": slope,
        "shift": shift,
        "middle": mean,
        "steepness": 1.0 / spread if spread > LEAST_DEVIATION else 0.0,
        "like_seeds": LIKE_SEEDS * float(Moments(sums["seeds"], 1).means[0]),
    }


def _variance(moments: Moments, weights: Float64s) -> float:
    """Variance of the weighted sum of the terms."""
    parts = moments.covariances[: len(weights), : len(weights)] * np.outer(weights, weights)
    variance = float(parts.sum())
    return variance if variance > LEAST_SHARE * float(np.abs(parts).sum()) else 0.0


def _scale(trained: Moments, plain: Moments, seen: Moments, weights: Float64s, centre: Float64s) -> tuple[float, float]:
    """Slope and shift that map the sum of terms to the scale of known contents.

    Harvested pages were chosen, so they do not show how good the others are: both kinds of URLs to rank count as
    equally good on average. Links and queries are weaker evidence than the content, by the correlation of the two
    scores among harvested pages, so scores of such URLs spread less around the mean.
    """
    count = len(weights)
    predicted, known = float(np.sqrt(_variance(trained, weights))), _deviation(trained, count)
    correlation = LEAST_CORRELATION
    if predicted > LEAST_DEVIATION and known > LEAST_DEVIATION:
        together = float((trained.covariances[count, :count] * weights).sum())
        correlation = min(1.0, max(LEAST_CORRELATION, together / (predicted * known)))
    spread = float(np.sqrt(_variance(plain, weights)))
    slope = correlation * _deviation(seen, count) / spread if spread > LEAST_DEVIATION else 1.0
    return slope, float(seen.means[count]) - slope * float(((plain.means[:count] - centre) * weights).sum())


def _deviation(moments: Moments, column: int) -> float:
    return float(np.sqrt(max(float(moments.covariances[column, column]), 0.0)))


@dataclass(frozen=True)
class Pass:
    """One pass over the known URLs.

    Attributes:
        stage: its name.
        sizes: names of the vectors it adds up, with their lengths, or `_WORDS` or `_HARVESTED`.
        sums: returns the summands of a part of the URLs for some or all of them.
        conclude: returns the vectors that follow.
        reads: stages of the passes whose vectors its sums need, beside the first ones.
        concludes_with: stages of the passes whose vectors its conclusion needs, beside the first ones.
        harvested: whether only harvested URLs take part.
        by_all: whether each worker that needs the vectors concludes by itself, if that is fast.
        plain: whether it is for URLs with unknown content, and omitted if there is none to rank.
    """

    stage: str
    sizes: Mapping[str, int]
    sums: Callable[[Part, Model], Parts]
    conclude: Callable[[Model, Sums], Vectors]
    reads: tuple[str, ...] = ()
    concludes_with: tuple[str, ...] = ()
    harvested: bool = False
    by_all: bool = False
    plain: bool = False

    @property
    def overlaps(self) -> bool:
        """Whether several parts add to the same number: words are shared by pages, positions in the harvest are not."""
        return _WORDS in self.sizes.values()

    def lengths(self, model: Model) -> dict[str, int]:
        """Length of each vector of sums."""
        lengths = dict(zip((_WORDS, _HARVESTED), model.widths, strict=True))
        return {name: lengths.get(size, size) for name, size in self.sizes.items()}

    def applies(self, model: Model) -> bool:
        """Whether there is anything to add up."""
        return not self.plain or model.number("plain") > 0


PASSES = (
    Pass(
        "add seeds",
        {"seeds": _WORDS, "holders": _WORDS, "members": 1, "known": _WORDS},
        _seed_sums,
        _after_seeds,
    ),
    Pass(
        "compare with seeds",
        dict.fromkeys(("trained", "others", "likeness"), _HARVESTED),
        _likeness_sums,
        _after_likeness,
        reads=("add seeds",),
        harvested=True,
    ),
    Pass(
        "add feedback",
        dict.fromkeys(("nearest", "farthest"), _WORDS),
        _feedback_sums,
        _after_feedback,
        reads=("compare with seeds",),
        concludes_with=("add seeds",),
        harvested=True,
    ),
    Pass(
        "grade pages",
        {"relevance": _HARVESTED},
        _relevance_sums,
        _after_relevance,
        reads=("add feedback",),
        concludes_with=("compare with seeds",),
        harvested=True,
        plain=True,
    ),
    Pass(
        "add features",
        {
            **{f"{name}-{group}": _WORDS for name in _WORD_BLOCKS for group in _GROUPS},
            **{f"{name}-{group}": _HARVESTED for name in _PAGE_BLOCKS for group in _GROUPS},
            **dict.fromkeys(("cited", "cites"), _HARVESTED),
        },
        _feature_sums,
        _after_features,
        reads=("compare with seeds", "grade pages"),
        concludes_with=("compare with seeds", "grade pages"),
        plain=True,
    ),
    Pass(
        "add linking pages",
        {f"{name}-{group}": _WORDS for name in _PAGE_BLOCKS for group in _GROUPS},
        _linked_sums,
        _after_linked,
        reads=("add features",),
        harvested=True,
        plain=True,
    ),
    Pass(
        "weigh linking pages",
        dict.fromkeys(_PAGE_BLOCKS, _HARVESTED),
        _guide_sums,
        _after_guides,
        reads=("add linking pages",),
        harvested=True,
        by_all=True,
        plain=True,
    ),
    Pass(
        "measure terms",
        {**dict.fromkeys(("trained", "plain", "seen"), _LIMBED), "seeds": _MEAN_LIMBED},
        _moment_sums,
        _after_moments,
        reads=("compare with seeds", "add feedback", "add features", "weigh linking pages"),
        by_all=True,
    ),
)
"""The passes in their order."""


def harvest_scores(part: Part, model: Model) -> pa.Table:
    """Numbers of harvested pages by score, and of relevant ones among them, a table of `BIN_SCHEMA`.

    Pages have the scores that they would have before they are fetched, if there are such URLs to rank. A page is
    relevant if its similarity to the topic is above `LIKE_SEEDS` of the seeds' mean. There are no rows if only seeds
    are harvested or the content of no seed is known.

    Args:
        part: URLs, any of them harvested.
        model: the results of all passes.
    """
    if not model.number("others") or model.number("like_seeds") <= 0:
        return BIN_SCHEMA.empty_table()
    rows = np.flatnonzero(part.trained)
    content = part.trained_pages @ model["content"]
    plain = np.full(len(rows), model.number("plain") > 0)
    terms = ((raw_terms(part, model)[rows] - model["centre"]) * model["weights"]).sum(axis=1)
    total = np.where(plain, model.number("shift") + model.number("slope") * terms, content)
    score = np.round(expit((total - model.number("middle")) * model.number("steepness")), SCORE_DECIMALS)
    return score_bins(score, content > model.number("like_seeds"))


def score_part(part: Part, model: Model, words: pa.Array) -> pa.Table:
    """Scores of a part's URLs to rank, a table of `SCORED_SCHEMA`.

    Args:
        part: URLs, any of them to rank.
        model: the results of all passes.
        words: the vocabulary, string[v].
    """
    known = part.known
    current = np.flatnonzero(known.current)
    described = known.described[current]
    values = (raw_terms(part, model)[current] - model["centre"]) * model["weights"]
    content = (part.pages @ model["content"])[current]
    total = np.where(described, content, model.number("shift") + model.number("slope") * values.sum(axis=1))
    score = expit((total - model.number("middle")) * model.number("steepness"))

    own = best_words(weighted(part.pages[current], model["content"]), words)
    terms = [Term("content", content, np.ones(len(current)), own, described)]
    if model.number("plain"):
        details, weights = _details(part, model, current, words), term_weights(model)
        terms += [
            Term(
                name,
                values[:, column] / weights[column],
                np.full(len(current), model.number("slope") * weights[column]),
                details[name],
                ~described,
            )
            for column, name in enumerate(_TERMS)
            if weights[column] > 0
        ]
    columns = [known.url[current], np.round(score, SCORE_DECIMALS), reason_lists(terms, len(current))]
    return pa.table(columns, schema=SCORED_SCHEMA)


def scale_table(model: Model) -> pa.Table:
    """The scale from totals to scores, a table of `SCALE`: score = 1 / (1 + exp((mean - total) / spread)).

    A total is the weighted sum of a URL's terms, plus `shift` if its content is unknown. If all totals are equal, the
    spread is 0 and every score is 1/2.
    """
    steepness = model.number("steepness")
    numbers = {
        "mean": model.number("middle"),
        "spread": 1.0 / steepness if steepness > 0 else 0.0,
        "shift": model.number("shift"),
    }
    return pa.table([list(numbers), list(numbers.values())], schema=SCALE.schema)


def _details(part: Part, model: Model, rows: Int64s, words: pa.Array) -> dict[str, pa.Array]:
    """The detail of each term of some URLs, string[rows]: words, or the number of pages."""
    weights = {name: model[name] for name in _WORD_BLOCKS}
    weights |= {f"{name}-topic": model["topic"] for name in ("anchor", "around")}
    details = {
        name: best_words(weighted(part.features[name.removesuffix("-topic")][rows], weight), words)
        for name, weight in weights.items()
    }
    details["semrank"] = best_words(weighted(part.mentions[rows], model["semrank"]), words)
    links = _trained_only(part.known.linkers[rows], model["trained"])
    near = _trained_only(part.known.near[rows], model["trained"])
    details["linkers"] = details["cocitation"] = _page_counts(links, "linking page", "linking pages")
    details["clicked-near"] = _page_counts(near, "page clicked before or after", "pages clicked before or after")
    return details


def _page_counts(pages: sparse.csr_array, one: str, several: str) -> pa.Array:
    """Number of pages of each row, in words, null if there are none, string[n]."""
    counts, number = np.unique(row_sums(pages, pages.data).astype(np.int64), return_inverse=True)
    texts = [f"{count:,} {one if count == 1 else several}" if count else None for count in counts.tolist()]
    return pa.array(texts, pa.string()).take(pa.array(number))


def learned(facts: Facts) -> tuple[Part, Model]:
    """The URLs of a crawl in memory, and the results of all passes."""
    known, lattice = facts.descriptions, topic_lattice.lattice_of_facts(facts)
    model = Model({}).having(first_vectors(lattice.known, known.harvested_count))
    model = model.having({"semrank": lattice.plain_centre})
    part = Part(known, model["idf"])
    for step in PASSES:
        if step.applies(model):
            sizes = step.lengths(model)
            sums = sum_vectors([sum_rows(step.sums(part, model), sizes)], sizes)
            model = model.having(step.conclude(model, sums))
    return part, model


def rank(facts: Facts) -> pa.Table:
    """Scores of the current URLs of a crawl in memory, a table of `SCORED_SCHEMA`."""
    return score_part(*learned(facts), facts.words)
