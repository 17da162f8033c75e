"""Evaluations without plots: those of a small web take nine tenths of its evaluation's time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from semrank.pipelines import evaluation_plots


@contextmanager
def without_plots() -> Iterator[None]:
    """Evaluates as where no plotting library is installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation_plots, "available", lambda: False)
        yield
