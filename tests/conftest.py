"""Fixtures that several rooms' tests share."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from hypothesis import settings

# Examples take longer where several tests run at once; the limit of pytest-timeout holds for each test.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

OWN_COMMAND = tuple(Path(__file__).resolve().parent / name for name in ("cloud", "cluster", "crawlers"))
"""Folders whose tests need services and minutes; they run when the command names them."""

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out the folders that have a command of their own, unless the command names them."""
    if collection_path not in OWN_COMMAND:
        return None
    named = [Path(config.invocation_params.dir, argument.split("::")[0]).resolve() for argument in config.args]
    return None if any(path == collection_path or collection_path in path.parents for path in named) else True


def pytest_collection_finish() -> None:
    """What was imported stays: no search for garbage goes through it again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder with published real data; it is not part of the project, so tests that need it skip without it."""
    if not SHARED_DATA.is_dir():
        pytest.skip("real data is not beside the checkout (expected in ../shared/data)")
    return SHARED_DATA
