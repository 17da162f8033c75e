"""Every ranker is where the registry says."""

from __future__ import annotations

import inspect

import pytest

from semrank.pipelines.config import RANKERS
from semrank.schemas.errors import InputError
from semrank.transforms.ranking import registry


def test_the_names_are_those_of_rounds() -> None:
    assert set(registry.RANKERS) == set(RANKERS)


@pytest.mark.parametrize("name", [name for name in registry.RANKERS if name != registry.SEMRANK])
def test_each_ranks_by_facts_alone(name: str) -> None:
    first, *others = inspect.signature(registry.ranker(name)).parameters.values()
    assert first.name == "facts"
    assert all(parameter.default is not inspect.Parameter.empty for parameter in others)


def test_an_unknown_ranker() -> None:
    with pytest.raises(InputError, match="found the ranker 'best', expected one of focused"):
        registry.ranker("best")
