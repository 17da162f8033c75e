"""A crawl replayed over a web whose pages are all known: which pages a ranker would have fetched, in which order.

A crawl begins at seeds. `replay` scores the candidates, which the fetched pages link to and which were not fetched
themselves, and fetches the best of them. `replay_expansion` scores the fetched pages that were not expanded, and
fetches what the best of them links to. Of equal scores the smaller number, which is the earlier URL, goes first.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from scipy import sparse

from semrank.transforms.columnar.arrays import Bools, Float64s, Int64s, int64s, positions
from semrank.transforms.columnar.ids import text_draws
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.ranking.scores import SCORE_DECIMALS
from semrank.transforms.replay.web import Web


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
        """What the crawl knows at this moment, in the form that the ranker takes; not counted in the ranker's time."""

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
    """Replays one crawl that fetches the best candidates.

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
    last = first = np.unique(seeds)
    discovery, ranking, visits = _Discovery(first, count), _Ranking(crawler, count), _Visits()
    while True:
        fetched[last] = True
        discovery.follow(links, last)
        candidates = _numbers(discovery.known & ~fetched)
        wanted = min(batch, budget - len(visits))
        if wanted <= 0 or not len(candidates):
            break
        last = ranking.best(Moment(first, _numbers(fetched), np.sort(last), candidates, discovery.order), wanted)
        visits.add(last, ranking.seconds)
    return visits.crawl(ranking)


def replay_expansion(crawler: Crawler, links: sparse.csr_array, seeds: Int64s, *, budget: int) -> Crawl:
    """Replays one crawl that fetches all that the best page links to (P13 section 4, steps 4 to 6).

    The pages that the seeds link to are fetched; the ranker scores the pages that were fetched and not expanded; what
    the best of them links to is fetched, and so on. In a `Moment` of such a crawl `harvested` are the expanded pages,
    `batch` those expanded last and `candidates` the pages that wait; the content of all of them is known.

    Args:
        crawler: the ranker; its scores are rounded to `SCORE_DECIMALS`.
        links: which URLs a page makes known, CSR [n, n].
        seeds: numbers of the seeds.
        budget: number of pages to fetch besides the seeds; fewer where no page is left to expand.

    Raises:
        ValueError: the ranker gave another number of scores than there are candidates, or one that is no number.
    """
    count = links.shape[0]
    expanded = np.zeros(count, dtype=np.bool_)
    last = first = np.unique(seeds)
    discovery, ranking, visits = _Discovery(first, count), _Ranking(crawler, count), _Visits()
    while True:
        expanded[last] = True
        begin = len(discovery.order)
        discovery.follow(links, last)
        visits.add(discovery.order[begin:][: budget - len(visits)], ranking.seconds)
        waiting = _numbers(discovery.known & ~expanded)
        if len(visits) >= budget or not len(waiting):
            break
        last = ranking.best(Moment(first, _numbers(expanded), np.sort(last), waiting, discovery.order), 1)
    return visits.crawl(ranking)


def _numbers(flags: Bools) -> Int64s:
    return np.flatnonzero(flags).astype(np.int64)


class _Ranking:
    """The rankings of one crawl: the time they took and the scores they gave."""

    def __init__(self, crawler: Crawler, count: int) -> None:
        self._crawler = crawler
        self.scores = np.full(count, np.nan)
        self.seconds, self.lowest, self.highest = 0.0, np.inf, -np.inf

    def best(self, moment: Moment, wanted: int) -> Int64s:
        """The candidates with the highest scores, the smaller number first of equal ones."""
        seen = self._crawler.look(moment)
        begin = time.perf_counter()
        scores = self._crawler.scores(seen)
        self.seconds += time.perf_counter() - begin
        scores = _checked(scores, len(moment.candidates))
        self.scores[moment.candidates] = scores
        self.lowest, self.highest = min(self.lowest, float(scores.min())), max(self.highest, float(scores.max()))
        return moment.candidates[np.lexsort((moment.candidates, -scores))[:wanted]]


class _Visits:
    """The pages that a crawl fetched, and the seconds of ranking until each of them."""

    def __init__(self) -> None:
        self._pages: list[Int64s] = [np.zeros(0, dtype=np.int64)]
        self._seconds: list[Float64s] = [np.zeros(0)]
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, pages: Int64s, seconds: float) -> None:
        """Adds pages that are fetched after so many seconds of ranking."""
        self._pages.append(pages)
        self._seconds.append(np.full(len(pages), seconds))
        self._count += len(pages)

    def crawl(self, ranking: _Ranking) -> Crawl:
        """The crawl that these visits and rankings make."""
        order, seconds = np.concatenate(self._pages), np.concatenate(self._seconds)
        return Crawl(order, seconds, ranking.scores, ranking.lowest, ranking.highest)


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


class Omniscient:
    """The ranker that knows the labels: an upper bound, of which other rankers reach a share.

    Relevant candidates come first. Where a page is expanded instead of fetched, its score is the share of relevant
    pages among those that it links to and that are not fetched; both are greedy, they look no step further.

    Args:
        relevant: whether each URL is relevant, bool[n].
        links: which URLs a page makes known, CSR [n, n], where pages are expanded, else None.
    """

    def __init__(self, relevant: Bools, links: sparse.csr_array | None) -> None:
        self._relevant, self._links = relevant, links

    def look(self, moment: Moment) -> Moment:
        """All of it."""
        return moment

    def scores(self, known: Moment) -> Float64s:
        """1 or 0 of a candidate, or the relevant share of what it leads to."""
        if self._links is None:
            return self._relevant[known.candidates].astype(np.float64)
        fresh = np.ones(len(self._relevant), dtype=np.int64)
        fresh[known.harvested] = fresh[known.candidates] = 0
        leads = sparse.csr_array(self._links[known.candidates] > 0)
        return np.asarray(leads @ (fresh * self._relevant) / np.maximum(leads @ fresh, 1), dtype=np.float64)


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
        """The score of each candidate."""
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
    keys = text_draws(pa.array([f"{random_seed}|{seed_set}|{topic}|{url}" for url in urls.to_pylist()], pa.string()))
    return np.sort(np.argsort(keys, kind="stable")[:count])
