"""How an evaluation compares rankers, checked when it is put together."""

from __future__ import annotations

from dataclasses import dataclass

from semrank.schemas.errors import InputError
from semrank.transforms.ranking import registry

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

OMNISCIENT = "omniscient"
"""The ranker that knows the labels, which only an evaluation has."""


def known_rankers() -> tuple[str, ...]:
    """Names of all rankers that can be compared."""
    return (*registry.RANKERS, OMNISCIENT)


@dataclass(frozen=True)
class EvaluationConfig:
    """How rankers are compared; every field is an option of the same name.

    Raises:
        InputError: a value is outside its range; the message names the option.
    """

    rankers: tuple[str, ...]
    mode: str = BOTH
    budget: int = 200
    batch: int = 20
    seeds_per_topic: int = 4
    seed_sets: int = 3
    random_seed: int = 0
    marked_seeds: bool = False
    holdout_clicks: bool = True

    def __post_init__(self) -> None:
        if not self.rankers or "" in self.rankers:
            raise InputError("--rankers: found an empty name, expected names separated by commas")
        for name in self.rankers:
            if name not in known_rankers():
                raise InputError(f"--rankers: found '{name}', expected some of {', '.join(known_rankers())}")
        if len(set(self.rankers)) < len(self.rankers):
            raise InputError(f"--rankers: found {','.join(self.rankers)}, expected each ranker once")
        for name in ("budget", "batch", "seeds_per_topic", "seed_sets"):
            if getattr(self, name) < 1:
                option = name.replace("_", "-")
                raise InputError(f"--{option}: found {getattr(self, name)}, expected a whole number of at least 1")
        if self.random_seed < 0:
            raise InputError(f"--random-seed: found {self.random_seed}, expected a whole number of at least 0")

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes to replay."""
        return _SEVERAL.get(self.mode, (self.mode,))
