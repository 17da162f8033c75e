"""What the stages that describe URLs hold whole on a worker."""

from __future__ import annotations

from semrank.transforms.columnar.worker_memory import OTHER_FACTOR, Held

HARVEST = Held("harvest", 4.0, "fewer seeds, or a smaller --max-urls or --budget of the rounds before")

DESCRIBED = Held(
    "words of descriptions",
    OTHER_FACTOR,
    "fewer queue URLs, or a ranker that reads no words, such as --ranker pagerank",
)
