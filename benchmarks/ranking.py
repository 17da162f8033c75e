"""The rankers on labelled pages, and the time that the default one takes.

As one of the benchmarks: scores by `focused`, the facts being there, against counting the words of the same pages'
texts in a loop, on generated articles that link to each other.

As a command it evaluates, which takes some hours for both webs; what is done is kept in DIR, so that it can be stopped
and started again:

    python -m benchmarks.ranking --source DIR|URL --output DIR     # Wikispeedia, from where `semrank dataset` takes it
    python -m benchmarks.ranking --manuals DIR --output DIR        # unpacked HTML manuals
    python -m benchmarks.ranking --quick --output DIR              # the product's own sample

Topics have 40 to 200 pages: the leaf categories of Wikispeedia, and the sections of manuals that hold no other such
section. In the order of their names every other one is for tuning, the rest is held out: constants were chosen with the
first half alone. For each half all rankers, and readings of the papers' (`contest.READINGS`), are replayed in all
modes, as `semrank evaluate` does it, which is printed as the tables of docs/ranking.md: harvest and recall, differences
to the first ranker, F and seconds, F by threshold. Then `focused` is compared with a crawl that knows the labels of the
pages it has fetched (`labels_known`), and with itself without each of its parts.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks import labels_known
from benchmarks.contest import CONTESTANTS, Place, claim_lines, compared, contest, parts_of, threshold_lines
from benchmarks.harness import Result, compare
from benchmarks.keywords import articles
from semrank.pipelines.cli import main as semrank
from semrank.pipelines.evaluation_config import ALL, CONTENT, FRONTIER, MODE_CHOICES, OMNISCIENT, EvaluationConfig
from semrank.schemas.tables import CLICKS, LINKS, PAGES, conform
from semrank.transforms.columnar.ids import text_ids
from semrank.transforms.ranking import focused, registry, topic_lattice, topic_relations
from semrank.transforms.ranking.facts import Facts
from semrank.transforms.replay.web import Web

HALVES = ("tuning", "held-out")

LEAST_PAGES, MOST_PAGES = 40, 200
"""Sizes of the topics: so many that half of the pages of a crawl can be relevant, so few that it has to choose."""

ARTICLES = 600
QUICK_ARTICLES = 60
LINKS_PER_ARTICLE = 25
ANCHOR_WORDS = 5
HARVESTED = 100
QUICK_HARVESTED = 10
QUICK_TOPICS = 2
REPEATS = 5
AIM = 1.0
"""A ranking should cost about what counting words costs."""


# --- what a ranking costs --------------------------------------------------------------------------------------------


def article_web(count: int) -> tuple[pa.Table, pa.Table]:
    """Pages and links of generated articles; the anchors, the first words of where they lead, stand in the texts."""
    texts = articles(count)
    random = np.random.default_rng(5)
    urls = [f"https://articles.example/{number:05d}" for number in range(count)]
    rows, pages = [], []
    for source, text in enumerate(texts):
        targets = [target for target in random.choice(count, LINKS_PER_ARTICLE).tolist() if target != source]
        anchors = [" ".join(texts[target].split()[:ANCHOR_WORDS]) for target in targets]
        pieces = np.array_split(np.array(text.split()), len(targets) + 1)
        told = [
            word for piece, anchor in zip(pieces, ["", *anchors], strict=True) for word in (anchor, *piece.tolist())
        ]
        pages.append({"url": urls[source], "text": " ".join(told), "language": "en"})
        rows += [
            {"source_url": urls[source], "target_url": urls[target], "anchor_text": anchor}
            for target, anchor in zip(targets, anchors, strict=True)
        ]
    return conform(pa.Table.from_pylist(pages), PAGES), conform(pa.Table.from_pylist(rows), LINKS)


def count_words(texts: Sequence[str]) -> list[Counter[str]]:
    """The words of each text with their counts, as one would write it first."""
    return [Counter(text.lower().split()) for text in texts]


def run(*, quick: bool = False) -> list[Result]:
    """Compares the time that `focused` takes with that of counting words, for both modes."""
    count, harvested = (QUICK_ARTICLES, QUICK_HARVESTED) if quick else (ARTICLES, HARVESTED)
    pages, links = article_web(count)
    ids = text_ids(pages["url"])
    web = Web.of_tables(pages, links, CLICKS.empty())
    texts = pages["text"].to_pylist()[harvested:]
    results = []
    for mode in (FRONTIER, CONTENT):
        facts = web.facts(
            seeds=ids[:4],
            harvested=ids[:harvested],
            current=ids[harvested:],
            content_known=mode == CONTENT,
        )
        ours, peer = [], []
        for _ in range(REPEATS):
            ours.append(_seconds(partial(focused.rank, facts)))
            peer.append(_seconds(partial(count_words, texts)))
        note = f"{mode} mode, {len(texts)} articles of 3,300 words to rank by {harvested} others; medians of {REPEATS}"
        peer_name = "Counter over split texts"
        results.append(compare("ranking", peer_name, statistics.median(ours), statistics.median(peer), AIM, note))
    return results


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


# --- the evaluation --------------------------------------------------------------------------------------------------


def leaf_categories(counts: Mapping[str, int]) -> list[str]:
    """Topics of a fitting size that have no topics below them, by name.

    Args:
        counts: topic -> number of its pages.
    """
    parents = {topic.rpartition(".")[0] for topic in counts}
    return sorted(topic for topic in counts if topic not in parents and LEAST_PAGES <= counts[topic] <= MOST_PAGES)


def lowest_sections(counts: Mapping[str, int]) -> list[str]:
    """Topics of a fitting size that have no such topics below them, by name; the number of pages is by topic."""
    fitting = sorted(topic for topic in counts if LEAST_PAGES <= counts[topic] <= MOST_PAGES)
    return [topic for topic in fitting if not any(other.startswith(f"{topic}.") for other in fitting)]


def topic_halves(
    topics: pa.Table, chosen: Callable[[Mapping[str, int]], list[str]] = leaf_categories
) -> dict[str, pa.Table]:
    """The topics for tuning and those held out, in turn by the order of names.

    Args:
        topics: a table of `TOPICS`.
        chosen: gives the topics to take from the number of pages of each.
    """
    leaves = chosen(Counter(topics["topic"].to_pylist()))
    return {
        "tuning": topics.filter(pc.is_in(topics["topic"], pa.array(leaves[0::2], pa.string()))),
        "held-out": topics.filter(pc.is_in(topics["topic"], pa.array(leaves[1::2], pa.string()))),
    }


def variants() -> dict[str, registry.Rank]:
    """`focused` as it is, and without each of its terms and steps."""
    changes: dict[str, dict[str, Any]] = {
        **{f"- {term}": {"WEIGHTS": _weights_without(term)} for term in focused.WEIGHTS},
        **{f"semrank counts {n}": {"WEIGHTS": {**focused.WEIGHTS, "semrank": float(n)}} for n in (1, 3)},
        "- both click terms": {"WEIGHTS": _weights_without("query", "clicked-near")},
        "- both around terms": {"WEIGHTS": _weights_without("around", "around-topic")},
        # The background is measured against a topic that feedback has made longer.
        "- feedback": {"FEEDBACK": 0.0, "BACKGROUND": focused.BACKGROUND / (1 + focused.FEEDBACK)},
        "- consensus of the seeds": {"CONSENSUS": 0.0},
        "- first words": {"LEAD_WEIGHT": 0},
        "- background": {"BACKGROUND": 0.0},
        "- far pages": {"FAR": 0.0},
        "- sharpening": {"SHARPNESS": 1.0},
        "- contrast with candidates": {"CONTRAST_CURRENT": 0.0},
        "- contrast with fetched": {"CONTRAST_HARVESTED": 0.0},
    }
    return _changed("focused", focused, changes)


def topic_variants() -> dict[str, registry.Rank]:
    """SemRank by the topic's lattice as it is, and without each of its steps."""
    changes: dict[str, dict[str, Any]] = {
        "- nearest pages": {"FEEDBACK_PAGES": 0},
        "at most 10 nearest pages": {"FEEDBACK_PAGES": 10},
        "at most 80, 0.6 of the harvest": {"FEEDBACK_PAGES": 80, "FEEDBACK_SHARE": 0.6},
        "- first words": {"LEAD_WEIGHT": 0},
        "- lattice of mentions": {"MENTION_WEIGHT": 0.0},
        "- contrast with mentions everywhere": {"CONTRAST": 0.0},
        "12 keywords of an object": {"KEYWORDS": 12},
    }
    return _changed(registry.SEMRANK, topic_lattice, changes)


def relation_variants() -> dict[str, registry.Rank]:
    """SemRank by the topic's lattice as it is, and with relations between words that are learned in several ways."""
    changes: dict[str, dict[str, Any]] = {
        "+ relations": {},
        "+ relations, one page is enough": {"LARGEST_PAGE": 0.0},
        "+ relations, chance not allowed for": {"DEVIATIONS": 0.0},
        "+ relations, 20 relatives of each kind": {"MOST_RELATIVES": 20},
    }
    changed = {name: partial(rank_related, constants=constants) for name, constants in changes.items()}
    alone = {f"+ relations, {name} alone": partial(rank_related, which=name) for name in ("isa", "part-of")}
    return {registry.SEMRANK: topic_lattice.rank, **alone, **changed}


def rank_related(facts: Facts, *, which: str = "both", constants: Mapping[str, Any] | None = None) -> pa.Table:
    """What SemRank by the topic's lattice with relations gives with some constants of `topic_relations` replaced."""
    # `patch.multiple` wants at least one constant.
    with patch.multiple(topic_relations, **{"DEVIATIONS": topic_relations.DEVIATIONS, **(constants or {})}):
        return topic_lattice.rank(facts, topic_lattice.TopicSettings(which))


def _changed(name: str, module: ModuleType, changes: Mapping[str, Mapping[str, Any]]) -> dict[str, registry.Rank]:
    changed = {
        variant: partial(rank_with, module=module, constants=constants) for variant, constants in changes.items()
    }
    return {name: module.rank, **changed}


def _weights_without(*terms: str) -> dict[str, float]:
    return {term: 0.0 if term in terms else weight for term, weight in focused.WEIGHTS.items()}


def rank_with(facts: Facts, *, module: ModuleType, constants: Mapping[str, Any]) -> pa.Table:
    """What a ranker's module gives with some of its constants replaced."""
    with patch.multiple(module, **constants):
        scored: pa.Table = module.rank(facts)
    return scored


def table_lines(summary: pa.Table) -> Iterator[str]:
    """An evaluation as a table in Markdown: harvest / recall of each ranker in each mode, with intervals.

    Where `omniscient` was evaluated, the shares of what it reaches stand in parentheses.
    """
    rows = {(row["ranker"], row["mode"], row["measure"]): row for row in summary.to_pylist()}
    rankers, modes = (list(dict.fromkeys(key[side] for key in rows)) for side in (0, 1))
    yield "| ranker | " + " | ".join(modes) + " |"
    yield "|---|" + "---|" * len(modes)
    for ranker in rankers:
        cells = []
        for mode in modes:
            own, best = (
                [rows.get((name, mode, measure)) for measure in ("harvest", "recall")] for name in (ranker, OMNISCIENT)
            )
            shares = [f"{row['mean'] / most['mean']:.0%}" for row, most in zip(own, best, strict=True) if row and most]
            reached = f" ({', '.join(shares)})" if shares and ranker != OMNISCIENT else ""
            cells.append(" / ".join(_with_interval(row) for row in own if row) + reached)
        yield f"| {ranker} | " + " | ".join(cells) + " |"


def _with_interval(row: Mapping[str, Any]) -> str:
    return f"{row['mean']:.3f}" + ("" if row["low"] is None else f" [{row['low']:.3f}, {row['high']:.3f}]")


def difference_lines(summary: pa.Table) -> Iterator[str]:
    """Paired differences to the first ranker as a table in Markdown: harvest / recall, with intervals."""
    rows = {(row["ranker"], row["mode"], row["measure"]): row for row in summary.to_pylist()}
    rankers, modes = (list(dict.fromkeys(key[side] for key in rows)) for side in (0, 1))
    yield f"| minus {rankers[0]} | " + " | ".join(modes) + " |"
    yield "|---|" + "---|" * len(modes)
    for ranker in rankers[1:]:
        cells = [[rows.get((ranker, mode, measure)) for measure in ("harvest", "recall")] for mode in modes]
        yield f"| {ranker} | " + " | ".join(" / ".join(_change(row) for row in cell if row) for cell in cells) + " |"


def ablation_lines(halves: Mapping[str, pa.Table]) -> Iterator[str]:
    """The ablation as a table in Markdown: change of harvest and recall when a part is left out, by half.

    A part that changes nothing in a mode has no row there.
    """
    yield "| mode | variant | " + " | ".join(f"{half}: harvest | recall" for half in halves) + " |"
    yield "|---|---|" + "---|" * (2 * len(halves))
    rows = {
        (row["mode"], row["ranker"], row["measure"], half): row
        for half, summary in halves.items()
        for row in summary.to_pylist()
    }
    for mode, ranker in dict.fromkeys((mode, ranker) for mode, ranker, _, _ in sorted(rows, key=lambda key: key[0])):
        found = [rows[mode, ranker, measure, half] for half in halves for measure in ("harvest", "recall")]
        if any(row["difference"] is None or any(row[name] for name in _CHANGE) for row in found):
            yield f"| {mode} | {ranker} | " + " | ".join(map(_change, found)) + " |"


_CHANGE = ("difference", "difference_low", "difference_high")


def _change(row: dict[str, float | None]) -> str:
    if row["difference"] is None:
        return f"{row['mean']:.3f}"
    ends = "" if row["difference_low"] is None else f" [{row['difference_low']:+.3f}, {row['difference_high']:+.3f}]"
    return f"{row['difference']:+.3f}{ends}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Evaluates all rankers; gives the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranking", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--source", metavar="DIR|URL", help="files of Wikispeedia")
    parser.add_argument("--manuals", metavar="DIR", help="folder of unpacked HTML manuals")
    parser.add_argument("--quick", action="store_true", help="the sample instead, in small crawls")
    parser.add_argument("--output", required=True, type=Path, metavar="DIR", help="folder of snapshots and evaluations")
    parser.add_argument("--only", action="append", metavar="NAME", help="compare these rankers and readings alone")
    parser.add_argument("--first", metavar="NAME", help="compare the others with this ranker or reading")
    parser.add_argument("--mode", choices=MODE_CHOICES, default=ALL, help="how crawls are replayed (default all)")
    parser.add_argument("--half", choices=HALVES, action="append", help="topics to replay (default both halves)")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="replay every Nth topic by name (default 1)")
    parser.add_argument("--seed-sets", type=int, default=3, metavar="N", help="crawls a topic (default 3)")
    parser.add_argument("--no-ablation", action="store_true", help="leave out what each part of a ranker is worth")
    parser.add_argument(
        "--part", action="append", metavar="NAME", help="of the parts of rankers, only those whose names hold this"
    )
    parsed = parser.parse_args(arguments)
    folder: Path = parsed.output
    config = EvaluationConfig(("focused",), mode=parsed.mode, seed_sets=parsed.seed_sets)
    webs: dict[str, dict[str, pa.Table]] = {}
    if parsed.quick:
        webs["sample"] = _sample(folder / "sample")
        config = EvaluationConfig(("focused",), mode=parsed.mode, budget=20, batch=10, seed_sets=1)
    for name, source, chosen in (
        ("wikispeedia", parsed.source, leaf_categories),
        ("manuals", parsed.manuals, lowest_sections),
    ):
        if source is not None:
            snapshot = folder / name / "snapshot"
            if not (snapshot / "manifest.json").exists():
                _command("dataset", name, "--source", source, "--output", str(snapshot))
            webs[name] = topic_halves(pq.read_table(snapshot / "topics.parquet"), chosen)
    if not webs:
        parser.error("one of --source, --manuals and --quick is required")
    for name, halves in webs.items():
        _evaluate(folder / name, halves, parsed, config)
    return 0


def _sample(folder: Path) -> dict[str, pa.Table]:
    """Makes a snapshot of the product's sample in a folder; gives a few of its topics."""
    web = folder / "web"
    _command("sample", "--output", str(web), "--overwrite")
    inputs = ["--warc", f"{web}/warc/*", "--clicks", f"{web}/clicks/*"]
    _command("ingest", *inputs, "--output", str(folder / "snapshot"), "--overwrite")
    topics = pq.read_table(web / "topics.parquet")
    few = pc.unique(topics["topic"]).sort()[:QUICK_TOPICS]
    return {"sample": topics.filter(pc.is_in(topics["topic"], few))}


def _evaluate(
    folder: Path, halves: Mapping[str, pa.Table], parsed: argparse.Namespace, config: EvaluationConfig
) -> None:
    """Evaluates the rankers on each half of the topics of one web and prints the tables."""
    snapshot = folder / "snapshot"
    summaries: dict[str, dict[str, pa.Table]] = {}
    wanted = [known for known in CONTESTANTS if parsed.only is None or known.name in parsed.only]
    wanted.sort(key=lambda known: known.name != parsed.first)
    for half, topics in halves.items():
        if parsed.half is not None and half not in parsed.half:
            continue
        path = folder / f"{half}.parquet"
        pq.write_table(_every(topics, parsed.every), path)
        print(f"\n{folder.name}, {half} topics\n", flush=True)
        place = Place(snapshot, path, folder / half)
        found = contest(place, wanted, config.modes, config)
        summary = compared(found, config)
        for lines in (table_lines(summary), difference_lines(summary), claim_lines(found), threshold_lines(found)):
            print(*lines, "", sep="\n", flush=True)
        if not parsed.no_ablation:
            bounds = labels_known.bounds(place, config)
            if bounds:
                print("with the labels of the fetched pages known\n")
                print(*difference_lines(compared(bounds, config)), "", sep="\n", flush=True)
            for name, ranks in (
                ("focused", variants()),
                (registry.SEMRANK, topic_variants()),
                (f"{registry.SEMRANK} with relations", relation_variants()),
            ):
                chosen = _parts(ranks, parsed.part)
                if len(chosen) > 1:
                    changes = parts_of(place, chosen, config.modes, config)
                    summaries.setdefault(name, {})[half] = compared(changes, config)
    for name, by_half in summaries.items():
        print(f"\nwhat each term of `{name}` is worth: the change when it is left out\n")
        print(*ablation_lines(by_half), sep="\n")


def _every(topics: pa.Table, step: int) -> pa.Table:
    """The rows of every topic whose place among the names is a multiple of the step."""
    names = pc.unique(topics["topic"]).sort()[::step]
    return topics.filter(pc.is_in(topics["topic"], names))


def _parts(ranks: Mapping[str, registry.Rank], parts: Sequence[str] | None) -> dict[str, registry.Rank]:
    """The ranker as it is, and the variants whose names hold one of some texts."""
    first = next(iter(ranks))
    return {
        name: rank
        for name, rank in ranks.items()
        if name == first or parts is None or any(part in name for part in parts)
    }


def _command(*words: str) -> None:
    """Runs a command of the product.

    Raises:
        RuntimeError: it failed; it has said why.
    """
    if semrank(words):
        raise RuntimeError(f"semrank {' '.join(words)} failed, expected it to succeed")


if __name__ == "__main__":
    sys.exit(main())
