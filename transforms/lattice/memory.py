"""What the stages of concept mining hold whole on a worker."""

from __future__ import annotations

from semrank.transforms.columnar.worker_memory import Held

LOWER_LATTICE = "a larger --min-support, a smaller --keywords-per-page, fewer queue URLs, or --no-semrank-terms"

CONTEXT = Held("base context", 4.0, LOWER_LATTICE)
