"""What the stages of ingestion hold whole on a worker."""

from __future__ import annotations

from semrank.transforms.columnar.worker_memory import Held

MOVES = Held("aliases", 6.0, "fewer inputs for one snapshot")
