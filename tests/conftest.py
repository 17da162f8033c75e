"""Fixtures that several rooms' tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder with published real data; it is not part of the project, so tests that need it skip without it."""
    if not SHARED_DATA.is_dir():
        pytest.skip("real data is not beside the checkout (expected in ../shared/data)")
    return SHARED_DATA
