"""Benchmarks for tests."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from benchmarks import __main__ as command


def install(monkeypatch: pytest.MonkeyPatch, name: str, run: object) -> None:
    """A benchmark of this name."""
    module = ModuleType(f"benchmarks.{name}")
    module.__dict__["run"] = run
    monkeypatch.setitem(sys.modules, f"benchmarks.{name}", module)
    monkeypatch.setattr(command, "benchmark_names", lambda: [name])
