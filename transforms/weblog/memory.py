"""What the stages of the click log hold whole on a worker."""

from __future__ import annotations

from semrank.transforms.columnar.worker_memory import Held

VOCABULARY = Held("vocabulary", 3.5, "a smaller --keywords-per-page, or a larger --min-clicks")

LOWER_RELATIONS = "a larger --min-relation-support, a smaller --max-keywords-per-url, or --no-semrank-terms"
