"""Fixtures of the tests of logs."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pyarrow as pa
import pytest

from semrank.transforms.logs import access
from semrank.transforms.logs.robots import are_robots


@pytest.fixture(scope="module", autouse=True)
def remembered_robots() -> Iterator[None]:
    """Compiling all patterns of robots takes a third of the reading of a few lines; the same agents come again."""
    known: dict[tuple[bytes, ...], pa.BooleanArray] = {}

    def remembered(agents: pa.BinaryArray) -> pa.BooleanArray:
        key = tuple(agents.to_pylist())
        if key not in known:
            known[key] = are_robots(agents)
        return known[key]

    with mock.patch.object(access, "are_robots", remembered):
        yield
