"""A crawl over its rounds: one row of figures a round, for `semrank ls`, the report of a crawl, and metrics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import Any

from semrank.pipelines import folders
from semrank.pipelines.manifest import Manifest
from semrank.pipelines.selection import SELECTION_COLUMNS, Selection
from semrank.pipelines.topic import stored_topic
from semrank.schemas.errors import InputError
from semrank.schemas.tables import FRONTIER, HARVEST
from semrank.transforms.columnar import files


@dataclass(frozen=True)
class RoundFigures:
    """A finished round in few numbers.

    Attributes:
        folder: its folder.
        ranker: what the score is.
        ranked: number of URLs of the frontier.
        selected: number of selected URLs.
        new: selected URLs whose page the snapshot does not have.
        known: selected URLs whose page it has, at a known time or not.
        hosts: number of hosts of the selected URLs.
        mean_score: mean score of the selected URLs, or None if nothing is selected.
        held_back: reason -> URLs that are not selected.
        harvested: number of URLs that the crawl chose so far.
        relevance: mean cosine of the pages that the round before selected with the topic of the seeds, or None if the
            content of none is known.
        rejected: number of rejects.
        seconds: duration of the run.
        topic: the strongest words of the topic with their weights; empty if the round does not name them.
        drift: 1 - cosine of the topic's words and those of the first round, or None if they are unknown.
        queue: the seeds file or the round that it went on from.
    """

    folder: str
    ranker: str
    ranked: int
    selected: int
    new: int
    known: int
    hosts: int
    mean_score: float | None
    held_back: dict[str, int]
    harvested: int
    relevance: float | None
    rejected: int
    seconds: float
    topic: dict[str, float]
    drift: float | None
    queue: str

    def as_dict(self) -> dict[str, Any]:
        """The fields, as JSON can hold them."""
        return asdict(self)


def round_figures(folder: str, first_topic: Mapping[str, float] | None = None) -> RoundFigures:
    """The figures of a finished round.

    Args:
        folder: the round's folder.
        first_topic: words of the first round's topic, from which `drift` is measured.

    Raises:
        InputError: the round is unfinished or damaged.
    """
    manifest = Manifest.of(folder, "round")
    total = Selection()
    for part in folders.read_parts(folder, FRONTIER.columns(*SELECTION_COLUMNS)):
        total.add(part)
    # Rounds of rankers that do not look at texts name no topic.
    described = stored_topic(manifest) or {"words": [], "relevance": None}
    topic = {word: float(weight) for word, weight in described["words"]}
    return RoundFigures(
        folder=folder,
        ranker=manifest.text("parameters", "ranker"),
        ranked=manifest.whole("rows", FRONTIER.name),
        selected=total.selected,
        new=total.selected - total.known,
        known=total.known,
        hosts=len(total.hosts),
        mean_score=total.score / total.selected if total.selected else None,
        held_back=dict(sorted(total.held.items())),
        harvested=manifest.whole("rows", HARVEST.name),
        relevance=described["relevance"],
        rejected=sum(manifest.members("rejected").values()),
        seconds=manifest.number("seconds"),
        topic=topic,
        drift=_drift(topic, topic if first_topic is None else first_topic),
        queue=manifest.text("inputs", "queue", "path"),
    )


def _drift(topic: Mapping[str, float], first: Mapping[str, float]) -> float | None:
    if not topic or not first:
        return None
    product = math.fsum(weight * first.get(word, 0.0) for word, weight in topic.items())
    return 1.0 - product / (math.hypot(*topic.values()) * math.hypot(*first.values()))


def round_folders(folder: str) -> tuple[list[str], list[str]]:
    """The finished and the unfinished rounds in a folder, by name; each is the path of a round's folder."""
    base = folder.rstrip("/") + "/"
    found = files.match(files.join(folder, "*", "**"))
    names = sorted({str(file.path).removeprefix(base).split("/")[0] for file in found})
    finished, unfinished = [], []
    for name in names:
        path = files.join(folder, name)
        if files.exists(files.join(path, files.MANIFEST)):
            if files.read_json(files.join(path, files.MANIFEST)).get("kind") == "round":
                finished.append(path)
        elif files.match(files.join(path, HARVEST.name, "*.parquet")):
            unfinished.append(path)
    return finished, unfinished


def crawl_figures(folder: str) -> list[RoundFigures]:
    """The figures of all finished rounds in a folder, in the order of their names.

    Raises:
        InputError: there is no finished round, or one is damaged.
    """
    finished, unfinished = round_folders(folder)
    if not finished:
        found = f"{len(unfinished)} unfinished" if unfinished else "no round"
        found = found if files.exists(folder) else "no such folder"
        raise InputError(f"--rounds {folder}: found {found}, expected finished rounds as in {folder}/round-0000")
    return rounds_figures(finished)


def rounds_figures(finished: Iterable[str]) -> list[RoundFigures]:
    """The figures of finished rounds in the order given; `drift` is measured from the first."""
    rounds: list[RoundFigures] = []
    for path in finished:
        rounds.append(round_figures(path, rounds[0].topic if rounds else None))
    return rounds


def folder_name(folder: str) -> str:
    """The last name of a folder's path."""
    return PurePosixPath(folder.rstrip("/")).name
