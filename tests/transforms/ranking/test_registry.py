"""Every ranker is where the registry says."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from semrank.schemas.errors import InputError
from semrank.transforms.ranking import registry
from tests.support.stages import HELD

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("name", registry.RANKERS)
def test_each_is_where_its_entry_says(name: str) -> None:
    known = registry.RANKERS[name]
    assert known.name == name
    assert known.needs
    assert known.memory in HELD
    if known.steps is not None:
        module = importlib.import_module(f"semrank.transforms.ranking.{known.steps}")
        assert list(inspect.signature(module.make_step).parameters)[1:] == ["making"]


def test_the_registry_imports_no_ranker() -> None:
    code = (
        "import sys; from semrank.transforms.ranking import registry;"
        "print({'apache_beam', 'scipy', 'semrank.transforms.ranking.focused'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT)
    assert found.stdout == "set()\n"


@pytest.mark.parametrize("name", [name for name in registry.RANKERS if name != registry.SEMRANK])
def test_each_ranks_by_facts_alone(name: str) -> None:
    first, *others = inspect.signature(registry.ranker(name)).parameters.values()
    assert first.name == "facts"
    assert all(parameter.default is not inspect.Parameter.empty for parameter in others)


def test_an_unknown_ranker() -> None:
    with pytest.raises(InputError, match="found the ranker 'best', expected one of focused"):
        registry.ranker("best")
