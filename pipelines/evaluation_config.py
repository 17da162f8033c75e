"""How an evaluation compares rankers, checked when it is put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from semrank.pipelines.config import PAPER_PROFILES, ranker_options, semrank_config, shown_ontology
from semrank.pipelines.options import check_options, expected_one, option
from semrank.pipelines.semrank_settings import reading
from semrank.schemas.errors import InputError
from semrank.transforms.context.objects import ObjectSettings
from semrank.transforms.ranking import registry
from semrank.transforms.replay.semrank_local import Reading

FRONTIER, CONTENT, EXPAND = "frontier", "content", "expand"
BOTH, ALL = "both", "all"

MODES = {
    FRONTIER: "candidates are not fetched",
    CONTENT: "their text is known",
    EXPAND: "what the best fetched page links to is fetched",
}
"""Mode -> what a crawl of it is."""

_SEVERAL = {BOTH: (FRONTIER, CONTENT), ALL: tuple(MODES)}

MODE_CHOICES = (*MODES, *_SEVERAL)

CRAWLS = "crawls"
"""Title of the group of options about what is replayed."""

OMNISCIENT = "omniscient"
"""The ranker that uses the labels; only available to an evaluation."""


def known_rankers() -> tuple[str, ...]:
    """Names of all rankers that can be compared."""
    return (*registry.RANKERS, *PAPER_PROFILES, OMNISCIENT)


@dataclass(frozen=True)
class EvaluationConfig:
    """How rankers are compared; every field but `options` is an option of the same name.

    `options` has options of a round that affect how rankers are computed: `config.SEMRANK_OPTIONS`, for SemRank by the
    papers' profiles, and `config.RANKER_OPTIONS`.

    Raises:
        InputError: a value is outside its range; the message names the option.
    """

    rankers: tuple[str, ...]
    mode: str = option(
        BOTH,
        "; ".join(f"{mode}: {text}" for mode, text in MODES.items()) + "; both: the first two; all",
        CRAWLS,
        metavar="MODE",
        choices=MODE_CHOICES,
    )
    budget: int = option(200, "pages of a crawl, without the seeds", CRAWLS, metavar="N", low=1)
    batch: int = option(20, "pages between two rankings", CRAWLS, metavar="N", low=1)
    seeds_per_topic: int = option(4, "seeds of a crawl", CRAWLS, metavar="N", low=1)
    seed_sets: int = option(3, "crawls for each topic, each with its own seeds", CRAWLS, metavar="N", low=1)
    random_seed: int = option(0, "seed of the random numbers that draw the seeds", CRAWLS, metavar="N", low=0)
    marked_seeds: bool = option(
        False,
        "start from the pages that the topics table marks as seeds, instead of drawn ones, in one crawl for each topic",
        CRAWLS,
        plain=True,
    )
    holdout_clicks: bool = option(
        True, "leave out, for each topic, the clicks of sessions that look for a page of it", CRAWLS
    )

    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.rankers or "" in self.rankers:
            raise InputError("--rankers: found an empty name, expected names separated by commas")
        for name in self.rankers:
            if name not in known_rankers():
                raise InputError(f"--rankers: {expected_one(name, known_rankers())}")
        if len(set(self.rankers)) < len(self.rankers):
            raise InputError(f"--rankers: found {','.join(self.rankers)}, expected each ranker once")
        check_options(self)
        for name in PAPER_PROFILES:
            self.reading(name)
        for name in registry.RANKERS:
            ranker_options(name, self.options)

    def reading(self, ranker: str) -> Reading:
        """How SemRank by a paper's profile is computed."""
        return reading(semrank_config(ranker, self.options))

    @property
    def words(self) -> ObjectSettings:
        """How words are read, whichever ranker takes them."""
        return self.reading(PAPER_PROFILES[0]).objects

    def as_dict(self) -> dict[str, Any]:
        """The fields, for manifests, without the secrets of a database's address."""
        known = asdict(self)
        if "ontology" in self.options:
            known["options"] = {**self.options, "ontology": shown_ontology(self.options["ontology"])}
        return known

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes to replay."""
        return _SEVERAL.get(self.mode, (self.mode,))
