"""What the tests of this room share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.transforms.similarity.orders import ORDERS, ordered


@pytest.fixture(scope="module", params=ORDERS)
def order_of_search(request: pytest.FixtureRequest) -> Iterator[None]:
    """Small base lattices are searched as large ones are, too."""
    with ordered(request.param):
        yield
