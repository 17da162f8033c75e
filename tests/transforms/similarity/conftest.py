"""What the tests of this room share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from semrank.transforms.similarity import concept_similarity


@pytest.fixture(scope="module", params=[0, 1 << 12], ids=["linked first", "all pairs"])
def order_of_search(request: pytest.FixtureRequest) -> Iterator[None]:
    """Small base lattices are searched as large ones are, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(concept_similarity, "MANY_CONCEPTS", request.param)
        yield
