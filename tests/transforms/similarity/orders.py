"""The two orders of search, which the number of base concepts decides between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from semrank.transforms.similarity import concept_similarity

ORDERS = {"linked first": 0, "all pairs": 1 << 12}
"""`MANY_CONCEPTS` by the order that it gives to small base lattices."""


@contextmanager
def ordered(order: str) -> Iterator[None]:
    """Small base lattices are searched in this order while the block runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(concept_similarity, "MANY_CONCEPTS", ORDERS[order])
        yield
