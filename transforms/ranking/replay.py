"""A crawl replayed over a web whose pages are all known: which pages a ranker would have fetched, in which order.

The crawl begins at seeds. Again and again the ranker scores the candidates, which the fetched pages link to and which
were not fetched themselves, and the best of them are fetched. Of equal scores the smaller number, which is the earlier
URL, goes first.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import sparse

from semrank.transforms.columnar.arrays import Int64s, int64s, positions
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.ranking.scores import SCORE_DECIMALS
from semrank.transforms.ranking.web import Web

Float64s = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Moment:
    """A crawl just before a batch is chosen. URLs are numbers.

    Attributes:
        seeds: where it began, ascending, int64.
        harvested: all that was fetched, the seeds among it, ascending, int64.
        batch: what was fetched last, at first the seeds, ascending, int64.
        candidates: what can be fetched now, ascending, int64.
        discovery: all that is known in the order in which it became known, the seeds first, then what each page links
            to in the order in which the pages were fetched, int64.
    """

    seeds: Int64s
    harvested: Int64s
    batch: Int64s
    candidates: Int64s
    discovery: Int64s


class Crawler(Protocol):
    """A ranker at work in one crawl. It is made anew for each crawl, so it may remember earlier batches."""

    def look(self, moment: Moment) -> Any:
        """What the crawl knows at this moment, as the ranker wants it. This takes no time of the ranker's."""

    def scores(self, known: Any) -> Float64s:
        """Score of each candidate of that moment, the best highest, float64[candidates]."""


@dataclass(frozen=True, eq=False)
class Crawl:
    """A finished crawl.

    Attributes:
        order: numbers of the URLs in the order in which they were fetched, without the seeds, int64[k].
        seconds: time spent ranking until each of them was chosen, float64[k].
        scores: the last score of each URL that ever was a candidate, NaN elsewhere, float64[n].
        lowest: the lowest score that the ranker ever gave, infinity if none.
        highest: the highest score, minus infinity if none.
    """

    order: Int64s
    seconds: Float64s
    scores: Float64s
    lowest: float
    highest: float


def replay(crawler: Crawler, links: sparse.csr_array, seeds: Int64s, *, budget: int, batch: int) -> Crawl:
    """Replays one crawl.

    Args:
        crawler: the ranker; its scores are rounded to `SCORE_DECIMALS`.
        links: which URLs a page makes known, CSR [n, n].
        seeds: numbers of the seeds.
        budget: number of pages to fetch besides the seeds; fewer where the candidates run out.
        batch: number of pages that are fetched after each ranking.

    Raises:
        ValueError: the ranker gave another number of scores than there are candidates, or one that is no number.
    """
    count = links.shape[0]
    fetched = np.zeros(count, dtype=np.bool_)
    first = np.unique(seeds)
    discovery = _Discovery(first, count)
    last, order = first, np.zeros(0, dtype=np.int64)
    times: list[Float64s] = [np.zeros(0)]
    last_scores = np.full(count, np.nan)
    seconds, lowest, highest = 0.0, np.inf, -np.inf
    while True:
        fetched[last] = True
        discovery.follow(links, last)
        candidates = np.flatnonzero(discovery.known & ~fetched).astype(np.int64)
        wanted = min(batch, budget - len(order))
        if wanted <= 0 or not len(candidates):
            break
        harvested = np.flatnonzero(fetched).astype(np.int64)
        seen = crawler.look(Moment(first, harvested, np.sort(last), candidates, discovery.order))
        begin = time.perf_counter()
        scores = crawler.scores(seen)
        seconds += time.perf_counter() - begin
        scores = _checked(scores, len(candidates))
        last_scores[candidates] = scores
        lowest, highest = min(lowest, float(scores.min())), max(highest, float(scores.max()))
        last = candidates[np.lexsort((candidates, -scores))[:wanted]]
        order = np.concatenate([order, last])
        times.append(np.full(len(last), seconds))
    return Crawl(order, np.concatenate(times), last_scores, lowest, highest)


class _Discovery:
    """The URLs that a crawl knows, in the order in which it came to know them."""

    def __init__(self, seeds: Int64s, count: int) -> None:
        self.order = seeds
        self.known = np.zeros(count, dtype=np.bool_)
        self.known[seeds] = True

    def follow(self, links: sparse.csr_array, pages: Int64s) -> None:
        """Adds what pages link to, page after page."""
        found = [self.order]
        for page in pages.tolist():
            targets = links.indices[links.indptr[page] : links.indptr[page + 1]]
            fresh = np.sort(targets[~self.known[targets]]).astype(np.int64)
            self.known[fresh] = True
            found.append(fresh)
        self.order = np.concatenate(found)


def _checked(scores: Float64s, count: int) -> Float64s:
    if scores.shape != (count,) or not np.isfinite(scores).all():
        bad = int((~np.isfinite(scores)).sum())
        raise ValueError(
            f"a ranker gave scores of shape {scores.shape}, {bad} of them no numbers; expected {count} finite numbers"
        )
    return np.round(scores, SCORE_DECIMALS)


class FactsCrawler:
    """A ranker that scores by facts, in one crawl.

    Args:
        web: the snapshot.
        rank: the ranker.
        ids: id of each URL number, int64[n].
        content_known: whether the candidates' texts and links are known before they are fetched.
    """

    def __init__(self, web: Web, rank: Callable[[Facts], pa.Table], *, ids: Int64s, content_known: bool) -> None:
        self._web, self._rank, self._ids, self._content_known = web, rank, ids, content_known

    def look(self, moment: Moment) -> tuple[Facts, Int64s]:
        """The facts, and the candidates' ids."""
        candidates = self._ids[moment.candidates]
        facts = self._web.facts(
            seeds=self._ids[moment.seeds],
            harvested=self._ids[moment.harvested],
            current=candidates,
            content_known=self._content_known,
            discovery=self._ids[moment.discovery],
        )
        return facts, candidates

    def scores(self, known: tuple[Facts, Int64s]) -> Float64s:
        """What the ranker gives each candidate."""
        facts, candidates = known
        return candidate_scores(self._rank(facts), candidates)


def candidate_scores(scored: pa.Table, candidate_ids: Int64s) -> Float64s:
    """Scores of candidates from a ranker's table, float64[len(candidate_ids)].

    Args:
        scored: a table with `url_id` and `score`, such as one of `SCORED_SCHEMA`.
        candidate_ids: URL ids of the candidates; one without a row has score 0.
    """
    ids = int64s(scored["url_id"])
    order = np.argsort(ids)
    place = positions(ids[order], candidate_ids)
    scores = np.zeros(len(candidate_ids))
    found = place >= 0
    scores[found] = scored["score"].to_numpy()[order[place[found]]]
    return scores


def drawn_seeds(topic: str, urls: pa.Array, *, count: int, seed_set: int, random_seed: int) -> Int64s:
    """Positions of the pages of a topic that are the seeds of a set, ascending, int64[min(count, n)].

    Those are the pages with the smallest stable ids of the seed number, the set, the topic and the URL together: the
    same on every machine, whatever the order of the pages, and different for each topic, set and seed number.

    Args:
        topic: name of the topic.
        urls: URLs of its pages, string[n].
        count: number of seeds.
        seed_set: number of the set.
        random_seed: the seed number of the evaluation.
    """
    keys = text_ids(pa.array([f"{random_seed}|{seed_set}|{topic}|{url}" for url in urls.to_pylist()], pa.string()))
    return np.sort(np.argsort(keys, kind="stable")[:count])
