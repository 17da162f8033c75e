"""How the terms of a URL add up to its score, as facts and as lines of text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from semrank.transforms.ranking.registry import SEMRANK

LEGEND = {
    "anchor": "words of links to the URL and of its address, compared with those of relevant pages",
    "anchors": "words of links to the URL, compared with the topic's (PRS, a cosine)",
    "anchor-topic": "words of links to the URL and of its address, compared with the topic's",
    "around": "words around links to the URL, compared with those around links to relevant pages",
    "around-topic": "words around links to the URL, compared with the topic's",
    "authority": "authority of HITS: good hubs link to the URL",
    "clicked-near": "pages clicked directly before or after the URL, compared with relevant pages",
    "cocitation": "how relevant the other pages are that the linking pages link to",
    "content": "words of the page itself, compared with the topic's",
    "cosine": "cosine of the URL's words and the topic's",
    "distance": "links between the URL and the seeds",
    "everywhere": "words about the URL that are common to all URLs to rank",
    "extension": "links and clicks between the URLs of the two concepts",
    "harmonic": "sum of 1 / distance from other URLs",
    "hub": "hub value of HITS: the URL links to good authorities",
    "intension": "similarity of the keywords of the two concepts",
    "layer-N": "probability that links lead to a seed in N steps; its weight is what that nearness is worth",
    "layer-nearness": "nearness of the layer of links in which such words are most probable",
    "linkers": "pages that link to the URL, compared with relevant pages",
    "links-in": "links to the URL",
    "links-out": "links of the URL",
    "pagerank": "PageRank",
    "other": "probability that the URL is in no layer of links around the seeds",
    "parents": "words of pages that link to the URL, compared with the topic's (PRS), by what their other links led to",
    "posterior": "probability of that layer",
    "query": "queries that led to clicks on the URL, compared with those that led to relevant pages",
    "semrank": "words about the URL, compared with the concepts of the seeds and of the pages nearest to them",
    "shift": "added to URLs without known content, so that URLs with and without it have the same average",
    "text": "words of the page, or about it if it is not fetched, compared with the concepts of the base pages' texts",
    "told": "words about the URL, compared with the concepts of the words about the base pages",
    "topic-words": "share of the topic's words that the URL has",
    "words": "number of words that the score is based on",
}
"""Term -> what it compares."""

OWN_LEGEND = {
    ("hmm", "linkers"): "number of pages of the crawl that link to the URL; their layers predict its own",
    (
        "ontology",
        "content",
    ): "classes of the ontology in the words of the page, or about it if it is not fetched (S_pc)",
}
"""(Ranker, term) -> what a term compares that other rankers use for something else."""


def named_ranker(parameters: Mapping[str, Any]) -> str:
    """The ranker as a round's parameters have it, with the profile where the ranker depends on it."""
    profile = f"profile {parameters['profile']}, " if parameters["ranker"] == SEMRANK else ""
    return f"{profile}ranker {parameters['ranker']}"


def score_facts(
    row: Mapping[str, Any], weight: float | None, ranker: str, scale: Mapping[str, float]
) -> dict[str, Any]:
    """The terms of a score and what they add up to.

    Args:
        row: the URL's row of the frontier.
        weight: SemRank's weight of the extension.
        ranker: the round's ranker.
        scale: the round's numbers by name (`scale/`), none for rankers whose scores are the total itself.

    Returns:
        `ranker`; `terms`, each with `term`, `value`, `weight`, `contribution` (null where it only informs) and
        `detail`; `total`, the sum of the contributions; with a scale `mean`, `spread` and `spreads_above` as well; by
        the topic's lattice `objects`, what its own objects have on average.
    """
    by_papers = ranker == SEMRANK and not row["reasons"]
    terms = _semrank_terms(row, weight) if by_papers else [dict(reason) for reason in row["reasons"]]
    if scale and all(term["term"] != "content" for term in terms):
        terms.append({"term": "shift", "value": scale["shift"], "weight": 1.0, "detail": None})
    for term in terms:
        term["contribution"] = None if term["weight"] is None else term["value"] * term["weight"]
    total = math.fsum(term["contribution"] for term in terms if term["contribution"] is not None)
    facts: dict[str, Any] = {"ranker": ranker, "terms": terms, "total": total}
    if ranker == SEMRANK and not by_papers:
        facts["objects"] = 1.0
    if scale:
        spread = scale["spread"]
        above = (total - scale["mean"]) / spread if spread > 0 else 0.0
        facts |= {"mean": scale["mean"], "spread": spread, "spreads_above": above}
    return facts


def _semrank_terms(row: Mapping[str, Any], weight: float | None) -> list[dict[str, Any]]:
    extension, intension = row["extension"], row["intension"]
    both = extension + intension
    # Without a weight each term counts by its own share of the two.
    weights = (weight, 1 - weight) if weight is not None else (extension / both, intension / both) if both else (0, 0)
    return [
        {"term": name, "value": value, "weight": own, "detail": None}
        for name, value, own in (("extension", extension, weights[0]), ("intension", intension, weights[1]))
    ]


def score_lines(facts: Mapping[str, Any], score: float | None) -> list[str]:
    """A table of the terms, the total, and how the score follows from it."""
    terms, table = facts["terms"], _table(facts["terms"], facts["ranker"])
    if not any(term["contribution"] is not None for term in terms):
        return [*table, "  The score is a place in an order; these terms are only for information."]
    lines = [*table, f"  {'total':<16}{'':>13}  {'':>11}  {facts['total']:>+12.6f}"]
    if "objects" in facts:
        follows = "no score without base pages" if score is None else f"score = 1 / (1 + exp(1 - total)) = {score:.6f}"
        return [*lines, f"  The base pages themselves have 1 on average: {follows}"]
    if "spread" not in facts:
        return lines if score is None else [*lines, f"  The score is the total: {score:.6f}"]
    above, spread = facts["spreads_above"], facts["spread"]
    lines.append(f"  the round: mean {facts['mean']:+.6f}, spread {spread:.6f} (standard deviation of the totals)")
    side = "above" if above >= 0 else "below"
    lines.append(f"  {abs(above):.6f} spreads {side} the mean: score = 1 / (1 + exp({-above:+.6f})) = {score:.6f}")
    return [*lines, "  Scores are relative to their round: those of two rounds can't be compared."]


def _table(terms: Sequence[Mapping[str, Any]], ranker: str) -> list[str]:
    lines = [f"  {'term':<16}{'value':>13}  {'weight':>11}  {'contribution':>12}  words or pages"]
    for term in terms:
        value = "no number" if term["value"] is None else f"{term['value']:+.8g}"
        weight = "" if term["weight"] is None else f"{term['weight']:.8g}"
        contribution = "" if term["contribution"] is None else f"{term['contribution']:+.6f}"
        detail = f"  {term['detail']}" if term["detail"] else ""
        lines.append(f"  {term['term']:<16}{value:>13}  {weight:>11}  {contribution:>12}{detail}".rstrip())
    names = dict.fromkeys(re.sub(r"^layer-\d+$", "layer-N", term["term"]) for term in terms)
    meanings = {name: OWN_LEGEND.get((ranker, name)) or LEGEND.get(name) for name in names}
    return [*lines, *(f"    {name}: {meaning}" for name, meaning in meanings.items() if meaning)]
